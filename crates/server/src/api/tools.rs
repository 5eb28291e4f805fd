//! Tools: listing them, parsing a reply for calls, and running one manually.

use super::agents::require_agent;
use super::page::ListPage;
use super::view::{
    PROMPT_MODES, SourceFaultInfo, ToolList, ToolSourceInfo, mode_and_protocol, tool_info, tool_infos,
    variant_name,
};
use crate::approval_store::stored_approval;
use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Json, Path, Query};
use crate::principal::{KeyScope, Principal};
use crate::state::AppState;
use crate::user_agents::load_user_agents;
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use throughline::approval_store::ApprovalStoreError;
use throughline::config::ToolMode;
use throughline::inspect::{self, InspectionContext, ProtocolFilter};
use throughline::views::{InspectionDescription, PromptDescription, ToolDescription};
use throughline::{
    Agent, ManualCall, ManualCallError, ManualConsent, RememberedDecision, Throughline, ToolSelection,
};
use throughline_engine::suggest_names;
use throughline_tools::{AgentCallable, ToolAvailability, WithheldReason};
use throughline_wire::display_escape;
use throughline_wire::{CallOutcome, ToolName};
use tokio_util::sync::CancellationToken;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Longest text that is looked through for calls, in bytes.
pub(crate) const PARSED_BYTES_MAX: usize = 1 << 20;

/// `/v1/tools`, `/v1/prompts` and `/v1/parse`.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get))
        .routes(routes!(call))
        .routes(routes!(list_prompts))
        .routes(routes!(parse))
}

/// Selection of an agent's tools.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ToolsQuery {
    /// Name of the agent; absent for the server's default agent.
    agent: Option<String>,
}

/// List tools with their sources and the faults of those.
#[utoipa::path(get, path = "/v1/tools", tag = "tools", params(ToolsQuery), responses(
    (status = 200, description = "The complete list", body = ToolList),
    (status = 404, description = "Agent not found", body = ErrorResponse),
))]
async fn list(
    State(state): State<AppState>,
    principal: Principal,
    Query(query): Query<ToolsQuery>,
) -> Result<axum::Json<ToolList>, ApiError> {
    principal.require(KeyScope::Chat)?;
    if let Some(agent) = &query.agent {
        require_agent(&state, &principal, agent).await?;
    }
    let user = Some(principal.user);
    let offer = state.app.select_tools_for_user(&user, query.agent.as_deref(), None, None)?;
    let agent = state.app.agent_for(query.agent.as_deref(), &user)?;
    Ok(axum::Json(tool_list(&state.app, &user, &agent, &offer)))
}

/// The tools as an agent finds them.
pub(super) fn tool_list(
    app: &Throughline,
    user: &Option<String>,
    agent: &Agent,
    offer: &ToolSelection,
) -> ToolList {
    let mut sources: BTreeMap<String, ToolSourceInfo> = BTreeMap::new();
    let source = |name: &str| ToolSourceInfo { name: name.to_owned(), tools: 0, faults: Vec::new() };
    for offered in &offer.discovered {
        let name = &offered.tool.spec().source;
        sources.entry(name.clone()).or_insert_with(|| source(name)).tools += 1;
    }
    for name in app.toolbox().sources() {
        sources.entry(name.clone()).or_insert_with(|| source(&name));
    }
    for fault in app.source_faults() {
        let of = sources.entry(fault.source.clone()).or_insert_with(|| source(&fault.source));
        of.faults.push(SourceFaultInfo {
            tool: fault.tool.map(|tool| tool.as_str().to_owned()),
            message: display_escape::escape(&fault.message).into_owned(),
            remedy: fault.remedy,
        });
    }
    let registry = app.tools_for(user);
    let unknown = registry.unknown_toggles(&agent.tool_call.toggles);
    ToolList {
        tools: tool_infos(offer),
        sources: sources.into_values().collect(),
        unknown_toggles: unknown.into_iter().map(str::to_owned).collect(),
    }
}

/// Get a tool with its definition.
#[utoipa::path(get, path = "/v1/tools/{tool}", tag = "tools",
    params(("tool" = String, Path, description = "Its name: `group.method`")), responses(
    (status = 200, description = "The tool", body = ToolDescription),
    (status = 404, description = "Not found", body = ErrorResponse),
))]
async fn get(
    State(state): State<AppState>,
    principal: Principal,
    Path(name): Path<String>,
) -> Result<axum::Json<ToolDescription>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let registry = state.app.tools_for(&Some(principal.user));
    let tool = registry.get(&ToolName::from(name.as_str())).ok_or_else(|| {
        let names = registry.iter().map(|tool| tool.spec().name.as_str());
        tool_not_found(&name, &suggest_names(&name, names))
    })?;
    let verdict = match tool.spec().agent_callable {
        AgentCallable::Yes => ToolAvailability::Offered,
        AgentCallable::No => ToolAvailability::Withheld(WithheldReason::NotCallable),
    };
    Ok(axum::Json(tool_info(tool, &verdict)))
}

fn tool_not_found<S: AsRef<str>>(name: &str, suggestions: &[S]) -> ApiError {
    let error = ApiError::not_found("tool", name);
    match suggestions.first() {
        Some(near) => error.remedy(format!("did you mean `{}`?", near.as_ref())),
        None => error,
    }
}

/// A manual tool call.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallTool {
    /// Arguments: an object that matches the tool's schema.
    #[schema(value_type = Object)]
    #[serde(default = "no_arguments")]
    pub arguments: Value,
    /// Agent whose rules apply; absent for the server's default agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// Confirmation that a tool with side effects may run, or one that a rule asks about.
    #[serde(default)]
    pub confirm: bool,
}

pub(super) fn no_arguments() -> Value {
    Value::Object(serde_json::Map::new())
}

/// Result of a manual call.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ToolCallResult {
    /// `success`, `error`, `timed_out`, `cancelled`, `not_started` or `unknown`.
    #[schema(example = "success")]
    pub status: String,
    /// Output, cut to its head and tail if it is long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The structured form.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub output_value: Option<Value>,
    /// Pictures and sounds, as `{media_type, data}` with base64.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    pub output_media: Vec<Value>,
    /// Bytes of the whole output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_size: Option<u64>,
    /// Text that a model would receive.
    #[serde(rename = "told_to_model")]
    pub model_text: String,
    /// Rule that allowed the call or required `confirm`.
    #[schema(example = "effect:read")]
    pub rule: String,
    /// Milliseconds since 1970.
    pub started_at: i64,
    /// Run time in milliseconds.
    pub duration_ms: u64,
}

/// Call a tool manually, under the rules of an agent. The call is not part of any conversation.
///
/// A tool that may change something needs `confirm: true`. A tool that a rule denies stays denied. If the request is
/// aborted, the tool is stopped.
#[utoipa::path(post, path = "/v1/tools/{tool}/call", tag = "tools",
    params(("tool" = String, Path, description = "Its name: `group.method`")), request_body = CallTool, responses(
    (status = 200, description = "The call's outcome", body = ToolCallResult),
    (status = 400, description = "Invalid arguments", body = ErrorResponse),
    (status = 403, description = "A rule denies it, or the key lacks the scope `tools`", body = ErrorResponse),
    (status = 404, description = "Not found", body = ErrorResponse),
    (status = 409, description = "The call needs `confirm: true`, or the tool runs only in a page", body = ErrorResponse),
))]
async fn call(
    State(state): State<AppState>,
    principal: Principal,
    Path(name): Path<String>,
    Json(body): Json<CallTool>,
) -> Result<axum::Json<ToolCallResult>, ApiError> {
    principal.require(KeyScope::Tools)?;
    load_user_agents(&state.app, &*state.catalog, &principal.user).await?;
    let remembered = load_remembered(&state, &principal).await?;
    // A request that is given up drops this handler, and with it the tool.
    let call = ManualCall {
        agent: body.agent,
        user: Some(principal.user),
        tool: ToolName::from(name.as_str()),
        arguments: body.arguments,
        consent: if body.confirm { ManualConsent::Given } else { ManualConsent::NotGiven },
        remembered,
        cancel: CancellationToken::new(),
    };
    let called =
        state.app.run_manual_call(call).await.map_err(|refused| manual_call_error(&name, refused))?;
    let outcome = &called.outcome;
    let output = outcome.output();
    Ok(axum::Json(ToolCallResult {
        status: outcome_status(outcome).to_owned(),
        output: output.map(|output| output.text.clone()),
        output_value: output.and_then(|output| output.value.clone()),
        output_media: output
            .map(|output| output.media.iter().filter_map(|media| serde_json::to_value(media).ok()).collect())
            .unwrap_or_default(),
        output_size: output.map(|output| output.size),
        model_text: outcome.model_text(),
        rule: called.rule,
        started_at: called.started_at,
        duration_ms: called.duration_ms,
    }))
}

/// Remembered approvals of a user. Unreadable ones are refused by name: one of them may be a denial.
pub(super) async fn load_remembered(
    state: &AppState,
    principal: &Principal,
) -> Result<Vec<RememberedDecision>, ApiError> {
    let rows = state.catalog.remembered(&principal.user, None).await?;
    let stored: Result<Vec<_>, ApprovalStoreError> = rows.into_iter().map(stored_approval).collect();
    Ok(stored.map_err(throughline::Error::from)?.into_iter().map(|stored| stored.answer).collect())
}

fn manual_call_error(name: &str, refused: ManualCallError) -> ApiError {
    let message = refused.to_string();
    match refused {
        ManualCallError::UnknownTool { suggestions, .. } => tool_not_found(name, &suggestions),
        ManualCallError::RunsOnClient { .. } => ApiError::conflict("runs_in_client", message),
        ManualCallError::InvalidArguments { .. } => ApiError::bad_request("invalid_arguments", message)
            .param("arguments")
            .remedy("see the tool's schema: GET /v1/tools"),
        ManualCallError::Denied { rule, .. } => {
            ApiError::forbidden("denied", message).with_extra("rule", rule)
        }
        ManualCallError::NeedsConsent { rule, effect } => {
            ApiError::conflict("confirmation_required", message)
                .param("confirm")
                .remedy("look at the arguments, and send them again with \"confirm\": true")
                .with_extra("rule", rule)
                .with_extra("effect", variant_name(&effect))
        }
        ManualCallError::EffectNeedsConsent { allowed_by, effect } => {
            ApiError::conflict("confirmation_required", message)
                .param("confirm")
                .remedy("look at the arguments, and send them again with \"confirm\": true")
                .with_extra("allowed_by", allowed_by)
                .with_extra("effect", variant_name(&effect))
        }
        ManualCallError::App(error) => error.into(),
        _ => ApiError::new(StatusCode::CONFLICT, "not_run", message),
    }
}

fn outcome_status(outcome: &CallOutcome) -> &'static str {
    match outcome {
        CallOutcome::Done(_) => "success",
        CallOutcome::Failed { .. } => "error",
        CallOutcome::Denied { .. } => "denied",
        CallOutcome::Cancelled(_) => "cancelled",
        CallOutcome::TimedOut { .. } => "timed_out",
        CallOutcome::NotStarted(_) => "not_started",
        CallOutcome::Unknown { .. } => "unknown",
    }
}

/// List prompts of an agent with their cost in tokens: native, and every text protocol.
#[utoipa::path(get, path = "/v1/prompts", tag = "tools", params(ToolsQuery), responses(
    (status = 200, description = "One per mode", body = ListPage<PromptDescription>),
    (status = 404, description = "Agent not found", body = ErrorResponse),
))]
async fn list_prompts(
    State(state): State<AppState>,
    principal: Principal,
    Query(query): Query<ToolsQuery>,
) -> Result<axum::Json<ListPage<PromptDescription>>, ApiError> {
    principal.require(KeyScope::Chat)?;
    if let Some(agent) = &query.agent {
        require_agent(&state, &principal, agent).await?;
    }
    let user = Some(principal.user);
    let mut previews = Vec::with_capacity(PROMPT_MODES.len());
    for (mode, protocol) in PROMPT_MODES {
        let offer = state.app.select_tools_for_user(&user, query.agent.as_deref(), Some(mode), protocol)?;
        previews.push(PromptDescription::from(&offer));
    }
    Ok(axum::Json(ListPage::complete(previews)))
}

/// A reply to parse.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ParseText {
    /// The reply, at most 1 MiB.
    pub text: String,
    /// Agent whose rules apply; absent for the server's default agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// `vcp` or `xml`; absent to try all protocols.
    #[serde(default)]
    pub protocol: Option<String>,
}

/// Parse a reply for tool calls, with the outlook of each. Runs nothing.
#[utoipa::path(post, path = "/v1/parse", tag = "tools", request_body = ParseText, responses(
    (status = 200, description = "The result", body = InspectionDescription),
    (status = 400, description = "Unknown protocol", body = ErrorResponse),
    (status = 404, description = "Agent not found", body = ErrorResponse),
    (status = 413, description = "The text is too long", body = ErrorResponse),
    (status = 409, description = "A remembered approval cannot be read: `number` names it", body = ErrorResponse),
))]
async fn parse(
    State(state): State<AppState>,
    principal: Principal,
    Json(body): Json<ParseText>,
) -> Result<axum::Json<InspectionDescription>, ApiError> {
    principal.require(KeyScope::Chat)?;
    if body.text.len() > PARSED_BYTES_MAX {
        let what = format!("at most {PARSED_BYTES_MAX} bytes are looked through");
        return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "text_too_long", what).param("text"));
    }
    if let Some(agent) = &body.agent {
        require_agent(&state, &principal, agent).await?;
    }
    let (_, protocol) = mode_and_protocol(None, body.protocol.as_deref())?;
    let remembered = load_remembered(&state, &principal).await?;
    let user = Some(principal.user);
    let offer =
        state.app.select_tools_for_user(&user, body.agent.as_deref(), Some(ToolMode::Text), protocol)?;
    let (agent, registry) = (state.app.agent_for(body.agent.as_deref(), &user)?, state.app.tools_for(&user));
    let reading = protocol.map_or(ProtocolFilter::Any, ProtocolFilter::Only);
    // Looking through a megabyte takes a while, and other requests should not wait for it.
    let inspection = tokio::task::spawn_blocking(move || {
        let asked = InspectionContext {
            agent: &agent,
            registry: &registry,
            selection: &offer,
            remembered: &remembered,
        };
        InspectionDescription::from(&inspect::inspect(&body.text, reading, asked))
    });
    Ok(axum::Json(inspection.await.map_err(ApiError::internal)?))
}
