//! Llama 3: `<|python_tag|>{"name": "f", "parameters": {…}}`, several joined by `;`; the built-in form
//! `<|python_tag|>f.call(a="x")`; `<function=f>{…}</function>`; or, with the tag swallowed as a special token, a reply
//! that is nothing but `{"name": …, "parameters": …}`. Src: vllm-project/vllm#47903.

use super::cursor::Cursor;
use super::found::Found;
use super::pythonic;

/// Members that a bare call may have. A JSON reply with any other is an answer, not a call.
const BARE_MEMBERS: [&str; 5] = ["type", "id", "name", "parameters", "arguments"];

pub(super) fn read<'t>(cursor: &mut Cursor<'t>) -> Vec<Found<'t>> {
    if cursor.eat_marker("<|python_tag|>") {
        let resume = cursor.at();
        let found = tagged(cursor);
        if found.is_empty() {
            cursor.go(resume);
        }
        return found;
    }
    let start = cursor.at();
    let found: Vec<_> = function_element(cursor).into_iter().collect();
    if found.is_empty() {
        cursor.go(start);
    }
    found
}

fn tagged<'t>(cursor: &mut Cursor<'t>) -> Vec<Found<'t>> {
    let mut found = Vec::new();
    let mut end = cursor.at();
    loop {
        cursor.space();
        let calls = match cursor.json() {
            Some(json) => Found::described_by(&json),
            None => pythonic::read_call(cursor).into_iter().map(without_call_method).collect(),
        };
        if calls.is_empty() {
            break;
        }
        found.extend(calls);
        end = cursor.at();
        cursor.space();
        if !cursor.eat(";") {
            break;
        }
    }
    cursor.go(end);
    let _ = cursor.eat_marker("<|eom_id|>") || cursor.eat_marker("<|eot_id|>");
    found
}

/// `brave_search.call(query="…")` calls the tool `brave_search`.
fn without_call_method(mut call: Found<'_>) -> Found<'_> {
    if let Some(name) = call.name.strip_suffix(".call") {
        call.name = name.to_owned().into();
    }
    call
}

fn function_element<'t>(cursor: &mut Cursor<'t>) -> Option<Found<'t>> {
    if !cursor.eat("<function=") {
        return None;
    }
    let name = cursor.name()?;
    if !cursor.eat(">") {
        return None;
    }
    cursor.space();
    let arguments = cursor.object()?;
    cursor.space();
    cursor.eat("</function>").then(|| Found::with_object(name, &arguments))
}

/// A whole reply that is one call, or several joined by `;` or line breaks.
pub(super) fn read_bare(text: &str) -> Vec<Found<'_>> {
    let mut cursor = Cursor::new(text, 0);
    let mut found = Vec::new();
    loop {
        cursor.space();
        if cursor.is_at_end() || cursor.eat_marker("<|eom_id|>") || cursor.eat_marker("<|eot_id|>") {
            return found;
        }
        let Some(json) = cursor.object() else { return Vec::new() };
        let has_arguments = ["parameters", "arguments"].iter().any(|key| json.get(key).is_some());
        if !has_arguments || json.members().iter().any(|(key, _)| !BARE_MEMBERS.contains(&key.as_ref())) {
            return Vec::new();
        }
        let calls = Found::described_by(&json);
        if calls.is_empty() {
            return Vec::new();
        }
        found.extend(calls);
        cursor.space();
        let _ = cursor.eat(";");
    }
}
