//! The arguments of a call of the client's own, while the model writes them.
//!
//! What was sent cannot be taken back, and clients act on it at once: the AI SDK runs a call when its arguments are JSON, and
//! others take the next call for the end of the one before. So:
//!
//! - The closing bracket comes with the handover, when the turn waits for the client. Until then nobody can run the call.
//! - One call of an answer comes in fragments; others follow it whole.
//! - A call that is written within [`WHOLE_CALL_MS`] comes whole: if it is broken, the model mends it and the client never
//!   knows. One that was begun and breaks ends the answer with an error.
//! - What is no beginning of a JSON object is not sent: upstreams write a placeholder first, or everything again
//!   (docs/conformance.md, A4, A5, A8), and what is meant is known at the end.

/// Time for which the model may write a call before its arguments are sent as they come, in milliseconds: a person who
/// watches takes it for a moment.
const WHOLE_CALL_MS: i64 = 1_000;

/// Arguments as far as they are written, and as far as the client has them.
#[derive(Default)]
pub(super) struct CallDraft {
    /// In milliseconds since 1970.
    began_at: i64,
    written: String,
    json: ObjectBeginning,
    sent: String,
}

impl CallDraft {
    pub(super) fn new(began_at: i64) -> Self {
        Self { began_at, ..Self::default() }
    }

    pub(super) fn push(&mut self, delta: &str) {
        self.written.push_str(delta);
        delta.bytes().for_each(|byte| self.json.push(byte));
    }

    /// They are written again, from the beginning.
    pub(super) fn reset(&mut self) {
        self.written.clear();
        self.json = ObjectBeginning::default();
    }

    /// The model has written for so long that whoever watches wants to see something.
    pub(super) fn is_slow(&self, now: i64) -> bool {
        now - self.began_at >= WHOLE_CALL_MS
    }

    /// What the client is to get of it now. `None`: nothing.
    pub(super) fn fragment(&mut self) -> Option<String> {
        let fragment = without_end(&self.written).strip_prefix(&self.sent)?.to_owned();
        if fragment.is_empty() || !self.json.is_valid() {
            return None;
        }
        self.sent.push_str(&fragment);
        Some(fragment)
    }

    /// The last fragment of arguments that are final. `None`: they are not what the client has a part of.
    pub(super) fn rest<'a>(&self, arguments: &'a str) -> Option<&'a str> {
        arguments.strip_prefix(&self.sent)
    }
}

/// Text that may be a whole JSON object, without its closing bracket.
fn without_end(text: &str) -> &str {
    text.trim_end_matches(|end: char| end.is_ascii_whitespace() || matches!(end, ']' | '}'))
}

/// Whether a text may be the beginning of a JSON object, as far as its brackets and quotation marks say.
#[derive(Default)]
struct ObjectBeginning {
    depth: usize,
    string: StringState,
    is_closed: bool,
    is_broken: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum StringState {
    #[default]
    Outside,
    Inside,
    Escaped,
    /// Right behind one: a comma, a colon or a closing bracket follows.
    Behind,
}

impl ObjectBeginning {
    fn is_valid(&self) -> bool {
        !self.is_broken
    }

    fn push(&mut self, byte: u8) {
        self.string = match (self.string, byte) {
            (StringState::Escaped, _) => StringState::Inside,
            (StringState::Inside, b'\\') => StringState::Escaped,
            (StringState::Inside, b'"') => StringState::Behind,
            (StringState::Inside, _) => StringState::Inside,
            (outside, b' ' | b'\t' | b'\r' | b'\n') => outside,
            (_, b',' | b':') => StringState::Outside,
            (_, b']' | b'}') => {
                self.is_broken |= self.depth == 0;
                self.depth = self.depth.saturating_sub(1);
                self.is_closed |= self.depth == 0;
                StringState::Outside
            }
            (before, _) => {
                self.is_broken |=
                    before == StringState::Behind || self.is_closed || self.depth == 0 && byte != b'{';
                self.depth += usize::from(matches!(byte, b'[' | b'{'));
                if byte == b'"' { StringState::Inside } else { StringState::Outside }
            }
        };
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
    fn the_closing_bracket_comes_last() {
        let nested = "{\"a\": {\"b\": [1]}}\n";
        check(
            &["{\"a\"", ": {\"b\": [1", "]}", "}\n"],
            &["{\"a\"", ": {\"b\": [1", "", ""],
            nested,
            Some("]}}\n"),
        );
        let two = "{\"a\": {\"b\": 1}, \"c\": 2}";
        check(&["{\"a\": {\"b\": 1}", ", \"c\": 2}"], &["{\"a\": {\"b\": 1", "}, \"c\": 2"], two, Some("}"));
        check(&["{}"], &["{"], "{}", Some("}"));
        let text = "{\"a\": \"}] \\\" , x\"}";
        check(&["{\"a\": \"}]", " \\", "\" , x\"}"], &["{\"a\": \"", "}] \\", "\" , x\""], text, Some("}"));
    }

    #[test]
    fn what_upstreams_write_twice_is_sent_once() {
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
    fn arguments_that_are_written_again_may_be_others() {
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
