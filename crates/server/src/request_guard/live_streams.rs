//! The open streams and sockets of each key, so that they can be closed when the key becomes invalid.

use crate::net::ConnectionCanceller;
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

/// Timeout for a WebSocket's close frame before its connection is reset.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// All open streams, by key.
#[derive(Default)]
pub(super) struct LiveStreams {
    by_key: Mutex<HashMap<String, Vec<LiveStream>>>,
}

/// An open stream: how it is closed, and the handle to close it.
type LiveStream = (CloseMode, Weak<ConnectionCanceller>);

/// Manner in which a stream closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseMode {
    /// A response body, which cannot report a reason: it is aborted.
    Abort,
    /// A WebSocket, which is closed with a code.
    CloseFrame,
}

impl LiveStreams {
    /// Adds a stream. It is removed when its canceller is dropped.
    pub(super) fn add(&self, key_id: &str, mode: CloseMode, canceller: &Arc<ConnectionCanceller>) {
        let mut by_key = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        let streams = by_key.entry(key_id.to_owned()).or_default();
        // Those that have ended are taken out before the list grows.
        if streams.len() == streams.capacity() {
            streams.retain(|(_, canceller)| canceller.strong_count() > 0);
        }
        streams.push((mode, Arc::downgrade(canceller)));
    }

    /// Ends all of a key. Needs a runtime.
    pub(super) fn close_all(&self, key_id: &str) {
        let streams = self.by_key.lock().unwrap_or_else(PoisonError::into_inner).remove(key_id);
        for (mode, canceller) in streams.into_iter().flatten() {
            let Some(canceller) = canceller.upgrade() else { continue };
            if mode == CloseMode::Abort {
                canceller.cancel();
                continue;
            }
            canceller.request_close();
            // In a task: the stream may have no reader, or a client that does not read.
            tokio::spawn(async move {
                tokio::time::sleep(CLOSE_TIMEOUT).await;
                canceller.cancel();
            });
        }
    }

    /// The keys that have any.
    pub(super) fn keys(&self) -> Vec<String> {
        let mut by_key = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        by_key.retain(|_, streams| {
            streams.retain(|(_, canceller)| canceller.strong_count() > 0);
            !streams.is_empty()
        });
        by_key.keys().cloned().collect()
    }
}

/// The body of a stream that ends when it is cut: without its last chunk, so that no client takes it for complete.
pub(super) struct RevocableBody {
    body: Body,
    canceller: Arc<ConnectionCanceller>,
}

impl RevocableBody {
    pub(super) fn new(body: Body, canceller: Arc<ConnectionCanceller>) -> Self {
        Self { body, canceller }
    }
}

impl HttpBody for RevocableBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.canceller.is_cancelled() {
            return Poll::Ready(Some(Err(axum::Error::new(KeyRevoked))));
        }
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Pending if self.canceller.poll_read_cancelled(cx).is_ready() => {
                Poll::Ready(Some(Err(axum::Error::new(KeyRevoked))))
            }
            polled => polled,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the key of this stream is no longer valid")]
struct KeyRevoked;
