//! Mistral: `[TOOL_CALLS][{"name": "f", "arguments": {…}}, …]`, and since tokenizer v11
//! `[TOOL_CALLS]f[ARGS]{…}` once for each call, with `[CALL_ID]id` before `[ARGS]` in between versions, and without
//! `[ARGS]` where the server drops special tokens it does not know.
//! Src: vllm-project/vllm#38579, mistral-common's tokenizer documentation.

use super::call_match::CallMatch;
use super::cursor::TextCursor;

/// Marker at the beginning of every block.
pub(super) const MARKER: &str = "[TOOL_CALLS]";

pub(super) fn read<'t>(cursor: &mut TextCursor<'t>) -> Vec<CallMatch<'t>> {
    if !cursor.eat(MARKER) {
        return Vec::new();
    }
    let resume = cursor.position();
    cursor.skip_whitespace();
    let matches = match cursor.peek() {
        Some('[' | '{') => cursor.json().map(|json| CallMatch::from_json(&json)).unwrap_or_default(),
        _ => read_named(cursor).into_iter().collect(),
    };
    if matches.is_empty() {
        cursor.seek(resume);
    }
    matches
}

fn read_named<'t>(cursor: &mut TextCursor<'t>) -> Option<CallMatch<'t>> {
    let name = cursor.name()?;
    cursor.skip_whitespace();
    let id = if cursor.eat("[CALL_ID]") { Some(cursor.name()?) } else { None };
    let _ = cursor.eat("[ARGS]");
    cursor.skip_whitespace();
    let arguments = cursor.object()?;
    Some(CallMatch { id: id.map(Into::into), ..CallMatch::with_object(name, &arguments) })
}
