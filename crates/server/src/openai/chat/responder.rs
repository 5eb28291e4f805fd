//! One answer on its way to the client: a viewer of the turn, its projection, and the rule that a turn ends with its client.

use super::NO_APPROVER_TEXT;
use crate::api::events::{sse_response, unbuffered};
use crate::chat_approvals;
use crate::error::ApiError;
use crate::net::ConnectionCanceller;
use crate::principal::Principal;
use crate::projections::chat_completions::request::DeliveryMode;
use crate::projections::chat_completions::{
    AnswerEnd, ChatChunk, ChatCompletion, ChatErrorBody, ChatProjection, ChunkHead, ChunkWriter, RetryHint,
    STREAM_OPEN, heartbeat,
};
use crate::state::AppState;
use crate::turn_manager::{TurnLookup, TurnManager, WaitsFor};
use crate::viewer::{ResumeFrom, Viewer, ViewerItem, ViewerProgress};
use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use http::{HeaderValue, StatusCode, header};
use jiff::Timestamp;
use serde_json::Value;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use throughline::Event;
use throughline_engine::{ApprovalDecision, BlockStart, EventKind, EventSeq, TurnId};
use throughline_store::LogRecord;
use tokio::time::{Instant, timeout_at};

/// Sent while an answer in one piece is not there.
const EMPTY_LINE: Bytes = Bytes::from_static(b"\n");

/// Header with the turn's id, for requests to the native API.
const TURN_HEADER: &str = "throughline-turn-id";

/// An answer of which nothing has been sent.
pub(super) struct ChatResponder {
    head: ChunkHead,
    projection: ChatProjection,
    viewer: Viewer,
    state: AppState,
    /// Address of this server as the client's user reaches it.
    page: String,
    cancel_guard: CancelGuard,
}

/// Stops the turn when dropped, unless it may continue without its client.
struct CancelGuard {
    turn_manager: TurnManager,
    user: String,
    turn: Option<TurnId>,
}

/// An answer of which something has been sent.
struct ChatStream {
    responder: ChatResponder,
    writer: ChunkWriter,
    meter: Arc<ViewerProgress>,
    opening: Option<Vec<u8>>,
}

/// A response that is not streamed, and its result so far.
struct WholeAnswer {
    responder: ChatResponder,
    completion: ChatCompletion,
}

/// The rest of a body after its head was sent.
enum BodyRest {
    Answer(Box<WholeAnswer>),
    /// The connection is broken off, for this reason.
    Break(String),
    Nothing,
}

/// Next item of the log.
enum LogStep {
    Chunks(Vec<ChatChunk>),
    Idle,
}

impl ChatResponder {
    /// Opens the answer of a turn after its event `after`.
    pub(super) async fn open(
        state: &AppState,
        principal: &Principal,
        turn: &TurnId,
        after: u64,
        head: ChunkHead,
        projection: ChatProjection,
        page: String,
    ) -> Result<Self, ApiError> {
        let cancel_guard = CancelGuard {
            turn_manager: state.turn_manager.clone(),
            user: principal.user.clone(),
            turn: Some(turn.clone()),
        };
        let viewer = state.turn_manager.viewer(principal, turn, ResumeFrom::After(after)).await?;
        Ok(Self { head, projection, viewer, state: state.clone(), page, cancel_guard })
    }

    /// Sends the answer, streamed or whole as requested.
    pub(super) async fn deliver(
        self,
        delivery: DeliveryMode,
        canceller: Arc<ConnectionCanceller>,
    ) -> Result<Response, ApiError> {
        let turn = self.viewer.turn().as_str().to_owned();
        let mut response = match delivery {
            DeliveryMode::Stream => self.stream(canceller).await?,
            DeliveryMode::Complete => self.collect().await?,
        };
        if let Ok(turn) = HeaderValue::from_str(&turn) {
            response.headers_mut().insert(TURN_HEADER, turn);
        }
        Ok(response)
    }

    /// Buffers the first chunks for a moment: a failure before the model's first token becomes an HTTP status, which
    /// clients act on.
    async fn buffer_head(&mut self) -> io::Result<Vec<ChatChunk>> {
        let deadline = Instant::now() + Duration::from_millis(self.state.limits.head_hold_ms);
        let mut buffered = Vec::new();
        while !self.projection.has_started() && self.projection.ended().is_none() {
            let Ok(item) = timeout_at(deadline, self.viewer.next()).await else { break };
            if let LogStep::Chunks(chunks) = self.apply(item.map_err(io::Error::other)?).await? {
                buffered.extend(chunks);
            }
        }
        Ok(buffered)
    }

    async fn stream(mut self, canceller: Arc<ConnectionCanceller>) -> Result<Response, ApiError> {
        let buffered = self.buffer_head().await.map_err(stream_error)?;
        if !self.projection.has_started()
            && let Some(error) = buffered.iter().find_map(|piece| match piece {
                ChatChunk::Error(error) => Some(error),
                _ => None,
            })
        {
            return Ok(error_response(error));
        }
        // A client that takes nothing is cut like every viewer; here that stops the turn.
        let meter = self.cancel_guard.turn_manager.watchdog().watch(
            self.viewer.turn().clone(),
            self.viewer.after(),
            canceller,
        );
        let writer = ChunkWriter::new(&self.head);
        let mut opening = STREAM_OPEN.to_vec();
        writer.write(&self.projection.opening(), &mut opening);
        buffered.iter().for_each(|piece| writer.write(piece, &mut opening));
        // Boxed: for each chunk it moves in and out of the stream.
        let initial = Some(Box::new(ChatStream { responder: self, writer, meter, opening: Some(opening) }));
        let body = stream::unfold(initial, |sending| async move {
            let mut sending = sending?;
            let next = sending.next().await?;
            let sending = next.is_ok().then_some(sending);
            Some((next, sending))
        });
        Ok(sse_response(Body::from_stream(body)))
    }

    /// The body from the fold of the chunks.
    async fn collect(self) -> Result<Response, ApiError> {
        let deadline = Instant::now() + Duration::from_millis(self.state.limits.whole_head_hold_ms);
        let mut answer = WholeAnswer { responder: self, completion: ChatCompletion::default() };
        if !answer.fold_until(deadline).await.map_err(stream_error)? {
            return Ok(answer.deliver_after_head());
        }
        match answer.into_body().map_err(ApiError::internal)? {
            Ok(body) => Ok(axum::Json(body).into_response()),
            Err(error) => Ok(error_response(&error)),
        }
    }

    /// Disarms the guard once the answer has ended: the turn is over, or waits for the next request.
    fn disarm_if_ended(&mut self) {
        match self.projection.ended() {
            Some(AnswerEnd::TurnEnded | AnswerEnd::AnsweredElsewhere) => self.cancel_guard.disarm(),
            Some(AnswerEnd::ToolCalls) => {
                self.cancel_guard.disarm();
                self.cancel_guard.turn_manager.park(self.viewer.turn(), WaitsFor::ToolResults);
            }
            Some(AnswerEnd::Question) => {
                self.cancel_guard.disarm();
                self.cancel_guard.turn_manager.park(self.viewer.turn(), WaitsFor::Approval);
            }
            // The rest of the turn has no reader, so it is stopped.
            Some(AnswerEnd::BrokenCall) | None => {}
        }
    }

    async fn next(&mut self) -> io::Result<LogStep> {
        let item = self.viewer.next().await.map_err(io::Error::other)?;
        self.apply(item).await
    }

    /// Sends the next part of the log. Must be awaited to its end: events that were read are not returned
    /// again.
    async fn apply(&mut self, item: Option<ViewerItem>) -> io::Result<LogStep> {
        match item {
            Some(ViewerItem::Records(records)) => {
                let mut chunks = Vec::new();
                for mut event in records.iter().filter_map(parse_event) {
                    // A chat client has no key to this server's files but the text.
                    if let EventKind::BlockStart(BlockStart::Image(media)) = &mut event.kind {
                        self.state.media.hydrate(&self.cancel_guard.user, media).await;
                    }
                    let had_ended = self.projection.ended();
                    chunks.extend(self.projection.push(&event));
                    self.deny_unanswerable(&event).await;
                    chunks.extend(self.end_with_questions(event.seq).await?);
                    if had_ended.is_none() {
                        self.disarm_if_ended();
                    }
                }
                Ok(LogStep::Chunks(chunks))
            }
            // The format has no such event; the connection is alive.
            Some(ViewerItem::Idle | ViewerItem::StoreUnavailable(_)) => Ok(LogStep::Idle),
            // Sent text cannot be retracted, so this answer cannot be repaired.
            Some(ViewerItem::Snapshot(_) | ViewerItem::Resync(_)) => {
                Err(io::Error::other("the log is another one"))
            }
            None => Err(io::Error::other("the server stops")),
        }
    }
}

impl ChatResponder {
    /// Denies a question that this client cannot display, so that its turn does not wait in vain.
    async fn deny_unanswerable(&mut self, event: &Event) {
        let EventKind::ApprovalRequest { approval_id, kind, .. } = &event.kind else { return };
        if !self.projection.cannot_ask(*kind) {
            return;
        }
        let CancelGuard { turn_manager, user, .. } = &self.cancel_guard;
        if let Ok(TurnLookup::Running(control)) = turn_manager.lookup(user, &event.turn_id).await {
            // Another client may have answered it already.
            let _ = control
                .answer(approval_id.clone(), ApprovalDecision::Deny, Some(NO_APPROVER_TEXT.to_owned()))
                .await;
        }
    }

    /// Ends the answer with the turn's open questions, if the turn waits for nothing else.
    async fn end_with_questions(&mut self, after: EventSeq) -> io::Result<Vec<ChatChunk>> {
        let questions = self.projection.questions();
        if questions.is_empty() {
            return Ok(Vec::new());
        }
        let (user, turn) = (&self.cancel_guard.user, self.viewer.turn());
        let text =
            chat_approvals::store_questions(&self.state, user, turn, after.0, &questions, &self.page).await;
        let text = text.map_err(|error| io::Error::other(error.message))?;
        Ok(self.projection.end_with_question(&text))
    }
}

impl WholeAnswer {
    /// The completion, or the error that it ended with.
    fn into_body(self) -> Result<Result<Value, ChatErrorBody>, &'static str> {
        self.completion.into_body(&self.responder.head).ok_or("a response ended without its final event")
    }

    /// The body after a head that was already sent. A failure can no longer set the status: if a status would
    /// have made the client retry, and no part of the answer was sent, the connection is aborted, which has
    /// the same effect.
    fn into_last_bytes(self) -> (io::Result<Bytes>, BodyRest) {
        let has_started = self.responder.projection.has_started();
        let (body, rest) = match self.into_body() {
            Ok(Ok(body)) => (body, BodyRest::Nothing),
            Ok(Err(error)) if !has_started && error.is_tried_again() => {
                (error.to_value(), BodyRest::Break(error.message))
            }
            Ok(Err(error)) => (error.to_value(), BodyRest::Nothing),
            Err(why) => return (Err(io::Error::other(why)), BodyRest::Nothing),
        };
        (Ok(Bytes::from(body.to_string())), rest)
    }

    /// Reads the answer; false if it has not ended by then.
    async fn fold_until(&mut self, deadline: Instant) -> io::Result<bool> {
        while self.responder.projection.ended().is_none() {
            let Ok(item) = timeout_at(deadline, self.responder.viewer.next()).await else { return Ok(false) };
            if let LogStep::Chunks(chunks) = self.responder.apply(item.map_err(io::Error::other)?).await? {
                chunks.into_iter().for_each(|piece| self.completion.push(piece));
            }
        }
        Ok(true)
    }

    /// Proxies close a connection that carries nothing for a minute. So the head goes out, and an empty line from time to time,
    /// which JSON may begin with; DeepSeek does the same (<https://api-docs.deepseek.com/quick_start/rate_limit>).
    fn deliver_after_head(self) -> Response {
        let interval = Duration::from_millis(self.responder.state.limits.heartbeat_ms);
        let answer = stream::unfold(BodyRest::Answer(Box::new(self)), move |rest| async move {
            match rest {
                BodyRest::Answer(mut answer) => match answer.fold_until(Instant::now() + interval).await {
                    Ok(false) => Some((Ok(EMPTY_LINE), BodyRest::Answer(answer))),
                    Ok(true) => Some(answer.into_last_bytes()),
                    Err(error) => Some((Err(error), BodyRest::Nothing)),
                },
                BodyRest::Break(why) => {
                    // Yields, so that written bytes are flushed before the abort.
                    tokio::task::yield_now().await;
                    Some((Err(io::Error::other(why)), BodyRest::Nothing))
                }
                BodyRest::Nothing => None,
            }
        });
        // The first empty line sends the head.
        let body = stream::iter([Ok(EMPTY_LINE)]).chain(answer);
        unbuffered(Body::from_stream(body), HeaderValue::from_static("application/json"))
    }
}

impl ChatStream {
    /// Next bytes to send; `None` after the end. Nothing follows an error.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if let Some(opening) = self.opening.take() {
            return Some(Ok(Bytes::from(opening)));
        }
        let mut bytes = Vec::new();
        self.meter.mark_taken();
        if self.meter.is_cancelled() {
            return Some(Err(io::ErrorKind::ConnectionReset.into()));
        }
        while bytes.is_empty() {
            if self.responder.projection.ended().is_some() {
                return None;
            }
            match self.responder.next().await {
                Ok(LogStep::Chunks(chunks)) => {
                    chunks.iter().for_each(|piece| self.writer.write(piece, &mut bytes));
                }
                Ok(LogStep::Idle) => bytes = heartbeat(Timestamp::now().as_millisecond()),
                // A clean end without a finish looks like success to most clients (docs/openai-clients.md),
                // so the connection is broken off instead.
                Err(error) => return Some(Err(error)),
            }
        }
        self.meter.mark_given(self.responder.viewer.after());
        Some(Ok(Bytes::from(bytes)))
    }
}

/// An error as a status, with the headers that clients check before they retry.
fn error_response(error: &ChatErrorBody) -> Response {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut response = (status, axum::Json(error.to_value())).into_response();
    let headers = response.headers_mut();
    if let Some(ms) = error.retry_after_ms {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(ms.div_ceil(1_000)));
        headers.insert("retry-after-ms", HeaderValue::from(ms));
    }
    if error.retry == RetryHint::Never {
        headers.insert("x-should-retry", HeaderValue::from_static("false"));
    }
    response
}

/// The turn was lost before any part of the answer was sent.
fn stream_error(why: io::Error) -> ApiError {
    tracing::warn!(%why, "a response failed before its first byte");
    ApiError::unavailable("interrupted", "the server lost this response before it began", 1)
        .remedy("send the request again")
}

/// Parses an event of the log; `None` for unknown events, which readers ignore.
pub(super) fn parse_event(record: &LogRecord) -> Option<Event> {
    Event::from_json(&record.kind, &record.payload).ok()
}

impl CancelGuard {
    fn disarm(&mut self) {
        self.turn = None;
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        let (turn_manager, user) = (self.turn_manager.clone(), std::mem::take(&mut self.user));
        tokio::spawn(async move {
            if let Ok(TurnLookup::Running(control)) = turn_manager.lookup(&user, &turn).await {
                // The turn may have ended already.
                let _ = control.cancel().await;
            }
        });
    }
}
