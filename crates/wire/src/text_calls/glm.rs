//! GLM 4.x: `<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x</arg_value>\n</tool_call>`; newer ones without the line
//! breaks. A call without arguments is `<tool_call>f</tool_call>`. Src: raullenchai/Rapid-MLX#480.

use super::call_match::{CallMatch, ElementValue, MatchArguments, trim_layout};
use super::cursor::TextCursor;

pub(super) fn read<'t>(cursor: &mut TextCursor<'t>) -> Vec<CallMatch<'t>> {
    if !cursor.eat("<tool_call>") {
        return Vec::new();
    }
    call(cursor).into_iter().collect()
}

fn call<'t>(cursor: &mut TextCursor<'t>) -> Option<CallMatch<'t>> {
    cursor.skip_whitespace();
    let name = cursor.name()?;
    let mut members = Vec::new();
    loop {
        cursor.skip_whitespace();
        if cursor.eat("</tool_call>") {
            let arguments =
                if members.is_empty() { MatchArguments::Absent } else { MatchArguments::Members(members) };
            return Some(CallMatch { name: name.into(), id: None, arguments });
        }
        if !cursor.eat("<arg_key>") {
            return None;
        }
        let key = cursor.value_until("<arg_key>", "</arg_key>")?.trim();
        cursor.skip_whitespace();
        if !cursor.eat("<arg_value>") {
            return None;
        }
        members.push((
            key,
            ElementValue::Untyped(trim_layout(cursor.value_until("<arg_key>", "</arg_value>")?)),
        ));
    }
}
