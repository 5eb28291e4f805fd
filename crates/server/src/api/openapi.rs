//! The description of the whole API as OpenAPI 3.1: routes and bodies from the handlers themselves, events and messages from
//! `schemas.json`, which a test compares with every event there is.

use crate::state::AppState;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;
use utoipa::ToSchema;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Events, messages and their parts, by name.
const SCHEMAS: &str = include_str!("schemas.json");
/// Methods that a path may have in the document.
const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];

/// `/v1/openapi.json`.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(get_openapi))
}

/// The message of a turn, as `schemas.json` has it.
#[derive(ToSchema)]
#[schema(as = Message)]
pub(crate) struct MessageSchema {}

/// A call in a message, as `schemas.json` has it.
#[derive(ToSchema)]
#[schema(as = ToolCall)]
pub(crate) struct ToolCallSchema {}

/// An event of a turn, as `schemas.json` has it.
#[derive(ToSchema)]
#[schema(as = Event)]
pub(crate) struct EventSchema {}

/// Tokens, as `schemas.json` has them.
#[derive(ToSchema)]
#[schema(as = Usage)]
pub(crate) struct UsageSchema {}

/// The complete document: the description that the routes derive, and everything that holds for all of them.
pub(crate) fn document(api: OpenApi) -> Value {
    let mut document = serde_json::to_value(api).unwrap_or_default();
    document["openapi"] = json!("3.1.0");
    document["info"] = json!({
        "title": "Throughline",
        "version": env!("CARGO_PKG_VERSION"),
        "summary": "One turn, one message, one stream.",
        "description": "Start a turn and read ONE message that begins with the first token and never breaks \
                        off, while the server calls the model, runs the tools and requests approvals.\n\nEvery \
                        viewer is a cursor in the log of a turn: reconnect with `Last-Event-ID` or `?after=` \
                        and nothing is lost or doubled. Times are milliseconds since 1970. Resources of other \
                        users are not found (404).",
        "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
    });
    document["servers"] = json!([{"url": "/", "description": "This server"}]);
    document["tags"] = json!([
        {"name": "turns", "description": "Start, read and cancel turns. A turn is one user input and everything that answers it."},
        {"name": "events", "description": "Follow turns over server-sent events or a WebSocket."},
        {"name": "approvals", "description": "Answer questions about tool calls, and manage remembered answers."},
        {"name": "conversations", "description": "Conversations as trees of turns: branches, search, export and import."},
        {"name": "saved_prompts", "description": "Prompts that you have saved, to be put into messages."},
        {"name": "files", "description": "Uploaded files and files that tools produced."},
        {"name": "agents", "description": "Named sets of prompt, models, tools and rules."},
        {"name": "tools", "description": "List tools, call them manually, and parse replies that contain calls."},
        {"name": "clients", "description": "Tools that run in connected clients."},
        {"name": "upstreams", "description": "Model servers (upstreams): known and configured ones, and their keys."},
        {"name": "recordings", "description": "Decode recorded model responses."},
        {"name": "history", "description": "Past tool calls and their metrics."},
        {"name": "chat", "description": "OpenAI-compatible chat completions."},
        {"name": "completions", "description": "OpenAI-compatible text completions."},
        {"name": "embeddings", "description": "OpenAI-compatible embeddings."},
        {"name": "audio", "description": "Voices and ears: OpenAI-compatible speech and transcription."},
        {"name": "models", "description": "OpenAI-compatible list of models."},
        {"name": "auth", "description": "Sign-in links and one-time tickets."},
        {"name": "users", "description": "Users of the server and their permissions."},
        {"name": "keys", "description": "API keys."},
        {"name": "server", "description": "Health, metrics and this document."},
    ]);
    let components = member(&mut document, "components");
    member(components, "securitySchemes")["bearer"] = json!({
        "type": "http", "scheme": "bearer",
        "description": "The token that `throughline serve` prints, or a key of `throughline keys create`.",
    });
    let schemas = member(components, "schemas");
    if let (Value::Object(schemas), Ok(ours)) = (schemas, serde_json::from_str::<Map<String, Value>>(SCHEMAS))
    {
        schemas.extend(ours);
    }
    document["security"] = json!([{"bearer": []}]);
    strip_wildcards(&mut document);
    name_pages(&mut document);
    narrow_schemas(&mut document);
    add_default_errors(&mut document);
    name_operations(&mut document);
    document
}

/// `{*id}` matches slashes too, which OpenAPI cannot express: there it is `{id}`.
fn strip_wildcards(document: &mut Value) {
    let Some(Value::Object(paths)) = document.get_mut("paths").map(Value::take) else { return };
    let plain: Map<String, Value> =
        paths.into_iter().map(|(path, item)| (path.replace("{*", "{"), item)).collect();
    document["paths"] = Value::Object(plain);
}

/// Generic pages by their row: utoipa writes `ListPage_FileInfo`, generated clients get `FileInfoPage`.
fn name_pages(document: &mut Value) {
    const GENERIC: &str = "ListPage_";
    fn page_name(generic: &str) -> Option<String> {
        generic.strip_prefix(GENERIC).map(|row| format!("{row}Page"))
    }
    fn rename_references(value: &mut Value) {
        const SCHEMA: &str = "#/components/schemas/";
        match value {
            Value::Object(members) => {
                if let Some(Value::String(target)) = members.get_mut("$ref")
                    && let Some(name) = target.strip_prefix(SCHEMA).and_then(page_name)
                {
                    *target = format!("{SCHEMA}{name}");
                }
                members.values_mut().for_each(rename_references);
            }
            Value::Array(items) => items.iter_mut().for_each(rename_references),
            _ => {}
        }
    }
    rename_references(document);
    let schemas = member(member(document, "components"), "schemas").take();
    let Value::Object(schemas) = schemas else { return };
    let named = schemas.into_iter().map(|(name, schema)| (page_name(&name).unwrap_or(name), schema));
    document["components"]["schemas"] = Value::Object(named.collect());
}

/// Operation ids as `{tag}_{handler}`: handlers have names that are unique in their file (`list`, `get`), generated clients
/// need names that are unique in the document (`files_list`).
fn name_operations(document: &mut Value) {
    for operation in operations(document) {
        let (tag, handler) = (&operation["tags"][0], &operation["operationId"]);
        let (tag, handler) = (tag.as_str().unwrap_or_default(), handler.as_str().unwrap_or_default());
        operation["operationId"] = Value::from(format!("{tag}_{handler}"));
    }
}

/// The one field that the server itself reads of a request that it passes to an upstream.
const NAMES_A_MODEL: &str =
    r#"{"required": ["model"], "properties": {"model": {"type": "string"}}, "additionalProperties": true}"#;
/// Fields that a chat cannot do without, among many others.
const CHAT: &str = r#"{"required": ["model", "messages"], "additionalProperties": true, "properties": {
    "model": {"type": "string", "minLength": 1},
    "messages": {"type": "array", "minItems": 1, "items": {"type": "object", "anyOf": [
        {"required": ["role", "content"], "additionalProperties": true, "properties": {
            "role": {"enum": ["system", "developer", "user"]}, "content": {"type": ["string", "array"]}}},
        {"required": ["role"], "additionalProperties": true, "properties": {"role": {"enum": ["assistant"]}}},
        {"required": ["role", "content", "tool_call_id"], "additionalProperties": true, "properties": {
            "role": {"enum": ["tool"]}, "content": {"type": ["string", "array"]}, "tool_call_id": {"type": "string"}}}]}},
    "stream": {"type": ["boolean", "null"]}},
    "examples": [{"model": "default", "messages": [{"role": "user", "content": "What time is it?"}]}]}"#;

/// Constraints of request bodies that the handlers' Rust types do not express: a JSON pointer to a schema, and the
/// keywords to add there.
const NARROWER: [(&str, &str); 48] = [
    ("/components/schemas/ResolveApproval/properties/decision", r#"{"enum": ["approve", "deny"]}"#),
    ("/components/schemas/AnswerLink/properties/decision", r#"{"enum": ["approve", "deny"]}"#),
    ("/paths/~1v1~1completions/post/requestBody/content/application~1json/schema", NAMES_A_MODEL),
    ("/paths/~1v1~1embeddings/post/requestBody/content/application~1json/schema", NAMES_A_MODEL),
    (
        "/paths/~1render~1{render}~1v1~1completions/post/requestBody/content/application~1json/schema",
        NAMES_A_MODEL,
    ),
    (
        "/paths/~1render~1{render}~1v1~1embeddings/post/requestBody/content/application~1json/schema",
        NAMES_A_MODEL,
    ),
    ("/components/schemas/CreateSpeech/properties/input", r#"{"maxLength": 4096, "pattern": "\\S"}"#),
    ("/components/schemas/CreateSpeech/properties/model", r#"{"maxLength": 4096}"#),
    ("/components/schemas/CreateSpeech/properties/voice", r#"{"maxLength": 4096}"#),
    ("/components/schemas/CreateSpeech/properties/instructions", r#"{"maxLength": 4096}"#),
    ("/components/schemas/CreateSpeech/properties/speed", r#"{"minimum": 0.25, "maximum": 4}"#),
    (
        "/components/schemas/CreateSpeech/properties/response_format",
        r#"{"enum": ["mp3", "opus", "aac", "flac", "wav", "pcm", null]}"#,
    ),
    (
        "/components/schemas/CreateTranscription/properties/response_format",
        r#"{"enum": ["json", "text", "verbose_json", "srt", "vtt"]}"#,
    ),
    ("/components/schemas/CreateTranscription/properties/temperature", r#"{"minimum": 0, "maximum": 1}"#),
    // White space is no prompt.
    ("/components/schemas/SavePrompt/properties/text", r#"{"minLength": 1, "pattern": "\\S"}"#),
    ("/components/schemas/UpdateConversation/properties/temporary", r#"{"enum": [false, null]}"#),
    ("/components/schemas/CallResult/properties/status", r#"{"enum": ["success", "error"]}"#),
    (
        "/components/schemas/CallResult/properties/output",
        r#"{"type": ["string", "number", "boolean", "object", "array", "null"]}"#,
    ),
    ("/components/schemas/CreateAgent/properties/name", AGENT_NAME),
    ("/components/schemas/DuplicateAgent/properties/name", AGENT_NAME),
    ("/components/schemas/AgentSettings/properties/mode", r#"{"enum": ["auto", "native", "text", null]}"#),
    ("/components/schemas/AgentSettings/properties/model", r#"{"minLength": 1}"#),
    (
        "/components/schemas/AgentSettings/properties/steering",
        r#"{"enum": ["next_step", "after_turn", null]}"#,
    ),
    ("/components/schemas/AgentSettings/properties/on_interrupted", r#"{"enum": ["continue", "end", null]}"#),
    ("/components/schemas/CreateKey/properties/name", r#"{"minLength": 1, "maxLength": 200}"#),
    ("/components/schemas/CreateUser/properties/name", r#"{"minLength": 1, "maxLength": 64}"#),
    ("/components/schemas/UsageLimitsBody/properties/turns_per_day_max", USAGE_LIMIT),
    ("/components/schemas/UsageLimitsBody/properties/turns_per_month_max", USAGE_LIMIT),
    ("/components/schemas/UsageLimitsBody/properties/tokens_per_day_max", USAGE_LIMIT),
    ("/components/schemas/UsageLimitsBody/properties/tokens_per_month_max", USAGE_LIMIT),
    ("/components/schemas/ProbeRequest/properties/model", r#"{"minLength": 1, "maxLength": 256}"#),
    ("/components/schemas/ProbeRequest/properties/tokens_max", r#"{"minimum": 16, "maximum": 32768}"#),
    ("/components/schemas/RateAnswer/properties/reason", r#"{"maxLength": 2000}"#),
    ("/components/schemas/ParseText/properties/protocol", r#"{"enum": ["vcp", "xml", null]}"#),
    (
        "/components/schemas/SendMessage/properties/input",
        r#"{"minItems": 1, "examples": [[{"type": "text", "text": "And in Paris?"}]]}"#,
    ),
    (
        "/components/schemas/DeclareTools/properties/tools",
        r#"{"examples": [[{"name": "client.open", "description": "Opens a page", "effect": "cosmetic"}]]}"#,
    ),
    ("/components/schemas/SendMessage/properties/when", r#"{"enum": ["next_step", "after_turn"]}"#),
    ("/components/schemas/ToolCallSettings/properties/mode", r#"{"enum": ["auto", "manual", null]}"#),
    ("/components/schemas/ToolCallSettings/properties/protocol", r#"{"enum": ["vcp", "xml"]}"#),
    ("/components/schemas/ToolCallSettings/properties/start", r#"{"enum": ["eager", "after_stream"]}"#),
    ("/components/schemas/ToolCallSettings/properties/results", r#"{"enum": ["user", "tool"]}"#),
    (
        "/components/schemas/RememberChoice/properties/constraints",
        r#"{"type": ["string", "null"], "enum": ["exact", "any", null]}"#,
    ),
    (
        "/components/schemas/DeclareTools/properties/tools/items",
        r#"{"required": ["name"], "properties": {"name": {"type": "string", "minLength": 1}}}"#,
    ),
    (
        "/components/schemas/StartTurn/properties/input",
        r#"{"minItems": 1, "examples": [[{"type": "text", "text": "What time is it?"}]]}"#,
    ),
    ("/components/schemas/StartTurn/properties/mode", r#"{"enum": ["auto", "native", "text", null]}"#),
    (
        "/paths/~1v1~1conversations~1import/post/requestBody/content/application~1json/schema",
        r#"{"type": ["array", "object"], "minItems": 1, "required": ["messages"],
            "items": {"type": "object", "required": ["role"], "properties": {"role": {"type": "string"}},
                "additionalProperties": true},
            "properties": {"messages": {"type": "array", "minItems": 1,
                "items": {"type": "object", "required": ["role"], "properties": {"role": {"type": "string"}},
                    "additionalProperties": true}}}, "additionalProperties": true,
            "examples": [[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello!"}]]}"#,
    ),
    ("/paths/~1v1~1chat~1completions/post/requestBody/content/application~1json/schema", CHAT),
    (
        "/paths/~1render~1{render}~1v1~1chat~1completions/post/requestBody/content/application~1json/schema",
        CHAT,
    ),
];
/// Narrower schemas of parameters, by name: one name has one meaning in the whole document.
const NARROWER_PARAMETERS: [(&str, &str); 5] = [
    ("mode", r#"{"enum": ["auto", "native", "text"]}"#),
    ("protocol", r#"{"enum": ["vcp", "xml"]}"#),
    (
        "api",
        r#"{"enum": ["openai-chat", "openai-responses", "anthropic", "gemini", "ollama", "cohere", "bedrock-converse",
            "bedrock-anthropic"]}"#,
    ),
    ("from_page", r#"{"minimum": 1}"#),
    ("render", r#"{"enum": ["none", "text", "details", "reasoning", "owui_event", "vcp"]}"#),
];
/// Bodies that are forms.
const FORMS: [&str; 3] = ["CreateTranscription", "DecodeForm", "UploadForm"];
const AGENT_NAME: &str = r#"{"minLength": 1, "maxLength": 64}"#;
/// [`crate::people::USAGE_LIMIT_MAX`].
const USAGE_LIMIT: &str = r#"{"maximum": 9223372036854775807}"#;

fn narrow_schemas(document: &mut Value) {
    for (pointer, more) in NARROWER {
        let more = serde_json::from_str::<Map<String, Value>>(more);
        if let (Some(Value::Object(schema)), Ok(more)) = (document.pointer_mut(pointer), more) {
            schema.extend(more);
        }
    }
    for operation in operations(document) {
        for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
            let more = NARROWER_PARAMETERS.iter().find(|(name, _)| parameter["name"] == *name);
            let more = more.and_then(|(_, more)| serde_json::from_str::<Map<String, Value>>(more).ok());
            let Some(Value::Object(schema)) = parameter.get_mut("schema") else { continue };
            never_null(schema);
            // An event number is not bounded: one after the end of the log is answered, too. utoipa calls
            // `u64` an `int64`.
            if schema.get("format") == Some(&json!("int64")) && schema.get("minimum") == Some(&json!(0)) {
                schema.insert("format".to_owned(), json!("uint64"));
                schema.insert("maximum".to_owned(), json!(u64::MAX));
            }
            schema.extend(more.unwrap_or_default());
        }
    }
    let schemas = document["components"]["schemas"].as_object_mut().into_iter().flatten();
    for (_, form) in schemas.filter(|(name, _)| FORMS.contains(&name.as_str())) {
        let fields = form["properties"].as_object_mut().into_iter().flatten();
        fields.filter_map(|(_, field)| field.as_object_mut()).for_each(never_null);
    }
}

/// Removes `null` from the type: a query, a header or a form cannot express it, and omits the value instead.
fn never_null(schema: &mut Map<String, Value>) {
    if let Some([Value::String(kind), _]) = schema.get("type").and_then(Value::as_array).map(Vec::as_slice) {
        let kind = kind.clone();
        schema.insert("type".to_owned(), json!(kind));
    }
}

/// Iterates over every operation of the document.
fn operations(document: &mut Value) -> impl Iterator<Item = &mut Value> {
    let items = document["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut());
    let operations = items.filter_map(Value::as_object_mut).flat_map(|item| item.iter_mut());
    operations.filter(|(name, _)| METHODS.contains(&name.as_str())).map(|(_, operation)| operation)
}

/// Adds the common errors to every operation (missing key, rate limit, store unavailable); all have the same
/// schema.
fn add_default_errors(document: &mut Value) {
    let other = json!({
        "description": "Any other error",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorResponse"}}},
    });
    for operation in operations(document) {
        if let Some(responses) = operation.get_mut("responses") {
            responses["default"] = other.clone();
        }
    }
}

fn member<'a>(of: &'a mut Value, name: &str) -> &'a mut Value {
    if !of[name].is_object() {
        of[name] = json!({});
    }
    &mut of[name]
}

/// The document as it is served; made once, since it never changes while the program runs.
static SERVED: LazyLock<(String, String)> = LazyLock::new(|| {
    let text = crate::openapi_document().to_string();
    let tag = format!("\"{}\"", blake3::hash(text.as_bytes()).to_hex());
    (text, tag)
});

/// Get this document. Needs no key.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "server", security(()), responses(
    (status = 200, description = "OpenAPI 3.1", body = Object, content_type = "application/json"),
    (status = 304, description = "Unchanged: `If-None-Match` matches"),
))]
async fn get_openapi(headers: HeaderMap) -> Response {
    let (text, tag) = &*SERVED;
    let mut response = if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known == tag.as_str()) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, "application/json")], text.as_str()).into_response()
    };
    if let Ok(tag) = HeaderValue::try_from(tag.as_str()) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrowed_schemas_exist() {
        let document = crate::openapi_document();
        for (pointer, more) in NARROWER {
            let more: Map<String, Value> = serde_json::from_str(more).expect(pointer);
            let schema = document.pointer(pointer).unwrap_or_else(|| panic!("there is no {pointer}"));
            for (name, value) in more {
                assert_eq!(schema[&name], value, "{pointer}");
            }
        }
        let text = document.to_string();
        for (name, _) in NARROWER_PARAMETERS {
            assert!(text.contains(&format!("\"name\":\"{name}\"")), "there is no parameter {name}");
        }
        for name in throughline_wire::Dialect::ALL.map(throughline_wire::Dialect::name) {
            assert!(NARROWER_PARAMETERS[2].1.contains(&format!("\"{name}\"")), "{name}");
        }
        let rendering: Value = serde_json::from_str(NARROWER_PARAMETERS[4].1).unwrap();
        assert_eq!(rendering["enum"], json!(throughline::config::ToolRendering::ALL.map(|(name, _)| name)));
    }
}
