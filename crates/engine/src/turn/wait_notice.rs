//! Notices of waits: for an upstream that has not begun, a client that has not answered, a log that was slow. Once for
//! each wait, and only when it is long enough to be noticed; nothing else depends on it.

use crate::event::{EventKind, WaitReason};
use crate::machine::TurnMachine;
use crate::record::TurnPhase;
use crate::tool::CallRunner;
use crate::wording;
use throughline_wire::CallId;

impl TurnMachine<'_> {
    pub(crate) fn report_first_byte_wait(&mut self, step: u32, attempt: u32) {
        let nothing_shown = self.record.reply_of(step, attempt).is_some_and(|reply| !reply.content_shown);
        if nothing_shown && !self.volatile.first_byte_received {
            let waiting = EventKind::Waiting { reason: WaitReason::FirstByte, until: None, why: None };
            self.emit(self.step_target(), waiting);
        }
    }

    pub(crate) fn report_client_wait(&mut self, call: &CallId, attempt: u32) {
        let Some(handle) = self.running_call(call, attempt) else { return };
        // Whoever asked for the turn knows what it has not answered.
        let by_client =
            self.tool_of(handle).is_some_and(|tool| matches!(tool.runs, CallRunner::Client { .. }));
        if by_client && self.record.phase == TurnPhase::Settling {
            let until = self.tool_deadline(handle);
            let waiting = EventKind::Waiting { reason: WaitReason::Client, until, why: None };
            self.emit(self.call_target(handle), waiting);
        }
    }

    pub(crate) fn report_slow_log(&mut self, ms: u64) {
        let why = Some(wording::log_was_slow(ms));
        self.emit(self.step_target(), EventKind::Waiting { reason: WaitReason::Store, until: None, why });
    }
}
