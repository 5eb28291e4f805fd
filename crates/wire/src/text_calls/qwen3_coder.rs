//! Qwen3-Coder: `<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>`.
//!
//! The model often forgets the outer `<tool_call>`, so `<function=f>` alone counts. `</function>` is
//! required: a parameter list that was cut must not run. Values: one line break at each end is layout; see
//! [`ElementValue::Untyped`] for numbers. Source: vllm-project/vllm#28543.

use super::call_match::{CallMatch, ElementValue, trim_layout};
use super::cursor::TextCursor;

pub(super) fn read<'t>(cursor: &mut TextCursor<'t>) -> Vec<CallMatch<'t>> {
    let wrapped = cursor.eat("<tool_call>");
    let mut matches = Vec::new();
    let mut end = cursor.position();
    loop {
        cursor.skip_whitespace();
        match function(cursor) {
            Some(call) => matches.push(call),
            // The cursor stays where the list breaks off: its values are not searched again.
            None if matches.is_empty() => return matches,
            None => break,
        }
        end = cursor.position();
    }
    cursor.seek(end);
    if wrapped {
        cursor.skip_whitespace();
        if !cursor.eat("</tool_call>") {
            cursor.seek(end);
        }
    }
    matches
}

fn function<'t>(cursor: &mut TextCursor<'t>) -> Option<CallMatch<'t>> {
    if !cursor.eat("<function=") {
        return None;
    }
    let name = cursor.name()?;
    if !cursor.eat(">") {
        return None;
    }
    let mut members = Vec::new();
    loop {
        cursor.skip_whitespace();
        if cursor.eat("</function>") {
            return Some(CallMatch::with_members(name, members));
        }
        if !cursor.eat("<parameter=") {
            return None;
        }
        let key = cursor.name()?;
        if !cursor.eat(">") {
            return None;
        }
        members.push((
            key,
            ElementValue::Untyped(trim_layout(cursor.value_until("<parameter=", "</parameter>")?)),
        ));
    }
}
