//! A server for clients: it takes any key as ada's, and has one tool that counts its runs.

use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use throughline::config::ServerLimits;
use throughline::engine::TurnId;
use throughline::tools::{Effect, tool};
use throughline::wire::Dialect;
use throughline::{ApprovalMode, Event, Throughline, TurnRequest, Upstream};
use throughline_server::{AppState, Principal, router};
use throughline_store::{BlobFolder, BlobLimits, SqliteSettings, SqliteStore};
use throughline_testkit::{self as testkit, FakeUpstreamHandle, ScriptQueue};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::task::JoinHandle;

/// The scripts' expectation of both steps.
pub const TOKENS_OF_A_TURN: u64 = 1_135;
const KEY: &str = "tl_a-key";
/// A client that has not come to an end by then hangs.
const CLIENT_MAX: Duration = Duration::from_secs(120);

/// The folder of the installed packages; without it a test prints a notice and passes.
pub fn packages() -> Option<PathBuf> {
    match std::env::var_os("THROUGHLINE_CLIENTS") {
        // Another check of this run has them.
        Some(folder) if folder.is_empty() => None,
        Some(folder) => Some(folder.into()),
        None => {
            println!("skipped: THROUGHLINE_CLIENTS is not set");
            None
        }
    }
}

/// A running server.
pub struct Server {
    pub address: SocketAddr,
    pub upstream: FakeUpstreamHandle,
    app: Throughline,
    state: AppState,
    weather: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
    _dir: TempDir,
}

#[derive(Deserialize, JsonSchema)]
struct City {
    city: String,
}

impl Server {
    pub async fn start(model: ScriptQueue) -> Self {
        let upstream = testkit::FakeUpstream::start(model).await.unwrap();
        let url = upstream.base_url(testkit::FakeDialect::OpenaiChat);
        let weather = Arc::new(AtomicUsize::new(0));
        let runs = weather.clone();
        let today = tool("weather.today", "Today's weather", move |args: City, _| {
            runs.fetch_add(1, Ordering::SeqCst);
            async move { format!("{}: sunny", args.city) }
        });
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&dir.path().join("test.db"), SqliteSettings::default()).await.unwrap();
        let blobs = BlobFolder::open(dir.path().join("blobs"), BlobLimits::default()).await.unwrap();
        let app = Throughline::builder()
            .log(Arc::new(store.clone()))
            .upstream(Upstream::new("test", Dialect::OpenaiChat, &url).unwrap())
            .model("m")
            .approval(ApprovalMode::AllowAll)
            .tool(today.effect(Effect::Read).agent_callable())
            .build()
            .unwrap();
        let state = AppState::new(app.clone(), Arc::new(store), blobs, ServerLimits::default());
        state.turn_manager.resume_open().await.unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = router(state.clone()).layer(middleware::from_fn(ada));
        let serving = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { address, upstream, app, state, weather, serving, _dir: dir }
    }

    /// Runs a script of `clients/` to its end, which must be a good one.
    pub async fn run(&self, packages: &Path, script: &str, words: &[&str], variables: &[(&str, &str)]) {
        let program = if Path::new(script).extension().is_some_and(|kind| kind == "py") {
            packages.join("venv/bin/python")
        } else {
            packages.join("node_modules/.bin/node")
        };
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients").join(script);
        let mut command = Command::new(program);
        command
            .arg(file)
            .args(words)
            .env("BASE_URL", format!("http://{}", self.address))
            .env("KEY", KEY)
            .env("PACKAGES", packages)
            .env("NO_PROXY", "127.0.0.1")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let done = tokio::time::timeout(CLIENT_MAX, command.output()).await;
        let done = done.unwrap_or_else(|_| panic!("{script} {words:?} hangs")).unwrap();
        assert!(
            done.status.success(),
            "{script} {words:?}: {}\n{}{}\nthe upstream saw {:#?}",
            done.status,
            String::from_utf8_lossy(&done.stdout),
            String::from_utf8_lossy(&done.stderr),
            self.upstream.requests().iter().map(|seen| &seen.messages).collect::<Vec<_>>(),
        );
    }

    /// Number of runs of the server's tool.
    pub fn weather_runs(&self) -> usize {
        self.weather.load(Ordering::SeqCst)
    }

    /// A turn of ada's that is over, and its events.
    pub async fn turn(&self) -> (TurnId, Vec<Event>) {
        let request = TurnRequest { input: "Weather?".into(), ..TurnRequest::default() };
        let new = throughline_server::TurnSpec { request, ..Default::default() };
        let started = self.state.turn_manager.start_turn(&Principal::local("ada"), new).await.unwrap();
        let mut tail = self.app.log().tail(started.turn_id.as_str(), 0).await.unwrap();
        let mut events = Vec::new();
        while let Some(records) = tail.next().await.unwrap() {
            events.extend(
                records.iter().map(|record| serde_json::from_slice::<Event>(&record.payload).unwrap()),
            );
        }
        (started.turn_id, events)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Replaces the request guard: every request is ada's.
async fn ada(mut request: Request, next: Next) -> Response {
    let key = request.headers().get("authorization").and_then(|key| key.to_str().ok());
    if key != Some(&format!("Bearer {KEY}")) {
        return throughline_server::ApiError::unauthenticated().into_response();
    }
    request.extensions_mut().insert(Principal::local("ada"));
    next.run(request).await
}

/// A proxy to the server that breaks as soon as this text has passed.
pub async fn cut_after(server: SocketAddr, words: &'static str) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(server).await.unwrap();
            tokio::spawn(until(words, client, server));
        }
    });
    address
}

async fn until(words: &str, client: TcpStream, server: TcpStream) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
    let (mut seen, mut buffer) = (Vec::new(), [0; 4_096]);
    while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
        seen.extend_from_slice(&buffer[..read]);
        let end = seen.windows(words.len()).position(|window| window == words.as_bytes());
        // In the middle of a chunk, so that nothing looks whole.
        let upto = end.map_or(read, |at| at + words.len() - (seen.len() - read));
        if to_client.write_all(&buffer[..upto]).await.is_err() || end.is_some() {
            return;
        }
    }
}
