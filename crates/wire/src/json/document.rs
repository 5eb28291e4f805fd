//! A whole JSON document, borrowed from its text.

use super::arguments::ARGUMENTS_DEPTH_MAX;
use super::string::{SurrogateCarry, decode_string};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::fmt;

/// Deepest nesting that is read: that of arguments in a reply. Parts of replies are stored, and read again
/// with a limit.
const DEPTH_MAX: usize = ARGUMENTS_DEPTH_MAX + 8;

/// A JSON value with the text it came from. Strict grammar; numbers keep their text, strings their halves of
/// surrogate pairs until they are read.
///
/// ```
/// use throughline_wire::json::JsonRef;
///
/// let json = JsonRef::parse(r#"{"id": 12345678901234567890123, "choices": [{"index": 0}]}"#)?;
/// assert_eq!(json.get("id").map(|id| id.raw()), Some("12345678901234567890123"), "not rounded");
/// assert_eq!(json.get("choices").map(|choices| choices.items().len()), Some(1));
/// # Ok::<(), throughline_wire::json::JsonError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct JsonRef<'a> {
    raw: &'a str,
    node: JsonNode<'a>,
}

#[derive(Clone, Debug, PartialEq)]
enum JsonNode<'a> {
    Null,
    Bool(bool),
    Number,
    String,
    Array(Vec<JsonRef<'a>>),
    Object(Vec<(Cow<'a, str>, JsonRef<'a>)>),
}

/// Reason why a text is not a JSON document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// Byte offset.
    pub offset: usize,
    /// Description of the error.
    pub message: &'static str,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.message, self.offset)
    }
}

impl<'a> JsonRef<'a> {
    /// Reads a document with optional white space around it.
    pub fn parse(text: &'a str) -> Result<Self, JsonError> {
        let mut parser = JsonParser { text, at: 0 };
        parser.skip_whitespace();
        let json = parser.value(0)?;
        parser.skip_whitespace();
        if parser.at < text.len() { Err(parser.error("text after the document")) } else { Ok(json) }
    }

    /// The text of this value, exactly.
    pub fn raw(&self) -> &'a str {
        self.raw
    }

    /// A member of an object: the last of that name, and none if it is `null`, since servers mean the same by both.
    pub fn get(&self, key: &str) -> Option<&JsonRef<'a>> {
        match &self.node {
            JsonNode::Object(members) => members
                .iter()
                .rev()
                .find(|(name, _)| name == key)
                .map(|(_, value)| value)
                .filter(|v| !v.is_null()),
            _ => None,
        }
    }

    /// A path of members.
    pub fn path(&self, keys: &[&str]) -> Option<&JsonRef<'a>> {
        keys.iter().try_fold(self, |json, key| json.get(key))
    }

    /// Elements, empty if this is no array.
    pub fn items(&self) -> &[JsonRef<'a>] {
        match &self.node {
            JsonNode::Array(items) => items,
            _ => &[],
        }
    }

    /// Members in order, empty if this is no object.
    pub fn members(&self) -> &[(Cow<'a, str>, JsonRef<'a>)] {
        match &self.node {
            JsonNode::Object(members) => members,
            _ => &[],
        }
    }

    /// A string, halves of surrogate pairs replaced by U+FFFD.
    pub fn as_str(&self) -> Option<Cow<'a, str>> {
        let mut carry = SurrogateCarry::default();
        let text = self.as_text(&mut carry)?;
        Some(match carry.finish() {
            None => text,
            Some(replacement) => Cow::Owned(format!("{text}{replacement}")),
        })
    }

    /// A string that continues a text: a half pair at its end waits in `carry` for the next fragment.
    pub fn as_text(&self, carry: &mut SurrogateCarry) -> Option<Cow<'a, str>> {
        matches!(self.node, JsonNode::String).then(|| decode_string(&self.raw[1..self.raw.len() - 1], carry))
    }

    /// Raw body of the string between its quotes, with its escapes.
    pub fn string_body(&self) -> Option<&'a str> {
        matches!(self.node, JsonNode::String).then(|| &self.raw[1..self.raw.len() - 1])
    }

    /// A member that is a string with something in it: `""`, `null` and absent are the same thing.
    pub fn nonempty(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key)?.as_str().filter(|text| !text.is_empty())
    }

    /// A member that is a string or a number, as text; ids come as both.
    pub fn scalar(&self, key: &str) -> Option<Cow<'a, str>> {
        let value = self.get(key)?;
        match value.node {
            JsonNode::Number => Some(Cow::Borrowed(value.raw)),
            _ => value.as_str().filter(|text| !text.is_empty()),
        }
    }

    /// An integer; `1.0` and `"1"` count, since both are sent.
    pub fn as_i64(&self) -> Option<i64> {
        let text = match self.node {
            JsonNode::Number => Cow::Borrowed(self.raw),
            JsonNode::String => self.as_str()?,
            _ => return None,
        };
        text.trim().parse().ok().or_else(|| {
            let float: f64 = text.trim().parse().ok()?;
            (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i64)
        })
    }

    /// An integer that is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_i64().and_then(|number| u64::try_from(number).ok())
    }

    /// Value of `true` or `false`; `None` for anything else.
    pub fn as_bool(&self) -> Option<bool> {
        match self.node {
            JsonNode::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// True for `null`.
    pub fn is_null(&self) -> bool {
        matches!(self.node, JsonNode::Null)
    }
    /// True for a string.
    pub fn is_string(&self) -> bool {
        matches!(self.node, JsonNode::String)
    }
    /// True for an object.
    pub fn is_object(&self) -> bool {
        matches!(self.node, JsonNode::Object(_))
    }
    /// True for an array.
    pub fn is_array(&self) -> bool {
        matches!(self.node, JsonNode::Array(_))
    }
    /// True for a number.
    pub fn is_number(&self) -> bool {
        matches!(self.node, JsonNode::Number)
    }

    /// The document as a `serde_json` value. Integers beyond 64 bits are rounded; duplicate keys: the last
    /// wins.
    pub fn to_value(&self) -> Value {
        match &self.node {
            JsonNode::Null => Value::Null,
            JsonNode::Bool(value) => Value::Bool(*value),
            JsonNode::Number => number(self.raw),
            JsonNode::String => Value::String(self.as_str().unwrap_or_default().into_owned()),
            JsonNode::Array(items) => Value::Array(items.iter().map(JsonRef::to_value).collect()),
            JsonNode::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(key, value)| (key.clone().into_owned(), value.to_value()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }
}

pub(super) fn number(raw: &str) -> Value {
    serde_json::from_str::<Number>(raw).map_or_else(
        // Beyond what a double holds (`1e999`): the nearest finite one.
        |_| Value::from(if raw.starts_with('-') { f64::MIN } else { f64::MAX }),
        Value::Number,
    )
}

struct JsonParser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> JsonParser<'a> {
    fn error(&self, what: &'static str) -> JsonError {
        JsonError { offset: self.at, message: what }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_whitespace(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<JsonRef<'a>, JsonError> {
        if depth > DEPTH_MAX {
            return Err(self.error("nested too deeply"));
        }
        let start = self.at;
        let node = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => {
                self.string()?;
                JsonNode::String
            }
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true", JsonNode::Bool(true))?,
            Some(b'f') => self.word("false", JsonNode::Bool(false))?,
            Some(b'n') => self.word("null", JsonNode::Null)?,
            Some(_) => return Err(self.error("not a JSON value")),
            None => return Err(self.error("the text ends where a value is expected")),
        };
        Ok(JsonRef { raw: &self.text[start..self.at], node })
    }

    fn object(&mut self, depth: usize) -> Result<JsonNode<'a>, JsonError> {
        self.at += 1;
        let mut members = Vec::new();
        self.skip_whitespace();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(JsonNode::Object(members));
        }
        loop {
            self.skip_whitespace();
            if self.peek() != Some(b'"') {
                return Err(self.error("a member name in quotes was expected"));
            }
            let body = self.string()?;
            let mut carry = SurrogateCarry::default();
            let mut key = decode_string(body, &mut carry);
            if let Some(replacement) = carry.finish() {
                key.to_mut().push(replacement);
            }
            self.skip_whitespace();
            if self.peek() != Some(b':') {
                return Err(self.error("`:` was expected"));
            }
            self.at += 1;
            self.skip_whitespace();
            let value = self.value(depth + 1)?;
            members.push((key, value));
            self.skip_whitespace();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(JsonNode::Object(members));
                }
                _ => return Err(self.error("`,` or `}` was expected")),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<JsonNode<'a>, JsonError> {
        self.at += 1;
        let mut items = Vec::new();
        self.skip_whitespace();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(JsonNode::Array(items));
        }
        loop {
            self.skip_whitespace();
            items.push(self.value(depth + 1)?);
            self.skip_whitespace();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(JsonNode::Array(items));
                }
                _ => return Err(self.error("`,` or `]` was expected")),
            }
        }
    }

    /// Returns the body between the quotes.
    fn string(&mut self) -> Result<&'a str, JsonError> {
        self.at += 1;
        let start = self.at;
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(&self.text[start..self.at - 1]);
                }
                Some(b'\\') => match bytes.get(self.at + 1) {
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
                    Some(b'u')
                        if bytes
                            .get(self.at + 2..self.at + 6)
                            .is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) =>
                    {
                        self.at += 6;
                    }
                    _ => return Err(self.error("an invalid escape sequence")),
                },
                Some(0..0x20) => return Err(self.error("a raw control character in a string")),
                Some(_) => self.at += 1,
                None => return Err(self.error("the text ends inside a string")),
            }
        }
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Result<JsonNode<'a>, JsonError> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else if self.digits() == 0 {
            return Err(self.error("a digit was expected"));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return Err(self.error("a digit was expected"));
            }
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(self.error("a digit was expected"));
            }
        }
        Ok(JsonNode::Number)
    }

    fn word(&mut self, word: &str, node: JsonNode<'a>) -> Result<JsonNode<'a>, JsonError> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(node)
        } else {
            Err(self.error("not a JSON value"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_leniently() {
        let json =
            JsonRef::parse(r#" {"a":null,"b":"","c":"x","i":"7","n":7.0,"a2":[1,{"k":true}],"c":"y"} "#)
                .unwrap();
        assert!(json.get("a").is_none());
        assert_eq!(json.nonempty("b"), None);
        assert_eq!(json.nonempty("c").as_deref(), Some("y"));
        assert_eq!(json.get("i").and_then(JsonRef::as_i64), Some(7));
        assert_eq!(json.get("n").and_then(JsonRef::as_u64), Some(7));
        assert_eq!(json.get("a2").unwrap().raw(), r#"[1,{"k":true}]"#);
        assert_eq!(json.scalar("n").as_deref(), Some("7.0"));
    }

    #[test]
    fn lone_surrogates_do_not_reject_the_event() {
        let json = JsonRef::parse(r#"{"content":"\ud83d"}"#).unwrap();
        assert_eq!(json.nonempty("content").as_deref(), Some("\u{FFFD}"));
        let mut carry = SurrogateCarry::default();
        assert_eq!(json.get("content").unwrap().as_text(&mut carry).as_deref(), Some(""));
        assert!(carry.is_waiting());
    }
}
