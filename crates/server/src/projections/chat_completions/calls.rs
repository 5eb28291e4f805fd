//! The calls of a turn, as far as this surface needs them: who runs each, what was sent to the client, and
//! what the turn waits for.

use super::call_fragments::CallDraft;
use super::error::BrokenCallCause;
use super::tool_display::DisplayedCall;
use super::{ApprovalChannel, ChatChunk, ToolCallChunk, call_id, question::CallQuestion};
use serde_json::json;
use throughline_engine::{Event, EventKind, EventSeq, QuestionKind, REQUESTER, ToolInput};
use throughline_wire::{CallId, CallKind, FinishReason};

/// Code of a call whose client did not answer in time.
const CLIENT_GONE: &str = "client_gone";

/// Form in which calls of the client's own arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CallDelivery {
    /// Whole, once they are to be run.
    #[default]
    Whole,
    /// While they are written, if that takes long.
    Fragments,
}

/// The calls of a turn so far.
#[derive(Default)]
pub(crate) struct TurnCalls {
    approval_channel: ApprovalChannel,
    delivery: CallDelivery,
    /// Calls in order of appearance.
    calls: Vec<ChatCall>,
    step_ended: bool,
    /// True once a step has failed: the end of the turn follows with the reason.
    has_step_failed: bool,
    /// The call that the client has a part of.
    begun: Option<CallId>,
    /// The event with which the calls that the client is to run were handed over.
    handed_over_at: Option<EventSeq>,
    /// The client has not run a call of this step in time.
    has_client_timed_out: bool,
}

/// A call.
pub(super) struct ChatCall {
    id: CallId,
    wire_name: String,
    tool_name: String,
    title: String,
    order: (u32, u32),
    input_summary: String,
    arguments: String,
    /// Arguments being sent, for a call of a client tool with JSON arguments.
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
    /// The arguments, an approval or earlier calls are pending.
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

impl TurnCalls {
    pub(super) fn set_approval_channel(&mut self, channel: ApprovalChannel) {
        self.approval_channel = channel;
    }

    pub(super) fn approval_channel(&self) -> ApprovalChannel {
        self.approval_channel
    }

    pub(super) fn set_delivery(&mut self, delivery: CallDelivery) {
        self.delivery = delivery;
    }

    pub(super) fn delivery(&self) -> CallDelivery {
        self.delivery
    }

    /// Takes an event of the turn.
    pub(super) fn track(&mut self, event: &Event) {
        match &event.kind {
            EventKind::StepStart { .. } => {
                self.step_ended = false;
                self.has_step_failed = false;
                self.handed_over_at = None;
                self.has_client_timed_out = false;
            }
            EventKind::StepEnd { finish, .. } => {
                let failures = [FinishReason::Length, FinishReason::ContentFilter, FinishReason::Error];
                self.step_ended = true;
                self.has_step_failed = finish.is_some_and(|finish| failures.contains(&finish));
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
                // A tool of a foreign source is shown by its name: its title is chosen by that source.
                let is_foreign = source.starts_with("mcp:") || source == "client";
                let may_begin = source == REQUESTER
                    && *call_kind == CallKind::Function
                    && self.delivery == CallDelivery::Fragments;
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
                if let Some(draft) = self.find_mut(event).and_then(|call| call.draft.as_mut()) {
                    draft.push(delta);
                }
            }
            EventKind::ToolInput(input) => {
                if let Some(call) = self.find_mut(event) {
                    call.arguments = arguments_text(input);
                    call.input_summary.clone_from(&input.input_summary);
                }
            }
            EventKind::ToolInputReset | EventKind::ToolRedefined { .. } => {
                if let Some(call) = self.find_mut(event) {
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
                if let Some(call) = self.find_mut(event) {
                    call.question = Some(open_question);
                }
            }
            EventKind::ApprovalResolved { approval_id, .. } => {
                let is_it =
                    |open_question: &mut OpenQuestion| open_question.approval_id == approval_id.as_str();
                if let Some(call) = self.find_mut(event) {
                    call.question.take_if(is_it);
                }
            }
            EventKind::ToolStart { client_id, .. } => {
                let is_theirs = client_id.as_deref() == Some(REQUESTER);
                if let Some(call) = self.find_mut(event) {
                    call.phase = ChatCallPhase::Started;
                    call.runner = if is_theirs { ToolRunner::Client } else { ToolRunner::Server };
                }
            }
            EventKind::ToolResult(result) => {
                if let Some(call) = self.find_mut(event) {
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

    fn find_mut(&mut self, event: &Event) -> Option<&mut ChatCall> {
        let id = event.tool_id.as_ref()?;
        self.calls.iter_mut().rev().find(|call| call.id == *id)
    }

    /// The call of an event, if the server runs it.
    pub(super) fn server_call(&self, event: &Event) -> Option<&ChatCall> {
        let id = event.tool_id.as_ref()?;
        self.calls.iter().rev().find(|call| call.id == *id).filter(|call| call.runner == ToolRunner::Server)
    }

    /// True while the turn, as far as its events are known, waits for results of the client's own calls.
    pub(crate) fn waits_for_results(&self) -> bool {
        self.step_ended && self.calls.iter().any(ChatCall::waits_for_client)
    }

    /// True if it waits for nothing else except answers that the client can give in another message.
    fn waits_for_nothing_else(&self) -> bool {
        let is_asked =
            |call: &ChatCall| self.approval_channel == ApprovalChannel::Text && call.question.is_some();
        self.waits_for_results() && self.open().all(|call| call.waits_for_client() || is_asked(call))
    }

    /// True if the calls that the client is to run are due.
    pub(super) fn is_handover_due(&self) -> bool {
        let is_pending = |call: &ChatCall| call.handover == HandoverState::Pending;
        self.waits_for_nothing_else() && self.for_client().all(is_pending)
    }

    /// Event at which an answer ended with the calls that the turn waits for.
    pub(crate) fn handed_over_at(&self) -> Option<EventSeq> {
        self.handed_over_at
    }

    fn open(&self) -> impl Iterator<Item = &ChatCall> {
        self.calls.iter().filter(|call| call.phase != ChatCallPhase::Closed)
    }

    /// The calls that the client is to run, in order.
    fn for_client(&self) -> impl Iterator<Item = &ChatCall> {
        let mut calls: Vec<&ChatCall> = self.calls.iter().filter(|call| call.waits_for_client()).collect();
        calls.sort_by_key(|call| call.order);
        calls.into_iter()
    }

    pub(crate) fn client_call_ids(&self) -> Vec<CallId> {
        self.for_client().map(|call| call.id.clone()).collect()
    }

    /// The client brings their results.
    pub(super) fn mark_calls_delivered(&mut self) {
        for call in self.calls.iter_mut().filter(|call| call.waits_for_client()) {
            call.handover = HandoverState::Delivered;
        }
    }

    /// True if an approval of a call is pending.
    pub(crate) fn has_question(&self) -> bool {
        self.calls.iter().any(|call| call.question.is_some())
    }

    /// True if the client has let its time for calls pass before it was shown the question about another.
    pub(crate) fn has_unseen_question(&self) -> bool {
        self.has_client_timed_out && self.has_question()
    }

    /// The questions that the turn waits for, and for nothing else.
    pub(super) fn due_questions(&self) -> Vec<CallQuestion> {
        let is_due = self.approval_channel == ApprovalChannel::Text
            && self.step_ended
            && self.open().all(|call| call.question.is_some())
            // A question that is still open has been answered already, and the log will report it.
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

    /// The client brings their answer.
    pub(super) fn mark_questions_delivered(&mut self) {
        for open_question in self.calls.iter_mut().filter_map(|call| call.question.as_mut()) {
            open_question.handover = HandoverState::Delivered;
        }
    }

    /// The part of the client's own call that has been written since the last, if it takes long to write.
    pub(super) fn fragment(&mut self, event: &Event) -> Option<ChatChunk> {
        let is_begun = self.begun.is_some();
        if is_begun && self.begun != event.tool_id {
            return None;
        }
        let call = self.find_mut(event)?;
        let draft = call.draft.as_mut().filter(|draft| is_begun || draft.is_slow(event.timestamp));
        let arguments = draft.and_then(CallDraft::fragment)?;
        if is_begun {
            return Some(ChatChunk::CallArguments(arguments));
        }
        let chunk = call.chunk(0, arguments);
        self.begun.clone_from(&event.tool_id);
        Some(ChatChunk::Call(chunk))
    }

    /// The calls that the client is to run: the rest of the one that it has a part of, and the others.
    ///
    /// # Errors
    /// That one is not what it has a part of.
    pub(super) fn hand_over(&mut self) -> Result<Vec<ChatChunk>, BrokenCallCause<'static>> {
        let is_begun = |call: &&ChatCall| self.begun.as_ref() == Some(&call.id);
        let (begun, others): (Vec<&ChatCall>, Vec<&ChatCall>) = self.for_client().partition(is_begun);
        if self.begun.is_some() && begun.is_empty() {
            return Err(BrokenCallCause::Unfinished);
        }
        let mut chunks = Vec::new();
        for (index, call) in begun.into_iter().chain(others).enumerate() {
            match call.draft.as_ref().filter(|_| is_begun(&call)).map(|draft| draft.rest(&call.arguments)) {
                Some(Some(rest)) => chunks.push(ChatChunk::CallArguments(rest.to_owned())),
                Some(None) => return Err(BrokenCallCause::Mended),
                None => chunks.push(ChatChunk::Call(call.chunk(index, call.arguments.clone()))),
            }
        }
        self.begun = None;
        Ok(chunks)
    }

    /// Reason why the call that was partly sent to the client cannot be run after this event, if so. The end
    /// of a turn reports its own reason.
    pub(super) fn broken_by<'a>(&self, event: &'a Event) -> Option<BrokenCallCause<'a>> {
        let begun = self.begun.as_ref()?;
        match &event.kind {
            EventKind::ToolResult(result) if event.tool_id.as_ref() == Some(begun) => {
                (!self.has_step_failed).then(|| BrokenCallCause::of(result))
            }
            EventKind::StepStart { .. } => Some(BrokenCallCause::Unfinished),
            _ => None,
        }
    }

    /// The name of the call that the client has a part of, which it will get no more of.
    pub(super) fn take_begun(&mut self) -> Option<String> {
        let begun = self.begun.take()?;
        self.calls.iter().find(|call| call.id == begun).map(|call| call.wire_name.clone())
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun.is_some()
    }
}

impl ChatCall {
    fn chunk(&self, index: usize, arguments: String) -> ToolCallChunk {
        let name = self.wire_name.clone();
        ToolCallChunk { index, id: self.public_id(), name, arguments }
    }

    pub(super) fn public_id(&self) -> String {
        call_id::to_public(&self.id)
    }

    fn waits_for_client(&self) -> bool {
        self.phase == ChatCallPhase::Started && self.runner == ToolRunner::Client
    }

    pub(super) fn display<'a>(&'a self, id: &'a str) -> DisplayedCall<'a> {
        DisplayedCall {
            id,
            name: &self.tool_name,
            title: &self.title,
            input_summary: &self.input_summary,
            arguments: &self.arguments,
        }
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
