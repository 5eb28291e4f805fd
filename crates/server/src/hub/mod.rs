//! The turns that are running: who may steer them, where their viewers begin, and what becomes of them at their end, when
//! the server starts, and when it stops.
//!
//! It decides nothing about a turn and holds nothing that a restart would lose: what is here are addresses of turns whose
//! truth is in the log, and whose place is in the catalog.

mod admission;
mod drain;
mod elsewhere;
mod equal_posts;
mod history;
mod merging;
mod parked;
mod queued;
mod resume;
mod running;
mod seats;
mod start;
mod stored;

pub use drain::Drained;
pub use merging::MERGE_AFTER;
pub use parked::{Unparked, WaitsFor};
pub use resume::Resumed;
pub use running::RunningTurn;
pub use seats::Seat;
pub use start::{Behind, NewTurn, OnDisconnect, Replayed, Started, Thread};

use crate::error::ApiError;
use crate::principal::Principal;
use crate::telemetry::{CallHistory, Resumed as CameBack, Telemetry};
use crate::viewer::{From, Viewer, Watchdog};
use admission::Turns;
use equal_posts::IdempotencyLocks;
use seats::Seats;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use throughline::config::ServerLimits;
use throughline::{Throughline, TurnControl};
use throughline_engine::TurnId;
use throughline_store::catalog::TurnRow;
use throughline_store::{Catalog, Log};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The turns that are running. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Hub(Arc<Inner>);

struct Inner {
    app: Throughline,
    log: Arc<dyn Log>,
    catalog: Arc<dyn Catalog>,
    limits: ServerLimits,
    turns: Mutex<Turns>,
    idempotency: IdempotencyLocks,
    seats: Seats,
    watchdog: Watchdog,
    telemetry: Measured,
    /// How long after its end the deltas of a turn are merged; `None` = never.
    merge_after: Option<Duration>,
    to_merge: OnceLock<merging::ToMerge>,
    /// Turns that were open when the server started are running again, or have been ended truthfully.
    ready: AtomicBool,
    /// No turn is started any more.
    stopping: CancellationToken,
    /// Viewers are closed, cleanly and without an end: they come back, to whoever has the turns then.
    handed_over: CancellationToken,
    /// Writes the calls of turns; what it has of a turn is written before the turn's end is.
    history: OnceLock<CallHistory>,
    /// One task for each turn, until everything about it is kept.
    tasks: TaskTracker,
}

/// Who counts viewers, once somebody does.
pub(crate) type Measured = Arc<OnceLock<Arc<Telemetry>>>;

/// Where a turn stands.
#[derive(Clone, Debug)]
pub enum Standing {
    /// It runs, and can be told something.
    Running(TurnControl),
    /// It is over, or will be in a moment.
    Ended(Box<TurnRow>),
}

impl Hub {
    pub(crate) fn new(
        app: Throughline,
        catalog: Arc<dyn Catalog>,
        limits: ServerLimits,
        merge_after: Option<Duration>,
    ) -> Self {
        let (log, telemetry) = (app.log().clone(), Measured::default());
        Self(Arc::new(Inner {
            watchdog: Watchdog::new(log.clone(), &limits, telemetry.clone()),
            telemetry,
            app,
            log,
            catalog,
            limits,
            merge_after,
            to_merge: OnceLock::new(),
            turns: Mutex::default(),
            idempotency: IdempotencyLocks::default(),
            seats: Seats::default(),
            ready: AtomicBool::new(false),
            stopping: CancellationToken::new(),
            handed_over: CancellationToken::new(),
            history: OnceLock::new(),
            tasks: TaskTracker::new(),
        }))
    }

    /// The history of calls is written by this. A second one is not heard.
    pub fn keep_history(&self, history: CallHistory) {
        // Whoever was first writes it all.
        let _ = self.0.history.set(history);
    }

    fn running(&self) -> MutexGuard<'_, Turns> {
        // Every change is made whole before the lock is let go.
        self.0.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether all turns that were open when the server started are running again. R: S2
    pub fn is_ready(&self) -> bool {
        self.0.ready.load(Ordering::Acquire) && !self.0.stopping.is_cancelled()
    }

    /// How many turns run now.
    pub fn turns_running(&self) -> usize {
        self.running().len()
    }

    /// How many of them run nothing: they wait for their requester.
    fn turns_parked(&self) -> usize {
        self.running().values().filter(|running| running.parked.is_some()).count()
    }

    /// Cancelled when viewers are to go: what a surface that is not a [`Viewer`] waits for.
    pub fn handed_over(&self) -> CancellationToken {
        self.0.handed_over.clone()
    }

    /// Where a turn of this user stands.
    ///
    /// # Errors
    /// 404: there is none, or it is another user's. 503: the server is starting and has not come to it yet (`starting`), or
    /// another server runs it (`owned_elsewhere`).
    pub async fn control(&self, user: &str, turn: &TurnId) -> Result<Standing, ApiError> {
        if let Some(running) = self.running().get(turn).filter(|running| running.begun.user == user) {
            return Ok(Standing::Running(running.control.clone()));
        }
        let row = self.0.catalog.turn(user, turn.as_str()).await?;
        let row = row.ok_or_else(|| ApiError::not_found("turn", turn.as_str()))?;
        if row.end.is_none()
            && let Some(error) = self.owned_elsewhere(turn).await?
        {
            return Err(error);
        }
        if row.end.is_none() && !self.0.ready.load(Ordering::Acquire) {
            return Err(ApiError::unavailable(
                "starting",
                "the server is starting and goes on with this turn soon",
                1,
            ));
        }
        Ok(Standing::Ended(Box::new(row)))
    }

    /// A cursor in a turn of this user.
    ///
    /// # Errors
    /// 404: there is none, or it is another user's. 410: it has ended, and its events are gone. 429: too many streams are
    /// open. 503: it has not begun yet.
    pub async fn viewer(&self, principal: &Principal, turn: &TurnId, from: From) -> Result<Viewer, ApiError> {
        let (inner, user) = (&self.0, principal.user.as_str());
        let control = self
            .running()
            .get(turn)
            .filter(|running| running.begun.user == user)
            .map(|running| running.control.clone());
        if control.is_none() {
            self.has_begun(user, turn).await?;
        }
        let seat = self.seat(principal.counted_as(), turn)?;
        let (log, handed_over) = (inner.log.clone(), inner.handed_over.clone());
        let opened = Viewer::open(log, turn.clone(), from, &inner.limits, handed_over, control, seat).await;
        let came_back = match (from, &opened) {
            (From::After(0), _) => None,
            (_, Err(error)) => (error.status == http::StatusCode::GONE).then_some(CameBack::Gone),
            (From::Snapshot, Ok(_)) => Some(CameBack::Snapshot),
            (From::After(_), Ok(viewer)) if viewer.begins_anew() => Some(CameBack::Resync),
            (From::After(_), Ok(_)) => Some(CameBack::Continued),
        };
        if let (Some(telemetry), Some(came_back)) = (self.telemetry(), came_back) {
            telemetry.meter().resumed(came_back);
        }
        opened
    }

    /// Tells this of viewers from now on. The first one counts.
    pub(crate) fn measured(&self, telemetry: Arc<Telemetry>) {
        let _ = self.0.telemetry.set(telemetry);
    }

    /// Who counts viewers.
    pub(crate) fn telemetry(&self) -> Option<&Arc<Telemetry>> {
        self.0.telemetry.get()
    }

    /// Sees to it that viewers which take nothing are cut.
    pub(crate) fn watchdog(&self) -> &Watchdog {
        &self.0.watchdog
    }
}
