//! Scenario files: which script answers which request.
//!
//! ```toml
//! [[rules]]
//! when = { contains = "weather", step = 1 }
//! then = [
//!   { say = "Let me look. " },
//!   { parallel = [
//!     { name = "demo_weather", arguments = { city = "Paris" } },
//!     { name = "demo_weather", arguments = { city = "Oslo" } },
//!   ] },
//! ]
//!
//! [[rules]]
//! when = { result_of = "demo_weather" }
//! then = { pace = { tokens_per_second = 70 }, moves = [{ say = "Both are sunny." }] }
//!
//! [[rules]]
//! when = { contains = "busy" }
//! times = 1                       # the second try finds the next rule
//! then = { http = { status = 429, headers = { retry-after = "1" } } }
//!
//! [[rules]]
//! when = { contains = "cut" }
//! then = [{ say = "This will not" }, "cut"]
//! ```

use crate::model::FakeModel;
use crate::parsed_request::{ParsedMessage, ParsedRequest, ParsedToolChoice};
use crate::quirk::PlantedQuirk;
use crate::script::{CallStyle, ErrorMove, HttpAnswer, ModelScript};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Rules in order; the first that applies answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioRules {
    /// Names for the list of models.
    #[serde(default)]
    pub models: Vec<String>,
    /// The key that requests must show; absent = any, or none.
    #[serde(default)]
    pub key: Option<String>,
    /// Form of the calls in all replies; a reply's own setting takes precedence.
    #[serde(default)]
    pub calls: CallStyle,
    /// Quirks of the upstream.
    #[serde(default)]
    pub quirks: Vec<PlantedQuirk>,
    /// The rules.
    #[serde(default)]
    pub rules: Vec<ScenarioRule>,
    /// Number of answers by each rule.
    #[serde(skip)]
    answer_counts: AnswerCounts,
}

/// Counters of the rules of one server: not part of the rules themselves, and reset in a copy.
#[derive(Debug, Default)]
struct AnswerCounts(Mutex<Vec<u32>>);

impl Clone for AnswerCounts {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for AnswerCounts {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl AnswerCounts {
    /// Counts an answer of this rule, if it may give one more.
    fn try_take(&self, rule: usize, times: Option<u32>) -> bool {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() <= rule {
            counts.resize(rule + 1, 0);
        }
        let may = times.is_none_or(|times| counts[rule] < times);
        counts[rule] = counts[rule].saturating_add(u32::from(may));
        may
    }
}

/// One rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioRule {
    /// Conditions, all of which must hold; none = always.
    #[serde(default)]
    pub when: RuleCondition,
    /// Number of requests that it answers before it no longer applies; absent = all.
    #[serde(default)]
    pub times: Option<u32>,
    /// Script of the answer.
    pub then: ModelScript,
}

/// Conditions on a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RuleCondition {
    /// The n-th request on this upstream, from 1.
    pub request: Option<u64>,
    /// The n-th model call after the last user message, from 1.
    pub step: Option<u64>,
    /// The last user message contains this, in any case.
    pub contains: Option<String>,
    /// A result has come since the last user message (or: has not).
    pub has_result: Option<bool>,
    /// The newest results include one of this tool.
    pub result_of: Option<String>,
    /// One of the newest results contains this, in any case.
    pub result_contains: Option<String>,
    /// Name of the model; `*` stands for anything.
    pub model: Option<String>,
    /// Tools may be called (or: may not).
    pub may_call: Option<bool>,
    /// A tool must be called (or: need not).
    pub must_call: Option<bool>,
    /// The request has a picture (or: has none).
    pub has_image: Option<bool>,
}

impl RuleCondition {
    /// True if all conditions hold.
    pub fn matches(&self, seen: &ParsedRequest) -> bool {
        let newest = match seen.since_user().last() {
            Some(ParsedMessage::Results(results)) => results.as_slice(),
            _ => &[],
        };
        let has = |text: &str, part: &str| text.to_lowercase().contains(&part.to_lowercase());
        self.request.is_none_or(|number| number == seen.number)
            && self.step.is_none_or(|step| step == seen.step())
            && self.contains.as_ref().is_none_or(|part| has(seen.user_text(), part))
            && self.has_result.is_none_or(|wanted| wanted != seen.answered_calls().is_empty())
            && self.result_of.as_ref().is_none_or(|name| newest.iter().any(|result| result.name == *name))
            && self.result_contains.as_ref().is_none_or(|part| newest.iter().any(|r| has(&r.text, part)))
            && self.model.as_ref().is_none_or(|pattern| wildcard_match(pattern, &seen.model))
            && self.may_call.is_none_or(|wanted| wanted == seen.may_call())
            && self.must_call.is_none_or(|wanted| wanted == must_call(seen))
            && self.has_image.is_none_or(|wanted| wanted == seen.has_image())
    }
}

fn must_call(seen: &ParsedRequest) -> bool {
    matches!(seen.tool_choice, ParsedToolChoice::Required | ParsedToolChoice::Named(_))
}

/// True if a text matches a pattern in which `*` stands for any text.
fn wildcard_match(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(head) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return left.ends_with(part);
        }
        match left.find(part) {
            Some(at) => left = &left[at + part.len()..],
            None => return false,
        }
    }
    true
}

impl ScenarioRules {
    /// Rules made in code.
    pub fn new(rules: Vec<ScenarioRule>) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Rules for every failure, selected by a word in the user's message: `two tools`, `denied`, `failing`,
    /// `unknown`, `malformed`, `cut`, `reset`, `stall`, `busy`, ... as in `scenarios/trouble.toml` of this
    /// crate. It calls the demo's tools.
    pub fn trouble() -> Self {
        // The file is part of the program; a test reads it.
        Self::parse(include_str!("../scenarios/trouble.toml")).unwrap_or_default()
    }

    /// A model that does everything `throughline probe` asks for: calls, forced and in parallel, JSON of a schema, a
    /// look at a picture, as in `scenarios/capable.toml` of this crate. Quirks are planted in it by [`Self::quirks`].
    pub fn capable() -> Self {
        // The file is part of the program; a test reads it.
        Self::parse(include_str!("../scenarios/capable.toml")).unwrap_or_default()
    }

    /// Reads TOML, or JSON if it begins with `{`.
    ///
    /// # Errors
    /// The error and its position, for a person.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|error| error.to_string())
        } else {
            toml::from_str(text).map_err(|error| error.to_string())
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or is not a scenario; the message names the file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, String> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
    }
}

impl FakeModel for ScenarioRules {
    fn reply(&self, seen: &ParsedRequest) -> ModelScript {
        let mut rules = self.rules.iter().enumerate();
        match rules.find(|(i, rule)| rule.when.matches(seen) && self.answer_counts.try_take(*i, rule.times)) {
            Some((_, rule)) => {
                let mut script = rule.then.clone();
                if script.calls == CallStyle::Auto {
                    script.calls = self.calls;
                }
                script
            }
            None => {
                let message = format!(
                    "No rule of this mock's script applies to request {} (step {}, user text {:?}).",
                    seen.number,
                    seen.step(),
                    seen.user_text()
                );
                let body =
                    crate::dialect::error_body(seen.dialect, seen.delivery, 400, &ErrorMove::new(message));
                let http = HttpAnswer { body: Some(body), ..HttpAnswer::status(400) };
                ModelScript { http: Some(http), ..ModelScript::default() }
            }
        }
    }

    fn names(&self) -> Vec<String> {
        if self.models.is_empty() { vec!["mock".into()] } else { self.models.clone() }
    }

    fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    fn quirks(&self) -> &[PlantedQuirk] {
        &self.quirks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_matches_any_text() {
        for (pattern, text, expected) in [
            ("gpt-*", "gpt-5", true),
            ("*", "", true),
            ("*-mini", "gpt-5-mini", true),
            ("g*5*i", "gpt-5-mini", true),
            ("gpt", "gpt-5", false),
            ("*nano", "gpt-5-mini", false),
            ("a*b*c", "acb", false),
        ] {
            assert_eq!(wildcard_match(pattern, text), expected, "{pattern} {text}");
        }
    }
}
