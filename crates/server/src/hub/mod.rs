//! The turns that are running: who may steer them, and where their viewers begin.

use crate::error::ApiError;
use crate::principal::Principal;
use crate::state::ServerLimits;
use crate::viewer::{From, Viewer};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use throughline::engine::MessageId;
use throughline::{Throughline, TurnControl, TurnRequest};
use throughline_engine::TurnId;
use throughline_store::Log;
use tokio_util::sync::CancellationToken;

/// The turns that are running. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Hub(Arc<Inner>);

struct Inner {
    app: Throughline,
    log: Arc<dyn Log>,
    limits: ServerLimits,
    running: Mutex<HashMap<TurnId, Running>>,
    /// Viewers are closed when the server hands its turns over.
    draining: CancellationToken,
}

struct Running {
    user: String,
    control: TurnControl,
}

/// A turn that is to be started.
#[derive(Clone, Debug, Default)]
pub struct NewTurn {
    /// What the library is asked for. Its `history` is what the client told of it; a conversation's is put in by the hub.
    pub request: TurnRequest,
    /// What happens when nobody looks any more.
    pub on_disconnect: OnDisconnect,
}

/// What happens to a turn when its last viewer is gone.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OnDisconnect {
    /// It goes on.
    #[default]
    Continue,
    /// It is cancelled.
    Cancel,
}

/// A turn that runs now, or ran already under the same idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// Which turn.
    pub turn_id: TurnId,
    /// The message that it writes.
    pub message_id: MessageId,
    /// The conversation that it belongs to, if any.
    pub conversation_id: Option<String>,
    /// Whether this is the turn of an earlier request.
    pub replayed: Replayed,
}

/// Whether a request has started its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// It has.
    No,
    /// An earlier one with the same key and body had.
    Yes,
}

/// Where a turn stands.
#[derive(Clone, Debug)]
pub enum Standing {
    /// It runs, and can be told something.
    Running(TurnControl),
    /// It is over.
    Ended,
}

impl Hub {
    pub(crate) fn new(app: Throughline, log: Arc<dyn Log>, limits: ServerLimits) -> Self {
        let (running, draining) = (Mutex::default(), CancellationToken::new());
        Self(Arc::new(Inner { app, log, limits, running, draining }))
    }

    fn running(&self) -> MutexGuard<'_, HashMap<TurnId, Running>> {
        // Every change is one call on the map.
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a turn.
    ///
    /// # Errors
    /// What keeps it from beginning; later everything is told by its events.
    pub async fn start(&self, principal: &Principal, new: NewTurn) -> Result<Started, ApiError> {
        let mut request = new.request;
        request.user = Some(principal.user.clone());
        let conversation_id = request.conversation_id.as_ref().map(|id| id.as_str().to_owned());
        let mut turn = self.0.app.start(request).await?;
        let turn_id = turn.id().clone();
        // The first event names the message.
        turn.next().await;
        let message_id = turn.message().message_id.clone();
        let control = turn.detach();
        self.running().insert(turn_id.clone(), Running { user: principal.user.clone(), control });
        Ok(Started { turn_id, message_id, conversation_id, replayed: Replayed::No })
    }

    /// Where a turn of this user stands.
    ///
    /// # Errors
    /// 404: there is none, or it is another user's.
    pub async fn control(&self, user: &str, turn: &TurnId) -> Result<Standing, ApiError> {
        match self.running().get(turn).filter(|running| running.user == user) {
            Some(running) if running.control.is_over() => Ok(Standing::Ended),
            Some(running) => Ok(Standing::Running(running.control.clone())),
            None => Err(ApiError::not_found("turn", turn.as_str())),
        }
    }

    /// A cursor in a turn of this user.
    ///
    /// # Errors
    /// 404: there is none, or it is another user's; 410: its events are gone.
    pub async fn viewer(&self, user: &str, turn: &TurnId, from: From) -> Result<Viewer, ApiError> {
        self.control(user, turn).await?;
        let inner = &self.0;
        Viewer::open(inner.log.clone(), turn.clone(), from, inner.limits.heartbeat, inner.draining.clone())
            .await
    }
}
