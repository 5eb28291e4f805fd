//! A server over a real socket, with a scripted upstream behind it.

#![allow(dead_code, reason = "each test file uses its part")]

use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use std::net::SocketAddr;
use std::sync::Arc;
use throughline::engine::RetryPolicy;
use throughline::wire::Dialect;
use throughline::{Approval, Builder, Throughline, Upstream};
use throughline_server::{AppState, Principal, ServerLimits, router};
use throughline_store::sqlite::{SqliteSettings, SqliteStore};
use throughline_store::{BlobFolder, BlobLimits};
use throughline_testkit::{self as testkit, Model, UpstreamHandle};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A running server.
pub struct TestServer {
    /// Where it listens.
    pub address: SocketAddr,
    /// The model behind it.
    pub upstream: UpstreamHandle,
    /// Its inside, to look at what no client can.
    pub state: AppState,
    serving: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

impl TestServer {
    /// With this model behind it, tools allowed beforehand.
    pub async fn start(model: impl Model) -> Self {
        Self::start_with(model, |builder| builder, ServerLimits::default()).await
    }

    /// With an application and limits of one's own.
    pub async fn start_with(
        model: impl Model,
        build: impl FnOnce(Builder) -> Builder,
        limits: ServerLimits,
    ) -> Self {
        let upstream = testkit::Upstream::start(model).await.unwrap();
        let at = Upstream::new("test", Dialect::OpenaiChat, &upstream.base_url(testkit::Dialect::OpenaiChat));
        let builder = Throughline::builder()
            .upstream(at.unwrap())
            .model("m")
            .approval(Approval::AllowAll)
            .retry(RetryPolicy { backoff_ms: 5, ..RetryPolicy::default() });
        let folder = tempfile::tempdir().unwrap();
        let store =
            SqliteStore::open(&folder.path().join("test.db"), SqliteSettings::default()).await.unwrap();
        let blobs = BlobFolder::open(folder.path().join("blobs"), BlobLimits::default()).await.unwrap();
        let app = build(builder.log(Arc::new(store.clone()))).build().unwrap();
        let state = AppState::new(app, Arc::new(store), blobs, limits);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = router(state.clone()).layer(middleware::from_fn(whoever_says_so));
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, upstream, state, serving, _folder: folder }
    }

    /// `http://127.0.0.1:<port>` and this path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// As `ada`.
    pub fn client(&self) -> reqwest::Client {
        self.client_of("ada")
    }

    /// As this user.
    pub fn client_of(&self, user: &str) -> reqwest::Client {
        let mut headers = reqwest::header::HeaderMap::new();
        headers.insert("x-test-user", user.parse().unwrap());
        reqwest::Client::builder().default_headers(headers).no_proxy().build().unwrap()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// In place of the gate: the header says who asks; without it nobody does.
async fn whoever_says_so(mut request: Request, next: Next) -> Response {
    if let Some(user) = request.headers().get("x-test-user").and_then(|user| user.to_str().ok()) {
        let principal = Principal::local(user);
        request.extensions_mut().insert(principal);
    }
    next.run(request).await
}
