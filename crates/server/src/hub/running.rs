//! One running turn, from its first event until everything about it is kept.

use super::{Hub, OnDisconnect};
use serde_json::Value;
use throughline::{Turn, TurnControl, TurnEnded, TurnHooks};
use throughline_engine::{Remembered, TurnId};
use throughline_store::StoreError;
use throughline_store::catalog::{NewRemembered, TurnEnd};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// A turn that runs here.
pub(super) struct Running {
    pub user: String,
    pub control: TurnControl,
    pub on_disconnect: OnDisconnect,
    /// Those that look at it now.
    pub viewers: u32,
    /// Cancelled when the catalog has its end: whoever begins the next turn finds what this one adds.
    pub settled: CancellationToken,
}

/// How a turn tells its end and what is to be kept.
pub(super) struct Ends {
    ended: oneshot::Receiver<TurnEnded>,
}

/// How often a lost store is tried again to write down an end, and the pause between two tries.
const END_TRIES: u32 = 60;
const END_PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

impl Hub {
    /// What the library calls for a turn of this user.
    pub(super) fn hooks(&self, user: &str, conversation: Option<String>) -> (TurnHooks, Ends) {
        let (told, ended) = oneshot::channel();
        let hub = self.clone();
        let (user, runtime) = (user.to_owned(), tokio::runtime::Handle::current());
        let hooks = TurnHooks::default()
            // If nobody waits any more, the process is ending, and the next one asks the log.
            .at_end(move |ended| drop(told.send(ended)))
            .kept(move |answer| {
                let (hub, user, conversation) = (hub.clone(), user.clone(), conversation.clone());
                if let Err(error) = runtime.block_on(hub.remember(&user, conversation, answer)) {
                    tracing::error!(%error, user, "an answer that should hold is not kept");
                }
            });
        (hooks, Ends { ended })
    }

    /// R: A2
    async fn remember(
        &self,
        user: &str,
        conversation_id: Option<String>,
        answer: Remembered,
    ) -> Result<(), StoreError> {
        let conversation_id = match answer.scope {
            throughline::Scope::Always => None,
            _ => conversation_id,
        };
        let about =
            serde_json::json!([answer.tool, answer.fingerprint, answer.arguments_hash, answer.arguments]);
        let value = serde_json::to_value(&answer).map_err(StoreError::failed)?;
        let at = jiff::Timestamp::now().as_millisecond();
        let answer = NewRemembered { conversation_id, about: about.to_string(), answer: value, at };
        self.0.catalog.remember(user, answer).await.map(drop)
    }

    /// What holds for this user, in this conversation.
    pub(super) async fn remembered(
        &self,
        user: &str,
        conversation_id: Option<&str>,
    ) -> Result<Vec<Remembered>, StoreError> {
        let rows = self.0.catalog.remembered(user, conversation_id).await?;
        // What cannot be understood is not followed: the question is asked again.
        Ok(rows.into_iter().filter_map(|row| serde_json::from_value(row.answer).ok()).collect())
    }

    /// Takes a turn in that has begun.
    pub(super) fn take_in(
        &self,
        user: &str,
        turn: Turn,
        on_disconnect: OnDisconnect,
        ends: Ends,
    ) -> TurnControl {
        let id = turn.id().clone();
        let (control, settled) = (turn.detach(), CancellationToken::new());
        let running = Running {
            user: user.to_owned(),
            control: control.clone(),
            on_disconnect,
            viewers: 0,
            settled: settled.clone(),
        };
        self.running().insert(id.clone(), running);
        let (hub, user) = (self.clone(), user.to_owned());
        self.0.tasks.spawn(async move {
            // Whatever happens, whoever waits for this goes on.
            let _settled = settled.drop_guard();
            if let Ok(ended) = ends.ended.await {
                hub.keep_end(&user, ended).await;
            }
            hub.running().remove(&id);
        });
        control
    }

    async fn keep_end(&self, user: &str, ended: TurnEnded) {
        // Not here: another process has it, or the log was lost and the next start reads what it holds.
        let Some(status) = ended.status else { return };
        let turn_id = ended.turn_id;
        let (Ok(status), Ok(adds), Ok(usage)) = (
            serde_json::to_value(status),
            serde_json::to_string(&ended.adds),
            serde_json::to_value(ended.usage),
        ) else {
            tracing::error!(turn_id = turn_id.as_str(), "the end of a turn cannot be written as JSON");
            return;
        };
        let status = status.as_str().unwrap_or_default().to_owned();
        let end = TurnEnd { status, adds, text: ended.text, usage: Some(usage), ended_at: ended.ended_at };
        self.write_end(user, &turn_id, end).await;
    }

    /// The log has the end already; a store that is away for a moment must not leave the conversation waiting for it.
    pub(super) async fn write_end(&self, user: &str, turn: &TurnId, end: TurnEnd) {
        for _ in 0..END_TRIES {
            match self.0.catalog.end_turn(user, turn.as_str(), end.clone()).await {
                Ok(_) => return,
                Err(error @ StoreError::Invalid { .. }) => {
                    tracing::error!(%error, turn_id = turn.as_str(), "the end of a turn is refused");
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, turn_id = turn.as_str(), "the end of a turn waits for the store")
                }
            }
            tokio::select! {
                () = tokio::time::sleep(END_PAUSE) => {}
                // The next start finds it in the log.
                () = self.0.handed_over.cancelled() => return,
            }
        }
    }

    /// How a turn ended of which nothing is known but that it did.
    pub(super) fn interrupted() -> TurnEnd {
        TurnEnd {
            status: "interrupted".to_owned(),
            adds: "[]".to_owned(),
            text: String::new(),
            usage: None::<Value>,
            ended_at: jiff::Timestamp::now().as_millisecond(),
        }
    }
}
