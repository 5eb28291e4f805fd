//! GLM 4.x: `<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x</arg_value>\n</tool_call>`; newer ones without the line
//! breaks. A call without arguments is `<tool_call>f</tool_call>`. Src: raullenchai/Rapid-MLX#480.

use super::cursor::Cursor;
use super::found::{Found, FoundArguments, Value, without_layout};

pub(super) fn read<'t>(cursor: &mut Cursor<'t>) -> Vec<Found<'t>> {
    if !cursor.eat("<tool_call>") {
        return Vec::new();
    }
    call(cursor).into_iter().collect()
}

fn call<'t>(cursor: &mut Cursor<'t>) -> Option<Found<'t>> {
    cursor.space();
    let name = cursor.name()?;
    let mut members = Vec::new();
    loop {
        cursor.space();
        if cursor.eat("</tool_call>") {
            let arguments =
                if members.is_empty() { FoundArguments::Absent } else { FoundArguments::Members(members) };
            return Some(Found { name: name.into(), id: None, arguments });
        }
        if !cursor.eat("<arg_key>") {
            return None;
        }
        let key = cursor.value("<arg_key>", "</arg_key>")?.trim();
        cursor.space();
        if !cursor.eat("<arg_value>") {
            return None;
        }
        members.push((key, Value::Unsaid(without_layout(cursor.value("<arg_key>", "</arg_value>")?))));
    }
}
