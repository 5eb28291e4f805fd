//! DeepSeek V3 and R1: `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f`, then the arguments in a
//! `` ```json `` fence, then `<｜tool▁call▁end｜>`; V3.1: `<｜tool▁call▁begin｜>f<｜tool▁sep｜>{…}<｜tool▁call▁end｜>`.
//! The section markers around the calls may be missing. Src: vllm-project/vllm#17109, guoqingbao/xinfer#383.

use super::cursor::Cursor;
use super::found::Found;

pub(super) fn read<'t>(cursor: &mut Cursor<'t>) -> Vec<Found<'t>> {
    let start = cursor.at();
    let _ = cursor.eat_marker("<|tool_calls_begin|>");
    let mut found = Vec::new();
    let mut end = cursor.at();
    while let Some(call) = call(cursor) {
        found.push(call);
        end = cursor.at();
    }
    cursor.go(if found.is_empty() { start } else { end });
    if !found.is_empty() {
        cursor.space();
        if !cursor.eat_marker("<|tool_calls_end|>") {
            cursor.go(end);
        }
    }
    found
}

fn call<'t>(cursor: &mut Cursor<'t>) -> Option<Found<'t>> {
    cursor.space();
    if !cursor.eat_marker("<|tool_call_begin|>") {
        return None;
    }
    let first = cursor.name()?;
    if !cursor.eat_marker("<|tool_sep|>") {
        return None;
    }
    cursor.space();
    let (name, arguments) = if cursor.peek() == Some('{') {
        (first, cursor.object()?)
    } else {
        let name = cursor.name()?;
        cursor.space();
        let fenced = cursor.eat("```json") || cursor.eat("```");
        cursor.space();
        let arguments = cursor.object()?;
        cursor.space();
        if fenced && !cursor.eat("```") {
            return None;
        }
        (name, arguments)
    };
    cursor.space();
    (cursor.eat_marker("<|tool_call_end|>") || cursor.is_at_end())
        .then(|| Found::with_object(name, &arguments))
}
