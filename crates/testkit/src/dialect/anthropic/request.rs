//! Reading a Messages request as api.anthropic.com does: results first in the next user message, one per call, thinking
//! blocks exactly as they were signed.

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
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

/// Shortest data of a hidden thought, in bytes.
const REDACTED_BYTES_MIN: usize = 12;

/// Longest base64 of a picture (anthropics/claude-code#19631).
pub(crate) const PICTURE_BYTES_MAX: usize = 5 * 1024 * 1024;
/// Most pictures of a request, of models with 200,000 tokens (anthropics/claude-code#23392).
const PICTURES_MAX: usize = 100;
/// Pictures that may be as large as a lone one (charmbracelet/crush#3810).
const FEW_PICTURES: usize = 20;
/// Longest side of a picture (anthropics/claude-code#5147).
const SIDE_MAX: u32 = 8_000;
/// Longest side of a picture, in pixels, if there are more than [`FEW_PICTURES`]
/// (anthropics/claude-code#24630).
const SIDE_OF_MANY_MAX: u32 = 2_000;

const FIELDS: &[&str] = &[
    "model",
    "messages",
    "max_tokens",
    "system",
    "stream",
    "tools",
    "tool_choice",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "metadata",
    "thinking",
    "service_tier",
    "container",
    "context_management",
    "mcp_servers",
    "output_config",
    "output_format",
    "cache_control",
    "inference_geo",
];

fn extra(at: &RequestNode<'_>, key: &str) -> String {
    let path = if at.path.is_empty() { key.to_owned() } else { format!("{}.{key}", at.path) };
    format!("{path}: Extra inputs are not permitted")
}

pub(crate) fn read(
    body: &Value,
    mut seen: ParsedRequest,
    behavior: &UpstreamBehavior,
) -> RequestResult<ParsedRequest> {
    if seen.header("anthropic-version").is_none() {
        return Err(RequestRefusal::new("anthropic-version: header is required"));
    }
    let root = RequestNode::root(body, PathStyle::Dots);
    root.allow_only(FIELDS, extra)?;
    seen.model = root.require_text("model")?.into();
    if root.get("stream").map(|at| at.flag()).transpose()? == Some(true) {
        seen.delivery = ReplyDelivery::Stream;
    }
    read_body(&root, seen, behavior)
}

/// Reads a request to Bedrock: a version in the body instead of a header, model and form of the reply in the
/// path.
pub(crate) fn read_invocation(
    body: &Value,
    seen: ParsedRequest,
    behavior: &UpstreamBehavior,
) -> RequestResult<ParsedRequest> {
    let root = RequestNode::root(body, PathStyle::Dots);
    let others = FIELDS.iter().copied().filter(|field| !matches!(*field, "model" | "stream"));
    root.allow_only(&others.chain(["anthropic_version", "anthropic_beta"]).collect::<Vec<_>>(), extra)?;
    if root.require_text("anthropic_version")? != "bedrock-2023-05-31" {
        return Err(RequestRefusal::new("anthropic_version: Input should be 'bedrock-2023-05-31'"));
    }
    read_body(&root, seen, behavior)
}

fn read_body(
    root: &RequestNode<'_>,
    mut seen: ParsedRequest,
    behavior: &UpstreamBehavior,
) -> RequestResult<ParsedRequest> {
    let most = root.require("max_tokens")?.count()?;
    if most == 0 {
        return Err(RequestRefusal::new("max_tokens: must be greater than or equal to 1"));
    }
    seen.max_output_tokens = Some(most);
    check_settings(root, most)?;
    if let Some(schema) = root.value.pointer("/output_config/format/schema") {
        tool_schema::check_anthropic_reply(schema)?;
    }
    seen.instructions = root.get("system").map(|at| system(&at)).transpose()?.flatten();
    seen.tools = root.get("tools").map(|at| tools(&at)).transpose()?.unwrap_or_default();
    seen.tool_choice = choice(root, &seen.tools)?;
    let turns = turns(&root.require("messages")?)?;
    match root.get("thinking").and_then(|at| at.get_text("type").ok().flatten()) {
        Some("enabled") => check_first_thought(&turns)?,
        Some("disabled") => check_no_thoughts(&turns)?,
        None if behavior.thinks_only_when_asked => check_no_thoughts(&turns)?,
        _ => {}
    }
    check_pictures(&turns, behavior.pictures_max.unwrap_or(PICTURES_MAX))?;
    let has_last_word = check_last(&turns);
    seen.messages = conversation(turns)?;
    has_last_word?;
    let calls = |message: &ParsedMessage| matches!(message, ParsedMessage::Assistant { calls, .. } if !calls.is_empty());
    if seen.tools.is_empty() && seen.messages.iter().any(calls) {
        return Err(RequestRefusal::new(
            "Requests which include `tool_use` or `tool_result` blocks must define tools",
        ));
    }
    Ok(seen)
}

fn system(at: &RequestNode<'_>) -> RequestResult<Option<String>> {
    if let Some(text) = at.value.as_str() {
        return Ok(Some(text.into()));
    }
    let mut parts = Vec::new();
    for block in at.items()? {
        block.allow_only(&["type", "text", "cache_control", "citations"], extra)?;
        if block.require_text("type")? != "text" {
            return Err(block.refuse("Input tag should be 'text'"));
        }
        parts.push(non_empty(&block)?.to_owned());
    }
    Ok(join_texts(parts))
}

fn non_empty<'a>(block: &RequestNode<'a>) -> RequestResult<&'a str> {
    match block.require_text("text")? {
        "" => Err(RequestRefusal::new("messages: text content blocks must be non-empty")),
        text if text.trim().is_empty() => {
            Err(RequestRefusal::new("messages: text content blocks must contain non-whitespace text"))
        }
        text => Ok(text),
    }
}

fn tools(list: &RequestNode<'_>) -> RequestResult<Vec<ParsedTool>> {
    let mut tools = Vec::new();
    for at in list.items()? {
        // Tools that the provider runs have a version in their type, and no schema.
        if at
            .get_text("type")?
            .is_some_and(|kind| kind.starts_with("web_search_") || kind.starts_with("code_execution_"))
        {
            at.allow_only(&["type", "name", "max_uses", "allowed_domains", "cache_control"], extra)?;
            at.require("name")?.name("", 128)?;
            continue;
        }
        let known = [
            "type",
            "name",
            "description",
            "input_schema",
            "cache_control",
            "strict",
            "input_examples",
            "eager_input_streaming",
        ];
        at.allow_only(&known, extra)?;
        if let Some(kind @ ("function" | "object")) = at.get_text("type")? {
            return Err(at.refuse(format!(
                "Input tag '{kind}' found using 'type' does not match any of the expected tags: 'custom'"
            )));
        }
        let parameters = at.require("input_schema")?.object_schema()?;
        tool_schema::check_anthropic(&at.path, &parameters)?;
        tools.push(ParsedTool {
            name: at.require("name")?.name("", 128)?.into(),
            description: at.get_text("description")?.unwrap_or_default().into(),
            parameters,
        });
    }
    match first_duplicate(tools.iter().map(|tool| tool.name.as_str())) {
        Some(_) => Err(RequestRefusal::new("tools: Tool names must be unique.")),
        None => Ok(tools),
    }
}

fn choice(root: &RequestNode<'_>, tools: &[ParsedTool]) -> RequestResult<ParsedToolChoice> {
    let Some(at) = root.get("tool_choice") else { return Ok(ParsedToolChoice::Auto) };
    at.allow_only(&["type", "name", "disable_parallel_tool_use"], extra)?;
    if tools.is_empty() {
        return Err(at.refuse("tool_choice may only be specified while providing tools"));
    }
    match at.require_text("type")? {
        "auto" => Ok(ParsedToolChoice::Auto),
        "none" => Ok(ParsedToolChoice::None),
        "any" => Ok(ParsedToolChoice::Required),
        "tool" => match at.require_text("name")? {
            name if tools.iter().any(|tool| tool.name == name) => Ok(ParsedToolChoice::Named(name.into())),
            name => Err(at.refuse(format!("Tool '{name}' not found in provided tools"))),
        },
        other => Err(at.refuse(format!(
            "Input tag '{other}' found using 'type' does not match any of the expected tags: 'auto', 'any', 'tool', 'none'"
        ))),
    }
}

/// A message, or several of the same role in a row, which the API takes as one.
struct AnthropicTurn<'a> {
    role: &'a str,
    at: RequestNode<'a>,
    blocks: Vec<AnthropicContent>,
}

/// A content block, read.
enum AnthropicContent {
    Text(String),
    Image(ParsedImage),
    File(String),
    Thinking { text: String },
    Redacted,
    Use(ParsedToolCall),
    Result(ParsedToolResult),
}

impl AnthropicContent {
    fn is_thought(&self) -> bool {
        matches!(self, Self::Thinking { .. } | Self::Redacted)
    }
}

fn turns<'a>(list: &RequestNode<'a>) -> RequestResult<Vec<AnthropicTurn<'a>>> {
    let mut turns: Vec<AnthropicTurn<'a>> = Vec::new();
    let items = list.items()?;
    if items.is_empty() {
        return Err(RequestRefusal::new("messages: at least one message is required"));
    }
    let last = items.len() - 1;
    for (i, at) in items.into_iter().enumerate() {
        at.allow_only(&["role", "content"], extra)?;
        let role = at.require_text("role")?;
        if !matches!(role, "user" | "assistant") {
            return Err(RequestRefusal::new(format!(
                "messages: Unexpected role \"{role}\". The Messages API accepts a top-level `system` parameter, not \
                 \"system\" as an input message role."
            )));
        }
        let content = at.require("content")?;
        let blocks = match content.value.as_str() {
            Some("") if role == "assistant" && i == last => Vec::new(),
            Some("") => return Err(at.refuse(format!("{role} messages must have non-empty content"))),
            Some(text) => vec![AnthropicContent::Text(text.into())],
            None => content.items()?.iter().map(|at| block(at, role)).collect::<RequestResult<Vec<_>>>()?,
        };
        if blocks.is_empty() && i != last {
            return Err(at.refuse(
                "all messages must have non-empty content except for the optional final assistant message",
            ));
        }
        match turns.last_mut() {
            Some(turn) if turn.role == role => turn.blocks.extend(blocks),
            _ => turns.push(AnthropicTurn { role, at, blocks }),
        }
    }
    let ends_in_thought = |turn: &&AnthropicTurn<'_>| {
        matches!(turn.blocks.last(), Some(AnthropicContent::Thinking { .. } | AnthropicContent::Redacted))
    };
    match turns.first() {
        Some(turn) if turn.role == "assistant" => {
            Err(RequestRefusal::new("messages: first message must use the \"user\" role"))
        }
        // tailcallhq/forgecode#2107
        _ => match turns.iter().find(ends_in_thought) {
            Some(turn) => {
                Err(turn.at.refuse("The final block in an assistant message cannot be `thinking`."))
            }
            None => Ok(turns),
        },
    }
}

fn block(at: &RequestNode<'_>, role: &str) -> RequestResult<AnthropicContent> {
    let kind = at.require_text("type")?;
    let misplaced = || at.refuse(format!("`{kind}` blocks are not allowed in `{role}` messages"));
    match kind {
        "text" => {
            at.allow_only(&["type", "text", "cache_control", "citations"], extra)?;
            Ok(AnthropicContent::Text(non_empty(at)?.into()))
        }
        "image" if role == "user" => image(at).map(AnthropicContent::Image),
        "document" if role == "user" => {
            Ok(AnthropicContent::File(at.get_text("title")?.unwrap_or("document").into()))
        }
        "thinking" if role == "assistant" => {
            at.allow_only(&["type", "thinking", "signature", "cache_control"], extra)?;
            let text = at.require_text("thinking")?;
            if at.require_text("signature")? != signature(text) {
                return Err(at.refuse("Invalid `signature` in `thinking` block"));
            }
            Ok(AnthropicContent::Thinking { text: text.into() })
        }
        "redacted_thinking" if role == "assistant" => {
            // Only the provider can verify such data; text that it cannot have written is refused.
            if BASE64.decode(at.require_text("data")?).is_ok_and(|data| data.len() >= REDACTED_BYTES_MIN) {
                return Ok(AnthropicContent::Redacted);
            }
            Err(at.refuse("Invalid `data` in `redacted_thinking` block"))
        }
        "tool_use" if role == "assistant" => {
            at.allow_only(&["type", "id", "name", "input", "cache_control", "caller"], extra)?;
            let id = at.require("id")?;
            let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if id.text()?.is_empty() || !id.text()?.chars().all(legal) {
                return Err(id.refuse("String should match pattern '^[a-zA-Z0-9_-]+$'"));
            }
            let input = at.require("input")?;
            if !input.value.is_object() {
                return Err(input.refuse("Input should be a valid dictionary"));
            }
            Ok(AnthropicContent::Use(ParsedToolCall {
                id: id.text()?.into(),
                name: at.require("name")?.name("", 200)?.into(),
                arguments: input.value.clone(),
            }))
        }
        "tool_result" if role == "user" => result(at).map(AnthropicContent::Result),
        "image" | "document" | "thinking" | "redacted_thinking" | "tool_use" | "tool_result" => Err(misplaced()),
        other => Err(at.refuse(format!(
            "Input tag '{other}' found using 'type' does not match any of the expected tags: 'document', 'image', \
             'redacted_thinking', 'text', 'thinking', 'tool_result', 'tool_use'"
        ))),
    }
}

fn image(at: &RequestNode<'_>) -> RequestResult<ParsedImage> {
    at.allow_only(&["type", "source", "cache_control"], extra)?;
    let source = at.require("source")?;
    match source.require_text("type")? {
        "base64" => {
            let media_type = source.require("media_type")?;
            if !matches!(media_type.text()?, "image/jpeg" | "image/png" | "image/gif" | "image/webp") {
                return Err(media_type
                    .refuse("Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"));
            }
            let length = source.require_text("data")?.len();
            if length > PICTURE_BYTES_MAX {
                return Err(RequestRefusal::new(format!(
                    "{}.image.source.base64: image exceeds 5 MB maximum: {length} bytes > {PICTURE_BYTES_MAX} bytes",
                    at.path
                )));
            }
            let bytes = source.require("data")?.bytes()?;
            let image = ParsedImage { media_type: media_type.text()?.into(), bytes, url: None };
            check_side(&image, 1).map_err(|words| too_large(&at.path, &words))?;
            Ok(image)
        }
        "url" => source.require("url")?.image_url(),
        other => Err(source.refuse(format!("Input tag '{other}' does not match 'base64' or 'url'"))),
    }
}

fn result(at: &RequestNode<'_>) -> RequestResult<ParsedToolResult> {
    at.allow_only(&["type", "tool_use_id", "content", "is_error", "cache_control"], extra)?;
    let mut result =
        ParsedToolResult { id: at.require_text("tool_use_id")?.into(), ..ParsedToolResult::default() };
    result.is_error = at.get("is_error").map(|flag| flag.flag()).transpose()? == Some(true);
    if let Some(content) = at.get("content") {
        if let Some(text) = content.value.as_str() {
            result.text = text.into();
        } else {
            for part in content.items()? {
                match part.require_text("type")? {
                    "text" => result.text.push_str(non_empty(&part)?),
                    "image" => result.images.push(image(&part)?),
                    "document" | "search_result" => {}
                    other => {
                        return Err(
                            part.refuse(format!("Input tag '{other}' is not allowed in `tool_result`"))
                        );
                    }
                }
            }
        }
    }
    if result.is_error && !result.images.is_empty() {
        return Err(at.refuse("all content must be type `text` if `is_error` is true"));
    }
    Ok(result)
}

/// Settings that exclude one another.
fn check_settings(root: &RequestNode<'_>, max_tokens: u64) -> RequestResult<()> {
    let has = |name: &str| root.get(name).is_some();
    let refuse = |words: &str| Err(RequestRefusal::new(words));
    if has("temperature") && has("top_p") {
        return refuse(
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
        );
    }
    // anthropics/anthropic-sdk-python#893
    if root.value["temperature"].as_f64().is_some_and(|value| !(0.0..=1.0).contains(&value)) {
        return refuse("temperature: range: 0..1");
    }
    let Some(thinking) = root.get("thinking").filter(|at| at.value["type"] != "disabled") else {
        return Ok(());
    };
    if matches!(root.value["tool_choice"]["type"].as_str(), Some("any" | "tool")) {
        return refuse("Thinking may not be enabled when tool_choice forces tool use.");
    }
    if root.value["temperature"].as_f64().is_some_and(|value| value != 1.0) {
        return refuse("`temperature` may only be set to 1 when thinking is enabled.");
    }
    if has("top_k") {
        return refuse("`top_k` must be unset when thinking is enabled.");
    }
    if root.value["top_p"].as_f64().is_some_and(|value| value < 0.95) {
        return refuse("`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.");
    }
    match thinking.value["budget_tokens"].as_u64() {
        Some(budget) if budget >= max_tokens => {
            refuse("`max_tokens` must be greater than `thinking.budget_tokens`.")
        }
        _ => Ok(()),
    }
}

/// Message for a picture with too many pixels, given the number of pictures in the request.
pub(crate) fn check_side(image: &ParsedImage, count: usize) -> Result<(), String> {
    let words = "At least one of the image dimensions exceed max allowed size";
    match image.longest_side() {
        side if side > SIDE_MAX => Err(format!("{words}: {SIDE_MAX} pixels")),
        side if side > SIDE_OF_MANY_MAX && count > FEW_PICTURES => {
            Err(format!("{words} for many-image requests: {SIDE_OF_MANY_MAX} pixels"))
        }
        _ => Ok(()),
    }
}

/// The words for more pictures and documents than these.
pub(crate) fn check_count(pictures: usize, documents: usize, most: usize) -> Result<(), String> {
    if pictures + documents <= most {
        return Ok(());
    }
    Err(format!("too many images and documents: {pictures} + {documents} > {most}"))
}

fn check_pictures(turns: &[AnthropicTurn<'_>], most: usize) -> RequestResult<()> {
    let (mut pictures, mut documents) = (Vec::new(), 0);
    for turn in turns {
        for (nth, block) in turn.blocks.iter().enumerate() {
            let images = match block {
                AnthropicContent::Image(image) => std::slice::from_ref(image),
                AnthropicContent::Result(result) => &result.images,
                AnthropicContent::File(_) => {
                    documents += 1;
                    continue;
                }
                _ => continue,
            };
            pictures.extend(images.iter().map(|image| (image, format!("{}.content.{nth}", turn.at.path))));
        }
    }
    check_count(pictures.len(), documents, most).map_err(RequestRefusal::new)?;
    for (image, path) in &pictures {
        check_side(image, pictures.len()).map_err(|words| too_large(path, &words))?;
    }
    Ok(())
}

fn too_large(path: &str, words: &str) -> RequestRefusal {
    RequestRefusal::new(format!("{path}.image.source.base64.data: {words}"))
}

/// The user has the last word. (Tools of the provider, after which it may be the model's, are not simulated.)
fn check_last(turns: &[AnthropicTurn<'_>]) -> RequestResult<()> {
    match turns.last() {
        Some(turn) if turn.role == "assistant" => Err(RequestRefusal::new(
            "This model does not support assistant message prefill. The conversation must end with a user message.",
        )),
        _ => Ok(()),
    }
}

/// With manual thinking, the assistant's content after the last real user message must begin with a thinking
/// block. Only its beginning: after results the model does not think again (BerriAI/litellm#18926).
fn check_first_thought(turns: &[AnthropicTurn<'_>]) -> RequestResult<()> {
    let Some(turn) = turns_since_question(turns).find(|turn| turn.role == "assistant") else { return Ok(()) };
    let uses = turn.blocks.iter().any(|block| matches!(block, AnthropicContent::Use(_)));
    if uses && !turn.blocks.first().is_some_and(AnthropicContent::is_thought) {
        return Err(RequestRefusal::new(format!(
            "{}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` \
             is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set \
             of `tool_use` and `tool_result` blocks).",
            turn.at.path
        )));
    }
    Ok(())
}

/// A model that does not think takes no thoughts of the turn (tailcallhq/forgecode#1853).
fn check_no_thoughts(turns: &[AnthropicTurn<'_>]) -> RequestResult<()> {
    for turn in turns_since_question(turns) {
        if let Some(nth) = turn.blocks.iter().position(AnthropicContent::is_thought) {
            return Err(RequestRefusal::new(format!(
                "{}.content.{nth}: When thinking is disabled, an `assistant` message in the final position cannot contain \
                 `thinking`. To use thinking blocks, enable `thinking` in your request.",
                turn.at.path
            )));
        }
    }
    Ok(())
}

/// Everything after the last real user message.
fn turns_since_question<'t, 'a>(
    turns: &'t [AnthropicTurn<'a>],
) -> impl Iterator<Item = &'t AnthropicTurn<'a>> {
    let is_question = |turn: &AnthropicTurn<'_>| {
        turn.role == "user" && !turn.blocks.iter().any(|block| matches!(block, AnthropicContent::Result(_)))
    };
    turns[turns.iter().rposition(is_question).map_or(0, |at| at + 1)..].iter()
}

fn conversation(turns: Vec<AnthropicTurn<'_>>) -> RequestResult<Vec<ParsedMessage>> {
    let mut messages = Vec::new();
    let mut open: Vec<ParsedToolCall> = Vec::new();
    let mut used = std::collections::HashSet::new();
    for turn in turns {
        if turn.role == "assistant" {
            check_answered(&open, &turn.at)?;
            let (mut text, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
            for block in turn.blocks {
                match block {
                    AnthropicContent::Text(part) => text.push_str(&part),
                    AnthropicContent::Thinking { text } => thinking.push_str(&text),
                    AnthropicContent::Use(call) => calls.push(call),
                    _ => {}
                }
            }
            if calls.iter().any(|call| !used.insert(call.id.clone())) {
                return Err(RequestRefusal::new("messages: `tool_use` ids must be unique"));
            }
            open = calls.clone();
            messages.push(ParsedMessage::Assistant { text, thinking, calls });
        } else {
            messages.extend(split_user_turn(turn, std::mem::take(&mut open))?);
        }
    }
    if let Some(call) = open.first() {
        return Err(RequestRefusal::new(format!(
            "messages: `tool_use` ids were found without `tool_result` blocks immediately after: {}",
            call.id
        )));
    }
    Ok(messages)
}

fn check_answered(open: &[ParsedToolCall], at: &RequestNode<'_>) -> RequestResult<()> {
    if open.is_empty() {
        return Ok(());
    }
    let ids: Vec<&str> = open.iter().map(|call| call.id.as_str()).collect();
    Err(at.refuse(format!(
        "`tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must have \
         a corresponding `tool_result` block in the next message.",
        ids.join(", ")
    )))
}

/// Splits a user turn into results of the preceding calls and the user's content.
fn split_user_turn(turn: AnthropicTurn<'_>, open: Vec<ParsedToolCall>) -> RequestResult<Vec<ParsedMessage>> {
    let mut answers: Vec<Option<ParsedToolResult>> = vec![None; open.len()];
    let (mut text, mut images, mut files, mut has_content) = (String::new(), Vec::new(), Vec::new(), false);
    for block in turn.blocks {
        match block {
            AnthropicContent::Result(mut result) => {
                let id = result.id.clone();
                let Some(index) = open.iter().position(|call| call.id == id) else {
                    return Err(turn.at.refuse(format!(
                        "unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must \
                         have a corresponding `tool_use` block in the previous message."
                    )));
                };
                if has_content {
                    return Err(turn
                        .at
                        .refuse("`tool_result` blocks must come first in the content of a message"));
                }
                if answers[index].is_some() {
                    return Err(turn.at.refuse(format!(
                        "each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
                    )));
                }
                result.name = open[index].name.clone();
                answers[index] = Some(result);
            }
            AnthropicContent::Text(part) => {
                has_content = true;
                text.push_str(&part);
            }
            AnthropicContent::Image(image) => {
                has_content = true;
                images.push(image);
            }
            AnthropicContent::File(name) => {
                has_content = true;
                files.push(name);
            }
            AnthropicContent::Thinking { .. } | AnthropicContent::Redacted | AnthropicContent::Use(_) => {}
        }
    }
    let missing = open.iter().zip(&answers).filter(|(_, answer)| answer.is_none());
    let missing: Vec<ParsedToolCall> = missing.map(|(call, _)| call.clone()).collect();
    check_answered(&missing, &turn.at)?;
    let mut messages = Vec::new();
    if !open.is_empty() {
        messages.push(ParsedMessage::Results(answers.into_iter().flatten().collect()));
    }
    if has_content {
        messages.push(ParsedMessage::User { text, images, files });
    }
    Ok(messages)
}
