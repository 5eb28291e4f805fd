use super::{ask, get, post, refused, server};
use reqwest::Method;
use serde_json::{Value, json};

async fn call(server: &super::TestServer, tool: &str, body: Value) -> (u16, Value) {
    ask(server, Method::POST, &format!("/v1/tools/{tool}/call"), Some(body)).await
}

#[tokio::test]
async fn tools_are_listed_with_their_sources_and_definitions() {
    let server = server().await;
    let tools = get(&server, "/v1/tools").await;
    let names: Vec<&str> =
        tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"test.echo") && names.is_sorted(), "{names:?}");
    let source =
        tools["sources"].as_array().unwrap().iter().find(|source| source["name"] == "test").unwrap().clone();
    assert_eq!((&source["tools"], &source["faults"]), (&json!(7), &json!([])));
    let echo = get(&server, "/v1/tools/test.echo").await;
    assert_eq!(
        (&echo["effect"], &echo["asks"], &echo["wire_name"]),
        (&json!("pure"), &json!(false), &json!("test_echo"))
    );
    assert_eq!(echo["parameters"]["properties"]["text"]["type"], "string");
    let (status, said) = ask(&server, Method::GET, "/v1/tools/test.ecko", None).await;
    assert_eq!((status, &said["error"]["remedy"]), (404, &json!("did you mean `test.echo`?")));
}

#[tokio::test]
async fn manual_tool_call_obeys_the_policy() {
    let server = server().await;
    let (status, said) = call(&server, "test.echo", json!({"arguments": {"text": "hi"}})).await;
    assert_eq!(
        (status, &said["status"], &said["output"], &said["rule"]),
        (200, &json!("success"), &json!("hi"), &json!("effect:pure")),
        "{said}"
    );
    assert!(said["duration_ms"].is_u64() && said["started_at"].as_i64().unwrap() > 1_700_000_000_000);
    let (status, said) = call(&server, "test.fail", json!({"arguments": {"text": "broken"}})).await;
    assert_eq!((status, &said["status"]), (200, &json!("error")), "it ran, and this is how it ended");
    assert!(said["told_to_model"].as_str().unwrap().contains("broken"), "{said}");
    // What writes waits for a yes.
    let (status, said) = call(&server, "test.note", json!({"arguments": {"text": "x"}})).await;
    assert_eq!(
        (status, &said["error"]["code"], &said["error"]["effect"]),
        (409, &json!("confirmation_required"), &json!("write"))
    );
    assert_eq!(
        (&said["error"]["rule"], &said["error"]["allowed_by"]),
        (&json!("effect:write"), &Value::Null)
    );
    let (status, said) =
        call(&server, "test.note", json!({"arguments": {"text": "x"}, "confirm": true})).await;
    assert_eq!((status, &said["output"]), (200, &json!("noted: x")));
    for (tool, body, status, code) in [
        ("test.echo", json!({"arguments": {"txt": "hi"}}), 400, "invalid_arguments"),
        ("test.echo", json!({"arguments": []}), 400, "invalid_arguments"),
        ("test.echo", json!({"arguments": {}, "force": true}), 400, "unknown_field"),
        ("test.none", json!({}), 404, "not_found"),
    ] {
        let (said, code_said, _) =
            refused(&server, Method::POST, &format!("/v1/tools/{tool}/call"), Some(body)).await;
        assert_eq!((said, code_said.as_str()), (status, code), "{tool}");
    }
    // The consent is not required by a rule: this one allows the call to models.
    let policy = json!([{"decide": "allow", "tool": "test.note"}]);
    post(&server, "/v1/agents", json!({"name": "free", "settings": {"model": "test/m", "policy": policy}}))
        .await;
    let (status, said) =
        call(&server, "test.note", json!({"agent": "free", "arguments": {"text": "x"}})).await;
    assert_eq!((status, &said["error"]["code"]), (409, &json!("confirmation_required")), "{said}");
    assert_eq!(said["error"]["rule"], Value::Null, "{said}");
    assert!(said["error"]["allowed_by"].as_str().unwrap().contains("allow test.note"), "{said}");
    // What a rule denies, no consent allows.
    let policy = json!([{"decide": "deny", "tool": "test.note", "reason": "Not here."}, {"decide": "ask", "tool": "test.echo"}]);
    post(&server, "/v1/agents", json!({"name": "strict", "settings": {"model": "test/m", "policy": policy}}))
        .await;
    let (status, said) =
        call(&server, "test.note", json!({"agent": "strict", "arguments": {"text": "x"}, "confirm": true}))
            .await;
    assert_eq!((status, &said["error"]["code"]), (403, &json!("denied")), "{said}");
    let (status, said) =
        call(&server, "test.echo", json!({"agent": "strict", "arguments": {"text": "x"}})).await;
    assert_eq!(
        (status, &said["error"]["code"]),
        (409, &json!("confirmation_required")),
        "a rule may ask about anything"
    );
    let (status, said) =
        call(&server, "test.echo", json!({"agent": "strict", "arguments": {"text": "x"}, "confirm": true}))
            .await;
    assert_eq!((status, &said["output"]), (200, &json!("x")));
}

#[tokio::test]
async fn manual_call_needs_consent_despite_an_allow_rule() {
    let server = server().await;
    let policy = json!([{"decide": "allow", "tool": "test.note"}]);
    post(&server, "/v1/agents", json!({"name": "free", "settings": {"model": "test/m", "policy": policy}}))
        .await;
    let body = json!({"agent": "free", "arguments": {"text": "x"}});
    let (status, said) = call(&server, "test.note", body).await;
    assert_eq!((status, &said["error"]["code"]), (409, &json!("confirmation_required")), "{said}");
    let message = said["error"]["message"].as_str().unwrap();
    assert!(message.contains("a manual call needs explicit consent"), "{message}");
    assert_eq!(said["error"]["allowed_by"], "rule:1 allow test.note");
}

#[tokio::test]
async fn parsed_reply_reports_calls_and_runs_none() {
    let server = server().await;
    let reply = "Hello\n<tool_call>{\"name\": \"test_echo\", \"arguments\": {\"text\": \"hi\"}}</tool_call>\n\
        <tool_call>{\"name\": \"test_note\", \"arguments\": {\"text\": \"hi\"}}</tool_call>\n\
        <tool_call>{\"name\": \"test_ecko\", \"arguments\": {}}</tool_call>";
    let found = post(&server, "/v1/parse", json!({"text": reply, "protocol": "xml"})).await;
    let short: Vec<(&str, &str, u64)> = found["requests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (one["name"].as_str().unwrap(), one["outlook"].as_str().unwrap(), one["line"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(
        short,
        [("test_echo", "runs", 2), ("test_note", "asks", 3), ("test_ecko", "not_started", 4)],
        "{found}"
    );
    assert_eq!(found["text"].as_str().unwrap().trim(), "Hello");
    let at = (
        found["requests"][0]["start"].as_u64().unwrap() as usize,
        found["requests"][0]["end"].as_u64().unwrap() as usize,
    );
    assert!(reply[at.0..at.1].starts_with("<tool_call>"), "{at:?}");
    assert_eq!(
        refused(&server, Method::POST, "/v1/parse", Some(json!({"text": "x", "protocol": "morse"}))).await.2,
        "protocol"
    );
    let long = "x".repeat((1 << 20) + 1);
    assert_eq!(
        refused(&server, Method::POST, "/v1/parse", Some(json!({"text": long}))).await.1,
        "text_too_long"
    );
    assert_eq!(get(&server, "/v1/history/counts").await["total"], 0);
}

#[tokio::test]
async fn upstream_keys_are_never_listed() {
    let build = |builder: throughline::ThroughlineBuilder| {
        let with_key = throughline::Upstream::new(
            "paid",
            throughline::wire::Dialect::Anthropic,
            "https://api.example.com",
        )
        .unwrap()
        .key("sk-canary-7f3a");
        builder.upstream(with_key).model("test/m")
    };
    let server = super::TestServer::start_with(super::talk(), build, Default::default()).await;
    let found = get(&server, "/v1/upstreams").await;
    let short: Vec<(&str, &str)> = found["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].as_str().unwrap(), one["key"].as_str().unwrap()))
        .collect();
    assert_eq!(short, [("paid", "present"), ("test", "not_needed")]);
    for path in
        ["/v1/upstreams", "/v1/agents", "/v1/agents/default", "/v1/tools", "/v1/prompts", "/v1/openapi.json"]
    {
        assert!(!get(&server, path).await.to_string().contains("canary"), "{path}");
    }
}
