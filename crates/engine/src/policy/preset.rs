//! Permissions in one word: ordinary rules that come after those of the agent.

use super::rule::{PolicyRule, RuleAction};
use crate::tool::Effect;
use serde::{Deserialize, Serialize};

/// Preset permissions of an agent. The agent's own rules come first; without a preset the effect decides what
/// they leave open.
///
/// ```
/// use throughline_engine::{Effect, OfferedTool, PermissionPreset, Policy, PolicyDecision, explain};
/// use throughline_wire::CallArguments;
///
/// let policy = Policy { permissions: Some(PermissionPreset::ReadOnly), ..Policy::default() };
/// let tool = OfferedTool::new("mail.send", Effect::External);
/// let arguments = CallArguments::from_value(serde_json::json!({}));
/// let PolicyDecision::Deny { rule, .. } = explain(&tool, &arguments, &policy, &[]) else { panic!("not denied") };
/// assert_eq!(rule, "permissions:read_only");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionPreset {
    /// Tools that change something are denied.
    ReadOnly,
    /// The built-in file tools may change files under their roots; all other tools ask according to their
    /// effect.
    Workspace,
    /// Everything runs without approval, except tools that always ask.
    Everything,
}

impl PermissionPreset {
    /// Name of the preset in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::Workspace => "workspace",
            Self::Everything => "everything",
        }
    }

    /// Rules that the preset consists of.
    pub fn rules(self) -> Vec<PolicyRule> {
        match self {
            Self::ReadOnly => {
                let changing = Effect::ALL.into_iter().filter(|effect| !effect.may_start_early());
                let deny = PolicyRule::new(RuleAction::Deny)
                    .reason("this agent is read-only (permissions = `read_only`)");
                vec![changing.fold(deny, PolicyRule::effect)]
            }
            Self::Workspace => {
                let files = PolicyRule::new(RuleAction::Allow).tool("files").source("builtin");
                vec![files.effect(Effect::Write).effect(Effect::Idempotent)]
            }
            Self::Everything => vec![PolicyRule::new(RuleAction::Allow).tool("*")],
        }
    }

    /// As events name the rules.
    pub(super) fn rule_name(self) -> String {
        format!("permissions:{}", self.name())
    }
}
