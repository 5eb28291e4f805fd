//! Bodies, queries and paths as types, with refusals in the one shape of errors.

use crate::error::ApiError;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, FailedToBufferBody};
use axum::extract::{FromRequest, FromRequestParts, Request};
use http::request::Parts;
use http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;
use serde_json::{Number, Value};
use throughline_engine::suggest_names;
use throughline_wire::json::replace_lone_surrogates;

/// A JSON body. Unknown fields are refused, with a suggestion of the closest known one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Json<T>(pub T);

/// A JSON body as it came, not yet read: [`parse_json`] reads it.
#[derive(Clone, Debug)]
pub(crate) struct JsonText(pub Bytes);

/// A query string.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query<T>(pub T);

/// The variable parts of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<T>(pub T);

impl<S, T> FromRequest<S> for Json<T>
where
    S: Send + Sync,
    T: DeserializeOwned,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let JsonText(bytes) = JsonText::from_request(request, state).await?;
        parse_json(&bytes).map(Self)
    }
}

impl<S: Send + Sync> FromRequest<S> for JsonText {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        check_json(request.headers())?;
        Bytes::from_request(request, state).await.map(Self).map_err(body_rejection)
    }
}

/// A JSON text as a type, refused like a body. Half an emoji, which clients leave where they shorten a text, is U+FFFD.
///
/// # Errors
/// 400: the mistake and its position.
pub(crate) fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let strict = parse_strict_json(bytes);
    match strict.is_err().then(|| replace_lone_surrogates(bytes)).flatten() {
        Some(replaced) => parse_strict_json(&replaced),
        None => strict,
    }
}

fn parse_strict_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    // serde would read the items of a list as the fields of a type, in their order.
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        serde_json::from_slice::<serde::de::IgnoredAny>(bytes).map_err(json_error)?;
        return Err(ApiError::bad_request("invalid_value", "the body is a list, but must be an object"));
    }
    serde_json::from_slice(bytes).or_else(|error| match error.classify() {
        serde_json::error::Category::Data => {
            parse_with_whole_numbers(bytes).ok_or_else(|| data_error(&error.to_string()))
        }
        _ => Err(json_error(error)),
    })
}

/// Parses again with `384.0` as 384: JSON Schema calls it an integer, and some clients write every number
/// this way.
fn parse_with_whole_numbers<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    fn make_whole(value: &mut Value) {
        match value {
            Value::Number(number) => {
                // Above this limit a float does not identify an integer.
                const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
                let whole = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT_MAX);
                if let Some(whole) = whole.filter(|_| number.is_f64()) {
                    *number = Number::from(whole as i64);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(make_whole),
            Value::Object(members) => members.values_mut().for_each(make_whole),
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }
    let mut value = serde_json::from_slice(bytes).ok()?;
    make_whole(&mut value);
    serde_json::from_value(value).ok()
}

fn json_error(error: serde_json::Error) -> ApiError {
    ApiError::bad_request("invalid_json", format!("the body is not valid JSON: {error}"))
}

impl<S, T> FromRequestParts<S> for Query<T>
where
    S: Send + Sync,
    T: DeserializeOwned,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match axum::extract::Query::<T>::from_request_parts(parts, state).await {
            Ok(query) => Ok(Self(query.0)),
            Err(rejection) => Err(data_error(&root_cause(&rejection))),
        }
    }
}

impl<S, T> FromRequestParts<S> for Path<T>
where
    S: Send + Sync,
    T: DeserializeOwned + Send,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match axum::extract::Path::<T>::from_request_parts(parts, state).await {
            Ok(path) => Ok(Self(path.0)),
            Err(rejection) => Err(ApiError::new(StatusCode::NOT_FOUND, "not_found", root_cause(&rejection))),
        }
    }
}

/// # Errors
/// 415: the declared content type is another one.
pub(crate) fn check_json(headers: &HeaderMap) -> Result<(), ApiError> {
    if is_json(headers) {
        return Ok(());
    }
    Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", "the body must be JSON")
        .remedy("send `Content-Type: application/json`")
        .param("Content-Type"))
}

fn body_rejection(rejection: BytesRejection) -> ApiError {
    match rejection {
        BytesRejection::FailedToBufferBody(FailedToBufferBody::LengthLimitError(_)) => {
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", "the request body is too large")
                .remedy("upload files first (POST /v1/files) and refer to them by id")
        }
        rejection => ApiError::bad_request("unreadable_body", rejection.body_text()),
    }
}

/// Error of a value that does not match, with a suggestion.
fn data_error(message: &str) -> ApiError {
    let quoted = |text: &str| {
        let names: Vec<String> = text.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        names
    };
    for (start, code) in [
        ("unknown field `", "unknown_field"),
        ("unknown variant `", "unknown_value"),
        ("missing field `", "missing_field"),
    ] {
        let Some(start_index) = message.find(start) else { continue };
        let names = quoted(&message[start_index..]);
        let Some((name, known)) = names.split_first() else { continue };
        let error = ApiError::bad_request(code, message.to_owned()).param(name.clone());
        return match suggest_names(name, known.iter().map(String::as_str)).first() {
            Some(meant) => error.remedy(format!("did you mean `{meant}`?")),
            None => error,
        };
    }
    ApiError::bad_request("invalid_value", message.to_owned())
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

/// True for `application/json` and any type that ends with `+json`, in any case and with any parameters. The
/// request_guard limits what a handler then parses, so both ask here.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let content_type =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "read by serde only")]
    struct ParseTarget {
        conversation_id: String,
        #[serde(default)]
        mode: Option<ParseMode>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum ParseMode {
        Native,
        Text,
    }

    #[test]
    fn json_errors_suggest_the_closest_name() {
        let message = |text: &str| {
            let error = parse_json::<ParseTarget>(text.as_bytes()).expect_err(text);
            (error.code, error.param.unwrap_or_default(), error.remedy.unwrap_or_default())
        };
        for (text, code, param, remedy) in [
            ("{", "invalid_json", "", ""),
            ("[1]", "invalid_value", "", ""),
            (" [\"c\"]", "invalid_value", "", ""),
            ("[", "invalid_json", "", ""),
            ("{}", "missing_field", "conversation_id", ""),
            (
                r#"{"conversationId":"c"}"#,
                "unknown_field",
                "conversationId",
                "did you mean `conversation_id`?",
            ),
            (r#"{"temperature":1}"#, "unknown_field", "temperature", ""),
            (r#"{"conversation_id":"c","mode":"natve"}"#, "unknown_value", "natve", "did you mean `native`?"),
        ] {
            assert_eq!(message(text), (code, param.to_owned(), remedy.to_owned()), "{text}");
        }
    }
}
