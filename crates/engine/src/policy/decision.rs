//! A call to decide about, and the decisions of rules and people.

use crate::tool::OfferedTool;
use serde::{Deserialize, Serialize};
use throughline_wire::CallArguments;

/// A call, with all that the policy looks at.
#[derive(Clone, Copy)]
pub(crate) struct PolicyInput<'a> {
    pub tool: &'a OfferedTool,
    /// Fingerprint of the definition that would run; not the offered one if the tool was redefined since.
    pub fingerprint: &'a str,
    pub arguments: &'a CallArguments,
}

/// The answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDecision {
    /// The call runs.
    Approve,
    /// The call does not run.
    Deny,
}

/// Person or rule that answers the questions of the policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalRule {
    /// A person decides.
    #[default]
    Ask,
    /// Every call is approved in advance (`--approve`).
    ApproveAll,
    /// No person can be asked: calls that need an approval are denied, with this reason.
    DenyAll {
        /// Reason that the model sees and the card shows.
        reason: String,
    },
}

/// Decision about a call, always with the rule that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyDecision {
    /// The call runs.
    Allow {
        /// The rule that decided.
        rule: String,
    },
    /// A person is asked.
    Ask {
        /// The rule that decided.
        rule: String,
    },
    /// The call does not run.
    Deny {
        /// The rule that decided.
        rule: String,
        /// Reason that the model sees.
        reason: String,
    },
}

/// Names of the rules that are not an agent's own, as events carry them.
pub(crate) mod rule_name {
    pub(crate) const MANUAL: &str = "manual";
    pub(crate) const TOOL: &str = "tool";
    pub(crate) const REQUIRE_CONFIRMATION: &str = "require_confirmation";
    pub(crate) const LOOP_GUARD: &str = "loop_guard";
    pub(crate) const REDEFINED: &str = "redefined";
    pub(crate) const OWN_TOOL: &str = "own_tool";
    pub(crate) const UNNAMED_HOST: &str = "unnamed_host";
}

impl PolicyDecision {
    /// The rule that decided.
    pub fn rule(&self) -> &str {
        match self {
            PolicyDecision::Allow { rule }
            | PolicyDecision::Ask { rule }
            | PolicyDecision::Deny { rule, .. } => rule,
        }
    }

    /// Replaces a question by its answer if no person needs to be asked.
    pub(crate) fn with_approval_rule(self, approval: &ApprovalRule) -> Self {
        match (self, approval) {
            (PolicyDecision::Ask { rule }, ApprovalRule::ApproveAll) => PolicyDecision::Allow { rule },
            (PolicyDecision::Ask { rule }, ApprovalRule::DenyAll { reason }) => {
                PolicyDecision::Deny { rule, reason: reason.clone() }
            }
            (decision, _) => decision,
        }
    }
}
