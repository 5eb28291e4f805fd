//! What the model is told in a turn that goes on from something: a file. // R: T12

use super::{post, server, turn};
use serde_json::{Value, json};

/// The last thing that the upstream was asked, as text.
fn told(server: &super::TestServer) -> String {
    server.upstream.requests().last().unwrap().body["messages"].to_string()
}

#[tokio::test]
async fn a_picture_that_was_uploaded_reaches_the_model_and_later_turns_remember_it() {
    let server = server().await;
    let png: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01";
    let request =
        server.client().post(server.url("/v1/files?name=a.png")).header("content-type", "image/png");
    let file: Value = request.body(png).send().await.unwrap().json().await.unwrap();
    let body = json!({"input": [
        {"type": "text", "text": "What is this?"}, {"type": "image", "file_id": file["id"]}]});
    let started = post(&server, "/v1/turns", body).await;
    let path = started["events_url"].as_str().unwrap();
    let events = server.client().get(server.url(path)).send().await.unwrap().text().await.unwrap();
    assert!(events.contains("event: stream_end"), "{events}");
    let picture = "data:image/png;base64,iVBORw0KGgo";
    assert!(told(&server).contains(picture), "{}", told(&server));
    turn(&server, "And now?", json!({"conversation_id": started["conversation_id"]})).await;
    assert!(told(&server).contains(picture) && told(&server).contains("And now?"), "{}", told(&server));
    let other = json!({"input": [{"type": "image", "file_id": file["id"]}]});
    let (status, refused) =
        super::ask_as("eve", &server, reqwest::Method::POST, "/v1/turns", Some(other)).await;
    assert_eq!(status, 404, "another user's file: {refused}");
}
