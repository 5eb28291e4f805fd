//! Telemetry of real turns over a real socket: what is measured, and that no secret leaves by any way.

use crate::support;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use throughline::{ApprovalMode, Throughline, TurnRequest, Upstream};
use throughline_server::{
    AppState, CallHistory, ContentCapture, Principal, Redaction, StoreMetrics, Telemetry, TraceSink,
    TurnTrace, router,
};
use throughline_store::{
    BlobFolder, BlobLimits, CallFilter, Catalog, Log, NewTurnRow, PageRequest, SqliteSettings, SqliteStore,
};
use throughline_testkit::demo::DemoModel;
use throughline_testkit::{self as testkit, FakeDialect, FakeModel};

/// The key of the upstream in these tests.
const CANARY: &str = "sk-canary/7+x=\"q\"";
/// Patience on a machine that does other things.
const BOUND: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Spans(Mutex<Vec<TurnTrace>>);

impl TraceSink for Spans {
    fn export(&self, trace: TurnTrace) {
        self.0.lock().expect("no test panics here").push(trace);
    }
}

/// A store, an application that logs to it, and its telemetry on a socket.
struct TelemetryFixture {
    app: Throughline,
    store: SqliteStore,
    telemetry: Arc<Telemetry>,
    spans: Arc<Spans>,
    base: String,
    _upstream: testkit::FakeUpstreamHandle,
    _writer: throughline_server::HistoryWriterTask,
    _folder: tempfile::TempDir,
}

impl TelemetryFixture {
    async fn start(model: impl FakeModel) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = SqliteSettings { ballast_bytes: 0, ..SqliteSettings::default() };
        let store = SqliteStore::open(&folder.path().join("store.db"), settings).await.expect("a store");
        let spans = Arc::new(Spans::default());
        let redaction = Arc::new(Redaction::new([CANARY.to_owned()]));
        let telemetry =
            Arc::new(Telemetry::new(redaction).with_traces(spans.clone(), ContentCapture::Captured));
        let (log, catalog): (Arc<dyn Log>, Arc<dyn Catalog>) =
            (Arc::new(store.clone()), Arc::new(store.clone()));
        let (history, writer) = CallHistory::start(catalog, log.clone(), telemetry.meter().clone());
        telemetry.set_call_history(history);
        let upstream = testkit::FakeUpstream::start(model).await.expect("an upstream");
        let address = upstream.base_url(FakeDialect::OpenaiChat);
        let known =
            Upstream::new("mock", throughline::wire::Dialect::OpenaiChat, &address).expect("an address");
        let app = Throughline::builder()
            .upstream(known.key(CANARY))
            .model("mock")
            .tools(throughline::tools::builtin::demo::tools())
            .approval(ApprovalMode::AllowAll)
            .log(log)
            .observer(telemetry.clone())
            .build()
            .expect("an application");
        let figures = store.clone();
        let figures = Arc::new(move || {
            let now = figures.stats();
            StoreMetrics {
                commits: now.commits,
                fsyncs: now.fsyncs,
                events: now.events,
                queue: now.queue_jobs as u64,
            }
        });
        let me = |mut request: Request, next: Next| async move {
            request.extensions_mut().insert(Principal::local("me"));
            let response: Response = next.run(request).await;
            response
        };
        let blobs =
            BlobFolder::open(folder.path().join("files"), BlobLimits::default()).await.expect("a folder");
        let limits = throughline::config::ServerLimits::default();
        let state = AppState::new(app.clone(), Arc::new(store.clone()), blobs, limits)
            .with_telemetry(telemetry.clone(), Some(figures));
        let router = router(state).layer(middleware::from_fn(me));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let base = format!("http://{}", listener.local_addr().expect("it listens"));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { app, store, telemetry, spans, base, _upstream: upstream, _writer: writer, _folder: folder }
    }

    /// Runs a turn of user `me` to its end, stored as a server stores it. Returns its events in the form that
    /// a client gets.
    async fn turn(&self, id: &str, says: &str) -> String {
        let new = NewTurnRow { input_text: says.to_owned(), ..support::accepted_turn(id) };
        self.store.create_turn("me", new).await.expect("a new turn");
        let request = TurnRequest {
            user: Some("me".to_owned()),
            turn_id: Some(id.into()),
            keep_raw: true,
            input: says.into(),
            ..TurnRequest::default()
        };
        let mut turn = self.app.start_turn(request).await.expect("it begins");
        let mut seen = String::new();
        while let Some(event) = turn.next().await {
            seen.push_str(&serde_json::to_string(&event).expect("an event is JSON"));
            seen.push('\n');
        }
        seen
    }

    async fn get(&self, path: &str) -> String {
        let response = reqwest::get(format!("{}{path}", self.base)).await.expect("it answers");
        assert!(response.status().is_success(), "{path}: {}", response.status());
        response.text().await.expect("text")
    }

    async fn flushed(&self) {
        let history = self.telemetry.history().expect("there is one");
        tokio::time::timeout(BOUND, history.wait_flushed()).await.expect("the history is written");
    }
}

/// A figure of the Prometheus text.
fn figure(text: &str, series: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in {text}")).parse().expect("a number")
}

#[tokio::test]
async fn turn_with_a_tool_is_in_metrics_history_and_traces() {
    let world = TelemetryFixture::start(DemoModel::instant()).await;
    let events = world.turn("turn-1", "What is the weather in Paris?").await;
    assert!(events.contains("\"demo.weather\""), "{events}");
    world.flushed().await;

    let text = world.get("/metrics").await;
    assert_eq!(figure(&text, "throughline_turns_total{status=\"completed\"}"), 1.0);
    assert_eq!(figure(&text, "throughline_active_turns"), 0.0);
    assert_eq!(figure(&text, "streaming_tool_detection_rate"), 1.0);
    assert_eq!(
        figure(&text, "throughline_tool_calls_total{gen_ai_tool_name=\"demo.weather\",status=\"success\"}"),
        1.0
    );
    assert_eq!(figure(&text, "throughline_steps_per_turn_sum"), 2.0);
    assert_eq!(figure(&text, "throughline_tool_detection_seconds_count"), 1.0);
    assert!(figure(&text, "throughline_store_events_total") >= events.lines().count() as f64, "{text}");

    let calls = world.store.calls("me", &CallFilter::default(), &PageRequest::first()).await.expect("calls");
    let shown: Vec<_> =
        calls.items.iter().map(|call| (call.tool_name.as_str(), call.status.as_str())).collect();
    assert_eq!(shown, [("demo.weather", "success")]);
    let nobody =
        world.store.calls("you", &CallFilter::default(), &PageRequest::first()).await.expect("calls");
    assert_eq!(nobody.items, []);
    let raw = world.store.raw_of_turn("me", "turn-1").await.expect("raw bytes");
    assert_eq!(raw.iter().map(|raw| raw.id.step).collect::<Vec<_>>(), [1, 2], "one body a model call");

    let spans = world.spans.0.lock().expect("no test panics here");
    let names: Vec<&str> =
        spans[0].children.iter().map(|span| span.name.split(' ').next().unwrap_or("")).collect();
    assert_eq!((spans.len(), names), (1, vec!["chat", "execute_tool", "chat"]));
}

#[tokio::test]
async fn reported_jank_frames_are_validated_and_capped() {
    let world = TelemetryFixture::start(DemoModel::instant()).await;
    let client = support::http_client().build().unwrap();
    for (body, status) in [
        (r#"{"jank_frames":3,"window_ms":10000}"#, 204),
        (r#"{"jank_frames":99999999,"window_ms":1000}"#, 204),
        (r#"{"jank_frames":-1,"window_ms":1000}"#, 400),
        (r#"{"janky":1}"#, 400),
    ] {
        let sent = client.post(format!("{}/v1/telemetry/frames", world.base));
        let sent =
            sent.header("content-type", "application/json").body(body).send().await.expect("it answers");
        assert_eq!(sent.status().as_u16(), status, "{body}");
    }
    assert_eq!(figure(&world.get("/metrics").await, "streaming_ui_jank_frames_total"), 63.0);
}

/// An upstream that repeats the key that it received, in the encodings in which keys travel: immediately, or
/// after some text.
#[derive(Clone, Copy)]
enum Telltale {
    AtOnce,
    BehindSomeText,
}

impl FakeModel for Telltale {
    fn reply(&self, _: &testkit::ParsedRequest) -> testkit::ModelScript {
        let in_url = "sk-canary%2F7%2Bx%3D%22q%22";
        let in_base64 = "dXNlcjpzay1jYW5hcnkvNyt4PSJxIg==";
        let said = format!("wrong key {CANARY} ?key={in_url} Basic {in_base64}");
        match self {
            Telltale::AtOnce => {
                let body = serde_json::json!({"error": {"message": said, "type": CANARY}});
                let answer = testkit::HttpAnswer { body: Some(body), ..testkit::HttpAnswer::status(401) };
                testkit::ModelScript { http: Some(answer), ..testkit::ModelScript::default() }
            }
            Telltale::BehindSomeText => {
                let error = testkit::ErrorMove { kind: Some(CANARY.into()), ..testkit::ErrorMove::new(said) };
                testkit::ModelScript::new().say("Let me see.").then(testkit::ScriptMove::Error(error))
            }
        }
    }
}

#[tokio::test]
async fn redacted_secret_is_in_no_event_metric_span_or_log() {
    let written = Written::default();
    let redaction = Arc::new(Redaction::new([CANARY.to_owned()]));
    let logs = throughline_server::json_logs_to(redaction, written.clone());
    // Everything of this test runs on this thread, so all of its lines come here.
    let _logging = tracing::subscriber::set_default(logs);
    // While there is only one subscriber, `tracing` judges a line that is reached for the first time by the thread that reaches
    // it: another test's, which has none.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::new());
    for tells in [Telltale::AtOnce, Telltale::BehindSomeText] {
        nothing_leaves(tells, &written).await;
    }
}

async fn nothing_leaves(tells: Telltale, written: &Written) {
    let world = TelemetryFixture::start(tells).await;
    let events = world.turn("turn-1", "hello").await;
    world.flushed().await;
    assert!(
        events.contains("\"type\":\"error\"") && events.contains("wrong key …"),
        "the turn fails: {events}"
    );
    let metrics = world.get("/metrics").await;
    assert_eq!(figure(&metrics, "throughline_turns_total{status=\"error\"}"), 1.0);
    let spans = format!("{:?}", world.spans.0.lock().expect("no test panics here"));
    let log = String::from_utf8(written.0.lock().expect("no test panics here").clone()).expect("text");
    assert!(log.contains("turn_ended"), "{log}");
    tracing::error!(key = CANARY, "the test itself: {}", CANARY);
    let log = String::from_utf8(written.0.lock().expect("no test panics here").clone()).expect("text");
    for (what, said) in [("events", &events), ("metrics", &metrics), ("spans", &spans), ("logs", &log)] {
        for form in ["canary", "Y2FuYXJ5", "jYW5hcn"] {
            assert!(!said.contains(form), "{form} in {what}: {said}");
        }
    }
}

/// The lines that have been logged.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no test panics here").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'w> tracing_subscriber::fmt::MakeWriter<'w> for Written {
    type Writer = Written;
    fn make_writer(&'w self) -> Self::Writer {
        self.clone()
    }
}
