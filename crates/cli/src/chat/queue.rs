//! Messages written while a turn runs: for its next step, or for afterwards.

use crate::messages::UiText;
use crate::terminal::text::{StyledLine, TextStyle};
use std::collections::VecDeque;
use throughline_engine::{Event, EventKind, MessageTiming, UserMessageId};

/// Messages that may wait at a time.
const QUEUED_MAX: usize = 16;

/// A message that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueuedText {
    /// Id of the message in the turn.
    pub(crate) id: UserMessageId,
    pub(crate) text: String,
    /// Point of the turn at which it is delivered.
    pub(crate) when: MessageTiming,
}

/// Queued messages, oldest first. Messages that the turn has not read when it ends start the next turn.
#[derive(Debug, Default)]
pub(crate) struct MessageQueue {
    waiting: VecDeque<QueuedText>,
    count: u64,
}

impl MessageQueue {
    /// Takes a message.
    ///
    /// # Errors
    /// The message, if too many wait.
    pub(crate) fn push(&mut self, text: String, when: MessageTiming) -> Result<QueuedText, String> {
        if self.waiting.len() >= QUEUED_MAX {
            return Err(text);
        }
        self.count += 1;
        let queued = QueuedText { id: UserMessageId::new(format!("msg_{}", self.count)), text, when };
        self.waiting.push_back(queued.clone());
        Ok(queued)
    }

    /// The turn has taken a message in: it waits no longer.
    pub(crate) fn apply(&mut self, event: &Event) {
        if let EventKind::UserMessage { id: Some(id), .. } = &event.kind {
            self.waiting.retain(|queued| queued.id != *id);
        }
    }

    /// Retracts the newest message, to edit it.
    pub(crate) fn retract_last(&mut self) -> Option<QueuedText> {
        self.waiting.pop_back()
    }

    /// First message of the next turn: all messages that the turn did not read, joined; else the oldest one
    /// for its end.
    /// A server begins the next turn with the same.
    pub(crate) fn pop(&mut self) -> Option<String> {
        let (for_step, after): (Vec<_>, Vec<_>) =
            self.waiting.drain(..).partition(|queued| queued.when == MessageTiming::NextStep);
        self.waiting = after.into();
        if for_step.is_empty() {
            return self.waiting.pop_front().map(|queued| queued.text);
        }
        let texts: Vec<String> = for_step.into_iter().map(|queued| queued.text).collect();
        Some(texts.join("\n"))
    }

    /// Messages that wait for the next step.
    pub(crate) fn for_step(&self) -> Vec<QueuedText> {
        self.waiting.iter().filter(|queued| queued.when == MessageTiming::NextStep).cloned().collect()
    }

    /// Clears the queue.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// A line for each message with the event that it waits for.
    pub(crate) fn lines(&self, words: UiText) -> impl Iterator<Item = StyledLine> {
        self.waiting.iter().enumerate().map(move |(at, queued)| {
            let when = match queued.when {
                MessageTiming::NextStep => words.queued_step(),
                MessageTiming::AfterTurn => words.queued_after(),
            };
            let mut line = StyledLine::new(&format!("{when} › "), TextStyle::DIM);
            line.push(&queued.text.replace('\n', " "), TextStyle::PLAIN);
            if at + 1 == self.waiting.len() {
                line.push(&format!("  {}", words.take_back_hint()), TextStyle::DIM);
            }
            line
        })
    }
}
