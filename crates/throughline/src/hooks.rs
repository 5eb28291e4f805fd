//! Who wants to know what comes of a turn.

use std::fmt;
use std::sync::Arc;
use throughline_engine::{Millis, Remembered, TurnId, TurnStatus};
use throughline_wire::{Message, Usage};

/// Who wants to know what comes of a turn, beside whoever reads its events.
pub struct TurnHooks {
    /// Called once, when the log holds the last event and before anyone who follows the turn is told that it is over. Must not
    /// wait: what takes long belongs into a task of its own.
    pub at_end: Box<dyn FnOnce(TurnEnded) + Send>,
    /// Gets each answer that holds for the conversation from now on, once the log has it. May block its thread; the turn
    /// does not end before it has returned.
    pub kept: Arc<dyn Fn(Remembered) + Send + Sync>,
}

/// What a turn has come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnEnded {
    /// Which.
    pub turn_id: TurnId,
    /// How it ended. `None` = not here: another process has taken it over, or its log was lost. Then nothing else of this
    /// is known either, and nothing of it should be kept.
    pub status: Option<TurnStatus>,
    /// What it adds to the history of its conversation.
    pub adds: Vec<Message>,
    /// The visible text of the model, steps joined by an empty line.
    pub text: String,
    /// Tokens of all steps.
    pub usage: Usage,
    /// From its beginning to the first content, in milliseconds.
    pub first_content_ms: Option<u64>,
    /// How long a model wrote: thinking, text and arguments, in milliseconds.
    pub writing_ms: u64,
    /// When, in milliseconds since 1970.
    pub ended_at: Millis,
}

impl TurnHooks {
    /// With somebody who is told the end.
    #[must_use]
    pub fn at_end(mut self, at_end: impl FnOnce(TurnEnded) + Send + 'static) -> Self {
        self.at_end = Box::new(at_end);
        self
    }

    /// With somebody who keeps what holds for the conversation.
    #[must_use]
    pub fn kept(mut self, kept: impl Fn(Remembered) + Send + Sync + 'static) -> Self {
        self.kept = Arc::new(kept);
        self
    }
}

impl Default for TurnHooks {
    /// Nobody.
    fn default() -> Self {
        Self { at_end: Box::new(|_| ()), kept: Arc::new(|_| ()) }
    }
}

impl fmt::Debug for TurnHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TurnHooks")
    }
}
