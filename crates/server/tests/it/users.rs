//! Several users with separate keys, over real sockets: their data are separate, and limits apply.

use crate::multi_user_server::{MultiUserServer, answers, walk_every_route};
use crate::support::saying;
use serde_json::{Value, json};
use throughline_testkit::{ModelScript, ScriptMove, ScriptQueue};

#[tokio::test]
async fn no_route_exposes_another_users_resources() {
    let multi_user_server = MultiUserServer::start(answers(8)).await;
    for name in ["ann", "bob"] {
        multi_user_server.done("POST", "/v1/users", json!({"name": name, "is_admin": name == "ann"})).await;
    }
    let ann = multi_user_server.key("ann", json!({"scopes": ["chat", "tools", "admin"]})).await;
    let bob = multi_user_server.key("bob", json!({})).await;
    walk_every_route(&multi_user_server, &ann, &bob).await;
}

#[tokio::test]
async fn users_are_added_changed_and_removed_with_their_keys() {
    let multi_user_server = MultiUserServer::start(answers(4)).await;
    let only = multi_user_server.done("GET", "/v1/users", Value::Null).await;
    assert_eq!((only["items"].as_array().unwrap().len(), &only["items"][0]["name"]), (1, &json!("local")));
    let ask = |method: &'static str, path: &'static str, body: Value| {
        let multi_user_server = &multi_user_server;
        async move {
            let (status, said) = multi_user_server.ask(&multi_user_server.admin, method, path, body).await;
            (status, said["error"]["code"].as_str().unwrap_or_default().to_owned())
        }
    };
    for (name, expected) in [
        ("Bob", (201, "")),
        ("bob", (409, "exists")),
        ("local", (409, "exists")),
        ("b b", (400, "bad_name")),
        ("b\u{200b}b", (400, "bad_name")),
    ] {
        let (status, code) = ask("POST", "/v1/users", json!({ "name": name })).await;
        assert_eq!((status, code.as_str()), expected, "{name:?}");
    }
    let admin_key = json!({"name": "k", "user": "bob", "scopes": ["admin"]});
    assert_eq!(ask("POST", "/v1/keys", admin_key.clone()).await, (400, "not_admin".to_owned()));
    let nobodys = json!({"name": "k", "user": "nobody"});
    assert_eq!(ask("POST", "/v1/keys", nobodys).await, (404, "not_found".to_owned()));
    multi_user_server.done("PATCH", "/v1/users/bob", json!({"is_admin": true})).await;
    let admin =
        multi_user_server.done("POST", "/v1/keys", admin_key).await["key"].as_str().unwrap().to_owned();
    assert_eq!(multi_user_server.ask(&admin, "GET", "/v1/users", Value::Null).await.0, 200);
    assert_eq!(
        multi_user_server.ask(&admin, "DELETE", "/v1/users/bob", Value::Null).await.1["error"]["code"],
        "own_user"
    );
    multi_user_server.done("PATCH", "/v1/users/bob", json!({"is_admin": false})).await;
    // A list is no object, even if its items could be its fields.
    let list = json!({"limits": [1, 2]});
    assert_eq!(ask("PATCH", "/v1/users/bob", list).await, (400, "invalid_value".to_owned()));
    assert_eq!(
        multi_user_server.ask(&admin, "GET", "/v1/users", Value::Null).await.0,
        403,
        "the key has lost its scope"
    );
    for (method, path, body) in
        [("DELETE", "/v1/users/local", Value::Null), ("PATCH", "/v1/users/local", json!({"is_admin": false}))]
    {
        assert_eq!(ask(method, path, body).await, (409, "first_user".to_owned()), "{method}");
    }

    // Bob's data stay when he is removed, and are available again when he is restored.
    let key = multi_user_server.key("bob", json!({})).await;
    multi_user_server.turn(&key, "Mine").await;
    let removed = multi_user_server.done("DELETE", "/v1/users/bob", Value::Null).await;
    assert_eq!((&removed["keys_revoked"], &removed["deleted"]), (&json!(2), &Value::Null));
    assert_eq!(multi_user_server.ask(&key, "GET", "/v1/me", Value::Null).await.0, 401);
    assert_eq!(ask("POST", "/v1/keys", json!({"name": "k", "user": "bob"})).await.0, 404);
    multi_user_server.done("POST", "/v1/users", json!({"name": "bob"})).await;
    let key = multi_user_server.key("bob", json!({})).await;
    let (_, me) = multi_user_server.ask(&key, "GET", "/v1/me", Value::Null).await;
    assert_eq!((&me["user"], &me["scopes"]), (&json!("bob"), &json!(["chat", "tools"])));
    let (_, listed) = multi_user_server.ask(&key, "GET", "/v1/conversations", Value::Null).await;
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    let removed = multi_user_server.done("DELETE", "/v1/users/bob?data=delete", Value::Null).await;
    assert_eq!(
        (&removed["deleted"]["conversations"], &removed["deleted"]["complete"]),
        (&json!(1), &json!(true))
    );
    assert_eq!(ask("GET", "/v1/users/bob", Value::Null).await.0, 404);
    multi_user_server.done("POST", "/v1/users", json!({"name": "bob"})).await;
    let key = multi_user_server.key("bob", json!({})).await;
    assert_eq!(
        multi_user_server.ask(&key, "GET", "/v1/conversations", Value::Null).await.1["items"],
        json!([])
    );
}

#[tokio::test]
async fn running_turn_is_cancelled_when_its_user_is_deleted() {
    let multi_user_server =
        MultiUserServer::start(ScriptQueue::new([ModelScript::new().say("A").then(ScriptMove::Stall)])).await;
    multi_user_server.done("POST", "/v1/users", json!({"name": "bob"})).await;
    let key = multi_user_server.key("bob", json!({})).await;
    assert_eq!(multi_user_server.ask(&key, "POST", "/v1/turns", saying("Wait")).await.0, 201);
    let removed = multi_user_server.done("DELETE", "/v1/users/bob?data=delete", Value::Null).await;
    assert_eq!((&removed["turns_cancelled"], &removed["deleted"]["turns"]), (&json!(1), &json!(1)));
}

#[tokio::test]
async fn usage_limits_per_user_and_key_report_free_at() {
    let multi_user_server = MultiUserServer::start(answers(8)).await;
    multi_user_server
        .done("POST", "/v1/users", json!({"name": "bob", "limits": {"turns_per_month_max": 3}}))
        .await;
    let limited = multi_user_server.key("bob", json!({"limits": {"turns_per_day_max": 1}})).await;
    let other = multi_user_server.key("bob", json!({})).await;
    assert_eq!(multi_user_server.turn(&limited, "One").await.0, 201);
    let (status, said) = multi_user_server.turn(&limited, "Two").await;
    let error = &said["error"];
    assert_eq!(
        (status, &error["code"], &error["param"]),
        (429, &json!("usage_limit"), &json!("turns_per_day_max"))
    );
    let now = jiff::Timestamp::now().as_millisecond();
    let free_at = error["free_at"].as_i64().unwrap();
    assert!(
        free_at > now && free_at - now <= 24 * 60 * 60 * 1000 && free_at % (24 * 60 * 60 * 1000) == 0,
        "{error}"
    );
    // Another surface is counted as well, and another key of the same person has the person's limits alone.
    let chat = json!({"model": "test/m", "messages": [{"role": "user", "content": "x"}]});
    assert_eq!(multi_user_server.ask(&limited, "POST", "/v1/chat/completions", chat.clone()).await.0, 429);
    assert_eq!(multi_user_server.ask(&other, "POST", "/v1/chat/completions", chat.clone()).await.0, 200);
    assert_eq!(multi_user_server.turn(&other, "Three").await.0, 201);
    let (status, said) = multi_user_server.turn(&other, "Four").await;
    assert_eq!((status, &said["error"]["param"]), (429, &json!("turns_per_month_max")));
    let (_, me) = multi_user_server.ask(&limited, "GET", "/v1/me", Value::Null).await;
    assert_eq!((&me["usage"]["turns_this_month"], &me["key_usage"]["turns_today"]), (&json!(3), &json!(1)));
    assert!(me["usage"]["tokens_today"].as_u64().unwrap() > 0, "{me}");
    // The first user has no limits, and a raised limit applies immediately.
    assert_eq!(multi_user_server.turn(&multi_user_server.admin, "Mine").await.0, 201);
    multi_user_server.done("PATCH", "/v1/users/bob", json!({"limits": {"tokens_per_day_max": 1}})).await;
    let (status, said) = multi_user_server.turn(&other, "Five").await;
    assert_eq!((status, &said["error"]["param"]), (429, &json!("tokens_per_day_max")));
    multi_user_server.done("PATCH", "/v1/users/bob", json!({"limits": {}})).await;
    assert_eq!(multi_user_server.turn(&other, "Six").await.0, 201);
}

#[tokio::test]
async fn key_is_restricted_to_its_models() {
    let multi_user_server = MultiUserServer::start(answers(8)).await;
    let ids = async |key: &str| {
        let (_, models) = multi_user_server.ask(key, "GET", "/v1/models", Value::Null).await;
        let models = models["data"].as_array().unwrap().clone();
        models.iter().map(|model| model["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = ids(&multi_user_server.admin).await;
    assert!(all.contains(&"default".to_owned()) && all.contains(&"test/m".to_owned()), "{all:?}");
    let agent = multi_user_server.key("local", json!({"models": ["default"]})).await;
    let model = multi_user_server.key("local", json!({"models": ["test/*"]})).await;
    let elsewhere = multi_user_server.key("local", json!({"models": ["other/m"]})).await;
    assert_eq!(ids(&agent).await, ["default"]);
    assert_eq!(ids(&elsewhere).await, Vec::<String>::new());
    let with_model = |name: &str| json!({"model": name, "messages": [{"role": "user", "content": "x"}]});
    for (key, name, expected) in [
        (&agent, "default", 200),
        (&agent, "test/m", 403),
        (&model, "test/m", 200),
        (&elsewhere, "default", 403),
    ] {
        let (status, said) =
            multi_user_server.ask(key, "POST", "/v1/chat/completions", with_model(name)).await;
        assert_eq!(status, expected, "{name}: {said}");
    }
    let (status, said) = multi_user_server.turn(&elsewhere, "x").await;
    assert_eq!((status, &said["error"]["code"]), (403, &json!("model_not_allowed")));
    assert!(said["error"]["message"].as_str().unwrap().contains("other/m"), "{said}");
    let (status, said) =
        multi_user_server.ask(&elsewhere, "POST", "/v1/embeddings", json!({"model": "test/m"})).await;
    assert!(status == 403 || status == 400, "{said}");

    let keys = multi_user_server.done("GET", "/v1/keys", Value::Null).await;
    let id = |models: Value| {
        let keys = keys["data"].as_array().unwrap();
        keys.iter().find(|key| key["models"] == models).unwrap()["id"].as_str().unwrap().to_owned()
    };
    let path = format!("/v1/keys/{}", id(json!(["other/m"])));
    multi_user_server.done("PATCH", &path, json!({"models": null})).await;
    assert_eq!(ids(&elsewhere).await, all);
    for models in [json!([]), json!([""]), json!(["*"]), json!(["a*b"]), json!(["a\u{200b}"])] {
        let (status, said) = multi_user_server
            .ask(&multi_user_server.admin, "PATCH", &path, json!({ "models": models }))
            .await;
        assert_eq!((status, &said["error"]["code"]), (400, &json!("bad_models")), "{models}");
    }
}

#[tokio::test]
async fn agents_scope_lets_users_manage_only_their_own_agents() {
    let multi_user_server = MultiUserServer::start(answers(2)).await;
    for name in ["ann", "bob"] {
        multi_user_server.done("POST", "/v1/users", json!({ "name": name })).await;
    }
    let ann = multi_user_server.key("ann", json!({"scopes": ["chat", "agents"]})).await;
    let (bob, chat) = (
        multi_user_server.key("bob", json!({"scopes": ["chat", "agents"]})).await,
        multi_user_server.key("ann", json!({})).await,
    );
    let agent = |name: &str| json!({"name": name, "settings": {"model": "test/m", "prompt": "Hers."}});
    let (status, said) = multi_user_server.ask(&chat, "POST", "/v1/agents", agent("mine")).await;
    assert_eq!((status, &said["error"]["code"]), (403, &json!("missing_scope")));
    assert_eq!(multi_user_server.ask(&ann, "POST", "/v1/agents", agent("mine")).await.0, 201);
    // The same name is another agent of another user, and agents of others are not visible.
    assert_eq!(multi_user_server.ask(&bob, "GET", "/v1/agents/mine", Value::Null).await.0, 404);
    assert_eq!(multi_user_server.ask(&bob, "DELETE", "/v1/agents/mine", Value::Null).await.0, 404);
    assert_eq!(multi_user_server.ask(&bob, "POST", "/v1/agents", agent("mine")).await.0, 201);
    assert_eq!(multi_user_server.ask(&bob, "DELETE", "/v1/agents/mine", Value::Null).await.0, 204);
    assert_eq!(multi_user_server.ask(&ann, "GET", "/v1/agents/mine", Value::Null).await.0, 200);
    let turn = json!({"agent": "mine", "input": [{"type": "text", "text": "x"}]});
    assert_eq!(
        multi_user_server.ask(&chat, "POST", "/v1/turns", turn.clone()).await.0,
        201,
        "any key of hers may use it"
    );
    assert_eq!(multi_user_server.ask(&bob, "POST", "/v1/turns", turn).await.0, 400);
    // Admins need no other scope, and `agents` gives no access to shared resources.
    assert_eq!(
        multi_user_server.ask(&multi_user_server.admin, "POST", "/v1/agents", agent("mine")).await.0,
        201
    );
    assert_eq!(multi_user_server.ask(&ann, "GET", "/v1/users", Value::Null).await.0, 403);
    let (_, me) = multi_user_server.ask(&ann, "GET", "/v1/me", Value::Null).await;
    assert_eq!(me["scopes"], json!(["chat", "agents"]));
}
