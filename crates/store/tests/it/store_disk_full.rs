//! The disk fills up under running turns.
//!
//! The test runs itself in a separate mount namespace with a small disk in memory; where that is not allowed
//! it prints a line and tests nothing.

#![cfg(all(feature = "sqlite", target_os = "linux"))]
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use throughline_store::{
    Durability, Log, LogBatch, LogError, LogRecord, SqliteSettings, SqliteStore, StoreHealth,
};

const DISK: &str = "THROUGHLINE_TEST_SMALL_DISK";
/// From space to little space to none. A checkpoint is due at 4 MiB; while there is no space for one, the
/// same amount can accumulate before the next takes all of it. Each step is larger than that, or a state
/// would be skipped.
const STEP_BYTES: u64 = 16 << 20;
const TURN: &str = "running";

#[test]
fn running_turns_finish_on_the_reserve_of_a_full_disk() {
    if let Some(disk) = std::env::var_os(DISK) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(fill(Path::new(&disk)));
    }
    let disk = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=112m none \"$1\" && exec \"$2\" --exact \"$3\" --nocapture";
    let name = "store_disk_full::running_turns_finish_on_the_reserve_of_a_full_disk";
    let with = |flags: &[&str], script: &str| {
        let mut command = Command::new("unshare");
        command.args(flags).args(["sh", "-c", script, "sh"]).arg(disk.path());
        command.arg(std::env::current_exe().unwrap()).arg(name).env(DISK, disk.path()).output()
    };
    // As root without, else with a user namespace.
    for flags in [&["-m"][..], &["-rm"]] {
        if with(flags, "mount -t tmpfs -o size=1m none \"$1\"").is_ok_and(|probe| probe.status.success()) {
            let ran = with(flags, script).unwrap();
            let output = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
            assert!(ran.status.success() && output.contains("1 passed"), "{output}");
            return;
        }
    }
    println!("skipped: no disk can be mounted here");
}

fn batch(seq: u64) -> LogBatch {
    let text = format!("{seq} ").repeat(8_000);
    vec![LogRecord::new(seq, "content_delta", Durability::Process, text)].into()
}

async fn fill(disk: &Path) {
    let file = disk.join("store.db");
    let filler = disk.join("filler");
    std::fs::write(&filler, vec![1; 3 * STEP_BYTES as usize]).unwrap();
    let settings =
        SqliteSettings { ballast_bytes: STEP_BYTES, free_bytes_min: STEP_BYTES, ..SqliteSettings::default() };
    let store = SqliteStore::open(&file, settings).await.unwrap();
    let mut claim = store.claim(TURN).await.unwrap();
    let mut last = 0;

    // Little space: no new turn, but this one continues.
    while store.check_capacity().is_ok() {
        last = store.append(TURN, claim.epoch, batch(last + 1)).await.unwrap().last_seq;
        assert!(last < 1_000, "the disk does not fill");
    }
    assert!(matches!(store.claim("new").await, Err(LogError::NoRoom { .. })));
    assert_eq!(store.health(), StoreHealth::Healthy);

    // None: the ballast is freed, and this turn continues.
    while store.health() == StoreHealth::Healthy {
        last = store.append(TURN, claim.epoch, batch(last + 1)).await.unwrap().last_seq;
        assert!(last < 2_000, "the disk does not get full");
    }
    assert!(matches!(store.health(), StoreHealth::ReadOnly { .. }), "{:?}", store.health());
    assert!(!disk.join("store.db.ballast").exists());
    assert!(matches!(store.claim("new").await, Err(LogError::NoRoom { .. })));

    // Not even the ballast: an append is refused, and acknowledged records can be read.
    let before = last;
    let refused = loop {
        match store.append(TURN, claim.epoch, batch(last + 1)).await {
            Ok(ack) => last = ack.last_seq,
            Err(error) => break error,
        }
    };
    assert!(last > before, "the reserve was for something");
    assert!(matches!(refused, LogError::NoRoom { .. }), "{refused:?}");
    assert!(matches!(store.health(), StoreHealth::Unavailable { .. }), "{:?}", store.health());
    check(&store, last).await;

    // Space again: the store recovers, including the ballast.
    std::fs::remove_file(&filler).unwrap();
    let begun = Instant::now();
    while store.health() != StoreHealth::Healthy {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", store.health());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(std::fs::metadata(disk.join("store.db.ballast")).unwrap().len(), STEP_BYTES);
    claim = store.claim(TURN).await.unwrap();
    assert_eq!(claim.last_seq, last, "nothing of what was refused is there");
    last = store.append(TURN, claim.epoch, batch(last + 1)).await.unwrap().last_seq;
    store.close().await;
    let store = SqliteStore::open(&file, settings).await.unwrap();
    check(&store, last).await;
}

async fn check(store: &SqliteStore, last: u64) {
    let mut seq = 0;
    while seq < last {
        for record in store.read(TURN, seq, 16).await.unwrap() {
            seq += 1;
            assert!(record == batch(seq).records[0], "record {seq} is another one");
        }
    }
    assert_eq!(store.read(TURN, last, 9).await.unwrap(), []);
}
