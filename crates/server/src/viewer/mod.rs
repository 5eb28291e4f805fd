//! One viewer's place in a turn: a cursor in the log, the same for every surface. It has no queue of its own, so it never
//! slows the turn, and whoever comes back with the number of the last event that it saw goes on there. // R: S2

use crate::error::ApiError;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use throughline::{Event, Message};
use throughline_engine::TurnId;
use throughline_store::{Log, LogError, Record, STREAM_END, Tail};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::CancellationToken;

/// Records read at once to fold them.
const RECORDS_PER_READ: usize = 1_024;

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
    silent_since: Instant,
    alarm: Pin<Box<Sleep>>,
    draining: CancellationToken,
}

/// What is given before the first event.
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
        heartbeat: Duration,
        draining: CancellationToken,
    ) -> Result<Self, ApiError> {
        let (begins, after, ended) = match from {
            From::Snapshot => (Begins::WithSnapshot, 0, false),
            From::After(0) => {
                // Is it there?
                log.read(turn.as_str(), 0, 1).await?;
                (Begins::Plainly, 0, false)
            }
            From::After(after) => match log.read(turn.as_str(), after - 1, 1).await?.first() {
                Some(record) if record.seq == after => (Begins::Plainly, after, record.kind == STREAM_END),
                Some(_) | None => (Begins::WithResync, 0, false),
            },
        };
        let now = Instant::now();
        Ok(Self {
            log,
            turn,
            begins,
            tail: None,
            after,
            ended,
            heartbeat,
            silent_since: now,
            alarm: Box::pin(sleep_until(now + heartbeat)),
            draining,
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

    /// What comes next; `None` behind the last event, and when the server is about to stop: see
    /// [`has_ended`](Self::has_ended). Dropping the future loses nothing.
    ///
    /// # Errors
    /// The log cannot be read.
    pub async fn next(&mut self) -> Result<Option<Viewed>, LogError> {
        if self.ended {
            return Ok(None);
        }
        match self.begins {
            Begins::Plainly => {}
            Begins::WithSnapshot => {
                let message = self.fold().await?;
                return Ok(Some(Viewed::Snapshot(message)));
            }
            Begins::WithResync => {
                let message = self.fold().await?;
                return Ok(Some(Viewed::Resync(message)));
            }
        }
        loop {
            let tail = match &mut self.tail {
                Some(tail) => tail,
                None => self.tail.insert(self.log.tail(self.turn.as_str(), self.after).await?),
            };
            tokio::select! {
                biased;
                records = tail.next() => {
                    let Some(records) = records? else {
                        self.ended = true;
                        return Ok(None);
                    };
                    if let Some(last) = records.last() {
                        self.after = last.seq;
                        self.ended = last.kind == STREAM_END;
                    }
                    self.silent_since = Instant::now();
                    return Ok(Some(Viewed::Records(records)));
                }
                () = self.draining.cancelled() => return Ok(None),
                () = &mut self.alarm => {
                    // The alarm is not put off with every event, only looked at when it rings.
                    let due = self.silent_since + self.heartbeat;
                    let now = Instant::now();
                    if due > now {
                        self.alarm.as_mut().reset(due);
                        continue;
                    }
                    self.silent_since = now;
                    self.alarm.as_mut().reset(now + self.heartbeat);
                    return Ok(Some(Viewed::Idle));
                }
            }
        }
    }

    async fn fold(&mut self) -> Result<Box<Message>, LogError> {
        let (message, ended) = message(&*self.log, &self.turn).await?;
        self.begins = Begins::Plainly;
        self.after = message.seq.0;
        self.ended = ended == Ended::Yes;
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
            if let Ok(event) = serde_json::from_slice::<Event>(&record.payload) {
                message.absorb(&event);
            }
        }
    }
}
