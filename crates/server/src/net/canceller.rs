//! Closes a connection or a stream from outside, immediately: a key was revoked, a viewer lags too far.

use futures_util::task::AtomicWaker;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// A one-way switch. Readers and writers check it first, which costs one load.
#[derive(Debug)]
pub(crate) struct ConnectionCanceller {
    is_cancelled: AtomicBool,
    reader: AtomicWaker,
    writer: AtomicWaker,
    is_closing: AtomicBool,
    close_waker: AtomicWaker,
    is_watched: AtomicBool,
    began: Instant,
    /// Since when a write waits for the client, in milliseconds since `began` plus one; 0 = none does.
    write_pending_since: AtomicU64,
    bytes_written: AtomicU64,
}

impl Default for ConnectionCanceller {
    fn default() -> Self {
        Self {
            is_cancelled: AtomicBool::default(),
            reader: AtomicWaker::default(),
            writer: AtomicWaker::default(),
            is_closing: AtomicBool::default(),
            close_waker: AtomicWaker::default(),
            is_watched: AtomicBool::default(),
            began: Instant::now(),
            write_pending_since: AtomicU64::default(),
            bytes_written: AtomicU64::default(),
        }
    }
}

impl ConnectionCanceller {
    /// Ends it. False if it had been ended before.
    pub(crate) fn cancel(&self) -> bool {
        let was_cancelled = self.is_cancelled.swap(true, Ordering::AcqRel);
        self.reader.wake();
        self.writer.wake();
        !was_cancelled
    }

    /// Marks the connection as read by a viewer until the next request: a client that reads nothing is then
    /// disconnected, even when everything has been written and only the connection's buffers are full.
    pub(crate) fn watch_writes(&self) {
        self.is_watched.store(true, Ordering::Relaxed);
    }

    /// A write waits for the client.
    pub(crate) fn mark_write_pending(&self) {
        if self.write_pending_since.load(Ordering::Relaxed) == 0 {
            let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
            self.write_pending_since.store(now + 1, Ordering::Relaxed);
        }
    }

    /// Marks that no write waits for the client.
    pub(crate) fn mark_written(&self) {
        self.write_pending_since.store(0, Ordering::Relaxed);
    }

    /// Time for which a write has been waiting for the client.
    pub(crate) fn write_pending_for(&self) -> Option<Duration> {
        let since = self.write_pending_since.load(Ordering::Relaxed).checked_sub(1)?;
        Some(self.began.elapsed().saturating_sub(Duration::from_millis(since)))
    }

    /// Counts bytes that the connection has accepted.
    pub(crate) fn add_bytes_written(&self, bytes: usize) {
        self.bytes_written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes that the connection has accepted so far. Always 0 if several responses share it (HTTP/2).
    pub(crate) fn bytes_written(&self) -> u64 {
        self.bytes_written.load(Ordering::Relaxed)
    }

    /// Begins another request on the connection. It stays watched until the previous response is written: a
    /// client that sends requests without reading is disconnected, too.
    pub(crate) fn begin_request(&self) {
        if self.write_pending_for().is_none() {
            self.is_watched.store(false, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed)
    }

    /// Requests a clean close from the task that serves the connection. A caller that must be sure cancels it
    /// a moment later.
    pub(crate) fn request_close(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.close_waker.wake();
    }

    /// Waits until a goodbye is due. One task may wait so; dropping the future loses nothing.
    pub(crate) async fn close_requested(&self) {
        poll_fn(|cx| poll_flag(&self.is_closing, &self.close_waker, cx)).await;
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    /// Ready once it is cut. One task may wait so.
    pub(crate) fn poll_read_cancelled(&self, cx: &mut Context<'_>) -> Poll<()> {
        poll_flag(&self.is_cancelled, &self.reader, cx)
    }

    /// As [`ConnectionCanceller::poll_read_cancelled`], for the writing half.
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
