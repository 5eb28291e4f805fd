//! Calls whose end was announced before a single byte of arguments.

use crate::step::StepWriter;
use crate::vocabulary::CallSlot;

/// Holds back the seal of calls that closed empty. Upstreams close an open block also when the token budget
/// cuts it, so "no arguments, closed" is `{}` only if the model continued afterwards or stopped normally
/// (else a cut `delete_all` would become `delete_all({})`). The finish reason decides about calls that are
/// still held at the end.
#[derive(Debug, Default)]
pub(super) struct PendingSeals(Vec<CallSlot>);

impl PendingSeals {
    /// The upstream reports `slot` as complete: seals it, or holds the seal back.
    pub(super) fn seal_or_hold(&mut self, slot: CallSlot, step: &mut StepWriter<'_>) {
        if step.has_no_arguments(slot) {
            step.hold_call(slot);
            self.0.push(slot);
        } else {
            step.seal_call(slot);
        }
    }

    /// Seals all held calls: the model continued, so they are complete.
    pub(super) fn seal_all(&mut self, step: &mut StepWriter<'_>) {
        for slot in self.0.drain(..) {
            step.seal_call(slot);
        }
    }
}
