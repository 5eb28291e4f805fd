//! Keys: made, listed and revoked by whoever has `admin`. The secret of a key is in one answer, once. // R: R4

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
    /// What its owner calls it.
    name: String,
    /// What it allows. Default: `chat`.
    #[serde(default)]
    scopes: Option<Vec<ScopeName>>,
    /// From then on it is worth nothing; milliseconds since 1970. Default: never.
    #[serde(default)]
    expires_at: Option<i64>,
}

/// What a key may be used for.
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
    /// For `?create_ticket=`, once.
    ticket: String,
    /// How long it can be used, in milliseconds.
    expires_in_ms: u64,
}

/// Keys, without their secrets.
#[utoipa::path(get, path = "/v1/keys", tag = "keys", responses(
    (status = 200, description = "All of them, revoked ones too", body = KeyList),
    (status = 403, description = "It takes the scope `admin`", body = ErrorResponse),
))]
async fn list(
    Extension(gate): Extension<Gate>,
    principal: Principal,
) -> Result<axum::Json<KeyList>, ApiError> {
    Ok(axum::Json(KeyList { data: gate.keys(&principal.user).await? }))
}

/// Make a key. The answer is the only place where it can be seen.
#[utoipa::path(post, path = "/v1/keys", tag = "keys", request_body = CreateKey, responses(
    (status = 201, description = "It can be used", body = CreatedKey),
    (status = 400, description = "It would be none", body = ErrorResponse),
    (status = 403, description = "It takes the scope `admin`", body = ErrorResponse),
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

/// Make a key worthless. Its streams and sockets end within a second.
#[utoipa::path(delete, path = "/v1/keys/{key_id}", tag = "keys", params(("key_id" = String, Path, description = "Its id")), responses(
    (status = 204, description = "It is worth nothing any more"),
    (status = 404, description = "There is none, or it was revoked before", body = ErrorResponse),
))]
async fn revoke(
    Extension(gate): Extension<Gate>,
    principal: Principal,
    Path(key_id): Path<String>,
) -> Result<StatusCode, ApiError> {
    match gate.revoke(&principal.user, &key_id).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(ApiError::not_found("key", &key_id)),
    }
}

/// A ticket in place of the key, for browsers' `EventSource` and `WebSocket`, which cannot send one.
#[utoipa::path(post, path = "/v1/tickets", tag = "keys", responses(
    (status = 201, description = "It is good once", body = CreatedTicket),
    (status = 429, description = "Too many are open", body = ErrorResponse),
))]
async fn create_ticket(Extension(gate): Extension<Gate>, principal: Principal) -> Result<Response, ApiError> {
    let (ticket, lifetime) = gate.ticket(&principal)?;
    let created = CreatedTicket { ticket, expires_in_ms: lifetime.as_millis() as u64 };
    Ok((StatusCode::CREATED, axum::Json(created)).into_response())
}

/// What stands behind `#sign-in=` of the link that `throughline serve` prints.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SignInRequest {
    /// As it stands there.
    ticket: String,
}

/// Get a key for a browser, once, for the link that `throughline serve` prints at its start. Needs no key.
#[utoipa::path(post, path = "/v1/sign-in", tag = "keys", request_body = SignInRequest, responses(
    (status = 201, description = "It can be used", body = CreatedKey),
    (status = 401, description = "There is no such link, or it was used, or is too old", body = ErrorResponse),
))]
async fn sign_in(
    Extension(gate): Extension<Gate>,
    Json(body): Json<SignInRequest>,
) -> Result<Response, ApiError> {
    let (key, pass) = gate.sign_in(&body.ticket).await?;
    Ok((StatusCode::CREATED, axum::Json(CreatedKey { key: key.reveal(), pass })).into_response())
}
