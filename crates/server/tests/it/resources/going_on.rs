//! The model's history in a turn that continues an import, a branch, or uses a file.

use super::{conversation, get, post, server, turn};
use serde_json::{Value, json};

/// The upstream's last request, as text.
fn last_prompt(server: &super::TestServer) -> String {
    server.upstream.requests().last().unwrap().body["messages"].to_string()
}

/// Runs a turn with these fields; for each of these words, in this order, returns true if the model received
/// it.
async fn tells(server: &super::TestServer, more: Value, words: [&str; 5]) -> Vec<bool> {
    let before = server.upstream.requests().len();
    turn(server, "And now?", more).await;
    let first = &server.upstream.requests()[before];
    let told = first.body["messages"].to_string();
    assert!(!told.contains("test.echo"), "no API takes a name with a dot: {told}");
    words.iter().map(|word| told.contains(word)).collect()
}

#[tokio::test]
async fn turn_continues_only_its_own_imported_branch() {
    let server = server().await;
    let (id, turns) = conversation(&server).await;
    let words = ["What does Paris say?", "Paris says hello.", "And Rome?", "And Oslo?", "And now?"];
    let tells = async |more| tells(&server, more, words).await;
    // The branch that was continued last.
    assert_eq!(tells(json!({"conversation_id": id})).await, [true, true, false, true, true]);
    let (rome, paris) = (&turns[1], &turns[0]);
    let at = |parent: Value| json!({"conversation_id": id, "parent_id": parent});
    assert_eq!(tells(at(json!(rome))).await, [true, true, true, false, true], "another branch");
    assert_eq!(tells(at(json!(paris))).await, [true, true, false, false, true], "an edit");
    assert_eq!(tells(at(Value::Null)).await, [false, false, false, false, true], "begun anew");
    let tree = get(&server, &format!("/v1/conversations/{id}")).await;
    assert_eq!(tree["tree"].as_array().unwrap().len(), 7, "{tree}");
}

#[tokio::test]
async fn uploaded_image_reaches_the_model_in_later_turns() {
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
    assert!(last_prompt(&server).contains(picture), "{}", last_prompt(&server));
    turn(&server, "And now?", json!({"conversation_id": started["conversation_id"]})).await;
    assert!(
        last_prompt(&server).contains(picture) && last_prompt(&server).contains("And now?"),
        "{}",
        last_prompt(&server)
    );
    let other = json!({"input": [{"type": "image", "file_id": file["id"]}]});
    let (status, refused) =
        super::ask_as("eve", &server, reqwest::Method::POST, "/v1/turns", Some(other)).await;
    assert_eq!(status, 404, "another user's file: {refused}");
}
