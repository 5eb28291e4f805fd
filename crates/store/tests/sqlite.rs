//! The store in one file: what it promises beyond being a log.

#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used)]
use throughline_store::{Batch, Durability, Log, Record, SqliteSettings, SqliteStore};

const TURN: &str = "turn_1";

fn settings() -> SqliteSettings {
    SqliteSettings { ballast_bytes: 0, ..SqliteSettings::default() }
}

fn batch(numbers: impl IntoIterator<Item = u64>, durability: Durability) -> Batch {
    let delta = |seq| Record::new(seq, "content_delta", durability, format!("{{\"n\":{seq}}}"));
    numbers.into_iter().map(delta).collect::<Vec<_>>().into()
}

// R: S1 S2
#[tokio::test]
async fn what_was_acknowledged_is_there_after_closing_and_after_dropping() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path, settings()).await.unwrap();
    let epoch = store.claim(TURN).await.unwrap().epoch;
    store.append(TURN, epoch, batch(1..=3, Durability::Power)).await.unwrap();
    store.close().await;

    let store = SqliteStore::open(&path, settings()).await.unwrap();
    assert_eq!(store.open_turns().await.unwrap(), [TURN]);
    let claim = store.claim(TURN).await.unwrap();
    assert_eq!((claim.epoch.0, claim.last_seq), (epoch.0 + 1, 3));
    store.append(TURN, claim.epoch, batch(4..=4, Durability::Process)).await.unwrap();
    let read = store.read(TURN, 0, 99).await.unwrap();
    assert_eq!(read.iter().map(|record| record.seq).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(read[3], batch([4], Durability::Process).records[0]);
}
