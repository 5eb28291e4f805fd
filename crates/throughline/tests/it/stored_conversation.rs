//! A conversation in a store: its process is killed in the middle of a write, and another one continues it.
//!
//! The test starts itself as the process that is killed: with [`FILE`] set it only runs the turn, and reports
//! that its tool runs.

#![cfg(unix)]

use crate::support::{self, DIALECTS, serve};
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use throughline::ConversationId;
use throughline::prelude::*;
use throughline::store::{Catalog, MemoryLog, SqliteSettings, SqliteStore};
use throughline_testkit::{ModelScript, ParsedRequest};

const FILE: &str = "THROUGHLINE_TEST_CONVERSATION_TO_KILL";
const UPSTREAM: &str = "THROUGHLINE_TEST_UPSTREAM";

/// Answers by the content of the request, so that a request that is repeated after a crash gets the same
/// answer.
fn model(seen: &ParsedRequest) -> ModelScript {
    let calls = seen.answered_calls().len();
    match (seen.user_text(), calls) {
        ("I am Ada.", _) => ModelScript::new().say("Hello Ada."),
        ("Write it down.", 0) => ModelScript::new().say("I write.").call("notes_write", json!({})),
        ("Write it down.", _) => ModelScript::new().say("I am not sure that it worked."),
        (_, _) => ModelScript::new().say("You are Ada."),
    }
}

async fn open(file: &Path) -> Arc<SqliteStore> {
    let settings = SqliteSettings { ballast_bytes: 0, ..SqliteSettings::default() };
    Arc::new(SqliteStore::open(file, settings).await.unwrap())
}

fn app(store: &Arc<SqliteStore>, base_url: &str) -> Throughline {
    // Reports that it runs, and never ends: the process dies first.
    let write = try_tool("notes.write", "Writes", |_: NoArguments, context: ToolContext| async move {
        std::io::stdout().lock().write_all(b"writing\n")?;
        context.cancellation().cancelled().await;
        Ok("stopped")
    });
    let upstream = Upstream::new("test", DIALECTS[0].0, base_url).unwrap();
    let app = Throughline::builder().upstream(upstream).model("m").tool(write.agent_callable());
    app.allow("notes.*").log(store.clone()).build().unwrap()
}

/// The process that is killed.
async fn talk(file: &Path, base_url: &str) {
    let store = open(file).await;
    let mut conversation = app(&store, base_url).conversation().persist(&store).unwrap();
    conversation.ask("I am Ada.").await.unwrap().finish().await;
    println!("conversation {}", conversation.id());
    conversation.ask("Write it down.").await.unwrap().finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conversation_continues_after_kill_9() {
    if let (Some(file), Ok(base_url)) = (std::env::var_os(FILE), std::env::var(UPSTREAM)) {
        return talk(Path::new(&file), &base_url).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chat.db");
    let server = serve(model).await;
    let base_url = server.base_url(DIALECTS[0].1);
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "stored_conversation::conversation_continues_after_kill_9", "--nocapture"])
        .env(FILE, &file)
        .env(UPSTREAM, &base_url)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = process.stdout.take().unwrap();
    let heard = tokio::task::spawn_blocking(move || {
        let mut id = None;
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Some(name) = line.split("conversation ").nth(1) {
                id = Some(ConversationId::new(name.to_owned()));
            }
            if line.ends_with("writing") {
                return id;
            }
        }
        None
    });
    let id = heard.await.unwrap().expect("the tool runs");
    process.kill().unwrap();
    process.wait().unwrap();

    let store = open(&file).await;
    let app = app(&store, &base_url);
    let early = app.open_conversation(&store, &id, None).await.err().unwrap();
    assert_eq!(early, throughline::Error::TurnRunning, "not before its turn is settled");
    let mut resumed = app.resume_all(&store).await.unwrap();
    assert!(resumed.failed.is_empty(), "{resumed:?}");
    let message = resumed.turns.remove(0).finish().await;
    assert_eq!(message.text(), "I write.\n\nI am not sure that it worked.");
    let call = message.calls().next().unwrap();
    assert_eq!((call.status, call.attempts), (Some(CallStatus::Unknown), 1), "a write never runs twice");

    let mut conversation = app.open_conversation(&store, &id, None).await.unwrap();
    assert_eq!(conversation.history().len(), 5, "two of the user, three steps");
    let answer = conversation.ask("Who am I?").await.unwrap().finish().await;
    assert_eq!(answer.text(), "You are Ada.");
    let asked = server.requests().pop().unwrap();
    assert!(format!("{:?}", asked.messages).contains("Hello Ada."), "{:?}", asked.messages);
    assert_eq!(server.violations(), []);
    assert!(app.resume_all(&store).await.unwrap().turns.is_empty(), "the end was there before it was seen");
    let row = store.conversation("local", id.as_str()).await.unwrap().unwrap();
    assert_eq!((row.turns, row.conversation.title.as_str()), (3, "I am Ada."));
}

#[tokio::test]
async fn store_other_than_the_log_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("chat.db")).await;
    let server = serve(model).await;
    let upstream = support::at(&server, DIALECTS[0]);
    let app = Throughline::builder().upstream(upstream).model("m").log(Arc::new(MemoryLog::default()));
    let app = app.build().unwrap();
    assert_eq!(app.conversation().persist(&store).err(), Some(throughline::Error::OtherStore));
    assert_eq!(app.resume_all(&store).await.err(), Some(throughline::Error::OtherStore));
}

#[tokio::test]
async fn conversations_are_per_user_and_survive_clear() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("chat.db")).await;
    let server = serve(model).await;
    let app = app(&store, &server.base_url(DIALECTS[0].1));
    let mut ada = app.conversation().persist(&store).unwrap();
    ada.set_user(Some("ada".into()));
    ada.ask("I am Ada.").await.unwrap().finish().await;
    let first = ada.id().clone();
    let other = app.open_conversation(&store, &first, Some("bob".into())).await.err().unwrap();
    assert_eq!(other, throughline::Error::NoConversation { id: first.clone() });
    ada.clear();
    ada.ask("Who am I?").await.unwrap().finish().await;
    assert_ne!(ada.id(), &first);
    let first = app.open_conversation(&store, &first, Some("ada".into())).await.unwrap();
    assert_eq!((first.history().len(), ada.history().len()), (2, 2));
}
