//! The running turns: start, steering, viewers, end; resume after a start of the server, and hand-over at its
//! shutdown.
//!
//! The turn manager decides nothing about a turn and holds nothing that a restart would lose: the state of a turn is
//! in the log and in the catalog, and the turn manager only has handles.

mod admission;
mod compaction_queue;
mod drain;
mod history;
mod idempotency;
mod parked;
mod peers;
mod remote_turns;
mod resume;
mod running_turns;
mod start;
mod steering;
mod turn_record;
mod viewer_slots;

pub use compaction_queue::COMPACT_AFTER;
pub use drain::DrainSummary;
pub(crate) use parked::{UnparkOutcome, WaitsFor};
pub(crate) use peers::{PeerAnswer, PeerCommand, forward_commands};
pub(crate) use running_turns::RunningTurn;
pub use start::TurnSpec;
pub(crate) use start::{ConversationRef, OnDisconnect, ParentRef, StartedTurn};

use crate::error::ApiError;
use crate::principal::Principal;
use crate::telemetry::{CallHistory, Telemetry, TelemetryCell, ViewerResume};
use crate::turn_log;
use crate::viewer::{ResumeFrom, Viewer, ViewerWatchdog};
use admission::TurnTable;
use idempotency::IdempotencyLocks;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use throughline::config::ServerLimits;
use throughline::{Throughline, TurnControl};
use throughline_engine::TurnId;
use throughline_store::{Catalog, Log, TurnRow};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use viewer_slots::ViewerSlots;

/// The turns that are running. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct TurnManager(Arc<TurnManagerInner>);

struct TurnManagerInner {
    app: Throughline,
    log: Arc<dyn Log>,
    catalog: Arc<dyn Catalog>,
    limits: ServerLimits,
    turns: Mutex<TurnTable>,
    idempotency: IdempotencyLocks,
    /// Turns that were taken over and do not run here yet.
    resuming: Mutex<HashSet<TurnId>>,
    resumed: Notify,
    viewer_slots: ViewerSlots,
    watchdog: ViewerWatchdog,
    telemetry: TelemetryCell,
    /// Delay between the end of a turn and the merging of its deltas; `None` to keep them.
    merge_after: Option<Duration>,
    compaction_queue: OnceLock<compaction_queue::CompactionQueue>,
    /// Turns that were open when the server started are running again, or have been ended truthfully.
    ready: AtomicBool,
    /// Cancelled at shutdown: no turn is started afterwards.
    stopping: CancellationToken,
    /// Cancelled when turns are handed over: viewers are closed cleanly without an end, and reconnect to the
    /// next owner.
    handed_over: CancellationToken,
    /// Writes the calls of turns; what it has of a turn is written before the turn's end is.
    history: OnceLock<CallHistory>,
    /// One task for each turn, until all its data are stored.
    tasks: TaskTracker,
}

/// State of a turn.
#[derive(Clone, Debug)]
pub enum TurnLookup {
    /// The turn runs and accepts commands.
    Running(TurnControl),
    /// The turn has no end, and this server does not run it: it is stopping, or could not resume it.
    NotRunning,
    /// The turn has ended, or will in a moment.
    Ended(Box<TurnRow>),
}

impl TurnLookup {
    /// The control of a turn that runs. `None` = it is over.
    ///
    /// # Errors
    /// 503: it has no end, and nothing runs it. A command to it is to be sent again.
    pub(crate) fn into_control(self, turn: &TurnId) -> Result<Option<TurnControl>, ApiError> {
        match self {
            Self::Running(control) => Ok(Some(control)),
            Self::NotRunning => Err(turn_log::not_running(turn)),
            Self::Ended(_) => Ok(None),
        }
    }
}

impl TurnManager {
    /// True from when the server has begun to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.0.stopping.is_cancelled()
    }

    pub(crate) fn new(
        app: Throughline,
        catalog: Arc<dyn Catalog>,
        limits: ServerLimits,
        merge_after: Option<Duration>,
    ) -> Self {
        let (log, telemetry) = (app.log().clone(), TelemetryCell::default());
        Self(Arc::new(TurnManagerInner {
            watchdog: ViewerWatchdog::new(log.clone(), &limits, telemetry.clone()),
            telemetry,
            app,
            log,
            catalog,
            limits,
            merge_after,
            compaction_queue: OnceLock::new(),
            turns: Mutex::default(),
            idempotency: IdempotencyLocks::default(),
            resuming: Mutex::default(),
            resumed: Notify::new(),
            viewer_slots: ViewerSlots::default(),
            ready: AtomicBool::new(false),
            stopping: CancellationToken::new(),
            handed_over: CancellationToken::new(),
            history: OnceLock::new(),
            tasks: TaskTracker::new(),
        }))
    }

    /// Sets the writer of the history of calls. Later calls are ignored.
    pub fn set_call_history(&self, history: CallHistory) {
        // The first one is set for good.
        let _ = self.0.history.set(history);
    }

    fn turns(&self) -> MutexGuard<'_, TurnTable> {
        // Every change is made whole before the lock is let go.
        self.0.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn resuming(&self) -> MutexGuard<'_, HashSet<TurnId>> {
        self.0.resuming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True once all turns that were open at startup are running again.
    pub fn is_ready(&self) -> bool {
        self.0.ready.load(Ordering::Acquire) && !self.0.stopping.is_cancelled()
    }

    /// Number of running turns.
    pub fn turns_running(&self) -> usize {
        self.turns().len()
    }

    /// Number of parked turns, which wait for their requester.
    fn parked_count(&self) -> usize {
        self.turns().values().filter(|running| running.parked.is_some()).count()
    }

    /// Cancelled when viewers are to go: what a surface that is not a [`Viewer`] waits for.
    pub fn handed_over(&self) -> CancellationToken {
        self.0.handed_over.clone()
    }

    /// State of a turn of this user.
    ///
    /// # Errors
    /// 404: it does not exist, or belongs to another user. 503: the server is starting and has not resumed it
    /// yet (`starting`), or another server runs it (`owned_elsewhere`).
    pub async fn lookup(&self, user: &str, turn: &TurnId) -> Result<TurnLookup, ApiError> {
        self.wait_until_resumed(turn).await;
        if let Some(running) = self.turns().get(turn).filter(|running| running.info.user == user) {
            return Ok(TurnLookup::Running(running.control.clone()));
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
                "the server is starting and will resume this turn",
                1,
            ));
        }
        if row.end.is_none() && turn_log::is_open(&*self.0.log, turn).await? {
            return Ok(TurnLookup::NotRunning);
        }
        Ok(TurnLookup::Ended(Box::new(row)))
    }

    /// A cursor in a turn of this user.
    ///
    /// # Errors
    /// 404: it does not exist, or belongs to another user. 410: it has ended, and its events were deleted.
    /// 429: too many streams are open. 503: it has not begun yet.
    pub async fn viewer(
        &self,
        principal: &Principal,
        turn: &TurnId,
        from: ResumeFrom,
    ) -> Result<Viewer, ApiError> {
        let (inner, user) = (&self.0, principal.user.as_str());
        let control = self
            .turns()
            .get(turn)
            .filter(|running| running.info.user == user)
            .map(|running| running.control.clone());
        if control.is_none() {
            self.wait_for_log(user, turn).await?;
        }
        let slot = self.viewer_slot(principal.quota_key(), turn)?;
        let (log, handed_over) = (inner.log.clone(), inner.handed_over.clone());
        let open_result =
            Viewer::open(log, turn.clone(), from, &inner.limits, handed_over, control, Box::new(slot)).await;
        let resume_kind = match (from, &open_result) {
            (ResumeFrom::After(0), _) => None,
            (_, Err(error)) => (error.status == http::StatusCode::GONE).then_some(ViewerResume::Expired),
            (ResumeFrom::Snapshot, Ok(_)) => Some(ViewerResume::Snapshot),
            (ResumeFrom::After(_), Ok(viewer)) if viewer.opens_with_resync() => Some(ViewerResume::Resync),
            (ResumeFrom::After(_), Ok(_)) => Some(ViewerResume::Continued),
        };
        if let (Some(telemetry), Some(resume_kind)) = (self.telemetry(), resume_kind) {
            telemetry.meter().resumed(resume_kind);
        }
        open_result
    }

    /// Reports viewers to this telemetry. The first one set is used.
    pub(crate) fn set_telemetry(&self, telemetry: Arc<Telemetry>) {
        let _ = self.0.telemetry.set(telemetry);
    }

    /// Telemetry that counts viewers.
    pub(crate) fn telemetry(&self) -> Option<&Arc<Telemetry>> {
        self.0.telemetry.get()
    }

    /// Sees to it that viewers which take nothing are cut.
    pub(crate) fn watchdog(&self) -> &ViewerWatchdog {
        &self.0.watchdog
    }
}
