//! Rules that are about no tool there is: most often a name that was written wrong, and a rule that denies nothing is worse
//! than none.

use super::matcher::{ArgumentTest, glob};
use super::rule::{PatternList, PolicyRule, pattern_matches};
use crate::text::suggest::suggest_names;
use crate::tool::OfferedTool;
use std::collections::BTreeSet;
use std::fmt;

/// A pattern of a rule that fits no tool or no absolute path, or a rule whose parts fit no tool together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnmatchedRule {
    /// Number of the rule, from 1.
    pub number: usize,
    /// The part that fits nothing.
    pub part: RulePart,
    /// Names that may have been meant, best first.
    pub suggestions: Vec<String>,
}

/// The part of a rule that fits nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RulePart {
    /// No tool or group is called so.
    Tool(String),
    /// No tool comes from there.
    Source(String),
    /// Each part fits some tool, but no tool fits all of them.
    Combination,
    /// A folder from which no absolute path can be reached.
    RelativeFolder(String),
}

impl fmt::Display for UnmatchedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.number;
        match &self.part {
            RulePart::Tool(pattern) => write!(f, "rule {number} matches no tool: `tool = \"{pattern}\"`")?,
            RulePart::Source(pattern) => {
                write!(f, "rule {number} matches no tool: `source = \"{pattern}\"` provides none")?
            }
            RulePart::Combination => {
                write!(f, "rule {number} matches no tool: none meets all of its conditions")?
            }
            RulePart::RelativeFolder(folder) => write!(
                f,
                "rule {number} matches no absolute path: `under = \"{folder}\"` is relative; use the absolute path of the folder"
            )?,
        }
        match self.suggestions.first() {
            Some(suggestions) => write!(f, "; did you mean `{suggestions}`?"),
            None => Ok(()),
        }
    }
}

/// Lists the rules, or their parts, that fit none of these tools, and relative folders. Other conditions on arguments are not tested.
///
/// ```
/// use throughline_engine::{RuleAction, Effect, OfferedTool, PolicyRule, unmatched_rules};
///
/// let tools = [OfferedTool::new("demo.calendar", Effect::Write)];
/// let rules = [PolicyRule::new(RuleAction::Deny).tool("demo.calender")];
/// let unmatched = unmatched_rules(&rules, &tools);
/// assert_eq!(
///     unmatched[0].to_string(),
///     "rule 1 matches no tool: `tool = \"demo.calender\"`; did you mean `demo.calendar`?"
/// );
/// ```
pub fn unmatched_rules(rules: &[PolicyRule], tools: &[OfferedTool]) -> Vec<UnmatchedRule> {
    let mut known: BTreeSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    known.extend(tools.iter().filter_map(|tool| Some(tool.name.as_str().split_once('.')?.0)));
    let sources: BTreeSet<&str> = tools.iter().map(|tool| tool.source.as_str()).collect();
    let mut unmatched = Vec::new();
    for (number, rule) in (1..).zip(rules) {
        let before = unmatched.len();
        let mut add = |part, suggestions: Vec<&str>| {
            let suggestions = suggestions.into_iter().map(str::to_owned).collect();
            unmatched.push(UnmatchedRule { number, part, suggestions });
        };
        for pattern in patterns(&rule.tool) {
            if pattern != "*" && !tools.iter().any(|tool| pattern_matches(pattern, tool.name.as_str())) {
                add(RulePart::Tool(pattern.to_owned()), suggest_names(pattern, known.iter().copied()));
            }
        }
        for pattern in patterns(&rule.source) {
            if pattern != "*" && !sources.iter().any(|source| glob(pattern, source)) {
                add(RulePart::Source(pattern.to_owned()), suggest_names(pattern, sources.iter().copied()));
            }
        }
        let has_other_conditions = rule.source.is_some() || rule.effect.is_some();
        if unmatched.len() == before
            && has_other_conditions
            && !tools.iter().any(|tool| rule.matches_tool(tool))
        {
            let part = RulePart::Combination;
            unmatched.push(UnmatchedRule { number, part, suggestions: Vec::new() });
        }
        unmatched.extend(rule.arguments.values().filter_map(ArgumentTest::relative_folder).map(|folder| {
            let part = RulePart::RelativeFolder(folder.to_owned());
            UnmatchedRule { number, part, suggestions: Vec::new() }
        }));
    }
    unmatched
}

fn patterns(of: &Option<PatternList>) -> impl Iterator<Item = &str> {
    of.iter().flat_map(PatternList::iter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Effect, RuleAction};

    fn tools() -> Vec<OfferedTool> {
        let tool = |name, effect, source: &str| OfferedTool {
            source: source.to_owned(),
            ..OfferedTool::new(name, effect)
        };
        vec![
            tool("files.read", Effect::Read, "builtin"),
            tool("files.write", Effect::Write, "builtin"),
            tool("home.light", Effect::External, "mcp:home"),
        ]
    }

    fn check(rule: PolicyRule, expected: &[&str]) {
        let messages: Vec<String> = unmatched_rules(std::slice::from_ref(&rule), &tools())
            .iter()
            .map(UnmatchedRule::to_string)
            .collect();
        assert_eq!(messages, expected, "{rule:?}");
    }

    #[test]
    fn unmatched_rule_is_reported_with_a_suggestion() {
        let rule = || PolicyRule::new(RuleAction::Deny);
        for fits in ["files.read", "files", "f*", "*", "*.light"] {
            check(rule().tool(fits), &[]);
        }
        check(rule().source("mcp:*"), &[]);
        check(rule().tool("files").effect(Effect::Write), &[]);
        let start = "rule 1 matches no tool: ";
        check(
            rule().tool("files.raed"),
            &[&format!("{start}`tool = \"files.raed\"`; did you mean `files.read`?")],
        );
        check(rule().tool("fils"), &[&format!("{start}`tool = \"fils\"`; did you mean `files`?")]);
        check(rule().tool("mail.*"), &[&format!("{start}`tool = \"mail.*\"`")]);
        check(
            rule().tool("files").tool("home.lihgt"),
            &[&format!("{start}`tool = \"home.lihgt\"`; did you mean `home.light`?")],
        );
        check(
            rule().source("mcp:hone"),
            &[&format!("{start}`source = \"mcp:hone\"` provides none; did you mean `mcp:home`?")],
        );
        check(
            rule().tool("home").effect(Effect::Read),
            &[&format!("{start}none meets all of its conditions")],
        );
    }
}
