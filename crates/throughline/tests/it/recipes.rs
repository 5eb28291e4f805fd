//! Each recipe of `docs/library.md` equals an example, and does what the page describes.
//!
//! `cargo test --workspace` builds the examples; for this test alone: `cargo build --workspace --examples` before it.

use crate::support::{DIALECTS, serve};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use throughline_testkit::{FakeUpstreamHandle, ModelScript, ScriptQueue};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

const RECIPES: [&str; 10] = [
    "two_tools",
    "approval",
    "streaming_ui",
    "cancel",
    "durable_turns",
    "own_source",
    "own_store",
    "text_mode",
    "scripted_model",
    "only_decoder",
];

fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(path.exists(), "{} is not built: cargo build --workspace --examples", path.display());
    path
}

fn start(name: &str, words: &[&str]) -> Child {
    let mut command = Command::new(example(name));
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    command.spawn().unwrap()
}

/// Output of a recipe that gets this input.
async fn output(name: &str, words: &[&str], input: &str) -> String {
    let mut child = start(name, words);
    child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).await.unwrap();
    assert!(child.wait().await.unwrap().success(), "{name}: {text}");
    text
}

async fn model(scripts: impl IntoIterator<Item = ModelScript>) -> (FakeUpstreamHandle, String) {
    let server = serve(ScriptQueue::new(scripts)).await;
    let address = server.base_url(DIALECTS[0].1);
    (server, address)
}

fn say(text: &str) -> ModelScript {
    ModelScript::new().say(text)
}

fn call(name: &str) -> ModelScript {
    ModelScript::new().call(name, json!({}))
}

#[test]
fn library_page_shows_each_recipe_verbatim() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../docs/library.md")).unwrap();
    for name in RECIPES {
        let code = std::fs::read_to_string(root.join("examples").join(format!("{name}.rs"))).unwrap();
        assert!(
            page.contains(&format!("```rust,ignore\n{code}```\n")),
            "{name}: docs/library.md shows another one"
        );
    }
}

#[tokio::test]
async fn two_tools_recipe_runs_both_tools() {
    let city = ModelScript::new().call("weather_today", json!({"city": "Paris"}));
    let note = ModelScript::new().call("notes_save", json!({"text": "sunny"}));
    let (_server, address) = model([city, note, say("Noted.")]).await;
    let shown = output("two_tools", &[&address, "m"], "").await;
    assert!(shown.matches("Some(Success)").count() == 2 && shown.ends_with("Noted.\n"), "{shown}");
}

#[tokio::test]
async fn approval_recipe_approves_and_denies() {
    for (answer, told) in [("y\n", "deleted 3 files"), ("n\n", "denied")] {
        let (server, address) = model([call("files_delete"), say("Done.")]).await;
        let shown = output("approval", &[&address, "m"], answer).await;
        assert!(shown.contains("[y/n]") && shown.ends_with("Done."), "{shown}");
        let seen = format!("{:?}", server.requests()[1].messages).to_lowercase();
        assert!(seen.contains(told), "{told}: {seen}");
    }
}

#[tokio::test]
async fn streaming_ui_recipe_prints_updates_in_order() {
    let (_server, address) = model([call("clock_now"), say("Noon.")]).await;
    let shown = output("streaming_ui", &[&address, "m"], "").await;
    assert_eq!(shown, "[clock.now …]\n[Success]\nNoon.\n");
}

#[cfg(unix)]
#[tokio::test]
async fn cancel_recipe_cancels_the_turn_on_sigint() {
    use throughline_testkit::ScriptMove;
    let (_server, address) = model([say("one two three").then(ScriptMove::Pause(600_000))]).await;
    let mut child = start("cancel", &[&address, "m"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next_line().await.unwrap().is_some_and(|line| line.contains("one")));
    let id = child.id().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let mut last = String::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        last = line;
    }
    assert!(last.starts_with("Some(Cancelled) after "), "{last}");
}

#[tokio::test]
async fn durable_turns_recipe_continues_in_the_next_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chat.db");
    let (server, address) = model([say("Hello."), say("Hello again.")]).await;
    for (greeting, count) in [("Hello.", "2 messages"), ("Hello again.", "4 messages")] {
        let shown = output("durable_turns", &[&address, "m", file.to_str().unwrap()], "").await;
        assert!(shown.contains(greeting) && shown.contains(count), "{shown}");
    }
    assert_eq!(server.violations(), []);
}

#[tokio::test]
async fn own_source_recipe_offers_a_tool_per_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("readme.txt"), "four words are here").unwrap();
    let (server, address) = model([call("files_readme"), say("Four words.")]).await;
    let shown = output("own_source", &[&address, "m", folder.path().to_str().unwrap()], "").await;
    assert_eq!(shown, "Four words.\n");
    assert!(format!("{:?}", server.requests()[1].messages).contains("four words are here"));
}

#[tokio::test]
async fn own_store_recipe_counts_the_events() {
    let (_server, address) = model([say("Hello.")]).await;
    let shown = output("own_store", &[&address, "m"], "").await;
    let events = shown.lines().last().and_then(|line| line.split(' ').next()).unwrap();
    assert!(shown.starts_with("Hello.\n") && events.parse::<u32>().unwrap() >= 6, "{shown}");
}

#[tokio::test]
async fn text_mode_recipe_runs_a_written_call() {
    let block = "<<<[TOOL_REQUEST]>>>\ntool_name:「始」clock_now「末」\n<<<[END_TOOL_REQUEST]>>>";
    let (_server, address) = model([say(block), say("Noon.")]).await;
    let shown = output("text_mode", &[&address, "m"], "").await;
    assert!(shown.starts_with("Noon. (1 calls)\n") && shown.contains("12:00"), "{shown}");
}

#[tokio::test]
async fn scripted_model_and_decoder_recipes_need_no_upstream() {
    assert!(output("scripted_model", &[], "").await.starts_with("2 requests; "));
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let shown = output("only_decoder", &["openai-chat"], body).await;
    let reply: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&reply["role"], &reply["content"]), (&json!("assistant"), &json!("Hi")));
}
