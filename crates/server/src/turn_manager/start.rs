//! Start of a turn for a request: first the row, then the turn, and the answer only when its first event is
//! durable.

use super::admission::TurnAdmission;
use super::history::{HistoryError, text_bytes};
use super::running_turns::{TurnInfo, model_of};
use super::turn_record::{self, TurnOwnerMetadata};
use super::{TurnLookup, TurnManager};
use crate::error::ApiError;
use crate::people;
use crate::principal::Principal;
use crate::stamps::new_id;
use crate::{turn_log, user_agents};
use std::time::Duration;
use throughline::{StoredTurn, TurnRequest};
use throughline_engine::{ConversationId, MessageId, TurnId};
use throughline_store::{
    IdempotencyKey, NewTurnRow as NewRow, NextTurn, TurnCreation, TurnParent, TurnPlacement, TurnRefusal,
    TurnRow,
};
use throughline_wire::UserPart;

/// Timeout for the catalog to record the end of the previous turn: a client that has read its last event may start the
/// next one.
const FINALIZE_TIMEOUT: Duration = Duration::from_secs(5);

/// A turn that is to be started.
#[derive(Clone, Debug, Default)]
pub struct TurnSpec {
    /// Request to the library. The turn manager fills in ids, user and remembered approvals, and the history unless
    /// the turn is standalone.
    pub request: TurnRequest,
    /// Conversation of the turn.
    pub conversation: ConversationRef,
    /// Ids of the files in its input.
    pub files: Vec<String>,
    /// Key that identifies a repeated request.
    pub idempotency: Option<IdempotencyKey>,
    /// Behavior when the last viewer disconnects.
    pub on_disconnect: OnDisconnect,
    /// Behavior if no viewer reconnects after a restart of the server; `None` for the same.
    pub after_restart: Option<OnDisconnect>,
}

/// Conversation that a turn belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ConversationRef {
    /// No conversation: the request contains its history.
    #[default]
    Standalone,
    /// A new conversation.
    New,
    /// An existing conversation.
    Existing {
        conversation_id: String,
        /// Position that the turn continues.
        parent: ParentRef,
    },
}

/// Position in the conversation that a turn continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParentRef {
    /// The branch that was continued last.
    Leaf,
    /// The beginning of the conversation, as a new branch: an edit of the first message.
    Root,
    /// A turn, or one event of it.
    Turn(TurnParent),
}

/// Behavior of a turn when its last viewer disconnects.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OnDisconnect {
    /// It goes on.
    #[default]
    Continue,
    Cancel,
}

/// A turn that runs now, or ran already under the same idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedTurn {
    pub turn_id: TurnId,
    /// The message that it writes.
    pub message_id: MessageId,
    /// The conversation that it belongs to, if any.
    pub conversation_id: Option<String>,
    /// True if it was started by an earlier request with the same idempotency key.
    pub is_replay: bool,
}

/// Result of one attempt to start a turn.
enum StartAttempt {
    Started(StartedTurn),
    /// This turn of the conversation is still running.
    Busy(String),
}

impl TurnManager {
    /// Starts a turn.
    ///
    /// # Errors
    /// Reasons that keep it from starting; later failures are events. 409 `conversation_busy`: a turn of the
    /// conversation is running, its id is in `turn_id`. One that waits for a person or a client is ended instead. 422
    /// `idempotency_key_reused`. 429 `too_many_turns`, `usage_limit`. 503 `stopping`. 507 `no_room`.
    pub async fn start_turn(&self, principal: &Principal, new: TurnSpec) -> Result<StartedTurn, ApiError> {
        let inner = &self.0;
        if inner.stopping.is_cancelled() {
            let error =
                ApiError::unavailable("stopping", "the server is stopping and does not start new turns", 5);
            return Err(error.remedy("try again in a moment"));
        }
        // A turn that is in the middle of being started counts as one that runs.
        let _task = inner.tasks.token();
        let user = principal.user.as_str();
        let now = jiff::Timestamp::now().as_millisecond();
        let _idempotency_guard = match &new.idempotency {
            Some(key) => Some(inner.idempotency.lock(user, &key.key).await),
            None => None,
        };
        if let Some(key) = &new.idempotency
            && let Some(created) = inner.catalog.turn_by_idempotency_key(user, key, now).await?
        {
            match created {
                TurnCreation::Replayed(row) => return Ok(replayed_turn(*row)),
                TurnCreation::KeyReused => return Err(idempotency_key_reused()),
                _ => {}
            }
        }
        // Before anything is waited for, and given back on every way out of here but a turn that runs.
        let mut admission = self.admit(principal.quota_key())?;
        inner.log.accepts_new_turns()?;
        match self.try_start(principal, new.clone(), now, &mut admission).await? {
            StartAttempt::Started(started) => Ok(started),
            StartAttempt::Busy(turn)
                if self.wait_for_finalize(user, &turn).await
                    || self.end_wait_for(principal, &new, &turn, now).await? =>
            {
                match self.try_start(principal, new, now, &mut admission).await? {
                    StartAttempt::Started(started) => Ok(started),
                    StartAttempt::Busy(turn) => Err(self.conversation_busy(&turn).await),
                }
            }
            StartAttempt::Busy(turn) => Err(self.conversation_busy(&turn).await),
        }
    }

    /// Ends a turn that waits, for this one; a request that could not be started ends nothing. `false`: it runs.
    async fn end_wait_for(
        &self,
        principal: &Principal,
        new: &TurnSpec,
        turn: &str,
        now: i64,
    ) -> Result<bool, ApiError> {
        let (inner, user) = (&self.0, principal.user.as_str());
        let ConversationRef::Existing { conversation_id, parent } = &new.conversation else {
            return Ok(false);
        };
        let turn_id = TurnId::new(turn);
        if self.wait_of(&turn_id).is_none() {
            return Ok(false);
        }
        let (parent, _) = self.parent_in(user, conversation_id, parent).await?;
        let (waiting, _) = turn_log::fold_message(&*inner.log, &turn_id).await?;
        let next = NextTurn {
            conversation_id: conversation_id.clone(),
            parent: parent.clone(),
            charge: principal.charge(),
            running_usage: Some(serde_json::to_value(waiting.usage).map_err(ApiError::internal)?),
            now,
        };
        if let Some(refusal) = inner.catalog.refusal_of_next(user, next).await? {
            return Err(refusal_error(refusal, Some(conversation_id), parent.as_ref(), now));
        }
        // An event that its turn does not have.
        if let Err(HistoryError::Error(error)) = self.history(user, parent.as_ref()).await {
            return Err(error);
        }
        user_agents::load_user_agents(&inner.app, &*inner.catalog, user).await?;
        let request = TurnRequest { user: Some(user.to_owned()), ..new.request.clone() };
        let names_model = request.model.is_some();
        let prepared = inner.app.prepare(request).await?;
        self.check_models(principal, prepared.stored(), names_model)?;
        Ok(self.end_wait(user, turn).await)
    }

    async fn try_start(
        &self,
        principal: &Principal,
        new: TurnSpec,
        now: i64,
        admission: &mut TurnAdmission,
    ) -> Result<StartAttempt, ApiError> {
        let (inner, user) = (&self.0, principal.user.as_str());
        let TurnSpec { mut request, conversation, files, idempotency, on_disconnect, after_restart } = new;
        let (placement, parent) = match conversation {
            ConversationRef::Standalone => (TurnPlacement::Standalone, None),
            ConversationRef::New => {
                (TurnPlacement::NewConversation { id: new_id("conv_"), title: None }, None)
            }
            ConversationRef::Existing { conversation_id, parent: parent_ref } => {
                let (parent, running) = self.parent_in(user, &conversation_id, &parent_ref).await?;
                if let Some(running) = running {
                    return Ok(StartAttempt::Busy(running));
                }
                (TurnPlacement::InConversation { conversation_id, parent: parent.clone() }, parent)
            }
        };
        let conversation_id = match &placement {
            TurnPlacement::Standalone => None,
            TurnPlacement::NewConversation { id, .. }
            | TurnPlacement::InConversation { conversation_id: id, .. } => Some(id.clone()),
        };
        let mut history_bytes = 0;
        if conversation_id.is_some() {
            request.history = match self.history(user, parent.as_ref()).await {
                Ok(history) => history,
                Err(HistoryError::Running(turn)) => return Ok(StartAttempt::Busy(turn)),
                Err(HistoryError::Error(error)) => return Err(error),
            };
            history_bytes = text_bytes(&request.history);
        }
        if let TurnPlacement::InConversation { conversation_id, .. } = &placement {
            request.remembered.extend(self.remembered_in(user, conversation_id).await?);
        }
        request.conversation_id = conversation_id.clone().map(ConversationId::new);
        request.user = Some(user.to_owned());
        user_agents::load_user_agents(&inner.app, &*inner.catalog, user).await?;
        let names_model = request.model.is_some();
        let prepared = inner.app.prepare(request).await?;
        let turn = prepared.stored();
        self.check_models(principal, turn, names_model)?;
        let quota_key = Some(principal.quota_key().to_owned());
        let metadata = TurnOwnerMetadata {
            after_restart: after_restart.unwrap_or(on_disconnect),
            quota_key: quota_key.clone(),
        };
        let stored = turn_record::write(turn, &metadata).map_err(ApiError::internal)?;
        let info = TurnInfo {
            user: user.to_owned(),
            quota_key,
            conversation_id: conversation_id.clone(),
            agent: turn.setup.agent.clone(),
            model: model_of(turn),
            started_at: now,
            on_disconnect,
            // The stored form contains the history of a standalone turn.
            text_bytes: stored.len() + history_bytes,
        };
        let row = NewRow {
            id: prepared.turn_id().as_str().to_owned(),
            message_id: prepared.message_id().as_str().to_owned(),
            placement,
            idempotency,
            stored,
            agent: info.agent.clone(),
            model: info.model.clone(),
            mode: Some(turn.setup.mode.clone()),
            input_text: text_of(&turn.start.input),
            files: files.into_iter().chain(prepared.file_ids()).collect(),
            created_at: now,
            charge: principal.charge(),
        };
        match inner.catalog.create_turn(user, row).await? {
            TurnCreation::New => {}
            TurnCreation::Replayed(row) => return Ok(StartAttempt::Started(replayed_turn(*row))),
            TurnCreation::KeyReused => return Err(idempotency_key_reused()),
            TurnCreation::ConversationBusy { turn_id } => return Ok(StartAttempt::Busy(turn_id)),
            TurnCreation::Refused(refusal) => {
                return Err(refusal_error(refusal, conversation_id.as_deref(), parent.as_ref(), now));
            }
        }
        let (turn_id, message_id) = (prepared.turn_id().clone(), prepared.message_id().clone());
        let (hooks, end_receiver) = self.hooks(user, conversation_id.clone());
        let mut turn = match inner.app.start_prepared(prepared, hooks).await {
            Ok(turn) => turn,
            Err(error) => {
                self.write_end(user, &turn_id, Self::interrupted_end()).await;
                return Err(error.into());
            }
        };
        // The row was not synced by itself: the first event makes both durable, and the requester is answered
        // then.
        let has_first_event = turn.next().await.is_some();
        self.insert_running(info, Some(admission), turn, end_receiver);
        if !has_first_event {
            return Err(ApiError::unavailable("store_unavailable", "the turn could not be logged", 5));
        }
        Ok(StartAttempt::Started(StartedTurn { turn_id, message_id, conversation_id, is_replay: false }))
    }

    /// The turn of a conversation that a new one continues, and the one that runs there.
    async fn parent_in(
        &self,
        user: &str,
        conversation_id: &str,
        parent: &ParentRef,
    ) -> Result<(Option<TurnParent>, Option<String>), ApiError> {
        let summary = self.0.catalog.conversation(user, conversation_id).await?;
        let summary = summary.ok_or_else(|| conversation_not_found(conversation_id))?;
        let parent = match parent {
            ParentRef::Leaf => summary.conversation.leaf_id.map(TurnParent::after_turn),
            ParentRef::Root => None,
            ParentRef::Turn(parent) => Some(parent.clone()),
        };
        Ok((parent, summary.running_turn_id))
    }

    /// An agent that the key may use must be one of the configuration: any user could give an agent of theirs
    /// the same name.
    fn check_models(
        &self,
        principal: &Principal,
        turn: &StoredTurn,
        names_model: bool,
    ) -> Result<(), ApiError> {
        if principal.limits.key.models.is_none() {
            return Ok(());
        }
        let agent = turn.setup.agent.as_str();
        let is_configured = !names_model && self.0.app.agents().iter().any(|known| known.name == agent);
        let choices = turn.setup.upstreams.iter();
        let models: Vec<String> = choices.map(|choice| format!("{}/{}", choice.name, choice.model)).collect();
        principal.require_models(is_configured.then_some(agent), &models)
    }

    /// Waits until the catalog has the end of a turn whose last event is in the log. `false`: the turn runs.
    pub(crate) async fn wait_for_finalize(&self, user: &str, turn: &str) -> bool {
        let turn = TurnId::new(turn);
        let finalized = self.turns().get(&turn).map(|running| running.finalized.clone());
        let Some(finalized) = finalized else {
            // It settled a moment ago, or is not ours to wait for.
            return matches!(self.lookup(user, &turn).await, Ok(TurnLookup::Ended(row)) if row.end.is_some());
        };
        if !crate::turn_log::has_ended(&*self.0.log, &turn).await {
            return false;
        }
        tokio::time::timeout(FINALIZE_TIMEOUT, finalized.cancelled()).await.is_ok()
    }
}

fn replayed_turn(row: TurnRow) -> StartedTurn {
    StartedTurn {
        turn_id: TurnId::new(row.id),
        message_id: MessageId::new(row.message_id),
        conversation_id: row.conversation_id,
        is_replay: true,
    }
}

fn refusal_error(
    refusal: TurnRefusal,
    conversation_id: Option<&str>,
    parent: Option<&TurnParent>,
    now: i64,
) -> ApiError {
    match refusal {
        TurnRefusal::ConversationNotFound => conversation_not_found(conversation_id.unwrap_or_default()),
        TurnRefusal::ParentNotFound => {
            let id = parent.map_or("", |parent| parent.turn_id.as_str());
            let error = ApiError::not_found("turn", id).param("parent_id");
            error.remedy("the parent must be a turn of the same conversation")
        }
        TurnRefusal::UsageExceeded(exceeded) => people::usage_exceeded(exceeded, now),
    }
}

fn conversation_not_found(id: &str) -> ApiError {
    ApiError::not_found("conversation", id).param("conversation_id")
}

fn idempotency_key_reused() -> ApiError {
    let message = "this `Idempotency-Key` was used for another request in the last 24 hours";
    let error = ApiError::unprocessable("idempotency_key_reused", message).param("Idempotency-Key");
    error.remedy("use a new key for a new request")
}

/// Text of the input, for search and for the title.
fn text_of(parts: &[UserPart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        UserPart::Text { text } => Some(text.as_str()),
        UserPart::Image(_) | UserPart::File { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
