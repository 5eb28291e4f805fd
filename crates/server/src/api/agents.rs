//! Agents of the configuration, which are read-only here, and agents of users.
//!
//! An agent made here has a prompt, models among the upstreams that there are, and rules for the tools that there are. What
//! runs code or decides where keys are sent (upstreams, MCP servers, commands, HTTP tools, folders) is in the configuration
//! alone, and has no field here.

use super::page::ListPage;
use super::view::{mode_and_protocol, tool_infos};
use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Json, Path, Query};
use crate::principal::{KeyScope, Principal};
use crate::stamps::now_ms;
use crate::state::AppState;
use crate::user_agents::{SETTINGS_FIELD, load_user_agents};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use throughline::Agent;
use throughline::config::FieldError;
use throughline::views::{PromptDescription, ToolDescription};
use throughline_store::{DocumentKind, DocumentPrecondition, NewDocument, PutOutcome, StoredDocument};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// `/v1/agents`.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, replace, delete))
        .routes(routes!(duplicate))
        .routes(routes!(update_toggles))
        .routes(routes!(get_prompt))
        .routes(routes!(list_tools))
}

/// An agent in short.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct AgentInfo {
    /// Name.
    #[schema(example = "researcher")]
    pub name: String,
    /// `file` if it is part of the configuration, `stored` if it was created over the API.
    #[schema(example = "stored")]
    pub origin: &'static str,
    /// True if it cannot be changed over the API; duplicate it instead.
    pub read_only: bool,
    /// True for the default agent.
    pub is_default: bool,
    /// Its first model, as `upstream/model`.
    #[schema(example = "deepseek/deepseek-chat")]
    pub model: Option<String>,
    /// Tool-calling mode: `auto`, `native` or `text`.
    pub mode: String,
    /// True if the agent has tools.
    pub tools_enabled: bool,
    /// Version, which grows with each change. Absent for agents of the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Time of the last change in milliseconds since 1970. Absent for agents of the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<i64>,
    /// Reason why it is unusable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Likely mistakes: rules that match no tool, each with the nearest name. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub warnings: Vec<String>,
}

/// An agent in detail.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct AgentDetail {
    /// In short.
    #[serde(flatten)]
    pub info: AgentInfo,
    /// Settings in the form of `[agents.NAME]`, defaults included.
    #[schema(value_type = AgentSettings)]
    pub settings: Value,
}

/// Settings of an agent as JSON: the fields, checks and messages of `[agents.NAME]` in the configuration. See
/// docs/configuration.md for each field.
#[derive(ToSchema)]
#[allow(dead_code, reason = "description only; settings are parsed by the configuration")]
pub(crate) struct AgentSettings {
    /// Model as `upstream/model`; the upstream must exist.
    #[schema(example = "deepseek/deepseek-chat")]
    model: String,
    /// Fallback models, used only before the first token.
    #[schema(required = false)]
    fallback: Vec<String>,
    /// Tool-calling mode: `auto`, `native` or `text`.
    mode: Option<String>,
    /// Template of the system prompt.
    #[schema(example = "You are {{ agent }}. Today is {{ date }}.")]
    prompt: Option<String>,
    /// Temperature, 0 to 2.
    temperature: Option<f64>,
    /// Maximum number of tokens in one step.
    max_output_tokens: Option<u32>,
    /// Tools that the provider runs itself: `web_search`, `code_execution`.
    #[schema(required = false)]
    hosted: Vec<String>,
    /// Further fields of the request body.
    #[schema(required = false, value_type = Object)]
    extra: Value,
    /// Use of tools.
    #[schema(required = false)]
    tool_call: ToolCallSettings,
    /// Rules that allow, ask about or deny tool calls; the first match decides.
    #[schema(required = false)]
    policy: Vec<Value>,
    /// Permissions in one word, as rules after `policy`: `read_only`, `workspace` or `everything`.
    permissions: Option<String>,
    /// Rules that replace or hide parts of texts, in what people are shown or in what the model is told; in their order.
    #[schema(required = false)]
    text_rules: Vec<TextRuleBody>,
    /// Loop guard.
    #[schema(required = false, value_type = Object)]
    guard: Value,
    /// Delivery of messages sent while a turn runs: `next_step` or `after_turn`.
    #[schema(required = false)]
    steering: String,
    /// Handling of a turn whose process died, when another takes it over: `continue` or `end`.
    #[schema(required = false)]
    on_interrupted: String,
    /// Limits that override those of the server.
    #[schema(required = false, value_type = Object)]
    limits: Value,
}

/// A rule that replaces or hides parts of texts. See docs/text-rules.md.
#[derive(ToSchema)]
#[allow(dead_code, reason = "a description only")]
pub(crate) struct TextRuleBody {
    /// Name for people.
    name: Option<String>,
    /// Regular expression in linear time; it matches at least one character.
    #[schema(example = "(?m)^DEBUG.*$")]
    pattern: String,
    /// Replacement of each match, with `$1` for groups; or set `hide`.
    replace: Option<String>,
    /// Leaves each match out.
    #[schema(required = false)]
    hide: bool,
    /// `shown` (what people see) or `model` (what the model is told).
    #[schema(example = "shown")]
    r#in: String,
    /// `assistant`, `user` (only for `model`) and `tool`. Default: `assistant`.
    #[schema(required = false)]
    target_roles: Vec<String>,
    /// Default true.
    #[schema(required = false)]
    enabled: bool,
}

/// Use of tools.
#[derive(ToSchema)]
#[allow(dead_code, reason = "a description only")]
pub(crate) struct ToolCallSettings {
    /// True if the agent has tools. Default false.
    #[schema(required = false)]
    enabled: bool,
    /// `auto`, or `manual`: each call waits for a person.
    mode: Option<String>,
    /// Toggles by group or tool; the more specific name wins.
    #[schema(required = false)]
    tool_toggles: BTreeMap<String, bool>,
    /// Toggle of tools that are not listed. Default true.
    #[schema(required = false)]
    default_tool_enabled: bool,
    /// Maximum number of steps with calls in a turn. Default 5.
    #[schema(required = false)]
    max_iterations: u32,
    /// Default time limit of tools, in milliseconds.
    #[schema(required = false)]
    timeout_ms: u64,
    /// Ask before every call.
    #[schema(required = false)]
    require_confirmation: bool,
    /// Run the calls of a step in parallel.
    #[schema(required = false)]
    parallel_execution: bool,
    /// Protocol of text mode: `vcp` or `xml`.
    #[schema(required = false)]
    protocol: String,
    /// Start of tools without side effects: `eager` or `after_stream`.
    #[schema(required = false)]
    start: String,
    /// Role of tool results in text mode: `user` or `tool`.
    #[schema(required = false)]
    results: String,
}

/// A new agent.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateAgent {
    /// 1 to 64 letters, digits, `-`, `_` or `.`.
    #[schema(example = "researcher")]
    pub name: String,
    /// Settings of the new agent.
    #[schema(value_type = AgentSettings)]
    pub settings: Value,
}

/// New settings of an agent.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplaceAgent {
    /// New settings, replacing all of the old ones.
    #[schema(value_type = AgentSettings)]
    pub settings: Value,
    /// Expected current version; a different one is a conflict. Absent to replace any version.
    #[serde(default)]
    pub version: Option<u64>,
}

/// A copy that can be changed.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DuplicateAgent {
    /// Name.
    #[schema(example = "my-default")]
    pub name: String,
}

/// Tool toggles. `null` removes a toggle.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct UpdateToggles {
    /// Toggles by tool (`files.read`) or group (`files`).
    pub tools: BTreeMap<String, Option<bool>>,
    /// Toggles by source (`mcp:files`), applied to every tool that it has now.
    pub sources: BTreeMap<String, Option<bool>>,
}

/// Tool-calling mode of a prompt.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PromptQuery {
    /// `auto`, `native` or `text`; absent for the agent's own.
    mode: Option<String>,
    /// `vcp` or `xml`; absent for the agent's own. Implies `text`.
    protocol: Option<String>,
}

/// The mistake that the configuration file would have, at the field of the request.
pub(super) fn invalid_agent(error: FieldError) -> ApiError {
    let path = match error.path.as_str() {
        "" => SETTINGS_FIELD.to_owned(),
        "name" => "name".to_owned(),
        path => format!("{SETTINGS_FIELD}.{path}"),
    };
    let refused = ApiError::bad_request("invalid_agent", error.message).param(path);
    match error.help {
        Some(help) => refused.remedy(help),
        None => refused,
    }
}

fn agent_read_only(name: &str) -> ApiError {
    ApiError::conflict("agent_is_read_only", format!("the agent `{name}` is of the configuration file"))
        .remedy(format!("change the file, or make a copy: POST /v1/agents/{name}/duplicate"))
}

fn agent_not_found(name: &str) -> ApiError {
    ApiError::not_found("agent", name)
}

fn configured_agent(state: &AppState, name: &str) -> Option<Agent> {
    state.app.agents().into_iter().find(|agent| agent.name == name)
}

fn default_name(state: &AppState) -> Option<String> {
    state.app.agent_for(None, &None).ok().map(|agent| agent.name.clone())
}

/// An agent in short form; if its settings are invalid, the part of them that can be read.
fn agent_info(name: &str, settings: &Value, default: Option<&str>) -> AgentInfo {
    let text = |pointer: &str| settings.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    AgentInfo {
        name: name.to_owned(),
        origin: "file",
        read_only: true,
        is_default: default == Some(name),
        model: text("/model"),
        mode: text("/mode").unwrap_or_else(|| "auto".to_owned()),
        tools_enabled: settings.pointer("/tool_call/enabled") == Some(&Value::Bool(true)),
        version: None,
        updated_at: None,
        fault: None,
        warnings: Vec::new(),
    }
}

/// Likely mistakes in the settings of a valid agent.
fn agent_warnings(state: &AppState, agent: &Agent) -> Vec<String> {
    state.app.toolbox().unmatched_rules(&agent.policy).iter().map(ToString::to_string).collect()
}

fn stored_agent(state: &AppState, document: StoredDocument) -> AgentDetail {
    let mut settings = document.body.get(SETTINGS_FIELD).cloned().unwrap_or_default();
    let mut warned = Vec::new();
    let fault = match state.app.parse_agent(&document.name, &settings) {
        Ok(_) if configured_agent(state, &document.name).is_some() => Some(
            "the configuration file now defines an agent of this name, which takes precedence".to_owned(),
        ),
        Ok(agent) => {
            settings = agent.to_settings();
            warned = agent_warnings(state, &agent);
            None
        }
        Err(error) => Some(error.to_string()),
    };
    let info = AgentInfo {
        origin: "stored",
        read_only: false,
        version: Some(document.version),
        updated_at: Some(document.updated_at),
        fault,
        warnings: warned,
        ..agent_info(&document.name, &settings, None)
    };
    AgentDetail { info, settings }
}

/// List agents: those of the configuration first, each by name.
#[utoipa::path(get, path = "/v1/agents", tag = "agents", responses(
    (status = 200, description = "The complete list", body = ListPage<AgentInfo>),
))]
async fn list(
    State(state): State<AppState>,
    principal: Principal,
) -> Result<axum::Json<ListPage<AgentInfo>>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let default = default_name(&state);
    let mut items: Vec<AgentInfo> = state
        .app
        .agents()
        .iter()
        .map(|agent| AgentInfo {
            warnings: agent_warnings(&state, agent),
            ..agent_info(&agent.name, &agent.to_settings(), default.as_deref())
        })
        .collect();
    let documents = state.catalog.documents(&principal.user, DocumentKind::Agent).await?;
    items.extend(documents.into_iter().map(|document| stored_agent(&state, document).info));
    Ok(axum::Json(ListPage::complete(items)))
}

/// Get an agent with its settings.
#[utoipa::path(get, path = "/v1/agents/{agent}", tag = "agents",
    params(("agent" = String, Path, description = "Name")), responses(
    (status = 200, description = "The agent", body = AgentDetail),
    (status = 404, description = "Not found", body = ErrorResponse),
))]
async fn get(
    State(state): State<AppState>,
    principal: Principal,
    Path(name): Path<String>,
) -> Result<axum::Json<AgentDetail>, ApiError> {
    principal.require(KeyScope::Chat)?;
    find_agent(&state, &principal, &name).await.map(axum::Json)
}

/// An agent of the configuration or of this user, be it one that cannot be used; 404 else.
pub(super) async fn find_agent(
    state: &AppState,
    principal: &Principal,
    name: &str,
) -> Result<AgentDetail, ApiError> {
    if let Some(agent) = configured_agent(state, name) {
        let settings = agent.to_settings();
        let warnings = agent_warnings(state, &agent);
        let info = AgentInfo { warnings, ..agent_info(name, &settings, default_name(state).as_deref()) };
        return Ok(AgentDetail { info, settings });
    }
    let document = state.catalog.document(&principal.user, DocumentKind::Agent, name).await?;
    Ok(stored_agent(state, document.ok_or_else(|| agent_not_found(name))?))
}

/// Create an agent. New turns can use it.
#[utoipa::path(post, path = "/v1/agents", tag = "agents", request_body = CreateAgent, responses(
    (status = 201, description = "Created", body = AgentDetail),
    (status = 400, description = "Invalid settings; `param` names the field", body = ErrorResponse),
    (status = 403, description = "The key lacks the scope `agents`", body = ErrorResponse),
    (status = 409, description = "The name is taken", body = ErrorResponse),
))]
async fn create(
    State(state): State<AppState>,
    principal: Principal,
    Json(body): Json<CreateAgent>,
) -> Result<Response, ApiError> {
    principal.require(KeyScope::Agents)?;
    let detail =
        save_agent(&state, &principal, &body.name, body.settings, DocumentPrecondition::Absent).await?;
    Ok(created_response(detail))
}

fn created_response(detail: AgentDetail) -> Response {
    let location = format!("/v1/agents/{}", percent_encoded(&detail.info.name));
    (StatusCode::CREATED, [(header::LOCATION, location)], axum::Json(detail)).into_response()
}

fn percent_encoded(name: &str) -> String {
    let mut encoded = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => encoded.push(char::from(byte)),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Replace the settings of an agent.
#[utoipa::path(put, path = "/v1/agents/{agent}", tag = "agents",
    params(("agent" = String, Path, description = "Name")), request_body = ReplaceAgent, responses(
    (status = 200, description = "The new state", body = AgentDetail),
    (status = 400, description = "Invalid settings; `param` names the field", body = ErrorResponse),
    (status = 403, description = "The key lacks the scope `agents`", body = ErrorResponse),
    (status = 404, description = "Not found", body = ErrorResponse),
    (status = 409, description = "The agent is defined in the configuration, or was changed by another \
     request", body = ErrorResponse),
))]
async fn replace(
    State(state): State<AppState>,
    principal: Principal,
    Path(name): Path<String>,
    Json(body): Json<ReplaceAgent>,
) -> Result<axum::Json<AgentDetail>, ApiError> {
    principal.require(KeyScope::Agents)?;
    let existing = find_stored(&state, &principal, &name).await?;
    let expect = DocumentPrecondition::Version(body.version.unwrap_or(existing.version));
    save_agent(&state, &principal, &name, body.settings, expect).await.map(axum::Json)
}

/// The stored agent of a name; those of the configuration are refused.
async fn find_stored(
    state: &AppState,
    principal: &Principal,
    name: &str,
) -> Result<StoredDocument, ApiError> {
    if configured_agent(state, name).is_some() {
        return Err(agent_read_only(name));
    }
    let document = state.catalog.document(&principal.user, DocumentKind::Agent, name).await?;
    document.ok_or_else(|| agent_not_found(name))
}

/// Checks settings as the configuration's are, keeps them, and makes the agent known.
async fn save_agent(
    state: &AppState,
    principal: &Principal,
    name: &str,
    settings: Value,
    expect: DocumentPrecondition,
) -> Result<AgentDetail, ApiError> {
    let agent = state.app.parse_agent(name, &settings).map_err(invalid_agent)?;
    if configured_agent(state, name).is_some() {
        return Err(ApiError::conflict(
            "name_taken",
            format!("the configuration file has an agent `{name}`"),
        )
        .param("name")
        .remedy("choose another name"));
    }
    // Before the change: what is not known yet would be read with it and be older than it.
    load_user_agents(&state.app, &*state.catalog, &principal.user).await?;
    let body = json!({ SETTINGS_FIELD: agent.to_settings() });
    let new = NewDocument {
        kind: DocumentKind::Agent,
        name: name.to_owned(),
        body,
        precondition: expect,
        now: now_ms(),
    };
    match state.catalog.put_document(&principal.user, new).await? {
        PutOutcome::Written(document) => {
            state.app.set_agent(Some(principal.user.clone()), agent);
            Ok(stored_agent(state, document))
        }
        PutOutcome::Conflict(existing) => Err(match (expect, existing) {
            (DocumentPrecondition::Absent, _) => {
                ApiError::conflict("name_taken", format!("there is an agent `{name}` already")).param("name")
            }
            (_, None) => agent_not_found(name),
            (_, Some(existing)) => {
                ApiError::conflict("changed_meanwhile", format!("`{name}` was changed by another request"))
                    .remedy("load the current version and apply the change to it")
                    .with_extra("version", existing.version)
            }
        }),
    }
}

/// Sets the model of a stored agent. If none has this name, a copy of the default agent is stored under it.
pub(super) async fn set_model(
    state: &AppState,
    principal: &Principal,
    name: &str,
    model: &str,
) -> Result<AgentDetail, ApiError> {
    if configured_agent(state, name).is_some() {
        return Err(agent_read_only(name).param("agent"));
    }
    let document = state.catalog.document(&principal.user, DocumentKind::Agent, name).await?;
    let (settings, expect) = match document {
        Some(existing) => {
            (existing.body.get(SETTINGS_FIELD).cloned(), DocumentPrecondition::Version(existing.version))
        }
        None => (Some(state.app.agent_for(None, &None)?.to_settings()), DocumentPrecondition::Absent),
    };
    let mut settings = match settings {
        Some(Value::Object(settings)) => settings,
        _ => Map::new(),
    };
    settings.insert("model".to_owned(), model.into());
    // They were for the model that it had.
    settings.remove("fallback");
    save_agent(state, principal, name, Value::Object(settings), expect).await
}

/// Delete an agent. Running turns keep it.
#[utoipa::path(delete, path = "/v1/agents/{agent}", tag = "agents",
    params(("agent" = String, Path, description = "Name")), responses(
    (status = 204, description = "Deleted"),
    (status = 403, description = "The key lacks the scope `agents`", body = ErrorResponse),
    (status = 404, description = "Not found", body = ErrorResponse),
    (status = 409, description = "The agent is part of the configuration", body = ErrorResponse),
))]
async fn delete(
    State(state): State<AppState>,
    principal: Principal,
    Path(name): Path<String>,
) -> Result<StatusCode, ApiError> {
    principal.require(KeyScope::Agents)?;
    find_stored(&state, &principal, &name).await?;
    state.catalog.remove_document(&principal.user, DocumentKind::Agent, &name).await?;
    state.app.remove_agent(&Some(principal.user), &name);
    Ok(StatusCode::NO_CONTENT)
}

/// Duplicate any agent; the copy can be changed.
#[utoipa::path(post, path = "/v1/agents/{agent}/duplicate", tag = "agents",
    params(("agent" = String, Path, description = "Name of the original")), request_body = DuplicateAgent, responses(
    (status = 201, description = "Created", body = AgentDetail),
    (status = 400, description = "Invalid request", body = ErrorResponse),
    (status = 403, description = "The key lacks the scope `agents`", body = ErrorResponse),
    (status = 404, description = "Not found", body = ErrorResponse),
    (status = 409, description = "The name is taken", body = ErrorResponse),
))]
async fn duplicate(
    State(state): State<AppState>,
    principal: Principal,
    Path(name): Path<String>,
    Json(body): Json<DuplicateAgent>,
) -> Result<Response, ApiError> {
    principal.require(KeyScope::Agents)?;
    let settings = find_agent(&state, &principal, &name).await?.settings;
    save_agent(&state, &principal, &body.name, settings, DocumentPrecondition::Absent)
        .await
        .map(created_response)
}

/// Toggle tools of an agent by name, group or source.
#[utoipa::path(patch, path = "/v1/agents/{agent}/toggles", tag = "agents",
    params(("agent" = String, Path, description = "Name")), request_body = UpdateToggles, responses(
    (status = 200, description = "The new state", body = AgentDetail),
    (status = 400, description = "Unknown tool, group or source", body = ErrorResponse),
    (status = 403, description = "The key lacks the scope `agents`", body = ErrorResponse),
    (status = 404, description = "Not found", body = ErrorResponse),
    (status = 409, description = "The agent is defined in the configuration, or was changed by another \
     request", body = ErrorResponse),
))]
async fn update_toggles(
    State(state): State<AppState>,
    principal: Principal,
    Path(name): Path<String>,
    Json(body): Json<UpdateToggles>,
) -> Result<axum::Json<AgentDetail>, ApiError> {
    principal.require(KeyScope::Agents)?;
    let document = find_stored(&state, &principal, &name).await?;
    let registry = state.app.tools_for(&Some(principal.user.clone()));
    let mut changes: BTreeMap<String, Option<bool>> = BTreeMap::new();
    for (source, switch) in body.sources {
        let mut of_source = registry
            .iter()
            .filter(|tool| tool.spec().source == source)
            .map(|tool| &tool.spec().name)
            .peekable();
        if of_source.peek().is_none() {
            let what = format!("`{source}` provides no tools at the moment");
            return Err(ApiError::bad_request("unknown_source", what).param(format!("sources.{source}")));
        }
        changes.extend(of_source.map(|tool| (tool.as_str().to_owned(), switch)));
    }
    for (tool, switch) in body.tools {
        let toggles =
            throughline::tools::ToolToggles::default().set(tool.clone(), throughline::tools::ToolToggle::On);
        // A toggle can be removed even if its tool no longer exists.
        if switch.is_some() && !registry.unknown_toggles(&toggles).is_empty() {
            let what = format!("no tool and no group is called `{tool}` now");
            return Err(ApiError::bad_request("unknown_tool", what).param(format!("tools.{tool}")));
        }
        changes.insert(tool, switch);
    }
    let mut settings = document.body.get(SETTINGS_FIELD).cloned().unwrap_or_default();
    apply_toggles(&mut settings, changes);
    save_agent(&state, &principal, &name, settings, DocumentPrecondition::Version(document.version))
        .await
        .map(axum::Json)
}

/// Sets and takes away switches in the settings of an agent.
fn apply_toggles(settings: &mut Value, changes: BTreeMap<String, Option<bool>>) {
    let Some(switches) =
        member_mut(settings, "tool_call").and_then(|tools| member_mut(tools, "tool_toggles"))
    else {
        return;
    };
    let Some(switches) = switches.as_object_mut() else { return };
    for (tool, switch) in changes {
        match switch {
            Some(on) => switches.insert(tool, Value::Bool(on)),
            None => switches.remove(&tool),
        };
    }
}

/// An object inside of an object, made if it is not there.
fn member_mut<'a>(of: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    Some(of.as_object_mut()?.entry(name).or_insert_with(|| Value::Object(Map::new())))
}

/// Get the prompt of an agent, with its cost in tokens.
#[utoipa::path(get, path = "/v1/agents/{agent}/prompt", tag = "agents",
    params(("agent" = String, Path, description = "Name"), PromptQuery), responses(
    (status = 200, description = "Prompt, tools and tokens", body = PromptDescription),
    (status = 400, description = "Unknown mode or protocol", body = ErrorResponse),
    (status = 404, description = "Not found", body = ErrorResponse),
))]
async fn get_prompt(
    State(state): State<AppState>,
    principal: Principal,
    Path(name): Path<String>,
    Query(query): Query<PromptQuery>,
) -> Result<axum::Json<PromptDescription>, ApiError> {
    principal.require(KeyScope::Chat)?;
    require_agent(&state, &principal, &name).await?;
    let (mode, protocol) = mode_and_protocol(query.mode.as_deref(), query.protocol.as_deref())?;
    let offer = state.app.select_tools_for_user(&Some(principal.user), Some(&name), mode, protocol)?;
    Ok(axum::Json(PromptDescription::from(&offer)))
}

/// The agent is there for this user; 404 else.
pub(super) async fn require_agent(
    state: &AppState,
    principal: &Principal,
    name: &str,
) -> Result<(), ApiError> {
    load_user_agents(&state.app, &*state.catalog, &principal.user).await?;
    let owner = Some(principal.user.clone());
    state.app.agent_for(Some(name), &owner).map(drop).map_err(|_| agent_not_found(name))
}

/// List all tools for an agent: those that it is offered, and the reason for each of the others.
#[utoipa::path(get, path = "/v1/agents/{agent}/tools", tag = "agents",
    params(("agent" = String, Path, description = "Name"), PromptQuery), responses(
    (status = 200, description = "Every tool by name", body = ListPage<ToolDescription>),
    (status = 400, description = "Unknown mode or protocol", body = ErrorResponse),
    (status = 404, description = "Not found", body = ErrorResponse),
))]
async fn list_tools(
    State(state): State<AppState>,
    principal: Principal,
    Path(name): Path<String>,
    Query(query): Query<PromptQuery>,
) -> Result<axum::Json<ListPage<ToolDescription>>, ApiError> {
    principal.require(KeyScope::Chat)?;
    require_agent(&state, &principal, &name).await?;
    let (mode, protocol) = mode_and_protocol(query.mode.as_deref(), query.protocol.as_deref())?;
    let offer = state.app.select_tools_for_user(&Some(principal.user), Some(&name), mode, protocol)?;
    Ok(axum::Json(ListPage::complete(tool_infos(&offer))))
}
