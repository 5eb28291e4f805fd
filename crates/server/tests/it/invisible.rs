//! The view of a call holds nothing that people cannot see; what runs and is stored is exact.

use crate::support::{Event, TestServer, saying};
use serde_json::{Value, json};
use throughline_testkit::{ModelScript, ScriptQueue};
use throughline_wire::display_escape;

/// A date that reads as another one, and a name of a field that reads as `title`.
const TURNED: &str = "\u{202e}2026-11-24";

fn arguments() -> Value {
    json!({"title": TURNED, "ti\u{200b}tle": "\u{e0041}\u{ad}x"})
}

/// The text of every field that is for people; what is exact is left out.
fn shown(events: &[Event]) -> Vec<String> {
    let fields = ["question", "title", "arguments_text", "input_summary", "output_summary", "why"];
    let of = |event: &Event| {
        fields
            .map(|field| event.data[field].as_str().map(str::to_owned))
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
    };
    events.iter().flat_map(of).collect()
}

#[tokio::test]
async fn approval_texts_spell_out_invisible_characters() {
    let model = ScriptQueue::new([
        ModelScript::new().call("calendar_add", arguments()),
        ModelScript::new().say("Noted."),
    ]);
    let server = TestServer::start_asking(model).await;
    let (_, started) = server.post("/v1/turns", saying(&format!("Tea on {TURNED}"))).await;
    let turn = started["turn_id"].as_str().unwrap();
    let mut viewer = server.follow(turn, 0).await;
    let mut events = viewer.until("approval_request").await;
    let asked = events.last().unwrap().data.clone();
    let question = asked["question"].as_str().unwrap();
    assert!(question.contains("\\u202e2026-11-24"), "{question}");
    let text = asked["arguments_text"].as_str().unwrap();
    assert!(text.contains(r#""title":"\u202e2026-11-24""#), "{text}");
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), arguments(), "it is what would run");

    // A person changes it to the text that it seemed to be, with another invisible character.
    let edited = json!({"title": "42-11-6202\u{2066}"});
    let path = format!("/v1/turns/{turn}/approvals/{}", asked["approval_id"].as_str().unwrap());
    let answer = json!({"decision": "approve", "arguments": edited});
    assert_eq!(server.post(&path, answer).await.0, 200);
    events.extend(viewer.rest().await);
    let resolved = events.iter().find(|event| event.name == "approval_resolved").unwrap();
    let changes = resolved.data["arguments_diff"].as_array().unwrap();
    let texts: Vec<&str> = changes.iter().map(|change| change["text"].as_str().unwrap()).collect();
    assert_eq!(
        texts,
        [
            r#"/title: "\u202e2026-11-24" → "42-11-6202\u2066""#,
            r#"/ti\u200btle: "\udb40\udc41\u00adx", removed"#,
        ]
    );
    for text in shown(&events) {
        assert_eq!(display_escape::escape(&text), text, "{text:?}");
    }
    let written = events.iter().find(|event| event.name == "tool_input").unwrap();
    assert_eq!(written.data["arguments"], arguments(), "what the model wrote is as it was");

    let id = asked["tool_id"].as_str().unwrap();
    let (_, detail) = server.get(&format!("/v1/history/calls/{id}")).await;
    assert_eq!(detail["call"]["ran_with"], edited, "exact");
    assert_eq!(detail["arguments"], edited.to_string(), "exact");
    assert_eq!(detail["arguments_text"], r#"{"title":"42-11-6202\u2066"}"#);
    let output = detail["call"]["output"].as_str().unwrap();
    assert_eq!(detail["output_text"], display_escape::escape(output).as_ref());
    let conversation = format!("/v1/conversations/{}", started["conversation_id"].as_str().unwrap());
    let (_, found) = server.get(&conversation).await;
    assert_eq!(found["title"], "Tea on \\u202e2026-11-24");
    let path = format!("{conversation}/export?format=markdown");
    let page = server.client().get(server.url(&path)).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("\\u202e2026-11-24") && page.contains("\\u2066"), "{page}");
    assert_eq!(display_escape::escape(&page), page);
}

#[tokio::test]
async fn invented_tool_name_is_shown_escaped() {
    let model = ScriptQueue::new([
        ModelScript::new().call("no\u{202e}tool", json!({})),
        ModelScript::new().say("Sorry."),
    ]);
    let server = TestServer::start_asking(model).await;
    let (_, started) = server.post("/v1/turns", saying("Hi")).await;
    let events = server.follow(started["turn_id"].as_str().unwrap(), 0).await.rest().await;
    let called = events.iter().find(|event| event.name == "tool_use").unwrap();
    assert_eq!(called.data["tool_name"], "no\\u202etool");
    assert_eq!(called.data["wire_name"], "no\u{202e}tool", "exact");
    let (_, detail) =
        server.get(&format!("/v1/history/calls/{}", called.data["tool_id"].as_str().unwrap())).await;
    assert_eq!(detail["tool_name"], "no\\u202etool");
}
