//! Ways into the server for a browser, and out of it.

use super::keys::CreatedKey;
use crate::error::{ApiError, ErrorResponse};
use crate::extract::Json;
#[cfg(feature = "oidc")]
use crate::principal::SignInWay;
use crate::principal::{KeyScope, Principal};
use crate::request_guard::RequestGuard;
use crate::state::AppState;
use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, Uri, header};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Name of the cookie of a sign-in that is not finished. Where the page is not HTTPS, browsers do not take the other one.
pub(super) const LOGIN_COOKIE: &str = "throughline-sign-in";
/// Name of the cookie on HTTPS: the prefix keeps other hosts from setting it.
pub(super) const SECURE_LOGIN_COOKIE: &str = "__Host-throughline-sign-in";

/// `/v1/sign-in` and `/v1/sign-out`.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list_ways, sign_in)).routes(routes!(sign_out))
}

/// Ways into this server.
#[derive(Debug, Serialize, ToSchema)]
struct SignInWays {
    /// A proxy in front signs people in: the page needs nothing else.
    proxy: bool,
    /// Provider at which people sign in; null if there is none.
    provider: Option<ProviderLink>,
}

/// Provider at which people sign in.
#[derive(Debug, Serialize, ToSchema)]
struct ProviderLink {
    /// Name for the button.
    #[schema(example = "accounts.example.com")]
    name: String,
    /// Address to go to, with `?return_to=` and a path of the page.
    #[schema(example = "/sign-in/provider")]
    url: &'static str,
}

/// Code after `#sign-in=` in the link that `throughline serve` prints.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SignInRequest {
    /// The code from the link.
    ticket: String,
}

/// End of a browser's sign-in.
#[derive(Debug, Serialize, ToSchema)]
struct SignedOut {
    /// True if the key was this browser's own and is worthless now; other keys stay as they are.
    revoked: bool,
    /// Address at which the provider ends its own session; null if there is none.
    provider_url: Option<String>,
}

/// List the ways into this server. Needs no key.
#[utoipa::path(get, path = "/v1/sign-in", tag = "auth", security(()), responses(
    (status = 200, description = "The ways", body = SignInWays),
))]
async fn list_ways(Extension(request_guard): Extension<RequestGuard>) -> axum::Json<SignInWays> {
    #[cfg(feature = "oidc")]
    let provider = request_guard.provider().map(|provider| ProviderLink {
        name: throughline_wire::display_escape::escape(provider.name()).into_owned(),
        url: super::provider_sign_in::START_PATH,
    });
    #[cfg(not(feature = "oidc"))]
    let provider = None;
    axum::Json(SignInWays { proxy: request_guard.has_proxy(), provider })
}

/// Exchange a sign-in link for a key, once. `throughline serve` prints the link at its start, and a sign-in at the provider ends
/// with one. Needs no key.
#[utoipa::path(post, path = "/v1/sign-in", tag = "auth", request_body = SignInRequest, responses(
    (status = 201, description = "Created", body = CreatedKey),
    (status = 401, description = "The link is unknown, used or expired", body = ErrorResponse),
))]
async fn sign_in(
    Extension(request_guard): Extension<RequestGuard>,
    headers: HeaderMap,
    Json(body): Json<SignInRequest>,
) -> Result<Response, ApiError> {
    let (key, pass) = request_guard.sign_in(&body.ticket, login_cookie(&headers)).await?;
    Ok((StatusCode::CREATED, axum::Json(CreatedKey { key: key.reveal(), pass })).into_response())
}

/// Sign this browser out: its key is revoked. A key that was typed in stays.
#[utoipa::path(post, path = "/v1/sign-out", tag = "auth", responses(
    (status = 200, description = "Signed out", body = SignedOut),
))]
async fn sign_out(
    State(state): State<AppState>,
    principal: Principal,
    Extension(request_guard): Extension<RequestGuard>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<axum::Json<SignedOut>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let revoked = request_guard.sign_out(&principal).await?;
    #[cfg(feature = "oidc")]
    let provider_url = match request_guard.provider() {
        Some(provider) if principal.signed_in_by == SignInWay::Provider => {
            let base = state.page_address.resolve(&uri, &headers);
            provider.end_session_url(&base).await.map(String::from)
        }
        _ => None,
    };
    #[cfg(not(feature = "oidc"))]
    let (provider_url, _) = (None, (state, uri, headers));
    Ok(axum::Json(SignedOut { revoked, provider_url }))
}

/// The cookie of a sign-in that is not finished; of two of one name none counts.
pub(super) fn login_cookie(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|cookies| cookies.to_str().ok());
    let pairs: Vec<_> = cookies
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .collect();
    let named = |wanted: &str| {
        let mut values = pairs.iter().filter(|(name, _)| *name == wanted).map(|(_, value)| *value);
        values.next().filter(|_| values.next().is_none())
    };
    named(SECURE_LOGIN_COOKIE).or_else(|| named(LOGIN_COOKIE))
}
