//! The browser's redirects to the provider and back. An error is an HTML page, since a person reads it.

use super::page_file::HTML;
use super::sign_in::{LOGIN_COOKIE, SECURE_LOGIN_COOKIE, login_cookie};
use crate::error::ApiError;
use crate::oidc::{CALLBACK_PATH, CallbackQuery, LOGIN_TTL, OidcProvider};
use crate::request_guard::{RandomnessError, RequestGuard, random_bytes};
use crate::state::AppState;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use serde::Deserialize;
use std::sync::Arc;
use throughline_wire::display_escape;
use url::Url;

/// Path at which a sign-in begins.
pub(super) const START_PATH: &str = "/sign-in/provider";
/// Longest path to return to, in bytes.
const RETURN_TO_BYTES_MAX: usize = 1_000;
/// Bytes of the cookie that binds the last step to its browser.
const COOKIE_BYTES: usize = 32;

/// The way to the provider and back.
pub(crate) fn pages() -> Router<AppState> {
    Router::new().route(START_PATH, get(begin)).route(CALLBACK_PATH, get(finish))
}

#[derive(Debug, Default, Deserialize)]
struct StartQuery {
    return_to: Option<String>,
}

async fn begin(
    State(state): State<AppState>,
    Extension(request_guard): Extension<RequestGuard>,
    Query(query): Query<StartQuery>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let base = state.page_address.resolve(&uri, &headers);
    let begun = async {
        let return_to = query.return_to.as_deref().and_then(own_path).unwrap_or_else(|| "/".to_owned());
        let begun = provider(&request_guard)?.begin(&base, &return_to).await?;
        redirect(begun.url.as_str(), &cookie(&base, &begun.cookie))
    };
    begun.await.unwrap_or_else(|error| error_page(&error))
}

async fn finish(
    State(state): State<AppState>,
    Extension(request_guard): Extension<RequestGuard>,
    Query(query): Query<CallbackQuery>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let base = state.page_address.resolve(&uri, &headers);
    let finished = async {
        let provider = provider(&request_guard)?;
        let finished = provider.finish(&base, query, login_cookie(&headers)).await?;
        // Another value: what was in the address of the provider is worth nothing from here on.
        let browser = URL_SAFE_NO_PAD.encode(
            random_bytes::<COOKIE_BYTES>().map_err(|error: RandomnessError| ApiError::internal(error))?,
        );
        let ticket = request_guard.grant_sign_in(&provider, finished.person, &browser).await?;
        redirect(&format!("{}#sign-in={ticket}", finished.return_to), &cookie(&base, &browser))
    };
    finished.await.unwrap_or_else(|error| error_page(&error))
}

fn provider(request_guard: &RequestGuard) -> Result<Arc<OidcProvider>, ApiError> {
    request_guard.provider().cloned().ok_or_else(|| {
        ApiError::new(StatusCode::NOT_FOUND, "no_provider", "people do not sign in at a provider here")
            .remedy("sign in with a key, or with the link that `throughline serve` prints")
    })
}

/// Accepts a path of this server's page only, not a text that a browser takes for another host.
fn own_path(text: &str) -> Option<String> {
    let is_plain = text.len() <= RETURN_TO_BYTES_MAX
        && text.starts_with('/')
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\\<>\"".contains(&byte));
    let base = Url::parse("http://page.invalid/").ok()?;
    let joined = base.join(text).ok().filter(|url| is_plain && url.origin() == base.origin())?;
    let query = joined.query().map(|query| format!("?{query}")).unwrap_or_default();
    // Once more, since dots were taken out of it.
    let path = format!("{}{query}", joined.path());
    (!path.starts_with("//") && !path.starts_with("/sign-in")).then_some(path)
}

/// The sign-in cookie, `SameSite=Lax`: the browser sends it on the redirect from the provider, and on no
/// other request of another site.
fn cookie(base: &str, value: &str) -> String {
    let (name, secure) =
        if base.starts_with("https://") { (SECURE_LOGIN_COOKIE, "; Secure") } else { (LOGIN_COOKIE, "") };
    format!("{name}={value}; Path=/; Max-Age={}; HttpOnly; SameSite=Lax{secure}", LOGIN_TTL.as_secs())
}

fn redirect(location: &str, cookie: &str) -> Result<Response, ApiError> {
    let mut response = StatusCode::SEE_OTHER.into_response();
    let value = |text: &str| HeaderValue::from_str(text).map_err(ApiError::internal);
    response.headers_mut().insert(header::LOCATION, value(location)?);
    response.headers_mut().insert(header::SET_COOKIE, value(cookie)?);
    Ok(response)
}

/// HTML page with an error and its remedy.
fn error_page(error: &ApiError) -> Response {
    let text = |text: &str| {
        let text = display_escape::escape(text).replace('&', "&amp;").replace('<', "&lt;");
        text.replace('>', "&gt;").replace('"', "&quot;")
    };
    let remedy = error.remedy.as_deref().map(|remedy| format!("<p>{}</p>", text(remedy))).unwrap_or_default();
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Throughline</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><link rel=\"stylesheet\" href=\"/home.css\">\
         <main><h1>Not signed in</h1><p class=\"lead\">{}</p>{remedy}<p><code>{}</code></p>\
         <p><a class=\"primary\" href=\"/\">Back</a></p></main></html>",
        text(&error.message),
        error.code,
    );
    let mut response = (error.status, page).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(HTML));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn return_path_must_be_a_local_page_path() {
        for (text, path) in [
            ("/", "/"),
            ("/c/abc?x=1", "/c/abc?x=1"),
            ("/c/%20", "/c/%20"),
            ("/c/abc#there", "/c/abc"),
            ("/a/../c", "/c"),
        ] {
            assert_eq!(own_path(text).as_deref(), Some(path), "{text}");
        }
        for text in [
            "",
            "c",
            "//evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "https://evil.example",
            "/\t/evil.example",
            "/..//evil.example",
            "/.//evil.example",
            "javascript:alert(1)",
            "/a b",
            "/\r\nSet-Cookie: a=b",
            "/<script>",
            "/é",
            "/sign-in/provider",
            "/./sign-in/provider",
        ] {
            assert_eq!(own_path(text), None, "{text:?}");
        }
        assert_eq!(own_path(&format!("/{}", "a".repeat(RETURN_TO_BYTES_MAX))), None);
    }

    #[test]
    fn cookie_over_https_is_secure_and_host_only() {
        let over_https = cookie("https://chat.example.com", "x");
        assert!(over_https.starts_with("__Host-") && over_https.contains("; Secure"), "{over_https}");
        for both in [over_https, cookie("http://127.0.0.1:8787", "x")] {
            assert!(both.contains("HttpOnly; SameSite=Lax") && both.contains("Path=/;"), "{both}");
        }
    }
}
