//! One running turn, from its first event until all its data are stored.

use super::admission::TurnAdmission;
use super::parked::{ParkedState, WaitsFor};
use super::{ConversationRef, OnDisconnect, ParentRef, TurnManager, TurnSpec};
use crate::principal::{Principal, PrincipalLimits};
use crate::turn_log::turn_timing;
use serde_json::Value;
use std::pin::Pin;
use std::sync::Arc;
use throughline::config::ToolMode;
use throughline::{StoredTurn, TurnControl, TurnHandle, TurnHooks, TurnRequest, TurnResult, TurnStatus};
use throughline_engine::{QueuedMessage, RememberedDecision, TurnId};
use throughline_store::{NewRemembered, StoreError, TurnEnd, TurnParent, TurnTiming};
use throughline_wire::UserPart;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// A turn that has begun, before it is in the table.
#[derive(Clone, Debug)]
pub(super) struct TurnInfo {
    pub user: String,
    /// Limit key that the turn counts against; `None` for a turn of an earlier release.
    pub quota_key: Option<String>,
    pub conversation_id: Option<String>,
    pub agent: String,
    pub model: Option<String>,
    /// Time of the start, in milliseconds since 1970.
    pub started_at: i64,
    pub on_disconnect: OnDisconnect,
    /// Bytes of what it was begun with, its history included: about the memory that it holds while it waits.
    pub text_bytes: usize,
}

/// A turn that runs here.
pub(super) struct TurnEntry {
    pub info: TurnInfo,
    pub control: TurnControl,
    /// Since when, and for what, it waits for a person or a client alone; `None` = it runs.
    pub parked: Option<ParkedState>,
    /// Input that a request is delivering, after it has unparked the turn.
    pub resuming: Option<WaitsFor>,
    /// True if it has messages that are stored until its end.
    pub has_stored_messages: bool,
    /// Number of current viewers.
    pub viewers: u32,
    /// Cancelled when the catalog has the turn's end, so that the next turn finds its part of the history.
    pub finalized: CancellationToken,
}

/// A turn that runs here, as its user sees it in the list of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunningTurn {
    pub turn_id: TurnId,
    /// The conversation that it belongs to, if any.
    pub conversation_id: Option<String>,
    /// Name of the agent.
    pub agent: String,
    pub model: Option<String>,
    /// Time of the start, in milliseconds since 1970.
    pub started_at: i64,
    /// Reason of the wait and its start in milliseconds since 1970; `None` while the turn runs.
    pub parked: Option<(WaitsFor, i64)>,
}

/// The model that a turn begins with.
pub(super) fn model_of(turn: &StoredTurn) -> Option<String> {
    turn.setup.upstreams.first().map(|choice| format!("{}/{}", choice.name, choice.model))
}

/// Receivers for the end of a turn and for values to store.
pub(super) struct TurnEndReceiver {
    ended: oneshot::Receiver<TurnResult>,
}

/// Number of retries when a lost store cannot record an end, and the pause between them.
const END_RETRIES_MAX: u32 = 60;
/// Timeout for the history of the turn's calls at its end.
const HISTORY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);
/// Timeout for cancelled turns of a removed person to end.
const CANCEL_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);
const END_RETRY_PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

impl TurnManager {
    /// Hooks that the library calls for a turn of this user.
    pub(super) fn hooks(&self, user: &str, conversation: Option<String>) -> (TurnHooks, TurnEndReceiver) {
        let (sender, ended) = oneshot::channel();
        let turn_manager = self.clone();
        let (user, runtime) = (user.to_owned(), tokio::runtime::Handle::current());
        let hooks = TurnHooks::default()
            // The receiver is closed only when the process ends, and the next one reads the end from the log.
            .on_end(move |ended| drop(sender.send(ended)))
            .on_remembered(move |answer| {
                let (turn_manager, user, conversation) =
                    (turn_manager.clone(), user.clone(), conversation.clone());
                if let Err(error) =
                    runtime.block_on(turn_manager.store_remembered(&user, conversation, answer))
                {
                    tracing::error!(%error, user, "cannot store a remembered approval");
                }
            });
        (hooks, TurnEndReceiver { ended })
    }

    async fn store_remembered(
        &self,
        user: &str,
        conversation_id: Option<String>,
        answer: RememberedDecision,
    ) -> Result<(), StoreError> {
        // A turn without a conversation has no conversation scope. Permanent approvals go to the user's
        // store.
        if conversation_id.is_none() {
            return Ok(());
        }
        let subject =
            serde_json::json!([answer.tool, answer.fingerprint, answer.arguments_hash, answer.arguments]);
        let value = serde_json::to_value(&answer).map_err(StoreError::failed)?;
        let at = jiff::Timestamp::now().as_millisecond();
        let answer = NewRemembered { conversation_id, about: subject.to_string(), answer: value, at };
        self.0.catalog.remember(user, answer).await.map(drop)
    }

    /// Remembered approvals of this conversation. The library reads permanent ones itself.
    pub(super) async fn remembered_in(
        &self,
        user: &str,
        conversation_id: &str,
    ) -> Result<Vec<RememberedDecision>, StoreError> {
        let mut rows = self.0.catalog.remembered(user, Some(conversation_id)).await?;
        rows.retain(|row| row.conversation_id.is_some());
        // An entry that cannot be parsed is ignored: the question is asked again.
        Ok(rows.into_iter().filter_map(|row| serde_json::from_value(row.answer).ok()).collect())
    }

    /// Turns of this user that run here, or are parked here; the oldest first.
    pub(crate) fn turns_of(&self, user: &str) -> Vec<RunningTurn> {
        let turns = self.turns();
        let own_turns = turns.iter().filter(|(_, entry)| entry.info.user == user);
        let mut own_turns: Vec<RunningTurn> = own_turns
            .map(|(id, entry)| RunningTurn {
                turn_id: id.clone(),
                conversation_id: entry.info.conversation_id.clone(),
                agent: entry.info.agent.clone(),
                model: entry.info.model.clone(),
                started_at: entry.info.started_at,
                parked: entry.parked.as_ref().map(|parked| (parked.waits_for, parked.since)),
            })
            .collect();
        drop(turns);
        own_turns.sort_by(|a, b| (a.started_at, a.turn_id.as_str()).cmp(&(b.started_at, b.turn_id.as_str())));
        own_turns
    }

    /// Adds a turn that has begun, in its reserved slot.
    pub(super) fn insert_running(
        &self,
        info: TurnInfo,
        admission: Option<&mut TurnAdmission>,
        turn: TurnHandle,
        end_receiver: TurnEndReceiver,
    ) -> TurnControl {
        let (id, user) = (turn.id().clone(), info.user.clone());
        let (control, finalized) = (turn.detach(), CancellationToken::new());
        let entry = TurnEntry {
            info,
            control: control.clone(),
            parked: None,
            resuming: None,
            has_stored_messages: false,
            viewers: 0,
            finalized: finalized.clone(),
        };
        self.turns().insert_running(id.clone(), entry, admission);
        let (turn_manager, queue_control) = (self.clone(), control.clone());
        self.0.tasks.spawn(async move {
            // Waiting requests continue on every path.
            let _settled = finalized.drop_guard();
            let mut end = end_receiver.ended;
            let end = tokio::select! {
                end = &mut end => end,
                // Its waits are over when it is.
                () = turn_manager.follow_waits(&id, &queue_control) => end.await,
            };
            let status = match end {
                Ok(ended) => turn_manager.persist_end(&user, ended).await,
                Err(_) => None,
            };
            let entry = turn_manager.turns().remove(&id);
            let queued = queue_control.take_queued();
            if !queued.is_empty() && status.is_some_and(allows_followup) {
                let quota_key = entry.as_ref().and_then(|entry| entry.info.quota_key.clone());
                turn_manager.start_next_with(&user, quota_key.as_deref(), &id, queued).await;
            }
            // A turn that was handed over without its end retains its queued messages.
            if status.is_some() && entry.is_some_and(|entry| entry.has_stored_messages) {
                turn_manager.forget_queued(&user, &id).await;
            }
            turn_manager.merge_later(id);
        });
        control
    }

    /// Parks a turn whenever it waits, until it is over.
    async fn follow_waits(&self, turn: &TurnId, control: &TurnControl) {
        let mut wait = None;
        while let Some(next) = control.next_wait(wait).await {
            wait = next;
            self.set_wait(turn, wait);
        }
    }

    /// Starts the next turn with messages that were sent during a turn and not delivered by its end.
    fn start_next_with<'a>(
        &'a self,
        user: &'a str,
        quota_key: Option<&'a str>,
        turn: &'a TurnId,
        queued: Vec<QueuedMessage>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        // Boxed, since a turn that is started ends here again.
        Box::pin(async move {
            let row = match self.0.catalog.turn(user, turn.as_str()).await {
                Ok(Some(row)) => row,
                Ok(None) | Err(_) => return,
            };
            // A turn without a conversation has no next turn.
            let Some(conversation_id) = row.conversation_id else { return };
            let input: Vec<UserPart> = queued.into_iter().flat_map(|message| message.input).collect();
            let request = TurnRequest {
                input: input.into(),
                agent: Some(row.agent),
                model: row.model,
                mode: row.mode.as_deref().and_then(ToolMode::from_name),
                ..TurnRequest::default()
            };
            let parent_ref = ParentRef::Turn(TurnParent::after_turn(turn.as_str()));
            let conversation = ConversationRef::Existing { conversation_id, parent: parent_ref };
            let new = TurnSpec { request, conversation, ..TurnSpec::default() };
            let principal = match self.principal_of_turn(user, quota_key).await {
                Ok(principal) => principal,
                Err(error) => {
                    tracing::error!(%error, turn_id = turn.as_str(), "queued message did not start a turn");
                    return;
                }
            };
            if let Err(error) = self.start_turn(&principal, new).await {
                let reason = error.message;
                tracing::error!(turn_id = turn.as_str(), reason, "queued message did not start a turn");
            }
        })
    }

    /// Principal of the turn's requester, with its current limits. Permission for the models was checked when
    /// the turn began.
    async fn principal_of_turn(&self, user: &str, quota_key: Option<&str>) -> Result<Principal, StoreError> {
        let catalog = &self.0.catalog;
        let of_user = catalog.person(user).await?.map(|person| person.limits).unwrap_or_default();
        let mut limits = PrincipalLimits { user: of_user, ..PrincipalLimits::default() };
        let mut key_id = None;
        if let Some(quota_key) = quota_key.filter(|quota_key| *quota_key != user)
            && let Some(key) = catalog.key(quota_key).await?.filter(|key| key.user == user)
        {
            limits.key.usage = key.limits.usage;
            key_id = Some(key.id);
        }
        Ok(Principal { key_id, limits: Arc::new(limits), ..Principal::local(user) })
    }

    /// Cancels all turns of a user and waits until they have ended, for a moment. Returns how many ran.
    pub(crate) async fn cancel_all_of(&self, user: &str) -> u64 {
        let running: Vec<(TurnControl, CancellationToken)> = self
            .turns()
            .values()
            .filter(|running| running.info.user == user)
            .map(|running| (running.control.clone(), running.finalized.clone()))
            .collect();
        for (control, _) in &running {
            // The turn may have ended already.
            let _ = control.cancel().await;
        }
        let all_ended = futures_util::future::join_all(running.iter().map(|(_, ended)| ended.cancelled()));
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, all_ended).await;
        running.len() as u64
    }

    async fn persist_end(&self, user: &str, ended: TurnResult) -> Option<TurnStatus> {
        // Not here: another process has it, or the log was lost and the next start reads what it holds.
        let end_status = ended.status?;
        let turn_id = ended.turn_id;
        let (Ok(status), Ok(history_json), Ok(usage)) = (
            serde_json::to_value(end_status),
            serde_json::to_string(&ended.added_messages),
            serde_json::to_value(ended.usage),
        ) else {
            tracing::error!(turn_id = turn_id.as_str(), "the end of a turn cannot be serialized");
            return None;
        };
        let status = status.as_str().unwrap_or_default().to_owned();
        if let Some(history) = self.0.history.get() {
            // A store that accepts nothing for this long does not accept the end either; the history then
            // follows it.
            let _ = tokio::time::timeout(HISTORY_TIMEOUT, history.wait_written(user, &turn_id)).await;
        }
        let pace = turn_timing(ended.first_content_ms, ended.writing_ms, &ended.usage);
        let end = TurnEnd {
            status,
            history_json,
            text: ended.text,
            usage: Some(usage),
            pace,
            ended_at: ended.ended_at,
        };
        self.write_end(user, &turn_id, end).await;
        Some(end_status)
    }

    /// The log has the end already; a store that is away for a moment must not leave the conversation waiting for it.
    pub(super) async fn write_end(&self, user: &str, turn: &TurnId, end: TurnEnd) {
        for _ in 0..END_RETRIES_MAX {
            match self.0.catalog.end_turn(user, turn.as_str(), end.clone()).await {
                Ok(_) => return,
                Err(error @ StoreError::Invalid { .. }) => {
                    tracing::error!(%error, turn_id = turn.as_str(), "the store rejected the end of a turn");
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, turn_id = turn.as_str(), "the end of a turn is waiting for the store")
                }
            }
            tokio::select! {
                () = tokio::time::sleep(END_RETRY_PAUSE) => {}
                // The next start finds it in the log.
                () = self.0.handed_over.cancelled() => return,
            }
        }
    }

    /// End of a turn of which only the fact is known.
    pub(super) fn interrupted_end() -> TurnEnd {
        TurnEnd {
            status: "interrupted".to_owned(),
            history_json: "[]".to_owned(),
            text: String::new(),
            usage: None::<Value>,
            pace: TurnTiming::default(),
            ended_at: jiff::Timestamp::now().as_millisecond(),
        }
    }
}

/// True if queued messages may start the next turn: after a stop or a failure the user decides.
fn allows_followup(status: TurnStatus) -> bool {
    matches!(status, TurnStatus::Completed | TurnStatus::Length | TurnStatus::Limit)
}
