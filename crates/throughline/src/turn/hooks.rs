//! Callbacks for the end of a turn.

use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::Arc;
use throughline_engine::{RememberedDecision, TurnId, TurnStatus, UnixMillis};
use throughline_wire::{Message, Usage};

/// Callbacks of a turn, in addition to its events.
pub struct TurnHooks {
    /// Called once, when the log holds the last event and before any viewer sees the end of the turn. Must
    /// not block: move slow work to a separate task.
    pub on_end: Box<dyn FnOnce(TurnResult) + Send>,
    /// Receives each answer that applies to the conversation from now on, once the log has it. May block its thread;
    /// the turn does not end before it has returned.
    pub on_remembered: Arc<dyn Fn(RememberedDecision) + Send + Sync>,
    pub(crate) record_end: Option<RecordEnd>,
}

type RecordEnd = Box<dyn FnOnce(TurnResult) -> BoxFuture<'static, ()> + Send>;

/// Result of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnResult {
    /// Id of the turn.
    pub turn_id: TurnId,
    /// Final status. `None` = unknown here, because another process has taken the turn over or its log was lost. Then
    /// the other fields are unknown as well and must not be stored.
    pub status: Option<TurnStatus>,
    /// Messages that it adds to the history of its conversation.
    pub added_messages: Vec<Message>,
    /// The visible text of the model, steps joined by an empty line.
    pub text: String,
    /// Tokens of all steps.
    pub usage: Usage,
    /// Time from the beginning to the first content, in milliseconds.
    pub first_content_ms: Option<u64>,
    /// Time that models spent writing thinking, text and arguments, in milliseconds.
    pub writing_ms: u64,
    /// Time of the end, in milliseconds since 1970.
    pub ended_at: UnixMillis,
}

impl TurnHooks {
    /// Hooks with a callback for the end.
    #[must_use]
    pub fn on_end(mut self, on_end: impl FnOnce(TurnResult) + Send + 'static) -> Self {
        self.on_end = Box::new(on_end);
        self
    }

    /// Hooks that record the end: the future is awaited when the log holds the last event, before `on_end` and before any
    /// viewer sees the end of the turn.
    #[must_use]
    pub fn record_end<F>(mut self, record: impl FnOnce(TurnResult) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.record_end = Some(Box::new(move |result| Box::pin(record(result))));
        self
    }

    /// Hooks with a callback for decisions that apply to the conversation.
    #[must_use]
    pub fn on_remembered(
        mut self,
        on_remembered: impl Fn(RememberedDecision) + Send + Sync + 'static,
    ) -> Self {
        self.on_remembered = Arc::new(on_remembered);
        self
    }
}

impl Default for TurnHooks {
    /// Hooks that do nothing.
    fn default() -> Self {
        Self { on_end: Box::new(|_| ()), on_remembered: Arc::new(|_| ()), record_end: None }
    }
}

impl fmt::Debug for TurnHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TurnHooks")
    }
}
