//! Argument text as it arrives: checked byte by byte, readable at any moment.
//!
//! Two readers run over the same text. The checker is strict JSON, sees every byte once, and knows
//! immediately when the top level has closed; nothing is ever parsed again. The builder makes the partial
//! value and is only brought up to date when the value is read, so that reading after every fragment still
//! costs each byte once.

use super::document::number;
use super::string::{SurrogateCarry, decode_string};
use serde_json::{Map, Value};
use std::fmt;

/// Deepest nesting of arguments. Deeper text is invalid: `serde_json` reads 127 levels, and arguments are
/// inside events, messages, rows and requests, which add up to 11.
pub const ARGUMENTS_DEPTH_MAX: usize = 110;

/// Room made at the first fragment: most arguments fit, and growing token by token would copy them several times.
const TYPICAL_BYTES: usize = 512;

/// Reason why argument text is not one JSON document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgumentsError {
    /// Byte offset in the text.
    pub offset: usize,
    /// Description of the error.
    pub message: &'static str,
}

impl fmt::Display for ArgumentsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.message, self.offset)
    }
}

/// Reads one JSON document in fragments.
///
/// ```
/// use throughline_wire::json::ArgumentsReader;
///
/// let mut arguments = ArgumentsReader::default();
/// arguments.push(r#"{"city": "Par"#);
/// assert_eq!(arguments.partial().map(|value| value["city"].clone()), Some("Par".into()));
/// arguments.push(r#"is"}"#);
/// assert!(arguments.is_closed() && arguments.check_complete().is_ok());
/// ```
#[derive(Clone, Debug, Default)]
pub struct ArgumentsReader {
    text: String,
    state: CheckerState,
    open: Vec<JsonContainer>,
    error: Option<ArgumentsError>,
    closed_at: usize,
    partial: PartialValue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JsonContainer {
    Object,
    Array,
}

/// State of the checker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CheckerState {
    /// A value is due.
    #[default]
    Value,
    /// A value or `]`.
    FirstItem,
    /// A member name or `}`.
    FirstName,
    /// At a member name.
    Name,
    /// At a `:`.
    Colon,
    /// `,` or the end of the container.
    Next,
    /// Inside a string.
    String(StringRole),
    /// After a backslash.
    Escape(StringRole),
    /// Inside `\uXXXX`, with this many digits to come.
    Unicode(StringRole, u8),
    /// Inside a number.
    Number(NumberState),
    /// Inside `true`, `false` or `null`: the letters still to come.
    Word(&'static [u8]),
    /// The top level has closed.
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StringRole {
    Name,
    Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NumberState {
    Minus,
    Zero,
    Integer,
    Point,
    Fraction,
    E,
    ESign,
    Exponent,
}

impl ArgumentsReader {
    /// Takes the next fragment. Escapes may be cut anywhere.
    pub fn push(&mut self, fragment: &str) {
        let from = self.text.len();
        if from == 0 {
            self.text.reserve(TYPICAL_BYTES);
        }
        self.text.push_str(fragment);
        if self.error.is_none() {
            self.check(from);
        }
    }

    /// The text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// True while there is only white space.
    pub fn is_blank(&self) -> bool {
        self.state == CheckerState::Value && self.open.is_empty() && self.error.is_none()
    }

    /// True once the top level has closed, with only white space after it. A number at the top level never
    /// closes.
    pub fn is_closed(&self) -> bool {
        self.state == CheckerState::Closed && self.error.is_none()
    }

    /// Length of the document when it closed, if it has.
    pub fn closed_len(&self) -> Option<usize> {
        (self.closed_at > 0).then_some(self.closed_at)
    }

    /// First error so far. Text that merely has not ended is no error.
    pub fn error(&self) -> Option<ArgumentsError> {
        self.error
    }

    /// Checks that the text so far is one whole document.
    pub fn check_complete(&self) -> Result<(), ArgumentsError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        match self.state {
            CheckerState::Closed => Ok(()),
            CheckerState::Number(digits) if self.open.is_empty() && digits.may_end() => Ok(()),
            _ => Err(ArgumentsError {
                offset: self.text.len(),
                message: "the text ends before the JSON document is complete",
            }),
        }
    }

    /// The value so far: strings as far as they have come, open containers closed, numbers and words once they are
    /// whole. For display only; nothing is ever run from it.
    pub fn partial(&mut self) -> Option<&Value> {
        let end = self.error.map_or(self.text.len(), |error| error.offset);
        self.partial.advance(&self.text[..end]);
        self.partial.root.as_ref()
    }

    fn fail(&mut self, offset: usize, what: &'static str) {
        self.error = Some(ArgumentsError { offset, message: what });
    }

    fn check(&mut self, from: usize) {
        let mut at = from;
        while let Some(&byte) = self.text.as_bytes().get(at) {
            if let CheckerState::String(quoted) = self.state {
                at = self.skip_plain(at);
                let Some(&byte) = self.text.as_bytes().get(at) else { return };
                match byte {
                    b'"' if quoted == StringRole::Name => self.state = CheckerState::Colon,
                    b'"' => self.end_value(at + 1),
                    b'\\' => self.state = CheckerState::Escape(quoted),
                    _ => return self.fail(at, "a raw control character in a string"),
                }
                at += 1;
                continue;
            }
            if let Err(what) = self.step(byte, at) {
                return self.fail(at, what);
            }
            at += 1;
        }
    }

    /// The next byte from `offset` that means something inside a string.
    fn skip_plain(&self, mut at: usize) -> usize {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(at) {
            if byte == b'"' || byte == b'\\' || byte < 0x20 {
                break;
            }
            at += 1;
        }
        at
    }

    fn end_value(&mut self, at: usize) {
        if self.open.is_empty() {
            self.state = CheckerState::Closed;
            self.closed_at = at;
        } else {
            self.state = CheckerState::Next;
        }
    }

    fn step(&mut self, byte: u8, at: usize) -> Result<(), &'static str> {
        match self.state {
            CheckerState::Number(digits) => {
                return match digits.next(byte) {
                    Some(next) => {
                        self.state = CheckerState::Number(next);
                        Ok(())
                    }
                    None if digits.may_end() => {
                        self.end_value(at);
                        self.step(byte, at)
                    }
                    None => Err("a digit was expected"),
                };
            }
            CheckerState::Word(rest) => {
                return match rest {
                    [expected, rest @ ..] if *expected == byte => {
                        if rest.is_empty() {
                            self.end_value(at + 1);
                        } else {
                            self.state = CheckerState::Word(rest);
                        }
                        Ok(())
                    }
                    _ => Err("not a JSON value"),
                };
            }
            CheckerState::Escape(quoted) => {
                self.state = match byte {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => CheckerState::String(quoted),
                    b'u' => CheckerState::Unicode(quoted, 4),
                    _ => return Err("an invalid escape sequence"),
                };
                return Ok(());
            }
            CheckerState::Unicode(quoted, left) => {
                if !byte.is_ascii_hexdigit() {
                    return Err("four hexadecimal digits were expected");
                }
                self.state = if left == 1 {
                    CheckerState::String(quoted)
                } else {
                    CheckerState::Unicode(quoted, left - 1)
                };
                return Ok(());
            }
            _ => {}
        }
        match (self.state, byte) {
            (_, b' ' | b'\n' | b'\t' | b'\r') => {}
            (CheckerState::FirstItem, b']') => self.close(at),
            (CheckerState::FirstName, b'}') => self.close(at),
            (CheckerState::Value | CheckerState::FirstItem, _) => return self.begin(byte),
            (CheckerState::FirstName | CheckerState::Name, b'"') => {
                self.state = CheckerState::String(StringRole::Name)
            }
            (CheckerState::FirstName | CheckerState::Name, _) => {
                return Err("a member name in quotes was expected");
            }
            (CheckerState::Colon, b':') => self.state = CheckerState::Value,
            (CheckerState::Colon, _) => return Err("`:` was expected"),
            (CheckerState::Next, b',') => {
                self.state = match self.open.last() {
                    Some(JsonContainer::Object) => CheckerState::Name,
                    _ => CheckerState::Value,
                };
            }
            (CheckerState::Next, b'}') if self.open.last() == Some(&JsonContainer::Object) => self.close(at),
            (CheckerState::Next, b']') if self.open.last() == Some(&JsonContainer::Array) => self.close(at),
            (CheckerState::Next, _) => return Err("expected `,` or the end of the container"),
            (CheckerState::Closed, _) => return Err("text after the document"),
            (
                CheckerState::String(_)
                | CheckerState::Escape(_)
                | CheckerState::Unicode(..)
                | CheckerState::Number(_)
                | CheckerState::Word(_),
                _,
            ) => {}
        }
        Ok(())
    }

    fn begin(&mut self, byte: u8) -> Result<(), &'static str> {
        self.state = match byte {
            b'{' | b'[' if self.open.len() >= ARGUMENTS_DEPTH_MAX => return Err("nested too deeply"),
            b'{' => {
                self.open.push(JsonContainer::Object);
                CheckerState::FirstName
            }
            b'[' => {
                self.open.push(JsonContainer::Array);
                CheckerState::FirstItem
            }
            b'"' => CheckerState::String(StringRole::Value),
            b'-' => CheckerState::Number(NumberState::Minus),
            b'0' => CheckerState::Number(NumberState::Zero),
            b'1'..=b'9' => CheckerState::Number(NumberState::Integer),
            b't' => CheckerState::Word(b"rue"),
            b'f' => CheckerState::Word(b"alse"),
            b'n' => CheckerState::Word(b"ull"),
            _ => return Err("not a JSON value"),
        };
        Ok(())
    }

    fn close(&mut self, at: usize) {
        self.open.pop();
        self.end_value(at + 1);
    }
}

impl NumberState {
    fn next(self, byte: u8) -> Option<NumberState> {
        use NumberState as D;
        Some(match (self, byte) {
            (D::Minus, b'0') => D::Zero,
            (D::Minus | D::Integer, b'0'..=b'9') => D::Integer,
            (D::Zero | D::Integer, b'.') => D::Point,
            (D::Point | D::Fraction, b'0'..=b'9') => D::Fraction,
            (D::Zero | D::Integer | D::Fraction, b'e' | b'E') => D::E,
            (D::E, b'+' | b'-') => D::ESign,
            (D::E | D::ESign | D::Exponent, b'0'..=b'9') => D::Exponent,
            _ => return None,
        })
    }

    fn may_end(self) -> bool {
        matches!(
            self,
            NumberState::Zero | NumberState::Integer | NumberState::Fraction | NumberState::Exponent
        )
    }
}

/// The value so far. The open container is always the last child of the last child, so no path is stored.
#[derive(Clone, Debug, Default)]
struct PartialValue {
    root: Option<Value>,
    consumed: usize,
    depth: usize,
    state: PartialState,
    carry: SurrogateCarry,
    name: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PartialState {
    #[default]
    Between,
    Name,
    Text,
    Scalar {
        from: usize,
    },
    /// A name has ended; its value is due.
    Named,
}

impl PartialValue {
    /// Takes text that the checker has accepted, from where it stopped last time.
    fn advance(&mut self, text: &str) {
        let bytes = text.as_bytes();
        while let Some(&byte) = bytes.get(self.consumed) {
            let at = self.consumed;
            match self.state {
                PartialState::Name | PartialState::Text => {
                    let Some((run, ended)) = string_run(&text[at..]) else { return };
                    let piece = decode_string(&text[at..at + run], &mut self.carry).into_owned();
                    self.append(&piece);
                    self.consumed += run;
                    if ended {
                        if let Some(lone) = self.carry.finish() {
                            self.append(lone.encode_utf8(&mut [0; 4]));
                        }
                        self.state = if self.state == PartialState::Name {
                            PartialState::Named
                        } else {
                            PartialState::Between
                        };
                        self.consumed += 1;
                    } else if run == 0 {
                        return;
                    }
                    continue;
                }
                PartialState::Scalar { from } => {
                    if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'+' | b'-') {
                        self.consumed += 1;
                    } else {
                        self.state = PartialState::Between;
                        self.insert(scalar(&text[from..at]));
                    }
                    continue;
                }
                PartialState::Between | PartialState::Named => {}
            }
            match byte {
                b'{' | b'[' => {
                    let empty =
                        if byte == b'{' { Value::Object(Map::new()) } else { Value::Array(Vec::new()) };
                    self.insert(empty);
                    self.depth += 1;
                    self.state = PartialState::Between;
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                b'"' if self.state == PartialState::Between
                    && matches!(self.container(), Some(Value::Object(_))) =>
                {
                    self.name.clear();
                    self.state = PartialState::Name;
                }
                b'"' => {
                    self.insert(Value::String(String::new()));
                    self.state = PartialState::Text;
                }
                b':' | b',' | b' ' | b'\n' | b'\t' | b'\r' => {}
                _ => self.state = PartialState::Scalar { from: at },
            }
            self.consumed += 1;
        }
    }

    /// The innermost open container.
    fn container(&mut self) -> Option<&mut Value> {
        last_child(self.root.as_mut(), self.depth.checked_sub(1)?)
    }

    fn insert(&mut self, value: Value) {
        if self.depth == 0 {
            self.root = Some(value);
            return;
        }
        let name = std::mem::take(&mut self.name);
        match self.container() {
            Some(Value::Object(members)) => {
                // Duplicate keys: the last wins, and must be the last child.
                members.shift_remove(&name);
                members.insert(name, value);
            }
            Some(Value::Array(items)) => items.push(value),
            _ => {}
        }
        self.state = PartialState::Between;
    }

    fn append(&mut self, piece: &str) {
        if self.state == PartialState::Name {
            self.name.push_str(piece);
        } else if let Some(Value::String(text)) = last_child(self.root.as_mut(), self.depth) {
            text.push_str(piece);
        }
    }
}

fn last_child(root: Option<&mut Value>, depth: usize) -> Option<&mut Value> {
    let mut value = root?;
    for _ in 0..depth {
        value = match value {
            Value::Object(members) => members.values_mut().next_back()?,
            Value::Array(items) => items.last_mut()?,
            _ => return None,
        };
    }
    Some(value)
}

/// Length of the part of a string's body that can be decoded now, and true if its closing quote follows. `None`: an
/// escape is cut at the very beginning.
fn string_run(text: &str) -> Option<(usize, bool)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', &bytes[at..]).unwrap_or(bytes.len() - at);
        match bytes.get(at) {
            None => return Some((at, false)),
            Some(b'"') => return Some((at, true)),
            Some(_) => {
                let len = if bytes.get(at + 1) == Some(&b'u') { 6 } else { 2 };
                if at + len > bytes.len() {
                    return (at > 0).then_some((at, false));
                }
                at += len;
            }
        }
    }
}

fn scalar(text: &str) -> Value {
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" => Value::Null,
        _ => number(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::JsonRef;

    fn read(fragments: &[&str]) -> ArgumentsReader {
        let mut reader = ArgumentsReader::default();
        for fragment in fragments {
            reader.push(fragment);
        }
        reader
    }

    #[test]
    fn reader_detects_the_end_of_the_top_level_value() {
        let mut reader = ArgumentsReader::default();
        for (fragment, closed) in [
            ("{\"a", false),
            ("\":\"}\\", false),
            ("\"\"", false),
            (",\"b\":[{}]", false),
            ("}", true),
            (" \n", true),
        ] {
            reader.push(fragment);
            assert_eq!(reader.is_closed(), closed, "after {:?}", reader.text());
        }
        assert!(reader.check_complete().is_ok());
        reader.push("x");
        assert_eq!(reader.error().map(|error| error.message), Some("text after the document"));
        assert_eq!(reader.closed_len(), Some(reader.text().len() - 3));
    }

    #[test]
    fn top_level_number_is_complete_but_never_closed() {
        let reader = read(&["4", "2"]);
        assert!(!reader.is_closed());
        assert!(reader.check_complete().is_ok());
        assert!(read(&["-"]).check_complete().is_err());
        assert!(read(&["01"]).error().is_some());
    }

    #[test]
    fn partial_value_is_readable_at_any_cut() {
        let text =
            r#"{"a":"x\u4f60\ud83d\ude00\"","n":[1,-2.5e3,{"t":true,"z":null}],"a":"again","e":{},"l":[]}"#;
        let whole = JsonRef::parse(text).unwrap().to_value();
        for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            let mut reader = ArgumentsReader::default();
            let mut seen = Vec::new();
            for piece in [&text[..cut], &text[cut..]] {
                reader.push(piece);
                seen.push(reader.partial().cloned());
            }
            assert_eq!(seen[1].as_ref(), Some(&whole), "cut at {cut}");
        }
        let mut reader = read(&[r#"{"city":"Par"#]);
        assert_eq!(reader.partial(), Some(&serde_json::json!({"city": "Par"})));
        reader.push("is\\");
        assert_eq!(reader.partial(), Some(&serde_json::json!({"city": "Paris"})));
        reader.push("n\",\"days\":[1,2");
        assert_eq!(reader.partial(), Some(&serde_json::json!({"city": "Paris\n", "days": [1]})));
    }

    #[test]
    fn nesting_is_bounded() {
        let reader = read(&["[".repeat(ARGUMENTS_DEPTH_MAX + 1).as_str()]);
        assert_eq!(reader.error().map(|error| error.message), Some("nested too deeply"));
        assert!(read(&["[".repeat(ARGUMENTS_DEPTH_MAX).as_str()]).error().is_none());
    }
}
