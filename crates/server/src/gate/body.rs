//! Limits on a request's body while it is read: size, time, depth. Nothing is buffered here.

use crate::error::ApiError;
use axum::body::{Body, Bytes, HttpBody};
use http::header::{CONTENT_LENGTH, EXPECT};
use http::{HeaderMap, StatusCode};
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// Violation in the part of the body that was read. The handler that read it sees only that it broke off.
#[derive(Debug, Default)]
pub(super) struct BodyStatus(AtomicU8);

const TOO_LARGE: u8 = 1;
const TOO_SLOW: u8 = 2;
const TOO_DEEP: u8 = 3;

/// The bounds of one body.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyLimits {
    pub(super) bytes_max: u64,
    pub(super) time_max: Duration,
    /// Maximum nesting, if it is JSON.
    pub(super) depth_max: Option<u32>,
    /// Name of the size limit.
    pub(super) name: &'static str,
}

/// Number of bytes of an oversized body that are read and discarded, and the timeout for it: clients that are still
/// sending when the connection is closed see a broken connection instead of the reason.
const DRAINED_BYTES_MAX: u64 = 16 << 20;
const DRAINED_MAX: Duration = Duration::from_secs(5);

/// Reads and forgets the rest of a body, within bounds. One that says that it is larger than they are is not begun with, nor
/// one whose client waits to be told to send it.
pub(crate) async fn drain(mut body: Body, headers: &HeaderMap) {
    let discarding = async {
        let mut read = 0;
        while let Some(Ok(frame)) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            read += frame.data_ref().map_or(0, |data| data.len() as u64);
            if read > DRAINED_BYTES_MAX {
                break;
            }
        }
    };
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if headers.contains_key(EXPECT) || length.is_some_and(|length| length > 4 * DRAINED_BYTES_MAX) {
        return;
    }
    // It took too long: whoever sends it sees the connection break.
    let _ = tokio::time::timeout(DRAINED_MAX, discarding).await;
}

impl BodyStatus {
    /// The error to answer with in place of what the handler made of it.
    pub(super) fn error(&self, limits: BodyLimits) -> Option<ApiError> {
        match self.0.load(Ordering::Acquire) {
            TOO_LARGE => Some(body_too_large(limits)),
            TOO_SLOW => Some(ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                "body_ms_max",
                format!("the body did not arrive within {} ms", limits.time_max.as_millis()),
            )),
            TOO_DEEP => Some(ApiError::bad_request(
                "json_depth_max",
                format!("the JSON nests deeper than {}", limits.depth_max.unwrap_or_default()),
            )),
            _ => None,
        }
    }
}

/// 413 with the limit's name.
pub(super) fn body_too_large(limits: BodyLimits) -> ApiError {
    let BodyLimits { bytes_max, name, .. } = limits;
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, name, format!("the body is larger than {bytes_max} bytes"))
        .with_extra("bytes_max", bytes_max)
        .remedy(format!("raise `{name}` of [server.limits], or upload files first (POST /v1/files)"))
}

/// A body that breaks off where it goes over a bound.
pub(super) struct LimitedBody {
    body: Body,
    limits: BodyLimits,
    read: u64,
    deadline: Pin<Box<Sleep>>,
    depth: JsonDepth,
    status: Arc<BodyStatus>,
}

impl LimitedBody {
    pub(super) fn new(body: Body, limits: BodyLimits) -> (Self, Arc<BodyStatus>) {
        let status = Arc::new(BodyStatus::default());
        let deadline = Box::pin(tokio::time::sleep(limits.time_max));
        let depth = JsonDepth::default();
        (Self { body, limits, read: 0, deadline, depth, status: status.clone() }, status)
    }

    fn is_too_large(&self) -> bool {
        self.read > self.limits.bytes_max
    }

    fn fail(&self, why: u8) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.status.0.store(why, Ordering::Release);
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
        loop {
            let frame = match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(frame) => frame,
                Poll::Pending => {
                    return match self.deadline.as_mut().poll(cx) {
                        Poll::Ready(()) => self.fail(if self.is_too_large() { TOO_LARGE } else { TOO_SLOW }),
                        Poll::Pending => Poll::Pending,
                    };
                }
            };
            let Some(Ok(data)) = frame.as_ref().map(|frame| frame.as_ref().map(|frame| frame.data_ref()))
            else {
                return if self.is_too_large() { self.fail(TOO_LARGE) } else { Poll::Ready(frame) };
            };
            let data = data.map(|data| data.as_ref()).unwrap_or_default();
            let had_exceeded = self.is_too_large();
            self.read += data.len() as u64;
            if self.is_too_large() {
                if !had_exceeded {
                    self.deadline.as_mut().reset(Instant::now() + DRAINED_MAX);
                }
                if self.read > self.limits.bytes_max.saturating_add(DRAINED_BYTES_MAX) {
                    return self.fail(TOO_LARGE);
                }
                continue;
            }
            if self.limits.depth_max.is_some_and(|max| self.depth.exceeds(data, max)) {
                return self.fail(TOO_DEEP);
            }
            return Poll::Ready(frame);
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Nesting depth of a JSON text at the position that was reached. Invalid JSON is left to the parser.
#[derive(Clone, Copy, Debug, Default)]
struct JsonDepth {
    depth: u32,
    state: JsonScanState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum JsonScanState {
    #[default]
    Outside,
    InString,
    AfterBackslash,
}

impl JsonDepth {
    /// Reads on, and says whether it has gone over the bound.
    fn exceeds(&mut self, bytes: &[u8], max: u32) -> bool {
        for byte in bytes {
            self.state = match (self.state, byte) {
                (JsonScanState::Outside, b'{' | b'[') => {
                    self.depth += 1;
                    if self.depth > max {
                        return true;
                    }
                    JsonScanState::Outside
                }
                (JsonScanState::Outside, b'}' | b']') => {
                    self.depth = self.depth.saturating_sub(1);
                    JsonScanState::Outside
                }
                (JsonScanState::Outside, b'"') => JsonScanState::InString,
                (JsonScanState::Outside, _) => JsonScanState::Outside,
                (JsonScanState::InString, b'"') => JsonScanState::Outside,
                (JsonScanState::InString, b'\\') => JsonScanState::AfterBackslash,
                (JsonScanState::InString | JsonScanState::AfterBackslash, _) => JsonScanState::InString,
            };
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, max: u32, over: bool) {
        for cut in 0..=text.len() {
            let (a, b) = text.as_bytes().split_at(cut);
            let mut depth = JsonDepth::default();
            assert_eq!(depth.exceeds(a, max) || depth.exceeds(b, max), over, "{text} cut at {cut}");
        }
    }

    #[test]
    fn depth_is_counted_outside_of_texts_for_every_cut() {
        check(r#"{"a":[{"b":[]}]}"#, 4, false);
        check(r#"{"a":[{"b":[]}]}"#, 3, true);
        check(r#"["[[[[", "\"[[[[", "\\", []]"#, 2, false);
        check("[][][][]", 1, false);
        check("]]]][[", 1, true);
        check(&"[".repeat(64), 64, false);
        check(&"[".repeat(65), 64, true);
    }
}
