//! The streams and sockets of each key that are open now, so that they can be ended when the key is no longer worth anything.

use crate::net::Cut;
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

/// How long a WebSocket may take to say why it ends, before it is cut.
const GOODBYE: Duration = Duration::from_millis(500);

/// All of them, by key.
#[derive(Default)]
pub(super) struct Live {
    of_keys: Mutex<HashMap<String, Vec<Living>>>,
}

/// One of them: how it ends, and by what.
type Living = (Ends, Weak<Cut>);

/// How something ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// A body, which can say nothing: it breaks off.
    AtOnce,
    /// A WebSocket, which says a code.
    Saying,
}

impl Live {
    /// Adds what ends one of them. It is forgotten when nobody holds it any more.
    pub(super) fn add(&self, key_id: &str, ends: Ends, cut: &Arc<Cut>) {
        let mut of_keys = self.of_keys.lock().unwrap_or_else(PoisonError::into_inner);
        let cuts = of_keys.entry(key_id.to_owned()).or_default();
        // Those that have ended are taken out before the list grows.
        if cuts.len() == cuts.capacity() {
            cuts.retain(|(_, cut)| cut.strong_count() > 0);
        }
        cuts.push((ends, Arc::downgrade(cut)));
    }

    /// Ends all of a key. Needs a runtime.
    pub(super) fn end(&self, key_id: &str) {
        let cuts = self.of_keys.lock().unwrap_or_else(PoisonError::into_inner).remove(key_id);
        for (ends, cut) in cuts.into_iter().flatten() {
            let Some(cut) = cut.upgrade() else { continue };
            if ends == Ends::AtOnce {
                cut.now();
                continue;
            }
            cut.soon();
            // Also if nobody listens, or its client takes nothing.
            tokio::spawn(async move {
                tokio::time::sleep(GOODBYE).await;
                cut.now();
            });
        }
    }

    /// The keys that have any.
    pub(super) fn keys(&self) -> Vec<String> {
        let mut of_keys = self.of_keys.lock().unwrap_or_else(PoisonError::into_inner);
        of_keys.retain(|_, cuts| {
            cuts.retain(|(_, cut)| cut.strong_count() > 0);
            !cuts.is_empty()
        });
        of_keys.keys().cloned().collect()
    }
}

/// The body of a stream that ends when it is cut: without its last chunk, so that no client takes it for complete.
pub(super) struct Stoppable {
    body: Body,
    cut: Arc<Cut>,
}

impl Stoppable {
    pub(super) fn new(body: Body, cut: Arc<Cut>) -> Self {
        Self { body, cut }
    }
}

impl HttpBody for Stoppable {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.cut.is_cut() {
            return Poll::Ready(Some(Err(axum::Error::new(Revoked))));
        }
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Pending if self.cut.poll_reading(cx).is_ready() => {
                Poll::Ready(Some(Err(axum::Error::new(Revoked))))
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
#[error("the key of this stream is no longer worth anything")]
struct Revoked;
