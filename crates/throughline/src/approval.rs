//! Who answers when a tool wants to change something.

use serde_json::Value;
use throughline_engine::{ApprovalId, ApprovalRule, Decision};
use throughline_wire::{CallId, ToolName};

/// Who answers the questions of a turn. Pure, read-only and cosmetic tools never ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Approval {
    /// A person, through [`Turn::approve`](crate::Turn::approve), or the program, through
    /// [`Builder::on_approval`](crate::Builder::on_approval). Without an answer a question expires as denied.
    #[default]
    Ask,
    /// Everything is allowed beforehand.
    AllowAll,
    /// Everything that would ask is denied; the reason is told to the model and shown.
    DenyAll {
        /// For example "nobody is there to ask".
        reason: String,
    },
}

impl From<Approval> for ApprovalRule {
    fn from(approval: Approval) -> Self {
        match approval {
            Approval::Ask => ApprovalRule::Ask,
            Approval::AllowAll => ApprovalRule::ApproveAll,
            Approval::DenyAll { reason } => ApprovalRule::DenyAll { reason },
        }
    }
}

/// A question.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ApprovalAsk {
    /// The key of the answer.
    pub approval_id: ApprovalId,
    /// Which call asks.
    pub call: CallId,
    /// Which tool.
    pub tool: ToolName,
    /// What people call it.
    pub title: String,
    /// What it would be run with.
    pub arguments: Value,
    /// The question in words.
    pub question: String,
    /// The rule that asks.
    pub rule: String,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Run it or not.
    pub decision: Decision,
    /// Why; a denial's reason is told to the model.
    pub reason: Option<String>,
}

impl Answer {
    /// Run it.
    pub fn approve() -> Self {
        Self { decision: Decision::Approve, reason: None }
    }

    /// Do not run it; the model is told why.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self { decision: Decision::Deny, reason: Some(reason.into()) }
    }
}
