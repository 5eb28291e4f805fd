//! May a call run? Rules, what people have said before, and the effect of the tool, in this order. R: A1, A2
//!
//! 1. The rules of the agent, the first that fits. One that denies has the last word.
//! 2. A remembered denial that fits.
//! 3. `manual` asks about every call, and so does a tool that asks by itself. Nothing remembered answers for them.
//! 4. `require_confirmation` asks, whatever a rule allows. Else a rule that allows or asks decides.
//! 5. Without a rule the effect decides: pure, read and cosmetic tools run, all others ask.
//! 6. What would be asked by 4 or 5 runs if a remembered approval fits.
//!
//! So a tool cannot make its own rule milder: all that it says about itself is what it may do and that it wants to be
//! asked about. Every ruling carries the name of the rule that made it.

mod memory;
mod rule;
mod test;
mod unmatched;

pub use memory::{Constraints, Remember, Remembered, Scope};
pub use rule::{Decide, Patterns, Rule};
pub use test::ArgumentTest;
pub use unmatched::{RulePart, UnmatchedRule, unmatched_rules};

use crate::event::Decision;
use crate::setup::{ApprovalRule, Effect, OfferedTool, Permission};
use serde::{Deserialize, Serialize};
use throughline_wire::Arguments;

/// What an agent may do unasked, and what it may not do at all. R: A1
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// The first that fits decides.
    pub rules: Vec<Rule>,
    /// Whether a person is asked more often than the rules say.
    pub confirm: Confirm,
}

/// Whether a person is asked more often than the rules say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confirm {
    /// No.
    #[default]
    ByRule,
    /// Everything asks (`require_confirmation`); what is remembered counts.
    Everything,
    /// Every call waits for a person, without expiry (`tool_call.mode = "manual"`). R: T3
    Manual,
}

/// What becomes of a call, always with the rule that decided. R: A1
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// It runs.
    Allow {
        /// The rule that decided.
        rule: String,
    },
    /// A person is asked.
    Ask {
        /// The rule that decided.
        rule: String,
    },
    /// It does not run.
    Deny {
        /// The rule that decided.
        rule: String,
        /// Told to the model.
        reason: String,
    },
}

/// Names of the rules that are not an agent's own, as events carry them.
pub(crate) mod name {
    pub(crate) const MANUAL: &str = "manual";
    pub(crate) const TOOL: &str = "tool";
    pub(crate) const REQUIRE_CONFIRMATION: &str = "require_confirmation";
    pub(crate) const LOOP_GUARD: &str = "loop_guard";
    pub(crate) const REDEFINED: &str = "redefined";
    pub(crate) const OWN_TOOL: &str = "own_tool";
}

/// What would become of a call: for testers and editors of rules. The loop guard and who answers are not asked.
///
/// ```
/// use throughline_engine::{ArgumentTest, Decide, Effect, OfferedTool, Policy, Rule, Ruling, explain};
/// use throughline_wire::Arguments;
///
/// let tool = OfferedTool::new("files.delete", Effect::Write);
/// let rule = Rule::new(Decide::Allow).tool("files").argument("path", ArgumentTest::Under("/tmp/play".into()));
/// let policy = Policy { rules: vec![rule], ..Policy::default() };
/// let at = |path: &str| Arguments::from_value(serde_json::json!({ "path": path }));
///
/// let ruling = explain(&tool, &at("/tmp/play/old.txt"), &policy, &[]);
/// assert_eq!(ruling, Ruling::Allow { rule: "rule:1 allow files path under /tmp/play".into() });
/// let ruling = explain(&tool, &at("/tmp/play/../../etc/passwd"), &policy, &[]);
/// assert_eq!(ruling, Ruling::Ask { rule: "effect:write".into() });
/// ```
pub fn explain(
    tool: &OfferedTool,
    arguments: &Arguments,
    policy: &Policy,
    remembered: &[Remembered],
) -> Ruling {
    ruling(&Case { tool, fingerprint: &tool.fingerprint, arguments }, policy, remembered.iter())
}

/// A call that is to be decided about.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    pub tool: &'a OfferedTool,
    /// Of the definition that would be run; another one than was offered if the tool was redefined since.
    pub fingerprint: &'a str,
    pub arguments: &'a Arguments,
}

/// Decides about one call.
pub(crate) fn ruling<'m>(
    case: &Case<'_>,
    policy: &Policy,
    remembered: impl DoubleEndedIterator<Item = &'m Remembered> + Clone,
) -> Ruling {
    let fitting = (1..).zip(&policy.rules).find(|(_, rule)| rule.fits(case.tool, &case.arguments.value));
    if let Some((number, rule)) = fitting
        && rule.decide == Decide::Deny
    {
        let rule_name = rule.name(number);
        let reason = rule.reason.clone().unwrap_or_else(|| format!("not allowed here ({rule_name})"));
        return Ruling::Deny { rule: rule_name, reason };
    }
    let said = |decision| {
        let fits = move |held: &&Remembered| held.decision == decision && held.fits(case);
        remembered.clone().rev().find(fits)
    };
    if let Some(held) = said(Decision::Deny) {
        let reason = held.reason.clone().unwrap_or_else(|| "a person has said no to this before".into());
        return Ruling::Deny { rule: held.rule(), reason };
    }
    let ask = |rule: &str| Ruling::Ask { rule: rule.into() };
    if policy.confirm == Confirm::Manual {
        return ask(name::MANUAL);
    }
    if case.tool.permission == Permission::Ask {
        return ask(name::TOOL);
    }
    let ruling = match fitting {
        // What was looked at and decided is no longer offered: the definition is new.
        _ if case.fingerprint != case.tool.fingerprint => ask(name::REDEFINED),
        _ if policy.confirm == Confirm::Everything => ask(name::REQUIRE_CONFIRMATION),
        Some((number, rule)) if rule.decide == Decide::Allow => Ruling::Allow { rule: rule.name(number) },
        Some((number, rule)) => Ruling::Ask { rule: rule.name(number) },
        None => by_effect(case.tool.effect),
    };
    match (ruling, said(Decision::Approve)) {
        (Ruling::Ask { .. }, Some(held)) => Ruling::Allow { rule: held.rule() },
        (ruling, _) => ruling,
    }
}

fn by_effect(effect: Effect) -> Ruling {
    let rule = format!("effect:{}", effect.name());
    match effect.may_start_early() {
        true => Ruling::Allow { rule },
        false => Ruling::Ask { rule },
    }
}

/// Whether what a person says to a question of this rule may answer later ones.
pub(crate) fn may_be_remembered(rule: &str) -> bool {
    !matches!(rule, name::MANUAL | name::TOOL | name::LOOP_GUARD)
}

impl Ruling {
    /// The rule that decided.
    pub fn rule(&self) -> &str {
        match self {
            Ruling::Allow { rule } | Ruling::Ask { rule } | Ruling::Deny { rule, .. } => rule,
        }
    }

    /// What becomes of a question where nobody has to be asked.
    pub(crate) fn answered_by(self, approval: &ApprovalRule) -> Self {
        match (self, approval) {
            (Ruling::Ask { rule }, ApprovalRule::ApproveAll) => Ruling::Allow { rule },
            (Ruling::Ask { rule }, ApprovalRule::DenyAll { reason }) => {
                Ruling::Deny { rule, reason: reason.clone() }
            }
            (ruling, _) => ruling,
        }
    }
}
