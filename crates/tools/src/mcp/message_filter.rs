//! A message of a server before the SDK reads it.
//!
//! The SDK throws away what nests deeper than its parser goes, so that nobody learns which answer it was, and takes the
//! text `"5"` for our number 5. Both are decided here, on the bytes, whichever way they came.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// Limit of nesting in the JSON of a message. The parser after it stops at 128, and gives up the whole message.
pub const MESSAGE_DEPTH_MAX: usize = 100;

/// JSON-RPC code of the error that stands for a reply which cannot be read: the server has answered, and nobody knows what.
/// Outside the range that JSON-RPC reserves for itself and for servers.
pub(crate) const UNREADABLE_REPLY: i32 = -31_077;

/// Result of filtering a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FilteredMessage {
    Unchanged,
    Replaced(Vec<u8>),
    Dropped,
}

/// Looks at one whole message.
pub(crate) fn filter_message(message: &[u8]) -> FilteredMessage {
    match truncate_below(message, MESSAGE_DEPTH_MAX) {
        Some(cut) => filter_deep_message(&cut),
        None if has_string_id(message) => FilteredMessage::Dropped,
        None => FilteredMessage::Unchanged,
    }
}

/// In a list of tools the deep ones are reported by what is left of them, and the others are as they were. Any other reply
/// would be a different one without its depths, so that its call fails instead.
fn filter_deep_message(cut: &[u8]) -> FilteredMessage {
    let Ok(message) = serde_json::from_slice::<Value>(cut) else { return FilteredMessage::Dropped };
    if message.pointer("/result/tools").is_some_and(Value::is_array) {
        return FilteredMessage::Replaced(cut.to_vec());
    }
    let is_reply = message.get("result").is_some() || message.get("error").is_some();
    match message.get("id").filter(|id| is_reply && id.is_number()) {
        None => FilteredMessage::Dropped,
        Some(id) => {
            let why = format!("the reply nests deeper than {MESSAGE_DEPTH_MAX} levels");
            let error =
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": UNREADABLE_REPLY, "message": why}});
            FilteredMessage::Replaced(error.to_string().into_bytes())
        }
    }
}

/// Ids of ours are numbers: a reply to a text is a reply to nobody.
fn has_string_id(message: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct MessageHead {
        id: Option<Value>,
        method: Option<IgnoredAny>,
    }
    // Reading all of every message twice is spared where nothing looks like it.
    let mut ids = message.windows(4).enumerate().filter(|(_, four)| four == b"\"id\"");
    let may_match = ids.any(|(offset, _)| {
        let mut rest = message[offset + 4..].iter().filter(|byte| !byte.is_ascii_whitespace());
        rest.next() == Some(&b':') && rest.next() == Some(&b'"')
    });
    may_match
        && serde_json::from_slice::<MessageHead>(message)
            .is_ok_and(|head| head.method.is_none() && head.id.is_some_and(|id| id.is_string()))
}

/// Nesting depth of the JSON. Does not recurse, whatever it is given.
pub(crate) fn depth(json: &[u8]) -> usize {
    let (mut nesting, mut deepest) = (NestingTracker::default(), 0);
    for byte in json {
        nesting.push(*byte);
        deepest = deepest.max(nesting.depth);
    }
    deepest
}

/// The same with `null` for everything that nests deeper; `None` = nothing does.
fn truncate_below(json: &[u8], depth_max: usize) -> Option<Vec<u8>> {
    if depth(json) <= depth_max {
        return None;
    }
    let (mut nesting, mut cut) = (NestingTracker::default(), Vec::with_capacity(json.len()));
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
struct NestingTracker {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl NestingTracker {
    fn push(&mut self, byte: u8) {
        if self.in_string {
            let ends = byte == b'"' && !self.is_escaped;
            self.is_escaped = byte == b'\\' && !self.is_escaped;
            self.in_string = !ends;
            return;
        }
        match byte {
            b'"' => self.in_string = true,
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

    #[test]
    fn the_deep_tool_of_a_list_is_cut_and_its_neighbors_stay() {
        let good = r#"{"name":"good","inputSchema":{"type":"object"}}"#;
        let list = |schema: &str| {
            format!(r#"{{"id":1,"result":{{"tools":[{good},{{"name":"deep","inputSchema":{schema}}}]}}}}"#)
        };
        // The schema begins on the fifth level.
        assert_eq!(
            filter_message(list(&nested(MESSAGE_DEPTH_MAX - 4)).as_bytes()),
            FilteredMessage::Unchanged
        );
        let FilteredMessage::Replaced(cut) = filter_message(list(&nested(100_000)).as_bytes()) else {
            panic!("not cut")
        };
        assert_eq!(depth(&cut), MESSAGE_DEPTH_MAX);
        let message: Value = serde_json::from_slice(&cut).unwrap();
        assert_eq!(message["result"]["tools"][0], serde_json::from_str::<Value>(good).unwrap());
        assert_eq!(message["result"]["tools"][1]["name"], "deep");
    }

    #[test]
    fn any_other_deep_reply_fails_its_call_and_what_nobody_waits_for_is_dropped() {
        let deep = nested(400);
        let reply = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"structuredContent":{deep}}}}}"#);
        let FilteredMessage::Replaced(error) = filter_message(reply.as_bytes()) else { panic!("it passed") };
        let error: Value = serde_json::from_slice(&error).unwrap();
        assert_eq!(
            (error["id"].as_u64(), error["error"]["code"].as_i64()),
            (Some(7), Some(i64::from(UNREADABLE_REPLY)))
        );
        assert_eq!(error["error"]["message"], "the reply nests deeper than 100 levels");
        let notice = format!(r#"{{"method":"notifications/message","params":{deep}}}"#);
        assert_eq!(filter_message(notice.as_bytes()), FilteredMessage::Dropped);
        assert_eq!(filter_message("[".repeat(1_000_000).as_bytes()), FilteredMessage::Dropped);
    }

    #[test]
    fn a_reply_to_a_text_is_dropped_and_requests_may_have_any_id() {
        for (message, expected) in [
            (r#"{"jsonrpc":"2.0","id":"5","result":{}}"#, FilteredMessage::Dropped),
            (r#"{"error":{"code":1,"message":"no"},"id" : "5"}"#, FilteredMessage::Dropped),
            (r#"{"jsonrpc":"2.0","id":5,"result":{"id":"5"}}"#, FilteredMessage::Unchanged),
            (r#"{"id":"ask-0","method":"elicitation/create","params":{}}"#, FilteredMessage::Unchanged),
            ("not \"id\":\"json", FilteredMessage::Unchanged),
        ] {
            assert_eq!(filter_message(message.as_bytes()), expected, "{message}");
        }
    }
}
