//! The credential of a request: a key in a header, or a ticket in the address.

use super::route_rules;
use crate::error::ApiError;
use crate::principal::SignInWay;
use http::header::{AUTHORIZATION, CONTENT_TYPE, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderName, StatusCode};

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const API_KEY: HeaderName = HeaderName::from_static("api-key");
/// The headers that show a key.
pub(super) const KEY_HEADERS: [HeaderName; 3] = [AUTHORIZATION, X_API_KEY, API_KEY];

/// Credential of a request.
pub(super) enum ShownCredential {
    Nothing,
    Key(String),
    Ticket(String),
}

/// Reads the credential of a request. No other function does.
pub(super) fn credential_of(parts: &Parts) -> Result<ShownCredential, ApiError> {
    let ambiguous = || {
        ApiError::new(StatusCode::UNAUTHORIZED, "several_keys", "the request has several different API keys")
            .remedy("send one `Authorization: Bearer <key>`")
    };
    let mut credential: Option<String> = None;
    for name in KEY_HEADERS {
        for value in parts.headers.get_all(&name) {
            let text = value.to_str().map_err(|_| ApiError::unauthenticated())?;
            let key = if name == AUTHORIZATION {
                bearer(text).ok_or_else(ApiError::unauthenticated)?
            } else {
                text.trim()
            };
            match &credential {
                Some(other) if other != key => return Err(ambiguous()),
                _ => credential = Some(key.to_owned()),
            }
        }
    }
    if let Some(key) = credential {
        return Ok(ShownCredential::Key(key));
    }
    // In the address only where nothing else can be sent, since addresses are logged.
    let ticket = parts
        .uri
        .query()
        .filter(|_| route_rules::is_read(&parts.method))
        .and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("ticket=")));
    Ok(ticket.map_or(ShownCredential::Nothing, |ticket| ShownCredential::Ticket(ticket.to_owned())))
}

fn bearer(text: &str) -> Option<&str> {
    let (scheme, key) = text.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

/// Types that no page of another site sends without asking first (CORS): neither a form nor a `fetch` in mode `no-cors`.
const TYPES_OF_PROGRAMS: [&str; 3] = ["application/json", "application/jsonl", "application/x-ndjson"];

/// Requires a header that a form of another page cannot set: state-changing requests must come from a
/// program.
///
/// After a sign-in at a proxy, browsers send nothing else that proves this. Forms with files also need the
/// page's origin, which the request guard has checked before.
pub(super) fn check_csrf_intent(headers: &HeaderMap, signed_in_by: SignInWay) -> Result<(), ApiError> {
    if signed_in_by == SignInWay::Proxy && headers.contains_key(ORIGIN) {
        return Ok(());
    }
    let takes_forms = signed_in_by != SignInWay::Proxy;
    let has_key = KEY_HEADERS.iter().any(|name| headers.contains_key(name));
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if has_key || TYPES_OF_PROGRAMS.contains(&kind.as_str()) || (takes_forms && kind == "multipart/form-data")
    {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "content_type",
        "requests that change state must be application/json, application/jsonl or multipart/form-data",
    )
    .remedy("send `Content-Type: application/json`")
    .param("Content-Type"))
}
