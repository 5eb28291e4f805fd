//! Conversations that a model has refused as too long, so that it is not sent them whole again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Conversations that are remembered; one more, and all are sent whole again.
const CONVERSATIONS_MAX: usize = 10_000;
/// Lifetime of what was learned: a model on the user's own machine may have been started with a longer context since.
const TTL: Duration = Duration::from_secs(60 * 60);

/// Refused histories of an upstream.
#[derive(Debug, Default)]
pub(super) struct TooLongHistories {
    /// By model and [key of the conversation](throughline_engine::conversation_key).
    refused: Mutex<HashMap<(String, String), RefusedHistory>>,
}

#[derive(Debug)]
struct RefusedHistory {
    /// Length of what was refused.
    messages: usize,
    at: Instant,
}

impl TooLongHistories {
    pub(super) fn insert(&self, model: String, conversation: String, messages: usize) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() >= CONVERSATIONS_MAX {
            refused.clear();
        }
        refused.insert((model, conversation), RefusedHistory { messages, at: Instant::now() });
    }

    /// True if this model has refused no more of this conversation than these messages. An earlier branch of it is shorter.
    pub(super) fn contains(&self, model: &str, conversation: &str, messages: usize) -> bool {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let found = refused.get(&(model.to_owned(), conversation.to_owned()));
        found.is_some_and(|refused| messages >= refused.messages && refused.at.elapsed() < TTL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_refused_conversation_is_known_to_its_model_for_an_hour() {
        let refused = TooLongHistories::default();
        refused.insert("m".into(), "c".into(), 5);
        for (model, conversation, messages, expected) in [
            ("m", "c", 5, true),
            ("m", "c", 9, true),
            ("m", "c", 4, false),
            ("n", "c", 9, false),
            ("m", "d", 9, false),
        ] {
            assert_eq!(
                refused.contains(model, conversation, messages),
                expected,
                "{model} {conversation} {messages}"
            );
        }
        tokio::time::advance(TTL).await;
        assert!(!refused.contains("m", "c", 9));
    }

    #[tokio::test]
    async fn conversations_that_were_refused_are_bounded() {
        let refused = TooLongHistories::default();
        for number in 0..=CONVERSATIONS_MAX {
            refused.insert("m".into(), number.to_string(), 1);
        }
        assert!(refused.contains("m", &CONVERSATIONS_MAX.to_string(), 1));
        assert_eq!(refused.refused.lock().unwrap().len(), 1);
    }
}
