//! The log in memory keeps every promise of a log, and its limits.

use crate::log_conformance::{Restarted, Subject};
use async_trait::async_trait;
use std::sync::Arc;
use throughline_store::{Durability, Log, LogBatch, LogError, LogRecord, MemoryLimits, MemoryLog};

struct InMemory(Arc<MemoryLog>);

#[async_trait]
impl Subject for InMemory {
    fn log(&self) -> Arc<dyn Log> {
        self.0.clone()
    }
    async fn restart(&mut self) -> Restarted {
        Restarted::Cannot
    }
    fn fsyncs(&self) -> Option<u64> {
        None
    }
}

async fn make() -> InMemory {
    InMemory(Arc::default())
}

crate::conformance!(make);

fn records(numbers: impl IntoIterator<Item = u64>) -> LogBatch {
    let delta = |seq| LogRecord::new(seq, "content_delta", Durability::Process, "{}");
    numbers.into_iter().map(delta).collect::<Vec<_>>().into()
}

fn end(seq: u64) -> LogBatch {
    vec![LogRecord::new(seq, "stream_end", Durability::Power, "{}")].into()
}

fn numbers(records: &[LogRecord]) -> Vec<u64> {
    records.iter().map(|record| record.seq).collect()
}

#[tokio::test]
async fn memory_log_limits_are_enforced() {
    const TURN: &str = "turn_1";
    let limits = MemoryLimits { ended_turns_max: 1, turn_bytes_max: 10, tail_records_max: 2 };
    let log = MemoryLog::with_limits(limits);
    let epoch = log.claim(TURN).await.unwrap().epoch;

    log.append(TURN, epoch, records(1..=5)).await.unwrap();
    let over = log.append(TURN, epoch, records([6])).await;
    assert_eq!(over, Err(LogError::TurnTooLarge { turn: TURN.into(), limit: "turn_bytes_max" }));
    log.append(TURN, epoch, end(6)).await.expect("a full turn can still end");

    let mut tail = log.tail(TURN, 0).await.unwrap();
    let mut batches = Vec::new();
    while let Some(records) = tail.next().await.unwrap() {
        batches.push(numbers(&records));
    }
    assert_eq!(batches, [[1, 2], [3, 4], [5, 6]]);

    let mut follower = log.tail(TURN, 4).await.unwrap();
    let epoch = log.claim("turn_2").await.unwrap().epoch;
    log.append("turn_2", epoch, end(1)).await.unwrap();
    assert_eq!(log.read(TURN, 0, 9).await, Err(LogError::UnknownTurn { turn: TURN.into() }));
    assert_eq!(numbers(&log.read("turn_2", 0, 9).await.unwrap()), [1]);
    assert_eq!(numbers(&follower.next().await.unwrap().unwrap()), [5, 6], "a reader keeps what it follows");
}
