//! `GET /v1/models`, and the resolution of a model's name: an agent, or a model at an upstream.

use crate::error::{ApiError, ErrorResponse};
use crate::extract::Path;
use crate::principal::{KeyScope, Principal};
use crate::state::AppState;
use crate::user_agents::load_user_agents;
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use std::collections::BTreeSet;
use throughline::config::ToolRendering;
use throughline::models::ModelFacts;
use throughline::{Agent, PersonaMode, Throughline, Upstream};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// `/v1/models`.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(list_rendered))
        .routes(routes!(get))
        .routes(routes!(get_rendered))
}

/// A model that is not there has its own status and code, which clients look for.
pub(super) fn to_openai_error(error: ApiError) -> ApiError {
    match error.code {
        "unknown_model" => ApiError { status: StatusCode::NOT_FOUND, code: "model_not_found", ..error },
        _ => error,
    }
}

/// All models.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ModelList {
    /// `list`
    object: &'static str,
    /// Agents by name, as `agent:rendering` too where the server lists these, then models as `upstream/model`.
    data: Vec<ModelEntry>,
}

/// One model, in OpenAI's form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ModelEntry {
    /// To be sent as `model`.
    id: String,
    /// `model`
    object: &'static str,
    /// Not known: 0. The field is required.
    created: i64,
    /// `throughline` for agents, else the upstream.
    owned_by: String,
    /// Known properties of the model; of an agent, those of its first model.
    #[serde(flatten)]
    facts: ModelProperties,
}

/// Known properties of a model. Absent if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ModelProperties {
    /// Tokens that it reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    context_length: Option<u64>,
    /// Most tokens of one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    /// It sees pictures.
    #[serde(skip_serializing_if = "Option::is_none")]
    vision: Option<bool>,
    /// It calls tools natively.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<bool>,
    /// It hears sound.
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<bool>,
}

impl From<ModelFacts> for ModelProperties {
    fn from(facts: ModelFacts) -> Self {
        let ModelFacts { context_tokens, output_tokens, vision, tools, audio } = facts;
        Self { context_length: context_tokens, max_output_tokens: output_tokens, vision, tools, audio }
    }
}

/// List agents and models.
#[utoipa::path(get, path = "/v1/models", tag = "models", responses(
    (status = 200, description = "Agents by name, then models", body = ModelList),
))]
async fn list(State(state): State<AppState>, principal: Principal) -> Result<Json<ModelList>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let agents = visible_agents(&state, &principal).await?;
    let data = model_entries(&state.app, &principal, &agents, &state.listed_renders);
    Ok(Json(ModelList { object: "list", data }))
}

/// List agents and models at the base URL `/render/{render}/v1`, which selects how tools are shown.
#[utoipa::path(get, path = "/render/{render}/v1/models", tag = "models",
    params(("render" = String, Path, description = "`none`, `text`, `details`, `reasoning`, `owui_event` or `vcp`")),
    responses(
        (status = 200, description = "Agents by name, then models", body = ModelList),
        (status = 404, description = "Unknown rendering", body = ErrorResponse),
    ))]
async fn list_rendered(
    State(state): State<AppState>,
    principal: Principal,
    Path(render): Path<String>,
) -> Result<Json<ModelList>, ApiError> {
    principal.require(KeyScope::Chat)?;
    parse_rendering(&render)?;
    let agents = visible_agents(&state, &principal).await?;
    Ok(Json(ModelList { object: "list", data: model_entries(&state.app, &principal, &agents, &[]) }))
}

/// The rendering with this name in the address.
///
/// # Errors
/// 404: no rendering has this name.
pub(super) fn parse_rendering(name: &str) -> Result<ToolRendering, ApiError> {
    let names = ToolRendering::ALL.map(|(name, _)| name).join(", ");
    ToolRendering::from_name(name)
        .ok_or_else(|| ApiError::not_found("rendering", name).remedy(format!("there are {names}")))
}

/// Get an agent or model. Names of models contain slashes.
#[utoipa::path(get, path = "/v1/models/{*id}", tag = "models",
    params(("id" = String, Path, description = "An agent, or `upstream/model`")),
    responses(
        (status = 200, description = "The model", body = ModelEntry),
        (status = 404, description = "Not found", body = ErrorResponse),
    ))]
async fn get(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
) -> Result<Json<ModelEntry>, ApiError> {
    Ok(Json(find_entry(&state, &principal, &id).await?))
}

/// Get an agent or model at the base URL `/render/{render}/v1`.
#[utoipa::path(get, path = "/render/{render}/v1/models/{*id}", tag = "models",
    params(
        ("render" = String, Path, description = "`none`, `text`, `details`, `reasoning`, `owui_event` or `vcp`"),
        ("id" = String, Path, description = "An agent, or `upstream/model`"),
    ),
    responses(
        (status = 200, description = "The model", body = ModelEntry),
        (status = 404, description = "Unknown rendering, or not found", body = ErrorResponse),
    ))]
async fn get_rendered(
    State(state): State<AppState>,
    principal: Principal,
    Path((render, id)): Path<(String, String)>,
) -> Result<Json<ModelEntry>, ApiError> {
    parse_rendering(&render)?;
    Ok(Json(find_entry(&state, &principal, &id).await?))
}

async fn find_entry(state: &AppState, principal: &Principal, id: &str) -> Result<ModelEntry, ApiError> {
    principal.require(KeyScope::Chat)?;
    let agents = visible_agents(state, principal).await?;
    let mut models = model_entries(&state.app, principal, &agents, &[]).into_iter();
    if let Some(model) = models.find(|model| model.id == id) {
        return Ok(model);
    }
    match agent_and_render(&agents, id) {
        Some((agent, _)) if may_use(&state.app, principal, agent) => {
            Ok(ModelEntry::agent(id, properties_of(&state.app, agent)))
        }
        _ => Err(ApiError::not_found("model", id).remedy("GET /v1/models lists the models").param("model")),
    }
}

impl ModelEntry {
    fn agent(name: &str, facts: ModelProperties) -> Self {
        Self { id: name.to_owned(), object: "model", created: 0, owned_by: "throughline".to_owned(), facts }
    }
}

/// The agents that this user can name, including those created over the API.
pub(super) async fn visible_agents(state: &AppState, principal: &Principal) -> Result<Vec<Agent>, ApiError> {
    load_user_agents(&state.app, &*state.catalog, &principal.user).await?;
    Ok(state.app.agents_for(&Some(principal.user.clone())))
}

/// True if the key may use this agent: by its name if it is one of the configuration, or all of its models.
fn may_use(app: &Throughline, principal: &Principal, agent: &Agent) -> bool {
    let limits = &principal.limits;
    if limits.key.models.is_none() {
        return true;
    }
    let is_configured = app.agents().iter().any(|known| known.name == agent.name);
    let models: Vec<String> =
        agent.models.iter().map(|model| format!("{}/{}", model.name, model.model)).collect();
    limits.allows(is_configured.then_some(agent.name.as_str()), models.iter().map(String::as_str))
}

/// Models of the list: agents, each again for every listed rendering, and models of upstreams, as far as the
/// key allows.
fn model_entries(
    app: &Throughline,
    principal: &Principal,
    agents: &[Agent],
    renders: &[ToolRendering],
) -> Vec<ModelEntry> {
    let suffixes = renders.iter().map(|render| format!(":{}", render.name()));
    let suffixes: Vec<String> = std::iter::once(String::new()).chain(suffixes).collect();
    let entries_of = |agent: &Agent| {
        let (name, facts) = (agent.name.clone(), properties_of(app, agent));
        suffixes
            .iter()
            .map(move |suffix| ModelEntry::agent(&format!("{name}{suffix}"), facts))
            .collect::<Vec<_>>()
    };
    let usable = agents.iter().filter(|agent| may_use(app, principal, agent));
    let mut models: Vec<ModelEntry> = usable.flat_map(entries_of).collect();
    let choices: BTreeSet<(&str, &str)> = agents
        .iter()
        .flat_map(|agent| agent.models.iter().map(|model| (model.name.as_str(), model.model.as_str())))
        .collect();
    let named = choices.into_iter().map(|(upstream, model)| ModelEntry {
        id: format!("{upstream}/{model}"),
        object: "model",
        created: 0,
        owned_by: upstream.to_owned(),
        facts: app.model_facts(upstream, model).into(),
    });
    models.extend(named.filter(|model| principal.limits.allows(None, [model.id.as_str()])));
    models
}

fn properties_of(app: &Throughline, agent: &Agent) -> ModelProperties {
    let first = agent.models.first();
    first.map(|first| app.model_facts(&first.name, &first.model).into()).unwrap_or_default()
}

/// Agent and model that a model's name selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ModelSelector {
    /// The agent; `None` = the server's own.
    pub agent: Option<String>,
    /// `upstream/model` that replaces the agent's.
    pub model: Option<String>,
    /// Rendering from the suffix of the name.
    pub render: Option<ToolRendering>,
}

impl ModelSelector {
    /// A model that is named directly is called without the agent's persona: the client wants the model, not
    /// the agent. So is an unknown name, if there is one upstream that may have it.
    pub(super) fn persona(&self) -> PersonaMode {
        match self.agent {
            Some(_) => PersonaMode::Agent,
            None => PersonaMode::BareModel,
        }
    }
}

/// `agent`, `agent:rendering`, `upstream/model`, or a model's name where there is one upstream.
pub(super) fn parse_selector(agents: &[Agent], name: &str) -> ModelSelector {
    let agent = |agent: &str, render| ModelSelector { agent: Some(agent.to_owned()), model: None, render };
    if agents.iter().any(|known| known.name == name) {
        return agent(name, None);
    }
    match agent_and_render(agents, name) {
        Some((known, render)) => agent(&known.name, Some(render)),
        None => ModelSelector { agent: None, model: Some(name.to_owned()), render: None },
    }
}

/// Splits an agent's name from a suffix with a rendering. Only after an agent's name: `llama2:text` is a
/// model of Ollama's.
fn agent_and_render<'a>(agents: &'a [Agent], name: &str) -> Option<(&'a Agent, ToolRendering)> {
    let (agent, render) = name.rsplit_once(':')?;
    let render = ToolRendering::from_name(render)?;
    agents.iter().find(|known| known.name == agent).map(|agent| (agent, render))
}

/// The first model to call, by its upstream's name for it, and the upstream, if it is configured.
pub(super) fn upstream_of(
    app: &Throughline,
    agents: &[Agent],
    named: &ModelSelector,
) -> Option<(Upstream, String)> {
    let upstreams = app.upstreams();
    let at = |name: &str, model: &str| {
        let upstream = upstreams.iter().find(|upstream| upstream.name() == name);
        upstream.map(|upstream| (upstream.clone(), model.to_owned()))
    };
    if let Some(model) = &named.model {
        let by_name = model.split_once('/').and_then(|(upstream, model)| at(upstream, model));
        return by_name.or_else(|| Some((upstreams.first()?.clone(), model.clone())));
    }
    let first = agent_of(agents, named)?.models.first()?;
    at(&first.name, &first.model)
}

/// The agent that answers, if it is named or the only one.
pub(super) fn agent_of<'a>(agents: &'a [Agent], named: &ModelSelector) -> Option<&'a Agent> {
    match (&named.agent, agents) {
        (Some(name), _) => agents.iter().find(|agent| agent.name == *name),
        (None, [only]) => Some(only),
        (None, _) => agents.iter().find(|agent| agent.name == "default"),
    }
}
