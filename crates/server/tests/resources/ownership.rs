use super::{ask_as, conversation, get, post, server};
use reqwest::Method;
use serde_json::json;

// R: R4
#[tokio::test]
async fn what_is_another_users_is_not_there() {
    let server = server().await;
    let (id, turns) = conversation(&server).await;
    let turn = turns[0].clone();
    let tool_id = format!("{turn}.1");
    let file = server.client().post(server.url("/v1/files?name=a.txt")).body("secret").send().await.unwrap();
    let file: serde_json::Value = file.json().await.unwrap();
    let file = file["id"].as_str().unwrap();
    post(&server, "/v1/agents", json!({"name": "mine", "settings": {"model": "test/m"}})).await;
    let settings = json!({"settings": {"model": "test/m"}});
    let matrix = [
        (Method::GET, format!("/v1/conversations/{id}"), None),
        (Method::PATCH, format!("/v1/conversations/{id}"), Some(json!({"title": "stolen"}))),
        (Method::DELETE, format!("/v1/conversations/{id}"), None),
        (Method::GET, format!("/v1/conversations/{id}/messages"), None),
        (Method::POST, format!("/v1/conversations/{id}/fork"), Some(json!({"turn_id": turn}))),
        (Method::GET, format!("/v1/conversations/{id}/export"), None),
        (Method::GET, format!("/v1/conversations/{id}/export?format=markdown"), None),
        (Method::GET, format!("/v1/turns/{turn}/waterfall"), None),
        (Method::GET, format!("/v1/history/calls/{tool_id}"), None),
        (Method::GET, format!("/v1/files/{file}"), None),
        (Method::GET, format!("/v1/files/{file}/content"), None),
        (Method::DELETE, format!("/v1/files/{file}"), None),
        (Method::GET, "/v1/agents/mine".to_owned(), None),
        (Method::PUT, "/v1/agents/mine".to_owned(), Some(settings)),
        (Method::DELETE, "/v1/agents/mine".to_owned(), None),
        (Method::POST, "/v1/agents/mine/duplicate".to_owned(), Some(json!({"name": "copy"}))),
        (Method::PATCH, "/v1/agents/mine/toggles".to_owned(), Some(json!({}))),
        (Method::GET, "/v1/agents/mine/prompt".to_owned(), None),
        (Method::GET, "/v1/agents/mine/tools".to_owned(), None),
        (Method::GET, "/v1/tools?agent=mine".to_owned(), None),
        (Method::GET, "/v1/prompts?agent=mine".to_owned(), None),
        (Method::POST, "/v1/parse".to_owned(), Some(json!({"text": "x", "agent": "mine"}))),
        (Method::DELETE, "/v1/remembered/1".to_owned(), None),
    ];
    for (method, path, body) in matrix {
        let (status, said) = ask_as("eve", &server, method.clone(), &path, body.clone()).await;
        assert_eq!(status, 404, "{method} {path}: {said}");
        // Nobody at all is told to show a key, and nothing else.
        let mut request =
            reqwest::Client::builder().no_proxy().build().unwrap().request(method.clone(), server.url(&path));
        if let Some(body) = body {
            request = request.json(&body);
        }
        assert_eq!(request.send().await.unwrap().status(), 401, "{method} {path}");
    }
    for list in
        ["/v1/conversations", "/v1/files", "/v1/history/calls", "/v1/search?q=Paris", "/v1/remembered"]
    {
        let (status, said) = ask_as("eve", &server, Method::GET, list, None).await;
        assert_eq!((status, &said["items"]), (200, &json!([])), "{list}");
    }
    let (_, agents) = ask_as("eve", &server, Method::GET, "/v1/agents", None).await;
    assert_eq!(agents["items"].as_array().unwrap().len(), 1, "only the configuration's");
    // A turn cannot name it, nor a call by hand borrow its rules.
    let start = json!({"input": [{"type": "text", "text": "x"}], "agent": "mine"});
    assert_eq!(ask_as("eve", &server, Method::POST, "/v1/turns", Some(start)).await.0, 400);
    let by_hand = json!({"arguments": {"text": "x"}, "agent": "mine"});
    assert_eq!(ask_as("eve", &server, Method::POST, "/v1/tools/test.echo/call", Some(by_hand)).await.0, 400);
    // All of it is as it was.
    assert_eq!(get(&server, &format!("/v1/conversations/{id}")).await["title"], "What does Paris say?");
    assert_eq!(get(&server, "/v1/agents/mine").await["version"], 1);
    // The same name for another agent is no conflict between users.
    let (status, _) = ask_as(
        "eve",
        &server,
        Method::POST,
        "/v1/agents",
        Some(json!({"name": "mine", "settings": {"model": "test/m"}})),
    )
    .await;
    assert_eq!(status, 201);
}
