//! Connecting an upstream while the server runs: requests to it, stored data, and permissions.

use crate::guarded_server::{Answer, GuardedServer, settings};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use throughline::config::{
    ConfigFlags, EnvVars, STORED_UPSTREAMS_FILE, StoredUpstreamsFile, resolve_with_stored,
};
use throughline_server::{KeyScope, Redaction, UpstreamKeys};
use throughline_testkit::{self as testkit, FakeDialect, FakeUpstreamHandle, ScenarioRules, ScriptQueue};

const ALL: [KeyScope; 3] = [KeyScope::Chat, KeyScope::Tools, KeyScope::Admin];
const KEY: &str = "sk-right-0123456789";

/// Models of an upstream with a key: one that answers, and one whose quota is exhausted.
const MODELS: &str = r#"
models = ["talks", "costs"]
key = "sk-right-0123456789"

[[rules]]
when = { model = "costs" }
then = { http = { status = 402 } }

[[rules]]
when = { model = "talks" }
then = [{ say = "OK, from far away." }]

[[rules]]
then = { http = { status = 404, body = { error = { message = "The model does not exist", code = "model_not_found" } } } }
"#;

/// A server, and an upstream that it has as `deepseek`.
struct Setting {
    server: GuardedServer,
    upstream: FakeUpstreamHandle,
    key: String,
    folder: TempDir,
}

impl Setting {
    async fn new() -> Self {
        Self::with(&[]).await
    }

    /// Starts with these variables in the server's environment.
    async fn with(variables: &[(&str, &str)]) -> Self {
        let upstream = testkit::FakeUpstream::start(ScenarioRules::parse(MODELS).unwrap()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut environment: EnvVars = BTreeMap::from([(
            "THROUGHLINE_BASE_URL_DEEPSEEK".to_owned(),
            upstream.base_url(FakeDialect::OpenaiChat),
        )]);
        environment.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let file = StoredUpstreamsFile::at(folder.path().join(STORED_UPSTREAMS_FILE));
        let connections = UpstreamKeys::new(
            file,
            Arc::new(Redaction::default()),
            Arc::new(move |connected| {
                resolve_with_stored(None, connected, &environment, &ConfigFlags::default())
                    .map_err(|error| error.to_string())
            }),
        );
        let server =
            GuardedServer::start_as(ScriptQueue::new([]), &settings(), std::future::ready(()), |state| {
                state.with_upstream_keys(connections)
            })
            .await;
        let (key, _) = server.key(&ALL).await;
        Self { server, upstream, key, folder }
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> Answer {
        self.ask_with(method, path, body, &self.key, &[]).await
    }

    async fn ask_with(
        &self,
        method: &str,
        path: &str,
        body: Value,
        key: &str,
        more: &[(&str, &str)],
    ) -> Answer {
        let bearer = format!("Bearer {key}");
        let mut headers = vec![("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
        headers.extend_from_slice(more);
        let answer = self.server.ask(method, path, &headers, &body.to_string()).await;
        assert!(!answer.body.contains(KEY), "the key is in the answer of {method} {path}: {}", answer.body);
        answer
    }

    async fn connect(&self, name: &str, body: Value) -> Answer {
        self.ask("POST", &format!("/v1/upstreams/{name}/connect"), body).await
    }

    /// Outcome of a chat with this model or agent.
    async fn chat_reply(&self, model: &str) -> String {
        let body = json!({"model": model, "messages": [{"role": "user", "content": "Hello"}]});
        self.ask("POST", "/v1/chat/completions", body).await.body
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join(STORED_UPSTREAMS_FILE)
    }

    fn key_file_text(&self) -> String {
        std::fs::read_to_string(self.file()).unwrap_or_default()
    }

    async fn listed(&self, path: &str, name: &str) -> Value {
        let answer = self.ask("GET", path, Value::Null).await;
        let list: Value = serde_json::from_str(&answer.body).unwrap();
        let found = list["items"].as_array().unwrap().iter().find(|one| one["name"] == name).cloned();
        found.unwrap_or_default()
    }
}

fn value(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{answer:?}"))
}

#[track_caller]
fn check(answer: &Answer, status: u16, code: &str, param: Option<&str>) {
    assert_eq!((answer.status, answer.code().as_str()), (status, code), "{answer:?}");
    let said = value(answer);
    assert_eq!(said["error"]["param"].as_str(), param, "{said}");
    assert!(said["error"]["remedy"].is_string(), "it says what to do: {said}");
}

#[tokio::test]
async fn known_upstream_is_connected_tested_and_disconnected() {
    let setting = Setting::new().await;
    let before = setting.listed("/v1/upstreams/known", "deepseek").await;
    assert_eq!((&before["key"], &before["connected"]), (&json!("missing"), &json!(false)));
    assert!(before["key_url"].as_str().unwrap().starts_with("https://platform.deepseek.com"));
    assert_eq!(setting.listed("/v1/upstreams", "deepseek").await, Value::Null);
    assert_eq!(setting.listed("/v1/upstreams", "test").await["is_stored"], false, "it was configured");

    let wrong = setting.connect("deepseek", json!({"key": "sk-wrong-0123456789"})).await;
    check(&wrong, 422, "wrong_key", Some("key"));
    assert!(value(&wrong)["error"]["remedy"].as_str().unwrap().contains("https://platform.deepseek.com"));
    assert!(!setting.file().exists(), "what does not work is not kept");

    let right = setting.connect("deepseek", json!({"key": format!(" {KEY}\n")})).await;
    assert_eq!(right.status, 200, "{right:?}");
    let right = value(&right);
    assert_eq!(right["models"], json!(["talks", "costs"]));
    assert_eq!(
        (&right["upstream"]["key"], &right["upstream"]["key_from"]),
        (&json!("present"), &json!("stored"))
    );
    assert!(setting.key_file_text().contains(KEY));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(setting.file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert!(setting.chat_reply("deepseek/talks").await.contains("OK, from far away."));

    // One of its models, for a custom agent.
    let none = setting.connect("deepseek", json!({"model": "elsewhere"})).await;
    check(&none, 422, "no_such_model", Some("model"));
    let costs = setting.connect("deepseek", json!({"model": "costs", "agent": "mine"})).await;
    check(&costs, 422, "no_quota", Some("key"));
    assert!(setting.chat_reply("mine").await.contains("\"error\""), "nothing was made");
    let talks = setting.connect("deepseek", json!({"model": "talks", "agent": "mine"})).await;
    assert_eq!(value(&talks)["agent"], "mine", "{talks:?}");
    assert!(setting.chat_reply("mine").await.contains("OK, from far away."));
    let agent = value(&setting.ask("GET", "/v1/agents/mine", Value::Null).await);
    assert_eq!((&agent["model"], &agent["origin"]), (&json!("deepseek/talks"), &json!("stored")));
    let again = setting.connect("deepseek", json!({"model": "talks", "agent": "mine"})).await;
    assert_eq!(again.status, 200, "an agent that is there is given the model: {again:?}");
    let seen = setting.listed("/v1/upstreams", "deepseek").await;
    assert_eq!((&seen["key_from"], &seen["models"]), (&json!("stored"), &json!(["talks"])));
    assert_eq!(seen["is_stored"], true);

    // Without its key it is removed.
    let forget = || setting.ask("DELETE", "/v1/upstreams/deepseek/key", Value::Null);
    assert_eq!(forget().await.status, 204);
    assert!(!setting.key_file_text().contains(KEY));
    assert!(!setting.chat_reply("deepseek/talks").await.contains("OK, from far away."));
    check(&forget().await, 404, "not_found", None);
}

#[tokio::test]
async fn key_in_the_environment_takes_precedence() {
    let setting = Setting::with(&[("DEEPSEEK_API_KEY", KEY)]).await;
    let known = setting.listed("/v1/upstreams/known", "deepseek").await;
    assert_eq!((&known["key"], &known["key_from"]), (&json!("present"), &json!("environment")));
    let given = setting.connect("deepseek", json!({"key": "sk-another-0123456789"})).await;
    check(&given, 409, "key_in_environment", Some("key"));
    let used = setting.connect("deepseek", json!({})).await;
    assert_eq!((used.status, &value(&used)["upstream"]["key_from"]), (200, &json!("environment")));
    assert!(!setting.key_file_text().contains(KEY), "it is not written down");
    assert!(setting.chat_reply("deepseek/talks").await.contains("OK, from far away."));
}

#[tokio::test]
async fn failed_connection_reports_its_reason() {
    let setting = Setting::with(&[("THROUGHLINE_BASE_URL_GROQ", "http://127.0.0.1:9/v1")]).await;
    check(&setting.connect("deepseek", json!({})).await, 400, "key_needed", Some("key"));
    check(&setting.connect("deepseek", json!({"key": "my key is sk-1"})).await, 400, "bad_key", Some("key"));
    check(&setting.connect("nowhere", json!({"key": "x"})).await, 404, "not_found", None);
    check(&setting.connect("demo", json!({"base_url": "http://127.0.0.1:9"})).await, 409, "name_taken", None);
    check(&setting.connect("groq", json!({"key": "x"})).await, 502, "upstream_unreachable", None);
    let nameless = setting.connect("deepseek", json!({"key": KEY, "agent": "a"})).await;
    assert_eq!((nameless.status, nameless.code().as_str()), (400, "model_needed"), "{nameless:?}");
    let of_file =
        setting.connect("deepseek", json!({"key": KEY, "model": "talks", "agent": "default"})).await;
    check(&of_file, 409, "agent_is_read_only", Some("agent"));
    assert!(!setting.file().exists());
}

#[tokio::test]
async fn connect_requires_admin_and_local_peer_for_a_base_url() {
    let setting = Setting::new().await;
    let (chat, _) = setting.server.key(&[KeyScope::Chat, KeyScope::Tools]).await;
    for (method, path) in [
        ("GET", "/v1/upstreams/known"),
        ("POST", "/v1/upstreams/deepseek/connect"),
        ("DELETE", "/v1/upstreams/deepseek/key"),
    ] {
        let answer = setting.ask_with(method, path, json!({"key": KEY}), &chat, &[]).await;
        assert_eq!(answer.status, 403, "{method} {path}: {answer:?}");
    }
    assert!(setting.upstream.requests().is_empty(), "nothing was asked");

    let own = json!({"base_url": setting.upstream.base_url(FakeDialect::Anthropic), "dialect": "anthropic", "key": KEY});
    let path = "/v1/upstreams/mine/connect";
    for header in ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"] {
        let answer =
            setting.ask_with("POST", path, own.clone(), &setting.key, &[(header, "127.0.0.1")]).await;
        check(&answer, 403, "not_from_here", Some("base_url"));
    }
    for (url, code) in [
        ("http://169.254.169.254/latest", "bad_base_url"),
        ("http://[fe80::1]/", "bad_base_url"),
        ("http://0.0.0.0/", "bad_base_url"),
        ("ftp://127.0.0.1/", "bad_base_url"),
        ("http://user:secret@127.0.0.1/", "bad_base_url"),
    ] {
        let answer = setting.connect("mine", json!({"base_url": url})).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, code), "{url}: {answer:?}");
        assert!(!answer.body.contains("secret"), "{answer:?}");
    }
    check(&setting.connect("deepseek", own.clone()).await, 409, "name_taken", None);
    let odd = setting.connect("a%20b", own.clone()).await;
    assert_eq!((odd.status, odd.code().as_str()), (400, "bad_name"), "{odd:?}");

    let connected = setting.connect("mine", own).await;
    assert_eq!(connected.status, 200, "{connected:?}");
    assert!(setting.chat_reply("mine/talks").await.contains("OK, from far away."));
    assert_eq!(setting.listed("/v1/upstreams", "mine").await["is_stored"], true);
    // Elsewhere its key is not sent along.
    let elsewhere = json!({"base_url": setting.upstream.base_url(FakeDialect::OpenaiChat)});
    check(&setting.connect("mine", elsewhere).await, 422, "wrong_key", Some("key"));
}

#[tokio::test]
async fn local_model_servers_are_probed() {
    let local = testkit::FakeUpstream::start(ScriptQueue::new([])).await.unwrap();
    let setting = Setting::with(&[
        ("THROUGHLINE_BASE_URL_OLLAMA", &local.base_url(FakeDialect::Ollama)),
        ("THROUGHLINE_BASE_URL_LMSTUDIO", "http://127.0.0.1:9/v1"),
    ])
    .await;
    let there = setting.listed("/v1/upstreams/known", "ollama").await;
    assert_eq!((&there["answers"], &there["key"]), (&json!(true), &json!("not_needed")));
    assert_eq!(setting.listed("/v1/upstreams/known", "lmstudio").await["answers"], false);
    assert_eq!(setting.listed("/v1/upstreams/known", "openai").await["answers"], Value::Null);
    let connected = setting.connect("ollama", json!({})).await;
    assert_eq!((connected.status, &value(&connected)["models"]), (200, &json!(["mock"])), "{connected:?}");
    assert_eq!(setting.listed("/v1/upstreams/known", "ollama").await["connected"], true);
    assert!(setting.key_file_text().contains("ollama"), "it is there after a restart");
}
