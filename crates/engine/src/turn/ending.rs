//! From the last outcome of a step to the next step, or to the end of the turn.

use crate::action::TurnAction;
use crate::approval::answers::ApprovalInput;
use crate::event::tool_result::broken_outcome;
use crate::event::{BlockStart, EventKind, SessionStats, TurnFault, TurnStatus};
use crate::input::TimerId;
use crate::machine::{EventTarget, TurnMachine};
use crate::policy::loop_guard;
use crate::record::{CallHandle, CallState, PendingEnd, StepEnd, TurnPhase, notice_code};
use crate::schedule::CommitState;
use crate::setup::OnInterrupted;
use crate::tool::CallRunner;
use crate::wording;
use throughline_wire::{CallOutcome, FinishReason, NotStarted, StartState};

impl TurnMachine<'_> {
    // --- after a step ---

    /// If every call of the step is closed: on to what follows. False while one is open.
    pub(crate) fn finish_step(&mut self) -> bool {
        let calls = self.calls_of_step();
        if calls.iter().any(|handle| !self.record.call(*handle).is_closed()) {
            return false;
        }
        let lost = self.record.phase == TurnPhase::StreamLost;
        let paused = self.record.steps.last().is_some_and(|step| step.finish == Some(FinishReason::Pause));
        let step = self.record.step();
        if !lost && self.record.tools_off_after.is_some_and(|after| step > after) {
            return self.finish_with(TurnStatus::Limit);
        }
        if !lost && calls.is_empty() {
            let continues = if paused {
                self.record.trailing_pauses() <= self.setup.limits.pauses_max
            } else {
                // The model would have stopped: messages that the user has sent in the meantime get another
                // step.
                self.deliver_queued()
            };
            if continues || self.ask_for_answer() {
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
            self.notice(notice_code::LIMIT, wording::limit(self.setup.limits.iterations_max));
        }
        if !lost && !paused {
            self.deliver_queued();
        }
        self.next_step()
    }

    /// A step of thinking alone is not an answer: models that put everything into their reasoning mostly
    /// write the answer when asked again. Returns true if it is requested.
    fn ask_for_answer(&mut self) -> bool {
        let Some((last, before)) = self.record.steps.split_last() else { return false };
        let is_asked = before.last().is_some_and(|step| step.answer_missing);
        if is_asked || !last.is_thinking_alone(self.record.blocks) {
            return false;
        }
        self.problem_for_model(notice_code::ANSWER_MISSING, wording::answer_missing());
        true
    }

    fn note_empty_reply(&mut self) {
        let is_silent = self.record.blocks as usize == self.record.delivered_messages().count();
        if is_silent {
            self.notice("empty_reply", wording::empty_reply());
        } else if self.record.steps.last().is_some_and(|step| step.is_thinking_alone(self.record.blocks)) {
            self.notice("empty_reply", wording::thinking_alone());
        }
    }

    /// A finding that the model reads as a note, after all outcomes of the step.
    fn problem_for_model(&mut self, code: &str, note: String) {
        let problem = EventKind::Problem { code: code.into(), at: None, excerpt: note, remedy: None };
        self.emit(self.step_target(), problem);
    }

    /// Warns the model about a loop, or ends the loop.
    fn note_loop(&mut self, calls: &[CallHandle]) {
        let stopped = calls.iter().any(|handle| {
            let outcome = self.record.call(*handle).closed().map(|closed| &closed.outcome);
            matches!(outcome, Some(CallOutcome::NotStarted(NotStarted::Limit { limit })) if limit == "loop_guard")
        });
        if stopped {
            self.notice(notice_code::LOOP_STOPPED, wording::loop_stopped());
            return;
        }
        if self.record.steps.last().is_some_and(|step| !step.notes.is_empty()) {
            return;
        }
        if let Some(cycle) = loop_guard::find_cycle(&self.record.guard_history(), &self.setup.guard) {
            self.problem_for_model(notice_code::LOOP_NOTE, wording::loop_note(cycle));
        }
    }

    // --- stopping ---

    pub(crate) fn cancel(&mut self, why: String) {
        if self.record.is_stopping() {
            // Cancelled twice: the turn no longer waits for its tools.
            for handle in self.running_calls() {
                self.close_cancelled(handle);
            }
            return;
        }
        self.stop(TurnStopCause::Notice(notice_code::STOPPED, why));
    }

    /// Ends the turn with an error block.
    pub(crate) fn fault(&mut self, fault: TurnFault) {
        self.stop(TurnStopCause::Fault(fault));
    }

    fn stop(&mut self, stop: TurnStopCause) {
        // After a failure there is nothing left to abort.
        if let (Some(reply), TurnStopCause::Notice(..)) = (self.record.reply(), &stop) {
            let (step, attempt) = (self.record.step(), reply.attempt.number);
            self.push_action(TurnAction::AbortModel { step, attempt });
        }
        let step_is_open = self.record.step_is_open();
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
            // The provider state belongs to a reply that is incomplete.
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

    fn running_calls(&self) -> Vec<CallHandle> {
        self.record.calls.select(|call| call.run().is_some())
    }

    /// While stopping: closes every call that does not run, and asks every running one to stop.
    pub(crate) fn settle_stopping(&mut self) -> bool {
        let by_user = self.record.pending_end().is_some_and(|end| end.status == TurnStatus::Cancelled);
        let mut progressed = false;
        for handle in self.record.calls.handles() {
            match &self.record.call(handle).state {
                CallState::Closed(_) => continue,
                // The requester's call cannot be stopped, and its outcome only comes with another request.
                CallState::Running(_) if self.is_run_by_requester(handle) => {
                    self.close_cancelled(handle);
                    progressed = true;
                    continue;
                }
                CallState::Running(_) => {
                    // Not a move: nothing changes until the tool or the timer answers.
                    self.cancel_running(handle);
                    continue;
                }
                CallState::AwaitingApproval(_) => {
                    self.resolve(handle, &ApprovalInput::denial("stop", None), None)
                }
                CallState::Preparing(_) | CallState::Sealed(_) => {}
            }
            self.close(handle, self.outcome_if_stopped(handle, by_user));
            progressed = true;
        }
        progressed
    }

    fn is_run_by_requester(&self, handle: CallHandle) -> bool {
        self.tool_of(handle).is_some_and(|tool| tool.runs == CallRunner::Requester)
    }

    fn outcome_if_stopped(&self, handle: CallHandle, by_user: bool) -> CallOutcome {
        match self.record.call(handle).input().map(|input| &input.arguments) {
            Some(Ok(_)) if by_user => CallOutcome::Cancelled(StartState::No),
            Some(Err((why, _))) => broken_outcome(why),
            Some(Ok(_)) | None => CallOutcome::NotStarted(NotStarted::Interrupted),
        }
    }

    // --- after a crash ---

    /// Another process takes the turn over. What ran in the old one is lost.
    pub(crate) fn take_over(&mut self) {
        // A turn that brings its process down each time does so only a few times.
        let too_often = self.record.takeovers > self.setup.limits.takeovers_max;
        let continues = self.setup.on_interrupted == OnInterrupted::Continue
            && self.record.pending_end().is_none()
            && !too_often;
        for handle in self.running_calls() {
            let repeatable = self.tool_of(handle).is_some_and(|tool| tool.effect.may_repeat());
            let committed = self.record.phase == TurnPhase::AwaitingCalls;
            if continues && self.resume_client_wait(handle) {
                // The client is still there.
            } else if continues && committed && repeatable && self.start_still_allowed(handle) {
                let rule = self.record.call(handle).rule().map(str::to_owned);
                self.start_tool(handle, CommitState::Done, rule);
            } else {
                self.close(handle, CallOutcome::unknown());
            }
        }
        if !continues {
            if self.record.pending_end().is_none() {
                self.stop(TurnStopCause::Notice(notice_code::INTERRUPTED, wording::interrupted()));
            } else if self.record.step_is_open() {
                // The end was decided and the step not closed yet.
                self.close_block();
                self.cut_open_calls();
                self.end_step(None, None);
            }
            return;
        }
        match self.record.phase {
            TurnPhase::Streaming(_) | TurnPhase::Backoff(_) => self.restart_step(),
            TurnPhase::AwaitingCalls => self.recheck_calls(),
            TurnPhase::New
            | TurnPhase::BetweenSteps
            | TurnPhase::StreamLost
            | TurnPhase::Stopping(_)
            | TurnPhase::Over(_) => {}
        }
    }

    /// True if the permission for the start that was lost in a crash still holds: no later definition of the
    /// tool was announced.
    fn start_still_allowed(&self, handle: CallHandle) -> bool {
        let answer = self.record.call(handle).answer.as_ref();
        self.case(handle).is_some_and(|case| match answer {
            Some(answer) => answer.applies_to(&case),
            None => case.fingerprint == case.tool.fingerprint,
        })
    }

    /// A reply whose stream was lost cannot be continued: what was shown of it is taken back, and the model
    /// is asked again.
    fn restart_step(&mut self) {
        self.close_block();
        self.cut_open_calls();
        let spans = self.record.steps.last().map(|step| step.spans.clone()).unwrap_or_default();
        for span in spans {
            let target = EventTarget { block: Some(span.block), ..self.step_target() };
            self.emit(target, EventKind::BlockSuperseded { keep_chars: 0 });
        }
        self.end_step(None, None);
    }

    /// Checks and timers died with the old process: ask for them again.
    fn recheck_calls(&mut self) {
        for handle in self.calls_of_step() {
            match &self.record.call(handle).state {
                CallState::Sealed(_) => self.arguments_sealed(handle),
                CallState::AwaitingApproval(open) => {
                    // The answer may come in the new process, and then needs the check.
                    let timer = TimerId::Approval(open.approval_id.clone());
                    let deadline = open.expires_at;
                    self.arguments_sealed(handle);
                    if let Some(deadline) = deadline {
                        self.set_timer(timer, deadline);
                    }
                }
                CallState::Preparing(_) | CallState::Running(_) | CallState::Closed(_) => {}
            }
        }
    }

    /// In a step that was lost: what did not run never will.
    pub(crate) fn settle_lost(&mut self) -> bool {
        let mut progressed = false;
        for handle in self.calls_of_step() {
            if matches!(self.record.call(handle).state, CallState::Preparing(_) | CallState::Sealed(_)) {
                self.close(handle, self.outcome_if_stopped(handle, false));
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
        let TurnPhase::Stopping(PendingEnd { status, fault }) = self.record.phase.clone() else {
            return false;
        };
        if let Some(fault) = fault {
            self.emit(EventTarget::default(), EventKind::Error(fault));
        }
        self.finish_with(status)
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
