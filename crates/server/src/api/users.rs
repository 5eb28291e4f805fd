//! People who use the server: added, changed and removed with the scope `admin`.

use super::page::{ListPage, PageQuery};
use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Json, Path, Query};
use crate::people::{self, DeletedData, PeopleError, UsageInfo, UsageLimitsBody};
use crate::principal::{KeyScope, Principal, SignInWay};
use crate::request_guard::RequestGuard;
use crate::stamps::now_ms;
use crate::state::AppState;
use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use throughline_store::{PersonRow, UsageOwner, UsageReport};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// `/v1/users` and `/v1/me`.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, update, delete))
        .routes(routes!(get_me))
}

/// A person.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct UserInfo {
    /// Name, the `user` of everything that is theirs.
    #[schema(example = "ann")]
    name: String,
    /// True if their keys may have the scope `admin`.
    is_admin: bool,
    limits: UsageLimitsBody,
    usage: UsageInfo,
    /// Milliseconds since 1970; 0 for the first person until there is a second one.
    created_at: i64,
    /// Since then they may not come in; what is theirs is kept.
    removed_at: Option<i64>,
}

impl UserInfo {
    fn new(person: PersonRow, usage: UsageReport) -> Self {
        let PersonRow { name, is_admin, limits, created_at, removed_at } = person;
        Self { name, is_admin, limits: limits.into(), usage: usage.into(), created_at, removed_at }
    }
}

/// A person to add.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CreateUser {
    /// 1 to 64 letters, digits, `-`, `_`, `.`, `@` or `+`. Capital letters mean the same person.
    #[schema(example = "ann")]
    name: String,
    /// True if their keys may have the scope `admin`. Default false.
    #[serde(default)]
    is_admin: bool,
    /// Default: none.
    #[serde(default)]
    limits: UsageLimitsBody,
}

/// Changes of a person; what is absent stays.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UpdateUser {
    /// True if their keys may have the scope `admin`.
    #[serde(default)]
    is_admin: Option<bool>,
    /// Replaces all limits.
    #[serde(default)]
    limits: Option<UsageLimitsBody>,
}

/// Treatment of a removed person's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum RemovedDataChoice {
    /// It stays, and is theirs again when they are added again.
    #[default]
    Keep,
    /// It is deleted for good.
    Delete,
}

#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RemoveUserQuery {
    /// `keep`, the default, or `delete`: conversations, files, agents, remembered answers and usage.
    #[serde(default)]
    #[param(inline)]
    data: RemovedDataChoice,
}

/// A person who was removed.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct RemovedUser {
    name: String,
    /// Keys that were good until now.
    keys_revoked: u64,
    /// Turns that ran and were cancelled.
    turns_cancelled: u64,
    /// Deleted rows; absent if the data is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<DeletedData>,
}

/// The person who asks.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct MeInfo {
    /// Name.
    user: String,
    /// Means by which the server knows them: `key`, `proxy`, `provider`, or `off` on a server without keys.
    #[schema(value_type = String, example = "key")]
    signed_in_by: SignInWay,
    /// Scopes: `chat`, `tools`, `agents`, `admin`.
    scopes: Vec<&'static str>,
    limits: UsageLimitsBody,
    usage: UsageInfo,
    /// Limits of the key, besides those of the person.
    key_limits: UsageLimitsBody,
    /// Use of the key; absent without a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_usage: Option<UsageInfo>,
    /// Agents and models that the key may use; null for all.
    models: Option<Vec<String>>,
}

impl From<PeopleError> for ApiError {
    fn from(error: PeopleError) -> Self {
        let message = error.to_string();
        match error {
            PeopleError::BadName => Self::bad_request("bad_name", message).param("name"),
            PeopleError::LimitTooLarge => Self::bad_request("invalid_value", message).param("limits"),
            PeopleError::Exists(name) => Self::conflict("exists", message)
                .param("name")
                .remedy(format!("change them: PATCH /v1/users/{name}")),
            PeopleError::NotFound(_) => Self::new(StatusCode::NOT_FOUND, "not_found", message)
                .remedy("GET /v1/users lists all people"),
            PeopleError::First => Self::conflict("first_user", message)
                .remedy("revoke single keys instead: DELETE /v1/keys/{key_id}"),
            PeopleError::Store(error) => error.into(),
        }
    }
}

/// List people with what they have used, also those who were removed.
#[utoipa::path(get, path = "/v1/users", tag = "users", params(PageQuery), responses(
    (status = 200, description = "A page, newest first", body = ListPage<UserInfo>),
    (status = 403, description = "The key lacks the scope `admin`", body = ErrorResponse),
))]
async fn list(
    State(state): State<AppState>,
    principal: Principal,
    Query(PageQuery { cursor, limit }): Query<PageQuery>,
) -> Result<axum::Json<ListPage<UserInfo>>, ApiError> {
    principal.require(KeyScope::Admin)?;
    let page = people::list(&*state.catalog, &PageQuery::page_request(cursor, limit)?).await?;
    let owners: Vec<UsageOwner<'_>> =
        page.items.iter().map(|person| UsageOwner::Person(&person.name)).collect();
    let mut usage = state.catalog.usage(&owners, now_ms()).await?.into_iter();
    drop(owners);
    Ok(axum::Json(ListPage::from_page(page, |person| {
        UserInfo::new(person, usage.next().unwrap_or_default())
    })))
}

/// Add a person, or bring one back who was removed.
#[utoipa::path(post, path = "/v1/users", tag = "users", request_body = CreateUser, responses(
    (status = 201, description = "Added", body = UserInfo),
    (status = 400, description = "Invalid name or limit", body = ErrorResponse),
    (status = 403, description = "The key lacks the scope `admin`", body = ErrorResponse),
    (status = 409, description = "There is a person of this name", body = ErrorResponse),
))]
async fn create(
    State(state): State<AppState>,
    principal: Principal,
    Json(body): Json<CreateUser>,
) -> Result<Response, ApiError> {
    principal.require(KeyScope::Admin)?;
    let CreateUser { name, is_admin, limits } = body;
    let person = people::add(&*state.catalog, &name, is_admin, limits.into(), now_ms()).await?;
    let info = with_usage(&state, person).await?;
    Ok((StatusCode::CREATED, axum::Json(info)).into_response())
}

async fn with_usage(state: &AppState, person: PersonRow) -> Result<UserInfo, ApiError> {
    let usage = state.catalog.usage(&[UsageOwner::Person(&person.name)], now_ms()).await?;
    Ok(UserInfo::new(person, usage.first().copied().unwrap_or_default()))
}

/// Get a person.
#[utoipa::path(get, path = "/v1/users/{user}", tag = "users",
    params(("user" = String, Path, description = "Name")), responses(
    (status = 200, description = "The person", body = UserInfo),
    (status = 403, description = "The key lacks the scope `admin`", body = ErrorResponse),
    (status = 404, description = "Not found", body = ErrorResponse),
))]
async fn get(
    State(state): State<AppState>,
    principal: Principal,
    Path(user): Path<String>,
) -> Result<axum::Json<UserInfo>, ApiError> {
    principal.require(KeyScope::Admin)?;
    let person = people::find(&*state.catalog, &user).await?;
    Ok(axum::Json(with_usage(&state, person).await?))
}

/// Change a person's rights and limits. It holds within a second.
#[utoipa::path(patch, path = "/v1/users/{user}", tag = "users",
    params(("user" = String, Path, description = "Name")), request_body = UpdateUser, responses(
    (status = 200, description = "The new state", body = UserInfo),
    (status = 400, description = "Invalid limit", body = ErrorResponse),
    (status = 403, description = "The key lacks the scope `admin`", body = ErrorResponse),
    (status = 404, description = "Not found", body = ErrorResponse),
    (status = 409, description = "The first person stays an admin", body = ErrorResponse),
))]
async fn update(
    State(state): State<AppState>,
    principal: Principal,
    Extension(request_guard): Extension<RequestGuard>,
    Path(user): Path<String>,
    Json(body): Json<UpdateUser>,
) -> Result<axum::Json<UserInfo>, ApiError> {
    principal.require(KeyScope::Admin)?;
    let limits = body.limits.map(Into::into);
    let person = people::change(&*state.catalog, &user, body.is_admin, limits, now_ms()).await?;
    request_guard.forget_cached();
    Ok(axum::Json(with_usage(&state, person).await?))
}

/// Remove a person: their keys are revoked and their turns cancelled. Their data is kept unless `data=delete`.
#[utoipa::path(delete, path = "/v1/users/{user}", tag = "users",
    params(("user" = String, Path, description = "Name"), RemoveUserQuery), responses(
    (status = 200, description = "Removed", body = RemovedUser),
    (status = 403, description = "The key lacks the scope `admin`", body = ErrorResponse),
    (status = 404, description = "Not found", body = ErrorResponse),
    (status = 409, description = "The first user and your own user cannot be removed; or one of the user's \
     turns is still ending", body = ErrorResponse),
))]
async fn delete(
    State(state): State<AppState>,
    principal: Principal,
    Extension(request_guard): Extension<RequestGuard>,
    Path(user): Path<String>,
    Query(query): Query<RemoveUserQuery>,
) -> Result<axum::Json<RemovedUser>, ApiError> {
    principal.require(KeyScope::Admin)?;
    let person = people::find(&*state.catalog, &user).await?;
    if person.name == principal.user && person.name != crate::principal::LOCAL_USER {
        return Err(
            ApiError::conflict("own_user", "you cannot remove your own user").remedy("ask another admin")
        );
    }
    let revoked = people::remove(&*state.catalog, &person.name, now_ms()).await?;
    request_guard.close_person(&person.name, &revoked);
    let turns_cancelled = state.turn_manager.cancel_all_of(&person.name).await;
    let deleted = match query.data {
        RemovedDataChoice::Keep => None,
        RemovedDataChoice::Delete => {
            let deleted = people::delete_data(&*state.catalog, &state.blobs, &person.name).await?;
            if !deleted.complete {
                let error = ApiError::conflict("turn_running", "a turn of this person is still ending");
                return Err(error.remedy("the keys are revoked; send the same request again in a moment"));
            }
            state.app.forget_user(&person.name);
            Some(deleted)
        }
    };
    let keys_revoked = revoked.len() as u64;
    Ok(axum::Json(RemovedUser { name: person.name, keys_revoked, turns_cancelled, deleted }))
}

/// Get the person who asks: name, scopes, limits and use.
#[utoipa::path(get, path = "/v1/me", tag = "users", responses(
    (status = 200, description = "The person whose key was shown", body = MeInfo),
))]
async fn get_me(State(state): State<AppState>, principal: Principal) -> Result<axum::Json<MeInfo>, ApiError> {
    let mut owners = vec![UsageOwner::Person(&principal.user)];
    owners.extend(principal.key_id.as_deref().map(UsageOwner::Key));
    let mut usage = state.catalog.usage(&owners, now_ms()).await?.into_iter().map(UsageInfo::from);
    let usage_of_person = usage.next().unwrap_or_else(|| UsageReport::default().into());
    Ok(axum::Json(MeInfo {
        user: principal.user.clone(),
        signed_in_by: principal.signed_in_by,
        scopes: principal.scopes.iter().map(KeyScope::name).collect(),
        limits: principal.limits.user.into(),
        usage: usage_of_person,
        key_limits: principal.limits.key.usage.into(),
        key_usage: usage.next(),
        models: principal.limits.key.models.clone(),
    }))
}
