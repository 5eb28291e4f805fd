//! A message of a server before the SDK reads it.
//!
//! The SDK throws away what nests deeper than its parser goes, so that nobody learns which answer it was, and takes the
//! text `"5"` for our number 5. Both are decided here, on the bytes, whichever way they came.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// How deep the JSON of a message may nest. The parser behind it stops at 128, and gives up the whole message.
pub const MESSAGE_DEPTH_MAX: usize = 100;

/// What becomes of a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    Unchanged,
    Replaced(Vec<u8>),
    Dropped,
}

/// Looks at one whole message.
pub(crate) fn passage(message: &[u8]) -> Passage {
    match cut_below(message, MESSAGE_DEPTH_MAX) {
        Some(cut) => of_deep(&cut),
        None if is_reply_to_a_text(message) => Passage::Dropped,
        None => Passage::Unchanged,
    }
}

/// In a list of tools the deep ones are told by what is left of them, and the others are as they were. Any other reply
/// would be a different one without its depths, so that its call fails instead.
fn of_deep(cut: &[u8]) -> Passage {
    let Ok(message) = serde_json::from_slice::<Value>(cut) else { return Passage::Dropped };
    if message.pointer("/result/tools").is_some_and(Value::is_array) {
        return Passage::Replaced(cut.to_vec());
    }
    let is_reply = message.get("result").is_some() || message.get("error").is_some();
    match message.get("id").filter(|id| is_reply && id.is_number()) {
        None => Passage::Dropped,
        Some(id) => {
            let why = format!("the reply nests deeper than {MESSAGE_DEPTH_MAX} levels");
            let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32_000, "message": why}});
            Passage::Replaced(error.to_string().into_bytes())
        }
    }
}

/// Ids of ours are numbers: a reply to a text is a reply to nobody.
fn is_reply_to_a_text(message: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Head {
        id: Option<Value>,
        method: Option<IgnoredAny>,
    }
    // Reading all of every message twice is spared where nothing looks like it.
    let mut ids = message.windows(4).enumerate().filter(|(_, four)| four == b"\"id\"");
    let looks_like_it = ids.any(|(at, _)| {
        let mut rest = message[at + 4..].iter().filter(|byte| !byte.is_ascii_whitespace());
        rest.next() == Some(&b':') && rest.next() == Some(&b'"')
    });
    looks_like_it
        && serde_json::from_slice::<Head>(message)
            .is_ok_and(|head| head.method.is_none() && head.id.is_some_and(|id| id.is_string()))
}

/// How deep the JSON nests. Does not recurse, whatever it is given.
pub(crate) fn depth(json: &[u8]) -> usize {
    let (mut nesting, mut deepest) = (Nesting::default(), 0);
    for byte in json {
        nesting.push(*byte);
        deepest = deepest.max(nesting.depth);
    }
    deepest
}

/// The same with `null` for everything that nests deeper; `None` = nothing does.
fn cut_below(json: &[u8], depth_max: usize) -> Option<Vec<u8>> {
    if depth(json) <= depth_max {
        return None;
    }
    let (mut nesting, mut cut) = (Nesting::default(), Vec::with_capacity(json.len()));
    for byte in json {
        let before = nesting.depth;
        nesting.push(*byte);
        if before <= depth_max && nesting.depth > depth_max {
            cut.extend_from_slice(b"null");
        } else if before <= depth_max {
            cut.push(*byte);
        }
    }
    Some(cut)
}

/// Where in a JSON text one is.
#[derive(Default)]
struct Nesting {
    depth: usize,
    in_text: bool,
    is_escaped: bool,
}

impl Nesting {
    fn push(&mut self, byte: u8) {
        if self.in_text {
            let ends = byte == b'"' && !self.is_escaped;
            self.is_escaped = byte == b'\\' && !self.is_escaped;
            self.in_text = !ends;
            return;
        }
        match byte {
            b'"' => self.in_text = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> String {
        format!("{}1{}", r#"{"a":["#.repeat(levels / 2), "]}".repeat(levels / 2))
    }

    #[test]
    fn depth_is_counted_outside_texts_and_without_recursion() {
        for (text, expected) in [
            ("1", 0),
            ("{}", 1),
            (r#"{"a":[{"b":2}]}"#, 3),
            (r#"["[[[{\"[[[","\\",[1]]"#, 2),
            ("]]]{", 1),
            (&"[".repeat(1_000_000), 1_000_000),
        ] {
            assert_eq!(depth(text.as_bytes()), expected, "{text:.40}");
        }
    }

    // R: L2
    #[test]
    fn the_deep_tool_of_a_list_is_cut_and_its_neighbours_stay() {
        let good = r#"{"name":"good","inputSchema":{"type":"object"}}"#;
        let list = |schema: &str| {
            format!(r#"{{"id":1,"result":{{"tools":[{good},{{"name":"deep","inputSchema":{schema}}}]}}}}"#)
        };
        // The schema begins on the fifth level.
        assert_eq!(passage(list(&nested(MESSAGE_DEPTH_MAX - 4)).as_bytes()), Passage::Unchanged);
        let Passage::Replaced(cut) = passage(list(&nested(100_000)).as_bytes()) else { panic!("not cut") };
        assert_eq!(depth(&cut), MESSAGE_DEPTH_MAX);
        let message: Value = serde_json::from_slice(&cut).unwrap();
        assert_eq!(message["result"]["tools"][0], serde_json::from_str::<Value>(good).unwrap());
        assert_eq!(message["result"]["tools"][1]["name"], "deep");
    }

    // R: L5
    #[test]
    fn any_other_deep_reply_fails_its_call_and_what_nobody_waits_for_is_dropped() {
        let deep = nested(400);
        let reply = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"structuredContent":{deep}}}}}"#);
        let Passage::Replaced(error) = passage(reply.as_bytes()) else { panic!("it passed") };
        let error: Value = serde_json::from_slice(&error).unwrap();
        assert_eq!((error["id"].as_u64(), error["error"]["code"].as_i64()), (Some(7), Some(-32_000)));
        assert_eq!(error["error"]["message"], "the reply nests deeper than 100 levels");
        let notice = format!(r#"{{"method":"notifications/message","params":{deep}}}"#);
        assert_eq!(passage(notice.as_bytes()), Passage::Dropped);
        assert_eq!(passage("[".repeat(1_000_000).as_bytes()), Passage::Dropped);
    }

    // R: L5
    #[test]
    fn a_reply_to_a_text_is_dropped_and_requests_may_have_any_id() {
        for (message, expected) in [
            (r#"{"jsonrpc":"2.0","id":"5","result":{}}"#, Passage::Dropped),
            (r#"{"error":{"code":1,"message":"no"},"id" : "5"}"#, Passage::Dropped),
            (r#"{"jsonrpc":"2.0","id":5,"result":{"id":"5"}}"#, Passage::Unchanged),
            (r#"{"id":"ask-0","method":"elicitation/create","params":{}}"#, Passage::Unchanged),
            ("not \"id\":\"json", Passage::Unchanged),
        ] {
            assert_eq!(passage(message.as_bytes()), expected, "{message}");
        }
    }
}
