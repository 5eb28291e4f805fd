//! Links that show a conversation: what they show, to whom, and for how long.

use super::{ask, ask_as, conversation, get, post, refused, server, talk, turn};
use crate::support::{self, TestServer};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use throughline::config::ServerLimits;
use throughline_store::ShareRow;

/// A client without a key.
fn stranger() -> Client {
    support::http_client().build().unwrap()
}

async fn shared(server: &TestServer, body: Value) -> (u16, Value) {
    let response = stranger().post(server.url("/v1/shared")).json(&body).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

/// Id and secret of a link.
fn parts(created: &Value) -> (String, String) {
    let link = created["link"].as_str().unwrap();
    let (path, secret) = link.split_once('#').unwrap();
    let id = path.rsplit('/').next().unwrap();
    assert!(path.contains("/s/") && id == created["id"], "{created}");
    (id.to_owned(), secret.to_owned())
}

#[tokio::test]
async fn share_link_shows_only_the_branch_as_shared() {
    let server = server().await;
    let (id, turns) = conversation(&server).await;
    let (other, _) = conversation(&server).await;
    let created = post(&server, &format!("/v1/conversations/{id}/shares"), json!({})).await;
    let (share, secret) = parts(&created);
    let (status, seen) = shared(&server, json!({"id": share, "secret": secret})).await;
    assert_eq!(status, 200, "{seen}");
    assert_eq!(seen["title"], "What does Paris say?");
    let messages = seen["messages"].as_array().unwrap();
    let ids: Vec<_> = messages.iter().map(|one| one["turn_id"].as_str().unwrap()).collect();
    assert_eq!(ids, [turns[0].as_str(), turns[2].as_str()], "one branch");
    let kinds: Vec<_> = messages[0]["message"]["blocks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["kind"].clone())
        .collect();
    assert_eq!(kinds, [json!("text"), json!("tool_call"), json!("text")]);
    let text = seen.to_string();
    for absent in [id.as_str(), other.as_str(), secret.as_str(), "provider_state"] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
    // The user as a whole word: the digits of an id are random, and may contain these letters.
    assert!(text.split(|c: char| !c.is_ascii_alphanumeric()).all(|word| word != "ada"), "{text}");
    let fields: Vec<_> = seen.as_object().unwrap().keys().cloned().collect();
    assert_eq!(fields, ["title", "shared_at", "messages"]);

    // What comes later is not in it, nor a new title.
    turn(&server, "And later?", json!({"conversation_id": id})).await;
    ask(&server, Method::PATCH, &format!("/v1/conversations/{id}"), Some(json!({"title": "Secret"}))).await;
    assert_eq!(shared(&server, json!({"id": share, "secret": secret})).await.1, seen);
    // In parts.
    let (_, last) = shared(&server, json!({"id": share, "secret": secret, "limit": 1})).await;
    assert_eq!((&last["messages"][0]["turn_id"], &last["before"]), (&json!(turns[2]), &json!(turns[2])));
    let body = json!({"id": share, "secret": secret, "limit": 1, "before": turns[2]});
    let (_, first) = shared(&server, body).await;
    assert_eq!((&first["messages"][0]["turn_id"], &first["before"]), (&json!(turns[0]), &Value::Null));
    // The secret is nowhere but in the link.
    let listed = get(&server, "/v1/shares").await;
    assert_eq!(listed["items"][0]["id"], json!(share));
    assert!(!listed.to_string().contains(&secret));
    let row = server.state.catalog.share(&share).await.unwrap().unwrap();
    assert!(!format!("{row:?}").contains(&secret) && row.hash.len() == 64, "{row:?}");
    // It opens nothing else.
    for path in ["/v1/conversations", &format!("/v1/turns/{}", turns[0]), "/v1/shares"] {
        let request = stranger().get(server.url(path)).bearer_auth(&secret);
        assert_eq!(request.send().await.unwrap().status(), 401, "{path}");
    }
}

#[tokio::test]
async fn wrong_revoked_or_expired_share_link_is_410() {
    let server = server().await;
    let (id, turns) = conversation(&server).await;
    let shares = format!("/v1/conversations/{id}/shares");
    let (share, secret) = parts(&post(&server, &shares, json!({})).await);
    let (other, other_secret) = parts(&post(&server, &shares, json!({})).await);
    let long = "x".repeat(100_000);
    for (id, secret) in [
        (share.as_str(), "wrong"),
        (share.as_str(), ""),
        (other.as_str(), secret.as_str()),
        ("", secret.as_str()),
        ("absent", secret.as_str()),
        (share.as_str(), long.as_str()),
        (long.as_str(), secret.as_str()),
        ("a\u{0}\u{202e}", secret.as_str()),
    ] {
        let (status, said) = shared(&server, json!({"id": id, "secret": secret})).await;
        assert_eq!((status, &said["error"]["code"]), (410, &json!("link_gone")), "{id:.20} {secret:.20}");
    }
    let good = json!({"id": share, "secret": secret});
    for (more, status) in [
        (json!({"limit": 0}), 400),
        (json!({"limit": 201}), 400),
        (json!({"before": "x"}), 404),
        (json!({"x": 1}), 400),
    ] {
        let mut body = good.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(shared(&server, body).await.0, status, "{more}");
    }
    // While its conversation is deleted it shows nothing.
    let path = format!("/v1/conversations/{id}");
    ask(&server, Method::DELETE, &path, None).await;
    assert_eq!(shared(&server, good.clone()).await.0, 410);
    assert_eq!(get(&server, "/v1/shares").await["items"], json!([]));
    post(&server, &format!("{path}/restore"), Value::Null).await;
    assert_eq!(shared(&server, good.clone()).await.0, 200);

    assert_eq!(ask_as("eve", &server, Method::DELETE, &format!("/v1/shares/{share}"), None).await.0, 404);
    assert_eq!(ask(&server, Method::DELETE, &format!("/v1/shares/{share}"), None).await.0, 204);
    assert_eq!(shared(&server, good.clone()).await.0, 410);
    assert_eq!(refused(&server, Method::DELETE, &format!("/v1/shares/{share}"), None).await.0, 404);

    // One whose time is over.
    let row = server.state.catalog.share(&other).await.unwrap().unwrap();
    server.state.catalog.delete_share("ada", &other).await.unwrap();
    let expired = ShareRow { expires_at: Some(row.created_at + 1), ..row };
    server.state.catalog.add_share("ada", expired).await.unwrap();
    assert_eq!(shared(&server, json!({"id": other, "secret": other_secret})).await.0, 410);
    let past = refused(&server, Method::POST, &shares, Some(json!({"expires_at": 1}))).await;
    assert_eq!(past, (400, "expired".into(), "expires_at".into()));
    let far = post(&server, &shares, json!({"expires_at": 9_000_000_000_000_i64, "leaf_id": turns[0]})).await;
    let (id, secret) = parts(&far);
    let (_, seen) = shared(&server, json!({"id": id, "secret": secret})).await;
    assert_eq!(
        (seen["messages"].as_array().unwrap().len(), &seen["expires_at"]),
        (1, &json!(9_000_000_000_000_i64))
    );
    // Nothing to show.
    let empty = post(&server, "/v1/conversations", json!({})).await;
    let path = format!("/v1/conversations/{}/shares", empty["id"].as_str().unwrap());
    assert_eq!(refused(&server, Method::POST, &path, Some(json!({}))).await.1, "nothing_to_share");
    let path = format!("/v1/conversations/{}/shares", "absent");
    assert_eq!(refused(&server, Method::POST, &path, Some(json!({}))).await.0, 404);
}

#[tokio::test]
async fn share_link_opens_only_files_of_its_messages() {
    let server = server().await;
    let upload = async |name: &str| {
        let request = server.client().post(server.url(&format!("/v1/files?name={name}")));
        let file: Value =
            request.body(format!("{name} ").repeat(20_000)).send().await.unwrap().json().await.unwrap();
        file["id"].as_str().unwrap().to_owned()
    };
    let (shown, unused, later) = (upload("shown").await, upload("unused").await, upload("later").await);
    let with =
        |file: &str| json!({"input": [{"type": "text", "text": "Look"}, {"type": "file", "file_id": file}]});
    let first = turn(&server, "", with(&shown)).await;
    let row = server.state.catalog.turn("ada", &first).await.unwrap().unwrap();
    let id = row.conversation_id.unwrap();
    let (share, secret) = parts(&post(&server, &format!("/v1/conversations/{id}/shares"), json!({})).await);
    let mut next = with(&later);
    next["conversation_id"] = json!(id);
    turn(&server, "", next).await;
    let read = async |file: &str, secret: &str| {
        let body = json!({"id": share, "secret": secret, "file_id": file});
        let request = stranger().post(server.url("/v1/shared/file")).json(&body);
        request.send().await.unwrap()
    };
    let content = read(&shown, &secret).await;
    assert_eq!(content.status(), 200);
    let disposition = content.headers()["content-disposition"].to_str().unwrap().to_owned();
    assert!(disposition.starts_with("attachment"), "{disposition}");
    assert!(content.text().await.unwrap().starts_with("shown "));
    for (file, secret, status) in [
        (&unused, secret.as_str(), 404),
        (&later, secret.as_str(), 404),
        (&"file_x".to_owned(), secret.as_str(), 404),
        (&shown, "wrong", 410),
    ] {
        assert_eq!(read(file, secret).await.status(), status, "{file}");
    }
}

// Limit: `shared_reads_per_minute_max`.
#[tokio::test]
async fn share_link_reads_per_minute_are_limited() {
    let build = |builder: throughline::ThroughlineBuilder| builder.tools(throughline_testkit::tools::all());
    let limits = ServerLimits { shared_reads_per_minute_max: 3, ..ServerLimits::default() };
    let server = TestServer::start_with(talk(), build, limits).await;
    let (id, _) = conversation(&server).await;
    let shares = format!("/v1/conversations/{id}/shares");
    let (share, secret) = parts(&post(&server, &shares, json!({})).await);
    // Guesses do not count against the limit.
    for _ in 0..5 {
        assert_eq!(shared(&server, json!({"id": share, "secret": "wrong"})).await.0, 410);
    }
    let good = json!({"id": share, "secret": secret});
    for _ in 0..3 {
        assert_eq!(shared(&server, good.clone()).await.0, 200);
    }
    let response = stranger().post(server.url("/v1/shared")).json(&good).send().await.unwrap();
    assert_eq!(response.status(), 429);
    assert!(response.headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap() > 0);
    // Another link is another one.
    let (other, secret) = parts(&post(&server, &shares, json!({})).await);
    assert_eq!(shared(&server, json!({"id": other, "secret": secret})).await.0, 200);
}
