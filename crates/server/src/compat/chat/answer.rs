//! One answer on its way to the client: a viewer of the turn, its projection, and the rule that a turn ends with its client.

use super::NOBODY_IS_ASKED;
use crate::chat_questions;
use crate::error::ApiError;
use crate::hub::{Hub, Standing, WaitsFor};
use crate::net::Cut;
use crate::principal::Principal;
use crate::state::AppState;
use crate::surface::chat_completions::request::Delivery;
use crate::surface::chat_completions::{
    Again, Begun, Ended, ErrorBody, Head, OPEN, Piece, Projection, Whole, Writer, heartbeat,
};
use crate::viewer::{From, Meter, Viewed, Viewer};
use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::{HeaderValue, StatusCode, header};
use jiff::Timestamp;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use throughline::Event;
use throughline_engine::{BlockStart, Decision, EventKind, Seq, TurnId};
use throughline_store::Record;
use tokio::time::{Instant, timeout_at};

/// Names the turn, for whoever wants to look at it through the own API.
const TURN_HEADER: &str = "throughline-turn-id";

/// An answer that nothing has been sent of.
pub(super) struct Answer {
    head: Head,
    projection: Projection,
    viewer: Viewer,
    state: AppState,
    /// The address of this server as the person at the client knows it.
    page: String,
    life_line: LifeLine,
}

/// The turn is stopped when this is dropped, unless it may go on without its client.
struct LifeLine {
    hub: Hub,
    user: String,
    turn: Option<TurnId>,
}

/// An answer of which something has been sent.
struct Sending {
    answer: Answer,
    writer: Writer,
    meter: Arc<Meter>,
    opening: Option<Vec<u8>>,
}

/// What the log had next.
enum Next {
    Pieces(Vec<Piece>),
    Idle,
}

impl Answer {
    /// The answer of a turn behind its event `after`.
    pub(super) async fn of(
        state: &AppState,
        principal: &Principal,
        turn: &TurnId,
        after: u64,
        head: Head,
        projection: Projection,
        page: String,
    ) -> Result<Self, ApiError> {
        let life_line =
            LifeLine { hub: state.hub.clone(), user: principal.user.clone(), turn: Some(turn.clone()) };
        let viewer = state.hub.viewer(principal, turn, From::After(after)).await?;
        Ok(Self { head, projection, viewer, state: state.clone(), page, life_line })
    }

    /// As the client wants it.
    pub(super) async fn deliver(self, delivery: Delivery, cut: Arc<Cut>) -> Result<Response, ApiError> {
        let turn = self.viewer.turn().as_str().to_owned();
        let mut response = match delivery {
            Delivery::Stream => self.stream(cut).await?,
            Delivery::Whole => self.whole().await?,
        };
        if let Ok(turn) = HeaderValue::from_str(&turn) {
            response.headers_mut().insert(TURN_HEADER, turn);
        }
        Ok(response)
    }

    /// What happens before the model says anything, for a moment: what fails by then is a status, which clients act on. // R: E2
    async fn hold(&mut self) -> io::Result<Vec<Piece>> {
        let until = Instant::now() + Duration::from_millis(self.state.limits.head_hold_ms);
        let mut held = Vec::new();
        while self.projection.begun() == Begun::No && self.projection.ended().is_none() {
            let Ok(viewed) = timeout_at(until, self.viewer.next()).await else { break };
            if let Next::Pieces(pieces) = self.take(viewed.map_err(io::Error::other)?).await? {
                held.extend(pieces);
            }
        }
        Ok(held)
    }

    async fn stream(mut self, cut: Arc<Cut>) -> Result<Response, ApiError> {
        let held = self.hold().await.map_err(broken_off)?;
        if self.projection.begun() == Begun::No
            && let Some(error) = held.iter().find_map(|piece| match piece {
                Piece::Error(error) => Some(error),
                _ => None,
            })
        {
            return Ok(refused(error));
        }
        // A client that takes nothing is cut like every viewer; here that stops the turn.
        let meter = self.life_line.hub.watchdog().watch(self.viewer.turn().clone(), self.viewer.after(), cut);
        let writer = Writer::new(&self.head);
        let mut opening = OPEN.to_vec();
        writer.write(&self.projection.open(), &mut opening);
        held.iter().for_each(|piece| writer.write(piece, &mut opening));
        // Boxed: for each chunk it moves in and out of the stream.
        let begin = Some(Box::new(Sending { answer: self, writer, meter, opening: Some(opening) }));
        let body = stream::unfold(begin, |sending| async move {
            let mut sending = sending?;
            let next = sending.next().await?;
            let sending = next.is_ok().then_some(sending);
            Some((next, sending))
        });
        let mut response = Response::new(Body::from_stream(body));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform"));
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        Ok(response)
    }

    /// The fold of the same pieces. // R: T13
    async fn whole(mut self) -> Result<Response, ApiError> {
        let mut whole = Whole::default();
        while self.projection.ended().is_none() {
            match self.next().await.map_err(broken_off)? {
                Next::Pieces(pieces) => pieces.into_iter().for_each(|piece| whole.take(piece)),
                Next::Idle => {}
            }
        }
        match whole.into_body(&self.head) {
            Some(Ok(body)) => Ok(axum::Json(body).into_response()),
            Some(Err(error)) => Ok(refused(&error)),
            None => Err(ApiError::internal("an answer ended without an end")),
        }
    }

    /// Once the answer has ended, with this event, the turn is its own: it is over, or waits for the next request.
    fn let_go_if_ended(&mut self, seq: Seq) {
        match self.projection.ended() {
            Some(Ended::TurnIsOver) => self.life_line.let_go(),
            Some(Ended::CallsHandedOver) => {
                self.life_line.let_go();
                self.life_line.hub.park(self.viewer.turn(), seq, WaitsFor::ToolResults);
            }
            Some(Ended::Asked) => {
                self.life_line.let_go();
                self.life_line.hub.park(self.viewer.turn(), seq, WaitsFor::Approval);
            }
            None => {}
        }
    }

    async fn next(&mut self) -> io::Result<Next> {
        let viewed = self.viewer.next().await.map_err(io::Error::other)?;
        self.take(viewed).await
    }

    /// Shows what the log had next. To be awaited to its end: what was viewed does not come again.
    async fn take(&mut self, viewed: Option<Viewed>) -> io::Result<Next> {
        match viewed {
            Some(Viewed::Records(records)) => {
                let mut pieces = Vec::new();
                for mut event in records.iter().filter_map(event_of) {
                    // A chat client has no key to this server's files but the text.
                    if let EventKind::BlockStart(BlockStart::Image(media)) = &mut event.kind {
                        self.state.media.bring_in(&self.life_line.user, media).await;
                    }
                    let ended_before = self.projection.ended();
                    pieces.extend(self.projection.push(&event));
                    self.deny_what_nobody_is_asked(&event).await;
                    pieces.extend(self.ask(event.seq).await?);
                    if ended_before.is_none() {
                        self.let_go_if_ended(event.seq);
                    }
                }
                Ok(Next::Pieces(pieces))
            }
            // Chat clients know no word for it; the connection lives.
            Some(Viewed::Idle | Viewed::StoreIsAway(_)) => Ok(Next::Idle),
            // What has been sent cannot be taken back, so this answer cannot be mended.
            Some(Viewed::Snapshot(_) | Viewed::Resync(_)) => Err(io::Error::other("the log is another one")),
            None => Err(io::Error::other("the server stops")),
        }
    }
}

impl Answer {
    /// A question that this client cannot be asked is denied, so that its turn does not wait for what never comes.
    async fn deny_what_nobody_is_asked(&mut self, event: &Event) {
        let EventKind::ApprovalRequest { approval_id, kind, .. } = &event.kind else { return };
        if !self.projection.cannot_put(*kind) {
            return;
        }
        let LifeLine { hub, user, .. } = &self.life_line;
        if let Ok(Standing::Running(control)) = hub.control(user, &event.turn_id).await {
            // If somebody else has answered it meanwhile, all the better.
            let _ =
                control.answer(approval_id.clone(), Decision::Deny, Some(NOBODY_IS_ASKED.to_owned())).await;
        }
    }

    /// Ends the answer with the questions of the turn, if it waits for nothing else. // R: A3
    async fn ask(&mut self, after: Seq) -> io::Result<Vec<Piece>> {
        let questions = self.projection.questions();
        if questions.is_empty() {
            return Ok(Vec::new());
        }
        let (user, turn) = (&self.life_line.user, self.viewer.turn());
        let text = chat_questions::keep(&self.state, user, turn, after.0, &questions, &self.page).await;
        let text = text.map_err(|error| io::Error::other(error.message))?;
        Ok(self.projection.ask(&text))
    }
}

impl Sending {
    /// What is sent next; `None` behind the end. Nothing follows an error.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if let Some(opening) = self.opening.take() {
            return Some(Ok(Bytes::from(opening)));
        }
        let mut bytes = Vec::new();
        self.meter.asks();
        if self.meter.is_cut() {
            return Some(Err(io::ErrorKind::ConnectionReset.into()));
        }
        while bytes.is_empty() {
            if self.answer.projection.ended().is_some() {
                return None;
            }
            match self.answer.next().await {
                Ok(Next::Pieces(pieces)) => {
                    pieces.iter().for_each(|piece| self.writer.write(piece, &mut bytes));
                }
                Ok(Next::Idle) => bytes = heartbeat(Timestamp::now().as_millisecond()),
                // A clean end without a finish looks like success to most clients (surfaces.md §0.5), so the
                // connection is broken off instead.
                Err(error) => return Some(Err(error)),
            }
        }
        self.meter.given(self.answer.viewer.after());
        Some(Ok(Bytes::from(bytes)))
    }
}

/// An error as a status, with what clients look for before they try again by themselves.
fn refused(error: &ErrorBody) -> Response {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut response = (status, axum::Json(error.to_value())).into_response();
    let headers = response.headers_mut();
    if let Some(ms) = error.retry_after_ms {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(ms.div_ceil(1_000)));
        headers.insert("retry-after-ms", HeaderValue::from(ms));
    }
    if error.again == Again::No {
        headers.insert("x-should-retry", HeaderValue::from_static("false"));
    }
    response
}

/// The turn is lost to this answer before anything of it was sent.
fn broken_off(why: io::Error) -> ApiError {
    tracing::warn!(%why, "an answer breaks off before its first byte");
    ApiError::unavailable("interrupted", "the server lost this answer before it began", 1)
        .remedy("send the request again")
}

/// An event of the log; a reader ignores what it does not know.
pub(super) fn event_of(record: &Record) -> Option<Event> {
    Event::of_kind(&record.kind, &record.payload).ok()
}

impl LifeLine {
    fn let_go(&mut self) {
        self.turn = None;
    }
}

impl Drop for LifeLine {
    fn drop(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        let (hub, user) = (self.hub.clone(), std::mem::take(&mut self.user));
        tokio::spawn(async move {
            if let Ok(Standing::Running(control)) = hub.control(&user, &turn).await {
                // If it ended meanwhile, all the better.
                let _ = control.cancel().await;
            }
        });
    }
}
