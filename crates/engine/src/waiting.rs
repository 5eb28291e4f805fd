//! Saying why nothing moves: an upstream that has not begun, a client that has not answered, a log that was behind. Told
//! once for each wait, and only when it is long enough to be noticed; nothing else depends on it. R: T11, L2

use crate::event::{EventKind, WaitReason};
use crate::id::Millis;
use crate::record::{Phase, Shown};
use crate::setup::Runs;
use crate::turn::{Heard, Machine};
use crate::wording;
use throughline_wire::CallId;

/// How long a wait is before it is told, in milliseconds. Below the 3 s after which people look for a mistake of theirs.
pub(crate) const TELL_AFTER_MS: Millis = 2_000;

impl Machine<'_> {
    pub(crate) fn no_first_byte(&mut self, step: u32, attempt: u32) {
        let current = step == self.record.step() && attempt == self.record.attempt;
        let silent = self.record.phase == (Phase::Streaming { shown: Shown::No });
        if current && silent && self.live.heard == Heard::Nothing {
            let waiting = EventKind::Waiting { reason: WaitReason::FirstByte, until: None, why: None };
            self.emit(self.about_step(), waiting);
        }
    }

    pub(crate) fn no_answer(&mut self, call: &CallId, attempt: u32) {
        let Some(at) = self.running(call, attempt) else { return };
        // Whoever asked for the turn knows what it has not answered.
        let by_client = self.tool_of(at).is_some_and(|tool| matches!(tool.runs, Runs::Client { .. }));
        if by_client && self.record.phase == Phase::Settling {
            let until = self.tool_due(at);
            let waiting = EventKind::Waiting { reason: WaitReason::Client, until, why: None };
            self.emit(self.about_call(at), waiting);
        }
    }

    pub(crate) fn log_was_slow(&mut self, ms: u64) {
        let why = Some(wording::log_was_slow(ms));
        self.emit(self.about_step(), EventKind::Waiting { reason: WaitReason::Store, until: None, why });
    }
}
