//! Hermes and Qwen 2.5/3: `<tool_call>{"name": "f", "arguments": {…}}</tool_call>`.
//!
//! The JSON may also be an array of calls (Granite 3 on some servers). The closing tag may be missing at the very end
//! of the text, where servers cut it off as a stop string; the JSON is complete or it is no call.
//! Src: vllm-project/vllm#17109, sgl-project/sglang#35736.

use super::call_match::CallMatch;
use super::cursor::TextCursor;

pub(super) fn read<'t>(cursor: &mut TextCursor<'t>) -> Vec<CallMatch<'t>> {
    if !cursor.eat("<tool_call>") {
        return Vec::new();
    }
    let resume = cursor.position();
    cursor.skip_whitespace();
    if let Some(json) = cursor.json() {
        cursor.skip_whitespace();
        if cursor.eat("</tool_call>") || cursor.is_at_end() {
            let matches = CallMatch::from_json(&json);
            if !matches.is_empty() {
                return matches;
            }
        }
    }
    cursor.seek(resume);
    Vec::new()
}
