//! Looking into a store's file while its server writes.

#![cfg(feature = "sqlite")]
use throughline_store::{
    Catalog, Durability, Log, LogRecord, NewRemembered, STREAM_END, SqliteEditor, SqliteFileState,
    SqliteReader, SqliteSettings, SqliteStore, StoreError, StoreReader,
};

fn records(numbers: std::ops::RangeInclusive<u64>, last: Option<u64>) -> Vec<LogRecord> {
    let record = |seq| {
        let kind = if Some(seq) == last { STREAM_END } else { "content_delta" };
        LogRecord::new(seq, kind, Durability::Process, format!("{{\"n\":{seq}}}"))
    };
    numbers.map(record).collect()
}

#[tokio::test]
async fn reader_sees_a_turn_at_every_stage() {
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

#[tokio::test]
async fn editor_changes_rows_while_a_server_writes() {
    const ROWS: u64 = 40;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let settings = SqliteSettings { ballast_bytes: 0, ..SqliteSettings::default() };
    let store = SqliteStore::open(&path, settings).await.unwrap();
    let SqliteFileState::Ready(editor) = SqliteEditor::open(&path).unwrap() else { panic!("it is there") };
    let epoch = store.claim("turn_1").await.unwrap().epoch;
    let writing = async {
        for seq in 1..=ROWS {
            store.append("turn_1", epoch, records(seq..=seq, None).into()).await.unwrap();
        }
    };
    let editing = tokio::task::spawn_blocking(move || {
        let edit = async {
            for row in 0..ROWS {
                let answer = serde_json::json!({"row": row});
                let about = row.to_string();
                let new = NewRemembered { conversation_id: None, about, answer, at: 0 };
                editor.remember("ann", new).await.unwrap();
            }
            let removed = editor.delete_remembered("ann", 1).await.unwrap();
            assert_eq!(removed.map(|row| row.number), Some(1));
        };
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(edit);
    });
    let ((), edited) = tokio::join!(writing, editing);
    edited.unwrap();
    assert_eq!(store.remembered("ann", None).await.unwrap().len() as u64, ROWS - 1);
    assert_eq!(SqliteReader::open(&path).unwrap().records("turn_1").unwrap().unwrap().len() as u64, ROWS);
    store.close().await;
}

#[test]
fn editor_opens_only_a_store_of_this_release() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let state = || match SqliteEditor::open(&path) {
        Ok(SqliteFileState::Ready(_)) => "ready".to_owned(),
        Ok(SqliteFileState::Absent) => "absent".to_owned(),
        Ok(SqliteFileState::Older) => "older".to_owned(),
        Err(error) => error.to_string(),
    };
    assert_eq!(state(), "absent");
    assert!(!path.exists(), "nothing is made");
    std::fs::write(folder.path().join("store.db.corrupt-1"), "").unwrap();
    assert!(state().contains("it was damaged and has been moved to"), "{}", state());
    std::fs::remove_file(folder.path().join("store.db.corrupt-1")).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let settings = SqliteSettings { ballast_bytes: 0, ..SqliteSettings::default() };
    runtime.block_on(async { SqliteStore::open(&path, settings).await.unwrap().close().await });
    assert_eq!(state(), "ready");
    for (version, expected) in [("1", "older"), ("1000", "has version 1000")] {
        let file = rusqlite::Connection::open(&path).unwrap();
        file.execute_batch(&format!("PRAGMA user_version = {version}")).unwrap();
        assert!(state().contains(expected), "{}", state());
    }
    std::fs::write(&path, "not a database, but long enough to be taken for a file with something in it")
        .unwrap();
    assert!(state().contains("database"), "{}", state());
}

#[test]
fn reader_refuses_missing_and_foreign_files() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.db");
    assert!(matches!(SqliteReader::open(&missing), Err(StoreError::Failed { .. })));
    assert!(!missing.exists(), "nothing is made");
    let text = folder.path().join("text.db");
    std::fs::write(&text, "not a database, but long enough to be taken for a file with something in it")
        .unwrap();
    assert!(SqliteReader::open(&text).is_err());
}
