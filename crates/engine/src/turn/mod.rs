//! One turn as a machine.
//!
//! An input comes in, [`TurnMachine`] decides from the [`TurnRecord`] what follows, and every change goes
//! through [`TurnMachine::emit`]: the event is written to `out` and applied to the record, so that a restored
//! turn knows exactly what the live one knew. After each input [`TurnMachine::advance`] proceeds as far as
//! possible.
//!
//! | phase | what is awaited | what moves on |
//! |---|---|---|
//! | streaming | the model | its end: commit, retry, or the end of the turn |
//! | backoff | a timer | the next try |
//! | settling | tools, people | the last outcome: the next step, or the end |
//! | lost | tools that die with their process | the same, without a commit |
//! | stopping | running tools, for a moment | the last outcome: the end |

mod ending;
pub(crate) mod query;
mod steering;
mod wait_notice;

use crate::action::{StepProviderState, TurnOutput};
use crate::approval::answers::ApprovalInput;
use crate::event::{Event, EventKind, FORMAT, TurnStatus};
use crate::id::{EventSeq, UnixMillis};
use crate::input::{QueuedMessage, TimerId, TurnInput};
use crate::machine::{EventTarget, TransientState, TurnMachine};
use crate::record::{TurnPhase, TurnRecord};
use crate::setup::{SetupRemark, TurnSetup, TurnStart};
use crate::step::request;
use crate::step::retry::FailedCall;
use crate::waterfall::Waterfall;
use std::sync::Arc;
use throughline_wire::{Message, Usage};

/// One turn: pure, total, replayable from its events.
///
/// ```
/// use throughline_engine::{Turn, TurnInput, TurnOutput, TurnSetup, TurnStart, TurnStatus, UpstreamChoice};
///
/// let upstream = UpstreamChoice { name: "demo".into(), model: "small".into() };
/// let setup = TurnSetup { upstreams: vec![upstream], ..TurnSetup::default() };
/// let mut out = TurnOutput::default();
/// let mut turn = Turn::new(setup.clone(), TurnStart::default(), 1_000, &mut out);
/// turn.apply(TurnInput::Cancel, 1_200, &mut out);
/// assert_eq!(turn.status(), Some(TurnStatus::Cancelled));
///
/// // Its events alone give the same turn again.
/// let restored = Turn::restore(setup, TurnStart::default(), &out.events, &out.provider_states);
/// assert!(restored.state_eq(&turn));
/// ```
#[derive(Clone, Debug)]
pub struct Turn {
    spec: Arc<(TurnSetup, TurnStart)>,
    record: TurnRecord,
    volatile: TransientState,
}

impl Turn {
    /// Begins a turn: `stream_start`, the first step, the first model call. `now` is in milliseconds since 1970.
    pub fn new(setup: TurnSetup, start: TurnStart, now: UnixMillis, out: &mut TurnOutput) -> Self {
        let mut turn = Self::restore(setup, start, &[], &[]);
        turn.machine(now, out).begin();
        turn
    }

    /// Takes one input and appends to `out` what follows from it. Every input is handled in every state; one that is
    /// late, doubled or unknown changes nothing, but a notice of a wait that is due is written with any input.
    pub fn apply(&mut self, input: TurnInput, now: UnixMillis, out: &mut TurnOutput) {
        if self.is_over() {
            return;
        }
        let mut machine = self.machine(now, out);
        match input {
            TurnInput::Model { step, attempt, event } => machine.model_event(step, attempt, event),
            TurnInput::ModelFailed { step, attempt, failure, time_left_ms } => {
                machine.model_failed(step, attempt, FailedCall { failure, time_left_ms })
            }
            TurnInput::Validated { call, version, validation } => {
                machine.validated(&call, version, validation)
            }
            TurnInput::CheckHeld { call, version, until } => machine.check_held(&call, version, until),
            TurnInput::ToolProgress { call, attempt, progress } => {
                machine.tool_progress(&call, attempt, progress)
            }
            TurnInput::ToolEnded { call, attempt, outcome } => machine.tool_ended(&call, attempt, outcome),
            TurnInput::ToolQuestionAsked { call, attempt, question_id, question } => {
                machine.tool_question_asked(&call, attempt, question_id, question)
            }
            TurnInput::ToolQuestionAnswered { question, answer, by } => {
                machine.tool_question_answered(&question, answer, &by)
            }
            TurnInput::ClientAnswered { call, attempt, answer } => {
                machine.client_answered(&call, attempt, answer)
            }
            TurnInput::Approval {
                question,
                decision,
                by,
                reason,
                arguments_hash,
                arguments,
                remember,
                stop,
            } => {
                let input = ApprovalInput { decision, by, reason, arguments_hash, arguments, remember, stop };
                match machine.call_of_elicitation(&question) {
                    Some(handle) => machine.answer_elicitation_by_approval(handle, input),
                    None => machine.apply_approval(&question, &input),
                }
            }
            TurnInput::ToolRedefined { tool, fingerprint, start } => {
                machine.tool_redefined(&tool, &fingerprint, start)
            }
            TurnInput::UserMessage(message) => machine.queue_message(message),
            TurnInput::RetractMessage { id } => machine.retract_message(&id),
            TurnInput::LogDelayed { ms } => machine.report_slow_log(ms),
            TurnInput::Cancel => machine.cancel(crate::wording::stopped()),
            TurnInput::CancelWithReason { why } => machine.cancel(why),
            TurnInput::CancelCall { call } => machine.cancel_call(&call),
            TurnInput::Timer { id } => machine.timer(id),
        }
        machine.advance();
        machine.renew_wait_notice();
        machine.volatile.just_checked = None;
    }

    /// The machine as it was after the last of `events`; `states` were stored next to the log. Nothing is
    /// emitted: [`Turn::resume`] continues.
    pub fn restore(
        setup: TurnSetup,
        start: TurnStart,
        events: &[Event],
        states: &[StepProviderState],
    ) -> Self {
        Self::restore_shared(Arc::new((setup, start)), events, states)
    }

    /// Like [`Turn::restore`], for callers that share setup and start: a setup has the whole history and all
    /// tools.
    pub fn restore_shared(
        spec: Arc<(TurnSetup, TurnStart)>,
        events: &[Event],
        states: &[StepProviderState],
    ) -> Self {
        let mut turn = Self { spec, record: TurnRecord::default(), volatile: TransientState::default() };
        for event in events {
            turn.replay(event);
        }
        for states in states {
            turn.apply_provider_state(states);
        }
        turn
    }

    /// Takes one more event of the log: `restore` in small steps.
    pub fn replay(&mut self, event: &Event) {
        self.record.apply(event, &self.spec.0);
    }

    /// Takes one more value that was stored next to the log, after the `step_start` of its step.
    pub fn apply_provider_state(&mut self, states: &StepProviderState) {
        self.record.apply_provider_state(states);
    }

    /// Continues after [`Turn::restore`], as the owner number `epoch`: what was in flight is settled truthfully, then the
    /// turn is ended or continued by [`TurnSetup::on_interrupted`](crate::TurnSetup::on_interrupted).
    pub fn resume(&mut self, epoch: u64, now: UnixMillis, out: &mut TurnOutput) {
        if self.is_over() {
            return;
        }
        self.volatile = TransientState::default();
        let mut machine = self.machine(now, out);
        machine.resume(epoch);
        machine.advance();
    }

    /// `stream_end` was emitted: every further input is ignored.
    pub fn is_over(&self) -> bool {
        matches!(self.record.phase, TurnPhase::Over(_))
    }

    /// Messages that this turn adds to the history of the conversation: the user's input and the closed steps. `None` while a
    /// call has no outcome.
    pub fn history(&self) -> Option<Vec<Message>> {
        request::turn_messages(&self.record, &self.spec.1)
    }

    /// Messages of the user that the turn has not taken in, oldest first. After the end they begin the next turn.
    pub fn queued_messages(&self) -> &[QueuedMessage] {
        &self.volatile.queue
    }

    /// Number of the last event.
    pub fn seq(&self) -> EventSeq {
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

    /// Use of the time so far.
    pub fn waterfall(&self) -> &Waterfall {
        &self.record.waterfall
    }

    /// Time of the last event, in milliseconds since 1970.
    pub fn last_event_at(&self) -> UnixMillis {
        self.record.last_at
    }

    /// Final status; `None` while the turn runs.
    pub fn status(&self) -> Option<TurnStatus> {
        if let TurnPhase::Over(status) = self.record.phase { Some(status) } else { None }
    }

    /// True if two turns know the same: everything but what dies with the process. For the property that a restored turn
    /// equals the live one.
    pub fn state_eq(&self, other: &Turn) -> bool {
        self.record == other.record
    }

    pub(crate) fn setup_and_record(&self) -> (&TurnSetup, &TurnRecord) {
        (&self.spec.0, &self.record)
    }

    fn machine<'a>(&'a mut self, now: UnixMillis, out: &'a mut TurnOutput) -> TurnMachine<'a> {
        let (setup, start) = &*self.spec;
        // Time never goes back in a log, even if the clock does.
        let now = now.max(self.record.last_at);
        TurnMachine { setup, start, record: &mut self.record, volatile: &mut self.volatile, now, out }
    }
}

impl TurnMachine<'_> {
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
        self.emit(EventTarget::default(), start);
        for SetupRemark { code, what, remedy } in &self.setup.remarks {
            let (code, excerpt, remedy) = (code.clone(), what.clone(), remedy.clone());
            self.emit(EventTarget::default(), EventKind::Problem { code, at: None, excerpt, remedy });
        }
        self.advance();
    }

    /// Proceeds until something has to be awaited.
    pub(crate) fn advance(&mut self) {
        loop {
            let progressed = match self.record.phase {
                TurnPhase::New | TurnPhase::Over(_) | TurnPhase::Backoff(_) => false,
                TurnPhase::BetweenSteps => self.next_step(),
                TurnPhase::Streaming(_) => self.start_early(),
                TurnPhase::AwaitingCalls => self.settle() || self.finish_step(),
                TurnPhase::StreamLost => self.settle_lost() || self.finish_step(),
                TurnPhase::Stopping(_) => self.settle_stopping() || self.finish_stopped(),
            };
            if !progressed {
                return;
            }
        }
    }

    fn resume(&mut self, epoch: u64) {
        if self.record.phase == TurnPhase::New {
            self.begin();
            return;
        }
        self.emit(EventTarget::default(), EventKind::TurnResumed { epoch });
        self.take_over();
    }

    fn timer(&mut self, id: TimerId) {
        match id {
            TimerId::Approval(approval) => match self.call_with_question(&approval) {
                Some(handle) => self.tool_question_expired(handle),
                None => self.approval_expired(&approval),
            },
            TimerId::Retry { step, attempt } => self.retry_timer_fired(step, attempt),
            TimerId::Tool { call, attempt } => self.tool_timed_out(&call, attempt),
            TimerId::ModelSilence { step, attempt } => self.report_model_silence(step, attempt),
            TimerId::RemoteCall { call, attempt } => self.report_client_wait(&call, attempt),
            // The common steps after every input handle this.
            TimerId::HeldCheck { .. } => {}
            TimerId::CancelGrace { call, attempt } => self.cancel_grace_expired(&call, attempt),
        }
    }
}
