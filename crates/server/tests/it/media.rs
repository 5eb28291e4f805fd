//! Pictures and files that are too large for the log: events reference their files, models get their content,
//! and they are deleted with the turns that use them.

use crate::support::{TestServer, answered, saying};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};
use throughline::tools::{Effect, NoArguments, tool};
use throughline::wire::{Media, ToolOutput};
use throughline_testkit::parsed_request::ParsedMessage;
use throughline_testkit::{ModelScript, ParsedRequest, ScriptQueue};

/// A size above `media_inline_bytes_max`.
const LARGE: usize = 40_000;
const SMALL: usize = 4_000;

/// A PNG signature followed by filler, `bytes` bytes in total.
fn picture(bytes: usize, of: u8) -> Vec<u8> {
    let mut picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01".to_vec();
    picture.resize(bytes, of);
    picture
}

/// A server with a camera tool whose pictures are large.
async fn server(scripts: impl IntoIterator<Item = ModelScript>) -> TestServer {
    let build = |builder: throughline::ThroughlineBuilder| {
        let look = |_: NoArguments, _| async {
            let picture = Media::new("image/png".into(), STANDARD.encode(picture(LARGE, 7)));
            ToolOutput { media: vec![picture], ..ToolOutput::text("a picture") }
        };
        builder.tool(tool("camera.look", "Takes a picture", look).effect(Effect::Read).agent_callable())
    };
    TestServer::start_with(ScriptQueue::new(scripts), build, Default::default()).await
}

async fn upload(server: &TestServer, content: Vec<u8>) -> String {
    let request = server.client().post(server.url("/v1/files")).header("content-type", "image/png");
    let (status, file) = answered(request.body(content)).await;
    assert_eq!(status, 201, "{file}");
    file["id"].as_str().unwrap().to_owned()
}

async fn content(server: &TestServer, user: &str, file: &str) -> (u16, Vec<u8>) {
    let request = server.client_of(user).get(server.url(&format!("/v1/files/{file}/content")));
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.bytes().await.unwrap().to_vec())
}

/// All events of a turn, read to its end.
async fn events(server: &TestServer, turn: &str) -> Vec<Value> {
    server.follow(turn, 0).await.rest().await.into_iter().map(|event| event.data).collect()
}

fn of_type<'e>(events: &'e [Value], kind: &str) -> &'e Value {
    events.iter().find(|event| event["type"] == kind).unwrap_or_else(|| panic!("no {kind}: {events:?}"))
}

/// All pictures of a request, and its text.
fn shown(seen: &ParsedRequest) -> (Vec<Vec<u8>>, String) {
    let (mut images, mut texts) = (Vec::new(), String::new());
    for message in &seen.messages {
        match message {
            ParsedMessage::User { images: these, text, .. } => {
                images.extend(these.iter().map(|image| image.bytes.clone()));
                texts.push_str(text);
            }
            ParsedMessage::Results(results) => {
                for result in results {
                    images.extend(result.images.iter().map(|image| image.bytes.clone()));
                    texts.push_str(&result.text);
                }
            }
            ParsedMessage::Assistant { .. } => {}
        }
    }
    (images, texts)
}

fn conversation_of(started: &Value) -> String {
    started["conversation_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn large_upload_is_referenced_in_the_log_and_sent_to_the_model() {
    let server = server([ModelScript::new().say("A cat."), ModelScript::new().say("Still.")]).await;
    let (large, small) = (upload(&server, picture(LARGE, 1)).await, upload(&server, picture(SMALL, 2)).await);
    let input = json!({"input": [
        {"type": "text", "text": "Look."},
        {"type": "image", "file_id": large}, {"type": "image", "file_id": small},
    ]});
    let (status, started) = server.post("/v1/turns", input).await;
    assert_eq!(status, 201, "{started}");
    let turn = started["turn_id"].as_str().unwrap();
    let told = events(&server, turn).await;
    let input = &of_type(&told, "stream_start")["input"];
    assert_eq!(
        input[1],
        json!({"type": "image", "media_type": "image/png", "file_id": large, "bytes": LARGE})
    );
    assert_eq!(input[2]["data"], STANDARD.encode(picture(SMALL, 2)));
    let (images, _) = shown(&server.upstream.requests()[0]);
    assert_eq!(images, [picture(LARGE, 1), picture(SMALL, 2)]);
    assert_eq!(content(&server, "ada", &large).await, (200, picture(LARGE, 1)));
    assert_eq!(content(&server, "eve", &large).await.0, 404, "a file is its user's, whatever the log says");

    // Another process, and the next turn of the conversation.
    let server = server.restart().await;
    let next = json!({"input": [{"type": "text", "text": "And now?"}], "conversation_id": conversation_of(&started)});
    let turn = server.turn(next).await;
    events(&server, &turn).await;
    let (images, _) = shown(&server.upstream.requests()[1]);
    assert_eq!(images, [picture(LARGE, 1), picture(SMALL, 2)], "the history holds what it held");
    assert_eq!(server.upstream.violations(), []);
}

#[tokio::test]
async fn large_tool_image_is_a_file_deleted_with_its_conversation() {
    let looks = ModelScript::new().call("camera_look", json!({}));
    let server = server([looks, ModelScript::new().say("A cat.")]).await;
    let (_, started) = server.post("/v1/turns", saying("What do you see?")).await;
    let told = events(&server, started["turn_id"].as_str().unwrap()).await;
    let media = &of_type(&told, "tool_result")["output_media"][0];
    assert_eq!((&media["bytes"], &media["data"]), (&json!(LARGE), &Value::Null));
    let file = media["file_id"].as_str().unwrap();
    assert_eq!(content(&server, "ada", file).await, (200, picture(LARGE, 7)));
    let (images, _) = shown(&server.upstream.requests()[1]);
    assert_eq!(images, [picture(LARGE, 7)]);

    let path = format!("/v1/conversations/{}?permanent=true", conversation_of(&started));
    let gone = server.client().delete(server.url(&path)).send().await.unwrap();
    assert_eq!(gone.status(), 204);
    assert_eq!(content(&server, "ada", file).await.0, 404, "it goes with its turn");
}

#[tokio::test]
async fn export_fork_and_import_include_images() {
    let looks = ModelScript::new().call("camera_look", json!({}));
    let server = server([
        looks,
        ModelScript::new().say("A cat."),
        ModelScript::new().say("Yes."),
        ModelScript::new().say("So."),
    ])
    .await;
    let file = upload(&server, picture(LARGE, 1)).await;
    let input = json!({"input": [{"type": "image", "file_id": file}, {"type": "text", "text": "Both?"}]});
    let (_, started) = server.post("/v1/turns", input).await;
    let turn = started["turn_id"].as_str().unwrap();
    events(&server, turn).await;
    let path = format!("/v1/conversations/{}", conversation_of(&started));
    let export = server.client().get(server.url(&format!("{path}/export"))).send().await.unwrap();
    let text = export.text().await.unwrap();
    assert!(text.contains(&STANDARD.encode(picture(LARGE, 1))), "what travels is whole");
    assert!(text.contains(&STANDARD.encode(picture(LARGE, 7))));
    assert!(!text.contains("file_id"));

    // A fork by the same user references the same files, which stay when the first conversation is deleted.
    let (status, forked) = server.post(&format!("{path}/fork"), json!({"turn_id": turn})).await;
    assert_eq!(status, 201, "{forked}");
    server.client().delete(server.url(&path)).send().await.unwrap();
    assert_eq!(content(&server, "ada", &file).await.0, 200);
    let body = json!({"input": [{"type": "text", "text": "Sure?"}], "conversation_id": forked["id"]});
    events(&server, &server.turn(body).await).await;
    let (images, _) = shown(&server.upstream.requests()[2]);
    assert_eq!(images, [picture(LARGE, 1), picture(LARGE, 7)]);

    // An import by another user creates files of that user.
    let import = server.client_of("bob").post(server.url("/v1/conversations/import"));
    let (status, imported) = answered(import.header("content-type", "application/jsonl").body(text)).await;
    assert_eq!(status, 201, "{imported}");
    let body = json!({"input": [{"type": "text", "text": "Well?"}], "conversation_id": imported["id"]});
    let (status, started) = answered(server.client_of("bob").post(server.url("/v1/turns")).json(&body)).await;
    assert_eq!(status, 201, "{started}");
    let path = format!("/v1/turns/{}/events", started["turn_id"].as_str().unwrap());
    server.client_of("bob").get(server.url(&path)).send().await.unwrap().text().await.unwrap();
    let (images, _) = shown(&server.upstream.requests()[3]);
    assert_eq!(images, [picture(LARGE, 1), picture(LARGE, 7)]);
    let (_, files) = answered(server.client_of("bob").get(server.url("/v1/files"))).await;
    assert_eq!(files["items"].as_array().unwrap().len(), 2, "{files}");
    assert_eq!(server.upstream.violations(), []);
}

#[tokio::test]
async fn repeated_chat_image_is_stored_once() {
    let server = server([ModelScript::new().say("A cat."), ModelScript::new().say("A cat.")]).await;
    let url = format!("data:image/png;base64,{}", STANDARD.encode(picture(LARGE, 3)));
    let body = json!({"model": "test/m", "messages": [{"role": "user", "content": [
        {"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": url}},
    ]}]});
    for _ in 0..2 {
        let (status, answer) = server.post("/v1/chat/completions", body.clone()).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["choices"][0]["message"]["content"], "A cat.");
    }
    for request in server.upstream.requests() {
        assert_eq!(shown(&request).0, [picture(LARGE, 3)]);
    }
    let (_, files) = server.get("/v1/files").await;
    assert_eq!(files["items"].as_array().unwrap().len(), 1, "{files}");
}

#[tokio::test]
async fn image_sent_mid_turn_is_retained_with_its_turn() {
    let waits = ModelScript::new().call("queue_wait", json!({}));
    let server = server([waits, ModelScript::new().say("Seen.")]).await;
    let turn = server.say("Wait.").await;
    let mut stream = server.follow(&turn, 0).await;
    let started = stream.until("tool_start").await.pop().unwrap().data;
    let call = started["tool_id"].as_str().unwrap().to_owned();
    let file = upload(&server, picture(LARGE, 5)).await;
    let said = json!({"input": [{"type": "image", "file_id": file}]});
    assert_eq!(server.post(&format!("/v1/turns/{turn}/messages"), said).await.0, 202);
    assert_eq!(server.post(&format!("/v1/turns/{turn}/calls/{call}/cancel"), json!({})).await.0, 202);
    let told = events(&server, &turn).await;
    assert_eq!(of_type(&told, "user_message")["input"][0]["file_id"], json!(file));
    let (images, _) = shown(&server.upstream.requests()[1]);
    assert_eq!(images, [picture(LARGE, 5)]);
    // The sweep of unused files removes none of these.
    let old = throughline_store::RetentionCutoffs { unused_files: Some(i64::MAX), ..Default::default() };
    assert_eq!(server.state.catalog.delete_expired(old).await.unwrap().files, 0);
}

#[tokio::test]
async fn deleted_file_becomes_a_note_in_the_history() {
    let server = server([ModelScript::new().say("A cat."), ModelScript::new().say("Gone.")]).await;
    let file = upload(&server, picture(LARGE, 1)).await;
    let input = json!({"input": [{"type": "image", "file_id": file}, {"type": "text", "text": "Look."}]});
    let (_, started) = server.post("/v1/turns", input).await;
    events(&server, started["turn_id"].as_str().unwrap()).await;
    let request = server.client().request(Method::DELETE, server.url(&format!("/v1/files/{file}")));
    assert_eq!(request.send().await.unwrap().status(), 204);
    let body =
        json!({"input": [{"type": "text", "text": "Again?"}], "conversation_id": conversation_of(&started)});
    events(&server, &server.turn(body).await).await;
    let (images, text) = shown(&server.upstream.requests()[1]);
    assert_eq!(images, Vec::<Vec<u8>>::new());
    assert!(text.contains("[image image/png, 40 kB, no longer available]"), "{text}");
}
