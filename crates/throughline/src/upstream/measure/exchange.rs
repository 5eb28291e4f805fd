//! One request of a measurement and its whole reply, with the time of its first token.

use super::super::deadlines::CallDeadlines;
use super::super::probe::probe_error;
use super::super::response_body::error_body;
use super::super::{ProbeError, ProbeFailure, UpstreamClient, failure};
use super::raw_reply::RawReply;
use crate::upstream::failure::{ToolsInRequest, UpstreamErrorResponse};
use std::time::{Duration, Instant};
use throughline_wire::{
    DecodeLimits, DecodeOptions, Dialect, EncodedRequest, ModelReply, StepDecoder, StepEvent, ThinkMode,
    TransferMode, UpstreamProfile,
};

/// Most bytes of a reply that are read.
const REPLY_BYTES_MAX: usize = 1 << 20;

/// The answer to a request.
pub(super) enum MeasureAnswer {
    Reply(Box<MeasuredReply>),
    /// The request was refused: status and message of the upstream.
    Refused(u16, String),
}

/// A reply, decoded and as it came.
pub(super) struct MeasuredReply {
    pub reply: ModelReply,
    pub raw: RawReply,
    pub first_token_ms: Option<u64>,
}

impl MeasuredReply {
    /// True if the reply has content that a user would see.
    pub(super) fn has_content(&self) -> bool {
        !self.reply.text.is_empty() || !self.reply.calls.is_empty() || !self.reply.thinking.is_empty()
    }

    /// The token budget ended the reply, so that what is missing in it proves nothing.
    pub(super) fn is_cut(&self) -> bool {
        matches!(&self.reply.finish, Some((throughline_wire::FinishReason::Length, _)))
    }
}

/// Sends a request and reads the reply to its end.
///
/// # Errors
/// A failure that makes further requests pointless: no connection, no key, no such model, too many requests.
pub(super) async fn send(
    client: &UpstreamClient,
    encoded: &EncodedRequest,
    profile: &UpstreamProfile,
    transfer: TransferMode,
    timeout: Duration,
) -> Result<MeasureAnswer, ProbeError> {
    let reading = exchange(client, encoded, profile, transfer);
    tokio::time::timeout(timeout, reading).await.unwrap_or_else(|_| {
        let why = format!("no whole reply within {} s", timeout.as_secs_f32());
        Err(ProbeError { failure: ProbeFailure::Connection, why })
    })
}

async fn exchange(
    client: &UpstreamClient,
    encoded: &EncodedRequest,
    profile: &UpstreamProfile,
    transfer: TransferMode,
) -> Result<MeasureAnswer, ProbeError> {
    let accept = match transfer {
        TransferMode::Whole => "application/json",
        TransferMode::Stream => "text/event-stream",
    };
    let headers = client.headers(accept, &encoded.headers).map_err(|failure| probe_error(&failure))?;
    let begun = Instant::now();
    let limits = CallDeadlines::new(client.upstream(), client.deadline());
    let sent = client.post(&encoded.path, headers, &encoded.body, &limits).await;
    let mut response = sent.map_err(|failure| probe_error(&failure))?;
    let status = response.status().as_u16();
    if !response.status().is_success() {
        let body = client.redact(&error_body(response, &limits).await);
        return refused(status, &body);
    }
    let dialect = client.upstream().wire_format();
    let mut recorder = ReplyRecorder::new(dialect, profile, begun);
    // A body that breaks off is a reply that ends there: that is what is measured.
    while let Ok(Some(piece)) = response.chunk().await {
        recorder.push(&piece);
        if recorder.bytes.len() >= REPLY_BYTES_MAX {
            break;
        }
    }
    Ok(MeasureAnswer::Reply(Box::new(recorder.finish())))
}

/// A refusal of this one request, or of everything.
fn refused(status: u16, body: &str) -> Result<MeasureAnswer, ProbeError> {
    let answer = UpstreamErrorResponse { status, retry_after: None, retry_after_ms: None, body, now: 0 };
    let failure = failure::from_response(&answer, ToolsInRequest::Absent);
    let error = probe_error(&failure);
    match error.failure {
        ProbeFailure::Key | ProbeFailure::Quota | ProbeFailure::Busy => Err(error),
        // Servers answer 404 to a model that lacks a feature, too (OpenRouter).
        ProbeFailure::Model if status == 404 && body.contains("model") && !body.contains("support") => {
            Err(error)
        }
        _ => {
            // The whole body: a field that is minded may be named only there.
            let message = if body.contains(&failure.message) { failure.message } else { body.to_owned() };
            let with_fields = if body.len() <= 2_000 { body.to_owned() } else { message };
            Ok(MeasureAnswer::Refused(status, with_fields))
        }
    }
}

struct ReplyRecorder {
    dialect: Dialect,
    begun: Instant,
    decoder: StepDecoder,
    reply: ModelReply,
    bytes: Vec<u8>,
    first_token_ms: Option<u64>,
}

impl ReplyRecorder {
    fn new(dialect: Dialect, profile: &UpstreamProfile, begun: Instant) -> Self {
        let options = DecodeOptions {
            limits: DecodeLimits::default(),
            profile: profile.clone(),
            think: ThinkMode::Split,
            offered: vec![super::requests::TOOL.to_owned()],
            ..DecodeOptions::default()
        };
        let decoder = StepDecoder::new(dialect, options);
        Self {
            dialect,
            begun,
            decoder,
            reply: ModelReply::default(),
            bytes: Vec::new(),
            first_token_ms: None,
        }
    }

    fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
        let Self { decoder, reply, first_token_ms, begun, .. } = self;
        decoder.push(piece, &mut |event| {
            let is_token =
                matches!(event, StepEvent::Text(_) | StepEvent::Thinking(_) | StepEvent::CallOpened { .. });
            if is_token && first_token_ms.is_none() {
                *first_token_ms = Some(u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX));
            }
            reply.apply(event);
        });
    }

    fn finish(mut self) -> MeasuredReply {
        let reply = &mut self.reply;
        self.decoder.finish(&mut |event| reply.apply(event));
        let raw = RawReply::read(self.dialect, &self.bytes);
        MeasuredReply { reply: self.reply, raw, first_token_ms: self.first_token_ms }
    }
}
