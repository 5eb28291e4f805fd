//! Errors over HTTP in one form, and the conversion of errors of the library and the store.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Method, StatusCode, Uri, header};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use throughline::approval_store::ApprovalStoreError;
use throughline_store::{BlobError, LogError, StoreError};
use utoipa::ToSchema;

/// Error of a request: a code for programs, a message for people and a remedy.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct ApiError {
    /// The HTTP status.
    pub status: StatusCode,
    /// A stable code.
    pub code: &'static str,
    /// Message for people, in a sentence.
    pub message: String,
    pub remedy: Option<String>,
    /// The field, parameter or header that is concerned.
    pub param: Option<String>,
    /// Further details for programs, in addition to `code`.
    pub extra: Option<Box<Map<String, Value>>>,
    /// Seconds to wait before a retry.
    pub retry_after_s: Option<u64>,
}

/// `{"error": {...}}`
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorResponse {
    pub error: ErrorDetail,
}

/// Details of an error.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetail {
    /// A stable word.
    pub code: String,
    /// The class that OpenAI clients know.
    #[serde(rename = "type")]
    pub kind: String,
    /// Message for people, in a sentence.
    pub message: String,
    /// Remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The field, parameter or header that is concerned. Always there, since OpenAI clients expect it.
    pub param: Option<String>,
    /// Further details for programs.
    #[serde(flatten)]
    #[schema(additional_properties)]
    pub extra: Map<String, Value>,
}

/// An error as a message, where no head of a response carries the status.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ErrorMessage {
    /// The HTTP status.
    pub status: u16,
    /// Seconds to wait before a retry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u64>,
    pub error: ErrorDetail,
}

impl From<ApiError> for ErrorMessage {
    fn from(error: ApiError) -> Self {
        let (status, retry_after_s) = (error.status.as_u16(), error.retry_after_s);
        Self { status, retry_after_s, error: error.body().error }
    }
}

impl ApiError {
    /// An error of any status.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            remedy: None,
            param: None,
            extra: None,
            retry_after_s: None,
        }
    }

    /// 400: the request cannot be understood.
    pub fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// 401: no valid credential.
    pub fn unauthenticated() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", "API key is missing or invalid")
            .remedy("send `Authorization: Bearer <key>`; create a key with `throughline keys create`")
    }

    /// 403: the key or person is valid but lacks the permission.
    pub fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    /// 404: not found, or another user's, which is not distinguished.
    pub fn not_found(what: &str, id: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("there is no {what} `{id}`")).remedy(
            "use an id returned by this server; deleted resources and those of other users are not found",
        )
    }

    /// 409: it is in a state in which that cannot be done.
    pub fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    /// 410: there was one, and its time is over.
    pub fn gone(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, code, message)
    }

    /// 422: understood, and it makes no sense.
    pub(crate) fn unprocessable(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, message)
    }

    /// 503: temporarily unavailable. Retry after `retry_after_s` seconds.
    pub fn unavailable(code: &'static str, message: impl Into<String>, retry_after_s: u64) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message).retry_after(retry_after_s)
    }

    /// 429: too many requests. Retry after `retry_after_s` seconds.
    pub fn too_many(code: &'static str, message: impl Into<String>, retry_after_s: u64) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, code, message).retry_after(retry_after_s)
    }

    /// 500: an internal error. The details go to the log, not to the client.
    pub fn internal(why: impl std::fmt::Display) -> Self {
        tracing::error!(%why, "request failed with an internal error");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "internal server error")
            .remedy("see the server's log, and please report it")
    }

    /// Sets the remedy.
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Sets the field that the error is about.
    pub fn param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// Adds a field for programs.
    pub(crate) fn with_extra(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.extra.get_or_insert_default().insert(name.to_owned(), value.into());
        self
    }

    /// Sets `Retry-After`.
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    /// The body as served.
    pub fn body(&self) -> ErrorResponse {
        let kind = match self.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::NOT_FOUND => "not_found_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        ErrorResponse {
            error: ErrorDetail {
                code: self.code.to_owned(),
                kind: kind.to_owned(),
                message: self.message.clone(),
                remedy: self.remedy.clone(),
                param: self.param.clone(),
                extra: self.extra.as_deref().cloned().unwrap_or_default(),
            },
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        // 429 looks as if it passed; OpenAI's clients read this.
        if self.code == "insufficient_quota" {
            response.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::Invalid { field, .. } => Self::bad_request("invalid_value", message).param(field),
            StoreError::Exists { .. } => Self::conflict("exists", message),
            StoreError::OverLimit { limit, max } => over_limit(limit, max),
            StoreError::DiskFull { .. } => disk_full(message),
            StoreError::Busy { limit, .. } => Self::unavailable("busy", message, 1)
                .param(limit)
                .remedy("try again later, with a longer text or a smaller scope"),
            error => {
                tracing::error!(%error, "the store failed");
                store_unavailable()
            }
        }
    }
}

impl From<BlobError> for ApiError {
    fn from(error: BlobError) -> Self {
        let message = error.to_string();
        match error {
            // A server's blob folder has the limit of its uploads, on every path by which a file arrives.
            BlobError::OverLimit { max } => {
                let message =
                    format!("pictures and files are limited to {} (`upload_bytes_max`)", size_text(max));
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "file_too_large", message)
                    .param("upload_bytes_max")
                    .with_extra("limit", max)
                    .remedy("send a smaller file, or raise `upload_bytes_max` of [server.limits]")
            }
            BlobError::Full(_) => disk_full(message),
            BlobError::Store(error) => error.into(),
            error => Self::internal(error),
        }
    }
}

/// 413: a limit of the store (docs/store.md), which no setting changes.
fn over_limit(limit: &'static str, max: u64) -> ApiError {
    let amount = if limit.contains("_bytes") { size_text(max) } else { max.to_string() };
    let error = ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "over_limit",
        format!("exceeds the limit of {amount} (`{limit}`)"),
    )
    .param(limit);
    let remedy = match limit {
        "folder_chars_max" | "tag_chars_max" | "search_chars_max" => "make it shorter",
        "tags_max" => "remove another tag first",
        "shares_max" => "revoke links that are no longer needed (DELETE /v1/shares/{share_id})",
        "conversation_turns_max" => "continue in a new conversation",
        "document_bytes_max" => "make it smaller",
        "documents_max" => "delete one that is not needed any more",
        "keys_max" => "revoke keys that are no longer used",
        "people_max" => "restore a removed user by adding the same name",
        "user_files_bytes_max" => "delete files that are no longer needed (DELETE /v1/files/{file_id})",
        _ => return error,
    };
    error.remedy(remedy)
}

/// An amount of bytes in the largest unit that leaves no fraction.
fn size_text(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let whole = units.into_iter().find(|(_, shift)| bytes >> shift > 0 && bytes.trailing_zeros() >= *shift);
    whole.map_or_else(|| format!("{bytes} bytes"), |(unit, shift)| format!("{} {unit}", bytes >> shift))
}

fn disk_full(message: String) -> ApiError {
    ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "no_room", message)
        .remedy("free disk space on the server; running turns can finish")
}

fn store_unavailable() -> ApiError {
    ApiError::unavailable("store_unavailable", "store is temporarily unavailable", 5)
        .remedy("try again; running turns wait for the store")
}

impl From<LogError> for ApiError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::UnknownTurn { turn } => Self::not_found("turn", &turn),
            LogError::NoRoom { .. } => disk_full(error.to_string()),
            LogError::StoreFailure { .. } => {
                tracing::error!(%error, "the store failed");
                store_unavailable()
            }
            error => Self::internal(error),
        }
    }
}

impl From<throughline::Error> for ApiError {
    fn from(error: throughline::Error) -> Self {
        use throughline::Error as E;
        let message = error.to_string();
        match error {
            E::Log(error) => error.into(),
            E::ToolNameTaken { .. } => Self::bad_request("tool_name_taken", message).param("tools"),
            E::BadToolName { .. } | E::TooManyTools { .. } => {
                Self::bad_request("invalid_tools", message).param("tools")
            }
            E::FirstCallNotOffered { .. } => {
                Self::unprocessable("tool_not_offered", message).remedy("GET /v1/tools lists the tools")
            }
            E::UnknownAgent { .. } => Self::bad_request("unknown_agent", message).param("agent"),
            E::NoModel | E::NoUpstream { .. } | E::AmbiguousUpstream { .. } => {
                Self::bad_request("unknown_model", message)
                    .param("model")
                    .remedy("GET /v1/models lists the models")
            }
            E::ApprovalStore(ApprovalStoreError::Unreadable { number, .. }) => {
                Self::conflict("remembered_unreadable", message)
                    .remedy(format!("revoke it (DELETE /v1/remembered/{number}) and answer again"))
                    .with_extra("number", number)
            }
            E::Prompt(error) => {
                let rejection = Self::bad_request("unusable_prompt", message).param("prompt");
                match error.help {
                    Some(help) => rejection.remedy(help),
                    None => rejection,
                }
            }
            // A missing setting cannot be fixed by the request.
            E::MissingKey { .. } => Self::unavailable("upstream_without_key", message, 60),
            error => Self::internal(error),
        }
    }
}

pub(crate) async fn route_not_found(method: Method, uri: Uri) -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "no_such_route",
        format!("there is nothing at {method} {}", uri.path()),
    )
    .remedy("GET /v1/openapi.json lists the routes")
}

pub(crate) async fn method_not_allowed(method: Method, uri: Uri) -> ApiError {
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "no_such_method",
        format!("{} does not support {method}", uri.path()),
    )
    .remedy("GET /v1/openapi.json lists the routes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use throughline_store::CatalogLimits;

    fn page(name: &str) -> String {
        std::fs::read_to_string(format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    #[test]
    fn limit_errors_are_documented_and_have_a_remedy() {
        let limits = serde_json::to_value(CatalogLimits::default()).unwrap();
        let mut fields: BTreeSet<&str> = limits.as_object().unwrap().keys().map(String::as_str).collect();
        let store_page = page("store.md");
        let rows = store_page.lines().filter_map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let name = cells.first()?.strip_prefix('`')?.strip_suffix('`')?;
            (cells.len() == 4).then(|| (name.to_owned(), cells[3].to_owned()))
        });
        for (name, effect) in rows {
            let Some(field) = fields.take(name.as_str()) else { continue };
            let refused = effect == "refused" || effect == "no further turn";
            let field: &'static str = field.to_owned().leak();
            let error = ApiError::from(StoreError::OverLimit { limit: field, max: 1 << 20 });
            assert_eq!(error.remedy.is_some(), refused, "{field}: {effect}");
            assert_eq!((error.status.as_u16(), error.param.as_deref()), (413, Some(field)));
            assert!(error.message.contains(&format!("`{field}`")), "{}", error.message);
        }
        assert_eq!(fields, BTreeSet::new(), "limits without a row in docs/store.md");

        let error = ApiError::from(BlobError::OverLimit { max: 32 << 20 });
        assert_eq!(error.message, "pictures and files are limited to 32 MiB (`upload_bytes_max`)");
        let setting = error.param.unwrap();
        assert!(page("configuration.md").contains(&format!("| `{setting}` |")), "{setting} is no setting");
        assert!(error.remedy.unwrap().contains(&setting));
    }

    #[test]
    fn sizes_are_in_the_largest_whole_unit() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1_500, "1500 bytes"),
            (16 << 10, "16 KiB"),
            (32 << 20, "32 MiB"),
            (2 << 30, "2 GiB"),
            (1_536 << 10, "1536 KiB"),
        ] {
            assert_eq!(size_text(bytes), text);
        }
    }
}
