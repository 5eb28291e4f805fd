//! Rollbacks: a user returns to something simpler within a conversation.

use super::measurement::TurnChoice;
use std::collections::{HashMap, VecDeque};

/// Conversations whose last choice is remembered; the one known longest is forgotten first.
pub(super) const CONVERSATIONS_REMEMBERED_MAX: usize = 10_000;

/// Kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RollbackKind {
    /// Another model than in the previous turn.
    Model,
    /// Another mode than in the previous turn (`native`, `text`, `auto`).
    Mode,
    /// Replies were streamed, and are no more.
    Streaming,
}

impl RollbackKind {
    pub const ALL: [RollbackKind; 3] = [RollbackKind::Model, RollbackKind::Mode, RollbackKind::Streaming];

    /// The label's value.
    pub fn name(self) -> &'static str {
        match self {
            RollbackKind::Model => "model",
            RollbackKind::Mode => "mode",
            RollbackKind::Streaming => "streaming",
        }
    }
}

/// Delivery of an upstream's replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UpstreamDelivery {
    /// Streamed reply.
    Streamed,
    /// Reply in one body.
    Whole,
}

/// The last choice of each conversation.
#[derive(Debug, Default)]
pub(super) struct ChoiceHistory {
    last: HashMap<String, (TurnChoice, UpstreamDelivery)>,
    order: VecDeque<String>,
}

impl ChoiceHistory {
    /// Takes the choice for the next turn of its conversation, and returns the rollbacks.
    pub(super) fn apply(&mut self, choice: TurnChoice, delivery: UpstreamDelivery) -> Vec<RollbackKind> {
        let Some(conversation) = &choice.conversation else { return Vec::new() };
        let key = conversation.as_str().to_owned();
        let mut changes = Vec::new();
        match self.last.get(&key) {
            Some((before, how)) => {
                if before.model != choice.model {
                    changes.push(RollbackKind::Model);
                }
                if before.mode != choice.mode {
                    changes.push(RollbackKind::Mode);
                }
                if (*how, delivery) == (UpstreamDelivery::Streamed, UpstreamDelivery::Whole) {
                    changes.push(RollbackKind::Streaming);
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
        self.last.insert(key, (choice, delivery));
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(conversation: &str, model: &str, mode: &str) -> TurnChoice {
        TurnChoice { conversation: Some(conversation.into()), model: model.into(), mode: mode.into() }
    }

    #[test]
    fn changes_within_a_conversation_are_counted_once() {
        use UpstreamDelivery::{Streamed, Whole};
        let mut choices = ChoiceHistory::default();
        let table = [
            (chosen("a", "x/1", "auto"), Streamed, vec![]),
            (chosen("a", "x/1", "auto"), Streamed, vec![]),
            (chosen("b", "x/2", "text"), Whole, vec![]),
            (chosen("a", "x/2", "auto"), Streamed, vec![RollbackKind::Model]),
            (chosen("a", "x/2", "text"), Whole, vec![RollbackKind::Mode, RollbackKind::Streaming]),
            (chosen("a", "x/2", "text"), Streamed, vec![]),
            (TurnChoice { conversation: None, ..chosen("a", "y/9", "native") }, Whole, vec![]),
        ];
        for (choice, delivery, expected) in table {
            assert_eq!(choices.apply(choice.clone(), delivery), expected, "{choice:?}");
        }
    }

    #[test]
    fn remembered_conversations_are_bounded() {
        let mut choices = ChoiceHistory::default();
        for at in 0..=CONVERSATIONS_REMEMBERED_MAX {
            choices.apply(chosen(&format!("c{at}"), "x/1", "auto"), UpstreamDelivery::Streamed);
        }
        assert_eq!(choices.last.len(), CONVERSATIONS_REMEMBERED_MAX);
        assert_eq!(choices.apply(chosen("c0", "x/2", "auto"), UpstreamDelivery::Streamed), [], "forgotten");
    }
}
