//! Keys: created, listed and revoked with the scope `admin`. Only the response to the creation has the secret. // R: R4

use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Json, Path};
use crate::gate::{Gate, KeyInfo, MintError, NewApiKey};
use crate::principal::{KeyScope, Principal};
use crate::state::AppState;
use axum::Extension;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(revoke))
        .routes(routes!(create_ticket))
        .routes(routes!(sign_in))
}

/// A key that is wanted.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CreateKey {
    /// Name that the owner gives the key.
    name: String,
    /// Scopes of the key. Default: `chat`.
    #[serde(default)]
    scopes: Option<Vec<ScopeName>>,
    /// From then on it is worth nothing; milliseconds since 1970. Default: never.
    #[serde(default)]
    expires_at: Option<i64>,
}

/// Scope of a key.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ScopeName {
    Chat,
    Tools,
    Admin,
}

impl From<ScopeName> for KeyScope {
    fn from(name: ScopeName) -> Self {
        match name {
            ScopeName::Chat => KeyScope::Chat,
            ScopeName::Tools => KeyScope::Tools,
            ScopeName::Admin => KeyScope::Admin,
        }
    }
}

/// A key that was made.
#[derive(Debug, Serialize, ToSchema)]
struct CreatedKey {
    /// The key itself. It is shown this once.
    key: String,
    #[serde(flatten)]
    pass: KeyInfo,
}

/// Keys.
#[derive(Debug, Serialize, ToSchema)]
struct KeyList {
    /// Newest first.
    data: Vec<KeyInfo>,
}

/// A ticket.
#[derive(Debug, Serialize, ToSchema)]
struct CreatedTicket {
    /// For `?ticket=`, once.
    ticket: String,
    /// Lifetime in milliseconds.
    expires_in_ms: u64,
}

/// List keys, without their secrets.
#[utoipa::path(get, path = "/v1/keys", tag = "keys", responses(
    (status = 200, description = "All keys, including revoked ones", body = KeyList),
    (status = 403, description = "The key lacks the scope `admin`", body = ErrorResponse),
))]
async fn list(
    Extension(gate): Extension<Gate>,
    principal: Principal,
) -> Result<axum::Json<KeyList>, ApiError> {
    Ok(axum::Json(KeyList { data: gate.keys(&principal.user).await? }))
}

/// Create a key. Only this response shows its secret.
#[utoipa::path(post, path = "/v1/keys", tag = "keys", request_body = CreateKey, responses(
    (status = 201, description = "Created", body = CreatedKey),
    (status = 400, description = "Invalid key", body = ErrorResponse),
    (status = 403, description = "The key lacks the scope `admin`", body = ErrorResponse),
))]
async fn create(
    Extension(gate): Extension<Gate>,
    principal: Principal,
    Json(body): Json<CreateKey>,
) -> Result<Response, ApiError> {
    let scopes =
        body.scopes.unwrap_or_else(|| vec![ScopeName::Chat]).into_iter().map(KeyScope::from).collect();
    let new = NewApiKey { name: body.name, scopes, expires_at: body.expires_at };
    let (key, pass) = gate.mint(&principal.user, new).await.map_err(|error| match error {
        MintError::NoScope => ApiError::bad_request("no_scope", error.to_string()).param("scopes"),
        MintError::BadName => ApiError::bad_request("bad_name", error.to_string()).param("name"),
        MintError::Expired => ApiError::bad_request("expired", error.to_string()).param("expires_at"),
        error => ApiError::internal(error),
    })?;
    Ok((StatusCode::CREATED, axum::Json(CreatedKey { key: key.reveal(), pass })).into_response())
}

/// Revoke a key. Its streams and sockets end within a second.
#[utoipa::path(delete, path = "/v1/keys/{key_id}", tag = "keys", params(("key_id" = String, Path, description = "Id")), responses(
    (status = 204, description = "Revoked"),
    (status = 404, description = "Not found, or already revoked", body = ErrorResponse),
))]
async fn revoke(
    Extension(gate): Extension<Gate>,
    principal: Principal,
    Path(key_id): Path<String>,
) -> Result<StatusCode, ApiError> {
    if gate.revoke(&principal.user, &key_id).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(ApiError::not_found("key", &key_id))
    }
}

/// Create a one-time ticket for `EventSource` and `WebSocket`, which cannot send a key.
#[utoipa::path(post, path = "/v1/tickets", tag = "auth", responses(
    (status = 201, description = "Created", body = CreatedTicket),
    (status = 429, description = "Too many open tickets", body = ErrorResponse),
))]
async fn create_ticket(Extension(gate): Extension<Gate>, principal: Principal) -> Result<Response, ApiError> {
    let (ticket, lifetime) = gate.ticket(&principal)?;
    let created = CreatedTicket { ticket, expires_in_ms: lifetime.as_millis() as u64 };
    Ok((StatusCode::CREATED, axum::Json(created)).into_response())
}

/// Code after `#sign-in=` in the link that `throughline serve` prints.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SignInRequest {
    /// The code from the link.
    ticket: String,
}

/// Exchange a sign-in link for a key, once. `throughline serve` prints the link at its start. Needs no key.
#[utoipa::path(post, path = "/v1/sign-in", tag = "auth", request_body = SignInRequest, responses(
    (status = 201, description = "Created", body = CreatedKey),
    (status = 401, description = "The link is unknown, used or expired", body = ErrorResponse),
))]
async fn sign_in(
    Extension(gate): Extension<Gate>,
    Json(body): Json<SignInRequest>,
) -> Result<Response, ApiError> {
    let (key, pass) = gate.sign_in(&body.ticket).await?;
    Ok((StatusCode::CREATED, axum::Json(CreatedKey { key: key.reveal(), pass })).into_response())
}
