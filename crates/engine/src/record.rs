//! The state of a turn, as a fold of its own events.
//!
//! [`TurnRecord::absorb`] is the only way this state changes. The live machine emits an event and absorbs it; a restored
//! machine absorbs the same events from the log. So the two are equal by construction, and no transition can forget to
//! be written down. Only what dies with the process anyway (a stream being read, a check under way) lives elsewhere.

use crate::action::StepProviderState;
use crate::canonical;
use crate::event::{
    ApprovalDecision, BlockKind, BlockStart, Event, EventKind, QuestionKind, TurnFault, TurnStatus,
    WaitReason,
};
use crate::id::{ApprovalId, EventSeq, UnixMillis, UserMessageId};
use crate::loop_guard;
use crate::policy::{PolicyCase, RememberedDecision};
use crate::setup::{OfferedTool, PollingMode, TurnSetup};
use crate::waterfall::Waterfall;
use serde_json::Value;
use std::collections::BTreeMap;
use throughline_wire::{
    BrokenCall, CallArguments, CallId, CallKind, CallOutcome, CallSlot, FinishReason, ProviderState,
    RawArguments, SealEvidence, ToolName, UpstreamCallId, Usage, UserPart, WireName,
};

/// `source` of a tool that the provider ran itself.
pub(crate) const HOSTED: &str = "upstream";

/// Stable words that the machine itself understands when it meets them in the log.
pub(crate) mod code {
    /// Notice: the user stopped the turn.
    pub(crate) const STOPPED: &str = "stopped";
    /// Notice: cut by the token budget.
    pub(crate) const LENGTH: &str = "length";
    /// Notice: the process that ran the turn is gone.
    pub(crate) const INTERRUPTED: &str = "interrupted";
    /// Notice: one last step without tools follows, since the steps are used up.
    pub(crate) const LIMIT: &str = "limit";
    /// Notice: the history was too long, and old results are told shorter from here on.
    pub(crate) const SHORTENED: &str = "history_shortened";
    /// Notice: one last step without tools follows, since the calls go in circles.
    pub(crate) const LOOP_STOPPED: &str = "loop_stopped";
    /// Problem: the model gets a note that its calls go in circles.
    pub(crate) const LOOP_NOTE: &str = "loop_note";
    /// Problem: the stream died with the process; the model is asked to go on.
    pub(crate) const UPSTREAM_LOST: &str = "upstream_lost";
}

/// Phase of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum TurnPhase {
    /// Nothing has happened.
    #[default]
    Fresh,
    /// Between steps.
    Between,
    /// A model call is under way. Once anything of its reply was shown, it cannot be tried again unseen.
    Streaming { content_shown: bool },
    /// A failed model call waits for its next try.
    Backoff { until: UnixMillis },
    /// The step is committed; its calls run.
    Settling,
    /// The step ended without a commit and the turn goes on; its calls are being closed.
    Lost,
    /// The turn ends as soon as running tools have said how they ended.
    Stopping,
    /// `stream_end` was emitted.
    Over,
}

/// The state of a turn that its events determine.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TurnRecord {
    pub seq: EventSeq,
    /// Time of the last event; time never goes back in a log.
    pub last_at: UnixMillis,
    pub phase: TurnPhase,
    pub steps: Vec<StepRecord>,
    pub calls: Vec<CallRecord>,
    /// Blocks opened so far.
    pub blocks: u32,
    /// The text, thinking or audio block that takes deltas.
    pub open_block: Option<OpenBlock>,
    /// Attempt of the current step.
    pub attempt: u32,
    /// Position in the setup's upstreams.
    pub upstream: usize,
    /// Tries on this upstream in this step.
    pub tries: u32,
    /// Tools are off for the steps after this one: a limit was reached, one last step answers without them.
    pub tools_off_after: Option<u32>,
    /// Old results are told shorter: an upstream has refused the length of the history.
    pub outputs_shortened: bool,
    /// Status the turn will end with, once that is decided.
    pub pending_end: Option<PendingEnd>,
    /// Notes to the model between steps: number of the step before, and text.
    pub notes: Vec<(u32, String)>,
    /// Messages that the user sent in mid-turn and that were taken in.
    pub delivered_messages: Vec<DeliveredMessage>,
    pub usage: Usage,
    pub waterfall: Waterfall,
    /// Findings recorded in this step.
    pub problems: u32,
    /// `error` was emitted.
    pub error_emitted: bool,
    /// `session_stats` was emitted.
    pub stats_emitted: bool,
    /// Status of `stream_end`.
    pub final_status: Option<TurnStatus>,
    /// Number of the process that owns the turn.
    pub epoch: u64,
    /// Current fingerprints of tools that were redefined since they were offered.
    pub fingerprints: BTreeMap<ToolName, String>,
    /// Decisions of people to remember within this turn, oldest first.
    pub remembered_decisions: Vec<RememberedDecision>,
    /// Questions that are no longer open, with what was answered.
    pub resolutions: BTreeMap<ApprovalId, QuestionResolution>,
    /// Number of takeovers by another process.
    pub takeovers: u32,
}

/// The answer that a question got.
#[derive(Clone, Debug, PartialEq)]
pub struct QuestionResolution {
    /// The answer.
    pub decision: ApprovalDecision,
    /// Source of the answer: a person's name, `remembered`, or `timer`, `stop`, `cancel`, `end`, `reset` if nobody answered.
    pub by: String,
    /// The arguments as they were changed, or the values that were filled in.
    pub content: Option<Value>,
}

/// A message that the user sent in mid-turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeliveredMessage {
    /// The step that it follows.
    pub after: u32,
    pub id: Option<UserMessageId>,
    pub input: Vec<UserPart>,
}

/// Decided end of a turn that still has to close its calls.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PendingEnd {
    pub status: TurnStatus,
    pub fault: Option<TurnFault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenBlock {
    pub block: u32,
    pub kind: BlockKind,
    pub refusal: bool,
}

/// One model call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StepRecord {
    pub model: String,
    pub text: String,
    pub thinking: String,
    /// Offsets in these at which the blocks of the step begin, in order.
    pub spans: Vec<BlockSpan>,
    pub finish: Option<FinishReason>,
    pub end: StepEnd,
    pub provider_state: Option<ProviderState>,
}

/// A block of a step that takes deltas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockSpan {
    pub block: u32,
    pub kind: BlockKind,
    /// Offset of its text in the step's text or thinking.
    pub offset: usize,
}

impl StepRecord {
    fn open_span(&mut self, block: u32, kind: BlockKind) {
        let from = self.channel(kind).len();
        self.spans.push(BlockSpan { block, kind, offset: from });
    }

    /// Text of the blocks of this kind; the transcript of speech counts as text.
    fn channel(&mut self, kind: BlockKind) -> &mut String {
        match kind {
            BlockKind::Thinking => &mut self.thinking,
            _ => &mut self.text,
        }
    }

    /// Takes back a block but for its first characters.
    fn supersede(&mut self, block: u32, keep_chars: u64) {
        let Some(at) = self.spans.iter().position(|part| part.block == block) else { return };
        let BlockSpan { kind, offset: from, .. } = self.spans[at];
        let thinks = kind == BlockKind::Thinking;
        let same_channel = |part: &&BlockSpan| (part.kind == BlockKind::Thinking) == thinks;
        let next = self.spans[at + 1..].iter().find(same_channel).map(|part| part.offset);
        let channel = self.channel(kind);
        let end = next.unwrap_or(channel.len());
        let mut chars = channel[from..end].char_indices();
        let Some((kept_bytes, _)) = chars.nth(usize::try_from(keep_chars).unwrap_or(usize::MAX)) else {
            return;
        };
        channel.replace_range(from + kept_bytes..end, "");
        let removed = end - from - kept_bytes;
        for part in
            self.spans[at + 1..].iter_mut().filter(|part| (part.kind == BlockKind::Thinking) == thinks)
        {
            part.offset -= removed;
        }
    }
}

/// End of a step, as far as its calls are concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StepEnd {
    #[default]
    Open,
    /// A finish that does not truncate: its calls were asked for.
    Committed,
    /// The user stopped it: the model is told what became of its calls.
    Stopped,
    /// It broke off: its calls were not asked for in earnest, and are not shown to the model again.
    Broken,
}

/// One tool call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallRecord {
    pub id: CallId,
    pub step: u32,
    pub slot: CallSlot,
    pub position: u32,
    pub block: u32,
    pub upstream_id: Option<UpstreamCallId>,
    pub wire_name: WireName,
    pub kind: CallKind,
    /// Position in the setup's tools; `None` = not offered.
    pub tool: Option<usize>,
    /// True if the provider runs it.
    pub hosted: bool,
    /// True if another call replaced it.
    pub superseded: bool,
    /// Argument text so far.
    pub text: String,
    pub arguments: Option<Result<CallArguments, (BrokenCall, RawArguments)>>,
    /// Arguments that a person edited.
    pub ran_with: Option<CallArguments>,
    pub seal: Option<SealEvidence>,
    /// Number of changes of the arguments or of the tool's definition.
    pub version: u32,
    /// Number of starts.
    pub attempts: u32,
    /// Number of questions to people.
    pub questions: u32,
    /// The rule that it was last asked about or started by.
    pub rule: Option<String>,
    /// Number of those that the running tool asked.
    pub tool_questions: u32,
    /// The open question of the running tool.
    pub elicitation: Option<OpenElicitation>,
    /// Time for which this start's tool has waited for people, in milliseconds.
    pub asked_ms: u64,
    /// The last answer. It is not taken back by what changes later: it says itself what it is about.
    pub answer: Option<ApprovalAnswer>,
    /// Output so far of the current start.
    pub partial: String,
    pub progress_events: u32,
    pub state: CallState,
}

/// The life of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallState {
    Preparing,
    /// The arguments are final, or will never be.
    Sealed,
    AwaitingApproval {
        approval: ApprovalId,
        expires_at: Option<UnixMillis>,
        arguments_hash: String,
        fingerprint: String,
    },
    Running {
        since: UnixMillis,
    },
    Closed {
        outcome: CallOutcome,
        guard: Option<loop_guard::CallSignature>,
    },
}

/// Open question of a running tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OpenElicitation {
    pub approval: ApprovalId,
    pub since: UnixMillis,
    /// Values have to be filled in.
    pub needs_values: bool,
}

/// An answer, and the exact arguments and definition that it is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApprovalAnswer {
    pub decision: ApprovalDecision,
    pub reason: Option<String>,
    arguments_hash: String,
    fingerprint: String,
}

impl ApprovalAnswer {
    /// True if it was given about exactly this.
    // R: A3
    pub(crate) fn applies_to(&self, case: &PolicyCase<'_>) -> bool {
        self.fingerprint == case.fingerprint
            && self.arguments_hash == canonical::arguments_hash(case.arguments)
    }
}

/// Most bytes of partial output kept of a running tool.
const PARTIAL_BYTES_MAX: usize = 64 << 10;

impl CallRecord {
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.state, CallState::Closed { .. })
    }

    /// The arguments as the model wrote them.
    pub(crate) fn original_arguments(&self) -> Option<&CallArguments> {
        self.arguments.as_ref().and_then(|arguments| arguments.as_ref().ok())
    }

    /// The arguments that it would run with.
    pub(crate) fn effective_arguments(&self) -> Option<&CallArguments> {
        let written = self.original_arguments()?;
        Some(self.ran_with.as_ref().unwrap_or(written))
    }

    /// Its position in the recorded order.
    pub(crate) fn recorded_order(&self) -> (u32, u32, CallSlot) {
        (self.step, self.position, self.slot)
    }
}

impl TurnRecord {
    /// Number of the current step, from 1; 0 before the first.
    pub(crate) fn step(&self) -> u32 {
        self.steps.len() as u32
    }

    pub(crate) fn find_call(&self, id: &CallId) -> Option<usize> {
        self.calls.iter().rposition(|call| call.id == *id)
    }

    /// Fingerprint of a tool's current definition.
    pub(crate) fn fingerprint_of<'a>(&'a self, tool: &'a OfferedTool) -> &'a str {
        self.fingerprints.get(&tool.name).unwrap_or(&tool.fingerprint)
    }

    /// The call that a slot of the current step means now.
    pub(crate) fn find_call_in_slot(&self, slot: CallSlot) -> Option<usize> {
        let step = self.step();
        self.calls.iter().rposition(|call| call.step == step && call.slot == slot && !call.hosted)
    }

    /// Steps whose calls were answered.
    // R: T4
    pub(crate) fn iterations(&self) -> u32 {
        let counts = |(at, step): &(usize, &StepRecord)| {
            let number = *at as u32 + 1;
            step.end == StepEnd::Committed
                && self.calls.iter().any(|call| call.step == number && !call.hosted)
        };
        self.steps.iter().enumerate().filter(counts).count() as u32
    }

    /// Steps in a row, up to now, that the provider paused.
    pub(crate) fn trailing_pauses(&self) -> u32 {
        self.steps.iter().rev().take_while(|step| step.finish == Some(FinishReason::Pause)).count() as u32
    }

    /// Calls that the loop guard watches: closed ones that the model sees, in recorded order.
    pub(crate) fn guard_history(&self) -> Vec<loop_guard::CallSignature> {
        let mut entries: Vec<_> = self
            .calls
            .iter()
            .filter(|call| !call.superseded && self.is_in_history(call.step))
            .filter_map(|call| match &call.state {
                CallState::Closed { guard, .. } => guard.map(|entry| (call.recorded_order(), entry)),
                _ => None,
            })
            .collect();
        entries.sort_unstable_by_key(|(order, _)| *order);
        entries.into_iter().map(|(_, entry)| entry).collect()
    }

    /// The model is told about the calls of this step.
    pub(crate) fn is_in_history(&self, step: u32) -> bool {
        let step = (step as usize).checked_sub(1).and_then(|at| self.steps.get(at));
        step.is_some_and(|step| matches!(step.end, StepEnd::Committed | StepEnd::Stopped))
    }

    /// Takes a value that is stored next to the log.
    pub(crate) fn absorb_provider_state(&mut self, state: &StepProviderState) {
        if let Some(step) = (state.step as usize).checked_sub(1).and_then(|at| self.steps.get_mut(at)) {
            step.provider_state = Some(state.state.clone());
        }
    }

    /// Takes the next event. Total: an event that makes no sense here changes nothing but the numbers.
    pub(crate) fn absorb(&mut self, event: &Event, setup: &TurnSetup) {
        self.seq = event.seq;
        self.last_at = self.last_at.max(event.timestamp);
        self.waterfall.absorb(event);
        match &event.kind {
            EventKind::StreamStart { .. } => self.phase = TurnPhase::Between,
            EventKind::StepStart { model, attempt, fallback, .. } => {
                self.step_start(event.step, model, *attempt, *fallback as usize);
            }
            EventKind::StepEnd { finish, usage, .. } => self.step_end(*finish, usage.as_ref()),
            EventKind::BlockStart(start) => self.block_start(start, event.block),
            EventKind::BlockEnd => self.open_block = None,
            EventKind::ContentDelta { text } => self.mark_shown(|step| step.text.push_str(text)),
            EventKind::Thinking { text } => self.mark_shown(|step| step.thinking.push_str(text)),
            EventKind::AudioDelta { transcript, .. } => {
                self.mark_shown(|step| step.text.push_str(transcript))
            }
            EventKind::Citation { .. } => self.mark_shown(|_| {}),
            EventKind::Problem { code, excerpt, .. } => {
                self.problems += 1;
                if code == code::LOOP_NOTE || code == code::UPSTREAM_LOST {
                    self.notes.push((self.step(), excerpt.clone()));
                }
            }
            EventKind::Waiting { reason: WaitReason::Retry | WaitReason::RateLimit, until, .. } => {
                self.phase = TurnPhase::Backoff { until: until.unwrap_or(event.timestamp) };
            }
            EventKind::ToolUse {
                wire_name,
                source,
                upstream_id,
                slot,
                position,
                call_kind,
                supersedes,
                ..
            } => {
                if let Some(old) = supersedes.as_ref().and_then(|id| self.find_call(id)) {
                    self.calls[old].superseded = true;
                }
                let tool = setup.tools.iter().position(|tool| tool.wire_name == *wire_name);
                self.calls.push(CallRecord {
                    id: event.tool_id.clone().unwrap_or_else(|| CallId::new("")),
                    step: self.step(),
                    slot: *slot,
                    position: *position,
                    block: event.block.unwrap_or(self.blocks),
                    upstream_id: upstream_id.clone(),
                    wire_name: wire_name.clone(),
                    kind: *call_kind,
                    tool,
                    hosted: source == HOSTED && tool.is_none(),
                    superseded: false,
                    text: String::new(),
                    arguments: None,
                    ran_with: None,
                    seal: None,
                    version: 0,
                    attempts: 0,
                    questions: 0,
                    rule: None,
                    tool_questions: 0,
                    elicitation: None,
                    asked_ms: 0,
                    answer: None,
                    partial: String::new(),
                    progress_events: 0,
                    state: CallState::Preparing,
                });
                self.blocks += 1;
                self.mark_shown(|_| {});
            }
            EventKind::TurnResumed { epoch } => {
                self.epoch = *epoch;
                self.takeovers += 1;
            }
            EventKind::BlockSuperseded { keep_chars } => {
                if let (Some(block), Some(step)) = (event.block, self.steps.last_mut()) {
                    step.supersede(block, *keep_chars);
                }
            }
            EventKind::SessionStats(_) => self.stats_emitted = true,
            EventKind::Error(_) => self.error_emitted = true,
            EventKind::UserMessage { id, input } => {
                self.blocks += 1;
                let (after, id, input) = (self.step(), id.clone(), input.clone());
                self.delivered_messages.push(DeliveredMessage { after, id, input });
            }
            EventKind::StreamEnd { status } => {
                self.phase = TurnPhase::Over;
                self.final_status = Some(*status);
            }
            kind => {
                if let EventKind::ApprovalResolved { approval_id, decision, by, arguments, content, .. } =
                    kind
                {
                    let content = arguments.clone().or_else(|| content.clone());
                    let resolution = QuestionResolution { decision: *decision, by: by.clone(), content };
                    self.resolutions.insert(approval_id.clone(), resolution);
                }
                match kind {
                    EventKind::ToolRedefined { tool_name, fingerprint, .. } => {
                        self.fingerprints.insert(tool_name.clone(), fingerprint.clone());
                    }
                    EventKind::ApprovalResolved { remembered: Some(remembered), .. } => {
                        self.remembered_decisions.push((**remembered).clone());
                    }
                    _ => {}
                }
                if let Some(at) = event.tool_id.as_ref().and_then(|id| self.find_call(id)) {
                    self.calls[at].absorb(kind, event.timestamp, setup);
                }
            }
        }
    }

    fn step_start(&mut self, step: Option<u32>, model: &str, attempt: u32, upstream: usize) {
        if step.is_none_or(|step| step > self.step()) {
            self.steps.push(StepRecord::default());
            self.tries = 0;
            self.problems = 0;
        }
        if upstream != self.upstream {
            self.tries = 0;
        }
        if let Some(step) = self.steps.last_mut() {
            step.model = model.to_owned();
        }
        self.attempt = attempt;
        self.upstream = upstream;
        self.tries += 1;
        self.phase = TurnPhase::Streaming { content_shown: false };
    }

    fn step_end(&mut self, finish: Option<FinishReason>, usage: Option<&Usage>) {
        let stopped = self.pending_end.as_ref().map(|ending| ending.status);
        let (end, phase) = match stopped {
            Some(TurnStatus::Cancelled) => (StepEnd::Stopped, TurnPhase::Stopping),
            Some(_) => (StepEnd::Broken, TurnPhase::Stopping),
            None if finish.is_some_and(is_commit) => (StepEnd::Committed, TurnPhase::Settling),
            None => (StepEnd::Broken, TurnPhase::Lost),
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

    fn block_start(&mut self, start: &BlockStart, block: Option<u32>) {
        let block = block.unwrap_or(self.blocks);
        self.blocks += 1;
        let mut open = |kind, refusal| {
            self.open_block = Some(OpenBlock { block, kind, refusal });
            if let Some(step) = self.steps.last_mut() {
                step.open_span(block, kind);
            }
        };
        match start {
            BlockStart::Text { code } => open(BlockKind::Text, code.is_some()),
            BlockStart::Thinking => open(BlockKind::Thinking, false),
            BlockStart::Audio => open(BlockKind::Audio, false),
            BlockStart::Image(_) => {}
            BlockStart::Notice { code, .. } => match code.as_str() {
                code::STOPPED => self.decide_end(TurnStatus::Cancelled, None),
                code::LENGTH => self.decide_end(TurnStatus::Length, None),
                code::INTERRUPTED => self.decide_end(TurnStatus::Interrupted, None),
                code::SHORTENED => self.outputs_shortened = true,
                code::LIMIT | code::LOOP_STOPPED => self.tools_off_after = Some(self.step()),
                _ => {}
            },
            BlockStart::Error(fault) => self.decide_end(TurnStatus::Error, Some(fault.clone())),
            BlockStart::Unrecognised => {}
        }
        if !matches!(start, BlockStart::Notice { .. } | BlockStart::Error(_)) {
            self.mark_shown(|_| {});
        }
    }

    /// The first decision about the end stands.
    fn decide_end(&mut self, status: TurnStatus, fault: Option<TurnFault>) {
        if self.pending_end.is_none() {
            self.pending_end = Some(PendingEnd { status, fault });
            // A step that is still open ends first.
            if !matches!(
                self.phase,
                TurnPhase::Streaming { .. } | TurnPhase::Backoff { .. } | TurnPhase::Over
            ) {
                self.phase = TurnPhase::Stopping;
            }
        }
    }

    fn mark_shown(&mut self, write: impl FnOnce(&mut StepRecord)) {
        if let TurnPhase::Streaming { content_shown } = &mut self.phase {
            *content_shown = true;
        }
        if let Some(step) = self.steps.last_mut() {
            write(step);
        }
    }
}

impl CallRecord {
    fn absorb(&mut self, kind: &EventKind, at: UnixMillis, setup: &TurnSetup) {
        match kind {
            EventKind::ToolInputDelta { delta } => self.text.push_str(delta),
            EventKind::ToolInputReset => {
                self.text.clear();
                self.arguments = None;
                self.seal = None;
                self.ran_with = None;
                self.rule = None;
                self.elicitation = None;
                self.version += 1;
                self.state = CallState::Preparing;
            }
            EventKind::ToolRedefined { attempt, .. } => {
                let is_starting =
                    matches!(self.state, CallState::Running { .. }) && *attempt == Some(self.attempts);
                if is_starting || matches!(self.state, CallState::Sealed | CallState::AwaitingApproval { .. })
                {
                    self.rule = None;
                    self.version += 1;
                    self.state = CallState::Sealed;
                }
            }
            EventKind::ToolInput(input) => {
                self.arguments = Some(input.arguments());
                self.seal = input.seal;
                self.state = CallState::Sealed;
            }
            EventKind::ApprovalRequest { approval_id, kind: QuestionKind::Elicitation, schema, .. } => {
                self.questions += 1;
                self.tool_questions += 1;
                let (approval, form) = (approval_id.clone(), schema.is_some());
                self.elicitation = Some(OpenElicitation { approval, since: at, needs_values: form });
            }
            EventKind::ApprovalResolved { approval_id, .. }
                if self
                    .elicitation
                    .as_ref()
                    .is_some_and(|elicitation| elicitation.approval == *approval_id) =>
            {
                if let Some(elicitation) = self.elicitation.take() {
                    self.asked_ms = self.asked_ms.saturating_add(at.abs_diff(elicitation.since));
                }
            }
            EventKind::ApprovalRequest {
                approval_id,
                kind: QuestionKind::Call,
                rule,
                expires_at,
                arguments_hash,
                fingerprint,
                ..
            } => {
                self.questions += 1;
                self.rule = Some(rule.clone());
                self.state = CallState::AwaitingApproval {
                    approval: approval_id.clone(),
                    expires_at: *expires_at,
                    arguments_hash: arguments_hash.clone(),
                    fingerprint: fingerprint.clone(),
                };
            }
            EventKind::ApprovalResolved { approval_id, decision, reason, arguments, .. } => {
                let CallState::AwaitingApproval { approval, arguments_hash, fingerprint, .. } =
                    &mut self.state
                else {
                    return;
                };
                if approval != approval_id {
                    return;
                }
                let (mut arguments_hash, fingerprint) =
                    (std::mem::take(arguments_hash), std::mem::take(fingerprint));
                if let Some(edited) = arguments {
                    let edited = CallArguments::from_value(edited.clone());
                    arguments_hash = canonical::arguments_hash(&edited);
                    self.ran_with = Some(edited);
                    self.version += 1;
                }
                let reason = reason.clone();
                self.answer =
                    Some(ApprovalAnswer { decision: *decision, reason, arguments_hash, fingerprint });
                self.state = CallState::Sealed;
            }
            EventKind::ToolStart { attempt, rule, .. } => {
                self.attempts = *attempt;
                self.rule = rule.clone();
                self.elicitation = None;
                self.asked_ms = 0;
                self.partial.clear();
                self.progress_events = 0;
                self.state = CallState::Running { since: at };
            }
            EventKind::ToolProgress(progress) => {
                self.progress_events += 1;
                if let Some(delta) = &progress.output_delta {
                    append_partial(&mut self.partial, delta);
                }
            }
            EventKind::ToolResult(result) => {
                self.elicitation = None;
                let outcome = result.outcome();
                let guard = self.guard_signature(&outcome, setup);
                self.state = CallState::Closed { outcome, guard };
                self.partial = String::new();
            }
            _ => {}
        }
    }

    /// Tool and arguments as the guard compares them.
    pub(crate) fn guard_hash(&self) -> u64 {
        let arguments = match &self.arguments {
            Some(Ok(arguments)) => canonical::text(&arguments.value),
            Some(Err((_, raw))) => raw.0.clone(),
            None => self.text.clone(),
        };
        canonical::hash(&[self.wire_name.as_str(), &arguments])
    }

    fn guard_signature(&self, outcome: &CallOutcome, setup: &TurnSetup) -> Option<loop_guard::CallSignature> {
        let polls = self
            .tool
            .and_then(|at| setup.tools.get(at))
            .is_some_and(|tool| tool.polling == PollingMode::Poller);
        (!polls && !self.hosted).then(|| loop_guard::CallSignature {
            call: self.guard_hash(),
            result: canonical::hash(&[&outcome.model_text()]),
        })
    }
}

/// Output so far, its beginning kept.
fn append_partial(partial: &mut String, delta: &str) {
    let mut room = PARTIAL_BYTES_MAX.saturating_sub(partial.len()).min(delta.len());
    while !delta.is_char_boundary(room) {
        room -= 1;
    }
    partial.push_str(&delta[..room]);
}

/// A finish that can be trusted: the model said all that it wanted to.
pub(crate) fn is_commit(finish: FinishReason) -> bool {
    match finish {
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Pause => true,
        FinishReason::Length | FinishReason::ContentFilter | FinishReason::Error | FinishReason::Other => {
            false
        }
    }
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
