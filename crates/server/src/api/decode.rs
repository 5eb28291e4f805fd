//! Decoding of a recorded response of an upstream, as in turns. Nothing is stored or run.

use super::view::variant_name;
use crate::error::{ApiError, ErrorResponse};
use crate::extract::Query;
use crate::large_bodies::{RequestMemory, SpooledText};
use crate::principal::{KeyScope, Principal};
use crate::state::AppState;
use axum::extract::multipart::MultipartError;
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request, State};
use http::{StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use throughline::UserLanguage;
use throughline::recording::{self, LineIndex, RECORDING_BYTES_MAX, Recording, RecordingDiagnostic};
use throughline_engine::Event;
use throughline_wire::{Dialect, StreamEnd, ThinkMode, Usage};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Memory for each byte of a recording: the text, the reply, its events and the findings.
const MEMORY_PER_BYTE: u64 = 8;

/// `/v1/decode`.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    // The request guard bounds it, as every upload.
    OpenApiRouter::new().routes(routes!(decode)).layer(DefaultBodyLimit::disable())
}

/// Options for decoding a recording.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct DecodeQuery {
    /// The wire format: `openai-chat`, `openai-responses`, `anthropic`, `gemini`, `ollama`, `cohere`, `bedrock-converse`,
    /// `bedrock-anthropic`. Absent = the one that fits best.
    api: Option<String>,
    /// Treat `<think>` in the text as thinking, as turns do. Default true.
    think: Option<bool>,
    /// Language of findings: `en` or `zh-CN`. Default `en`.
    language: Option<String>,
}

/// A form with one recording in it.
#[derive(ToSchema)]
#[allow(dead_code, reason = "a description only")]
struct DecodeForm {
    /// The recording.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// Decoded content of a recording.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct DecodedRecording {
    /// The wire format that it was read as.
    #[schema(example = "openai-chat")]
    pub api: &'static str,
    /// Size of the recording in bytes.
    pub bytes: usize,
    /// `complete`, `truncated` or `error`.
    #[schema(example = "complete")]
    pub end: &'static str,
    /// Error that the upstream reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Finish reason of the upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// Tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<crate::api::openapi::UsageSchema>)]
    pub usage: Option<Usage>,
    /// All text.
    pub text: String,
    /// All thinking.
    pub thinking: String,
    /// The calls, in order.
    pub calls: Vec<DecodedCall>,
    /// Problems in the stream, in order.
    pub problems: Vec<DecodedProblem>,
    /// Guesses at other content that the recording may be, each with a remedy.
    pub mistakes: Vec<RecordingDiagnostic>,
    /// Frames that a viewer would have received.
    pub pieces: Vec<DecodedFrame>,
    /// True if there are more than 20,000 events; the rest is left out.
    pub pieces_cut: bool,
}

/// A call of a recording.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct DecodedCall {
    /// Its name on the wire.
    pub name: String,
    /// Their id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_id: Option<String>,
    /// The arguments, if they could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub arguments: Option<Value>,
    /// The text of arguments that could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

/// A finding in a recording.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct DecodedProblem {
    /// Stable code.
    #[schema(example = "invalid_event")]
    pub kind: String,
    /// Line, from 1.
    pub line: usize,
    /// In bytes of the recording.
    pub at: u64,
    /// Message.
    pub message: String,
    /// The bytes concerned, at most 200.
    pub excerpt: String,
}

/// A piece of a recording, a line most often, and what came of it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct DecodedFrame {
    /// The line that it ends in, from 1.
    pub line: usize,
    /// Events of a turn.
    #[schema(value_type = Vec<crate::api::openapi::EventSchema>)]
    pub events: Vec<Event>,
}

/// Decode a recorded response of an upstream into its reply, its problems, and the events that a viewer would have seen.
///
/// The body is the recording, streamed or whole, or a form with it. Nothing is stored or run.
#[utoipa::path(post, path = "/v1/decode", tag = "recordings", params(DecodeQuery),
    request_body(content((DecodeForm = "multipart/form-data"), (String = "application/octet-stream"))), responses(
    (status = 200, description = "The result", body = DecodedRecording),
    (status = 400, description = "Unknown wire format, or no recording", body = ErrorResponse),
    (status = 413, description = "The recording is larger than 8 MiB", body = ErrorResponse),
))]
async fn decode(
    State(state): State<AppState>,
    principal: Principal,
    Query(query): Query<DecodeQuery>,
    request: Request,
) -> Result<axum::Json<DecodedRecording>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let dialect = query.api.as_deref().map(str::parse::<Dialect>).transpose().map_err(|message| {
        let names = Dialect::ALL.map(Dialect::name).join(", ");
        ApiError::bad_request("unknown_value", message).param("api").remedy(names)
    })?;
    let think = if query.think.unwrap_or(true) { ThinkMode::Split } else { ThinkMode::Verbatim };
    let language = query.language.as_deref().map(UserLanguage::from_tag).unwrap_or_default();
    let (body, memory) = recording_body(request, &state).await?;
    // Reading megabytes as eight wire formats takes a while, and other requests should not wait for it.
    let decoded = tokio::task::spawn_blocking(move || {
        let recording = recording::decode_recording(&body, dialect, think);
        let described = describe_recording(&body, recording, language);
        drop(memory);
        described
    });
    Ok(axum::Json(decoded.await.map_err(ApiError::internal)?))
}

/// The recording, which is the file of a form or the body itself, and its memory.
async fn recording_body(
    request: Request,
    state: &AppState,
) -> Result<(Vec<u8>, Option<RequestMemory>), ApiError> {
    let memory = request.extensions().get::<RequestMemory>().cloned();
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    // An empty recording is valid, but a request without any description of its body is a mistake.
    let has_kind = kind.is_some();
    let text = if kind.is_some_and(|kind| kind.starts_with("multipart/form-data")) {
        recording_of_form(request, state).await?
    } else {
        SpooledText::of_body(state, request.into_body(), RECORDING_BYTES_MAX as u64).await?
    };
    let text = text.ok_or_else(too_large)?;
    if text.bytes() == 0 && !has_kind {
        return Err(ApiError::bad_request("no_recording", "the request has no body").remedy(
            "send the recording as the body (application/octet-stream), or as `file` of a form (multipart/form-data)",
        ));
    }
    let needed = text.bytes().saturating_mul(MEMORY_PER_BYTE);
    Ok((text.read(memory.as_ref(), needed).await?, memory))
}

/// `None` if it is too large.
async fn recording_of_form(request: Request, state: &AppState) -> Result<Option<SpooledText>, ApiError> {
    let unreadable = |error: MultipartError| ApiError::bad_request("unreadable_form", error.to_string());
    let form = Multipart::from_request(request, state).await;
    let mut form = form.map_err(|error| ApiError::bad_request("unreadable_form", error.to_string()))?;
    while let Some(mut field) = form.next_field().await.map_err(unreadable)? {
        if field.name() != Some("file") {
            continue;
        }
        let mut text = SpooledText::default();
        while let Some(chunk) = field.chunk().await.map_err(unreadable)? {
            text.push(state, &chunk).await?;
            if text.bytes() > RECORDING_BYTES_MAX as u64 {
                return Ok(None);
            }
        }
        return Ok(Some(text));
    }
    Err(ApiError::bad_request("no_file", "the form has no field `file`").param("file"))
}

fn too_large() -> ApiError {
    let what = format!("the recording is larger than {RECORDING_BYTES_MAX} bytes");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "recording_bytes_max", what)
        .remedy("`throughline decode` in the terminal takes any size")
}

fn describe_recording(body: &[u8], recording: Recording, language: UserLanguage) -> DecodedRecording {
    let Recording { dialect, reply, chunks: pieces, is_cut } = recording;
    let lines = LineIndex::of(body);
    let end = reply.end.unwrap_or(StreamEnd::Truncated);
    let calls = reply.calls.iter().map(|call| DecodedCall {
        name: call.name.as_str().to_owned(),
        upstream_id: call.upstream_id.as_ref().map(|id| id.as_str().to_owned()),
        arguments: call.arguments().ok().map(|arguments| arguments.value.clone()),
        raw: call.arguments().err().map(ToOwned::to_owned),
    });
    let problems = reply.problems.into_iter().map(|problem| DecodedProblem {
        kind: variant_name(&problem.kind),
        line: lines.of_byte(usize::try_from(problem.at).unwrap_or(usize::MAX)),
        at: problem.at,
        message: recording::problem_text(&problem.kind, language),
        excerpt: problem.excerpt,
    });
    DecodedRecording {
        api: dialect.name(),
        bytes: body.len(),
        end: end.name(),
        error: end.error().map(|error| error.message.clone()),
        finish: reply.finish.map(|(reason, raw)| raw.unwrap_or_else(|| variant_name(&reason))),
        usage: reply.usage,
        text: reply.text,
        thinking: reply.thinking,
        calls: calls.collect(),
        problems: problems.collect(),
        mistakes: recording::diagnose(body, language),
        pieces: pieces
            .into_iter()
            .map(|frame| DecodedFrame {
                line: lines.of_byte(frame.end.saturating_sub(1)),
                events: frame.events,
            })
            .collect(),
        pieces_cut: is_cut,
    }
}
