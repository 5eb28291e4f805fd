//! Granite 3 and Phi-4-mini: `<|tool_call|>[{"name": "f", "arguments": {…}}]`, Phi with `<|/tool_call|>` behind it.
//! Src: vllm-project/vllm#53227.

use super::cursor::Cursor;
use super::found::Found;

pub(super) fn read<'t>(cursor: &mut Cursor<'t>) -> Vec<Found<'t>> {
    if !cursor.eat_marker("<|tool_call|>") {
        return Vec::new();
    }
    let resume = cursor.at();
    cursor.space();
    let found = cursor.json().map(|json| Found::described_by(&json)).unwrap_or_default();
    if found.is_empty() {
        cursor.go(resume);
        return found;
    }
    let end = cursor.at();
    cursor.space();
    if !cursor.eat_marker("<|/tool_call|>") {
        cursor.go(end);
    }
    found
}
