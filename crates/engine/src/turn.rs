//! One turn as a machine.
//!
//! An input comes in, [`Machine`] decides from the [`Record`] what follows, and every change goes through
//! [`Machine::emit`]: the event is written to `out` and absorbed by the record, so that a restored turn knows exactly
//! what the live one knew. After each input [`Machine::advance`] goes on as far as it can.
//!
//! | phase | what is awaited | what moves on |
//! |---|---|---|
//! | streaming | the model | its end: commit, retry, or the end of the turn |
//! | backoff | a timer | the next try |
//! | settling | tools, people | the last outcome: the next step, or the end |
//! | lost | tools that die with their process | the same, without a commit |
//! | stopping | running tools, for a moment | the last outcome: the end |

use crate::action::{Action, Beside, Out};
use crate::approvals::Spoken;
use crate::event::{Event, EventKind, FORMAT, TurnStatus};
use crate::id::{ApprovalId, Millis, Seq};
use crate::input::{Input, TimerId, Verdict};
use crate::ledger;
use crate::policy::Remember;
use crate::record::{Phase, Record};
use crate::setup::{Remark, TurnSetup, TurnStart};
use crate::steering::QueuedMessage;
use crate::waterfall::Waterfall;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use throughline_wire::{Arguments, CallId, FinishReason, Message, ProviderState, Usage};

/// One turn: pure, total, replayable from its events. R: T1, T4, E1
#[derive(Clone, Debug)]
pub struct Turn {
    world: Arc<(TurnSetup, TurnStart)>,
    record: Record,
    live: Live,
}

/// What dies with the process: the state of the stream being read, checks under way, wishes not yet fulfilled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live {
    pub finish: Option<(FinishReason, Option<String>)>,
    pub usage: Option<Usage>,
    pub provider_state: Option<ProviderState>,
    /// By call: the check of its arguments.
    pub checks: BTreeMap<CallId, Check>,
    /// By call: the check of arguments that a person wants instead.
    pub edits: BTreeMap<CallId, Check>,
    /// Checks asked for.
    pub checks_asked: u32,
    /// Calls that the user wants to end although their arguments are still arriving.
    pub cancel_when_sealed: BTreeSet<CallId>,
    /// Starts that were asked to stop.
    pub cancelled_starts: BTreeSet<(CallId, u32)>,
    /// The step's further choices were reported.
    pub choice_told: bool,
    /// Whether the upstream has said anything in this try, shown or not.
    pub heard: Heard,
    /// What the user has said and the turn has not taken in. Whoever sent it has it still.
    pub queue: Vec<QueuedMessage>,
    /// Open questions of tools, by the id that people know: the tool's own number of it.
    pub tool_questions: BTreeMap<ApprovalId, u64>,
}

/// Whether an upstream has said anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Heard {
    #[default]
    Nothing,
    Something,
}

/// A check of arguments that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    /// Its number.
    pub version: u32,
    pub subject: Subject,
    /// The answer.
    pub verdict: Option<Verdict>,
}

/// What is checked.
#[derive(Clone, Debug)]
pub(crate) enum Subject {
    /// The arguments of a call as of this version.
    Arguments(u32),
    /// Arguments that a person wants instead.
    Edit(Box<PendingEdit>),
}

/// An answer that counts if its arguments fit.
#[derive(Clone, Debug)]
pub(crate) struct PendingEdit {
    pub approval: ApprovalId,
    pub arguments: Arguments,
    pub by: String,
    pub reason: Option<String>,
    pub remember: Option<Remember>,
}

/// A turn with everything that one `apply` needs.
pub(crate) struct Machine<'a> {
    pub setup: &'a TurnSetup,
    pub start: &'a TurnStart,
    pub record: &'a mut Record,
    pub live: &'a mut Live,
    pub now: Millis,
    pub out: &'a mut Out,
}

/// What an event is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    pub step: Option<u32>,
    pub block: Option<u32>,
    pub tool: Option<CallId>,
}

impl Turn {
    /// Begins a turn: `stream_start`, the first step, the first model call. `now` is in milliseconds since 1970.
    pub fn new(setup: TurnSetup, start: TurnStart, now: Millis, out: &mut Out) -> Self {
        let mut turn = Self::restore(setup, start, &[], &[]);
        turn.machine(now, out).begin();
        turn
    }

    /// Takes one input and appends to `out` what follows from it. Every input is handled in every state; one that is
    /// late, doubled or unknown changes nothing.
    pub fn apply(&mut self, input: Input, now: Millis, out: &mut Out) {
        if self.is_over() {
            return;
        }
        let mut machine = self.machine(now, out);
        match input {
            Input::Model { step, attempt, event } => machine.model(step, attempt, event),
            Input::ModelFailed { step, attempt, failure } => machine.model_failed(step, attempt, failure),
            Input::Validated { call, version, verdict } => machine.validated(&call, version, verdict),
            Input::ToolProgress { call, attempt, progress } => {
                machine.tool_progress(&call, attempt, progress)
            }
            Input::ToolEnded { call, attempt, outcome } => machine.tool_ended(&call, attempt, outcome),
            Input::ToolAsks { call, attempt, question_id, question } => {
                machine.tool_asks(&call, attempt, question_id, question)
            }
            Input::ToolQuestionAnswered { question, answer, by } => {
                machine.tool_question_answered(&question, answer, &by)
            }
            Input::ClientAnswered { call, attempt, answer } => {
                machine.client_answered(&call, attempt, answer)
            }
            Input::Approval { question, decision, by, reason, arguments_hash, arguments, remember } => {
                match machine.asked_by_tool(&question) {
                    Some(at) => machine.answered_as_approval(at, decision, arguments, &by),
                    None => machine.answered(
                        &question,
                        &Spoken { decision, by, reason, arguments_hash, arguments, remember },
                    ),
                }
            }
            Input::Redefined { tool, fingerprint, start } => machine.redefined(&tool, &fingerprint, start),
            Input::UserMessage(message) => machine.user_message(message),
            Input::TakeBack { id } => machine.take_back(&id),
            Input::LogWasSlow { ms } => machine.log_was_slow(ms),
            Input::Cancel => machine.cancel(crate::wording::stopped()),
            Input::CancelBecause { why } => machine.cancel(why),
            Input::CancelCall { call } => machine.cancel_call(&call),
            Input::Timer { id } => machine.timer(id),
        }
        machine.advance();
    }

    /// The machine as it was after the last of `events`; `beside` is what was stored beside the log. Nothing is
    /// emitted: [`Turn::resume`] goes on.
    pub fn restore(setup: TurnSetup, start: TurnStart, events: &[Event], beside: &[Beside]) -> Self {
        Self::restore_in(Arc::new((setup, start)), events, beside)
    }

    /// The same for whoever keeps setup and start, too: a setup has the whole history and all tools.
    pub fn restore_in(world: Arc<(TurnSetup, TurnStart)>, events: &[Event], beside: &[Beside]) -> Self {
        let mut turn = Self { world, record: Record::default(), live: Live::default() };
        for event in events {
            turn.absorb(event);
        }
        for beside in beside {
            turn.absorb_beside(beside);
        }
        turn
    }

    /// Takes one more event of the log: `restore` in small steps.
    pub fn absorb(&mut self, event: &Event) {
        self.record.absorb(event, &self.world.0);
    }

    /// Takes one more value that was stored beside the log, after the `step_start` of its step.
    pub fn absorb_beside(&mut self, beside: &Beside) {
        self.record.absorb_beside(beside);
    }

    /// Goes on after [`Turn::restore`], as the owner number `epoch`: what was in flight is settled truthfully, then the
    /// turn is ended or continued by [`TurnSetup::on_interrupted`](crate::TurnSetup::on_interrupted).
    pub fn resume(&mut self, epoch: u64, now: Millis, out: &mut Out) {
        if self.is_over() {
            return;
        }
        self.live = Live::default();
        let mut machine = self.machine(now, out);
        machine.resume(epoch);
        machine.advance();
    }

    /// `stream_end` was emitted: every further input is ignored.
    pub fn is_over(&self) -> bool {
        self.record.phase == Phase::Over
    }

    /// What this turn adds to the history of the conversation: the user's message and the closed steps. `None` while
    /// a call has no outcome.
    pub fn history(&self) -> Option<Vec<Message>> {
        ledger::turn(&self.record, &self.world.1)
    }

    /// What the user has said in mid-turn and the turn has not taken in, oldest first. After the end: what the next turn
    /// should begin with. R: T14
    pub fn queued(&self) -> &[QueuedMessage] {
        &self.live.queue
    }

    /// Number of the last event.
    pub fn seq(&self) -> Seq {
        self.record.seq
    }

    /// The visible text of all steps so far, those without any left out, with an empty line between two.
    pub fn text(&self) -> String {
        let texts = self.record.steps.iter().map(|step| step.text.as_str()).filter(|text| !text.is_empty());
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// Tokens of all steps so far.
    pub fn usage(&self) -> Usage {
        self.record.usage
    }

    /// Where the time went so far.
    pub fn waterfall(&self) -> &Waterfall {
        &self.record.waterfall
    }

    /// When the last event happened, in milliseconds since 1970.
    pub fn last_at(&self) -> Millis {
        self.record.last_at
    }

    /// How the turn ended; `None` while it goes on.
    pub fn status(&self) -> Option<TurnStatus> {
        self.record.ended
    }

    /// Whether two turns know the same: everything but what dies with the process. For the property that a restored
    /// turn equals the live one.
    pub fn knows_the_same_as(&self, other: &Turn) -> bool {
        self.record == other.record
    }

    pub(crate) fn known(&self) -> (&TurnSetup, &Record) {
        (&self.world.0, &self.record)
    }

    fn machine<'a>(&'a mut self, now: Millis, out: &'a mut Out) -> Machine<'a> {
        let (setup, start) = &*self.world;
        // Time never goes back in a log, whatever the clock does.
        let now = now.max(self.record.last_at);
        Machine { setup, start, record: &mut self.record, live: &mut self.live, now, out }
    }
}

impl Machine<'_> {
    /// The only way anything changes: the event is written and absorbed.
    pub(crate) fn emit(&mut self, about: About, kind: EventKind) {
        let event = Event {
            turn_id: self.start.turn_id.clone(),
            seq: self.record.seq.next(),
            timestamp: self.now,
            step: about.step,
            block: about.block,
            tool_id: about.tool,
            kind,
        };
        self.record.absorb(&event, self.setup);
        self.out.events.push(event);
    }

    pub(crate) fn act(&mut self, action: Action) {
        self.out.actions.push(action);
    }

    pub(crate) fn timer_at(&mut self, id: TimerId, at: Millis) {
        self.act(Action::SetTimer { id, at });
    }

    /// The current step, for events.
    pub(crate) fn about_step(&self) -> About {
        About { step: Some(self.record.step()).filter(|step| *step > 0), ..About::default() }
    }

    /// A call, for events.
    pub(crate) fn about_call(&self, at: usize) -> About {
        let call = &self.record.calls[at];
        About { step: Some(call.step), block: Some(call.block), tool: Some(call.id.clone()) }
    }

    fn begin(&mut self) {
        let TurnStart { conversation_id, message_id, input, .. } = self.start;
        let start = EventKind::StreamStart {
            v: FORMAT,
            conversation_id: conversation_id.clone(),
            message_id: message_id.clone(),
            agent: self.setup.agent.clone(),
            mode: self.setup.mode.clone(),
            input: input.clone(),
        };
        self.emit(About::default(), start);
        for Remark { code, what, remedy } in &self.setup.remarks {
            let (code, excerpt, remedy) = (code.clone(), what.clone(), remedy.clone());
            self.emit(About::default(), EventKind::Problem { code, at: None, excerpt, remedy });
        }
        self.advance();
    }

    /// Goes on as far as nothing has to be awaited.
    pub(crate) fn advance(&mut self) {
        loop {
            let moved = match self.record.phase {
                Phase::Fresh | Phase::Over | Phase::Backoff { .. } => false,
                Phase::Between => self.next_step(),
                Phase::Streaming { .. } => self.start_early(),
                Phase::Settling => self.settle() || self.step_done(),
                Phase::Lost => self.settle_lost() || self.step_done(),
                Phase::Stopping => self.settle_stopping() || self.finish(),
            };
            if !moved {
                return;
            }
        }
    }

    fn resume(&mut self, epoch: u64) {
        if self.record.phase == Phase::Fresh {
            self.begin();
            return;
        }
        self.emit(About::default(), EventKind::TurnResumed { epoch });
        self.take_over();
    }

    fn timer(&mut self, id: TimerId) {
        match id {
            TimerId::Approval(approval) => match self.asking(&approval) {
                Some(at) => self.tool_question_expired(at),
                None => self.question_expired(&approval),
            },
            TimerId::Retry { step, attempt } => self.retry_due(step, attempt),
            TimerId::Tool { call, attempt } => self.tool_overdue(&call, attempt),
            TimerId::FirstByte { step, attempt } => self.no_first_byte(step, attempt),
            TimerId::Elsewhere { call, attempt } => self.no_answer(&call, attempt),
            TimerId::CancelGrace { call, attempt } => self.cancel_overdue(&call, attempt),
        }
    }
}
