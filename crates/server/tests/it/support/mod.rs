//! A server over a real socket, on a store in a file, with a scripted upstream. It can be killed and started
//! again.

pub mod check_stream;
pub mod collector;
mod socket;
mod sse;

pub use socket::Socket;
pub use sse::{Event, Events};

use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use throughline::config::{ServerLimits, ServerSettings};
use throughline::engine::{RetryPolicy, TurnLimits};
use throughline::tools::{Effect, NoArguments, ToolContext, tool};
use throughline::wire::Dialect;
use throughline::{ApprovalMode, Throughline, ThroughlineBuilder, Upstream};
use throughline_server::{
    AppState, CatalogApprovals, CatalogMediaStore, HttpServer, Principal, StoreMetrics, StoreMetricsFn,
    Telemetry, router,
};
use throughline_store::{
    BlobFolder, BlobLimits, Catalog, CatalogLimits, Log, NewTurnRow, PostgresSettings, PostgresStore,
    SqliteOpenError, SqliteSettings, SqliteStore, TurnEnd, TurnPlacement, TurnTiming,
};
use throughline_testkit::{self as testkit, FakeModel, FakeUpstreamHandle};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

/// Longer than anything in a test takes, on a machine that has other things to do.
pub const PATIENCE: Duration = Duration::from_secs(60);

type Build = Arc<dyn Fn(ThroughlineBuilder) -> ThroughlineBuilder + Send + Sync>;

/// Makes what watches the turns of one process.
type Watch = Arc<dyn Fn() -> Telemetry + Send + Sync>;

/// A running server.
pub struct TestServer {
    /// Address of the listener.
    pub address: SocketAddr,
    /// The server's upstream, which outlives restarts.
    pub upstream: FakeUpstreamHandle,
    /// State of the server, for checks that no client can make.
    pub state: AppState,
    dir: TempDir,
    /// The database that its turns are in; `None` = a file of the folder.
    database: Option<PostgresDatabase>,
    build: Build,
    watch: Watch,
    limits: ServerLimits,
    /// A separate runtime, which ends with everything in it, like a process.
    runtime: Process,
    /// Sends the shutdown signal.
    wish: mpsc::Sender<()>,
}

#[derive(Deserialize, JsonSchema)]
struct Entry {
    title: String,
}

/// A database of PostgreSQL, and for how long a server owns its turns without saying so again.
#[derive(Clone)]
pub struct PostgresDatabase {
    pub url: String,
    pub lease: Duration,
}

impl PostgresDatabase {
    /// Lease for tests without a takeover: a machine that stalls for a while loses nothing.
    pub const LASTING: Duration = Duration::from_secs(60);
}

impl TestServer {
    /// Starts with this model, and tools approved in advance.
    pub async fn start(model: impl FakeModel) -> Self {
        Self::start_with(model, |builder| builder, ServerLimits::default()).await
    }

    /// Starts with approval questions for tools that write.
    pub async fn start_asking(model: impl FakeModel) -> Self {
        Self::start_with(model, |builder| builder.approval(ApprovalMode::Ask), ServerLimits::default()).await
    }

    /// Starts with a given application and limits.
    pub async fn start_with(
        model: impl FakeModel,
        build: impl Fn(ThroughlineBuilder) -> ThroughlineBuilder + Send + Sync + 'static,
        limits: ServerLimits,
    ) -> Self {
        Self::start_watched(model, build, limits, Telemetry::default).await
    }

    /// Starts with its turns in this PostgreSQL database.
    pub async fn start_in(
        database: Option<PostgresDatabase>,
        model: impl FakeModel,
        build: impl Fn(ThroughlineBuilder) -> ThroughlineBuilder + Send + Sync + 'static,
        limits: ServerLimits,
    ) -> Self {
        Self::start_wholly(database, model, Arc::new(build), limits, Arc::new(Telemetry::default)).await
    }

    /// Starts with its turns in a file, and this observer.
    pub async fn start_watched(
        model: impl FakeModel,
        build: impl Fn(ThroughlineBuilder) -> ThroughlineBuilder + Send + Sync + 'static,
        limits: ServerLimits,
        watch: impl Fn() -> Telemetry + Send + Sync + 'static,
    ) -> Self {
        Self::start_wholly(None, model, Arc::new(build), limits, Arc::new(watch)).await
    }

    async fn start_wholly(
        database: Option<PostgresDatabase>,
        model: impl FakeModel,
        build: Build,
        limits: ServerLimits,
        watch: Watch,
    ) -> Self {
        let upstream = testkit::FakeUpstream::start(model).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        let (runtime, address, state, wish) =
            begin(dir.path(), database.as_ref(), &upstream, &build, &watch, limits).await;
        Self { address, upstream, state, dir, database, build, watch, limits, runtime, wish }
    }

    /// Ends it as `kill -9` does, and starts another one on the same store, at another address.
    pub async fn restart(mut self) -> Self {
        self.runtime.end();
        let Self { upstream, state, dir, database, build, watch, limits, .. } = self;
        drop(state);
        let (runtime, address, state, wish) =
            begin(dir.path(), database.as_ref(), &upstream, &build, &watch, limits).await;
        Self { address, upstream, state, dir, database, build, watch, limits, runtime, wish }
    }

    /// Drains the server, with this time for its turns.
    pub async fn drain(&self, time: Duration) -> throughline_server::DrainSummary {
        let drained = self.state.turn_manager.drain(time).await;
        let _ = self.wish.send(()).await;
        drained
    }

    /// `http://127.0.0.1:<port>` and this path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// HTTP client of `ada`.
    pub fn client(&self) -> reqwest::Client {
        self.client_of("ada")
    }

    /// HTTP client of this user.
    pub fn client_of(&self, user: &str) -> reqwest::Client {
        let mut headers = reqwest::header::HeaderMap::new();
        headers.insert("x-test-user", user.parse().unwrap());
        http_client().default_headers(headers).build().unwrap()
    }

    /// Posts JSON as `ada`: the status and the answer.
    pub async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        answered(self.client().post(self.url(path)).json(&body)).await
    }

    /// Gets as `ada`: the status and the answer.
    pub async fn get(&self, path: &str) -> (u16, Value) {
        answered(self.client().get(self.url(path))).await
    }

    /// Starts a turn as `ada`, and its id.
    pub async fn turn(&self, body: Value) -> String {
        let (status, started) = self.post("/v1/turns", body).await;
        assert_eq!(status, 201, "{started}");
        started["turn_id"].as_str().unwrap().to_owned()
    }

    /// Starts a turn as `ada` with this text.
    pub async fn say(&self, text: &str) -> String {
        self.turn(saying(text)).await
    }

    /// Follows a turn as `ada` from after an event.
    pub async fn follow(&self, turn: &str, after: u64) -> Events {
        let request = self.client().get(self.url(&format!("/v1/turns/{turn}/events?after={after}")));
        Events::of(request.send().await.unwrap())
    }
}

/// A runtime that ends as a process does: everything in it stops where it is.
struct Process(Option<Runtime>);

impl Process {
    fn end(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// A turn that was accepted and has no event yet.
pub fn accepted_turn(id: &str) -> NewTurnRow {
    NewTurnRow {
        id: id.to_owned(),
        message_id: format!("message_of_{id}"),
        placement: TurnPlacement::Standalone,
        idempotency: None,
        stored: "{}".to_owned(),
        agent: "default".to_owned(),
        model: None,
        mode: None,
        input_text: "Hi".to_owned(),
        files: Vec::new(),
        created_at: 1,
        charge: Default::default(),
    }
}

/// The end of a turn that could not be resumed and has no content.
pub fn interrupted_end() -> TurnEnd {
    TurnEnd {
        status: "interrupted".to_owned(),
        history_json: "[]".to_owned(),
        text: String::new(),
        usage: None,
        pace: TurnTiming::default(),
        ended_at: 1,
    }
}

/// A request's body with this text as input.
pub fn saying(text: &str) -> Value {
    json!({"input": [{"type": "text", "text": text}]})
}

/// Sends a request: the status and the answer, `null` if that is no JSON.
pub async fn answered(request: reqwest::RequestBuilder) -> (u16, Value) {
    let (client, request) = request.build_split();
    let request = request.unwrap();
    let what = format!("no answer in time to {} {}", request.method(), request.url());
    let answer = async {
        let response = client.execute(request).await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    };
    tokio::time::timeout(PATIENCE, answer).await.expect(&what)
}

async fn begin(
    dir: &Path,
    database: Option<&PostgresDatabase>,
    upstream: &FakeUpstreamHandle,
    build: &Build,
    watch: &Watch,
    limits: ServerLimits,
) -> (Process, SocketAddr, AppState, mpsc::Sender<()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let at = Upstream::new("test", Dialect::OpenaiChat, &upstream.base_url(testkit::FakeDialect::OpenaiChat));
    let (dir, database, build, at) = (dir.to_owned(), database.cloned(), build.clone(), at.unwrap());
    let telemetry = Arc::new(watch());
    let (wish, wishes) = mpsc::channel(2);
    let begun = runtime.spawn(async move {
        let (log, catalog, figures) = match &database {
            None => {
                let store = opened(&dir.join("test.db")).await;
                all_of(store.clone(), move || store.stats())
            }
            Some(PostgresDatabase { url, lease }) => {
                let settings =
                    PostgresSettings { lease: *lease, catalog: patient(), ..PostgresSettings::default() };
                let store = PostgresStore::open(url, settings).await.unwrap();
                all_of(store.clone(), move || store.stats())
            }
        };
        let files = BlobLimits { file_bytes_max: limits.upload_bytes_max };
        let blobs = BlobFolder::open(dir.join("blobs"), files).await.unwrap();
        let builder = Throughline::builder()
            .upstream(at)
            .observer(telemetry.clone())
            .model("m")
            .log(log)
            .media(Arc::new(CatalogMediaStore::new(
                catalog.clone(),
                blobs.clone(),
                limits.media_inline_bytes_max.into(),
            )))
            .approval_stores(Arc::new(CatalogApprovals::new(catalog.clone())))
            .tool(
                tool("weather.today", "Weather", |_: NoArguments, _| async { "sunny" })
                    .effect(Effect::Read)
                    .agent_callable(),
            )
            .tool(
                tool("calendar.add", "Adds an entry", |args: Entry, _| async move {
                    format!("added {}", args.title)
                })
                .effect(Effect::Write)
                .agent_callable(),
            )
            .tool(tool("queue.wait", "Waits", wait).effect(Effect::Read).agent_callable())
            .approval(ApprovalMode::AllowAll)
            .limits(TurnLimits { cancel_grace_ms: 1_000, ..TurnLimits::default() })
            .retry(RetryPolicy { backoff_ms: 5, ..RetryPolicy::default() });
        let app = build(builder).build().unwrap();
        let state = AppState::new(app, catalog, blobs, limits).with_telemetry(telemetry, Some(figures));
        state.turn_manager.resume_open().await.unwrap();
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let bound =
            HttpServer::bind(&ServerSettings { listen, limits, ..ServerSettings::default() }).unwrap();
        let address = bound.address();
        tokio::spawn(state.turn_manager.clone().serve_peers(router(state.clone())));
        let app = router(state.clone()).layer(middleware::from_fn(whoever_says_so));
        tokio::spawn(bound.serve(app, wishes, std::future::ready(())));
        (address, state)
    });
    let (address, state) = begun.await.unwrap();
    (Process(Some(runtime)), address, state, wish)
}

/// Casts one store to its traits.
fn all_of(
    store: impl Log + Catalog + Clone + 'static,
    figures: impl Fn() -> throughline_store::StoreStats + Send + Sync + 'static,
) -> (Arc<dyn Log>, Arc<dyn Catalog>, StoreMetricsFn) {
    let figures = move || {
        let now = figures();
        let queue = now.queue_jobs as u64;
        StoreMetrics { commits: now.commits, fsyncs: now.fsyncs, events: now.events, queue }
    };
    (Arc::new(store.clone()), Arc::new(store), Arc::new(figures))
}

/// A tool that runs until it is cancelled.
async fn wait(_: NoArguments, context: ToolContext) -> &'static str {
    context.cancellation().cancelled().await;
    "stopped"
}

/// Waits until a condition holds.
pub async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let until = tokio::time::Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(tokio::time::Instant::now() < until, "it never comes to be: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A search on a busy machine may take its time.
fn patient() -> CatalogLimits {
    CatalogLimits { search_ms_max: 3_600_000, search_wait_ms_max: 3_600_000, ..CatalogLimits::default() }
}

/// The server before lets go of the file in a moment.
async fn opened(path: &Path) -> SqliteStore {
    let until = tokio::time::Instant::now() + PATIENCE;
    loop {
        let settings = SqliteSettings {
            free_bytes_min: 0,
            ballast_bytes: 0,
            catalog: patient(),
            ..SqliteSettings::default()
        };
        match SqliteStore::open(path, settings).await {
            Ok(store) => return store,
            Err(SqliteOpenError::InUse { .. }) if tokio::time::Instant::now() < until => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Replaces the request guard: a header names the user; without it there is none.
async fn whoever_says_so(mut request: Request, next: Next) -> Response {
    if let Some(user) = request.headers().get("x-test-user").and_then(|user| user.to_str().ok()) {
        let principal = Principal::local(user);
        request.extensions_mut().insert(principal);
    }
    next.run(request).await
}

/// A client without trusted certificates: reading the machine's takes longer than a request, and no test here
/// uses TLS.
pub fn http_client() -> reqwest::ClientBuilder {
    reqwest::Client::builder().no_proxy().tls_certs_only([])
}
