//! gpt-oss (harmony): `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{…}<|call|>`.
//!
//! Also with the recipient before the channel (`<|start|>assistant to=functions.f<|channel|>commentary …`), and with
//! the special tokens stripped by the server: `commentary to=functions.f json{…}`. `<|call|>` is a stop token, so it
//! is mostly missing. Src: vllm-project/vllm#31207, openai/harmony's format documentation.

use super::call_match::CallMatch;
use super::cursor::TextCursor;

/// The marker after the special tokens were stripped.
pub(super) const BARE_MARKER: &str = "commentary to=functions.";

pub(super) fn read<'t>(cursor: &mut TextCursor<'t>) -> Vec<CallMatch<'t>> {
    let start = cursor.position();
    match call(cursor) {
        Some(found) => vec![found],
        None => {
            cursor.seek(start);
            Vec::new()
        }
    }
}

fn call<'t>(cursor: &mut TextCursor<'t>) -> Option<CallMatch<'t>> {
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
    cursor.skip_whitespace();
    let _ = cursor.eat_marker("<|constrain|>");
    cursor.skip_whitespace();
    let _ = cursor.eat("json") || cursor.eat("code");
    cursor.skip_whitespace();
    let _ = cursor.eat_marker("<|message|>");
    cursor.skip_whitespace();
    let found = CallMatch::with_object(name?, &cursor.object()?);
    let _ = cursor.eat_marker("<|call|>");
    Some(found)
}

/// ` to=functions.f`: only these are tools of the client; `browser` and `python` are the model's own.
fn recipient<'t>(cursor: &mut TextCursor<'t>) -> Option<&'t str> {
    let start = cursor.position();
    cursor.skip_whitespace();
    if cursor.eat("to=functions.")
        && let Some(name) = cursor.name()
    {
        return Some(name);
    }
    cursor.seek(start);
    None
}
