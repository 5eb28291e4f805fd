//! The upstream as a server on loopback: it answers as its model says, and remembers everything it was asked.

pub use crate::record::{Ending, Exchange, Violation};

use crate::dialect::{self, CREATED, Dialect, Route};
use crate::http::{self, Connection, ReadError, Request};
use crate::model::Model;
use crate::perform::{Beat, Framing, Performance, perform};
use crate::record::{EXCHANGES_KEPT_MAX, Record};
use crate::script::Break;
use crate::seen::{Delivery, Seen};
use crate::strict::Refusal;
use crate::text;
use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How much a client may send while it is being answered, in bytes. What comes early belongs to its next request.
const PIPELINED_BYTES_MAX: usize = 1024 * 1024;

/// How often a file that is waited for is looked for.
const LOOKED_EVERY: Duration = Duration::from_millis(10);

/// How this upstream differs from the provider whose dialect is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Habits {
    /// Which call ids it accepts in Chat Completions.
    pub call_ids: CallIds,
    /// Whether it wants its reasoning back in Chat Completions.
    pub reasoning: ReasoningEcho,
}

/// Call ids that an upstream accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallIds {
    /// Any text.
    #[default]
    Any,
    /// Nine letters and digits, results in order of the calls: Mistral.
    Mistral,
}

/// Whether an assistant message with calls must carry `reasoning_content`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReasoningEcho {
    /// It may.
    #[default]
    Optional,
    /// It must: DeepSeek and Kimi while thinking.
    Required,
}

/// A scriptable upstream. It listens on an address and speaks all five dialects there at once.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    habits: Habits,
    kept_max: usize,
}

impl Upstream {
    /// Starts on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// If no port can be had.
    pub async fn start(model: impl Model) -> io::Result<UpstreamHandle> {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0))).serve(model).await
    }

    /// To be started on this address.
    pub fn at(address: SocketAddr) -> Self {
        Self { address, habits: Habits::default(), kept_max: EXCHANGES_KEPT_MAX }
    }

    /// To be started on a free port with these habits.
    pub fn with(habits: Habits) -> Self {
        Self { habits, ..Self::at(SocketAddr::from(([127, 0, 0, 1], 0))) }
    }

    /// To remember so many exchanges, at least one; without this [`EXCHANGES_KEPT_MAX`].
    #[must_use]
    pub fn keep(mut self, exchanges: usize) -> Self {
        self.kept_max = exchanges;
        self
    }

    /// Listens.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub async fn serve(self, model: impl Model) -> io::Result<UpstreamHandle> {
        let listener = TcpListener::bind(self.address).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            model: Box::new(model),
            habits: self.habits,
            exchanges: Mutex::new(Record::new(self.kept_max)),
            changes: watch::Sender::new(0),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        shared.tasks.spawn(accept(listener, shared.clone()));
        Ok(UpstreamHandle { address, shared })
    }
}

/// A running upstream. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct UpstreamHandle {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl UpstreamHandle {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:<port>`
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The base URL for a dialect: the provider's endpoint path is appended to it (`/chat/completions`, `/responses`,
    /// `/messages`, `/models/<model>:streamGenerateContent`, `/api/chat`).
    pub fn base_url(&self, dialect: Dialect) -> String {
        format!("{}{}", self.origin(), dialect.base_path())
    }

    /// Accepted model calls so far.
    pub fn requests(&self) -> Vec<Seen> {
        self.exchanges().into_iter().filter_map(|exchange| exchange.seen).collect()
    }

    /// Bodies of all model calls so far, refused ones included, as they came in.
    pub fn bodies(&self) -> Vec<Vec<u8>> {
        let calls = self.exchanges().into_iter().filter(|exchange| exchange.dialect.is_some());
        calls.map(|exchange| exchange.request.body).collect()
    }

    /// What a real provider would have refused, and in text mode whatever broke the framing of calls and results.
    pub fn violations(&self) -> Vec<Violation> {
        let violation = |exchange: Exchange| {
            Some(Violation {
                request: exchange.number,
                dialect: exchange.dialect?,
                message: exchange.violation?,
            })
        };
        self.exchanges().into_iter().filter_map(violation).collect()
    }

    /// Everything so far, as far as it is remembered.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.shared.exchanges().all()
    }

    /// Waits until the exchange `number` (from 1) has begun, and says what was asked. Of one that is forgotten, nothing
    /// more is heard: this and the next two never return.
    pub async fn asked(&self, number: u64) -> Exchange {
        self.until(|exchanges| exchanges.get(number).cloned()).await
    }

    /// Waits until the exchange `number` (from 1) is over, and says how.
    pub async fn ended(&self, number: u64) -> Ending {
        self.until(|exchanges| exchanges.get(number).and_then(|exchange| exchange.ending)).await
    }

    /// Waits until at least `bytes` of the body of exchange `number` (from 1) were sent.
    pub async fn sent(&self, number: u64, bytes: u64) {
        self.until(|exchanges| exchanges.get(number).filter(|exchange| exchange.sent >= bytes).map(|_| ()))
            .await;
    }

    /// Stops: replies in progress are broken off, and every task has ended when this returns.
    pub async fn shutdown(self) {
        self.shared.stop.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }

    async fn until<T>(&self, mut find: impl FnMut(&Record) -> Option<T>) -> T {
        let mut changes = self.shared.changes.subscribe();
        loop {
            changes.borrow_and_update();
            if let Some(found) = find(&self.shared.exchanges()) {
                return found;
            }
            if changes.changed().await.is_err() {
                // The sender lives in `shared`, which `self` holds.
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Drop for UpstreamHandle {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

struct Shared {
    model: Box<dyn Model>,
    habits: Habits,
    exchanges: Mutex<Record>,
    changes: watch::Sender<u64>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("habits", &self.habits).finish_non_exhaustive()
    }
}

impl Shared {
    fn exchanges(&self) -> MutexGuard<'_, Record> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, request: &Request) -> u64 {
        self.exchanges().begin(request.clone())
    }

    fn update(&self, number: u64, change: impl FnOnce(&mut Exchange)) {
        if let Some(exchange) = self.exchanges().get_mut(number) {
            change(exchange);
        }
        self.changes.send_modify(|version| *version += 1);
    }

    /// What to answer. Pure but for the model and the record.
    fn answer(&self, number: u64, request: &Request) -> Performance {
        let has_key = self.model.key().is_none_or(|key| shown_key(request) == Some(key));
        let Some(route) = Route::of(&request.path, &request.query) else {
            return match has_key {
                true => self.listing(request),
                false => Performance::json(
                    401,
                    &dialect::refusal_body(Dialect::OpenaiChat, Delivery::Whole, &no_key()),
                ),
            };
        };
        let dialect = route.dialect;
        let checked = if !has_key {
            Err(no_key())
        } else if request.method == "POST" {
            dialect::read(&route, request, number, &self.habits)
        } else {
            Err(Refusal::new(format!("Invalid method: {} {}", request.method, request.path)).status(405))
        };
        match checked {
            Ok(mut seen) => {
                let broken = text::read(&mut seen);
                self.update(number, |exchange| {
                    exchange.dialect = Some(dialect);
                    exchange.seen = Some(seen.clone());
                    exchange.violation = (!broken.is_empty()).then(|| broken.join("; "));
                });
                perform(&self.model.reply(&seen), &seen)
            }
            Err(refusal) => {
                self.update(number, |exchange| {
                    exchange.dialect = Some(dialect);
                    exchange.violation = Some(refusal.message.clone());
                });
                let delivery = route.delivery.unwrap_or(Delivery::Whole);
                Performance::json(refusal.status, &dialect::refusal_body(dialect, delivery, &refusal))
            }
        }
    }

    /// Everything that is not a model call: lists of models, and what this is.
    fn listing(&self, request: &Request) -> Performance {
        let names = self.model.names();
        let list = |entry: &dyn Fn(&String) -> Value| names.iter().map(entry).collect::<Value>();
        let body = match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/v1/models") if request.header("anthropic-version").is_some() => {
                let entry = |name: &String| json!({"type": "model", "id": name, "display_name": name, "created_at": "2025-11-21T00:00:00Z"});
                json!({"data": list(&entry), "has_more": false, "first_id": names.first(), "last_id": names.last()})
            }
            ("GET", "/v1/models" | "/models") => {
                let entry = |name: &String| json!({"id": name, "object": "model", "created": CREATED, "owned_by": "throughline"});
                json!({"object": "list", "data": list(&entry)})
            }
            ("GET", "/v1beta/models") => {
                let entry = |name: &String| {
                    json!({"name": format!("models/{name}"), "displayName": name,
                        "supportedGenerationMethods": ["generateContent", "streamGenerateContent"]})
                };
                json!({"models": list(&entry)})
            }
            ("GET", "/api/tags") => {
                let entry = |name: &String| {
                    json!({"name": name, "model": name, "modified_at": "2025-11-21T00:00:00Z", "size": 0,
                        "digest": "", "details": {"format": "script", "family": "throughline"}})
                };
                json!({"models": list(&entry)})
            }
            ("GET", "/api/version") => json!({"version": env!("CARGO_PKG_VERSION")}),
            ("GET" | "HEAD", "/") => {
                let text = "This is a scripted upstream of Throughline's testkit, not an AI.\n";
                return Performance::fixed(200, "text/plain; charset=utf-8", text.into());
            }
            (method, path) => {
                let message = format!("Invalid URL ({method} {path})");
                let error =
                    json!({"message": message, "type": "invalid_request_error", "param": null, "code": null});
                return Performance::json(404, &json!({"error": error}));
            }
        };
        Performance::json(200, &body)
    }
}

/// The key of a request, in whichever header its provider takes it.
fn shown_key(request: &Request) -> Option<&str> {
    let bearer = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    bearer.or_else(|| request.header("x-api-key")).or_else(|| request.header("x-goog-api-key"))
}

fn no_key() -> Refusal {
    Refusal::new("Incorrect API key provided.").status(401)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        tokio::select! {
            () = shared.stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(shared.tasks.spawn(serve(stream, shared.clone()))),
                // Out of file descriptors, or a client that left in the queue: the listener itself is sound.
                Err(_) => tokio::task::yield_now().await,
            },
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // Each delta is a packet of its own, as from a real provider.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let mut connection = Connection { stream, ahead: Vec::new() };
    loop {
        let request = tokio::select! {
            () = shared.stop.cancelled() => return,
            request = connection.request() => request,
        };
        let request = match request {
            Ok(request) => request,
            Err(ReadError::Closed) => return,
            Err(ReadError::Malformed(why)) => {
                let mut refusal = http::head(400, &[("connection".into(), "close".into())], Some(why.len()));
                refusal.extend_from_slice(why.as_bytes());
                // The client may be gone; there is nobody else to tell.
                let _ = connection.stream.write_all(&refusal).await;
                return;
            }
        };
        let number = shared.begin(&request);
        let performance = shared.answer(number, &request);
        let closing = request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let ending = play(&mut connection, &performance, number, &shared).await;
        if ending == Ending::Broken(Break::Reset) {
            // SO_LINGER 0: closing sends RST instead of FIN. On failure the client sees a plain cut.
            let _ = connection.stream.set_zero_linger();
        }
        let over = closing || !matches!(ending, Ending::Complete | Ending::Broken(Break::End));
        if over {
            drop(connection);
            shared.update(number, |exchange| exchange.ending = Some(ending));
            return;
        }
        shared.update(number, |exchange| exchange.ending = Some(ending));
    }
}

/// Sends a response while watching whether the client is still there.
async fn play(
    connection: &mut Connection,
    performance: &Performance,
    number: u64,
    shared: &Shared,
) -> Ending {
    let (mut reading, mut writing) = connection.stream.split();
    let ahead = &mut connection.ahead;
    let sent = AtomicU64::new(0);
    let speaking = async {
        let length = (performance.framing == Framing::Length).then(|| declared_length(performance));
        tokio::time::sleep(performance.first_byte).await;
        shared.update(number, |exchange| exchange.status = Some(performance.status));
        writing.write_all(&http::head(performance.status, &performance.headers, length)).await?;
        for beat in &performance.beats {
            match beat {
                Beat::Bytes(bytes) if bytes.is_empty() => {}
                Beat::Bytes(bytes) => {
                    match performance.framing {
                        Framing::Chunked => http::write_chunk(&mut writing, bytes).await?,
                        Framing::Length => writing.write_all(bytes).await?,
                    }
                    sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                    shared.update(number, |exchange| exchange.sent = sent.load(Ordering::Relaxed));
                }
                Beat::Pause(silence) => tokio::time::sleep(*silence).await,
                Beat::WaitFor(file) => appeared(file).await,
                Beat::Break(Break::Stall) => std::future::pending::<()>().await,
                Beat::Break(Break::End) => break,
                Beat::Break(how) => return Ok(Ending::Broken(*how)),
            }
        }
        if performance.framing == Framing::Chunked {
            writing.write_all(b"0\r\n\r\n").await?;
        }
        let cut = performance.beats.contains(&Beat::Break(Break::End));
        Ok::<Ending, io::Error>(if cut { Ending::Broken(Break::End) } else { Ending::Complete })
    };
    let listening = async {
        loop {
            match reading.read_buf(ahead).await {
                Ok(0) | Err(_) => return,
                Ok(_) if ahead.len() > PIPELINED_BYTES_MAX => return,
                Ok(_) => {}
            }
        }
    };
    tokio::select! {
        // A client that leaves right after the last byte has had a complete reply.
        biased;
        ending = speaking => ending.unwrap_or(Ending::ClientGone),
        () = listening => Ending::ClientGone,
        () = shared.stop.cancelled() => Ending::Stopped,
    }
}

async fn appeared(file: &Path) {
    while !tokio::fs::try_exists(file).await.unwrap_or_default() {
        tokio::time::sleep(LOOKED_EVERY).await;
    }
}

/// `content-length` promises the whole body, also when a script breaks it: a body cut short must look cut short.
fn declared_length(performance: &Performance) -> usize {
    let length = performance.body().len();
    let broken = performance.beats.iter().any(|beat| matches!(beat, Beat::Break(how) if *how != Break::End));
    if broken { length * 2 + 1 } else { length }
}
