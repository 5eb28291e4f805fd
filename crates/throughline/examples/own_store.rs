//! A custom log: this one counts the events that it stores.
//! `cargo run --example own_store -- http://127.0.0.1:11434/v1 qwen3`

use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use throughline::prelude::*;
use throughline::store::{
    AppendAck, Log, LogBatch, LogError, LogRecord, LogTail, MemoryLog, MergeFn, OwnerEpoch,
    ProviderStateRecord, TurnClaim,
};

#[derive(Default)]
struct CountingLog {
    inner: MemoryLog,
    records: AtomicUsize,
}

#[async_trait]
impl Log for CountingLog {
    async fn claim(&self, turn: &str) -> Result<TurnClaim, LogError> {
        self.inner.claim(turn).await
    }
    async fn append(&self, turn: &str, epoch: OwnerEpoch, batch: LogBatch) -> Result<AppendAck, LogError> {
        self.records.fetch_add(batch.records.len(), Ordering::Relaxed);
        self.inner.append(turn, epoch, batch).await
    }
    async fn read(&self, turn: &str, after: u64, max: usize) -> Result<Vec<LogRecord>, LogError> {
        self.inner.read(turn, after, max).await
    }
    async fn read_provider_state(&self, turn: &str) -> Result<Vec<ProviderStateRecord>, LogError> {
        self.inner.read_provider_state(turn).await
    }
    async fn tail(&self, turn: &str, after: u64) -> Result<Box<dyn LogTail>, LogError> {
        self.inner.tail(turn, after).await
    }
    async fn open_turns(&self) -> Result<Vec<String>, LogError> {
        self.inner.open_turns().await
    }
    async fn compact(&self, turn: &str, merge: MergeFn) -> Result<(), LogError> {
        self.inner.compact(turn, merge).await
    }
    async fn delete(&self, turn: &str) -> Result<(), LogError> {
        self.inner.delete(turn).await
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let address = words.next().unwrap_or("http://127.0.0.1:11434/v1".to_owned());
    let model = words.next().unwrap_or("qwen3".to_owned());

    let log = Arc::new(CountingLog::default());
    let upstream = Upstream::new("local", Dialect::OpenaiChat, &address)?;
    let app = Throughline::builder().upstream(upstream).model(model).log(log.clone()).build()?;
    println!("{}", app.ask("Say hello.").await?.finish().await.into_result()?.text());
    println!("{} events", log.records.load(Ordering::Relaxed));
    Ok(())
}
