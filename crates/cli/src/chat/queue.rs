//! Messages written while a turn runs: for its next step, or for afterwards. R: T14

use crate::messages::Words;
use crate::terminal::text::{Line, Style};
use std::collections::VecDeque;
use throughline_engine::{Event, EventKind, UserMessageId, When};

/// Messages that may wait at a time.
const QUEUED_MAX: usize = 16;

/// A message that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    /// Its key in the turn.
    pub id: UserMessageId,
    /// What was written.
    pub text: String,
    /// What it waits for.
    pub when: When,
}

/// What was written ahead, oldest first. What the turn has not taken in when it ends begins the next one.
#[derive(Debug, Default)]
pub struct Queue {
    waiting: VecDeque<Queued>,
    made: u64,
}

impl Queue {
    /// Takes a message.
    ///
    /// # Errors
    /// The message, if too many wait.
    pub fn push(&mut self, text: String, when: When) -> Result<Queued, String> {
        if self.waiting.len() >= QUEUED_MAX {
            return Err(text);
        }
        self.made += 1;
        let queued = Queued { id: UserMessageId::new(format!("said_{}", self.made)), text, when };
        self.waiting.push_back(queued.clone());
        Ok(queued)
    }

    /// The turn has taken a message in: it waits no longer.
    pub fn apply(&mut self, event: &Event) {
        if let EventKind::UserMessage { id: Some(id), .. } = &event.kind {
            self.waiting.retain(|queued| queued.id != *id);
        }
    }

    /// The message written last, taken back to be changed.
    pub fn take_back(&mut self) -> Option<Queued> {
        self.waiting.pop_back()
    }

    /// What the next turn begins with.
    pub fn pop(&mut self) -> Option<String> {
        self.waiting.pop_front().map(|queued| queued.text)
    }

    /// What waits for a step.
    pub fn for_step(&self) -> Vec<Queued> {
        self.waiting.iter().filter(|queued| queued.when == When::NextStep).cloned().collect()
    }

    /// Throws away what waits.
    pub fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Each with what it waits for.
    pub fn lines(&self, words: Words) -> impl Iterator<Item = Line> {
        self.waiting.iter().enumerate().map(move |(at, queued)| {
            let when = match queued.when {
                When::NextStep => words.queued_step(),
                When::AfterTurn => words.queued_after(),
            };
            let mut line = Line::new(&format!("{when} › "), Style::DIM);
            line.push(&queued.text.replace('\n', " "), Style::PLAIN);
            if at + 1 == self.waiting.len() {
                line.push(&format!("  {}", words.take_back_hint()), Style::DIM);
            }
            line
        })
    }
}
