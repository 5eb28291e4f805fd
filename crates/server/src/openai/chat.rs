//! `POST /v1/chat/completions`: one request, one unbroken answer, while the server runs the tools.
//!
//! The turn depends on the client's connection here, as in all OpenAI-compatible APIs: closing it stops the
//! turn. But an answer that ended with calls for the client's tools leaves the turn waiting for their
//! results, which arrive with another request.

mod file_extractor;
mod request_body;
mod responder;
mod resume;

use crate::api::events::{SseFrame, canceller_of};
use crate::api::turns::over_limit;
use crate::error::{ApiError, ErrorResponse};
use crate::extract::Path;
use crate::large_bodies::RequestMemory;
use crate::net::ConnectionInfo;
use crate::openai::models::{self, ModelSelector};
use crate::principal::{KeyScope, Principal};
use crate::projections::chat_completions::question::CallQuestion;
use crate::projections::chat_completions::request::{
    AccountFields, ApprovalPreference, ChatRequest, DeclaredTool, DeliveryMode, InputModalities,
    UploadedFile, UpstreamApi, referenced_files,
};
use crate::projections::chat_completions::{
    AnswerText, ApprovalChannel, CallDelivery, ChatProjection, ChunkHead, InvalidRequestError, UsageChunk,
};
use crate::state::AppState;
use crate::telemetry::trace_parent;
use crate::turn_manager::{ConversationRef, OnDisconnect, ParentRef, TurnSpec};
use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};
use jiff::Timestamp;
use responder::ChatResponder;
use std::collections::BTreeMap;
use throughline::config::ToolRendering;
use throughline::tools::ToolToggle;
use throughline::{Agent, ApprovalMode, ClientToolSpec, PersonaMode, TurnRequest, Upstream};
use throughline_engine::TurnId;
use throughline_wire::{Dialect, ReasoningTarget, UserPart};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Header with the conversation to continue, for clients that can set headers but no fields.
pub(crate) const CONVERSATION_HEADER: &str = "throughline-conversation-id";

/// Names the fields of the request that the answer was given without.
const IGNORED_HEADER: &str = "throughline-ignored";

/// Header with `ask` or `deny`, for clients that can set headers but no fields.
pub(crate) const APPROVAL_HEADER: &str = "throughline-approval";

/// Output of a call that needs approval if the chat cannot ask for one.
const NO_APPROVER_TEXT: &str = "approval is not possible in this chat: its client does not show questions. The \
 user can allow the tool by a rule, have tools shown in the text (`render`), or answer on Throughline's own \
 page";

/// `/v1/chat/completions`.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(complete)).routes(routes!(complete_rendered))
}

/// Create a chat completion in the format of OpenAI. Streamed (`text/event-stream`) if `stream` is true.
#[utoipa::path(post, path = "/v1/chat/completions", tag = "chat", request_body(content = Object,
    description = "OpenAI's format; `model` is an agent or `upstream/model`. Extensions of this server are in `throughline`."),
    responses(
        (status = 200, description = "A `chat.completion`, or its chunks",
            content((Object = "application/json"), (SseFrame = "text/event-stream"))),
        (status = 400, description = "Invalid request", body = ErrorResponse),
        (status = 502, description = "The model is unreachable, or its reply ended early", body = ErrorResponse),
    ))]
async fn complete(
    State(state): State<AppState>,
    principal: Principal,
    request: Request,
) -> Result<Response, ApiError> {
    run_completion(state, principal, request).await
}

/// Create a chat completion at the base URL `/render/{render}/v1`, which selects how tools are shown unless the request or the
/// model's name does.
#[utoipa::path(post, path = "/render/{render}/v1/chat/completions", tag = "chat", request_body(content = Object,
    description = "As at `/v1/chat/completions`."),
    params(("render" = String, Path, description = "`none`, `text`, `details`, `reasoning`, `owui_event` or `vcp`")),
    responses(
        (status = 200, description = "A `chat.completion`, or its chunks",
            content((Object = "application/json"), (SseFrame = "text/event-stream"))),
        (status = 400, description = "Invalid request", body = ErrorResponse),
        (status = 404, description = "Unknown rendering or model", body = ErrorResponse),
        (status = 502, description = "The model is unreachable, or its reply ended early", body = ErrorResponse),
    ))]
async fn complete_rendered(
    State(state): State<AppState>,
    principal: Principal,
    Path(render): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let render = models::parse_rendering(&render)?;
    run_completion(state.with_render(render), principal, request).await
}

async fn run_completion(
    state: AppState,
    principal: Principal,
    request: Request,
) -> Result<Response, ApiError> {
    principal.require(KeyScope::Chat)?;
    let (parts, body) = request.into_parts();
    let body = request_body::read_body(&state, &principal, &parts, body).await?;
    let Parts { uri, headers, extensions, .. } = parts;
    let canceller = canceller_of(extensions.get::<ConnectionInfo>().cloned().map(Extension));
    let files = load_files(&state, &principal, referenced_files(&body)).await?;
    let agents = models::visible_agents(&state, &principal).await?;
    let selector = models::parse_selector(&agents, body["model"].as_str().unwrap_or_default());
    let upstream = models::upstream_of(&state.app, &agents, &selector);
    let modalities = upstream.as_ref().map(|(upstream, _)| input_modalities(upstream)).unwrap_or_default();
    let target = upstream
        .as_ref()
        .map(|(upstream, model)| ReasoningTarget::new(upstream.wire_format(), upstream.quirks(), model));
    let mut request = ChatRequest::read(&body, &|id| files.get(id).cloned(), modalities, target.as_ref())?;
    drop(body);
    if request.conversation_id.is_none()
        && let Some(id) = headers.get(CONVERSATION_HEADER).and_then(|id| id.to_str().ok())
    {
        request.conversation_id = Some(id.to_owned());
    }
    let render = request.render.or(selector.render).unwrap_or(state.render);
    if request.approval.is_none()
        && let Some(requested) = headers.get(APPROVAL_HEADER)
    {
        request.approval = Some(ApprovalPreference::of_header(requested.to_str().unwrap_or_default())?);
    }
    let text = answer_text_mode(&agents, &selector, &request);
    let projection = ChatProjection::new(request.usage_chunk, render).with_text(text);
    let asking = request.approval_channel(projection.render())?;
    let calls = match request.delivery {
        DeliveryMode::Stream => CallDelivery::Fragments,
        DeliveryMode::Complete => CallDelivery::Whole,
    };
    let mut projection = projection.with_approval_channel(asking).with_call_delivery(calls);
    let page = state.page_address.resolve(&uri, &headers);
    let head =
        |id: String| ChunkHead { id, created: Timestamp::now().as_second(), model: request.model.clone() };

    check_message(&state, &request)?;
    let mut resumed = resume::turn_awaiting_results(&state, &principal, &request, &mut projection).await?;
    if resumed.is_none() {
        resumed = resume::turn_awaiting_answer(&state, &principal, &request, &mut projection).await?;
    }
    if let Some(resumed) = resumed {
        // Two answers of one turn are two completions.
        let head = head(format!("chatcmpl-{}-{}", resumed.message_id, resumed.after));
        let answer =
            ChatResponder::open(&state, &principal, &resumed.turn, resumed.after, head, projection, page)
                .await?;
        resumed.deliver(&state, &principal).await?;
        // The turn has the sampling of its first request, and its own history.
        let ignored = ignored_fields_header(&request, &[], request.sampling.given_fields());
        return Ok(with_ignored(answer.deliver(request.delivery, canceller).await?, ignored));
    }
    if request.conversation_id.is_none() {
        resume::restore_reasoning(&state, &principal, &mut request.transcript.history).await;
    }
    request.strip_codes();
    let api = upstream.as_ref().map(|(upstream, _)| upstream_api(upstream));
    let ignored = api.map(|api| request.ignored_fields(api)).unwrap_or_default();
    // A conversation has its own history as well.
    let of_messages: &[String] =
        if request.conversation_id.is_some() { &[] } else { &request.omitted_of_messages };
    let ignored = ignored_fields_header(&request, of_messages, ignored);

    let delivery = request.delivery;
    let model = request.model.clone();
    let mut new = new_turn(&state, selector, api, request, asking)?;
    new.request.first_step_attempts_max = client_retries(&headers).then_some(1);
    new.request.trace_parent = trace_parent(&headers);
    let started = state.turn_manager.start_turn(&principal, new).await.map_err(models::to_openai_error)?;
    if let Some(memory) = extensions.get::<RequestMemory>() {
        memory.keep_of_memory(request_body::TURN_MEMORY_PER_BYTE);
    }
    let id = format!("chatcmpl-{}", started.message_id);
    let head = ChunkHead { id, created: Timestamp::now().as_second(), model };
    let answer = ChatResponder::open(&state, &principal, &started.turn_id, 0, head, projection, page).await?;
    Ok(with_ignored(answer.deliver(delivery, canceller).await?, ignored))
}

/// With JSON output and tools, a step's text is held until the next event shows whether it is the answer;
/// otherwise it is streamed.
fn answer_text_mode(agents: &[Agent], selector: &ModelSelector, request: &ChatRequest) -> AnswerText {
    let agent = models::agent_of(agents, selector).filter(|_| selector.persona() == PersonaMode::Agent);
    let servers = agent.is_some_and(|agent| agent.tool_call.tools == ToolToggle::On);
    let may_call = !request.tools.is_empty() || (servers && request.server_tools == ToolToggle::On);
    if request.sampling.wants_json() && may_call { AnswerText::LastStep } else { AnswerText::EveryStep }
}

/// Checks the limit of one message. In a conversation of the server the request is not the whole chat, and
/// its message remains in every later request.
fn check_message(state: &AppState, request: &ChatRequest) -> Result<(), ApiError> {
    let max = state.limits.message_bytes_max;
    let bytes = request.transcript.input.iter().map(UserPart::text_bytes).sum::<usize>();
    if request.conversation_id.is_some() && bytes > max as usize {
        return Err(over_limit("messages", "message_bytes_max", max));
    }
    Ok(())
}

/// Header with the fields of the request that were not sent to the model, if any: a silently different answer
/// would be worse than none.
fn ignored_fields_header(
    request: &ChatRequest,
    of_messages: &[String],
    ignored: Vec<&str>,
) -> Option<HeaderValue> {
    let mut names: Vec<&str> = of_messages
        .iter()
        .chain(&request.unknown_fields)
        .chain(&request.omitted_of_tools)
        .map(String::as_str)
        .collect();
    names.extend(ignored);
    (!names.is_empty()).then(|| HeaderValue::try_from(names.join(", ")).ok())?
}

fn with_ignored(mut response: Response, ignored: Option<HeaderValue>) -> Response {
    if let Some(ignored) = ignored {
        response.headers_mut().insert(IGNORED_HEADER, ignored);
    }
    response
}

/// API of an upstream. The cache key is a field of OpenAI's own, as those of the account are.
fn upstream_api(upstream: &Upstream) -> UpstreamApi {
    let dialect = upstream.wire_format();
    let speaks_openai = matches!(dialect, Dialect::OpenaiChat | Dialect::OpenaiResponses);
    let account_fields = if speaks_openai && upstream.quirks().prompt_cache_key {
        AccountFields::Sent
    } else {
        AccountFields::Omitted
    };
    UpstreamApi { dialect, account_fields }
}

fn new_turn(
    state: &AppState,
    selector: ModelSelector,
    api: Option<UpstreamApi>,
    request: ChatRequest,
    asking: ApprovalChannel,
) -> Result<TurnSpec, ApiError> {
    let approval = approval_mode(state, request.approval, asking);
    let (settings, json_instructions) = match api {
        Some(api) => (request.sampling.settings(api)?, request.sampling.json_instruction(api.dialect)),
        // Which model it is is found out, and refused, when the turn is started.
        None => Default::default(),
    };
    let instructions = request.instructions.into_iter().chain(json_instructions.map(str::to_owned));
    let instructions = instructions.reduce(|before, more| format!("{before}\n\n{more}"));
    // The history of a conversation is the server's: the turn manager adds it, and the client's messages of it are
    // ignored.
    let conversation = match request.conversation_id {
        Some(conversation_id) => ConversationRef::Existing { conversation_id, parent: ParentRef::Leaf },
        None => ConversationRef::Standalone,
    };
    let persona = selector.persona();
    let request = TurnRequest {
        input: request.transcript.input.into(),
        history: request.transcript.history,
        agent: selector.agent,
        model: selector.model,
        instructions,
        settings,
        approval,
        request_tools: request.tools.into_iter().map(client_tool).collect(),
        tool_choice: request.tool_choice,
        tools: request.server_tools,
        persona,
        ..TurnRequest::default()
    };
    // The responder stops the turn itself, since the turn must continue to wait after a handover. After a
    // restart no client returns to a broken answer.
    let after_restart = Some(OnDisconnect::Cancel);
    Ok(TurnSpec {
        request,
        conversation,
        on_disconnect: OnDisconnect::Continue,
        after_restart,
        ..TurnSpec::default()
    })
}

/// Approval mode of the request; `None` for the server's own.
fn approval_mode(
    state: &AppState,
    requested: Option<ApprovalPreference>,
    asking: ApprovalChannel,
) -> Option<ApprovalMode> {
    let denied = |reason: &str| Some(ApprovalMode::DenyAll { reason: reason.to_owned() });
    match (requested, asking, state.app.approval()) {
        (Some(ApprovalPreference::Deny), ..) => denied("the request disables approvals"),
        (_, ApprovalChannel::DenyAll, ApprovalMode::Ask) => denied(NO_APPROVER_TEXT),
        _ => None,
    }
}

fn input_modalities(upstream: &Upstream) -> InputModalities {
    let quirks = upstream.quirks();
    // Other dialects have no form for sound.
    let takes_sound = matches!(upstream.wire_format(), Dialect::OpenaiChat | Dialect::Gemini);
    let takes_addresses = upstream.wire_format() != Dialect::Ollama;
    InputModalities {
        audio: quirks.audio && takes_sound,
        image_urls: quirks.fetches_images && quirks.vision && takes_addresses,
    }
}

/// Detects clients that retry failed requests themselves. For those the first model call is made once and its
/// failure reported unchanged, so that their retries and ours do not multiply. OpenAI's SDKs, and libraries
/// built on them, send a header; the AI SDK and async-openai are identified by their user agent.
fn client_retries(headers: &HeaderMap) -> bool {
    let agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    headers.contains_key("x-stainless-retry-count")
        || ["ai-sdk/", "async-openai"].iter().any(|name| agent.contains(name))
}

/// The questions that a turn waits for.
///
/// # Errors
/// The log cannot be read.
pub(crate) async fn pending_questions(
    state: &AppState,
    turn: &TurnId,
) -> Result<Vec<CallQuestion>, ApiError> {
    let projection = ChatProjection::new(UsageChunk::Unwanted, ToolRendering::None)
        .with_approval_channel(ApprovalChannel::Text);
    Ok(resume::project_up_to(state, turn, projection, u64::MAX).await?.projection.questions())
}

fn client_tool(tool: DeclaredTool) -> ClientToolSpec {
    let mut client_tool = ClientToolSpec::new(tool.name);
    client_tool.description = tool.description;
    client_tool.input_schema = Some(tool.parameters);
    client_tool.strict = tool.strict;
    client_tool
}

/// The files that the request names, as far as they are the user's.
async fn load_files(
    state: &AppState,
    principal: &Principal,
    wanted: Vec<String>,
) -> Result<BTreeMap<String, UploadedFile>, ApiError> {
    let mut files = BTreeMap::new();
    for id in wanted {
        let Some(row) = state.catalog.file(&principal.user, &id).await? else { continue };
        let Some(media) = state.media.of_file(&row).await.map_err(ApiError::internal)? else { continue };
        files.insert(id, UploadedFile { name: row.name, media });
    }
    Ok(files)
}

impl From<InvalidRequestError> for ApiError {
    fn from(refusal: InvalidRequestError) -> Self {
        let InvalidRequestError { code, message, remedy, param } = refusal;
        let mut error = Self::bad_request(code, message);
        error.remedy = remedy;
        error.param = (!param.is_empty()).then_some(param);
        error
    }
}
