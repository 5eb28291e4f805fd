//! Turns that were running when the server stopped or died: they are resumed before it reports that it is
//! ready.

use super::history::{HistoryError, text_bytes};
use super::running_turns::{TurnInfo, model_of};
use super::{OnDisconnect, TurnManager, WaitsFor, turn_record};
use crate::chat_approvals::is_pending_in_chat;
use crate::turn_log;
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;
use throughline::{CommandAck, Event, HistorySource};
use throughline_engine::{REQUESTER, TurnId};
use throughline_store::{OpenTurn, StoreError};

/// Number of turns that are read and resumed in parallel.
const RESUME_CONCURRENCY: usize = 16;

/// Result of resuming open turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResumeSummary {
    /// Number of turns that continue, or had ended without a stored end.
    pub turns: usize,
    /// Turns that cannot be resumed here: a later release wrote them, or they cannot be read.
    pub skipped: usize,
}

pub(super) enum ResumeOutcome {
    Resumed,
    Skipped,
}

impl TurnManager {
    /// Resumes every turn that has no end. Called once, when the server starts; until it returns,
    /// [`is_ready`](Self::is_ready) is false.
    ///
    /// # Errors
    /// The catalog cannot be read.
    pub async fn resume_open(&self) -> Result<ResumeSummary, StoreError> {
        if let Some(peers) = self.0.log.peers() {
            let turns = self.take_over_all(&*peers).await?;
            self.0.ready.store(true, Ordering::Release);
            return Ok(ResumeSummary { turns, skipped: 0 });
        }
        let open = self.0.catalog.open_turns().await?;
        if let Some(history) = self.0.history.get() {
            history.rebuild(open.iter().map(|turn| (turn.user.clone(), turn.id.clone())));
        }
        let outcomes: Vec<ResumeOutcome> = stream::iter(open)
            .map(|turn| self.resume_turn(turn))
            .buffer_unordered(RESUME_CONCURRENCY)
            .collect()
            .await;
        let skipped = outcomes.iter().filter(|outcomes| matches!(outcomes, ResumeOutcome::Skipped)).count();
        self.0.ready.store(true, Ordering::Release);
        Ok(ResumeSummary { turns: outcomes.len() - skipped, skipped })
    }

    /// Resumes the turns of one conversation that have no end, and leaves all others to the next server. For
    /// a program that has exclusive use of the store for one conversation.
    ///
    /// # Errors
    /// The catalog cannot be read.
    pub async fn resume_conversation(&self, conversation: &str) -> Result<ResumeSummary, StoreError> {
        let mut open = self.0.catalog.open_turns().await?;
        open.retain(|turn| {
            turn.conversation_id.as_deref() == Some(conversation)
                && self.turns().get(&TurnId::new(turn.id.as_str())).is_none()
        });
        if let Some(history) = self.0.history.get() {
            history.rebuild(open.iter().map(|turn| (turn.user.clone(), turn.id.clone())));
        }
        let mut summary = ResumeSummary::default();
        for turn in open {
            match self.resume_turn(turn).await {
                ResumeOutcome::Resumed => summary.turns += 1,
                ResumeOutcome::Skipped => summary.skipped += 1,
            }
        }
        Ok(summary)
    }

    /// Answers requests without resuming any turn. For a program that has the store to itself.
    pub fn skip_resume(&self) {
        self.0.ready.store(true, Ordering::Release);
    }

    /// Cancels a turn unless a viewer reconnects. Former viewers reconnect within seconds, so their absence right after
    /// the start means nothing yet.
    fn cancel_unless_viewed(&self, turn: TurnId) {
        let (turn_manager, wait) = (self.clone(), Duration::from_millis(self.0.limits.reconnect_ms));
        self.0.tasks.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = turn_manager.0.stopping.cancelled() => return,
            }
            let on_disconnect = turn_manager
                .turns()
                .get(&turn)
                .filter(|running| running.viewers == 0)
                .map(|running| running.control.clone());
            if let Some(control) = on_disconnect
                && control.cancel().await == CommandAck::Accepted
            {
                tracing::info!(turn_id = turn.as_str(), "cancelled: its client did not reconnect");
            }
        });
    }

    /// Input that a turn waits for after it has handed calls or a question over to its requester, who answers
    /// with another request.
    async fn requester_wait(&self, user: &str, turn: &TurnId) -> Option<WaitsFor> {
        let events = turn_log::raw_events(&*self.0.log, turn.as_str()).await.unwrap_or_default();
        let mut handed_over = HashSet::new();
        for event in &events {
            let Ok(event) = event.parse::<Value>() else { continue };
            let Some(call) = event["tool_id"].as_str().map(str::to_owned) else { continue };
            match event["type"].as_str() {
                Some("tool_start") if event["client_id"] == REQUESTER => drop(handed_over.insert(call)),
                Some("tool_result") => drop(handed_over.remove(&call)),
                _ => {}
            }
        }
        if is_pending_in_chat(&*self.0.catalog, user, turn).await {
            return Some(WaitsFor::Approval);
        }
        (!handed_over.is_empty()).then_some(WaitsFor::ToolResults)
    }

    /// Time at which a turn began, from its first event; now, if it has none yet. In milliseconds since 1970.
    async fn started_at(&self, turn: &TurnId) -> i64 {
        let first = self.0.log.read(turn.as_str(), 0, 1).await.unwrap_or_default();
        let first = first.first().and_then(|record| Event::from_json(&record.kind, &record.payload).ok());
        first.map_or_else(|| jiff::Timestamp::now().as_millisecond(), |event| event.timestamp)
    }

    pub(super) async fn resume_turn(&self, open: OpenTurn) -> ResumeOutcome {
        let OpenTurn { id, user, conversation_id, stored } = open;
        let turn_id = TurnId::new(id.as_str());
        let stored_bytes = stored.len();
        let (stored, metadata) = match turn_record::read(&stored) {
            Ok(stored) => stored,
            Err(error) => {
                tracing::error!(turn_id = id, %error, "cannot resume turn: it is unreadable and counts as interrupted");
                self.write_end(&user, &turn_id, Self::interrupted_end()).await;
                return ResumeOutcome::Skipped;
            }
        };
        let history = match stored.history {
            HistorySource::Turn => Vec::new(),
            HistorySource::Conversation => match self.history_before(&user, &id).await {
                Ok(history) => history,
                Err(HistoryError::Running(before)) => {
                    tracing::error!(turn_id = id, before, "cannot resume a turn whose parent has no end");
                    return ResumeOutcome::Skipped;
                }
                Err(HistoryError::Error(error)) => {
                    tracing::error!(turn_id = id, error = error.message, "cannot read the history of a turn");
                    return ResumeOutcome::Skipped;
                }
            },
        };
        let info = TurnInfo {
            user: user.clone(),
            quota_key: metadata.quota_key,
            conversation_id: conversation_id.clone(),
            agent: stored.setup.agent.clone(),
            model: model_of(&stored),
            started_at: self.started_at(&turn_id).await,
            on_disconnect: OnDisconnect::Continue,
            text_bytes: stored_bytes + text_bytes(&history),
        };
        let (hooks, end_receiver) = self.hooks(&user, conversation_id);
        match self.0.app.resume(stored, history, hooks).await {
            Ok(turn) => {
                let requester_wait = match metadata.after_restart {
                    OnDisconnect::Cancel => self.requester_wait(&user, &turn_id).await,
                    OnDisconnect::Continue => None,
                };
                let on_disconnect = match requester_wait {
                    Some(_) => OnDisconnect::Continue,
                    None => metadata.after_restart,
                };
                let control =
                    self.insert_running(TurnInfo { on_disconnect, ..info }, None, turn, end_receiver);
                self.resend_queued(&user, &turn_id, &control).await;
                if let Some(waits_for) = requester_wait {
                    self.park(&turn_id, waits_for);
                } else if on_disconnect == OnDisconnect::Cancel {
                    self.cancel_unless_viewed(turn_id);
                }
                ResumeOutcome::Resumed
            }
            Err(error) => {
                tracing::error!(turn_id = id, %error, "cannot resume turn");
                ResumeOutcome::Skipped
            }
        }
    }
}
