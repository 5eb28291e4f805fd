//! A plugin's reply: `{"status": "success", "result": …}` or `{"status": "error", "error": …}`.

use serde_json::Value;
use throughline_wire::{Media, ToolOutput};

/// The result, or the plugin's error.
///
/// # Errors
/// It is no such answer.
pub(super) fn parse_reply(stdout: &[u8]) -> Result<Result<Value, String>, String> {
    let text = String::from_utf8_lossy(stdout);
    let text = text.trim().trim_start_matches('\u{feff}');
    if text.is_empty() {
        return Err("it answered nothing".to_owned());
    }
    read_answer(serde_json::from_str(text).map_err(|error| format!("its answer is not JSON: {error}"))?)
}

/// Reads an answer from a parsed document.
pub(super) fn read_answer(mut answer: Value) -> Result<Result<Value, String>, String> {
    match answer["status"].as_str() {
        Some("success") => Ok(Ok(answer["result"].take())),
        Some("error") => {
            let error_value =
                [answer["error"].take(), answer["result"].take()].into_iter().find(|value| !value.is_null());
            Ok(Err(error_value.map_or_else(|| "it failed without a reason".to_owned(), as_text)))
        }
        _ => Err("its answer has no `status` of `success` or `error`".to_owned()),
    }
}

/// A result as an output. Text that is JSON is parsed, as in VCP; parts of `content` become text and
/// pictures.
pub(super) fn output_from_result(result: Value) -> ToolOutput {
    let result = match result {
        Value::String(text) => match serde_json::from_str::<Value>(&text) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => value,
            _ => return ToolOutput::text(text),
        },
        other => other,
    };
    let mut result = result;
    let Some(parts) = result.get_mut("content").and_then(Value::as_array_mut).map(std::mem::take) else {
        let text = if result.is_null() { String::new() } else { result.to_string() };
        return ToolOutput { value: Some(result).filter(|value| !value.is_null()), ..ToolOutput::text(text) };
    };
    let (mut texts, mut media) = (Vec::new(), Vec::new());
    for part in parts {
        let url = part["image_url"]["url"].as_str().or_else(|| part["image_url"].as_str());
        match (part["type"].as_str(), url) {
            (Some("text"), _) => texts.push(as_text(part["text"].clone())),
            (Some("image_url"), Some(url)) => match parse_image(url) {
                Some(picture) => media.push(picture),
                None => texts.push(format!("[image: {url}]")),
            },
            _ => texts.push(part.to_string()),
        }
    }
    // Fields other than the parts stay readable, without their base64.
    if let Some(fields) = result.as_object_mut() {
        fields.shift_remove("content");
    }
    let value = Some(result).filter(|value| value.as_object().is_some_and(|fields| !fields.is_empty()));
    if texts.is_empty() {
        texts.extend(media.iter().map(Media::note));
    }
    ToolOutput { value, media, ..ToolOutput::text(texts.join("\n")) }
}

/// Parses `data:image/png;base64,…`.
fn parse_image(url: &str) -> Option<Media> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let media_type = head.strip_suffix(";base64")?;
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    let is_picture = media_type.starts_with("image/") && !data.is_empty() && data.chars().all(is_base64);
    is_picture.then(|| Media::new(media_type.to_owned(), data.to_owned()))
}

fn as_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn stdout_is_parsed_as_vcp_status_reply() {
        for (stdout, expected) in [
            (r#" {"status":"success","result":"done"} "#, "Ok(Ok(String(\"done\")))"),
            (r#"{"status":"success"}"#, "Ok(Ok(Null))"),
            (r#"{"status":"error","error":"no key"}"#, "Ok(Err(\"no key\"))"),
            (r#"{"status":"error","result":{"a":1}}"#, "Ok(Err(\"{\\\"a\\\":1}\"))"),
            (r#"{"status":"error"}"#, "Ok(Err(\"it failed without a reason\"))"),
            ("", "Err(\"it answered nothing\")"),
            ("{\"ok\":1}", "Err(\"its answer has no `status` of `success` or `error`\")"),
            ("[1]", "Err(\"its answer has no `status` of `success` or `error`\")"),
            ("oops", "Err(\"its answer is not JSON: expected value at line 1 column 1\")"),
        ] {
            assert_eq!(format!("{:?}", parse_reply(stdout.as_bytes())), expected, "{stdout}");
        }
    }

    #[test]
    fn results_become_text_values_and_media() {
        let check = |result: Value, text: &str, value: Option<Value>, pictures: usize| {
            let output = output_from_result(result.clone());
            assert_eq!(
                (output.text.as_str(), output.value, output.media.len()),
                (text, value, pictures),
                "{result}"
            );
        };
        check(json!("plain"), "plain", None, 0);
        check(json!("{\"a\":1}"), "{\"a\":1}", Some(json!({"a": 1})), 0);
        check(json!("42"), "42", None, 0);
        check(json!({"b": [1]}), "{\"b\":[1]}", Some(json!({"b": [1]})), 0);
        check(Value::Null, "", None, 0);
        let url = "data:image/png;base64,iVBORw0KGgo=";
        let parts =
            json!([{"type": "text", "text": "a cat"}, {"type": "image_url", "image_url": {"url": url}}]);
        check(json!({"content": parts, "seed": 7}), "a cat", Some(json!({"seed": 7})), 1);
        check(
            json!({"content": [{"type": "image_url", "image_url": {"url": url}}]}),
            "[image image/png, 1 kB, shown to the user]",
            None,
            1,
        );
        let elsewhere =
            json!({"content": [{"type": "image_url", "image_url": {"url": "https://x.org/a.png"}}]});
        check(elsewhere, "[image: https://x.org/a.png]", None, 0);
        let evil =
            json!({"content": [{"type": "image_url", "image_url": {"url": "data:text/html;base64,PGI+"}}]});
        check(evil, "[image: data:text/html;base64,PGI+]", None, 0);
    }
}
