//! Reading a Chat Completions request as api.openai.com does: unknown fields, unanswered calls and stray results are
//! 400, with its words.

use crate::dialect::tool_schema::{self, ToolSchemaRule};
use crate::parsed_request::{
    ParsedImage, ParsedMessage, ParsedRequest, ParsedTool, ParsedToolCall, ParsedToolChoice,
    ParsedToolResult, ReplyDelivery,
};
use crate::server::{
    CallIdRule, ContentRule, ForcedCallRule, ReasoningEchoRule, RoleRule, UnsupportedWords, UpstreamBehavior,
};
use crate::strict_json::{
    PathStyle, RequestNode, RequestRefusal, RequestResult, first_duplicate, join_texts,
};
use serde_json::Value;
use std::collections::HashMap;

const FIELDS: &[&str] = &[
    "model",
    "messages",
    "stream",
    "stream_options",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "temperature",
    "top_p",
    "n",
    "stop",
    "max_tokens",
    "max_completion_tokens",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "user",
    "seed",
    "response_format",
    "reasoning_effort",
    "modalities",
    "audio",
    "store",
    "metadata",
    "service_tier",
    "prediction",
    "prompt_cache_key",
    "safety_identifier",
    "verbosity",
    "web_search_options",
    "functions",
    "function_call",
    // Fields of compatible servers that their users set by name: DeepSeek, Qwen, OpenRouter, vLLM.
    "thinking",
    "enable_thinking",
    "thinking_budget",
    "reasoning",
    "include_reasoning",
    "provider",
    "transforms",
    "models",
    "chat_template_kwargs",
    "top_k",
    "min_p",
    "repetition_penalty",
];

/// Most calls of a message (openai/openai-dotnet#317).
const CALLS_PER_MESSAGE_MAX: usize = 128;

const ASSISTANT_FIELDS: &[&str] = &[
    "role",
    "content",
    "name",
    "tool_calls",
    "refusal",
    "audio",
    "function_call",
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "annotations",
    "prefix",
];

fn unrecognized(at: &RequestNode<'_>, key: &str) -> String {
    if at.path.is_empty() {
        format!("Unrecognized request argument supplied: {key}")
    } else {
        format!("Unknown parameter: '{}.{key}'.", at.path)
    }
}

pub(crate) fn read(
    body: &Value,
    mut seen: ParsedRequest,
    behavior: &UpstreamBehavior,
) -> RequestResult<ParsedRequest> {
    let root = RequestNode::root(body, PathStyle::Brackets);
    root.allow_only(FIELDS, unrecognized)?;
    if let Some(field) = behavior.unknown_fields.iter().find(|field| root.get(field).is_some()) {
        // As Mistral does.
        let words = format!(
            r#"{{"type":"extra_forbidden","loc":["body","{field}"],"msg":"Extra inputs are not permitted"}}"#
        );
        return Err(RequestRefusal::new(words).status(422));
    }
    seen.model = root.require_text("model")?.into();
    if let Some(field) = behavior.unsupported.iter().find(|field| root.get(field).is_some()) {
        if behavior.unsupported_words == UnsupportedWords::Xai {
            let words = format!("Model {} does not support parameter {}.", seen.model, camel_case(field));
            return Err(RequestRefusal::new(words).code("Client specified an invalid argument"));
        }
        let instead = if *field == "max_tokens" { " Use 'max_completion_tokens' instead." } else { "" };
        let words = format!("Unsupported parameter: '{field}' is not supported with this model.{instead}");
        return Err(RequestRefusal::new(words).code("unsupported_parameter"));
    }
    if let Some(schema) = body.pointer("/response_format/json_schema/schema") {
        match behavior.tool_schemas {
            ToolSchemaRule::Openai => {}
            ToolSchemaRule::Moonshot => tool_schema::check_moonshot(schema)?,
            ToolSchemaRule::LlamaCpp => tool_schema::check_llama_cpp(schema)?,
        }
    }
    if root.get("stream").map(|at| at.flag()).transpose()? == Some(true) {
        seen.delivery = ReplyDelivery::Stream;
    }
    if let Some(options) = root.get("stream_options") {
        if seen.delivery != ReplyDelivery::Stream {
            return Err(
                options.refuse("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
            );
        }
        options.allow_only(&["include_usage", "include_obfuscation"], unrecognized)?;
        seen.wants_usage = options.get("include_usage").map(|at| at.flag()).transpose()? == Some(true);
    }
    for key in ["max_tokens", "max_completion_tokens"] {
        if let Some(at) = root.get(key) {
            seen.max_output_tokens = Some(at.count()?);
        }
    }
    if seen.max_output_tokens == Some(0) {
        return Err(RequestRefusal::new(
            "max_tokens is too small: 0. This model supports at least 1 completion token.",
        ));
    }
    seen.tools = root.get("tools").map(|at| tools(&at, behavior)).transpose()?.unwrap_or_default();
    seen.tool_choice = choice(&root, &seen.tools)?;
    check_forced_call(&root, &seen.tool_choice, behavior.forced_calls)?;
    let list = root.require("messages")?;
    check_roles(&list, behavior.roles)?;
    check_reasoning(&list, behavior.reasoning)?;
    let (instructions, messages) = conversation(&list, behavior)?;
    (seen.instructions, seen.messages) = (join_texts(instructions), messages);
    Ok(seen)
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| name + &word[..1].to_uppercase() + &word[1..])
}

fn tools(list: &RequestNode<'_>, behavior: &UpstreamBehavior) -> RequestResult<Vec<ParsedTool>> {
    let mut tools = Vec::new();
    for at in items_up_to(list, behavior.tools_max.unwrap_or(usize::MAX))? {
        at.allow_only(&["type", "function"], unrecognized)?;
        if at.require_text("type")? != "function" {
            return Err(at.refuse("only tools of type 'function' are supported."));
        }
        let function = at.require("function")?;
        function.allow_only(&["name", "description", "parameters", "strict"], unrecognized)?;
        let parameters = function.get("parameters").map(|schema| schema.object_schema()).transpose()?;
        if let Some(schema) = &parameters {
            match behavior.tool_schemas {
                ToolSchemaRule::Openai => {
                    tool_schema::check_openai(function.get_text("name")?.unwrap_or_default(), schema)?;
                }
                ToolSchemaRule::Moonshot => tool_schema::check_moonshot(schema)?,
                ToolSchemaRule::LlamaCpp => tool_schema::check_llama_cpp(schema)?,
            }
        }
        tools.push(ParsedTool {
            name: function.require("name")?.name("", 64)?.into(),
            description: function.get_text("description")?.unwrap_or_default().into(),
            parameters: parameters.unwrap_or_default(),
        });
    }
    match first_duplicate(tools.iter().map(|tool| tool.name.as_str())) {
        Some(name) => Err(list.refuse(format!("tool names must be unique, but '{name}' occurs twice."))),
        None => Ok(tools),
    }
}

pub(crate) fn items_up_to<'a>(list: &RequestNode<'a>, most: usize) -> RequestResult<Vec<RequestNode<'a>>> {
    let items = list.non_empty_items()?;
    let count = items.len();
    if count > most {
        let why = format!(
            "array too long. Expected an array with maximum length {most}, but got an array with length {count} instead."
        );
        return Err(list.refuse(why).code("array_above_max_length"));
    }
    Ok(items)
}

fn choice(root: &RequestNode<'_>, tools: &[ParsedTool]) -> RequestResult<ParsedToolChoice> {
    for key in ["tool_choice", "parallel_tool_calls"] {
        if let (Some(at), true) = (root.get(key), tools.is_empty()) {
            return Err(at.refuse(format!("'{key}' is only allowed when 'tools' are specified.")));
        }
    }
    let Some(at) = root.get("tool_choice") else { return Ok(ParsedToolChoice::Auto) };
    match at.value.as_str() {
        Some("auto") => Ok(ParsedToolChoice::Auto),
        Some("none") => Ok(ParsedToolChoice::None),
        Some("required" | "any") => Ok(ParsedToolChoice::Required),
        Some(other) => Err(at.refuse(format!("'{other}' is not one of ['none', 'auto', 'required']."))),
        None => {
            let name = at.require("function")?.require_text("name")?;
            if !tools.iter().any(|tool| tool.name == name) {
                return Err(at.refuse(format!("tool choice '{name}' not found in 'tools'.")));
            }
            Ok(ParsedToolChoice::Named(name.into()))
        }
    }
}

fn check_forced_call(
    root: &RequestNode<'_>,
    choice: &ParsedToolChoice,
    rule: ForcedCallRule,
) -> RequestResult<()> {
    let is_forced = matches!(choice, ParsedToolChoice::Required | ParsedToolChoice::Named(_));
    let is_on = root.value["enable_thinking"] == true;
    let thinks = root.value["thinking"]["type"].as_str().is_some_and(|kind| kind != "disabled");
    let words = match rule {
        ForcedCallRule::Dashscope if is_forced && is_on => {
            "<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to required \
             or object in thinking mode"
        }
        ForcedCallRule::Deepseek if is_forced && thinks => "Thinking mode does not support this tool_choice",
        ForcedCallRule::Moonshot if thinks && *choice == ParsedToolChoice::Required => {
            "tool_choice 'required' is incompatible with thinking enabled"
        }
        ForcedCallRule::Moonshot if thinks && is_forced => {
            "tool_choice 'specified' is incompatible with thinking enabled"
        }
        ForcedCallRule::Zhipu if *choice != ParsedToolChoice::Auto => "Tool choice must be auto",
        _ => return Ok(()),
    };
    Err(RequestRefusal::new(words))
}

fn role_of<'a>(message: &RequestNode<'a>) -> &'a str {
    message.value["role"].as_str().unwrap_or_default()
}

fn check_roles(list: &RequestNode<'_>, rule: RoleRule) -> RequestResult<()> {
    let messages = list.non_empty_items()?;
    let roles: Vec<&str> =
        messages.iter().map(role_of).filter(|role| !matches!(*role, "system" | "developer")).collect();
    match rule {
        RoleRule::Any => Ok(()),
        RoleRule::AlternatingWithoutCalls => {
            let without_calls = messages.iter().filter(|message| message.get("tool_calls").is_none());
            let roles = without_calls.map(role_of).filter(|role| matches!(*role, "user" | "assistant"));
            if roles.enumerate().all(|(at, role)| (role == "user") == (at % 2 == 0)) {
                return Ok(());
            }
            let words = "After the optional system message, conversation roles must alternate user and assistant \
                roles except for tool calls and results.";
            Err(RequestRefusal::new(words).status(500))
        }
        RoleRule::Alternating => {
            // A step with calls and its results is one word of the model.
            let starts_with_user = roles.first().is_none_or(|first| *first == "user");
            let repeats =
                roles.windows(2).any(|pair| matches!(pair, ["user", "user"] | ["assistant", "assistant"]));
            if starts_with_user && !repeats {
                return Ok(());
            }
            let words = "Conversation roles must alternate user/assistant/user/assistant/...";
            Err(RequestRefusal::new(words).status(500))
        }
        RoleRule::Mistral => {
            if roles.windows(2).any(|pair| matches!(pair, ["tool", "user"])) {
                return Err(RequestRefusal::new("Unexpected role 'user' after role 'tool'").code("3230"));
            }
            if roles.last() == Some(&"assistant") {
                let words = "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant";
                return Err(RequestRefusal::new(words).code("3230"));
            }
            Ok(())
        }
    }
}

/// In a turn with calls all reasoning must be sent back, in every later request.
/// https://api-docs.deepseek.com/guides/thinking_mode
fn check_reasoning(list: &RequestNode<'_>, rule: ReasoningEchoRule) -> RequestResult<()> {
    if rule != ReasoningEchoRule::TurnsWithCalls {
        return Ok(());
    }
    let messages = list.non_empty_items()?;
    for turn in messages.split(|message| role_of(message) == "user") {
        let has_calls = turn.iter().any(|message| message.get("tool_calls").is_some());
        let is_missing = |message: &&RequestNode<'_>| {
            role_of(message) == "assistant" && !message.value["reasoning_content"].is_string()
        };
        if has_calls && turn.iter().any(|message| is_missing(&message)) {
            let words = "The `reasoning_content` in the thinking mode must be passed back to the API.";
            return Err(RequestRefusal::new(words));
        }
    }
    Ok(())
}

/// Refuses content that this upstream does not take.
fn check_content(at: &RequestNode<'_>, rule: ContentRule) -> RequestResult<()> {
    let content = &at.value["content"];
    let is_blank = |text: &str| text.trim().is_empty();
    match rule {
        ContentRule::Any => Ok(()),
        ContentRule::PlainText
            if content.as_array().is_some_and(|parts| parts.iter().all(|part| part["type"] == "text")) =>
        {
            Err(at.refuse("content: invalid type: sequence, expected a string"))
        }
        ContentRule::NotEmpty
            if content.as_str().is_some_and(is_blank)
                || content.as_array().is_some_and(|parts| {
                    parts.iter().any(|part| part["text"].as_str().is_some_and(is_blank))
                }) =>
        {
            let words = format!("Invalid request: {} with role '{}' must not be empty", at.path, role_of(at));
            Err(RequestRefusal::new(words))
        }
        ContentRule::PlainText | ContentRule::NotEmpty => Ok(()),
    }
}

/// Walks the messages; `open` holds the calls that the next messages must answer.
fn conversation(
    list: &RequestNode<'_>,
    behavior: &UpstreamBehavior,
) -> RequestResult<(Vec<String>, Vec<ParsedMessage>)> {
    let (mut instructions, mut messages) = (Vec::new(), Vec::new());
    let mut open: Option<UnansweredCalls> = None;
    for at in list.non_empty_items()? {
        let role = at.require_text("role")?;
        check_content(&at, behavior.content)?;
        if role == "tool" {
            let Some(open) = &mut open else { return Err(stray_result(&at)) };
            open.answer(&at, behavior)?;
            continue;
        }
        if let Some(done) = open.take() {
            messages.push(done.close()?);
        }
        match role {
            "system" | "developer" => {
                at.allow_only(&["role", "content", "name"], unrecognized)?;
                let (text, images, _) = content(&at.require("content")?)?;
                if !images.is_empty() {
                    return Err(at.refuse("system messages cannot have images."));
                }
                instructions.push(text);
            }
            "user" => {
                at.allow_only(&["role", "content", "name"], unrecognized)?;
                let (text, images, files) = content(&at.require("content")?)?;
                messages.push(ParsedMessage::User { text, images, files });
            }
            "assistant" => {
                let (message, calls) = assistant(&at, behavior)?;
                messages.push(message);
                open = (!calls.is_empty()).then(|| UnansweredCalls {
                    at: at.path.clone(),
                    by_id: calls.iter().enumerate().map(|(index, call)| (call.id.clone(), index)).collect(),
                    answers: vec![None; calls.len()],
                    calls,
                });
            }
            other => {
                return Err(at.refuse(format!(
                    "'{other}' is not one of ['system', 'assistant', 'user', 'function', 'tool', 'developer']."
                )));
            }
        }
    }
    if let Some(done) = open.take() {
        messages.push(done.close()?);
    }
    Ok((instructions, messages))
}

fn stray_result(at: &RequestNode<'_>) -> RequestRefusal {
    let words = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.";
    RequestRefusal {
        param: Some(at.path.clone()),
        ..RequestRefusal::new(format!("Invalid parameter: {words}"))
    }
}

struct UnansweredCalls {
    at: String,
    by_id: HashMap<String, usize>,
    calls: Vec<ParsedToolCall>,
    answers: Vec<Option<ParsedToolResult>>,
}

impl UnansweredCalls {
    fn answer(&mut self, at: &RequestNode<'_>, behavior: &UpstreamBehavior) -> RequestResult<()> {
        at.allow_only(&["role", "content", "tool_call_id", "name"], unrecognized)?;
        let id = at.require_text("tool_call_id")?;
        let (text, images, _) = content(&at.require("content")?)?;
        // Pictures belong into a user message after all results (OpenHands/OpenHands#7700).
        if !images.is_empty() {
            return Err(RequestRefusal::new(format!(
                "Invalid '{}'. Image URLs are only allowed for messages with role 'user', but this message with role 'tool' \
                 contains an image URL.",
                at.path
            )));
        }
        let Some(&index) = self.by_id.get(id) else { return Err(stray_result(at)) };
        if self.answers[index].is_some() {
            return Err(at.refuse(format!("tool call '{id}' has been answered already.")));
        }
        if behavior.call_ids == CallIdRule::Mistral && self.answers.iter().take(index).any(Option::is_none) {
            return Err(RequestRefusal::new("Not the same order of function calls and responses"));
        }
        let name = self.calls[index].name.clone();
        self.answers[index] =
            Some(ParsedToolResult { id: id.into(), name, text, is_error: false, images: Vec::new() });
        Ok(())
    }

    fn close(self) -> RequestResult<ParsedMessage> {
        let unanswered = self.calls.iter().zip(&self.answers).filter(|(_, answer)| answer.is_none());
        let missing: Vec<&str> = unanswered.map(|(call, _)| call.id.as_str()).collect();
        if !missing.is_empty() {
            let message = format!(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
                 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
                missing.join(", ")
            );
            return Err(RequestRefusal { param: Some(self.at), ..RequestRefusal::new(message) });
        }
        Ok(ParsedMessage::Results(self.answers.into_iter().flatten().collect()))
    }
}

fn assistant(
    at: &RequestNode<'_>,
    behavior: &UpstreamBehavior,
) -> RequestResult<(ParsedMessage, Vec<ParsedToolCall>)> {
    at.allow_only(ASSISTANT_FIELDS, unrecognized)?;
    let calls = match at.get("tool_calls") {
        None => Vec::new(),
        Some(list) => {
            let calls = items_up_to(&list, CALLS_PER_MESSAGE_MAX)?;
            calls.iter().map(|at| call(at, behavior)).collect::<RequestResult<Vec<_>>>()?
        }
    };
    if let Some(id) = first_duplicate(calls.iter().map(|call| call.id.as_str())) {
        return Err(at.refuse(format!("tool call ids must be unique, but '{id}' occurs twice.")));
    }
    let text = match at.get("content") {
        Some(part) => content(&part)?.0,
        None if calls.is_empty() && at.get("refusal").is_none() => {
            return Err(at.refuse("expected a string or 'tool_calls', got null."));
        }
        None => String::new(),
    };
    let thinking = match (at.get("reasoning_content"), at.get("reasoning")) {
        (Some(text), _) | (None, Some(text)) => text.text()?.to_owned(),
        (None, None) => String::new(),
    };
    let echoed = at.value.get("reasoning_content").is_some_and(Value::is_string);
    if behavior.reasoning == ReasoningEchoRule::Required && !calls.is_empty() && !echoed {
        let words = "Missing `reasoning_content` field in the assistant message at message index ";
        let index = at.path.trim_matches(|c: char| !c.is_ascii_digit());
        return Err(RequestRefusal::new(format!("{words}{index}")));
    }
    Ok((ParsedMessage::Assistant { text, thinking, calls: calls.clone() }, calls))
}

fn call(at: &RequestNode<'_>, behavior: &UpstreamBehavior) -> RequestResult<ParsedToolCall> {
    at.allow_only(&["id", "type", "function", "index", "extra_content"], unrecognized)?;
    let id = at.require_text("id")?;
    if id.is_empty() {
        return Err(at.refuse("empty string. Expected an id with minimum length 1."));
    }
    if id.len() > 40 {
        let words = format!(
            "string too long. Expected a string with maximum length 40, but got a string with length {} instead.",
            id.len()
        );
        return Err(at.refuse(words).code("string_above_max_length"));
    }
    let nine = id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric());
    if behavior.call_ids == CallIdRule::Mistral && !nine {
        let words = format!("Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9.");
        return Err(RequestRefusal::new(words).code("3280"));
    }
    if at.require_text("type")? != "function" {
        return Err(at.refuse("only tool calls of type 'function' are supported."));
    }
    let function = at.require("function")?;
    function.allow_only(&["name", "arguments"], unrecognized)?;
    let text = function.require_text("arguments")?;
    let arguments = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.into()));
    Ok(ParsedToolCall { id: id.into(), name: function.require("name")?.name("", 64)?.into(), arguments })
}

/// Text, or a list of parts.
fn content(at: &RequestNode<'_>) -> RequestResult<(String, Vec<ParsedImage>, Vec<String>)> {
    if let Some(text) = at.value.as_str() {
        return Ok((text.into(), Vec::new(), Vec::new()));
    }
    let (mut text, mut images, mut files) = (String::new(), Vec::new(), Vec::new());
    for part in at.non_empty_items()? {
        match part.require_text("type")? {
            "text" => text.push_str(part.require_text("text")?),
            "refusal" => text.push_str(part.require_text("refusal")?),
            "image_url" => {
                let image = part.require("image_url")?;
                image.allow_only(&["url", "detail"], unrecognized)?;
                images.push(image.require("url")?.image_url()?);
            }
            "file" => {
                let file = part.require("file")?;
                files.push(file.get_text("filename")?.unwrap_or("file").into());
            }
            "input_audio" => files.push("audio".into()),
            "thinking" => {}
            other => return Err(part.refuse(format!("'{other}' is not a supported part type."))),
        }
    }
    Ok((text, images, files))
}
