//! Ends a connection or a stream from outside, at once: a key was revoked, a viewer is too far behind.

use futures_util::task::AtomicWaker;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

/// A switch that goes one way. Whoever reads or writes asks it first, which costs one load.
#[derive(Debug, Default)]
pub struct Cut {
    is_cut: AtomicBool,
    reader: AtomicWaker,
    writer: AtomicWaker,
}

impl Cut {
    /// Ends it. A second time changes nothing.
    pub fn now(&self) {
        self.is_cut.store(true, Ordering::Release);
        self.reader.wake();
        self.writer.wake();
    }

    /// Whether it was ended.
    pub fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Acquire)
    }

    /// Ready once it is cut. One task may wait so.
    pub(crate) fn poll_reading(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll(&self.reader, cx)
    }

    /// As [`Cut::poll_reading`], for the other direction.
    pub(crate) fn poll_writing(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll(&self.writer, cx)
    }

    fn poll(&self, waker: &AtomicWaker, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_cut() {
            return Poll::Ready(());
        }
        waker.register(cx.waker());
        // It may have been cut between the two.
        if self.is_cut() { Poll::Ready(()) } else { Poll::Pending }
    }
}
