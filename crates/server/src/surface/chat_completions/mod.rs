//! A turn as OpenAI Chat Completions: events in, chunks out. Pure: no socket, no clock, and no type of the web framework.
//!
//! Every rule here was learned from a real client; [docs/openai-clients.md] names the clients:
//! one role, one finish, one `[DONE]`; one thing a chunk; what only we know on a key of its own, `throughline`, of an
//! otherwise empty chunk, since named events and foreign objects break clients; never a call that the server runs as
//! `tool_calls`, since clients run those again.
//!
//! [docs/openai-clients.md]: https://github.com/throughline/throughline/blob/main/docs/openai-clients.md

pub(crate) mod call_id;
pub(crate) mod question;
pub(crate) mod request;

mod call_fragments;
mod chunk;
mod completion;
mod error;
mod markdown_guard;
mod markdown_line;
mod markdown_marks;
mod text_joiner;
mod tool_display;

pub(crate) use chunk::{
    ChatChunk, ChatFinish, ChunkHead, ChunkWriter, STREAM_OPEN, ToolCallChunk, heartbeat,
};
pub(crate) use completion::ChatCompletion;
pub(crate) use error::InvalidRequestError;
pub(crate) use error::{ChatErrorBody, RetryHint};

use call_fragments::CallDraft;
use chunk::add_usage;
use question::CallQuestion;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use text_joiner::TextJoiner;
use throughline::config::ToolRendering;
use throughline_engine::{
    BlockStart, CallStatus, Event, EventKind, EventSeq, QuestionKind, REQUESTER, ToolInput, ToolResult,
    TurnFault, TurnStatus,
};
use throughline_wire::{CallId, CallKind, FinishReason, Usage};
use tool_display::{DisplayedCall, StatusPhase};

/// Code of a call whose client did not answer in time.
const CLIENT_GONE: &str = "client_gone";

/// Reasons why a call that the client has a part of cannot be run.
const MENDED_CALL: &str = "its arguments were mended, and a part of them had been sent";
const CUT_CALL: &str = "the limit of tokens has cut it off";
const UNFINISHED_CALL: &str = "the turn ended before it was complete";
const ANSWERED_CALL: &str = "its result has come from elsewhere";

/// Presence of a final chunk with token counts. OpenAI's own idiom `chunk.choices[0]` fails on that chunk, so it is
/// sent only on request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UsageChunk {
    /// `stream_options.include_usage` is set, or the answer is not streamed.
    Wanted,
    /// It is not.
    #[default]
    Unwanted,
}

/// Selection of the texts that form the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AnswerText {
    /// All of them, one after the other.
    #[default]
    EveryStep,
    /// The last one's: what was said before a tool was called would stand in front of the JSON that is asked for, so it
    /// goes to the reasoning.
    LastStep,
}

/// Form in which calls of the client's own arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CallDelivery {
    /// Whole, once they are to be run.
    #[default]
    Whole,
    /// While they are written, if that takes long.
    Fragments,
}

/// End of one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerEnd {
    /// The turn is over.
    TurnEnded,
    /// The turn waits for the client's own tools, and will go on in another answer.
    ToolCalls,
    /// The turn waits for a person, who answers with the next message, and will go on in another answer.
    Question,
    /// A call that the client has a part of cannot be run. The turn goes on, and nobody will hear of it.
    BrokenCall,
    /// Somebody else has brought the result of such a call, and the turn goes on there.
    AnsweredElsewhere,
}

/// Where questions whether a call may run are put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ApprovalChannel {
    /// To whoever reads the events: the answer goes on when they are answered.
    #[default]
    Events,
    /// In the text: the answer ends with them.
    Text,
    /// To nobody: they are denied.
    DenyAll,
}

/// One answer: a turn from its beginning, or from where an answer before ended with calls for the client.
pub(crate) struct ChatProjection {
    usage_chunk: UsageChunk,
    render: ToolRendering,
    answer_text: AnswerText,
    /// The text of the step that runs, if only the last one's is the answer: nobody knows yet whether it is.
    step_text: String,
    approval_channel: ApprovalChannel,
    call_delivery: CallDelivery,
    /// The event with which the calls that the client is to run were handed over.
    handed_over_at: Option<EventSeq>,
    /// The client has not run a call of this step in time.
    has_client_timed_out: bool,
    /// The call that the client has a part of.
    begun_call: Option<CallId>,
    /// The calls of the turn so far, in order of appearance.
    calls: Vec<ChatCall>,
    step_ended: bool,
    /// Where the deltas of an open block go.
    open: BTreeMap<u32, OutputChannel>,
    content: TextJoiner,
    refusal: TextJoiner,
    reasoning: TextJoiner,
    /// Calls and remarks to be shown in the text when no block of text is open: nothing is put into a sentence.
    held_texts: Vec<HeldText>,
    /// The same for reasoning.
    held_thoughts: Vec<String>,
    usage: Usage,
    finish: Option<FinishReason>,
    fault: Option<TurnFault>,
    /// True once the model has said something or a tool runs. A failure before that is as if the answer had never begun.
    started: bool,
    ended: Option<AnswerEnd>,
}

/// Something to be shown.
struct HeldText {
    text: String,
    /// It says that this call runs, which is no news once its result is there.
    start_of: Option<CallId>,
}

impl From<String> for HeldText {
    fn from(text: String) -> Self {
        Self { text, start_of: None }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OutputChannel {
    Content,
    Refusal,
    Reasoning,
    /// Sound: told as events only.
    Other,
}

/// A call as far as this surface looks at it.
struct ChatCall {
    id: CallId,
    wire_name: String,
    tool_name: String,
    title: String,
    order: (u32, u32),
    input_summary: String,
    arguments: String,
    /// Of a call with JSON for the client's own tool.
    draft: Option<CallDraft>,
    phase: ChatCallPhase,
    runner: ToolRunner,
    handover: HandoverState,
    question: Option<OpenQuestion>,
}

/// A question that is open.
struct OpenQuestion {
    approval_id: String,
    arguments_hash: String,
    question: String,
    handover: HandoverState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ChatCallPhase {
    /// Arguments, a question, a place in the row.
    NotStarted,
    Started,
    Closed,
}

/// State of a handover: once an earlier answer has handed a call or a question to the client, the reply is on its way
/// and it is not handed over again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HandoverState {
    Delivered,
    Pending,
}

/// Party that runs a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ToolRunner {
    /// The server, or a page that is connected to it.
    Server,
    /// The client that reads this answer.
    Client,
}

impl ChatProjection {
    /// An answer of which nothing has been said.
    pub(crate) fn new(usage_chunk: UsageChunk, render: ToolRendering) -> Self {
        Self {
            usage_chunk,
            render,
            answer_text: AnswerText::EveryStep,
            step_text: String::new(),
            approval_channel: ApprovalChannel::default(),
            call_delivery: CallDelivery::default(),
            handed_over_at: None,
            has_client_timed_out: false,
            begun_call: None,
            calls: Vec::new(),
            step_ended: false,
            open: BTreeMap::new(),
            content: TextJoiner::default(),
            refusal: TextJoiner::default(),
            reasoning: TextJoiner::default(),
            held_texts: Vec::new(),
            held_thoughts: Vec::new(),
            usage: Usage::default(),
            finish: None,
            fault: None,
            started: false,
            ended: None,
        }
    }

    /// The same with these texts. What is shown of tools goes to the reasoning where only JSON can stand in the answer.
    pub(crate) fn with_text(mut self, answer_text: AnswerText) -> Self {
        self.answer_text = answer_text;
        if answer_text == AnswerText::LastStep
            && matches!(self.render, ToolRendering::Text | ToolRendering::Details)
        {
            self.render = ToolRendering::Reasoning;
        }
        self.with_guard()
    }

    /// JSON is read by programs, which would not find what a guard has changed; a question stands alone there.
    fn with_guard(mut self) -> Self {
        let may_ask =
            self.approval_channel == ApprovalChannel::Text && self.answer_text == AnswerText::EveryStep;
        self.content = if may_ask { TextJoiner::guarded() } else { TextJoiner::default() };
        self
    }

    pub(crate) fn render(&self) -> ToolRendering {
        self.render
    }

    /// The same, and questions are put there.
    #[must_use]
    pub(crate) fn with_approval_channel(self, channel: ApprovalChannel) -> Self {
        Self { approval_channel: channel, ..self }.with_guard()
    }

    /// The same, and calls of the client's own arrive so.
    #[must_use]
    pub(crate) fn with_call_delivery(self, call_delivery: CallDelivery) -> Self {
        Self { call_delivery, ..self }
    }

    /// True for a question that the format cannot express, so that nobody will answer it.
    pub(crate) fn cannot_ask(&self, question: QuestionKind) -> bool {
        match self.approval_channel {
            ApprovalChannel::Events => false,
            // What a running tool asks is filled in or done elsewhere; a chat window has a yes and a no.
            ApprovalChannel::Text => question != QuestionKind::Call,
            ApprovalChannel::DenyAll => true,
        }
    }

    /// Another answer of the same kind, of which nothing has been said.
    pub(crate) fn new_answer(&self) -> Self {
        Self::new(self.usage_chunk, self.render)
            .with_text(self.answer_text)
            .with_approval_channel(self.approval_channel)
            .with_call_delivery(self.call_delivery)
    }

    /// The first piece, to be sent before anything is known of the answer.
    pub(crate) fn opening(&self) -> ChatChunk {
        ChatChunk::Role
    }

    /// Takes an event that an answer before has shown.
    pub(crate) fn replay(&mut self, event: &Event) {
        self.track(event);
    }

    /// The client brings the results of the calls that it was given.
    pub(crate) fn resume_with_results(&mut self) {
        self.started = false;
        for call in self.calls.iter_mut().filter(|call| call.waits_for_client()) {
            call.handover = HandoverState::Delivered;
        }
    }

    /// The client brings the answer to the questions that it was given.
    pub(crate) fn resume_with_answer(&mut self) {
        self.started = false;
        for open_question in self.calls.iter_mut().filter_map(|call| call.question.as_mut()) {
            open_question.handover = HandoverState::Delivered;
        }
    }

    /// The questions that the answer is to end with, once the turn waits for nothing else. They are put with
    /// [`end_with_question`](Self::end_with_question), and nothing follows them. Calls of the client's own come first: it may
    /// have a part of one already.
    pub(crate) fn questions(&self) -> Vec<CallQuestion> {
        let is_due = self.approval_channel == ApprovalChannel::Text
            && self.ended.is_none()
            && self.step_ended
            && self.open_calls().all(|call| call.question.is_some())
            // One of these that is still open has been answered already, and the log is about to say so.
            && self.calls.iter().filter_map(|call| call.question.as_ref()).all(|open| open.handover == HandoverState::Pending);
        if !is_due {
            return Vec::new();
        }
        let mut questions: Vec<(&ChatCall, &OpenQuestion)> =
            self.calls.iter().filter_map(|call| Some((call, call.question.as_ref()?))).collect();
        questions.sort_by_key(|(call, _)| call.order);
        let question = |(call, open_question): (&ChatCall, &OpenQuestion)| CallQuestion {
            approval_id: open_question.approval_id.clone(),
            arguments_hash: open_question.arguments_hash.clone(),
            question: open_question.question.clone(),
            arguments: serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!(call.arguments)),
        };
        questions.into_iter().map(question).collect()
    }

    /// Ends the answer with this text, which asks.
    pub(crate) fn end_with_question(&mut self, text: &str) -> Vec<ChatChunk> {
        let mut out = Vec::new();
        self.open.clear();
        self.flush_held(&mut out);
        out.push(ChatChunk::Content(self.content.close_with(text)));
        self.finish_with(ChatFinish::Stop, &mut out);
        self.ended = Some(AnswerEnd::Question);
        out
    }

    /// Takes the next event: what the client is told of it, in order. Nothing once the answer has [`ended`](Self::ended).
    pub(crate) fn push(&mut self, event: &Event) -> Vec<ChatChunk> {
        let mut out = Vec::new();
        if self.ended.is_some() {
            return out;
        }
        self.track(event);
        if matches!(event.kind, EventKind::StreamEnd { .. }) {
            // Whatever was open stays as it is.
            self.open.clear();
            self.flush_held(&mut out);
        }
        self.render_event(event, &mut out);
        if let EventKind::StreamEnd { status, .. } = event.kind {
            self.end(status, &mut out);
        } else if let EventKind::ToolResult(result) = &event.kind
            && self.begun_call.is_some()
            && self.begun_call == event.tool_id
            && !self.is_failed_step()
        {
            let end = match result.status {
                CallStatus::Success => AnswerEnd::AnsweredElsewhere,
                _ => AnswerEnd::BrokenCall,
            };
            self.break_off(broken_call_text(result), end, &mut out);
        } else if matches!(event.kind, EventKind::StepStart { .. }) && self.begun_call.is_some() {
            self.break_off(UNFINISHED_CALL, AnswerEnd::BrokenCall, &mut out);
        } else if self.waits_for_nothing_else() && self.client_calls().all(ChatCall::is_undelivered) {
            self.hand_over_calls(&mut out);
        }
        out
    }

    pub(crate) fn has_started(&self) -> bool {
        self.started
    }

    /// End of the answer, once everything has been sent.
    pub(crate) fn ended(&self) -> Option<AnswerEnd> {
        self.ended
    }

    /// True while the turn, as far as its events are known, waits for results of the client's own calls.
    pub(crate) fn waits_for_results(&self) -> bool {
        self.step_ended && self.calls.iter().any(ChatCall::waits_for_client)
    }

    /// True if besides it waits at most for answers that the client can give in another message.
    fn waits_for_nothing_else(&self) -> bool {
        let is_asked =
            |call: &ChatCall| self.approval_channel == ApprovalChannel::Text && call.question.is_some();
        self.waits_for_results() && self.open_calls().all(|call| call.waits_for_client() || is_asked(call))
    }

    /// True if a person is asked about a call.
    pub(crate) fn has_question(&self) -> bool {
        self.calls.iter().any(|call| call.question.is_some())
    }

    /// True if the client has let its time for calls pass before it was shown the question about another.
    pub(crate) fn has_unseen_question(&self) -> bool {
        self.has_client_timed_out && self.has_question()
    }

    /// Where an answer ended with the calls that the turn waits for.
    pub(crate) fn handed_over_at(&self) -> Option<EventSeq> {
        self.handed_over_at
    }

    /// The end of the turn follows, and says why.
    fn is_failed_step(&self) -> bool {
        let failures = [FinishReason::Length, FinishReason::ContentFilter, FinishReason::Error];
        self.step_ended && self.finish.is_some_and(|finish| failures.contains(&finish))
    }

    fn open_calls(&self) -> impl Iterator<Item = &ChatCall> {
        self.calls.iter().filter(|call| call.phase != ChatCallPhase::Closed)
    }

    /// The calls that the client is to run, in order.
    pub(crate) fn client_call_ids(&self) -> Vec<CallId> {
        self.client_calls().map(|call| call.id.clone()).collect()
    }

    fn client_calls(&self) -> impl Iterator<Item = &ChatCall> {
        let mut calls: Vec<&ChatCall> = self.calls.iter().filter(|call| call.waits_for_client()).collect();
        calls.sort_by_key(|call| call.order);
        calls.into_iter()
    }

    /// Tracks the state of the turn, independent of the output.
    fn track(&mut self, event: &Event) {
        if is_answer_content(&event.kind) {
            self.started = true;
        }
        match &event.kind {
            EventKind::StepStart { .. } => {
                self.step_ended = false;
                self.handed_over_at = None;
                self.has_client_timed_out = false;
            }
            EventKind::StepEnd { finish, .. } => {
                self.step_ended = true;
                self.finish = *finish;
            }
            EventKind::ToolUse {
                tool_name,
                wire_name,
                title,
                source,
                slot,
                position,
                input_summary,
                call_kind,
                ..
            } => {
                let Some(id) = event.tool_id.clone() else { return };
                // A tool from elsewhere is shown by its name: its title is whatever its source wants.
                let is_foreign = source.starts_with("mcp:") || source == "client";
                let may_begin = source == REQUESTER
                    && *call_kind == CallKind::Function
                    && self.call_delivery == CallDelivery::Fragments;
                self.calls.push(ChatCall {
                    id,
                    wire_name: wire_name.as_str().to_owned(),
                    tool_name: tool_name.as_str().to_owned(),
                    title: if is_foreign { String::new() } else { title.clone() },
                    order: (*position, slot.0),
                    input_summary: input_summary.clone(),
                    arguments: String::new(),
                    draft: may_begin.then(|| CallDraft::new(event.timestamp)),
                    phase: ChatCallPhase::NotStarted,
                    runner: ToolRunner::Server,
                    handover: HandoverState::Pending,
                    question: None,
                });
            }
            EventKind::ToolInputDelta { delta, .. } => {
                if let Some(draft) = self.call_mut(event).and_then(|call| call.draft.as_mut()) {
                    draft.push(delta);
                }
            }
            EventKind::ToolInput(input) => {
                if let Some(call) = self.call_mut(event) {
                    call.arguments = arguments_text(input);
                    call.input_summary.clone_from(&input.input_summary);
                }
            }
            EventKind::ToolInputReset | EventKind::ToolRedefined { .. } => {
                if let Some(call) = self.call_mut(event) {
                    call.phase = ChatCallPhase::NotStarted;
                    call.question = None;
                    if let (EventKind::ToolInputReset, Some(draft)) = (&event.kind, &mut call.draft) {
                        draft.reset();
                    }
                }
            }
            EventKind::ApprovalRequest { approval_id, kind, question, arguments_hash, .. }
                if *kind == QuestionKind::Call =>
            {
                let open_question = OpenQuestion {
                    approval_id: approval_id.as_str().to_owned(),
                    arguments_hash: arguments_hash.clone(),
                    question: question.clone(),
                    handover: HandoverState::Pending,
                };
                if let Some(call) = self.call_mut(event) {
                    call.question = Some(open_question);
                }
            }
            EventKind::ApprovalResolved { approval_id, .. } => {
                let is_it =
                    |open_question: &mut OpenQuestion| open_question.approval_id == approval_id.as_str();
                if let Some(call) = self.call_mut(event) {
                    call.question.take_if(is_it);
                }
            }
            EventKind::ToolStart { client_id, .. } => {
                let is_theirs = client_id.as_deref() == Some(REQUESTER);
                if let Some(call) = self.call_mut(event) {
                    call.phase = ChatCallPhase::Started;
                    call.runner = if is_theirs { ToolRunner::Client } else { ToolRunner::Server };
                }
            }
            EventKind::ToolResult(result) => {
                if let Some(call) = self.call_mut(event) {
                    call.phase = ChatCallPhase::Closed;
                    call.question = None;
                    call.draft = None;
                    if call.runner == ToolRunner::Client {
                        self.handed_over_at = None;
                    }
                }
                self.has_client_timed_out |=
                    result.error.as_ref().is_some_and(|error| error.code == CLIENT_GONE);
            }
            _ => {}
        }
        if self.handed_over_at.is_none() && self.waits_for_nothing_else() {
            self.handed_over_at = Some(event.seq);
        }
    }

    fn call_mut(&mut self, event: &Event) -> Option<&mut ChatCall> {
        let id = event.tool_id.as_ref()?;
        self.calls.iter_mut().rev().find(|call| call.id == *id)
    }

    #[deny(clippy::wildcard_enum_match_arm)]
    fn render_event(&mut self, event: &Event, out: &mut Vec<ChatChunk>) {
        match &event.kind {
            EventKind::ContentDelta { text, .. } => self.append_text(event.block, text, out),
            EventKind::Thinking { text, .. } => self.append_text(event.block, text, out),
            EventKind::BlockStart(start) => self.open_block(event, start, out),
            EventKind::BlockEnd => {
                if let Some(at) = event.block {
                    self.open.remove(&at);
                }
                self.flush_held(out);
            }
            EventKind::BlockSuperseded { .. } => {
                self.step_text.clear();
                // What was sent cannot be taken back: what replaces it begins a new paragraph.
                if let Some(at) = event.block {
                    self.begin_text_block(at, out);
                }
                out.push(event_chunk(event, None));
            }
            EventKind::StepEnd { usage, .. } => {
                if let Some(usage) = usage {
                    add_usage(&mut self.usage, usage);
                }
            }
            EventKind::ToolStart { .. } => self.render_start(event, out),
            EventKind::ToolResult(result) => self.render_result(event, result, out),
            // It stands at the end of the answer; what a running tool asks cannot be answered there.
            EventKind::ApprovalRequest { .. } if self.approval_channel == ApprovalChannel::Text => {
                out.push(event_chunk(event, None))
            }
            EventKind::ApprovalRequest { question, .. } => {
                self.render_remark(event, question, StatusPhase::Running, out)
            }
            EventKind::ApprovalResolved { decision, .. } => {
                let status = (self.render == ToolRendering::OwuiEvent)
                    .then(|| tool_display::status(tool_display::decision_word(*decision), StatusPhase::Done));
                out.push(event_chunk(event, status));
            }
            EventKind::Error(fault) => self.fault = Some(fault.clone()),
            EventKind::StreamStart { .. }
            | EventKind::UserMessage { .. }
            | EventKind::ToolUse { .. }
            | EventKind::ToolInput(_)
            | EventKind::ToolInputReset
            | EventKind::ToolRedefined { .. }
            | EventKind::ToolProgress(_)
            | EventKind::Citation { .. }
            | EventKind::AudioDelta { .. }
            | EventKind::Waiting { .. }
            | EventKind::Problem { .. }
            | EventKind::TurnResumed { .. }
            | EventKind::SessionStats(_)
            | EventKind::StreamEnd { .. } => out.push(event_chunk(event, None)),
            EventKind::StepStart { .. } => self.move_step_text_to_reasoning(out),
            EventKind::ToolInputDelta { .. } => self.stream_arguments(event, out),
            // What the model alone is told is shown to nobody.
            EventKind::ModelText { .. } | EventKind::Unrecognised => {}
            _ => out.push(event_chunk(event, None)),
        }
    }

    #[deny(clippy::wildcard_enum_match_arm)]
    fn open_block(&mut self, event: &Event, start: &BlockStart, out: &mut Vec<ChatChunk>) {
        let channel = match start {
            BlockStart::Text { code, .. } if code.as_deref() == Some("refusal") => OutputChannel::Refusal,
            BlockStart::Text { .. } => OutputChannel::Content,
            BlockStart::Thinking => OutputChannel::Reasoning,
            BlockStart::Audio => OutputChannel::Other,
            BlockStart::Image(media) => {
                out.push(event_chunk(event, None));
                if matches!(self.render, ToolRendering::Text | ToolRendering::Details | ToolRendering::Vcp) {
                    self.held_texts.push(tool_display::picture(media).into());
                    self.flush_held(out);
                }
                return;
            }
            BlockStart::Notice { text, .. } => {
                self.render_remark(event, text, StatusPhase::Done, out);
                return;
            }
            // The error itself follows.
            BlockStart::Error(_) | BlockStart::Unrecognised => return,
            _ => OutputChannel::Other,
        };
        let Some(at) = event.block else { return };
        self.open.insert(at, channel);
        self.begin_text_block(at, out);
    }

    fn begin_text_block(&mut self, block: u32, out: &mut Vec<ChatChunk>) {
        if let Some(rest) = self.joiner_of(block).and_then(TextJoiner::begin_block) {
            // Only the answer's text holds anything back.
            out.push(ChatChunk::Content(rest));
        }
    }

    fn joiner_of(&mut self, block: u32) -> Option<&mut TextJoiner> {
        match self.open.get(&block)? {
            OutputChannel::Content => Some(&mut self.content),
            OutputChannel::Refusal => Some(&mut self.refusal),
            OutputChannel::Reasoning => Some(&mut self.reasoning),
            OutputChannel::Other => None,
        }
    }

    fn append_text(&mut self, block: Option<u32>, text: &str, out: &mut Vec<ChatChunk>) {
        let Some(at) = block else { return };
        let Some(channel) = self.open.get(&at).copied() else { return };
        let Some(text) = self.joiner_of(at).and_then(|joiner| joiner.push(text)) else { return };
        match channel {
            OutputChannel::Content if self.answer_text == AnswerText::LastStep => {
                self.step_text.push_str(&text)
            }
            OutputChannel::Content => out.push(ChatChunk::Content(text)),
            OutputChannel::Refusal => out.push(ChatChunk::Refusal(text)),
            OutputChannel::Reasoning => out.push(ChatChunk::Reasoning(text)),
            OutputChannel::Other => {}
        }
    }

    /// Another step follows, so what the one before said is not the answer.
    fn move_step_text_to_reasoning(&mut self, out: &mut Vec<ChatChunk>) {
        if !self.step_text.is_empty() {
            self.held_thoughts.push(std::mem::take(&mut self.step_text));
            self.content = TextJoiner::default();
            self.flush_held(out);
        }
    }

    /// No step follows: what this one said is the answer.
    fn flush_step_text(&mut self, out: &mut Vec<ChatChunk>) {
        if !self.step_text.is_empty() {
            out.push(ChatChunk::Content(std::mem::take(&mut self.step_text)));
        }
    }

    fn render_start(&mut self, event: &Event, out: &mut Vec<ChatChunk>) {
        let Some(call) = self.call_of(event).filter(|call| call.runner == ToolRunner::Server) else {
            out.push(event_chunk(event, None));
            return;
        };
        let id = call_id::to_public(&call.id);
        let display = call.display(&id);
        let text = match self.render {
            ToolRendering::None | ToolRendering::Vcp => String::new(),
            ToolRendering::Text => tool_display::start_line(&display),
            ToolRendering::Details => tool_display::start_card(&display),
            ToolRendering::Reasoning => tool_display::thought(&display.summary()),
            ToolRendering::OwuiEvent => display.summary(),
        };
        let status = (self.render == ToolRendering::OwuiEvent)
            .then(|| tool_display::status(&text, StatusPhase::Running));
        out.push(event_chunk(event, status));
        match self.render {
            ToolRendering::Text | ToolRendering::Details => {
                self.held_texts.push(HeldText { text, start_of: event.tool_id.clone() })
            }
            ToolRendering::Reasoning => self.held_thoughts.push(text),
            ToolRendering::None | ToolRendering::OwuiEvent | ToolRendering::Vcp => {}
        }
        self.flush_held(out);
    }

    fn render_result(&mut self, event: &Event, result: &ToolResult, out: &mut Vec<ChatChunk>) {
        // A result that the client itself has sent is no news to it.
        let Some(call) = self.call_of(event).filter(|call| call.runner == ToolRunner::Server) else {
            out.push(event_chunk(event, None));
            return;
        };
        let id = call_id::to_public(&call.id);
        let display = call.display(&id);
        let line = match self.render {
            ToolRendering::None => String::new(),
            ToolRendering::Text => tool_display::result_line(&display, result),
            ToolRendering::Details => tool_display::result_card(&display, result),
            ToolRendering::Reasoning => tool_display::result_thought(&display, result),
            ToolRendering::OwuiEvent => display.summary(),
            ToolRendering::Vcp => tool_display::result_information(&display, result),
        };
        let status =
            (self.render == ToolRendering::OwuiEvent).then(|| tool_display::status(&line, StatusPhase::Done));
        out.push(event_chunk(event, status));
        match self.render {
            ToolRendering::Text | ToolRendering::Details | ToolRendering::Vcp => {
                self.held_texts.retain(|held| held.start_of.is_none() || held.start_of != event.tool_id);
                self.held_texts.push(line.into());
            }
            ToolRendering::Reasoning => self.held_thoughts.push(line),
            ToolRendering::None | ToolRendering::OwuiEvent => {}
        }
        self.flush_held(out);
    }

    /// A remark or a question, for people.
    fn render_remark(&mut self, event: &Event, text: &str, phase: StatusPhase, out: &mut Vec<ChatChunk>) {
        let status = (self.render == ToolRendering::OwuiEvent).then(|| tool_display::status(text, phase));
        out.push(event_chunk(event, status));
        match self.render {
            ToolRendering::Text | ToolRendering::Details => {
                self.held_texts.push(tool_display::quote_line(text).into())
            }
            ToolRendering::Reasoning => self.held_thoughts.push(tool_display::thought(text)),
            ToolRendering::None | ToolRendering::OwuiEvent | ToolRendering::Vcp => {}
        }
        self.flush_held(out);
    }

    fn call_of(&self, event: &Event) -> Option<&ChatCall> {
        let id = event.tool_id.as_ref()?;
        self.calls.iter().rev().find(|call| call.id == *id)
    }

    /// Shows what was held back, where no block is open that it would tear apart.
    fn flush_held(&mut self, out: &mut Vec<ChatChunk>) {
        let is_open = |channel| self.open.values().any(|open| *open == channel);
        if !is_open(OutputChannel::Content) {
            out.extend(self.content.end_block().map(ChatChunk::Content));
            for card in self.held_texts.drain(..) {
                out.push(ChatChunk::Content(self.content.insert(&card.text)));
            }
        }
        if !is_open(OutputChannel::Reasoning) {
            for thought in self.held_thoughts.drain(..) {
                out.push(ChatChunk::Reasoning(self.reasoning.insert(&thought)));
            }
        }
    }

    /// The client's own call that takes long to write is sent as it comes.
    fn stream_arguments(&mut self, event: &Event, out: &mut Vec<ChatChunk>) {
        let is_begun = self.begun_call.is_some();
        if is_begun && self.begun_call != event.tool_id {
            return;
        }
        let Some(call) = self.call_mut(event) else { return };
        let draft = call.draft.as_mut().filter(|draft| is_begun || draft.is_slow(event.timestamp));
        let Some(arguments) = draft.and_then(CallDraft::fragment) else { return };
        if is_begun {
            out.push(ChatChunk::CallArguments(arguments));
        } else {
            out.push(ChatChunk::Call(call.chunk(0, arguments)));
            self.begun_call.clone_from(&event.tool_id);
        }
    }

    /// The turn waits for the client: it gets its calls, and this answer is over.
    fn hand_over_calls(&mut self, out: &mut Vec<ChatChunk>) {
        self.open.clear();
        self.flush_held(out);
        self.flush_step_text(out);
        let is_begun = |call: &&ChatCall| self.begun_call.as_ref() == Some(&call.id);
        let (begun, others): (Vec<&ChatCall>, Vec<&ChatCall>) = self.client_calls().partition(is_begun);
        if self.begun_call.is_some() && begun.is_empty() {
            return self.break_off(UNFINISHED_CALL, AnswerEnd::BrokenCall, out);
        }
        let mut chunks = Vec::new();
        for (index, call) in begun.into_iter().chain(others).enumerate() {
            match call.draft.as_ref().filter(|_| is_begun(&call)).map(|draft| draft.rest(&call.arguments)) {
                Some(Some(rest)) => chunks.push(ChatChunk::CallArguments(rest.to_owned())),
                Some(None) => return self.break_off(MENDED_CALL, AnswerEnd::BrokenCall, out),
                None => chunks.push(ChatChunk::Call(call.chunk(index, call.arguments.clone()))),
            }
        }
        out.append(&mut chunks);
        self.begun_call = None;
        self.finish_with(ChatFinish::ToolCalls, out);
        self.ended = Some(AnswerEnd::ToolCalls);
    }

    /// The client has a part of a call that cannot be run, and nothing can take it back: an error, so that no client runs it.
    fn break_off(&mut self, why: &str, end: AnswerEnd, out: &mut Vec<ChatChunk>) {
        let begun = self.begun_call.take();
        let call = self.calls.iter().find(|call| Some(&call.id) == begun.as_ref());
        let name = call.map(|call| call.wire_name.clone());
        self.fail(ChatErrorBody::for_broken_call(&name.unwrap_or_default(), why), end, out);
    }

    fn fail(&mut self, error: ChatErrorBody, end: AnswerEnd, out: &mut Vec<ChatChunk>) {
        out.push(ChatChunk::Error(error));
        out.push(ChatChunk::Done);
        self.ended = Some(end);
    }

    fn end(&mut self, status: TurnStatus, out: &mut Vec<ChatChunk>) {
        self.flush_step_text(out);
        let is_failure = matches!(status, TurnStatus::Error | TurnStatus::Interrupted);
        if self.begun_call.is_some() && !is_failure {
            let why = if status == TurnStatus::Length { CUT_CALL } else { UNFINISHED_CALL };
            return self.break_off(why, AnswerEnd::TurnEnded, out);
        }
        self.ended = Some(AnswerEnd::TurnEnded);
        match (status, self.finish) {
            (TurnStatus::Error | TurnStatus::Interrupted, _) => {
                let error = ChatErrorBody::for_turn(self.fault.as_ref(), status);
                self.fail(error, AnswerEnd::TurnEnded, out);
            }
            (TurnStatus::Length, _) => self.finish_with(ChatFinish::Length, out),
            (_, Some(FinishReason::ContentFilter)) => self.finish_with(ChatFinish::ContentFilter, out),
            // After a limit the last step has answered without tools: the answer is whole. What was stopped on purpose
            // is as whole as it was meant to be.
            (TurnStatus::Completed | TurnStatus::Limit | TurnStatus::Cancelled, _) => {
                self.finish_with(ChatFinish::Stop, out);
            }
        }
    }

    fn finish_with(&mut self, finish: ChatFinish, out: &mut Vec<ChatChunk>) {
        out.push(ChatChunk::Finish(finish));
        if self.usage_chunk == UsageChunk::Wanted {
            out.push(ChatChunk::Usage(self.usage));
        }
        out.push(ChatChunk::Done);
    }
}

impl ChatCall {
    fn chunk(&self, index: usize, arguments: String) -> ToolCallChunk {
        let (id, name) = (call_id::to_public(&self.id), self.wire_name.clone());
        ToolCallChunk { index, id, name, arguments }
    }

    fn waits_for_client(&self) -> bool {
        self.phase == ChatCallPhase::Started && self.runner == ToolRunner::Client
    }

    fn is_undelivered(&self) -> bool {
        self.handover == HandoverState::Pending
    }

    fn display<'a>(&'a self, id: &'a str) -> DisplayedCall<'a> {
        DisplayedCall {
            id,
            name: &self.tool_name,
            title: &self.title,
            input_summary: &self.input_summary,
            arguments: &self.arguments,
        }
    }
}

/// Why a call that has ended so cannot be run.
fn broken_call_text(result: &ToolResult) -> &str {
    match (&result.error, result.status) {
        (_, CallStatus::Success) => ANSWERED_CALL,
        (Some(error), _) => match (&error.message, &error.limit) {
            (Some(message), _) => message,
            (None, Some(limit)) => limit,
            (None, None) => UNFINISHED_CALL,
        },
        (None, _) => UNFINISHED_CALL,
    }
}

/// True for content that a client would notice if it were retracted.
fn is_answer_content(kind: &EventKind) -> bool {
    match kind {
        EventKind::BlockStart(start) => {
            !matches!(start, BlockStart::Error(_) | BlockStart::Notice { .. } | BlockStart::Unrecognised)
        }
        EventKind::ToolUse { .. } | EventKind::ToolStart { .. } | EventKind::ToolResult(_) => true,
        _ => false,
    }
}

/// The argument text that a call runs with.
fn arguments_text(input: &ToolInput) -> String {
    match (&input.text, &input.arguments, &input.raw) {
        (Some(text), _, _) => text.clone(),
        (None, Some(value), _) => value.to_string(),
        (None, None, raw) => raw.clone().unwrap_or_default(),
    }
}

/// The event as in `docs/events.md`, but for what the client has sent itself, and with the address of an answer.
fn event_chunk(event: &Event, status: Option<Value>) -> ChatChunk {
    let mut value = serde_json::to_value(event).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        match &event.kind {
            EventKind::StreamStart { .. } | EventKind::UserMessage { .. } => {
                drop(fields.shift_remove("input"))
            }
            EventKind::ApprovalRequest { approval_id, .. } => {
                let url = format!("/v1/turns/{}/approvals/{approval_id}", event.turn_id);
                fields.insert("answer_url".into(), json!(url));
            }
            _ => {}
        }
    }
    ChatChunk::Event { event: value, status }
}

#[cfg(test)]
mod tests;
