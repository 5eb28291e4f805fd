//! When a user goes back to something simpler within a conversation. R: O1

use super::measurement::Chosen;
use std::collections::{HashMap, VecDeque};

/// Conversations whose last choice is remembered; the one known longest is forgotten first.
pub const CONVERSATIONS_REMEMBERED_MAX: usize = 10_000;

/// What was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rollback {
    /// Another model than in the turn before.
    Model,
    /// Another mode than in the turn before (`native`, `text`, `auto`).
    Mode,
    /// Replies were streamed, and are no more.
    Streaming,
}

impl Rollback {
    /// All of them.
    pub const ALL: [Rollback; 3] = [Rollback::Model, Rollback::Mode, Rollback::Streaming];

    /// The label's value.
    pub fn name(self) -> &'static str {
        match self {
            Rollback::Model => "model",
            Rollback::Mode => "mode",
            Rollback::Streaming => "streaming",
        }
    }
}

/// How replies of a turn's upstream are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// As a stream.
    Streamed,
    /// As one body.
    Whole,
}

/// The last choice of each conversation.
#[derive(Debug, Default)]
pub struct Choices {
    last: HashMap<String, (Chosen, Delivery)>,
    order: VecDeque<String>,
}

impl Choices {
    /// Takes what was chosen for the next turn of its conversation, and says what that changed.
    pub fn absorb(&mut self, chosen: Chosen, delivery: Delivery) -> Vec<Rollback> {
        let Some(conversation) = &chosen.conversation else { return Vec::new() };
        let key = conversation.as_str().to_owned();
        let mut changes = Vec::new();
        match self.last.get(&key) {
            Some((before, how)) => {
                if before.model != chosen.model {
                    changes.push(Rollback::Model);
                }
                if before.mode != chosen.mode {
                    changes.push(Rollback::Mode);
                }
                if (*how, delivery) == (Delivery::Streamed, Delivery::Whole) {
                    changes.push(Rollback::Streaming);
                }
            }
            None => {
                if self.last.len() >= CONVERSATIONS_REMEMBERED_MAX
                    && let Some(oldest) = self.order.pop_front()
                {
                    self.last.remove(&oldest);
                }
                self.order.push_back(key.clone());
            }
        }
        self.last.insert(key, (chosen, delivery));
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(conversation: &str, model: &str, mode: &str) -> Chosen {
        Chosen { conversation: Some(conversation.into()), model: model.into(), mode: mode.into() }
    }

    // R: O1
    #[test]
    fn changes_within_a_conversation_are_counted_once() {
        use Delivery::{Streamed, Whole};
        let mut choices = Choices::default();
        let table = [
            (chosen("a", "x/1", "auto"), Streamed, vec![]),
            (chosen("a", "x/1", "auto"), Streamed, vec![]),
            (chosen("b", "x/2", "text"), Whole, vec![]),
            (chosen("a", "x/2", "auto"), Streamed, vec![Rollback::Model]),
            (chosen("a", "x/2", "text"), Whole, vec![Rollback::Mode, Rollback::Streaming]),
            (chosen("a", "x/2", "text"), Streamed, vec![]),
            (Chosen { conversation: None, ..chosen("a", "y/9", "native") }, Whole, vec![]),
        ];
        for (choice, delivery, expected) in table {
            assert_eq!(choices.absorb(choice.clone(), delivery), expected, "{choice:?}");
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut choices = Choices::default();
        for at in 0..=CONVERSATIONS_REMEMBERED_MAX {
            choices.absorb(chosen(&format!("c{at}"), "x/1", "auto"), Delivery::Streamed);
        }
        assert_eq!(choices.last.len(), CONVERSATIONS_REMEMBERED_MAX);
        assert_eq!(choices.absorb(chosen("c0", "x/2", "auto"), Delivery::Streamed), [], "forgotten");
    }
}
