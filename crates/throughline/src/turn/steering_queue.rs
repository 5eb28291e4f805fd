//! Messages sent while a turn runs, as the sender stores them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use throughline_engine::{Event, EventKind, QueuedMessage, UserMessageId};

/// Messages that were sent and that the turn has not read, oldest first. Stored outside the turn's task, so that they
/// survive it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SteeringQueue(Arc<Mutex<Vec<QueuedMessage>>>);

impl SteeringQueue {
    fn lock(&self) -> MutexGuard<'_, Vec<QueuedMessage>> {
        // Every change is one call on the list.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message, unless `max` are queued already. One of the same id is the same message.
    pub(crate) fn enqueue(&self, message: QueuedMessage, max: usize) -> EnqueueResult {
        let mut messages = self.lock();
        if messages.iter().any(|queued| queued.id == message.id) {
            return EnqueueResult::Queued;
        }
        if messages.len() >= max {
            return EnqueueResult::Full;
        }
        messages.push(message);
        EnqueueResult::Queued
    }

    pub(crate) fn remove(&self, id: &UserMessageId) -> Option<QueuedMessage> {
        let mut messages = self.lock();
        let at = messages.iter().position(|message| message.id == *id)?;
        Some(messages.remove(at))
    }

    pub(crate) fn queued(&self) -> Vec<QueuedMessage> {
        self.lock().clone()
    }

    pub(crate) fn take_all(&self) -> Vec<QueuedMessage> {
        std::mem::take(&mut self.lock())
    }

    /// Removes messages that the turn has read according to the log.
    pub(crate) fn observe(&self, events: &[Event]) {
        for event in events {
            if let EventKind::UserMessage { id: Some(id), .. } = &event.kind {
                self.remove(id);
            }
        }
    }
}

/// Result of adding a message to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnqueueResult {
    Queued,
    Full,
}
