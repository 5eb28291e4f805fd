//! Deferred replies to the senders of inputs, sent when the log has the result.

use std::collections::VecDeque;
use throughline_engine::EventSeq;
use tokio::sync::oneshot;

/// Sends a reply; dropping it shows the sender that the turn is over.
type DeferredReply = Box<dyn FnOnce() + Send>;

/// Replies that wait for the log, oldest first.
#[derive(Default)]
pub(super) struct LogReceipts {
    pending: VecDeque<(EventSeq, DeferredReply)>,
    logged_seq: EventSeq,
}

impl LogReceipts {
    /// Answers when the log has everything up to `seq`.
    pub(super) fn reply_when_logged<T: Send + 'static>(
        &mut self,
        seq: EventSeq,
        reply: oneshot::Sender<T>,
        answer: T,
    ) {
        if seq <= self.logged_seq {
            return self.reply_now(reply, answer);
        }
        let send = move || {
            // Who does not wait any more reads it in the events.
            let _ = reply.send(answer);
        };
        self.pending.push_back((seq, Box::new(send)));
    }

    /// Replies immediately: there is nothing for the log to record.
    pub(super) fn reply_now<T>(&self, reply: oneshot::Sender<T>, answer: T) {
        let _ = reply.send(answer);
    }

    /// Marks everything up to `seq` as being in the log.
    pub(super) fn advance(&mut self, seq: EventSeq) {
        self.logged_seq = self.logged_seq.max(seq);
        while self.pending.front().is_some_and(|(at, _)| *at <= self.logged_seq)
            && let Some((_, reply)) = self.pending.pop_front()
        {
            reply();
        }
    }
}
