//! Maintenance of a store, and a server's behaviour when the disk is full.

use crate::support::{PATIENCE, TestServer, answered, saying};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use throughline::TurnRequest;
use throughline_server::{
    AppState, BACKUP_AFTER, MAINTENANCE_INTERVAL, Principal, StoreMaintenance, TurnSpec,
};
use throughline_store::{
    BlobFolder, BlobLimits, Catalog, ConversationFilter, NewConversation, NewFile, PageRequest,
    SqliteSettings, SqliteStore,
};
use throughline_testkit::{ModelScript, ScriptQueue};
use tokio::sync::mpsc;
use tokio::time::Instant;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// An hour in which the test is.
const NOW: i64 = 1_763_683_200_000;

async fn store(folder: &std::path::Path, free_bytes_min: u64) -> SqliteStore {
    let settings = SqliteSettings { free_bytes_min, ballast_bytes: 0, ..SqliteSettings::default() };
    SqliteStore::open(&folder.join("kept.db"), settings).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn maintenance_backs_up_and_deletes_only_expired_data() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), 0).await;
    let blobs = BlobFolder::open(folder.path().join("blobs"), BlobLimits::default()).await.unwrap();
    for (id, days) in [("new", 89), ("old", 91)] {
        let created_at = NOW - days * DAY_MS;
        let made = NewConversation { id: id.to_owned(), title: None, created_at, temporary: false };
        store.create_conversation("ada", made).await.unwrap();
    }
    let mut hashes = Vec::new();
    for (id, hours) in [("fresh", 23), ("unused", 25)] {
        let kept = blobs.put(id.as_bytes()).await.unwrap();
        let file = NewFile {
            id: id.to_owned(),
            name: id.to_owned(),
            media_type: "text/plain".to_owned(),
            bytes: kept.bytes,
            hash: kept.hash.clone(),
            made_in: None,
            created_at: NOW - hours * 60 * 60 * 1000,
        };
        store.add_file("ada", file).await.unwrap();
        hashes.push(kept.hash.clone());
    }
    hashes.push(blobs.put(b"of a crash").await.unwrap().hash.clone());

    let (asked, mut asks) = mpsc::unbounded_channel();
    let upkeep = StoreMaintenance {
        catalog: Arc::new(store.clone()),
        blobs: blobs.clone(),
        backup: Some(Arc::new(move |age| {
            asked.send((Instant::now(), age)).unwrap();
            Box::pin(async { Ok(None) })
        })),
        retention: Some(Duration::from_secs(90 * 24 * 60 * 60)),
        now: || NOW,
    };
    let running = tokio::spawn(upkeep.run());
    let mut before = None;
    for _ in 0..3 {
        let (at, age) = asks.recv().await.unwrap();
        assert_eq!(age, BACKUP_AFTER);
        assert!(before.is_none_or(|before| at - before >= MAINTENANCE_INTERVAL), "once an hour");
        before = Some(at);
    }
    running.abort();
    let conversations =
        store.conversations("ada", &ConversationFilter::default(), &PageRequest::default()).await.unwrap();
    let left: Vec<_> = conversations.items.iter().map(|found| found.conversation.id.as_str()).collect();
    assert_eq!(left, ["new"]);
    let mut kept = Vec::new();
    for hash in &hashes {
        kept.push(blobs.read(hash).await.unwrap().is_some());
    }
    assert_eq!(kept, [true, false, false]);
}

#[tokio::test]
async fn backup_is_created_only_if_the_newest_is_old() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), 0).await;
    let first = store.backup_if_older(BACKUP_AFTER).await.unwrap().expect("there was none");
    assert!(first.exists());
    assert_eq!(store.backup_if_older(BACKUP_AFTER).await.unwrap(), None, "a start is no reason");
    assert!(store.backup_if_older(Duration::ZERO).await.unwrap().is_some());
}

/// Longer than the test: the turn is read before the merge.
const MERGED_AFTER: Duration = Duration::from_secs(60 * 60);

#[tokio::test]
async fn deltas_of_an_ended_turn_are_merged_losslessly() {
    let script = ModelScript::new().say("Every ").say("word ").say("is ").say("one ").say("piece.");
    let server = TestServer::start(ScriptQueue::new([script])).await;
    let (app, catalog) = (server.state.app.clone(), server.state.catalog.clone());
    let blobs = server.state.blobs.clone();
    let state = AppState::with_merge_after(app, catalog, blobs, server.state.limits, Some(MERGED_AFTER));
    let request = TurnRequest { input: "Hi".into(), ..TurnRequest::default() };
    let new = TurnSpec { request, ..TurnSpec::default() };
    let turn = state.turn_manager.start_turn(&Principal::local("ada"), new).await.unwrap().turn_id;
    let mut viewer = server.follow(turn.as_str(), 0).await;
    let (before, text) = (viewer.rest().await, "Every word is one piece.");
    assert_eq!(before.last().unwrap().name, "stream_end");

    let until = std::time::Instant::now() + PATIENCE;
    while state.log.read(turn.as_str(), 0, 1_000).await.unwrap().len() == before.len() {
        assert!(std::time::Instant::now() < until, "it is not merged");
        // Again if the turn's end was not recorded yet.
        tokio::time::pause();
        tokio::time::advance(MERGED_AFTER).await;
        tokio::time::resume();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let after = server.follow(turn.as_str(), 0).await.rest().await;
    let deltas: Vec<_> = after.iter().filter(|event| event.name == "content_delta").collect();
    assert_eq!((deltas.len(), &deltas[0].data["text"]), (1, &json!(text)));
    assert_eq!(after.last(), before.last());
    let first = before.iter().find(|event| event.name == "content_delta").unwrap().id;
    let resumed = server.follow(turn.as_str(), first).await.rest().await;
    assert_eq!(resumed[0].name, "resync", "a cursor in the middle of what was merged");
}

#[tokio::test]
async fn full_disk_rejects_new_work_and_fails_readiness() {
    let folder = tempfile::tempdir().unwrap();
    let full = store(folder.path(), u64::MAX).await;
    let build = move |builder: throughline::ThroughlineBuilder| builder.log(Arc::new(full.clone()));
    let server = TestServer::start_with(ScriptQueue::new([]), build, Default::default()).await;
    let (status, ready) = server.get("/readyz").await;
    assert_eq!((status, &ready["status"]), (503, &json!("no_room")));
    assert!(ready["why"].as_str().unwrap().contains("MiB"), "{ready}");
    assert_eq!(server.get("/healthz").await.0, 200, "it lives");
    let chat = json!({"model": "default", "messages": [{"role": "user", "content": "Hi"}]});
    for (path, body) in [("/v1/turns", saying("Hi")), ("/v1/chat/completions", chat)] {
        let (status, refused) = server.post(path, body).await;
        assert_eq!((status, &refused["error"]["code"]), (507, &json!("no_room")), "{path}");
        assert!(refused["error"]["remedy"].as_str().unwrap().contains("free disk space"), "{refused}");
    }
    // The reserve is for turns that run.
    let upload = server.client().post(server.url("/v1/files")).header("content-type", "text/plain");
    let (status, refused) = answered(upload.body("a file")).await;
    assert_eq!((status, &refused["error"]["code"]), (507, &json!("no_room")), "{refused}");
    // So is a picture in a chat, and a conversation that comes with one: both are refused before a file is written.
    let picture = format!("data:image/png;base64,{}", "aGk0".repeat(100_000));
    let content = json!([{"type": "image_url", "image_url": {"url": picture}}]);
    let said = json!([{"role": "user", "content": content}]);
    let chat = json!({"model": "default", "messages": said});
    for (path, body) in [("/v1/chat/completions", chat), ("/v1/conversations/import", said)] {
        let (status, refused) = server.post(path, body).await;
        assert_eq!((status, &refused["error"]["code"]), (507, &json!("no_room")), "{path}: {refused}");
    }
    assert_eq!(server.get("/v1/conversations").await.1["items"], json!([]));
    assert_eq!(server.get("/v1/files").await.1["items"], json!([]), "nothing of it is kept");
    assert!(server.upstream.requests().is_empty());
}
