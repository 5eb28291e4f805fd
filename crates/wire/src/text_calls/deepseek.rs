//! DeepSeek V3 and R1: `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f`, then the arguments in a
//! `` ```json `` fence, then `<｜tool▁call▁end｜>`; V3.1: `<｜tool▁call▁begin｜>f<｜tool▁sep｜>{…}<｜tool▁call▁end｜>`.
//! The section markers around the calls may be missing. Src: vllm-project/vllm#17109, guoqingbao/xinfer#383.

use super::call_match::CallMatch;
use super::cursor::TextCursor;

pub(super) fn read<'t>(cursor: &mut TextCursor<'t>) -> Vec<CallMatch<'t>> {
    let start = cursor.position();
    let _ = cursor.eat_marker("<|tool_calls_begin|>");
    let mut matches = Vec::new();
    let mut end = cursor.position();
    while let Some(call) = call(cursor) {
        matches.push(call);
        end = cursor.position();
    }
    cursor.seek(if matches.is_empty() { start } else { end });
    if !matches.is_empty() {
        cursor.skip_whitespace();
        if !cursor.eat_marker("<|tool_calls_end|>") {
            cursor.seek(end);
        }
    }
    matches
}

fn call<'t>(cursor: &mut TextCursor<'t>) -> Option<CallMatch<'t>> {
    cursor.skip_whitespace();
    if !cursor.eat_marker("<|tool_call_begin|>") {
        return None;
    }
    let first = cursor.name()?;
    if !cursor.eat_marker("<|tool_sep|>") {
        return None;
    }
    cursor.skip_whitespace();
    let (name, arguments) = if cursor.peek() == Some('{') {
        (first, cursor.object()?)
    } else {
        let name = cursor.name()?;
        cursor.skip_whitespace();
        let fenced = cursor.eat("```json") || cursor.eat("```");
        cursor.skip_whitespace();
        let arguments = cursor.object()?;
        cursor.skip_whitespace();
        if fenced && !cursor.eat("```") {
            return None;
        }
        (name, arguments)
    };
    cursor.skip_whitespace();
    (cursor.eat_marker("<|tool_call_end|>") || cursor.is_at_end())
        .then(|| CallMatch::with_object(name, &arguments))
}
