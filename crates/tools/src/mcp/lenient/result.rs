//! The result of a call, part by part.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::STANDARD as BASE64;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use rmcp::model::{CallToolResult, ContentBlock, ServerResult};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use throughline_wire::picture_type;

/// Longest base64 in a part of unknown kind that is shown to the model, in characters. Longer ones are named by their size.
const SHOWN_BASE64_CHARS_MAX: usize = 256;

/// Reads a result: odd parts become readable text.
///
/// # Errors
///
/// The server requests something instead of answering, and the request cannot be read.
pub(super) fn read_call(result: Value) -> Result<ServerResult, String> {
    match result.get("resultType").and_then(Value::as_str) {
        Some("input_required") => {
            return serde_json::from_value(result)
                .map(ServerResult::InputRequiredResult)
                .map_err(|error| format!("its request for input cannot be parsed: {error}"));
        }
        Some("task") => return Err("it turned the call into a task, which was not requested".to_owned()),
        _ => {}
    }
    let mut read = CallToolResult::default();
    match result {
        Value::Null => {}
        Value::Object(mut fields) => {
            let known = ["content", "structuredContent", "isError"];
            if !fields.is_empty() && !known.iter().any(|field| fields.contains_key(*field)) {
                fields.retain(|field, _| field != "resultType" && field != "_meta");
                if !fields.is_empty() {
                    read.content = vec![text_block(readable(Value::Object(fields)), None)];
                }
                return Ok(ServerResult::CallToolResult(read));
            }
            read.content = read_content(fields.remove("content").unwrap_or_default());
            read.structured_content = fields.remove("structuredContent").filter(|value| !value.is_null());
            read.is_error = fields.remove("isError").and_then(|value| truth(&value));
        }
        // The content itself.
        content => read.content = read_content(content),
    }
    Ok(ServerResult::CallToolResult(read))
}

fn read_content(content: Value) -> Vec<ContentBlock> {
    match content {
        Value::Null => Vec::new(),
        Value::Array(parts) => parts.into_iter().filter(|part| !part.is_null()).map(read_part).collect(),
        part => vec![read_part(part)],
    }
}

/// A flag, as languages write it.
fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        Value::Number(number) => Some(number.as_f64() != Some(0.0)),
        Value::String(text) => {
            Some(!["", "0", "false", "no", "none"].contains(&text.trim().to_lowercase().as_str()))
        }
        _ => None,
    }
}

fn read_part(part: Value) -> ContentBlock {
    let mut fields = match part {
        Value::Object(fields) => fields,
        Value::String(text) => return text_block(text, None),
        other => return text_block(other.to_string(), None),
    };
    let annotations = fields.remove("annotations").and_then(read_annotations);
    if let Some(annotations) = &annotations {
        fields.insert("annotations".to_owned(), annotations.clone());
    }
    fields.retain(|field, value| match field.as_str() {
        "_meta" => value.is_object(),
        _ => !value.is_null(),
    });
    match fields.get("type").and_then(Value::as_str) {
        Some("text") => {
            if let Some(text) = fields.get("text").filter(|text| !text.is_string()) {
                return text_block(text.to_string(), annotations);
            }
        }
        Some("image" | "audio") => name_media_type(&mut fields),
        Some("resource_link") => sound_fields(&mut fields),
        Some("resource") => {
            if let Some(Value::Object(resource)) = fields.get_mut("resource") {
                sound_fields(resource);
                if !resource.contains_key("uri")
                    && let Some(text) = resource.get("text").and_then(Value::as_str)
                {
                    return text_block(text.to_owned(), annotations);
                }
            }
        }
        _ => {}
    }
    let part = Value::Object(fields);
    ContentBlock::deserialize(&part).unwrap_or_else(|_| text_block(readable(part), annotations))
}

fn text_block(text: String, annotations: Option<Value>) -> ContentBlock {
    let plain = || ContentBlock::text(text.clone());
    match annotations {
        None => plain(),
        Some(annotations) => {
            let block = json!({"type": "text", "text": text, "annotations": annotations});
            serde_json::from_value(block).unwrap_or_else(|_| plain())
        }
    }
}

/// Reads annotations. The audience must survive other invalid fields: a part for the user alone must not
/// reach the model.
fn read_annotations(annotations: Value) -> Option<Value> {
    let audience = match annotations.get("audience")? {
        Value::Array(audience) => audience.clone(),
        one @ Value::String(_) => vec![one.clone()],
        _ => return None,
    };
    let role = |role: &Value| {
        let role = role.as_str()?.to_lowercase();
        ["user", "assistant"].contains(&role.as_str()).then(|| Value::from(role))
    };
    let audience: Vec<Value> = audience.iter().filter_map(role).collect();
    (!audience.is_empty()).then(|| json!({"audience": audience}))
}

/// Fields of a resource or a link of one that are of their type; its icons are not used.
fn sound_fields(fields: &mut Map<String, Value>) {
    fields.retain(|field, value| match field.as_str() {
        "uri" | "name" | "title" | "description" | "mimeType" | "text" | "blob" | "type" => value.is_string(),
        "size" => value.as_u64().is_some_and(|size| u32::try_from(size).is_ok()),
        "annotations" | "_meta" => value.is_object(),
        _ => false,
    });
    if let (None, Some(uri)) = (fields.get("name"), fields.get("uri").cloned()) {
        fields.insert("name".to_owned(), uri);
    }
}

/// A picture or sound whose type is missing has it in its `data:` prefix or in its first bytes.
fn name_media_type(fields: &mut Map<String, Value>) {
    if fields.get("mimeType").is_some_and(|kind| kind.as_str().is_some_and(|kind| !kind.trim().is_empty())) {
        return;
    }
    let Some(data) = fields.get("data").and_then(Value::as_str) else { return };
    let kind = match data_url(data) {
        Some((kind, _)) => kind.to_owned(),
        None => {
            let head: String = data.chars().take(24).collect();
            let head = decode(&head).unwrap_or_default();
            picture_type(&head).or_else(|| sound_type(&head)).unwrap_or("application/octet-stream").to_owned()
        }
    };
    fields.insert("mimeType".to_owned(), Value::from(kind));
}

fn sound_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some("audio/wav"),
        [b'I', b'D', b'3', ..] | [0xFF, 0xFB | 0xF3 | 0xF2, ..] => Some("audio/mpeg"),
        [b'O', b'g', b'g', b'S', ..] => Some("audio/ogg"),
        [b'f', b'L', b'a', b'C', ..] => Some("audio/flac"),
        _ => None,
    }
}

/// Type and content of `data:image/png;base64,…`.
fn data_url(data: &str) -> Option<(&str, &str)> {
    let (head, content) = data.trim_start().strip_prefix("data:")?.split_once(',')?;
    let kind = head.strip_suffix(";base64")?;
    Some((kind.split(';').next().unwrap_or(kind), content))
}

/// Base64 in the standard alphabet and with its padding, which is what upstreams take, from every spelling of
/// it: with line breaks, in the alphabet of URLs, without padding, after `data:…,`. `None` = not base64.
pub(in crate::mcp) fn base64_of(data: String) -> Option<String> {
    if is_standard(&data) {
        return Some(data);
    }
    let content = data_url(&data).map_or(data.as_str(), |(_, content)| content);
    let bytes = decode(content).filter(|bytes| !bytes.is_empty())?;
    Some(BASE64.encode(bytes))
}

fn is_standard(data: &str) -> bool {
    let body = data.trim_end_matches('=');
    data.len().is_multiple_of(4)
        && data.len() - body.len() <= 2
        && !body.is_empty()
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
}

fn decode(content: &str) -> Option<Vec<u8>> {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let standard: String = content
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| match c {
            '-' => '+',
            '_' => '/',
            other => other,
        })
        .collect();
    GeneralPurpose::new(&STANDARD, config).decode(standard.trim_end_matches('=')).ok()
}

/// A part of an unknown form, as text: its own text if it has some, else all of it except data for programs.
fn readable(mut part: Value) -> String {
    if let Some(Value::String(text)) = part.get("text") {
        return text.clone();
    }
    if let Some(fields) = part.as_object_mut() {
        fields.remove("annotations");
    }
    shorten_base64(&mut part);
    part.to_string()
}

fn shorten_base64(value: &mut Value) {
    match value {
        Value::String(text) => {
            let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_=\r\n".contains(&byte);
            let content = data_url(text).map_or(text.as_str(), |(_, content)| content);
            if content.len() > SHOWN_BASE64_CHARS_MAX && content.bytes().all(is_base64) {
                *text = format!("[{} characters of base64]", content.len());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(shorten_base64),
        Value::Object(fields) => fields.values_mut().for_each(shorten_base64),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::content::output_from_result;

    /// Checks the model's text and the types of the media.
    fn check(result: Value, text: &str, media: &[&str]) {
        let ServerResult::CallToolResult(read) = read_call(result.clone()).unwrap() else {
            panic!("{result}")
        };
        let output = output_from_result(read).unwrap();
        let attached: Vec<&str> = output.media.iter().map(|media| media.media_type.as_str()).collect();
        assert_eq!((output.text.as_str(), &attached[..]), (text, media), "{result}");
    }

    fn part(part: Value, text: &str, media: &[&str]) {
        let around = |text: &str| json!({"type": "text", "text": text});
        let expected =
            if text.is_empty() { "before\nafter".to_owned() } else { format!("before\n{text}\nafter") };
        check(json!({"content": [around("before"), part, around("after")]}), &expected, media);
    }

    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAA";

    #[test]
    fn malformed_part_becomes_text_and_others_are_unchanged() {
        part(json!("bare"), "bare", &[]);
        part(json!(7), "7", &[]);
        part(Value::Null, "", &[]);
        part(json!({"type": "text", "text": 7}), "7", &[]);
        part(json!({"type": "text", "text": {"a": 1}}), "{\"a\":1}", &[]);
        part(json!({"type": "text"}), "{\"type\":\"text\"}", &[]);
        part(json!({"type": "markdown", "text": "*own words*"}), "*own words*", &[]);
        part(json!({"text": "no type"}), "no type", &[]);
        part(json!({"type": "chart", "points": [1, 2]}), "{\"type\":\"chart\",\"points\":[1,2]}", &[]);
        part(
            json!({"type": "text", "text": "odd", "annotations": {"priority": "high"}, "_meta": 7}),
            "odd",
            &[],
        );
        part(json!({"type": "image"}), "{\"type\":\"image\"}", &[]);
        part(
            json!({"type": "picture", "data": "A".repeat(1_000)}),
            "{\"type\":\"picture\",\"data\":\"[1000 characters of base64]\"}",
            &[],
        );
        part(json!({"type": "image", "data": PNG}), "", &["image/png"]);
        part(
            json!({"type": "image", "data": format!("data:image/gif;base64,{PNG}"), "mimeType": null}),
            "",
            &["image/gif"],
        );
        part(
            json!({"type": "resource_link", "uri": "demo://1", "name": null, "size": -1, "icons": 7}),
            "[demo://1](demo://1)",
            &[],
        );
        part(
            json!({"type": "resource", "resource": {"uri": "demo://1", "text": "hello", "mimeType": 7}}),
            "demo://1\nhello",
            &[],
        );
        part(json!({"type": "resource", "resource": {"text": "hello"}}), "hello", &[]);
        part(json!({"type": "resource", "resource": 7}), "{\"type\":\"resource\",\"resource\":7}", &[]);
    }

    #[test]
    fn malformed_result_is_read_by_its_obvious_meaning() {
        check(json!({"content": "bare"}), "bare", &[]);
        check(json!({"content": {"type": "text", "text": "alone"}}), "alone", &[]);
        check(json!({"content": null, "isError": null}), "", &[]);
        check(json!({}), "", &[]);
        check(Value::Null, "", &[]);
        check(json!("done"), "done", &[]);
        check(json!([{"type": "text", "text": "in a list"}]), "in a list", &[]);
        check(json!({"toolResult": 7, "resultType": "complete"}), "{\"toolResult\":7}", &[]);
        check(json!({"content": [], "structuredContent": null}), "", &[]);
        check(
            json!({"content": [{"type": "text", "text": "fine"}], "resultType": 7, "isError": "false"}),
            "fine",
            &[],
        );
        for failed in [json!(true), json!("true"), json!(1)] {
            let result = read_call(json!({"content": "no", "isError": failed})).unwrap();
            let ServerResult::CallToolResult(result) = result else { panic!("{failed}") };
            assert_eq!(result.is_error, Some(true), "{failed}");
        }
        assert!(read_call(json!({"resultType": "task", "task": {}})).is_err());
        assert!(read_call(json!({"resultType": "input_required", "inputRequests": 7})).is_err());
    }

    #[test]
    fn malformed_user_only_part_stays_hidden_from_the_model() {
        for audience in [json!("user"), json!(["User"]), json!(["user", "robot", 7])] {
            for odd in [
                json!({"type": "text", "text": 7}),
                json!({"type": "unknown", "secret": 7}),
                json!({"text": "7"}),
            ] {
                let mut odd = odd;
                odd["annotations"] = json!({"audience": audience, "priority": "high"});
                let ServerResult::CallToolResult(read) = read_call(json!({"content": [odd]})).unwrap() else {
                    panic!()
                };
                let output = output_from_result(read).unwrap();
                assert!(!output.text.contains('7'), "{odd}: {}", output.text);
            }
        }
    }

    #[test]
    fn base64_variants_are_normalized() {
        for (data, expected) in [
            ("/+8=", Some("/+8=")),
            ("/+8", Some("/+8=")),
            ("_-8", Some("/+8=")),
            ("_-8=", Some("/+8=")),
            (" /+\r\n8=\n", Some("/+8=")),
            ("data:image/png;base64,/+8=", Some("/+8=")),
            ("data:image/png;charset=x;base64,_-8", Some("/+8=")),
            ("not base64!", None),
            ("data:image/png,plain", None),
            ("A", None),
            ("", None),
        ] {
            assert_eq!(base64_of(data.to_owned()).as_deref(), expected, "{data:?}");
        }
    }
}
