//! The writing process is killed repeatedly: everything that it had acknowledged is stored, and nothing is
//! torn.
//!
//! The test runs itself as that process: with [`FILE`] set it only writes and reports.

#![cfg(all(feature = "sqlite", unix))]
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use throughline_store::{
    Durability, LastShutdown, Log, LogBatch, LogRecord, ProviderStateRecord, SqliteSettings, SqliteStore,
};

const FILE: &str = "THROUGHLINE_TEST_STORE_TO_KILL";
const TURNS: usize = 8;
const KILLS: u64 = 30;

fn settings() -> SqliteSettings {
    // A small ring, so that records move to segments under the blows, too.
    SqliteSettings { ballast_bytes: 0, ring_bytes_max: 4 << 10, ..SqliteSettings::default() }
}

/// A batch whose records name it, so that half a batch is detected.
fn batch(turn: usize, first: u64) -> LogBatch {
    let last = first + (first * 7 + turn as u64) % 6;
    let durability = if first.is_multiple_of(5) { Durability::Power } else { Durability::Process };
    let record = |seq| {
        let text = "y".repeat(usize::try_from(seq * 31 % 400).unwrap());
        LogRecord::new(seq, "content_delta", durability, format!("{turn} {seq} {first} {last} {text}"))
    };
    let provider_state = ProviderStateRecord { step: 1, payload: format!("{first} {last}").into() };
    LogBatch {
        records: (first..=last).map(record).collect(),
        provider_state: vec![provider_state],
        ..LogBatch::default()
    }
}

/// Appends to all turns without end and prints each acknowledgement, one per line.
async fn write_for_ever(file: &Path) {
    let store = Arc::new(SqliteStore::open(file, settings()).await.unwrap());
    let writers = (0..TURNS).map(|turn| {
        let store = store.clone();
        tokio::spawn(async move {
            let id = format!("turn_{turn}");
            let claim = store.claim(&id).await.unwrap();
            let mut first = claim.last_seq + 1;
            loop {
                let ack = store.append(&id, claim.epoch, batch(turn, first)).await.unwrap();
                // A whole line in one write; if its reader is gone, this process must end.
                let line = format!("acknowledged {turn} {}\n", ack.last_seq);
                std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                first = ack.last_seq + 1;
            }
        })
    });
    futures_util::future::join_all(writers).await;
}

/// Kills a writer after this many acknowledgements; returns the last acknowledged number of each turn.
fn kill_after(file: &Path, acknowledgments: u64) -> HashMap<usize, u64> {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store_kill::acknowledged_records_survive_kill_9", "--nocapture"])
        .env(FILE, file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut heard = HashMap::new();
    let mut count = 0;
    for line in BufReader::new(writer.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        // The harness prints other lines; our last one may be cut.
        if let ["acknowledged", turn, seq] = line.split(' ').collect::<Vec<_>>()[..]
            && let (Ok(turn), Ok(seq)) = (turn.parse(), seq.parse())
        {
            let seq: u64 = seq;
            heard.entry(turn).and_modify(|last: &mut u64| *last = seq.max(*last)).or_insert(seq);
            count += 1;
            if count == acknowledgments {
                writer.kill().unwrap();
            }
        }
    }
    writer.wait().unwrap();
    assert!(count >= acknowledgments, "the writer ended by itself after {count}");
    heard
}

async fn check(file: &Path, acknowledged: &HashMap<usize, u64>) -> u64 {
    let store = SqliteStore::open(file, settings()).await.unwrap();
    assert_eq!(store.last_shutdown(), LastShutdown::ProcessCrash);
    let mut events = 0;
    for turn in 0..TURNS {
        let id = format!("turn_{turn}");
        let Ok(records) = store.read(&id, 0, usize::MAX).await else {
            assert!(!acknowledged.contains_key(&turn), "{id} is gone");
            continue;
        };
        let last = records.last().map_or(0, |record| record.seq);
        let heard = acknowledged.get(&turn).copied().unwrap_or(0);
        assert!(last >= heard, "{id}: {heard} was acknowledged, {last} is there");
        // Whole batches, in sequence, with their provider state.
        let (mut expected, mut provider_state) = (Vec::new(), Vec::new());
        while (expected.len() as u64) < last {
            let batch = batch(turn, expected.len() as u64 + 1);
            expected.extend(batch.records);
            provider_state.extend(batch.provider_state);
        }
        assert_eq!(records, expected, "{id}");
        assert_eq!(store.read_provider_state(&id).await.unwrap(), provider_state, "{id}");
        events += last;
    }
    store.close().await;
    events
}

#[test]
fn acknowledged_records_survive_kill_9() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if let Some(file) = std::env::var_os(FILE) {
        runtime.block_on(write_for_ever(Path::new(&file)));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let mut acknowledged = HashMap::new();
    let mut events = 0;
    for kill in 0..KILLS {
        // From the first moment to far into the turns.
        acknowledged.extend(kill_after(&file, 1 + kill * kill * 37 % 400));
        // A copy is looked into, so that the next writer finds the file as it was left.
        let copy = folder.path().join("copy.db");
        for suffix in ["", "-wal"] {
            let name = |path: &Path| format!("{}{suffix}", path.display());
            let _ = std::fs::remove_file(name(&copy));
            if std::fs::exists(name(&file)).unwrap() {
                std::fs::copy(name(&file), name(&copy)).unwrap();
            }
        }
        let now = runtime.block_on(check(&copy, &acknowledged));
        assert!(now >= events, "the log has become shorter");
        events = now;
    }
    assert!(events > 1_000, "only {events} events: the test has tested little");
}
