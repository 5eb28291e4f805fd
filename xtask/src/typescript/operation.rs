//! Operations: what each takes, and what it answers when all is well.

use super::name::{self, Names};
use super::shape;
use super::text::{self, Field, Type};
use anyhow::Result;
use serde_json::{Map, Value};

const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// How the body of an answer is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    Json,
    Text,
    Bytes,
    Events,
}

/// The map of operations, and how those are read whose answers are no JSON.
pub fn all(document: &Value, names: &Names) -> Result<String> {
    let (mut operations, mut readings) = (Vec::new(), Vec::new());
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for method in METHODS {
            let Some(operation) = item.get(method) else { continue };
            let Some((answer, reading)) = answer(operation, names)? else { continue };
            let name = name::literal(&format!("{} {path}", method.to_uppercase()));
            let mut fields = Vec::new();
            for (place, member) in [("path", "path"), ("query", "query")] {
                let shared = item.get("parameters").and_then(Value::as_array);
                let own = operation.get("parameters").and_then(Value::as_array);
                let all = shared.into_iter().chain(own).flatten();
                fields.extend(parameters(all.filter(|one| one["in"] == place), member, names)?);
            }
            fields.extend(body(&operation["requestBody"], names)?);
            fields.push(Field { name: "response".to_owned(), about: answered(operation), is: answer });
            operations.push(Field { name: name.clone(), about: about(operation), is: Type::Fields(fields) });
            let word = match reading {
                Reading::Json => continue,
                Reading::Text => "\"text\"",
                Reading::Bytes => "\"bytes\"",
                Reading::Events => "\"events\"",
            };
            readings.push(format!("  {name}: {word},\n"));
        }
    }
    let about = "What can be asked of the server, by method and path. WebSockets are none of these.";
    let operations = text::declaration("Operations", Some(about), &Type::Fields(operations));
    let about = text::comment("How answers are read that are no JSON.", 0);
    let kinds = "{ readonly [operation in keyof Operations]?: \"text\" | \"bytes\" | \"events\" }";
    let readings = readings.concat();
    let readings = if readings.is_empty() { "{}".to_owned() } else { format!("{{\n{readings}}}") };
    Ok(format!("{operations}\n{about}export const NOT_JSON: {kinds} = {readings};\n"))
}

fn about(operation: &Value) -> Option<String> {
    let text = |key: &str| operation[key].as_str().map(str::trim).filter(|text| !text.is_empty());
    let parts: Vec<&str> = [text("summary"), text("description")].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

fn parameters<'a>(
    all: impl Iterator<Item = &'a Value>,
    member: &str,
    names: &Names,
) -> Result<Option<Field>> {
    let (mut fields, mut is_required) = (Vec::new(), false);
    for one in all {
        let Some(name) = one["name"].as_str() else { continue };
        let mark = if one["required"] == true { "" } else { "?" };
        is_required |= mark.is_empty();
        fields.push(Field {
            name: format!("{}{mark}", name::field(name)),
            about: shape::about(one).map(str::to_owned),
            is: shape::of(&one["schema"], names)?,
        });
    }
    let mark = if is_required { "" } else { "?" };
    Ok((!fields.is_empty()).then(|| Field {
        name: format!("{member}{mark}"),
        about: None,
        is: Type::Fields(fields),
    }))
}

fn body(body: &Value, names: &Names) -> Result<Option<Field>> {
    let Some(content) = body["content"].as_object() else { return Ok(None) };
    let mut types = Vec::new();
    for (media_type, is) in content {
        types.push(match media_type.as_str() {
            JSON => shape::of(&is["schema"], names)?,
            "multipart/form-data" => Type::word("FormData"),
            text if is_text(text) => Type::word("string"),
            _ => Type::union(["Blob", "Uint8Array<ArrayBuffer>"].map(Type::word)),
        });
    }
    let mark = if body["required"] == true { "" } else { "?" };
    Ok(Some(Field {
        name: format!("body{mark}"),
        about: shape::about(body).map(str::to_owned),
        is: Type::union(types),
    }))
}

/// What it answers with 2xx; `None` if it never does. Events instead of an answer have to be asked for, so they count only
/// where there is nothing else.
fn answer(operation: &Value, names: &Names) -> Result<Option<(Type, Reading)>> {
    let mut found: Vec<(Type, Reading)> = Vec::new();
    let mut says_nothing = false;
    for (status, response) in successes(operation) {
        let none = Map::new();
        let content = response["content"].as_object().unwrap_or(&none);
        says_nothing |= content.is_empty() && status != "default";
        if let Some(json) = content.get(JSON) {
            found.push((shape::of(&json["schema"], names)?, Reading::Json));
        } else if let Some(media_type) = content.keys().next() {
            found.push(match media_type.as_str() {
                EVENTS => (Type::word("ReadableStream<Uint8Array>"), Reading::Events),
                text if is_text(text) => (Type::word("string"), Reading::Text),
                _ => (Type::word("Blob"), Reading::Bytes),
            });
        }
    }
    if found.iter().any(|(_, reading)| *reading != Reading::Events) {
        found.retain(|(_, reading)| *reading != Reading::Events);
    }
    let reading = found.first().map(|(_, reading)| *reading);
    let nothing = says_nothing.then(|| Type::word("undefined"));
    let types: Vec<Type> = found.into_iter().map(|(is, _)| is).chain(nothing).collect();
    Ok((!types.is_empty()).then(|| (Type::union(types), reading.unwrap_or(Reading::Json))))
}

fn successes(operation: &Value) -> impl Iterator<Item = (&String, &Value)> {
    operation["responses"].as_object().into_iter().flatten().filter(|(status, _)| status.starts_with('2'))
}

fn answered(operation: &Value) -> Option<String> {
    successes(operation).find_map(|(_, response)| shape::about(response).map(str::to_owned))
}

fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/") || media_type == "application/jsonl"
}
