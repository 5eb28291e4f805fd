//! The arguments of a client tool's call, while the model writes them.
//!
//! Nothing that was sent can be retracted, and clients act on it immediately: the AI SDK runs a call when its
//! arguments are valid JSON, and others take the next call as the end of the previous one. Therefore:
//!
//! - The closing bracket is sent with the handover, when the turn waits for the client. Until then the call
//!   cannot be run.
//! - One call of an answer is sent in fragments; others follow it whole.
//! - A call that is written within [`WHOLE_CALL_MS`] is sent whole: if it is malformed, the model corrects it
//!   unnoticed by the client. A call that was partly sent and is malformed ends the answer with an error.
//! - Text that does not begin a JSON object is not sent: some upstreams write a placeholder first, or repeat
//!   everything (see docs/conformance.md), and the final arguments are known at the end.

/// Time for which the model may write a call before its arguments are sent as they come, in milliseconds: a person who
/// watches takes it for a moment.
const WHOLE_CALL_MS: i64 = 1_000;

/// Arguments as far as they are written, and as far as the client has them.
#[derive(Default)]
pub(super) struct CallDraft {
    /// Time of the first fragment, in milliseconds since 1970.
    began_at: i64,
    written: String,
    json: ObjectBeginning,
    sent: String,
    /// Bytes of `sent` that were compared with `written`.
    compared: usize,
}

impl CallDraft {
    pub(super) fn new(began_at: i64) -> Self {
        Self { began_at, ..Self::default() }
    }

    pub(super) fn push(&mut self, delta: &str) {
        self.written.push_str(delta);
        delta.bytes().for_each(|byte| self.json.push(byte));
    }

    /// Discards the arguments: they are written again from the beginning.
    pub(super) fn reset(&mut self) {
        self.written.clear();
        self.json = ObjectBeginning::default();
        self.compared = 0;
    }

    /// True if the model has been writing for so long that a viewer should see progress.
    pub(super) fn is_slow(&self, now: i64) -> bool {
        now - self.began_at >= WHOLE_CALL_MS
    }

    /// The part to send to the client now, if any.
    pub(super) fn fragment(&mut self) -> Option<String> {
        let open = &self.written[..self.json.closed_at.unwrap_or(self.json.solid_bytes)];
        if self.json.is_broken || open.len() <= self.sent.len() {
            return None;
        }
        let Some(fragment) = open[self.compared..].strip_prefix(&self.sent[self.compared..]) else {
            self.json.is_broken = true;
            return None;
        };
        let fragment = fragment.to_owned();
        self.sent.push_str(&fragment);
        self.compared = self.sent.len();
        Some(fragment)
    }

    /// The last fragment of arguments that are final. `None`: they are not what the client has a part of.
    pub(super) fn rest<'a>(&self, arguments: &'a str) -> Option<&'a str> {
        arguments.strip_prefix(&self.sent)
    }
}

/// A text that may be the beginning of a JSON object, judged by its brackets and quotation marks.
#[derive(Default)]
struct ObjectBeginning {
    bytes: usize,
    /// Length up to the last byte that is not white space between tokens; the next byte decides about
    /// trailing white space.
    solid_bytes: usize,
    depth: usize,
    state: ScanState,
    /// Bytes before the closing bracket of the object and the white space that precedes it.
    closed_at: Option<usize>,
    is_broken: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ScanState {
    #[default]
    Outside,
    InString,
    InEscape,
    /// A comma, a colon or a closing bracket follows.
    AfterString,
    /// Right after the opening bracket of an object: a name or the closing one follows.
    AfterBrace,
}

impl ObjectBeginning {
    fn push(&mut self, byte: u8) {
        self.state = match (self.state, byte) {
            (ScanState::InEscape, _) => ScanState::InString,
            (ScanState::InString, b'\\') => ScanState::InEscape,
            (ScanState::InString, b'"') => ScanState::AfterString,
            (ScanState::InString, _) => ScanState::InString,
            (outside, b' ' | b'\t' | b'\r' | b'\n') => {
                self.bytes += 1;
                self.state = outside;
                return;
            }
            (before, b',' | b':') => {
                self.is_broken |= self.depth == 0 || before == ScanState::AfterBrace;
                ScanState::Outside
            }
            (_, b']' | b'}') => {
                self.is_broken |= self.depth == 0;
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    self.closed_at.get_or_insert(self.solid_bytes);
                }
                ScanState::Outside
            }
            (before, b'"') => {
                self.is_broken |= before == ScanState::AfterString || self.depth == 0;
                ScanState::InString
            }
            (before, _) => {
                let is_beginning = byte == b'{' && self.closed_at.is_none();
                self.is_broken |= before != ScanState::Outside || self.depth == 0 && !is_beginning;
                self.depth += usize::from(matches!(byte, b'[' | b'{'));
                if byte == b'{' { ScanState::AfterBrace } else { ScanState::Outside }
            }
        };
        self.bytes += 1;
        self.solid_bytes = self.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// The fragments of arguments that are written in these pieces and turn out to be these, and the last one.
    #[track_caller]
    fn check(pieces: &[&str], fragments: &[&str], arguments: &str, rest: Option<&str>) {
        let mut draft = CallDraft::new(0);
        let mut sent = String::new();
        for (piece, expected) in pieces.iter().zip(fragments) {
            draft.push(piece);
            let fragment = draft.fragment().unwrap_or_default();
            assert_eq!(fragment, *expected, "after {piece}");
            sent.push_str(&fragment);
            assert!(serde_json::from_str::<Value>(&sent).is_err(), "{sent} could run");
        }
        assert_eq!(draft.rest(arguments), rest);
    }

    #[test]
    fn closing_bracket_is_sent_last() {
        let nested = "{\"a\": {\"b\": [1]}}\n";
        check(
            &["{\"a\"", ": {\"b\": [1", "]}", "}\n"],
            &["{\"a\"", ": {\"b\": [1", "]}", ""],
            nested,
            Some("}\n"),
        );
        let two = "{\"a\": {\"b\": 1}, \"c\": 2}";
        check(&["{\"a\": {\"b\": 1}", ", \"c\": 2}"], &["{\"a\": {\"b\": 1}", ", \"c\": 2"], two, Some("}"));
        check(&["{}"], &["{"], "{}", Some("}"));
        let text = "{\"a\": \"}] \\\" , x\"}";
        check(&["{\"a\": \"}]", " \\", "\" , x\"}"], &["{\"a\": \"}]", " \\", "\" , x\""], text, Some("}"));
    }

    #[test]
    fn repeated_arguments_are_sent_once() {
        check(&["{ ", "}", "{\"a\": 1}"], &["{", "", ""], "{\"a\": 1}", Some("\"a\": 1}"));
        check(&["{", "{\"a\"", "{\"a\": 1}"], &["{", "", ""], "{\"a\": 1}", Some("\"a\": 1}"));
        check(&["{}", "{\"a\"", ": 1}"], &["{", "", ""], "{\"a\": 1}", Some("\"a\": 1}"));
        check(
            &["{\"a\": \"x", "{\"a\": \"xy", "\"}"],
            &["{\"a\": \"x", "", ""],
            "{\"a\": \"xy\"}",
            Some("y\"}"),
        );
        check(&["{\"a\": 1}", "{\"a\": 1}"], &["{\"a\": 1", ""], "{\"a\": 1}", Some("}"));
        check(&["\"{\\\"a\\\"", ": 1}\""], &["", ""], "{\"a\": 1}", Some("{\"a\": 1}"));
        check(&["a", "{\"a\": 1}"], &["", ""], "{\"a\": 1}", Some("{\"a\": 1}"));
    }

    #[test]
    fn arguments_may_differ_after_a_reset() {
        let mut draft = CallDraft::new(0);
        let mut push = |text: &str| {
            draft.push(text);
            draft.fragment()
        };
        assert_eq!(push("{\"a\": 1").as_deref(), Some("{\"a\": 1"));
        draft.reset();
        let mut push = |text: &str| {
            draft.push(text);
            draft.fragment()
        };
        assert_eq!((push("{\"a"), push("\": 12").as_deref()), (None, Some("2")));
        assert_eq!((draft.rest("{\"a\": 123}"), draft.rest("{\"a\": 3}")), (Some("3}"), None));
    }
}
