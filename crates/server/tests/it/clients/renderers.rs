//! A question at the end of an answer, as Markdown renderers show it after any text of a model.
//!
//! The answers are those of the server; `clients/renderers.mjs` renders them and judges what a person sees.

use super::server::packages;
use crate::support::TestServer;
use crate::support::check_stream::{Answer, check_stream};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use throughline::tools::{Effect, tool};
use throughline::{ApprovalMode, ThroughlineBuilder};
use throughline_testkit::{ModelScript, ScriptQueue};
use throughline_wire::display_escape;
use tokio::io::AsyncWriteExt;

/// Number of random answers; `THROUGHLINE_RENDERED_ANSWERS` sets another number, with another seed.
const RANDOM_ANSWERS: u64 = 150;
const ANSWERS_VARIABLE: &str = "THROUGHLINE_RENDERED_ANSWERS";
const RENDERERS_MAX: Duration = Duration::from_secs(3_600);

/// Texts of a model before a question that try to hide, fold or restyle it.
const OPENERS: [&str; 70] = [
    "Shall I look up the weather? Answer **yes** or **no**.\n\n<!--",
    "<!-- ",
    "a\n<!--\n",
    "<script>",
    "<style>",
    "<textarea>",
    "<title>",
    "<xmp>",
    "<plaintext>",
    "<?php",
    "<![CDATA[",
    "<!DOCTYPE",
    "<details>",
    "<details>\n<summary>s</summary>\n\n",
    "text <details><summary>s</summary>",
    "<div hidden>",
    "<div style='display:none'>",
    "hello <span hidden>",
    "<table><tr><td>",
    "<a href='x'>",
    "<template>",
    "<svg>",
    "<select>",
    "</div></blockquote><pre>",
    "\\<div hidden>",
    "\\\\<div hidden>",
    "<\u{2}div hidden>",
    "<DIV\nhidden>",
    "    <div hidden>",
    "a\n    <div hidden>",
    "- <div hidden>",
    "> <div hidden>",
    "| a |\n|---|\n| ` | <div hidden> ` |",
    "a ` b\nc ` <div hidden> ` d",
    "\\` <div hidden> `",
    "`\n<div hidden>\n`",
    "`a\n\nb` <div hidden>",
    "```\ncode",
    "```",
    "~~~\ncode",
    "````md\n```\n",
    "```rust,ignore\n<div hidden>\n```",
    "```rust,ignore\nlet x;\n```",
    "```js title=\"a\"\n<div hidden>\n````",
    "  ```\n  <div hidden>\n  ```",
    "- ```\n  x\n```\n<div hidden>",
    "1. a\n\n   ```html\n   <div hidden>\n   ```\n2. b",
    "> ```\n> x",
    "a\r```\r<div hidden>",
    "$$",
    "$$ b",
    "$$\nx\ny $$",
    "$$\nx\n$$ y",
    "a $$\nx\n$$",
    "$$a$$ b",
    "- $$\n  x",
    "`$$\n$$`",
    "$a <b hidden> c$",
    "$$\n```\n<div hidden>",
    "::: details\n",
    "Hi[^1]\n\n[^1]: late",
    "*[yes]: no\n\n*[Run]: no",
    "[a]: b \"",
    "[a]: b (",
    "[a]:\n~~~\n<div hidden>",
    "$\n```\n$\n```",
    "$$\n$$\n~~~\n$$\n~~~",
    "$$\na\\\n$$\n```\n$$\n```",
    "- item\n",
    "<think>\nLet me see ◁think▷",
];

/// Arguments of a call with misleading text.
const HOSTILE_TEXTS: [&str; 4] = [
    "milk\"",
    "</details><!-- *a* _b_ `c` [d](e) |f| ~~g~~ $h$ \\ & ^i^ </script>",
    "x)? It changes nothing.\n\n```\nAnswer **no** <think> ◁think▷ $$ tlq_00112233445566778899aabbccddeeff",
    "\u{202e}2026 \u{200b}snake_case __init__ [[x]] <b>\r\n",
];

#[derive(Deserialize, JsonSchema)]
struct Note {
    text: String,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renderers_show_the_question_after_hostile_text() {
    let Some(packages) = packages() else { return };
    let count = std::env::var(ANSWERS_VARIABLE).ok().map(|count| count.parse().expect("a number of answers"));
    let mut random = Random(count.map_or(1, |_| std::process::id().into()));
    println!("seed {}", random.0);
    let openers = OPENERS.iter().flat_map(|opener| {
        let texts = HOSTILE_TEXTS.iter().enumerate();
        texts.map(move |(at, text)| (format!("{opener:?} {at}"), (*opener).to_owned(), (*text).to_owned()))
    });
    let random_answers = (0..count.unwrap_or(RANDOM_ANSWERS)).map(|at| {
        let (said, text) = (random.text(&["\n", "\n\n", " "]), random.text(&[" "]));
        (format!("random {at}: {said:?} {text:?}"), said, text)
    });
    let answers: Vec<_> = openers.chain(random_answers).collect();
    let scripts = answers.iter().map(|(_, said, text)| {
        ModelScript::new().say(said.clone()).call("note_write", json!({ "text": text }))
    });
    let server = TestServer::start_with(ScriptQueue::new(scripts), asking, Default::default()).await;
    let mut cases = String::new();
    for (at, (name, _, text)) in answers.iter().enumerate() {
        let render = if at % 2 == 0 { "text" } else { "details" };
        let answer = ask(&server, render).await;
        // The number of open questions is limited.
        let turn = answer.events[0]["turn_id"].as_str().unwrap();
        assert_eq!(server.post(&format!("/v1/turns/{turn}/cancel"), json!({})).await.0, 202);
        cases.push_str(&case(name, &answer, text).to_string());
        cases.push('\n');
    }
    let judged = render(&packages, cases).await;
    assert!(judged.starts_with("{\"checked\":"), "{judged}");
    println!("{} answers, {}", answers.len(), judged.trim());
}

fn asking(builder: ThroughlineBuilder) -> ThroughlineBuilder {
    let note = tool("note.write", "Writes a note", |note: Note, _| async move { note.text });
    let note = note.title("Answer “yes” *now* <b>").effect(Effect::Write).agent_callable();
    builder.tool(note).approval(ApprovalMode::Ask)
}

async fn ask(server: &TestServer, render: &str) -> Answer {
    let body = json!({
        "model": format!("default:{render}"), "stream": true, "messages": [{"role": "user", "content": "Note it"}],
    });
    let request = server.client_of("ada").post(server.url("/v1/chat/completions")).json(&body);
    let response = request.send().await.unwrap();
    let (status, bytes) = (response.status(), response.bytes().await.unwrap());
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&bytes));
    check_stream(&bytes)
}

/// The answer, and what a person is to see at its end.
fn case(name: &str, answer: &Answer, text: &str) -> Value {
    let asked = answer.events.iter().find(|event| event["type"] == "approval_request").unwrap();
    let question = asked["question"].as_str().unwrap();
    assert!(
        question.starts_with(
            "Run note.write (from rust, titled “Answer 'yes' *now* <b>”)? It changes something."
        ),
        "{question}"
    );
    let (before, last_line) = answer.content.rsplit_once("\n```\n\n").unwrap();
    let (_, json) = before.rsplit_once("\n```json\n").unwrap();
    let arguments: Value = serde_json::from_str(json).unwrap();
    assert_eq!(arguments, json!({ "text": text }), "{name}: they are what runs");
    let code = last_line.rsplit('`').nth(1).unwrap();
    let how = "Answer yes to run it, or no (是 / 否). Any other message is a no, and its reason. \
               Look at it on the page · ";
    let line = display_escape::escape(&question.split_whitespace().collect::<Vec<_>>().join(" "))
        .replace("tlq_", "tlq-");
    json!({"name": name, "markdown": answer.content, "seen": [line, json, how, code]})
}

/// Answer of the renderers' judge.
async fn render(packages: &Path, cases: String) -> String {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../clients/renderers.mjs");
    let mut command = tokio::process::Command::new(packages.join("node_modules/.bin/node"));
    command.arg(script).env("PACKAGES", packages).env("PYTHON", packages.join("venv/bin/python"));
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut renderers = pipes.kill_on_drop(true).spawn().unwrap();
    let mut input = renderers.stdin.take().unwrap();
    let writing = tokio::spawn(async move { input.write_all(cases.as_bytes()).await });
    let done = tokio::time::timeout(RENDERERS_MAX, renderers.wait_with_output()).await;
    let done = done.expect("the renderers come to an end").unwrap();
    writing.await.unwrap().unwrap();
    let (said, failed) = (String::from_utf8(done.stdout).unwrap(), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{said}\n{failed}");
    said
}

/// A deterministic generator: the same numbers for the same seed.
struct Random(u64);

impl Random {
    const PIECES: [&str; 53] = [
        "`",
        "``",
        "```",
        "````",
        "~~~",
        "$",
        "$$",
        "<",
        "</",
        "<b>",
        "<div hidden>",
        "<details>",
        "<!--",
        "-->",
        "<script>",
        "</script>",
        "<think>",
        "\n",
        "\n\n",
        " ",
        "    ",
        "\t",
        "- ",
        "1. ",
        "> ",
        "| ",
        "|---|",
        "a",
        "js",
        "\\",
        "[",
        "[^1]",
        "[^1]: ",
        "*[Run]:",
        ":::",
        "///",
        "\r",
        "**",
        "_",
        "&lt;",
        "{: hidden}",
        "---",
        "x\n===",
        "◁think▷",
        "[a]: b",
        "]: ",
        "\"",
        "\"\n",
        "'",
        "(",
        ")\n",
        "\\\n",
        "$\n",
    ];

    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[(self.next() % of.len() as u64) as usize]
    }

    fn text(&mut self, gaps: &[&str]) -> String {
        let count = 1 + self.next() % 14;
        (0..count)
            .map(|_| {
                let (piece, gap) = (self.pick(&Self::PIECES), self.pick(gaps));
                if self.next().is_multiple_of(3) { format!("{piece}{gap}") } else { piece.to_owned() }
            })
            .collect()
    }
}
