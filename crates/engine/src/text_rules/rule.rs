//! One text rule: its settings, checked and compiled.

use regex::{Regex, RegexBuilder};
use regex_automata::nfa::thompson::{Compiler, Config, NFA, WhichCaptures};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Most rules of an agent. Each is applied to every text, one after the other.
pub const TEXT_RULES_MAX: usize = 32;
/// Longest pattern, in characters.
pub const TEXT_RULE_PATTERN_CHARS_MAX: usize = 2_000;
/// Longest replacement, in characters.
pub const TEXT_RULE_REPLACE_CHARS_MAX: usize = 4_000;
/// Largest compiled pattern, in bytes: a short pattern such as `(\w{100}){100}` can be huge.
pub const TEXT_RULE_COMPILED_BYTES_MAX: usize = 1 << 20;

/// Text that a rule changes: shown to people, or sent to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TextRuleTarget {
    /// Texts that people are shown, on every surface.
    Shown,
    /// Texts that are sent to the model in a request.
    Model,
}

/// Role of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextRuleRole {
    /// Answers of the model.
    Assistant,
    /// Messages of the user.
    User,
    /// Results of tools.
    Tool,
}

/// A text rule as a configuration gives it.
///
/// ```
/// # let text = r#"
/// [[text_rules]]
/// name = "no status lines"
/// pattern = '(?m)^\[status\].*\n?'
/// hide = true
/// in = "shown"
///
/// [[text_rules]]
/// pattern = '\b(\d{4})-\d{4}-\d{4}-(\d{4})\b'
/// replace = "$1-…-$2"
/// in = "model"
/// target_roles = ["user", "tool"]
/// # "#;
/// # #[derive(serde::Deserialize)] struct File { text_rules: Vec<throughline_engine::TextRule> }
/// # let file: File = toml::from_str(text).unwrap();
/// # assert_eq!(file.text_rules[1].settings().replace.as_deref(), Some("$1-…-$2"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextRuleSettings {
    /// Name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Regular expression of the `regex` crate: linear time, without look-around and back-references. It fits at least one
    /// character.
    pub pattern: String,
    /// Replacement of each match, with `$1` and `$name` for groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replace: Option<String>,
    /// Leaves each match out. Instead of `replace`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hide: bool,
    /// Text that the rule changes.
    #[serde(rename = "in")]
    pub target: TextRuleTarget,
    /// Roles of the texts concerned. Default: the model's answers.
    #[serde(default = "assistant_only")]
    pub target_roles: Vec<TextRuleRole>,
    /// Off = the rule does nothing and does not change the numbers of the others. Default true.
    #[serde(default = "enabled")]
    pub enabled: bool,
}

fn assistant_only() -> Vec<TextRuleRole> {
    vec![TextRuleRole::Assistant]
}

fn enabled() -> bool {
    true
}

/// A text rule, checked and compiled.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "TextRuleSettings", into = "TextRuleSettings")]
pub struct TextRule {
    settings: TextRuleSettings,
    pub(super) compiled: Arc<CompiledPattern>,
}

/// A pattern in the two forms that are needed: whole texts, and texts that are still arriving.
pub(super) struct CompiledPattern {
    pub regex: Regex,
    pub nfa: NFA,
}

/// Mistake in a text rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextRuleError {
    /// Field that is invalid.
    pub field: &'static str,
    /// The mistake, and what to do about it.
    pub message: String,
}

impl fmt::Display for TextRuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "text rule: `{}` {}", self.field, self.message)
    }
}

impl std::error::Error for TextRuleError {}

impl TextRule {
    /// Checks and compiles a rule.
    ///
    /// # Errors
    /// The rule contradicts itself or a limit, or its pattern cannot be read.
    pub fn new(settings: TextRuleSettings) -> Result<Self, TextRuleError> {
        check_settings(&settings)?;
        let compiled = Arc::new(compile(&settings.pattern)?);
        Ok(Self { settings, compiled })
    }

    /// The rule as it is written.
    pub fn settings(&self) -> &TextRuleSettings {
        &self.settings
    }

    /// Name of the rule, or its pattern if it has none.
    pub fn label(&self) -> &str {
        self.settings.name.as_deref().unwrap_or(&self.settings.pattern)
    }

    pub(super) fn is_about(&self, target: TextRuleTarget, role: TextRuleRole) -> bool {
        let TextRuleSettings { enabled, target: own, target_roles, .. } = &self.settings;
        *enabled && *own == target && target_roles.contains(&role)
    }

    /// Replacement of a match; empty if it is hidden.
    pub(super) fn replacement(&self) -> &str {
        self.settings.replace.as_deref().unwrap_or_default()
    }
}

fn check_settings(settings: &TextRuleSettings) -> Result<(), TextRuleError> {
    let wrong = |field, message: String| Err(TextRuleError { field, message });
    match (&settings.replace, settings.hide) {
        (Some(_), true) => return wrong("hide", "and `replace` are mutually exclusive; remove one".into()),
        (None, false) => {
            return wrong("replace", "is missing; set a replacement, or `hide = true`".into());
        }
        (Some(replace), false) if replace.chars().count() > TEXT_RULE_REPLACE_CHARS_MAX => {
            let message = format!("is longer than {TEXT_RULE_REPLACE_CHARS_MAX} characters; shorten it");
            return wrong("replace", message);
        }
        _ => {}
    }
    if settings.pattern.chars().count() > TEXT_RULE_PATTERN_CHARS_MAX {
        let message = format!("is longer than {TEXT_RULE_PATTERN_CHARS_MAX} characters; use several rules");
        return wrong("pattern", message);
    }
    if settings.target_roles.is_empty() {
        let message = "is empty; list `assistant`, `user` or `tool`, or set `enabled = false`".into();
        return wrong("target_roles", message);
    }
    if settings.target == TextRuleTarget::Shown && settings.target_roles.contains(&TextRuleRole::User) {
        let message =
            "contains `user`, but user messages are always shown unchanged; use `in = \"model\"`".into();
        return wrong("target_roles", message);
    }
    Ok(())
}

fn compile(pattern: &str) -> Result<CompiledPattern, TextRuleError> {
    let wrong = |message: String| TextRuleError { field: "pattern", message };
    let too_large = || {
        wrong(format!(
            "becomes larger than {} KiB when compiled; use smaller repetitions or several rules",
            TEXT_RULE_COMPILED_BYTES_MAX >> 10
        ))
    };
    let regex = RegexBuilder::new(pattern).size_limit(TEXT_RULE_COMPILED_BYTES_MAX).build();
    let regex = regex.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => too_large(),
        error => wrong(format!("is not a supported regular expression: {}", last_line(&error))),
    })?;
    if regex.is_match("") || fits_nothing_somewhere(pattern) {
        return Err(wrong(
            "can match the empty string; require at least one character, for example `x+` instead of `x*`"
                .into(),
        ));
    }
    let config =
        Config::new().which_captures(WhichCaptures::None).nfa_size_limit(Some(TEXT_RULE_COMPILED_BYTES_MAX));
    let nfa = Compiler::new().configure(config).build(pattern).map_err(|_| too_large())?;
    Ok(CompiledPattern { regex, nfa })
}

/// True if a match may be empty anywhere: `\b` does not match the empty text and is nevertheless empty.
fn fits_nothing_somewhere(pattern: &str) -> bool {
    regex_automata::util::syntax::parse(pattern)
        .is_ok_and(|hir| hir.properties().minimum_len().is_none_or(|shortest| shortest == 0))
}

/// The mistake itself: before it, the error shows the whole pattern.
fn last_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let line = text.lines().last().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

impl TryFrom<TextRuleSettings> for TextRule {
    type Error = TextRuleError;

    fn try_from(settings: TextRuleSettings) -> Result<Self, TextRuleError> {
        Self::new(settings)
    }
}

impl From<TextRule> for TextRuleSettings {
    fn from(rule: TextRule) -> Self {
        rule.settings
    }
}

impl PartialEq for TextRule {
    fn eq(&self, other: &Self) -> bool {
        self.settings == other.settings
    }
}

impl fmt::Debug for TextRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(f)
    }
}
