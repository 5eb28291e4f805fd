//! The upstream as a server on loopback: it answers with its model's scripts, and records every request.

pub use crate::exchange_log::{ExchangeEnd, HttpExchange, RequestViolation};

use crate::dialect::ToolSchemaRule;
use crate::dialect::{self, CREATED, FakeDialect, ModelRoute};
use crate::exchange_log::{EXCHANGES_RETAINED_MAX, ExchangeLog};
use crate::http::{self, FakeConnection, ReadError, ReceivedRequest};
use crate::model::FakeModel;
use crate::parsed_request::{ParsedRequest, ReplyDelivery};
use crate::quirk::PlantedQuirk;
use crate::response::{BodyFraming, ResponseStep, ScriptedResponse, render_with_quirks};
use crate::script::BodyBreak;
use crate::strict_json::RequestRefusal;
use crate::text_mode;
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

/// Limit of early bytes from a client that is being answered. They belong to its next request.
const PIPELINED_BYTES_MAX: usize = 1024 * 1024;

/// Interval between looks for an awaited file.
const FILE_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Differences between this upstream and the provider that defines the dialect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpstreamBehavior {
    /// Call ids that it accepts in Chat Completions.
    pub call_ids: CallIdRule,
    /// Rule for reasoning that goes back in Chat Completions.
    pub reasoning: ReasoningEchoRule,
    /// Rules for the schemas of tools in Chat Completions.
    pub tool_schemas: ToolSchemaRule,
    /// Most tools of a request, if there is a limit (OpenAI: 128).
    pub tools_max: Option<usize>,
    /// Most pictures and documents of a request, where it is not what its dialect takes otherwise (some models at Bedrock: 20).
    pub pictures_max: Option<usize>,
    /// Tools whose definitions it takes in no form.
    pub refused_tools: &'static [&'static str],
    /// Rule for the order of messages in Chat Completions.
    pub roles: RoleRule,
    /// Rule for the content of a message in Chat Completions.
    pub content: ContentRule,
    /// Fields that are no fields of Chat Completions there.
    pub unknown_fields: &'static [&'static str],
    /// Settings that its model does not take: reasoning models of OpenAI.
    pub unsupported: &'static [&'static str],
    /// Wording of the refusal of an unsupported parameter.
    pub unsupported_words: UnsupportedWords,
    /// Rule for a call that is forced in Chat Completions.
    pub forced_calls: ForcedCallRule,
    /// True if the model thinks only where `thinking` requests it, in Anthropic's format: Claude 4.5 and
    /// older.
    pub thinks_only_when_asked: bool,
}

impl UpstreamBehavior {
    /// Behavior of the upstream with this name in Throughline's list; that of api.openai.com for others.
    ///
    /// ```
    /// use throughline_testkit::{RoleRule, UpstreamBehavior};
    ///
    /// assert_eq!(UpstreamBehavior::of("mistral").roles, RoleRule::Mistral);
    /// ```
    pub fn of(name: &str) -> Self {
        let standard = Self::default();
        match name {
            "openai" | "openai-responses" | "groq" => Self { tools_max: Some(128), ..standard },
            "dashscope" => Self { forced_calls: ForcedCallRule::Dashscope, ..standard },
            "deepseek" => Self {
                reasoning: ReasoningEchoRule::TurnsWithCalls,
                content: ContentRule::PlainText,
                forced_calls: ForcedCallRule::Deepseek,
                ..standard
            },
            "moonshot" => Self {
                reasoning: ReasoningEchoRule::Required,
                tool_schemas: ToolSchemaRule::Moonshot,
                content: ContentRule::NotEmpty,
                forced_calls: ForcedCallRule::Moonshot,
                ..standard
            },
            "zhipu" => {
                Self { content: ContentRule::NotEmpty, forced_calls: ForcedCallRule::Zhipu, ..standard }
            }
            "xai" => Self {
                content: ContentRule::NotEmpty,
                unsupported: &["presence_penalty", "frequency_penalty"],
                unsupported_words: UnsupportedWords::Xai,
                ..standard
            },
            "mistral" => Self {
                call_ids: CallIdRule::Mistral,
                roles: RoleRule::Mistral,
                unknown_fields: &["stream_options", "prompt_cache_key", "developer"],
                ..standard
            },
            "llama.cpp" | "lmstudio" => {
                Self { tool_schemas: ToolSchemaRule::LlamaCpp, roles: RoleRule::Alternating, ..standard }
            }
            "vllm" => Self { roles: RoleRule::Alternating, ..standard },
            "claude-4.5" => Self { thinks_only_when_asked: true, ..standard },
            "devstral" => Self { roles: RoleRule::AlternatingWithoutCalls, ..standard },
            _ => standard,
        }
    }
}

/// Words in which a setting is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnsupportedWords {
    /// Wording of OpenAI.
    #[default]
    Openai,
    /// Wording of xAI, which calls a `presence_penalty` `presencePenalty`
    /// (<https://github.com/open-webui/open-webui/issues/21266>).
    Xai,
}

/// Calls that an upstream lets a request force, in Chat Completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForcedCallRule {
    /// Every call can be forced.
    #[default]
    Any,
    /// No forced call together with `enable_thinking: true`: DashScope
    /// (<https://github.com/cloudwego/eino/issues/994>).
    Dashscope,
    /// No forced call while thinking is on: DeepSeek
    /// (<https://github.com/deepseek-ai/DeepSeek-V3/issues/1376>). Models that think by default refuse it,
    /// too.
    Deepseek,
    /// Rule of Kimi: no forced call while thinking is on (<https://github.com/can1357/oh-my-pi/issues/1077>).
    Moonshot,
    /// No call can be forced or forbidden: GLM (<https://github.com/vectorize-io/hindsight/issues/4246>).
    Zhipu,
}

/// Order of messages that an upstream accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoleRule {
    /// Any order of roles.
    #[default]
    Any,
    /// The user and the model take turns, and the user begins, as templates of models demand it.
    Alternating,
    /// Alternating roles, where a step with calls and its results do not count: Devstral
    /// (<https://github.com/ggml-org/llama.cpp/issues/19851>).
    AlternatingWithoutCalls,
    /// A user message must not follow results, and the last message must not be the model's: Mistral.
    Mistral,
}

/// Content that an upstream accepts in messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContentRule {
    /// Any content.
    #[default]
    Any,
    /// Words alone are a text, and no list of parts: DeepSeek.
    PlainText,
    /// Content must not be blank: Moonshot, xAI.
    NotEmpty,
}

/// Call ids that an upstream accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallIdRule {
    /// Any text.
    #[default]
    Any,
    /// Nine letters and digits, results in order of the calls: Mistral.
    Mistral,
}

/// Rule for `reasoning_content` in an assistant message with calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReasoningEchoRule {
    /// Reasoning may be sent back.
    #[default]
    Optional,
    /// Reasoning must be sent back: Kimi while thinking.
    Required,
    /// Reasoning must be sent back in every message of a turn with calls: DeepSeek while thinking.
    TurnsWithCalls,
}

/// A scriptable upstream. It listens on one address and supports all eight dialects there.
#[derive(Debug)]
pub struct FakeUpstream {
    address: SocketAddr,
    behavior: UpstreamBehavior,
    exchanges_max: usize,
}

impl FakeUpstream {
    /// Starts on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// If no port can be had.
    pub async fn start(model: impl FakeModel) -> io::Result<FakeUpstreamHandle> {
        Self::on_address(SocketAddr::from(([127, 0, 0, 1], 0))).serve(model).await
    }

    /// To be started on this address.
    pub fn on_address(address: SocketAddr) -> Self {
        Self { address, behavior: UpstreamBehavior::default(), exchanges_max: EXCHANGES_RETAINED_MAX }
    }

    /// To be started on a free port with these behavior.
    pub fn with_behavior(behavior: UpstreamBehavior) -> Self {
        Self { behavior, ..Self::on_address(SocketAddr::from(([127, 0, 0, 1], 0))) }
    }

    /// Sets the number of exchanges to record, at least one; default [`EXCHANGES_RETAINED_MAX`].
    #[must_use]
    pub fn retain(mut self, exchanges: usize) -> Self {
        self.exchanges_max = exchanges;
        self
    }

    /// Listens.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub async fn serve(self, model: impl FakeModel) -> io::Result<FakeUpstreamHandle> {
        let listener = TcpListener::bind(self.address).await?;
        let address = listener.local_addr()?;
        let behavior = PlantedQuirk::behavior(model.quirks(), self.behavior);
        let shared = Arc::new(UpstreamState {
            model: Box::new(model),
            behavior,
            exchanges: Mutex::new(ExchangeLog::new(self.exchanges_max)),
            changes: watch::Sender::new(0),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        shared.tasks.spawn(accept(listener, shared.clone()));
        Ok(FakeUpstreamHandle { address, shared })
    }
}

/// A running upstream. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct FakeUpstreamHandle {
    address: SocketAddr,
    shared: Arc<UpstreamState>,
}

impl FakeUpstreamHandle {
    /// Address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:<port>`
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The base URL for a dialect: the provider's endpoint path is appended to it (`/chat/completions`, `/responses`,
    /// `/messages`, `/models/<model>:streamGenerateContent`, `/api/chat`, `/v2/chat`, `/model/<model>/converse-stream`).
    pub fn base_url(&self, dialect: FakeDialect) -> String {
        format!("{}{}", self.origin(), dialect.base_path())
    }

    /// Accepted model calls so far.
    pub fn requests(&self) -> Vec<ParsedRequest> {
        self.exchanges().into_iter().filter_map(|exchange| exchange.seen).collect()
    }

    /// Bodies of all model calls so far, refused ones included, as they came in.
    pub fn bodies(&self) -> Vec<Vec<u8>> {
        let calls = self.exchanges().into_iter().filter(|exchange| exchange.dialect.is_some());
        calls.map(|exchange| exchange.request.body).collect()
    }

    /// Requests that a real provider would have refused, and in text mode also broken framing of calls and results.
    pub fn violations(&self) -> Vec<RequestViolation> {
        let violation = |exchange: HttpExchange| {
            Some(RequestViolation {
                request: exchange.number,
                dialect: exchange.dialect?,
                message: exchange.violation?,
            })
        };
        self.exchanges().into_iter().filter_map(violation).collect()
    }

    /// All recorded exchanges so far.
    pub fn exchanges(&self) -> Vec<HttpExchange> {
        self.shared.exchanges().all()
    }

    /// Waits until the exchange `number` (from 1) has begun, and returns it. For an exchange that is no
    /// longer recorded, this and the next two methods never return.
    pub async fn wait_for_request(&self, number: u64) -> HttpExchange {
        self.wait_until(|exchanges| exchanges.get(number).cloned()).await
    }

    /// Waits until the exchange `number` (from 1) is over, and returns it with its result.
    pub async fn wait_for_end(&self, number: u64) -> ExchangeEnd {
        self.wait_until(|exchanges| exchanges.get(number).and_then(|exchange| exchange.ending)).await
    }

    /// Waits until at least `bytes` of the body of exchange `number` (from 1) were sent.
    pub async fn wait_for_bytes(&self, number: u64, bytes: u64) {
        self.wait_until(|exchanges| {
            exchanges.get(number).filter(|exchange| exchange.sent >= bytes).map(|_| ())
        })
        .await;
    }

    /// Stops: replies in progress are broken off, and every task has ended when this returns.
    pub async fn shutdown(self) {
        self.shared.stop.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }

    async fn wait_until<T>(&self, mut find: impl FnMut(&ExchangeLog) -> Option<T>) -> T {
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

impl Drop for FakeUpstreamHandle {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

struct UpstreamState {
    model: Box<dyn FakeModel>,
    behavior: UpstreamBehavior,
    exchanges: Mutex<ExchangeLog>,
    changes: watch::Sender<u64>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl std::fmt::Debug for UpstreamState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpstreamState").field("behavior", &self.behavior).finish_non_exhaustive()
    }
}

impl UpstreamState {
    fn exchanges(&self) -> MutexGuard<'_, ExchangeLog> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, request: &ReceivedRequest) -> u64 {
        self.exchanges().begin(request.clone())
    }

    fn update(&self, number: u64, change: impl FnOnce(&mut HttpExchange)) {
        if let Some(exchange) = self.exchanges().get_mut(number) {
            change(exchange);
        }
        self.changes.send_modify(|version| *version += 1);
    }

    /// The response to a request. Pure but for the model and the record.
    fn answer(&self, number: u64, request: &ReceivedRequest) -> ScriptedResponse {
        let has_key = self.model.key().is_none_or(|key| request_key(request) == Some(key));
        let Some(route) = ModelRoute::of(&request.path, &request.query) else {
            return if has_key {
                self.listing(request)
            } else {
                let body = dialect::refusal_body(FakeDialect::OpenaiChat, ReplyDelivery::Whole, &no_key());
                ScriptedResponse::json(401, &body)
            };
        };
        let dialect = route.dialect;
        let checked = if !has_key {
            Err(no_key())
        } else if request.method == "POST" {
            dialect::read(&route, request, number, &self.behavior)
        } else {
            Err(RequestRefusal::new(format!("Invalid method: {} {}", request.method, request.path))
                .status(405))
        };
        match checked {
            Ok(mut seen) => {
                let broken = text_mode::read(&mut seen);
                self.update(number, |exchange| {
                    exchange.dialect = Some(dialect);
                    exchange.seen = Some(seen.clone());
                    exchange.violation = (!broken.is_empty()).then(|| broken.join("; "));
                });
                self.reply(&seen)
            }
            Err(refusal) => {
                self.update(number, |exchange| {
                    exchange.dialect = Some(dialect);
                    exchange.violation = Some(refusal.message.clone());
                });
                let delivery = route.delivery.unwrap_or(ReplyDelivery::Whole);
                ScriptedResponse::json(refusal.status, &dialect::refusal_body(dialect, delivery, &refusal))
            }
        }
    }

    /// The model's reply, with the quirks of this upstream.
    fn reply(&self, seen: &ParsedRequest) -> ScriptedResponse {
        let quirks = self.model.quirks();
        render_with_quirks(quirks, seen, || self.model.reply(seen))
    }

    /// Answers every request that is not a model call: lists of models, and a description of the server.
    fn listing(&self, request: &ReceivedRequest) -> ScriptedResponse {
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
                return ScriptedResponse::fixed(200, "text/plain; charset=utf-8", text.into());
            }
            (method, path) => {
                let message = format!("Invalid URL ({method} {path})");
                let error =
                    json!({"message": message, "type": "invalid_request_error", "param": null, "code": null});
                return ScriptedResponse::json(404, &json!({"error": error}));
            }
        };
        ScriptedResponse::json(200, &body)
    }
}

/// The key of a request, in the header that its provider uses.
fn request_key(request: &ReceivedRequest) -> Option<&str> {
    let bearer = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    bearer.or_else(|| request.header("x-api-key")).or_else(|| request.header("x-goog-api-key"))
}

fn no_key() -> RequestRefusal {
    RequestRefusal::new("Incorrect API key provided.").status(401)
}

async fn accept(listener: TcpListener, shared: Arc<UpstreamState>) {
    loop {
        tokio::select! {
            () = shared.stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(shared.tasks.spawn(serve(stream, shared.clone()))),
                // Out of file descriptors, or a client that left in the queue: the listener itself is sound.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<UpstreamState>) {
    // Each delta is a separate packet, as from a real provider.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let mut connection = FakeConnection { stream, read_ahead: Vec::new() };
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
                // The client may have disconnected; no one else needs the response.
                let _ = connection.stream.write_all(&refusal).await;
                return;
            }
        };
        let number = shared.begin(&request);
        let response = shared.answer(number, &request);
        let closing = request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let ending = play(&mut connection, &response, number, &shared).await;
        if ending == ExchangeEnd::Broken(BodyBreak::Reset) {
            // SO_LINGER 0: closing sends RST instead of FIN. On failure the client sees a plain cut.
            let _ = connection.stream.set_zero_linger();
        }
        let over = closing || !matches!(ending, ExchangeEnd::Complete | ExchangeEnd::Broken(BodyBreak::End));
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
    connection: &mut FakeConnection,
    response: &ScriptedResponse,
    number: u64,
    shared: &UpstreamState,
) -> ExchangeEnd {
    let (mut reading, mut writing) = connection.stream.split();
    let read_ahead = &mut connection.read_ahead;
    let sent = AtomicU64::new(0);
    let sending = async {
        let length = (response.framing == BodyFraming::Length).then(|| declared_length(response));
        tokio::time::sleep(response.first_byte_delay).await;
        shared.update(number, |exchange| exchange.status = Some(response.status));
        writing.write_all(&http::head(response.status, &response.headers, length)).await?;
        for step in &response.steps {
            match step {
                ResponseStep::Bytes(bytes) if bytes.is_empty() => {}
                ResponseStep::Bytes(bytes) => {
                    match response.framing {
                        BodyFraming::Chunked => http::write_chunk(&mut writing, bytes).await?,
                        BodyFraming::Length => writing.write_all(bytes).await?,
                    }
                    sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                    shared.update(number, |exchange| exchange.sent = sent.load(Ordering::Relaxed));
                }
                ResponseStep::Pause(silence) => tokio::time::sleep(*silence).await,
                ResponseStep::WaitFor(file) => wait_for_file(file).await,
                ResponseStep::Break(BodyBreak::Stall) => std::future::pending::<()>().await,
                ResponseStep::Break(BodyBreak::End) => break,
                ResponseStep::Break(how) => return Ok(ExchangeEnd::Broken(*how)),
            }
        }
        if response.framing == BodyFraming::Chunked {
            writing.write_all(b"0\r\n\r\n").await?;
        }
        let cut = response.steps.contains(&ResponseStep::Break(BodyBreak::End));
        Ok::<ExchangeEnd, io::Error>(if cut {
            ExchangeEnd::Broken(BodyBreak::End)
        } else {
            ExchangeEnd::Complete
        })
    };
    let watching_client = async {
        loop {
            match reading.read_buf(read_ahead).await {
                Ok(0) | Err(_) => return,
                Ok(_) if read_ahead.len() > PIPELINED_BYTES_MAX => return,
                Ok(_) => {}
            }
        }
    };
    tokio::select! {
        // A client that leaves right after the last byte has had a complete reply.
        biased;
        ending = sending => ending.unwrap_or(ExchangeEnd::ClientDisconnected),
        () = watching_client => ExchangeEnd::ClientDisconnected,
        () = shared.stop.cancelled() => ExchangeEnd::Stopped,
    }
}

async fn wait_for_file(file: &Path) {
    while !tokio::fs::try_exists(file).await.unwrap_or_default() {
        tokio::time::sleep(FILE_POLL_INTERVAL).await;
    }
}

/// `content-length` promises the whole body, also when a script breaks it: a body cut short must look cut short.
fn declared_length(response: &ScriptedResponse) -> usize {
    let length = response.body().len();
    let broken =
        response.steps.iter().any(|step| matches!(step, ResponseStep::Break(how) if *how != BodyBreak::End));
    if broken { length * 2 + 1 } else { length }
}
