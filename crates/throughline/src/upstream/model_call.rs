//! One model call over HTTP: a request out, the reply through the decoder, every failure as a value. A
//! refused call is repeated immediately if the refusal tells how to change the request.

use super::client::{UpstreamClient, shown_address};
use super::deadlines::{CallDeadlines, WaitPhase};
use super::error_body::{self, UpstreamErrorBody};
use super::failure::{self, ToolsInRequest, UpstreamErrorResponse};
use super::handoff::{ModelHandoff, ModelItem};
use super::learned_profile::{RefusedRequest, forget_reasoning};
use super::models::{ModelFacts, configured_facts, model_facts};
use super::reply_reader::{BodyEnd, ReplyListeners, ReplyReader, drain_body};
use super::response_body::{check_response, error_body};
use super::too_long::HistoryShape;
use crate::clock::TurnClock;
use crate::media::MediaOffloader;
use crate::observe::{ModelCallEvent, ObservedCall};
use crate::request_files::{HydratedRequest, RequestFiles};
use reqwest::header;
use std::sync::atomic::Ordering;
use throughline_engine::{FailureKind, UpstreamFailure};
use throughline_wire::text_calls::{CallFormat, render};
use throughline_wire::{
    ArgumentNames, DecodeOptions, Dialect, EncodedRequest, Message, ModelRequest, ProblemKind, StepEvent,
    StepProblem, ThinkMode, TransferMode, UpstreamError, UpstreamProfile, encode,
};
use tokio::time::{Instant, timeout_at};

/// Limit of an answer, in tokens, if none is configured and the model may write more: a longer answer leaves
/// less room for the prompt, and a request is refused when both do not fit. Thinking is not counted.
const ANSWER_TOKENS_MAX: u64 = 32_000;
/// Most tools named that an upstream does not take.
const LEFT_OUT_NAMED_MAX: usize = 20;
/// Most refusals that one call adapts to. An upstream may refuse one tool after the other; what was learned stays.
const ADAPTED_REFUSALS_MAX: u32 = 32;

/// The time of a call.
#[derive(Clone, Copy)]
pub(crate) struct CallTime<'a> {
    pub clock: &'a TurnClock,
    /// Deadline of the call. All attempts share it: an upstream that trickles without end costs `total_ms`
    /// once.
    pub deadline: Instant,
}

impl UpstreamClient {
    /// Calls the model and hands over its events. While an event waits for its receiver the upstream is not
    /// read. Dropping the future closes the connection.
    pub(crate) async fn call(
        &self,
        request: HydratedRequest,
        calls: &CallFormat,
        time: CallTime<'_>,
        observed: ObservedCall,
        offloader: &MediaOffloader,
        out: &ModelHandoff,
    ) {
        let HydratedRequest { mut request, files } = request;
        let hosted = &mut request.settings.hosted;
        hosted.extend(&self.upstream.hosted);
        hosted.sort_unstable();
        hosted.dedup();
        self.allow_long_answers(&mut request);
        let mut bytes = 0;
        let (model, conversation, shape) =
            (request.model.clone(), request.cache_key.clone(), HistoryShape::of(&request.messages));
        let listeners = ReplyListeners { out, observed: &observed, offloader };
        let request = HydratedRequest { request, files };
        let exchanged = self.exchange(request, calls, time, listeners, &mut bytes).await;
        let failure = exchanged.as_ref().err().map(|failure| failure.kind);
        if let (Some(FailureKind::ContextTooLong), Some(conversation)) = (failure, conversation) {
            self.too_long.insert(model, conversation, shape);
        }
        observed.report(|at| ModelCallEvent::Ended { at, bytes, failure });
        if let Err(failure) = exchanged {
            let failure = UpstreamFailure { message: self.redact(&failure.message), ..failure };
            out.put(ModelItem::Failed(failure)).await;
        }
    }

    /// Anthropic's API requires a limit of the answer: if none is configured, it follows from the known facts
    /// about the model, so that a call that writes a file is not cut.
    fn allow_long_answers(&self, request: &mut ModelRequest) {
        let is_required = matches!(self.upstream.dialect, Dialect::Anthropic | Dialect::BedrockAnthropic);
        let settings = &mut request.settings;
        if !is_required || settings.max_output_tokens.is_some() || settings.extra.contains_key("max_tokens") {
            return;
        }
        let facts = self.facts(&request.model);
        let thinking = settings.extra.get("thinking").and_then(|thinking| thinking["budget_tokens"].as_u64());
        let wanted = ANSWER_TOKENS_MAX.saturating_add(thinking.unwrap_or(0));
        let tokens = facts.output_tokens.map(|most| most.min(wanted));
        settings.max_output_tokens = tokens.and_then(|tokens| u32::try_from(tokens).ok());
    }

    fn facts(&self, model: &str) -> ModelFacts {
        model_facts(&self.models, self.upstream.name(), model)
    }

    /// The upstream's profile, combined with the facts about the model: a picture that it cannot see is no
    /// reason to refuse a chat. Sound is sent only if the configuration enables it, which takes precedence
    /// over the table of models.
    fn profile_for(&self, model: &str) -> UpstreamProfile {
        let mut profile = self.profile.get(model);
        profile.vision &= self.facts(model).vision != Some(false);
        let configured = configured_facts(&self.models, self.upstream.name(), model);
        profile.audio &= configured.audio != Some(false);
        profile
    }

    async fn exchange(
        &self,
        request: HydratedRequest,
        calls: &CallFormat,
        time: CallTime<'_>,
        listeners: ReplyListeners<'_>,
        bytes: &mut u64,
    ) -> Result<(), UpstreamFailure> {
        let HydratedRequest { mut request, files } = request;
        self.profile.forget_unreadable(&mut request);
        let offered_names: Vec<String> =
            request.tools.iter().map(|tool| tool.name.as_str().to_owned()).collect();
        let rendered = match calls {
            CallFormat::Text(text) => render(&request, text),
            _ => *request,
        };
        let transfer = self.upstream.transfer;
        let may_fall_back = self.upstream.whole_fallback
            && transfer == TransferMode::Stream
            && self.upstream.local_model.is_none();
        let options = DecodeOptions {
            limits: self.limits,
            profile: self.profile_for(&rendered.model),
            think: ThinkMode::Split,
            offered: offered_names,
            calls: calls.clone(),
            argument_names: ArgumentNames::of(self.upstream.dialect, &rendered.tools),
        };
        let mut attempt = ReplyAttempt { transfer, may_fall_back, time, listeners };
        let mut call = Box::new(RepeatableCall {
            request: rendered,
            files,
            options,
            tool_choice: ForcedChoice::Field,
            reported_left_out: LeftOut::default(),
            adapted_refusals: 0,
            has_dropped_reasoning: false,
            has_repeated_failed_call: false,
        });
        loop {
            call = match self.attempt(call, attempt, bytes).await? {
                AttemptEnd::Read => return Ok(()),
                AttemptEnd::Adapted(call) => call,
                AttemptEnd::Unusable(failure, call) => {
                    let problem = stream_replaced(self.redact(&failure.message));
                    listeners.out.put(ModelItem::Events(vec![StepEvent::Problem(problem)])).await;
                    (attempt.transfer, attempt.may_fall_back) = (TransferMode::Whole, false);
                    call
                }
            };
        }
    }

    /// Sends the request and reads the reply.
    async fn attempt(
        &self,
        mut call: Box<RepeatableCall>,
        attempt: ReplyAttempt<'_>,
        bytes: &mut u64,
    ) -> Result<AttemptEnd, UpstreamFailure> {
        let ReplyAttempt { transfer, may_fall_back, time, listeners } = attempt;
        let limits = CallDeadlines::of_transfer(&self.upstream, transfer, time.deadline);
        limits.check_remaining()?;
        let opening = OpenedCall { clock: time.clock, transfer, limits: &limits };
        let opened = match &self.upstream.local_model {
            Some(model) => {
                let opened = model.open(call.request.clone(), &limits).await;
                let (left_out, profile) = (LeftOut::default(), call.options.profile.clone());
                opened.map(|response| OpenedReply { response, left_out, profile })
            }
            None => self.open(&mut call, opening, listeners.observed).await,
        };
        let OpenedReply { mut response, left_out, profile } = match opened {
            Err(failure) if may_fall_back && failure::mentions_streaming(&failure) => {
                return Ok(AttemptEnd::Unusable(failure, call));
            }
            opened => opened?,
        };
        let problems = left_out.problems_beyond(&mut call.reported_left_out);
        if !problems.is_empty() {
            listeners.out.put(ModelItem::Events(problems)).await;
        }
        // A reply takes long. Its headers keep the whole buffer that they were read into.
        response.headers_mut().clear();
        let reply = ReplyReader::new(
            self,
            UnansweredCall { call, profile, transfer },
            may_fall_back,
            bytes,
            listeners,
        );
        match reply.read(response, &limits, self.host()).await? {
            BodyEnd::Unusable(failure, call) => return Ok(AttemptEnd::Unusable(failure, call)),
            BodyEnd::Adapted(call) => return Ok(AttemptEnd::Adapted(call)),
            BodyEnd::Early(rest) => _ = tokio::spawn(drain_body(rest)),
            BodyEnd::Complete => {}
        }
        self.may_be_stale.store(true, Ordering::Relaxed);
        Ok(AttemptEnd::Read)
    }

    /// Sends the request until an answer with status 200 arrives. Repeats it immediately on a stale
    /// connection, and if [`adapt`](Self::adapt) changes it; every other repetition is the engine's decision.
    async fn open(
        &self,
        call: &mut RepeatableCall,
        opening: OpenedCall<'_>,
        observed: &ObservedCall,
    ) -> Result<OpenedReply, UpstreamFailure> {
        let OpenedCall { clock, transfer, limits } = opening;
        loop {
            let mut profile = self.profile_for(&call.request.model);
            profile.tool_choice_required &= call.tool_choice == ForcedChoice::Field;
            let (request, left_out) = self.request(call, &profile, transfer)?;
            let sending = self.authorize(request, limits).await?;
            let address = shown_address(sending.url());
            let bytes = body_bytes(&sending);
            observed.report(|at| ModelCallEvent::Sent { at, bytes });
            let sent = timeout_at(limits.first_byte, self.http.execute(sending)).await;
            let response = match sent {
                Err(_) => return Err(limits.expired(WaitPhase::FirstByte)),
                // The pool's connection had been closed by the other side: nothing has come, so nothing is repeated
                // that anyone has seen.
                Ok(Err(error))
                    if error.is_request()
                        && !error.is_connect()
                        && !error.is_timeout()
                        && self.may_be_stale.swap(false, Ordering::Relaxed) =>
                {
                    continue;
                }
                Ok(Err(error)) => return Err(failure::from_transport(&error, self.host())),
                Ok(Ok(response)) => response,
            };
            let status = response.status();
            observed.report(|at| ModelCallEvent::HeadersReceived { at, status: status.as_u16() });
            if status.is_success() {
                let response = check_response(response, &self.secrets()).await?;
                return Ok(OpenedReply { response, left_out, profile });
            }
            let headers = response.headers().clone();
            // Before anything of it is shortened: half a key is half a key too much.
            let body = self.redact(&error_body(response, limits).await);
            let refusal = error_body::parse(&body);
            let status_code = status.as_u16();
            if self.adapt(call, &profile, transfer, (status_code, &refusal)) {
                continue;
            }
            if status.is_redirection() {
                let to =
                    headers.get(header::LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("somewhere else");
                let message = format!("the upstream redirects to {to}; set base_url to the final address");
                let failure = failure::without_status(FailureKind::Unsendable, message);
                return Err(UpstreamFailure { status: Some(status_code), ..failure });
            }
            let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
            let answer = UpstreamErrorResponse {
                status: status_code,
                retry_after: text("retry-after"),
                retry_after_ms: text("retry-after-ms"),
                body: &body,
                now: clock.now(),
            };
            let failure = failure::from_response(&answer, call.offered());
            return Err(failure::with_address(failure, &format!("POST {address}")));
        }
    }

    /// Changes a refused call so that it can be repeated; false if nothing can be changed. Something is left
    /// out that the [`LearnedProfile`](super::learned_profile::LearnedProfile) has learned from the refusal;
    /// a forced call is requested in the text instead; reasoning that the upstream cannot read is not sent
    /// back, first that of the messages before the user's last one; a model whose call was malformed gets a
    /// second attempt.
    fn adapt(
        &self,
        call: &mut RepeatableCall,
        profile: &UpstreamProfile,
        transfer: TransferMode,
        (status, refusal): (u16, &UpstreamErrorBody),
    ) -> bool {
        call.adapted_refusals += 1;
        if call.adapted_refusals > ADAPTED_REFUSALS_MAX {
            return false;
        }
        // Encoded once more: what was sent is not in memory while an answer is waited for.
        let Ok(encoded) = encode(self.upstream.dialect, &call.request, profile, transfer) else {
            return false;
        };
        let refused = RefusedRequest { request: &call.request, profile, body: &encoded.body };
        if self.profile.learn(&refused, status, &refusal.text) {
            return true;
        }
        if call.request.tool_choice.is_forced()
            && profile.tool_choice_required
            && failure::mentions_tool_choice(status, &refusal.text)
        {
            call.tool_choice = ForcedChoice::Words;
            return true;
        }
        if failure::mentions_thoughts_unasked(status, &refusal.text)
            && !std::mem::replace(&mut call.has_dropped_reasoning, true)
        {
            call.request.messages.iter_mut().for_each(forget_reasoning);
            return true;
        }
        if failure::is_unreadable_reasoning(status, &refusal.text) {
            let start = turn_start(&call.request);
            if self.profile.forget_earlier(&mut call.request, start) {
                return true;
            }
            if !std::mem::replace(&mut call.has_dropped_reasoning, true) {
                call.request.messages.iter_mut().for_each(forget_reasoning);
                return true;
            }
        }
        failure::is_failed_call(status, refusal)
            && !std::mem::replace(&mut call.has_repeated_failed_call, true)
    }

    /// As [`adapt`](Self::adapt), for a refusal inside an answer with status 200, before any content.
    pub(super) fn adapt_to_error(&self, unanswered: &mut UnansweredCall, error: &UpstreamError) -> bool {
        let UnansweredCall { call, profile, transfer } = unanswered;
        // A model in this process gets the request as it is.
        let Some(status) =
            failure::refusal_status(error, call.offered()).filter(|_| self.upstream.local_model.is_none())
        else {
            return false;
        };
        self.adapt(call, profile, *transfer, (status, &failure::stream_error_body(error)))
    }

    /// The call as sent, and the parts that are left out of it.
    fn request(
        &self,
        call: &RepeatableCall,
        profile: &UpstreamProfile,
        transfer: TransferMode,
    ) -> Result<(reqwest::Request, LeftOut), UpstreamFailure> {
        let unsendable = |why: String| failure::without_status(FailureKind::Unsendable, why);
        let encoded = encode(self.upstream.dialect, &call.request, profile, transfer)
            .map_err(|error| unsendable(error.to_string()))?;
        let accept = accept_header(self.upstream.dialect, transfer);
        let mut headers = self.headers(accept, &encoded.headers)?;
        let json = serde_json::to_string(&encoded.body).map_err(|error| unsendable(error.to_string()))?;
        let (body, bytes) = call.files.body(json);
        // Of one that is in memory, which a hook may replace, it is set later.
        if body.as_bytes().is_none() {
            headers.insert(header::CONTENT_LENGTH, bytes.into());
        }
        let request = self
            .http
            .post(self.upstream.base_url.join(&encoded.path))
            .headers(headers)
            .body(body)
            .build()
            .map_err(|error| unsendable(error.to_string()))?;
        Ok((request, LeftOut::of(&encoded)))
    }
}

/// Length of a request's body: of the bytes in memory, or of the `Content-Length` header.
fn body_bytes(request: &reqwest::Request) -> u64 {
    let stated = || request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok();
    match request.body().and_then(reqwest::Body::as_bytes) {
        Some(body) => body.len() as u64,
        None => stated().unwrap_or(0),
    }
}

/// Form of the choice of a call that has to be made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ForcedChoice {
    /// The dialect's field, if it has one.
    Field,
    /// A sentence in the prompt: the field was refused.
    Words,
}

/// A call that may have to be repeated, and the adaptations tried so far.
pub(super) struct RepeatableCall {
    request: ModelRequest,
    files: RequestFiles,
    pub options: DecodeOptions,
    tool_choice: ForcedChoice,
    reported_left_out: LeftOut,
    adapted_refusals: u32,
    has_dropped_reasoning: bool,
    has_repeated_failed_call: bool,
}

impl RepeatableCall {
    pub(super) fn offered(&self) -> ToolsInRequest {
        if self.request.tools.is_empty() { ToolsInRequest::Absent } else { ToolsInRequest::Present }
    }
}

/// A call that was answered with status 200, before any content.
pub(super) struct UnansweredCall {
    pub call: Box<RepeatableCall>,
    /// The profile that it was encoded with.
    profile: UpstreamProfile,
    transfer: TransferMode,
}

/// End of an attempt.
enum AttemptEnd {
    /// The reply was read to its end, complete or not.
    Read,
    /// The request was refused inside an answer with 200, and is another one by now.
    Adapted(Box<RepeatableCall>),
    /// A stream that broke before its first content, if the reply may be requested whole.
    Unusable(UpstreamFailure, Box<RepeatableCall>),
}

fn accept_header(dialect: Dialect, transfer: TransferMode) -> &'static str {
    match (transfer, dialect) {
        (TransferMode::Whole, _) => "application/json",
        (TransferMode::Stream, Dialect::Ollama) => "application/x-ndjson",
        (TransferMode::Stream, Dialect::BedrockConverse | Dialect::BedrockAnthropic) => {
            "application/vnd.amazon.eventstream"
        }
        (TransferMode::Stream, _) => "text/event-stream",
    }
}

/// One attempt to request a reply.
#[derive(Clone, Copy)]
struct ReplyAttempt<'a> {
    transfer: TransferMode,
    /// Allows a second request, whole, if the stream breaks before its first content.
    may_fall_back: bool,
    time: CallTime<'a>,
    listeners: ReplyListeners<'a>,
}

/// Circumstances in which a request is sent.
#[derive(Clone, Copy)]
struct OpenedCall<'a> {
    clock: &'a TurnClock,
    transfer: TransferMode,
    limits: &'a CallDeadlines,
}

/// The finding that reports a reply that was requested again.
fn stream_replaced(excerpt: String) -> StepProblem {
    StepProblem { kind: ProblemKind::StreamReplaced, at: 0, excerpt, slot: None }
}

/// An answer with status 200.
struct OpenedReply {
    response: reqwest::Response,
    left_out: LeftOut,
    /// The profile that the request was encoded with.
    profile: UpstreamProfile,
}

/// Tools and settings of a request that were requested and not sent.
#[derive(Clone, Default)]
struct LeftOut {
    tools: Vec<String>,
    settings: Vec<String>,
}

impl LeftOut {
    fn of(encoded: &EncodedRequest) -> Self {
        let tools = encoded.tools_left_out.iter().map(|name| name.as_str().to_owned()).collect();
        Self { tools, settings: encoded.settings_left_out.clone() }
    }

    /// Problems for parts that were not reported as left out before; marks them as reported.
    fn problems_beyond(self, reported: &mut Self) -> Vec<StepEvent<'static>> {
        let kinds = [
            (ProblemKind::ToolsLeftOut, self.tools, &mut reported.tools),
            (ProblemKind::SettingsLeftOut, self.settings, &mut reported.settings),
        ];
        let problems = kinds.into_iter().filter_map(|(kind, mut names, reported)| {
            names.retain(|name| !reported.contains(name));
            let problem = (!names.is_empty()).then(|| StepEvent::Problem(left_out(kind, &names)))?;
            reported.extend(names);
            Some(problem)
        });
        problems.collect()
    }
}

/// Index at which the turn starts: the user's last input. Messages that the user sends between steps of the
/// turn do not count.
fn turn_start(request: &ModelRequest) -> usize {
    let (mut start, mut is_between_steps) = (0, false);
    for (at, message) in request.messages.iter().enumerate() {
        match message {
            Message::Step(step) => is_between_steps = !step.calls.is_empty(),
            Message::User(_) if is_between_steps => {}
            Message::User(_) => start = at,
        }
    }
    start
}

/// A problem that names the parts that were not sent.
fn left_out(kind: ProblemKind, names: &[String]) -> StepProblem {
    let (named, more) = names.split_at(names.len().min(LEFT_OUT_NAMED_MAX));
    let more = if more.is_empty() { String::new() } else { format!(", and {} more", more.len()) };
    StepProblem { kind, at: 0, excerpt: format!("{}{more}", named.join(", ")), slot: None }
}
