//! Keys: created, listed and revoked with the scope `admin`. Only the response to the creation has the secret.

use super::page::PageQuery;
use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Json, Path, Query};
use crate::people::{self, UsageInfo, UsageLimitsBody};
use crate::principal::{KeyScope, Principal};
use crate::request_guard::{KeyInfo, MintError, NewApiKey, RequestGuard};
use crate::stamps::now_ms;
use crate::state::AppState;
use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use throughline_store::{KeyLimits, KeyRow, ResultPage, UsageOwner};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(update, revoke))
        .routes(routes!(create_ticket))
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
    /// Person whose key it is. Default: the one who asks.
    #[serde(default)]
    user: Option<String>,
    /// Limits of the key, besides those of its person. Default: none.
    #[serde(default)]
    limits: UsageLimitsBody,
    /// Agents of the configuration, models as `upstream/model`, or `upstream/*`, that the key may use. Default: all.
    #[serde(default)]
    models: Option<Vec<String>>,
}

/// Changes of a key; what is absent stays.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UpdateKey {
    /// Replaces all limits of the key.
    #[serde(default)]
    limits: Option<UsageLimitsBody>,
    /// Agents and models that the key may use; null for all.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Vec<String>>)]
    models: Option<Option<Vec<String>>>,
}

/// Deserializer that distinguishes null from an absent field.
pub(super) fn present<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(
    value: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(value).map(Some)
}

/// Page of keys.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct KeyQuery {
    /// Only keys of this person. Default: of all.
    user: Option<String>,
    /// `next` of the previous page.
    cursor: Option<String>,
    /// Maximum number of rows, 1 to 200. Default 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// A key with what it has used.
#[derive(Debug, Serialize, ToSchema)]
struct ListedKey {
    #[serde(flatten)]
    key: KeyInfo,
    usage: UsageInfo,
}

/// Scope of a key.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ScopeName {
    Chat,
    Tools,
    Agents,
    Admin,
}

impl From<ScopeName> for KeyScope {
    fn from(name: ScopeName) -> Self {
        match name {
            ScopeName::Chat => KeyScope::Chat,
            ScopeName::Tools => KeyScope::Tools,
            ScopeName::Agents => KeyScope::Agents,
            ScopeName::Admin => KeyScope::Admin,
        }
    }
}

/// A key that was made.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CreatedKey {
    /// The key itself. It is shown this once.
    pub(super) key: String,
    #[serde(flatten)]
    pub(super) pass: KeyInfo,
}

/// Keys.
#[derive(Debug, Serialize, ToSchema)]
struct KeyList {
    /// Newest first.
    data: Vec<ListedKey>,
    /// `cursor` of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
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
#[utoipa::path(get, path = "/v1/keys", tag = "keys", params(KeyQuery), responses(
    (status = 200, description = "A page of the keys of all people, including revoked ones", body = KeyList),
    (status = 403, description = "The key lacks the scope `admin`", body = ErrorResponse),
    (status = 404, description = "There is no such person", body = ErrorResponse),
))]
async fn list(
    State(state): State<AppState>,
    principal: Principal,
    Extension(request_guard): Extension<RequestGuard>,
    Query(query): Query<KeyQuery>,
) -> Result<axum::Json<KeyList>, ApiError> {
    principal.require(KeyScope::Admin)?;
    let request = PageQuery::page_request(query.cursor, query.limit)?;
    let user = match query.user {
        None => None,
        Some(user) => Some(people::find(&*state.catalog, &user).await?.name),
    };
    let page = request_guard.keys_page(user.as_deref(), &request).await?;
    Ok(axum::Json(with_usage(&state, page).await?))
}

async fn with_usage(state: &AppState, page: ResultPage<KeyRow>) -> Result<KeyList, ApiError> {
    let owners: Vec<UsageOwner<'_>> = page.items.iter().map(|key| UsageOwner::Key(&key.id)).collect();
    let usage = state.catalog.usage(&owners, now_ms()).await?;
    let listed = page.items.into_iter().zip(usage);
    let data = listed.map(|(key, usage)| ListedKey { key: key.into(), usage: usage.into() }).collect();
    Ok(KeyList { data, next: page.next })
}

/// Create a key. Only this response shows its secret.
#[utoipa::path(post, path = "/v1/keys", tag = "keys", request_body = CreateKey, responses(
    (status = 201, description = "Created", body = CreatedKey),
    (status = 400, description = "Invalid key", body = ErrorResponse),
    (status = 403, description = "The key lacks the scope `admin`", body = ErrorResponse),
))]
async fn create(
    State(state): State<AppState>,
    Extension(request_guard): Extension<RequestGuard>,
    principal: Principal,
    Json(body): Json<CreateKey>,
) -> Result<Response, ApiError> {
    let scopes =
        body.scopes.unwrap_or_else(|| vec![ScopeName::Chat]).into_iter().map(KeyScope::from).collect();
    let limits = KeyLimits { usage: body.limits.into(), models: body.models };
    let new = NewApiKey { name: body.name, scopes, expires_at: body.expires_at, limits };
    let user = match body.user {
        None => principal.user,
        Some(user) => {
            people::find(&*state.catalog, &user)
                .await
                .map_err(|error| {
                    ApiError::from(error).param("user").remedy("add them first: POST /v1/users")
                })?
                .name
        }
    };
    let (key, pass) = request_guard.mint(&user, new).await.map_err(mint_error)?;
    Ok((StatusCode::CREATED, axum::Json(CreatedKey { key: key.reveal(), pass })).into_response())
}

fn mint_error(error: MintError) -> ApiError {
    let message = error.to_string();
    match error {
        MintError::NoScope => ApiError::bad_request("no_scope", message).param("scopes"),
        MintError::BadName => ApiError::bad_request("bad_name", message).param("name"),
        MintError::Expired => ApiError::bad_request("expired", message).param("expires_at"),
        MintError::BadModels => ApiError::bad_request("bad_models", message)
            .param("models")
            .remedy("leave `models` out to allow all; GET /v1/models lists the models"),
        MintError::LimitTooLarge => ApiError::bad_request("invalid_value", message).param("limits"),
        MintError::NotAdmin(user) => ApiError::bad_request("not_admin", message)
            .param("scopes")
            .remedy(format!("leave `admin` out, or make them one: PATCH /v1/users/{user}")),
        MintError::NoPerson(_) => ApiError::new(StatusCode::NOT_FOUND, "not_found", message)
            .param("user")
            .remedy("add them first: POST /v1/users"),
        MintError::Store(error) => error.into(),
        error @ MintError::NoRandomness(_) => ApiError::internal(error),
    }
}

/// Change the limits and the models of a key. It holds within a second.
#[utoipa::path(patch, path = "/v1/keys/{key_id}", tag = "keys", params(("key_id" = String, Path, description = "Id")),
    request_body = UpdateKey, responses(
    (status = 200, description = "The new state", body = KeyInfo),
    (status = 400, description = "Invalid limits or models", body = ErrorResponse),
    (status = 403, description = "The key lacks the scope `admin`", body = ErrorResponse),
    (status = 404, description = "Not found, or already revoked", body = ErrorResponse),
))]
async fn update(
    principal: Principal,
    Extension(request_guard): Extension<RequestGuard>,
    Path(key_id): Path<String>,
    Json(body): Json<UpdateKey>,
) -> Result<axum::Json<KeyInfo>, ApiError> {
    principal.require(KeyScope::Admin)?;
    let not_found = || ApiError::not_found("key", &key_id);
    let mut row = request_guard.key(&key_id).await?.ok_or_else(not_found)?;
    row.limits.usage = body.limits.map_or(row.limits.usage, Into::into);
    row.limits.models = body.models.unwrap_or(row.limits.models);
    if !request_guard.set_key_limits(&row.user, &key_id, row.limits.clone()).await.map_err(mint_error)? {
        return Err(not_found());
    }
    Ok(axum::Json(row.into()))
}

/// Revoke a key. Its streams and sockets end within a second.
#[utoipa::path(delete, path = "/v1/keys/{key_id}", tag = "keys", params(("key_id" = String, Path, description = "Id")), responses(
    (status = 204, description = "Revoked"),
    (status = 404, description = "Not found, or already revoked", body = ErrorResponse),
))]
async fn revoke(
    Extension(request_guard): Extension<RequestGuard>,
    principal: Principal,
    Path(key_id): Path<String>,
) -> Result<StatusCode, ApiError> {
    principal.require(KeyScope::Admin)?;
    let owner = request_guard.key(&key_id).await?.map_or(principal.user, |key| key.user);
    if request_guard.revoke(&owner, &key_id).await? {
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
async fn create_ticket(
    Extension(request_guard): Extension<RequestGuard>,
    principal: Principal,
) -> Result<Response, ApiError> {
    let (ticket, lifetime) = request_guard.ticket(&principal)?;
    let created = CreatedTicket { ticket, expires_in_ms: lifetime.as_millis() as u64 };
    Ok((StatusCode::CREATED, axum::Json(created)).into_response())
}
