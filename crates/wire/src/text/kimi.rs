//! Kimi K2: `<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{…}
//! <|tool_call_end|><|tool_calls_section_end|>`. The id holds the name. Src: vllm-project/vllm#31207,
//! kekzl/imp#1719.

use super::cursor::Cursor;
use super::found::Found;

pub(super) fn read<'t>(cursor: &mut Cursor<'t>) -> Vec<Found<'t>> {
    let start = cursor.at();
    let _ = cursor.eat_marker("<|tool_calls_section_begin|>");
    let mut found = Vec::new();
    let mut end = start;
    while let Some(call) = call(cursor) {
        found.push(call);
        end = cursor.at();
    }
    cursor.go(end);
    if !found.is_empty() {
        cursor.space();
        if !cursor.eat_marker("<|tool_calls_section_end|>") {
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
    cursor.space();
    let id = cursor.name()?;
    cursor.space();
    if !cursor.eat_marker("<|tool_call_argument_begin|>") {
        return None;
    }
    cursor.space();
    let arguments = cursor.object()?;
    cursor.space();
    let closed = cursor.eat_marker("<|tool_call_end|>") || cursor.is_at_end();
    let name = name_in(id).filter(|_| closed)?;
    Some(Found { id: Some(id.into()), ..Found::with_object(name, &arguments) })
}

/// `functions.f:0` names `f`; the prefix and the number may each be missing.
fn name_in(id: &str) -> Option<&str> {
    let name = id.strip_prefix("functions.").unwrap_or(id);
    let name = match name.rsplit_once(':') {
        Some((name, number)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
            name
        }
        _ => name,
    };
    (!name.is_empty()).then_some(name)
}
