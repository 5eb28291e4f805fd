use super::{ask, conversation, get, post, refused, server};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[tokio::test]
async fn conversation_is_read_renamed_searched_and_deleted() {
    let server = server().await;
    let (id, turns) = conversation(&server).await;
    let one = get(&server, &format!("/v1/conversations/{id}")).await;
    assert_eq!(one["title"], "What does Paris say?", "the first words, where nobody gave a title");
    assert_eq!(
        (&one["leaf_id"], &one["turns"], &one["tree"][0]["status"]),
        (&json!(turns[2]), &json!(3), &json!("completed"))
    );
    assert_eq!(one["tree"][0]["input"], "What does Paris say?");

    let (status, renamed) =
        ask(&server, Method::PATCH, &format!("/v1/conversations/{id}"), Some(json!({"title": "巴黎"}))).await;
    assert_eq!((status, &renamed["title"], &renamed["title_by"]), (200, &json!("巴黎"), &json!("given")));

    let found = get(&server, "/v1/search?q=PARIS").await;
    let parts: BTreeSet<&str> =
        found["items"].as_array().unwrap().iter().map(|hit| hit["part"].as_str().unwrap()).collect();
    assert_eq!(parts, BTreeSet::from(["answer", "input"]), "{found}");
    let snippet = found["items"][0]["snippet"].as_str().unwrap();
    assert!(snippet.contains("Paris"), "{snippet}");
    assert_eq!(get(&server, "/v1/search?q=%25").await["items"], json!([]), "a wildcard means itself");
    assert_eq!(get(&server, "/v1/conversations?q=%E5%B7%B4%E9%BB%8E").await["items"][0]["id"], json!(id));
    assert_eq!(get(&server, "/v1/conversations?q=nowhere").await["items"], json!([]));

    assert_eq!(ask(&server, Method::DELETE, &format!("/v1/conversations/{id}"), None).await.0, 204);
    let gone = format!("/v1/conversations/{id}");
    assert_eq!(refused(&server, Method::GET, &gone, None).await, (404, "not_found".into(), String::new()));
    assert_eq!(ask(&server, Method::GET, &format!("/v1/turns/{}/waterfall", turns[0]), None).await.0, 404);
    assert_eq!(get(&server, "/v1/history/counts").await["total"], 0, "its calls went with it");
}

#[tokio::test]
async fn conversation_pages_have_no_gaps_or_duplicates() {
    let server = server().await;
    let mut made = Vec::new();
    for n in 0..5 {
        made.push(post(&server, "/v1/conversations", json!({"title": format!("n{n}")})).await["id"].clone());
    }
    let (mut seen, mut path) = (Vec::new(), "/v1/conversations?limit=2".to_owned());
    loop {
        let page = get(&server, &path).await;
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        seen.extend(items.iter().map(|one| one["id"].clone()));
        match page["next"].as_str() {
            Some(next) => path = format!("/v1/conversations?limit=2&cursor={next}"),
            None => break,
        }
    }
    seen.sort_by_key(|id| id.to_string());
    assert_eq!(seen, made, "each once");
    for bad in ["limit=0", "limit=201", "limit=x", "cursor=never", "offset=1"] {
        let (status, _, _) = refused(&server, Method::GET, &format!("/v1/conversations?{bad}"), None).await;
        assert_eq!(status, 400, "{bad}");
    }
}

#[tokio::test]
async fn branches_are_read_and_switched_by_leaf() {
    let server = server().await;
    let (id, turns) = conversation(&server).await;
    let [first, second, edited] = [0, 1, 2].map(|at| turns[at].clone());
    let branch = get(&server, &format!("/v1/conversations/{id}/messages")).await;
    let turns = |branch: &Value| -> Vec<Value> {
        branch["messages"].as_array().unwrap().iter().map(|one| one["turn_id"].clone()).collect()
    };
    assert_eq!(turns(&branch), [json!(first), json!(edited)]);
    let message = &branch["messages"][0]["message"];
    let kinds: Vec<&str> =
        message["blocks"].as_array().unwrap().iter().map(|block| block["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["text", "tool_call", "text"]);

    let (status, _) =
        ask(&server, Method::PATCH, &format!("/v1/conversations/{id}"), Some(json!({"leaf_id": second})))
            .await;
    assert_eq!(status, 200);
    assert_eq!(
        turns(&get(&server, &format!("/v1/conversations/{id}/messages")).await),
        [json!(first), json!(second)]
    );
    let other = get(&server, &format!("/v1/conversations/{id}/messages?leaf={edited}&limit=1")).await;
    assert_eq!((turns(&other), &other["before"]), (vec![json!(edited)], &json!(edited)));
    let front = get(&server, &format!("/v1/conversations/{id}/messages?leaf={edited}&before={edited}")).await;
    assert_eq!((turns(&front), &front["before"]), (vec![json!(first)], &Value::Null));
    // A turn of another conversation is not found.
    let stranger = conversation(&server).await.1[0].clone();
    for path in [format!("messages?leaf={stranger}"), format!("export?format=markdown&leaf={stranger}")] {
        assert_eq!(
            refused(&server, Method::GET, &format!("/v1/conversations/{id}/{path}"), None).await.0,
            404
        );
    }
    let leaf = refused(
        &server,
        Method::PATCH,
        &format!("/v1/conversations/{id}"),
        Some(json!({"leaf_id": stranger})),
    )
    .await;
    assert_eq!(leaf, (404, "not_found".into(), "leaf_id".into()));
}

#[tokio::test]
async fn conversation_forks_at_any_event() {
    let server = server().await;
    let (id, turns) = conversation(&server).await;
    let first = turns[0].clone();
    let path = format!("/v1/conversations/{id}/messages?leaf={first}");
    let last = get(&server, &path).await["messages"][0]["message"]["seq"].as_u64().unwrap();
    for seq in [1, last / 2, last] {
        let fork =
            post(&server, &format!("/v1/conversations/{id}/fork"), json!({"turn_id": first, "seq": seq}))
                .await;
        assert_ne!(fork["id"], json!(id));
        let branch =
            get(&server, &format!("/v1/conversations/{}/messages", fork["id"].as_str().unwrap())).await;
        let message = &branch["messages"][0]["message"];
        assert_eq!(message["input"][0]["text"], "What does Paris say?");
        let expected = if seq == last { "completed" } else { "interrupted" };
        assert_eq!(message["status"], expected, "forked at {seq}: {message}");
        for block in message["blocks"].as_array().unwrap().iter().filter(|block| block["kind"] == "tool_call")
        {
            let status = block["status"].as_str().unwrap();
            assert!(!["preparing", "queued", "running"].contains(&status), "forked at {seq}: {status}");
        }
        // The next turn's history is a fold of the stored events.
        let row = server
            .state
            .catalog
            .turn("ada", branch["messages"][0]["turn_id"].as_str().unwrap())
            .await
            .unwrap();
        let adds: Value = serde_json::from_str(&row.unwrap().end.unwrap().history_json).unwrap();
        assert_eq!(adds[0]["user"][0]["text"], "What does Paris say?", "forked at {seq}");
    }
    let beyond = json!({"turn_id": first, "seq": last + 1});
    let said = refused(&server, Method::POST, &format!("/v1/conversations/{id}/fork"), Some(beyond)).await;
    assert_eq!(said, (400, "no_such_event".into(), "seq".into()));
    // The one that was forked is as it was.
    assert_eq!(get(&server, &format!("/v1/conversations/{id}")).await["turns"], 3);
    assert_eq!(get(&server, &path).await["messages"][0]["message"]["seq"], last);
}

async fn import(server: &super::TestServer, media_type: &str, text: &str) -> (u16, Value) {
    let request = server.client().post(server.url("/v1/conversations/import"));
    let response = request.header("content-type", media_type).body(text.to_owned()).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn exported_conversation_imports_as_the_same_conversation() {
    let server = server().await;
    let (id, _) = conversation(&server).await;
    let exported =
        server.client().get(server.url(&format!("/v1/conversations/{id}/export"))).send().await.unwrap();
    let disposition = exported.headers()["content-disposition"].to_str().unwrap().to_owned();
    assert_eq!(disposition, format!("attachment; filename=\"{id}.jsonl\""));
    let text = exported.text().await.unwrap();
    assert!(
        text.starts_with(r#"{"type":"conversation","format":"throughline.conversation","v":1"#),
        "{text}"
    );
    assert!(!text.contains("provider_state"), "what is echoed to upstreams is never served");

    let (status, copy) = import(&server, "application/jsonl", &text).await;
    assert_eq!(status, 201, "{copy}");
    let copy = copy["id"].as_str().unwrap();
    let shape = |tree: &Value| -> Vec<(Value, Value, bool)> {
        let turns = tree["tree"].as_array().unwrap();
        turns
            .iter()
            .map(|turn| (turn["input"].clone(), turn["answer"].clone(), turn["parent"].is_null()))
            .collect()
    };
    let (before, after) = (
        get(&server, &format!("/v1/conversations/{id}")).await,
        get(&server, &format!("/v1/conversations/{copy}")).await,
    );
    assert_eq!(shape(&after), shape(&before));
    let texts = |branch: &Value| -> Vec<String> {
        let blocks = branch["messages"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|one| one["message"]["blocks"].as_array().unwrap().clone());
        blocks.map(|block| format!("{}{}", block["text"], block["output"])).collect()
    };
    let messages = |id: &str| format!("/v1/conversations/{id}/messages");
    assert_eq!(texts(&get(&server, &messages(copy)).await), texts(&get(&server, &messages(&id)).await));
    // Its calls are in the history.
    let calls = get(&server, &format!("/v1/history/calls?conversation_id={copy}")).await;
    assert_eq!(calls["items"][0]["tool_name"], "test.echo");

    let page = server
        .client()
        .get(server.url(&format!("/v1/conversations/{id}/export?format=markdown")))
        .send()
        .await
        .unwrap();
    assert_eq!(page.headers()["content-type"], "text/markdown; charset=utf-8");
    let page = page.text().await.unwrap();
    for said in ["# What does Paris say?", "## You", "And Oslo?", "<summary>✔ test.echo: text: Paris"] {
        assert!(page.contains(said), "{said}\n{page}");
    }
    assert!(!page.contains("And Rome?"), "another branch");
}

#[tokio::test]
async fn openai_messages_import_and_errors_name_their_line() {
    let server = server().await;
    let list = json!([
        {"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": "Bye"}, {"role": "assistant", "content": "Bye."},
    ]);
    let (status, made) = import(&server, "application/json", &list.to_string()).await;
    assert_eq!((status, &made["turns"], &made["title"]), (201, &json!(2), &json!("Hello")), "{made}");
    for (media_type, text, line) in [
        ("application/json", "[\n{\"role\": \"user\", \"content\": \"x\"},\n{\"role\": \"wizard\"}\n]", 3),
        ("application/json", "{", 1),
        (
            "application/jsonl",
            "{\"type\":\"conversation\",\"format\":\"throughline.conversation\",\"v\":1,\"id\":\"c\"}\n{\"type\":\"event\",\"event\":{}}",
            2,
        ),
        ("application/jsonl", "", 1),
    ] {
        let (status, said) = import(&server, media_type, text).await;
        assert_eq!(
            (status, &said["error"]["code"], &said["error"]["line"]),
            (400, &json!("cannot_be_imported"), &json!(line)),
            "{said}"
        );
    }
}
