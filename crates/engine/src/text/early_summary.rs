//! Summary of a call whose arguments are still arriving: one line about the arguments that are complete.

use super::summary;
use serde_json::Value;

/// Argument text that is read for an early summary, in bytes. The summary at the end has no such limit.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Times that the complete arguments of one call are read: a card changes no more often, and hostile arguments cost no more.
const READS_MAX: u32 = 32;

/// Finds the ends of complete arguments in text that arrives in pieces. Each byte is read once.
#[derive(Clone, Debug, Default)]
pub(crate) struct EarlySummary {
    depth: usize,
    in_string: bool,
    escaped: bool,
    value: ValueState,
    reads: u32,
    shown: String,
    done: bool,
}

impl EarlySummary {
    /// At the beginning of the text, for a card that shows this text already.
    pub(crate) fn showing(shown: String) -> Self {
        Self { shown, ..Self::default() }
    }

    /// Adds the next piece of the text; `before` is the text so far. Returns a summary if it has changed.
    pub(crate) fn push(&mut self, before: &str, piece: &str) -> Option<String> {
        self.done |= before.len() + piece.len() > TEXT_BYTES_MAX;
        if self.done {
            return None;
        }
        let end = self.last_complete(piece)?;
        self.reads += 1;
        self.done = self.reads >= READS_MAX;
        let complete = format!("{before}{}}}", &piece[..end]);
        let Ok(arguments @ Value::Object(_)) = serde_json::from_str(&complete) else { return None };
        let line = summary::of_value(&arguments);
        self.done |= line.ends_with('…');
        if line.is_empty() || line == self.shown {
            return None;
        }
        self.shown.clone_from(&line);
        Some(line)
    }

    /// End of the last argument that becomes complete within this piece. A text, a list and an object end with their own
    /// closing character, everything else with the one after it.
    fn last_complete(&mut self, piece: &str) -> Option<usize> {
        let mut end = None;
        for (at, byte) in piece.bytes().enumerate() {
            match byte {
                _ if std::mem::take(&mut self.escaped) => {}
                b'\\' if self.in_string => self.escaped = true,
                b'"' => {
                    self.in_string = !self.in_string;
                    if !self.in_string && self.depth == 1 && self.value == ValueState::Awaited {
                        (self.value, end) = (ValueState::Complete, Some(at + 1));
                    }
                }
                _ if self.in_string => {}
                b':' if self.depth == 1 => self.value = ValueState::Awaited,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth > 1 => {
                    self.depth -= 1;
                    if self.depth == 1 {
                        (self.value, end) = (ValueState::Complete, Some(at + 1));
                    }
                }
                b',' | b'}' if self.depth == 1 => {
                    if self.value == ValueState::Awaited {
                        end = Some(at);
                    }
                    self.value = ValueState::Name;
                }
                _ => {}
            }
        }
        end
    }
}

/// Position within an argument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ValueState {
    /// Before its colon.
    #[default]
    Name,
    /// After its colon, and not yet complete.
    Awaited,
    Complete,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The summaries of a text in these pieces.
    fn summaries(pieces: &[&str]) -> Vec<String> {
        let (mut early, mut before, mut found) = (EarlySummary::default(), String::new(), Vec::new());
        for piece in pieces {
            found.extend(early.push(&before, piece));
            before.push_str(piece);
        }
        found
    }

    #[track_caller]
    fn check(pieces: &[&str], expected: &[&str]) {
        assert_eq!(summaries(pieces), expected, "{pieces:?}");
    }

    #[test]
    fn early_summary_shows_complete_arguments() {
        check(&["{\"city\": \"北", "京\"", ", \"days\"", ": 3", "}"], &["city: 北京", "city: 北京, days: 3"]);
        check(
            &[r#"{"a":"x, \"y\" }","b":1"#, ",", r#""c":[1,{"d":2}"#, "]", ",\"e\":true}"],
            &[
                r#"a: x, "y" }"#,
                r#"a: x, "y" }, b: 1"#,
                r#"a: x, "y" }, b: 1, c: [2]"#,
                r#"a: x, "y" }, b: 1, c: [2], e: true"#,
            ],
        );
        check(&["{\"a\":1}"], &["a: 1"]);
        check(&["{}"], &[]);
        check(&["[1,", "2]"], &[]);
        check(&["so, what?", "}"], &[]);
        check(&["{\"a\\", "\\", "\":\"\\\"\"", ",\"b\":2}"], &["a\\: \"", "a\\: \", b: 2"]);
    }

    #[test]
    fn early_summary_reads_are_bounded() {
        let long = format!("{{\"a\":\"{}\",", "x".repeat(200));
        check(&[&long, "\"b\":1,", "\"c\":2}"], &[&format!("a: {}…", "x".repeat(77))]);
        let large = format!("{{\"a\":\"{}\",", "x".repeat(TEXT_BYTES_MAX));
        check(&[&large, "\"b\":1}"], &[]);
        let (mut early, mut before) = (EarlySummary::default(), "{".to_owned());
        early.push("", &before);
        for _ in 0..1_000 {
            early.push(&before, "\"a\":1,");
            before.push_str("\"a\":1,");
        }
        assert_eq!(early.reads, READS_MAX);
    }
}
