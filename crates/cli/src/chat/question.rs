//! Questions that a turn asks the user, and the lines that show one in full.

use super::form::QuestionForm;
use crate::messages::UiText;
use crate::terminal::card::duration;
use crate::terminal::text::{StyledLine, TextColor, TextStyle};
use serde_json::Value;
use throughline_engine::ApprovalId;
use throughline_wire::CallId;
use throughline_wire::display_escape;

/// A question that waits for an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PendingQuestion {
    /// The key of the answer.
    pub(crate) id: ApprovalId,
    /// Call that the question belongs to.
    pub(crate) call: Option<CallId>,
    /// The tool's name.
    pub(crate) tool: String,
    /// Source of the tool.
    pub(crate) source: String,
    /// Effect of the tool.
    pub(crate) effect: String,
    /// Text of the question, from the engine or the tool.
    pub(crate) question: String,
    /// Rule that requires the approval.
    pub(crate) rule: String,
    /// Time at which the question expires as denied, in ms since 1970.
    pub(crate) expires_at: Option<i64>,
    /// Hash of the arguments that are shown.
    pub(crate) arguments_hash: String,
    /// Kind of answer that the question needs.
    pub(crate) input: QuestionInput,
}

/// Subject of a question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum QuestionInput {
    /// Approval of a call.
    Approval {
        /// All arguments, as they would run.
        arguments: String,
    },
    /// Values for an elicitation of a running tool.
    Fields(QuestionForm),
    /// An address for the person to open.
    Address(String),
}

impl PendingQuestion {
    /// The whole question, in unwrapped lines; `index` of `count` questions is shown if there are several.
    pub(crate) fn lines(&self, now: i64, (index, count): (usize, usize), words: UiText) -> Vec<StyledLine> {
        let title = match self.input {
            QuestionInput::Approval { .. } => words.allow_question(),
            QuestionInput::Fields(_) | QuestionInput::Address(_) => words.tool_asks(),
        };
        let mut head = StyledLine::new(title, TextStyle::bold_ink(TextColor::Yellow));
        head.push("  ", TextStyle::PLAIN);
        head.push(&self.tool, TextStyle::BOLD);
        if count > 1 {
            head.push(&format!("  {}", words.nth_of(index + 1, count)), TextStyle::DIM);
        }
        let mut lines = vec![head, self.about(now, words)];
        if !self.question.is_empty() && !self.is_default_rule() {
            lines.extend(text_lines(&self.question, TextStyle::PLAIN));
        }
        match &self.input {
            QuestionInput::Approval { arguments }
                if arguments.trim().is_empty() || arguments.trim() == "{}" =>
            {
                lines.push(StyledLine::new(words.no_arguments(), TextStyle::DIM));
            }
            QuestionInput::Approval { arguments } => {
                lines.extend(text_lines(arguments, TextStyle::ink(TextColor::Cyan)))
            }
            QuestionInput::Fields(_) => {}
            QuestionInput::Address(address) => {
                lines.push(StyledLine::new(words.form_url(), TextStyle::PLAIN));
                lines.extend(text_lines(address, TextStyle::ink(TextColor::Cyan)));
            }
        }
        lines
    }

    /// The question to be answered by a line, as text.
    pub(crate) fn as_text(&self, now: i64, words: UiText) -> String {
        let lines = self.lines(now, (0, 1), words);
        lines.iter().map(|line| format!("┃ {}\n", line.plain())).collect()
    }

    /// True for the approval of a call; false for an elicitation of a running tool.
    pub(crate) fn is_approval(&self) -> bool {
        matches!(self.input, QuestionInput::Approval { .. })
    }

    /// False for rules that ask each time, regardless of earlier answers.
    pub(crate) fn can_be_remembered(&self) -> bool {
        self.is_approval() && !["manual", "tool", "loop_guard"].contains(&self.rule.as_str())
    }

    /// Source, effect, rule and the time that is left.
    fn about(&self, now: i64, words: UiText) -> StyledLine {
        let mut parts = Vec::new();
        if !self.source.is_empty() {
            parts.push(format!("{} {}", words.source(), display_escape::escape(&self.source)));
        }
        if let QuestionInput::Approval { .. } = self.input {
            if !self.effect.is_empty() {
                parts.push(format!("{}: {}", words.effect(), self.effect));
            }
            if !self.rule.is_empty() {
                parts.push(format!("{}: {}", words.rule(), display_escape::escape(&self.rule)));
            }
        }
        if let Some(expires_at) = self.expires_at {
            let remaining = duration_left(expires_at.saturating_sub(now));
            parts.push(format!("{remaining} {}", words.time_left()));
        }
        StyledLine::new(&parts.join(" · "), TextStyle::DIM)
    }

    /// True for the question of a default by effect, which repeats other lines.
    fn is_default_rule(&self) -> bool {
        self.is_approval() && self.rule.starts_with("effect:")
    }
}

/// Whole seconds: a question is not a race.
fn duration_left(ms: i64) -> String {
    let seconds = u64::try_from(ms.max(0)).unwrap_or(0).div_ceil(1_000);
    match seconds {
        0..60 => format!("{seconds} s"),
        _ => duration(seconds * 1_000),
    }
}

fn text_lines(text: &str, style: TextStyle) -> Vec<StyledLine> {
    display_escape::escape_exact(text).split('\n').map(|line| StyledLine::new(line, style)).collect()
}

/// JSON to be edited: indented, hidden characters as escapes, so that what is seen is what is there.
pub(crate) fn editable(arguments: &str) -> String {
    let pretty = serde_json::from_str::<Value>(arguments)
        .ok()
        .and_then(|value| serde_json::to_string_pretty(&value).ok())
        .unwrap_or_else(|| arguments.to_owned());
    display_escape::escape_exact(&pretty).into_owned()
}

/// Arguments that a person wrote.
///
/// # Errors
/// Why they cannot be arguments at all; whether they fit the tool is not known here.
pub(crate) fn parse_edited(text: &str, words: UiText) -> Result<Value, String> {
    match serde_json::from_str::<Value>(text) {
        Ok(value) if value.is_object() => Ok(value),
        Ok(_) => Err(words.not_an_object().to_owned()),
        Err(error) => Err(words.not_json(&error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::UiLanguage;

    // Edited text is the actual text, and comes back unchanged.
    #[test]
    fn hidden_characters_are_escaped_in_the_editor() {
        let arguments = "{\"a\":\"x\u{202e}y\u{e0041}\",\"b\":[1]}";
        let text = editable(arguments);
        assert_eq!(text, "{\n  \"a\": \"x\\u202ey\\udb40\\udc41\",\n  \"b\": [\n    1\n  ]\n}");
        let back = parse_edited(&text, UiText(UiLanguage::English)).unwrap();
        assert_eq!(back, serde_json::from_str::<Value>(arguments).unwrap());
        assert_eq!(editable("not json"), "not json");
    }

    #[test]
    fn edited_arguments_must_be_a_json_object() {
        for (text, part) in [("[1]", "JSON object"), ("{\"a\":", "not JSON: EOF")] {
            let why = parse_edited(text, UiText(UiLanguage::English)).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        }
    }

    #[test]
    fn remaining_time_is_shown_in_minutes_and_seconds() {
        for (ms, expect) in [(-5, "0 s"), (1, "1 s"), (59_000, "59 s"), (61_500, "1 min 02 s")] {
            assert_eq!(duration_left(ms), expect);
        }
    }
}
