//! Pictures in chats: each is stored once although every request repeats it, and bodies are allowed up to the
//! chat's limit.

use crate::guarded_server::{GuardedServer, settings};
use crate::support::TestServer;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use throughline::config::{ServerLimits, ServerSettings};
use throughline_server::KeyScope;
use throughline_testkit::{ModelScript, ScriptQueue};

fn picture(bytes: usize) -> String {
    let noise = (0..bytes).map(|n| (n * 31 % 253) as u8);
    let head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0";
    let content: Vec<u8> = head.iter().copied().chain(noise).take(bytes).collect();
    format!("data:image/png;base64,{}", BASE64.encode(content))
}

fn chat(pictures: &[String], text: &str) -> Value {
    let mut content = vec![json!({"type": "text", "text": text})];
    content.extend(pictures.iter().map(|url| json!({"type": "image_url", "image_url": {"url": url}})));
    json!({"model": "default", "messages": [{"role": "user", "content": content}]})
}

#[tokio::test]
async fn repeated_image_is_stored_once_and_sent_each_time() {
    let server =
        TestServer::start(ScriptQueue::new([ModelScript::new().say("One."), ModelScript::new().say("Two.")]))
            .await;
    // Larger than what other routes let through: a phone's photo.
    let photo = picture(5 << 20);
    for answer in ["One.", "Two."] {
        let (status, said) =
            server.post("/v1/chat/completions", chat(std::slice::from_ref(&photo), "What is it?")).await;
        assert_eq!((status, &said["choices"][0]["message"]["content"]), (200, &json!(answer)), "{said}");
        let sent = server.upstream.exchanges().pop().unwrap().request.body;
        let sent: Value = serde_json::from_slice(&sent).unwrap();
        let last = sent["messages"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(last["content"][1]["image_url"]["url"], json!(photo), "as it was");
    }
    let (_, files) = server.get("/v1/files").await;
    assert_eq!(files["items"].as_array().unwrap().len(), 1, "{files}");
}

#[tokio::test]
async fn text_limit_counts_all_messages_but_no_images() {
    let limits =
        ServerLimits { message_bytes_max: 1_000, chat_text_bytes_max: 10_000, ..ServerLimits::default() };
    let replies = (0..2).map(|_| ModelScript::new().say("Hi."));
    let server = TestServer::start_with(ScriptQueue::new(replies), |builder| builder, limits).await;
    let history = |bytes: usize| {
        json!({"model": "default", "messages": [
            {"role": "user", "content": "a".repeat(bytes / 2)},
            {"role": "assistant", "content": "b".repeat(bytes - bytes / 2)},
            {"role": "user", "content": "Hi"}]})
    };
    let pictures = [picture(40_000), picture(40_000)];
    let in_conversation = |said: &str| {
        let mut body = chat(&[], said);
        body["throughline"] = json!({"conversation_id": "conv_1"});
        body
    };
    for (body, status, limit) in [
        (chat(&pictures, &"x".repeat(9_000)), 200, ""),
        (chat(&pictures, &"x".repeat(10_000)), 400, "chat_text_bytes_max"),
        (history(9_000), 200, ""),
        (history(10_000), 400, "chat_text_bytes_max"),
        (in_conversation(&"x".repeat(1_001)), 413, "message_bytes_max"),
    ] {
        let (got, said) = server.post("/v1/chat/completions", body).await;
        assert_eq!(got, status, "{said}");
        if status != 200 {
            assert!(said["error"]["remedy"].as_str().unwrap().contains(limit), "{said}");
        }
        // At this code clients shorten what they send.
        assert_eq!(said["error"]["code"] == "context_length_exceeded", status == 400, "{said}");
    }
}

#[tokio::test]
async fn image_over_the_limit_names_the_setting_and_its_value() {
    let limits = ServerLimits { upload_bytes_max: 1 << 20, ..ServerLimits::default() };
    let replies = ScriptQueue::new([ModelScript::new().say("A cat.")]);
    let server = TestServer::start_with(replies, |builder| builder, limits).await;
    let (status, said) = server.post("/v1/chat/completions", chat(&[picture((1 << 20) + 1)], "Look")).await;
    let error = &said["error"];
    assert_eq!(
        (status, &error["code"], &error["param"]),
        (413, &json!("file_too_large"), &json!("upload_bytes_max")),
        "{said}"
    );
    assert_eq!(error["message"], "pictures and files are limited to 1 MiB (`upload_bytes_max`)");
    assert_eq!(error["remedy"], "send a smaller file, or raise `upload_bytes_max` of [server.limits]");
    assert_eq!(server.get("/v1/files").await.1["items"], json!([]), "nothing of it stays");
    let (status, said) = server.post("/v1/chat/completions", chat(&[picture(1 << 20)], "Look")).await;
    assert_eq!((status, &said["choices"][0]["message"]["content"]), (200, &json!("A cat.")), "{said}");
}

/// Size of a context of a million tokens.
#[tokio::test]
async fn chat_of_five_megabytes_reaches_the_model_unchanged() {
    let server = TestServer::start(ScriptQueue::new([ModelScript::new().say("Yes.")])).await;
    let said = "All work and no play. ".repeat(1_000);
    let mut messages: Vec<Value> = (0..240)
        .map(|at| json!({"role": if at % 2 == 0 { "user" } else { "assistant" }, "content": said}))
        .collect();
    messages.push(json!({"role": "user", "content": "Still there?"}));
    let (status, answer) =
        server.post("/v1/chat/completions", json!({"model": "default", "messages": messages.clone()})).await;
    assert_eq!((status, &answer["choices"][0]["message"]["content"]), (200, &json!("Yes.")), "{answer}");
    let sent = server.upstream.exchanges().pop().unwrap().request.body;
    let sent: Value = serde_json::from_slice(&sent).unwrap();
    let sent = sent["messages"].as_array().unwrap();
    let history: Vec<&Value> = sent.iter().filter(|message| message["role"] != "system").collect();
    assert_eq!(history.len(), messages.len());
    assert!(history.iter().zip(&messages).all(|(sent, given)| sent["content"] == given["content"]));
}

/// A client that is still sending is let finish, so that it reads why.
#[tokio::test]
async fn oversized_body_is_rejected_while_the_client_still_sends() {
    let limits = ServerLimits { chat_body_bytes_max: 100_000, ..ServerLimits::default() };
    let server = GuardedServer::start(ScriptQueue::new([]), &ServerSettings { limits, ..settings() }).await;
    let (key, _) = server.key(&[KeyScope::Chat]).await;
    let bearer = format!("Bearer {key}");
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    let body = chat(&[picture(3 << 20)], "Look").to_string();
    let answer = server.ask("POST", "/v1/chat/completions", &headers, &body).await;
    assert_eq!((answer.status, answer.code().as_str()), (413, "chat_body_bytes_max"), "{answer:?}");
    assert!(answer.body.contains("raise `chat_body_bytes_max`"), "{answer:?}");
    // Without a declared length.
    let chunk = format!("{:x}\r\n{body}\r\n", body.len());
    let said = server
        .raw(&format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: {}\r\nAuthorization: {bearer}\r\n\
             Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}0\r\n\r\n",
            server.address
        ))
        .await;
    assert!(said.starts_with("HTTP/1.1 413") && said.contains("chat_body_bytes_max"), "{said}");
}
