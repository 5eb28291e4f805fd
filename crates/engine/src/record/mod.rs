//! The state of a turn, as a fold of its own events.
//!
//! [`TurnRecord::apply`] is the only way this state changes. The live machine emits an event and applies it;
//! a restored machine applies the same events from the log. So the two are equal by construction, and no
//! transition can miss the log. Only state that is lost with the process anyway (a stream being read, a
//! pending check) is held elsewhere.

mod call;
mod step;

pub(crate) use call::{
    ApprovalAnswer, CallHandle, CallRecord, CallState, CallTarget, ClosedCall, OpenApproval,
};
pub(crate) use step::StepEnd;

use call::CallList;
use step::{DeliveredMessage, StepRecord};

use crate::action::StepProviderState;
use crate::event::{
    BlockKind, BlockStart, Event, EventKind, QuestionKind, TurnFault, TurnStatus, WaitReason,
};
use crate::id::{ApprovalId, EventSeq, UnixMillis};
use crate::policy::loop_guard;
use crate::policy::{ApprovalDecision, RememberedDecision};
use crate::setup::TurnSetup;
use crate::tool::OfferedTool;
use crate::waterfall::Waterfall;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use throughline_wire::{CallId, CallSlot, FinishReason, ToolName, Usage};

/// `source` of a tool that the provider ran itself.
pub(crate) const HOSTED: &str = "upstream";

/// Stable words that the machine itself understands when it meets them in the log.
pub(crate) mod notice_code {
    /// Notice: the user stopped the turn.
    pub(crate) const STOPPED: &str = "stopped";
    /// Notice: cut by the token budget.
    pub(crate) const LENGTH: &str = "length";
    /// Notice: the process that ran the turn died.
    pub(crate) const INTERRUPTED: &str = "interrupted";
    /// Notice: one last step without tools follows, since the steps are used up.
    pub(crate) const LIMIT: &str = "limit";
    /// Notice: the history was too long, and the model sees old results shortened from here on.
    pub(crate) const SHORTENED: &str = "history_shortened";
    /// Notice: one last step without tools follows, since the calls go in circles.
    pub(crate) const LOOP_STOPPED: &str = "loop_stopped";
    /// Problem: the model gets a note that its calls go in circles.
    pub(crate) const LOOP_NOTE: &str = "loop_note";
    /// Problem: the model wrote only reasoning and no answer; it gets a note, and is asked again.
    pub(crate) const ANSWER_MISSING: &str = "answer_missing";
    /// Problem: tools that are not in the request.
    pub(crate) const TOOLS_LEFT_OUT: &str = "tools_left_out";
    /// Problem: settings that are not in the request.
    pub(crate) const SETTINGS_LEFT_OUT: &str = "settings_left_out";
    /// Problem: the stream died with the process; the model is asked to continue.
    pub(crate) const UPSTREAM_LOST: &str = "upstream_lost";
}

/// Phase of a turn, with the data that exists in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum TurnPhase {
    /// Nothing has happened.
    #[default]
    New,
    /// Between steps.
    BetweenSteps,
    /// A model call is under way.
    Streaming(Reply),
    /// A failed model call waits for its next try.
    Backoff(Backoff),
    /// The step is committed; its calls run.
    AwaitingCalls,
    /// The step ended without a commit and the turn continues; its calls are being closed.
    StreamLost,
    /// The turn ends as soon as running tools have reported their end.
    Stopping(PendingEnd),
    /// `stream_end` was emitted.
    Over(TurnStatus),
}

/// One try of a model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModelAttempt {
    /// Number of the try in its step, from 1.
    pub number: u32,
    /// Tries on this upstream in this step.
    pub tries: u32,
}

/// A reply that is being streamed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reply {
    pub attempt: ModelAttempt,
    /// True once anything of it was shown: from then on it cannot be tried again unseen.
    pub content_shown: bool,
    /// The text, thinking or audio block that takes deltas.
    pub open_block: Option<OpenBlock>,
    /// End of the turn that is decided while the step is still open.
    pub end: Option<PendingEnd>,
}

/// A failed model call that waits for its next try.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Backoff {
    pub attempt: ModelAttempt,
    pub until: UnixMillis,
    /// End of the turn that is decided while the step is still open.
    pub end: Option<PendingEnd>,
}

/// Decided end of a turn that still has to close its calls.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PendingEnd {
    pub status: TurnStatus,
    /// The failure, until an `error` event has reported it.
    pub fault: Option<TurnFault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenBlock {
    pub block: u32,
    pub kind: BlockKind,
    pub refusal: bool,
}

/// The state of a turn that its events determine.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TurnRecord {
    pub seq: EventSeq,
    /// Time of the last event; time never goes back in a log.
    pub last_at: UnixMillis,
    pub phase: TurnPhase,
    pub steps: Vec<StepRecord>,
    pub calls: CallList,
    /// Blocks opened so far.
    pub blocks: u32,
    /// Position in the setup's upstreams.
    pub upstream: usize,
    /// Tools are off for the steps after this one: a limit was reached, one last step answers without them.
    pub tools_off_after: Option<u32>,
    /// The model sees old results shortened: an upstream has refused the length of the history.
    pub outputs_shortened: bool,
    pub usage: Usage,
    pub waterfall: Waterfall,
    /// `session_stats` was emitted.
    pub stats_emitted: bool,
    /// Current fingerprints of tools that were redefined since they were offered.
    pub fingerprints: BTreeMap<ToolName, String>,
    /// Decisions of people to remember within this turn, oldest first.
    pub remembered_decisions: Vec<RememberedDecision>,
    /// Resolved questions, with their answers.
    pub resolutions: BTreeMap<ApprovalId, QuestionResolution>,
    /// Number of takeovers by another process.
    pub takeovers: u32,
    /// Code and excerpt of the problems that have named something left out of a request.
    pub left_out: BTreeSet<(String, String)>,
}

/// The answer that a question got.
#[derive(Clone, Debug, PartialEq)]
pub struct QuestionResolution {
    /// Decision of the person, or of the rule that replaced one.
    pub decision: ApprovalDecision,
    /// Source of the answer: a person's name, `remembered`, or `timer`, `stop`, `cancel`, `end`, `reset` if
    /// no person answered.
    pub by: String,
    /// The arguments as they were changed, or the values that were filled in.
    pub content: Option<Value>,
    /// True if the answer also stopped the turn.
    pub stop: bool,
}

impl TurnRecord {
    // --- reading it ---

    /// Number of the current step, from 1; 0 before the first.
    pub(crate) fn step(&self) -> u32 {
        self.steps.len() as u32
    }

    /// The reply that is being streamed.
    pub(crate) fn reply(&self) -> Option<&Reply> {
        if let TurnPhase::Streaming(reply) = &self.phase { Some(reply) } else { None }
    }

    /// The reply that is being streamed, if this try of this step sends it.
    pub(crate) fn reply_of(&self, step: u32, attempt: u32) -> Option<&Reply> {
        self.reply().filter(|reply| step == self.step() && attempt == reply.attempt.number)
    }

    /// The block that takes deltas.
    pub(crate) fn open_block(&self) -> Option<OpenBlock> {
        self.reply()?.open_block
    }

    /// A model call is under way, or waits for its next try.
    pub(crate) fn step_is_open(&self) -> bool {
        matches!(self.phase, TurnPhase::Streaming(_) | TurnPhase::Backoff(_))
    }

    pub(crate) fn is_stopping(&self) -> bool {
        matches!(self.phase, TurnPhase::Stopping(_))
    }

    /// End of the turn, once it is decided and until it is reached.
    pub(crate) fn pending_end(&self) -> Option<&PendingEnd> {
        match &self.phase {
            TurnPhase::Streaming(reply) => reply.end.as_ref(),
            TurnPhase::Backoff(backoff) => backoff.end.as_ref(),
            TurnPhase::Stopping(end) => Some(end),
            TurnPhase::New
            | TurnPhase::BetweenSteps
            | TurnPhase::AwaitingCalls
            | TurnPhase::StreamLost
            | TurnPhase::Over(_) => None,
        }
    }

    pub(crate) fn call(&self, handle: CallHandle) -> &CallRecord {
        self.calls.get(handle)
    }

    pub(crate) fn find_call(&self, id: &CallId) -> Option<CallHandle> {
        self.calls.find(|call| call.id == *id)
    }

    /// The call that a slot of the current step means now.
    pub(crate) fn find_call_in_slot(&self, slot: CallSlot) -> Option<CallHandle> {
        let step = self.step();
        self.calls.find(|call| call.step == step && call.slot == slot && !call.is_hosted())
    }

    /// The step has fragments of arguments that no call owns.
    pub(crate) fn has_orphans(&self, step: u32) -> bool {
        self.calls
            .iter()
            .rev()
            .skip_while(|call| call.step > step)
            .take_while(|call| call.step == step)
            .any(CallRecord::is_orphan)
    }

    /// Fingerprint of a tool's current definition.
    pub(crate) fn fingerprint_of<'a>(&'a self, tool: &'a OfferedTool) -> &'a str {
        self.fingerprints.get(&tool.name).unwrap_or(&tool.fingerprint)
    }

    /// Steps whose calls were answered.
    pub(crate) fn iterations(&self) -> u32 {
        let has_calls = |number: u32| self.calls.iter().any(|call| call.step == number && !call.is_hosted());
        let counts =
            |(number, step): &(u32, &StepRecord)| step.end == StepEnd::Committed && has_calls(*number);
        (1..).zip(&self.steps).filter(counts).count() as u32
    }

    /// Steps in a row, up to now, that the provider paused.
    pub(crate) fn trailing_pauses(&self) -> u32 {
        self.steps.iter().rev().take_while(|step| step.finish == Some(FinishReason::Pause)).count() as u32
    }

    /// Messages that the user sent in mid-turn and that were taken in.
    pub(crate) fn delivered_messages(&self) -> impl Iterator<Item = &DeliveredMessage> {
        self.steps.iter().flat_map(|step| &step.messages)
    }

    /// Calls that the loop guard watches: closed ones that the model sees, in recorded order.
    pub(crate) fn guard_history(&self) -> Vec<loop_guard::CallSignature> {
        let mut entries: Vec<_> = self
            .calls
            .iter()
            .filter(|call| !call.is_superseded() && self.is_in_history(call.step))
            .filter_map(|call| Some((call.recorded_order(), call.closed()?.guard?)))
            .collect();
        entries.sort_unstable_by_key(|(order, _)| *order);
        entries.into_iter().map(|(_, entry)| entry).collect()
    }

    /// The model sees the calls of this step.
    pub(crate) fn is_in_history(&self, step: u32) -> bool {
        let step = (step as usize).checked_sub(1).and_then(|at| self.steps.get(at));
        step.is_some_and(|step| matches!(step.end, StepEnd::Committed | StepEnd::Stopped))
    }

    // --- its only changes ---

    /// Takes a value that is stored next to the log.
    pub(crate) fn apply_provider_state(&mut self, state: &StepProviderState) {
        if let Some(step) = (state.step as usize).checked_sub(1).and_then(|at| self.steps.get_mut(at)) {
            step.provider_state = Some(state.state.clone());
        }
    }

    /// Applies the next event. Total: an event that makes no sense here changes only the numbers. Every kind
    /// has its arm, so that a new one does not compile before it is handled.
    pub(crate) fn apply(&mut self, event: &Event, setup: &TurnSetup) {
        self.seq = event.seq;
        self.last_at = self.last_at.max(event.timestamp);
        self.waterfall.apply(event);
        let at = event.timestamp;
        match &event.kind {
            EventKind::StreamStart { .. } => self.phase = TurnPhase::BetweenSteps,
            EventKind::StepStart { model, attempt, fallback, .. } => {
                self.step_start(event.step, model, *attempt, *fallback as usize);
            }
            EventKind::StepEnd { finish, usage, .. } => self.step_end(*finish, usage.as_ref()),
            EventKind::BlockStart(start) => self.block_start(start, event.block),
            EventKind::BlockEnd => self.block_end(),
            EventKind::ContentDelta { text } => self.mark_shown(|step| step.text.push_str(text)),
            EventKind::ModelText { text, message } => match (&event.tool_id, event.block) {
                (Some(_), _) => self.change_call(event, |call| call.set_model_text(text, message.as_ref())),
                (None, Some(block)) => self.mark_shown(|step| step.model_texts.push((block, text.clone()))),
                (None, None) => {}
            },
            EventKind::Thinking { text } => self.mark_shown(|step| step.thinking.push_str(text)),
            EventKind::AudioDelta { transcript, .. } => {
                self.mark_shown(|step| step.text.push_str(transcript))
            }
            EventKind::Citation { .. } => self.mark_shown(|_| {}),
            EventKind::BlockSuperseded { keep_chars } => {
                if let (Some(block), Some(step)) = (event.block, self.steps.last_mut()) {
                    step.supersede(block, *keep_chars);
                }
            }
            EventKind::Waiting { reason, until, .. } => self.wait(*reason, until.unwrap_or(at)),
            EventKind::Problem { code, excerpt, .. } => self.problem(code, excerpt),
            EventKind::UserMessage { id, input } => {
                self.blocks += 1;
                if let Some(step) = self.steps.last_mut() {
                    step.messages.push(DeliveredMessage { id: id.clone(), input: input.clone() });
                }
            }
            EventKind::ToolUse { supersedes, .. } => {
                if let Some(old) = supersedes.as_ref().and_then(|id| self.calls.find_mut(id, None)) {
                    old.supersede();
                }
                self.open_call(event, setup);
            }
            EventKind::ToolInputDelta { delta, .. } => {
                self.change_call(event, |call| call.append_input(delta))
            }
            EventKind::ToolInputReset => self.change_call(event, CallRecord::reset_input),
            EventKind::ToolInput(input) => self.change_call(event, |call| call.seal(input)),
            EventKind::ApprovalRequest {
                approval_id,
                kind,
                question,
                rule,
                expires_at,
                arguments_hash,
                fingerprint,
                schema,
                ..
            } => self.change_call(event, |call| match kind {
                QuestionKind::Call => call.ask(rule, |input| OpenApproval {
                    input,
                    approval_id: approval_id.clone(),
                    asked: question.clone(),
                    expires_at: *expires_at,
                    arguments_hash: arguments_hash.clone(),
                    fingerprint: fingerprint.clone(),
                }),
                QuestionKind::Elicitation => call.ask_for_tool(approval_id, schema.is_some(), at),
                QuestionKind::Unrecognised => {}
            }),
            EventKind::ApprovalResolved {
                approval_id,
                decision,
                by,
                reason,
                arguments,
                content,
                remembered,
                stop,
                ..
            } => {
                let content = arguments.clone().or_else(|| content.clone());
                let resolution =
                    QuestionResolution { decision: *decision, by: by.clone(), content, stop: *stop };
                self.resolutions.insert(approval_id.clone(), resolution);
                self.remembered_decisions.extend(remembered.as_deref().cloned());
                let (reason, edited) = (reason.as_deref(), arguments.as_ref());
                self.change_call(event, |call| call.resolve(approval_id, *decision, reason, edited, at));
            }
            EventKind::ToolRedefined { tool_name, fingerprint, attempt } => {
                self.fingerprints.insert(tool_name.clone(), fingerprint.clone());
                self.change_call(event, |call| call.redefine(*attempt));
            }
            EventKind::ToolStart { attempt, rule, .. } => {
                self.change_call(event, |call| call.start(*attempt, rule.as_deref(), at));
            }
            EventKind::ToolProgress(progress) => self.change_call(event, |call| call.report(progress)),
            EventKind::ToolResult(result) => self.change_call(event, |call| call.close(result, setup)),
            EventKind::SessionStats(_) => self.stats_emitted = true,
            EventKind::Error(_) => {
                if let TurnPhase::Stopping(end) = &mut self.phase {
                    end.fault = None;
                }
            }
            EventKind::TurnResumed { .. } => self.takeovers += 1,
            EventKind::StreamEnd { status } => self.phase = TurnPhase::Over(*status),
            EventKind::Unrecognised => {}
        }
    }

    fn change_call(&mut self, event: &Event, change: impl FnOnce(&mut CallRecord)) {
        if let Some(call) = event.tool_id.as_ref().and_then(|id| self.calls.find_mut(id, event.block)) {
            change(call);
        }
    }

    fn step_start(&mut self, step: Option<u32>, model: &str, number: u32, upstream: usize) {
        let is_new_step = step.is_none_or(|step| step > self.step());
        if is_new_step {
            self.steps.push(StepRecord { first_block: self.blocks, ..StepRecord::default() });
        }
        let earlier_tries = match &self.phase {
            _ if is_new_step || upstream != self.upstream => 0,
            TurnPhase::Streaming(Reply { attempt, .. }) | TurnPhase::Backoff(Backoff { attempt, .. }) => {
                attempt.tries
            }
            _ => 0,
        };
        if let Some(step) = self.steps.last_mut() {
            step.model = model.to_owned();
        }
        self.upstream = upstream;
        let attempt = ModelAttempt { number, tries: earlier_tries + 1 };
        self.phase =
            TurnPhase::Streaming(Reply { attempt, content_shown: false, open_block: None, end: None });
    }

    fn step_end(&mut self, finish: Option<FinishReason>, usage: Option<&Usage>) {
        let pending = match mem::take(&mut self.phase) {
            TurnPhase::Streaming(reply) => reply.end,
            TurnPhase::Backoff(backoff) => backoff.end,
            TurnPhase::Stopping(end) => Some(end),
            TurnPhase::New
            | TurnPhase::BetweenSteps
            | TurnPhase::AwaitingCalls
            | TurnPhase::StreamLost
            | TurnPhase::Over(_) => None,
        };
        let (end, phase) = match pending {
            Some(pending) if pending.status == TurnStatus::Cancelled => {
                (StepEnd::Stopped, TurnPhase::Stopping(pending))
            }
            Some(pending) => (StepEnd::Broken, TurnPhase::Stopping(pending)),
            None if finish.is_some_and(is_commit) => (StepEnd::Committed, TurnPhase::AwaitingCalls),
            None => (StepEnd::Broken, TurnPhase::StreamLost),
        };
        if let Some(step) = self.steps.last_mut() {
            step.finish = finish;
            step.end = end;
        }
        self.phase = phase;
        if let Some(usage) = usage {
            add_usage(&mut self.usage, usage);
        }
    }

    /// Records a wait. Only a pause before the next attempt changes the phase.
    fn wait(&mut self, reason: WaitReason, until: UnixMillis) {
        match reason {
            WaitReason::Retry | WaitReason::RateLimit => {
                if let TurnPhase::Streaming(reply) = &mut self.phase {
                    let (attempt, end) = (reply.attempt, reply.end.take());
                    self.phase = TurnPhase::Backoff(Backoff { attempt, until, end });
                }
            }
            WaitReason::FirstByte | WaitReason::Silence | WaitReason::Store | WaitReason::Client => {}
        }
    }

    fn problem(&mut self, code: &str, excerpt: &str) {
        if [notice_code::TOOLS_LEFT_OUT, notice_code::SETTINGS_LEFT_OUT].contains(&code) {
            self.left_out.insert((code.to_owned(), excerpt.to_owned()));
        }
        if let Some(step) = self.steps.last_mut() {
            step.problems += 1;
            if [notice_code::LOOP_NOTE, notice_code::UPSTREAM_LOST, notice_code::ANSWER_MISSING]
                .contains(&code)
            {
                step.notes.push(excerpt.to_owned());
            }
            step.answer_missing |= code == notice_code::ANSWER_MISSING;
        }
    }

    fn block_start(&mut self, start: &BlockStart, block: Option<u32>) {
        let block = block.unwrap_or(self.blocks);
        self.blocks += 1;
        match start {
            BlockStart::Text { code } => self.open_text(block, BlockKind::Text, code.is_some()),
            BlockStart::Thinking => self.open_text(block, BlockKind::Thinking, false),
            BlockStart::Audio => self.open_text(block, BlockKind::Audio, false),
            BlockStart::Image(_) | BlockStart::Unrecognised => self.mark_shown(|_| {}),
            BlockStart::Notice { code, .. } => match code.as_str() {
                notice_code::STOPPED => self.decide_end(TurnStatus::Cancelled, None),
                notice_code::LENGTH => self.decide_end(TurnStatus::Length, None),
                notice_code::INTERRUPTED => self.decide_end(TurnStatus::Interrupted, None),
                notice_code::SHORTENED => self.outputs_shortened = true,
                notice_code::LIMIT | notice_code::LOOP_STOPPED => self.tools_off_after = Some(self.step()),
                _ => {}
            },
            BlockStart::Error(fault) => self.decide_end(TurnStatus::Error, Some(fault.clone())),
        }
    }

    fn open_text(&mut self, block: u32, kind: BlockKind, refusal: bool) {
        if let TurnPhase::Streaming(reply) = &mut self.phase {
            reply.open_block = Some(OpenBlock { block, kind, refusal });
        }
        self.mark_shown(|step| step.open_span(block, kind));
    }

    fn block_end(&mut self) {
        if let TurnPhase::Streaming(reply) = &mut self.phase {
            reply.open_block = None;
        }
    }

    /// Decides how the turn ends. The first decision wins.
    fn decide_end(&mut self, status: TurnStatus, fault: Option<TurnFault>) {
        let decided = PendingEnd { status, fault };
        match &mut self.phase {
            // The open step ends first.
            TurnPhase::Streaming(Reply { end, .. }) | TurnPhase::Backoff(Backoff { end, .. }) => {
                end.get_or_insert(decided);
            }
            TurnPhase::Stopping(_) | TurnPhase::Over(_) => {}
            TurnPhase::New | TurnPhase::BetweenSteps | TurnPhase::AwaitingCalls | TurnPhase::StreamLost => {
                self.phase = TurnPhase::Stopping(decided);
            }
        }
    }

    fn mark_shown(&mut self, write: impl FnOnce(&mut StepRecord)) {
        if let TurnPhase::Streaming(reply) = &mut self.phase {
            reply.content_shown = true;
        }
        if let Some(step) = self.steps.last_mut() {
            write(step);
        }
    }

    fn open_call(&mut self, event: &Event, setup: &TurnSetup) {
        let EventKind::ToolUse { wire_name, source, upstream_id, slot, position, call_kind, .. } =
            &event.kind
        else {
            return;
        };
        let target = match setup.tools.iter().position(|tool| tool.wire_name == *wire_name) {
            Some(tool) => CallTarget::Offered(tool),
            None if source == HOSTED => CallTarget::Hosted,
            None => CallTarget::Unknown,
        };
        self.calls.push(CallRecord {
            id: event.tool_id.clone().unwrap_or_else(|| CallId::new("")),
            step: self.step(),
            slot: *slot,
            position: *position,
            block: event.block.unwrap_or(self.blocks),
            upstream_id: upstream_id.clone(),
            wire_name: wire_name.clone(),
            kind: *call_kind,
            target,
            version: 0,
            attempts: 0,
            questions: 0,
            tool_questions: 0,
            answer: None,
            state: CallState::default(),
            model_text: None,
        });
        self.blocks += 1;
        self.mark_shown(|_| {});
    }
}

/// A finish that can be trusted: the model has finished.
pub(crate) fn is_commit(finish: FinishReason) -> bool {
    matches!(finish, FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Pause)
}

/// Totals over steps; a figure that no step reported stays absent.
pub(crate) fn add_usage(total: &mut Usage, step: &Usage) {
    let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    };
    total.input_tokens = sum(total.input_tokens, step.input_tokens);
    total.output_tokens = sum(total.output_tokens, step.output_tokens);
    total.cached_input_tokens = sum(total.cached_input_tokens, step.cached_input_tokens);
    total.cache_written_tokens = sum(total.cache_written_tokens, step.cache_written_tokens);
    total.reasoning_tokens = sum(total.reasoning_tokens, step.reasoning_tokens);
}
