//! Reading a Responses request as api.openai.com does with `store: false`: one output per call, reasoning directly
//! before what it led to, encrypted content unchanged.

use crate::dialect::openai_chat::request::items_up_to;
use crate::dialect::tool_schema;
use crate::fake_ids::signature;
use crate::parsed_request::{
    ParsedImage, ParsedMessage, ParsedRequest, ParsedTool, ParsedToolCall, ParsedToolChoice,
    ParsedToolResult, ReplyDelivery,
};
use crate::server::UpstreamBehavior;
use crate::strict_json::{
    PathStyle, RequestNode, RequestRefusal, RequestResult, first_duplicate, join_texts,
};
use serde_json::Value;

const FIELDS: &[&str] = &[
    "model",
    "input",
    "instructions",
    "stream",
    "stream_options",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_output_tokens",
    "max_tool_calls",
    "temperature",
    "top_p",
    "top_logprobs",
    "reasoning",
    "text",
    "store",
    "include",
    "metadata",
    "user",
    "previous_response_id",
    "truncation",
    "background",
    "service_tier",
    "prompt",
    "prompt_cache_key",
    "safety_identifier",
    "conversation",
];

fn unknown(at: &RequestNode<'_>, key: &str) -> String {
    let path = if at.path.is_empty() { key.to_owned() } else { format!("{}.{key}", at.path) };
    format!("Unknown parameter: '{path}'.")
}

pub(crate) fn read(
    body: &Value,
    mut seen: ParsedRequest,
    behavior: &UpstreamBehavior,
) -> RequestResult<ParsedRequest> {
    let root = RequestNode::root(body, PathStyle::Brackets);
    root.allow_only(FIELDS, unknown)?;
    seen.model = root.require_text("model")?.into();
    if root.get("stream").map(|at| at.flag()).transpose()? == Some(true) {
        seen.delivery = ReplyDelivery::Stream;
    }
    if let Some(id) = root.get_text("previous_response_id")? {
        let words = format!("Previous response with id '{id}' not found.");
        return Err(RequestRefusal::new(words).code("previous_response_not_found"));
    }
    if let Some(most) = root.get("max_output_tokens") {
        let count = most.count()?;
        if count < 16 {
            return Err(most.refuse(format!(
                "integer below minimum value. Expected a value >= 16, but got {count} instead."
            )));
        }
        seen.max_output_tokens = Some(count);
    }
    seen.tools = root.get("tools").map(|at| tools(&at, behavior)).transpose()?.unwrap_or_default();
    seen.tool_choice = choice(&root, &seen.tools)?;
    let stores = root.get("store").map(|at| at.flag()).transpose()? != Some(false);
    let mut instructions: Vec<String> =
        root.get_text("instructions")?.map(str::to_owned).into_iter().collect();
    let input = root.require("input")?;
    if let Some(text) = input.value.as_str() {
        seen.messages =
            vec![ParsedMessage::User { text: text.into(), images: Vec::new(), files: Vec::new() }];
    } else {
        seen.messages = ResponsesInput::read(&input, stores, &mut instructions)?;
    }
    seen.instructions = join_texts(instructions);
    Ok(seen)
}

fn tools(list: &RequestNode<'_>, behavior: &UpstreamBehavior) -> RequestResult<Vec<ParsedTool>> {
    let mut tools = Vec::new();
    for at in items_up_to(list, behavior.tools_max.unwrap_or(usize::MAX))? {
        if at.require_text("type")? != "function" {
            continue;
        }
        let name: String = at.require("name")?.name("", 64)?.into();
        at.allow_only(&["type", "name", "description", "parameters", "strict"], unknown)?;
        let parameters = at.require("parameters")?.object_schema()?;
        tool_schema::check_openai(&name, &parameters)?;
        if at.get("strict").map(|flag| flag.flag()).transpose()? != Some(false)
            && parameters.get("additionalProperties") != Some(&Value::Bool(false))
        {
            // `strict` is on by default.
            return Err(RequestRefusal::new(format!(
                "Invalid schema for function '{name}': In context=(), 'additionalProperties' is required to be \
                 supplied and to be false."
            ))
            .code("invalid_function_parameters"));
        }
        tools.push(ParsedTool {
            name,
            description: at.get_text("description")?.unwrap_or_default().into(),
            parameters,
        });
    }
    match first_duplicate(tools.iter().map(|tool| tool.name.as_str())) {
        Some(name) => Err(list.refuse(format!("tool names must be unique, but '{name}' occurs twice."))),
        None => Ok(tools),
    }
}

fn choice(root: &RequestNode<'_>, tools: &[ParsedTool]) -> RequestResult<ParsedToolChoice> {
    let Some(at) = root.get("tool_choice") else { return Ok(ParsedToolChoice::Auto) };
    match at.value.as_str() {
        Some("auto") => Ok(ParsedToolChoice::Auto),
        Some("none") => Ok(ParsedToolChoice::None),
        Some("required") if tools.is_empty() => {
            Err(at.refuse("Tool choice 'required' must be specified with 'tools' parameter."))
        }
        Some("required") => Ok(ParsedToolChoice::Required),
        Some(other) => Err(at.refuse(format!("'{other}' is not one of 'none', 'auto', 'required'."))),
        None => match at.require_text("name")? {
            name if tools.iter().any(|tool| tool.name == name) => Ok(ParsedToolChoice::Named(name.into())),
            name => Err(at.refuse(format!("Tool choice '{name}' not found in 'tools' parameter."))),
        },
    }
}

/// Items in a row that make up one model step, and the outputs that answer it.
#[derive(Default)]
struct ResponsesInput {
    messages: Vec<ParsedMessage>,
    text: String,
    thinking: String,
    calls: Vec<ParsedToolCall>,
    answers: Vec<Option<ParsedToolResult>>,
    /// True while items of the model are open.
    speaking: bool,
    /// A reasoning item that must be followed by the item that it led to.
    thought: Option<String>,
}

impl ResponsesInput {
    fn read(
        input: &RequestNode<'_>,
        stores: bool,
        instructions: &mut Vec<String>,
    ) -> RequestResult<Vec<ParsedMessage>> {
        let mut all = Self::default();
        for at in input.items()? {
            match at.get_text("type")?.unwrap_or("message") {
                "message" => all.message(&at, instructions)?,
                "reasoning" => all.reasoning(&at, stores)?,
                "function_call" => all.call(&at)?,
                "function_call_output" => all.output(&at)?,
                other => {
                    return Err(at.refuse(format!(
                        "'{other}'. Supported values are: 'message', 'function_call', 'function_call_output', and \
                         'reasoning'."
                    )));
                }
            }
        }
        all.close()?;
        Ok(all.messages)
    }

    fn message(&mut self, at: &RequestNode<'_>, instructions: &mut Vec<String>) -> RequestResult<()> {
        at.allow_only(&["type", "role", "content", "id", "status", "phase"], unknown)?;
        let role = at.require_text("role")?;
        let content = content(&at.require("content")?, role)?;
        match role {
            "assistant" => {
                if !self.answers.is_empty() && self.answers.iter().all(Option::is_some) {
                    self.close()?;
                }
                self.thought = None;
                self.speaking = true;
                self.text.push_str(&content.text);
            }
            "user" => {
                self.close()?;
                let InputContent { text, images, files } = content;
                self.messages.push(ParsedMessage::User { text, images, files });
            }
            "system" | "developer" => {
                self.close()?;
                instructions.push(content.text);
            }
            other => {
                return Err(at.refuse(format!(
                    "'{other}'. Supported values are: 'assistant', 'system', 'developer', and 'user'."
                )));
            }
        }
        Ok(())
    }

    fn reasoning(&mut self, at: &RequestNode<'_>, stores: bool) -> RequestResult<()> {
        // Every output item has a `status`, and this one may not come back with it.
        at.allow_only(&["type", "id", "summary", "content", "encrypted_content"], unknown)?;
        if self.answers.iter().any(Option::is_some) {
            self.close()?;
        }
        self.check_followed()?;
        let mut text = String::new();
        for part in at.require("summary")?.items()? {
            if part.require_text("type")? != "summary_text" {
                return Err(part.refuse("Supported values are: 'summary_text'."));
            }
            text.push_str(part.require_text("text")?);
        }
        let id = at.get_text("id")?.unwrap_or_default();
        match at.get_text("encrypted_content")? {
            None if !stores => {
                return Err(RequestRefusal::new(format!(
                    "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again \
                     with `store` set to true, or remove this item from your input."
                ))
                .status(404));
            }
            Some(content) if content != signature(&text) => {
                let words = format!("The encrypted content for item {id} could not be verified.");
                return Err(RequestRefusal::new(words).code("invalid_encrypted_content"));
            }
            _ => {}
        }
        self.thinking.push_str(&text);
        self.speaking = true;
        self.thought = Some(id.into());
        Ok(())
    }

    fn call(&mut self, at: &RequestNode<'_>) -> RequestResult<()> {
        at.allow_only(&["type", "id", "call_id", "name", "arguments", "status"], unknown)?;
        if self.answers.iter().any(Option::is_some) {
            self.close()?;
        }
        self.thought = None;
        self.speaking = true;
        let id = at.require_text("call_id")?;
        if id.is_empty() || id.len() > 64 {
            return Err(at.require("call_id")?.refuse("Expected a string with length between 1 and 64."));
        }
        if at.get_text("id")?.is_some_and(|id| !id.starts_with("fc")) {
            return Err(at.require("id")?.refuse("Expected an ID that begins with 'fc'."));
        }
        if self.calls.iter().any(|call| call.id == id) {
            return Err(at.refuse(format!("Duplicate function call with call_id {id}.")));
        }
        let text = at.require_text("arguments")?;
        let arguments = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.into()));
        let name = at.require("name")?.name("", 64)?.into();
        self.calls.push(ParsedToolCall { id: id.into(), name, arguments });
        self.answers.push(None);
        Ok(())
    }

    fn output(&mut self, at: &RequestNode<'_>) -> RequestResult<()> {
        at.allow_only(&["type", "id", "call_id", "output", "status"], unknown)?;
        self.check_followed()?;
        let id = at.require_text("call_id")?;
        let Some(index) = self.calls.iter().position(|call| call.id == id) else {
            return Err(RequestRefusal::new(format!(
                "No tool call found for function call output with call_id {id}."
            )));
        };
        if self.answers[index].is_some() {
            return Err(at.refuse(format!("Duplicate output for function call with call_id {id}.")));
        }
        let InputContent { text, images, .. } = content(&at.require("output")?, "user")?;
        let name = self.calls[index].name.clone();
        self.answers[index] = Some(ParsedToolResult { id: id.into(), name, text, is_error: false, images });
        Ok(())
    }

    fn check_followed(&mut self) -> RequestResult<()> {
        match self.thought.take() {
            Some(id) => Err(RequestRefusal::new(format!(
                "Item '{id}' of type 'reasoning' was provided without its required following item."
            ))),
            None => Ok(()),
        }
    }

    fn close(&mut self) -> RequestResult<()> {
        self.check_followed()?;
        if let Some((call, _)) = self.calls.iter().zip(&self.answers).find(|(_, answer)| answer.is_none()) {
            return Err(RequestRefusal::new(format!("No tool output found for function call {}.", call.id)));
        }
        if std::mem::take(&mut self.speaking) {
            self.messages.push(ParsedMessage::Assistant {
                text: std::mem::take(&mut self.text),
                thinking: std::mem::take(&mut self.thinking),
                calls: std::mem::take(&mut self.calls),
            });
        }
        let answers = std::mem::take(&mut self.answers);
        if !answers.is_empty() {
            self.messages.push(ParsedMessage::Results(answers.into_iter().flatten().collect()));
        }
        Ok(())
    }
}

#[derive(Default)]
struct InputContent {
    text: String,
    images: Vec<ParsedImage>,
    files: Vec<String>,
}

fn content(at: &RequestNode<'_>, role: &str) -> RequestResult<InputContent> {
    let mut content = InputContent::default();
    if let Some(text) = at.value.as_str() {
        content.text = text.into();
        return Ok(content);
    }
    for part in at.items()? {
        let kind = part.require_text("type")?;
        match (kind, role) {
            ("output_text", "assistant") => {
                part.allow_only(&["type", "text", "annotations", "logprobs"], unknown)?;
                content.text.push_str(part.require_text("text")?);
            }
            ("refusal", "assistant") => content.text.push_str(part.require_text("refusal")?),
            (_, "assistant") => {
                return Err(
                    part.refuse(format!("'{kind}'. Supported values are: 'output_text' and 'refusal'."))
                );
            }
            ("input_text", _) => {
                part.allow_only(&["type", "text"], unknown)?;
                content.text.push_str(part.require_text("text")?);
            }
            ("input_image", _) => {
                part.allow_only(&["type", "image_url", "file_id", "detail"], unknown)?;
                content.images.push(part.require("image_url")?.image_url()?);
            }
            ("input_file", _) => content.files.push(part.get_text("filename")?.unwrap_or("file").into()),
            _ => {
                return Err(part.refuse(format!(
                    "'{kind}'. Supported values are: 'input_text', 'input_image', and 'input_file'."
                )));
            }
        }
    }
    Ok(content)
}
