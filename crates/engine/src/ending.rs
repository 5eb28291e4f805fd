//! From the last outcome of a step to the next step, or to the end of the turn.

use crate::action::TurnAction;
use crate::approvals::ApprovalInput;
use crate::event::{BlockStart, EventKind, SessionStats, TurnFault, TurnStatus};
use crate::loop_guard;
use crate::record::{CallState, StepEnd, TurnPhase, code};
use crate::schedule::CommitState;
use crate::setup::OnInterrupted;
use crate::turn::{EventTarget, TurnMachine};
use crate::wording;
use throughline_wire::{CallOutcome, FinishReason, NotStarted, StartState};

impl TurnMachine<'_> {
    // --- after a step --- R: T4

    /// If every call of the step is closed: on to what follows. False while one is open.
    pub(crate) fn finish_step(&mut self) -> bool {
        let calls = self.calls_of_step();
        if calls.iter().any(|at| !self.record.calls[*at].is_closed()) {
            return false;
        }
        let lost = self.record.phase == TurnPhase::Lost;
        let paused = self.record.steps.last().is_some_and(|step| step.finish == Some(FinishReason::Pause));
        let step = self.record.step();
        if !lost && self.record.tools_off_after.is_some_and(|after| step > after) {
            return self.finish_with(TurnStatus::Limit);
        }
        if !lost && calls.is_empty() {
            let continues = if paused {
                self.record.trailing_pauses() <= self.setup.limits.pauses_max
            } else {
                // The model would have stopped: messages that the user sent meanwhile get a step of their own.
                self.deliver_queued()
            };
            if continues {
                return self.next_step();
            }
            self.note_empty_reply();
            return self.finish_with(TurnStatus::Completed);
        }
        if !lost && self.record.tools_off_after.is_none() {
            self.note_loop(&calls);
        }
        if self.record.tools_off_after.is_none()
            && self.record.iterations() >= self.setup.limits.iterations_max
        {
            self.notice(code::LIMIT, wording::limit(self.setup.limits.iterations_max));
        }
        if !lost && !paused {
            self.deliver_queued();
        }
        self.next_step()
    }

    fn note_empty_reply(&mut self) {
        let silent = self.record.blocks as usize == self.record.delivered_messages.len();
        if silent {
            self.notice("empty_reply", wording::empty_reply());
        }
    }

    /// A word to the model, or the end of its circles.
    // R: T10
    fn note_loop(&mut self, calls: &[usize]) {
        let stopped = calls.iter().any(|at| match &self.record.calls[*at].state {
            CallState::Closed { outcome: CallOutcome::NotStarted(NotStarted::Limit { limit }), .. } => {
                limit == "loop_guard"
            }
            _ => false,
        });
        if stopped {
            self.notice(code::LOOP_STOPPED, wording::loop_stopped());
            return;
        }
        let step = self.record.step();
        if self.record.notes.iter().any(|(after, _)| *after == step) {
            return;
        }
        if let Some(cycle) = loop_guard::find_cycle(&self.record.guard_history(), &self.setup.guard) {
            self.emit(
                self.step_target(),
                EventKind::Problem {
                    code: code::LOOP_NOTE.into(),
                    at: None,
                    excerpt: wording::loop_note(cycle),
                    remedy: None,
                },
            );
        }
    }

    // --- stopping --- R: T8

    pub(crate) fn cancel(&mut self, why: String) {
        if self.record.phase == TurnPhase::Stopping {
            // Asked twice: nobody waits for tools any more.
            for at in self.running_calls() {
                self.close_cancelled(at);
            }
            return;
        }
        self.stop(TurnStopCause::Notice(code::STOPPED, why));
    }

    /// Ends the turn with an error block.
    pub(crate) fn fault(&mut self, fault: TurnFault) {
        self.stop(TurnStopCause::Fault(fault));
    }

    fn stop(&mut self, stop: TurnStopCause) {
        // After a failure there is nothing left to abort.
        if matches!(self.record.phase, TurnPhase::Streaming { .. })
            && matches!(stop, TurnStopCause::Notice(..))
        {
            let (step, attempt) = (self.record.step(), self.record.attempt);
            self.push_action(TurnAction::AbortModel { step, attempt });
        }
        let step_is_open =
            matches!(self.record.phase, TurnPhase::Streaming { .. } | TurnPhase::Backoff { .. });
        self.close_block();
        self.cut_open_calls();
        let finish = match stop {
            TurnStopCause::Notice(code, text) => {
                self.notice(code, text);
                None
            }
            TurnStopCause::Fault(fault) => {
                self.fault_block(fault);
                Some(FinishReason::Error)
            }
        };
        if step_is_open {
            // Whatever the upstream wanted echoed belongs to a reply that is not whole.
            self.volatile.provider_state = None;
            let raw = self.volatile.finish.take().and_then(|(_, raw)| raw);
            self.end_step(finish, raw);
        }
    }

    pub(crate) fn notice(&mut self, code: &str, text: String) {
        self.close_block();
        self.start_block(BlockStart::Notice { code: code.into(), text });
    }

    pub(crate) fn fault_block(&mut self, fault: TurnFault) {
        self.close_block();
        self.start_block(BlockStart::Error(fault));
    }

    fn running_calls(&self) -> Vec<usize> {
        let is_running = |at: &usize| matches!(self.record.calls[*at].state, CallState::Running { .. });
        (0..self.record.calls.len()).filter(is_running).collect()
    }

    /// While stopping: everything that does not run is closed, everything that runs is asked to stop.
    pub(crate) fn settle_stopping(&mut self) -> bool {
        let by_user =
            self.record.pending_end.as_ref().is_some_and(|ending| ending.status == TurnStatus::Cancelled);
        let mut progressed = false;
        for at in 0..self.record.calls.len() {
            match &self.record.calls[at].state {
                CallState::Closed { .. } => continue,
                CallState::Running { .. } => {
                    // Not a move: nothing changes until the tool or the timer answers.
                    self.cancel_running(at);
                    continue;
                }
                CallState::AwaitingApproval { .. } => {
                    self.resolve(at, &ApprovalInput::denial("stop", None), None)
                }
                CallState::Preparing | CallState::Sealed => {}
            }
            self.close(at, self.outcome_if_stopped(at, by_user));
            progressed = true;
        }
        progressed
    }

    fn outcome_if_stopped(&self, at: usize, by_user: bool) -> CallOutcome {
        match &self.record.calls[at].arguments {
            Some(Ok(_)) if by_user => CallOutcome::Cancelled(StartState::No),
            Some(Err((why, _))) => crate::tool_result::broken_outcome(why),
            Some(Ok(_)) | None => CallOutcome::NotStarted(NotStarted::Interrupted),
        }
    }

    // --- after a crash ---

    /// Another process takes the turn over. What ran in the old one is gone.
    pub(crate) fn take_over(&mut self) {
        // R: S3. A turn that brings its process down each time does so only a few times.
        let too_often = self.record.takeovers > self.setup.limits.takeovers_max;
        let continues = self.setup.on_interrupted == OnInterrupted::Continue
            && self.record.pending_end.is_none()
            && !too_often;
        for at in self.running_calls() {
            let tool = self.record.calls[at].tool.and_then(|tool| self.setup.tools.get(tool));
            let repeatable = tool.is_some_and(|tool| tool.effect.may_repeat());
            let committed = self.record.phase == TurnPhase::Settling;
            if continues && self.resume_client_wait(at) {
                // The client is still there.
            } else if continues && committed && repeatable && self.start_still_allowed(at) {
                let rule = self.record.calls[at].rule.clone();
                self.start_tool(at, CommitState::Done, rule);
            } else {
                self.close(at, CallOutcome::Unknown);
            }
        }
        if !continues {
            if self.record.pending_end.is_none() {
                self.stop(TurnStopCause::Notice(code::INTERRUPTED, wording::interrupted()));
            } else if matches!(self.record.phase, TurnPhase::Streaming { .. } | TurnPhase::Backoff { .. }) {
                // The end was decided and the step not closed yet.
                self.close_block();
                self.cut_open_calls();
                self.end_step(None, None);
            }
            return;
        }
        match self.record.phase {
            TurnPhase::Streaming { .. } | TurnPhase::Backoff { .. } => self.restart_step(),
            TurnPhase::Settling => self.recheck_calls(),
            TurnPhase::Fresh
            | TurnPhase::Between
            | TurnPhase::Lost
            | TurnPhase::Stopping
            | TurnPhase::Over => {}
        }
    }

    /// True if whatever allowed the start that died still holds: nobody has seen a definition that came after it.
    // R: A3
    fn start_still_allowed(&self, at: usize) -> bool {
        let answer = self.record.calls[at].answer.as_ref();
        self.case(at).is_some_and(|case| match answer {
            Some(answer) => answer.applies_to(&case),
            None => case.fingerprint == case.tool.fingerprint,
        })
    }

    /// The reply of a dead stream cannot be revived: what was shown of it is taken back, and the model is asked again.
    fn restart_step(&mut self) {
        self.close_block();
        self.cut_open_calls();
        let spans = self.record.steps.last().map(|step| step.spans.clone()).unwrap_or_default();
        for part in spans {
            let target = EventTarget { block: Some(part.block), ..self.step_target() };
            self.emit(target, EventKind::BlockSuperseded { keep_chars: 0 });
        }
        self.end_step(None, None);
    }

    /// Checks and timers died with the old process: ask for them again.
    fn recheck_calls(&mut self) {
        for at in self.calls_of_step() {
            match &self.record.calls[at].state {
                CallState::Sealed => self.arguments_sealed(at),
                CallState::AwaitingApproval { approval, expires_at, .. } => {
                    // The answer may come in the new process, and then needs the check.
                    let timer = crate::input::TimerId::Approval(approval.clone());
                    let deadline = *expires_at;
                    self.arguments_sealed(at);
                    if let Some(deadline) = deadline {
                        self.set_timer(timer, deadline);
                    }
                }
                CallState::Preparing | CallState::Running { .. } | CallState::Closed { .. } => {}
            }
        }
    }

    /// In a step that was lost: what did not run never will.
    pub(crate) fn settle_lost(&mut self) -> bool {
        let mut progressed = false;
        for at in self.calls_of_step() {
            if matches!(self.record.calls[at].state, CallState::Preparing | CallState::Sealed) {
                self.close(at, self.outcome_if_stopped(at, false));
                progressed = true;
            }
        }
        progressed
    }

    // --- the end ---

    /// Stopping is over when nothing runs.
    pub(crate) fn finish_stopped(&mut self) -> bool {
        if self.record.calls.iter().any(|call| !call.is_closed()) {
            return false;
        }
        let Some(ending) = self.record.pending_end.clone() else {
            return self.finish_with(TurnStatus::Completed);
        };
        if let Some(fault) = ending.fault.filter(|_| !self.record.error_emitted) {
            self.emit(EventTarget::default(), EventKind::Error(fault));
        }
        self.finish_with(ending.status)
    }

    fn finish_with(&mut self, status: TurnStatus) -> bool {
        if !self.record.stats_emitted {
            let stats = self.stats();
            self.emit(EventTarget::default(), EventKind::SessionStats(stats));
        }
        self.emit(EventTarget::default(), EventKind::StreamEnd { status });
        true
    }

    fn stats(&self) -> SessionStats {
        let waterfall = &self.record.waterfall;
        SessionStats {
            steps: self.record.steps.iter().filter(|step| step.end != StepEnd::Open).count() as u32,
            calls: self.record.calls.len() as u32,
            usage: self.record.usage,
            wall_ms: waterfall.wall_ms(self.now),
            first_content_ms: waterfall.first_content_ms(),
            saved_by_eager_ms: waterfall.saved_by_eager_ms(),
            segments: waterfall.segments_until(self.now),
        }
    }
}

/// Cause of a stop.
enum TurnStopCause {
    /// With a notice: code and text.
    Notice(&'static str, String),
    /// With an error block.
    Fault(TurnFault),
}
