//! What the machine knows, as a fold of its own events.
//!
//! [`Record::absorb`] is the only way this state changes. The live machine emits an event and absorbs it; a restored
//! machine absorbs the same events from the log. So the two are equal by construction, and no transition can forget to
//! be written down. Only what dies with the process anyway (a stream being read, a check under way) lives elsewhere.

use crate::action::Beside;
use crate::canonical;
use crate::event::{
    BlockKind, BlockStart, Decision, Event, EventKind, Fault, QuestionKind, TurnStatus, WaitReason,
};
use crate::guard;
use crate::id::{ApprovalId, Millis, Seq, UserMessageId};
use crate::policy::{Case, Remembered};
use crate::setup::{OfferedTool, Polling, TurnSetup};
use crate::waterfall::Waterfall;
use serde_json::Value;
use std::collections::BTreeMap;
use throughline_wire::{
    Arguments, BrokenCall, CallId, CallKind, FinishReason, Outcome, ProviderState, RawArguments, Seal, Slot,
    ToolName, UpstreamCallId, Usage, UserPart, WireName,
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

/// Where the turn is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Phase {
    /// Nothing has happened.
    #[default]
    Fresh,
    /// Between steps.
    Between,
    /// A model call is under way.
    Streaming { shown: Shown },
    /// A failed model call waits for its next try.
    Backoff { until: Millis },
    /// The step is committed; its calls run.
    Settling,
    /// The step ended without a commit and the turn goes on; its calls are being closed.
    Lost,
    /// The turn ends as soon as running tools have said how they ended.
    Stopping,
    /// `stream_end` was emitted.
    Over,
}

/// Whether anything of a reply was shown: afterwards it cannot be tried again unseen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    No,
    Yes,
}

/// See the module's text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Record {
    pub seq: Seq,
    /// Time of the last event; time never goes back in a log.
    pub last_at: Millis,
    pub phase: Phase,
    pub steps: Vec<StepRecord>,
    pub calls: Vec<CallRecord>,
    /// Blocks opened so far.
    pub blocks: u32,
    /// The text, thinking or audio block that takes deltas.
    pub open: Option<OpenBlock>,
    /// Attempt of the current step.
    pub attempt: u32,
    /// Place in the setup's upstreams.
    pub upstream: usize,
    /// Tries on this upstream in this step.
    pub tries: u32,
    /// Tools are off for the steps after this one: a limit was reached, one last step answers without them.
    pub tools_off_after: Option<u32>,
    /// Old results are told shorter: an upstream has refused the length of the history.
    pub shortened: bool,
    /// How the turn will end, once that is decided.
    pub ending: Option<Ending>,
    /// What the model is told between steps: after which step, and what.
    pub notes: Vec<(u32, String)>,
    /// What the user said in mid-turn and was taken in.
    pub said: Vec<Said>,
    pub usage: Usage,
    pub waterfall: Waterfall,
    /// Findings recorded in this step.
    pub problems: u32,
    /// `error` was emitted.
    pub error_told: bool,
    /// `session_stats` was emitted.
    pub stats_told: bool,
    /// What `stream_end` says.
    pub ended: Option<TurnStatus>,
    /// How often another process took over.
    pub epoch: u64,
    /// Of tools that have another definition than was offered.
    pub fingerprints: BTreeMap<ToolName, String>,
    /// What people have said in this turn, oldest first.
    pub remembered: Vec<Remembered>,
    /// Questions that are no longer open, with what was answered.
    pub answered: BTreeMap<ApprovalId, Answered>,
    /// How often another process went on with the turn.
    pub takeovers: u32,
}

/// What was answered to a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The answer.
    pub decision: Decision,
    /// Who answered: a person's name, `remembered`, or why nobody did: `timer`, `stop`, `cancel`, `end`, `reset`.
    pub by: String,
    /// The arguments as they were changed, or the values that were filled in.
    pub content: Option<Value>,
}

/// A message that the user sent in mid-turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Said {
    /// The step that it follows.
    pub after: u32,
    pub id: Option<UserMessageId>,
    pub input: Vec<UserPart>,
}

/// How the turn will end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ending {
    pub status: TurnStatus,
    pub fault: Option<Fault>,
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
    /// Where in these the blocks of the step begin, in order.
    pub parts: Vec<Part>,
    pub finish: Option<FinishReason>,
    pub end: StepEnd,
    pub provider_state: Option<ProviderState>,
}

/// A block of a step that takes deltas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub block: u32,
    pub kind: BlockKind,
    /// Offset of its text in the step's text or thinking.
    pub from: usize,
}

impl StepRecord {
    fn open(&mut self, block: u32, kind: BlockKind) {
        let from = self.channel(kind).len();
        self.parts.push(Part { block, kind, from });
    }

    /// What is said in a block of this kind; what is heard is said, too.
    fn channel(&mut self, kind: BlockKind) -> &mut String {
        match kind {
            BlockKind::Thinking => &mut self.thinking,
            _ => &mut self.text,
        }
    }

    /// Takes back a block but for its first characters.
    fn supersede(&mut self, block: u32, keep_chars: u64) {
        let Some(at) = self.parts.iter().position(|part| part.block == block) else { return };
        let Part { kind, from, .. } = self.parts[at];
        let thinks = kind == BlockKind::Thinking;
        let beside = |part: &&Part| (part.kind == BlockKind::Thinking) == thinks;
        let next = self.parts[at + 1..].iter().find(beside).map(|part| part.from);
        let channel = self.channel(kind);
        let end = next.unwrap_or(channel.len());
        let mut chars = channel[from..end].char_indices();
        let Some((kept, _)) = chars.nth(usize::try_from(keep_chars).unwrap_or(usize::MAX)) else { return };
        channel.replace_range(from + kept..end, "");
        let gone = end - from - kept;
        for part in
            self.parts[at + 1..].iter_mut().filter(|part| (part.kind == BlockKind::Thinking) == thinks)
        {
            part.from -= gone;
        }
    }
}

/// How a step ended, as far as its calls are concerned.
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
    pub slot: Slot,
    pub position: u32,
    pub block: u32,
    pub upstream_id: Option<UpstreamCallId>,
    pub wire_name: WireName,
    pub kind: CallKind,
    /// Place in the setup's tools; `None` = not offered.
    pub tool: Option<usize>,
    /// Run by the provider.
    pub hosted: bool,
    /// Another call took its place.
    pub superseded: bool,
    /// Argument text so far.
    pub text: String,
    pub arguments: Option<Result<Arguments, (BrokenCall, RawArguments)>>,
    /// What a person put in their place.
    pub ran_with: Option<Arguments>,
    pub seal: Option<Seal>,
    /// How often the arguments were void or changed, or the tool was.
    pub version: u32,
    /// How often it was started.
    pub attempts: u32,
    /// How often a person was asked.
    pub questions: u32,
    /// The rule that it was last asked about or started by.
    pub rule: Option<String>,
    /// How often of those by the running tool.
    pub tool_questions: u32,
    /// The open question of the running tool.
    pub asking: Option<Asking>,
    /// How long this start's tool has waited for people, in milliseconds.
    pub asked_ms: u64,
    /// The last answer. It is not taken back by what changes later: it says itself what it is about.
    pub answer: Option<Answer>,
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
    Asked {
        approval: ApprovalId,
        expires_at: Option<Millis>,
        arguments_hash: String,
        fingerprint: String,
    },
    Running {
        since: Millis,
    },
    Closed {
        outcome: Outcome,
        guard: Option<guard::Entry>,
    },
}

/// What a running tool asks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asking {
    pub approval: ApprovalId,
    pub since: Millis,
    /// Values have to be filled in.
    pub form: bool,
}

/// What was answered, and about what exactly.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub decision: Decision,
    pub reason: Option<String>,
    arguments_hash: String,
    fingerprint: String,
}

impl Answer {
    /// It was given about this very thing. R: A3
    pub(crate) fn is_about(&self, case: &Case<'_>) -> bool {
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
    pub(crate) fn written(&self) -> Option<&Arguments> {
        self.arguments.as_ref().and_then(|arguments| arguments.as_ref().ok())
    }

    /// The arguments that it would run with.
    pub(crate) fn effective(&self) -> Option<&Arguments> {
        let written = self.written()?;
        Some(self.ran_with.as_ref().unwrap_or(written))
    }

    /// Its place in the recorded order.
    pub(crate) fn order(&self) -> (u32, u32, Slot) {
        (self.step, self.position, self.slot)
    }
}

impl Record {
    /// Number of the current step, from 1; 0 before the first.
    pub(crate) fn step(&self) -> u32 {
        self.steps.len() as u32
    }

    pub(crate) fn call(&self, id: &CallId) -> Option<usize> {
        self.calls.iter().rposition(|call| call.id == *id)
    }

    /// Of a tool's definition as it is now.
    pub(crate) fn fingerprint_of<'a>(&'a self, tool: &'a OfferedTool) -> &'a str {
        self.fingerprints.get(&tool.name).unwrap_or(&tool.fingerprint)
    }

    /// The call that a slot of the current step means now.
    pub(crate) fn call_in(&self, slot: Slot) -> Option<usize> {
        let step = self.step();
        self.calls.iter().rposition(|call| call.step == step && call.slot == slot && !call.hosted)
    }

    /// Steps whose calls were answered. R: T4
    pub(crate) fn iterations(&self) -> u32 {
        let counts = |(at, step): &(usize, &StepRecord)| {
            let number = *at as u32 + 1;
            step.end == StepEnd::Committed
                && self.calls.iter().any(|call| call.step == number && !call.hosted)
        };
        self.steps.iter().enumerate().filter(counts).count() as u32
    }

    /// Steps in a row, up to now, that the provider paused.
    pub(crate) fn pauses(&self) -> u32 {
        self.steps.iter().rev().take_while(|step| step.finish == Some(FinishReason::Pause)).count() as u32
    }

    /// What the guard watches: closed calls that the model is told of, in recorded order.
    pub(crate) fn guard_history(&self) -> Vec<guard::Entry> {
        let mut watched: Vec<_> = self
            .calls
            .iter()
            .filter(|call| !call.superseded && self.is_told(call.step))
            .filter_map(|call| match &call.state {
                CallState::Closed { guard, .. } => guard.map(|entry| (call.order(), entry)),
                _ => None,
            })
            .collect();
        watched.sort_unstable_by_key(|(order, _)| *order);
        watched.into_iter().map(|(_, entry)| entry).collect()
    }

    /// The model is told about the calls of this step.
    pub(crate) fn is_told(&self, step: u32) -> bool {
        let step = (step as usize).checked_sub(1).and_then(|at| self.steps.get(at));
        step.is_some_and(|step| matches!(step.end, StepEnd::Committed | StepEnd::Stopped))
    }

    /// What is kept beside the log.
    pub(crate) fn absorb_beside(&mut self, beside: &Beside) {
        if let Some(step) = (beside.step as usize).checked_sub(1).and_then(|at| self.steps.get_mut(at)) {
            step.provider_state = Some(beside.state.clone());
        }
    }

    /// Takes the next event. Total: an event that makes no sense here changes nothing but the numbers.
    pub(crate) fn absorb(&mut self, event: &Event, setup: &TurnSetup) {
        self.seq = event.seq;
        self.last_at = self.last_at.max(event.timestamp);
        self.waterfall.absorb(event);
        match &event.kind {
            EventKind::StreamStart { .. } => self.phase = Phase::Between,
            EventKind::StepStart { model, attempt, fallback, .. } => {
                self.step_start(event.step, model, *attempt, *fallback as usize);
            }
            EventKind::StepEnd { finish, usage, .. } => self.step_end(*finish, usage.as_ref()),
            EventKind::BlockStart(start) => self.block_start(start, event.block),
            EventKind::BlockEnd => self.open = None,
            EventKind::ContentDelta { text } => self.said(|step| step.text.push_str(text)),
            EventKind::Thinking { text } => self.said(|step| step.thinking.push_str(text)),
            EventKind::AudioDelta { transcript, .. } => self.said(|step| step.text.push_str(transcript)),
            EventKind::Citation { .. } => self.said(|_| {}),
            EventKind::Problem { code, excerpt, .. } => {
                self.problems += 1;
                if code == code::LOOP_NOTE || code == code::UPSTREAM_LOST {
                    self.notes.push((self.step(), excerpt.clone()));
                }
            }
            EventKind::Waiting { reason: WaitReason::Retry | WaitReason::RateLimit, until, .. } => {
                self.phase = Phase::Backoff { until: until.unwrap_or(event.timestamp) };
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
                if let Some(old) = supersedes.as_ref().and_then(|id| self.call(id)) {
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
                    asking: None,
                    asked_ms: 0,
                    answer: None,
                    partial: String::new(),
                    progress_events: 0,
                    state: CallState::Preparing,
                });
                self.blocks += 1;
                self.said(|_| {});
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
            EventKind::SessionStats(_) => self.stats_told = true,
            EventKind::Error(_) => self.error_told = true,
            EventKind::UserMessage { id, input } => {
                self.blocks += 1;
                let (after, id, input) = (self.step(), id.clone(), input.clone());
                self.said.push(Said { after, id, input });
            }
            EventKind::StreamEnd { status } => {
                self.phase = Phase::Over;
                self.ended = Some(*status);
            }
            kind => {
                if let EventKind::ApprovalResolved { approval_id, decision, by, arguments, content, .. } =
                    kind
                {
                    let content = arguments.clone().or_else(|| content.clone());
                    let answered = Answered { decision: *decision, by: by.clone(), content };
                    self.answered.insert(approval_id.clone(), answered);
                }
                match kind {
                    EventKind::ToolRedefined { tool_name, fingerprint, .. } => {
                        self.fingerprints.insert(tool_name.clone(), fingerprint.clone());
                    }
                    EventKind::ApprovalResolved { remembered: Some(remembered), .. } => {
                        self.remembered.push((**remembered).clone());
                    }
                    _ => {}
                }
                if let Some(at) = event.tool_id.as_ref().and_then(|id| self.call(id)) {
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
        self.phase = Phase::Streaming { shown: Shown::No };
    }

    fn step_end(&mut self, finish: Option<FinishReason>, usage: Option<&Usage>) {
        let stopped = self.ending.as_ref().map(|ending| ending.status);
        let (end, phase) = match stopped {
            Some(TurnStatus::Cancelled) => (StepEnd::Stopped, Phase::Stopping),
            Some(_) => (StepEnd::Broken, Phase::Stopping),
            None if finish.is_some_and(commits) => (StepEnd::Committed, Phase::Settling),
            None => (StepEnd::Broken, Phase::Lost),
        };
        if let Some(step) = self.steps.last_mut() {
            step.finish = finish;
            step.end = end;
        }
        self.phase = phase;
        if let Some(usage) = usage {
            add(&mut self.usage, usage);
        }
    }

    fn block_start(&mut self, start: &BlockStart, block: Option<u32>) {
        let block = block.unwrap_or(self.blocks);
        self.blocks += 1;
        let mut open = |kind, refusal| {
            self.open = Some(OpenBlock { block, kind, refusal });
            if let Some(step) = self.steps.last_mut() {
                step.open(block, kind);
            }
        };
        match start {
            BlockStart::Text { code } => open(BlockKind::Text, code.is_some()),
            BlockStart::Thinking => open(BlockKind::Thinking, false),
            BlockStart::Audio => open(BlockKind::Audio, false),
            BlockStart::Image(_) => {}
            BlockStart::Notice { code, .. } => match code.as_str() {
                code::STOPPED => self.end_with(TurnStatus::Cancelled, None),
                code::LENGTH => self.end_with(TurnStatus::Length, None),
                code::INTERRUPTED => self.end_with(TurnStatus::Interrupted, None),
                code::SHORTENED => self.shortened = true,
                code::LIMIT | code::LOOP_STOPPED => self.tools_off_after = Some(self.step()),
                _ => {}
            },
            BlockStart::Error(fault) => self.end_with(TurnStatus::Error, Some(fault.clone())),
            BlockStart::Unrecognised => {}
        }
        if !matches!(start, BlockStart::Notice { .. } | BlockStart::Error(_)) {
            self.said(|_| {});
        }
    }

    /// The first decision about the end stands.
    fn end_with(&mut self, status: TurnStatus, fault: Option<Fault>) {
        if self.ending.is_none() {
            self.ending = Some(Ending { status, fault });
            // A step that is still open ends first.
            if !matches!(self.phase, Phase::Streaming { .. } | Phase::Backoff { .. } | Phase::Over) {
                self.phase = Phase::Stopping;
            }
        }
    }

    fn said(&mut self, write: impl FnOnce(&mut StepRecord)) {
        if let Phase::Streaming { shown } = &mut self.phase {
            *shown = Shown::Yes;
        }
        if let Some(step) = self.steps.last_mut() {
            write(step);
        }
    }
}

impl CallRecord {
    fn absorb(&mut self, kind: &EventKind, at: Millis, setup: &TurnSetup) {
        match kind {
            EventKind::ToolInputDelta { delta } => self.text.push_str(delta),
            EventKind::ToolInputReset => {
                self.text.clear();
                self.arguments = None;
                self.seal = None;
                self.ran_with = None;
                self.rule = None;
                self.asking = None;
                self.version += 1;
                self.state = CallState::Preparing;
            }
            EventKind::ToolRedefined { attempt, .. } => {
                let starts =
                    matches!(self.state, CallState::Running { .. }) && *attempt == Some(self.attempts);
                if starts || matches!(self.state, CallState::Sealed | CallState::Asked { .. }) {
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
                self.asking = Some(Asking { approval, since: at, form });
            }
            EventKind::ApprovalResolved { approval_id, .. }
                if self.asking.as_ref().is_some_and(|asking| asking.approval == *approval_id) =>
            {
                if let Some(asking) = self.asking.take() {
                    self.asked_ms = self.asked_ms.saturating_add(at.abs_diff(asking.since));
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
                self.state = CallState::Asked {
                    approval: approval_id.clone(),
                    expires_at: *expires_at,
                    arguments_hash: arguments_hash.clone(),
                    fingerprint: fingerprint.clone(),
                };
            }
            EventKind::ApprovalResolved { approval_id, decision, reason, arguments, .. } => {
                let CallState::Asked { approval, arguments_hash, fingerprint, .. } = &mut self.state else {
                    return;
                };
                if approval != approval_id {
                    return;
                }
                let (mut arguments_hash, fingerprint) =
                    (std::mem::take(arguments_hash), std::mem::take(fingerprint));
                if let Some(edited) = arguments {
                    let edited = Arguments::from_value(edited.clone());
                    arguments_hash = canonical::arguments_hash(&edited);
                    self.ran_with = Some(edited);
                    self.version += 1;
                }
                let reason = reason.clone();
                self.answer = Some(Answer { decision: *decision, reason, arguments_hash, fingerprint });
                self.state = CallState::Sealed;
            }
            EventKind::ToolStart { attempt, rule, .. } => {
                self.attempts = *attempt;
                self.rule = rule.clone();
                self.asking = None;
                self.asked_ms = 0;
                self.partial.clear();
                self.progress_events = 0;
                self.state = CallState::Running { since: at };
            }
            EventKind::ToolProgress(progress) => {
                self.progress_events += 1;
                if let Some(delta) = &progress.output_delta {
                    keep_partial(&mut self.partial, delta);
                }
            }
            EventKind::ToolResult(result) => {
                self.asking = None;
                let outcome = result.outcome();
                let guard = self.guard_entry(&outcome, setup);
                self.state = CallState::Closed { outcome, guard };
                self.partial = String::new();
            }
            _ => {}
        }
    }

    /// Tool and arguments as the guard compares them.
    pub(crate) fn guard_key(&self) -> u64 {
        let arguments = match &self.arguments {
            Some(Ok(arguments)) => canonical::text(&arguments.value),
            Some(Err((_, raw))) => raw.0.clone(),
            None => self.text.clone(),
        };
        canonical::hash(&[self.wire_name.as_str(), &arguments])
    }

    fn guard_entry(&self, outcome: &Outcome, setup: &TurnSetup) -> Option<guard::Entry> {
        let polls =
            self.tool.and_then(|at| setup.tools.get(at)).is_some_and(|tool| tool.polling == Polling::Poller);
        (!polls && !self.hosted).then(|| guard::Entry {
            call: self.guard_key(),
            result: canonical::hash(&[&outcome.told_to_model()]),
        })
    }
}

/// Output so far, its beginning kept.
fn keep_partial(partial: &mut String, delta: &str) {
    let mut room = PARTIAL_BYTES_MAX.saturating_sub(partial.len()).min(delta.len());
    while !delta.is_char_boundary(room) {
        room -= 1;
    }
    partial.push_str(&delta[..room]);
}

/// A finish that can be trusted: the model said all that it wanted to.
pub(crate) fn commits(finish: FinishReason) -> bool {
    match finish {
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Pause => true,
        FinishReason::Length | FinishReason::ContentFilter | FinishReason::Error | FinishReason::Other => {
            false
        }
    }
}

/// Totals over steps; a figure that no step reported stays absent.
pub(crate) fn add(total: &mut Usage, step: &Usage) {
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
