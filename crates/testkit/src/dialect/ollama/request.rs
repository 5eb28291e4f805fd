//! Reading an `/api/chat` request. The types are as strict as Ollama's Go structs. Two things are stricter than Ollama,
//! which swallows them in silence and answers nonsense: unknown fields, and calls without exactly one result.

use crate::dialect::tool_schema;
use crate::parsed_request::{
    ParsedImage, ParsedMessage, ParsedRequest, ParsedTool, ParsedToolCall, ParsedToolResult, ReplyDelivery,
};
use crate::strict_json::{PathStyle, RequestNode, RequestRefusal, RequestResult, join_texts};
use serde_json::Value;

const FIELDS: &[&str] = &[
    "model",
    "messages",
    "tools",
    "stream",
    "format",
    "options",
    "keep_alive",
    "think",
    "logprobs",
    "top_logprobs",
    "truncate",
    "shift",
];

fn unknown(_: &RequestNode<'_>, key: &str) -> String {
    format!("json: unknown field \"{key}\"")
}

fn wrong_type(at: &RequestNode<'_>, go: &str) -> RequestRefusal {
    let got = match at.value {
        Value::Array(_) => "array",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::Object(_) => "object",
        _ => "string",
    };
    let field: String =
        at.path.chars().filter(|c| !c.is_ascii_digit()).collect::<String>().replace("..", ".");
    RequestRefusal::new(format!(
        "json: cannot unmarshal {got} into Go struct field ChatRequest.{field} of type {go}"
    ))
}

pub(crate) fn read(body: &Value, mut seen: ParsedRequest) -> RequestResult<ParsedRequest> {
    let root = RequestNode::root(body, PathStyle::Dots);
    root.allow_only(FIELDS, unknown)?;
    seen.model = root.require_text("model").map_err(|_| RequestRefusal::new("model is required"))?.into();
    // Streams by default.
    seen.delivery = match root.get("stream").map(|at| at.flag()).transpose()? {
        Some(false) => ReplyDelivery::Whole,
        _ => ReplyDelivery::Stream,
    };
    if let Some(options) = root.get("options") {
        options.map()?;
        seen.max_output_tokens = options.get("num_predict").and_then(|at| at.value.as_u64());
    }
    if let Some(format) = root.get("format").filter(|format| format.value.is_object()) {
        tool_schema::check_llama_cpp(format.value)?;
    }
    if let Some(think) = root.get("think")
        && !(think.value.is_boolean()
            || matches!(think.value.as_str(), Some("low" | "medium" | "high" | "max")))
    {
        return Err(RequestRefusal::new(
            "invalid think value: must be one of true, false, \"high\", \"medium\", \"low\"",
        ));
    }
    seen.tools = root.get("tools").map(|at| tools(&at)).transpose()?.unwrap_or_default();
    let (instructions, messages) = conversation(&root.require("messages")?)?;
    (seen.instructions, seen.messages) = (join_texts(instructions), messages);
    Ok(seen)
}

fn tools(list: &RequestNode<'_>) -> RequestResult<Vec<ParsedTool>> {
    let mut tools = Vec::new();
    for at in list.items()? {
        at.allow_only(&["type", "function", "items"], unknown)?;
        let function = at.require("function")?;
        function.allow_only(&["name", "description", "parameters"], unknown)?;
        let parameters = function.require("parameters")?.object_schema()?;
        tool_schema::check_ollama(&parameters)?;
        tools.push(ParsedTool {
            name: function.require_text("name")?.into(),
            description: function.get_text("description")?.unwrap_or_default().into(),
            parameters,
        });
    }
    Ok(tools)
}

fn conversation(list: &RequestNode<'_>) -> RequestResult<(Vec<String>, Vec<ParsedMessage>)> {
    let (mut instructions, mut messages) = (Vec::new(), Vec::new());
    let mut open: Vec<ParsedToolCall> = Vec::new();
    let mut results: Vec<ParsedToolResult> = Vec::new();
    for at in list.non_empty_items()? {
        at.allow_only(
            &["role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id"],
            unknown,
        )?;
        let role = at.require_text("role")?;
        let text = match at.get("content") {
            None => String::new(),
            Some(content) => content.text().map_err(|_| wrong_type(&content, "string"))?.to_owned(),
        };
        if role == "tool" {
            results.push(result(&at, text, &open, results.len())?);
            continue;
        }
        close(&mut open, &mut results, &mut messages)?;
        match role {
            "system" => instructions.push(text),
            "user" => {
                let images = at.get("images").map(|list| images(&list)).transpose()?.unwrap_or_default();
                messages.push(ParsedMessage::User { text, images, files: Vec::new() });
            }
            "assistant" => {
                let calls = match at.get("tool_calls") {
                    None => Vec::new(),
                    Some(list) => list.items()?.iter().map(call).collect::<RequestResult<Vec<_>>>()?,
                };
                open = calls.clone();
                let thinking = at.get_text("thinking")?.unwrap_or_default().into();
                messages.push(ParsedMessage::Assistant { text, thinking, calls });
            }
            other => {
                return Err(RequestRefusal::new(format!(
                    "invalid role: {other}. Must be one of system, user, assistant, tool"
                )));
            }
        }
    }
    close(&mut open, &mut results, &mut messages)?;
    Ok((instructions, messages))
}

fn result(
    at: &RequestNode<'_>,
    text: String,
    open: &[ParsedToolCall],
    index: usize,
) -> RequestResult<ParsedToolResult> {
    let Some(call) = open.get(index) else {
        return Err(at.refuse("a tool message must answer a call of the assistant message right before"));
    };
    let id = at.get_text("tool_call_id")?;
    if id.is_some_and(|id| !call.id.is_empty() && id != call.id) {
        return Err(at.refuse(format!("tool_call_id does not match call {} (\"{}\")", index + 1, call.id)));
    }
    match at.get_text("tool_name")? {
        Some(name) if name != call.name => {
            return Err(at.refuse(format!(
                "tool_name \"{name}\" does not match call {} (\"{}\")",
                index + 1,
                call.name
            )));
        }
        None if id.is_none() => return Err(at.refuse("a tool message needs tool_name")),
        _ => {}
    }
    Ok(ParsedToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        text,
        is_error: false,
        images: Vec::new(),
    })
}

fn close(
    open: &mut Vec<ParsedToolCall>,
    results: &mut Vec<ParsedToolResult>,
    messages: &mut Vec<ParsedMessage>,
) -> RequestResult<()> {
    if results.len() < open.len() {
        return Err(RequestRefusal::new(format!(
            "messages: {} tool calls are followed by {} tool messages",
            open.len(),
            results.len()
        )));
    }
    if !open.is_empty() {
        messages.push(ParsedMessage::Results(std::mem::take(results)));
    }
    open.clear();
    Ok(())
}

fn images(list: &RequestNode<'_>) -> RequestResult<Vec<ParsedImage>> {
    let image = |at: &RequestNode<'_>| {
        let bytes = at.bytes().map_err(|_| RequestRefusal::new("illegal base64 data at input byte 0"))?;
        if bytes.is_empty() {
            return Err(RequestRefusal::new("invalid image input").status(500));
        }
        // Ollama requests have no media type; it reads the bytes.
        Ok(ParsedImage { media_type: String::new(), bytes, url: None })
    };
    list.items()?.iter().map(image).collect()
}

fn call(at: &RequestNode<'_>) -> RequestResult<ParsedToolCall> {
    at.allow_only(&["id", "type", "function"], unknown)?;
    let function = at.require("function")?;
    function.allow_only(&["index", "name", "arguments", "description"], unknown)?;
    let arguments = function.require("arguments")?;
    if !arguments.value.is_object() {
        return Err(wrong_type(&arguments, "api.ToolCallFunctionArguments"));
    }
    Ok(ParsedToolCall {
        id: at.get_text("id")?.unwrap_or_default().into(),
        name: function.require_text("name")?.into(),
        arguments: arguments.value.clone(),
    })
}
