//! Granite 3 and Phi-4-mini: `<|tool_call|>[{"name": "f", "arguments": {…}}]`, Phi with `<|/tool_call|>` after it.
//! Src: vllm-project/vllm#53227.

use super::call_match::CallMatch;
use super::cursor::TextCursor;

pub(super) fn read<'t>(cursor: &mut TextCursor<'t>) -> Vec<CallMatch<'t>> {
    if !cursor.eat_marker("<|tool_call|>") {
        return Vec::new();
    }
    let resume = cursor.position();
    cursor.skip_whitespace();
    let matches = cursor.json().map(|json| CallMatch::from_json(&json)).unwrap_or_default();
    if matches.is_empty() {
        cursor.seek(resume);
        return matches;
    }
    let end = cursor.position();
    cursor.skip_whitespace();
    if !cursor.eat_marker("<|/tool_call|>") {
        cursor.seek(end);
    }
    matches
}
