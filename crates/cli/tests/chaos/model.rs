//! A model that answers each turn the same way, however often it is called, and tools that leave a record
//! outside.

use serde_json::json;
use throughline_testkit::{ModelScript, ParsedRequest, ReplyPace};

/// The tools, and what they may do: name, effect, whether they may run twice.
pub const TOOLS: [(&str, &str, Again); 4] = [
    ("look", "read", Again::May),
    ("set", "idempotent", Again::May),
    ("write", "write", Again::MustNot),
    ("send", "external", Again::MustNot),
];

/// Permission for a tool to run again after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    May,
    MustNot,
}

/// Text of the last step.
pub const LAST_WORDS: &str = "That was all of it.";

/// Three steps: look, set and write; then send and write once more; then the final text.
pub fn reply(seen: &ParsedRequest) -> ModelScript {
    let turn = seen.user_text().split_whitespace().last().unwrap_or_default().to_owned();
    let call = |script: ModelScript, tool: &str, number: u32| {
        script.call(format!("ledger_{tool}"), json!({ "key": format!("{turn}-{tool}-{number}") }))
    };
    let script = match seen.answered_calls().len() {
        0 => {
            let script =
                ModelScript::new().say("First I look at it, and then I write it down, as one does. ");
            call(call(call(script, "look", 1), "set", 1), "write", 1)
        }
        1..=3 => {
            let script =
                ModelScript::new().say("That went well enough; now it is sent, and noted once more. ");
            call(call(script, "send", 1), "write", 2)
        }
        _ => ModelScript::new().say(LAST_WORDS),
    };
    script.with_pace(ReplyPace { tokens_per_second: Some(60.0), chunk_chars: None, fragment_chars: None })
}
