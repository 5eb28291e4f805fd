//! Faults around a store: another server, another program, a damaged file, a full disk.

#![cfg(feature = "sqlite")]
use std::path::Path;
use std::time::{Duration, Instant};
use throughline_store::{
    Durability, LastShutdown, Log, LogBatch, LogError, LogRecord, OwnerEpoch, SqliteOpenError,
    SqliteSettings, SqliteStore, StoreError, StoreHealth,
};

const TURN: &str = "turn_1";

fn settings() -> SqliteSettings {
    SqliteSettings { ballast_bytes: 0, ..SqliteSettings::default() }
}

fn delta(seq: u64, bytes: usize) -> LogRecord {
    let text: String = (0..bytes as u64).map(|at| char::from(b'a' + ((seq * 7 + at) % 26) as u8)).collect();
    LogRecord::new(seq, "content_delta", Durability::Process, text)
}

fn one(seq: u64, bytes: usize) -> LogBatch {
    vec![delta(seq, bytes)].into()
}

async fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, settings()).await.unwrap()
}

/// Waits for background work of the store.
async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A store with records enough for many pages, stopped cleanly.
async fn filled(path: &Path, seqs: u64) -> OwnerEpoch {
    let store = open(path).await;
    let epoch = store.claim(TURN).await.unwrap().epoch;
    for seq in 1..=seqs {
        store.append(TURN, epoch, one(seq, 2_000)).await.unwrap();
    }
    store.close().await;
    epoch
}

#[tokio::test]
async fn two_servers_never_share_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).await;
    let holder = format!("process {}", std::process::id());
    let refused = SqliteStore::open(&path, settings()).await.err();
    assert_eq!(refused, Some(SqliteOpenError::InUse { path: path.clone(), holder }));
    store.close().await;
    assert_eq!(open(&path).await.last_shutdown(), LastShutdown::Clean);
}

#[tokio::test]
async fn server_that_lost_its_lock_file_writes_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let robbed = open(&path).await;
    let epoch = robbed.claim(TURN).await.unwrap().epoch;
    robbed.append(TURN, epoch, one(1, 9)).await.unwrap();
    // The lock file is deleted, and another server starts: its row in `owner` is the fence.
    std::fs::remove_file(folder.path().join("store.db.lock")).unwrap();
    let other = open(&path).await;

    let refused = robbed.append(TURN, epoch, one(2, 9)).await;
    assert!(matches!(refused, Err(LogError::StoreFailure { .. })), "{refused:?}");
    assert!(matches!(robbed.claim("turn_2").await, Err(LogError::StoreFailure { .. })));
    assert!(matches!(robbed.health(), StoreHealth::Unavailable { .. }));
    robbed.close().await;

    let claim = other.claim(TURN).await.unwrap();
    assert_eq!((claim.last_seq, other.health()), (1, StoreHealth::Healthy));
    other.append(TURN, claim.epoch, one(2, 9)).await.unwrap();
    assert_eq!(other.read(TURN, 0, 9).await.unwrap(), [delta(1, 9), delta(2, 9)]);
}

#[tokio::test]
async fn append_waits_for_a_foreign_database_lock() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).await;
    let epoch = store.claim(TURN).await.unwrap().epoch;
    let before = store.stats().commits;

    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let append = store.append(TURN, epoch, one(1, 9));
    let turns: Vec<String> = (0..100).map(|turn| format!("late_{turn}")).collect();
    let claims = futures_util::future::join_all(turns.iter().map(|turn| store.claim(turn)));
    tokio::pin!(append, claims);
    assert!(futures_util::poll!(append.as_mut()).is_pending());
    // Jobs that arrive in the meantime go into one commit.
    assert!(futures_util::poll!(claims.as_mut()).is_pending());
    other.execute_batch("ROLLBACK").unwrap();
    append.await.unwrap();
    assert!(claims.await.into_iter().all(|claim| claim.is_ok()));
    let commits = store.stats().commits - before;
    assert!(commits <= 3, "{commits} commits for all that waited for the lock");
}

#[tokio::test]
async fn foreign_or_newer_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let refused = SqliteStore::open(&path, settings()).await.err();
    assert_eq!(refused, Some(SqliteOpenError::Foreign { path: path.clone() }));
    assert!(std::fs::read(&path).unwrap() == bytes, "a byte of it has changed");

    let path = folder.path().join("newer.db");
    open(&path).await.close().await;
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let refused = SqliteStore::open(&path, settings()).await.err();
    assert!(matches!(refused, Some(SqliteOpenError::Newer { found: 99, .. })), "{refused:?}");
}

/// Marks the store like one whose process died: not closed cleanly.
fn mark_unclean(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute("UPDATE owner SET closed_at = NULL", []).unwrap();
}

#[tokio::test]
async fn damaged_file_is_moved_aside_and_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    filled(&path, 100).await;
    let store = open(&path).await;
    let older = store.backup().await.unwrap();
    eventually("the next backup has another name", || {
        let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().parse::<u128>().unwrap();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
        now > name(&older)
    })
    .await;
    let newest = store.backup().await.unwrap();
    store.close().await;
    mark_unclean(&path);
    let mut bytes = std::fs::read(&path).unwrap();
    // The head of every page but the first: what kind it is, and how many cells it has.
    (4096..bytes.len()).step_by(4096).for_each(|page| bytes[page..page + 8].fill(0xFF));
    std::fs::write(&path, &bytes).unwrap();

    let refused = SqliteStore::open(&path, settings()).await.err().unwrap();
    let SqliteOpenError::Corrupt { moved_to, backup, .. } = &refused else { panic!("{refused:?}") };
    assert!(std::fs::read(moved_to).unwrap() == bytes, "it is there as it was");
    assert_eq!(backup.as_ref(), Some(&newest));
    assert!(
        refused.to_string().contains(&format!("cp {} {}", newest.display(), path.display())),
        "{refused}"
    );

    // A service manager tries again: still nothing new is made.
    let again = SqliteStore::open(&path, settings()).await.err().unwrap();
    assert!(
        matches!(&again, SqliteOpenError::Quarantined { moved_to: there, .. } if there == moved_to),
        "{again:?}"
    );
    assert!(!path.exists());

    std::fs::copy(&newest, &path).unwrap();
    let restored = open(&path).await;
    assert_eq!(restored.read(TURN, 0, 999).await.unwrap().len(), 100);
}

#[tokio::test]
async fn a_flipped_byte_is_an_error_or_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    filled(&path, 300).await;
    let expected: Vec<LogRecord> = (1..=300).map(|seq| delta(seq, 2_000)).collect();
    let sound = std::fs::read(&path).unwrap();
    let mut seen = [0; 3];
    for flip in (0..sound.len()).step_by(sound.len() / 60) {
        let other = folder.path().join(format!("flip-{flip}.db"));
        let mut bytes = sound.clone();
        bytes[flip] ^= 0x5A;
        std::fs::write(&other, bytes).unwrap();
        match SqliteStore::open(&other, settings()).await {
            Err(_) => seen[0] += 1,
            Ok(store) => match store.read(TURN, 0, 999).await {
                Err(_) => seen[1] += 1,
                Ok(records) => {
                    assert!(records == expected, "byte {flip}: something else was read");
                    seen[2] += 1;
                }
            },
        }
    }
    assert!(seen[1] > 20, "most of the file is records, and SQLite alone would not notice: {seen:?}");
}

#[tokio::test]
async fn backups_are_complete_and_limited_to_the_newest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let kept = SqliteSettings { backups_max: 2, ..settings() };
    let store = SqliteStore::open(&path, kept).await.unwrap();
    let epoch = store.claim(TURN).await.unwrap().epoch;
    let mut backups = Vec::new();
    for seq in 1..=4 {
        store.append(TURN, epoch, one(seq, 10)).await.unwrap();
        let backup = store.backup().await.unwrap();
        assert!(!backups.contains(&backup));
        backups.push(backup);
        let before = std::time::SystemTime::now();
        eventually("a millisecond has passed", || before.elapsed().unwrap() > Duration::from_millis(2)).await;
    }
    let there: Vec<bool> = backups.iter().map(|backup| backup.exists()).collect();
    assert_eq!(there, [false, false, true, true]);
    // Taken in the middle of a turn, with records that are only in the journal.
    let copy = open(&backups[2]).await;
    assert_eq!(copy.read(TURN, 0, 9).await.unwrap(), [delta(1, 10), delta(2, 10), delta(3, 10)]);
    assert_eq!(copy.open_turns().await.unwrap(), [TURN]);
}

// Limit: `free_bytes_min`.
#[tokio::test]
async fn low_disk_space_refuses_new_turns_but_not_running_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let epoch = filled(&path, 1).await;
    let picky = SqliteSettings { free_bytes_min: u64::MAX, ..settings() };
    let store = SqliteStore::open(&path, picky).await.unwrap();
    let refused = store.claim("turn_2").await;
    assert!(matches!(refused, Err(LogError::NoRoom { .. })), "{refused:?}");
    assert!(matches!(store.check_capacity(), Err(StoreError::DiskFull { .. })));
    assert_eq!(store.open_turns().await.unwrap(), [TURN]);
    store.append(TURN, epoch, one(2, 9)).await.unwrap();
}

// Limits: `ring_bytes_max`, `ring_idle`.
#[tokio::test]
async fn turn_memory_is_bounded_and_freed_when_idle_or_ended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let quick = SqliteSettings { ring_bytes_max: 10_000, ring_idle: Duration::ZERO, ..settings() };
    let store = SqliteStore::open(&path, quick).await.unwrap();
    let epoch = store.claim(TURN).await.unwrap().epoch;
    for seq in 1..=100 {
        store.append(TURN, epoch, one(seq, 1_000)).await.unwrap();
        assert!(store.stats().ring_bytes <= 10_000 + 1_200, "{:?}", store.stats());
    }
    assert!(store.stats().segments >= 5);
    eventually("a resting turn leaves memory", || store.stats().ring_bytes == 0).await;
    assert_eq!(store.stats().turns, 1, "it is still known");
    let end = LogRecord::new(101, "stream_end", Durability::Power, "{}");
    let mut tail = store.tail(TURN, 99).await.unwrap();
    store.append(TURN, epoch, vec![end.clone()].into()).await.unwrap();
    eventually("an ended turn is gone", || store.stats().turns == 0).await;
    let mut seen = Vec::new();
    while let Some(mut records) = tail.next().await.unwrap() {
        seen.append(&mut records);
    }
    assert_eq!(seen, [delta(100, 1_000), end], "whoever was following sees the end");
    assert_eq!(store.read(TURN, 0, 999).await.unwrap().len(), 101);
}
