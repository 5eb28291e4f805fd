//! Reading a `generateContent` request as Google does: as many responses as calls, right after them, in their order;
//! signatures unchanged; no field that the protocol buffers do not know.

use super::call_signature;
use crate::dialect::tool_schema;
use crate::parsed_request::{
    ParsedImage, ParsedMessage, ParsedRequest, ParsedTool, ParsedToolCall, ParsedToolChoice, ParsedToolResult,
};
use crate::strict_json::{PathStyle, RequestNode, RequestRefusal, RequestResult, first_duplicate};
use serde_json::Value;

const FIELDS: &[&str] = &[
    "contents",
    "systemInstruction",
    "system_instruction",
    "tools",
    "toolConfig",
    "tool_config",
    "generationConfig",
    "generation_config",
    "safetySettings",
    "safety_settings",
    "cachedContent",
    "cached_content",
    "labels",
    "model",
];

/// The subset of OpenAPI that `parameters` knows; full JSON Schema goes into `parametersJsonSchema`.
const SCHEMA_FIELDS: &[&str] = &[
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "items",
    "minItems",
    "maxItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "example",
    "anyOf",
    "propertyOrdering",
    "default",
    "minimum",
    "maximum",
];

/// Most functions of a request (google-gemini/gemini-cli#19083).
const FUNCTIONS_MAX: usize = 512;

/// Accepted instead of a signature on calls that another model made.
const SENTINEL: &str = "skip_thought_signature_validator";

fn unknown(at: &RequestNode<'_>, key: &str) -> String {
    let location = if at.path.is_empty() { String::new() } else { format!(" at '{}'", at.path) };
    format!("Invalid JSON payload received. Unknown name \"{key}\"{location}: Cannot find field.")
}

pub(crate) fn read(body: &Value, mut seen: ParsedRequest) -> RequestResult<ParsedRequest> {
    let root = RequestNode::root(body, PathStyle::Brackets);
    root.allow_only(FIELDS, unknown)?;
    if let Some(system) = root.get_any(&["systemInstruction", "system_instruction"]) {
        system.allow_only(&["role", "parts"], unknown)?;
        let parts = system.require("parts")?.non_empty_items()?;
        let texts = parts.iter().map(|part| part.require_text("text")).collect::<RequestResult<Vec<_>>>()?;
        seen.instructions = Some(texts.concat());
    }
    if let Some(config) = root.get_any(&["generationConfig", "generation_config"]) {
        let most = config.get_any(&["maxOutputTokens", "max_output_tokens"]);
        seen.max_output_tokens = most.map(|at| at.count()).transpose()?;
        if let Some(thinking) = config.get("thinkingConfig")
            && thinking.get("thinkingBudget").is_some()
            && thinking.get("thinkingLevel").is_some()
        {
            return Err(RequestRefusal::new(
                "You can only set only one of thinking budget and thinking level.",
            ));
        }
        if let Some(schema) = config.get("responseJsonSchema") {
            tool_schema::check_gemini("generation_config.response_json_schema", schema.value)?;
        }
    }
    seen.tools = root.get("tools").map(|at| tools(&at)).transpose()?.unwrap_or_default();
    let is_json = root.value["generationConfig"]["responseMimeType"] == "application/json";
    // Gemini 3 takes both (googleapis/python-genai#867).
    let is_before_3 = ["gemini-1", "gemini-2"].iter().any(|before| seen.model.contains(before));
    if is_json && is_before_3 && !seen.tools.is_empty() {
        return Err(RequestRefusal::new(
            "Function calling with a response mime type: 'application/json' is unsupported",
        ));
    }
    seen.tool_choice = choice(&root, &seen.tools)?;
    let turns = turns(&root, seen.model.contains("gemini-3"))?;
    seen.messages = conversation(turns)?;
    Ok(seen)
}

fn tools(list: &RequestNode<'_>) -> RequestResult<Vec<ParsedTool>> {
    let mut tools = Vec::new();
    for at in list.items()? {
        at.allow_only(
            &["functionDeclarations", "function_declarations", "googleSearch", "codeExecution", "urlContext"],
            unknown,
        )?;
        let Some(list) = at.get_any(&["functionDeclarations", "function_declarations"]) else { continue };
        for function in list.items()? {
            let known = [
                "name",
                "description",
                "parameters",
                "parametersJsonSchema",
                "parameters_json_schema",
                "response",
                "responseJsonSchema",
                "behavior",
            ];
            function.allow_only(&known, unknown)?;
            let name = function.require("name")?;
            let text = name.name(".:", 64)?;
            if !text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                return Err(RequestRefusal::new(format!(
                    "{}: Invalid function name. Must start with a letter or an underscore.",
                    name.path
                )));
            }
            let parameters = match function.get("parameters") {
                Some(schema) => {
                    check_schema(&schema)?;
                    schema.object_schema()?
                }
                None => match function.get_any(&["parametersJsonSchema", "parameters_json_schema"]) {
                    Some(schema) => {
                        tool_schema::check_gemini(&function.path, schema.value)?;
                        schema.object_schema()?
                    }
                    None => Value::Null,
                },
            };
            let description = function.get_text("description")?.unwrap_or_default().into();
            tools.push(ParsedTool { name: text.into(), description, parameters });
        }
    }
    if tools.len() > FUNCTIONS_MAX {
        return Err(RequestRefusal::new(format!(
            "The GenerateContentRequest proto is invalid:\n  * tools[0].function_declarations: [FIELD_INVALID] At most \
             {FUNCTIONS_MAX} function declarations can be specified."
        )));
    }
    match first_duplicate(tools.iter().map(|tool| tool.name.as_str())) {
        Some(name) => Err(RequestRefusal::new(format!("Duplicate function declaration found: {name}"))),
        None => Ok(tools),
    }
}

fn check_schema(at: &RequestNode<'_>) -> RequestResult<()> {
    at.allow_only(SCHEMA_FIELDS, unknown)?;
    if let Some(properties) = at.get("properties") {
        for name in properties.map()?.keys() {
            if let Some(property) = properties.get(name) {
                check_schema(&property)?;
            }
        }
    }
    if let Some(items) = at.get("items") {
        check_schema(&items)?;
    }
    if let Some(list) = at.get("anyOf") {
        list.items()?.iter().try_for_each(check_schema)?;
    }
    Ok(())
}

fn choice(root: &RequestNode<'_>, tools: &[ParsedTool]) -> RequestResult<ParsedToolChoice> {
    let Some(config) = root.get_any(&["toolConfig", "tool_config"]) else {
        return Ok(ParsedToolChoice::Auto);
    };
    let Some(calling) = config.get_any(&["functionCallingConfig", "function_calling_config"]) else {
        return Ok(ParsedToolChoice::Auto);
    };
    calling.allow_only(&["mode", "allowedFunctionNames", "allowed_function_names"], unknown)?;
    let names = match calling.get_any(&["allowedFunctionNames", "allowed_function_names"]) {
        Some(list) => list.items()?.iter().map(|at| at.text()).collect::<RequestResult<Vec<_>>>()?,
        None => Vec::new(),
    };
    let mode = calling.get_text("mode")?.unwrap_or("AUTO");
    if tools.is_empty() && mode != "NONE" {
        return Err(RequestRefusal::new("Function calling config is set without function_declarations."));
    }
    match (mode, names.as_slice()) {
        ("AUTO" | "VALIDATED" | "MODE_UNSPECIFIED", _) => Ok(ParsedToolChoice::Auto),
        ("NONE", _) => Ok(ParsedToolChoice::None),
        ("ANY", [name]) => Ok(ParsedToolChoice::Named((*name).into())),
        ("ANY", _) => Ok(ParsedToolChoice::Required),
        (other, _) => Err(RequestRefusal::new(format!(
            "Invalid value at 'tool_config.function_calling_config.mode': \"{other}\""
        ))),
    }
}

#[derive(Default)]
struct GeminiTurn {
    model: bool,
    text: String,
    thinking: String,
    images: Vec<ParsedImage>,
    files: Vec<String>,
    calls: Vec<ParsedToolCall>,
    results: Vec<ParsedToolResult>,
}

fn turns(root: &RequestNode<'_>, gemini_3: bool) -> RequestResult<Vec<GeminiTurn>> {
    let list = root.get("contents").ok_or_else(|| RequestRefusal::new("contents is not specified"))?;
    let items = list.items()?;
    if items.is_empty() {
        return Err(RequestRefusal::new("GenerateContentRequest.contents: contents is not specified"));
    }
    let mut turns = Vec::new();
    for at in items {
        at.allow_only(&["role", "parts"], unknown)?;
        let model = match at.get_text("role")? {
            Some("user" | "function") | None => false,
            Some("model") => true,
            Some(_) => return Err(RequestRefusal::new("Please use a valid role: user, model.")),
        };
        let parts = match at.get("parts").map(|parts| parts.items()).transpose()? {
            Some(parts) if !parts.is_empty() => parts,
            _ => {
                return Err(RequestRefusal::new(format!(
                    "* GenerateContentRequest.{}.parts: contents.parts must not be empty.",
                    at.path
                )));
            }
        };
        let mut turn = GeminiTurn { model, ..GeminiTurn::default() };
        for part in parts {
            read_part(&part, &mut turn, gemini_3)?;
        }
        turns.push(turn);
    }
    Ok(turns)
}

fn read_part(at: &RequestNode<'_>, turn: &mut GeminiTurn, gemini_3: bool) -> RequestResult<()> {
    let known = [
        "text",
        "inlineData",
        "inline_data",
        "fileData",
        "file_data",
        "functionCall",
        "function_call",
        "functionResponse",
        "function_response",
        "thought",
        "thoughtSignature",
        "thought_signature",
        "executableCode",
        "codeExecutionResult",
        "videoMetadata",
    ];
    at.allow_only(&known, unknown)?;
    let signature = at.get_any(&["thoughtSignature", "thought_signature"]).map(|at| at.text()).transpose()?;
    if let Some(call) = at.get_any(&["functionCall", "function_call"]) {
        let first = turn.calls.is_empty();
        turn.calls.push(read_call(&call, signature, first && gemini_3)?);
    } else if let Some(response) = at.get_any(&["functionResponse", "function_response"]) {
        turn.results.push(read_response(&response)?);
    } else if let Some(data) = at.get_any(&["inlineData", "inline_data"]) {
        let media_type =
            data.get_any(&["mimeType", "mime_type"]).ok_or_else(|| data.refuse("mime_type is required"))?;
        let bytes = data.require("data")?.bytes()?;
        let media_type = media_type.text()?.to_owned();
        if media_type.starts_with("image/") {
            turn.images.push(ParsedImage { media_type, bytes, url: None });
        } else {
            turn.files.push(media_type);
        }
    } else if let Some(text) = at.get_text("text")? {
        match at.get("thought").map(|at| at.flag()).transpose()? {
            Some(true) => turn.thinking.push_str(text),
            _ => turn.text.push_str(text),
        }
    } else if at.get_any(&["fileData", "file_data"]).is_some() {
        turn.files.push("file".into());
    } else {
        let words = "required oneof field 'data' must have one initialized field";
        return Err(RequestRefusal::new(format!("* GenerateContentRequest.{}.data: {words}", at.path)));
    }
    Ok(())
}

fn read_call(
    at: &RequestNode<'_>,
    signature: Option<&str>,
    must_sign: bool,
) -> RequestResult<ParsedToolCall> {
    at.allow_only(&["id", "name", "args"], unknown)?;
    let name = at.require_text("name")?;
    let args = at.get("args").map(|args| args.map().map(|map| Value::Object(map.clone()))).transpose()?;
    let args = args.unwrap_or_else(|| Value::Object(Default::default()));
    match signature {
        Some(SENTINEL) => {}
        Some(signature) if signature == call_signature(name, &args) => {}
        Some(signature)
            if !signature.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/-_=".contains(&byte)) =>
        {
            return Err(RequestRefusal::new(format!(
                "Invalid value at '{}.thought_signature' (TYPE_BYTES), Base64 decoding failed for \"{signature}\"",
                at.path
            )));
        }
        Some(_) => return Err(RequestRefusal::new("Corrupted thought signature.")),
        None if must_sign => {
            return Err(RequestRefusal::new(format!(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to \
                 work correctly, and missing thought_signature may lead to degraded model performance. Additional \
                 data, function call `default_api:{name}`, position 1."
            )));
        }
        None => {}
    }
    Ok(ParsedToolCall {
        id: at.get_text("id")?.unwrap_or_default().into(),
        name: name.into(),
        arguments: args,
    })
}

fn read_response(at: &RequestNode<'_>) -> RequestResult<ParsedToolResult> {
    at.allow_only(&["id", "name", "response", "parts", "scheduling", "willContinue"], unknown)?;
    let name = at.get_text("name")?.unwrap_or_default();
    if name.is_empty() {
        return Err(RequestRefusal::new(format!(
            "* GenerateContentRequest.{}.name: Name cannot be empty.",
            at.path
        )));
    }
    let response = at.require("response")?;
    let map = response.map()?;
    // The usual wrappers; anything else is read as it is.
    let text = match ["output", "result", "content", "error"].iter().find_map(|key| map.get(*key)) {
        Some(Value::String(text)) if map.len() == 1 => text.clone(),
        Some(value) if map.len() == 1 => value.to_string(),
        _ => response.value.to_string(),
    };
    let mut images = Vec::new();
    if let Some(parts) = at.get("parts") {
        let mut media = GeminiTurn::default();
        parts.items()?.iter().try_for_each(|part| read_part(part, &mut media, false))?;
        images = media.images;
    }
    let is_error = map.contains_key("error");
    Ok(ParsedToolResult {
        id: at.get_text("id")?.unwrap_or_default().into(),
        name: name.into(),
        text,
        is_error,
        images,
    })
}

fn conversation(turns: Vec<GeminiTurn>) -> RequestResult<Vec<ParsedMessage>> {
    const EQUAL: &str = "Please ensure that the number of function response parts is equal to the number of function \
                         call parts of the function call turn.";
    const AFTER_CALL: &str =
        "Please ensure that function response turn comes immediately after a function call turn.";
    const AFTER_USER: &str = "Please ensure that function call turn comes immediately after a user turn or after a \
                              function response turn.";
    let mut messages = Vec::new();
    let mut open: Vec<ParsedToolCall> = Vec::new();
    let mut last_was_model = None;
    for turn in turns {
        if !turn.model && turn.results.is_empty() && !open.is_empty() {
            return Err(RequestRefusal::new(AFTER_CALL));
        }
        if turn.model {
            if !turn.results.is_empty() {
                return Err(RequestRefusal::new(AFTER_CALL));
            }
            if !turn.calls.is_empty() && last_was_model != Some(false) {
                return Err(RequestRefusal::new(AFTER_USER));
            }
            if !open.is_empty() {
                return Err(RequestRefusal::new(EQUAL));
            }
            open = turn.calls.clone();
            messages.push(ParsedMessage::Assistant {
                text: turn.text,
                thinking: turn.thinking,
                calls: turn.calls,
            });
        } else {
            if !turn.calls.is_empty() {
                return Err(RequestRefusal::new(AFTER_USER));
            }
            if !turn.results.is_empty() {
                if open.is_empty() {
                    return Err(RequestRefusal::new(AFTER_CALL));
                }
                messages.push(ParsedMessage::Results(match_responses(
                    std::mem::take(&mut open),
                    turn.results,
                    EQUAL,
                )?));
            }
            if !turn.text.is_empty() || !turn.images.is_empty() || !turn.files.is_empty() {
                messages.push(ParsedMessage::User {
                    text: turn.text,
                    images: turn.images,
                    files: turn.files,
                });
            }
        }
        last_was_model = Some(turn.model);
    }
    if open.is_empty() { Ok(messages) } else { Err(RequestRefusal::new(EQUAL)) }
}

/// Pairs responses with calls: by id where there are ids, else by order, and the names must fit.
fn match_responses(
    calls: Vec<ParsedToolCall>,
    responses: Vec<ParsedToolResult>,
    unequal: &str,
) -> RequestResult<Vec<ParsedToolResult>> {
    if calls.len() != responses.len() {
        return Err(RequestRefusal::new(unequal));
    }
    for (call, response) in calls.iter().zip(&responses) {
        if call.name != response.name {
            return Err(RequestRefusal::new(format!(
                "function response `{}` does not follow the order of the calls: `{}` was expected",
                response.name, call.name
            )));
        }
        if call.id != response.id {
            return Err(RequestRefusal::new(format!(
                "function response id \"{}\" does not match the call's id \"{}\"",
                response.id, call.id
            )));
        }
    }
    Ok(responses)
}
