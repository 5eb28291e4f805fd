//! Reading a `Converse` request as Bedrock does: roles alternate, results come in the next user message, one per call.

use crate::dialect::anthropic::request::{PICTURE_BYTES_MAX, check_count, check_side};
use crate::dialect::tool_schema;
use crate::fake_ids::signature;
use crate::parsed_request::{
    ParsedImage, ParsedMessage, ParsedRequest, ParsedTool, ParsedToolCall, ParsedToolChoice, ParsedToolResult,
};
use crate::server::UpstreamBehavior;
use crate::strict_json::{
    PathStyle, RequestNode, RequestRefusal, RequestResult, first_duplicate, join_texts,
};
use serde_json::Value;

const FIELDS: &[&str] = &[
    "messages",
    "system",
    "inferenceConfig",
    "toolConfig",
    "guardrailConfig",
    "additionalModelRequestFields",
    "additionalModelResponseFieldPaths",
    "promptVariables",
    "requestMetadata",
    "performanceConfig",
];

const INFERENCE_FIELDS: &[&str] = &["maxTokens", "temperature", "topP", "stopSequences"];

fn unknown(at: &RequestNode<'_>, key: &str) -> String {
    let path = if at.path.is_empty() { key.to_owned() } else { format!("{}.{key}", at.path) };
    format!("The model returned the following errors: {path}: extraneous key [{key}] is not permitted")
}

pub(crate) fn read(
    body: &Value,
    mut seen: ParsedRequest,
    behavior: &UpstreamBehavior,
) -> RequestResult<ParsedRequest> {
    let root = RequestNode::root(body, PathStyle::Dots);
    root.allow_only(FIELDS, unknown)?;
    if let Some(inference) = root.get("inferenceConfig") {
        inference.allow_only(INFERENCE_FIELDS, unknown)?;
        seen.max_output_tokens = inference.get("maxTokens").map(|at| at.count()).transpose()?;
        for text in inference.get("stopSequences").map(|at| at.items()).transpose()?.unwrap_or_default() {
            text.text()?;
        }
    }
    let mut system = Vec::new();
    for block in root.get("system").map(|at| at.items()).transpose()?.unwrap_or_default() {
        match block.require_text("text")? {
            "" => return Err(block.refuse("The text field in the ContentBlock object is blank.")),
            text => system.push(text.to_owned()),
        }
    }
    seen.instructions = join_texts(system);
    let config = root.get("toolConfig");
    seen.tools = config.as_ref().map(tools).transpose()?.unwrap_or_default();
    seen.tool_choice = config.as_ref().map(|at| choice(at, &seen.tools)).transpose()?.unwrap_or_default();
    seen.messages = messages(&root.require("messages")?)?;
    check_pictures(&seen, behavior.pictures_max.unwrap_or(usize::MAX)).map_err(of_model)?;
    let uses_tools = |message: &ParsedMessage| {
        matches!(message, ParsedMessage::Assistant { calls, .. } if !calls.is_empty())
            || matches!(message, ParsedMessage::Results(_))
    };
    if config.is_none() && seen.messages.iter().any(uses_tools) {
        return Err(RequestRefusal::new(
            "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
        ));
    }
    Ok(seen)
}

/// A refusal of the model itself.
fn of_model(words: String) -> RequestRefusal {
    RequestRefusal::new(format!("The model returned the following errors: {words}"))
}

/// Claude's limits (boto/boto3#4632,
/// aws-solutions-library-samples/accelerated-intelligent-document-processing-on-aws#994).
fn check_pictures(seen: &ParsedRequest, most: usize) -> Result<(), String> {
    let (mut pictures, mut documents) = (Vec::new(), 0);
    for message in &seen.messages {
        match message {
            ParsedMessage::User { images, files, .. } => {
                pictures.extend(images);
                documents += files.len();
            }
            ParsedMessage::Results(results) => {
                pictures.extend(results.iter().flat_map(|result| &result.images));
            }
            ParsedMessage::Assistant { .. } => {}
        }
    }
    check_count(pictures.len(), documents, most)?;
    let count = if seen.model.contains("claude") { pictures.len() } else { 1 };
    pictures.into_iter().try_for_each(|picture| check_side(picture, count))
}

fn tools(config: &RequestNode<'_>) -> RequestResult<Vec<ParsedTool>> {
    config.allow_only(&["tools", "toolChoice"], unknown)?;
    let mut tools = Vec::new();
    for at in config.require("tools")?.non_empty_items()? {
        at.allow_only(&["toolSpec", "cachePoint"], unknown)?;
        let Some(spec) = at.get("toolSpec") else { continue };
        spec.allow_only(&["name", "description", "inputSchema"], unknown)?;
        if spec.get_text("description")? == Some("") {
            return Err(spec.refuse("description: minimum length is 1"));
        }
        let parameters = spec.require("inputSchema")?.require("json")?.object_schema()?;
        tool_schema::check_anthropic(&spec.path, &parameters)?;
        tools.push(ParsedTool {
            name: spec.require("name")?.name("", 64)?.into(),
            description: spec.get_text("description")?.unwrap_or_default().into(),
            parameters,
        });
    }
    match first_duplicate(tools.iter().map(|tool| tool.name.as_str())) {
        Some(name) => Err(config.refuse(format!("The tool name {name} is used more than once."))),
        None => Ok(tools),
    }
}

fn choice(config: &RequestNode<'_>, tools: &[ParsedTool]) -> RequestResult<ParsedToolChoice> {
    let Some(at) = config.get("toolChoice") else { return Ok(ParsedToolChoice::Auto) };
    at.allow_only(&["auto", "any", "tool"], unknown)?;
    if at.get("any").is_some() {
        return Ok(ParsedToolChoice::Required);
    }
    match at.get("tool") {
        Some(tool) => match tool.require_text("name")? {
            name if tools.iter().any(|tool| tool.name == name) => Ok(ParsedToolChoice::Named(name.into())),
            name => Err(at.refuse(format!("The tool {name} is not defined."))),
        },
        None => Ok(ParsedToolChoice::Auto),
    }
}

fn messages(list: &RequestNode<'_>) -> RequestResult<Vec<ParsedMessage>> {
    let mut messages = Vec::new();
    let (mut open, mut last): (Vec<ParsedToolCall>, &str) = (Vec::new(), "assistant");
    let mut used = std::collections::HashSet::new();
    for at in list.non_empty_items()? {
        at.allow_only(&["role", "content"], unknown)?;
        let role = at.require_text("role")?;
        if !matches!(role, "user" | "assistant") {
            return Err(at.refuse(format!("role {role} is not supported")));
        }
        if role == last {
            return Err(RequestRefusal::new(if messages.is_empty() {
                "A conversation must start with a user message. Try again with a conversation that starts with a user message."
            } else {
                "A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again."
            }));
        }
        last = role;
        let content = at.require("content")?.non_empty_items()?;
        if role == "assistant" {
            let message = assistant(&content)?;
            if let ParsedMessage::Assistant { calls, .. } = &message {
                if calls.iter().any(|call| !used.insert(call.id.clone())) {
                    return Err(at.refuse("toolUseId must be unique"));
                }
                open.clone_from(calls);
            }
            messages.push(message);
        } else {
            user(&at, &content, &std::mem::take(&mut open), &mut messages)?;
        }
    }
    match open.first() {
        Some(call) => Err(unanswered(call)),
        None => Ok(messages),
    }
}

fn unanswered(call: &ParsedToolCall) -> RequestRefusal {
    RequestRefusal::new(format!("Expected toolResult blocks at messages for the following Ids: {}", call.id))
}

fn assistant(content: &[RequestNode<'_>]) -> RequestResult<ParsedMessage> {
    let (mut text, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
    for block in content {
        if block.get("text").is_some() {
            text.push_str(non_blank(block)?);
        } else if let Some(call) = block.get("toolUse") {
            call.allow_only(&["toolUseId", "name", "input", "type"], unknown)?;
            let input = call.require("input")?;
            if !input.value.is_object() {
                return Err(input.refuse("The format of the value is invalid. Provide a json object."));
            }
            calls.push(ParsedToolCall {
                id: call.require("toolUseId")?.name("", 64)?.into(),
                name: call.require("name")?.name("", 64)?.into(),
                arguments: input.value.clone(),
            });
        } else if let Some(reasoning) = block.get("reasoningContent") {
            if let Some(shown) = reasoning.get("reasoningText") {
                let words = shown.require_text("text")?;
                if shown.require_text("signature")? != signature(words) {
                    return Err(shown.refuse("Invalid signature in thinking block"));
                }
                thinking.push_str(words);
            }
        } else if block.get("toolResult").is_none() {
            return Err(block.refuse("this content is not allowed in a message of the assistant"));
        }
    }
    Ok(ParsedMessage::Assistant { text, thinking, calls })
}

fn user(
    at: &RequestNode<'_>,
    content: &[RequestNode<'_>],
    open: &[ParsedToolCall],
    messages: &mut Vec<ParsedMessage>,
) -> RequestResult<()> {
    let (mut text, mut images, mut files) = (String::new(), Vec::new(), Vec::new());
    let mut results: Vec<ParsedToolResult> = Vec::new();
    for block in content {
        if let Some(answer) = block.get("toolResult") {
            let result = result(&answer, open)?;
            if results.iter().any(|earlier| earlier.id == result.id) {
                return Err(at.refuse(format!("more than one toolResult for {}", result.id)));
            }
            results.push(result);
        } else if block.get("text").is_some() {
            text.push_str(non_blank(block)?);
        } else if let Some(picture) = block.get("image") {
            images.push(image(&picture)?);
        } else if let Some(document) = block.get("document") {
            files.push(document.require_text("name")?.to_owned());
        } else {
            return Err(block.refuse("this content is not allowed in a message of the user"));
        }
    }
    if let Some(call) = open.iter().find(|call| results.iter().all(|result| result.id != call.id)) {
        return Err(unanswered(call));
    }
    if !open.is_empty() {
        results.sort_by_key(|result| open.iter().position(|call| call.id == result.id));
        messages.push(ParsedMessage::Results(results));
    }
    if !(text.is_empty() && images.is_empty() && files.is_empty()) {
        messages.push(ParsedMessage::User { text, images, files });
    }
    Ok(())
}

fn result(at: &RequestNode<'_>, open: &[ParsedToolCall]) -> RequestResult<ParsedToolResult> {
    at.allow_only(&["toolUseId", "content", "status"], unknown)?;
    let id = at.require_text("toolUseId")?;
    let Some(call) = open.iter().find(|call| call.id == id) else {
        return Err(at.refuse(format!("{id} answers no toolUse of the previous turn")));
    };
    let mut result =
        ParsedToolResult { id: id.into(), name: call.name.clone(), ..ParsedToolResult::default() };
    result.is_error = at.get_text("status")? == Some("error");
    for part in at.require("content")?.non_empty_items()? {
        if part.get("text").is_some() {
            result.text.push_str(part.require_text("text")?);
        } else if let Some(picture) = part.get("image") {
            result.images.push(image(&picture)?);
        } else if part.get("json").is_none() && part.get("document").is_none() {
            return Err(part.refuse("this content is not allowed in a toolResult"));
        }
    }
    Ok(result)
}

fn non_blank<'a>(block: &RequestNode<'a>) -> RequestResult<&'a str> {
    let text = block.require_text("text")?;
    if text.trim().is_empty() {
        return Err(block.refuse(
            "The text field in the ContentBlock object is blank. Add text to the text field, and try again.",
        ));
    }
    Ok(text)
}

fn image(at: &RequestNode<'_>) -> RequestResult<ParsedImage> {
    at.allow_only(&["format", "source"], unknown)?;
    let format = at.require_text("format")?;
    if !matches!(format, "png" | "jpeg" | "gif" | "webp") {
        return Err(at.refuse(format!("image format {format} is not supported")));
    }
    let source = at.require("source")?.require("bytes")?;
    // 3.75 MB, which is the same: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html
    let length = source.text()?.len();
    if length > PICTURE_BYTES_MAX {
        return Err(RequestRefusal::new(format!(
            "The model returned the following errors: {}.source.base64: image exceeds 5 MB maximum: {length} bytes > \
             {PICTURE_BYTES_MAX} bytes",
            at.path
        )));
    }
    let bytes = source.bytes()?;
    Ok(ParsedImage { media_type: format!("image/{format}"), bytes, url: None })
}
