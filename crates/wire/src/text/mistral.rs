//! Mistral: `[TOOL_CALLS][{"name": "f", "arguments": {…}}, …]`, and since tokenizer v11
//! `[TOOL_CALLS]f[ARGS]{…}` once for each call, with `[CALL_ID]id` before `[ARGS]` in between versions, and without
//! `[ARGS]` where the server drops special tokens it does not know.
//! Src: vllm-project/vllm#38579, mistral-common's tokenizer documentation.

use super::cursor::Cursor;
use super::found::Found;

/// What every block begins with.
pub(super) const MARKER: &str = "[TOOL_CALLS]";

pub(super) fn read<'t>(cursor: &mut Cursor<'t>) -> Vec<Found<'t>> {
    if !cursor.eat(MARKER) {
        return Vec::new();
    }
    let resume = cursor.at();
    cursor.space();
    let found = match cursor.peek() {
        Some('[' | '{') => cursor.json().map(|json| Found::described_by(&json)).unwrap_or_default(),
        _ => named(cursor).into_iter().collect(),
    };
    if found.is_empty() {
        cursor.go(resume);
    }
    found
}

fn named<'t>(cursor: &mut Cursor<'t>) -> Option<Found<'t>> {
    let name = cursor.name()?;
    cursor.space();
    let id = if cursor.eat("[CALL_ID]") { Some(cursor.name()?) } else { None };
    let _ = cursor.eat("[ARGS]");
    cursor.space();
    let arguments = cursor.object()?;
    Some(Found { id: id.map(Into::into), ..Found::with_object(name, &arguments) })
}
