//! `POST /v1/audio/speech` and `POST /v1/audio/transcriptions`: forwarded to a configured voice or ears, in
//! OpenAI's format. `GET /v1/voices` lists them.

use super::{models, passthrough};
use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Json, Path};
use crate::people;
use crate::principal::{KeyScope, Principal};
use crate::stamps::now_ms;
use crate::state::AppState;
use axum::body::{Body, Bytes};
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request, State};
use axum::response::Response;
use futures_util::StreamExt;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::{Map, Value};
use throughline::VoiceError;
use throughline::voice::{
    AudioFormat, AudioSourceInfo, RECORDING_BYTES_MAX, SpeechRequest, TranscriptFormat, TranscriptionRequest,
};
use throughline_store::UsageCount;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Maximum length of a field other than the text and the recording, in characters.
const FIELD_CHARS_MAX: usize = 4_096;
/// Most fields of a form.
const FORM_FIELDS_MAX: usize = 32;
/// Recordings that are read in parallel, each in memory until its ears have received it.
pub(crate) const RECORDINGS_READ_MAX: usize = 16;
/// Bounds of `speed`, as OpenAI has them.
const SPEED: std::ops::RangeInclusive<f64> = 0.25..=4.0;
const TRANSCRIPT_FORMATS: [TranscriptFormat; 5] = [
    TranscriptFormat::Json,
    TranscriptFormat::Text,
    TranscriptFormat::VerboseJson,
    TranscriptFormat::Srt,
    TranscriptFormat::Vtt,
];

/// `/v1/audio/…` and `/v1/voices`.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    // The size of a recording is checked while it is read.
    let upload = OpenApiRouter::new()
        .routes(routes!(transcribe))
        .routes(routes!(transcribe_rendered))
        .layer(DefaultBodyLimit::disable());
    OpenApiRouter::new()
        .merge(upload)
        .routes(routes!(speak))
        .routes(routes!(speak_rendered))
        .routes(routes!(list))
}

/// A text to speak, in OpenAI's format. Fields that are not here are ignored.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "for the description only: values are read one by one, with errors that name them"
)]
pub(crate) struct CreateSpeech {
    /// The text, at most 4,096 characters.
    #[schema(min_length = 1, example = "It is 22 °C in Paris.")]
    input: String,
    /// Name of a configured voice. Default: the one called `default`, or the only one.
    model: Option<String>,
    /// The speaker, by the engine's name for it. Default: the configured one.
    voice: Option<String>,
    /// `mp3`, `opus`, `aac`, `flac`, `wav` or `pcm` (16-bit mono at 24 kHz). Default: as configured.
    response_format: Option<String>,
    /// 0.25 to 4. Default: as configured.
    speed: Option<f64>,
    /// The way to speak, for engines that take directions.
    instructions: Option<String>,
}

/// A recording to write down, in OpenAI's format.
#[derive(ToSchema)]
#[expect(dead_code, reason = "for the description only")]
pub(crate) struct CreateTranscription {
    /// The recording, at most 25 MiB.
    #[schema(format = Binary, content_media_type = "application/octet-stream")]
    file: String,
    /// Name of configured ears. Default: those called `default`, or the only ones.
    model: Option<String>,
    /// `en`, `zh`. Default: as configured.
    language: Option<String>,
    /// Words that are to be expected.
    prompt: Option<String>,
    /// `json` (default), `text`, `verbose_json`, `srt` or `vtt`.
    response_format: Option<String>,
    /// 0 to 1.
    temperature: Option<f64>,
}

/// The engines that speak and hear.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct VoiceList {
    /// Those that speak, by name.
    voices: Vec<VoiceEntry>,
    /// Those that write down what they hear, by name.
    ears: Vec<VoiceEntry>,
}

/// An engine that speaks or hears.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct VoiceEntry {
    /// To be sent as `model`.
    #[schema(example = "local")]
    name: String,
    /// `openai` or `command`.
    kind: &'static str,
    /// It is used where none is named.
    default: bool,
}

impl From<AudioSourceInfo> for VoiceEntry {
    fn from(info: AudioSourceInfo) -> Self {
        Self { name: info.name, kind: info.kind.name(), default: info.is_default }
    }
}

/// List the engines that speak and hear.
#[utoipa::path(get, path = "/v1/voices", operation_id = "list", tag = "audio", responses(
    (status = 200, description = "Voices and ears", body = VoiceList),
))]
async fn list(
    State(state): State<AppState>,
    principal: Principal,
) -> Result<axum::Json<VoiceList>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let voices = state.app.voices().into_iter().map(VoiceEntry::from).collect();
    let ears = state.app.all_ears().into_iter().map(VoiceEntry::from).collect();
    Ok(axum::Json(VoiceList { voices, ears }))
}

/// Speak a text. The sound is streamed as the engine makes it; closing the connection stops the engine.
#[utoipa::path(post, path = "/v1/audio/speech", operation_id = "create_speech", tag = "audio",
    request_body = CreateSpeech,
    responses(
        (status = 200, description = "The sound", content_type = "audio/*", body = String),
        (status = 400, description = "The engine refuses the request or does not support it", body = ErrorResponse),
        (status = 404, description = "No such voice, or none at all", body = ErrorResponse),
        (status = 413, description = "The text is too long", body = ErrorResponse),
        (status = 502, description = "The engine failed", body = ErrorResponse),
        (status = 503, description = "The engine is busy", body = ErrorResponse),
    ))]
async fn speak(
    State(state): State<AppState>,
    principal: Principal,
    Json(body): Json<Map<String, Value>>,
) -> Result<Response, ApiError> {
    principal.require(KeyScope::Chat)?;
    let fields = JsonFields(&body);
    let text = fields.text("input")?.ok_or_else(|| missing("input", "send the text to speak as `input`"))?;
    let format =
        fields.text("response_format")?.map(|name| one_of(&name, &AudioFormat::ALL, AudioFormat::name));
    let format = format.transpose()?;
    let speed = fields.number("speed")?;
    if let Some(speed) = speed.filter(|speed| !SPEED.contains(speed)) {
        return Err(invalid("speed", format!("the speed {speed} is not supported"), "0.25 to 4"));
    }
    if fields.text("stream_format")?.is_some_and(|format| format != "audio") {
        let message = "audio is streamed as raw bytes, not as events";
        return Err(ApiError::bad_request("unsupported", message)
            .param("stream_format")
            .remedy("leave `stream_format` out, or send \"audio\""));
    }
    let request = SpeechRequest {
        text,
        speaker: fields.short_text("voice")?.filter(|voice| voice != "default"),
        speed,
        format,
        instructions: fields.short_text("instructions")?,
    };
    let model = fields.short_text("model")?;
    let voice = state.app.voice(model.as_deref()).map_err(audio_error)?;
    require_source(&principal, "voices", &state.app.voices(), model.as_deref())?;
    charge(&state, &principal).await?;
    let audio = voice.speak(request).await.map_err(audio_error)?;
    let body = audio.body.map(|piece| {
        piece.map(Bytes::from).map_err(|error| {
            tracing::warn!(%error, "speech ended early");
            std::io::Error::other(error)
        })
    });
    Ok(respond(Body::from_stream(body), audio.content_type))
}

/// Speak a text at the base URL `/render/{render}/v1`: as at `/v1/audio/speech`, since it has no tools to show.
#[utoipa::path(post, path = "/render/{render}/v1/audio/speech", operation_id = "create_speech_rendered", tag = "audio",
    request_body = CreateSpeech,
    params(("render" = String, Path, description = "`none`, `text`, `details`, `reasoning`, `owui_event` or `vcp`")),
    responses(
        (status = 200, description = "The sound", content_type = "audio/*", body = String),
        (status = 400, description = "The engine refuses the request or does not support it", body = ErrorResponse),
        (status = 404, description = "Unknown rendering, no such voice, or none at all", body = ErrorResponse),
        (status = 413, description = "The text is too long", body = ErrorResponse),
        (status = 502, description = "The engine failed", body = ErrorResponse),
        (status = 503, description = "The engine is busy", body = ErrorResponse),
    ))]
async fn speak_rendered(
    state: State<AppState>,
    principal: Principal,
    Path(render): Path<String>,
    body: Json<Map<String, Value>>,
) -> Result<Response, ApiError> {
    models::parse_rendering(&render)?;
    speak(state, principal, body).await
}

/// Write down a recording.
#[utoipa::path(post, path = "/v1/audio/transcriptions", operation_id = "create_transcription", tag = "audio",
    request_body(content = CreateTranscription, content_type = "multipart/form-data"),
    responses(
        (status = 200, description = "The transcript in the requested format", body = Object),
        (status = 400, description = "The engine refuses the request or does not support it", body = ErrorResponse),
        (status = 404, description = "No such ears, or none at all", body = ErrorResponse),
        (status = 413, description = "The recording is too large", body = ErrorResponse),
        (status = 502, description = "The engine failed", body = ErrorResponse),
        (status = 503, description = "The engine is busy", body = ErrorResponse),
    ))]
async fn transcribe(
    State(state): State<AppState>,
    principal: Principal,
    request: Request,
) -> Result<Response, ApiError> {
    principal.require(KeyScope::Chat)?;
    let busy = |_| {
        ApiError::unavailable("busy", format!("{RECORDINGS_READ_MAX} recordings are being read already"), 1)
            .remedy("try again in a moment")
    };
    let _reading = state.recordings.try_acquire().map_err(busy)?;
    let form = Multipart::from_request(request, &state).await;
    let mut form = form.map_err(|error| {
        ApiError::bad_request("unreadable_form", error.to_string())
            .remedy("send a form (multipart/form-data) with the recording as `file`")
    })?;
    let (mut request, mut model, mut has_file) = (TranscriptionRequest::default(), None, false);
    let mut fields = 0;
    while let Some(field) = form.next_field().await.map_err(|error| form_error(&error))? {
        fields += 1;
        if fields > FORM_FIELDS_MAX {
            let message = format!("the form has more than {FORM_FIELDS_MAX} fields");
            return Err(ApiError::bad_request("too_many_fields", message)
                .remedy("send only fields of OpenAI's format"));
        }
        match field.name().unwrap_or_default() {
            "file" => {
                request.file_name = field.file_name().unwrap_or_default().to_owned();
                request.content_type = field.content_type().unwrap_or_default().to_owned();
                request.recording = read_recording(field).await?;
                has_file = true;
            }
            "model" => model = Some(read_text(field, "model").await?),
            "language" => request.language = Some(read_text(field, "language").await?),
            "prompt" => request.prompt = Some(read_text(field, "prompt").await?),
            "temperature" => {
                let text = read_text(field, "temperature").await?;
                let number = text.parse::<f64>().ok().filter(|number| (0.0..=1.0).contains(number));
                let bad = || invalid("temperature", "`temperature` is no number from 0 to 1", "0 to 1");
                request.temperature = Some(number.ok_or_else(bad)?);
            }
            "response_format" => {
                let text = read_text(field, "response_format").await?;
                request.format = one_of(&text, &TRANSCRIPT_FORMATS, TranscriptFormat::name)?;
            }
            "stream" => {
                if read_text(field, "stream").await? == "true" {
                    let message = "transcripts cannot be streamed";
                    return Err(ApiError::bad_request("unsupported", message)
                        .param("stream")
                        .remedy("leave `stream` out"));
                }
            }
            // Others are read to their end, within the bounds of a text.
            _ => drop(read_text(field, "form").await?),
        }
    }
    if !has_file {
        return Err(ApiError::bad_request("no_file", "the form has no field `file`")
            .param("file")
            .remedy("send the recording as `file`"));
    }
    let ears = state.app.ears(model.as_deref()).map_err(audio_error)?;
    require_source(&principal, "ears", &state.app.all_ears(), model.as_deref())?;
    charge(&state, &principal).await?;
    let transcript = ears.transcribe(request).await.map_err(audio_error)?;
    Ok(respond(Body::from(transcript.body), transcript.content_type))
}

/// Write down a recording at the base URL `/render/{render}/v1`: as at `/v1/audio/transcriptions`.
#[utoipa::path(post, path = "/render/{render}/v1/audio/transcriptions", operation_id = "create_transcription_rendered",
    tag = "audio", request_body(content = CreateTranscription, content_type = "multipart/form-data"),
    params(("render" = String, Path, description = "`none`, `text`, `details`, `reasoning`, `owui_event` or `vcp`")),
    responses(
        (status = 200, description = "The transcript in the requested format", body = Object),
        (status = 400, description = "The engine refuses the request or does not support it", body = ErrorResponse),
        (status = 404, description = "Unknown rendering, no such ears, or none at all", body = ErrorResponse),
        (status = 413, description = "The recording is too large", body = ErrorResponse),
        (status = 502, description = "The engine failed", body = ErrorResponse),
        (status = 503, description = "The engine is busy", body = ErrorResponse),
    ))]
async fn transcribe_rendered(
    state: State<AppState>,
    principal: Principal,
    Path(render): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    models::parse_rendering(&render)?;
    transcribe(state, principal, request).await
}

/// A key that may use some models only may use only those voices and ears that it names, as `voices/NAME` and `ears/NAME`.
fn require_source(
    principal: &Principal,
    section: &str,
    sources: &[AudioSourceInfo],
    asked: Option<&str>,
) -> Result<(), ApiError> {
    let is_meant = |source: &&AudioSourceInfo| match asked.filter(|name| *name != "default") {
        Some(name) => source.name == name,
        None => source.is_default,
    };
    let name = sources.iter().find(is_meant).map_or("default", |source| source.name.as_str());
    principal.require_models(None, &[format!("{section}/{name}")])
}

/// Counts the request as a turn, if the usage limits allow one more.
async fn charge(state: &AppState, principal: &Principal) -> Result<(), ApiError> {
    let now = now_ms();
    let usage = UsageCount { turns: 1, tokens: 0 };
    match state.catalog.charge(&principal.user, principal.charge(), usage, now).await? {
        Some(exceeded) => Err(people::usage_exceeded(exceeded, now)),
        None => Ok(()),
    }
}

/// The answer of an engine: data, and never a page of this server's.
fn respond(body: Body, content_type: String) -> Response {
    let is_data = content_type.starts_with("audio/")
        || ["application/json", "text/plain", "text/vtt", "application/x-subrip"]
            .iter()
            .any(|kind| content_type.starts_with(kind));
    let octets = HeaderValue::from_static("application/octet-stream");
    let kind = HeaderValue::try_from(content_type).ok().filter(|_| is_data).unwrap_or(octets);
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform"));
    response
}

fn audio_error(error: VoiceError) -> ApiError {
    let (message, remedy) = (error.to_string(), error.remedy());
    let api_error = match error {
        VoiceError::NotConfigured { .. } => ApiError::new(StatusCode::NOT_FOUND, "not_configured", message),
        VoiceError::Unknown { .. } => {
            ApiError::new(StatusCode::NOT_FOUND, "not_found", message).param("model")
        }
        VoiceError::Ambiguous { .. } => ApiError::bad_request("missing_field", message).param("model"),
        VoiceError::NoText => ApiError::bad_request("invalid_value", message).param("input"),
        VoiceError::TextTooLong { .. } => {
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "over_limit", message).param("input")
        }
        VoiceError::RecordingTooLarge { .. } => too_large(),
        VoiceError::UnsupportedFormat { .. } => {
            ApiError::bad_request("unsupported", message).param("response_format")
        }
        VoiceError::UnsupportedField { field, .. } => {
            ApiError::bad_request("unsupported", message).param(field)
        }
        VoiceError::Busy { .. } => ApiError::unavailable("busy", message, 1).param("concurrent_max"),
        VoiceError::Engine { failure, .. } => passthrough::upstream_error(failure),
        VoiceError::Program { name, message: reason, .. } => {
            // Its standard error is for the operator only.
            tracing::warn!(%message, "a program for speech failed");
            ApiError::new(StatusCode::BAD_GATEWAY, "upstream_error", format!("`{name}`: {reason}"))
        }
        _ => ApiError::new(StatusCode::BAD_GATEWAY, "upstream_error", message),
    };
    api_error.remedy(remedy)
}

async fn read_recording(mut field: Field<'_>) -> Result<Vec<u8>, ApiError> {
    let mut recording = Vec::new();
    while let Some(chunk) = field.chunk().await.map_err(|error| form_error(&error))? {
        if recording.len() + chunk.len() > RECORDING_BYTES_MAX {
            return Err(too_large());
        }
        recording.extend_from_slice(&chunk);
    }
    Ok(recording)
}

async fn read_text(mut field: Field<'_>, name: &'static str) -> Result<String, ApiError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = field.chunk().await.map_err(|error| form_error(&error))? {
        if bytes.len() + chunk.len() > FIELD_CHARS_MAX {
            return Err(too_long(name));
        }
        bytes.extend_from_slice(&chunk);
    }
    String::from_utf8(bytes).map_err(|_| invalid(name, format!("`{name}` is no text"), "send UTF-8"))
}

fn form_error(error: &MultipartError) -> ApiError {
    match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_large(),
        _ => ApiError::bad_request("unreadable_form", error.to_string()),
    }
}

fn too_large() -> ApiError {
    let message = format!("the recording is larger than {RECORDING_BYTES_MAX} bytes");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "file_too_large", message)
        .param("file")
        .remedy("send it in several parts, or compressed")
}

fn too_long(name: &str) -> ApiError {
    let message = format!("`{name}` is longer than {FIELD_CHARS_MAX}");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "over_limit", message).param(name).remedy("send less")
}

fn missing(name: &str, remedy: &str) -> ApiError {
    ApiError::bad_request("missing_field", format!("`{name}` is missing")).param(name).remedy(remedy)
}

fn invalid(name: &str, message: impl Into<String>, remedy: &str) -> ApiError {
    ApiError::bad_request("invalid_value", message).param(name).remedy(remedy)
}

fn one_of<T: Copy>(text: &str, all: &[T], name: fn(T) -> &'static str) -> Result<T, ApiError> {
    let names = || all.iter().map(|one| name(*one)).collect::<Vec<_>>().join(", ");
    let found = all.iter().copied().find(|one| name(*one) == text);
    found.ok_or_else(|| invalid("response_format", format!("unknown format `{text}`"), &names()))
}

/// Fields of a body, read one by one. `null` is as good as absent.
struct JsonFields<'b>(&'b Map<String, Value>);

impl JsonFields<'_> {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &'static str) -> Result<Option<String>, ApiError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(invalid(name, format!("`{name}` is no text"), "send a string")),
        }
    }

    fn short_text(&self, name: &'static str) -> Result<Option<String>, ApiError> {
        match self.text(name)? {
            Some(text) if text.chars().count() > FIELD_CHARS_MAX => Err(too_long(name)),
            text => Ok(text),
        }
    }

    fn number(&self, name: &'static str) -> Result<Option<f64>, ApiError> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => value
                .as_f64()
                .map(Some)
                .ok_or_else(|| invalid(name, format!("`{name}` is no number"), "send a number")),
        }
    }
}
