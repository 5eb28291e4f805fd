//! Ends a connection or a stream from outside, at once: a key was revoked, a viewer is too far behind.

use futures_util::task::AtomicWaker;
use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

/// A switch that goes one way. Whoever reads or writes asks it first, which costs one load.
#[derive(Debug, Default)]
pub struct Cut {
    is_cut: AtomicBool,
    reader: AtomicWaker,
    writer: AtomicWaker,
    is_over: AtomicBool,
    speaker: AtomicWaker,
    is_watched: AtomicBool,
    taken: AtomicU64,
    told: OnceLock<Tell>,
}

/// What is done once for a viewer that is cut because it takes nothing.
#[derive(Clone)]
pub struct Tell(Arc<dyn Fn() + Send + Sync>);

impl Tell {
    /// This is done, wherever it is noticed, so it must not wait for anything.
    pub fn new(tell: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }
}

impl fmt::Debug for Tell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tell")
    }
}

impl Cut {
    /// Ends it. A second time changes nothing.
    pub fn now(&self) {
        self.is_cut.store(true, Ordering::Release);
        self.reader.wake();
        self.writer.wake();
    }

    /// Ends it because its viewer takes nothing. Told once, whoever notices it first.
    pub fn too_slow(&self) {
        let told = self.told.get().filter(|_| !self.is_cut.swap(true, Ordering::AcqRel));
        if let Some(Tell(tell)) = told {
            tell();
        }
        self.now();
    }

    /// From now on until the next request somebody views a turn here: a client that takes nothing is not waited for, also
    /// when everything has been written and only the connection's own buffers are still full.
    pub fn watch_writing(&self, tell: &Tell) {
        self.told.get_or_init(|| tell.clone());
        self.is_watched.store(true, Ordering::Relaxed);
    }

    /// The connection has taken so many bytes more.
    pub(crate) fn took(&self, bytes: usize) {
        self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The bytes that the connection has taken so far. Always 0 where several answers share one (HTTP/2).
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Another request begins on the connection.
    pub(crate) fn begin(&self) {
        self.is_watched.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed)
    }

    /// Asks whoever serves the connection to say goodbye. Who wants to be sure ends it a moment later.
    pub fn soon(&self) {
        self.is_over.store(true, Ordering::Release);
        self.speaker.wake();
    }

    /// Waits until a goodbye is due. One task may wait so; dropping the future loses nothing.
    pub async fn due(&self) {
        poll_fn(|cx| poll(&self.is_over, &self.speaker, cx)).await;
    }

    /// Whether it was ended.
    pub fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Acquire)
    }

    /// Ready once it is cut. One task may wait so.
    pub(crate) fn poll_reading(&self, cx: &mut Context<'_>) -> Poll<()> {
        poll(&self.is_cut, &self.reader, cx)
    }

    /// As [`Cut::poll_reading`], for the other direction.
    pub(crate) fn poll_writing(&self, cx: &mut Context<'_>) -> Poll<()> {
        poll(&self.is_cut, &self.writer, cx)
    }
}

fn poll(is_set: &AtomicBool, waker: &AtomicWaker, cx: &mut Context<'_>) -> Poll<()> {
    if is_set.load(Ordering::Acquire) {
        return Poll::Ready(());
    }
    waker.register(cx.waker());
    // It may have been set between the two.
    if is_set.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
}
