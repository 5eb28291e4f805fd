//! A turn as OpenAI Chat Completions: events in, chunks out. Pure: no socket, no clock, and no type of the web framework.
//!
//! Every rule here was learned from a real client; [docs/openai-clients.md] names the clients: one role, one
//! finish, one `[DONE]`; one part per chunk; our extensions in the field `throughline` of an otherwise empty
//! chunk, since named events and foreign objects break clients; never a call that the server runs as
//! `tool_calls`, since clients would run it again.
//!
//! [docs/openai-clients.md]: https://github.com/throughline/throughline/blob/main/docs/openai-clients.md

pub(crate) mod call_id;
pub(crate) mod question;
pub(crate) mod request;

mod call_fragments;
mod calls;
mod chunk;
mod completion;
mod error;
mod markdown_guard;
mod markdown_line;
mod markdown_marks;
mod text_joiner;
mod tool_display;

pub(crate) use calls::{CallDelivery, TurnCalls};
pub(crate) use chunk::{
    ChatChunk, ChatFinish, ChunkHead, ChunkWriter, STREAM_OPEN, ToolCallChunk, heartbeat,
};
pub(crate) use completion::ChatCompletion;
pub(crate) use error::InvalidRequestError;
pub(crate) use error::{ChatErrorBody, RetryHint};

use chunk::add_usage;
use error::BrokenCallCause;
use question::CallQuestion;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use text_joiner::TextJoiner;
use throughline::config::ToolRendering;
use throughline_engine::{BlockStart, Event, EventKind, QuestionKind, ToolResult, TurnFault, TurnStatus};
use throughline_wire::{CallId, FinishReason, Usage};
use tool_display::StatusPhase;

/// Presence of a final chunk with token counts. OpenAI's own idiom `chunk.choices[0]` fails on that chunk, so it is
/// sent only on request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UsageChunk {
    /// `stream_options.include_usage` is set, or the answer is not streamed.
    Wanted,
    /// Usage is not sent.
    #[default]
    Unwanted,
}

/// Selection of the texts that form the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AnswerText {
    /// Texts of all steps, joined.
    #[default]
    EveryStep,
    /// Text of the last step: text before a call would precede the requested JSON, so it goes to the
    /// reasoning.
    LastStep,
}

/// End of one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerEnd {
    /// The turn is over.
    TurnEnded,
    /// The turn waits for client tools, and will continue in another answer.
    ToolCalls,
    /// The turn waits for a person, who answers with the next message, and will continue in another answer.
    Question,
    /// A call that was partly sent to the client cannot be run. The turn continues without a reader.
    BrokenCall,
    /// Another client has sent the result of such a call, and the turn continues there.
    AnsweredElsewhere,
}

/// Channel for approval questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ApprovalChannel {
    /// Events: the answer continues when the questions are answered.
    #[default]
    Events,
    /// The text: the answer ends with the questions.
    Text,
    /// None: the questions are denied.
    DenyAll,
}

/// One answer: a turn from its beginning, or from the end of a previous answer that handed calls to the
/// client.
pub(crate) struct ChatProjection {
    usage_chunk: UsageChunk,
    render: ToolRendering,
    answer_text: AnswerText,
    /// The text of the running step if only the last step's text is the answer, which is not known yet.
    step_text: String,
    calls: TurnCalls,
    /// Output channel of each open block.
    open: BTreeMap<u32, OutputChannel>,
    content: TextJoiner,
    refusal: TextJoiner,
    reasoning: TextJoiner,
    /// Calls and remarks to be shown in the text when no block of text is open: nothing is put into a sentence.
    held_texts: Vec<HeldText>,
    /// Reasoning that is held back with the text.
    held_thoughts: Vec<String>,
    usage: Usage,
    finish: Option<FinishReason>,
    fault: Option<TurnFault>,
    /// True once the model has sent content or a tool runs. A failure before that is reported as if the
    /// answer had never begun.
    started: bool,
    ended: Option<AnswerEnd>,
}

/// Text that is held back.
struct HeldText {
    text: String,
    /// Set if the text announces the start of this call, which is omitted once its result is there.
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
    /// Sound: sent as events only.
    Other,
}

impl ChatProjection {
    /// A new, empty answer.
    pub(crate) fn new(usage_chunk: UsageChunk, render: ToolRendering) -> Self {
        Self {
            usage_chunk,
            render,
            answer_text: AnswerText::EveryStep,
            step_text: String::new(),
            calls: TurnCalls::default(),
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

    /// Sets the texts of the answer. If only JSON may be in the answer, tool displays go to the reasoning.
    pub(crate) fn with_text(mut self, answer_text: AnswerText) -> Self {
        self.answer_text = answer_text;
        if answer_text == AnswerText::LastStep
            && matches!(self.render, ToolRendering::Text | ToolRendering::Details)
        {
            self.render = ToolRendering::Reasoning;
        }
        self.with_guard()
    }

    /// Adds the Markdown guard, except for JSON: programs parse it, and a question is sent alone there.
    fn with_guard(mut self) -> Self {
        let may_ask = self.calls.approval_channel() == ApprovalChannel::Text
            && self.answer_text == AnswerText::EveryStep;
        self.content = if may_ask { TextJoiner::guarded() } else { TextJoiner::default() };
        self
    }

    pub(crate) fn render(&self) -> ToolRendering {
        self.render
    }

    /// Sets the channel for approval questions.
    #[must_use]
    pub(crate) fn with_approval_channel(mut self, channel: ApprovalChannel) -> Self {
        self.calls.set_approval_channel(channel);
        self.with_guard()
    }

    /// Sets the delivery of calls of client tools.
    #[must_use]
    pub(crate) fn with_call_delivery(mut self, delivery: CallDelivery) -> Self {
        self.calls.set_delivery(delivery);
        self
    }

    /// True for a question that the format cannot express, so that the client cannot answer it.
    pub(crate) fn cannot_ask(&self, question: QuestionKind) -> bool {
        match self.calls.approval_channel() {
            ApprovalChannel::Events => false,
            // An elicitation has a form or a link; a chat can only answer yes or no.
            ApprovalChannel::Text => question != QuestionKind::Call,
            ApprovalChannel::DenyAll => true,
        }
    }

    /// Another answer with the same settings, without content.
    pub(crate) fn new_answer(&self) -> Self {
        Self::new(self.usage_chunk, self.render)
            .with_text(self.answer_text)
            .with_approval_channel(self.calls.approval_channel())
            .with_call_delivery(self.calls.delivery())
    }

    /// The first chunk, which is sent before any event.
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
        self.calls.mark_calls_delivered();
    }

    /// The client brings the answer to the questions that it was given.
    pub(crate) fn resume_with_answer(&mut self) {
        self.started = false;
        self.calls.mark_questions_delivered();
    }

    /// The questions that the answer is to end with, once the turn waits for nothing else. They are put with
    /// [`end_with_question`](Self::end_with_question), and nothing follows them. Calls of the client's own come first: it may
    /// have a part of one already.
    pub(crate) fn questions(&self) -> Vec<CallQuestion> {
        if self.ended.is_some() { Vec::new() } else { self.calls.due_questions() }
    }

    /// Ends the answer with the text of a question.
    pub(crate) fn end_with_question(&mut self, text: &str) -> Vec<ChatChunk> {
        let mut out = Vec::new();
        self.open.clear();
        self.flush_held(&mut out);
        out.push(ChatChunk::Content(self.content.close_with(text)));
        self.finish_with(ChatFinish::Stop, &mut out);
        self.ended = Some(AnswerEnd::Question);
        out
    }

    /// Takes the next event and returns its chunks in order. Empty once the answer has
    /// [`ended`](Self::ended).
    pub(crate) fn push(&mut self, event: &Event) -> Vec<ChatChunk> {
        let mut out = Vec::new();
        if self.ended.is_some() {
            return out;
        }
        self.track(event);
        if matches!(event.kind, EventKind::StreamEnd { .. }) {
            // Open blocks stay as they are.
            self.open.clear();
            self.flush_held(&mut out);
        }
        self.render_event(event, &mut out);
        if let EventKind::StreamEnd { status, .. } = event.kind {
            self.end(status, &mut out);
        } else if let Some(cause) = self.calls.broken_by(event) {
            let end = match cause {
                BrokenCallCause::AnsweredElsewhere => AnswerEnd::AnsweredElsewhere,
                _ => AnswerEnd::BrokenCall,
            };
            self.break_off(cause, end, &mut out);
        } else if self.calls.is_handover_due() {
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

    /// The calls of the turn, as far as its events are known.
    pub(crate) fn calls(&self) -> &TurnCalls {
        &self.calls
    }

    /// Tracks the state of the turn, independent of the output.
    fn track(&mut self, event: &Event) {
        self.started |= is_answer_content(&event.kind);
        if let EventKind::StepEnd { finish, .. } = &event.kind {
            self.finish = *finish;
        }
        self.calls.track(event);
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
                // Sent text cannot be retracted: its replacement begins a new paragraph.
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
            // It is put at the end of the answer; an elicitation cannot be answered there.
            EventKind::ApprovalRequest { .. } if self.calls.approval_channel() == ApprovalChannel::Text => {
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
            EventKind::ToolInputDelta { .. } => out.extend(self.calls.fragment(event)),
            // Text for the model alone is not shown.
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

    /// Moves the text of the finished step to the reasoning, since another step follows.
    fn move_step_text_to_reasoning(&mut self, out: &mut Vec<ChatChunk>) {
        if !self.step_text.is_empty() {
            self.held_thoughts.push(std::mem::take(&mut self.step_text));
            self.content = TextJoiner::default();
            self.flush_held(out);
        }
    }

    /// Sends the text of the finished step as the answer, since no step follows.
    fn flush_step_text(&mut self, out: &mut Vec<ChatChunk>) {
        if !self.step_text.is_empty() {
            out.push(ChatChunk::Content(std::mem::take(&mut self.step_text)));
        }
    }

    fn render_start(&mut self, event: &Event, out: &mut Vec<ChatChunk>) {
        let Some(call) = self.calls.server_call(event) else {
            out.push(event_chunk(event, None));
            return;
        };
        let id = call.public_id();
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
        let Some(call) = self.calls.server_call(event) else {
            out.push(event_chunk(event, None));
            return;
        };
        let id = call.public_id();
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

    /// The turn waits for the client: it gets its calls, and this answer is over.
    fn hand_over_calls(&mut self, out: &mut Vec<ChatChunk>) {
        self.open.clear();
        self.flush_held(out);
        self.flush_step_text(out);
        match self.calls.hand_over() {
            Ok(mut chunks) => out.append(&mut chunks),
            Err(cause) => return self.break_off(cause, AnswerEnd::BrokenCall, out),
        }
        self.finish_with(ChatFinish::ToolCalls, out);
        self.ended = Some(AnswerEnd::ToolCalls);
    }

    /// A call that was partly sent to the client cannot be run, and the sent part cannot be retracted: an
    /// error, so that no client runs it.
    fn break_off(&mut self, cause: BrokenCallCause<'_>, end: AnswerEnd, out: &mut Vec<ChatChunk>) {
        let name = self.calls.take_begun().unwrap_or_default();
        self.fail(ChatErrorBody::for_broken_call(&name, cause), end, out);
    }

    fn fail(&mut self, error: ChatErrorBody, end: AnswerEnd, out: &mut Vec<ChatChunk>) {
        out.push(ChatChunk::Error(error));
        out.push(ChatChunk::Done);
        self.ended = Some(end);
    }

    fn end(&mut self, status: TurnStatus, out: &mut Vec<ChatChunk>) {
        self.flush_step_text(out);
        let is_failure = matches!(status, TurnStatus::Error | TurnStatus::Interrupted);
        if self.calls.has_begun() && !is_failure {
            let is_cut = status == TurnStatus::Length;
            let cause = if is_cut { BrokenCallCause::Cut } else { BrokenCallCause::Unfinished };
            return self.break_off(cause, AnswerEnd::TurnEnded, out);
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
