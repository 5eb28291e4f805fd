//! Answers that whoever gave an input waits for, sent when the log has what came of it. R: S2

use std::collections::VecDeque;
use throughline_engine::Seq;
use tokio::sync::oneshot;

/// Sends an answer; who waits sees by its being dropped that the turn is gone.
type Reply = Box<dyn FnOnce() + Send>;

/// Replies that wait for the log, oldest first.
#[derive(Default)]
pub(super) struct Receipts {
    waiting: VecDeque<(Seq, Reply)>,
    logged: Seq,
}

impl Receipts {
    /// Answers when the log has everything up to `seq`.
    pub(super) fn when_logged<T: Send + 'static>(&mut self, seq: Seq, reply: oneshot::Sender<T>, answer: T) {
        if seq <= self.logged {
            return self.now(reply, answer);
        }
        let send = move || {
            // Who does not wait any more reads it in the events.
            let _ = reply.send(answer);
        };
        self.waiting.push_back((seq, Box::new(send)));
    }

    /// Answers at once: nothing came of it that the log would have to hold.
    pub(super) fn now<T>(&self, reply: oneshot::Sender<T>, answer: T) {
        let _ = reply.send(answer);
    }

    /// The log has everything up to `seq`.
    pub(super) fn logged(&mut self, seq: Seq) {
        self.logged = self.logged.max(seq);
        while self.waiting.front().is_some_and(|(at, _)| *at <= self.logged)
            && let Some((_, reply)) = self.waiting.pop_front()
        {
            reply();
        }
    }
}
