//! While the store accepts nothing, every stream of the turn reports it, and no event is lost.

use crate::support::{PATIENCE, TestServer};
use async_trait::async_trait;
use std::sync::Arc;
use throughline::config::ServerLimits;
use throughline_store::{
    AppendAck, Log, LogBatch, LogError, LogRecord, LogTail, MemoryLog, MergeFn, OwnerEpoch,
    ProviderStateRecord, TurnClaim,
};
use throughline_testkit::{ModelScript, ScriptQueue};
use tokio::sync::watch;

/// A log that takes nothing while it is shut; what it has can be read.
struct Door {
    log: MemoryLog,
    open: watch::Receiver<bool>,
}

#[async_trait]
impl Log for Door {
    async fn claim(&self, turn: &str) -> Result<TurnClaim, LogError> {
        self.log.claim(turn).await
    }

    async fn append(&self, turn: &str, epoch: OwnerEpoch, batch: LogBatch) -> Result<AppendAck, LogError> {
        let begins = batch.records.first().is_some_and(|record| record.seq == 1);
        let mut open = self.open.clone();
        if !begins {
            open.wait_for(|open| *open).await.unwrap();
        }
        self.log.append(turn, epoch, batch).await
    }

    async fn read(&self, turn: &str, after: u64, records_max: usize) -> Result<Vec<LogRecord>, LogError> {
        self.log.read(turn, after, records_max).await
    }

    async fn read_provider_state(&self, turn: &str) -> Result<Vec<ProviderStateRecord>, LogError> {
        self.log.read_provider_state(turn).await
    }

    async fn tail(&self, turn: &str, after: u64) -> Result<Box<dyn LogTail>, LogError> {
        self.log.tail(turn, after).await
    }

    async fn open_turns(&self) -> Result<Vec<String>, LogError> {
        self.log.open_turns().await
    }

    async fn compact(&self, turn: &str, merge: MergeFn) -> Result<(), LogError> {
        self.log.compact(turn, merge).await
    }

    async fn delete(&self, turn: &str) -> Result<(), LogError> {
        self.log.delete(turn).await
    }
}

#[tokio::test]
async fn streams_report_that_the_store_is_unavailable() {
    let (door, open) = watch::channel(false);
    let build = move |builder: throughline::ThroughlineBuilder| {
        builder.log(Arc::new(Door { log: MemoryLog::default(), open: open.clone() }))
    };
    let limits = ServerLimits { store_wait_ms: 150, heartbeat_ms: 3_600_000, ..ServerLimits::default() };
    let server =
        TestServer::start_with(ScriptQueue::new([ModelScript::new().say("At last.")]), build, limits).await;
    let turn = server.say("Hello?").await;
    let mut stream = server.follow(&turn, 0).await;
    let mut seen = tokio::time::timeout(PATIENCE, stream.until("waiting")).await.unwrap();
    let told = seen.pop().unwrap().data;
    assert_eq!((&told["type"], &told["reason"]), (&"waiting".into(), &"store".into()), "{told}");
    assert_eq!((&told["turn_id"], &told["seq"]), (&turn.as_str().into(), &serde_json::Value::Null));
    assert!(told["why"].as_str().unwrap().contains(" ms"), "{told}");

    // A late viewer is notified, too; within this time earlier ones would have been notified again.
    let mut late = server.follow(&turn, 1).await;
    tokio::time::timeout(PATIENCE, late.until("waiting")).await.unwrap();
    door.send(true).unwrap();
    let rest = stream.rest().await;
    assert!(rest.iter().all(|event| event.data["seq"].is_u64()), "told once: {rest:?}");
    assert_eq!(rest.last().unwrap().name, "stream_end");
    let numbers: Vec<u64> = rest.iter().map(|event| event.id).collect();
    assert_eq!(
        numbers,
        (seen.len() as u64 + 1..=*numbers.last().unwrap()).collect::<Vec<u64>>(),
        "nothing was lost by it"
    );
}
