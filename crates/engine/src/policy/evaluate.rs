//! The order in which rules, remembered decisions and effect decide.

use super::address::NamingTexts;
use super::decision::{ApprovalDecision, PolicyDecision, PolicyInput, rule_name};
use super::preset::PermissionPreset;
use super::remembered::RememberedDecision;
use super::rule::{PolicyRule, RuleAction};
use crate::tool::{Effect, OfferedTool, PermissionRule};
use serde::{Deserialize, Serialize};
use throughline_wire::CallArguments;

/// The rules of an agent about its calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// The first that fits decides.
    pub rules: Vec<PolicyRule>,
    /// Rules in one word, after those.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<PermissionPreset>,
    /// Mode that asks a person more often than the rules do.
    pub confirm: ConfirmMode,
}

/// Mode that asks a person more often than the rules do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmMode {
    /// No: the rules alone decide.
    #[default]
    ByRule,
    /// Every call needs an approval (`require_confirmation`); remembered decisions count.
    Everything,
    /// Every call waits for a person, without expiry (`tool_call.mode = "manual"`).
    Manual,
}

/// Explains the decision about a call, for testers and editors of rules. The loop guard and [`ApprovalRule`] have no part
/// in it, and no host counts as named but those of the settings.
///
/// ```
/// use throughline_engine::{ArgumentTest, RuleAction, Effect, OfferedTool, Policy, PolicyRule, PolicyDecision, explain};
/// use throughline_wire::CallArguments;
///
/// let tool = OfferedTool::new("files.delete", Effect::Write);
/// let rule = PolicyRule::new(RuleAction::Allow).tool("files").argument("path", ArgumentTest::Under("/tmp/play".into()));
/// let policy = Policy { rules: vec![rule], ..Policy::default() };
/// let at = |path: &str| CallArguments::from_value(serde_json::json!({ "path": path }));
///
/// let decision = explain(&tool, &at("/tmp/play/old.txt"), &policy, &[]);
/// assert_eq!(decision, PolicyDecision::Allow { rule: "rule:1 allow files path under /tmp/play".into() });
/// let decision = explain(&tool, &at("/tmp/play/../../etc/passwd"), &policy, &[]);
/// assert_eq!(decision, PolicyDecision::Ask { rule: "effect:write".into() });
/// ```
pub fn explain(
    tool: &OfferedTool,
    arguments: &CallArguments,
    policy: &Policy,
    remembered: &[RememberedDecision],
) -> PolicyDecision {
    let case = PolicyInput { tool, fingerprint: &tool.fingerprint, arguments };
    evaluate(&case, policy, remembered.iter(), &NamingTexts::default())
}

/// Decides about one call.
pub(crate) fn evaluate<'m>(
    case: &PolicyInput<'_>,
    policy: &Policy,
    remembered: impl DoubleEndedIterator<Item = &'m RememberedDecision> + Clone,
    texts: &NamingTexts<'_>,
) -> PolicyDecision {
    let preset_rules = policy.permissions.map(PermissionPreset::rules).unwrap_or_default();
    let fitting = fitting_rule(case, policy, &preset_rules);
    if let Some((rule_name, rule)) = &fitting
        && rule.decide == RuleAction::Deny
    {
        let rule_name = rule_name.clone();
        let reason = rule.reason.clone().unwrap_or_else(|| format!("denied by {rule_name}"));
        return PolicyDecision::Deny { rule: rule_name, reason };
    }
    let remembered_with = |decision| {
        let fits = move |remembered_decision: &&RememberedDecision| {
            remembered_decision.decision == decision && remembered_decision.applies_to(case)
        };
        remembered.clone().rev().find(fits)
    };
    if let Some(remembered_decision) = remembered_with(ApprovalDecision::Deny) {
        let reason =
            remembered_decision.reason.clone().unwrap_or_else(|| "a person denied this before".into());
        return PolicyDecision::Deny { rule: remembered_decision.rule_name(), reason };
    }
    let ask = |rule: &str| PolicyDecision::Ask { rule: rule.into() };
    if policy.confirm == ConfirmMode::Manual {
        return ask(rule_name::MANUAL);
    }
    if case.tool.permission == PermissionRule::Ask {
        return ask(rule_name::TOOL);
    }
    let goes_unnamed = || texts.unnamed_address(&case.tool.addresses, case.arguments).is_some();
    let decision = match fitting {
        // The definition that was approved is no longer offered: this one is new.
        _ if case.fingerprint != case.tool.fingerprint => ask(rule_name::REDEFINED),
        _ if policy.confirm == ConfirmMode::Everything => ask(rule_name::REQUIRE_CONFIRMATION),
        // Who allows an effect or a source has not thought of where a call of it may go.
        Some((_, PolicyRule { decide: RuleAction::Allow, tool: None, arguments, .. }))
            if arguments.is_empty() && goes_unnamed() =>
        {
            ask(rule_name::UNNAMED_HOST)
        }
        Some((rule, PolicyRule { decide: RuleAction::Allow, .. })) => PolicyDecision::Allow { rule },
        Some((rule, _)) => PolicyDecision::Ask { rule },
        None => match by_effect(case.tool.effect) {
            PolicyDecision::Allow { .. } if goes_unnamed() => ask(rule_name::UNNAMED_HOST),
            decision => decision,
        },
    };
    match (decision, remembered_with(ApprovalDecision::Approve)) {
        (PolicyDecision::Ask { .. }, Some(remembered_decision)) => {
            PolicyDecision::Allow { rule: remembered_decision.rule_name() }
        }
        (decision, _) => decision,
    }
}

/// The first rule that fits, with its name: of the agent's own, then of its preset.
fn fitting_rule<'r>(
    case: &PolicyInput<'_>,
    policy: &'r Policy,
    preset_rules: &'r [PolicyRule],
) -> Option<(String, &'r PolicyRule)> {
    let fits = |rule: &&PolicyRule| rule.matches_call(case.tool, &case.arguments.value);
    let own = (1..).zip(&policy.rules).find(|(_, rule)| fits(rule));
    match (own, policy.permissions) {
        (Some((number, rule)), _) => Some((rule.name(number), rule)),
        (None, Some(preset)) => preset_rules.iter().find(fits).map(|rule| (preset.rule_name(), rule)),
        (None, None) => None,
    }
}

fn by_effect(effect: Effect) -> PolicyDecision {
    let rule = format!("effect:{}", effect.name());
    if effect.may_start_early() { PolicyDecision::Allow { rule } } else { PolicyDecision::Ask { rule } }
}

/// True if the answer to a question of this rule may answer later ones.
pub(crate) fn may_be_remembered(rule: &str) -> bool {
    !matches!(rule, rule_name::MANUAL | rule_name::TOOL | rule_name::LOOP_GUARD)
}
