//! VCP blocks: `<<<[TOOL_REQUEST]>>>`, fields `key:「始」value「末」`, `<<<[END_TOOL_REQUEST]>>>`.

use super::{CallExtent, DescribedTools, ResultFrame, tilde};
use crate::parsed_request::{ParsedTool, ParsedToolCall, ParsedToolResult};
use crate::script::CallMove;
use serde_json::{Map, Value, json};

const REQUEST: &str = "<<<[TOOL_REQUEST]>>>";
const END_REQUEST: &str = "<<<[END_TOOL_REQUEST]>>>";
const DEFINITION: &str = "<<<[TOOL_DEFINITION]>>>";
const END_DEFINITION: &str = "<<<[END_TOOL_DEFINITION]>>>";

/// True if a marker, or the quote of a value, begins between these.
fn begins(before: &str, tail: &str) -> bool {
    before.ends_with("<<") && tail.starts_with('[')
        || before.ends_with(['「', '{']) && tail.starts_with(['始', '末'])
}

/// The first marker in a text that is data.
pub(super) fn find_markup(text: &str) -> Option<String> {
    let at = tilde::bare(text, begins)?;
    let start = text[..at].char_indices().rev().nth(3).map_or(0, |(at, _)| at);
    Some(format!("{:?}", text[start..].chars().take(32).collect::<String>()))
}

pub(super) fn unescape(text: &str) -> String {
    tilde::unescape(text, begins)
}

/// A call as this model writes it. Arguments that are not an object are written as far as possible, with the
/// last value left open.
pub(super) fn call(call: &CallMove, extent: CallExtent) -> String {
    let text = call.text();
    let (fields, torn) = match serde_json::from_str::<Value>(&text) {
        Ok(Value::Object(members)) => {
            (members.into_iter().map(|(key, value)| (key, plain(&value))).collect(), false)
        }
        _ => (torn_fields(&text), true),
    };
    let mut block = format!("{REQUEST}\ntool_name:「始」{}「末」", call.name);
    let last = fields.len();
    for (at, (key, value)) in fields.iter().enumerate() {
        let value = tilde::escape(value, begins);
        let end = if at + 1 == last && (torn || extent == CallExtent::Torn) { "" } else { "「末」" };
        block.push_str(&format!(",\n{key}:「始」{value}{end}"));
    }
    if extent == CallExtent::Whole {
        block.push('\n');
        block.push_str(END_REQUEST);
    }
    block
}

/// A value as text: text as it is, the rest as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The members of a flat object that breaks off: `{"city": "Par` is `city` = `Par`.
fn torn_fields(text: &str) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    let mut rest = text;
    while let Some((_, tail)) = rest.split_once('"') {
        let Some((key, tail)) = tail.split_once('"') else { break };
        let value = tail.trim_start().trim_start_matches(':').trim_start();
        let (value, next) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => value.split_once(',').unwrap_or((value, "")),
        };
        fields.push((key.to_owned(), value.to_owned()));
        rest = next;
    }
    if fields.is_empty() {
        fields.push(("arguments".to_owned(), text.to_owned()));
    }
    fields
}

/// Reads `key:「始」value「末」` at the beginning of `text`; returns key, raw value and the rest.
fn field(text: &str) -> Option<(&str, &str, &str)> {
    let text = text.trim_start_matches([',', ' ', '\n', '\r']);
    let (key, tail) = text.split_once(':')?;
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_-.$".contains(c));
    let tail = tail.trim_start_matches(' ');
    let (value, rest) = match tail.strip_prefix("「始ESCAPE」") {
        Some(tail) => tail.split_once("「末ESCAPE」")?,
        None => tail.strip_prefix("「始」")?.split_once("「末」")?,
    };
    is_key.then_some((key, value, rest))
}

/// Offset at which a system prompt begins to describe tools or the syntax of this protocol.
pub(super) fn tools_offset(instructions: &str) -> Option<usize> {
    [DEFINITION, REQUEST].iter().filter_map(|sign| instructions.find(sign)).min()
}

/// The definitions of a system prompt.
pub(super) fn described_tools(instructions: &str) -> DescribedTools {
    let mut tools_read = DescribedTools::default();
    for block in instructions.split(DEFINITION).skip(1) {
        let Some((block, _)) = block.split_once(END_DEFINITION) else {
            tools_read.faults.push("a definition has no end".to_owned());
            continue;
        };
        match definition(block) {
            Some(tool) => tools_read.tools.push(tool),
            None => tools_read.faults.push(format!("not a definition: {block:?}")),
        }
    }
    tools_read
}

/// Reads a definition: name, command, description, and a line for each parameter: `- name (type, required,
/// one of "a", "b"): what it is`.
fn definition(block: &str) -> Option<ParsedTool> {
    let (key, name, mut rest) = field(block).filter(|(key, ..)| *key == "tool_name")?;
    let (mut command, mut description) = (None, None);
    while let Some((key, value, tail)) =
        field(rest).filter(|(key, ..)| ["command", "description"].contains(key))
    {
        let known = if key == "command" { &mut command } else { &mut description };
        *known = Some(unescape(value));
        rest = tail;
    }
    let (parameters, example) = rest.split_once("\nexample:\n")?;
    let mut properties = Map::new();
    let mut required = Vec::new();
    for line in parameters.lines().filter_map(|line| line.strip_prefix("- ")) {
        let (name, tail) = line.split_once(" (")?;
        let (kinds, facts) = tail.split_once([',', ')'])?;
        let kind = if kinds.split(" or ").any(|kind| kind == "string") {
            "string"
        } else {
            kinds.split(' ').next()?
        };
        let mut schema = json!({"type": kind});
        if let Some((_, list)) = facts.split_once(", one of ") {
            schema["enum"] = listed(list);
        }
        properties.insert(name.to_owned(), schema);
        if facts.trim_start().starts_with("required") {
            required.push(Value::from(name));
        }
    }
    // The example is a call of the very tool.
    let example = call_of(example.split_once(END_REQUEST)?.0.split_once(REQUEST)?.1, &[]);
    let parameters = json!({"type": "object", "properties": properties, "required": required});
    let tool = ParsedTool { name: unescape(name), description: description?, parameters };
    (key == "tool_name" && example.name == tool.name).then_some(tool)
}

/// Reads JSON values with commas between, up to the first text that is not one.
fn listed(text: &str) -> Value {
    let mut values = Vec::new();
    let mut rest = text;
    loop {
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let Some(Ok(value)) = stream.next() else { break };
        values.push(value);
        let Some(tail) = rest.get(stream.byte_offset()..).and_then(|rest| rest.strip_prefix(", ")) else {
            break;
        };
        rest = tail;
    }
    Value::Array(values)
}

/// Splits a text of the model into visible text and calls.
pub(super) fn history(
    text: &str,
    tools: &[ParsedTool],
    faults: &mut Vec<String>,
) -> (String, Vec<ParsedToolCall>) {
    let (mut visible, mut calls, mut rest) = (String::new(), Vec::new(), text);
    while let Some((before, tail)) = rest.split_once(REQUEST) {
        visible.push_str(before);
        let Some((block, after)) = tail.split_once(END_REQUEST) else {
            faults.push("a request of the history has no end".to_owned());
            return (unescape(visible.trim()), calls);
        };
        calls.push(call_of(block, tools));
        rest = after;
    }
    visible.push_str(rest);
    (unescape(visible.trim()), calls)
}

/// The fields of a block; what does not fit the grammar is the model's own mistake and stays in the text of a call.
fn call_of(block: &str, tools: &[ParsedTool]) -> ParsedToolCall {
    let mut name = String::new();
    let mut arguments = Map::new();
    let mut rest = block;
    while let Some((key, value, tail)) = field(rest) {
        let value = unescape(value);
        if key == "tool_name" {
            name = value;
        } else {
            let tool = tools.iter().find(|tool| tool.name == name);
            arguments
                .insert(key.to_owned(), typed(&value, tool.map(|tool| &tool.parameters["properties"][key])));
        }
        rest = tail;
    }
    ParsedToolCall { id: String::new(), name, arguments: Value::Object(arguments) }
}

/// A value as its schema has it.
fn typed(value: &str, schema: Option<&Value>) -> Value {
    let kind = schema.and_then(|schema| schema["type"].as_str()).unwrap_or("string");
    let read = (kind != "string").then(|| serde_json::from_str(value).ok()).flatten();
    read.unwrap_or_else(|| value.into())
}

/// Results at the beginning of a user's text: a frame `<<<[TOOL_RESULT n=…]>>>` for each, all of one nonce.
pub(super) fn result_frame(text: &str) -> ResultFrame<'_> {
    let mut frame = ResultFrame { rest: text, ..ResultFrame::default() };
    let mut nonce = None;
    while let Some(tail) = frame.rest.trim_start_matches('\n').strip_prefix("<<<[TOOL_RESULT ") {
        let Some((mark, body)) = tail.split_once("]>>>\n") else { break };
        let end = format!("<<<[END_TOOL_RESULT {mark}]>>>");
        let Some((body, rest)) = body.split_once(&end) else {
            frame.faults.push("a frame of results has no end".to_owned());
            break;
        };
        if !mark.starts_with("n=") || *nonce.get_or_insert(mark) != mark {
            frame.faults.push(format!("frames of one message differ: {mark}"));
        }
        frame.rest = rest;
        match result(body, &mut frame.faults) {
            Some(result) => frame.results.push(result),
            None => frame.faults.push(format!("not a result: {body:?}")),
        }
    }
    frame
}

/// `tool_name`, perhaps `command` and `call`, `status`, `result`, and nothing else.
fn result(body: &str, faults: &mut Vec<String>) -> Option<ParsedToolResult> {
    let mut fields = Vec::new();
    let mut rest = body;
    while let Some((key, value, tail)) = field(rest) {
        faults.extend(find_markup(value).map(|found| format!("a result holds {found}")));
        fields.push((key, unescape(value)));
        rest = tail;
    }
    let keys: Vec<&str> = fields.iter().map(|(key, _)| *key).collect();
    let optional = |key: &&&str| !["command", "call"].contains(*key);
    let shape: Vec<&&str> = keys.iter().filter(optional).collect();
    let is_complete = shape == [&"tool_name", &"status", &"result"] && rest.trim().is_empty();
    let value = |key: &str| fields.iter().find(|(name, _)| *name == key).map(|(_, value)| value.clone());
    let (name, text) = (value("tool_name")?, value("result")?);
    is_complete.then(|| ParsedToolResult { name, text, ..ParsedToolResult::default() })
}
