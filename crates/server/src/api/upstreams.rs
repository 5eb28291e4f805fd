//! Configured upstreams and their readiness. Keys are never shown.

mod connect;
pub(crate) mod probe;

use super::page::ListPage;
use crate::error::ApiError;
use crate::principal::{KeyScope, Principal};
use crate::state::AppState;
use axum::extract::State;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use throughline::models::ModelFacts;
use throughline::{Agent, KeyOrigin, Throughline, Upstream};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// `/v1/upstreams`.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list)).merge(connect::routes()).merge(probe::routes())
}

/// Known properties of a model, as the description shows [`ModelFacts`]. Absent if unknown.
#[derive(ToSchema)]
#[schema(as = ModelFacts)]
#[expect(dead_code, reason = "its fields are only described")]
struct ModelFactsSchema {
    /// Tokens of prompt and answer together or, where the maker counts so, of the prompt.
    context_tokens: Option<u64>,
    /// Most tokens of one answer.
    output_tokens: Option<u64>,
    /// It sees pictures.
    vision: Option<bool>,
    /// It calls tools natively.
    tools: Option<bool>,
    /// It hears sound.
    audio: Option<bool>,
}

/// A model endpoint.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct UpstreamInfo {
    /// The part before the `/` of `upstream/model`.
    #[schema(example = "deepseek")]
    pub name: String,
    /// Dialect of its API.
    #[schema(example = "openai-chat")]
    pub dialect: String,
    /// `present`, `missing`, or `not_needed`.
    #[schema(example = "present")]
    pub key: &'static str,
    /// Where a key that is present comes from: `environment`, which comes first, `stored` (when it was connected), or `program`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "environment")]
    pub key_from: Option<&'static str>,
    /// Environment variable for the key. Only for keys with the scope `admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_variable: Option<String>,
    /// Base URL. Only for keys with the scope `admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// True if it was connected while the server ran and can be removed here. Only for keys with the scope `admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_stored: Option<bool>,
    /// Its last answer to a turn on this server, if that was a failure. Only for keys with the scope `admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<UpstreamLastFailure>,
    /// Models that agents of yours use there.
    pub models: Vec<String>,
    /// Known properties of these models: context size, output size and modalities.
    #[schema(value_type = BTreeMap<String, ModelFactsSchema>)]
    pub model_facts: BTreeMap<String, ModelFacts>,
}

/// An upstream's last answer, which was a failure.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct UpstreamLastFailure {
    /// `rate_limit`, `retry`, `fallback`, or the code of the turn's error.
    #[schema(example = "fallback")]
    pub code: String,
    /// The upstream's own words.
    #[schema(example = "401: invalid api key")]
    pub message: String,
    /// When, in milliseconds since 1970.
    pub at: i64,
}

/// List upstreams with their addresses and whether each has a key, but never the key.
#[utoipa::path(get, path = "/v1/upstreams", tag = "upstreams", responses(
    (status = 200, description = "All upstreams, by name", body = ListPage<UpstreamInfo>),
))]
async fn list(
    State(state): State<AppState>,
    principal: Principal,
) -> Result<axum::Json<ListPage<UpstreamInfo>>, ApiError> {
    principal.require(KeyScope::Chat)?;
    crate::user_agents::load_user_agents(&state.app, &*state.catalog, &principal.user).await?;
    let is_admin = principal.scopes.has(KeyScope::Admin);
    let agents = state.app.agents_for(&Some(principal.user));
    let stored = match &state.upstream_keys {
        // An unreadable file is skipped: upstreams work without it.
        Some(connections) if is_admin => connections.load().await.ok(),
        _ => None,
    };
    let is_stored = |name: &str| stored.as_ref().map(|keys| keys.get(name).is_some());
    let describe = |upstream: &Upstream| UpstreamInfo {
        is_stored: is_stored(upstream.name()),
        last_failure: state.telemetry.last_failure(upstream.name()).filter(|_| is_admin).map(|failure| {
            UpstreamLastFailure {
                code: failure.code,
                message: failure.why.unwrap_or_default(),
                at: failure.at,
            }
        }),
        ..upstream_info(&state.app, upstream, &agents, is_admin)
    };
    Ok(axum::Json(ListPage::complete(state.app.upstreams().iter().map(describe).collect())))
}

/// `runs_it` adds the fields for operators.
fn upstream_info(app: &Throughline, upstream: &Upstream, agents: &[Agent], is_admin: bool) -> UpstreamInfo {
    let used = agents.iter().flat_map(|agent| &agent.models);
    let models: BTreeSet<&str> =
        used.filter(|choice| choice.name == upstream.name()).map(|choice| choice.model.as_str()).collect();
    UpstreamInfo {
        name: upstream.name().to_owned(),
        dialect: upstream.wire_format().name().to_owned(),
        key: key_state(upstream),
        key_from: upstream.key_origin().map(KeyOrigin::name),
        key_variable: upstream.key_variable().filter(|_| is_admin).map(str::to_owned),
        address: is_admin.then(|| upstream.address()),
        is_stored: None,
        last_failure: None,
        model_facts: known_facts(app, upstream.name(), models.iter().copied()),
        models: models.into_iter().map(str::to_owned).collect(),
    }
}

/// Known properties of these models of an upstream.
fn known_facts<'a>(
    app: &Throughline,
    upstream: &str,
    models: impl IntoIterator<Item = &'a str>,
) -> BTreeMap<String, ModelFacts> {
    let facts = models.into_iter().map(|model| (model.to_owned(), app.model_facts(upstream, model)));
    facts.filter(|(_, facts)| *facts != ModelFacts::default()).collect()
}

fn key_state(upstream: &Upstream) -> &'static str {
    match (upstream.has_key(), upstream.missing_key()) {
        (true, _) => "present",
        (false, Some(_)) => "missing",
        (false, None) => "not_needed",
    }
}
