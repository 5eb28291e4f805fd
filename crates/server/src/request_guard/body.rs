//! Limits on a request's body while it is read: size, time, depth. Nothing is buffered here.

use crate::error::ApiError;
use crate::json_scanner::JsonScanner;
use crate::large_bodies::{LARGE_BYTES, RequestMemory};
use axum::body::{Body, Bytes, HttpBody};
use futures_util::future::BoxFuture;
use http::header::EXPECT;
use http::request::Parts;
use http::{StatusCode, Version};
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use throughline::config::ServerLimits;
use tokio::time::Sleep;

/// Violation in the part of the body that was read. The handler that read it sees only that it broke off.
#[derive(Debug, Default)]
pub(super) struct BodyStatus {
    violation: AtomicU8,
    refusal: Mutex<Option<ApiError>>,
}

const TOO_LARGE: u8 = 1;
const TOO_SLOW: u8 = 2;
const TOO_DEEP: u8 = 3;
const TOO_MANY_VALUES: u8 = 4;
const NOT_ADMITTED: u8 = 5;

/// The bounds of one body.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyLimits {
    pub(super) bytes_max: u64,
    pub(super) time_max: Duration,
    /// Additional bounds for a JSON body.
    pub(super) json: Option<JsonLimits>,
    /// Name of the size limit.
    pub(super) name: &'static str,
}

/// Bounds of a JSON text in addition to its size.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonLimits {
    depth_max: u32,
    values_max: u32,
}

impl JsonLimits {
    pub(super) fn of(limits: &ServerLimits) -> Self {
        Self { depth_max: limits.json_depth_max, values_max: limits.json_values_max }
    }
}

/// Maximum number of unneeded bytes of a body that are read and discarded.
const DRAINED_BYTES_MAX: u64 = 1 << 30;
/// Time for them.
const DRAINED_MAX: Duration = Duration::from_secs(60);
/// Longest silence among them.
const DRAIN_IDLE_MAX: Duration = Duration::from_secs(5);

/// A body whose rest is read when it is dropped, within bounds: many clients write a whole request before
/// they read the response, and if the connection is closed before that they report a broken connection
/// instead of the response.
pub(super) struct DrainedBody {
    body: Body,
    progress: BodyProgress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyProgress {
    /// The client sends nothing before the body is read (`Expect: 100-continue`).
    Awaited,
    Coming,
    Ended,
}

impl DrainedBody {
    pub(super) fn new(body: Body, parts: &Parts) -> Self {
        let expected = parts.headers.get(EXPECT).filter(|_| parts.version == Version::HTTP_11);
        let waits = expected.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        // An HTTP/2 stream ends without its connection, and the client receives a reset code.
        let progress = if body.is_end_stream() || parts.version == Version::HTTP_2 {
            BodyProgress::Ended
        } else if waits {
            BodyProgress::Awaited
        } else {
            BodyProgress::Coming
        };
        Self { body, progress }
    }

    /// The rest does not arrive, or too slowly.
    fn give_up(&mut self) {
        self.progress = BodyProgress::Ended;
    }
}

impl HttpBody for DrainedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        self.progress = match (&frame, self.progress) {
            (Poll::Ready(None | Some(Err(_))), _) | (_, BodyProgress::Ended) => BodyProgress::Ended,
            (_, BodyProgress::Awaited | BodyProgress::Coming) => BodyProgress::Coming,
        };
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for DrainedBody {
    fn drop(&mut self) {
        if self.progress == BodyProgress::Coming
            && !self.body.is_end_stream()
            && self.body.size_hint().lower() <= DRAINED_BYTES_MAX
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let body = std::mem::take(&mut self.body);
            // A client that sends for longer sees the connection break.
            runtime.spawn(tokio::time::timeout(DRAINED_MAX, drain(body)));
        }
    }
}

/// Reads and forgets a body.
async fn drain(mut body: Body) {
    let mut read = 0;
    while read <= DRAINED_BYTES_MAX {
        let next = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx));
        let Ok(Some(Ok(frame))) = tokio::time::timeout(DRAIN_IDLE_MAX, next).await else { return };
        read += frame.data_ref().map_or(0, |data| data.len() as u64);
    }
}

impl BodyStatus {
    /// The error that replaces the handler's response.
    pub(super) fn error(&self, limits: BodyLimits) -> Option<ApiError> {
        match self.violation.load(Ordering::Acquire) {
            TOO_LARGE => Some(body_too_large(limits)),
            TOO_SLOW => Some(ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                "body_ms_max",
                format!("the body did not arrive within {} ms", limits.time_max.as_millis()),
            )),
            TOO_DEEP => Some(ApiError::bad_request(
                "json_depth_max",
                format!("the JSON nests deeper than {}", limits.json.map_or(0, |json| json.depth_max)),
            )),
            TOO_MANY_VALUES => {
                let max = limits.json.map_or(0, |json| json.values_max);
                Some(
                    ApiError::bad_request("json_values_max", format!("the JSON has more than {max} values"))
                        .with_extra("values_max", max)
                        .remedy("send less, or raise `json_values_max` of [server.limits]"),
                )
            }
            NOT_ADMITTED => self.refusal.lock().unwrap_or_else(PoisonError::into_inner).take(),
            _ => None,
        }
    }
}

/// 413 with the limit's name.
pub(super) fn body_too_large(limits: BodyLimits) -> ApiError {
    let BodyLimits { bytes_max, name, .. } = limits;
    let remedy = match name {
        "upload_bytes_max" => format!("send a smaller file, or raise `{name}` of [server.limits]"),
        _ => format!("raise `{name}` of [server.limits], or upload files first (POST /v1/files)"),
    };
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, name, format!("the body is larger than {bytes_max} bytes"))
        .with_extra("bytes_max", bytes_max)
        .remedy(remedy)
}

/// A body that breaks off where it goes over a bound.
pub(super) struct LimitedBody {
    body: DrainedBody,
    limits: BodyLimits,
    read: u64,
    deadline: Pin<Box<Sleep>>,
    json: JsonScanner,
    admission: Option<BodyAdmission>,
    status: Arc<BodyStatus>,
}

impl LimitedBody {
    pub(super) fn new(
        body: DrainedBody,
        limits: BodyLimits,
        admission: Option<BodyAdmission>,
    ) -> (Self, Arc<BodyStatus>) {
        let status = Arc::new(BodyStatus::default());
        let deadline = Box::pin(tokio::time::sleep(limits.time_max));
        let json = JsonScanner::default();
        (Self { body, limits, read: 0, deadline, json, admission, status: status.clone() }, status)
    }

    /// Waits for the admission of a body that turned out to be large. The timeout of the body begins
    /// afterwards.
    fn poll_admission(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ApiError>> {
        let awaited = self.admission.as_mut().and_then(|admission| admission.admitted.as_mut());
        let Some(awaited) = awaited.filter(|_| self.read > LARGE_BYTES) else {
            return Poll::Ready(Ok(()));
        };
        let admitted = std::task::ready!(awaited.as_mut().poll(cx));
        if let Some(admission) = &mut self.admission {
            admission.admitted = None;
        }
        let deadline = tokio::time::Instant::now() + self.limits.time_max;
        self.deadline.as_mut().reset(deadline);
        Poll::Ready(admitted)
    }

    fn fail(&self, why: u8) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.status.violation.store(why, Ordering::Release);
        Poll::Ready(Some(Err(axum::Error::new(std::io::Error::from(std::io::ErrorKind::InvalidData)))))
    }
}

impl HttpBody for LimitedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match self.poll_admission(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => {
                *self.status.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                return self.fail(NOT_ADMITTED);
            }
        }
        let frame = match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                return match self.deadline.as_mut().poll(cx) {
                    Poll::Ready(()) => {
                        self.body.give_up();
                        self.fail(TOO_SLOW)
                    }
                    Poll::Pending => Poll::Pending,
                };
            }
        };
        if let Some(Ok(data)) = frame.as_ref().map(|frame| frame.as_ref().map(|frame| frame.data_ref())) {
            let data = data.map(|data| data.as_ref()).unwrap_or_default();
            self.read += data.len() as u64;
            if self.read > self.limits.bytes_max {
                return self.fail(TOO_LARGE);
            }
            if let Some(json) = self.limits.json {
                if self.json.exceeds(data, json.depth_max) {
                    return self.fail(TOO_DEEP);
                }
                if self.json.values > json.values_max {
                    return self.fail(TOO_MANY_VALUES);
                }
            }
        }
        if frame.is_none()
            && let Some(BodyAdmission { memory, .. }) = &self.admission
        {
            memory.keep_of_body(self.read);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Admission of a body without a declared length, in case it turns out to be large.
pub(super) struct BodyAdmission {
    /// `None` once it has been admitted.
    pub(super) admitted: Option<BoxFuture<'static, Result<(), ApiError>>>,
    /// Memory for a body of the maximum length; the rest is released at its end.
    pub(super) memory: RequestMemory,
}
