//! Conversations that a model has refused as too long, so that it is not sent them whole again.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use throughline_wire::{Message, UserPart};
use tokio::time::Instant;

/// Conversations that are remembered; one more, and all are sent whole again.
const CONVERSATIONS_MAX: usize = 10_000;
/// Lifetime of what was learned: a model on the user's own machine may have been started with a longer context since.
const TTL: Duration = Duration::from_secs(60 * 60);

/// Refused histories of an upstream.
#[derive(Debug, Default)]
pub(super) struct TooLongHistories {
    /// Refused histories by model and [key of the conversation](throughline_engine::conversation_key).
    refused: Mutex<HashMap<(String, String), RefusedHistory>>,
}

#[derive(Debug)]
struct RefusedHistory {
    shape: HistoryShape,
    at: Instant,
}

/// Length of each message up to the user's last one: it differs between conversations that begin alike, and
/// stays the same when a conversation grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HistoryShape {
    messages: usize,
    hash: u64,
}

impl HistoryShape {
    pub(super) fn of(history: &[Message]) -> Self {
        let last_input = history.iter().rposition(|message| matches!(message, Message::User(_)));
        Self::of_first(history, last_input.map_or(0, |at| at + 1))
    }

    fn of_first(history: &[Message], messages: usize) -> Self {
        let mut hasher = DefaultHasher::new();
        history[..messages].iter().for_each(|message| text_bytes(message).hash(&mut hasher));
        Self { messages, hash: hasher.finish() }
    }

    /// True if this history continues the recorded one.
    fn begins(self, history: &[Message]) -> bool {
        self.messages <= history.len() && Self::of_first(history, self.messages) == self
    }
}

fn text_bytes(message: &Message) -> usize {
    match message {
        Message::User(parts) => parts.iter().map(UserPart::text_bytes).sum(),
        // Without results: they may have been cut already.
        Message::Step(step) => {
            step.text.len() + step.calls.iter().map(|(call, _)| call.name.as_str().len()).sum::<usize>()
        }
    }
}

impl TooLongHistories {
    pub(super) fn insert(&self, model: String, conversation: String, shape: HistoryShape) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() >= CONVERSATIONS_MAX {
            refused.clear();
        }
        refused.insert((model, conversation), RefusedHistory { shape, at: Instant::now() });
    }

    /// True if this model has refused a history that this one continues. An earlier branch of the
    /// conversation is shorter.
    pub(super) fn contains(&self, model: &str, conversation: &str, history: &[Message]) -> bool {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let found = refused.get(&(model.to_owned(), conversation.to_owned()));
        found.is_some_and(|refused| refused.at.elapsed() < TTL && refused.shape.begins(history))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_wire::ClosedStep;

    fn user(text: &str) -> Message {
        Message::User(vec![UserPart::Text { text: text.to_owned() }])
    }

    fn step(text: &str) -> Message {
        Message::Step(ClosedStep { text: text.to_owned(), ..ClosedStep::default() })
    }

    #[tokio::test(start_paused = true)]
    async fn too_long_history_is_remembered_per_model_until_its_ttl() {
        let refused = TooLongHistories::default();
        let history = [user("a"), step("bb"), user("ccc"), step("while it was refused")];
        refused.insert("m".into(), "c".into(), HistoryShape::of(&history));
        let gone_on = [user("a"), step("bb"), user("ccc"), step("what was said instead"), user("d")];
        let others_talk = [user("a"), step("another"), user("ccc"), step("bb"), user("d")];
        for (model, conversation, history, expected) in [
            ("m", "c", &history[..], true),
            ("m", "c", &gone_on, true),
            ("m", "c", &gone_on[..2], false),
            ("m", "c", &others_talk, false),
            ("n", "c", &gone_on, false),
            ("m", "d", &gone_on, false),
        ] {
            assert_eq!(refused.contains(model, conversation, history), expected, "{model} {conversation}");
        }
        tokio::time::advance(TTL).await;
        assert!(!refused.contains("m", "c", &gone_on));
    }

    #[tokio::test]
    async fn remembered_too_long_histories_are_bounded() {
        let (refused, history) = (TooLongHistories::default(), [user("a")]);
        for number in 0..=CONVERSATIONS_MAX {
            refused.insert("m".into(), number.to_string(), HistoryShape::of(&history));
        }
        assert!(refused.contains("m", &CONVERSATIONS_MAX.to_string(), &history));
        assert_eq!(refused.refused.lock().unwrap().len(), 1);
    }
}
