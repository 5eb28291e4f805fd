//! May a call run? The fixed rule: pure, read and cosmetic tools run, the rest ask. R: A1
//!
//! This is the seam for rules, memory and editing: they will come in as a snapshot and be answered here, in the same
//! three words.

use crate::setup::{ApprovalRule, Effect, OfferedTool};

/// The answer, always with the rule that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// Run it.
    Allow,
    /// Ask a person.
    Ask { rule: String },
    /// Do not run it.
    Deny { reason: String },
}

/// Decides about one call.
pub(crate) fn ruling(tool: &OfferedTool, approval: &ApprovalRule) -> Ruling {
    if tool.effect.may_start_early() {
        return Ruling::Allow;
    }
    ask(format!("effect:{}", effect_name(tool.effect)), approval)
}

/// What becomes of a question under the turn's rule.
pub(crate) fn ask(rule: String, approval: &ApprovalRule) -> Ruling {
    match approval {
        ApprovalRule::Ask => Ruling::Ask { rule },
        ApprovalRule::ApproveAll => Ruling::Allow,
        ApprovalRule::DenyAll { reason } => Ruling::Deny { reason: reason.clone() },
    }
}

fn effect_name(effect: Effect) -> &'static str {
    match effect {
        Effect::Pure => "pure",
        Effect::Read => "read",
        Effect::Cosmetic => "cosmetic",
        Effect::Idempotent => "idempotent",
        Effect::Write => "write",
        Effect::External => "external",
    }
}
