//! Tools: what there is, what a reply would call, and running one by hand. // R: L1, L3, X2, A1

use super::agents::require_agent;
use super::page::ListPage;
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
use throughline::config::{TextProtocolKind, ToolMode};
use throughline::inspect::{self, InspectionContext, ProtocolFilter};
use throughline::views::{InspectionDescription, PromptDescription, ToolDescription};
use throughline::{
    Agent, ManualCall, ManualCallError, ManualConsent, RememberedDecision, Throughline, ToolSelection,
};
use throughline_engine::suggest_names;
use throughline_tools::{AgentCallable, ToolAvailability, WithheldReason};
use throughline_wire::visible;
use throughline_wire::{CallOutcome, ToolName};
use tokio_util::sync::CancellationToken;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Longest text that is looked through for calls, in bytes.
pub const PARSED_BYTES_MAX: usize = 1 << 20;

/// `/v1/tools`, `/v1/list_prompts` and `/v1/parse`.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get))
        .routes(routes!(call))
        .routes(routes!(list_prompts))
        .routes(routes!(parse))
}

/// A tool, and whether an agent is offered it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ToolInfo {
    /// `group.method`.
    #[schema(example = "files.read")]
    pub name: String,
    /// What people call it.
    pub title: String,
    /// What it does, for the model.
    pub description: String,
    /// What it may do: `pure`, `read`, `cosmetic`, `idempotent`, `write` or `external`.
    #[schema(example = "read")]
    pub effect: String,
    /// Where it comes from: `builtin`, `mcp:files`, ...
    #[schema(example = "builtin")]
    pub source: String,
    /// Whether models may call it at all.
    pub callable: bool,
    /// Whether the agent is offered it.
    pub offered: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
    /// Whether it asks first where no rule says otherwise.
    pub asks: bool,
    /// Its name at upstreams.
    pub wire_name: String,
    /// `here`, or `client` = in a connected page or app.
    pub runs_on: &'static str,
    /// Its time limit, in milliseconds.
    pub timeout_ms: u64,
    /// JSON Schema of its arguments.
    #[schema(value_type = Object)]
    pub parameters: Value,
}

impl From<ToolDescription> for ToolInfo {
    fn from(tool: ToolDescription) -> Self {
        Self {
            name: tool.name.as_str().to_owned(),
            title: visible::escape(&tool.title).into_owned(),
            description: tool.description,
            effect: variant_name(&tool.effect),
            source: tool.source,
            callable: tool.callable,
            offered: tool.offered,
            why_not: tool.why_not,
            asks: tool.asks,
            wire_name: tool.wire_name.as_str().to_owned(),
            runs_on: tool.runs_on,
            timeout_ms: tool.timeout_ms,
            parameters: tool.parameters,
        }
    }
}

/// The name of a variant on the wire.
pub(super) fn variant_name(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        Ok(Value::Object(members)) => members.keys().next().cloned().unwrap_or_default(),
        _ => String::new(),
    }
}

/// Where tools come from.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ToolSourceInfo {
    /// `builtin`, `mcp:files`, ...
    pub name: String,
    /// How many tools it has now.
    pub tools: usize,
    /// What is not as it should be.
    pub faults: Vec<SourceFaultInfo>,
}

/// Something of a source that is not as it should be. The rest works on.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SourceFaultInfo {
    /// Which of its tools; absent = all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What can be done about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// The tools that there are.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ToolList {
    /// By name.
    pub tools: Vec<ToolInfo>,
    /// By name, those without tools too.
    pub sources: Vec<ToolSourceInfo>,
    /// Switches of the agent that switch nothing now.
    pub unknown_toggles: Vec<String>,
}

/// Whose tools.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ToolsQuery {
    /// As this agent finds them; absent = the server's own agent.
    agent: Option<String>,
}

/// List tools with where they come from, and what is wrong with their sources.
#[utoipa::path(get, path = "/v1/tools", tag = "tools", params(ToolsQuery), responses(
    (status = 200, description = "All of them", body = ToolList),
    (status = 404, description = "There is no such agent", body = ErrorResponse),
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
            message: visible::escape(&fault.message).into_owned(),
            remedy: fault.remedy,
        });
    }
    let registry = app.tools_for(user);
    let unknown = registry.unknown_toggles(&agent.tool_call.toggles);
    ToolList {
        tools: offer
            .discovered
            .iter()
            .map(|offered| ToolDescription::new(&offered.tool, &offered.availability).into())
            .collect(),
        sources: sources.into_values().collect(),
        unknown_toggles: unknown.into_iter().map(str::to_owned).collect(),
    }
}

/// One tool with its definition.
#[utoipa::path(get, path = "/v1/tools/{tool}", tag = "tools",
    params(("tool" = String, Path, description = "Its name: `group.method`")), responses(
    (status = 200, description = "All that it is", body = ToolInfo),
    (status = 404, description = "There is none", body = ErrorResponse),
))]
async fn get(
    State(state): State<AppState>,
    principal: Principal,
    Path(name): Path<String>,
) -> Result<axum::Json<ToolInfo>, ApiError> {
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
    Ok(axum::Json(ToolDescription::new(tool, &verdict).into()))
}

fn tool_not_found<S: AsRef<str>>(name: &str, suggestions: &[S]) -> ApiError {
    let error = ApiError::not_found("tool", name);
    match suggestions.first() {
        Some(near) => error.remedy(format!("did you mean `{}`?", near.as_ref())),
        None => error,
    }
}

/// A tool to be run by hand.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CallTool {
    /// What it is given: an object that fits its schema.
    #[schema(value_type = Object)]
    #[serde(default = "no_arguments")]
    pub arguments: Value,
    /// Whose rules hold; absent = the server's own agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// It may change something, or a rule asks, and that is wanted. Needed for everything but reading.
    #[serde(default)]
    pub confirm: bool,
}

pub(super) fn no_arguments() -> Value {
    Value::Object(serde_json::Map::new())
}

/// How a tool ended.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ToolCallResult {
    /// `success`, `error`, `timed_out`, `cancelled`, `not_started` or `unknown`.
    #[schema(example = "success")]
    pub status: String,
    /// What it produced, cut to its head and tail if it is long.
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
    /// What a model would be told.
    #[serde(rename = "told_to_model")]
    pub model_text: String,
    /// The rule that let it run, or that asked for `confirm`.
    #[schema(example = "effect:read")]
    pub rule: String,
    /// Milliseconds since 1970.
    pub started_at: i64,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
}

/// Run a tool by hand, under the rules of an agent. Nothing of it goes into a conversation.
///
/// What may change something needs `confirm: true`. What a rule denies stays denied. When the request is given up, the tool
/// is stopped.
#[utoipa::path(post, path = "/v1/tools/{tool}/call", tag = "tools",
    params(("tool" = String, Path, description = "Its name: `group.method`")), request_body = CallTool, responses(
    (status = 200, description = "It ran, and this is how it ended", body = ToolCallResult),
    (status = 400, description = "The arguments do not fit", body = ErrorResponse),
    (status = 403, description = "A rule denies it, or the key lacks the scope `tools`", body = ErrorResponse),
    (status = 404, description = "There is none", body = ErrorResponse),
    (status = 409, description = "It needs `confirm: true`, or runs in a page only", body = ErrorResponse),
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

/// What the user has said before and always holds. What cannot be read is refused and named: it may be a denial.
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
            .remedy("the tool's schema says what fits: GET /v1/tools"),
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
        CallOutcome::Unknown => "unknown",
    }
}

/// What an agent is told in one way of telling it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PromptPreview {
    /// Which agent.
    pub agent: String,
    /// How calls travel.
    pub mode: &'static str,
    /// The text protocol, if they travel as text.
    pub protocol: Option<&'static str>,
    /// The system prompt, tools included if they travel as text.
    pub prompt: String,
    /// What `{{ tools }}` stands for; empty if tools travel natively.
    pub tools_text: String,
    /// Names of the offered tools.
    pub tools: Vec<String>,
    /// Tools that are not offered, and why.
    pub left_out: Vec<OmittedTool>,
    /// `tools("…")` of the prompt that mean nothing.
    pub unmatched: Vec<String>,
    /// What it costs.
    pub tokens: PromptTokensInfo,
}

/// A tool that is not offered.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct OmittedTool {
    /// The tool.
    pub name: String,
    /// The first reason that holds.
    pub why: String,
}

/// Tokens of everything that is sent before the conversation.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PromptTokensInfo {
    /// All of it.
    pub total: usize,
    /// The prompt alone.
    pub prompt: usize,
    /// The tools by their source.
    pub sources: Vec<SourceTokensInfo>,
    /// `exact` or `estimated`.
    pub counting: &'static str,
}

/// What the tools of one source cost.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SourceTokensInfo {
    /// The source.
    pub source: String,
    /// How many of its tools are offered.
    pub tools: usize,
    /// Tokens of their definitions.
    pub tokens: usize,
}

impl From<PromptDescription> for PromptPreview {
    fn from(prompt: PromptDescription) -> Self {
        let source = |row: throughline::SourceTokens| SourceTokensInfo {
            source: row.source,
            tools: row.tools,
            tokens: row.tokens,
        };
        Self {
            agent: prompt.agent,
            mode: prompt.mode,
            protocol: prompt.protocol,
            prompt: prompt.prompt,
            tools_text: prompt.tools_text,
            tools: prompt.tools.iter().map(|name| name.as_str().to_owned()).collect(),
            left_out: prompt
                .left_out
                .into_iter()
                .map(|left| OmittedTool { name: left.name.as_str().to_owned(), why: left.why })
                .collect(),
            unmatched: prompt.unmatched,
            tokens: PromptTokensInfo {
                total: prompt.tokens.total,
                prompt: prompt.tokens.prompt,
                sources: prompt.tokens.sources.into_iter().map(source).collect(),
                counting: prompt.tokens.counting,
            },
        }
    }
}

/// Mode and protocol by name. Whoever names a protocol wants to see text.
pub(super) fn mode_and_protocol(
    mode: Option<&str>,
    protocol: Option<&str>,
) -> Result<(Option<ToolMode>, Option<TextProtocolKind>), ApiError> {
    let unknown = |param: &str, given: &str, names: &[&str]| {
        ApiError::bad_request("unknown_value", format!("there is no {param} `{given}`"))
            .param(param)
            .remedy(names.join(", "))
    };
    let protocol = protocol
        .map(|name| {
            TextProtocolKind::from_name(name)
                .ok_or_else(|| unknown("protocol", name, &TextProtocolKind::NAMES))
        })
        .transpose()?;
    let mode = mode
        .map(|name| ToolMode::from_name(name).ok_or_else(|| unknown("mode", name, &ToolMode::NAMES)))
        .transpose()?;
    Ok((mode.or(protocol.map(|_| ToolMode::Text)), protocol))
}

/// Every way of telling tools: natively, and in each text protocol.
pub(super) const PROMPT_MODES: [(ToolMode, Option<TextProtocolKind>); 3] = [
    (ToolMode::Native, None),
    (ToolMode::Text, Some(TextProtocolKind::Vcp)),
    (ToolMode::Text, Some(TextProtocolKind::Xml)),
];

/// What the tools of an agent look like and cost in each way of telling them: native, and every text protocol.
#[utoipa::path(get, path = "/v1/prompts", tag = "tools", params(ToolsQuery), responses(
    (status = 200, description = "One for each way", body = ListPage<PromptPreview>),
    (status = 404, description = "There is no such agent", body = ErrorResponse),
))]
async fn list_prompts(
    State(state): State<AppState>,
    principal: Principal,
    Query(query): Query<ToolsQuery>,
) -> Result<axum::Json<ListPage<PromptPreview>>, ApiError> {
    principal.require(KeyScope::Chat)?;
    if let Some(agent) = &query.agent {
        require_agent(&state, &principal, agent).await?;
    }
    let user = Some(principal.user);
    let mut previews = Vec::with_capacity(PROMPT_MODES.len());
    for (mode, protocol) in PROMPT_MODES {
        let offer = state.app.select_tools_for_user(&user, query.agent.as_deref(), Some(mode), protocol)?;
        previews.push(PromptDescription::from(&offer).into());
    }
    Ok(axum::Json(ListPage::complete(previews)))
}

/// A reply to be looked through.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ParseText {
    /// The reply, at most 1 MiB.
    pub text: String,
    /// Whose rules hold; absent = the server's own agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// `vcp` or `xml`; absent = each where it finds something.
    #[serde(default)]
    pub protocol: Option<String>,
}

/// What a reply holds.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ParsedReply {
    /// Calls and refused blocks, in the order of the text.
    pub requests: Vec<ParsedRequest>,
    /// What else there is to know, in the order of the text.
    pub warnings: Vec<ParsedWarning>,
    /// What a reader would see: all but markup.
    pub text: String,
}

/// A call in a text, or a block that is none.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ParsedRequest {
    /// The text protocol, or the format of a leaked call.
    pub format: &'static str,
    /// It is another model's markup, and not of a text protocol.
    pub leaked: bool,
    /// As it was written.
    pub name: String,
    /// The tool that it means.
    pub tool: Option<String>,
    /// The arguments, if they could be read.
    #[schema(value_type = Option<Object>)]
    pub arguments: Option<Value>,
    /// The same as JSON text for people: nothing in it is invisible, and it reads as the same value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments_text: Option<String>,
    /// `runs`, `asks`, `denied` or `not_started`.
    pub outlook: &'static str,
    /// The rule that decides.
    pub rule: Option<String>,
    /// Why it would not run.
    pub why: Option<String>,
    /// From 1.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
    /// First byte of the block.
    pub start: usize,
    /// The byte behind it.
    pub end: usize,
}

/// A finding in a text.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ParsedWarning {
    /// A stable word.
    pub kind: String,
    /// From 1.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
    /// In bytes of the text.
    pub at: usize,
    /// A sentence.
    pub message: String,
}

impl From<InspectionDescription> for ParsedReply {
    fn from(inspection: InspectionDescription) -> Self {
        let requests = inspection.requests.into_iter().map(|request| ParsedRequest {
            format: request.format,
            leaked: request.leaked,
            name: request.name,
            tool: request.tool.map(|tool| tool.as_str().to_owned()),
            arguments_text: request.arguments.as_ref().map(visible::json),
            arguments: request.arguments,
            outlook: request.outlook,
            rule: request.rule,
            why: request.why,
            line: request.line,
            column: request.column,
            start: request.start,
            end: request.end,
        });
        let warnings = inspection.warnings.into_iter().map(|warning| ParsedWarning {
            kind: variant_name(&warning.kind),
            line: warning.line,
            column: warning.column,
            at: warning.at,
            message: warning.message,
        });
        Self { requests: requests.collect(), warnings: warnings.collect(), text: inspection.text }
    }
}

/// Look for calls in a reply, and say what would become of each. Runs nothing.
#[utoipa::path(post, path = "/v1/parse", tag = "tools", request_body = ParseText, responses(
    (status = 200, description = "What it holds", body = ParsedReply),
    (status = 400, description = "There is no such protocol", body = ErrorResponse),
    (status = 404, description = "There is no such agent", body = ErrorResponse),
    (status = 413, description = "The text is too long", body = ErrorResponse),
    (status = 409, description = "An answer that is remembered cannot be read: `number` says which", body = ErrorResponse),
))]
async fn parse(
    State(state): State<AppState>,
    principal: Principal,
    Json(body): Json<ParseText>,
) -> Result<axum::Json<ParsedReply>, ApiError> {
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
    Ok(axum::Json(inspection.await.map_err(ApiError::internal)?.into()))
}
