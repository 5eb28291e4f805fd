//! gpt-oss (harmony): `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{…}<|call|>`.
//!
//! Also with the recipient before the channel (`<|start|>assistant to=functions.f<|channel|>commentary …`), and with
//! the special tokens stripped by the server: `commentary to=functions.f json{…}`. `<|call|>` is a stop token, so it
//! is mostly missing. Src: vllm-project/vllm#31207, openai/harmony's format documentation.

use super::cursor::Cursor;
use super::found::Found;

/// What is left of the marker where the special tokens were stripped.
pub(super) const BARE_MARKER: &str = "commentary to=functions.";

pub(super) fn read<'t>(cursor: &mut Cursor<'t>) -> Vec<Found<'t>> {
    let start = cursor.at();
    match call(cursor) {
        Some(found) => vec![found],
        None => {
            cursor.go(start);
            Vec::new()
        }
    }
}

fn call<'t>(cursor: &mut Cursor<'t>) -> Option<Found<'t>> {
    let started = cursor.eat_marker("<|start|>");
    if started && !cursor.eat("assistant") {
        return None;
    }
    let mut name = recipient(cursor);
    let on_channel = cursor.eat_marker("<|channel|>");
    if !on_channel && !cursor.rest().starts_with(BARE_MARKER) {
        return None;
    }
    if !(cursor.eat("commentary") || cursor.eat("analysis")) {
        return None;
    }
    name = name.or_else(|| recipient(cursor));
    cursor.space();
    let _ = cursor.eat_marker("<|constrain|>");
    cursor.space();
    let _ = cursor.eat("json") || cursor.eat("code");
    cursor.space();
    let _ = cursor.eat_marker("<|message|>");
    cursor.space();
    let found = Found::with_object(name?, &cursor.object()?);
    let _ = cursor.eat_marker("<|call|>");
    Some(found)
}

/// ` to=functions.f`: only these are tools of the client; `browser` and `python` are the model's own.
fn recipient<'t>(cursor: &mut Cursor<'t>) -> Option<&'t str> {
    let start = cursor.at();
    cursor.space();
    if cursor.eat("to=functions.")
        && let Some(name) = cursor.name()
    {
        return Some(name);
    }
    cursor.go(start);
    None
}
