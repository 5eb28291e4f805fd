//! Looking into a store's file while its server writes.

#![cfg(feature = "sqlite")]
use throughline_store::{
    Durability, Log, LogRecord, STREAM_END, SqliteReader, SqliteSettings, SqliteStore, StoreError,
    StoreReader,
};

fn records(numbers: std::ops::RangeInclusive<u64>, last: Option<u64>) -> Vec<LogRecord> {
    let record = |seq| {
        let kind = if Some(seq) == last { STREAM_END } else { "content_delta" };
        LogRecord::new(seq, kind, Durability::Process, format!("{{\"n\":{seq}}}"))
    };
    numbers.map(record).collect()
}

#[tokio::test]
async fn a_turn_is_read_at_every_moment_of_its_life() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let settings = SqliteSettings { ballast_bytes: 0, ..SqliteSettings::default() };
    let store = SqliteStore::open(&path, settings).await.unwrap();
    let epoch = store.claim("turn_1").await.unwrap().epoch;
    let onlooker = SqliteReader::open(&path).unwrap();
    let seen = |turn: &str| onlooker.records(turn).unwrap();

    store.append("turn_1", epoch, records(1..=3, None).into()).await.unwrap();
    assert_eq!(seen("turn_1"), Some(records(1..=3, None)), "while it is in the journal only");
    store.append("turn_1", epoch, records(4..=4, None).into()).await.unwrap();
    assert_eq!(seen("turn_1").map(|records| records.len()), Some(4));
    assert_eq!(seen("turn_2"), None);

    store.append("turn_1", epoch, records(5..=6, Some(6)).into()).await.unwrap();
    assert_eq!(seen("turn_1"), Some(records(1..=6, Some(6))), "when it has ended");
    store.close().await;
    assert_eq!(seen("turn_1"), Some(records(1..=6, Some(6))), "when the server is gone");

    let store = SqliteStore::open(&path, settings).await.unwrap();
    assert_eq!(seen("turn_1"), Some(records(1..=6, Some(6))), "after a restart, which empties the journal");
    store.claim("turn_9").await.unwrap();
    let latest: Vec<_> =
        onlooker.latest(9).await.unwrap().into_iter().map(|turn| (turn.id, turn.ended)).collect();
    assert_eq!(latest, [("turn_9".to_owned(), false), ("turn_1".to_owned(), true)]);
}

#[test]
fn what_is_no_store_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.db");
    assert!(matches!(SqliteReader::open(&missing), Err(StoreError::Failed { .. })));
    assert!(!missing.exists(), "nothing is made");
    let text = folder.path().join("text.db");
    std::fs::write(&text, "not a database, but long enough to be taken for a file with something in it")
        .unwrap();
    assert!(SqliteReader::open(&text).is_err());
}
