//! Calls whose end was announced before a single byte of arguments.

use crate::step::StepWriter;
use crate::vocabulary::CallSlot;

/// Holds back the seal of calls that closed empty. Upstreams close an open block also when the token budget cuts it,
/// so "no arguments, closed" is `{}` only if the model went on afterwards or stopped by itself (quirks A1, A2: else a
/// cut `delete_all` becomes `delete_all({})`). What is still held at the end is decided by the finish reason.
#[derive(Debug, Default)]
pub(super) struct PendingSeals(Vec<CallSlot>);

impl PendingSeals {
    /// The upstream says that `slot` is complete.
    pub(super) fn seal_or_hold(&mut self, slot: CallSlot, step: &mut StepWriter<'_>) {
        if step.has_no_arguments(slot) {
            step.hold_call(slot);
            self.0.push(slot);
        } else {
            step.seal_call(slot);
        }
    }

    /// The model went on: what closed before is complete.
    pub(super) fn seal_all(&mut self, step: &mut StepWriter<'_>) {
        for slot in self.0.drain(..) {
            step.seal_call(slot);
        }
    }
}
