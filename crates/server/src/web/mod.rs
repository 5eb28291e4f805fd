//! `/`: the page (`web/`), if this program was built with it. It contains no user data and reads everything
//! from the API.

mod file;

use crate::api::home;
use crate::error::{ApiError, route_not_found};
use crate::state::AppState;
use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use file::EmbeddedFile;
use http::{HeaderMap, header};

/// All files of the page, by path. Empty if it was not built.
static FILES: &[EmbeddedFile] = &include!(concat!(env!("OUT_DIR"), "/page.rs"));

const INDEX: &str = "/index.html";

/// The page, its files, and its views: an address of a view is one of the page.
pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/", get(page))
        .route("/c/{conversation}", get(page))
        .route("/s/{share}", get(page))
        .route("/history/calls", get(page))
        .route("/assets/{file}", get(file_or_view))
        .route("/frames/{file}", get(frame))
        .route("/{file}", get(file_or_view))
}

/// The page; without it, a notice with instructions to build it.
async fn page(headers: HeaderMap) -> Response {
    match find_file(INDEX) {
        Some(index) => index.respond(&headers),
        None => home::home(headers).await,
    }
}

async fn file_or_view(request: Request) -> Response {
    let (path, headers) = (request.uri().path(), request.headers());
    match find_file(path) {
        Some(file) => file.respond(headers),
        None if is_navigation(headers) && !path.starts_with("/assets/") && find_file(INDEX).is_some() => {
            page(headers.clone()).await
        }
        None => not_found(request).await.into_response(),
    }
}

/// A document for untrusted content, such as a diagram of a model. Only it may be shown in a frame, and only in one of the page.
async fn frame(request: Request) -> Response {
    match find_file(request.uri().path()) {
        Some(file) => file.respond_as_frame(request.headers()),
        None => not_found(request).await.into_response(),
    }
}

async fn not_found(request: Request) -> ApiError {
    route_not_found(request.method().clone(), request.uri().clone()).await
}

fn find_file(path: &str) -> Option<&'static EmbeddedFile> {
    FILES.iter().find(|file| file.path == path)
}

/// True for navigation in a browser; other clients get a 404 for a missing path.
fn is_navigation(headers: &HeaderMap) -> bool {
    headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("text/html"))
}
