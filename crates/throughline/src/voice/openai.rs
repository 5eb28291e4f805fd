//! Engines with OpenAI's audio API.

use super::settings::{EarsSettings, VoiceSettings};
use super::{
    AudioFormat, Ears, SPEECH_BYTES_MAX, SpeechAudio, SpeechRequest, TRANSCRIPT_BYTES_MAX, Transcript,
    TranscriptionRequest, Voice, VoiceError, check_text,
};
use crate::error::Error;
use crate::upstream::{PassthroughResponse, Upstream, UpstreamClient, without_status};
use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::future::ready;
use serde_json::{Map, Value};
use std::fmt;
use throughline_engine::{FailureKind, UpstreamFailure};
use throughline_wire::DecodeLimits;
use uuid::Uuid;

/// A server of one of the two kinds.
struct AudioServer {
    name: String,
    client: UpstreamClient,
    model: String,
}

impl AudioServer {
    fn new(name: &str, upstream: Upstream, model: String) -> Result<Self, Error> {
        let client = UpstreamClient::new(upstream, DecodeLimits::default())?;
        Ok(Self { name: name.to_owned(), client, model })
    }

    fn failed(&self, failure: UpstreamFailure) -> VoiceError {
        VoiceError::Engine { name: self.name.clone(), failure }
    }

    fn failed_with(&self, message: impl Into<String>) -> VoiceError {
        self.failed(without_status(FailureKind::Status, message))
    }

    /// A page is what a wrong address answers with, and some engines answer 200 with an error.
    fn check(&self, answer: &PassthroughResponse, refused: &[&str]) -> Result<(), VoiceError> {
        let is_refused = refused.iter().any(|kind| answer.content_type.starts_with(kind));
        if is_refused {
            let kind = answer.content_type.split(';').next().unwrap_or_default();
            return Err(
                self.failed_with(format!("received {kind} instead of a response; check base_url and model"))
            );
        }
        Ok(())
    }
}

/// A voice at a server.
pub(super) struct ServerVoice {
    server: AudioServer,
    speaker: Option<String>,
    speed: Option<f64>,
    format: Option<AudioFormat>,
}

impl ServerVoice {
    pub(super) fn new(
        name: &str,
        upstream: Upstream,
        model: String,
        voice: &VoiceSettings,
    ) -> Result<Self, Error> {
        let server = AudioServer::new(name, upstream, model)?;
        Ok(Self { server, speaker: voice.speaker.clone(), speed: voice.speed, format: voice.format })
    }
}

impl fmt::Debug for ServerVoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerVoice({})", self.server.name)
    }
}

#[async_trait]
impl Voice for ServerVoice {
    async fn speak(&self, request: SpeechRequest) -> Result<SpeechAudio, VoiceError> {
        check_text(&request.text)?;
        let format = request.format.or(self.format);
        let mut body = Map::new();
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                body.insert(name.to_owned(), value);
            }
        };
        set("model", Some(self.server.model.as_str().into()));
        set("input", Some(request.text.into()));
        set("voice", request.speaker.or_else(|| self.speaker.clone()).map(Value::from));
        set("response_format", format.map(|format| format.name().into()));
        set("speed", request.speed.or(self.speed).map(Value::from));
        set("instructions", request.instructions.map(Value::from));
        let answer = self.server.client.pass_through("/v1/audio/speech", &Value::Object(body)).await;
        let answer = answer.map_err(|failure| self.server.failed(failure))?;
        self.server.check(&answer, &["text/", "application/json"])?;
        // Engines often call everything a stream of bytes.
        let content_type = match (answer.content_type.starts_with("audio/"), format) {
            (false, Some(format)) => format.content_type().to_owned(),
            // The default format is known to the engine only.
            _ => answer.content_type,
        };
        let name = self.server.name.clone();
        let mut left = SPEECH_BYTES_MAX;
        let body = answer.body.map(move |piece| {
            let name = name.clone();
            match piece {
                Ok(piece) if piece.len() <= left => {
                    left -= piece.len();
                    Ok(piece)
                }
                Ok(_) => {
                    left = 0;
                    let message = format!("received more than {SPEECH_BYTES_MAX} bytes of audio");
                    Err(VoiceError::Engine { name, failure: without_status(FailureKind::Status, message) })
                }
                Err(failure) => Err(VoiceError::Engine { name, failure }),
            }
        });
        // Nothing follows a failure.
        let body = body.scan(false, |has_failed, piece| {
            let is_over = std::mem::replace(has_failed, piece.is_err());
            ready((!is_over).then_some(piece))
        });
        Ok(SpeechAudio { content_type, body: body.boxed() })
    }
}

/// Ears at a server.
pub(super) struct ServerEars {
    server: AudioServer,
    language: Option<String>,
}

impl ServerEars {
    pub(super) fn new(
        name: &str,
        upstream: Upstream,
        model: String,
        ears: &EarsSettings,
    ) -> Result<Self, Error> {
        Ok(Self { server: AudioServer::new(name, upstream, model)?, language: ears.language.clone() })
    }
}

impl fmt::Debug for ServerEars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerEars({})", self.server.name)
    }
}

#[async_trait]
impl Ears for ServerEars {
    async fn transcribe(&self, request: TranscriptionRequest) -> Result<Transcript, VoiceError> {
        let fields = [
            ("model", Some(self.server.model.clone())),
            ("language", request.language.or_else(|| self.language.clone())),
            ("prompt", request.prompt),
            ("temperature", request.temperature.map(|temperature| temperature.to_string())),
            ("response_format", Some(request.format.name().to_owned())),
        ];
        let form = FormData::new();
        let body = form.write(&fields, &request.file_name, &request.content_type, &request.recording);
        let content_type = form.content_type();
        let path = "/v1/audio/transcriptions";
        let answer = self.server.client.pass_bytes_through(path, &content_type, body);
        let answer = answer.await.map_err(|failure| self.server.failed(failure))?;
        self.server.check(&answer, &["text/html"])?;
        let (content_type, mut pieces) = (answer.content_type, answer.body);
        let mut body = Vec::new();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|failure| self.server.failed(failure))?;
            if body.len() + piece.len() > TRANSCRIPT_BYTES_MAX {
                let message = format!("its transcript has more than {TRANSCRIPT_BYTES_MAX} bytes");
                return Err(self.server.failed_with(message));
            }
            body.extend(piece);
        }
        Ok(Transcript { content_type, body })
    }
}

/// A body of `multipart/form-data`.
struct FormData {
    boundary: String,
}

impl FormData {
    /// Creates a form with a random boundary, which cannot occur in a file or a text.
    fn new() -> Self {
        Self { boundary: format!("throughline-{}", Uuid::now_v7().simple()) }
    }

    fn content_type(&self) -> String {
        format!("multipart/form-data; boundary={}", self.boundary)
    }

    fn write(
        &self,
        fields: &[(&str, Option<String>)],
        file_name: &str,
        content_type: &str,
        file: &[u8],
    ) -> Vec<u8> {
        let mut body = Vec::with_capacity(file.len() + 1_024);
        let boundary = &self.boundary;
        for (name, value) in fields {
            let Some(value) = value else { continue };
            let part =
                format!("--{boundary}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
            body.extend(part.into_bytes());
        }
        let file_name = header_text(file_name, "recording.wav");
        let content_type = header_text(content_type, "application/octet-stream");
        let head = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{file_name}\"\r\n\
             content-type: {content_type}\r\n\r\n"
        );
        body.extend(head.into_bytes());
        body.extend_from_slice(file);
        body.extend(format!("\r\n--{boundary}--\r\n").into_bytes());
        body
    }
}

/// Longest file name or media type that is passed on, in characters.
const HEADER_TEXT_CHARS_MAX: usize = 100;

/// A text that is safe in a header of a part: characters that could end it are removed.
fn header_text(text: &str, default: &str) -> String {
    let is_safe = |one: &char| one.is_ascii_alphanumeric() || " .-_+/;=".contains(*one);
    let safe: String = text.chars().filter(is_safe).take(HEADER_TEXT_CHARS_MAX).collect();
    if safe.trim().is_empty() { default.to_owned() } else { safe }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_data_escapes_names_and_has_unique_boundaries() {
        let form = FormData { boundary: "b".to_owned() };
        let prompt = Some("a\r\n".to_owned());
        let body = form.write(
            &[("prompt", prompt), ("language", None)],
            "a\"\r\nb.wav",
            "audio/wav\r\nx: y",
            b"RIFF",
        );
        assert_eq!(
            String::from_utf8(body).unwrap(),
            "--b\r\ncontent-disposition: form-data; name=\"prompt\"\r\n\r\na\r\n\r\n\
             --b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"ab.wav\"\r\n\
             content-type: audio/wavx y\r\n\r\nRIFF\r\n--b--\r\n"
        );
        let boundary = FormData::new().boundary;
        assert!(boundary.len() > 40 && boundary != FormData::new().boundary, "{boundary}");
    }
}
