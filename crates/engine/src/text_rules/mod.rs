//! Text rules of an agent: the text shown to people, or sent to the model, differs from what was written.
//!
//! The log holds both. A `shown` rule changes a text before it becomes an event, so every reader of the log
//! shows the same, now and after the rule was changed; the model's own words go into a separate event
//! `model_text`, whose text no viewer gets. A `model` rule changes nothing in the log: it is applied to each
//! request when it is built.

mod apply;
mod filter;
mod rule;

pub use apply::{TextRuleHit, apply_text_rules};
pub(crate) use apply::{apply_to_request, shown_outcome};
pub(crate) use filter::TextFilter;
pub use filter::{
    TEXT_RULE_ADDED_BYTES_MAX, TEXT_RULE_HELD_BYTES_MAX, TEXT_RULE_READ_AGAIN_BYTES_MAX, TEXT_WITHHELD,
};
pub use rule::{
    TEXT_RULE_COMPILED_BYTES_MAX, TEXT_RULE_PATTERN_CHARS_MAX, TEXT_RULE_REPLACE_CHARS_MAX, TEXT_RULES_MAX,
    TextRule, TextRuleError, TextRuleRole, TextRuleSettings, TextRuleTarget,
};

/// The rules that are about texts of this role, for people or for the model, in their order.
pub(crate) fn select(
    rules: &[TextRule],
    target: TextRuleTarget,
    role: TextRuleRole,
) -> impl Iterator<Item = &TextRule> {
    rules.iter().filter(move |rule| rule.is_about(target, role))
}
