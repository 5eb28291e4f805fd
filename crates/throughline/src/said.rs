//! What the user says while a turn runs, as its sender keeps it. R: T14

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use throughline_engine::{Event, EventKind, QueuedMessage, UserMessageId};
use throughline_wire::UserPart;

/// Messages that were sent and that the turn has not taken in, oldest first. Kept outside the turn's task: whatever
/// becomes of that, what a person has written is not lost.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mailbox(Arc<Mutex<Vec<QueuedMessage>>>);

/// What became of a message sent to a running turn.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a message that is not queued is not heard"]
pub enum Said {
    /// It waits for its time.
    Queued(UserMessageId),
    /// Too many wait already (`messages_queued_max`).
    Full,
    /// The turn is over: say it to the next one.
    TurnIsOver,
}

/// What became of the wish to take a message back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "it may be too late"]
pub enum TakenBack {
    /// It will not be taken in. These are its parts.
    Yes(Vec<UserPart>),
    /// It was taken in, or was never sent.
    TooLate,
}

impl Mailbox {
    fn messages(&self) -> MutexGuard<'_, Vec<QueuedMessage>> {
        // Every change is one call on the list.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a message, unless `max` wait already. One of the same id is the same message.
    pub(crate) fn keep(&self, message: QueuedMessage, max: usize) -> Kept {
        let mut messages = self.messages();
        if messages.iter().any(|kept| kept.id == message.id) {
            return Kept::Yes;
        }
        if messages.len() >= max {
            return Kept::Full;
        }
        messages.push(message);
        Kept::Yes
    }

    pub(crate) fn remove(&self, id: &UserMessageId) -> Option<QueuedMessage> {
        let mut messages = self.messages();
        let at = messages.iter().position(|message| message.id == *id)?;
        Some(messages.remove(at))
    }

    pub(crate) fn waiting(&self) -> Vec<QueuedMessage> {
        self.messages().clone()
    }

    pub(crate) fn take(&self) -> Vec<QueuedMessage> {
        std::mem::take(&mut self.messages())
    }

    /// Lets go of what the log says was taken in.
    pub(crate) fn look_at(&self, events: &[Event]) {
        for event in events {
            if let EventKind::UserMessage { id: Some(id), .. } = &event.kind {
                self.remove(id);
            }
        }
    }
}

/// Whether there was room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Yes,
    Full,
}
