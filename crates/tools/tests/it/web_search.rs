//! `web.search` against services on this machine that answer as SearXNG, Brave and Tavily do.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use throughline_tools::builtin::http::{HostResolver, ReqwestTransport};
use throughline_tools::process::SpawnContext;
use throughline_tools::web_search::{SEARCH_ANSWER_BYTES_MAX, WebSearchSettings, WebSearchSource};
use throughline_tools::{Effect, ToolExecutor, ToolInvocation, ToolToggles, Toolbox};
use throughline_wire::{CallArguments, CallOutcome, ToolOutput};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const KEY: &str = "tvly-0123456789-secret";

/// A service that gives one answer, and the requests that it got.
struct Service {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

async fn service(status: &'static str, headers: &'static str, body: String) -> Service {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let record = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut request = Vec::new();
            let mut chunk = [0; 4096];
            loop {
                let read = socket.read(&mut chunk).await.unwrap();
                request.extend_from_slice(&chunk[..read]);
                let text = String::from_utf8_lossy(&request);
                let length = text
                    .to_lowercase()
                    .split("content-length: ")
                    .nth(1)
                    .map_or(0, |rest| rest.split("\r\n").next().unwrap().parse::<usize>().unwrap());
                let head = text.find("\r\n\r\n").map(|at| at + 4);
                if read == 0 || head.is_some_and(|head| request.len() >= head + length) {
                    break;
                }
            }
            record.lock().unwrap().push(String::from_utf8(request).unwrap());
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}connection: close\r\n\r\n",
                body.len()
            );
            // The client disconnects once it has read enough.
            let _ = socket.write_all(format!("{head}{body}").as_bytes()).await;
        }
    });
    Service { port, asked }
}

impl Service {
    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn asked(&self) -> String {
        self.asked.lock().unwrap().last().unwrap().clone()
    }
}

fn source(settings: Value) -> WebSearchSource {
    let settings: WebSearchSettings = serde_json::from_value(settings).unwrap();
    let keys = [("BRAVE_API_KEY", KEY), ("TAVILY_API_KEY", KEY), ("MY_KEY", "other-key-4711")];
    let environment = keys.map(|(name, value)| (name.to_owned(), value.to_owned()));
    WebSearchSource::new(
        settings,
        SpawnContext { environment: BTreeMap::from(environment), ..SpawnContext::default() },
    )
}

async fn toolbox(source: WebSearchSource) -> Toolbox {
    let toolbox = Toolbox::new([]).unwrap();
    toolbox.add(Arc::new(source));
    toolbox.wait_ready(Duration::from_secs(30)).await;
    toolbox
}

async fn search(settings: Value, arguments: Value) -> CallOutcome {
    let toolbox = toolbox(source(settings)).await;
    assert_eq!(toolbox.faults(), []);
    let call = ToolInvocation::new("call_1", "web.search", CallArguments::from_value(arguments));
    ToolExecutor::default().run(&toolbox.registry(), call, |_| async {}).await
}

async fn found(settings: Value, arguments: Value) -> ToolOutput {
    match search(settings, arguments).await {
        CallOutcome::Done(output) => output,
        other => panic!("{other:?}"),
    }
}

async fn refused(settings: Value, arguments: Value) -> String {
    match search(settings, arguments).await {
        CallOutcome::Failed { message, .. } => message,
        other => panic!("{other:?}"),
    }
}

const JSON: &str = "content-type: application/json\r\n";

#[tokio::test]
async fn searxng_json_results_become_numbered_citations() {
    let answer = json!({
        "query": "rust 语言", "number_of_results": 0,
        "results": [
            {"url": "https://www.rust-lang.org/", "title": "Rust\u{200b} Programming\u{202e} Language",
             "content": "A language empowering\n everyone &amp; all.", "engine": "duckduckgo", "engines": ["duckduckgo"],
             "template": "default.html", "parsed_url": ["https", "www.rust-lang.org", "/", "", "", ""],
             "positions": [1], "score": 1.0, "category": "general", "publishedDate": null, "thumbnail": ""},
            {"url": "https://www.rust-lang.org/", "title": "The same again", "content": "", "publishedDate": null},
            {"url": "javascript:alert(1)", "title": "Bad", "content": "bad"},
            {"url": "https://zh.wikipedia.org/wiki/Rust", "title": "Rust - 维基百科", "content": "",
             "publishedDate": "2026-01-02T00:00:00"},
        ],
        "answers": [], "corrections": [], "infoboxes": [], "suggestions": ["rust game"], "unresponsive_engines": [],
    });
    let service = service("200 OK", JSON, answer.to_string()).await;
    let settings = json!({"provider": "searxng", "url": service.url("/searx")});
    let output = found(settings, json!({"query": " rust 语言 ", "time_range": "month"})).await;
    assert_eq!(
        output.text,
        "[1] Rust Programming Language\nhttps://www.rust-lang.org/\nA language empowering everyone & all.\n\n\
         [2] Rust - 维基百科\nhttps://zh.wikipedia.org/wiki/Rust\npublished: 2026-01-02T00:00:00"
    );
    let value = output.value.unwrap();
    assert_eq!((&value["query"], &value["provider"]), (&json!("rust 语言"), &json!("searxng")));
    assert_eq!(
        value["citations"][0],
        json!({"title": "Rust Programming Language", "url": "https://www.rust-lang.org/",
            "snippet": "A language empowering everyone & all."})
    );
    let asked = service.asked();
    assert!(
        asked.starts_with(
            "GET /searx/search?q=rust+%E8%AF%AD%E8%A8%80&format=json&time_range=month HTTP/1.1\r\n"
        ),
        "{asked}"
    );
    assert!(!asked.to_lowercase().contains("authorization"));
}

#[tokio::test]
async fn brave_request_has_token_and_markup_is_stripped() {
    let answer = json!({
        "type": "search", "query": {"original": "rust", "more_results_available": true},
        "mixed": {"type": "mixed", "main": [{"type": "web", "index": 0, "all": false}]},
        "web": {"type": "search", "family_friendly": true, "results": [
            {"title": "Rust", "url": "https://www.rust-lang.org/", "is_source_local": false,
             "description": "<strong>Rust</strong> is fast &amp; it&#x27;s safe: a &lt; b.", "page_age": "2026-05-01T10:00:00",
             "age": "May 1, 2026", "language": "en", "type": "search_result", "subtype": "generic"},
            {"title": "Two", "url": "https://two.org/", "description": "2"},
        ]},
    });
    let service = service("200 OK", JSON, answer.to_string()).await;
    let settings = json!({"provider": "brave", "url": service.url("/res/v1/web/search")});
    let output = found(settings.clone(), json!({"query": "rust", "count": 1, "time_range": "week"})).await;
    assert_eq!(
        output.text,
        "[1] Rust\nhttps://www.rust-lang.org/\npublished: 2026-05-01T10:00:00\nRust is fast & it's safe: a < b."
    );
    let asked = service.asked();
    assert!(asked.starts_with("GET /res/v1/web/search?q=rust&count=1&freshness=pw HTTP/1.1\r\n"), "{asked}");
    assert!(asked.contains(&format!("x-subscription-token: {KEY}\r\n")), "{asked}");

    let nothing = without_hits().await;
    let output = found(json!({"provider": "brave", "url": nothing.url("/")}), json!({"query": "qqq"})).await;
    assert_eq!(output.text, "Brave found nothing for: qqq");
}

/// Without a hit the answer has no `web`.
async fn without_hits() -> Service {
    service("200 OK", JSON, json!({"type": "search", "query": {"original": "qqq"}}).to_string()).await
}

#[tokio::test]
async fn tavily_request_is_json_with_the_configured_key() {
    let answer = json!({
        "query": "rust", "follow_up_questions": null, "answer": null, "images": [],
        "results": [{"title": "Rust", "url": "https://www.rust-lang.org/", "content": "Fast.", "score": 0.98,
            "raw_content": null}],
        "response_time": 1.2, "request_id": "a",
    });
    let service = service("200 OK", JSON, answer.to_string()).await;
    let settings =
        json!({"provider": "tavily", "url": service.url("/search"), "key": "$MY_KEY", "results": 3});
    let output = found(settings, json!({"query": "rust", "time_range": "day"})).await;
    assert_eq!(output.text, "[1] Rust\nhttps://www.rust-lang.org/\nFast.");
    let asked = service.asked();
    assert!(asked.starts_with("POST /search HTTP/1.1\r\n"), "{asked}");
    assert!(asked.contains("authorization: Bearer other-key-4711\r\n"), "{asked}");
    let body: Value = serde_json::from_str(asked.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(body, json!({"query": "rust", "max_results": 3, "time_range": "day"}));
}

#[tokio::test]
async fn provider_errors_have_a_remedy_and_redact_the_key() {
    let brave = json!({"type": "ErrorResponse", "error": {"id": "x", "status": 422, "code": "SUBSCRIPTION_TOKEN_INVALID",
        "detail": format!("The provided subscription token {KEY} is invalid."), "meta": {"component": "authentication"}}});
    let tavily = json!({"detail": {"error": "Unauthorized: missing or invalid API key."}});
    let engines = json!({"query": "x", "results": [], "unresponsive_engines": [["google", "access denied"]]});
    for (provider, status, headers, body, expected) in [
        (
            "searxng",
            "403 Forbidden",
            "content-type: text/html\r\n",
            "<!doctype html><title>403 Forbidden</title>".to_owned(),
            "SearXNG refused the search with HTTP 403 (its operator must allow JSON: `formats: [html, json]` under `search` in settings.yml)",
        ),
        (
            "brave",
            "422 Unprocessable Entity",
            JSON,
            brave.to_string(),
            "Brave refused the search with HTTP 422: The provided subscription token … is invalid. (check the key)",
        ),
        (
            "tavily",
            "401 Unauthorized",
            JSON,
            tavily.to_string(),
            "Tavily refused the search with HTTP 401: Unauthorized: missing or invalid API key. (check the key)",
        ),
        (
            "tavily",
            "432 Limit",
            JSON,
            json!({"detail": {"error": "This request exceeds your plan's set usage limit."}}).to_string(),
            "Tavily refused the search with HTTP 432: This request exceeds your plan's set usage limit. (the limit of the key is reached)",
        ),
        (
            "searxng",
            "302 Found",
            "location: http://169.254.169.254/\r\n",
            String::new(),
            "SearXNG refused the search with HTTP 302 (it redirects; set the final address as `url`)",
        ),
        (
            "searxng",
            "200 OK",
            JSON,
            engines.to_string(),
            "SearXNG found nothing, and its engines did not answer: google (access denied)",
        ),
        ("searxng", "200 OK", JSON, "<html>".to_owned(), "SearXNG answered no JSON: "),
        ("tavily", "200 OK", JSON, "{}".to_owned(), "Tavily answered without a list of results"),
        (
            "searxng",
            "200 OK",
            JSON,
            "x".repeat(SEARCH_ANSWER_BYTES_MAX + 1),
            "SearXNG answered with more than 2000000 bytes",
        ),
    ] {
        let service = service(status, headers, body).await;
        let settings = json!({"provider": provider, "url": service.url("/search")});
        let message = refused(settings, json!({"query": "x"})).await;
        assert!(message.starts_with(expected), "expected {expected}, got {message}");
    }
}

/// Leads every name to this machine.
struct ToThisMachine;

#[async_trait]
impl HostResolver for ToThisMachine {
    async fn resolve(&self, _name: &str) -> std::io::Result<Vec<IpAddr>> {
        Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])
    }
}

#[tokio::test]
async fn default_provider_address_must_be_public() {
    let source = source(json!({"provider": "tavily"}))
        .with_transport(Arc::new(ToThisMachine), Arc::new(ReqwestTransport));
    let toolbox = toolbox(source).await;
    let call = ToolInvocation::new("call_1", "web.search", CallArguments::from_value(json!({"query": "x"})));
    let outcome = ToolExecutor::default().run(&toolbox.registry(), call, |_| async {}).await;
    let CallOutcome::Failed { message, .. } = outcome else { panic!("{outcome:?}") };
    assert!(message.starts_with("`api.tavily.com` resolves to 127.0.0.1, which is not public"), "{message}");
}

#[tokio::test]
async fn invalid_search_settings_are_faults_with_a_remedy() {
    for (settings, expected) in [
        (json!({"provider": "searxng"}), "SearXNG needs `url`, the address of your instance"),
        (json!({"provider": "searxng", "url": "ftp://x"}), "url: `ftp` must be http or https"),
        (
            json!({"provider": "brave", "key": "$NO_SUCH_KEY"}),
            "key: the environment variable NO_SUCH_KEY is not set",
        ),
        (json!({"provider": "tavily", "results": 21}), "results: 21 is not from 1 to 20"),
    ] {
        let toolbox = toolbox(source(settings)).await;
        let faults = toolbox.faults();
        assert_eq!(faults.len(), 1, "{expected}");
        assert_eq!((faults[0].message.as_str(), faults[0].remedy.is_some()), (expected, true));
        assert_eq!(toolbox.registry().len(), 0);
    }
    let offered =
        toolbox(source(json!({"provider": "brave"}))).await.registry().offered(&ToolToggles::default());
    assert_eq!(
        (offered[0].name.as_str(), offered[0].effect, offered[0].timeout_ms),
        ("web.search", Effect::Read, 15_000)
    );
    let settings = json!({"provider": "searxng", "url": "http://127.0.0.1:9"});
    for arguments in [
        json!({}),
        json!({"query": "  "}),
        json!({"query": "x".repeat(401)}),
        json!({"query": "x", "count": 0}),
    ] {
        let outcome = search(settings.clone(), arguments).await;
        assert!(matches!(outcome, CallOutcome::NotStarted(_)), "{outcome:?}");
    }
}
