//! A file of the page as served: compressed at build time, and cached by browsers while valid.

use crate::api::page_file::with_etag;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, header};

/// Cache policy of files with a hash in their name, which never change.
const CACHE_FOREVER: &str = "public, max-age=31536000, immutable";
const CACHE_REVALIDATE: &str = "no-cache";

/// Policy of a document for untrusted content. It runs scripts in a separate origin, has no network access,
/// and loads nothing, not even from this server: it is self-contained, and its content arrives as a message
/// from the page.
const FRAME_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; \
    style-src 'unsafe-inline'; img-src data: blob:; media-src data: blob:; font-src data:; connect-src 'none'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'self'";
const X_DNS_PREFETCH_CONTROL: HeaderName = HeaderName::from_static("x-dns-prefetch-control");

pub(super) struct EmbeddedFile {
    /// `/assets/index-4f2a.js`.
    pub path: &'static str,
    pub plain: &'static [u8],
    pub br: Option<&'static [u8]>,
    pub gzip: Option<&'static [u8]>,
}

impl EmbeddedFile {
    /// The file, in the smallest accepted encoding; or 304 if the client has it already.
    pub(super) fn respond(&self, request_headers: &HeaderMap) -> Response {
        let (content, encoding) = self.smallest(request_headers);
        let mut response = with_etag(content, request_headers);
        let headers = response.headers_mut();
        let cache_control = if self.path.starts_with("/assets/") { CACHE_FOREVER } else { CACHE_REVALIDATE };
        let headers_to_set: [(HeaderName, &'static str); 3] = [
            (header::CONTENT_TYPE, media_type(self.path)),
            (header::CACHE_CONTROL, cache_control),
            (header::VARY, "accept-encoding"),
        ];
        for (name, value) in headers_to_set {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if let Some(encoding) = encoding {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
        }
        response
    }

    /// The file as a document for untrusted content.
    pub(super) fn respond_as_frame(&self, request_headers: &HeaderMap) -> Response {
        let mut response = self.respond(request_headers);
        for (name, value) in [
            (header::CONTENT_SECURITY_POLICY, FRAME_POLICY),
            (header::X_FRAME_OPTIONS, "SAMEORIGIN"),
            (X_DNS_PREFETCH_CONTROL, "off"),
        ] {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }

    fn smallest(&self, request_headers: &HeaderMap) -> (&'static [u8], Option<&'static str>) {
        for (form, name) in [(self.br, "br"), (self.gzip, "gzip")] {
            if let Some(content) = form.filter(|_| accepts_encoding(request_headers, name)) {
                return (content, Some(name));
            }
        }
        (self.plain, None)
    }
}

/// True if an encoding is accepted, and not with `q=0`.
fn accepts_encoding(request_headers: &HeaderMap, encoding: &str) -> bool {
    let taken =
        request_headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    taken.flat_map(|value| value.split(',')).any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(encoding));
        let refused = parts
            .any(|part| part.strip_prefix("q=").is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q == 0.0)));
        named && !refused
    })
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "json" => "application/json",
        "png" => "image/png",
        "woff2" => "font/woff2",
        "webmanifest" => "application/manifest+json",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;

    const SCRIPT: EmbeddedFile =
        EmbeddedFile { path: "/assets/a-1.js", plain: b"plain", br: Some(b"br"), gzip: Some(b"gz") };

    fn asked(headers: &[(HeaderName, &'static str)]) -> HeaderMap {
        headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn best_accepted_encoding_is_sent() {
        for (accept, expected) in [
            ("gzip, deflate, br, zstd", Some("br")),
            ("gzip;q=0.8, br;q=0", Some("gzip")),
            ("GZIP", Some("gzip")),
            ("identity", None),
            ("", None),
            ("brotli", None),
        ] {
            let response = SCRIPT.respond(&asked(&[(header::ACCEPT_ENCODING, accept)]));
            let sent = response.headers().get(header::CONTENT_ENCODING).map(|sent| sent.to_str().unwrap());
            assert_eq!(sent, expected, "{accept}");
            assert_eq!(response.headers()[header::VARY], "accept-encoding");
            let kinds: Vec<_> = response.headers().get_all(header::CONTENT_TYPE).iter().collect();
            assert_eq!(kinds, ["text/javascript; charset=utf-8"], "one, and its own");
        }
    }

    #[test]
    fn frame_document_has_no_network_and_no_page_origin() {
        let file = EmbeddedFile { path: "/frames/preview.html", ..SCRIPT };
        let response = file.respond_as_frame(&HeaderMap::new());
        let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        let rules: Vec<&str> = policy.split("; ").collect();
        for rule in
            ["sandbox allow-scripts", "default-src 'none'", "connect-src 'none'", "frame-ancestors 'self'"]
        {
            assert!(rules.contains(&rule), "{policy}");
        }
        // No rule names a host, this server among them.
        let sources = rules.iter().filter(|rule| rule.contains("-src"));
        let is_local = |source: &str| matches!(source, "'none'" | "'unsafe-inline'" | "data:" | "blob:");
        for rule in sources {
            assert!(rule.split(' ').skip(1).all(is_local), "{rule}");
        }
        assert_eq!(response.headers()[header::X_FRAME_OPTIONS], "SAMEORIGIN");
        let plain = file.respond(&HeaderMap::new());
        assert!(
            plain.headers().get(header::CONTENT_SECURITY_POLICY).is_none(),
            "the request guard sets the page's"
        );
    }

    #[test]
    fn hashed_files_are_cached_and_others_revalidated() {
        let index = EmbeddedFile { path: "/index.html", ..SCRIPT };
        // A cached service worker would never update its page.
        let worker = EmbeddedFile { path: "/sw.js", ..SCRIPT };
        for (file, cache_control) in
            [(&SCRIPT, CACHE_FOREVER), (&index, CACHE_REVALIDATE), (&worker, CACHE_REVALIDATE)]
        {
            let response = file.respond(&HeaderMap::new());
            assert_eq!(response.headers()[header::CACHE_CONTROL], cache_control);
            let tag = response.headers()[header::ETAG].clone();
            let again = HeaderMap::from_iter([(header::IF_NONE_MATCH, tag)]);
            assert_eq!(file.respond(&again).status(), StatusCode::NOT_MODIFIED);
        }
    }
}
