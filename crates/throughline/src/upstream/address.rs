//! Addresses of requests, joined from a base URL and a dialect's path.

use super::UpstreamConfigError;
use std::fmt;
use url::{Host, Url};

/// Paths of models' replies that are pasted with the base.
const ENDPOINTS: [&[&str]; 4] =
    [&["chat", "completions"], &["responses"], &["v1", "messages"], &["api", "chat"]];

/// An `http` or `https` URL without user, password or fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BaseUrl(Url);

impl BaseUrl {
    pub(crate) fn parse(text: &str) -> Result<Self, UpstreamConfigError> {
        let bad = |why: &str| UpstreamConfigError::BadBaseUrl { url: text.to_owned(), why: why.to_owned() };
        let mut url = Url::parse(text.trim()).map_err(|error| bad(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(bad("it must begin with http:// or https:// and name a host"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            // Shown in lists and logs, so it must hold no secret. The text itself is not repeated either.
            return Err(UpstreamConfigError::BadBaseUrl {
                url: format!("{}://…@{}", url.scheme(), url.host_str().unwrap_or_default()),
                why: "a URL must not contain a password; use a key or a header".to_owned(),
            });
        }
        url.set_fragment(None);
        Ok(Self(url))
    }

    /// The address for a dialect's `path`, which begins with `/` and may have a query.
    ///
    /// People write base URLs in several ways, so what the base already ends with is not repeated: `…/v1` and
    /// `/v1/messages` give `…/v1/messages`, and a whole address is used as it is, and without its end for other paths.
    /// `/v1` counts once, and not at all before Ollama's `/api`. Queries are joined.
    pub(crate) fn join(&self, path: &str) -> Url {
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let mut url = self.0.clone();
        let mut base: Vec<&str> = self.0.path().split('/').filter(|segment| !segment.is_empty()).collect();
        let more: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        if !base.ends_with(&more)
            && let Some(endpoint) = ENDPOINTS.iter().find(|endpoint| base.ends_with(endpoint))
        {
            base.truncate(base.len() - endpoint.len());
        }
        while base.ends_with(&["v1", "v1"]) || (more.first() == Some(&"api") && base.ends_with(&["v1"])) {
            base.pop();
        }
        let shared =
            (0..=more.len().min(base.len())).rev().find(|n| base.ends_with(&more[..*n])).unwrap_or(0);
        url.set_path(&base.iter().chain(&more[shared..]).copied().collect::<Vec<_>>().join("/"));
        if let Some(query) = query {
            let joined = match self.0.query() {
                Some(before) if !before.is_empty() => format!("{before}&{query}"),
                _ => query.to_owned(),
            };
            url.set_query(Some(&joined));
        }
        url
    }

    /// True for an address on this machine, which no proxy can reach.
    pub(crate) fn is_loopback(&self) -> bool {
        match self.0.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
    }

    /// True for an address on this machine, or on a private network by name or number.
    pub(crate) fn is_on_own_network(&self) -> bool {
        const SUFFIXES: [&str; 7] =
            [".local", ".localdomain", ".lan", ".home", ".home.arpa", ".internal", ".ts.net"];
        self.is_loopback()
            || match self.0.host() {
                // A name without a dot is one of the user's network: a container's, a router's.
                Some(Host::Domain(name)) => {
                    let name = name.trim_end_matches('.');
                    !name.contains('.') || SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
                }
                Some(Host::Ipv4(address)) => {
                    let [first, second, ..] = address.octets();
                    // 100.64.0.0/10 is shared address space, which private overlays use.
                    address.is_private()
                        || address.is_link_local()
                        || (first == 100 && (64..128).contains(&second))
                }
                Some(Host::Ipv6(address)) => address.is_unique_local() || address.is_unicast_link_local(),
                None => false,
            }
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.0.scheme() == "https"
    }
}

impl fmt::Display for BaseUrl {
    /// Writes the address without its query, which may hold a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.0.clone();
        shown.set_query(None);
        f.write_str(shown.as_str().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_joined_to_every_form_of_base_url() {
        let cases = [
            ("https://api.openai.com/v1", "/chat/completions", "https://api.openai.com/v1/chat/completions"),
            ("https://api.openai.com/v1/", "/chat/completions", "https://api.openai.com/v1/chat/completions"),
            ("https://api.anthropic.com", "/v1/messages", "https://api.anthropic.com/v1/messages"),
            ("https://api.anthropic.com/v1", "/v1/messages", "https://api.anthropic.com/v1/messages"),
            ("http://localhost:11434/api", "/api/chat", "http://localhost:11434/api/chat"),
            ("http://h/v1/chat/completions", "/chat/completions", "http://h/v1/chat/completions"),
            (
                "http://h/v1beta",
                "/models/g:streamGenerateContent?alt=sse",
                "http://h/v1beta/models/g:streamGenerateContent?alt=sse",
            ),
            ("http://h/v1?api-version=2", "/chat/completions", "http://h/v1/chat/completions?api-version=2"),
            ("http://h/v1?k=1", "/m?alt=sse", "http://h/v1/m?k=1&alt=sse"),
            ("http://h", "/chat", "http://h/chat"),
            ("http://h/v1/v1", "/chat/completions", "http://h/v1/chat/completions"),
            ("http://h/v1/chat/completions", "/models", "http://h/v1/models"),
            ("https://h/v1/messages", "/v1/models?limit=9", "https://h/v1/models?limit=9"),
            ("http://h:11434/v1", "/api/chat", "http://h:11434/api/chat"),
            ("http://h:11434/api/chat", "/api/tags", "http://h:11434/api/tags"),
        ];
        for (base, path, expected) in cases {
            assert_eq!(BaseUrl::parse(base).unwrap().join(path).as_str(), expected, "{base} + {path}");
        }
    }

    #[test]
    fn invalid_base_url_is_rejected_and_secrets_are_hidden() {
        for text in ["", "api.openai.com/v1", "ftp://h", "file:///etc/passwd", "https://"] {
            assert!(BaseUrl::parse(text).is_err(), "{text}");
        }
        let refused = BaseUrl::parse("https://me:hunter2@h/v1").unwrap_err().to_string();
        assert!(refused.contains("password") && !refused.contains("hunter2"), "{refused}");
        assert_eq!(BaseUrl::parse("http://h/v1?key=hunter2").unwrap().to_string(), "http://h/v1");
    }

    #[test]
    fn loopback_addresses_are_recognized() {
        for (text, expected) in [
            ("http://localhost:1", true),
            ("http://127.0.0.9", true),
            ("http://[::1]:8", true),
            ("http://10.0.0.1", false),
            ("https://localhost.example.com", false),
        ] {
            assert_eq!(BaseUrl::parse(text).unwrap().is_loopback(), expected, "{text}");
        }
    }

    #[test]
    fn private_network_addresses_are_recognized() {
        for (text, expected) in [
            ("http://localhost:1", true),
            ("http://ollama:11434", true),
            ("http://host.docker.internal:1234/v1", true),
            ("http://desk.lan", true),
            ("http://192.168.1.7:8080", true),
            ("http://100.64.0.1", true),
            ("http://[fd00::1]", true),
            ("https://api.openai.com/v1", false),
            ("https://lan.example.com", false),
            ("http://100.128.0.1", false),
            ("http://172.32.0.1", false),
            ("http://[2001:db8::1]", false),
        ] {
            assert_eq!(BaseUrl::parse(text).unwrap().is_on_own_network(), expected, "{text}");
        }
    }
}
