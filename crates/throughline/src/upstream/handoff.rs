//! Transfer of items from a model call to its turn.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use throughline_engine::UpstreamFailure;
use throughline_wire::StepEvent;

/// An item of a model call, in order. `End` or `Failed` is the last.
#[derive(Debug)]
pub(crate) enum ModelItem {
    /// The events of one piece of the body; at least one.
    Events(Vec<StepEvent<'static>>),
    /// The call failed outside the decoder.
    Failed(UpstreamFailure),
}

/// Room for one piece of a reply. Producer and consumer are parts of one task, the consumer first: neither has to
/// wake the other, and a token costs one turn of the scheduler less than over a channel.
#[derive(Clone, Default)]
pub(crate) struct ModelHandoff(Arc<Mutex<Option<ModelItem>>>);

impl ModelHandoff {
    /// Puts a piece, once the one before has been taken.
    pub(crate) async fn put(&self, item: ModelItem) {
        // The receiver polls this again.
        poll_fn(|_| if self.slot().is_none() { Poll::Ready(()) } else { Poll::Pending }).await;
        *self.slot() = Some(item);
    }

    /// The next piece that a call puts here, which is polled for it; `None` once it has ended, and then it is dropped.
    /// Dropping the future loses nothing.
    pub(crate) async fn next_from(&self, call: &mut Option<BoxFuture<'_, ()>>) -> Option<ModelItem> {
        poll_fn(|cx| {
            if let Some(item) = self.take() {
                return Poll::Ready(Some(item));
            }
            let Some(running) = call else { return Poll::Ready(None) };
            if running.poll_unpin(cx).is_ready() {
                *call = None;
            }
            match (self.take(), &call) {
                (Some(item), _) => Poll::Ready(Some(item)),
                (None, Some(_)) => Poll::Pending,
                (None, None) => Poll::Ready(None),
            }
        })
        .await
    }

    fn take(&self) -> Option<ModelItem> {
        self.slot().take()
    }

    fn slot(&self) -> MutexGuard<'_, Option<ModelItem>> {
        // Every change is one value.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ModelHandoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ModelHandoff")
    }
}
