//! Invariants that hold after every event. Knows the log and the truth about the tools, and no internals of
//! the machine.

use super::sim_plan::SimPlan;
use super::tool;
use std::collections::{BTreeMap, BTreeSet};
use throughline_engine::{
    ApprovalId, BlockStart, CallRunner, CallStatus, Effect, Event, EventKind, EventSeq, QuestionKind,
    StartRule, TimeSegment, TurnStatus, UnixMillis, UserMessageId,
};
use throughline_wire::{BrokenCall, CallId, FinishReason, Message, ModelRequest, SealEvidence, UserPart};

/// A broken invariant, in a sentence.
pub(super) type BrokenInvariant = String;

/// The checks, as a fold of the events.
#[derive(Default)]
pub(super) struct InvariantChecker {
    seq: EventSeq,
    began_at: Option<UnixMillis>,
    last_at: UnixMillis,
    calls: BTreeMap<CallId, CheckedCall>,
    step: u32,
    step_open: bool,
    committed: BTreeSet<u32>,
    /// The step whose request was made again with its tool results cut, beyond the tries of its policy.
    shortened_in: Option<u32>,
    stopped: bool,
    stopped_steps: BTreeSet<u32>,
    /// Steps with fragments of arguments that no call owns.
    orphan_steps: BTreeSet<u32>,
    blocks: u32,
    open_block: Option<u32>,
    /// Messages of the user that the turn took in: id and text, in order.
    delivered: Vec<(UserMessageId, String)>,
    charged_to: Option<UnixMillis>,
    stats: bool,
    pub(super) over: Option<TurnStatus>,
    /// When the user first pressed stop in this process.
    pub(super) cancelled_at: Option<UnixMillis>,
    /// True once a denial has ended the turn: the model must not be asked again, and the turn must be
    /// cancelled.
    stopped_by_denial: bool,
    pub(super) early_starts: u64,
    pub(super) asked_by_tools: u64,
}

struct CheckedCall {
    step: u32,
    effect: Option<Effect>,
    hosted: bool,
    superseded: bool,
    readable: bool,
    seal: Option<SealEvidence>,
    /// Open question of its running tool, with the time of the question.
    elicitation: Option<(ApprovalId, UnixMillis)>,
    /// Time that its tool has waited for people, in this start.
    asked_ms: UnixMillis,
    started_at: UnixMillis,
    timeout_ms: UnixMillis,
    by_client: bool,
    starts: u32,
    /// Starts that were not made.
    withdrawn_starts: u32,
    /// True if an event since the last start permits another one.
    may_start: bool,
    running: bool,
    closed: bool,
}

pub(super) fn ensure(holds: bool, what: impl FnOnce() -> BrokenInvariant) -> Result<(), BrokenInvariant> {
    if holds { Ok(()) } else { Err(what()) }
}

impl InvariantChecker {
    pub(super) fn calls(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn event(&mut self, event: &Event, plan: &SimPlan) -> Result<(), BrokenInvariant> {
        ensure(self.over.is_none(), || format!("an event after stream_end: {:?}", event.kind))?;
        ensure(event.seq == self.seq.next(), || format!("seq {} after {}", event.seq, self.seq))?;
        ensure(event.timestamp >= self.last_at, || "time went back".into())?;
        let first = matches!(event.kind, EventKind::StreamStart { .. });
        ensure(first == (event.seq == EventSeq(1)), || "stream_start is first and only there".into())?;
        if let Some(cancelled_at) = self.cancelled_at {
            // Timers wait for the log like every action; the slowest append is 20 times the usual one.
            let log = 2 * 20 * plan.append_ms as UnixMillis;
            let grace = plan.setup.limits.cancel_grace_ms as UnixMillis + log;
            ensure(event.timestamp <= cancelled_at + grace, || "stop took longer than its grace".into())?;
        }
        self.seq = event.seq;
        self.last_at = event.timestamp;
        self.began_at.get_or_insert(event.timestamp);
        self.charged_to.get_or_insert(event.timestamp);
        match &event.kind {
            EventKind::ApprovalResolved { stop: true, .. } => self.stopped_by_denial = true,
            EventKind::StepStart { .. } | EventKind::ToolStart { .. } if self.stopped_by_denial => {
                return Err(format!("{} after a denial that stopped the turn", event.kind.name()));
            }
            EventKind::StreamEnd { status, .. }
                if *status != TurnStatus::Cancelled && self.stopped_by_denial =>
            {
                return Err(format!("a denial stopped the turn, and it ended as {status:?}"));
            }
            _ => {}
        }
        match &event.kind {
            EventKind::StepStart { attempt, .. } => {
                self.step_start(event.step.unwrap_or(0), *attempt, plan)?
            }
            EventKind::StepEnd { finish, segments, .. } => {
                self.step_end(*finish, segments, event.timestamp)?
            }
            EventKind::BlockStart(start) => self.block_start(event.block, start)?,
            EventKind::BlockEnd => {
                ensure(self.open_block == event.block, || "a block_end for a block that is not open".into())?;
                self.open_block = None;
            }
            EventKind::ContentDelta { .. } | EventKind::Thinking { .. } | EventKind::AudioDelta { .. } => {
                ensure(self.open_block.is_some() && self.open_block == event.block, || {
                    "a delta outside its block".into()
                })?;
            }
            EventKind::SessionStats(stats) => {
                ensure(!self.stats, || "session_stats twice".into())?;
                self.stats = true;
                let wall = event.timestamp - self.began_at.unwrap_or(event.timestamp);
                let sum: u64 = stats.segments.iter().map(|segment| segment.ms).sum();
                ensure(stats.wall_ms as UnixMillis == wall, || {
                    format!("wall_ms is {}, not {wall}", stats.wall_ms)
                })?;
                ensure(sum == stats.wall_ms, || {
                    format!("the waterfall sums to {sum}, not {}", stats.wall_ms)
                })?;
                check_contiguous(&stats.segments, self.began_at.unwrap_or(0))?;
            }
            EventKind::StreamEnd { status, .. } => {
                ensure(self.stats, || "no session_stats before the end".into())?;
                ensure(!self.step_open && self.open_block.is_none(), || {
                    "the end inside a step or block".into()
                })?;
                let open = self.calls.iter().find(|(_, call)| !call.closed);
                ensure(open.is_none(), || {
                    format!("{} has no tool_result", open.map_or("", |(id, _)| id.as_str()))
                })?;
                self.over = Some(*status);
            }
            EventKind::UserMessage { id, input, .. } => self.user_message(id.as_ref(), event.block, input)?,
            EventKind::TurnResumed { .. } => {
                self.calls.values_mut().for_each(|call| call.may_start = true);
            }
            _ => self.tool_event(event, plan)?,
        }
        Ok(())
    }

    fn step_start(&mut self, step: u32, attempt: u32, plan: &SimPlan) -> Result<(), BrokenInvariant> {
        let shortened = self.shortened_in == Some(step);
        let tries_max =
            plan.setup.retry.attempts_max * plan.setup.upstreams.len() as u32 + u32::from(shortened);
        ensure(attempt <= tries_max, || format!("try {attempt} of a step, with {tries_max} allowed"))?;
        ensure(step == self.step + u32::from(!self.step_open), || {
            format!("step {step} after {}", self.step)
        })?;
        let open = self.calls.iter().find(|(_, call)| call.step < step && !call.closed);
        ensure(open.is_none(), || {
            format!("a step begins and {} has no outcome", open.map_or("", |(id, _)| id.as_str()))
        })?;
        self.step = step;
        self.step_open = true;
        Ok(())
    }

    fn step_end(
        &mut self,
        finish: Option<FinishReason>,
        segments: &[TimeSegment],
        at: UnixMillis,
    ) -> Result<(), BrokenInvariant> {
        ensure(self.step_open, || "a step ends that is not open".into())?;
        ensure(self.open_block.is_none(), || "a step ends inside a block".into())?;
        self.step_open = false;
        let from = self.charged_to.replace(at).unwrap_or(at);
        let sum: u64 = segments.iter().map(|segment| segment.ms).sum();
        ensure(sum as UnixMillis == at - from, || {
            format!("segments of a step sum to {sum}, not {}", at - from)
        })?;
        check_contiguous(segments, from)?;
        if finish.is_some_and(is_trusted_finish) && !self.stopped {
            self.committed.insert(self.step);
        }
        if self.stopped {
            self.stopped_steps.insert(self.step);
        }
        Ok(())
    }

    // A new kind of block is named here by clippy: `non_exhaustive` takes that from the compiler.
    #[deny(clippy::wildcard_enum_match_arm)]
    fn block_start(&mut self, block: Option<u32>, start: &BlockStart) -> Result<(), BrokenInvariant> {
        ensure(block == Some(self.blocks), || format!("block {block:?}, not {}", self.blocks))?;
        ensure(self.open_block.is_none(), || "a block inside another".into())?;
        self.blocks += 1;
        match start {
            BlockStart::Text { .. } | BlockStart::Thinking | BlockStart::Audio => self.open_block = block,
            BlockStart::Notice { code, .. } => {
                self.stopped |= code == "stopped";
                if code == "history_shortened" {
                    let before = self.shortened_in.replace(self.step);
                    ensure(before.is_none(), || "the history of a turn is shortened twice".into())?;
                }
            }
            BlockStart::Image(_) | BlockStart::Error(_) | BlockStart::Unrecognised => {}
            _ => return Err("a block of a kind that is not checked yet".into()),
        }
        Ok(())
    }

    /// Checks that a message of the user comes between two steps, once.
    fn user_message(
        &mut self,
        id: Option<&UserMessageId>,
        block: Option<u32>,
        input: &[UserPart],
    ) -> Result<(), BrokenInvariant> {
        let id = id.ok_or("a message of the user without an id")?;
        ensure(self.delivered.iter().all(|(delivered_id, _)| delivered_id != id), || {
            format!("{id} is taken in twice")
        })?;
        ensure(!self.step_open, || format!("{id} is taken in while the model talks"))?;
        let open = self.calls.iter().find(|(_, call)| !call.closed);
        ensure(open.is_none(), || {
            format!("{id} stands between {} and its outcome", open.map_or("", |(call, _)| call.as_str()))
        })?;
        ensure(block == Some(self.blocks), || format!("{id} is block {block:?}, not {}", self.blocks))?;
        self.blocks += 1;
        self.delivered.push((id.clone(), text_of(input)));
        Ok(())
    }

    pub(super) fn delivered_count(&self) -> usize {
        self.delivered.len()
    }

    /// True if this message was taken in.
    pub(super) fn was_delivered(&self, id: &UserMessageId) -> bool {
        self.delivered.iter().any(|(delivered_id, _)| delivered_id == id)
    }

    fn tool_event(&mut self, event: &Event, plan: &SimPlan) -> Result<(), BrokenInvariant> {
        let Some(id) = &event.tool_id else { return Ok(()) };
        if let EventKind::ToolUse { wire_name, source, status, supersedes, .. } = &event.kind {
            ensure(event.block == Some(self.blocks), || "a tool_use with a wrong block".into())?;
            ensure(*status == CallStatus::Preparing, || "a call is born prepared".into())?;
            self.blocks += 1;
            if let Some(old) = supersedes {
                let old = self.calls.get_mut(old).ok_or("supersedes a call that never was")?;
                ensure(old.closed, || "supersedes a call that is open".into())?;
                old.superseded = true;
            }
            let effect = plan.truth.iter().find(|(name, _)| name == wire_name).map(|(_, effect)| *effect);
            let offered = plan.setup.tools.iter().find(|tool| tool.wire_name == *wire_name);
            let seen = CheckedCall {
                step: event.step.unwrap_or(0),
                effect,
                hosted: source == "upstream",
                superseded: false,
                readable: false,
                seal: None,
                elicitation: None,
                asked_ms: 0,
                started_at: 0,
                timeout_ms: offered.map_or(0, |tool| tool.timeout_ms as UnixMillis),
                by_client: offered.is_some_and(|tool| matches!(tool.runs, CallRunner::Client { .. })),
                starts: 0,
                withdrawn_starts: 0,
                may_start: true,
                running: false,
                closed: false,
            };
            return ensure(self.calls.insert(id.clone(), seen).is_none(), || format!("{id} is used twice"));
        }
        let committed = self.calls.get(id).is_some_and(|call| self.committed.contains(&call.step));
        if matches!(event.kind, EventKind::Problem { .. }) {
            return Ok(());
        }
        let call = self.calls.get_mut(id).ok_or_else(|| format!("an event of {id}, which never was"))?;
        ensure(!call.closed, || format!("{id} has a result already: {:?}", event.kind))?;
        match &event.kind {
            EventKind::ToolInput(input) => {
                call.readable = input.arguments.is_some();
                call.seal = input.seal;
                let raw = input.raw.as_deref().unwrap_or_default();
                if input.broken == Some(BrokenCall::Nameless) && !raw.trim().is_empty() {
                    self.orphan_steps.insert(call.step);
                }
            }
            EventKind::ToolInputReset => {
                ensure(call.elicitation.is_none(), || format!("{id} is reset with a question open"))?;
                ensure(!committed, || format!("{id} is reset after the commit"))?;
                call.readable = false;
                call.may_start = true;
                call.running = false;
            }
            EventKind::ToolRedefined { attempt: Some(attempt), .. } => {
                ensure(call.running && *attempt == call.starts, || {
                    format!("{id}: start {attempt} was not made, and is not the one that goes on")
                })?;
                call.withdrawn_starts += 1;
                call.may_start = true;
                call.running = false;
            }
            EventKind::ToolRedefined { attempt: None, .. } => {
                ensure(!call.running, || format!("{id} is asked about again, and runs"))?;
            }
            EventKind::ApprovalRequest { kind: QuestionKind::Elicitation, approval_id, .. } => {
                ensure(call.running && !call.by_client, || {
                    format!("the tool of {id} asks and does not run")
                })?;
                ensure(call.elicitation.is_none(), || format!("the tool of {id} asks two things at once"))?;
                call.elicitation = Some((approval_id.clone(), event.timestamp));
                self.asked_by_tools += 1;
            }
            EventKind::ApprovalResolved { approval_id, answer: Some(_), .. } => {
                let open = call.elicitation.take().filter(|(open, _)| open == approval_id);
                let (_, since) = open.ok_or_else(|| format!("{approval_id} is answered and not open"))?;
                call.asked_ms += event.timestamp - since;
            }
            EventKind::ApprovalRequest { .. } => {
                ensure(committed, || format!("a person is asked about {id} before the commit"))?;
                ensure(!call.running, || format!("a person is asked about {id}, which runs"))?;
            }
            EventKind::ToolStart { early, attempt, .. } => {
                ensure(call.elicitation.is_none(), || format!("{id} starts with a question open"))?;
                call.asked_ms = 0;
                call.started_at = event.timestamp;
                ensure(call.readable, || format!("{id} starts without arguments"))?;
                ensure(call.may_start, || format!("{id} starts a second time without a reason"))?;
                ensure(*attempt == call.starts + 1, || {
                    format!("{id}: start {attempt} after {}", call.starts)
                })?;
                ensure(*early != committed, || format!("{id} says early {early}, committed {committed}"))?;
                let effect = call.effect.ok_or_else(|| format!("{id} starts a tool that nobody offers"))?;
                if is_harmless(effect) {
                    let strong = matches!(call.seal, Some(SealEvidence::Explicit | SealEvidence::Balanced));
                    let eager = plan.setup.start == StartRule::Eager;
                    ensure(committed || (strong && eager), || format!("{id} starts early against the rule"))?;
                } else {
                    ensure(committed, || format!("{id} ({effect:?}) starts before the commit"))?;
                    ensure(!self.orphan_steps.contains(&call.step), || {
                        format!("{id} ({effect:?}) starts beside fragments that belong to no call")
                    })?;
                    ensure(may_repeat(effect) || *attempt == 1 + call.withdrawn_starts, || {
                        format!("{id} ({effect:?}) runs twice")
                    })?;
                }
                call.starts = *attempt;
                call.may_start = false;
                call.running = true;
                self.early_starts += u64::from(*early);
            }
            EventKind::ToolProgress(_) => ensure(call.running, || format!("{id} reports and does not run"))?,
            EventKind::ToolResult(result) => {
                ensure(result.status.is_final(), || format!("{id} ends as {:?}", result.status))?;
                let ran =
                    matches!(result.status, CallStatus::Success | CallStatus::Error | CallStatus::TimedOut);
                ensure(!ran || call.running || call.hosted, || {
                    format!("{id} ends as {:?} and never ran", result.status)
                })?;
                ensure(result.status != CallStatus::Unknown || call.running || call.hosted, || {
                    format!("{id} never ran, and its end is not known")
                })?;
                // Outputs of the simulated tools name their start.
                let from = result.output.as_deref().and_then(tool::start_number_in);
                ensure(from.is_none_or(|from| from == call.starts), || {
                    format!("{id} ends with the result of start {from:?}, not of start {}", call.starts)
                })?;
                ensure(call.elicitation.is_none(), || format!("{id} ends with a question open"))?;
                let paused_ms = call.asked_ms.min(plan.asked_ms_max);
                let ran = event.timestamp - call.started_at - paused_ms;
                let given_up = result.status == CallStatus::TimedOut && (call.asked_ms > 0 || call.by_client);
                ensure(!given_up || ran >= call.timeout_ms, || {
                    format!("{id} is given up after {ran} ms of {}", call.timeout_ms)
                })?;
                call.closed = true;
                call.running = false;
            }
            _ => {}
        }
        Ok(())
    }

    /// True if a client is asked to run this call, by this start.
    pub(super) fn awaits_client(&self, id: &CallId, attempt: Option<u32>) -> bool {
        self.calls.get(id).is_some_and(|call| {
            call.by_client && call.running && attempt.is_none_or(|attempt| attempt == call.starts)
        })
    }

    /// A tool really starts: its call must be running, by this very start.
    pub(super) fn check_start(&self, id: &CallId, attempt: u32) -> Result<(), BrokenInvariant> {
        let runs = self.calls.get(id).is_some_and(|call| call.running && call.starts == attempt);
        ensure(runs, || format!("start {attempt} of {id} happens although the call has ended or begun again"))
    }

    /// Checks a request to the model: every call that it asked for, once, with its outcome.
    pub(super) fn request(&self, request: &ModelRequest) -> Result<(), BrokenInvariant> {
        let mut sent_calls = BTreeSet::new();
        for message in &request.messages {
            let Message::Step(step) = message else { continue };
            for (call, _) in &step.calls {
                ensure(sent_calls.insert(call.id.clone()), || format!("{} is told twice", call.id))?;
            }
        }
        let user_texts: Vec<String> = request
            .messages
            .iter()
            .filter_map(|message| match message {
                Message::User(parts) => Some(text_of(parts)).filter(|text| text.starts_with("steer ")),
                Message::Step(_) => None,
            })
            .collect();
        ensure(user_texts.iter().eq(self.delivered.iter().map(|(_, text)| text)), || {
            format!("the model hears {user_texts:?}, not {:?}", self.delivered)
        })?;
        let expected: BTreeSet<CallId> = self
            .calls
            .iter()
            .filter(|(_, call)| !call.hosted && !call.superseded)
            .filter(|(_, call)| {
                self.committed.contains(&call.step) || self.stopped_steps.contains(&call.step)
            })
            .map(|(id, _)| id.clone())
            .collect();
        ensure(sent_calls == expected, || format!("the model is told of {sent_calls:?}, not of {expected:?}"))
    }
}

fn text_of(parts: &[UserPart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        UserPart::Text { text } => Some(text.as_str()),
        UserPart::Image(_) | UserPart::File { .. } => None,
    });
    texts.collect()
}

// The two rules below are the design's, written once more: asking the engine would let one bug hide in both.

fn is_harmless(effect: Effect) -> bool {
    match effect {
        Effect::Pure | Effect::Read | Effect::Cosmetic => true,
        Effect::Idempotent | Effect::Write | Effect::External => false,
    }
}

fn may_repeat(effect: Effect) -> bool {
    match effect {
        Effect::Pure | Effect::Read | Effect::Cosmetic | Effect::Idempotent => true,
        Effect::Write | Effect::External => false,
    }
}

fn is_trusted_finish(finish: FinishReason) -> bool {
    matches!(finish, FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Pause)
}

fn check_contiguous(segments: &[TimeSegment], mut from: UnixMillis) -> Result<(), BrokenInvariant> {
    for segment in segments {
        ensure(segment.start == from, || format!("a gap in the waterfall: {} after {from}", segment.start))?;
        from += segment.ms as UnixMillis;
    }
    Ok(())
}
