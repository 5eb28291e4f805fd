//! Llama 4, Gemma and others: calls as Python, `[f(a="x", b=[1, True]), g()]`.
//!
//! Keyword arguments only: without the schema's order a positional value has no name. A list counts when it is the
//! whole reply; in running text the same characters are an example. Src: vllm-project/vllm#46303, Llama 4's prompt
//! format page.

use super::call_match::{CallMatch, MatchArguments, quoted};
use super::cursor::TextCursor;
use crate::json::JsonRef;

/// Deepest nesting of values that is read.
const DEPTH_MAX: usize = 64;

/// A whole reply that is a list of calls.
pub(super) fn read_bare(text: &str) -> Vec<CallMatch<'_>> {
    let mut cursor = TextCursor::new(text, 0);
    let matches = read_list(&mut cursor).unwrap_or_default();
    cursor.skip_whitespace();
    let _ = cursor.eat_marker("<|eom_id|>") || cursor.eat_marker("<|eot_id|>");
    cursor.skip_whitespace();
    if cursor.is_at_end() { matches } else { Vec::new() }
}

/// Reads `[f(…), g(…)]`.
pub(super) fn read_list<'t>(cursor: &mut TextCursor<'t>) -> Option<Vec<CallMatch<'t>>> {
    if !cursor.eat("[") {
        return None;
    }
    let mut matches = Vec::new();
    loop {
        cursor.skip_whitespace();
        if cursor.eat("]") {
            return Some(matches);
        }
        matches.push(read_call(cursor)?);
        cursor.skip_whitespace();
        if !cursor.eat(",") && !cursor.rest().starts_with(']') {
            return None;
        }
    }
}

/// Reads `f(a="x")`.
pub(super) fn read_call<'t>(cursor: &mut TextCursor<'t>) -> Option<CallMatch<'t>> {
    let name = cursor.name().filter(|name| is_identifier(name))?;
    if !cursor.eat("(") {
        return None;
    }
    let mut arguments = String::from("{");
    loop {
        cursor.skip_whitespace();
        if cursor.eat(")") {
            break;
        }
        let key = cursor.name().filter(|key| is_identifier(key))?;
        cursor.skip_whitespace();
        if !cursor.eat("=") {
            return None;
        }
        if arguments.len() > 1 {
            arguments.push_str(", ");
        }
        arguments.push_str(&quoted(key));
        arguments.push_str(": ");
        value(cursor, &mut arguments, 0)?;
        cursor.skip_whitespace();
        if !cursor.eat(",") && !cursor.rest().starts_with(')') {
            return None;
        }
    }
    arguments.push('}');
    Some(CallMatch { name: name.into(), id: None, arguments: MatchArguments::Json(arguments.into()) })
}

fn is_identifier(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

/// Reads one Python literal and appends it as JSON.
fn value(cursor: &mut TextCursor<'_>, out: &mut String, depth: usize) -> Option<()> {
    if depth > DEPTH_MAX {
        return None;
    }
    cursor.skip_whitespace();
    match cursor.peek()? {
        quote @ ('"' | '\'') => out.push_str(&quoted(&string(cursor, quote)?)),
        '[' => items(cursor, out, ('[', "]"), depth)?,
        '(' => items(cursor, out, ('(', ")"), depth)?,
        '{' => members(cursor, out, depth)?,
        _ => {
            let word = cursor.name()?;
            match word {
                "True" | "true" => out.push_str("true"),
                "False" | "false" => out.push_str("false"),
                "None" | "null" => out.push_str("null"),
                number if JsonRef::parse(number).is_ok_and(|json| json.is_number()) => out.push_str(number),
                _ => return None,
            }
        }
    }
    Some(())
}

fn items(
    cursor: &mut TextCursor<'_>,
    out: &mut String,
    (open, close): (char, &str),
    depth: usize,
) -> Option<()> {
    cursor.seek(cursor.position() + open.len_utf8());
    out.push('[');
    let mut first = true;
    loop {
        cursor.skip_whitespace();
        if cursor.eat(close) {
            out.push(']');
            return Some(());
        }
        if !std::mem::take(&mut first) {
            out.push_str(", ");
        }
        value(cursor, out, depth + 1)?;
        cursor.skip_whitespace();
        if !cursor.eat(",") && !cursor.rest().starts_with(close) {
            return None;
        }
    }
}

fn members(cursor: &mut TextCursor<'_>, out: &mut String, depth: usize) -> Option<()> {
    cursor.seek(cursor.position() + 1);
    out.push('{');
    let mut first = true;
    loop {
        cursor.skip_whitespace();
        if cursor.eat("}") {
            out.push('}');
            return Some(());
        }
        if !std::mem::take(&mut first) {
            out.push_str(", ");
        }
        let quote = cursor.peek().filter(|c| matches!(c, '"' | '\''))?;
        out.push_str(&quoted(&string(cursor, quote)?));
        cursor.skip_whitespace();
        if !cursor.eat(":") {
            return None;
        }
        out.push_str(": ");
        value(cursor, out, depth + 1)?;
        cursor.skip_whitespace();
        if !cursor.eat(",") && !cursor.rest().starts_with('}') {
            return None;
        }
    }
}

/// Reads a Python string literal, single or triple quoted.
fn string(cursor: &mut TextCursor<'_>, quote: char) -> Option<String> {
    let triple = String::from(quote).repeat(3);
    let close: &str = if cursor.eat(&triple) { &triple } else { &triple[..1] };
    if close.len() == 1 {
        cursor.seek(cursor.position() + 1);
    }
    let mut out = String::new();
    loop {
        if cursor.eat(close) {
            return Some(out);
        }
        let c = cursor.peek()?;
        cursor.seek(cursor.position() + c.len_utf8());
        match c {
            '\n' if close.len() == 1 => return None,
            '\\' => escape(cursor, &mut out)?,
            _ => out.push(c),
        }
    }
}

fn escape(cursor: &mut TextCursor<'_>, out: &mut String) -> Option<()> {
    let c = cursor.peek()?;
    cursor.seek(cursor.position() + c.len_utf8());
    match c {
        'n' => out.push('\n'),
        't' => out.push('\t'),
        'r' => out.push('\r'),
        '\n' => {}
        '\\' | '\'' | '"' => out.push(c),
        'x' => out.push(code_point(cursor, 2)?),
        'u' => out.push(code_point(cursor, 4)?),
        'U' => out.push(code_point(cursor, 8)?),
        // Python keeps the backslash of an escape that it does not have.
        _ => out.extend(['\\', c]),
    }
    Some(())
}

fn code_point(cursor: &mut TextCursor<'_>, digits: usize) -> Option<char> {
    let hex = cursor.rest().get(..digits)?;
    let c = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32)?;
    cursor.seek(cursor.position() + digits);
    Some(c)
}
