//! Kimi K2: `<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{…}
//! <|tool_call_end|><|tool_calls_section_end|>`. The id holds the name. Src: vllm-project/vllm#31207,
//! kekzl/imp#1719.

use super::call_match::CallMatch;
use super::cursor::TextCursor;

pub(super) fn read<'t>(cursor: &mut TextCursor<'t>) -> Vec<CallMatch<'t>> {
    let start = cursor.position();
    let _ = cursor.eat_marker("<|tool_calls_section_begin|>");
    let mut matches = Vec::new();
    let mut end = start;
    while let Some(call) = call(cursor) {
        matches.push(call);
        end = cursor.position();
    }
    cursor.seek(end);
    if !matches.is_empty() {
        cursor.skip_whitespace();
        if !cursor.eat_marker("<|tool_calls_section_end|>") {
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
    cursor.skip_whitespace();
    let id = cursor.name()?;
    cursor.skip_whitespace();
    if !cursor.eat_marker("<|tool_call_argument_begin|>") {
        return None;
    }
    cursor.skip_whitespace();
    let arguments = cursor.object()?;
    cursor.skip_whitespace();
    let closed = cursor.eat_marker("<|tool_call_end|>") || cursor.is_at_end();
    let name = name_in(id).filter(|_| closed)?;
    Some(CallMatch { id: Some(id.into()), ..CallMatch::with_object(name, &arguments) })
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
