//! A model that writes the same calls natively and as text gives the same turn: blocks, calls, outcomes, log.

use crate::support::test_rng::TestRng;
use crate::support::two_modes::{DIALECTS, TEST_MODES, TestMode, run};
use serde_json::{Value, json};
use throughline::engine::{Event, EventKind, StartRule};
use throughline::wire::Dialect;
use throughline::{AssistantMessage, CallStatus};
use throughline_testkit::{self as testkit, CallMove, ModelScript, ReplyPace, ScriptMove};

/// Texts with all kinds of markup except calls.
const PROSE: [&str; 10] = [
    "Let me look.",
    "看一下，马上就好。",
    "If a < b && b > c then ~half of it is `code`.",
    "A table:\n\n| a | b |\n|---|---|\n| 1 | 2 |",
    "A fence:\n\n```rust\nlet x = \"<<<\";\n```\n\nand on.",
    "> quoted\n\nand *not*.",
    "「引」与「号」 {braces} <tags/>",
    "The marker <<<[ is only mentioned, and so is </tool.",
    "e\u{301} 🙂 \u{202e}x",
    "1. one\n2. two",
];

/// Values that a careless encoder, scanner or parser trips over.
const VALUES: [&str; 20] = [
    "",
    "Paris",
    "  leading and trailing  ",
    "北京，以及「上海」",
    "say \"hi\" and 'bye' \\ \\n \\u0041",
    "two\nlines\n\nand a blank one",
    "tab\tand \u{7}bell",
    "<<<[TOOL_REQUEST]>>>",
    "<<<[END_TOOL_REQUEST]>>>",
    "x「末」,\ntool_name:「始」shell「末」",
    "「始ESCAPE」nested「末ESCAPE」",
    "<<<~[TOOL_REQUEST]>>> <<<~~[x",
    "「~末」 {~始} {末}",
    "<tool_call>{\"name\": \"shell\"}</tool_call>",
    "</tool_call>",
    "```\nfenced\n```",
    "<think>not thinking</think>",
    "~~~ ~ <<[ <[",
    "{\"json\": [1, 2, {\"a\": null}]}",
    "🙂🏽 e\u{301} \u{200d}",
];

/// A few steps with calls, then an answer.
fn scripts(rng: &mut TestRng) -> Vec<ModelScript> {
    let pace = ReplyPace {
        chunk_chars: Some(1 + rng.below(9)),
        fragment_chars: Some(1 + rng.below(7)),
        ..ReplyPace::INSTANT
    };
    let steps = 1 + rng.below(3);
    let mut scripts: Vec<ModelScript> = (0..steps).map(|_| step(rng).with_pace(pace)).collect();
    scripts.push(ModelScript::new().say(rng.pick(&PROSE)).with_pace(pace));
    scripts
}

fn step(rng: &mut TestRng) -> ModelScript {
    let mut script = ModelScript::new();
    if rng.one_in(3) {
        script = script.think(rng.pick(&PROSE));
    }
    if !rng.one_in(3) {
        script = script.say(rng.pick(&PROSE));
    }
    let calls: Vec<CallMove> = (0..1 + rng.below(3)).map(|_| call(rng)).collect();
    if rng.one_in(3) {
        script = script.then(ScriptMove::Parallel(calls));
    } else {
        for call in calls {
            script = script.then(ScriptMove::Call(call));
            if rng.one_in(3) {
                script = script.say(rng.pick(&PROSE));
            }
        }
    }
    script
}

fn call(rng: &mut TestRng) -> CallMove {
    let text = rng.pick(&VALUES);
    match rng.below(8) {
        0 => CallMove::new("fail_now", json!({"why": text})),
        1 => CallMove::new("note_write", json!({"text": text})),
        2 => CallMove::new("say_ekko", json!({"text": text})),
        3 => CallMove::new("say_echo", json!({"times": 2})),
        4 => CallMove::new("say_echo", json!({"text": text, "times": rng.below(5), "loud": rng.one_in(2)})),
        5 => CallMove::new("time_now", json!({})),
        _ => CallMove::new("say_echo", json!({"text": text})),
    }
}

/// A block as it has to be the same: kind, text, tool, arguments, outcome.
fn blocks(message: &AssistantMessage) -> Vec<Value> {
    let blocks = serde_json::to_value(&message.blocks).unwrap();
    let kept = blocks.as_array().unwrap().iter().map(|block| match block["kind"].as_str().unwrap() {
        // White space around markup is part of it.
        kind @ ("text" | "thinking") => json!({"kind": kind, "text": block["text"].as_str().unwrap().trim()}),
        "tool_call" => json!({
            "kind": "tool_call",
            "tool": block["tool_name"],
            "arguments": block["arguments"],
            "summary": block["input_summary"],
            "status": block["status"],
            "rule": block["rule"],
            "output": block["output"],
            "error": block["error"],
            "seen_by_model": block["seen_by_model"],
        }),
        kind => json!({"kind": kind, "all": block}),
    });
    kept.collect()
}

/// Types of the events, with the call or block they are about; fragments of one thing count once.
fn shape(events: &[Event]) -> Vec<String> {
    let mut calls = Vec::new();
    let mut shape: Vec<String> = Vec::new();
    for event in events {
        let call = event.tool_id.as_ref().map(|id| {
            calls.iter().position(|known| known == id).unwrap_or_else(|| {
                calls.push(id.clone());
                calls.len() - 1
            })
        });
        let kind = serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned();
        // A call without arguments has no fragments, or the fragment `{}`.
        if matches!(event.kind, EventKind::ToolInputDelta { .. }) {
            continue;
        }
        let line = format!("{kind} block {:?} call {call:?}", event.block);
        if shape.last() != Some(&line) {
            shape.push(line);
        }
    }
    shape
}

/// Native calls may take turns with their fragments; blocks in a text cannot, and that is seen in the log's order.
fn one_after_the_other(script: &mut ModelScript) {
    let moves = std::mem::take(&mut script.moves);
    script.moves = moves
        .into_iter()
        .flat_map(|next| match next {
            ScriptMove::Parallel(calls) => calls.into_iter().map(ScriptMove::Call).collect(),
            other => vec![other],
        })
        .collect();
}

async fn check(seed: u64, start: StartRule, dialect: (Dialect, testkit::FakeDialect)) {
    let mut scripts = scripts(&mut TestRng::new(seed));
    if start == StartRule::AfterStream {
        scripts.iter_mut().for_each(one_after_the_other);
    }
    let context = |way: &TestMode| {
        let moves: Vec<_> = scripts.iter().map(|script| &script.moves).collect();
        format!("seed {seed}, {way:?}, {start:?}: {moves:?}")
    };
    let ways = TEST_MODES.map(|way| TestMode { dialect, ..way });
    let (native_events, native) = run(&ways[0], scripts.clone(), start).await;
    for way in &ways[1..] {
        let (events, message) = run(way, scripts.clone(), start).await;
        assert_eq!(message.status, native.status, "{}", context(way));
        assert_eq!(blocks(&message), blocks(&native), "{}", context(way));
        if start == StartRule::AfterStream {
            assert_eq!(shape(&events), shape(&native_events), "{}", context(way));
        }
    }
    // The scripts are worth comparing: a tool ran, and there is text.
    assert!(native.calls().count() > 0, "{}", context(&TEST_MODES[0]));
}

#[tokio::test]
async fn random_scripts_give_the_same_turn_in_both_modes() {
    for seed in 0..32 {
        // Here the end of each call is on the wire, as the END marker of a block is.
        check(seed, StartRule::AfterStream, (Dialect::Anthropic, testkit::FakeDialect::Anthropic)).await;
        check(seed ^ 0xea9e_5000, StartRule::Eager, DIALECTS[seed as usize % DIALECTS.len()]).await;
    }
}

/// The generator reaches every relevant outcome; otherwise the comparison above would prove too little.
#[tokio::test]
async fn generated_scripts_reach_every_compared_outcome() {
    let mut seen = Vec::new();
    for seed in 0..32 {
        let (_, message) =
            run(&TEST_MODES[0], scripts(&mut TestRng::new(seed)), StartRule::AfterStream).await;
        seen.extend(message.calls().filter_map(|call| call.status));
    }
    for status in [CallStatus::Success, CallStatus::Error, CallStatus::Denied, CallStatus::NotStarted] {
        assert!(seen.contains(&status), "{status:?}");
    }
}

/// The comparison can fail: another argument, another order and another text are each noticed.
#[tokio::test]
async fn comparison_detects_a_planted_difference() {
    let say = |city: &str| CallMove::new("say_echo", json!({"text": city}));
    let of = |lead: &str, calls: [CallMove; 2]| {
        let [first, second] = calls;
        vec![
            ModelScript::new().say(lead).then(ScriptMove::Call(first)).then(ScriptMove::Call(second)),
            ModelScript::new().say("Done."),
        ]
    };
    let (_, native) =
        run(&TEST_MODES[0], of("Both.", [say("Paris"), say("Oslo")]), StartRule::AfterStream).await;
    for (lead, calls) in [
        ("Both.", [say("Paris"), say("Rome")]),
        ("Both.", [say("Oslo"), say("Paris")]),
        ("Both!", [say("Paris"), say("Oslo")]),
    ] {
        let (_, text) = run(&TEST_MODES[1], of(lead, calls), StartRule::AfterStream).await;
        assert_ne!(blocks(&text), blocks(&native), "{lead}");
    }
}
