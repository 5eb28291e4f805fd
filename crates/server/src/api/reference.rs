//! `/docs`: the API to read and to try, one page of our own. It loads nothing from anywhere else and has no inline script or
//! style, so the strictest policy holds for it. // R: E5, R4

use crate::state::AppState;
use axum::Router;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use http::{HeaderMap, HeaderValue, StatusCode, header};

/// What the page may do: its own files, and requests to this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// `/docs`, beside the described routes: it describes them.
pub fn routes() -> Router<AppState> {
    Router::new()
        .route("/docs", get(|headers: HeaderMap| async move { file(&PAGE, &headers) }))
        .route("/docs/", get(|| async { Redirect::permanent("/docs") }))
        .route("/docs/style.css", get(|headers: HeaderMap| async move { file(&STYLE, &headers) }))
        .route("/docs/script.js", get(|headers: HeaderMap| async move { file(&SCRIPT, &headers) }))
}

struct File {
    media_type: &'static str,
    content: &'static str,
}

const PAGE: File =
    File { media_type: "text/html; charset=utf-8", content: include_str!("reference/index.html") };
const STYLE: File =
    File { media_type: "text/css; charset=utf-8", content: include_str!("reference/style.css") };
const SCRIPT: File =
    File { media_type: "text/javascript; charset=utf-8", content: include_str!("reference/script.js") };

fn file(file: &File, headers: &HeaderMap) -> Response {
    let tag = format!("\"{}\"", blake3::hash(file.content.as_bytes()).to_hex());
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known == tag.as_str());
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => file.content.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, file.media_type),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(tag) = HeaderValue::try_from(tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}
