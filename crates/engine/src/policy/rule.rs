//! One rule: the calls that it matches, and its action.

use super::matcher::{ArgumentTest, MatchResult, glob};
use crate::tool::{Effect, OfferedTool};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Decision of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleAction {
    /// Run without approval.
    Allow,
    /// Ask a person.
    Ask,
    /// Do not run it.
    Deny,
}

/// A rule: all of its conditions must match. In a configuration:
///
/// ```
/// # let text = r#"
/// [[policy]]
/// decide = "deny"
/// tool = "commands.*"                       # a name, a group (`commands`) or a glob; or a list of them
/// arguments = { "/args/0" = { one_of = ["rm", "dd"] } }
/// reason = "Nothing is deleted here."       # the model sees it
///
/// [[policy]]
/// decide = "allow"
/// source = ["builtin", "mcp:*"]
/// effect = ["write", "idempotent"]
/// arguments = { path = { under = "/home/me/notes" } }
/// # "#;
/// # #[derive(serde::Deserialize)] struct File { policy: Vec<throughline_engine::PolicyRule> }
/// # let file: File = toml::from_str(text).unwrap();
/// # assert_eq!(file.policy[0].arguments.len(), 1);
/// # assert_eq!(file.policy[1].effect.as_ref().unwrap().len(), 2);
/// ```
///
/// A rule must be sure before it allows: an argument that it cannot read for certain (a relative path against
/// an absolute folder, a strange URL, an object where a text is tested) does not fit a rule that allows, and
/// does fit one that asks or denies. A list fits a rule that allows if all of its items do, and another one
/// if any does. An absent argument never fits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyRule {
    /// Decision about the calls that it fits.
    pub decide: RuleAction,
    /// Names of tools: `group.method`, `group`, or with `*` and `?`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<PatternList>,
    /// Sources of tools: `builtin`, `mcp:files`, or with `*` and `?`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<PatternList>,
    /// Effects of tools that the rule matches.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "effects")]
    pub effect: Option<Vec<Effect>>,
    /// Arguments by name, or by JSON pointer (`/filter/path`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, ArgumentTest>,
    /// Reason of a denial; the model sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One pattern or several; never none, since that would fit nothing and look like everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "OneOrMany<String>", into = "OneOrMany<String>")]
pub struct PatternList(Vec<String>);

#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> From<OneOrMany<T>> for Vec<T> {
    fn from(list: OneOrMany<T>) -> Self {
        match list {
            OneOrMany::One(one) => vec![one],
            OneOrMany::Many(many) => many,
        }
    }
}

impl TryFrom<OneOrMany<String>> for PatternList {
    type Error = String;

    fn try_from(list: OneOrMany<String>) -> Result<Self, String> {
        let patterns = Vec::from(list);
        if patterns.is_empty() || patterns.iter().any(String::is_empty) {
            return Err("an empty pattern matches nothing; omit the field to match everything".into());
        }
        Ok(Self(patterns))
    }
}

impl From<PatternList> for OneOrMany<String> {
    fn from(PatternList(mut patterns): PatternList) -> Self {
        match (patterns.pop(), patterns.is_empty()) {
            (Some(only), true) => OneOrMany::One(only),
            (last, _) => {
                patterns.extend(last);
                OneOrMany::Many(patterns)
            }
        }
    }
}

fn effects<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Effect>>, D::Error> {
    use serde::de::Error;
    // Names are compared literally: deserializing `Effect` would turn every unknown word into `external`.
    let words = Vec::from(OneOrMany::<String>::deserialize(deserializer)?);
    if words.is_empty() {
        return Err(D::Error::custom("an empty list matches nothing; omit it to match every effect"));
    }
    let effect = |word: String| {
        Effect::ALL.into_iter().find(|effect| effect.name() == word).ok_or_else(|| {
            D::Error::custom(format!("no such effect: `{word}` (there are {})", all_effects()))
        })
    };
    words.into_iter().map(effect).collect::<Result<_, _>>().map(Some)
}

fn all_effects() -> String {
    Effect::ALL.map(Effect::name).join(", ")
}

impl PatternList {
    fn any_matches(&self, fits: impl Fn(&str) -> bool) -> bool {
        self.iter().any(fits)
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl PolicyRule {
    /// A rule about everything.
    pub fn new(decide: RuleAction) -> Self {
        Self { decide, tool: None, source: None, effect: None, arguments: BTreeMap::new(), reason: None }
    }

    /// Restricts the rule to this tool, group or glob; each further call adds one.
    #[must_use]
    pub fn tool(mut self, pattern: impl Into<String>) -> Self {
        self.tool.get_or_insert(PatternList(Vec::new())).0.push(pattern.into());
        self
    }

    /// Restricts the rule to tools of this source; each further call adds one.
    #[must_use]
    pub fn source(mut self, pattern: impl Into<String>) -> Self {
        self.source.get_or_insert(PatternList(Vec::new())).0.push(pattern.into());
        self
    }

    /// Restricts the rule to tools with this effect; each further call adds one.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect.get_or_insert_default().push(effect);
        self
    }

    /// Restricts the rule to calls whose argument, by name or JSON pointer, passes the test.
    #[must_use]
    pub fn argument(mut self, which: impl Into<String>, test: ArgumentTest) -> Self {
        self.arguments.insert(which.into(), test);
        self
    }

    /// Reason of a denial; the model sees it.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// True if it has no condition at all, and so decides about every call. A configuration must write `tool = "*"` instead.
    pub fn is_unconditional(&self) -> bool {
        self.tool.is_none() && self.source.is_none() && self.effect.is_none() && self.arguments.is_empty()
    }

    /// True if it may be about calls of this tool.
    pub(super) fn matches_tool(&self, tool: &OfferedTool) -> bool {
        let name = tool.name.as_str();
        self.tool.as_ref().is_none_or(|tools| tools.any_matches(|pattern| pattern_matches(pattern, name)))
            && self
                .source
                .as_ref()
                .is_none_or(|sources| sources.any_matches(|pattern| glob(pattern, &tool.source)))
            && self.effect.as_ref().is_none_or(|effects| effects.contains(&tool.effect))
    }

    /// True if it is about this call.
    pub(super) fn matches_call(&self, tool: &OfferedTool, arguments: &Value) -> bool {
        self.matches_tool(tool)
            && self.arguments.iter().all(|(which, test)| {
                match (lookup_argument(arguments, which), self.decide) {
                    (None, _) => false,
                    (Some(value), RuleAction::Allow) => test.matches_all(value) == MatchResult::Yes,
                    (Some(value), RuleAction::Ask | RuleAction::Deny) => {
                        test.matches_any(value) != MatchResult::No
                    }
                }
            })
    }

    /// Name of the rule in events: number, action and subject.
    pub(super) fn name(&self, number: usize) -> String {
        let mut name = format!(
            "rule:{number} {}",
            match self.decide {
                RuleAction::Allow => "allow",
                RuleAction::Ask => "ask",
                RuleAction::Deny => "deny",
            }
        );
        for PatternList(patterns) in [&self.tool, &self.source].into_iter().flatten() {
            name.push_str(&format!(" {}", patterns.join(",")));
        }
        if let Some(effects) = &self.effect {
            let effects: Vec<_> = effects.iter().map(|effect| effect.name()).collect();
            name.push_str(&format!(" {}", effects.join(",")));
        }
        for (which, test) in &self.arguments {
            name.push_str(&format!(" {which} {test}"));
        }
        name
    }
}

/// Does a pattern name this tool? `files` is the group `files.…` and a tool called just that.
pub(super) fn pattern_matches(pattern: &str, name: &str) -> bool {
    glob(pattern, name) || name.strip_prefix(pattern).is_some_and(|rest| rest.starts_with('.'))
}

/// An argument by name, or by JSON pointer if it begins with `/`.
pub(super) fn lookup_argument<'v>(arguments: &'v Value, which: &str) -> Option<&'v Value> {
    if which.starts_with('/') { arguments.pointer(which) } else { arguments.get(which) }
}
