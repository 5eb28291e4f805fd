//! Turns as Chat Completions, from their logs alone: every answer satisfies the strictest client, has the
//! text of the fold, and is the same without streaming.

#[path = "../../../tests/it/support/check_stream.rs"]
mod check_stream;

use super::{
    AnswerEnd, CallDelivery, ChatChunk, ChatCompletion, ChatProjection, ChunkHead, ChunkWriter, STREAM_OPEN,
    UsageChunk, call_id,
};
use check_stream::{Answer, check_stream, read};
use proptest::prelude::*;
use serde_json::{Value, json};
use throughline::config::ToolRendering;
use throughline::engine::BlockStart;
use throughline::{AssistantMessage, Event, EventKind};
use throughline_testkit::sim;
use throughline_wire::CallId;

const TOOLS: &str = include_str!("../../../../engine/tests/logs/v1-tools.jsonl");
const EVERY_KIND: &str = include_str!("../../../../engine/tests/logs/every-kind.jsonl");
const BROKEN: &str = include_str!("../../../../engine/tests/logs/v1-broken.jsonl");
const STOPPED: &str = include_str!("../../../../engine/tests/logs/v1-stopped.jsonl");

fn events(log: &str) -> Vec<Event> {
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn head() -> ChunkHead {
    ChunkHead { id: "chatcmpl-1".into(), created: 1_763_683_200, model: "default".into() }
}

/// One answer: its bytes, the body without streaming, and the number of events that it has consumed.
struct ProjectedAnswer {
    bytes: Vec<u8>,
    whole: ChatCompletion,
    used: usize,
    ended: Option<AnswerEnd>,
    calls: Vec<CallId>,
}

fn project(seen: &[Event], fresh: &[Event], usage: UsageChunk, render: ToolRendering) -> ProjectedAnswer {
    let mut projection = ChatProjection::new(usage, render).with_call_delivery(CallDelivery::Fragments);
    let mut collected = ChatProjection::new(usage, render);
    let (writer, mut whole) = (ChunkWriter::new(&head()), ChatCompletion::default());
    let mut bytes = STREAM_OPEN.to_vec();
    writer.write(&projection.opening(), &mut bytes);
    for projection in [&mut projection, &mut collected] {
        seen.iter().for_each(|event| projection.replay(event));
        projection.resume_with_results();
    }
    let mut used = 0;
    for event in fresh {
        projection.push(event).iter().for_each(|piece| writer.write(piece, &mut bytes));
        collected.push(event).into_iter().for_each(|piece| whole.push(piece));
        used += 1;
        if projection.ended().is_some() {
            break;
        }
    }
    // Later events produce nothing.
    for event in &fresh[used..] {
        assert_eq!(projection.push(event), [], "behind the end");
    }
    let calls = projection.calls().client_call_ids();
    ProjectedAnswer { bytes, whole, used, ended: projection.ended(), calls }
}

/// A whole turn in one answer.
fn check(log: &[Event], usage: UsageChunk, render: ToolRendering) -> Answer {
    let told = project(&[], log, usage, render);
    assert_eq!((told.ended, told.used), (Some(AnswerEnd::TurnEnded), log.len()));
    let answer = check_stream(&told.bytes);
    agree(&answer, told.whole);
    answer
}

/// The answer without streaming is the fold of the stream.
fn agree(answer: &Answer, whole: ChatCompletion) {
    match (whole.into_body(&head()).expect("an end"), &answer.error) {
        (Err(error), Some(told)) => assert_eq!(error.to_value()["error"], *told),
        (Ok(body), None) => {
            let choice = &body["choices"][0];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            assert_eq!(text(&choice["message"]["content"]), answer.content);
            assert_eq!(text(&choice["message"]["refusal"]), answer.refusal);
            assert_eq!(text(&choice["message"]["reasoning_content"]), answer.reasoning);
            assert_eq!(choice["finish_reason"].as_str(), answer.finish.as_deref());
            let calls = choice["message"]["tool_calls"].as_array().map_or(0, Vec::len);
            assert_eq!(calls, answer.calls.len());
            assert_eq!(body["throughline"]["events"].as_array().unwrap(), &answer.events);
            if let Some(usage) = &answer.usage {
                assert_eq!(body["usage"], *usage);
            }
        }
        (body, error) => panic!("{body:?} against {error:?}"),
    }
}

#[test]
fn a_turn_with_three_tools_is_one_message() {
    let answer = check(&events(TOOLS), UsageChunk::Unwanted, ToolRendering::None);
    assert_eq!(answer.content, "好的\n\n好了");
    assert_eq!(answer.reasoning, "嗯");
    assert_eq!((answer.finish.as_deref(), answer.calls.len(), &answer.usage), (Some("stop"), 0, &None));
    let types = answer.event_types();
    assert_eq!(types.iter().filter(|kind| **kind == "tool_use").count(), 3);
    assert_eq!(types.iter().filter(|kind| **kind == "tool_result").count(), 3);
    assert_eq!(types.last(), Some(&"stream_end"));
    let asked = answer.events.iter().find(|event| event["type"] == "approval_request").unwrap();
    assert_eq!(asked["answer_url"], "/v1/turns/t/approvals/t.3.a1");
}

#[test]
fn input_is_not_sent_back_to_the_client() {
    let answer = check(&events(EVERY_KIND), UsageChunk::Wanted, ToolRendering::None);
    for event in answer
        .events
        .iter()
        .filter(|event| event["type"] == "stream_start" || event["type"] == "user_message")
    {
        assert_eq!(event.get("input"), None);
    }
}

#[test]
fn refusal_error_and_replaced_text_are_separate() {
    let answer = check(&events(EVERY_KIND), UsageChunk::Wanted, ToolRendering::None);
    assert_eq!(answer.refusal, "No. ");
    // Sent text cannot be retracted: its replacement is a separate paragraph.
    assert_eq!(answer.content, "Half a sent\n\nday.");
    let error = answer.error.as_ref().unwrap();
    assert_eq!(error["code"], "upstream_lost");
    assert_eq!(
        error["message"],
        "The model's reply ended early. The connection closed without the protocol's end marker. Try again."
    );
    assert_eq!((&answer.finish, &answer.usage), (&None, &None));
    let types = answer.event_types();
    for kind in ["citation", "audio_delta", "block_start", "user_message", "turn_resumed", "block_superseded"]
    {
        assert!(types.contains(&kind), "{kind} in {types:?}");
    }
}

#[test]
fn every_turn_status_has_a_finish_reason_or_error() {
    let ends = |log: &str, status: &str, finish: Option<&str>| {
        let mut log = events(log);
        if let Some(last) = log.last_mut() {
            last.kind = serde_json::from_value(json!({"type": "stream_end", "status": status})).unwrap();
        }
        log.retain(|event| !matches!(event.kind, EventKind::Error(_)));
        let answer = check(&log, UsageChunk::Wanted, ToolRendering::None);
        assert_eq!(answer.finish.as_deref(), finish, "{status}");
        assert_eq!(answer.usage.is_some(), finish.is_some(), "{status}");
        answer
    };
    ends(TOOLS, "completed", Some("stop"));
    ends(TOOLS, "limit", Some("stop"));
    ends(TOOLS, "length", Some("length"));
    ends(STOPPED, "cancelled", Some("stop"));
    let interrupted = ends(BROKEN, "interrupted", None);
    assert_eq!(interrupted.error.unwrap()["code"], "interrupted");
    assert_eq!(ends(BROKEN, "error", None).error.unwrap()["code"], "failed");

    let filtered = TOOLS.replace(r#""finish":"stop""#, r#""finish":"content_filter""#);
    ends(&filtered, "completed", Some("content_filter"));
}

#[test]
fn tool_calls_follow_the_requested_rendering() {
    let log = events(TOOLS);
    let text = check(&log, UsageChunk::Unwanted, ToolRendering::Text);
    assert_eq!(
        text.content,
        "好的\n\n> **weather** (city: 北京) …\n\n> **weather** (city: 北京): 晴\n\n> **face** (name: smile) …\n\n\
         > **face** (name: smile): applied\n\n> Run calendar (at: 9:00)? It changes something.\n\n\
         > **calendar** (at: 9:00) …\n\n> **calendar** (at: 9:00): saved\n\n好了"
    );

    let details = check(&log, UsageChunk::Unwanted, ToolRendering::Details);
    let start = "<details>\n<summary>weather: city: 北京 …</summary>\n{&quot;city&quot;:&quot;北京&quot;}\n</details>";
    assert!(details.content.contains(start), "{}", details.content);
    assert!(
        details.content.contains(
            "\n\n<details type=\"tool_calls\" done=\"true\" id=\"t.1\" name=\"weather\" \
             arguments=\"{&quot;city&quot;:&quot;北京&quot;}\">\n<summary>weather</summary>\n晴\n</details>\n\n"
        ),
        "{}",
        details.content
    );

    let reasoning = check(&log, UsageChunk::Unwanted, ToolRendering::Reasoning);
    assert_eq!(reasoning.content, "好的\n\n好了");
    assert!(
        reasoning.reasoning.starts_with("嗯\n\n[weather: city: 北京]\n\n[weather: 晴]\n\n"),
        "{}",
        reasoning.reasoning
    );

    let owui = check(&log, UsageChunk::Unwanted, ToolRendering::OwuiEvent);
    assert_eq!(owui.content, "好的\n\n好了");
    let said: Vec<_> = owui.statuses.iter().map(|status| &status["data"]).collect();
    assert_eq!(*said[0], json!({"description": "weather: city: 北京", "done": false}));
    assert_eq!(*said[1], json!({"description": "weather: city: 北京", "done": true}));
    for render in [ToolRendering::None, ToolRendering::Text, ToolRendering::Details, ToolRendering::Reasoning]
    {
        assert_eq!(check(&log, UsageChunk::Unwanted, render).statuses, Vec::<Value>::new(), "{render:?}");
    }
}

/// A viewer sees a running call while it runs.
#[test]
fn a_card_appears_when_its_call_starts() {
    let log = events(TOOLS);
    let start = log.iter().position(|event| matches!(event.kind, EventKind::ToolStart { .. })).unwrap();
    for (render, card) in [
        (ToolRendering::Text, "> **weather** (city: 北京) …"),
        (ToolRendering::Details, "<details>\n<summary>weather"),
    ] {
        let mut projection = ChatProjection::new(UsageChunk::Unwanted, render);
        let mut content = String::new();
        for event in &log[..=start] {
            for piece in projection.push(event) {
                if let ChatChunk::Content(text) = piece {
                    content.push_str(&text);
                }
            }
        }
        assert!(content.contains(card) && !content.contains("晴"), "{content}");
    }
}

/// A tool that ends while the model still writes: its card is not put into the middle of a sentence.
#[test]
fn tool_card_waits_for_the_end_of_the_text_block() {
    let text = |seq: u64, kind: Value| {
        let mut event = json!({"turn_id": "t", "seq": seq, "timestamp": 1, "step": 1});
        for (key, value) in kind.as_object().unwrap() {
            event[key] = value.clone();
        }
        serde_json::from_value::<Event>(event).unwrap()
    };
    let log = vec![
        text(
            1,
            json!({"type": "tool_use", "block": 0, "tool_id": "t.1", "tool_name": "face.set", "wire_name": "face_set",
            "effect": "cosmetic", "status": "preparing", "slot": 0, "position": 0}),
        ),
        text(2, json!({"type": "block_start", "block": 1, "kind": "text"})),
        text(3, json!({"type": "content_delta", "block": 1, "text": "One "})),
        text(4, json!({"type": "tool_start", "block": 0, "tool_id": "t.1", "early": true, "attempt": 1})),
        text(4, json!({"type": "tool_result", "block": 0, "tool_id": "t.1", "status": "success"})),
        text(5, json!({"type": "content_delta", "block": 1, "text": "sentence."})),
        text(6, json!({"type": "block_end", "block": 1})),
        text(7, json!({"type": "stream_end", "status": "completed"})),
    ];
    let answer = check(&log, UsageChunk::Unwanted, ToolRendering::Text);
    assert_eq!(answer.content, "One sentence.\n\n> **face.set**: done\n\n");
}

/// Turns some calls of a log into client calls, and spreads the events over time.
fn with_own_calls(log: &mut [Event], own: impl Fn(usize) -> bool) {
    let mut calls = Vec::new();
    for event in log {
        event.timestamp *= 100;
        let Some(id) = event.tool_id.clone() else { continue };
        let at = calls.iter().position(|known| *known == id).unwrap_or_else(|| {
            calls.push(id);
            calls.len() - 1
        });
        if own(at) {
            match &mut event.kind {
                // No tool that is offered lacks a name.
                EventKind::ToolUse { source, wire_name, .. } if !wire_name.as_str().is_empty() => {
                    *source = "requester".into();
                }
                EventKind::ToolStart { client_id, .. } => *client_id = Some("requester".into()),
                _ => {}
            }
        }
    }
}

#[test]
fn client_call_is_handed_over_when_nothing_else_runs() {
    let mut log = events(TOOLS);
    with_own_calls(&mut log, |at| at == 2);
    let first = project(&[], &log, UsageChunk::Wanted, ToolRendering::Text);
    assert_eq!(first.ended, Some(AnswerEnd::ToolCalls));
    assert_eq!(first.calls, [CallId::new("t.3")]);
    let answer = check_stream(&first.bytes);
    assert_eq!(answer.calls, [("t.3".to_owned(), "calendar".to_owned(), json!({"at": "9:00"}))]);
    assert_eq!(answer.finish.as_deref(), Some("tool_calls"));
    agree(&answer, first.whole);

    // The rest of the turn is the next answer: nothing of the first is repeated.
    let (seen, fresh) = log.split_at(first.used);
    let second = project(seen, fresh, UsageChunk::Wanted, ToolRendering::Text);
    let answer = check_stream(&second.bytes);
    assert_eq!((answer.content.as_str(), answer.finish.as_deref()), ("好了", Some("stop")));
    assert_eq!(answer.calls, []);
}

/// A viewer sees a long call while the model writes it; a short one is sent whole.
#[test]
fn slow_client_call_streams_and_broken_one_is_an_error() {
    let written = |pieces: &[&str], pace_ms: i64, rest: &str| {
        let mut log = String::from(
            r#"{"type":"tool_use","tool_name":"write","wire_name":"write","source":"requester","effect":"external","status":"preparing","slot":0,"position":0}"#,
        );
        for piece in pieces {
            log.push_str(&format!("\n{}", json!({"type": "tool_input_delta", "delta": piece})));
        }
        log.push_str(rest);
        let events = log.lines().enumerate().map(|(at, line)| {
            let mut event: Value = serde_json::from_str(line).unwrap();
            let at = at as i64 + 1;
            for (key, value) in [
                ("turn_id", json!("t")),
                ("seq", json!(at)),
                ("timestamp", json!(at * pace_ms)),
                ("step", json!(1)),
                ("block", json!(0)),
                ("tool_id", json!("t.1")),
            ] {
                event[key] = value;
            }
            serde_json::from_value(event).unwrap()
        });
        let events: Vec<Event> = events.collect();
        project(&[], &events, UsageChunk::Unwanted, ToolRendering::None)
    };
    let pieces = ["{\"path\": \"a\"", ", \"text\": \"", "one ", "two", "\"", "}"];
    let handed_over = r#"
{"type":"tool_input","arguments":{"path":"a","text":"one two"},"text":"{\"path\": \"a\", \"text\": \"one two\"}","seal":"explicit"}
{"type":"step_end","finish":"tool_calls"}
{"type":"tool_start","early":false,"attempt":1,"client_id":"requester"}"#;
    for (pace_ms, fragments) in [(100, 0), (600, 4), (2_000, 5)] {
        let told = written(&pieces, pace_ms, handed_over);
        let answer = check_stream(&told.bytes);
        let arguments = json!({"path": "a", "text": "one two"});
        assert_eq!(answer.calls, [("t.1".to_owned(), "write".to_owned(), arguments)]);
        assert_eq!(
            (answer.fragments, told.ended),
            (fragments, Some(AnswerEnd::ToolCalls)),
            "every {pace_ms} ms"
        );
    }

    // Sent text cannot be retracted: no client may run the call.
    let refused = r#"
{"type":"tool_input","raw":"{\"path\": \"a\", \"text\": \"one two\"}","problem":"no"}
{"type":"tool_result","status":"error","error":{"code":"invalid_arguments","message":"`path` is missing."}}"#;
    let mended = handed_over.replace(r#""text":"{\"path\""#, r#""text":"{ \"path\""#);
    let cut = r#"
{"type":"tool_input","raw":"{\"path\": \"a\", \"te","problem":"cut"}
{"type":"step_end","finish":"length"}
{"type":"tool_result","status":"not_started","error":{"code":"interrupted"}}
{"type":"stream_end","status":"length"}"#;
    let lost = cut.replace(r#""finish":"length""#, r#""finish":"error""#).replace(
        r#"{"type":"stream_end","status":"length"}"#,
        r#"{"type":"error","code":"overloaded","what":"The model is overloaded.","why":"","remedy":"Try again.","retryable":true}
{"type":"stream_end","status":"error"}"#,
    );
    let elsewhere = r#"
{"type":"tool_input","arguments":{"path":"a","text":"one two"},"text":"{\"path\": \"a\", \"text\": \"one two\"}","seal":"explicit"}
{"type":"tool_result","status":"success"}"#;
    let goes_on_there =
        "The call of `write` cannot be run: its result came from another source. The answer continues there.";
    let cannot = |why: &str| format!("The call of `write` cannot be run: {why}. Send the request again.");
    for (rest, ended, code, message) in [
        (refused, AnswerEnd::BrokenCall, "broken_call", cannot("`path` is missing")),
        (
            &mended,
            AnswerEnd::BrokenCall,
            "broken_call",
            cannot("its arguments were repaired after a part of them had been sent"),
        ),
        (cut, AnswerEnd::TurnEnded, "broken_call", cannot("the limit of tokens has cut it off")),
        (elsewhere, AnswerEnd::AnsweredElsewhere, "broken_call", goes_on_there.to_owned()),
        (&lost, AnswerEnd::TurnEnded, "upstream_error", "The model is overloaded. Try again.".to_owned()),
    ] {
        let told = written(&pieces, 2_000, rest);
        let error = check_stream(&told.bytes).error.expect("an error");
        assert_eq!(
            (&error["code"], &error["message"], told.ended),
            (&json!(code), &json!(message), Some(ended))
        );
    }
    // The model mends a quick one.
    assert_eq!(written(&pieces, 100, refused).ended, None);
}

#[test]
fn stream_checker_rejects_invalid_streams() {
    let told = project(&[], &events(TOOLS), UsageChunk::Wanted, ToolRendering::None);
    let good = String::from_utf8(told.bytes).unwrap();
    assert!(read(good.as_bytes()).is_ok());
    let chunk = |rest: &str| {
        let ChunkHead { id, created, model } = head();
        format!(
            r#"data: {{"id":"{id}","object":"chat.completion.chunk","created":{created},"model":"{model}",{rest}}}"#
        ) + "\n\n"
    };
    let delta =
        |delta: &str| chunk(&format!(r#""choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]"#));
    let role = delta(r#"{"role":"assistant","content":""}"#);
    let behind_role = |more: &str| good.replacen(&role, &format!("{role}{more}"), 1);
    for (what, bad) in [
        ("CR", good.replace("\n\n", "\r\n\r\n")),
        ("no role", good.replacen(&role, "", 1)),
        ("two roles", behind_role(&role)),
        ("a named event", behind_role(&format!("event: tool\n{}", delta(r#"{"content":"x"}"#)))),
        ("two things at once", behind_role(&delta(r#"{"reasoning_content":"a","content":"b"}"#))),
        ("a foreign list in the delta", behind_role(&delta(r#"{"annotations":[{}]}"#))),
        (
            "a server's call",
            behind_role(&delta(
                r#"{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
            )),
        ),
        (
            "a finish in the middle",
            behind_role(&chunk(r#""choices":[{"index":0,"delta":{},"finish_reason":"stop"}]"#)),
        ),
        ("no choice in the middle", behind_role(&chunk(r#""choices":[],"usage":{}"#))),
        ("another id", behind_role(&delta(r#"{"content":"x"}"#).replace("chatcmpl-1", "chatcmpl-2"))),
        ("no end", good.replace("data: [DONE]\n\n", "")),
        ("two ends", format!("{good}data: [DONE]\n\n")),
        ("something behind the end", format!("{good}: bye\n\n")),
        ("an early end", behind_role("data: [DONE]\n\n")),
    ] {
        assert!(read(bad.as_bytes()).is_err(), "{what} is not seen");
    }
}

/// All visible text of a log, assembled independently of the projection.
fn text_blocks(log: &[Event]) -> Vec<String> {
    let mut blocks: Vec<(u32, String)> = Vec::new();
    let mut open = Vec::new();
    for event in log {
        let Some(at) = event.block else { continue };
        match &event.kind {
            EventKind::BlockStart(BlockStart::Text { code: None }) => open.push(at),
            EventKind::ContentDelta { text, .. } if open.contains(&at) => {
                match blocks.iter_mut().find(|(known, _)| *known == at) {
                    Some((_, so_far)) => so_far.push_str(text),
                    None => blocks.push((at, text.clone())),
                }
            }
            _ => {}
        }
    }
    blocks.into_iter().map(|(_, text)| text).filter(|text| !text.is_empty()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Hostile models, tools, people and crashes; any calls may be the client's own.
    #[test]
    fn simulated_turns_obey_the_stream_rules(seed in 0_u64..1_000_000, render in 0..ToolRendering::ALL.len(), usage in any::<bool>(), own in any::<u8>()) {
        let (_, render) = ToolRendering::ALL[render];
        let usage = if usage { UsageChunk::Wanted } else { UsageChunk::Unwanted };
        let mut log = sim::events(seed).unwrap();
        with_own_calls(&mut log, |at| own & (1 << (at % 8)) != 0);
        let own_ids: Vec<String> = log.iter().filter_map(|event| match &event.kind {
            EventKind::ToolUse { source, .. } if source == "requester" => event.tool_id.as_ref(),
            _ => None,
        }).map(call_id::to_public).collect();

        let (mut begin, mut content, mut tokens, mut answers) = (0, Vec::new(), 0, 0);
        loop {
            let (seen, fresh) = log.split_at(begin);
            let told = project(seen, fresh, usage, render);
            prop_assert!(told.ended.is_some(), "an answer without end");
            let answer = check_stream(&told.bytes);
            // A call that the server runs is never the client's to run.
            prop_assert!(answer.calls.iter().all(|(id, ..)| own_ids.contains(id)));
            prop_assert_eq!(answer.usage.is_some(), usage == UsageChunk::Wanted && answer.error.is_none());
            if matches!(told.ended, Some(AnswerEnd::BrokenCall | AnswerEnd::AnsweredElsewhere)) {
                prop_assert_eq!(&answer.error.as_ref().unwrap()["code"], "broken_call");
                return Ok(());
            }
            tokens += answer.usage.as_ref().and_then(|usage| usage["total_tokens"].as_u64()).unwrap_or(0);
            if !answer.content.is_empty() {
                content.push(answer.content.clone());
            }
            if answer.error.as_ref().is_none_or(|error| error["code"] != "broken_call") {
                agree(&answer, told.whole);
            }
            begin += told.used;
            answers += 1;
            if told.ended == Some(AnswerEnd::TurnEnded) {
                let message = AssistantMessage::from_events(&log);
                if answer.usage.is_some() {
                    let all = message.usage;
                    prop_assert_eq!(tokens, all.input_tokens.unwrap_or(0) + all.output_tokens.unwrap_or(0));
                }
                let is_replaced = log.iter().any(|event| matches!(event.kind, EventKind::BlockSuperseded { .. }));
                if matches!(render, ToolRendering::None | ToolRendering::OwuiEvent) && !is_replaced && answers == 1 {
                    prop_assert_eq!(content.join("\n\n"), text_blocks(&log).join("\n\n"));
                }
                break;
            }
        }
        prop_assert_eq!(begin, log.len());
    }
}
