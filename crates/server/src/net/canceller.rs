//! Ends a connection or a stream from outside, at once: a key was revoked, a viewer is too far behind.

use futures_util::task::AtomicWaker;
use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

/// A switch that goes one way. Whoever reads or writes asks it first, which costs one load.
#[derive(Debug, Default)]
pub struct ConnectionCanceller {
    is_cancelled: AtomicBool,
    reader: AtomicWaker,
    writer: AtomicWaker,
    is_closing: AtomicBool,
    close_waker: AtomicWaker,
    is_watched: AtomicBool,
    bytes_written: AtomicU64,
    on_timeout: OnceLock<TimeoutCallback>,
}

/// Callback that runs once for a viewer that is disconnected because it stopped reading.
#[derive(Clone)]
pub struct TimeoutCallback(Arc<dyn Fn() + Send + Sync>);

impl TimeoutCallback {
    /// This is done, wherever it is noticed, so it must not wait for anything.
    pub fn new(callback: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(callback))
    }
}

impl fmt::Debug for TimeoutCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tell")
    }
}

impl ConnectionCanceller {
    /// Ends it. A second time changes nothing.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
        self.reader.wake();
        self.writer.wake();
    }

    /// Ends it because its viewer takes nothing. Told once, whoever notices it first.
    pub fn cancel_on_timeout(&self) {
        let on_timeout = self.on_timeout.get().filter(|_| !self.is_cancelled.swap(true, Ordering::AcqRel));
        if let Some(TimeoutCallback(callback)) = on_timeout {
            callback();
        }
        self.cancel();
    }

    /// From now on until the next request somebody views a turn here: a client that takes nothing is not waited for, also
    /// when everything has been written and only the connection's own buffers are still full.
    pub fn watch_writes(&self, callback: &TimeoutCallback) {
        self.on_timeout.get_or_init(|| callback.clone());
        self.is_watched.store(true, Ordering::Relaxed);
    }

    /// The connection has taken so many bytes more.
    pub(crate) fn add_bytes_written(&self, bytes: usize) {
        self.bytes_written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The bytes that the connection has taken so far. Always 0 where several answers share one (HTTP/2).
    pub(crate) fn bytes_written(&self) -> u64 {
        self.bytes_written.load(Ordering::Relaxed)
    }

    /// Another request begins on the connection.
    pub(crate) fn begin_request(&self) {
        self.is_watched.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed)
    }

    /// Asks whoever serves the connection to say goodbye. Who wants to be sure ends it a moment later.
    pub fn request_close(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.close_waker.wake();
    }

    /// Waits until a goodbye is due. One task may wait so; dropping the future loses nothing.
    pub async fn close_requested(&self) {
        poll_fn(|cx| poll_flag(&self.is_closing, &self.close_waker, cx)).await;
    }

    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    /// Ready once it is cut. One task may wait so.
    pub(crate) fn poll_read_cancelled(&self, cx: &mut Context<'_>) -> Poll<()> {
        poll_flag(&self.is_cancelled, &self.reader, cx)
    }

    /// As [`ConnectionCanceller::poll_read_cancelled`], for the other direction.
    pub(crate) fn poll_write_cancelled(&self, cx: &mut Context<'_>) -> Poll<()> {
        poll_flag(&self.is_cancelled, &self.writer, cx)
    }
}

fn poll_flag(is_set: &AtomicBool, waker: &AtomicWaker, cx: &mut Context<'_>) -> Poll<()> {
    if is_set.load(Ordering::Acquire) {
        return Poll::Ready(());
    }
    waker.register(cx.waker());
    // It may have been set between the two.
    if is_set.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
}
