//! `http.fetch` reads public addresses and reaches nothing else.

use async_trait::async_trait;
use futures_util::StreamExt;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use throughline_tools::builtin::http::{
    AllowedPorts, ExchangeError, FetchLimits, HostResolver, HttpFetch, HttpResponse, HttpTransport,
    PinnedRequest, non_public_reason,
};
use throughline_tools::{ToolExecutor, ToolInvocation, ToolRegistry};
use throughline_wire::{CallArguments, CallOutcome, NotStarted, ToolOutput};

const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 216, 34));

/// A resolver that gives its answers in turn, the last one repeatedly, and counts the queries.
struct Answers {
    answers: Vec<Vec<IpAddr>>,
    asked: Mutex<Vec<String>>,
}

impl Answers {
    fn new(answers: Vec<Vec<IpAddr>>) -> Arc<Self> {
        Arc::new(Self { answers, asked: Mutex::default() })
    }
    fn public() -> Arc<Self> {
        Self::new(vec![vec![PUBLIC]])
    }
}

#[async_trait]
impl HostResolver for Answers {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let mut asked = self.asked.lock().unwrap();
        let turn = asked.len().min(self.answers.len().saturating_sub(1));
        asked.push(name.to_owned());
        self.answers.get(turn).cloned().ok_or_else(|| io::Error::other("no such name"))
    }
}

/// A web where each address answers as scripted, in turn, and every request is on record.
#[derive(Default)]
struct Web {
    replies: Mutex<Vec<Page>>,
    requests: Mutex<Vec<PinnedRequest>>,
}

#[derive(Clone, Default)]
struct Page {
    status: u16,
    headers: Vec<(&'static str, String)>,
    pieces: Vec<Vec<u8>>,
    hangs: bool,
}

impl Page {
    fn text(text: &str) -> Self {
        let headers = vec![("content-type", "text/plain; charset=utf-8".to_owned())];
        Self { status: 200, headers, pieces: vec![text.into()], hangs: false }
    }
    fn redirect(to: &str) -> Self {
        Self { status: 302, headers: vec![("location", to.to_owned())], ..Self::default() }
    }
}

impl Web {
    fn new(replies: Vec<Page>) -> Arc<Self> {
        Arc::new(Self { replies: Mutex::new(replies), requests: Mutex::default() })
    }
    fn requests(&self) -> Vec<PinnedRequest> {
        self.requests.lock().unwrap().clone()
    }
}

#[async_trait]
impl HttpTransport for Web {
    async fn send(&self, request: PinnedRequest) -> Result<HttpResponse, ExchangeError> {
        self.requests.lock().unwrap().push(request);
        let page = {
            let mut replies = self.replies.lock().unwrap();
            if replies.len() > 1 { replies.remove(0) } else { replies.first().cloned().unwrap_or_default() }
        };
        let header = |(name, value): &(&'static str, String)| {
            (HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap())
        };
        let headers = page.headers.iter().map(header).collect::<HeaderMap>();
        let body = futures_util::stream::iter(page.pieces.into_iter().map(|piece| Ok(piece.into())));
        let body =
            if page.hangs { body.chain(futures_util::stream::pending()).boxed() } else { body.boxed() };
        Ok(HttpResponse { status: page.status, headers, body })
    }
}

async fn fetch_with(
    limits: FetchLimits,
    web: &Arc<Web>,
    dns: &Arc<Answers>,
    arguments: Value,
) -> CallOutcome {
    // Where a redirect may lead by its host alone is tested on its own.
    fetch_from(
        HttpFetch::new(limits, AllowedPorts::default()).with_hosts(["*".to_owned()]),
        web,
        dns,
        arguments,
    )
    .await
}

async fn fetch_from(tool: HttpFetch, web: &Arc<Web>, dns: &Arc<Answers>, arguments: Value) -> CallOutcome {
    let tool = tool.with_transport(dns.clone(), web.clone());
    let registry = ToolRegistry::builder().tool(tool).build().unwrap();
    let call = ToolInvocation::new("call_1", "http.fetch", CallArguments::from_value(arguments));
    ToolExecutor::default().run(&registry, call, |_| async {}).await
}

async fn fetch(web: &Arc<Web>, dns: &Arc<Answers>, arguments: Value) -> CallOutcome {
    fetch_with(FetchLimits::default(), web, dns, arguments).await
}

fn message(outcome: &CallOutcome) -> &str {
    match outcome {
        CallOutcome::Failed { message, .. }
        | CallOutcome::NotStarted(NotStarted::InvalidArguments { message }) => message,
        other => panic!("{other:?}"),
    }
}

fn output(outcome: CallOutcome) -> ToolOutput {
    match outcome {
        CallOutcome::Done(output) => output,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn internal_addresses_are_refused_in_every_notation() {
    check_addresses(include_str!("../ssrf/urls.jsonl")).await;
}

#[tokio::test]
async fn the_ssrf_suite_passes() {
    let Some(shared) = std::env::var_os("THROUGHLINE_VECTORS") else {
        println!(
            "skipped: THROUGHLINE_VECTORS is not set; the addresses of the repository are checked by another test"
        );
        return;
    };
    let path = std::path::Path::new(&shared).join("suites/ssrf/urls.jsonl");
    check_addresses(&std::fs::read_to_string(path).unwrap()).await;
}

/// A case a line: an address, what its name resolves to in turn, where its page leads, and whether it may be read.
async fn check_addresses(suite: &str) {
    let mut cases = 0;
    for line in suite.lines().filter(|line| !line.trim().is_empty()) {
        let case: Value = serde_json::from_str(line).unwrap();
        cases += 1;
        // Where the suite gives no answers, a public one: then the address itself is what has to be refused.
        let answers = case["dns"].as_array().map_or(vec![vec![PUBLIC]], |answers| {
            let address = |text: &Value| text.as_str().unwrap().parse().unwrap();
            answers.iter().map(|answer| answer.as_array().unwrap().iter().map(address).collect()).collect()
        });
        let dns = Answers::new(answers);
        let last = Page::text("ok");
        let web = match case["redirect"].as_str() {
            Some(target) => Web::new(vec![Page::redirect(target), last]),
            None => Web::new(vec![last]),
        };
        let headers = "Authorization: Bearer secret\nCookie: session=secret";
        let outcome = fetch(&web, &dns, json!({"url": case["url"], "headers": headers})).await;

        let is_done = matches!(outcome, CallOutcome::Done(_));
        let requests = web.requests();
        for request in &requests {
            for address in &request.addresses {
                assert_eq!(non_public_reason(address.ip()), None, "dialled {address}: {line}");
            }
            let has_secret =
                request.headers.contains_key("authorization") || request.headers.contains_key("cookie");
            let is_first_origin = request.url.origin() == requests[0].url.origin();
            assert!(!has_secret || is_first_origin, "credentials went to {}: {line}", request.url);
        }
        match (case["verdict"].as_str().unwrap(), case["expect"].as_str()) {
            ("allow", _) => assert!(is_done, "{outcome:?}: {line}"),
            ("block", None) => assert!(!is_done, "not blocked: {line}"),
            // These two also expect details that are checked above: the dialled address and the request.
            ("block", Some(expected)) => assert!(
                [
                    "either blocked, or dialled only to 93.184.216.34",
                    "followed without credentials, or blocked"
                ]
                .contains(&expected),
                "an expectation that this test does not know: {line}"
            ),
            other => panic!("unknown verdict {other:?}"),
        }
    }
    assert!(cases >= 70, "only {cases} cases");
}

#[tokio::test]
async fn page_is_fetched_with_get_and_head() {
    let (web, dns) = (Web::new(vec![Page::text("天气好")]), Answers::public());
    let output = output(fetch(&web, &dns, json!({"url": "https://example.com/a?b=c#d"})).await);
    assert_eq!(
        output.text,
        "HTTP 200 OK\nURL: https://example.com/a?b=c#d\nContent-Type: text/plain; charset=utf-8\n\n天气好"
    );
    assert_eq!(output.value.unwrap()["status"], json!(200));
    let requests = web.requests();
    assert_eq!(requests[0].method, "GET");
    assert_eq!(requests[0].addresses, [(PUBLIC, 443).into()]);
    let head = output_of_head().await;
    assert_eq!(head, "HEAD");
}

/// A page of another encoding, in GBK: `价格`.
const PRICE: &[u8] = b"\xbc\xdb\xb8\xf1";

#[tokio::test]
async fn page_is_decoded_in_its_charset() {
    for (content_type, body, expected) in [
        ("text/plain; charset=GBK", PRICE.to_vec(), "\n\n价格"),
        ("text/html", [b"<meta charset=gbk>", PRICE].concat(), "\n\n<meta charset=gbk>价格"),
        ("application/json; charset=gbk", [b"\"", PRICE, b"\""].concat(), "\n\n\"价格\""),
        ("text/plain", "价格".into(), "\n\n价格"),
        (
            "text/plain; charset=x-none",
            "价格".into(),
            "\nNote: The charset `x-none` is unknown here.\n\n价格",
        ),
        (
            "text/plain",
            b"Caf\xe9".to_vec(),
            "\nNote: The text is not UTF-8 and declares no known charset; decoded as windows-1252, some \
             characters may be wrong.\n\nCafé",
        ),
    ] {
        let headers = vec![("content-type", content_type.to_owned())];
        let web = Web::new(vec![Page { status: 200, headers, pieces: vec![body], hangs: false }]);
        let output = output(fetch(&web, &Answers::public(), json!({"url": "https://x.test/"})).await);
        let expected = format!("HTTP 200 OK\nURL: https://x.test/\nContent-Type: {content_type}{expected}");
        assert_eq!(output.text, expected);
    }
}

#[tokio::test]
async fn body_limit_bounds_text_and_never_splits_a_character() {
    for (content_type, body, expected) in [
        ("text/plain", "价格价格".as_bytes(), "价格价"),
        ("text/plain; charset=gbk", PRICE, "价格"),
        ("text/plain; charset=gbk", &PRICE.repeat(2), "价格价"),
        ("text/plain; charset=latin1", &[0xe9; 9], "ééééé"),
    ] {
        let limits = FetchLimits { body_bytes_max: 10, ..FetchLimits::default() };
        let headers = vec![("content-type", content_type.to_owned())];
        let web = Web::new(vec![Page { status: 200, headers, pieces: vec![body.to_vec()], hangs: false }]);
        let fetched = fetch_with(limits, &web, &Answers::public(), json!({"url": "https://x.test/"})).await;
        let output = output(fetched);
        assert!(output.text.ends_with(&format!("\n\n{expected}")), "{content_type}: {}", output.text);
        let is_cut = expected != "价格";
        assert_eq!(output.value.unwrap()["cut"], json!(is_cut), "{content_type}: {expected}");
        assert_eq!(output.text.contains("were read."), is_cut, "{content_type}: {expected}");
    }
}

async fn output_of_head() -> String {
    let (web, dns) = (Web::new(vec![Page::text("")]), Answers::public());
    output(fetch(&web, &dns, json!({"url": "http://example.com/", "method": "HEAD"})).await);
    assert_eq!(web.requests()[0].addresses, [(PUBLIC, 80).into()]);
    web.requests()[0].method.to_string()
}

/// The first answer is public and the second is not: code that resolves twice is caught.
#[tokio::test]
async fn name_is_resolved_once_and_its_address_is_dialled() {
    let dns = Answers::new(vec![vec![PUBLIC], vec!["127.0.0.1".parse().unwrap()]]);
    let web = Web::new(vec![Page::text("ok")]);
    output(fetch(&web, &dns, json!({"url": "http://rebind.test/"})).await);
    assert_eq!(*dns.asked.lock().unwrap(), ["rebind.test"]);
    assert_eq!(web.requests()[0].addresses, [(PUBLIC, 80).into()]);

    // A redirect to the same name asks again, and is refused by the new answer.
    let dns = Answers::new(vec![vec![PUBLIC], vec!["127.0.0.1".parse().unwrap()]]);
    let web = Web::new(vec![Page::redirect("/again"), Page::text("ok")]);
    let outcome = fetch(&web, &dns, json!({"url": "http://rebind.test/"})).await;
    assert_eq!(
        message(&outcome),
        "redirected to http://rebind.test/again: `rebind.test` resolves to 127.0.0.1, which is not public (loopback)"
    );
    assert_eq!(web.requests().len(), 1);
}

#[tokio::test]
async fn refused_urls_are_reported_with_a_reason() {
    for (url, expected) in [
        ("not a url", "/url: not an address: relative URL without a base"),
        ("ftp://example.com/", "/url: only http and https are fetched, not `ftp`"),
        ("file:///etc/passwd", "/url: only http and https are fetched, not `file`"),
        ("http://user:pass@example.com/", "/url: addresses with a user name or password are not fetched"),
        ("http://user@example.com/", "/url: addresses with a user name or password are not fetched"),
        ("https://example.com:8443/", "/url: port 8443 is not allowed"),
        ("http://LocalHost./", "/url: `localhost.` is this machine"),
        ("http://a.localhost/", "/url: `a.localhost` is this machine"),
        (
            "http://[::ffff:a9fe:a9fe]/",
            "/url: `::ffff:169.254.169.254` resolves to ::ffff:169.254.169.254, which is not public \
             (link-local, used by cloud metadata services)",
        ),
    ] {
        let web = Web::new(vec![Page::text("reached")]);
        let outcome = fetch(&web, &Answers::public(), json!({"url": url})).await;
        assert_eq!(message(&outcome), expected, "{url}");
        assert!(web.requests().is_empty(), "{url}");
    }
    for (answers, expected) in [
        (vec![], "/url: the name `x.test` cannot be resolved: no such name"),
        (vec![vec![]], "/url: the name `x.test` has no address"),
    ] {
        let outcome =
            fetch(&Web::new(vec![]), &Answers::new(answers), json!({"url": "http://x.test/"})).await;
        assert_eq!(message(&outcome), expected);
    }
}

#[tokio::test]
async fn redirects_are_limited_to_three_and_checked() {
    let hop = |n: u32| Page::redirect(&format!("https://example.com/{n}"));
    let web = Web::new(vec![hop(1), hop(2), hop(3), Page::text("there")]);
    let output = output(fetch(&web, &Answers::public(), json!({"url": "https://example.com/"})).await);
    assert!(
        output.text.contains("URL: https://example.com/3\n") && output.text.ends_with("there"),
        "{}",
        output.text
    );

    let web = Web::new(vec![hop(1)]);
    let outcome = fetch(&web, &Answers::public(), json!({"url": "https://example.com/"})).await;
    assert_eq!(message(&outcome), "more than 3 redirects");
    assert_eq!(web.requests().len(), 4);
    for target in [
        "http://10.0.0.1/",
        "gopher://example.com/",
        "http://example.com:22/",
        "//127.0.0.1/",
        "http://[::1]/",
    ] {
        let web = Web::new(vec![Page::redirect(target), Page::text("reached")]);
        let outcome = fetch(&web, &Answers::public(), json!({"url": "https://example.com/"})).await;
        assert!(message(&outcome).starts_with("redirected to "), "{target}: {outcome:?}");
        assert_eq!(web.requests().len(), 1, "{target}");
    }
}

#[tokio::test]
async fn credentials_stay_dropped_after_a_cross_origin_redirect() {
    let headers = "Authorization: Bearer s\nCookie: s\n\n  X-Api-Key:s  \r\nAccept: text/html\n";
    let arguments = json!({"url": "https://one.test/", "headers": headers});
    let replies =
        [Page::redirect("/same"), Page::redirect("http://one.test/"), Page::redirect("https://one.test/")];
    let web = Web::new(replies.into_iter().chain([Page::text("ok")]).collect());
    output(fetch(&web, &Answers::public(), arguments).await);
    let seen: Vec<(String, usize)> =
        web.requests().iter().map(|request| (request.url.to_string(), request.headers.len())).collect();
    let expected = [
        ("https://one.test/", 4),
        ("https://one.test/same", 4),
        ("http://one.test/", 1),
        ("https://one.test/", 1),
    ];
    assert_eq!(seen, expected.map(|(url, count)| (url.to_owned(), count)));
    assert_eq!(web.requests()[3].headers["accept"], "text/html");
}

#[tokio::test]
async fn connection_and_malformed_headers_are_refused() {
    for name in [
        "Host",
        "Connection",
        "Content-Length",
        "Transfer-Encoding",
        "Proxy-Authorization",
        "X-Forwarded-For",
        "Accept-Encoding",
    ] {
        let outcome = fetch(
            &Web::new(vec![]),
            &Answers::public(),
            json!({"url": "https://example.com/", "headers": format!("Accept: a\n{name}: x")}),
        )
        .await;
        let lower = name.to_lowercase();
        assert_eq!(message(&outcome), format!("/headers: line 2: {lower}: this header cannot be set"));
    }
    let refused = [
        ("a b: x", "line 1: the part before the colon is not a valid header name"),
        (": x", "line 1: the part before the colon is not a valid header name"),
        ("Host : x", "line 1: the part before the colon is not a valid header name"),
        ("x: a\r\nHost: evil", "line 2: host: this header cannot be set"),
        ("x: a\u{b}b", "line 1: x: the value has control characters"),
        ("x: a\rHost: evil", "line 1: x: the value has control characters"),
        ("Accept: a\n\n b", "line 3: this is not `Name: value`"),
        ("Accept: a\naccept: b", "line 2: accept is given twice"),
    ];
    for (headers, expected) in refused {
        let arguments = json!({"url": "https://example.com/", "headers": headers});
        let outcome = fetch(&Web::new(vec![]), &Answers::public(), arguments).await;
        assert_eq!(message(&outcome), format!("/headers: {expected}"), "{headers:?}");
    }
}

#[test]
fn fetch_parameters_have_no_nested_types() {
    let tool = HttpFetch::new(FetchLimits::default(), AllowedPorts::default());
    let spec = throughline_tools::Tool::definition(&tool);
    for (name, schema) in spec.parameters["properties"].as_object().unwrap() {
        let nested = matches!(schema["type"].as_str(), Some("object" | "array"));
        assert!(!nested, "{name}: {schema}");
    }
}

#[tokio::test]
async fn bodies_are_bounded_and_binary_ones_not_shown() {
    let limits = FetchLimits { body_bytes_max: 10, ..FetchLimits::default() };
    let page = |kind: &str, pieces: &[&[u8]]| Page {
        status: 404,
        headers: vec![("content-type", kind.to_owned())],
        pieces: pieces.iter().map(|piece| piece.to_vec()).collect(),
        hangs: false,
    };
    for (page, expected) in [
        (page("text/html", &[b"12345", b"67890"]), "Content-Type: text/html\n\n1234567890"),
        (
            page("text/html", &[b"12345", b"678901"]),
            "Content-Type: text/html\nOnly the first 10 bytes were read.\n\n1234567890",
        ),
        (page("application/json", &[b"{}"]), "Content-Type: application/json\n\n{}"),
        (page("image/png", &[b"png"]), "Content-Type: image/png\nThe body is not text (3 bytes).\n"),
        (page("", &[b"plain"]), "\nplain"),
        (
            page("application/octet-stream", &[b"a\0b"]),
            "Content-Type: application/octet-stream\nThe body is not text (3 bytes).\n",
        ),
        (
            page("text/plain; charset=utf-8", &[b"\xff\xff"]),
            "Content-Type: text/plain; charset=utf-8\nNote: Bytes that are not UTF-8 are shown as \u{fffd}.\n\n\u{fffd}\u{fffd}",
        ),
    ] {
        let web = Web::new(vec![page]);
        let arguments = json!({"url": "https://example.com/"});
        let output = output(fetch_with(limits.clone(), &web, &Answers::public(), arguments).await);
        assert_eq!(output.text, format!("HTTP 404 Not Found\nURL: https://example.com/\n{expected}"));
    }
}

#[tokio::test]
async fn compressed_answers_are_refused() {
    let bomb = Page { headers: vec![("content-encoding", "gzip".into())], ..Page::text("bomb") };
    let outcome =
        fetch(&Web::new(vec![bomb]), &Answers::public(), json!({"url": "https://example.com/"})).await;
    assert_eq!(message(&outcome), "the response is compressed (gzip), which was not requested");
    let head = Page { headers: vec![("content-encoding", "gzip".into())], status: 200, ..Page::default() };
    let arguments = json!({"url": "https://example.com/", "method": "HEAD"});
    output(fetch(&Web::new(vec![head]), &Answers::public(), arguments).await);
}

#[tokio::test(start_paused = true)]
async fn endless_page_times_out_after_30_seconds() {
    let endless = Page { hangs: true, ..Page::text("begun") };
    let started = tokio::time::Instant::now();
    let outcome =
        fetch(&Web::new(vec![endless]), &Answers::public(), json!({"url": "https://example.com/"})).await;
    assert_eq!(outcome, CallOutcome::TimedOut { limit_ms: 30_000, partial: None });
    assert!(started.elapsed() < Duration::from_secs(32));
}

#[tokio::test]
async fn redirect_to_another_host_is_refused_unless_allowed() {
    let check = async |from: &str, to: &str, hosts: &[&str], is_followed: bool| {
        let web = Web::new(vec![Page::redirect(to), Page::text("there")]);
        let hosts = hosts.iter().map(|host| (*host).to_owned());
        let tool = HttpFetch::default().with_hosts(hosts);
        let outcome = fetch_from(tool, &web, &Answers::public(), json!({"url": from})).await;
        assert_eq!(matches!(outcome, CallOutcome::Done(_)), is_followed, "{from} to {to}: {outcome:?}");
        assert_eq!(web.requests().len(), if is_followed { 2 } else { 1 }, "{from} to {to}");
        if !is_followed {
            let expected = format!(
                "redirected to {to}, which is another host and was not fetched; fetch that address directly if needed"
            );
            assert_eq!(message(&outcome), expected);
        }
    };
    check("https://one.test/", "https://one.test/b", &[], true).await;
    check("http://one.test/", "https://www.one.test/", &[], true).await;
    check("https://www.one.test/", "https://one.test/", &[], true).await;
    check("https://one.test/", "https://two.test/?d=1", &[], false).await;
    check("https://one.test/", "https://one.test.two.test/", &[], false).await;
    check("https://a.one.test/", "https://one.test/", &[], false).await;
    check("https://one.test/", "https://a.two.test/", &["*.two.test"], true).await;
}
