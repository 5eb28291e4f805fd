//! Text that breaks other programs, in every field in which a client may send text: it is data, and comes
//! back unchanged.

use crate::support::{TestServer, answered, saying};
use futures_util::{StreamExt, stream};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use throughline::config::ServerLimits;
use throughline_server::{read_messages, write_jsonl};
use throughline_testkit::parsed_request::ParsedMessage;
use throughline_testkit::{ModelScript, ParsedRequest};

/// Number of concurrent requests: fewer than the limit of a user's running turns.
const AT_ONCE: usize = 6;

/// Some built-in strings, and the shared suites if their paths are given.
fn strings() -> Vec<String> {
    let mut all: Vec<String> = [
        "data: forged\n\nevent: stream_end\ndata: {\"type\":\"stream_end\"}\n\n",
        "\r\n\r\nid: 99\r\ndata: x\r\n\r\n",
        "\u{2028}line\u{2029}paragraph\u{85}next",
        "\u{0}nul\u{0}",
        "\u{feff}mark",
        "\u{202e}txt.exe\u{202c}",
        "\u{fffe}\u{ffff}\u{10ffff}",
        "\u{1b}[31mred\u{1b}[0m\u{7}",
        "=HYPERLINK(\"http://evil.example\",\"x\")",
        "@SUM(1+1)*cmd|' /C calc'!A0",
        "'; DROP TABLE turn; --",
        "%_*\\\"' OR 1=1",
        "<script>alert(1)</script>",
        "../../../etc/passwd",
        "[DONE]",
        "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} e\u{301} 天气",
    ]
    .map(str::to_owned)
    .into();
    let Some(shared) = std::env::var_os("THROUGHLINE_VECTORS").map(std::path::PathBuf::from) else {
        println!("skipped: THROUGHLINE_VECTORS is not set");
        return all;
    };
    let read = |file: &str| std::fs::read_to_string(shared.join("suites").join(file)).unwrap();
    let naughty: Vec<String> = serde_json::from_str(&read("naughty-strings/strings.json")).unwrap();
    assert!(naughty.len() > 300);
    all.extend(naughty);
    for line in read("marker-injection/payloads.jsonl").lines() {
        let payload: Value = serde_json::from_str(line).unwrap();
        all.push(payload["text"].as_str().unwrap().to_owned());
    }
    all
}

/// A model that repeats the user's last message.
fn parrot(seen: &ParsedRequest) -> ModelScript {
    let said = seen.messages.iter().rev().find_map(|message| match message {
        ParsedMessage::User { text, .. } => Some(text.clone()),
        ParsedMessage::Assistant { .. } | ParsedMessage::Results(_) => None,
    });
    ModelScript::new().say(said.unwrap_or_default())
}

async fn server() -> TestServer {
    // Turns are recorded some time after their last event, and how many run is not the subject here.
    let limits = ServerLimits { turns_per_key_max: 1_000, ..ServerLimits::default() };
    TestServer::start_with(parrot, |builder| builder, limits).await
}

/// A query or path part.
fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut all, byte| {
        let _ = write!(all, "%{byte:02X}");
        all
    })
}

/// A request as ada: the status and the answer. Never the server's fault.
async fn ask(server: &TestServer, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
    let mut request = server.client().request(method.clone(), server.url(path));
    if let Some(body) = &body {
        request = request.json(body);
    }
    let (status, said) = answered(request).await;
    assert!(status < 500, "{method} {path} {body:?}: {status} {said}");
    (status, said)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_text_round_trips_and_forges_no_event() {
    let server = &server().await;
    let said = stream::iter(strings()).map(|text| async move {
        let (status, started) = ask(server, Method::POST, "/v1/turns", Some(saying(&text))).await;
        if text.trim().is_empty() {
            assert_eq!((status, &started["error"]["code"]), (400, &json!("empty_input")), "{text:?}");
            return 0;
        }
        assert_eq!(status, 201, "{text:?}: {started}");
        let turn = started["turn_id"].as_str().unwrap();
        // The reader takes no line that is not an event's, and no event twice.
        let events = server.follow(turn, 0).await.rest().await;
        let ids: Vec<u64> = events.iter().map(|event| event.id).collect();
        assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>(), "{text:?}");
        let ends = events.iter().filter(|event| event.name == "stream_end").count();
        assert_eq!(ends, 1, "{text:?}");
        assert!(events.iter().all(|event| !event.name.starts_with("tool")), "{text:?}: a tool ran");
        let deltas: String = events
            .iter()
            .filter(|event| event.name == "content_delta")
            .filter_map(|event| event.data["text"].as_str())
            .collect();
        let (_, snapshot) = ask(server, Method::GET, &format!("/v1/turns/{turn}"), None).await;
        let answer: String = snapshot["message"]["blocks"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|block| block["kind"] == "text")
            .filter_map(|block| block["text"].as_str())
            .collect();
        assert_eq!(answer, text, "the answer in the snapshot");
        assert_eq!(deltas, text, "the answer in its events");
        let conversation = started["conversation_id"].as_str().unwrap();
        let (_, messages) =
            ask(server, Method::GET, &format!("/v1/conversations/{conversation}/messages"), None).await;
        let input = &messages["messages"][0]["message"]["input"];
        assert!(
            input.to_string().contains(&serde_json::to_string(&text).unwrap()),
            "the input as it was: {text:?} in {messages}"
        );
        1
    });
    let said: Vec<usize> = said.buffer_unordered(AT_ONCE).collect().await;
    assert!(said.iter().sum::<usize>() >= 16);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_names_are_treated_as_data() {
    let server = &server().await;
    let (_, made) = ask(server, Method::POST, "/v1/conversations", Some(json!({}))).await;
    let conversation = &format!("/v1/conversations/{}", made["id"].as_str().unwrap());
    let mut agents = BTreeSet::new();
    for (at, text) in strings().into_iter().enumerate() {
        // A title.
        let (status, said) = ask(server, Method::PATCH, conversation, Some(json!({"title": text}))).await;
        assert!([200, 204, 400, 413].contains(&status), "{text:?}: {status} {said}");
        if status < 300 && !text.trim().is_empty() {
            // A title is one line; a text without spaces and invisible characters is unchanged.
            let title = said["title"].as_str().unwrap().to_owned();
            assert!(!title.contains(['\r', '\n', '\0']), "{title:?}");
            if text.len() < 100 && text.bytes().all(|byte| byte.is_ascii_graphic()) {
                assert_eq!(title, text);
            }
            let (_, read) = ask(server, Method::GET, conversation, None).await;
            assert_eq!(read["title"], title.as_str());
            // It can be looked for, if it is shown as it was written.
            if !text.chars().any(throughline_wire::display_escape::is_hidden) {
                let path = format!("/v1/conversations?q={}", encoded(&title));
                let (status, found) = ask(server, Method::GET, &path, None).await;
                assert_eq!(status, 200, "{text:?}");
                if title.is_ascii() && !title.is_empty() {
                    assert_eq!(found["items"].as_array().map(Vec::len), Some(1), "{text:?}: {found}");
                }
            }
        }
        let (status, said) =
            ask(server, Method::GET, &format!("/v1/search?q={}", encoded(&text)), None).await;
        assert!([200, 400].contains(&status), "{text:?}: {said}");
        // Invalid ids.
        let path = ["turns", "conversations", "files", "agents", "models", "tools"][at % 6];
        let path = format!("/v1/{path}/");
        let (status, said) = ask(server, Method::GET, &format!("{path}{}", encoded(&text)), None).await;
        let is_there = agents.contains(&text) && path == "/v1/agents/";
        assert_eq!(status == 404, !is_there, "{path}{text:?}: {status} {said}");
        // An agent.
        let agent = json!({"name": text, "settings": {"model": "test/m", "prompt": text}});
        let (status, said) = ask(server, Method::POST, "/v1/agents", Some(agent)).await;
        assert!([201, 400, 409].contains(&status), "{text:?}: {status} {said}");
        if status == 201 {
            let (status, read) =
                ask(server, Method::GET, &format!("/v1/agents/{}", encoded(&text)), None).await;
            assert_eq!((status, &read["name"]), (200, &json!(text)), "{text:?}");
            agents.insert(text);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_file_names_are_sanitized_and_bytes_round_trip() {
    let server = &server().await;
    let kept = stream::iter(strings()).map(|text| async move {
        let path = format!("/v1/files?name={}", encoded(&text));
        let request =
            server.client().post(server.url(&path)).header("content-type", "application/octet-stream");
        let (status, file) = answered(request.body(text.clone())).await;
        if status == 400 {
            return;
        }
        assert_eq!(status, 201, "{text:?}: {file}");
        let name = file["name"].as_str().unwrap();
        assert!(
            !name.is_empty() && !name.contains(['/', '\\', '\r', '\n', '\0']),
            "{text:?} became {name:?}"
        );
        let path = format!("/v1/files/{}/content", file["id"].as_str().unwrap());
        let response = server.client().get(server.url(&path)).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let said = response.headers().clone();
        let header = |name: &str| said.get(name).unwrap().to_str().unwrap().to_owned();
        assert!(header("content-disposition").starts_with("attachment; "), "{text:?}");
        assert!(!header("content-type").contains("html"), "{text:?}");
        assert_eq!(response.bytes().await.unwrap(), text.as_bytes(), "{text:?}");
    });
    kept.buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
}

/// All strings in one conversation, with a call each: arguments, results and texts.
fn conversation_of_all() -> String {
    let messages: Vec<Value> = strings()
        .into_iter()
        .filter(|text| !text.trim().is_empty())
        .enumerate()
        .flat_map(|(at, text)| {
            let arguments = json!({"text": text}).to_string();
            let call = json!({"id": format!("c{at}"), "type": "function", "function": {"name": "test_echo", "arguments": arguments}});
            [
                json!({"role": "user", "content": text}),
                json!({"role": "assistant", "content": text, "tool_calls": [call]}),
                json!({"role": "tool", "tool_call_id": format!("c{at}"), "content": text}),
                json!({"role": "assistant", "content": text}),
            ]
        })
        .collect();
    let portable = read_messages(&Value::from(messages).to_string(), 1_763_683_200_000, u64::MAX).unwrap();
    write_jsonl(&portable, 0)
}

/// The content of an export, without the ids and times of the store that wrote it.
fn content(export: &str) -> Vec<Value> {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|name, _| {
                    name != "id" && !name.ends_with("_id") && !name.ends_with("_at") && name != "timestamp"
                });
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    export
        .split('\n')
        .filter(|line| !line.is_empty())
        .map(|line| {
            let mut value: Value = serde_json::from_str(line).expect("one record a line");
            strip(&mut value);
            value
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_conversation_exports_round_trip() {
    let server = &server().await;
    let import = |text: String| async move {
        let request = server.client().post(server.url("/v1/conversations/import"));
        let (status, made) = answered(request.header("content-type", "application/jsonl").body(text)).await;
        assert_eq!(status, 201, "{made}");
        made["id"].as_str().unwrap().to_owned()
    };
    let export = |id: String, format: &'static str| async move {
        let path = format!("/v1/conversations/{id}/export?format={format}");
        let response = server.client().get(server.url(&path)).send().await.unwrap();
        assert_eq!(response.status(), 200);
        response.text().await.unwrap()
    };
    let first = import(conversation_of_all()).await;
    let one = export(first.clone(), "jsonl").await;
    let second = import(one.clone()).await;
    let two = export(second, "jsonl").await;
    assert_eq!(content(&one), content(&two));
    // Each text is in it, byte for byte.
    for text in strings().iter().filter(|text| !text.trim().is_empty()) {
        assert!(one.contains(&serde_json::to_string(text).unwrap()), "{text:?}");
    }
    assert!(export(first, "markdown").await.starts_with("# "));

    // Spreadsheets calculate nothing of it.
    let csv = server.client().get(server.url("/v1/history/export?format=csv")).send().await.unwrap();
    assert!(csv.headers()["content-type"].to_str().unwrap().starts_with("text/csv"));
    let csv = csv.text().await.unwrap();
    let rows = cells(&csv);
    assert!(rows.len() > 16, "{}", rows.len());
    for row in &rows {
        assert_eq!(row.len(), rows[0].len(), "every row has every column: {row:?}");
        for cell in row {
            assert!(!cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']), "{cell:?}");
        }
    }
}

/// RFC 4180, read by the letter.
fn cells(csv: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let mut quoted = false;
    let mut letters = csv.chars().peekable();
    while let Some(letter) = letters.next() {
        match (quoted, letter) {
            (true, '"') if letters.peek() == Some(&'"') => cell.extend(letters.next()),
            (true, '"') => quoted = false,
            (true, letter) => cell.push(letter),
            (false, '"') => {
                assert!(cell.is_empty(), "a quote in the middle of {cell:?}");
                quoted = true;
            }
            (false, ',') => row.push(std::mem::take(&mut cell)),
            (false, '\r') => assert_eq!(letters.peek(), Some(&'\n')),
            (false, '\n') => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            (false, letter) => cell.push(letter),
        }
    }
    assert!(row.is_empty() && cell.is_empty(), "the last line is whole");
    rows
}
