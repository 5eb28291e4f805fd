//! Permission of a call to run: rules, remembered decisions of people, and the effect of the tool, in this
//! order.
//!
//! 1. The rules of the agent, then those of its preset, the first that fits. One that denies has the last word.
//! 2. A remembered denial that fits.
//! 3. `manual` asks about every call, and so does a tool that demands an approval. Remembered decisions do
//!    not apply to these.
//! 4. `require_confirmation` asks, even if a rule allows. Else a rule that allows or asks decides.
//! 5. Without a rule the effect decides: pure, read and cosmetic tools run, all others ask. One that would
//!    run asks nevertheless if it goes to a host that has not been named, unless a rule names the tool.
//! 6. A call that would ask by 4 or 5 runs if a remembered approval fits.
//!
//! So a tool cannot weaken its own rule: it declares only its effect and that it demands an approval. Every
//! decision carries the name of the rule that made it.

pub(crate) mod address;
mod decision;
mod evaluate;
pub(crate) mod loop_guard;
mod matcher;
mod preset;
mod remembered;
mod rule;
mod unmatched;

pub use decision::{ApprovalDecision, ApprovalRule, PolicyDecision};
pub(crate) use decision::{PolicyInput, rule_name};
pub use evaluate::{ConfirmMode, Policy, explain};
pub(crate) use evaluate::{evaluate, may_be_remembered};
pub use loop_guard::LoopGuard;
pub use matcher::ArgumentTest;
pub use preset::PermissionPreset;
pub use remembered::{ApprovalScope, ArgumentConstraints, RememberRequest, RememberedDecision};
pub use rule::{PatternList, PolicyRule, RuleAction};
pub use unmatched::{RulePart, UnmatchedRule, unmatched_rules};
