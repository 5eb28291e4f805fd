//! Operations: what each takes, and what it answers when all is well.

use super::name::{self, SchemaNames};
use super::shape;
use super::text::{self, TsField, TsType};
use anyhow::Result;
use serde_json::{Map, Value};

const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// Way to read the body of a response.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ResponseReading {
    Json,
    Text,
    Bytes,
    Events,
}

/// The map of operations, and how those are read whose answers are no JSON.
pub(crate) fn all(document: &Value, names: &SchemaNames) -> Result<String> {
    let (mut operations, mut readings) = (Vec::new(), Vec::new());
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for method in METHODS {
            let Some(operation) = item.get(method) else { continue };
            let Some((answer, reading)) = answer(operation, names)? else { continue };
            let name = name::literal(&format!("{} {path}", method.to_uppercase()));
            let mut fields = Vec::new();
            for (location, member) in [("path", "path"), ("query", "query")] {
                let shared = item.get("parameters").and_then(Value::as_array);
                let own = operation.get("parameters").and_then(Value::as_array);
                let all = shared.into_iter().chain(own).flatten();
                fields.extend(parameters(all.filter(|one| one["in"] == location), member, names)?);
            }
            fields.extend(body(&operation["requestBody"], names)?);
            fields.push(TsField {
                name: "response".to_owned(),
                comment: success_text(operation),
                ty: answer,
            });
            operations.push(TsField {
                name: name.clone(),
                comment: about(operation),
                ty: TsType::Fields(fields),
            });
            let word = match reading {
                ResponseReading::Json => continue,
                ResponseReading::Text => "\"text\"",
                ResponseReading::Bytes => "\"bytes\"",
                ResponseReading::Events => "\"events\"",
            };
            readings.push(format!("  {name}: {word},\n"));
        }
    }
    let about = "What can be asked of the server, by method and path. WebSockets are none of these.";
    let operations = text::declaration("Operations", Some(about), &TsType::Fields(operations));
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
    names: &SchemaNames,
) -> Result<Option<TsField>> {
    let (mut fields, mut is_required) = (Vec::new(), false);
    for one in all {
        let Some(name) = one["name"].as_str() else { continue };
        let mark = if one["required"] == true { "" } else { "?" };
        is_required |= mark.is_empty();
        fields.push(TsField {
            name: format!("{}{mark}", name::field(name)),
            comment: shape::description_of(one).map(str::to_owned),
            ty: shape::type_of(&one["schema"], names)?,
        });
    }
    let mark = if is_required { "" } else { "?" };
    Ok((!fields.is_empty()).then(|| TsField {
        name: format!("{member}{mark}"),
        comment: None,
        ty: TsType::Fields(fields),
    }))
}

fn body(body: &Value, names: &SchemaNames) -> Result<Option<TsField>> {
    let Some(content) = body["content"].as_object() else { return Ok(None) };
    let mut types = Vec::new();
    for (media_type, is) in content {
        types.push(match media_type.as_str() {
            JSON => shape::type_of(&is["schema"], names)?,
            "multipart/form-data" => TsType::word("FormData"),
            text if is_text(text) => TsType::word("string"),
            _ => TsType::union(["Blob", "Uint8Array<ArrayBuffer>"].map(TsType::word)),
        });
    }
    let mark = if body["required"] == true { "" } else { "?" };
    Ok(Some(TsField {
        name: format!("body{mark}"),
        comment: shape::description_of(body).map(str::to_owned),
        ty: TsType::union(types),
    }))
}

/// Type of the 2xx response; `None` if there is none. Events must be asked for with `Accept`, so they count only
/// where there is nothing else.
fn answer(operation: &Value, names: &SchemaNames) -> Result<Option<(TsType, ResponseReading)>> {
    let mut found: Vec<(TsType, ResponseReading)> = Vec::new();
    let mut has_empty = false;
    for (status, response) in successes(operation) {
        let none = Map::new();
        let content = response["content"].as_object().unwrap_or(&none);
        has_empty |= content.is_empty() && status != "default";
        if let Some(json) = content.get(JSON) {
            found.push((shape::type_of(&json["schema"], names)?, ResponseReading::Json));
        } else if let Some(media_type) = content.keys().next() {
            found.push(match media_type.as_str() {
                EVENTS => (TsType::word("ReadableStream<Uint8Array>"), ResponseReading::Events),
                text if is_text(text) => (TsType::word("string"), ResponseReading::Text),
                _ => (TsType::word("Blob"), ResponseReading::Bytes),
            });
        }
    }
    if found.iter().any(|(_, reading)| *reading != ResponseReading::Events) {
        found.retain(|(_, reading)| *reading != ResponseReading::Events);
    }
    let reading = found.first().map(|(_, reading)| *reading);
    let nothing = has_empty.then(|| TsType::word("undefined"));
    let types: Vec<TsType> = found.into_iter().map(|(is, _)| is).chain(nothing).collect();
    Ok((!types.is_empty()).then(|| (TsType::union(types), reading.unwrap_or(ResponseReading::Json))))
}

fn successes(operation: &Value) -> impl Iterator<Item = (&String, &Value)> {
    operation["responses"].as_object().into_iter().flatten().filter(|(status, _)| status.starts_with('2'))
}

fn success_text(operation: &Value) -> Option<String> {
    successes(operation).find_map(|(_, response)| shape::description_of(response).map(str::to_owned))
}

fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/") || media_type == "application/jsonl"
}
