//! `POST /v1/chat/completions`: one request, one unbroken answer, while the server runs the tools. // R: E2, T13
//!
//! The client's connection is the turn's life line here, as everywhere that this API is spoken: closing it stops the turn.
//! But an answer that ended with calls for the client's own tools leaves the turn waiting for their results, which come
//! with another request.

mod answer;
mod body;
mod lift;
mod resumed;

use crate::api::events::{StreamedEvent, cut_of};
use crate::api::turns::too_large;
use crate::compat::models::{self, Named};
use crate::error::{ApiError, ErrorBody};
use crate::extract::Path;
use crate::hub::{Behind, NewTurn, OnDisconnect, Thread};
use crate::net::Connection;
use crate::principal::{Principal, Scope};
use crate::state::AppState;
use crate::surface::chat_completions::question::CallQuestion;
use crate::surface::chat_completions::request::{
    ApprovalWish, ChatRequest, DeclaredTool, Senses, Talk, UploadedFile, files_wanted,
};
use crate::surface::chat_completions::{AnswerText, Asking, Head, Projection, Refusal, UsageChunk};
use crate::telemetry::TraceParent;
use answer::Answer;
use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use jiff::Timestamp;
use std::collections::BTreeMap;
use throughline::config::Render;
use throughline::tools::Toggle;
use throughline::{Agent, Approval, ClientTool, Persona, TurnRequest, Upstream};
use throughline_engine::TurnId;
use throughline_wire::{ClosedStep, Dialect, Message, UserPart};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Names the conversation to go on with, for clients that can set headers and no fields.
pub const CONVERSATION_HEADER: &str = "throughline-conversation-id";

/// Names the fields of the request that the answer was given without.
const LEFT_OUT_HEADER: &str = "throughline-ignored";

/// Says `ask` or `deny`, for clients that can set headers and no fields.
pub const APPROVAL_HEADER: &str = "throughline-approval";

/// What a call is told that would ask a person, where nobody can be asked.
const NOBODY_IS_ASKED: &str = "nobody can be asked in this chat: its client does not show questions. The user can allow the \
    tool by a rule, have tools shown in the text (`render`), or answer on Throughline's own page";

/// `/v1/chat/completions`.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(complete)).routes(routes!(complete_rendered))
}

/// Answer a chat, as OpenAI Chat Completions. Streamed (`text/event-stream`) if `stream` is true.
#[utoipa::path(post, path = "/v1/chat/completions", tag = "openai", request_body(content = Object,
    description = "As OpenAI's; `model` is an agent or `upstream/model`. What only this server knows is in `throughline`."),
    responses(
        (status = 200, description = "A `chat.completion`, or its chunks",
            content((Object = "application/json"), (StreamedEvent = "text/event-stream"))),
        (status = 400, description = "It cannot be answered like this", body = ErrorBody),
        (status = 502, description = "The model could not be asked, or broke off", body = ErrorBody),
    ))]
async fn complete(
    State(state): State<AppState>,
    principal: Principal,
    request: Request,
) -> Result<Response, ApiError> {
    answered(state, principal, request).await
}

/// The same for a client that is configured with `/render/{render}/v1` as its address: the address says how tools are shown,
/// unless the request or the model's name does.
#[utoipa::path(post, path = "/render/{render}/v1/chat/completions", tag = "openai", request_body(content = Object,
    description = "As at `/v1/chat/completions`."),
    params(("render" = String, Path, description = "`none`, `text`, `details`, `reasoning` or `owui_event`")),
    responses(
        (status = 200, description = "A `chat.completion`, or its chunks",
            content((Object = "application/json"), (StreamedEvent = "text/event-stream"))),
        (status = 400, description = "It cannot be answered like this", body = ErrorBody),
        (status = 404, description = "There is no such rendering or model", body = ErrorBody),
        (status = 502, description = "The model could not be asked, or broke off", body = ErrorBody),
    ))]
async fn complete_rendered(
    State(state): State<AppState>,
    principal: Principal,
    Path(render): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let render = models::rendering(&render)?;
    answered(state.rendering(render), principal, request).await
}

async fn answered(state: AppState, principal: Principal, request: Request) -> Result<Response, ApiError> {
    principal.need(Scope::Chat)?;
    let (Parts { uri, headers, extensions, .. }, body) = request.into_parts();
    let cut = cut_of(extensions.get::<Connection>().cloned().map(Extension));
    let body = body::read(&state, &principal, &headers, body).await?;
    let files = files(&state, &principal, files_wanted(&body)).await?;
    let agents = models::known(&state, &principal).await?;
    let named = models::named(&agents, body["model"].as_str().unwrap_or_default());
    let upstream = models::upstream(&state.app, &agents, &named);
    let senses = upstream.as_ref().map(senses_of).unwrap_or_default();
    let mut request = ChatRequest::read(&body, &|id| files.get(id).cloned(), senses)?;
    drop(body);
    within_limits(&state, &request.talk, request.instructions.as_deref())?;
    if request.conversation_id.is_none()
        && let Some(id) = headers.get(CONVERSATION_HEADER).and_then(|id| id.to_str().ok())
    {
        request.conversation_id = Some(id.to_owned());
    }
    let render = request.render.or(named.render).unwrap_or(state.render);
    if request.approval.is_none()
        && let Some(wish) = headers.get(APPROVAL_HEADER)
    {
        request.approval = Some(ApprovalWish::of_header(wish.to_str().unwrap_or_default())?);
    }
    let text = answer_text(&agents, &named, &request);
    let projection = Projection::new(request.usage_chunk, render).with_text(text);
    let asking = request.asking(projection.render())?;
    let mut projection = projection.asking(asking);
    let page = state.page_address.of(&uri, &headers);
    let head = |id: String| Head { id, created: Timestamp::now().as_second(), model: request.model.clone() };

    let mut resumed = resumed::waiting_turn(&state, &principal, &request, &mut projection).await?;
    if resumed.is_none() {
        resumed = resumed::asking_turn(&state, &principal, &request, &mut projection).await?;
    }
    if let Some(resumed) = resumed {
        // Two answers of one turn are two completions.
        let head = head(format!("chatcmpl-{}-{}", resumed.message_id, resumed.after));
        let answer =
            Answer::of(&state, &principal, &resumed.turn, resumed.after, head, projection, page).await?;
        resumed.go_on(&state, &principal).await?;
        return answer.deliver(request.delivery, cut).await;
    }
    request.forget_codes();
    let dialect = upstream.map(|upstream| upstream.speaks());
    let left_out = left_out(dialect, &request);

    let delivery = request.delivery;
    let model = request.model.clone();
    let mut new = new_turn(&state, named, dialect, request, asking)?;
    new.request.first_step_attempts_max = tries_again_itself(&headers).then_some(1);
    new.request.trace_parent = TraceParent::of_headers(&headers).map(|parent| parent.to_string());
    let started = state.hub.start(&principal, new).await.map_err(as_openai_says)?;
    let id = format!("chatcmpl-{}", started.message_id);
    let head = Head { id, created: Timestamp::now().as_second(), model };
    let answer = Answer::of(&state, &principal, &started.turn_id, 0, head, projection, page).await?;
    let mut response = answer.deliver(delivery, cut).await?;
    if let Some(left_out) = left_out {
        response.headers_mut().insert(LEFT_OUT_HEADER, left_out);
    }
    Ok(response)
}

/// Where JSON is asked for and tools may be called, a step's text waits for what follows it; else it comes as it is written.
fn answer_text(agents: &[Agent], named: &Named, request: &ChatRequest) -> AnswerText {
    let agent = models::agent_of(agents, named).filter(|_| named.persona() == Persona::Agent);
    let servers = agent.is_some_and(|agent| agent.tool_call.tools == Toggle::On);
    let may_call = !request.tools.is_empty() || (servers && request.server_tools == Toggle::On);
    if request.sampling.wants_json() && may_call { AnswerText::LastStep } else { AnswerText::EveryStep }
}

/// Text, that is: pictures and files have a limit of their own.
fn within_limits(state: &AppState, talk: &Talk, instructions: Option<&str>) -> Result<(), ApiError> {
    let parts = |parts: &[UserPart]| -> usize {
        let text = parts.iter().map(|part| match part {
            UserPart::Text { text } => text.len(),
            UserPart::Image(_) | UserPart::File { .. } => 0,
        });
        text.sum()
    };
    let step = |step: &ClosedStep| -> usize {
        let calls = step.calls.iter().map(|(call, outcome)| {
            call.arguments_text().len() + outcome.output().map_or(0, |output| output.text.len())
        });
        step.text.len() + step.thinking.len() + calls.sum::<usize>()
    };
    let history = talk.history.iter().map(|message| match message {
        Message::User(said) => parts(said),
        Message::Step(closed) => step(closed),
    });
    let history = instructions.map_or(0, str::len) + history.sum::<usize>();
    let limits = &state.limits;
    for (bytes, name, max) in [
        (parts(&talk.input), "message_bytes_max", limits.message_bytes_max),
        (history, "history_bytes_max", limits.history_bytes_max),
    ] {
        if bytes > max as usize {
            return Err(too_large("messages", name, max));
        }
    }
    Ok(())
}

/// The fields of the request that the model was not told of, if there are any: an answer that silently is another one is
/// worse than none.
fn left_out(dialect: Option<Dialect>, request: &ChatRequest) -> Option<HeaderValue> {
    let mut names: Vec<&str> = request.unknown.iter().map(String::as_str).collect();
    names.extend(dialect.into_iter().flat_map(|dialect| request.sampling.left_out(dialect)));
    (!names.is_empty()).then(|| HeaderValue::try_from(names.join(", ")).ok())?
}

fn new_turn(
    state: &AppState,
    named: Named,
    dialect: Option<Dialect>,
    request: ChatRequest,
    asking: Asking,
) -> Result<NewTurn, ApiError> {
    let approval = approval(state, request.approval, asking);
    let (settings, in_words) = match dialect {
        Some(dialect) => (request.sampling.settings(dialect)?, request.sampling.in_words(dialect)),
        // Which model it is is found out, and refused, when the turn is started.
        None => Default::default(),
    };
    let instructions = request.instructions.into_iter().chain(in_words.map(str::to_owned));
    let instructions = instructions.reduce(|before, more| format!("{before}\n\n{more}"));
    // A conversation's history is the server's: the hub puts it in, and what the client tells of it is not needed.
    let thread = match request.conversation_id {
        Some(conversation_id) => Thread::In { conversation_id, behind: Behind::Leaf },
        None => Thread::Alone,
    };
    let persona = named.persona();
    let request = TurnRequest {
        input: request.talk.input.into(),
        history: request.talk.history,
        agent: named.agent,
        model: named.model,
        instructions,
        settings,
        approval,
        own_tools: request.tools.into_iter().map(own_tool).collect(),
        tool_choice: request.tool_choice,
        tools: request.server_tools,
        persona,
        ..TurnRequest::default()
    };
    // The answer itself sees to it, since the turn must go on waiting when it was handed over.
    // Nobody comes back to an answer that broke off with its server.
    let after_restart = Some(OnDisconnect::Cancel);
    Ok(NewTurn {
        request,
        thread,
        on_disconnect: OnDisconnect::Continue,
        after_restart,
        ..NewTurn::default()
    })
}

/// Who is asked; `None` = as the server is set up.
fn approval(state: &AppState, wish: Option<ApprovalWish>, asking: Asking) -> Option<Approval> {
    let denied = |reason: &str| Some(Approval::DenyAll { reason: reason.to_owned() });
    match (wish, asking, state.app.approval()) {
        (Some(ApprovalWish::Deny), ..) => denied("the request says that nobody is to be asked"),
        (_, Asking::Nobody, Approval::Ask) => denied(NOBODY_IS_ASKED),
        _ => None,
    }
}

fn senses_of(upstream: &Upstream) -> Senses {
    let quirks = upstream.quirks();
    // Others have no form for it, whatever their models hear.
    let takes_sound = matches!(upstream.speaks(), Dialect::OpenaiChat | Dialect::Gemini);
    let takes_addresses = upstream.speaks() != Dialect::Ollama;
    Senses {
        hears: quirks.audio && takes_sound,
        fetches_images: quirks.fetches_images && quirks.vision && takes_addresses,
    }
}

/// Whether the client sends a failed request again by itself. Then the first model call is made once and its failure told as it
/// is, so that its tries and ours do not multiply: OpenAI's SDKs, and what is built on them, say so in a header; the AI SDK and
/// async-openai say who they are.
fn tries_again_itself(headers: &HeaderMap) -> bool {
    let agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    headers.contains_key("x-stainless-retry-count")
        || ["ai-sdk/", "async-openai"].iter().any(|name| agent.contains(name))
}

/// A model that is not there has its own status and code, which clients look for.
fn as_openai_says(error: ApiError) -> ApiError {
    match error.code {
        "unknown_model" => ApiError { status: StatusCode::NOT_FOUND, code: "model_not_found", ..error },
        _ => error,
    }
}

/// The questions that a turn waits for.
///
/// # Errors
/// The log cannot be read.
pub(crate) async fn questions_of(state: &AppState, turn: &TurnId) -> Result<Vec<CallQuestion>, ApiError> {
    let begun = Projection::new(UsageChunk::Unwanted, Render::None).asking(Asking::Text);
    Ok(resumed::caught_up(state, turn, begun, u64::MAX).await?.projection.questions())
}

fn own_tool(tool: DeclaredTool) -> ClientTool {
    let mut own = ClientTool::new(tool.name);
    own.description = tool.description;
    own.input_schema = Some(tool.parameters);
    own
}

/// The files that the request names, as far as they are the user's. // R: T12
async fn files(
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

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let Refusal { code, message, remedy, param } = refusal;
        let mut error = Self::bad_request(code, message);
        error.remedy = remedy;
        error.param = (!param.is_empty()).then_some(param);
        error
    }
}
