//! Notices of waits: for an upstream that has not begun or has gone silent, for a client that has not
//! answered, for a slow log. Only waits that are long enough to be noticed are reported. A wait for the model
//! or for a reconnecting client is reported again when another event has ended its notice and the wait
//! continues.

use crate::event::{EventKind, WaitReason};
use crate::id::UnixMillis;
use crate::input::TimerId;
use crate::machine::{
    ArgumentCheck, CheckHold, HoldReport, NOTIFY_AFTER_MS, SILENCE_NOTIFY_AFTER_MS, SilenceWatch, TurnMachine,
};
use crate::record::{CallHandle, CallRecord, CallState, TurnPhase};
use crate::tool::CallRunner;
use crate::wording;
use throughline_wire::CallId;

impl TurnMachine<'_> {
    /// Reports silence of the model. The timer runs once for many pieces of a reply: data that arrives before
    /// it fires only restarts it.
    pub(crate) fn report_model_silence(&mut self, step: u32, attempt: u32) {
        let SilenceWatch { since, has_begun, reported_by } = self.volatile.silence;
        if reported_by.is_some() || self.record.reply_of(step, attempt).is_none() {
            return;
        }
        let after_ms = if has_begun { SILENCE_NOTIFY_AFTER_MS } else { NOTIFY_AFTER_MS };
        if self.now < since + after_ms {
            return self.set_timer(TimerId::ModelSilence { step, attempt }, since + after_ms);
        }
        self.emit_silence();
    }

    fn emit_silence(&mut self) {
        let SilenceWatch { since, has_begun, .. } = self.volatile.silence;
        let reason = if has_begun { WaitReason::Silence } else { WaitReason::FirstByte };
        let waiting = EventKind::Waiting { reason, since: Some(since), until: None, why: None };
        self.emit(self.step_target(), waiting);
        self.volatile.silence.reported_by = Some(self.record.seq);
    }

    pub(crate) fn report_client_wait(&mut self, call: &CallId, attempt: u32) {
        let Some(handle) = self.running_call(call, attempt) else { return };
        // The requester of the turn knows which calls it has not answered.
        let by_client =
            self.tool_of(handle).is_some_and(|tool| matches!(tool.runs, CallRunner::Client { .. }));
        if by_client && self.record.phase == TurnPhase::AwaitingCalls {
            let until = self.tool_deadline(handle);
            let waiting = EventKind::Waiting { reason: WaitReason::Client, since: None, until, why: None };
            self.emit(self.call_target(handle), waiting);
        }
    }

    pub(crate) fn check_held(&mut self, call: &CallId, version: u32, until: UnixMillis) {
        let due_at = self.now + NOTIFY_AFTER_MS;
        let Some(check) = self.volatile.open_check(call, version) else { return };
        if let Some(hold) = &mut check.hold {
            hold.until = until;
            return;
        }
        check.hold = Some(CheckHold { until, report: HoldReport::DueAt(due_at) });
        self.set_timer(TimerId::HeldCheck { call: call.clone(), version }, due_at);
    }

    /// Reports a wait that has become the one that matters, or whose notice was ended by another event though
    /// the wait continues.
    pub(crate) fn renew_wait_notice(&mut self) {
        match self.record.phase {
            TurnPhase::Streaming(_) => self.renew_silence(),
            TurnPhase::AwaitingCalls => self.report_hold(),
            _ => {}
        }
    }

    fn renew_silence(&mut self) {
        let reported_by = self.volatile.silence.reported_by;
        if reported_by.is_some_and(|event| event != self.record.seq) && !self.is_card_active() {
            self.emit_silence();
        }
    }

    fn report_hold(&mut self) {
        let is_held = |check: &ArgumentCheck| check.is_open() && check.hold.is_some();
        if !self.volatile.checks.values().any(is_held) || self.is_card_active() {
            return;
        }
        let held: Vec<(CallHandle, CheckHold)> = self
            .calls_of_step()
            .into_iter()
            .filter_map(|handle| Some((handle, self.volatile.hold_of(self.record.call(handle))?)))
            .collect();
        if held.iter().any(|(_, hold)| hold.report == HoldReport::By(self.record.seq)) {
            return;
        }
        let is_due = |hold: &CheckHold| !matches!(hold.report, HoldReport::DueAt(at) if at > self.now);
        let Some((handle, hold)) = held.into_iter().find(|(_, hold)| is_due(hold)) else { return };
        let until = Some(hold.until);
        let waiting = EventKind::Waiting { reason: WaitReason::Client, since: None, until, why: None };
        self.emit(self.call_target(handle), waiting);
        if let Some(check) = self.volatile.checks.get_mut(&self.record.call(handle).id) {
            check.hold = Some(CheckHold { report: HoldReport::By(self.record.seq), ..hold });
        }
    }

    /// True if a call runs or a person is asked about one: the call's card already shows it.
    fn is_card_active(&self) -> bool {
        let is_active =
            |call: &CallRecord| matches!(call.state, CallState::Running(_) | CallState::AwaitingApproval(_));
        self.calls_of_step().into_iter().any(|handle| is_active(self.record.call(handle)))
    }

    pub(crate) fn report_slow_log(&mut self, ms: u64) {
        // The turn waits for its next attempt, not for the log.
        if matches!(self.record.phase, TurnPhase::Backoff(_)) {
            return;
        }
        let why = Some(wording::log_was_slow(ms));
        let waiting = EventKind::Waiting { reason: WaitReason::Store, since: None, until: None, why };
        self.emit(self.step_target(), waiting);
    }
}
