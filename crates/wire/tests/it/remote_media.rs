//! Pictures that the upstream looks up itself, and sound for models that hear.

use crate::history::request;
use serde_json::{Value, json};
use throughline_wire::{Dialect, Media, Message, TransferMode, UpstreamProfile, UserPart, encode};

const URL: &str = "https://example.com/cat.png";

fn content(dialect: Dialect, part: UserPart, profile: &UpstreamProfile) -> Value {
    let request = request("m", vec![Message::User(vec![part])]);
    let body = encode(dialect, &request, profile, TransferMode::Stream).unwrap().body;
    let messages = body.get("messages").or(body.get("input")).or(body.get("contents")).unwrap();
    let message = messages.as_array().unwrap().last().unwrap();
    message.get("content").or(message.get("parts")).unwrap().clone()
}

#[test]
fn image_url_is_sent_in_dialects_that_accept_urls() {
    for (dialect, expected) in [
        (Dialect::OpenaiChat, json!([{"type": "image_url", "image_url": {"url": URL}}])),
        (Dialect::OpenaiResponses, json!([{"type": "input_image", "image_url": URL}])),
        (
            Dialect::Anthropic,
            json!([{"type": "image", "source": {"type": "url", "url": URL}, "cache_control": {"type": "ephemeral"}}]),
        ),
        (Dialect::Gemini, json!([{"fileData": {"mimeType": "image/png", "fileUri": URL}}])),
        (
            Dialect::Ollama,
            json!("[image at https://example.com/cat.png, sent by the user, which you cannot see]"),
        ),
    ] {
        let part = UserPart::Image(Media::from_url("image/png".into(), URL.into()));
        assert_eq!(content(dialect, part, &UpstreamProfile::default()), expected, "{dialect}");
    }
}

#[test]
fn audio_is_sent_only_to_models_with_audio_input() {
    let sound =
        || UserPart::File { name: "a.mp3".into(), media: Media::new("audio/mpeg".into(), "aGk=".into()) };
    let hears = UpstreamProfile { audio: true, ..UpstreamProfile::default() };
    assert_eq!(
        content(Dialect::OpenaiChat, sound(), &hears),
        json!([{"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}}])
    );
    let text = content(Dialect::OpenaiChat, sound(), &UpstreamProfile::default());
    assert_eq!(text, "a.mp3: [audio audio/mpeg, 1 kB, sent by the user, which you cannot hear]");
}
