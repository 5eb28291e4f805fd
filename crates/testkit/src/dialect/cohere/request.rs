//! Reading a chat request as api.cohere.com does: each call is answered by one `tool` message, right after it.

use crate::parsed_request::{
    ParsedImage, ParsedMessage, ParsedRequest, ParsedTool, ParsedToolCall, ParsedToolChoice,
    ParsedToolResult, ReplyDelivery,
};
use crate::strict_json::{
    PathStyle, RequestNode, RequestRefusal, RequestResult, first_duplicate, join_texts,
};
use serde_json::Value;

const FIELDS: &[&str] = &[
    "model",
    "messages",
    "stream",
    "tools",
    "tool_choice",
    "strict_tools",
    "documents",
    "citation_options",
    "response_format",
    "safety_mode",
    "max_tokens",
    "stop_sequences",
    "temperature",
    "seed",
    "frequency_penalty",
    "presence_penalty",
    "k",
    "p",
    "logprobs",
    "thinking",
    "priority",
];

fn unknown(at: &RequestNode<'_>, key: &str) -> String {
    let path = if at.path.is_empty() { key.to_owned() } else { format!("{}.{key}", at.path) };
    format!("invalid request: unknown field: {path}")
}

pub(crate) fn read(body: &Value, mut seen: ParsedRequest) -> RequestResult<ParsedRequest> {
    let root = RequestNode::root(body, PathStyle::Brackets);
    root.allow_only(FIELDS, unknown)?;
    seen.model = root.require_text("model")?.into();
    if root.get("stream").map(|at| at.flag()).transpose()? == Some(true) {
        seen.delivery = ReplyDelivery::Stream;
    }
    seen.max_output_tokens = root.get("max_tokens").map(|at| at.count()).transpose()?;
    for key in ["temperature", "p"] {
        let number = root.get(key).map(|at| at.value.as_f64().ok_or_else(|| at.refuse("expected a number")));
        let number = number.transpose()?;
        if number.is_some_and(|number| !(0.0..=1.0).contains(&number)) {
            return Err(root.refuse(format!("invalid request: {key} must be between 0 and 1")));
        }
    }
    for text in root.get("stop_sequences").map(|at| at.items()).transpose()?.unwrap_or_default() {
        text.text()?;
    }
    if let Some(format) = root.get("response_format") {
        format.allow_only(&["type", "json_schema"], unknown)?;
        if !matches!(format.require_text("type")?, "text" | "json_object") {
            return Err(format.refuse("type must be `text` or `json_object`"));
        }
    }
    seen.tools = root.get("tools").map(|at| tools(&at)).transpose()?.unwrap_or_default();
    seen.tool_choice = match root.get_text("tool_choice")? {
        None => ParsedToolChoice::Auto,
        Some(_) if seen.tools.is_empty() => {
            return Err(RequestRefusal::new("invalid request: tool_choice requires tools"));
        }
        Some("REQUIRED") => ParsedToolChoice::Required,
        Some("NONE") => ParsedToolChoice::None,
        Some(other) => {
            return Err(RequestRefusal::new(format!("invalid request: tool_choice `{other}` is unknown")));
        }
    };
    let (instructions, messages) = messages(&root.require("messages")?)?;
    (seen.instructions, seen.messages) = (instructions, messages);
    Ok(seen)
}

fn tools(list: &RequestNode<'_>) -> RequestResult<Vec<ParsedTool>> {
    let mut tools = Vec::new();
    for at in list.items()? {
        at.allow_only(&["type", "function"], unknown)?;
        if at.require_text("type")? != "function" {
            return Err(at.refuse("type must be `function`"));
        }
        let function = at.require("function")?;
        function.allow_only(&["name", "description", "parameters"], unknown)?;
        tools.push(ParsedTool {
            name: function.require("name")?.name("", 128)?.into(),
            description: function.get_text("description")?.unwrap_or_default().into(),
            parameters: function.require("parameters")?.object_schema()?,
        });
    }
    match first_duplicate(tools.iter().map(|tool| tool.name.as_str())) {
        Some(name) => Err(RequestRefusal::new(format!("invalid request: duplicate tool name `{name}`"))),
        None => Ok(tools),
    }
}

fn messages(list: &RequestNode<'_>) -> RequestResult<(Option<String>, Vec<ParsedMessage>)> {
    let (mut system, mut messages) = (Vec::new(), Vec::new());
    let mut open: Vec<ParsedToolCall> = Vec::new();
    let mut results: Vec<ParsedToolResult> = Vec::new();
    for at in list.non_empty_items()? {
        let role = at.require_text("role")?;
        if role != "tool" {
            settle(&mut open, &mut results, &mut messages, &at)?;
        }
        match role {
            "system" => {
                at.allow_only(&["role", "content"], unknown)?;
                system.push(content(&at)?.0);
            }
            "user" => {
                at.allow_only(&["role", "content"], unknown)?;
                let (text, images) = content(&at)?;
                messages.push(ParsedMessage::User { text, images, files: Vec::new() });
            }
            "assistant" => {
                let message = assistant(&at)?;
                if let ParsedMessage::Assistant { calls, .. } = &message {
                    open.clone_from(calls);
                }
                messages.push(message);
            }
            "tool" => results.push(result(&at, &open, &results)?),
            other => return Err(at.refuse(format!("role `{other}` is unknown"))),
        }
    }
    settle(&mut open, &mut results, &mut messages, list)?;
    Ok((join_texts(system), messages))
}

/// Every call before this must have its result.
fn settle(
    open: &mut Vec<ParsedToolCall>,
    results: &mut Vec<ParsedToolResult>,
    messages: &mut Vec<ParsedMessage>,
    at: &RequestNode<'_>,
) -> RequestResult<()> {
    let missing = open.iter().find(|call| results.iter().all(|result| result.id != call.id));
    if let Some(call) = missing {
        return Err(at.refuse(format!("tool call id {} has no corresponding tool result", call.id)));
    }
    if !open.is_empty() {
        results.sort_by_key(|result| open.iter().position(|call| call.id == result.id));
        messages.push(ParsedMessage::Results(std::mem::take(results)));
        open.clear();
    }
    Ok(())
}

fn assistant(at: &RequestNode<'_>) -> RequestResult<ParsedMessage> {
    at.allow_only(&["role", "content", "tool_plan", "tool_calls", "citations"], unknown)?;
    let text = if at.get("content").is_some() { content(at)?.0 } else { String::new() };
    let thinking = at.get_text("tool_plan")?.unwrap_or_default().to_owned();
    let mut calls: Vec<ParsedToolCall> = Vec::new();
    for call in at.get("tool_calls").map(|list| list.items()).transpose()?.unwrap_or_default() {
        call.allow_only(&["id", "type", "function"], unknown)?;
        let function = call.require("function")?;
        function.allow_only(&["name", "arguments"], unknown)?;
        let arguments = function.require_text("arguments")?;
        let parsed: Value = serde_json::from_str(arguments)
            .ok()
            .filter(Value::is_object)
            .ok_or_else(|| function.refuse("arguments must be a JSON object"))?;
        calls.push(ParsedToolCall {
            id: call.require_text("id")?.into(),
            name: function.require("name")?.name("", 128)?.into(),
            arguments: parsed,
        });
    }
    if first_duplicate(calls.iter().map(|call| call.id.as_str())).is_some() {
        return Err(at.refuse("tool call ids must be unique"));
    }
    if text.is_empty() && calls.is_empty() {
        return Err(at.refuse("an assistant message needs content or tool calls"));
    }
    Ok(ParsedMessage::Assistant { text, thinking, calls })
}

fn result(
    at: &RequestNode<'_>,
    open: &[ParsedToolCall],
    earlier: &[ParsedToolResult],
) -> RequestResult<ParsedToolResult> {
    at.allow_only(&["role", "tool_call_id", "content"], unknown)?;
    let id = at.require_text("tool_call_id")?;
    let Some(call) = open.iter().find(|call| call.id == id) else {
        return Err(at.refuse(format!("tool result {id} answers no tool call of the message before")));
    };
    if earlier.iter().any(|result| result.id == id) {
        return Err(at.refuse(format!("tool call id {id} is answered twice")));
    }
    let text = content(at)?.0;
    Ok(ParsedToolResult { id: id.into(), name: call.name.clone(), text, ..ParsedToolResult::default() })
}

/// A text, or a list of texts, pictures and documents.
fn content(at: &RequestNode<'_>) -> RequestResult<(String, Vec<ParsedImage>)> {
    let content = at.require("content")?;
    if let Some(text) = content.value.as_str() {
        return match text {
            "" => Err(content.refuse("must not be empty")),
            text => Ok((text.to_owned(), Vec::new())),
        };
    }
    let (mut text, mut images) = (String::new(), Vec::new());
    for part in content.non_empty_items()? {
        match part.require_text("type")? {
            "text" => text.push_str(part.require_text("text")?),
            "image_url" => images.push(part.require("image_url")?.require("url")?.image_url()?),
            "document" => {}
            other => return Err(part.refuse(format!("type `{other}` is unknown"))),
        }
    }
    Ok((text, images))
}
