//! A file of a page that the program carries in itself, with what lets it run nothing but itself.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};

/// Content security policy of a page: its own files, and requests to this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const CSS: &str = "text/css; charset=utf-8";
pub(crate) const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

pub(crate) struct StaticFile {
    pub media_type: &'static str,
    pub content: &'static str,
}

impl StaticFile {
    /// The file, or 304 if the client has it.
    pub(crate) fn respond(&self, request_headers: &HeaderMap) -> Response {
        let mut response = with_etag(self.content.as_bytes(), request_headers);
        let headers = response.headers_mut();
        for (name, value) in [
            (header::CONTENT_TYPE, self.media_type),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CACHE_CONTROL, "no-cache"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// The content with its `ETag`, or 304 if `If-None-Match` has the same one.
pub(crate) fn with_etag(content: &'static [u8], request_headers: &HeaderMap) -> Response {
    let tag = format!("\"{}\"", blake3::hash(content).to_hex());
    let is_known = request_headers.get(header::IF_NONE_MATCH).is_some_and(|known| known == tag.as_str());
    let mut response =
        if is_known { StatusCode::NOT_MODIFIED.into_response() } else { content.into_response() };
    if let Ok(tag) = HeaderValue::try_from(tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}
