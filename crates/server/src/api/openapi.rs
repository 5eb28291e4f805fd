//! The description of the whole API as OpenAPI 3.1: routes and bodies from the handlers themselves, events and messages from
//! `schemas.json`, which a test compares with every event there is. // R: E5

use crate::state::AppState;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::LazyLock;
use utoipa::ToSchema;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Events, messages and their parts, by name.
const SCHEMAS: &str = include_str!("schemas.json");
/// Methods that a path may have in the document.
const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];

/// `/v1/get_openapi.json`.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(get_openapi))
}

/// The message of a turn, as `schemas.json` has it.
#[derive(ToSchema)]
#[schema(as = Message)]
pub struct MessageSchema {}

/// A call in a message, as `schemas.json` has it.
#[derive(ToSchema)]
#[schema(as = ToolCall)]
pub struct ToolCallSchema {}

/// An event of a turn, as `schemas.json` has it.
#[derive(ToSchema)]
#[schema(as = Event)]
pub struct EventSchema {}

/// Tokens, as `schemas.json` has them.
#[derive(ToSchema)]
#[schema(as = Usage)]
pub struct UsageSchema {}

/// What the routes say of themselves, and what holds for all of them.
pub fn document(api: OpenApi) -> Value {
    let mut document = serde_json::to_value(api).unwrap_or_default();
    document["openapi"] = json!("3.1.0");
    document["info"] = json!({
        "title": "Throughline",
        "version": env!("CARGO_PKG_VERSION"),
        "summary": "One turn, one message, one stream.",
        "description": "Start a turn and read ONE message that begins with the first token and never breaks off, while the \
            server asks the model, runs the tools and asks you.\n\nEvery viewer is a cursor in the log of a turn: reconnect with \
            `Last-Event-ID` or `?after=` and nothing is lost or doubled. Times are milliseconds since 1970. What belongs to another \
            user is not there (404).",
        "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
    });
    document["servers"] = json!([{"url": "/", "description": "This server"}]);
    document["tags"] = json!([
        {"name": "turns", "description": "One user input and all that answers it."},
        {"name": "events", "description": "Follow a turn: SSE and WebSocket."},
        {"name": "conversations", "description": "Trees of turns: branches, search, export, import."},
        {"name": "files", "description": "Uploads, and what tools have made."},
        {"name": "agents", "description": "Who answers: prompt, models, tools and rules under a name."},
        {"name": "tools", "description": "What models may call, tried out by hand."},
        {"name": "history", "description": "Which calls there were, and where the time went."},
        {"name": "openai", "description": "What OpenAI clients speak."},
        {"name": "keys", "description": "Who may come in."},
        {"name": "server", "description": "How the server is, and this document."},
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
    narrow_schemas(&mut document);
    add_default_errors(&mut document);
    name_operations(&mut document);
    document
}

/// `{*id}` takes slashes too, which a path of OpenAPI cannot say: there it is `{id}`.
fn strip_wildcards(document: &mut Value) {
    let Some(Value::Object(paths)) = document.get_mut("paths").map(Value::take) else { return };
    let plain: Map<String, Value> =
        paths.into_iter().map(|(path, item)| (path.replace("{*", "{"), item)).collect();
    document["paths"] = Value::Object(plain);
}

/// Handlers are called as their files need it (`list`, `get`); generated clients need a name for each: `files_list`.
fn name_operations(document: &mut Value) {
    let Some(paths) = document["paths"].as_object_mut() else { return };
    let mut names = BTreeSet::new();
    for (path, item) in paths {
        for method in METHODS {
            let Some(operation) = item.get_mut(method) else { continue };
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (tag, handler) = (text(&operation["tags"][0]), text(&operation["operationId"]));
            let mut name = format!("{tag}_{handler}");
            if !names.insert(name.clone()) {
                let path_words: Vec<&str> =
                    path.split(['/', '{', '}', '.']).filter(|part| !part.is_empty()).collect();
                name = format!("{method}_{}", path_words.join("_"));
                names.insert(name.clone());
            }
            operation["operationId"] = Value::from(name);
        }
    }
}

/// What the handlers take, where the types that they are written with say less: the place of a schema, and what is true of
/// it besides.
const NARROWER: [(&str, &str); 26] = [
    ("/components/schemas/Approve/properties/decision", r#"{"enum": ["approve", "deny"]}"#),
    ("/components/schemas/AnswerToLink/properties/decision", r#"{"enum": ["approve", "deny"]}"#),
    // An empty recording is explained, not refused.
    ("/paths/~1v1~1decode/post/requestBody", r#"{"required": false}"#),
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
    ("/components/schemas/KeyWanted/properties/name", r#"{"minLength": 1, "maxLength": 200}"#),
    ("/components/schemas/ParseText/properties/protocol", r#"{"enum": ["vcp", "xml", null]}"#),
    (
        "/components/schemas/Say/properties/input",
        r#"{"minItems": 1, "examples": [[{"type": "text", "text": "And in Paris?"}]]}"#,
    ),
    (
        "/components/schemas/DeclareTools/properties/tools",
        r#"{"examples": [[{"name": "client.open", "description": "Opens a page", "effect": "cosmetic"}]]}"#,
    ),
    ("/components/schemas/Say/properties/when", r#"{"enum": ["next_step", "after_turn"]}"#),
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
            "properties": {"messages": {"type": "array", "minItems": 1}},
            "examples": [[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello!"}]]}"#,
    ),
    (
        "/paths/~1v1~1chat~1completions/post/requestBody/content/application~1json/schema",
        r#"{"required": ["model", "messages"], "properties": {
            "model": {"type": "string", "minLength": 1},
            "messages": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["role"],
                "properties": {"role": {"enum": ["system", "developer", "user", "assistant", "tool", "function"]}}}},
            "stream": {"type": ["boolean", "null"]}},
            "examples": [{"model": "default", "messages": [{"role": "user", "content": "What time is it?"}]}]}"#,
    ),
];
/// The same for parameters of queries, by name: one name means one thing in the whole document.
const NARROWER_PARAMETERS: [(&str, &str); 3] = [
    ("mode", r#"{"enum": ["auto", "native", "text"]}"#),
    ("protocol", r#"{"enum": ["vcp", "xml"]}"#),
    (
        "api",
        r#"{"enum": ["openai-chat", "openai-responses", "anthropic", "gemini", "ollama", "cohere", "bedrock-converse",
            "bedrock-anthropic"]}"#,
    ),
];
const AGENT_NAME: &str = r#"{"minLength": 1, "maxLength": 64}"#;

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
            // Neither a query nor a header can say null: who has nothing to say leaves the parameter out.
            if let Some([Value::String(kind), _]) =
                schema.get("type").and_then(Value::as_array).map(Vec::as_slice)
            {
                schema.insert("type".to_owned(), json!(kind.clone()));
            }
            schema.extend(more.unwrap_or_default());
        }
    }
}

/// Every operation of the document.
fn operations(document: &mut Value) -> impl Iterator<Item = &mut Value> {
    let items = document["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut());
    let operations = items.filter_map(Value::as_object_mut).flat_map(|item| item.iter_mut());
    operations.filter(|(name, _)| METHODS.contains(&name.as_str())).map(|(_, operation)| operation)
}

/// Whatever else an operation answers with (no key, too fast, store gone) is an error in the one shape.
fn add_default_errors(document: &mut Value) {
    let other = json!({
        "description": "Anything else: why not, in the one shape of errors",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}},
    });
    let Some(paths) = document["paths"].as_object_mut() else { return };
    for item in paths.values_mut() {
        for method in METHODS {
            if let Some(responses) = item.get_mut(method).and_then(|operation| operation.get_mut("responses"))
            {
                responses["default"] = other.clone();
            }
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
    let text = document(crate::openapi()).to_string();
    let tag = format!("\"{}\"", blake3::hash(text.as_bytes()).to_hex());
    (text, tag)
});

/// This document. Needs no key: it says what there is, and nothing of anybody.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "server", security(()), responses(
    (status = 200, description = "OpenAPI 3.1", body = Object, content_type = "application/json"),
    (status = 304, description = "`If-None-Match` has it already"),
))]
async fn get_openapi(headers: HeaderMap) -> Response {
    let (text, tag) = &*SERVED;
    let mut response = match headers.get(header::IF_NONE_MATCH).is_some_and(|known| known == tag.as_str()) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => ([(header::CONTENT_TYPE, "application/json")], text.as_str()).into_response(),
    };
    if let Ok(tag) = HeaderValue::try_from(tag.as_str()) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    // R: E5
    #[test]
    fn what_is_said_besides_is_said_of_something() {
        let document = document(crate::openapi());
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
    }
}
