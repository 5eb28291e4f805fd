//! From a server's answer to an output: text for the model, pictures and sounds, and everything else as
//! readable text and as data for the card.

use super::lenient::base64_of;
use crate::tool::ToolError;
use rmcp::model::{Annotations, CallToolResult, ContentBlock, ResourceContents, Role};
use serde_json::{Map, Value, json};
use throughline_wire::{Media, ToolOutput};

/// Text for the model if all of an answer was meant for the user.
const USER_ONLY_TEXT: &str = "The result is addressed to the user, who has seen it.";
/// Text for the model if the rest of it was a picture or a sound.
const MEDIA_ONLY_TEXT: &str =
    "The result is the image or audio; its other content is addressed to the user, who has seen it.";

/// Output of a finished call, or the error that the tool reports.
pub(crate) fn output_from_result(result: CallToolResult) -> Result<ToolOutput, ToolError> {
    let is_error = result.is_error == Some(true);
    let mut builder = OutputBuilder::default();
    for block in result.content {
        builder.push(block);
    }
    let output = builder.finish(result.structured_content);
    if !is_error {
        return Ok(output);
    }
    let message = match output.text.trim() {
        "" => "the tool reported a failure without a reason".to_owned(),
        text => text.to_owned(),
    };
    let partial = ToolOutput { text: String::new(), size: 0, ..output };
    let is_empty = partial.value.is_none() && partial.media.is_empty();
    Err(if is_empty { ToolError::new(message) } else { ToolError::new(message).with_partial(partial) })
}

#[derive(Default)]
struct OutputBuilder {
    texts: Vec<String>,
    media: Vec<Media>,
    links: Vec<Value>,
    resources: Vec<Value>,
    for_user: Vec<Value>,
}

impl OutputBuilder {
    fn push(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(text) if is_for_the_user(text.annotations.as_ref()) => {
                self.for_user.push(json!({"type": "text", "text": text.text}));
            }
            ContentBlock::Text(text) => self.texts.push(text.text),
            ContentBlock::Image(image) => self.media(image.mime_type, image.data, image.annotations.as_ref()),
            ContentBlock::Audio(audio) => self.media(audio.mime_type, audio.data, audio.annotations.as_ref()),
            ContentBlock::ResourceLink(link) => {
                let is_for_the_user = is_for_the_user(link.annotations.as_ref());
                let title = link.title.as_deref().unwrap_or(&link.name);
                let kind = link.mime_type.as_deref().map(|kind| format!(" ({kind})")).unwrap_or_default();
                let description =
                    link.description.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
                let text = format!("[{title}]({}){kind}{description}", link.uri);
                let value = present_fields([
                    ("uri", Some(json!(link.uri))),
                    ("name", Some(json!(link.name))),
                    ("title", link.title.map(Value::from)),
                    ("description", link.description.map(Value::from)),
                    ("media_type", link.mime_type.map(Value::from)),
                    ("size", link.size.map(Value::from)),
                ]);
                if is_for_the_user {
                    self.for_user.push(json!({"type": "link", "link": value}));
                } else {
                    self.texts.push(text);
                    self.links.push(value);
                }
            }
            ContentBlock::Resource(embedded) => {
                self.resource(embedded.resource, is_for_the_user(embedded.annotations.as_ref()));
            }
            // The enum may grow with the protocol.
            other => match serde_json::to_value(other) {
                Ok(value) => self.texts.push(value.to_string()),
                Err(_) => self.texts.push("[content of an unknown kind]".to_owned()),
            },
        }
    }

    /// Pictures go to the model with the output, so one that is not for it cannot be among them.
    fn media(&mut self, media_type: String, data: String, annotations: Option<&Annotations>) {
        let bytes = data.len() / 4 * 3;
        if is_for_the_user(annotations) {
            self.for_user.push(json!({"type": "media", "media_type": media_type, "bytes": bytes}));
        } else if !is_image_or_audio(&media_type) {
            self.texts.push(format!("[{media_type} of {bytes} bytes, which is neither an image nor audio]"));
        } else if let Some(data) = base64_of(data) {
            self.media.push(Media::new(media_type, data));
        } else {
            self.texts.push(format!("[{media_type} that is not valid base64]"));
        }
    }

    fn resource(&mut self, contents: ResourceContents, is_for_the_user: bool) {
        match contents {
            ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                let kind = mime_type.map(Value::from);
                if is_for_the_user {
                    let value = present_fields([
                        ("type", Some(json!("resource"))),
                        ("uri", Some(json!(uri))),
                        ("media_type", kind),
                        ("text", Some(json!(text))),
                    ]);
                    self.for_user.push(value);
                } else {
                    self.texts.push(format!("{uri}\n{text}"));
                    self.resources.push(present_fields([("uri", Some(json!(uri))), ("media_type", kind)]));
                }
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let bytes = blob.len() / 4 * 3;
                let value = present_fields([
                    ("uri", Some(json!(uri))),
                    ("media_type", mime_type.clone().map(Value::from)),
                    ("bytes", Some(json!(bytes))),
                ]);
                let kind = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
                if is_for_the_user {
                    self.for_user.push(json!({"type": "resource", "resource": value}));
                    return;
                }
                self.texts.push(format!("{uri} ({kind}, {bytes} bytes)"));
                self.resources.push(value);
                if let Some(data) = base64_of(blob).filter(|_| is_image_or_audio(&kind)) {
                    self.media.push(Media::new(kind, data));
                }
            }
            _ => self.texts.push("[a resource of an unknown kind]".to_owned()),
        }
    }

    fn finish(mut self, structured: Option<Value>) -> ToolOutput {
        let structured = structured.filter(|structured| !structured.is_null());
        // Structured data that no text repeats is sent to the model after the texts. Nothing else replaces a
        // text: content for the user alone is in the value, which would be shown to the model instead of a
        // missing text.
        if let Some(structured) = &structured
            && !repeats(&self.texts, structured)
        {
            self.texts.push(structured.to_string());
        }
        let mut text = self.texts.join("\n");
        if text.is_empty() && !self.for_user.is_empty() {
            text = if self.media.is_empty() { USER_ONLY_TEXT } else { MEDIA_ONLY_TEXT }.to_owned();
        }
        let lists = [("links", self.links), ("resources", self.resources), ("for_user", self.for_user)];
        let lists: Map<String, Value> = lists
            .into_iter()
            .filter(|(_, items)| !items.is_empty())
            .map(|(name, items)| (name.to_owned(), Value::Array(items)))
            .collect();
        let value = match (structured, lists.is_empty()) {
            (structured, true) => structured,
            (None, false) => Some(Value::Object(lists)),
            (Some(structured), false) => {
                let mut value = Map::from_iter([("structured".to_owned(), structured)]);
                value.extend(lists);
                Some(Value::Object(value))
            }
        };
        ToolOutput { size: text.len() as u64, text, value, media: self.media, ..ToolOutput::default() }
    }
}

/// True if the texts equal the structured content: one of them, or all of them together, or one for each
/// element of a list. An object of one member counts as its value: Python SDKs put values other than objects
/// under `result`, the filesystem server puts a text under `content`.
fn repeats(texts: &[String], structured: &Value) -> bool {
    let is_text_of = |text: &str, value: &Value| match value {
        Value::String(value) if value == text => true,
        value => serde_json::from_str::<Value>(text).is_ok_and(|parsed| is_same(&parsed, value)),
    };
    let wrapped =
        structured.as_object().filter(|fields| fields.len() == 1).and_then(|fields| fields.values().next());
    [Some(structured), wrapped].into_iter().flatten().any(|value| {
        texts.iter().any(|text| is_text_of(text, value))
            || texts.len() > 1 && is_text_of(&texts.join("\n"), value)
            || value.as_array().is_some_and(|items| {
                items.len() == texts.len()
                    && items.iter().zip(texts).all(|(item, text)| is_text_of(text, item))
            })
    })
}

/// True if two values are the same JSON; `1` is `1.0`.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| is_same(a, b)))
        }
        (a, b) => a == b,
    }
}

fn is_for_the_user(annotations: Option<&Annotations>) -> bool {
    let audience = annotations.and_then(|annotations| annotations.audience.as_deref());
    audience.is_some_and(|audience| !audience.is_empty() && !audience.contains(&Role::Assistant))
}

fn is_image_or_audio(media_type: &str) -> bool {
    let kind = media_type.split('/').next().unwrap_or("");
    kind.eq_ignore_ascii_case("image") || kind.eq_ignore_ascii_case("audio")
}

fn present_fields<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect::<Map<_, _>>()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(value: Value) -> Result<ToolOutput, ToolError> {
        output_from_result(serde_json::from_value(value).unwrap())
    }

    fn output(value: Value) -> ToolOutput {
        result(value).unwrap()
    }

    #[test]
    fn text_parts_are_joined_and_media_are_separate() {
        let output = output(json!({"content": [
            {"type": "text", "text": "one"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "text", "text": "two"},
            {"type": "audio", "data": "BBBB", "mimeType": "audio/wav"},
        ]}));
        assert_eq!(output.text, "one\ntwo");
        let kinds: Vec<_> = output.media.iter().map(|media| media.media_type.as_str()).collect();
        assert_eq!(kinds, ["image/png", "audio/wav"]);
        assert_eq!(output.value, None);
    }

    #[test]
    fn structured_content_is_appended_unless_a_text_repeats_it() {
        let orders = json!({"orders": [{"id": "ORD-7002", "total": 20}]});
        let compact = orders.to_string();
        let pretty = serde_json::to_string_pretty(&orders).unwrap();
        let other_numbers = compact.replace("20", "20.0");
        let check = |texts: &[&str], structured: &Value, expected: &str| {
            let content: Vec<Value> =
                texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
            let read = output(json!({"content": content, "structuredContent": structured}));
            assert_eq!((read.text.as_str(), read.value.as_ref()), (expected, Some(structured)), "{texts:?}");
        };
        check(&[], &orders, &compact);
        check(&["Found 1 order."], &orders, &format!("Found 1 order.\n{compact}"));
        check(&[&compact], &orders, &compact);
        check(&["Found 1 order.", &pretty], &orders, &format!("Found 1 order.\n{pretty}"));
        check(&[&other_numbers], &orders, &other_numbers);
        // A text that holds less of it is not the same.
        check(&["{\"orders\":[]}"], &orders, &format!("{{\"orders\":[]}}\n{compact}"));
        // Python SDKs put values other than objects under `result`, and a list as one text for each element.
        check(&["sunny"], &json!({"result": "sunny"}), "sunny");
        check(&["milk"], &json!({"content": "milk"}), "milk");
        check(&["1", "two"], &json!({"result": [1, "two"]}), "1\ntwo");
        check(&["1"], &json!({"result": [1, 2]}), "1\n{\"result\":[1,2]}");
        check(&["sunny"], &json!("sunny"), "sunny");
        assert_eq!(output(json!({"content": []})).text, "");
    }

    #[test]
    fn links_and_resources_become_text_and_structured_value() {
        let output = output(json!({"content": [
            {"type": "resource_link", "uri": "demo://1", "name": "one", "title": "The first", "mimeType": "text/plain"},
            {"type": "resource", "resource": {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "hello"}},
            {"type": "resource", "resource": {"uri": "demo://p", "mimeType": "image/png", "blob": "AAAA"}},
        ]}));
        assert_eq!(
            output.text,
            "[The first](demo://1) (text/plain)\nfile:///a.txt\nhello\ndemo://p (image/png, 3 bytes)"
        );
        assert_eq!(output.media.len(), 1);
        assert_eq!(
            output.value.unwrap(),
            json!({
                "links": [{"uri": "demo://1", "name": "one", "title": "The first", "media_type": "text/plain"}],
                "resources": [
                    {"uri": "file:///a.txt", "media_type": "text/plain"},
                    {"uri": "demo://p", "media_type": "image/png", "bytes": 3},
                ],
            })
        );
    }

    #[test]
    fn user_audience_content_is_hidden_from_the_model() {
        let secret = |content: Value| {
            let output = output(json!({"content": content}));
            let model_reads = throughline_wire::CallOutcome::Done(output.clone()).model_text();
            (model_reads, output)
        };
        let user = json!({"audience": ["user"]});
        for block in [
            json!({"type": "text", "text": "hidden", "annotations": user}),
            json!({"type": "resource_link", "uri": "demo://hidden", "name": "hidden", "annotations": user}),
            json!({"type": "resource", "resource": {"uri": "demo://x", "text": "hidden"}, "annotations": user}),
            json!({"type": "image", "data": "AAAA", "mimeType": "image/hidden", "annotations": user}),
        ] {
            for content in [json!([block]), json!([{"type": "text", "text": "told"}, block])] {
                let (model_reads, output) = secret(content);
                assert!(!model_reads.contains("hidden"), "{model_reads}");
                assert!(output.media.is_empty());
                assert!(output.value.unwrap().to_string().contains("hidden"));
            }
        }
        let (model_reads, output) = secret(json!([
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "text", "text": "hidden", "annotations": user},
        ]));
        assert!(!model_reads.contains("hidden") && !output.text.is_empty());
        let (model_reads, _) = secret(json!([
            {"type": "text", "text": "for both", "annotations": {"audience": ["user", "assistant"]}}
        ]));
        assert_eq!(model_reads, "for both");
    }

    #[test]
    fn is_error_result_keeps_the_servers_message() {
        let failed = |value: Value| result(value).unwrap_err();
        let error =
            failed(json!({"isError": true, "content": [{"type": "text", "text": "outside of the root"}]}));
        assert_eq!(error, ToolError::new("outside of the root"));
        let error = failed(json!({"isError": true, "content": []}));
        assert_eq!(error.to_string(), "the tool reported a failure without a reason");
        let error = failed(json!({"isError": true, "content": [], "structuredContent": {"code": 7}}));
        assert!(error.to_string().contains("{\"code\":7}"), "{error}");
    }

    #[test]
    fn invalid_images_become_text() {
        for (data, kind) in
            [("not base64!", "image/png"), ("A", "image/png"), ("AAAA", "application/pdf"), ("", "image/png")]
        {
            let output = output(json!({"content": [{"type": "image", "data": data, "mimeType": kind}]}));
            assert!(output.media.is_empty(), "{data} {kind}");
            assert!(output.text.contains(kind), "{}", output.text);
        }
    }
}
