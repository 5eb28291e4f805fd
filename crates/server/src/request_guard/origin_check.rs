//! Checks of `Host` and `Origin`, and CORS. Any page in the user's browser can send requests to this machine; its
//! permissions are decided here, before anything else.

use super::credential::KEY_HEADERS;
use crate::error::ApiError;
use crate::net::ConnectionInfo;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HOST, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use std::net::{IpAddr, Ipv6Addr};
use throughline::config::ServerSettings;

/// Time for which a browser may cache a preflight response, in seconds.
const PREFLIGHT_S: &str = "600";
const METHODS: &str = "GET, POST, PUT, PATCH, DELETE";
const REQUEST_HEADERS: &str = "authorization, x-api-key, api-key, content-type, accept, last-event-id, idempotency-key, \
    x-request-id, traceparent";
const RESPONSE_HEADERS: &str =
    "location, retry-after, x-request-id, throughline-turn-id, throughline-ignored";
const REQUEST_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// The names and pages of the configuration.
#[derive(Clone, Debug, Default)]
pub(super) struct AllowedSites {
    hosts: Vec<String>,
    origins: Vec<String>,
}

/// The page that a request comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RequestOrigin {
    /// None, or one of this server's own.
    Own,
    /// Another origin that the configuration allows.
    Other(HeaderValue),
}

/// Result of the check for an admitted request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SiteAdmission {
    /// The request is admitted.
    Request(RequestOrigin),
    /// A browser's question whether that page may ask: it may.
    Preflight(RequestOrigin),
}

/// Presence of a valid key. A request with a valid key does not come from a page that rebinds its host name
/// to this server, since such a page does not know the key; nor from another site's page, since browsers do
/// not send keys automatically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyProof {
    Valid,
    Absent,
}

impl AllowedSites {
    pub(super) fn of(settings: &ServerSettings) -> Self {
        Self { hosts: settings.hosts.clone(), origins: settings.origins.clone() }
    }

    /// Lets a request in, or not.
    pub(super) fn admit(&self, parts: &Parts, key: KeyProof) -> Result<SiteAdmission, ApiError> {
        let is_preflight =
            parts.method == Method::OPTIONS && parts.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        // A preflight comes without the key and asks whether one may be sent. The answer is that of a request
        // with a valid key; it only allows the page to send the request, which is then judged by its key.
        let key = if is_preflight && requests_key_header(&parts.headers) { KeyProof::Valid } else { key };
        let (host, own_host) = self.host(parts, key)?;
        let origin = self.origin_of(parts, host, own_host, key)?;
        // Private Network Access: a page on the internet asks for access to this network.
        if parts.headers.contains_key(REQUEST_PRIVATE_NETWORK) {
            return Err(ApiError::forbidden(
                "private_network",
                "pages of public networks may not access this private network",
            ));
        }
        Ok(if is_preflight { SiteAdmission::Preflight(origin) } else { SiteAdmission::Request(origin) })
    }

    /// The host name of the request and whether it is one of the server's own. Another name needs a valid key (programs in
    /// containers call this machine `host.docker.internal`): a page that lets its own name point here (DNS rebinding) sends
    /// its own name.
    fn host<'r>(&self, parts: &'r Parts, key: KeyProof) -> Result<(&'r str, bool), ApiError> {
        let refused = |name: &str| {
            let name: String = name.chars().take(100).collect();
            ApiError::forbidden("unknown_host", format!("`{name}` is not a known host name of this server"))
                .remedy("send a valid key, or add this name to `hosts` of [server]")
                .param("Host")
        };
        // In HTTP/2 it is part of the address.
        let mut host_headers = parts.headers.get_all(HOST).iter();
        let host = match (parts.uri.authority(), host_headers.next(), host_headers.next()) {
            (_, Some(_), Some(_)) => return Err(refused("")),
            (Some(authority), None, None) => authority.as_str(),
            (Some(authority), Some(host), None) if host.as_bytes() == authority.as_str().as_bytes() => {
                authority.as_str()
            }
            (None, Some(host), None) => host.to_str().map_err(|_| refused(""))?,
            _ => return Err(refused("")),
        };
        let local_ip = parts.extensions.get::<ConnectionInfo>().map(|connection| connection.local.ip());
        if self.is_own_host(host, local_ip) {
            return Ok((host, true));
        }
        if key == KeyProof::Valid && split_host(host).is_some() {
            Ok((host, false))
        } else {
            Err(refused(host))
        }
    }

    fn is_own_host(&self, host: &str, local_ip: Option<IpAddr>) -> bool {
        let Some((name, port)) = split_host(host) else { return false };
        let name = name.to_ascii_lowercase();
        if name == "localhost" {
            return true;
        }
        // A literal address cannot be rebound; it must still be this machine's.
        if let Some(ip) = ip_literal(&name)
            && (ip.is_loopback() || local_ip.is_some_and(|local_ip| local_ip.to_canonical() == ip))
        {
            return true;
        }
        self.hosts.iter().any(|own_host| match split_host(own_host) {
            Some((own_host, Some(wanted))) => own_host == name && port == Some(wanted),
            Some((own_host, None)) => own_host == name,
            None => false,
        })
    }

    /// Sender of the request according to the browser; other programs send no `Origin`.
    fn origin_of(
        &self,
        parts: &Parts,
        host: &str,
        is_own_host: bool,
        key: KeyProof,
    ) -> Result<RequestOrigin, ApiError> {
        let refused = || {
            ApiError::forbidden("foreign_origin", "requests from pages of another origin are not allowed")
                .remedy("to allow the page, add its origin to `origins` of [server]")
                .param("Origin")
        };
        let mut origins = parts.headers.get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (None, _) => {
                if is_foreign_fetch(&parts.headers) {
                    Err(refused())
                } else {
                    Ok(RequestOrigin::Own)
                }
            }
            (Some(origin), None) => {
                let text = origin.to_str().map_err(|_| refused())?;
                if self.origins.iter().any(|origin| origin == text) {
                    return Ok(RequestOrigin::Other(origin.clone()));
                }
                // A proxy in front may terminate HTTPS, so the scheme is not compared; host and port are.
                let web = ["http://", "https://"].iter().find_map(|scheme| text.strip_prefix(scheme));
                match web {
                    Some(of_page) if is_own_host && of_page.eq_ignore_ascii_case(host) => {
                        Ok(RequestOrigin::Own)
                    }
                    Some(_) => Err(refused()),
                    // A program with a page inside (`app://obsidian.md`, `tauri://localhost`), an extension, or a page from
                    // a file (`null`), which has been given the key.
                    None if key == KeyProof::Valid => Ok(RequestOrigin::Other(origin.clone())),
                    None => Err(refused()),
                }
            }
            _ => Err(refused()),
        }
    }
}

/// True if the request that a preflight announces has a key in a header.
fn requests_key_header(headers: &HeaderMap) -> bool {
    let wanted = headers.get(ACCESS_CONTROL_REQUEST_HEADERS).and_then(|names| names.to_str().ok());
    wanted
        .unwrap_or_default()
        .split(',')
        .any(|name| KEY_HEADERS.iter().any(|key| name.trim().eq_ignore_ascii_case(key.as_str())))
}

/// True for a picture, script or form of another page: browsers send no origin with some of them, but
/// `Sec-Fetch-Site`. Navigation to this server does not count.
fn is_foreign_fetch(headers: &HeaderMap) -> bool {
    let header_is = |name: &HeaderName, value: &str| {
        headers.get(name).is_some_and(|actual| actual.as_bytes() == value.as_bytes())
    };
    (header_is(&FETCH_SITE, "cross-site") || header_is(&FETCH_SITE, "same-site"))
        && !header_is(&FETCH_MODE, "navigate")
}

/// Name and port of `name:port`; an IPv6 address keeps its brackets.
fn split_host(host: &str) -> Option<(&str, Option<u16>)> {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (host, None),
    };
    let port = port.map(str::parse::<u16>).transpose().ok()?;
    // Nothing that a name or an address does not have: no user, no path, no second colon.
    let inner = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let plain = match inner {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_".contains(&b)),
    };
    plain.then_some((name, port))
}

fn ip_literal(name: &str) -> Option<IpAddr> {
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    address.parse::<IpAddr>().ok().map(|ip| ip.to_canonical())
}

impl RequestOrigin {
    /// CORS headers of the response to a page of another origin. Never `*`, and never with the browser's own
    /// credentials.
    pub(super) fn headers(&self, headers: &mut HeaderMap) {
        if let RequestOrigin::Other(origin) = self {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(RESPONSE_HEADERS));
            headers.append(VARY, HeaderValue::from_static("origin"));
        }
    }

    /// CORS headers of a preflight response.
    pub(super) fn preflight_headers(&self, headers: &mut HeaderMap) {
        self.headers(headers);
        if let RequestOrigin::Other(_) = self {
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(REQUEST_HEADERS));
            headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(PREFLIGHT_S));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn check(headers: &[(&str, &str)], expected: &str) {
        check_with(headers, KeyProof::Absent, expected);
    }

    fn check_with(headers: &[(&str, &str)], key: KeyProof, expected: &str) {
        let settings = ServerSettings {
            hosts: vec!["chat.example.com".into(), "10.0.0.5:443".into()],
            origins: vec!["https://page.example.com".into()],
            ..ServerSettings::default()
        };
        let connection = ConnectionInfo {
            peer: ([127, 0, 0, 1], 1).into(),
            local: ([192, 168, 1, 5], 8787).into(),
            canceller: Default::default(),
            draining: Default::default(),
        };
        let mut request = Request::builder().extension(connection);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let got = match AllowedSites::of(&settings).admit(&parts, key) {
            Ok(SiteAdmission::Request(RequestOrigin::Own)) => "own".to_owned(),
            Ok(SiteAdmission::Request(RequestOrigin::Other(_))) => "other".to_owned(),
            Ok(SiteAdmission::Preflight(_)) => "preflight".to_owned(),
            Err(error) => {
                assert_eq!(error.status, 403);
                error.code.to_owned()
            }
        };
        assert_eq!(got, expected, "{headers:?}");
    }

    #[test]
    fn unknown_hosts_are_rejected() {
        for host in [
            "localhost",
            "LOCALHOST:8787",
            "127.0.0.1",
            "127.0.0.1:1",
            "[::1]:8787",
            "[::ffff:127.0.0.1]",
            "127.9.9.9",
            "192.168.1.5:8787",
            "chat.example.com",
            "Chat.Example.com:443",
            "10.0.0.5:443",
        ] {
            check(&[("host", host)], "own");
        }
        for host in [
            "",
            ":8787",
            "evil.example",
            "evil.example:8787",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.5",
            "10.0.0.5:80",
            "192.168.1.6:8787",
            "[::2]",
            "0.0.0.0:8787",
            "localhost:99999",
            "localhost:",
            "user@localhost",
            "localhost/evil",
            "evil#localhost",
            "sub.chat.example.com",
            "2130706433",
            "0x7f.1",
            "localhost:8787:1",
            "[::1",
            "::1",
        ] {
            check(&[("host", host)], "unknown_host");
        }
        check(&[], "unknown_host");
        check(&[("host", "localhost"), ("host", "localhost")], "unknown_host");
        check(&[("host", "localhost"), ("host", "evil.example")], "unknown_host");
    }

    #[test]
    fn foreign_origins_are_rejected() {
        let host = ("host", "localhost:8787");
        for (origin, expected) in [
            ("http://localhost:8787", "own"),
            ("https://localhost:8787", "own"),
            ("https://page.example.com", "other"),
            ("http://page.example.com", "foreign_origin"),
            ("https://page.example.com:8443", "foreign_origin"),
            ("https://page.example.com.evil.example", "foreign_origin"),
            ("https://evil.example", "foreign_origin"),
            ("http://localhost:3000", "foreign_origin"),
            ("http://localhost", "foreign_origin"),
            ("http://127.0.0.1:8787", "foreign_origin"),
            ("null", "foreign_origin"),
            ("", "foreign_origin"),
            ("file://localhost:8787", "foreign_origin"),
            ("chrome-extension://localhost:8787", "foreign_origin"),
            ("http://localhost:8787/", "foreign_origin"),
        ] {
            check(&[host, ("origin", origin)], expected);
        }
        check(
            &[host, ("origin", "http://localhost:8787"), ("origin", "https://evil.example")],
            "foreign_origin",
        );
        // The host comes first: a rebound name is refused even if the origin agrees with it.
        check(&[("host", "evil.example"), ("origin", "http://evil.example")], "unknown_host");
    }

    #[test]
    fn valid_key_admits_other_hosts_and_app_origins() {
        let host = ("host", "localhost:8787");
        let docker = ("host", "host.docker.internal:8787");
        for (headers, without, with) in [
            (vec![docker], "unknown_host", "own"),
            (vec![host, ("origin", "app://obsidian.md")], "foreign_origin", "other"),
            (vec![host, ("origin", "tauri://localhost")], "foreign_origin", "other"),
            (vec![host, ("origin", "null")], "foreign_origin", "other"),
            (vec![docker, ("origin", "null")], "unknown_host", "other"),
            // A page of the web has to be let in by the configuration, key or no key.
            (vec![host, ("origin", "https://evil.example")], "foreign_origin", "foreign_origin"),
            (
                vec![("host", "evil.example"), ("origin", "http://evil.example")],
                "unknown_host",
                "foreign_origin",
            ),
            (vec![("host", "")], "unknown_host", "unknown_host"),
            (vec![("host", "a b")], "unknown_host", "unknown_host"),
            (
                vec![docker, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")],
                "unknown_host",
                "foreign_origin",
            ),
        ] {
            check_with(&headers, KeyProof::Absent, without);
            check_with(&headers, KeyProof::Valid, with);
        }
    }

    #[test]
    fn preflight_is_admitted_like_its_request() {
        let admitted = |origin: &str, host: &str, method: Method, more: &[(&str, &str)], key| {
            let settings = ServerSettings {
                origins: vec!["https://page.example.com".into()],
                ..ServerSettings::default()
            };
            let mut request = Request::builder().method(method).header("host", host).header("origin", origin);
            for (name, value) in more {
                request = request.header(*name, *value);
            }
            let (parts, ()) = request.body(()).unwrap().into_parts();
            match AllowedSites::of(&settings).admit(&parts, key) {
                Ok(SiteAdmission::Request(origin) | SiteAdmission::Preflight(origin)) => Ok(origin),
                Err(error) => Err(error.code),
            }
        };
        let (here, docker) = ("localhost:8787", "host.docker.internal:8787");
        // Origin, host, admitted with a key in a header, admitted without: with a cookie or nothing.
        for (origin, host, with_key, without) in [
            ("http://localhost:8787", here, true, true),
            ("https://page.example.com", here, true, true),
            ("https://evil.example", here, false, false),
            ("http://localhost:3000", here, false, false),
            ("app://obsidian.md", here, true, false),
            ("tauri://localhost", here, true, false),
            ("null", here, true, false),
            ("file://", here, true, false),
            ("chrome-extension://abc", here, true, false),
            ("moz-extension://abc", here, true, false),
            ("null", docker, true, false),
            ("https://evil.example", docker, false, false),
            ("http://evil.example", "evil.example", false, false),
        ] {
            for (shown, key, asked, expected) in [
                (Some(("authorization", "Bearer k")), KeyProof::Valid, "authorization", with_key),
                (Some(("x-api-key", "k")), KeyProof::Valid, "content-type, X-Api-Key", with_key),
                (Some(("cookie", "session=k")), KeyProof::Absent, "content-type", without),
                (None, KeyProof::Absent, "", without),
            ] {
                let request = admitted(origin, host, Method::POST, shown.as_slice(), key);
                let preflight =
                    [("access-control-request-method", "POST"), ("access-control-request-headers", asked)];
                let preflight = admitted(origin, host, Method::OPTIONS, &preflight, KeyProof::Absent);
                assert_eq!(preflight, request, "{origin} {host} {shown:?}");
                assert_eq!(request.is_ok(), expected, "{origin} {host} {shown:?}: {request:?}");
            }
        }
    }

    #[test]
    fn cross_site_embedding_is_rejected_but_not_navigation() {
        let host = ("host", "localhost:8787");
        check(&[host, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")], "foreign_origin");
        check(&[host, ("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors")], "foreign_origin");
        check(&[host, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")], "own");
        check(&[host, ("sec-fetch-site", "same-origin")], "own");
        check(&[host, ("sec-fetch-site", "none")], "own");
    }

    #[test]
    fn private_network_request_is_rejected() {
        let private = [
            ("host", "localhost"),
            ("origin", "https://page.example.com"),
            ("access-control-request-private-network", "true"),
        ];
        check(&private, "private_network");
    }
}
