//! One viewer of a turn: a cursor in the log, the same for every surface. It has no queue, so it never slows
//! the turn, and a client that reconnects with the number of its last event continues there.

mod merge;
mod watchdog;

pub use merge::merge_deltas;
pub(crate) use watchdog::{ViewerProgress, ViewerWatchdog};

use crate::error::ApiError;
use crate::turn_log::{self, fold_message, is_last_event};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use throughline::config::ServerLimits;
use throughline::{AssistantMessage, TurnControl};
use throughline_engine::TurnId;
use throughline_store::{Log, LogError, LogRecord, LogTail, STREAM_END};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::CancellationToken;

/// A viewer that took nothing for this long, and then finds at least [`MERGED_RECORDS_MIN`] records, gets them with deltas merged.
const STALLED_AFTER: Duration = Duration::from_millis(250);
/// See [`STALLED_AFTER`].
const MERGED_RECORDS_MIN: usize = 64;

/// Position at which a viewer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeFrom {
    /// The event after this number; 0 = the first.
    After(u64),
    /// The current message, and then the events after it.
    Snapshot,
}

/// Next item of a viewer.
#[derive(Clone, Debug, PartialEq)]
pub enum ViewerItem {
    /// Events, at least one, in order.
    Records(Vec<LogRecord>),
    /// The message so far, as requested; the next events follow its `seq`.
    Snapshot(Box<AssistantMessage>),
    /// The viewer's state disagrees with the log: replace it by this message. The next events follow its `seq`.
    Resync(Box<AssistantMessage>),
    /// Silence: a heartbeat is due.
    Idle,
    /// The log has not accepted events for this time: nothing can be shown until it does.
    StoreUnavailable(Duration),
}

/// A cursor in one turn.
pub struct Viewer {
    log: Arc<dyn Log>,
    turn: TurnId,
    opening: ViewerOpening,
    tail: Option<Box<dyn LogTail>>,
    /// The last event that was given.
    after: u64,
    ended: bool,
    heartbeat: Duration,
    /// Time of the last item; `None` = none yet.
    last_given_at: Option<Instant>,
    /// Time of the last heartbeat.
    last_heartbeat_at: Instant,
    alarm: Pin<Box<Sleep>>,
    handed_over: CancellationToken,
    /// The turn, if it runs here.
    control: Option<TurnControl>,
    store_wait: Duration,
    /// True while the viewer has been notified of an outage of the store.
    outage_reported: bool,
    /// Dropped with the viewer, which notifies the turn manager.
    _guard: Box<dyn Send + Sync>,
}

/// First item of a viewer, before the next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ViewerOpening {
    Events,
    Snapshot,
    Resync,
}

impl Viewer {
    /// A cursor. A number that the log does not have, because it was lost in a power cut or has been merged with its
    /// neighbors, begins with a `resync`.
    pub(crate) async fn open(
        log: Arc<dyn Log>,
        turn: TurnId,
        from: ResumeFrom,
        limits: &ServerLimits,
        handed_over: CancellationToken,
        control: Option<TurnControl>,
        guard: Box<dyn Send + Sync>,
    ) -> Result<Self, ApiError> {
        let expired = |error| match error {
            // The catalog has the turn, so its log existed.
            LogError::UnknownTurn { turn } => {
                let message = format!("the events of turn `{turn}` have been deleted");
                let error = ApiError::gone("events_gone", message);
                error.remedy("its messages are in its conversation: GET /v1/conversations")
            }
            error => error.into(),
        };
        let (opening, after, ended) = match from {
            ResumeFrom::Snapshot => (ViewerOpening::Snapshot, 0, false),
            ResumeFrom::After(after) => match log.read(turn.as_str(), after, 1).await {
                Ok(backlog) => (
                    ViewerOpening::Events,
                    after,
                    backlog.is_empty() && is_last_event(&*log, &turn, after).await,
                ),
                Err(LogError::Ahead { .. } | LogError::CursorInsideMerge { .. }) => {
                    (ViewerOpening::Resync, 0, false)
                }
                Err(error) => return Err(expired(error)),
            },
        };
        let (heartbeat, now) = (Duration::from_millis(limits.heartbeat_ms), Instant::now());
        let store_wait = Duration::from_millis(limits.store_wait_ms);
        Ok(Self {
            log,
            turn,
            opening,
            tail: None,
            after,
            ended,
            heartbeat,
            last_given_at: None,
            last_heartbeat_at: now,
            alarm: Box::pin(sleep_until(now + heartbeat.min(store_wait))),
            handed_over,
            control,
            store_wait,
            outage_reported: false,
            _guard: guard,
        })
    }

    pub fn turn(&self) -> &TurnId {
        &self.turn
    }

    /// The number of the last event that was given.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// True once the turn's last event was returned: nothing can follow.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// True if the first item is a `resync`.
    pub(crate) fn opens_with_resync(&self) -> bool {
        self.opening == ViewerOpening::Resync
    }

    /// Next item; `None` after the last event, and when the server is about to stop: see
    /// [`has_ended`](Self::has_ended). Cancel safe.
    ///
    /// # Errors
    /// The log cannot be read.
    pub async fn next(&mut self) -> Result<Option<ViewerItem>, LogError> {
        if self.ended {
            return Ok(None);
        }
        let stalled = self.last_given_at.is_some_and(|given_at| given_at.elapsed() > STALLED_AFTER);
        loop {
            match self.opening {
                ViewerOpening::Events => {}
                ViewerOpening::Snapshot => return Ok(Some(ViewerItem::Snapshot(self.fold().await?))),
                ViewerOpening::Resync => return Ok(Some(ViewerItem::Resync(self.fold().await?))),
            }
            let tail = match &mut self.tail {
                Some(tail) => tail,
                None => match self.log.tail(self.turn.as_str(), self.after).await {
                    Ok(tail) => self.tail.insert(tail),
                    Err(LogError::Ahead { .. } | LogError::CursorInsideMerge { .. }) => {
                        self.opening = ViewerOpening::Resync;
                        continue;
                    }
                    Err(error) => return Err(error),
                },
            };
            tokio::select! {
                biased;
                records = tail.next() => match records {
                    Ok(Some(records)) => return Ok(Some(self.emit(records, stalled))),
                    Ok(None) => {
                        self.ended = true;
                        return Ok(None);
                    }
                    // The turn has ended and was merged while this viewer was on its way.
                    Err(LogError::Ahead { .. } | LogError::CursorInsideMerge { .. }) => {
                        self.tail = None;
                        self.opening = ViewerOpening::Resync;
                    }
                    Err(error) => return Err(error),
                },
                () = self.handed_over.cancelled() => return Ok(None),
                () = &mut self.alarm => {
                    // The alarm is not put off with every event, only looked at when it rings.
                    let (heartbeat_due_at, now) = (self.last_heartbeat_at + self.heartbeat, Instant::now());
                    let append_lag = self.control.as_ref().and_then(TurnControl::append_lag);
                    let outage = append_lag.filter(|append_lag| *append_lag >= self.store_wait);
                    // A wait that has begun since is reported when it is long enough.
                    let next_check = now + append_lag.map_or(self.store_wait, |append_lag| self.store_wait.saturating_sub(append_lag));
                    let was_reported = std::mem::replace(&mut self.outage_reported, outage.is_some());
                    if let Some(outage) = outage.filter(|_| !was_reported) {
                        self.last_heartbeat_at = now;
                        self.alarm.as_mut().reset(now + self.heartbeat);
                        return Ok(Some(ViewerItem::StoreUnavailable(outage)));
                    }
                    if heartbeat_due_at > now {
                        self.alarm.as_mut().reset(if outage.is_some() { heartbeat_due_at } else { heartbeat_due_at.min(next_check) });
                        continue;
                    }
                    self.last_heartbeat_at = now;
                    self.alarm.as_mut().reset(now + self.heartbeat.min(self.store_wait));
                    return Ok(Some(ViewerItem::Idle));
                }
            }
        }
    }

    fn emit(&mut self, mut records: Vec<LogRecord>, stalled: bool) -> ViewerItem {
        turn_log::withhold_model_texts(&mut records);
        if let Some(last) = records.last() {
            self.after = last.seq;
            self.ended = last.kind == STREAM_END;
        }
        self.last_heartbeat_at = Instant::now();
        self.last_given_at = Some(self.last_heartbeat_at);
        ViewerItem::Records(if stalled && records.len() >= MERGED_RECORDS_MIN {
            merge_deltas(records)
        } else {
            records
        })
    }

    async fn fold(&mut self) -> Result<Box<AssistantMessage>, LogError> {
        let (message, ended) = fold_message(&*self.log, &self.turn).await?;
        self.opening = ViewerOpening::Events;
        self.after = message.seq.0;
        self.ended = ended;
        self.last_given_at = Some(Instant::now());
        Ok(Box::new(message))
    }
}
