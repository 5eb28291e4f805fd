//! `/docs`: the API reference with a console, served as one page. It loads nothing from other origins and has
//! no inline script or style, so it works with the strictest policy.

use super::page_file::{CSS, HTML, JAVASCRIPT, StaticFile};
use crate::state::AppState;
use axum::Router;
use axum::response::Redirect;
use axum::routing::get;
use http::HeaderMap;

/// `/docs`, which is not part of the API that it describes.
pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/docs", get(|headers: HeaderMap| async move { PAGE.respond(&headers) }))
        .route("/docs/", get(|| async { Redirect::permanent("/docs") }))
        .route("/docs/style.css", get(|headers: HeaderMap| async move { STYLE.respond(&headers) }))
        .route("/docs/script.js", get(|headers: HeaderMap| async move { SCRIPT.respond(&headers) }))
}

const PAGE: StaticFile = StaticFile { media_type: HTML, content: include_str!("reference/index.html") };
const STYLE: StaticFile = StaticFile { media_type: CSS, content: include_str!("reference/style.css") };
const SCRIPT: StaticFile =
    StaticFile { media_type: JAVASCRIPT, content: include_str!("reference/script.js") };
