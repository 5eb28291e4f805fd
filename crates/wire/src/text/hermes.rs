//! Hermes and Qwen 2.5/3: `<tool_call>{"name": "f", "arguments": {…}}</tool_call>`.
//!
//! The JSON may also be an array of calls (Granite 3 on some servers). The closing tag may be missing at the very end
//! of the text, where servers cut it off as a stop string; the JSON is complete or it is no call.
//! Src: vllm-project/vllm#17109, sgl-project/sglang#35736.

use super::cursor::Cursor;
use super::found::Found;

pub(super) fn read<'t>(cursor: &mut Cursor<'t>) -> Vec<Found<'t>> {
    if !cursor.eat("<tool_call>") {
        return Vec::new();
    }
    let resume = cursor.at();
    cursor.space();
    if let Some(json) = cursor.json() {
        cursor.space();
        if cursor.eat("</tool_call>") || cursor.is_at_end() {
            let found = Found::described_by(&json);
            if !found.is_empty() {
                return found;
            }
        }
    }
    cursor.go(resume);
    Vec::new()
}
