//! Qwen3-Coder: `<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>`.
//!
//! The model often forgets the outer `<tool_call>`, so `<function=f>` alone counts. `</function>` is required: a
//! parameter list that was cut must not run. Values: one line break at each end is layout; see
//! [`Value::Unsaid`] for what is a number. Src: vllm-project/vllm#28543.

use super::cursor::Cursor;
use super::found::{Found, Value, without_layout};

pub(super) fn read<'t>(cursor: &mut Cursor<'t>) -> Vec<Found<'t>> {
    let wrapped = cursor.eat("<tool_call>");
    let mut found = Vec::new();
    let mut end = cursor.at();
    loop {
        cursor.space();
        match function(cursor) {
            Some(call) => found.push(call),
            // The cursor stays where the list breaks off: what stands in its values is not looked at again.
            None if found.is_empty() => return found,
            None => break,
        }
        end = cursor.at();
    }
    cursor.go(end);
    if wrapped {
        cursor.space();
        if !cursor.eat("</tool_call>") {
            cursor.go(end);
        }
    }
    found
}

fn function<'t>(cursor: &mut Cursor<'t>) -> Option<Found<'t>> {
    if !cursor.eat("<function=") {
        return None;
    }
    let name = cursor.name()?;
    if !cursor.eat(">") {
        return None;
    }
    let mut members = Vec::new();
    loop {
        cursor.space();
        if cursor.eat("</function>") {
            return Some(Found::with_members(name, members));
        }
        if !cursor.eat("<parameter=") {
            return None;
        }
        let key = cursor.name()?;
        if !cursor.eat(">") {
            return None;
        }
        members.push((key, Value::Unsaid(without_layout(cursor.value("<parameter=", "</parameter>")?))));
    }
}
