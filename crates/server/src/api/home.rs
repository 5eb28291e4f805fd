//! `/home`: what this is, how a client is connected, and where the documentation is. Whoever opens the address of a server that
//! was built without the page comes here, too. // R: R4

use super::page_file::{CSS, HTML, JAVASCRIPT, PageFile};
use crate::state::AppState;
use axum::Router;
use axum::response::Response;
use axum::routing::get;
use http::{HeaderMap, HeaderValue, header};

/// `/` and its files.
pub fn routes() -> Router<AppState> {
    Router::new()
        .route("/home", get(home))
        .route("/home.css", get(|headers: HeaderMap| async move { STYLE.answer(&headers) }))
        .route("/home.js", get(|headers: HeaderMap| async move { SCRIPT.answer(&headers) }))
}

const ENGLISH: PageFile = PageFile { media_type: HTML, content: include_str!("home/en.html") };
const CHINESE: PageFile = PageFile { media_type: HTML, content: include_str!("home/zh.html") };
const STYLE: PageFile = PageFile { media_type: CSS, content: include_str!("home/home.css") };
const SCRIPT: PageFile = PageFile { media_type: JAVASCRIPT, content: include_str!("home/home.js") };

/// The page in the language that the browser likes best.
pub async fn home(headers: HeaderMap) -> Response {
    let mut response = language(&headers).answer(&headers);
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-language"));
    response
}

/// Browsers name the language that is liked best first.
fn language(headers: &HeaderMap) -> &'static PageFile {
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
    fn the_page_speaks_the_first_language_that_it_knows() {
        for (liked, chinese) in [
            ("", false),
            ("zh-CN,zh;q=0.9,en;q=0.8", true),
            ("en-GB,zh", false),
            ("de, ZH-TW", true),
            ("fr", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_LANGUAGE, HeaderValue::from_static(liked));
            assert_eq!(language(&headers).content.contains("zh-Hans"), chinese, "{liked}");
        }
    }
}
