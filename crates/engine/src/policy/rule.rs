//! One rule: which calls it is about, and what it says.

use super::test::{ArgumentTest, Fit, glob};
use crate::setup::{Effect, OfferedTool};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decide {
    /// Run it unasked.
    Allow,
    /// Ask a person.
    Ask,
    /// Do not run it.
    Deny,
}

/// A rule: everything that is given has to fit. As it stands in a configuration:
///
/// ```
/// # let text = r#"
/// [[policy]]
/// decide = "deny"
/// tool = "commands.*"                       # a name, a group (`commands`) or a glob; or a list of them
/// arguments = { "/args/0" = { one_of = ["rm", "dd"] } }
/// reason = "Nothing is deleted here."       # told to the model
///
/// [[policy]]
/// decide = "allow"
/// source = ["builtin", "mcp:*"]
/// effect = ["write", "idempotent"]
/// arguments = { path = { under = "/home/me/notes" } }
/// # "#;
/// # #[derive(serde::Deserialize)] struct File { policy: Vec<throughline_engine::Rule> }
/// # let file: File = toml::from_str(text).unwrap();
/// # assert_eq!(file.policy[0].arguments.len(), 1);
/// # assert_eq!(file.policy[1].effect.as_ref().unwrap().len(), 2);
/// ```
///
/// A rule must be sure before it allows: an argument that it cannot read for certain (a relative path against an
/// absolute folder, a strange URL, an object where a text is tested) does not fit a rule that allows, and does fit one
/// that asks or denies. A list fits a rule that allows if all of its items do, and another one if any does. An argument
/// that is not there never fits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What it says.
    pub decide: Decide,
    /// Names of tools: `group.method`, `group`, or with `*` and `?`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Patterns>,
    /// Where they come from: `builtin`, `mcp:files`, or with `*` and `?`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Patterns>,
    /// What they may do.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "effects")]
    pub effect: Option<Vec<Effect>>,
    /// Arguments by name, or by JSON pointer (`/filter/path`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, ArgumentTest>,
    /// Why it denies; told to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One pattern or several; never none, since that would fit nothing and look like everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "OneOrMany<String>", into = "OneOrMany<String>")]
pub struct Patterns(Vec<String>);

#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> From<OneOrMany<T>> for Vec<T> {
    fn from(given: OneOrMany<T>) -> Self {
        match given {
            OneOrMany::One(one) => vec![one],
            OneOrMany::Many(many) => many,
        }
    }
}

impl TryFrom<OneOrMany<String>> for Patterns {
    type Error = String;

    fn try_from(given: OneOrMany<String>) -> Result<Self, String> {
        let patterns = Vec::from(given);
        match patterns.is_empty() || patterns.iter().any(String::is_empty) {
            true => Err("an empty pattern fits nothing; leave the field out to mean everything".into()),
            false => Ok(Self(patterns)),
        }
    }
}

impl From<Patterns> for OneOrMany<String> {
    fn from(Patterns(mut patterns): Patterns) -> Self {
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
    // Names are compared as they stand: `Effect` itself takes every unknown word for `external`.
    let words = Vec::from(OneOrMany::<String>::deserialize(deserializer)?);
    if words.is_empty() {
        return Err(D::Error::custom("an empty list fits nothing; leave it out to mean every effect"));
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

impl Patterns {
    fn fits(&self, fits: impl Fn(&str) -> bool) -> bool {
        self.iter().any(fits)
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl Rule {
    /// A rule about everything.
    pub fn new(decide: Decide) -> Self {
        Self { decide, tool: None, source: None, effect: None, arguments: BTreeMap::new(), reason: None }
    }

    /// Only about this tool, group or glob; once more for another one.
    #[must_use]
    pub fn tool(mut self, pattern: impl Into<String>) -> Self {
        self.tool.get_or_insert(Patterns(Vec::new())).0.push(pattern.into());
        self
    }

    /// Only about tools of this source; once more for another one.
    #[must_use]
    pub fn source(mut self, pattern: impl Into<String>) -> Self {
        self.source.get_or_insert(Patterns(Vec::new())).0.push(pattern.into());
        self
    }

    /// Only about tools with this effect; once more for another one.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect.get_or_insert_default().push(effect);
        self
    }

    /// Only if this argument, by name or JSON pointer, passes.
    #[must_use]
    pub fn argument(mut self, which: impl Into<String>, test: ArgumentTest) -> Self {
        self.arguments.insert(which.into(), test);
        self
    }

    /// Why it denies; told to the model.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Whether it says nothing of which calls it is about, and so decides about all of them. A configuration may not: there
    /// `tool = "*"` says so.
    pub fn says_nothing(&self) -> bool {
        self.tool.is_none() && self.source.is_none() && self.effect.is_none() && self.arguments.is_empty()
    }

    /// Whether it may be about calls of this tool.
    pub(super) fn is_about(&self, tool: &OfferedTool) -> bool {
        let name = tool.name.as_str();
        self.tool.as_ref().is_none_or(|tools| tools.fits(|pattern| names(pattern, name)))
            && self.source.as_ref().is_none_or(|sources| sources.fits(|pattern| glob(pattern, &tool.source)))
            && self.effect.as_ref().is_none_or(|effects| effects.contains(&tool.effect))
    }

    /// Whether it is about this call.
    pub(super) fn fits(&self, tool: &OfferedTool, arguments: &Value) -> bool {
        self.is_about(tool)
            && self.arguments.iter().all(|(which, test)| match (argument(arguments, which), self.decide) {
                (None, _) => false,
                (Some(value), Decide::Allow) => test.of_all(value) == Fit::Yes,
                (Some(value), Decide::Ask | Decide::Deny) => test.of_any(value) != Fit::No,
            })
    }

    /// As events name it: number, decision and what it is about.
    pub(super) fn name(&self, number: usize) -> String {
        let mut name = format!(
            "rule:{number} {}",
            match self.decide {
                Decide::Allow => "allow",
                Decide::Ask => "ask",
                Decide::Deny => "deny",
            }
        );
        for Patterns(patterns) in [&self.tool, &self.source].into_iter().flatten() {
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
pub(super) fn names(pattern: &str, name: &str) -> bool {
    glob(pattern, name) || name.strip_prefix(pattern).is_some_and(|rest| rest.starts_with('.'))
}

/// An argument by name, or by JSON pointer if it begins with `/`.
pub(super) fn argument<'v>(arguments: &'v Value, which: &str) -> Option<&'v Value> {
    match which.starts_with('/') {
        true => arguments.pointer(which),
        false => arguments.get(which),
    }
}
