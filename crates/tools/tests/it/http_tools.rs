//! HTTP endpoints as tools: the requests, the permitted addresses, and the absence of secrets in responses.

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use throughline_tools::builtin::http::{
    ExchangeError, HostResolver, HttpResponse, HttpTransport, PinnedRequest,
};
use throughline_tools::http_tool::{HttpTool, HttpToolSource};
use throughline_tools::process::SpawnContext;
use throughline_tools::{ToolExecutor, ToolInvocation, Toolbox};
use throughline_wire::{CallArguments, CallOutcome, NotStarted, ToolOutput};

const SECRET: &str = "tl-canary/0123+456=789";
const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 216, 34));
const PRIVATE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 5));

/// Names that begin with `private` are private.
struct Names;

#[async_trait]
impl HostResolver for Names {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(vec![if name.starts_with("private") { PRIVATE } else { PUBLIC }])
    }
}

/// A reply: status, headers, body.
type Page = (u16, Vec<(&'static str, String)>, Vec<u8>);

/// Answers as scripted, in turn, the last one repeatedly, and records the requests.
#[derive(Default)]
struct Web {
    replies: Mutex<Vec<Page>>,
    requests: Mutex<Vec<PinnedRequest>>,
}

#[async_trait]
impl HttpTransport for Web {
    async fn send(&self, request: PinnedRequest) -> Result<HttpResponse, ExchangeError> {
        self.requests.lock().unwrap().push(request);
        let mut replies = self.replies.lock().unwrap();
        let (status, headers, body) = if replies.len() > 1 { replies.remove(0) } else { replies[0].clone() };
        let headers = headers.iter().map(|(name, value)| {
            (HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap())
        });
        let body = Box::pin(futures_util::stream::iter([Ok(body.into())]));
        Ok(HttpResponse { status, headers: headers.collect::<HeaderMap>(), body })
    }
}

fn page(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Page {
    (status, vec![("content-type", content_type.to_owned())], body.into())
}

fn redirect(status: u16, to: &str) -> Page {
    (status, vec![("location", to.to_owned())], Vec::new())
}

struct Asked {
    outcome: CallOutcome,
    requests: Vec<PinnedRequest>,
}

async fn toolbox(tools: Value, web: Arc<Web>) -> Toolbox {
    let tools: BTreeMap<String, HttpTool> = serde_json::from_value(tools).unwrap();
    let environment = BTreeMap::from([("API_KEY".to_owned(), SECRET.to_owned())]);
    let spawn_context = SpawnContext { environment, ..SpawnContext::default() };
    let toolbox = Toolbox::new([]).unwrap();
    toolbox.add(Arc::new(HttpToolSource::new(tools, spawn_context).with_transport(Arc::new(Names), web)));
    toolbox.wait_ready(Duration::from_secs(20)).await;
    toolbox
}

/// Calls a tool of these settings (its description is added) on a web with these replies.
async fn ask(settings: Value, arguments: Value, replies: Vec<Page>) -> Asked {
    let web = Arc::new(Web { replies: Mutex::new(replies), requests: Mutex::default() });
    let mut settings = settings;
    settings["description"] = json!("a test");
    let toolbox = toolbox(json!({ "web.it": settings }), web.clone()).await;
    assert_eq!(toolbox.faults(), []);
    let call = ToolInvocation::new("call_1", "web.it", CallArguments::from_value(arguments));
    let outcome = ToolExecutor::default().run(&toolbox.registry(), call, |_| async {}).await;
    let requests = web.requests.lock().unwrap().clone();
    Asked { outcome, requests }
}

fn output(outcome: CallOutcome) -> ToolOutput {
    match outcome {
        CallOutcome::Done(output) => output,
        other => panic!("{other:?}"),
    }
}

fn why(outcome: &CallOutcome) -> &str {
    match outcome {
        CallOutcome::Failed { message, .. } | CallOutcome::Unknown { message: Some(message), .. } => message,
        CallOutcome::NotStarted(NotStarted::InvalidArguments { message }) => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn request_is_built_from_settings_and_arguments() {
    let settings = json!({
        "method": "POST", "url": "https://api.example.com/v1/{city}?units={units}",
        "query": {"key": "$API_KEY"}, "headers": {"authorization": "Bearer $API_KEY", "x-plain": "yes"},
        "body": {"about": "{city}", "tags": "{tags}", "note": "in {city}"},
        "parameters": {"type": "object", "required": ["city"], "properties": {
            "city": {"type": "string"}, "units": {"enum": ["c", "f"]}, "tags": {"type": "array", "items": {"type": "string"}}}},
        "answer": "/current/0",
    });
    let reply = page(200, "application/json", r#"{"current": [{"degrees": 21}]}"#);
    let asked = ask(settings, json!({"city": "New York", "tags": ["a"]}), vec![reply]).await;
    let answer = output(asked.outcome);
    assert_eq!((answer.value, answer.text.as_str()), (Some(json!({"degrees": 21})), "{\"degrees\":21}"));
    let request = &asked.requests[0];
    assert_eq!(request.method, "POST");
    assert_eq!(
        request.url.as_str(),
        "https://api.example.com/v1/New%20York?key=tl-canary%2F0123%2B456%3D789"
    );
    assert_eq!(request.addresses, [(PUBLIC, 443).into()]);
    assert_eq!(request.headers["authorization"], format!("Bearer {SECRET}"));
    assert_eq!(request.headers["content-type"], "application/json");
    let sent: Value = serde_json::from_slice(request.body.as_ref().unwrap()).unwrap();
    assert_eq!(sent, json!({"about": "New York", "tags": ["a"], "note": "in New York"}));
}

#[tokio::test]
async fn schema_is_derived_from_template_arguments() {
    let web = Arc::new(Web::default());
    let settings = json!({"description": "d", "url": "https://x.org/{city}?q={query}&city={city}"});
    let toolbox = toolbox(json!({"now": settings}), web).await;
    let registry = toolbox.registry();
    let spec = registry.get(&"http_tools.now".into()).unwrap().spec().clone();
    assert_eq!(spec.parameters["required"], json!(["city"]));
    assert_eq!(
        spec.parameters["properties"],
        json!({"city": {"type": "string"}, "query": {"type": "string"}})
    );
    assert_eq!(spec.source, "http_tools");
    assert_eq!(spec.effect, throughline_tools::Effect::External, "what is not said counts as the most");
}

#[tokio::test]
async fn http_tool_results_are_text_images_or_failures() {
    let get = || json!({"url": "https://x.org/{a}"});
    let a = json!({"a": "1"});
    let asked = ask(get(), a.clone(), vec![page(200, "text/plain", "plain text")]).await;
    assert_eq!(output(asked.outcome).text, "plain text");
    let asked = ask(get(), a.clone(), vec![page(200, "image/png", b"\x89PNG".to_vec())]).await;
    let answer = output(asked.outcome);
    assert_eq!((answer.media[0].media_type.as_str(), answer.media[0].data()), ("image/png", "iVBORw=="));
    for (reply, pointer, expected) in [
        (
            page(404, "text/html", "<h1>no such city</h1>"),
            "",
            "https://x.org/1 answered HTTP 404 Not Found: <h1>no such city</h1>",
        ),
        (page(500, "", ""), "", "https://x.org/1 answered HTTP 500 Internal Server Error"),
        (
            page(200, "application/json", "{\"b\":1}"),
            "/a",
            "there is nothing at /a of the answer of https://x.org/1",
        ),
        (
            page(200, "application/json", "oops"),
            "/a",
            "the answer of https://x.org/1 is not JSON: expected value at line 1 column 1",
        ),
        (
            page(200, "application/zip", b"PK\0\0".to_vec()),
            "",
            "https://x.org/1 returned application/zip, which is neither text nor an image",
        ),
        (
            page(200, "text/plain", vec![b'x'; 10_000_001]),
            "",
            "https://x.org/1 answered with more than 10000000 bytes",
        ),
    ] {
        let mut settings = get();
        if !pointer.is_empty() {
            settings["answer"] = json!(pointer);
        }
        let asked = ask(settings, a.clone(), vec![reply]).await;
        assert_eq!(why(&asked.outcome), expected);
    }
}

#[tokio::test]
async fn answer_is_decoded_in_its_charset() {
    let beijing = b"{\"\xb3\xc7\xca\xd0\":\"\xb1\xb1\xbe\xa9\"}";
    let whole = "{\"城市\":\"北京\"}";
    let url = json!({"url": "https://x.org/"});
    let check = async |settings: &Value, content_type: &str, body: &[u8], expected: &str| {
        let asked = ask(settings.clone(), json!({}), vec![page(200, content_type, body)]).await;
        assert_eq!(output(asked.outcome).text, expected, "{content_type}");
    };
    check(&url, "application/json; charset=gbk", beijing, whole).await;
    check(&url, "text/plain;charset=\"GB2312\"", beijing, whole).await;
    check(&url, "text/html; charset=Shift_JIS", b"\x93\x8c\x8b\x9e", "東京").await;
    check(&url, "text/html", b"<meta charset=gbk>\xb1\xb1", "<meta charset=gbk>北").await;
    check(&url, "application/json", &[b"\xef\xbb\xbf", whole.as_bytes()].concat(), whole).await;
    check(&url, "application/json; charset=latin1", whole.as_bytes(), whole).await;
    check(
        &url,
        "text/plain; charset=gbk",
        b"\xb1\xb1\xff",
        "北\u{fffd}\n\nNote: Bytes that are not GBK are shown as \u{fffd}.",
    )
    .await;
    let answer = json!({"url": "https://x.org/", "answer": "/城市"});
    check(&answer, "application/json; charset=gbk", beijing, "北京").await;

    let reply = page(404, "text/plain; charset=gbk", b"\xb1\xb1\xbe\xa9");
    let asked = ask(url, json!({}), vec![reply]).await;
    assert_eq!(why(&asked.outcome), "https://x.org/ answered HTTP 404 Not Found: 北京");
}

#[tokio::test]
async fn requests_and_redirects_reach_only_allowed_hosts() {
    let a = json!({});
    let refused = async |settings: Value, replies: Vec<Page>, expected: &str| {
        let asked = ask(settings, a.clone(), replies).await;
        assert!(why(&asked.outcome).contains(expected), "{:?}", asked.outcome);
        asked.requests.len()
    };
    let ok = || page(200, "text/plain", "in");
    let by_name = json!({ "url": "http://private.example/" });
    assert_eq!(refused(by_name, vec![ok()], "was not requested: `").await, 0);
    // The settings name a host: that one and no other.
    let open = json!({"url": "http://private.example:8080/", "private_hosts": ["private.example:8080"]});
    let asked = ask(open, a.clone(), vec![ok()]).await;
    assert_eq!(
        (output(asked.outcome).text.as_str(), asked.requests[0].addresses[0]),
        ("in", (PRIVATE, 8080).into())
    );
    let other_port =
        json!({"url": "http://private.example:8081/", "private_hosts": ["private.example:8080"]});
    assert_eq!(refused(other_port, vec![ok()], "not public").await, 0);
    let redirecting = || json!({"url": "https://x.org/", "private_hosts": ["10.9.9.9"]});
    for target in ["http://private.example/", "http://10.0.0.5/", "https://x.org:22/", "file:///etc/passwd"] {
        assert_eq!(
            refused(redirecting(), vec![redirect(302, target), ok()], "was not requested: ").await,
            1,
            "{target}"
        );
    }
    let loops = vec![redirect(302, "https://x.org/")];
    assert_eq!(refused(redirecting(), loops, "more than 3 redirects").await, 4);
    let post = json!({"url": "https://x.org/", "method": "POST", "body": "arguments"});
    for status in [301, 302, 307, 308] {
        let replies = vec![redirect(status, "https://x.org/again"), ok()];
        assert_eq!(
            refused(post.clone(), replies, "redirects a POST request to https://x.org/again").await,
            1
        );
    }
    let asked = ask(post, a.clone(), vec![redirect(303, "https://x.org/result"), ok()]).await;
    assert_eq!((asked.requests[1].method.as_str(), asked.requests[1].body.as_ref()), ("GET", None));
}

#[tokio::test]
async fn secrets_stay_at_their_origin_and_are_redacted() {
    let settings = || {
        json!({
            "url": "https://x.org/{a}", "query": {"key": "$API_KEY"},
            "headers": {"authorization": "Basic $API_KEY", "x-half": "a$API_KEY"},
        })
    };
    let replies = vec![redirect(302, "https://other.org/x"), page(200, "text/plain", "in")];
    let asked = ask(settings(), json!({"a": "1"}), replies).await;
    assert!(!format!("{:?} {}", asked.requests[1].headers, asked.requests[1].url).contains("canary"));
    assert!(asked.requests[1].headers.is_empty());

    let echo = format!(
        "{SECRET} {} {} key=tl-canary%2F0123%2B456%3D789 tl-canary%2f0123%2b456%3d789 {}",
        STANDARD.encode(SECRET),
        STANDARD.encode(format!("user:{SECRET}")),
        serde_json::to_string(SECRET).unwrap().replace('/', "\\/"),
    );
    let in_json = json!({"echo": echo, SECRET: [echo]}).to_string();
    let mut everything = String::new();
    for reply in [
        page(200, "text/plain", echo.clone()),
        page(200, "application/json", in_json.clone()),
        page(401, "text/plain", format!("wrong key: {echo}")),
        page(500, "application/json", in_json),
        page(200, "image/png", SECRET),
        redirect(302, &format!("http://127.0.0.1/{SECRET}?k={SECRET}")),
        redirect(302, &format!("http://[{SECRET}")),
    ] {
        let asked = ask(settings(), json!({"a": "1"}), vec![reply]).await;
        everything.push_str(&format!("{:?}\n", asked.outcome));
    }
    for form in ["canary", "Y2FuYXJ5", "NhbmFye", "jYW5hcn", "0123+456", "0123%2"] {
        assert!(!everything.contains(form), "{form} in {everything}");
    }
    assert!(everything.contains("wrong key: … … "), "the rest is told: {everything}");
}

#[tokio::test]
async fn invalid_http_tool_is_one_fault_and_others_work() {
    for (settings, message) in [
        (json!({"url": "x.org"}), "url: it does not begin with http:// or https://"),
        (json!({"url": "https://{host}/"}), "url: the host cannot be an argument"),
        (
            json!({"url": "https://x.org/", "headers": {"a": "$MISSING_KEY"}}),
            "headers.a: the environment variable MISSING_KEY is not set",
        ),
        (
            json!({"url": "https://x.org/", "headers": {"a b": "1"}}),
            "headers.a b: this is no name of a header",
        ),
        (
            json!({"url": "https://x.org/", "headers": {"a": "x\ny"}}),
            "headers.a: its value cannot be sent in a header",
        ),
        (
            json!({"url": "https://x.org/", "query": {"k": "$MISSING_KEY"}}),
            "query.k: the environment variable MISSING_KEY is not set",
        ),
        (json!({"url": "https://x.org/", "body": "arguments"}), "a GET or HEAD request has no body"),
        (
            json!({"url": "https://x.org/", "method": "POST", "body": "{a}"}),
            "body: \"{a}\" must be a table or \"arguments\"",
        ),
        (json!({"url": "https://x.org/", "answer": "current"}), "answer: `current` is no JSON pointer"),
        (
            json!({"url": "https://x.org/", "private_hosts": ["http://x/"]}),
            "private_hosts: `http://x/` is no host; write HOST or HOST:PORT",
        ),
        (
            json!({"url": "https://x.org/{a}", "parameters": {"type": "object"}}),
            "{a} is no parameter of the schema",
        ),
        (
            json!({"url": "https://x.org/", "method": "POST", "body": {"a": "{b}"}, "parameters": {"type": "object"}}),
            "{b} is no parameter of the schema",
        ),
        (json!({"url": "http://127.0.0.1/"}), "url: 127.0.0.1 is not public (loopback)"),
        (
            json!({"url": "http://169.254.169.254/latest"}),
            "url: 169.254.169.254 is not public (link-local, used by cloud metadata services)",
        ),
        (json!({"url": "http://[::1]/"}), "url: ::1 is not public (loopback)"),
        (json!({"url": "http://localhost/"}), "url: `localhost` is this machine, not a public address"),
        (json!({"url": "https://x.org/", "timeout_ms": 0}), "timeout_ms is 0, so every call would time out"),
        (
            json!({"url": "https://x.org/", "name": "a b.c"}),
            "`a b.c` cannot be a tool's name: it has white space in it",
        ),
    ] {
        let mut settings = settings;
        settings["description"] = json!("d");
        let good = json!({"description": "d", "url": "https://x.org/"});
        let toolbox = toolbox(json!({"bad": settings, "good": good}), Arc::default()).await;
        let faults = toolbox.faults();
        assert_eq!(faults.len(), 1, "{message}: {faults:?}");
        assert_eq!((faults[0].source.as_str(), faults[0].message.as_str()), ("http_tools", message));
        assert_eq!(toolbox.registry().len(), 1, "{message}");
    }
    let strict = serde_json::from_value::<HttpTool>(json!({"description": "d", "url": "u", "methd": "GET"}));
    assert!(strict.unwrap_err().to_string().contains("unknown field `methd`"));
}
