//! One viewer's place in a turn: a cursor in the log, the same for every surface. It has no queue of its own, so it never
//! slows the turn, and whoever comes back with the number of the last event that it saw goes on there. // R: S2

mod merge;
mod slow;

pub use merge::merge_deltas;
pub use slow::{Meter, Watchdog};

use crate::error::ApiError;
use crate::hub::Seat;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use throughline::config::ServerLimits;
use throughline::{Event, Message, TurnControl};
use throughline_engine::TurnId;
use throughline_store::{Log, LogError, Record, STREAM_END, Tail};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::CancellationToken;

/// Records read at once to fold them.
const RECORDS_PER_READ: usize = 1_024;
/// A viewer that took nothing for this long, and then finds at least [`MERGED_FROM`] records, gets them with deltas merged.
const STALLED: Duration = Duration::from_millis(250);
/// See [`STALLED`].
const MERGED_FROM: usize = 64;

/// Where a viewer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// With the event behind this number; 0 = with the first.
    After(u64),
    /// With the message as it is now, and then the events behind it.
    Snapshot,
}

/// What a viewer sees next.
#[derive(Clone, Debug, PartialEq)]
pub enum Viewed {
    /// Events, at least one, in order.
    Records(Vec<Record>),
    /// The message so far, as asked for; the next events come behind its `seq`.
    Snapshot(Box<Message>),
    /// What this viewer has does not agree with the log: this is what there is. The next events come behind its `seq`.
    Resync(Box<Message>),
    /// Nothing for a while: a sign of life is due.
    Idle,
    /// The log has not taken what has happened for so long: nothing can be shown until it does.
    StoreIsAway(Duration),
}

/// A cursor in one turn.
pub struct Viewer {
    log: Arc<dyn Log>,
    turn: TurnId,
    begins: Begins,
    tail: Option<Box<dyn Tail>>,
    /// The last event that was given.
    after: u64,
    ended: bool,
    heartbeat: Duration,
    /// When something was last given; `None` = nothing yet.
    gave: Option<Instant>,
    /// When the last sign of life was given.
    alive: Instant,
    alarm: Pin<Box<Sleep>>,
    handed_over: CancellationToken,
    /// The turn, if it runs here.
    control: Option<TurnControl>,
    store_wait: Duration,
    /// Whether this wait for the store has been told.
    told: Told,
    _seat: Seat,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    No,
    Yes,
}

/// What is given before the next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begins {
    Plainly,
    WithSnapshot,
    WithResync,
}

impl Viewer {
    /// A cursor. A number that the log does not have, because it was lost in a power cut or has been merged with its
    /// neighbours, begins with a `resync`.
    pub(crate) async fn open(
        log: Arc<dyn Log>,
        turn: TurnId,
        from: From,
        limits: &ServerLimits,
        handed_over: CancellationToken,
        control: Option<TurnControl>,
        seat: Seat,
    ) -> Result<Self, ApiError> {
        let gone = |error| match error {
            // The catalog knows the turn, so it was there.
            LogError::UnknownTurn { turn } => {
                let message = format!("the events of turn `{turn}` are no longer kept");
                let error = ApiError::gone("events_gone", message);
                error.remedy("what was said is in its conversation: GET /v1/conversations")
            }
            error => error.into(),
        };
        let (begins, after, ended) = match from {
            From::Snapshot => (Begins::WithSnapshot, 0, false),
            From::After(after) => match log.read(turn.as_str(), after, 1).await {
                Ok(behind) => {
                    (Begins::Plainly, after, behind.is_empty() && ends_at(&*log, &turn, after).await)
                }
                Err(LogError::Ahead { .. } | LogError::Merged { .. }) => (Begins::WithResync, 0, false),
                Err(error) => return Err(gone(error)),
            },
        };
        let (heartbeat, now) = (Duration::from_millis(limits.heartbeat_ms), Instant::now());
        let store_wait = Duration::from_millis(limits.store_wait_ms);
        Ok(Self {
            log,
            turn,
            begins,
            tail: None,
            after,
            ended,
            heartbeat,
            gave: None,
            alive: now,
            alarm: Box::pin(sleep_until(now + heartbeat.min(store_wait))),
            handed_over,
            control,
            store_wait,
            told: Told::No,
            _seat: seat,
        })
    }

    /// Which turn.
    pub fn turn(&self) -> &TurnId {
        &self.turn
    }

    /// The number of the last event that was given.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// Whether the turn's last event has been given: then there is nothing more, ever.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether it begins with a `resync`.
    pub(crate) fn begins_anew(&self) -> bool {
        self.begins == Begins::WithResync
    }

    /// What comes next; `None` behind the last event, and when the server is about to stop: see
    /// [`has_ended`](Self::has_ended). Dropping the future loses nothing.
    ///
    /// # Errors
    /// The log cannot be read.
    pub async fn next(&mut self) -> Result<Option<Viewed>, LogError> {
        if self.ended {
            return Ok(None);
        }
        let stalled = self.gave.is_some_and(|gave| gave.elapsed() > STALLED);
        loop {
            match self.begins {
                Begins::Plainly => {}
                Begins::WithSnapshot => return Ok(Some(Viewed::Snapshot(self.fold().await?))),
                Begins::WithResync => return Ok(Some(Viewed::Resync(self.fold().await?))),
            }
            let tail = match &mut self.tail {
                Some(tail) => tail,
                None => match self.log.tail(self.turn.as_str(), self.after).await {
                    Ok(tail) => self.tail.insert(tail),
                    Err(LogError::Ahead { .. } | LogError::Merged { .. }) => {
                        self.begins = Begins::WithResync;
                        continue;
                    }
                    Err(error) => return Err(error),
                },
            };
            tokio::select! {
                biased;
                records = tail.next() => match records {
                    Ok(Some(records)) => return Ok(Some(self.give(records, stalled))),
                    Ok(None) => {
                        self.ended = true;
                        return Ok(None);
                    }
                    // The turn has ended and was merged while this viewer was on its way.
                    Err(LogError::Ahead { .. } | LogError::Merged { .. }) => {
                        self.tail = None;
                        self.begins = Begins::WithResync;
                    }
                    Err(error) => return Err(error),
                },
                () = self.handed_over.cancelled() => return Ok(None),
                () = &mut self.alarm => {
                    // The alarm is not put off with every event, only looked at when it rings.
                    let (due, now) = (self.alive + self.heartbeat, Instant::now());
                    let waits = self.control.as_ref().and_then(TurnControl::waits_for_log);
                    let away = waits.filter(|waits| *waits >= self.store_wait);
                    // A wait that has begun since rings when it is long enough to be told.
                    let look = now + waits.map_or(self.store_wait, |waits| self.store_wait.saturating_sub(waits));
                    let told = std::mem::replace(&mut self.told, if away.is_some() { Told::Yes } else { Told::No });
                    if let Some(away) = away.filter(|_| told == Told::No) {
                        self.alive = now;
                        self.alarm.as_mut().reset(now + self.heartbeat);
                        return Ok(Some(Viewed::StoreIsAway(away)));
                    }
                    if due > now {
                        self.alarm.as_mut().reset(if away.is_some() { due } else { due.min(look) });
                        continue;
                    }
                    self.alive = now;
                    self.alarm.as_mut().reset(now + self.heartbeat.min(self.store_wait));
                    return Ok(Some(Viewed::Idle));
                }
            }
        }
    }

    fn give(&mut self, records: Vec<Record>, stalled: bool) -> Viewed {
        if let Some(last) = records.last() {
            self.after = last.seq;
            self.ended = last.kind == STREAM_END;
        }
        self.alive = Instant::now();
        self.gave = Some(self.alive);
        Viewed::Records(match stalled && records.len() >= MERGED_FROM {
            true => merge_deltas(records),
            false => records,
        })
    }

    async fn fold(&mut self) -> Result<Box<Message>, LogError> {
        let (message, ended) = message(&*self.log, &self.turn).await?;
        self.begins = Begins::Plainly;
        self.after = message.seq.0;
        self.ended = ended == Ended::Yes;
        self.gave = Some(Instant::now());
        Ok(Box::new(message))
    }
}

/// Whether a turn has its last event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It has.
    Yes,
    /// It goes on.
    No,
}

/// The message of a turn as its log adds up to now.
///
/// # Errors
/// The log cannot be read.
pub async fn message(log: &dyn Log, turn: &TurnId) -> Result<(Message, Ended), LogError> {
    let (mut message, mut after, mut ended) = (Message::default(), 0, Ended::No);
    loop {
        let records = log.read(turn.as_str(), after, RECORDS_PER_READ).await?;
        let Some(last) = records.last() else { return Ok((message, ended)) };
        after = last.seq;
        if last.kind == STREAM_END {
            ended = Ended::Yes;
        }
        for record in &records {
            // A reader ignores what it does not know.
            if let Ok(event) = Event::of_kind(&record.kind, &record.payload) {
                message.absorb(&event);
            }
        }
    }
}

/// Whether a turn has its last event in the log, whoever else knows it already.
pub(crate) async fn has_ended(log: &dyn Log, turn: &TurnId) -> bool {
    let Err(LogError::Ahead { last_seq, .. }) = log.read(turn.as_str(), u64::MAX, 1).await else {
        return false;
    };
    ends_at(log, turn, last_seq).await
}

/// Whether this event is the last one of its turn.
async fn ends_at(log: &dyn Log, turn: &TurnId, seq: u64) -> bool {
    // A place that has been merged is one among deltas.
    let last = log.read(turn.as_str(), seq.saturating_sub(1), 1).await;
    last.is_ok_and(|records| records.first().is_some_and(|record| record.kind == STREAM_END))
}
