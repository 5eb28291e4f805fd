//! `/home`: a page that introduces the server, with connection settings for clients and links to the
//! documentation. It is also the start page of a server that was built without the web page.

use super::page_file::{CSS, HTML, JAVASCRIPT, StaticFile};
use crate::state::AppState;
use axum::Router;
use axum::response::Response;
use axum::routing::get;
use http::{HeaderMap, HeaderValue, header};

/// `/` and its files.
pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/home", get(home))
        .route("/home.css", get(|headers: HeaderMap| async move { STYLE.respond(&headers) }))
        .route("/home.js", get(|headers: HeaderMap| async move { SCRIPT.respond(&headers) }))
}

const ENGLISH: StaticFile = StaticFile { media_type: HTML, content: include_str!("home/en.html") };
const CHINESE: StaticFile = StaticFile { media_type: HTML, content: include_str!("home/zh.html") };
const STYLE: StaticFile = StaticFile { media_type: CSS, content: include_str!("home/home.css") };
const SCRIPT: StaticFile = StaticFile { media_type: JAVASCRIPT, content: include_str!("home/home.js") };

/// The page in the language that the browser likes best.
pub(crate) async fn home(headers: HeaderMap) -> Response {
    let mut response = preferred_page(&headers).respond(&headers);
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-language"));
    response
}

/// Browsers name the language that is liked best first.
fn preferred_page(headers: &HeaderMap) -> &'static StaticFile {
    let liked =
        headers.get(header::ACCEPT_LANGUAGE).and_then(|liked| liked.to_str().ok()).unwrap_or_default();
    let first = liked.split(',').find_map(|tag| {
        let tag = tag.trim().to_ascii_lowercase();
        [("zh", &CHINESE), ("en", &ENGLISH)].into_iter().find(|(name, _)| tag.starts_with(name))
    });
    first.map_or(&ENGLISH, |(_, page)| page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_language_follows_accept_language() {
        for (liked, chinese) in [
            ("", false),
            ("zh-CN,zh;q=0.9,en;q=0.8", true),
            ("en-GB,zh", false),
            ("de, ZH-TW", true),
            ("fr", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_LANGUAGE, HeaderValue::from_static(liked));
            assert_eq!(preferred_page(&headers).content.contains("zh-Hans"), chinese, "{liked}");
        }
    }
}
