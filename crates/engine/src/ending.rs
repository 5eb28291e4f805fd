//! From the last outcome of a step to the next step, or to the end of the turn.

use crate::action::Action;
use crate::approvals::Spoken;
use crate::event::{BlockStart, EventKind, Fault, SessionStats, TurnStatus};
use crate::guard;
use crate::record::{CallState, Phase, StepEnd, code};
use crate::schedule::Commit;
use crate::setup::OnInterrupted;
use crate::turn::{About, Machine};
use crate::wording;
use throughline_wire::{FinishReason, NotStarted, Outcome, Started};

impl Machine<'_> {
    // --- after a step --- R: T4

    /// If every call of the step is closed: on to what follows. False while one is open.
    pub(crate) fn step_done(&mut self) -> bool {
        let calls = self.calls_of_step();
        if calls.iter().any(|at| !self.record.calls[*at].is_closed()) {
            return false;
        }
        let lost = self.record.phase == Phase::Lost;
        let paused = self.record.steps.last().is_some_and(|step| step.finish == Some(FinishReason::Pause));
        let step = self.record.step();
        if !lost && self.record.tools_off_after.is_some_and(|after| step > after) {
            return self.finish_as(TurnStatus::Limit);
        }
        if !lost && calls.is_empty() {
            let goes_on = match paused {
                true => self.record.pauses() <= self.setup.limits.pauses_max,
                // The model would have stopped: what the user has said meanwhile gets a step of its own.
                false => self.take_in(),
            };
            if goes_on {
                return self.next_step();
            }
            self.note_empty_reply();
            return self.finish_as(TurnStatus::Completed);
        }
        if !lost && self.record.tools_off_after.is_none() {
            self.note_circles(&calls);
        }
        if self.record.tools_off_after.is_none()
            && self.record.iterations() >= self.setup.limits.iterations_max
        {
            self.notice(code::LIMIT, wording::limit(self.setup.limits.iterations_max));
        }
        if !lost && !paused {
            self.take_in();
        }
        self.next_step()
    }

    fn note_empty_reply(&mut self) {
        let silent = self.record.blocks as usize == self.record.said.len();
        if silent {
            self.notice("empty_reply", wording::empty_reply());
        }
    }

    /// A word to the model, or the end of its circles. R: T10
    fn note_circles(&mut self, calls: &[usize]) {
        let stopped = calls.iter().any(|at| match &self.record.calls[*at].state {
            CallState::Closed { outcome: Outcome::NotStarted(NotStarted::Limit { limit }), .. } => {
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
        if let Some(cycle) = guard::cycle(&self.record.guard_history(), &self.setup.guard) {
            self.emit(
                self.about_step(),
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
        if self.record.phase == Phase::Stopping {
            // Asked twice: nobody waits for tools any more.
            for at in self.running_calls() {
                self.close_cancelled(at);
            }
            return;
        }
        self.stop(Stop::Notice(code::STOPPED, why));
    }

    /// Ends the turn with an error block.
    pub(crate) fn fault(&mut self, fault: Fault) {
        self.stop(Stop::Fault(fault));
    }

    fn stop(&mut self, stop: Stop) {
        // After a failure there is nothing left to abort.
        if matches!(self.record.phase, Phase::Streaming { .. }) && matches!(stop, Stop::Notice(..)) {
            let (step, attempt) = (self.record.step(), self.record.attempt);
            self.act(Action::AbortModel { step, attempt });
        }
        let step_is_open = matches!(self.record.phase, Phase::Streaming { .. } | Phase::Backoff { .. });
        self.close_block();
        self.cut_open_calls();
        let finish = match stop {
            Stop::Notice(code, text) => {
                self.notice(code, text);
                None
            }
            Stop::Fault(fault) => {
                self.fault_block(fault);
                Some(FinishReason::Error)
            }
        };
        if step_is_open {
            // Whatever the upstream wanted echoed belongs to a reply that is not whole.
            self.live.provider_state = None;
            let raw = self.live.finish.take().and_then(|(_, raw)| raw);
            self.end_step(finish, raw);
        }
    }

    pub(crate) fn notice(&mut self, code: &str, text: String) {
        self.close_block();
        self.block(BlockStart::Notice { code: code.into(), text });
    }

    pub(crate) fn fault_block(&mut self, fault: Fault) {
        self.close_block();
        self.block(BlockStart::Error(fault));
    }

    fn running_calls(&self) -> Vec<usize> {
        let is_running = |at: &usize| matches!(self.record.calls[*at].state, CallState::Running { .. });
        (0..self.record.calls.len()).filter(is_running).collect()
    }

    /// While stopping: everything that does not run is closed, everything that runs is asked to stop.
    pub(crate) fn settle_stopping(&mut self) -> bool {
        let by_user =
            self.record.ending.as_ref().is_some_and(|ending| ending.status == TurnStatus::Cancelled);
        let mut moved = false;
        for at in 0..self.record.calls.len() {
            match &self.record.calls[at].state {
                CallState::Closed { .. } => continue,
                CallState::Running { .. } => {
                    // Not a move: nothing changes until the tool or the timer answers.
                    self.cancel_running(at);
                    continue;
                }
                CallState::Asked { .. } => self.resolve(at, &Spoken::no("stop", None), None),
                CallState::Preparing | CallState::Sealed => {}
            }
            self.close(at, self.outcome_when_stopped(at, by_user));
            moved = true;
        }
        moved
    }

    fn outcome_when_stopped(&self, at: usize, by_user: bool) -> Outcome {
        match &self.record.calls[at].arguments {
            Some(Ok(_)) if by_user => Outcome::Cancelled(Started::No),
            Some(Err((why, _))) => crate::result::outcome_of_broken(why),
            Some(Ok(_)) | None => Outcome::NotStarted(NotStarted::Interrupted),
        }
    }

    // --- after a crash ---

    /// Another process takes the turn over. What ran in the old one is gone.
    pub(crate) fn take_over(&mut self) {
        // R: S3. A turn that brings its process down each time does so only a few times.
        let too_often = self.record.takeovers > self.setup.limits.takeovers_max;
        let goes_on = self.setup.on_interrupted == OnInterrupted::Continue
            && self.record.ending.is_none()
            && !too_often;
        for at in self.running_calls() {
            let tool = self.record.calls[at].tool.and_then(|tool| self.setup.tools.get(tool));
            let again = tool.is_some_and(|tool| tool.effect.may_run_again());
            let committed = self.record.phase == Phase::Settling;
            if goes_on && self.wait_on(at) {
                // The client is still there.
            } else if goes_on && committed && again && self.was_allowed_as_it_is(at) {
                let rule = self.record.calls[at].rule.clone();
                self.start_tool(at, Commit::Done, rule);
            } else {
                self.close(at, Outcome::Unknown);
            }
        }
        if !goes_on {
            if self.record.ending.is_none() {
                self.stop(Stop::Notice(code::INTERRUPTED, wording::interrupted()));
            } else if matches!(self.record.phase, Phase::Streaming { .. } | Phase::Backoff { .. }) {
                // The end was decided and the step not closed yet.
                self.close_block();
                self.cut_open_calls();
                self.end_step(None, None);
            }
            return;
        }
        match self.record.phase {
            Phase::Streaming { .. } | Phase::Backoff { .. } => self.ask_again(),
            Phase::Settling => self.look_again(),
            Phase::Fresh | Phase::Between | Phase::Lost | Phase::Stopping | Phase::Over => {}
        }
    }

    /// What allowed the start that died still holds: nobody has looked at a definition that came after it. R: A3
    fn was_allowed_as_it_is(&self, at: usize) -> bool {
        let answer = self.record.calls[at].answer.as_ref();
        self.case(at).is_some_and(|case| match answer {
            Some(answer) => answer.is_about(&case),
            None => case.fingerprint == case.tool.fingerprint,
        })
    }

    /// The reply of a dead stream cannot be revived: what was shown of it is taken back, and the model is asked again.
    fn ask_again(&mut self) {
        self.close_block();
        self.cut_open_calls();
        let shown = self.record.steps.last().map(|step| step.parts.clone()).unwrap_or_default();
        for part in shown {
            let about = About { block: Some(part.block), ..self.about_step() };
            self.emit(about, EventKind::BlockSuperseded { keep_chars: 0 });
        }
        self.end_step(None, None);
    }

    /// Checks and timers died with the old process: ask for them again.
    fn look_again(&mut self) {
        for at in self.calls_of_step() {
            match &self.record.calls[at].state {
                CallState::Sealed => self.sealed(at),
                CallState::Asked { approval, expires_at, .. } => {
                    // The answer may come in the new process, and then needs the check.
                    let timer = crate::input::TimerId::Approval(approval.clone());
                    let due = *expires_at;
                    self.sealed(at);
                    if let Some(due) = due {
                        self.timer_at(timer, due);
                    }
                }
                CallState::Preparing | CallState::Running { .. } | CallState::Closed { .. } => {}
            }
        }
    }

    /// In a step that was lost: what did not run never will.
    pub(crate) fn settle_lost(&mut self) -> bool {
        let mut moved = false;
        for at in self.calls_of_step() {
            if matches!(self.record.calls[at].state, CallState::Preparing | CallState::Sealed) {
                self.close(at, self.outcome_when_stopped(at, false));
                moved = true;
            }
        }
        moved
    }

    // --- the end ---

    /// Stopping is over when nothing runs.
    pub(crate) fn finish(&mut self) -> bool {
        if self.record.calls.iter().any(|call| !call.is_closed()) {
            return false;
        }
        let Some(ending) = self.record.ending.clone() else { return self.finish_as(TurnStatus::Completed) };
        if let Some(fault) = ending.fault.filter(|_| !self.record.error_told) {
            self.emit(About::default(), EventKind::Error(fault));
        }
        self.finish_as(ending.status)
    }

    fn finish_as(&mut self, status: TurnStatus) -> bool {
        if !self.record.stats_told {
            let stats = self.stats();
            self.emit(About::default(), EventKind::SessionStats(stats));
        }
        self.emit(About::default(), EventKind::StreamEnd { status });
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
            segments: waterfall.all(self.now),
        }
    }
}

/// Why the turn stops.
enum Stop {
    /// With a notice: code and text.
    Notice(&'static str, String),
    /// With an error block.
    Fault(Fault),
}
