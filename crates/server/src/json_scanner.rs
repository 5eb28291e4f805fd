//! Size of JSON, measured before it is parsed: its nesting, its values, and the memory of its tree.

/// Tree units of an empty list or object, which allocates room for some values.
const TREE_UNITS_OF_LIST: u64 = 4;

/// Depth of an event's fields in its line. They become fields of a struct, and what is deeper is held as a tree of values.
const EVENT_DEPTH: u32 = 2;

/// Nesting depth of a JSON text at the current position, and its values so far. Invalid JSON is left to the
/// parser.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct JsonScanner {
    depth: u32,
    pub(crate) values: u32,
    pub(crate) units: TreeUnits,
    state: JsonScanState,
}

/// Size of a JSON text as a tree of values in memory: 1 for each comma and 4 for each list and object.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TreeUnits {
    pub(crate) all: u64,
    /// Units below the fields of an event, if the text is its line.
    pub(crate) below_fields: u64,
}

impl TreeUnits {
    pub(crate) fn of(text: &str) -> Self {
        let mut json = JsonScanner::default();
        json.exceeds(text.as_bytes(), u32::MAX);
        json.units
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum JsonScanState {
    #[default]
    Outside,
    InString,
    AfterBackslash,
}

impl JsonScanner {
    /// Reads on, and returns true if the nesting exceeds `max`.
    pub(crate) fn exceeds(&mut self, bytes: &[u8], max: u32) -> bool {
        for byte in bytes {
            self.state = match (self.state, byte) {
                (JsonScanState::Outside, b'{' | b'[') => {
                    self.values = self.values.saturating_add(1);
                    self.depth = self.depth.saturating_add(1);
                    if self.depth > max {
                        return true;
                    }
                    self.count(TREE_UNITS_OF_LIST);
                    JsonScanState::Outside
                }
                (JsonScanState::Outside, b'}' | b']') => {
                    self.depth = self.depth.saturating_sub(1);
                    JsonScanState::Outside
                }
                (JsonScanState::Outside, b',') => {
                    self.values = self.values.saturating_add(1);
                    self.count(1);
                    JsonScanState::Outside
                }
                (JsonScanState::Outside, b'"') => JsonScanState::InString,
                (JsonScanState::Outside, _) => JsonScanState::Outside,
                (JsonScanState::InString, b'"') => JsonScanState::Outside,
                (JsonScanState::InString, b'\\') => JsonScanState::AfterBackslash,
                (JsonScanState::InString | JsonScanState::AfterBackslash, _) => JsonScanState::InString,
            };
        }
        false
    }

    fn count(&mut self, units: u64) {
        self.units.all += units;
        if self.depth > EVENT_DEPTH {
            self.units.below_fields += units;
        }
    }
}

/// Tree units of the lines of a turn: a line is parsed alone, while the values below the fields of earlier
/// events are still in memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TurnUnits {
    held: u64,
}

impl TurnUnits {
    /// Units that are needed while this line is read.
    pub(crate) fn with(&mut self, line: TreeUnits) -> u64 {
        let needed = self.held.saturating_add(line.all);
        self.held = self.held.saturating_add(line.below_fields);
        needed
    }
}

/// Beginning of the line of a turn, which its events follow. Another spelling only gives a higher estimate.
const TURN_BEGINNING: &[u8] = br#"{"type":"turn","#;

/// The most that one turn of a conversation has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LargestTurn {
    pub(crate) bytes: u64,
    pub(crate) units: u64,
}

/// Size of a text that comes in pieces, as trees of values, in [tree units](TreeUnits).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TextUnits {
    line: JsonScanner,
    /// Bytes of the line that are those of [`TURN_BEGINNING`]; `None` if one was another.
    beginning: Option<usize>,
    turn: TurnUnits,
    turn_bytes: u64,
    largest_turn: LargestTurn,
    anywhere: u64,
    /// The last bytes, the very last one lowest.
    recent: u64,
}

impl TextUnits {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.exceeds(line, u32::MAX);
            self.turn_bytes += line.len() as u64;
            if let Some(matched) = self.beginning {
                let expected = &TURN_BEGINNING[matched..];
                let common =
                    line.iter().zip(expected).take_while(|(byte, expected)| byte == expected).count();
                let is_other = common < expected.len().min(line.len());
                self.beginning = (!is_other).then_some(matched + common);
            }
            if line.ends_with(b"\n") {
                self.end_line();
            }
        }
        for byte in bytes {
            self.recent = self.recent << 8 | u64::from(*byte);
            self.anywhere += match (byte, &self.recent.to_be_bytes()[2..]) {
                (b'[' | b'{', _) => TREE_UNITS_OF_LIST,
                (b',', _) => 1,
                // In a text with JSON in it they are the same.
                (_, br"\u005b" | br"\u005B" | br"\u007b" | br"\u007B") => TREE_UNITS_OF_LIST,
                (_, br"\u002c" | br"\u002C") => 1,
                _ => 0,
            };
        }
    }

    fn end_line(&mut self) {
        self.largest_turn.bytes = self.largest_turn.bytes.max(self.turn_bytes);
        if self.beginning == Some(TURN_BEGINNING.len()) {
            (self.turn, self.turn_bytes) = (TurnUnits::default(), 0);
        }
        self.largest_turn.units = self.largest_turn.units.max(self.turn.with(self.line.units));
        (self.line, self.beginning) = (JsonScanner::default(), Some(0));
    }

    /// Units of the records of a conversation, one per line.
    pub(crate) fn largest_turn(mut self) -> LargestTurn {
        self.end_line();
        self.largest_turn
    }

    /// Units of JSON inside the texts as well, at any level of escaping.
    pub(crate) fn anywhere(&self) -> u64 {
        self.anywhere
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, max: u32, over: bool) {
        for cut in 0..=text.len() {
            let (a, b) = text.as_bytes().split_at(cut);
            let mut json = JsonScanner::default();
            assert_eq!(json.exceeds(a, max) || json.exceeds(b, max), over, "{text} cut at {cut}");
        }
    }

    #[test]
    fn depth_ignores_brackets_in_strings_at_every_cut() {
        check(r#"{"a":[{"b":[]}]}"#, 4, false);
        check(r#"{"a":[{"b":[]}]}"#, 3, true);
        check(r#"["[[[[", "\"[[[[", "\\", []]"#, 2, false);
        check("[][][][]", 1, false);
        check("]]]][[", 1, true);
        check(&"[".repeat(64), 64, false);
        check(&"[".repeat(65), 64, true);
    }

    #[test]
    fn tree_units_cover_the_largest_turn_and_strings_at_every_cut() {
        let event = r#"{"type":"event","event":{"seq":1,"x":[1,{"y":",[{"}],"z":"\u002c\u005B\u00e9\\u"}}"#;
        let turn = r#"{"type":"turn","id":"t"}"#;
        let check = |lines: &[&str], of_turn: u64, anywhere: u64| {
            let text = lines.join("\n");
            for cut in 0..=text.len() {
                let (a, b) = text.as_bytes().split_at(cut);
                let mut units = TextUnits::default();
                [a, b].iter().for_each(|part| units.push(part));
                let found = (units.largest_turn().units, units.anywhere());
                assert_eq!(found, (of_turn, anywhere), "{text} cut at {cut}");
            }
        };
        // Four brackets and four commas, of which two and one are below the fields; in the texts two and two more.
        let (all, below, anywhere) = (4 * 4 + 4, 2 * 4 + 1, 7 * 4 + 6);
        check(&[event], all, anywhere);
        check(&[event, "", event, event], 2 * below + all, 3 * anywhere);
        check(&[event, turn, event, event, turn, event, ""], below + all, 4 * anywhere + 2 * 5);
        // Another spelling is taken for an event.
        for other in [r#" {"type":"turn","id":"t"}"#, r#"{"type":"turns","x":"t"}"#, r#"{"type":"turn"}"#] {
            let units = TreeUnits::of(other).all;
            check(&[event, other, event], below + all, 2 * anywhere + units);
        }
        let bytes = |text: &str| {
            let mut units = TextUnits::default();
            units.push(text.as_bytes());
            units.largest_turn().bytes
        };
        // The line of a turn is one of those before it.
        let line = turn.len() as u64 + 1;
        assert_eq!(bytes(&format!("{{}}\n{turn}\n12345\n{turn}\n12\n")), 6 + line);
        assert_eq!(bytes(&format!("{{}}\n{turn}\n12\n{turn}\n{}", "x".repeat(100))), 100);
    }

    #[test]
    fn value_count_ignores_strings() {
        for (text, values) in [("[]", 1), ("[1,2,[3]]", 4), (r#"{"a":",,[","b":{}}"#, 3), (r#"",[{""#, 0)] {
            let mut json = JsonScanner::default();
            assert!(!json.exceeds(text.as_bytes(), 64));
            assert_eq!(json.values, values, "{text}");
        }
    }
}
