use super::{get, server};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];

/// Verbs that may follow the tag in an operation id: SDK generators make method names of them.
const VERBS: [&str; 38] = [
    "rate",
    "probe",
    "retry",
    "answer",
    "call",
    "cancel",
    "check",
    "complete",
    "connect",
    "count",
    "create",
    "declare",
    "decode",
    "delete",
    "download",
    "duplicate",
    "export",
    "follow",
    "forget",
    "fork",
    "get",
    "import",
    "list",
    "parse",
    "preview",
    "replace",
    "report",
    "resolve",
    "restore",
    "retract",
    "revoke",
    "search",
    "send",
    "sign",
    "start",
    "submit",
    "update",
    "upload",
];

/// Routes that are for people, for operation and for tests, and no part of the API.
const BESIDE: [&str; 12] = [
    "/docs",
    "/home",
    "/approve",
    "/_echo",
    "/{",
    "/c/",
    "/s/",
    "/history/",
    "/assets/",
    "/frames/",
    "/first-paint.js",
    "/plugin-callback/",
];

fn document() -> Value {
    throughline_server::openapi_document()
}

fn operations(document: &Value) -> BTreeMap<(String, String), Value> {
    let mut found = BTreeMap::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in METHODS {
            if let Some(operation) = item.get(method) {
                found.insert((method.to_owned(), path.clone()), operation.clone());
            }
        }
    }
    found
}

fn sources(folder: &Path, into: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|end| end == "rs") {
            into.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn forwarded_request_bodies_require_a_model() {
    let document = document();
    for route in ["completions", "embeddings"] {
        for base in ["", "/render/{render}"] {
            let path = format!("{base}/v1/{route}");
            let body = &document["paths"][&path]["post"]["requestBody"];
            let schema = &body["content"]["application/json"]["schema"];
            assert_eq!(schema["required"], serde_json::json!(["model"]), "{path}");
            assert_eq!(schema["properties"]["model"]["type"], "string", "{path}");
        }
    }
}

#[tokio::test]
async fn document_and_routes_match() {
    let server = server().await;
    let served = get(&server, "/v1/openapi.json").await;
    assert_eq!(served, document());
    assert_eq!(served["openapi"], "3.1.0");
    let operations = operations(&served);
    for (method, path) in operations.keys() {
        let at = path
            .split('/')
            .map(|part| if part.starts_with('{') { "0" } else { part })
            .collect::<Vec<_>>()
            .join("/");
        // A documented method is never refused as unknown, regardless of other errors in the request.
        let method_ = reqwest::Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
        let response = server.client().request(method_, server.url(&at)).send().await.unwrap();
        let status = response.status().as_u16();
        let said: Value = if path.ends_with("/ws") || status == 200 {
            Value::Null
        } else {
            response.json().await.unwrap_or_default()
        };
        let code = said["error"]["code"].as_str().unwrap_or_default();
        assert!(
            status != 405 && code != "no_such_route" && code != "no_such_method",
            "{method} {path}: {status} {said}"
        );
    }
    // Handlers are described at their definition, and only routes outside the API are registered without a
    // description.
    let mut text = String::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut text);
    let described = text.matches("#[utoipa::path(").count();
    assert!(operations.len() <= described, "{} operations of {described} handlers", operations.len());
    let beside: BTreeSet<&str> =
        text.split(".route(\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    for path in beside {
        let is_no_api = path == "/" || BESIDE.iter().any(|start| path.starts_with(start));
        assert!(is_no_api || served["paths"].get(path).is_some(), "{path} is routed and not described");
    }
}

#[test]
fn operations_have_summary_tag_id_and_default_response() {
    let document = document();
    let (mut ids, mut used_tags) = (BTreeSet::new(), BTreeSet::new());
    let tags: BTreeSet<&str> =
        document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].as_str().unwrap()).collect();
    for ((method, path), operation) in operations(&document) {
        let at = format!("{method} {path}");
        assert!(!operation["summary"].as_str().unwrap_or_default().is_empty(), "{at} has no summary");
        let (tag, id) = (operation["tags"][0].as_str().unwrap(), operation["operationId"].as_str().unwrap());
        assert!(tags.contains(tag), "{at}: the tag {tag} is not declared");
        let verb = id.strip_prefix(tag).and_then(|rest| rest.strip_prefix('_')).unwrap_or_default();
        let verb = verb.split('_').next().unwrap_or_default();
        assert!(VERBS.contains(&verb), "{at}: {id} is not {tag}_VERB");
        assert!(ids.insert(id.to_owned()), "{at}: {id} is used twice");
        used_tags.insert(tag.to_owned());
        assert!(operation["responses"]["default"].is_object(), "{at}");
        let given: BTreeSet<&str> =
            path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        let described: BTreeSet<&str> = operation["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|one| one["in"] == "path")
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        assert_eq!(given, described, "{at}");
    }
    assert_eq!(used_tags, tags.into_iter().map(str::to_owned).collect(), "a tag has no operation");
    let generic =
        document["components"]["schemas"].as_object().unwrap().keys().find(|name| name.contains('_'));
    assert_eq!(generic, None, "a schema has a name that no SDK would use");
    // No reference leads nowhere.
    let text = document.to_string();
    for name in text.split("\"#/components/schemas/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(document["components"]["schemas"].get(name).is_some(), "there is no schema {name}");
    }
    assert_eq!(document["components"]["securitySchemes"]["bearer"]["scheme"], "bearer");
}

/// A part of the document.
fn at<'d>(document: &'d Value, pointer: &str) -> &'d Value {
    document.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is not in the document"))
}

#[test]
fn schemas_exclude_values_that_are_rejected() {
    let document = document();
    let schema = |name: &str, field: &str| {
        at(&document, &format!("/components/schemas/{name}/properties/{field}")).clone()
    };
    // A form cannot express null.
    for field in ["language", "model", "prompt", "response_format"] {
        assert_eq!(schema("CreateTranscription", field)["type"], "string", "{field}");
    }
    assert_eq!(schema("CreateTranscription", "temperature")["type"], "number");
    assert_eq!(schema("CreateTranscription", "response_format")["enum"].as_array().unwrap().len(), 5);
    for form in ["DecodeForm", "UploadForm", "CreateTranscription"] {
        assert_eq!(
            at(&document, &format!("/components/schemas/{form}/required")),
            &json!(["file"]),
            "{form}"
        );
    }
    assert_eq!(schema("SavePrompt", "text")["pattern"], "\\S");
    assert_eq!(schema("UpdateConversation", "temporary")["enum"], json!([false, null]));
    let parameter = |path: &str, name: &str| {
        let parameters = document["paths"][path]["get"]["parameters"].as_array().unwrap();
        parameters.iter().find(|one| one["name"] == name).unwrap()["schema"].clone()
    };
    assert_eq!(parameter("/v1/files/{file_id}/text", "from_page")["minimum"], 1);
    assert_eq!(parameter("/v1/turns/{turn_id}/events", "after")["maximum"], u64::MAX);
}

/// A schema of the document with everything that it refers to. It refuses fields that no schema names, at any depth.
fn validator(name: &str) -> jsonschema::Validator {
    let document = document();
    let mut schema = json!({
        "$ref": format!("#/components/schemas/{name}"), "components": {"schemas": document["components"]["schemas"]},
    });
    close_objects(&mut schema["components"]["schemas"]);
    jsonschema::draft202012::new(&schema).unwrap()
}

fn close_objects(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(close_objects);
            if members.get("properties").is_some_and(Value::is_object)
                && members.get("type") == Some(&json!("object"))
            {
                members.entry("additionalProperties").or_insert(json!(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close_objects),
        _ => {}
    }
}

fn logs() -> Vec<(String, Vec<Value>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/tests/logs");
    let mut logs = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        logs.push((
            path.display().to_string(),
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
        ));
    }
    logs
}

#[test]
fn every_event_type_matches_its_schema() {
    let (document, validator) = (document(), validator("Event"));
    let mapping = &document["components"]["schemas"]["Event"]["discriminator"]["mapping"];
    let mut seen = BTreeSet::new();
    for (log, events) in logs() {
        for event in events {
            let errors: Vec<String> = validator.iter_errors(&event).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{log}: {event}: {errors:?}");
            let kind = event["type"].as_str().unwrap().to_owned();
            assert!(mapping[&kind].is_string(), "{log}: no schema for {kind}");
            seen.insert(kind);
        }
    }
    let known: BTreeSet<String> = mapping.as_object().unwrap().keys().cloned().collect();
    assert_eq!(seen, known, "every type is in some log");
    // And the schema can fail.
    for wrong in [
        json!({"type": "content_delta", "turn_id": "t", "seq": 1, "timestamp": 1}),
        json!({"type": "nothing"}),
        json!({"type": "content_delta", "turn_id": "t", "seq": 0, "timestamp": 1, "text": "x"}),
        json!({"type": "step_end", "turn_id": "t", "seq": 1, "timestamp": 1, "usage": {"new_tokens": 1}}),
    ] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
}

#[test]
fn messages_match_their_schema_after_every_event() {
    let (document, validator) = (document(), validator("Message"));
    let schemas = &document["components"]["schemas"];
    for (log, events) in logs() {
        let events: Vec<throughline_engine::Event> =
            events.into_iter().map(|event| serde_json::from_value(event).unwrap()).collect();
        for upto in 1..=events.len() {
            let message =
                serde_json::to_value(throughline::AssistantMessage::from_events(&events[..upto])).unwrap();
            let errors: Vec<String> =
                validator.iter_errors(&message).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{log} after {upto}: {errors:?}");
            for block in
                message["blocks"].as_array().unwrap().iter().filter(|block| block["kind"] == "tool_call")
            {
                for field in block.as_object().unwrap().keys().filter(|field| *field != "kind") {
                    assert!(
                        schemas["ToolCall"]["properties"].get(field).is_some(),
                        "`{field}` of a call is not in its schema"
                    );
                }
            }
        }
    }
}

#[test]
fn viewer_events_match_their_schema() {
    use throughline_server::{
        SnapshotKind, store_unavailable_event, write_snapshot_frame, write_waiting_frame,
    };
    let validator = validator("ViewerEvent");
    let mut frames = Vec::new();
    for (_, events) in logs() {
        let events: Vec<throughline_engine::Event> =
            events.into_iter().map(|event| serde_json::from_value(event).unwrap()).collect();
        for kind in [SnapshotKind::Snapshot, SnapshotKind::Resync] {
            write_snapshot_frame(&mut frames, kind, &throughline::AssistantMessage::from_events(&events))
                .unwrap();
        }
    }
    let away = std::time::Duration::from_secs(2);
    write_waiting_frame(
        &mut frames,
        &store_unavailable_event(&throughline_engine::TurnId::new("turn_1"), 1, away),
    );
    let frames = String::from_utf8(frames).unwrap();
    let mut kinds = BTreeSet::new();
    for data in frames.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let viewed: Value = serde_json::from_str(data).unwrap();
        let errors: Vec<String> = validator.iter_errors(&viewed).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{viewed}: {errors:?}");
        kinds.insert(viewed["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(kinds, ["resync", "snapshot", "waiting"].map(str::to_owned).into());
    assert!(!validator.is_valid(&json!({"type": "snapshot", "turn_id": "t", "last_seq": 1})));
}

#[tokio::test]
async fn docs_page_loads_nothing_foreign() {
    let server = server().await;
    for (path, media_type) in [
        ("/docs", "text/html; charset=utf-8"),
        ("/docs/style.css", "text/css; charset=utf-8"),
        ("/docs/script.js", "text/javascript; charset=utf-8"),
    ] {
        let response = server.client().get(server.url(path)).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(response.headers()["content-type"], media_type);
        let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        let text = response.text().await.unwrap();
        for foreign in [
            "http://",
            "https://",
            "@import",
            "innerHTML",
            "eval(",
            "document.write",
            " style=\"",
            "onclick=\"",
        ] {
            assert!(!text.contains(foreign), "{path} has {foreign}");
        }
        assert!(!text.contains("<script>") && !text.contains("<style"), "{path}");
    }
}

#[test]
fn typed_client_document_matches_the_served_one() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/client/openapi.json");
    let served = serde_json::to_string_pretty(&document()).unwrap() + "\n";
    if std::env::var_os("THROUGHLINE_BLESS").is_some() {
        std::fs::write(&file, &served).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default().replace("\r\n", "\n");
    assert!(
        written == served,
        "web/client/openapi.json is not what the server serves; write it and the client's types anew with\n    \
         THROUGHLINE_BLESS=1 cargo test --workspace --test it typed_client && cargo xtask typescript --write"
    );
}

#[tokio::test]
async fn values_allowed_by_the_schemas_are_accepted() {
    let server = server().await;
    // An integer is one however it is written.
    let frames = json!({"jank_frames": 2.0, "window_ms": 1000.0});
    let (status, said) = server.post("/v1/telemetry/frames", frames).await;
    assert!((200..300).contains(&status), "{status} {said}");
    assert_eq!(
        server.post("/v1/telemetry/frames", json!({"jank_frames": 2.5, "window_ms": 1000})).await.0,
        400
    );
    // A form sends an empty cursor for the first page.
    for list in ["/v1/conversations", "/v1/files", "/v1/history/calls", "/v1/history/turns", "/v1/remembered"]
    {
        assert_eq!(server.get(&format!("{list}?cursor=")).await.0, 200, "{list}");
    }
    let decoded =
        server.client().post(server.url("/v1/decode")).header("content-type", "application/octet-stream");
    let decoded: Value = decoded.send().await.unwrap().json().await.unwrap();
    let validator = validator("DecodedRecording");
    let errors: Vec<String> = validator.iter_errors(&decoded).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{decoded}: {errors:?}");
}
