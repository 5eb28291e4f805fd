//! Turns that were running when the server stopped, however it stopped: they go on before it calls itself ready. R: S2, S3

use super::history::NoHistory;
use super::running::{Begun, model_of};
use super::{Hub, OnDisconnect, WaitsFor, stored};
use crate::chat_questions::is_asked_in_a_chat;
use crate::turn_log;
use futures_util::StreamExt;
use futures_util::stream;
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;
use throughline::{Accepted, Event, HistoryOf};
use throughline_engine::{REQUESTER, Seq, TurnId};
use throughline_store::StoreError;
use throughline_store::catalog::OpenTurn;

/// Turns that are read and begun again beside each other.
const AT_ONCE: usize = 16;

/// What became of turns that were open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resumed {
    /// Those that go on, or had ended without anyone keeping their end.
    pub turns: usize,
    /// Those that cannot be gone on with here: a later release wrote them, or they cannot be read.
    pub left: usize,
}

enum Became {
    Resumed,
    Left,
}

impl Hub {
    /// Goes on with every turn that has no end. Called once, when the server starts; until it returns,
    /// [`is_ready`](Self::is_ready) says no.
    ///
    /// # Errors
    /// The catalog cannot be read.
    pub async fn resume_open(&self) -> Result<Resumed, StoreError> {
        let open = self.0.catalog.open_turns().await?;
        if let Some(history) = self.0.history.get() {
            history.rebuild(open.iter().map(|turn| (turn.user.clone(), turn.id.clone())));
        }
        let became: Vec<Became> =
            stream::iter(open).map(|turn| self.resume(turn)).buffer_unordered(AT_ONCE).collect().await;
        let left = became.iter().filter(|became| matches!(became, Became::Left)).count();
        self.0.ready.store(true, Ordering::Release);
        Ok(Resumed { turns: became.len() - left, left })
    }

    /// Who looked at it before comes back within seconds, or does not: that nobody looks now says nothing yet.
    fn cancel_if_nobody_comes(&self, turn: TurnId) {
        let (hub, wait) = (self.clone(), Duration::from_millis(self.0.limits.reconnect_ms));
        self.0.tasks.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = hub.0.stopping.cancelled() => return,
            }
            let unseen = hub
                .running()
                .get(&turn)
                .filter(|running| running.viewers == 0)
                .map(|running| running.control.clone());
            if let Some(control) = unseen
                && control.cancel().await == Accepted::Yes
            {
                tracing::info!(turn_id = turn.as_str(), "cancelled: nobody came back to it");
            }
        });
    }

    /// The last event of a turn that has handed calls or a question to whoever asked for it, who answers with another request.
    async fn waits_for_its_requester(&self, user: &str, turn: &TurnId) -> Option<(Seq, WaitsFor)> {
        let events = turn_log::raw_events(&*self.0.log, turn.as_str()).await.unwrap_or_default();
        let mut handed_over = HashSet::new();
        for event in &events {
            let Some(call) = event["tool_id"].as_str() else { continue };
            match event["type"].as_str() {
                Some("tool_start") if event["client_id"] == REQUESTER => drop(handed_over.insert(call)),
                Some("tool_result") => drop(handed_over.remove(call)),
                _ => {}
            }
        }
        let last = events.last().and_then(|event| event["seq"].as_u64());
        let last = last.map(Seq)?;
        if is_asked_in_a_chat(&*self.0.catalog, user, turn).await {
            return Some((last, WaitsFor::Approval));
        }
        (!handed_over.is_empty()).then_some((last, WaitsFor::ToolResults))
    }

    /// When a turn began, by its first event; now, if there is none yet. In milliseconds since 1970.
    async fn began_at(&self, turn: &TurnId) -> i64 {
        let first = self.0.log.read(turn.as_str(), 0, 1).await.unwrap_or_default();
        let first = first.first().and_then(|record| Event::of_kind(&record.kind, &record.payload).ok());
        first.map_or_else(|| jiff::Timestamp::now().as_millisecond(), |event| event.timestamp)
    }

    async fn resume(&self, open: OpenTurn) -> Became {
        let OpenTurn { id, user, conversation_id, stored } = open;
        let turn_id = TurnId::new(id.as_str());
        let (stored, promised) = match stored::read(&stored) {
            Ok(stored) => stored,
            Err(error) => {
                tracing::error!(turn_id = id, %error, "a turn that was running cannot be read: it counts as interrupted");
                self.write_end(&user, &turn_id, Self::interrupted()).await;
                return Became::Left;
            }
        };
        let history = match stored.history {
            HistoryOf::Turn => Vec::new(),
            HistoryOf::Conversation => match self.history_before(&user, &id).await {
                Ok(history) => history,
                Err(NoHistory::Running(before)) => {
                    tracing::error!(
                        turn_id = id,
                        before,
                        "a turn that was running follows one without an end"
                    );
                    return Became::Left;
                }
                Err(NoHistory::Error(error)) => {
                    tracing::error!(
                        turn_id = id,
                        error = error.message,
                        "what was said before a turn cannot be read"
                    );
                    return Became::Left;
                }
            },
        };
        let begun = Begun {
            user: user.clone(),
            counted_as: promised.counted_as,
            conversation_id: conversation_id.clone(),
            agent: stored.setup.agent.clone(),
            model: model_of(&stored),
            started_at: self.began_at(&turn_id).await,
            on_disconnect: OnDisconnect::Continue,
        };
        let (hooks, ends) = self.hooks(&user, conversation_id);
        match self.0.app.resume(stored, history, hooks).await {
            Ok(turn) => {
                let waits = match promised.after_restart {
                    OnDisconnect::Cancel => self.waits_for_its_requester(&user, &turn_id).await,
                    OnDisconnect::Continue => None,
                };
                let unseen = match waits {
                    Some(_) => OnDisconnect::Continue,
                    None => promised.after_restart,
                };
                let control = self.take_in(Begun { on_disconnect: unseen, ..begun }, None, turn, ends);
                self.say_again(&user, &turn_id, &control).await;
                if let Some((after, waits_for)) = waits {
                    self.park(&turn_id, after, waits_for);
                } else if unseen == OnDisconnect::Cancel {
                    self.cancel_if_nobody_comes(turn_id);
                }
                Became::Resumed
            }
            Err(error) => {
                tracing::error!(turn_id = id, %error, "a turn that was running cannot be gone on with");
                Became::Left
            }
        }
    }
}
