//! Messages to running turns: stored until the turn ends, so that an accepted message survives the death of the
//! process.

use super::TurnManager;
use crate::turn_log;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashSet;
use throughline::{MessageTiming, RetractResult, SendResult, TurnControl};
use throughline_engine::{TurnId, UserMessageId};
use throughline_store::{DocumentKind, DocumentPrecondition, NewDocument, StoreError, StoredDocument};
use throughline_wire::UserPart;
use uuid::Uuid;

/// A queued message as stored.
#[derive(Serialize, Deserialize)]
struct StoredMessage {
    id: String,
    input: Vec<UserPart>,
    when: MessageTiming,
}

impl TurnManager {
    /// Sends a message to a running turn. An accepted message is stored.
    ///
    /// # Errors
    /// The store cannot be written; then the message was not sent.
    pub async fn send(
        &self,
        user: &str,
        control: &TurnControl,
        turn: &TurnId,
        id: Option<String>,
        input: Vec<UserPart>,
        when: MessageTiming,
    ) -> Result<SendResult, StoreError> {
        let number = Uuid::now_v7().simple();
        let id = id.unwrap_or_else(|| format!("msg_{number}"));
        let message = StoredMessage { id: id.clone(), input, when };
        // Names sort in the order of the messages.
        let name = format!("{}{number}", name_prefix(turn));
        let body = serde_json::to_value(&message).map_err(StoreError::failed)?;
        let now = jiff::Timestamp::now().as_millisecond();
        let document = NewDocument {
            kind: DocumentKind::Queued,
            name: name.clone(),
            body,
            precondition: DocumentPrecondition::Any,
            now,
        };
        match self.turns().get_mut(turn) {
            Some(running) => running.has_stored_messages = true,
            None => return Ok(SendResult::TurnEnded),
        }
        self.0.catalog.put_document(user, document).await?;
        let sent = control.send_as(UserMessageId::new(id), message.input, when).await;
        if !matches!(sent, SendResult::Queued(_)) {
            self.remove_document(user, &name).await;
        }
        Ok(sent)
    }

    /// Retracts a message that the turn has not read yet.
    pub async fn retract(
        &self,
        user: &str,
        control: &TurnControl,
        turn: &TurnId,
        id: &str,
    ) -> Result<RetractResult, StoreError> {
        // A message sent twice under one id is stored twice.
        for document in self.queued_documents(user, turn).await? {
            if parse_message(&document).is_some_and(|message| message.id == id) {
                self.remove_document(user, &document.name).await;
            }
        }
        Ok(control.retract(UserMessageId::new(id)).await)
    }

    /// Sends the messages again that a turn had not read when its process died.
    pub(super) async fn resend_queued(&self, user: &str, turn: &TurnId, control: &TurnControl) {
        let messages = match self.queued_documents(user, turn).await {
            Ok(stored) if stored.is_empty() => return,
            Ok(stored) => stored,
            Err(error) => {
                tracing::error!(turn_id = turn.as_str(), %error, "cannot read the steering messages of a turn");
                return;
            }
        };
        if let Some(running) = self.turns().get_mut(turn) {
            running.has_stored_messages = true;
        }
        let events = turn_log::raw_events(&*self.0.log, turn.as_str()).await.unwrap_or_default();
        let delivered: HashSet<String> = events
            .iter()
            .filter_map(|event| event.parse::<Value>().ok())
            .filter(|event| event["type"] == "user_message")
            .filter_map(|event| event["id"].as_str().map(str::to_owned))
            .collect();
        for message in messages.iter().filter_map(parse_message) {
            if delivered.contains(message.id.as_str()) {
                continue;
            }
            let sent = control.send_as(UserMessageId::new(message.id), message.input, message.when).await;
            if !matches!(sent, SendResult::Queued(_)) {
                tracing::error!(turn_id = turn.as_str(), ?sent, "steering message could not be re-sent");
            }
        }
    }

    /// Deletes the queue of a turn that is over: its messages are in its log, or begin the next one.
    pub(super) async fn forget_queued(&self, user: &str, turn: &TurnId) {
        for document in self.queued_documents(user, turn).await.unwrap_or_default() {
            self.remove_document(user, &document.name).await;
        }
    }

    async fn queued_documents(&self, user: &str, turn: &TurnId) -> Result<Vec<StoredDocument>, StoreError> {
        let mut documents = self.0.catalog.documents(user, DocumentKind::Queued).await?;
        documents.retain(|document| document.name.starts_with(&name_prefix(turn)));
        Ok(documents)
    }

    async fn remove_document(&self, user: &str, name: &str) {
        if let Err(error) = self.0.catalog.remove_document(user, DocumentKind::Queued, name).await {
            tracing::warn!(name, %error, "a delivered steering message could not be deleted from the store");
        }
    }
}

fn name_prefix(turn: &TurnId) -> String {
    format!("{}.", turn.as_str())
}

fn parse_message(document: &StoredDocument) -> Option<StoredMessage> {
    serde_json::from_value::<StoredMessage>(Value::clone(&document.body)).ok()
}
