//! Connects an upstream while the server runs: a built-in provider with its key, or a custom address if the
//! client is on this machine. The upstream is tested before it is saved.

use super::{ModelFactsSchema, UpstreamInfo, key_state, known_facts, upstream_info};
use crate::api::agents;
use crate::api::page::ListPage;
use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Json, Path};
use crate::net::ConnectionInfo;
use crate::principal::{KeyScope, Principal};
use crate::state::AppState;
use crate::upstream_keys::{UpstreamKeys, UpstreamKeysError};
use axum::extract::{FromRequestParts, State};
use futures_util::future::{OptionFuture, join_all};
use http::StatusCode;
use http::request::Parts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;
use throughline::config::{CustomEndpoint, DEMO, StoredUpstream, parse_pasted_key};
use throughline::models::ModelFacts;
use throughline::providers::{self, KnownProvider};
use throughline::tools::builtin::http::non_public_reason;
use throughline::wire::Dialect;
use throughline::{KeyOrigin, ProbeError, ProbeFailure, Upstream};
use url::{Host, Url};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Timeout for listing an upstream's models.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for a model's first token. A local model may have to be loaded first.
const PROBE_TIMEOUT: Duration = Duration::from_secs(45);
/// Timeout for a local server to list its models. A closed port refuses immediately.
const LOCAL_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum length of a custom upstream's name.
const NAME_BYTES_MAX: usize = 64;
/// Headers that a local proxy adds for a remote client.
const FORWARDED_HEADERS: [&str; 4] = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list_known)).routes(routes!(connect)).routes(routes!(delete_key))
}

/// An upstream that is known by name.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct KnownUpstream {
    /// The part before the `/` of `upstream/model`.
    #[schema(example = "deepseek")]
    name: String,
    /// Display name.
    #[schema(example = "DeepSeek")]
    title: String,
    /// Dialect of its API.
    #[schema(example = "openai-chat")]
    dialect: String,
    /// Base URL.
    address: String,
    /// `present`, `missing`, or `not_needed`.
    key: &'static str,
    /// Where a key that is present comes from: `environment`, `stored` or `program`.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_from: Option<&'static str>,
    /// The environment variable that may hold it.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_variable: Option<String>,
    /// Where a person gets a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_url: Option<String>,
    /// Remark for people.
    note: String,
    /// True if turns can use it now.
    connected: bool,
    /// True if it responds; only for upstreams on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    answers: Option<bool>,
}

/// Settings of a new upstream.
#[derive(Clone, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
struct ConnectUpstream {
    /// Its key. Absent = it needs none, or has one already.
    key: Option<String>,
    /// A model that is to answer: it is asked for a word.
    #[schema(example = "deepseek-chat")]
    model: Option<String>,
    /// A stored agent that is given the model, and made if there is none of the name: a copy of the one that answers by default.
    #[schema(example = "deepseek-chat")]
    agent: Option<String>,
    /// An address of one's own. Takes the scope `admin` on a connection from the server's own machine.
    base_url: Option<String>,
    /// Dialect of its API. Default: `openai-chat`.
    #[schema(example = "openai-chat")]
    dialect: Option<String>,
}

/// An upstream that turns can use from now on.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct ConnectedUpstream {
    /// As it is now.
    upstream: UpstreamInfo,
    /// Models that the upstream lists, newest first if it gives dates. Empty if it lists none.
    models: Vec<String>,
    /// Known properties of these models: context size, output size and modalities.
    #[schema(value_type = BTreeMap<String, ModelFactsSchema>)]
    model_facts: BTreeMap<String, ModelFacts>,
    /// The agent that has the model now.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
}

/// True if the client runs on this machine, by the peer address of the connection. A header can only disprove it.
struct LocalCaller(bool);

impl<S: Send + Sync> FromRequestParts<S> for LocalCaller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let is_local = |wire: &ConnectionInfo| {
            wire.peer.ip().to_canonical().is_loopback() && wire.local.ip().to_canonical().is_loopback()
        };
        let is_forwarded = FORWARDED_HEADERS.iter().any(|name| parts.headers.contains_key(*name));
        Ok(Self(!is_forwarded && parts.extensions.get::<ConnectionInfo>().is_some_and(is_local)))
    }
}

fn connections(state: &AppState) -> Result<&UpstreamKeys, ApiError> {
    state.upstream_keys.as_ref().ok_or_else(|| {
        ApiError::conflict(
            "not_connectable",
            "this server does not store upstream keys, so none can be connected",
        )
        .remedy("put the key into the environment of the server")
    })
}

impl From<UpstreamKeysError> for ApiError {
    fn from(error: UpstreamKeysError) -> Self {
        match error {
            UpstreamKeysError::Task(error) => Self::internal(error),
            // The error contains paths and settings, which the administrator who sends this request may see.
            error => Self::conflict("configuration", error.to_string()).remedy("mend it, then connect"),
        }
    }
}

/// List known upstreams with what each needs to be connected; those on this machine are probed.
#[utoipa::path(get, path = "/v1/upstreams/known", tag = "upstreams", responses(
    (status = 200, description = "The complete list", body = ListPage<KnownUpstream>),
    (status = 403, description = "The key lacks the scope `admin`", body = ErrorResponse),
))]
async fn list_known(
    State(state): State<AppState>,
    principal: Principal,
) -> Result<axum::Json<ListPage<KnownUpstream>>, ApiError> {
    principal.require(KeyScope::Admin)?;
    let usable: Vec<String> = state.app.upstreams().iter().map(|one| one.name().to_owned()).collect();
    let all = connections(&state)?.known_upstreams().await?;
    let usable = &usable;
    let asked = all.iter().map(|(row, upstream)| {
        let models = row.is_local().then(|| upstream.models(LOCAL_TIMEOUT));
        async move {
            let answers = OptionFuture::from(models).await.map(|models| models.is_ok());
            known_upstream_info(row, upstream, usable.iter().any(|name| name == row.name), answers)
        }
    });
    Ok(axum::Json(ListPage::complete(join_all(asked).await)))
}

fn known_upstream_info(
    row: &KnownProvider,
    upstream: &Upstream,
    is_usable: bool,
    answers: Option<bool>,
) -> KnownUpstream {
    KnownUpstream {
        name: row.name.to_owned(),
        title: row.title.to_owned(),
        dialect: upstream.wire_format().name().to_owned(),
        address: upstream.address(),
        key: key_state(upstream),
        key_from: upstream.key_origin().map(KeyOrigin::name),
        key_variable: upstream.key_variable().map(str::to_owned),
        key_url: row.key_url.map(str::to_owned),
        note: row.note.to_owned(),
        connected: is_usable && upstream.missing_key().is_none(),
        answers,
    }
}

/// Connect an upstream. Its models are listed, and one is asked for a token if it is named; then the key is stored, and new
/// turns can use the upstream. Responses never contain a key.
#[utoipa::path(post, path = "/v1/upstreams/{upstream}/connect", tag = "upstreams",
    params(("upstream" = String, Path, description = "A name from `/v1/upstreams/known`, one from the configuration, or, with `base_url`, a new one")),
    request_body = ConnectUpstream, responses(
    (status = 200, description = "Connected", body = ConnectedUpstream),
    (status = 400, description = "Invalid settings; `param` names the field", body = ErrorResponse),
    (status = 403, description = "The key lacks the scope `admin`, or `base_url` is given and the connection is not from this machine", body = ErrorResponse),
    (status = 404, description = "Unknown upstream", body = ErrorResponse),
    (status = 409, description = "The environment has a key for it, which takes precedence; or the agent is \
     defined in the configuration", body = ErrorResponse),
    (status = 422, description = "The upstream refuses the key (`wrong_key`), the quota is used up (`no_quota`), or the model does not exist (`no_such_model`)", body = ErrorResponse),
    (status = 502, description = "The upstream cannot be reached (`upstream_unreachable`) or refuses (`upstream_refused`)", body = ErrorResponse),
))]
async fn connect(
    State(state): State<AppState>,
    principal: Principal,
    LocalCaller(is_local): LocalCaller,
    Path(name): Path<String>,
    Json(body): Json<ConnectUpstream>,
) -> Result<axum::Json<ConnectedUpstream>, ApiError> {
    principal.require(KeyScope::Admin)?;
    let connections = connections(&state)?;
    let plan = ConnectPlan::of(&state, connections, &name, body, is_local).await?;
    let stored = connections.load().await?.get(&name).cloned();
    let connection = plan.merged_with(stored);
    let upstream = resolve_upstream(connections, &name, &connection).await?;
    if plan.connection.key.is_some() && upstream.key_origin() == Some(KeyOrigin::Environment) {
        let variable = upstream.key_variable().unwrap_or_default();
        return Err(ApiError::conflict(
            "key_in_environment",
            format!(
                "the server's environment variable {variable} holds a key for it, which takes precedence"
            ),
        )
        .param("key")
        .remedy(format!(
            "connect without a key to use that one, or unset {variable} and restart the server"
        )));
    }
    if let Some(variable) = upstream.missing_key() {
        return Err(ApiError::bad_request("key_needed", format!("{name} needs a key"))
            .param("key")
            .remedy(format!("send one, or set {variable} in the server's environment")));
    }
    let models = probe_upstream(&upstream, plan.model.as_deref()).await?;

    let changing = connections.lock_changes().await;
    connections.store(&name, connection.clone()).await?;
    // The configuration may have been reloaded during the test.
    let upstream = resolve_upstream(connections, &name, &connection).await?;
    state.app.set_upstream(upstream.clone())?;
    drop(changing);
    tracing::info!(upstream = %name, user = %principal.user, "an upstream was connected");

    let agent = match (&plan.agent, &plan.model) {
        (Some(agent), Some(model)) => {
            let model = format!("{name}/{model}");
            Some(agents::set_model(&state, &principal, agent, &model).await?.info.name)
        }
        _ => None,
    };
    crate::user_agents::load_user_agents(&state.app, &*state.catalog, &principal.user).await?;
    let agents = state.app.agents_for(&Some(principal.user));
    let upstream =
        UpstreamInfo { is_stored: Some(true), ..upstream_info(&state.app, &upstream, &agents, true) };
    let model_facts = known_facts(&state.app, &name, models.iter().map(String::as_str));
    Ok(axum::Json(ConnectedUpstream { upstream, models, model_facts, agent }))
}

/// Delete an upstream's stored key and connection. Running turns keep it.
#[utoipa::path(delete, path = "/v1/upstreams/{upstream}/key", tag = "upstreams",
    params(("upstream" = String, Path, description = "Name")), responses(
    (status = 204, description = "Deleted"),
    (status = 403, description = "The key lacks the scope `admin`", body = ErrorResponse),
    (status = 404, description = "Nothing is stored for the upstream", body = ErrorResponse),
))]
async fn delete_key(
    State(state): State<AppState>,
    principal: Principal,
    Path(name): Path<String>,
) -> Result<StatusCode, ApiError> {
    principal.require(KeyScope::Admin)?;
    let connections = connections(&state)?;
    let _changing = connections.lock_changes().await;
    if connections.remove(&name).await?.is_none() {
        return Err(ApiError::not_found("stored key of an upstream", &name));
    }
    // Configuration and environment may still have it.
    match connections.upstream(&name, None).await? {
        Some(upstream) => state.app.set_upstream(upstream)?,
        None => state.app.remove_upstream(&name),
    }
    tracing::info!(upstream = %name, user = %principal.user, "an upstream was forgotten");
    Ok(StatusCode::NO_CONTENT)
}

/// Validated settings, before any request is made.
struct ConnectPlan {
    connection: StoredUpstream,
    model: Option<String>,
    agent: Option<String>,
}

impl ConnectPlan {
    async fn of(
        state: &AppState,
        connections: &UpstreamKeys,
        name: &str,
        request: ConnectUpstream,
        is_local: bool,
    ) -> Result<Self, ApiError> {
        let key = match request.key.as_deref().filter(|key| !key.is_empty()).map(parse_pasted_key) {
            Some(Err(why)) => {
                return Err(ApiError::bad_request("bad_key", format!("this is no key: {why}"))
                    .param("key")
                    .remedy("copy the key again, without anything around it"));
            }
            Some(Ok(key)) => {
                // Registered before any use that could log or return it.
                connections.redact_secret(key.reveal());
                Some(key)
            }
            None => None,
        };
        if request.agent.is_some() && request.model.is_none() {
            let what = "connecting an agent requires a model";
            return Err(ApiError::bad_request("model_needed", what).param("model"));
        }
        let is_of_file = state.app.agents().iter().any(|agent| request.agent.as_ref() == Some(&agent.name));
        if is_of_file {
            let what = "an agent of that name is in the configuration file";
            return Err(ApiError::conflict("agent_is_read_only", what)
                .param("agent")
                .remedy("choose another name, or change the file"));
        }
        let own = match request.base_url {
            Some(base_url) => {
                Some(custom_address(name, &base_url, request.dialect.as_deref(), is_local).await?)
            }
            None => None,
        };
        let is_there = state.app.upstreams().iter().any(|upstream| upstream.name() == name);
        let is_ours = connections.load().await?.get(name).is_some();
        let is_known = providers::find(name).is_some();
        if name == DEMO || (own.is_some() && (is_known || (is_there && !is_ours))) {
            let what = format!("the name `{name}` is taken");
            return Err(ApiError::conflict("name_taken", what).remedy("call it something else"));
        }
        if own.is_none() && !is_known && !is_there && !is_ours {
            return Err(ApiError::not_found("upstream", name).remedy(
                "GET /v1/upstreams/known lists the known ones; with `base_url` any name is accepted",
            ));
        }
        Ok(Self {
            connection: StoredUpstream { key, endpoint: own },
            model: request.model,
            agent: request.agent,
        })
    }

    /// Stored values fill absent fields. A key is never sent to another address than it was given for.
    fn merged_with(&self, stored: Option<StoredUpstream>) -> StoredUpstream {
        let stored = stored.unwrap_or_default();
        match (&self.connection.endpoint, &self.connection.key) {
            (Some(own), None) if stored.endpoint.as_ref() != Some(own) => self.connection.clone(),
            (own, key) => {
                StoredUpstream { key: key.clone().or(stored.key), endpoint: own.clone().or(stored.endpoint) }
            }
        }
    }
}

async fn resolve_upstream(
    connections: &UpstreamKeys,
    name: &str,
    connection: &StoredUpstream,
) -> Result<Upstream, ApiError> {
    let upstream = connections.upstream(name, Some(connection.clone())).await?;
    upstream.ok_or_else(|| ApiError::not_found("upstream", name))
}

/// The models that it has; with a model, only if that one answers.
async fn probe_upstream(upstream: &Upstream, model: Option<&str>) -> Result<Vec<String>, ApiError> {
    let models = match upstream.models(LIST_TIMEOUT).await {
        Ok(models) => models,
        // A list is not needed if the request names a model.
        Err(error) if error.failure == ProbeFailure::NotListed && model.is_some() => Vec::new(),
        Err(error) => return Err(probe_error(upstream, &error)),
    };
    if let Some(model) = model {
        upstream.check_model(model, PROBE_TIMEOUT).await.map_err(|error| probe_error(upstream, &error))?;
    }
    Ok(models)
}

/// Error for an upstream that cannot be connected, at the field that can fix it.
pub(super) fn probe_error(upstream: &Upstream, error: &ProbeError) -> ApiError {
    let row = providers::find(upstream.name());
    let title = row.as_ref().map_or(upstream.name(), |row| row.title);
    let is_local = row.as_ref().is_some_and(KnownProvider::is_local);
    let with_reason = |what: &str| format!("{what}: {}", error.why);
    let bad = |status, code, what: &str| {
        ApiError::new(status, code, with_reason(what)).with_extra("why", error.why.clone())
    };
    match error.failure {
        ProbeFailure::Key => {
            let key_hint = row.and_then(|row| row.key_url).map(|url| format!(", or make one at {url}"));
            bad(StatusCode::UNPROCESSABLE_ENTITY, "wrong_key", &format!("{title} rejected this key"))
                .param("key")
                .remedy(format!("copy the whole key again{}", key_hint.unwrap_or_default()))
        }
        ProbeFailure::Connection => {
            let remedy = if is_local {
                format!("start {title}; it is expected at {}", upstream.address())
            } else {
                "check the network of this machine; a proxy is read from HTTPS_PROXY".to_owned()
            };
            bad(StatusCode::BAD_GATEWAY, "upstream_unreachable", &format!("{title} cannot be reached"))
                .remedy(remedy)
        }
        ProbeFailure::Model => bad(
            StatusCode::UNPROCESSABLE_ENTITY,
            "no_such_model",
            &format!("{title} has no such model for this key"),
        )
        .param("model")
        .remedy("choose another one"),
        ProbeFailure::Quota => bad(
            StatusCode::UNPROCESSABLE_ENTITY,
            "no_quota",
            &format!("{title} has nothing left for this key"),
        )
        .param("key")
        .remedy("the key is valid: add credit to the account, or use another key"),
        ProbeFailure::Busy => ApiError::too_many(
            "upstream_busy",
            with_reason(&format!("{title} is limiting the rate of requests")),
            10,
        )
        .remedy("try again in a moment"),
        ProbeFailure::NotListed => ApiError::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "model_needed",
            with_reason(&format!("{title} lists no models")),
        )
        .param("model")
        .remedy("name a model, as its documentation calls it"),
        _ => bad(StatusCode::BAD_GATEWAY, "upstream_refused", &format!("{title} refuses"))
            .remedy("read its message, or choose another model"),
    }
}

/// A custom address: accepted from clients on this machine, and never one that is reserved.
async fn custom_address(
    name: &str,
    base_url: &str,
    dialect: Option<&str>,
    is_local: bool,
) -> Result<CustomEndpoint, ApiError> {
    if !is_local {
        return Err(ApiError::forbidden(
            "not_from_here",
            "a custom `base_url` is accepted only from the server's own machine",
        )
        .param("base_url")
        .remedy("on that machine: throughline connect NAME --base-url URL --api openai-chat, or [upstreams.NAME] in throughline.toml"));
    }
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.len() > NAME_BYTES_MAX || !name.chars().all(is_plain) {
        let what =
            format!("an upstream is called by up to {NAME_BYTES_MAX} letters, digits, `-`, `_` or `.`");
        return Err(ApiError::bad_request("bad_name", what).param("upstream"));
    }
    let refuse = |why: String| ApiError::bad_request("bad_base_url", why).param("base_url");
    let dialect_name = dialect.unwrap_or(Dialect::OpenaiChat.name());
    let dialect =
        Dialect::ALL.iter().copied().find(|dialect| dialect.name() == dialect_name).ok_or_else(|| {
            let names: Vec<&str> = Dialect::ALL.iter().map(|dialect| dialect.name()).collect();
            ApiError::bad_request(
                "bad_dialect",
                format!("there is no wire format `{dialect_name}` to be spoken"),
            )
            .param("dialect")
            .remedy(format!("one of {}", names.join(", ")))
        })?;
    Upstream::new(name, dialect, base_url).map_err(|error| refuse(error.to_string()))?;
    let url = Url::parse(base_url.trim()).map_err(|error| refuse(error.to_string()))?;
    let port = url.port_or_known_default().unwrap_or(443);
    let addresses = match url.host() {
        Some(Host::Ipv4(address)) => vec![address.into()],
        Some(Host::Ipv6(address)) => vec![address.into()],
        Some(Host::Domain(host)) => match tokio::net::lookup_host((host, port)).await {
            Ok(addresses) => addresses.map(|address| address.ip()).collect(),
            Err(error) => return Err(refuse(format!("the name {host} cannot be found: {error}"))),
        },
        None => Vec::new(),
    };
    // A custom upstream is on this machine or in its network; other addresses that are not public are
    // refused.
    let is_own = |what: &str| matches!(what, "loopback" | "private");
    match addresses.iter().find_map(|address| non_public_reason(*address).filter(|what| !is_own(what))) {
        Some(what) => Err(refuse(format!("the request was not sent: the address is {what}"))),
        None => Ok(CustomEndpoint { dialect, base_url: base_url.trim().to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    async fn check(peer: [u8; 4], local: [u8; 4], header: Option<&str>, expected: bool) {
        let wire = ConnectionInfo {
            peer: (peer, 1).into(),
            local: (local, 8787).into(),
            canceller: Default::default(),
            draining: Default::default(),
        };
        let mut request = Request::builder().extension(wire);
        if let Some(name) = header {
            request = request.header(name, "127.0.0.1");
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let LocalCaller(is_local) = LocalCaller::from_request_parts(&mut parts, &()).await.unwrap();
        assert_eq!(is_local, expected, "{peer:?} {local:?} {header:?}");
    }

    #[tokio::test]
    async fn local_caller_is_decided_by_peer_address_not_headers() {
        let (here, lan, far) = ([127, 0, 0, 1], [192, 168, 1, 5], [203, 0, 113, 7]);
        check(here, here, None, true).await;
        check(far, lan, None, false).await;
        check(lan, lan, None, false).await;
        for header in ["x-forwarded-for", "forwarded", "x-real-ip", "via"] {
            check(far, lan, Some(header), false).await;
            check(here, here, Some(header), false).await;
        }
        let (mut parts, ()) = Request::new(()).into_parts();
        let LocalCaller(is_local) = LocalCaller::from_request_parts(&mut parts, &()).await.unwrap();
        assert!(!is_local, "nobody knows where it comes from");
    }
}
