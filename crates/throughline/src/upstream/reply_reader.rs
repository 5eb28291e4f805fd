//! The reply to a model call on its way from the connection through the decoder.

use super::batch::EventBatch;
use super::client::UpstreamClient;
use super::deadlines::{CallDeadlines, DeadlineSleep, WaitPhase};
use super::failure::{self, ToolsInRequest};
use super::handoff::{ModelHandoff, ModelItem};
use super::model_call::{RepeatableCall, UnansweredCall};
use crate::media::MediaOffloader;
use crate::observe::{ModelCallEvent, ObservedBytes, ObservedCall};
use std::time::Duration;
use throughline_engine::{FailureKind, UpstreamFailure};
use throughline_wire::{StepDecoder, StepEvent, StreamEnd};

/// Most bytes read after a complete reply to make its connection reusable, and the time for it.
const DRAIN_BYTES_MAX: usize = 16 << 10;
const DRAIN_MAX: Duration = Duration::from_millis(500);
/// Bytes of a body that show whether it is a stream at all.
const STREAM_START_BYTES: usize = 8;

/// A reply on its way through the decoder.
pub(super) struct ReplyReader<'a> {
    client: &'a UpstreamClient,
    decoder: StepDecoder,
    offered: ToolsInRequest,
    /// The call, as long as nothing of its reply has been passed on: a history can be large.
    unanswered: Option<UnansweredCall>,
    /// The call has been refused, and is another one by now.
    is_adapted: bool,
    /// Allows a second request, whole, if the stream breaks.
    may_fall_back: bool,
    /// The first bytes of the body that are not blank, if the reply may be requested again.
    start: Vec<u8>,
    /// Length of the body so far, in bytes.
    bytes: &'a mut u64,
    listeners: ReplyListeners<'a>,
    raw: ObservedBytes,
}

/// Listeners of a reply as it arrives.
#[derive(Clone, Copy)]
pub(super) struct ReplyListeners<'a> {
    pub out: &'a ModelHandoff,
    pub observed: &'a ObservedCall,
    /// Takes pictures that are too large for the log.
    pub offloader: &'a MediaOffloader,
}

/// End of a body, for the connection that carried it.
pub(super) enum BodyEnd {
    /// Read to the end, or broken off.
    Complete,
    /// The reply was complete before its end.
    Early(reqwest::Response),
    /// The stream broke before its first content, and the reply may be requested again.
    Unusable(UpstreamFailure, Box<RepeatableCall>),
    /// The request was refused, and is another one by now.
    Adapted(Box<RepeatableCall>),
}

/// Reads what is left of a complete reply, so that its connection can carry the next call: to connect again, with TLS, costs
/// as much as a short answer. Usually it is the end of the body, which has come already.
pub(super) async fn drain_body(mut response: reqwest::Response) {
    let reading = async {
        let mut bytes = 0;
        while let Ok(Some(piece)) = response.chunk().await {
            bytes += piece.len();
            if bytes > DRAIN_BYTES_MAX {
                break;
            }
        }
    };
    // A server that keeps a complete reply open loses its connection.
    let _ = tokio::time::timeout(DRAIN_MAX, reading).await;
}

impl<'a> ReplyReader<'a> {
    pub(super) fn new(
        client: &'a UpstreamClient,
        unanswered: UnansweredCall,
        may_fall_back: bool,
        bytes: &'a mut u64,
        listeners: ReplyListeners<'a>,
    ) -> Self {
        Self {
            client,
            decoder: StepDecoder::new(client.upstream().dialect, unanswered.call.options.clone()),
            offered: unanswered.call.offered(),
            unanswered: Some(unanswered),
            is_adapted: false,
            may_fall_back,
            start: Vec::new(),
            bytes,
            raw: listeners.observed.raw(&client.secrets()),
            listeners,
        }
    }

    /// Drops the events of this reply: another one replaces it.
    fn discard(&mut self) {
        self.raw.discard();
        *self.bytes = 0;
    }

    pub(super) async fn read(
        mut self,
        response: reqwest::Response,
        limits: &CallDeadlines,
        host: &str,
    ) -> Result<BodyEnd, UpstreamFailure> {
        let end = self.read_body(response, limits, host).await;
        match (end, self.unanswered.take()) {
            (Err(_), Some(unanswered)) if self.is_adapted => {
                self.discard();
                Ok(BodyEnd::Adapted(unanswered.call))
            }
            (Err(failure), Some(unanswered)) if self.may_fall_back && failure.kind == FailureKind::Broken => {
                self.discard();
                Ok(BodyEnd::Unusable(failure, unanswered.call))
            }
            (end, _) => end,
        }
    }

    async fn read_body(
        &mut self,
        mut response: reqwest::Response,
        limits: &CallDeadlines,
        host: &str,
    ) -> Result<BodyEnd, UpstreamFailure> {
        let (mut phase, mut sleep) = (WaitPhase::FirstByte, DeadlineSleep::new(limits));
        loop {
            let failure = match sleep.within(limits.next(phase), response.chunk()).await {
                Ok(Ok(Some(piece))) => {
                    // An empty piece is no byte.
                    if !piece.is_empty() {
                        if *self.bytes == 0 {
                            self.listeners.observed.report(|at| ModelCallEvent::FirstByte { at });
                        }
                        *self.bytes += piece.len() as u64;
                        self.raw.push(&piece);
                        self.note_start(&piece);
                        phase = WaitPhase::NextChunk;
                    }
                    let mut events = EventBatch::default();
                    self.decoder.push(&piece, &mut |event| events.push(event));
                    self.emit(events.into_events()).await?;
                    if self.decoder.is_over() {
                        return Ok(BodyEnd::Early(response));
                    }
                    continue;
                }
                Ok(Ok(None)) => {
                    let mut events = EventBatch::default();
                    self.decoder.finish(&mut |event| events.push(event));
                    self.emit(events.into_events()).await?;
                    return Ok(BodyEnd::Complete);
                }
                Ok(Err(error)) => failure::from_transport(&error, host),
                Err(_) => limits.expired(phase),
            };
            return self.finish_broken(failure).await;
        }
    }

    /// The connection is lost or given up. Passes on what the decoder still holds; the failure replaces its
    /// `StreamEnd`, unless the reply turns out to be complete.
    async fn finish_broken(&mut self, failure: UpstreamFailure) -> Result<BodyEnd, UpstreamFailure> {
        let mut events = EventBatch::default();
        self.decoder.finish(&mut |event| events.push(event));
        let mut events = events.into_events();
        if events.last() == Some(&StepEvent::End(StreamEnd::Complete)) {
            self.emit(events).await?;
            return Ok(BodyEnd::Complete);
        }
        events.retain(|event| !matches!(event, StepEvent::End(_)));
        self.emit(events).await?;
        Err(failure)
    }

    /// Keeps the first bytes, as long as they matter.
    fn note_start(&mut self, piece: &[u8]) {
        if self.may_fall_back && self.start.len() < STREAM_START_BYTES {
            let blank = self.start.is_empty();
            let bytes = piece.iter().skip_while(|byte| blank && byte.is_ascii_whitespace());
            self.start.extend(bytes.take(STREAM_START_BYTES));
        }
    }

    /// The end of a stream that has neither content nor an error of the upstream's own.
    fn broken_stream(&self, end: &StreamEnd) -> Option<UpstreamFailure> {
        let is_stream = [&b"data:"[..], b"event:", b"id:", b":", b"{", b"["]
            .iter()
            .any(|start| self.start.starts_with(start));
        let message = match end {
            StreamEnd::Truncated => "the stream ended before its first event".to_owned(),
            StreamEnd::Error(_) if !is_stream => "the response body is not a stream".to_owned(),
            _ => return None,
        };
        let may = self.may_fall_back && self.unanswered.is_some();
        may.then(|| failure::without_status(FailureKind::Broken, message))
    }

    async fn emit(&mut self, mut events: Vec<StepEvent<'static>>) -> Result<(), UpstreamFailure> {
        if events.is_empty() {
            return Ok(());
        }
        for event in &mut events {
            self.client.redact_event(event);
            if let StepEvent::End(end) = event
                && let Some(failure) = self.broken_stream(end)
            {
                return Err(failure);
            }
            if let StepEvent::Image(media) = event {
                self.listeners.offloader.offload(media).await;
            }
            match event {
                StepEvent::Problem(_)
                | StepEvent::Usage(_)
                | StepEvent::ProviderState(_)
                | StepEvent::Finish { .. }
                | StepEvent::End(StreamEnd::Error(_)) => {}
                _ if self.unanswered.is_none() => {}
                _ => {
                    self.unanswered = None;
                    self.raw.count();
                    self.listeners.observed.report(|at| ModelCallEvent::FirstToken { at });
                }
            }
        }
        // The end is the last event. In mid-reply a request was good enough to be answered.
        let is_answered = self.unanswered.is_none();
        let failure = match events.last() {
            Some(StepEvent::End(StreamEnd::Error(error))) => {
                let failure = failure::from_stream_error(error, self.offered)
                    .filter(|failure| !is_answered || failure.kind != FailureKind::Status);
                let unanswered = self.unanswered.as_mut();
                self.is_adapted = unanswered.is_some_and(|call| self.client.adapt_to_error(call, error));
                failure.or_else(|| {
                    let refused = || failure::without_status(FailureKind::Status, error.message.clone());
                    self.is_adapted.then(refused)
                })
            }
            _ => None,
        };
        if failure.is_some() {
            events.pop();
        }
        // A reply without content may be requested again, so none of it is passed on.
        if (failure.is_none() || is_answered) && !events.is_empty() {
            self.listeners.out.put(ModelItem::Events(events)).await;
        }
        failure.map_or(Ok(()), Err)
    }
}
