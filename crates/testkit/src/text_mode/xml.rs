//! Hermes-style elements: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`.

use super::{CallExtent, DescribedTools, ResultFrame, tilde};
use crate::parsed_request::{ParsedTool, ParsedToolCall, ParsedToolResult};
use crate::script::CallMove;
use serde_json::Value;

const CALL: &str = "<tool_call>";
const END_CALL: &str = "</tool_call>";

fn begins(before: &str, tail: &str) -> bool {
    let word = tail.strip_prefix('/').unwrap_or(tail);
    before.ends_with('<') && word.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("tool_"))
}

/// The first tag in a text that is data.
pub(super) fn find_markup(text: &str) -> Option<String> {
    let at = tilde::bare(text, begins)?;
    Some(format!("{:?}", text[at - 1..].chars().take(32).collect::<String>()))
}

pub(super) fn unescape(text: &str) -> String {
    tilde::unescape(text, begins)
}

/// A call as this model writes it: argument text that is not JSON is written as it is.
pub(super) fn call(call: &CallMove, extent: CallExtent) -> String {
    // In JSON a `<` may be an escape, so arguments contain no tag.
    let arguments = match serde_json::from_str::<Value>(&call.text()) {
        Ok(value) => value.to_string().replace('<', "\\u003c"),
        Err(_) => call.text(),
    };
    let name = Value::from(call.name.as_str());
    match extent {
        CallExtent::Whole => format!("{CALL}\n{{\"name\": {name}, \"arguments\": {arguments}}}\n{END_CALL}"),
        CallExtent::Torn => {
            format!("{CALL}\n{{\"name\": {name}, \"arguments\": {}", arguments.trim_end_matches('}'))
        }
    }
}

/// Offset at which a system prompt begins to describe tools or the syntax of this protocol.
pub(super) fn tools_offset(instructions: &str) -> Option<usize> {
    ["<tools>\n", CALL].iter().filter_map(|sign| instructions.find(sign)).min()
}

/// The definitions of a system prompt: JSON objects between `<tools>` and `</tools>`.
pub(super) fn described_tools(instructions: &str) -> DescribedTools {
    let mut tools_read = DescribedTools::default();
    for list in instructions.split("<tools>\n").skip(1) {
        let Some((list, _)) = list.split_once("</tools>") else { continue };
        let list = unescape(list);
        for definition in serde_json::Deserializer::from_str(&list).into_iter::<Value>() {
            let function =
                definition.ok().and_then(|mut definition| definition.get_mut("function").map(Value::take));
            let Some(function) = function else {
                tools_read.faults.push(format!("not definitions: {list:?}"));
                break;
            };
            let text = |key: &str| function[key].as_str().unwrap_or_default().to_owned();
            tools_read.tools.push(ParsedTool {
                name: text("name"),
                description: text("description"),
                parameters: function["parameters"].clone(),
            });
        }
    }
    tools_read
}

/// Splits a text of the model into visible text and calls.
pub(super) fn history(text: &str, faults: &mut Vec<String>) -> (String, Vec<ParsedToolCall>) {
    let (mut visible, mut calls, mut rest) = (String::new(), Vec::new(), text);
    while let Some((before, tail)) = rest.split_once(CALL) {
        visible.push_str(before);
        let Some((element, after)) = tail.split_once(END_CALL) else {
            faults.push("a call of the history has no end".to_owned());
            return (unescape(visible.trim()), calls);
        };
        let call: Value = serde_json::from_str(&unescape(element)).unwrap_or_default();
        let name = call["name"].as_str().unwrap_or_default().to_owned();
        calls.push(ParsedToolCall { id: String::new(), name, arguments: call["arguments"].clone() });
        rest = after;
    }
    visible.push_str(rest);
    (unescape(visible.trim()), calls)
}

/// Results at the beginning of a user's text: `<tool_response …>` elements.
pub(super) fn result_frame(text: &str) -> ResultFrame<'_> {
    let mut frame = ResultFrame { rest: text, ..ResultFrame::default() };
    while let Some(tail) = frame.rest.trim_start_matches('\n').strip_prefix("<tool_response") {
        let Some((_, body)) = tail.split_once('>') else { break };
        let Some((body, rest)) = body.split_once("</tool_response>") else {
            frame.faults.push("a result has no end".to_owned());
            break;
        };
        frame.faults.extend(find_markup(body).map(|found| format!("a result holds {found}")));
        match serde_json::from_str::<Value>(&unescape(body)) {
            Ok(result) => {
                let text = match &result["content"] {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let name = result["name"].as_str().unwrap_or_default().to_owned();
                frame.results.push(ParsedToolResult { name, text, ..ParsedToolResult::default() });
            }
            Err(error) => frame.faults.push(format!("a result is not JSON: {error}")),
        }
        frame.rest = rest;
    }
    frame
}
