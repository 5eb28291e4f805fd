//! The document marks as required exactly what the server demands, for every operation: a client that is
//! generated from the document can send no less, and a hand-written request need send no more.

use crate::guarded_server::{GuardedServer, settings};
use crate::support::{answered, http_client};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, Method};
use serde_json::{Map, Value, json};
use throughline_server::KeyScope;
use throughline_testkit::ScriptQueue;

const JSON: &str = "application/json";
const FORM: &str = "multipart/form-data";

/// An operation at a path that is there, where one can be made.
struct Operation {
    what: String,
    method: Method,
    url: String,
    described: Value,
}

impl Operation {
    /// The response to this body; `None` = no body and no content type.
    async fn answer(&self, client: &Client, body: Option<(&str, String)>) -> (u16, Value) {
        let mut request = client.request(self.method.clone(), &self.url);
        if let Some((kind, body)) = body {
            request = request.header(CONTENT_TYPE, kind).body(body);
        }
        answered(request).await
    }

    /// The schema of a body of this kind, if it takes one.
    fn body<'d>(&'d self, document: &'d Value, kind: &str) -> Option<&'d Value> {
        self.described["requestBody"]["content"]
            .get(kind)
            .map(|content| resolve(document, &content["schema"]))
    }
}

/// The schema that a reference leads to.
fn resolve<'d>(document: &'d Value, schema: &'d Value) -> &'d Value {
    match schema["$ref"].as_str() {
        Some(to) => resolve(document, document.pointer(to.trim_start_matches('#')).unwrap()),
        None => schema,
    }
}

fn required(schema: &Value) -> Vec<&str> {
    schema["required"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap()).collect()
}

/// The least that a schema allows: what is required, and of that the first or the smallest.
fn least(document: &Value, schema: &Value) -> Value {
    let schema = resolve(document, schema);
    for list in ["examples", "enum", "oneOf", "anyOf"] {
        match schema[list].as_array().and_then(|items| items.first()) {
            Some(first) if list.ends_with("Of") => return least(document, first),
            Some(first) => return first.clone(),
            None => {}
        }
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    match kind.unwrap_or("object") {
        "string" => json!("x"),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(1)),
        "boolean" => json!(false),
        "null" => Value::Null,
        "array" => {
            let items = schema["minItems"].as_u64().unwrap_or(0);
            (0..items).map(|_| least(document, &schema["items"])).collect()
        }
        _ => least_object(document, schema).into(),
    }
}

fn least_object(document: &Value, schema: &Value) -> Map<String, Value> {
    let fields = required(schema).into_iter();
    fields.map(|name| (name.to_owned(), least(document, &schema["properties"][name]))).collect()
}

/// The field that a refusal reports as missing: its parameter, or a name in its message if a whole text is
/// parsed.
fn missed((status, said): &(u16, Value)) -> Option<String> {
    let error = &said["error"];
    let message = error["message"].as_str().unwrap_or_default();
    if let Some((_, name)) = message.split_once("missing field `") {
        return name.split('`').next().map(str::to_owned);
    }
    let is_missed = error["code"] == "no_file" || (*status == 400 && message.contains("is missing"));
    is_missed.then(|| error["param"].as_str().unwrap_or_default().to_owned())
}

/// A server, one who may do everything there, and every operation of the document.
struct Site {
    client: Client,
    document: Value,
    operations: Vec<Operation>,
    _server: GuardedServer,
}

impl Site {
    async fn start() -> Self {
        const ALL: [KeyScope; 4] = [KeyScope::Chat, KeyScope::Tools, KeyScope::Agents, KeyScope::Admin];
        let server = GuardedServer::start(ScriptQueue::new([]), &settings()).await;
        let (key, _) = server.key(&ALL).await;
        let bearer = [(AUTHORIZATION, format!("Bearer {key}").parse().unwrap())];
        let client = http_client().default_headers(bearer.into_iter().collect()).build().unwrap();
        let url = |path: &str| format!("http://{}{path}", server.address);
        let make = async |path: &str, body: Value| {
            let (status, made) = answered(client.post(url(path)).json(&body)).await;
            assert!((200..300).contains(&status), "{path}: {status} {made}");
            made
        };
        let said = json!([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello!"}]);
        let conversation = make("/v1/conversations/import", said).await;
        let key = make("/v1/keys", json!({"name": "another"})).await;
        make("/v1/agents", json!({"name": "mine", "settings": {"model": "test/m"}})).await;
        make("/v1/users", json!({"name": "bob"})).await;
        let text =
            |value: &Value| value.as_str().unwrap_or_else(|| panic!("{conversation} {key}")).to_owned();
        let there = [
            ("{conversation_id}", text(&conversation["id"])),
            ("{turn_id}", text(&conversation["leaf_id"])),
            ("{key_id}", text(&key["id"])),
            ("{agent}", "mine".to_owned()),
            ("{user}", "bob".to_owned()),
            ("{upstream}", "test".to_owned()),
            ("{render}", "text".to_owned()),
        ];
        let document = throughline_server::openapi_document();
        let mut operations = Vec::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, described) in item.as_object().unwrap() {
                let mut at = path.clone();
                for (name, value) in &there {
                    at = at.replace(name, value);
                }
                let method = method.to_uppercase();
                operations.push(Operation {
                    what: format!("{method} {path}"),
                    method: Method::from_bytes(method.as_bytes()).unwrap(),
                    url: url(&at.replace(['{', '}'], "")),
                    described: described.clone(),
                });
            }
        }
        Self { client, document, operations, _server: server }
    }
}

#[tokio::test]
async fn required_fields_match_the_document() {
    let Site { client, document, operations, .. } = &Site::start().await;
    let (mut looked_at, mut wrong) = (0, Vec::new());
    for operation in operations {
        let Some(schema) = operation.body(document, JSON) else { continue };
        let (whole, required) = (least_object(document, schema), required(schema));
        let ask = async |body: &Map<String, Value>| {
            operation.answer(client, Some((JSON, json!(body).to_string()))).await
        };
        let mut check = |is_right: bool, body: &Map<String, Value>, answer: (u16, Value)| {
            if !is_right {
                wrong.push(format!("{} {}: {answer:?}", operation.what, json!(body)));
            }
        };
        looked_at += 1;
        let empty = ask(&Map::new()).await;
        check((empty.0 == 400) != required.is_empty(), &Map::new(), empty);
        let enough = ask(&whole).await;
        check(missed(&enough).is_none(), &whole, enough);
        for name in required {
            let mut body = whole.clone();
            body.remove(name);
            let without = ask(&body).await;
            check(without.0 == 400 && missed(&without).as_deref() == Some(name), &body, without);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(looked_at > 30, "{looked_at} operations take JSON");
}

#[tokio::test]
async fn required_form_parts_match_the_document() {
    let Site { client, document, operations, .. } = &Site::start().await;
    let kind = format!("{FORM}; boundary=x");
    let mut looked_at = 0;
    for operation in operations {
        let Some(schema) = operation.body(document, FORM) else { continue };
        let (what, required) = (&operation.what, required(schema));
        looked_at += 1;
        let empty = operation.answer(client, Some((&kind, "--x--\r\n".to_owned()))).await;
        assert_eq!(empty.0 == 400, !required.is_empty(), "{what}: {empty:?}, required: {required:?}");
        let part = |name: &&str| {
            let head = format!("content-disposition: form-data; name=\"{name}\"; filename=\"{name}.txt\"");
            format!("--x\r\n{head}\r\n\r\ntext\r\n")
        };
        let parts: String = required.iter().map(part).collect();
        let full = operation.answer(client, Some((&kind, format!("{parts}--x--\r\n")))).await;
        assert_eq!(missed(&full), None, "{what}: {full:?}");
    }
    assert!(looked_at >= 4, "{looked_at} operations take forms");
}

#[tokio::test]
async fn required_bodies_match_the_document() {
    let Site { client, operations, .. } = &Site::start().await;
    for operation in operations.iter().filter(|operation| operation.described.get("requestBody").is_some()) {
        let bodiless = operation.answer(client, None).await;
        let is_required = operation.described["requestBody"]["required"] == true;
        assert_eq!(matches!(bodiless.0, 400 | 415), is_required, "{}: {bodiless:?}", operation.what);
    }
}

#[tokio::test]
async fn required_parameters_match_the_document() {
    let Site { client, operations, .. } = &Site::start().await;
    for operation in operations.iter().filter(|operation| operation.method == Method::GET) {
        let parameters = operation.described["parameters"].as_array().into_iter().flatten();
        let required: Vec<&Value> =
            parameters.filter(|one| one["in"] == "query" && one["required"] == true).collect();
        // Events of a turn are a stream, and have no end in a turn that still runs: this one is over.
        let asked = operation.answer(client, None).await;
        assert_eq!(missed(&asked).is_some(), !required.is_empty(), "{}: {asked:?}", operation.what);
    }
}
