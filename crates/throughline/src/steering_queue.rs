//! What the user says while a turn runs, as its sender keeps it. R: T14

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use throughline_engine::{Event, EventKind, QueuedMessage, UserMessageId};
use throughline_wire::UserPart;

/// Messages that were sent and that the turn has not taken in, oldest first. Kept outside the turn's task: whatever
/// becomes of that, what a person has written is not lost.
#[derive(Clone, Debug, Default)]
pub(crate) struct SteeringQueue(Arc<Mutex<Vec<QueuedMessage>>>);

/// What became of a message sent to a running turn.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a message that is not queued is not heard"]
pub enum SendResult {
    /// It waits for its time.
    Queued(UserMessageId),
    /// Too many wait already (`messages_queued_max`).
    QueueFull,
    /// The turn is over: say it to the next one.
    TurnEnded,
}

/// What became of the wish to take a message back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "it may be too late"]
pub enum RetractResult {
    /// It will not be taken in. These are its parts.
    Retracted(Vec<UserPart>),
    /// It was taken in, or was never sent.
    TooLate,
}

impl SteeringQueue {
    fn lock(&self) -> MutexGuard<'_, Vec<QueuedMessage>> {
        // Every change is one call on the list.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a message, unless `max` wait already. One of the same id is the same message.
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

    /// Lets go of what the log says was taken in.
    pub(crate) fn observe(&self, events: &[Event]) {
        for event in events {
            if let EventKind::UserMessage { id: Some(id), .. } = &event.kind {
                self.remove(id);
            }
        }
    }
}

/// Whether there was room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnqueueResult {
    Queued,
    Full,
}
