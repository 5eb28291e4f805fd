//! A URL with placeholders for values, which can change nothing but the content of their placeholder.

use crate::secrets::percent_encoded;
use crate::template::{ArgumentTemplate, ArgumentTemplatePart, argument_text};
use serde_json::Value;
use url::Url;

/// A URL of the settings.
#[derive(Clone, Debug)]
pub(super) struct UrlTemplate {
    /// Scheme and authority, literally.
    origin: String,
    /// Path segments, between the slashes.
    segments: Vec<ArgumentTemplate>,
    /// Names and values of query parameters.
    query: Vec<(String, Option<ArgumentTemplate>)>,
    parsed_origin: Url,
}

impl UrlTemplate {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once("://").ok_or("it does not begin with http:// or https://")?;
        if !matches!(scheme, "http" | "https") {
            return Err(format!("only http and https are supported, not `{scheme}`"));
        }
        if rest.contains('#') {
            return Err("a fragment (#...) is never sent to a server".to_owned());
        }
        let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains(['{', '}']) {
            return Err("the host cannot be an argument".to_owned());
        }
        let origin = format!("{scheme}://{authority}");
        let parsed_origin = Url::parse(&origin).map_err(|error| error.to_string())?;
        if !parsed_origin.username().is_empty() || parsed_origin.password().is_some() {
            return Err("user name and password go into `headers`".to_owned());
        }
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let segments: Vec<ArgumentTemplate> =
            path.strip_prefix('/').unwrap_or(path).split('/').map(ArgumentTemplate::parse).collect();
        let mut pairs = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = match pair.split_once('=') {
                Some((name, value)) => (name, Some(ArgumentTemplate::parse(value))),
                None => (pair, None),
            };
            if ArgumentTemplate::parse(name).names().next().is_some() {
                return Err(format!("the name of a query parameter cannot be an argument: `{pair}`"));
            }
            pairs.push((name.to_owned(), value));
        }
        Ok(Self { origin, segments, query: pairs, parsed_origin })
    }

    /// Scheme, host and port.
    pub(super) fn origin(&self) -> &Url {
        &self.parsed_origin
    }

    /// The port, if it is named and not the usual one.
    pub(super) fn port(&self) -> Option<u16> {
        self.parsed_origin.port()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let in_query = self.query.iter().filter_map(|(_, value)| value.as_ref());
        self.segments.iter().chain(in_query).flat_map(ArgumentTemplate::names)
    }

    /// Arguments that are not in the path: if one is absent, its parameter is left out.
    pub(super) fn optional_names(&self) -> impl Iterator<Item = &str> {
        let in_path: Vec<&str> = self.segments.iter().flat_map(ArgumentTemplate::names).collect();
        self.names().filter(move |name| !in_path.contains(name))
    }

    /// # Errors
    /// A value that does not fit its placeholder, for the model.
    pub(super) fn fill(&self, arguments: &Value) -> Result<Url, String> {
        let mut text = self.origin.clone();
        for segment in &self.segments {
            text.push('/');
            text.push_str(&segment_text(segment, arguments)?);
        }
        let mut separator = '?';
        for (name, value) in &self.query {
            let filled = match value {
                None => name.clone(),
                Some(value) => match query_text(value, arguments)? {
                    Some(filled) => format!("{name}={filled}"),
                    None => continue,
                },
            };
            text.push(separator);
            text.push_str(&filled);
            separator = '&';
        }
        let url = Url::parse(&text).map_err(|error| error.to_string())?;
        // The result is parsed again: no value has changed the structure.
        let is_as_built = url.origin() == self.parsed_origin.origin()
            && url.path_segments().map_or(0, Iterator::count) == self.segments.len()
            && url.fragment().is_none();
        if is_as_built { Ok(url) } else { Err("these values would change where the request goes".to_owned()) }
    }
}

fn segment_text(segment: &ArgumentTemplate, arguments: &Value) -> Result<String, String> {
    let (mut text, mut raw_text) = (String::new(), String::new());
    let mut last = None;
    for part in &segment.parts {
        match part {
            ArgumentTemplatePart::Text(fixed) => {
                text.push_str(fixed);
                raw_text.push_str(fixed);
            }
            ArgumentTemplatePart::Argument(name) => {
                let Some(value) = argument_text(arguments, name)? else {
                    return Err(format!("/{name}: missing, and part of the path"));
                };
                text.push_str(&percent_encoded(&value));
                raw_text.push_str(&value);
                last = Some(name);
            }
        }
    }
    // Escaped, all of these are the content of one segment by RFC 3986. Many servers unescape first, and walk then.
    if let Some(name) = last {
        if raw_text.is_empty() {
            return Err(format!("/{name}: must not be empty, being part of the path"));
        }
        if raw_text.split(['/', '\\']).any(|step| matches!(step, "." | "..")) {
            return Err(format!("/{name}: must not walk through folders"));
        }
        if raw_text.chars().any(char::is_control) {
            return Err(format!("/{name}: must not hold control characters, being part of the path"));
        }
    }
    Ok(text)
}

fn query_text(template: &ArgumentTemplate, arguments: &Value) -> Result<Option<String>, String> {
    let mut text = String::new();
    for part in &template.parts {
        match part {
            ArgumentTemplatePart::Text(fixed) => text.push_str(fixed),
            ArgumentTemplatePart::Argument(name) => match argument_text(arguments, name)? {
                Some(value) => text.push_str(&percent_encoded(&value)),
                None => return Ok(None),
            },
        }
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TEMPLATE: &str = "https://api.example.com:8443/v1/{city}/x-{n}?q={query}&fixed=1&flag&n={n}";

    fn filled(template: &str, arguments: Value) -> Result<String, String> {
        Ok(UrlTemplate::parse(template).unwrap().fill(&arguments)?.to_string())
    }

    #[test]
    fn url_template_escapes_values() {
        for (arguments, expected) in [
            (json!({"city": "Paris", "n": 1, "query": "a b"}), "Paris/x-1?q=a%20b&fixed=1&flag&n=1"),
            (json!({"city": "北京", "n": 1}), "%E5%8C%97%E4%BA%AC/x-1?fixed=1&flag&n=1"),
            (
                json!({"city": "a/b?c#d&e=f", "n": true, "query": "&admin=1#x"}),
                "a%2Fb%3Fc%23d%26e%3Df/x-true?q=%26admin%3D1%23x&fixed=1&flag&n=true",
            ),
            (
                json!({"city": "%2e%2e", "n": "@evil.com"}),
                "%252e%252e/x-%40evil.com?fixed=1&flag&n=%40evil.com",
            ),
            (json!({"city": "...", "n": " "}), ".../x-%20?fixed=1&flag&n=%20"),
        ] {
            assert_eq!(
                filled(TEMPLATE, arguments),
                Ok(format!("https://api.example.com:8443/v1/{expected}"))
            );
        }
        assert_eq!(filled("http://x.org?q={q}", json!({"q": ""})), Ok("http://x.org/?q=".to_owned()));
        assert_eq!(filled("http://x.org", json!({})), Ok("http://x.org/".to_owned()));
    }

    #[test]
    fn url_values_cannot_change_host_path_or_query() {
        for evil in ["..", ".", "../admin", "a/../../b", "..\\x", "", "a\r\nhost: evil", "\0"] {
            let result = filled(TEMPLATE, json!({"city": evil, "n": 1}));
            assert!(result.clone().unwrap_err().starts_with("/city: "), "{evil:?}: {result:?}");
        }
        for evil in [
            "//evil.com",
            "\\\\evil.com",
            "@evil.com",
            ":80@evil.com",
            "http://evil.com",
            "?x",
            "#",
            ";/x",
            "%2F%2E%2E",
        ] {
            let url = filled("https://api.example.com/{a}{b}?c={a}", json!({"a": evil, "b": "x"})).unwrap();
            let url = Url::parse(&url).unwrap();
            assert_eq!(url.host_str(), Some("api.example.com"), "{evil}");
            assert_eq!(url.path_segments().unwrap().count(), 1, "{evil}");
            let pairs: Vec<_> = url.query_pairs().into_owned().collect();
            assert_eq!(pairs, [("c".to_owned(), evil.to_owned())]);
        }
        assert!(filled("http://x.org/{a}{b}", json!({"a": ".", "b": "."})).unwrap_err().contains("walk"));
        assert!(filled("http://x.org/{a}", json!({})).unwrap_err().contains("missing"));
        assert!(filled("http://x.org/{a}", json!({"a": [1]})).unwrap_err().contains("a list or an object"));
    }

    #[test]
    fn invalid_url_templates_are_refused_with_a_reason() {
        for (template, why) in [
            ("api.example.com/{x}", "it does not begin with http:// or https://"),
            ("ftp://x.org/{x}", "only http and https are supported, not `ftp`"),
            ("https://{host}/x", "the host cannot be an argument"),
            ("https://x.org{rest}", "the host cannot be an argument"),
            ("https://x.org:{port}/", "the host cannot be an argument"),
            ("https://me:pw@x.org/", "user name and password go into `headers`"),
            ("https://x.org/#{x}", "a fragment (#...) is never sent to a server"),
            ("https://x.org/?{name}=1", "the name of a query parameter cannot be an argument: `{name}=1`"),
            ("https://", "empty host"),
        ] {
            assert_eq!(UrlTemplate::parse(template).unwrap_err(), why, "{template}");
        }
    }
}
