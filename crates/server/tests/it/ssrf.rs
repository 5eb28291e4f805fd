//! Every address of the suites, through the server: an address named by a model, a client or a configuration
//! over the API reaches nothing inside the network.

use crate::support::{TestServer, saying};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use throughline::tools::builtin::http::{
    AllowedPorts, ExchangeError, FetchLimits, HostResolver, HttpFetch, HttpResponse, HttpTransport,
    PinnedRequest, non_public_reason,
};
use throughline_testkit::parsed_request::ParsedMessage;
use throughline_testkit::{ModelScript, ParsedRequest};

const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 216, 34));

/// Host names and pages of one case. Dialled addresses are recorded, and no connection is made.
#[derive(Clone, Default)]
struct Web(Arc<Mutex<Case>>);

#[derive(Default)]
struct Case {
    answers: Vec<Vec<IpAddr>>,
    asked: usize,
    redirect: Option<String>,
    dialled: Vec<PinnedRequest>,
}

#[async_trait]
impl HostResolver for Web {
    async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        let mut case = self.0.lock().unwrap();
        let turn = case.asked.min(case.answers.len().saturating_sub(1));
        case.asked += 1;
        case.answers.get(turn).cloned().ok_or_else(|| io::Error::other("no such name"))
    }
}

#[async_trait]
impl HttpTransport for Web {
    async fn send(&self, request: PinnedRequest) -> Result<HttpResponse, ExchangeError> {
        let mut case = self.0.lock().unwrap();
        case.dialled.push(request);
        let mut headers = reqwest::header::HeaderMap::new();
        let status = match case.redirect.take() {
            Some(target) => {
                headers.insert(
                    "location",
                    target.parse().map_err(|_| ExchangeError::NotSent("no header".to_owned()))?,
                );
                302
            }
            None => 200,
        };
        headers.insert(
            "content-type",
            "text/plain".parse().map_err(|_| ExchangeError::NotSent("no header".to_owned()))?,
        );
        let body = futures_util::stream::iter([Ok("ok".into())]);
        Ok(HttpResponse { status, headers, body: Box::pin(body) })
    }
}

impl Web {
    fn of(&self, case: &Value) {
        // Where the suite gives no answers, a public one: then the address itself is what has to be refused.
        let answers = case["dns"].as_array().map_or(vec![vec![PUBLIC]], |answers| {
            let address = |text: &Value| text.as_str().unwrap().parse().unwrap();
            answers.iter().map(|answer| answer.as_array().unwrap().iter().map(address).collect()).collect()
        });
        let redirect = case["redirect"].as_str().map(str::to_owned);
        *self.0.lock().unwrap() = Case { answers, redirect, ..Case::default() };
    }
}

/// A model that fetches the address in the user's message.
fn fetcher(seen: &ParsedRequest) -> ModelScript {
    match seen.messages.last() {
        Some(ParsedMessage::User { text, .. }) => ModelScript::new().call("http_fetch", json!({"url": text})),
        _ => ModelScript::new().say("Read."),
    }
}

/// The cases of the repository, and those of the shared suite if it is there.
fn suite() -> Vec<Value> {
    let mut text = include_str!("../../../tools/tests/ssrf/urls.jsonl").to_owned();
    match std::env::var_os("THROUGHLINE_VECTORS") {
        Some(shared) => {
            let path = std::path::Path::new(&shared).join("suites/ssrf/urls.jsonl");
            text.push_str(&std::fs::read_to_string(path).unwrap());
        }
        None => println!("skipped: the shared addresses; THROUGHLINE_VECTORS is not set"),
    }
    let cases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(cases.len() >= 70, "only {} cases", cases.len());
    cases
}

/// Checks that every address dialled for a case is public, and that none is dialled if the suite forbids it.
fn check(web: &Web, case: &Value, is_done: bool) {
    let seen = web.0.lock().unwrap();
    for address in seen.dialled.iter().flat_map(|request| &request.addresses) {
        assert_eq!(non_public_reason(address.ip()), None, "dialled {address}: {case}");
    }
    match (case["verdict"].as_str().unwrap(), case.get("expect")) {
        ("allow", _) => assert!(is_done, "{case}"),
        ("block", None) => assert!(!is_done, "not blocked: {case}"),
        // More than a verdict: what was dialled, which is checked above, and with what, in the tool's own tests.
        ("block", Some(_)) => {}
        other => panic!("unknown verdict {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_fetch_never_reaches_internal_addresses() {
    let cases = suite();
    let web = Web::default();
    let fetch = web.clone();
    let build = move |builder: throughline::ThroughlineBuilder| {
        let web = Arc::new(fetch.clone());
        builder.tool(
            HttpFetch::new(FetchLimits::default(), AllowedPorts::default())
                .with_hosts(["*".to_owned()])
                .with_transport(web.clone(), web),
        )
    };
    let server = TestServer::start_with(fetcher, build, Default::default()).await;
    for case in &cases {
        let url = case["url"].as_str().unwrap();
        // A model names it, because a user did.
        web.of(case);
        let turn = server.say(url).await;
        let events = server.follow(&turn, 0).await.rest().await;
        let result = events.iter().find(|event| event.name == "tool_result").expect("the call ended");
        check(&web, case, result.data["status"] == "success");

        // A person names it, without a model in between.
        web.of(case);
        let call = json!({"arguments": {"url": url}});
        let (status, said) = server.post("/v1/tools/http.fetch/call", call).await;
        assert!(status < 500, "{case}: {said}");
        check(&web, case, said["status"] == "success");

        // A client sends it as a picture: addresses are not fetched, neither here nor by the model's provider for us.
        web.of(case);
        let asked = server.upstream.exchanges().len();
        let picture = json!({"type": "image_url", "image_url": {"url": url}});
        let body = json!({"model": "test/m", "messages": [{"role": "user", "content": [picture]}]});
        let (status, said) = server.post("/v1/chat/completions", body).await;
        assert_eq!(status, 400, "{case}: {said}");
        assert_eq!(server.upstream.exchanges().len(), asked, "{case}");
        assert!(web.0.lock().unwrap().dialled.is_empty(), "{case}");
    }
}

#[tokio::test]
async fn api_accepts_no_connection_address() {
    let server = TestServer::start(throughline_testkit::ScriptQueue::new([])).await;
    let inside = "http://169.254.169.254/latest/meta-data/";
    for settings in [
        json!({"model": "test/m", "base_url": inside}),
        json!({"model": inside}),
        json!({"model": {"base_url": inside}}),
        json!({"model": "test/m", "mcp": {"x": {"url": inside}}}),
        json!({"model": "test/m", "http_tools": [{"name": "x", "url": inside}]}),
        json!({"model": "test/m", "upstreams": {"x": {"dialect": "openai-chat", "base_url": inside}}}),
    ] {
        let agent = json!({"name": "inside", "settings": settings});
        let (status, said) = server.post("/v1/agents", agent).await;
        if status == 201 {
            // A model with this name is not used as an address.
            let turn = json!({"agent": "inside", "input": saying("x")["input"]});
            let (status, said) = server.post("/v1/turns", turn).await;
            assert_eq!(status, 400, "{settings}: {said}");
            let gone = server.client().delete(server.url("/v1/agents/inside")).send().await.unwrap();
            assert!(gone.status().is_success());
            continue;
        }
        assert_eq!(status, 400, "{settings}: {said}");
    }
    for body in [
        json!({"input": [{"type": "image", "url": inside}]}),
        json!({"input": [{"type": "image", "file_id": inside}]}),
        json!({"input": [{"type": "text", "text": "x"}], "base_url": inside}),
        json!({"input": [{"type": "text", "text": "x"}], "webhook": inside}),
    ] {
        let (status, said) = server.post("/v1/turns", body.clone()).await;
        assert!([400, 404].contains(&status), "{body}: {status} {said}");
    }
    assert!(server.upstream.exchanges().is_empty());
}
