//! Turns that another server of the same database runs. Every server can read their events; only the owner
//! can execute commands, and a turn is not taken over while its server runs.

use super::TurnManager;
use crate::error::ApiError;
use jiff::Timestamp;
use std::time::Duration;
use throughline_engine::TurnId;
use throughline_store::{LogError, OwnerLease, TurnOwner};
use tokio::time::Instant;

/// Timeout for the log of a turn that another server has just accepted.
const LOG_START_TIMEOUT: Duration = Duration::from_secs(5);
/// Polling interval: servers do not notify each other of new turns.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// `Retry-After` of a command to a turn of a running server, in seconds: a balancer may choose another
/// server.
const RETRY_S: u64 = 2;
/// `Retry-After` of a command to a turn whose server has died, in seconds: an operator has to start it.
const RETRY_OWNER_DOWN_S: u64 = 30;

impl TurnManager {
    /// The error for a command to an open turn that another server runs.
    pub(super) async fn owned_elsewhere(&self, turn: &TurnId) -> Result<Option<ApiError>, ApiError> {
        let owner = self.0.log.remote_owner(turn.as_str()).await?;
        Ok(owner.map(|owner| owned_elsewhere_error(turn, &owner)))
    }

    /// The error for a new turn in a conversation whose last one has not ended.
    pub(super) async fn conversation_busy(&self, turn: &str) -> ApiError {
        let message = format!("turn `{turn}` of this conversation is still running");
        let own =
            format!("follow it (GET /v1/turns/{turn}/events), send it a message (…/messages), or cancel it");
        self.open_turn_error(ApiError::conflict("conversation_busy", message), turn, own).await
    }

    /// The error for the removal of a conversation with a turn that has not ended.
    pub(crate) async fn turn_running(&self, turn: &str) -> ApiError {
        let error = ApiError::conflict("turn_running", "a turn of this conversation is still running");
        self.open_turn_error(error, turn, format!("cancel it first: POST /v1/turns/{turn}/cancel")).await
    }

    /// Adds the open turn and the remedy: the owner's if another server runs it, else `own_remedy`.
    async fn open_turn_error(&self, error: ApiError, turn: &str, own_remedy: String) -> ApiError {
        let error = error.with_extra("turn_id", turn);
        match self.0.log.remote_owner(turn).await {
            Ok(Some(owner)) => error.remedy(remedy(&owner)).with_extra("owner", owner.name),
            // Who runs it is not worth another error.
            Ok(None) | Err(_) => error.remedy(own_remedy),
        }
    }

    /// Waits until the log of a turn of this user exists. It begins a moment after the turn was accepted, and
    /// later if the server that accepted it died in between: the turn continues when that one is back, so its
    /// events are never reported as deleted.
    ///
    /// # Errors
    /// 404: it does not exist, or belongs to another user. 503: it has not begun yet.
    pub async fn wait_for_log(&self, user: &str, turn: &TurnId) -> Result<(), ApiError> {
        let deadline = Instant::now() + LOG_START_TIMEOUT;
        loop {
            if self.turns().get(turn).is_some_and(|running| running.info.user == user) {
                return Ok(());
            }
            let row = self.0.catalog.turn(user, turn.as_str()).await?;
            let row = row.ok_or_else(|| ApiError::not_found("turn", turn.as_str()))?;
            if row.end.is_some() {
                return Ok(());
            }
            match self.0.log.read(turn.as_str(), 0, 1).await {
                Err(LogError::UnknownTurn { .. }) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => return Ok(()),
            }
            if Instant::now() >= deadline {
                let not_begun = || {
                    let message = format!("turn `{}` was accepted but has not begun yet", turn.as_str());
                    ApiError::unavailable("turn_not_begun", message, RETRY_S).remedy("try again in a moment")
                };
                return Err(self.owned_elsewhere(turn).await?.unwrap_or_else(not_begun));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

fn owned_elsewhere_error(turn: &TurnId, owner: &TurnOwner) -> ApiError {
    let (turn, name) = (turn.as_str(), owner.name.as_str());
    let (message, retry_s) = match owner.lease {
        OwnerLease::Held => (format!("turn `{turn}` runs on another server, `{name}`"), RETRY_S),
        OwnerLease::Expired { since } => {
            let since = since.and_then(|since| Timestamp::from_millisecond(since).ok());
            let since = since.map_or("for more than a day".to_owned(), |since| format!("since {since:.0}"));
            (
                format!("turn `{turn}` belongs to server `{name}`, which has been down {since}"),
                RETRY_OWNER_DOWN_S,
            )
        }
    };
    let error = ApiError::unavailable("owned_elsewhere", message, retry_s)
        .remedy(remedy(owner))
        .with_extra("owner", name);
    match owner.lease {
        OwnerLease::Held => error,
        OwnerLease::Expired { since } => error.with_extra("owner_gone_since", since),
    }
}

fn remedy(owner: &TurnOwner) -> &'static str {
    match owner.lease {
        OwnerLease::Held => "send it to that server: a load balancer must route a conversation to one server",
        OwnerLease::Expired { .. } => {
            "start another server on this database to resume the turn; the running servers do not take it over"
        }
    }
}
