//! The routes with the request guard, on the server's accept loop, with keys in memory.

use crate::support::TestServer;
use async_trait::async_trait;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use throughline::config::ServerSettings;
use throughline_server::{
    AppState, HttpServer, KeyInfo, KeyScope, KeyScopes, KeyStore, LOCAL_USER, NewApiKey, RequestGuard,
    ServeOutcome, router,
};
use throughline_store::{KeyRow, PageRequest, ResultPage, StoreError};
use throughline_testkit::FakeModel;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A server as `throughline serve` puts it together, but for its store.
pub struct GuardedServer {
    pub address: SocketAddr,
    pub request_guard: RequestGuard,
    pub keys: KeysInMemory,
    inner: TestServer,
    pub wish: mpsc::Sender<()>,
    pub serving: Option<JoinHandle<ServeOutcome>>,
    tending: JoinHandle<()>,
}

/// Any free port of this machine.
pub fn settings() -> ServerSettings {
    ServerSettings { listen: ([127, 0, 0, 1], 0).into(), ..ServerSettings::default() }
}

impl GuardedServer {
    pub async fn start(model: impl FakeModel, settings: &ServerSettings) -> Self {
        Self::start_draining(model, settings, std::future::ready(())).await
    }

    /// Starts with a callback that runs before connections are closed.
    pub async fn start_draining(
        model: impl FakeModel,
        settings: &ServerSettings,
        drain: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        Self::start_as(model, settings, drain, |state| state).await
    }

    /// Starts with additional state.
    pub async fn start_as(
        model: impl FakeModel,
        settings: &ServerSettings,
        drain: impl Future<Output = ()> + Send + 'static,
        more: impl FnOnce(AppState) -> AppState,
    ) -> Self {
        let inner = TestServer::start(model).await;
        let keys = KeysInMemory::default();
        let request_guard = RequestGuard::new(settings, Arc::new(keys.clone()));
        let bound = HttpServer::bind(settings).unwrap();
        let address = bound.address();
        let (wish, wishes) = mpsc::channel(2);
        let serving = Some(tokio::spawn(bound.serve(
            request_guard.wrap(router(more(inner.state.clone()))),
            wishes,
            drain,
        )));
        let tending = request_guard.clone();
        let tending = tokio::spawn(async move { tending.watch_live_keys().await });
        Self { address, request_guard, keys, inner, wish, serving, tending }
    }

    /// A key of the one user.
    pub async fn key(&self, scopes: &[KeyScope]) -> (String, KeyInfo) {
        self.key_until(scopes, None).await
    }

    pub async fn key_until(&self, scopes: &[KeyScope], expires_at: Option<i64>) -> (String, KeyInfo) {
        let scopes: KeyScopes = scopes.iter().copied().collect();
        let new = NewApiKey { name: "test".to_owned(), scopes, expires_at, ..NewApiKey::default() };
        let (key, pass) = self.request_guard.mint(LOCAL_USER, new).await.unwrap();
        (key.reveal(), pass)
    }

    /// Number of requests to the model.
    pub fn asked(&self) -> usize {
        self.inner.upstream.exchanges().len()
    }

    /// Sends these bytes and reads until the server closes.
    pub async fn raw(&self, request: &str) -> String {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        read_all(&mut socket).await
    }

    /// Sends one request with these header lines, on a new connection.
    pub async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut text =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            text.push_str(&format!("Host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        Answer::of(&self.raw(&format!("{text}\r\n{body}")).await)
    }
}

impl Drop for GuardedServer {
    fn drop(&mut self) {
        self.tending.abort();
        if let Some(serving) = self.serving.take() {
            serving.abort();
        }
    }
}

/// Reads up to the end or the reset of a connection.
pub async fn read_all(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(read @ 1..) = socket.read(&mut piece).await {
        bytes.extend_from_slice(&piece[..read]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Status, headers and body.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn of(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let line = |line: &str| line.split(':').next().is_some_and(|other| other.eq_ignore_ascii_case(name));
        let line = self.head.lines().skip(1).find(|text| line(text))?;
        line.split_once(':').map(|(_, value)| value.trim())
    }

    /// The code of an error.
    pub fn code(&self) -> String {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap_or_default();
        body["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// Keys as the catalog keeps them.
#[derive(Clone, Default)]
pub struct KeysInMemory(Arc<Mutex<Vec<KeyRow>>>);

impl KeysInMemory {
    /// Changes a key directly in the store, as another program would.
    pub fn change(&self, id: &str, change: impl FnOnce(&mut KeyRow)) {
        let mut rows = self.0.lock().unwrap();
        change(rows.iter_mut().find(|row| row.id == id).unwrap());
    }
}

#[async_trait]
impl KeyStore for KeysInMemory {
    async fn add_key(&self, _: &str, key: KeyRow) -> Result<(), StoreError> {
        self.0.lock().unwrap().push(key);
        Ok(())
    }

    async fn keys(&self, user: &str) -> Result<Vec<KeyRow>, StoreError> {
        Ok(self.0.lock().unwrap().iter().rev().filter(|row| row.user == user).cloned().collect())
    }

    async fn keys_page(&self, user: Option<&str>, _: &PageRequest) -> Result<ResultPage<KeyRow>, StoreError> {
        let rows = self.0.lock().unwrap();
        let of_user = rows.iter().rev().filter(|row| user.is_none_or(|user| row.user == user));
        Ok(ResultPage { items: of_user.cloned().collect(), ..ResultPage::empty() })
    }

    async fn revoke_key(&self, user: &str, id: &str, now: i64) -> Result<bool, StoreError> {
        let mut rows = self.0.lock().unwrap();
        let row = rows.iter_mut().find(|row| row.id == id && row.user == user && row.revoked_at.is_none());
        Ok(row.map(|row| row.revoked_at = Some(now)).is_some())
    }

    async fn key(&self, id: &str) -> Result<Option<KeyRow>, StoreError> {
        Ok(self.0.lock().unwrap().iter().find(|row| row.id == id).cloned())
    }

    async fn touch_key(&self, id: &str, now: i64) -> Result<bool, StoreError> {
        self.change(id, |row| row.last_used_at = Some(now));
        Ok(true)
    }
}
