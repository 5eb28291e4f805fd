//! Conversations in folders, with tags, pinned, archived, temporary, deleted and brought back; their usage.

use super::{ask, conversation, get, post, refused, server, turn};
use reqwest::Method;
use serde_json::{Value, json};

async fn patch(server: &super::TestServer, id: &str, change: Value) -> Value {
    let path = format!("/v1/conversations/{id}");
    let (status, said) = ask(server, Method::PATCH, &path, Some(change)).await;
    assert_eq!(status, 200, "{said}");
    said
}

async fn listed(server: &super::TestServer, query: &str) -> Vec<String> {
    let page = get(server, &format!("/v1/conversations{query}")).await;
    let items = page["items"].as_array().unwrap();
    items.iter().map(|one| one["title"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn conversations_are_filtered_by_folder_tag_pin_and_archive() {
    let server = server().await;
    let mut ids = Vec::new();
    for title in ["one", "two", "three"] {
        let made = post(&server, "/v1/conversations", json!({"title": title})).await;
        ids.push(made["id"].as_str().unwrap().to_owned());
    }
    let one =
        patch(&server, &ids[0], json!({"folder": "Travel\u{202e}", "tags": ["a", "b"], "pinned": true}))
            .await;
    assert_eq!(one["tags"], json!(["a", "b"]));
    assert!(one["pinned_at"].is_i64() && one.get("archived_at").is_none(), "{one}");
    assert!(!one["folder"].as_str().unwrap().contains('\u{202e}'), "what nobody sees is spelled out: {one}");
    patch(&server, &ids[1], json!({"archived": true, "tags": ["a"]})).await;
    patch(&server, &ids[2], json!({"folder": "Work"})).await;
    assert_eq!(listed(&server, "").await, ["one", "three"]);
    for (query, expected) in [
        ("?folder=Work", vec!["three"]),
        ("?tag=a", vec!["one"]),
        ("?tag=a&archived=true", vec!["two"]),
        ("?archived=true", vec!["two"]),
        ("?pinned=true", vec!["one"]),
        ("?pinned=false", vec!["three"]),
        ("?q=t", vec!["three", "two"]),
        ("?q=t&archived=true", vec!["two"]),
    ] {
        assert_eq!(listed(&server, query).await, expected, "{query}");
    }
    let labels = get(&server, "/v1/conversations/labels").await;
    assert_eq!(labels["tags"], json!([{"name": "a", "conversations": 1}, {"name": "b", "conversations": 1}]));
    assert_eq!(labels["folders"].as_array().unwrap().len(), 2);
    let out = patch(&server, &ids[2], json!({"folder": null, "tags": []})).await;
    assert!(out.get("folder").is_none(), "{out}");
    // What is refused has changed nothing.
    let path = format!("/v1/conversations/{}", ids[2]);
    for (change, status, param) in [
        (json!({"folder": "x".repeat(81)}), 413, "folder_chars_max"),
        (json!({"tags": ["x".repeat(41)]}), 413, "tag_chars_max"),
        (json!({"tags": (0..21).map(|n| n.to_string()).collect::<Vec<_>>()}), 413, "tags_max"),
        (json!({"temporary": true}), 400, "temporary"),
        (json!({"pinned": "yes"}), 400, ""),
    ] {
        let (code, _, named) = refused(&server, Method::PATCH, &path, Some(change.clone())).await;
        assert_eq!((code, named.as_str()), (status, param), "{change}");
    }
    assert_eq!(listed(&server, "?folder=x").await, Vec::<String>::new());
}

#[tokio::test]
async fn deleted_conversation_is_restored_unless_permanent() {
    let server = server().await;
    let (id, turns) = conversation(&server).await;
    let path = format!("/v1/conversations/{id}");
    let before = (get(&server, &path).await, get(&server, "/v1/search?q=paris").await);
    assert_eq!(refused(&server, Method::POST, &format!("{path}/restore"), None).await.0, 404, "it is there");
    assert_eq!(ask(&server, Method::DELETE, &path, None).await.0, 204);
    for gone in [
        path.clone(),
        format!("{path}/messages"),
        format!("{path}/export"),
        format!("{path}/usage"),
        format!("/v1/turns/{}", turns[0]),
        format!("/v1/turns/{}/events", turns[0]),
        format!("/v1/turns/{}/waterfall", turns[0]),
    ] {
        assert_eq!(ask(&server, Method::GET, &gone, None).await.0, 404, "{gone}");
    }
    assert_eq!(get(&server, "/v1/search?q=paris").await["items"], json!([]));
    assert_eq!(get(&server, "/v1/history/counts").await["total"], 0);
    assert_eq!(refused(&server, Method::DELETE, &path, None).await.0, 404);
    let back = post(&server, &format!("{path}/restore"), Value::Null).await;
    assert_eq!(back["id"], json!(id));
    assert_eq!((get(&server, &path).await, get(&server, "/v1/search?q=paris").await), before);

    assert_eq!(ask(&server, Method::DELETE, &format!("{path}?permanent=true"), None).await.0, 204);
    assert_eq!(refused(&server, Method::POST, &format!("{path}/restore"), None).await.0, 404);
}

#[tokio::test]
async fn temporary_conversation_is_usable_but_not_listed() {
    let server = server().await;
    let made = post(&server, "/v1/conversations", json!({"temporary": true})).await;
    assert_eq!(made["temporary"], true);
    let id = made["id"].as_str().unwrap().to_owned();
    turn(&server, "What does Paris say?", json!({"conversation_id": id})).await;
    assert_eq!(listed(&server, "").await, Vec::<String>::new());
    assert_eq!(listed(&server, "?q=paris").await, Vec::<String>::new());
    assert_eq!(get(&server, "/v1/search?q=paris").await["items"], json!([]));
    assert_eq!(get(&server, &format!("/v1/conversations/{id}")).await["turns"], 1);
    patch(&server, &id, json!({"temporary": false})).await;
    assert_eq!(listed(&server, "").await, ["What does Paris say?"]);
    assert!(!get(&server, "/v1/search?q=paris").await["items"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn conversation_usage_counts_turns_and_calls() {
    let server = server().await;
    let (id, _) = conversation(&server).await;
    let usage = get(&server, &format!("/v1/conversations/{id}/usage")).await;
    assert_eq!((&usage["turns"], &usage["calls"], &usage["failed_calls"]), (&json!(3), &json!(1), &json!(0)));
    assert!(usage["models"].as_array().is_some(), "{usage}");
}

#[tokio::test]
async fn branch_messages_page_around_and_after_a_turn() {
    let server = server().await;
    let (id, turns) = conversation(&server).await;
    let [first, second, edited] = [0, 1, 2].map(|at| turns[at].clone());
    let read = async |query: String| {
        let part = get(&server, &format!("/v1/conversations/{id}/messages?{query}")).await;
        let ids: Vec<Value> =
            part["messages"].as_array().unwrap().iter().map(|one| one["turn_id"].clone()).collect();
        (ids, part["leaf_id"].clone(), part["before"].clone(), part["after"].clone())
    };
    let null = Value::Null;
    // At the beginning of the current branch.
    let expected = (vec![json!(first)], json!(edited), null.clone(), json!(first));
    assert_eq!(read(format!("around={first}&limit=1")).await, expected);
    let expected = (vec![json!(edited)], json!(edited), json!(edited), null.clone());
    assert_eq!(read(format!("after={first}&limit=1")).await, expected);
    // As many as exist, at any position.
    let expected = (vec![json!(first), json!(edited)], json!(edited), null.clone(), null.clone());
    assert_eq!(read(format!("around={edited}&limit=2")).await, expected);
    // On another branch: one that goes through it.
    let expected = (vec![json!(first), json!(second)], json!(second), null.clone(), null.clone());
    assert_eq!(read(format!("around={second}")).await, expected);
    let stranger = conversation(&server).await.1[0].clone();
    for (query, status) in [
        (format!("around={stranger}"), 404),
        (format!("after={stranger}"), 404),
        (format!("around={first}&before={edited}"), 400),
    ] {
        let path = format!("/v1/conversations/{id}/messages?{query}");
        assert_eq!(refused(&server, Method::GET, &path, None).await.0, status, "{query}");
    }
}

#[tokio::test]
async fn export_includes_folder_tags_and_pin() {
    let server = server().await;
    let (id, _) = conversation(&server).await;
    patch(&server, &id, json!({"folder": "Travel", "tags": ["a", "b"], "pinned": true})).await;
    let exported = server.client().get(server.url(&format!("/v1/conversations/{id}/export"))).send().await;
    let text = exported.unwrap().text().await.unwrap();
    let request = server.client().post(server.url("/v1/conversations/import"));
    let copy = request.header("content-type", "application/jsonl").body(text).send().await.unwrap();
    let copy: Value = copy.json().await.unwrap();
    let original = get(&server, &format!("/v1/conversations/{id}")).await;
    for field in ["folder", "tags", "pinned_at"] {
        assert_eq!(copy[field], original[field], "{field}");
    }
}
