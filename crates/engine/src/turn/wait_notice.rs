//! Notices of waits: for an upstream that has not begun or has gone silent, a client that has not answered, a log that was
//! slow. Once for each wait, and only when it is long enough to be noticed; nothing else depends on it.

use crate::event::{EventKind, WaitReason};
use crate::id::UnixMillis;
use crate::input::TimerId;
use crate::machine::{NOTIFY_AFTER_MS, SILENCE_NOTIFY_AFTER_MS, SilenceWatch, TurnMachine};
use crate::record::TurnPhase;
use crate::tool::CallRunner;
use crate::wording;
use throughline_wire::CallId;

impl TurnMachine<'_> {
    /// The timer runs once for many pieces of a reply: what was heard meanwhile only sets it anew.
    pub(crate) fn report_model_silence(&mut self, step: u32, attempt: u32) {
        let SilenceWatch { since, has_begun, is_reported } = self.volatile.silence;
        if is_reported || self.record.reply_of(step, attempt).is_none() {
            return;
        }
        let (reason, after_ms) = if has_begun {
            (WaitReason::Silence, SILENCE_NOTIFY_AFTER_MS)
        } else {
            (WaitReason::FirstByte, NOTIFY_AFTER_MS)
        };
        if self.now < since + after_ms {
            return self.set_timer(TimerId::ModelSilence { step, attempt }, since + after_ms);
        }
        self.volatile.silence.is_reported = true;
        let waiting = EventKind::Waiting { reason, since: Some(since), until: None, why: None };
        self.emit(self.step_target(), waiting);
    }

    pub(crate) fn report_client_wait(&mut self, call: &CallId, attempt: u32) {
        let Some(handle) = self.running_call(call, attempt) else { return };
        // Whoever asked for the turn knows what it has not answered.
        let by_client =
            self.tool_of(handle).is_some_and(|tool| matches!(tool.runs, CallRunner::Client { .. }));
        if by_client && self.record.phase == TurnPhase::Settling {
            let until = self.tool_deadline(handle);
            let waiting = EventKind::Waiting { reason: WaitReason::Client, since: None, until, why: None };
            self.emit(self.call_target(handle), waiting);
        }
    }

    pub(crate) fn check_held(&mut self, call: &CallId, version: u32, until: UnixMillis) {
        let Some(check) = self.volatile.open_check(call, version) else { return };
        if check.held_until.replace(until).is_none() {
            let timer = TimerId::HeldCheck { call: call.clone(), version };
            self.set_timer(timer, self.now + NOTIFY_AFTER_MS);
        }
    }

    pub(crate) fn report_held_check(&mut self, call: &CallId, version: u32) {
        let Some(handle) = self.record.find_call(call) else { return };
        let is_next = self.record.call(handle).is_sealed() && self.record.phase == TurnPhase::Settling;
        let Some(check) = self.volatile.open_check(call, version) else { return };
        if !is_next {
            // A person is asked, or the model writes: that is what is waited for. A call may also have been cancelled.
            if !self.record.call(handle).is_closed() {
                let timer = TimerId::HeldCheck { call: call.clone(), version };
                self.set_timer(timer, self.now + NOTIFY_AFTER_MS);
            }
            return;
        }
        let until = check.held_until;
        if until.is_some() && !std::mem::replace(&mut check.is_hold_reported, true) {
            let waiting = EventKind::Waiting { reason: WaitReason::Client, since: None, until, why: None };
            self.emit(self.call_target(handle), waiting);
        }
    }

    pub(crate) fn report_slow_log(&mut self, ms: u64) {
        let why = Some(wording::log_was_slow(ms));
        let waiting = EventKind::Waiting { reason: WaitReason::Store, since: None, until: None, why };
        self.emit(self.step_target(), waiting);
    }
}
