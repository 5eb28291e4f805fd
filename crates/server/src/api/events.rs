//! The events of a turn over SSE.

use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Path, Query};
use crate::net::{ConnectionCanceller, ConnectionInfo};
use crate::principal::Principal;
use crate::projections::native::{self, SnapshotKind};
use crate::state::AppState;
use crate::turn_manager::TurnManager;
use crate::viewer::{ResumeFrom, Viewer, ViewerItem, ViewerProgress};
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use jiff::Timestamp;
use serde::Deserialize;
use std::io;
use std::sync::Arc;
use throughline_engine::TurnId;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Lower bound of a browser's reconnect delay, in milliseconds. The upper bound is twice as much.
const RETRY_MS: u32 = 1_000;

/// `/v1/turns/{turn_id}/events`.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(follow))
}

/// One event as it comes in a stream.
#[derive(utoipa::ToSchema)]
#[allow(dead_code, reason = "description only; events are sent as text")]
pub(crate) struct SseFrame {
    /// Its number in the turn, for `Last-Event-ID`; absent where there is nothing to come back to.
    #[schema(required = false)]
    id: Option<String>,
    /// Type of the event; absent in chat completions.
    #[schema(required = false)]
    event: Option<String>,
    /// An `Event` as JSON, a `chat.completion.chunk`, or `[DONE]`.
    data: String,
}

/// Where to begin.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// The number of the last event that was seen; 0 or absent = from the first. Comes before `Last-Event-ID`.
    #[serde(default)]
    after: Option<u64>,
    /// `snapshot`: begin with the message as it is now.
    #[serde(default)]
    #[param(inline)]
    from: Option<StartFrom>,
    /// A key for one use, in place of a header: `POST /v1/tickets`. The request guard has looked at it already.
    #[serde(default)]
    #[allow(dead_code, reason = "read by the request guard")]
    ticket: Option<String>,
}

/// First event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StartFrom {
    /// With the message as it is now.
    Snapshot,
}

/// Follow a turn, from any place in it.
#[utoipa::path(get, path = "/v1/turns/{turn_id}/events", tag = "events",
    params(EventsQuery, ("turn_id" = String, Path, description = "Id of the turn"),
        ("Last-Event-ID" = Option<u64>, Header, description = "Like `after`; browsers send it when they reconnect")),
    responses(
        (status = 200, description = "The events up to the last one", content_type = "text/event-stream", body = SseFrame),
        (status = 204, description = "The turn has ended and `after` is its last event"),
        (status = 400, description = "Invalid sequence number", body = ErrorResponse),
        (status = 404, description = "Turn not found", body = ErrorResponse),
        (status = 410, description = "Its events have been deleted", body = ErrorResponse),
        (status = 429, description = "Too many open streams", body = ErrorResponse),
    ))]
async fn follow(
    State(state): State<AppState>,
    principal: Principal,
    connection: Option<Extension<ConnectionInfo>>,
    Path(turn): Path<String>,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let from = resume_from(&query, &headers)?;
    let viewer = state.turn_manager.viewer(&principal, &TurnId::new(turn), from).await?;
    if viewer.has_ended() {
        // A browser's `EventSource` stops connecting at a 204.
        Ok(StatusCode::NO_CONTENT.into_response())
    } else {
        Ok(event_stream(&state.turn_manager, viewer, canceller_of(connection)))
    }
}

/// The switch that ends a request's connection; without one, its stream alone.
pub(crate) fn canceller_of(connection: Option<Extension<ConnectionInfo>>) -> Arc<ConnectionCanceller> {
    connection.map(|Extension(connection)| connection.canceller).unwrap_or_default()
}

fn resume_from(query: &EventsQuery, headers: &HeaderMap) -> Result<ResumeFrom, ApiError> {
    let last = match headers.get("last-event-id") {
        None => None,
        // Refused even if the query has another cursor: such a client has lost its position.
        Some(id) => {
            let id = id.to_str().ok().and_then(|id| id.trim().parse().ok());
            Some(id.ok_or_else(|| {
                ApiError::bad_request("invalid_position", "`Last-Event-ID` is not the number of an event")
                    .param("Last-Event-ID")
                    .remedy("leave it out to get all events")
            })?)
        }
    };
    Ok(match (query.after.or(last), query.from) {
        (Some(after), _) => ResumeFrom::After(after),
        (None, Some(StartFrom::Snapshot)) => ResumeFrom::Snapshot,
        (None, None) => ResumeFrom::After(0),
    })
}

/// A viewer as an event stream.
pub(crate) fn event_stream(
    turn_manager: &TurnManager,
    viewer: Viewer,
    canceller: Arc<ConnectionCanceller>,
) -> Response {
    let meter = turn_manager.watchdog().watch(viewer.turn().clone(), viewer.after(), canceller);
    let opening = native::stream_opening(RETRY_MS + jitter());
    let frames = stream::unfold(Some((viewer, meter, Some(opening))), |state| async move {
        let (mut viewer, meter, mut opening) = state?;
        if let Some(opening) = opening.take() {
            return Some((Ok(Bytes::from(opening)), Some((viewer, meter, None))));
        }
        match next_frame(&mut viewer, &meter).await {
            Ok(Some(frame)) => Some((Ok(frame), Some((viewer, meter, None)))),
            Ok(None) => None,
            // An aborted stream is recognized as broken; one that is closed without its last event might be
            // taken for complete.
            Err(error) => Some((Err(error), None)),
        }
    });
    sse_response(Body::from_stream(frames))
}

/// A response of server-sent events, which proxies neither keep, change nor hold back.
pub(crate) fn sse_response(body: Body) -> Response {
    unbuffered(body, HeaderValue::from_static("text/event-stream"))
}

/// A response that proxies pass on piece by piece.
pub(crate) fn unbuffered(body: Body, content_type: HeaderValue) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

async fn next_frame(viewer: &mut Viewer, meter: &ViewerProgress) -> io::Result<Option<Bytes>> {
    meter.mark_taken();
    if meter.is_cancelled() {
        return Err(io::ErrorKind::ConnectionReset.into());
    }
    let Some(item) = viewer.next().await.map_err(io::Error::other)? else { return Ok(None) };
    let mut frame = Vec::new();
    match item {
        ViewerItem::Records(records) => {
            // As much as it takes: a client that does not read keeps all of it.
            frame.reserve_exact(records.iter().map(native::event_bytes).sum());
            records.iter().for_each(|record| native::event(&mut frame, record));
        }
        ViewerItem::Snapshot(message) => native::snapshot(&mut frame, SnapshotKind::Snapshot, &message)?,
        ViewerItem::Resync(message) => native::snapshot(&mut frame, SnapshotKind::Resync, &message)?,
        ViewerItem::Idle => native::heartbeat(&mut frame, Timestamp::now().as_millisecond()),
        ViewerItem::StoreUnavailable(unavailable_for) => {
            let now = Timestamp::now().as_millisecond();
            native::waiting(&mut frame, &native::store_unavailable(viewer.turn(), now, unavailable_for));
        }
    }
    meter.mark_given(viewer.after());
    Ok(Some(Bytes::from(frame)))
}

/// Random delay, so that clients that were disconnected together do not reconnect together.
fn jitter() -> u32 {
    (uuid::Uuid::now_v7().as_u64_pair().1 as u32) % RETRY_MS
}
