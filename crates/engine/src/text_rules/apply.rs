//! Text rules applied to whole texts: a request, the result of a tool, a preview.

use super::filter::TextFilter;
use super::rule::{TextRule, TextRuleRole, TextRuleTarget};
use super::select;
use serde_json::Value;
use std::borrow::Cow;
use throughline_wire::{CallOutcome, ClosedStep, Message, UserPart};

/// Number of matches of one rule in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextRuleHit {
    /// Position of the rule among those of the agent, from 0.
    pub rule: usize,
    /// Number of matches.
    pub matches: u32,
}

/// The text that the rules make of a text, with the matches of each rule that is about it. The rest may be withheld
/// ([`TEXT_WITHHELD`](super::TEXT_WITHHELD)).
///
/// ```
/// use throughline_engine::{TextRule, TextRuleRole, TextRuleTarget, apply_text_rules};
///
/// let rule = r#"{"pattern": "\\bkm\\b", "replace": "kilometers", "in": "shown"}"#;
/// let rules: Vec<TextRule> = vec![serde_json::from_str(rule).unwrap()];
/// let (text, hits) = apply_text_rules(&rules, TextRuleTarget::Shown, TextRuleRole::Assistant, "5 km");
/// assert_eq!((text.as_str(), hits[0].matches), ("5 kilometers", 1));
/// ```
pub fn apply_text_rules(
    rules: &[TextRule],
    target: TextRuleTarget,
    role: TextRuleRole,
    text: &str,
) -> (String, Vec<TextRuleHit>) {
    let mut filter = TextFilter::new(select(rules, target, role));
    let mut applied = filter.push(text);
    applied.push_str(&filter.finish());
    let places = (0..).zip(rules).filter(|(_, rule)| rule.is_about(target, role)).map(|(at, _)| at);
    let hits = places.zip(filter.match_counts());
    (applied, hits.map(|(rule, matches)| TextRuleHit { rule, matches }).collect())
}

/// Applies rules to a text; borrowed if no rule changes anything. Most texts have no match, which is detected
/// fast.
fn apply<'t>(rules: &[&TextRule], text: &'t str) -> Cow<'t, str> {
    match rules.iter().position(|rule| rule.compiled.regex.is_match(text)) {
        None => Cow::Borrowed(text),
        Some(first) => {
            let mut filter = TextFilter::new(rules[first..].iter().copied());
            let mut applied = filter.push(text);
            applied.push_str(&filter.finish());
            Cow::Owned(applied)
        }
    }
}

/// Changes a text in place; returns true if it differs now.
fn change(rules: &[&TextRule], text: &mut String) -> bool {
    let changed = match apply(rules, text) {
        Cow::Owned(applied) if applied != *text => applied,
        _ => return false,
    };
    *text = changed;
    true
}

/// Applies the rules with target `model` to the messages of a request.
pub(crate) fn apply_to_request(rules: &[TextRule], messages: &mut [Message]) {
    let of = |role| select(rules, TextRuleTarget::Model, role).collect::<Vec<_>>();
    let (user, assistant, tool) =
        (of(TextRuleRole::User), of(TextRuleRole::Assistant), of(TextRuleRole::Tool));
    for message in messages {
        match message {
            Message::User(parts) if !user.is_empty() => {
                for part in parts {
                    if let UserPart::Text { text } = part {
                        change(&user, text);
                    }
                }
            }
            Message::User(_) => {}
            Message::Step(step) => {
                if !assistant.is_empty() {
                    change_step(&assistant, step);
                }
                for (_, outcome) in &mut step.calls {
                    change_outcome(&tool, outcome);
                }
            }
        }
    }
}

fn change_step(rules: &[&TextRule], step: &mut ClosedStep) {
    change(rules, &mut step.text);
    // The provider state contains the same text.
    if let Some(state) = &mut step.provider_state {
        state.for_each_text(&mut |text| {
            change(rules, text);
        });
    }
}

/// Changes the text of a tool's outcome; returns true if it differs now.
fn change_outcome(rules: &[&TextRule], outcome: &mut CallOutcome) -> bool {
    let mut changed = false;
    if rules.is_empty() {
        return changed;
    }
    if let CallOutcome::Failed { message, .. } | CallOutcome::Unknown { message: Some(message), .. } = outcome
    {
        changed |= change(rules, message);
    }
    if let Some(output) = outcome.output_mut() {
        changed |= change(rules, &mut output.text);
    }
    changed
}

/// The result of a tool as people are shown it, if that is not the result itself. The structured form is shown only if no rule
/// would change anything in it.
pub(crate) fn shown_outcome(rules: &[TextRule], outcome: &CallOutcome) -> Option<CallOutcome> {
    let rules: Vec<_> = select(rules, TextRuleTarget::Shown, TextRuleRole::Tool).collect();
    let mut shown = outcome.clone();
    let mut changed = change_outcome(&rules, &mut shown);
    if let Some(output) = shown.output_mut() {
        let touches_value = output.value.as_ref().is_some_and(|value| has_match(&rules, value));
        if changed || touches_value {
            output.value = None;
            changed = true;
        }
    }
    changed.then_some(shown)
}

fn has_match(rules: &[&TextRule], value: &Value) -> bool {
    let fits = |text: &str| rules.iter().any(|rule| rule.compiled.regex.is_match(text));
    match value {
        Value::String(text) => fits(text),
        Value::Array(items) => items.iter().any(|item| has_match(rules, item)),
        Value::Object(members) => members.iter().any(|(key, item)| fits(key) || has_match(rules, item)),
        Value::Number(number) => fits(&number.to_string()),
        Value::Null | Value::Bool(_) => false,
    }
}
