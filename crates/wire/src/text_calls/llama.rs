//! Llama 3: `<|python_tag|>{"name": "f", "parameters": {…}}`, several joined by `;`; the built-in form
//! `<|python_tag|>f.call(a="x")`; `<function=f>{…}</function>`; or, with the tag swallowed as a special token, a reply
//! that is nothing but `{"name": …, "parameters": …}`. Src: vllm-project/vllm#47903.

use super::call_match::CallMatch;
use super::cursor::TextCursor;
use super::pythonic;

/// Members that a bare call may have. A JSON reply with any other is an answer, not a call.
const BARE_MEMBERS: [&str; 5] = ["type", "id", "name", "parameters", "arguments"];

pub(super) fn read<'t>(cursor: &mut TextCursor<'t>) -> Vec<CallMatch<'t>> {
    if cursor.eat_marker("<|python_tag|>") {
        let resume = cursor.position();
        let matches = read_tagged(cursor);
        if matches.is_empty() {
            cursor.seek(resume);
        }
        return matches;
    }
    let start = cursor.position();
    let matches: Vec<_> = function_element(cursor).into_iter().collect();
    if matches.is_empty() {
        cursor.seek(start);
    }
    matches
}

fn read_tagged<'t>(cursor: &mut TextCursor<'t>) -> Vec<CallMatch<'t>> {
    let mut matches = Vec::new();
    let mut end = cursor.position();
    loop {
        cursor.skip_whitespace();
        let calls = match cursor.json() {
            Some(json) => CallMatch::from_json(&json),
            None => pythonic::read_call(cursor).into_iter().map(without_call_method).collect(),
        };
        if calls.is_empty() {
            break;
        }
        matches.extend(calls);
        end = cursor.position();
        cursor.skip_whitespace();
        if !cursor.eat(";") {
            break;
        }
    }
    cursor.seek(end);
    let _ = cursor.eat_marker("<|eom_id|>") || cursor.eat_marker("<|eot_id|>");
    matches
}

/// `brave_search.call(query="…")` calls the tool `brave_search`.
fn without_call_method(mut call: CallMatch<'_>) -> CallMatch<'_> {
    if let Some(name) = call.name.strip_suffix(".call") {
        call.name = name.to_owned().into();
    }
    call
}

fn function_element<'t>(cursor: &mut TextCursor<'t>) -> Option<CallMatch<'t>> {
    if !cursor.eat("<function=") {
        return None;
    }
    let name = cursor.name()?;
    if !cursor.eat(">") {
        return None;
    }
    cursor.skip_whitespace();
    let arguments = cursor.object()?;
    cursor.skip_whitespace();
    cursor.eat("</function>").then(|| CallMatch::with_object(name, &arguments))
}

/// A whole reply that is one call, or several joined by `;` or line breaks.
pub(super) fn read_bare(text: &str) -> Vec<CallMatch<'_>> {
    let mut cursor = TextCursor::new(text, 0);
    let mut matches = Vec::new();
    loop {
        cursor.skip_whitespace();
        if cursor.is_at_end() || cursor.eat_marker("<|eom_id|>") || cursor.eat_marker("<|eot_id|>") {
            return matches;
        }
        let Some(json) = cursor.object() else { return Vec::new() };
        let has_arguments = ["parameters", "arguments"].iter().any(|key| json.get(key).is_some());
        if !has_arguments || json.members().iter().any(|(key, _)| !BARE_MEMBERS.contains(&key.as_ref())) {
            return Vec::new();
        }
        let calls = CallMatch::from_json(&json);
        if calls.is_empty() {
            return Vec::new();
        }
        matches.extend(calls);
        cursor.skip_whitespace();
        let _ = cursor.eat(";");
    }
}
