//! Whole turns through `dyn Log`.

use crate::clock::processor_seconds;
use anyhow::{Result, ensure};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use throughline_store::{
    AppendUrgency, Durability, Log, LogBatch, LogRecord, SqliteSettings, SqliteStore, StoreStats,
};

pub struct Load {
    pub events: usize,
    /// Processor time an event, with what its task costs.
    pub cpu_us: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub commits: u64,
    pub fsyncs: u64,
    pub per_second: f64,
}

fn settings() -> SqliteSettings {
    SqliteSettings { ballast_bytes: 0, ..SqliteSettings::default() }
}

async fn store(file: &Path) -> Result<Arc<SqliteStore>> {
    Ok(Arc::new(SqliteStore::open(file, settings()).await?))
}

/// The store that a load goes to.
#[derive(Clone)]
pub enum At {
    /// A separate file.
    File,
    /// This new, empty database.
    #[cfg(feature = "postgres")]
    Database(String),
}

/// A store that is open.
enum Opened {
    File(Arc<SqliteStore>, #[allow(dead_code, reason = "held for its drop")] tempfile::TempDir),
    #[cfg(feature = "postgres")]
    Database(throughline_store::PostgresStore),
}

impl Opened {
    async fn at(at: &At) -> Result<Self> {
        Ok(match at {
            At::File => {
                let folder = tempfile::tempdir()?;
                Self::File(store(&folder.path().join("store.db")).await?, folder)
            }
            #[cfg(feature = "postgres")]
            At::Database(url) => {
                let settings = throughline_store::PostgresSettings::default();
                Self::Database(throughline_store::PostgresStore::open(url, settings).await?)
            }
        })
    }

    fn log(&self) -> Arc<dyn Log> {
        match self {
            Self::File(store, _) => store.clone(),
            #[cfg(feature = "postgres")]
            Self::Database(store) => Arc::new(store.clone()),
        }
    }

    fn figures(&self) -> StoreStats {
        match self {
            Self::File(store, _) => store.stats(),
            #[cfg(feature = "postgres")]
            Self::Database(store) => store.stats(),
        }
    }

    async fn close(&self) {
        match self {
            Self::File(store, _) => store.close().await,
            #[cfg(feature = "postgres")]
            Self::Database(store) => store.close().await,
        }
    }
}

fn batch(first: u64, records: u64) -> LogBatch {
    let delta = |seq| LogRecord::new(seq, "content_delta", Durability::Process, vec![b'x'; 200]);
    let records = (first..first + records).map(delta).collect();
    LogBatch { records, urgency: AppendUrgency::Batched, ..LogBatch::default() }
}

fn end(seq: u64) -> LogBatch {
    vec![LogRecord::new(seq, "stream_end", Durability::Power, "{}")].into()
}

/// Each turn appends one record so often, as a stream of tokens does; turns begin at different moments.
pub async fn paced(at: &At, turns: usize, per_second: f64, seconds: f64) -> Result<Load> {
    let pause = Duration::from_secs_f64(1.0 / per_second);
    let appends = (per_second * seconds).max(2.0) as u64;
    run(at, turns, move |turn, log: Arc<dyn Log>, epoch| async move {
        let offset = pause.mul_f64(turn as f64 / turns as f64);
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + offset, pause);
        let mut waits = Vec::new();
        for seq in 1..=appends {
            ticks.tick().await;
            let begun = Instant::now();
            log.append(&turn.to_string(), epoch, batch(seq, 1)).await?;
            waits.push(begun.elapsed());
        }
        Ok((appends, waits))
    })
    .await
}

/// Each turn appends as fast as it is answered.
pub async fn flood(at: &At, turns: usize, records: u64, seconds: f64) -> Result<Load> {
    run(at, turns, move |turn, log: Arc<dyn Log>, epoch| async move {
        let until = Instant::now() + Duration::from_secs_f64(seconds);
        let (mut seq, mut waits) = (0, Vec::new());
        while Instant::now() < until {
            let begun = Instant::now();
            seq = log.append(&turn.to_string(), epoch, batch(seq + 1, records)).await?.last_seq;
            waits.push(begun.elapsed());
        }
        Ok((seq, waits))
    })
    .await
}

async fn run<F, R>(at: &At, turns: usize, work: F) -> Result<Load>
where
    F: Fn(usize, Arc<dyn Log>, throughline_store::OwnerEpoch) -> R,
    R: Future<Output = Result<(u64, Vec<Duration>)>> + Send + 'static,
{
    let store = Opened::at(at).await?;
    let log = store.log();
    let mut epochs = Vec::new();
    for turn in 0..turns {
        epochs.push(log.claim(&turn.to_string()).await?.epoch);
    }
    let (before, cpu, begun) = (store.figures(), processor_seconds(), Instant::now());
    let tasks = epochs.iter().enumerate().map(|(turn, epoch)| tokio::spawn(work(turn, log.clone(), *epoch)));
    let tasks: Vec<_> = tasks.collect();
    let (mut events, mut waits, mut last) = (0, Vec::new(), Vec::new());
    for task in tasks {
        let (seq, mut waited) = task.await??;
        events += seq as usize;
        waits.append(&mut waited);
        last.push(seq);
    }
    let (cpu, took, after) = (processor_seconds() - cpu, begun.elapsed(), store.figures());
    for (turn, seq) in last.into_iter().enumerate().take(10) {
        let read = log.read(&turn.to_string(), 0, usize::MAX).await?;
        ensure!(read == batch(1, seq).records, "turn {turn} reads something else than was written");
    }
    waits.sort();
    let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    let load = Load {
        events,
        cpu_us: cpu * 1e6 / events as f64,
        p50_ms: at(0.5),
        p99_ms: at(0.99),
        commits: after.commits - before.commits,
        fsyncs: after.fsyncs - before.fsyncs,
        per_second: events as f64 / took.as_secs_f64(),
    };
    store.close().await;
    Ok(load)
}

pub struct OpenedAgain {
    pub after_kill_ms: f64,
    pub after_close_ms: f64,
    pub bytes: u64,
}

/// A store with ended turns and live ones that was left by a process that died.
pub async fn open_again(ended: usize, live: usize) -> Result<OpenedAgain> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("store.db");
    let writing = store(&file).await?;
    let tasks = (0..ended + live).map(|turn| {
        let store = writing.clone();
        async move {
            let id = format!("turn_{turn:06}");
            let epoch = store.claim(&id).await?.epoch;
            store.append(&id, epoch, batch(1, 20)).await?;
            if turn < ended {
                store.append(&id, epoch, end(21)).await?;
            }
            anyhow::Ok(())
        }
    });
    futures_util::future::try_join_all(tasks).await?;
    // Ended turns leave the journal in the background, some hundred at a time.
    while writing.stats().turns > live {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // What a process that dies leaves: the file and its write-ahead log, never closed.
    let copy = folder.path().join("copy.db");
    std::fs::copy(&file, &copy)?;
    std::fs::copy(folder.path().join("store.db-wal"), folder.path().join("copy.db-wal"))?;
    let open = async || {
        let begun = Instant::now();
        let opened = store(&copy).await?;
        let took = begun.elapsed().as_secs_f64() * 1e3;
        ensure!(opened.open_turns().await?.len() == live, "the live turns are not those");
        opened.close().await;
        anyhow::Ok(took)
    };
    let after_kill_ms = open().await?;
    let after_close_ms = open().await?;
    let bytes = std::fs::metadata(&copy)?.len();
    writing.close().await;
    Ok(OpenedAgain { after_kill_ms, after_close_ms, bytes })
}

pub struct Tails {
    pub alone_ms: f64,
    pub watched_ms: f64,
    pub cpu_us: f64,
}

/// Cost of this many viewers of one turn.
pub async fn tails(viewers: usize, events: u64) -> Result<Tails> {
    let folder = tempfile::tempdir()?;
    let store = store(&folder.path().join("store.db")).await?;
    let mut medians = Vec::new();
    let mut cpu = 0.0;
    for (turn, viewers) in [("alone", 0), ("watched", viewers)] {
        let epoch = store.claim(turn).await?.epoch;
        let mut readers = Vec::new();
        for _ in 0..viewers {
            let mut tail = store.tail(turn, 0).await?;
            readers.push(tokio::spawn(async move {
                let mut seen = 0;
                while let Some(records) = tail.next().await? {
                    seen += records.len() as u64;
                }
                anyhow::Ok(seen)
            }));
        }
        let begun = processor_seconds();
        let mut waits = Vec::new();
        for seq in 1..=events {
            let begun = Instant::now();
            store.append(turn, epoch, batch(seq, 1)).await?;
            waits.push(begun.elapsed().as_secs_f64() * 1e3);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        store.append(turn, epoch, end(events + 1)).await?;
        for reader in readers {
            ensure!(reader.await?? == events + 1, "a viewer has missed something");
        }
        if viewers > 0 {
            cpu = (processor_seconds() - begun) * 1e6 / (viewers as f64 * events as f64);
        }
        medians.push(crate::median(waits.into_iter()));
    }
    store.close().await;
    Ok(Tails { alone_ms: medians[0], watched_ms: medians[1], cpu_us: cpu })
}
