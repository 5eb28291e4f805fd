//! What people say to turns that run: kept until the turn is over, so that what was accepted survives the death of the
//! process, whatever it waited for. R: T14, S2

use super::Hub;
use super::running::SpokenTo;
use crate::turn_log;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashSet;
use throughline::{Said, TakenBack, TurnControl, When};
use throughline_engine::{TurnId, UserMessageId};
use throughline_store::StoreError;
use throughline_store::catalog::{Document, DocumentKind, Expect, NewDocument};
use throughline_wire::UserPart;
use uuid::Uuid;

/// A message as it is kept.
#[derive(Serialize, Deserialize)]
struct KeptMessage {
    id: String,
    input: Vec<UserPart>,
    when: When,
}

impl Hub {
    /// Says something to a turn that runs. What is accepted is kept.
    ///
    /// # Errors
    /// The store does not take it; then it was not said.
    pub async fn say(
        &self,
        user: &str,
        control: &TurnControl,
        turn: &TurnId,
        id: Option<String>,
        input: Vec<UserPart>,
        when: When,
    ) -> Result<Said, StoreError> {
        let number = Uuid::now_v7().simple();
        let id = id.unwrap_or_else(|| format!("said_{number}"));
        let message = KeptMessage { id: id.clone(), input, when };
        // Their names are in the order in which they were said.
        let name = format!("{}{number}", prefix(turn));
        let body = serde_json::to_value(&message).map_err(StoreError::failed)?;
        let now = jiff::Timestamp::now().as_millisecond();
        let document = NewDocument {
            kind: DocumentKind::Queued,
            name: name.clone(),
            body,
            expect: Expect::Anything,
            now,
        };
        match self.running().get_mut(turn) {
            Some(running) => running.spoken_to = SpokenTo::Yes,
            None => return Ok(Said::TurnIsOver),
        }
        self.0.catalog.put_document(user, document).await?;
        let said = control.say_as(UserMessageId::new(id), message.input, when).await;
        if !matches!(said, Said::Queued(_)) {
            self.forget(user, &name).await;
        }
        Ok(said)
    }

    /// Takes back what was not taken in yet.
    pub async fn take_back(
        &self,
        user: &str,
        control: &TurnControl,
        turn: &TurnId,
        id: &str,
    ) -> Result<TakenBack, StoreError> {
        // Said under one id twice, it is kept twice.
        for document in self.kept(user, turn).await? {
            if message_of(&document).is_some_and(|message| message.id == id) {
                self.forget(user, &document.name).await;
            }
        }
        Ok(control.take_back(UserMessageId::new(id)).await)
    }

    /// Says once more what a turn was told before its process died and has not taken in.
    pub(super) async fn say_again(&self, user: &str, turn: &TurnId, control: &TurnControl) {
        let kept = match self.kept(user, turn).await {
            Ok(kept) if kept.is_empty() => return,
            Ok(kept) => kept,
            Err(error) => {
                tracing::error!(turn_id = turn.as_str(), %error, "what was said to a turn cannot be read");
                return;
            }
        };
        if let Some(running) = self.running().get_mut(turn) {
            running.spoken_to = SpokenTo::Yes;
        }
        let events = turn_log::raw_events(&*self.0.log, turn.as_str()).await.unwrap_or_default();
        let taken_in: HashSet<&str> = events
            .iter()
            .filter(|event| event["type"] == "user_message")
            .filter_map(|event| event["id"].as_str())
            .collect();
        for message in kept.iter().filter_map(message_of) {
            if taken_in.contains(message.id.as_str()) {
                continue;
            }
            let said = control.say_as(UserMessageId::new(message.id), message.input, message.when).await;
            if !matches!(said, Said::Queued(_)) {
                tracing::error!(turn_id = turn.as_str(), ?said, "what was said to a turn is not said again");
            }
        }
    }

    /// The turn is over: what was said in it is in its log, or begins the next one.
    pub(super) async fn forget_said(&self, user: &str, turn: &TurnId) {
        for document in self.kept(user, turn).await.unwrap_or_default() {
            self.forget(user, &document.name).await;
        }
    }

    async fn kept(&self, user: &str, turn: &TurnId) -> Result<Vec<Document>, StoreError> {
        let mut kept = self.0.catalog.documents(user, DocumentKind::Queued).await?;
        kept.retain(|document| document.name.starts_with(&prefix(turn)));
        Ok(kept)
    }

    async fn forget(&self, user: &str, name: &str) {
        if let Err(error) = self.0.catalog.remove_document(user, DocumentKind::Queued, name).await {
            tracing::warn!(name, %error, "a message that is no longer needed stays in the store");
        }
    }
}

fn prefix(turn: &TurnId) -> String {
    format!("{}.", turn.as_str())
}

fn message_of(document: &Document) -> Option<KeptMessage> {
    serde_json::from_value::<KeptMessage>(Value::clone(&document.body)).ok()
}
