//! One model call over HTTP: a request out, the reply through the decoder, every way to fail as a value.

use super::batch::Batch;
use super::deadlines::{Deadlines, Patience, Waiting};
use super::failure::{self, Answer, Offered};
use super::handoff::{Handoff, ModelItem};
use super::{Key, Proxy, Upstream};
use crate::clock::Clock;
use crate::driver::{CallWatch, RawWatch};
use crate::error::Error;
use crate::media::Shelf;
use crate::observer::ModelMoment;
use crate::stored::ReadAs;
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use std::borrow::Cow;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use throughline_engine::{FailureKind, UpstreamFailure};
use throughline_tools::Secrets;
use throughline_wire::text::{CallFormat, render};
use throughline_wire::{
    DecodeOptions, Dialect, EncodedRequest, End, Limits, Message, ModelRequest, Profile, StepDecoder,
    StepEvent, Think, Transfer, encode,
};
use tokio::time::{Instant, timeout_at};

/// Most bytes of an error body that are read.
const ERROR_BODY_BYTES_MAX: usize = 64 << 10;
/// Most bytes that are read behind a complete reply for the sake of its connection, and how long.
const REST_BYTES_MAX: usize = 16 << 10;
const REST_MAX: Duration = Duration::from_millis(500);
/// What Anthropic's API asks of every request.
const ANTHROPIC_VERSION: &str = "2023-06-01";
/// How long an idle connection is kept for the next call. Below the shortest common server setting (60 s), so that few
/// calls meet a stale one.
const POOL_IDLE: Duration = Duration::from_secs(30);

/// The time of a call.
#[derive(Clone, Copy)]
pub(crate) struct CallTime<'a> {
    pub clock: &'a Clock,
    /// When it is given up. Tries of one call share it: an upstream that drips for ever costs `total_ms` once.
    pub until: Instant,
}

/// An upstream with its connections.
pub(crate) struct UpstreamClient {
    upstream: Upstream,
    /// What it is told and nobody else may see.
    secrets: Secrets,
    limits: Limits,
    http: reqwest::Client,
    /// A connection of an earlier call may be in the pool, and may have gone stale there.
    may_be_stale: AtomicBool,
    /// It has refused `stream_options` once.
    refuses_stream_options: AtomicBool,
    /// It has refused `include: ["reasoning.encrypted_content"]` once.
    refuses_encrypted_reasoning: AtomicBool,
}

impl UpstreamClient {
    pub(crate) fn new(upstream: Upstream, limits: Limits) -> Result<Self, Error> {
        install_tls();
        let mut builder = reqwest::Client::builder()
            // A redirect would carry the key and the conversation somewhere that nobody configured.
            .redirect(reqwest::redirect::Policy::none())
            // Streams are asked for as `identity`; one that is compressed all the same is refused, so that no few bytes
            // can become many.
            .gzip(false)
            .connect_timeout(Duration::from_millis(upstream.timeouts.connect_ms))
            .pool_idle_timeout(POOL_IDLE)
            .tcp_keepalive(POOL_IDLE)
            .user_agent(concat!("throughline/", env!("CARGO_PKG_VERSION")));
        match &upstream.proxy {
            Proxy::System if upstream.base_url.is_loopback() => builder = builder.no_proxy(),
            Proxy::System => {}
            Proxy::Off => builder = builder.no_proxy(),
            Proxy::Url(url) => {
                let proxy = reqwest::Proxy::all(url).map_err(|error| Error::BadProxy {
                    upstream: upstream.name.clone(),
                    why: error.to_string(),
                })?;
                builder = builder.proxy(proxy);
            }
        }
        if !upstream.base_url.is_encrypted() && !matches!(&upstream.proxy, Proxy::Url(_)) {
            // Reading the system's certificates takes time, and fails where there are none; a server in clear text, as
            // in a small container, needs neither.
            builder = builder.tls_certs_only(std::iter::empty());
        }
        let http = builder.build().map_err(|error| Error::NoHttpClient {
            upstream: upstream.name.clone(),
            why: error.to_string(),
        })?;
        Ok(Self {
            secrets: Secrets::new(upstream.secrets()),
            upstream,
            limits,
            http,
            may_be_stale: AtomicBool::new(false),
            refuses_stream_options: AtomicBool::new(false),
            refuses_encrypted_reasoning: AtomicBool::new(false),
        })
    }

    pub(crate) fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// When a call that begins now is given up, with all its tries.
    pub(crate) fn until(&self) -> Instant {
        Instant::now() + Duration::from_millis(self.upstream.timeouts.total_ms)
    }

    /// Asks the model and hands out what it says. While a piece waits to be taken the upstream is not read. Dropping the
    /// future closes the connection.
    pub(crate) async fn call(
        &self,
        request: Box<ModelRequest>,
        calls: &CallFormat,
        time: CallTime<'_>,
        watch: CallWatch,
        shelf: &Shelf,
        out: &Handoff,
    ) {
        let mut bytes = 0;
        let listeners = Listeners { out, watch: &watch, shelf };
        let exchanged = self.exchange(request, calls, time, listeners, &mut bytes).await;
        let failure = exchanged.as_ref().err().map(|failure| failure.kind);
        watch.moment(|at| ModelMoment::Ended { at, bytes, failure });
        if let Err(failure) = exchanged {
            let failure = UpstreamFailure { message: self.redact(&failure.message), ..failure };
            out.put(ModelItem::Failed(failure)).await;
        }
    }

    async fn exchange(
        &self,
        request: Box<ModelRequest>,
        calls: &CallFormat,
        time: CallTime<'_>,
        listeners: Listeners<'_>,
        bytes: &mut u64,
    ) -> Result<(), UpstreamFailure> {
        let limits = Deadlines::start(&self.upstream, time.until);
        limits.has_time()?;
        let names = request.tools.iter().map(|tool| tool.name.as_str().to_owned()).collect();
        let written = match calls {
            CallFormat::Native => request,
            CallFormat::Text(text) => Box::new(render(&request, text)),
        };
        let offered = if written.tools.is_empty() { Offered::Nothing } else { Offered::Tools };
        let mut response = self.open(&written, time.clock, offered, &limits, listeners.watch).await?;
        // A reply takes long, and a history can be large. Its headers keep the whole buffer that they were read into.
        drop(written);
        response.headers_mut().clear();
        let options = DecodeOptions {
            limits: self.limits,
            profile: self.profile(),
            think: Think::Split,
            offered: names,
            calls: calls.clone(),
        };
        let reply = Reply {
            client: self,
            decoder: StepDecoder::new(self.upstream.dialect, options),
            offered,
            said: Said::Nothing,
            bytes,
            raw: listeners.watch.raw(&self.secrets),
            listeners,
        };
        if let Ended::Early(rest) = reply.read(response, &limits, self.host()).await? {
            tokio::spawn(give_back(rest));
        }
        self.may_be_stale.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Sends the request until there is an answer with status 200. Repeats it at once, and at most once each, on a
    /// stale connection, on a refusal of `stream_options`, of encrypted reasoning or of a forced call, when reasoning that is sent back
    /// cannot be read there, and when the model could not write a call; every other repetition is the engine's
    /// decision.
    async fn open(
        &self,
        request: &ModelRequest,
        clock: &Clock,
        offered: Offered,
        limits: &Deadlines,
        watch: &CallWatch,
    ) -> Result<reqwest::Response, UpstreamFailure> {
        let mut request = Cow::Borrowed(request);
        let (mut written_again, mut forgotten) = (Again::No, Again::No);
        loop {
            let encoded = encode(self.upstream.dialect, &request, &self.profile(), self.upstream.transfer)
                .map_err(|error| failure::plain(FailureKind::Unsendable, error.to_string()))?;
            let sending = self.request(&encoded)?;
            let bytes = sending.body().and_then(reqwest::Body::as_bytes).map_or(0, <[u8]>::len) as u64;
            watch.moment(|at| ModelMoment::Sent { at, bytes });
            let sent = timeout_at(limits.first_byte, self.http.execute(sending)).await;
            let response = match sent {
                Err(_) => return Err(limits.expired(Waiting::FirstByte)),
                // The pool's connection had been closed by the other side: nothing has come, so nothing is repeated
                // that anyone has seen.
                Ok(Err(error))
                    if error.is_request()
                        && !error.is_connect()
                        && !error.is_timeout()
                        && self.may_be_stale.swap(false, Ordering::Relaxed) =>
                {
                    continue;
                }
                Ok(Err(error)) => return Err(failure::of_transport(&error, self.host())),
                Ok(Ok(response)) => response,
            };
            let status = response.status();
            watch.moment(|at| ModelMoment::Answered { at, status: status.as_u16() });
            if status.is_success() {
                return acceptable(response, &self.secrets).await;
            }
            let headers = response.headers().clone();
            // Before anything of it is shortened: half a key is half a key too much.
            let body = self.redact(&error_body(response, limits).await);
            if self.profile().include_usage
                && self.upstream.dialect == Dialect::OpenaiChat
                && failure::names_stream_options(status.as_u16(), &body)
            {
                self.refuses_stream_options.store(true, Ordering::Relaxed);
                continue;
            }
            if self.profile().encrypted_reasoning
                && self.upstream.dialect == Dialect::OpenaiResponses
                && failure::names_encrypted_reasoning(status.as_u16(), &body)
            {
                self.refuses_encrypted_reasoning.store(true, Ordering::Relaxed);
                continue;
            }
            if request.tool_choice.is_forced() && failure::names_tool_choice(status.as_u16(), &body) {
                request = Cow::Owned(request.asking_in_words());
                continue;
            }
            if forgotten == Again::No && failure::is_unreadable_reasoning(status.as_u16(), &body) {
                forgotten = Again::Yes;
                request = Cow::Owned(without_provider_state(&request));
                continue;
            }
            if written_again == Again::No && failure::is_failed_call(status.as_u16(), &body) {
                written_again = Again::Yes;
                continue;
            }
            if status.is_redirection() {
                let to =
                    headers.get(header::LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("somewhere else");
                let message = format!("it redirects to {to}; set base_url to where it really is");
                let failure = failure::plain(FailureKind::Unsendable, message);
                return Err(UpstreamFailure { status: Some(status.as_u16()), ..failure });
            }
            let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
            let answer = Answer {
                status: status.as_u16(),
                retry_after: text("retry-after"),
                retry_after_ms: text("retry-after-ms"),
                body: &body,
                now: clock.now(),
            };
            return Err(failure::of_answer(&answer, offered));
        }
    }

    /// Asks for something beside the models' replies, such as which models there are: the whole answer. R: O4
    pub(crate) async fn look(&self, path: &str, bytes_max: usize) -> Result<Vec<u8>, UpstreamFailure> {
        let version = match self.upstream.dialect {
            Dialect::Anthropic => vec![("anthropic-version", ANTHROPIC_VERSION.to_owned())],
            _ => Vec::new(),
        };
        let headers = self.headers("application/json", &version)?;
        let limits = Deadlines::start(&self.upstream, self.until());
        let sending = self.http.get(self.upstream.base_url.join(path)).headers(headers).send();
        let mut response = match timeout_at(limits.first_byte, sending).await {
            Err(_) => return Err(limits.expired(Waiting::FirstByte)),
            Ok(Err(error)) => return Err(failure::of_transport(&error, self.host())),
            Ok(Ok(response)) => response,
        };
        let status = response.status();
        if !status.is_success() {
            let body = self.redact(&error_body(response, &limits).await);
            let answer = Answer {
                status: status.as_u16(),
                retry_after: None,
                retry_after_ms: None,
                body: &body,
                now: 0,
            };
            return Err(failure::of_answer(&answer, Offered::Nothing));
        }
        let mut bytes = Vec::new();
        loop {
            match timeout_at(limits.next(Waiting::NextPiece), response.chunk()).await {
                Err(_) => return Err(limits.expired(Waiting::NextPiece)),
                Ok(Err(error)) => return Err(failure::of_transport(&error, self.host())),
                Ok(Ok(None)) => return Ok(bytes),
                Ok(Ok(Some(piece))) if bytes.len() + piece.len() > bytes_max => {
                    let message = format!("the answer has more than {bytes_max} bytes");
                    return Err(failure::plain(FailureKind::Status, message));
                }
                Ok(Ok(Some(piece))) => bytes.extend_from_slice(&piece),
            }
        }
    }

    fn request(&self, encoded: &EncodedRequest) -> Result<reqwest::Request, UpstreamFailure> {
        let unsendable = |why: String| failure::plain(FailureKind::Unsendable, why);
        let accept = accept(self.upstream.dialect, self.upstream.transfer);
        let headers = self.headers(accept, &encoded.headers)?;
        let body = serde_json::to_vec(&encoded.body).map_err(|error| unsendable(error.to_string()))?;
        self.http
            .post(self.upstream.base_url.join(&encoded.path))
            .headers(headers)
            .body(body)
            .build()
            .map_err(|error| unsendable(error.to_string()))
    }

    /// Sends JSON as it is.
    pub(super) async fn post(
        &self,
        path: &str,
        headers: HeaderMap,
        body: &serde_json::Value,
    ) -> Result<reqwest::Response, reqwest::Error> {
        let request = self.http.post(self.upstream.base_url.join(path)).headers(headers);
        request.body(body.to_string()).send().await
    }

    /// What every request carries, the key included.
    pub(super) fn headers(
        &self,
        accept: &str,
        more: &[(&'static str, String)],
    ) -> Result<HeaderMap, UpstreamFailure> {
        let unsendable = |why: String| failure::plain(FailureKind::Unsendable, why);
        let mut headers = HeaderMap::new();
        let mut put = |name: HeaderName, value: &str, secrecy: Secrecy| match HeaderValue::try_from(value) {
            Ok(mut value) => {
                value.set_sensitive(secrecy == Secrecy::Secret);
                headers.insert(name, value);
                Ok(())
            }
            Err(_) => Err(unsendable(format!("the value of the header `{name}` cannot be sent"))),
        };
        put(header::CONTENT_TYPE, "application/json", Secrecy::Plain)?;
        put(header::ACCEPT_ENCODING, "identity", Secrecy::Plain)?;
        put(header::ACCEPT, accept, Secrecy::Plain)?;
        for (name, value) in more {
            put(HeaderName::from_static(name), value, Secrecy::Plain)?;
        }
        match &self.upstream.key {
            Key::Without => {}
            Key::Given(key) => match self.upstream.dialect {
                Dialect::Anthropic => {
                    put(HeaderName::from_static("x-api-key"), key.reveal(), Secrecy::Secret)?
                }
                Dialect::Gemini => {
                    put(HeaderName::from_static("x-goog-api-key"), key.reveal(), Secrecy::Secret)?
                }
                _ => put(header::AUTHORIZATION, &format!("Bearer {}", key.reveal()), Secrecy::Secret)?,
            },
            Key::Missing(variable) => {
                let why = format!(
                    "there is no key: the environment variable {variable} is not set, and none is stored"
                );
                return Err(failure::plain(FailureKind::Unauthorized, why));
            }
        }
        for (name, value) in &self.upstream.headers {
            put(name.clone(), value.reveal(), Secrecy::Secret)?;
        }
        Ok(headers)
    }

    /// How its replies are read.
    pub(crate) fn read_as(&self) -> ReadAs {
        ReadAs { dialect: self.upstream.dialect, profile: self.profile() }
    }

    fn profile(&self) -> Profile {
        let mut profile = self.upstream.profile.clone();
        profile.include_usage &= !self.refuses_stream_options.load(Ordering::Relaxed);
        profile.encrypted_reasoning &= !self.refuses_encrypted_reasoning.load(Ordering::Relaxed);
        profile
    }

    fn host(&self) -> &str {
        &self.upstream.name
    }

    /// Upstreams like to repeat a wrong key, also in the middle of a stream. R: R4
    fn clean(&self, event: &mut StepEvent<'static>) {
        match event {
            StepEvent::End(End::Error(error)) => {
                error.message = self.redact(&error.message);
                error.kind = error.kind.as_deref().map(|kind| self.redact(kind));
                error.code = error.code.as_deref().map(|code| self.redact(code));
            }
            StepEvent::Problem(problem) => problem.excerpt = self.redact(&problem.excerpt),
            _ => {}
        }
    }

    pub(super) fn redact(&self, message: &str) -> String {
        self.secrets.redact(message).into_owned()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Secrecy {
    Plain,
    Secret,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    No,
    Yes,
}

/// The history without what upstreams want back verbatim: it is rebuilt from text and calls.
fn without_provider_state(request: &ModelRequest) -> ModelRequest {
    let mut request = request.clone();
    for message in &mut request.messages {
        if let Message::Step(step) = message {
            step.provider_state = None;
        }
    }
    request
}

fn accept(dialect: Dialect, transfer: Transfer) -> &'static str {
    match (transfer, dialect) {
        (Transfer::Whole, _) => "application/json",
        (Transfer::Stream, Dialect::Ollama) => "application/x-ndjson",
        (Transfer::Stream, _) => "text/event-stream",
    }
}

/// A body that can be a reply, or what is wrong with it.
async fn acceptable(
    response: reqwest::Response,
    secrets: &Secrets,
) -> Result<reqwest::Response, UpstreamFailure> {
    let status = Some(response.status().as_u16());
    let text = |name: HeaderName| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().trim().to_ascii_lowercase()
    };
    let coding = text(header::CONTENT_ENCODING);
    if !coding.is_empty() && coding != "identity" {
        let message = format!("the reply is compressed ({coding}) although `identity` was asked for");
        return Err(UpstreamFailure { status, ..failure::plain(FailureKind::Status, message) });
    }
    if text(header::CONTENT_TYPE).starts_with("text/html") {
        // R: R3
        let page = start_of(response, 512).await;
        let message = format!(
            "a web page came instead of a reply: {}",
            super::error_body::plain(&secrets.redact(&page))
        );
        return Err(UpstreamFailure { status, ..failure::plain(FailureKind::Status, message) });
    }
    Ok(response)
}

/// The first bytes of a body, within a second: the page's title is a courtesy, not worth a wait.
async fn start_of(mut response: reqwest::Response, bytes_max: usize) -> String {
    let deadline = Instant::now() + Duration::from_secs(1);
    let mut bytes = Vec::new();
    while bytes.len() < bytes_max {
        match timeout_at(deadline, response.chunk()).await {
            Ok(Ok(Some(piece))) => bytes.extend_from_slice(&piece),
            Ok(Ok(None) | Err(_)) | Err(_) => break,
        }
    }
    bytes.truncate(bytes_max);
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(super) async fn error_body(mut response: reqwest::Response, limits: &Deadlines) -> String {
    let mut bytes = Vec::new();
    // What has come by the time the body breaks off or stalls is better than nothing: the status is known.
    while let Ok(Ok(Some(piece))) = timeout_at(limits.next(Waiting::NextPiece), response.chunk()).await {
        bytes.extend_from_slice(&piece[..piece.len().min(ERROR_BODY_BYTES_MAX - bytes.len())]);
        if bytes.len() == ERROR_BODY_BYTES_MAX {
            break;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A reply on its way through the decoder.
struct Reply<'a> {
    client: &'a UpstreamClient,
    decoder: StepDecoder,
    offered: Offered,
    said: Said,
    /// Of the body so far.
    bytes: &'a mut u64,
    listeners: Listeners<'a>,
    raw: RawWatch,
}

/// Who is told of a reply as it comes.
#[derive(Clone, Copy)]
struct Listeners<'a> {
    out: &'a Handoff,
    watch: &'a CallWatch,
    /// Takes pictures that are too large for the log.
    shelf: &'a Shelf,
}

/// Whether anything of the reply has been passed on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    Nothing,
    Something,
}

/// How a body ended, for the connection that carried it.
enum Ended {
    /// Read to the end, or broken off.
    Wholly,
    /// The reply was complete before its end.
    Early(reqwest::Response),
}

/// Reads what is left of a complete reply, so that its connection can carry the next call: to connect again, with TLS, costs
/// as much as a short answer. Usually it is the end of the body, which has come already.
async fn give_back(mut response: reqwest::Response) {
    let reading = async {
        let mut bytes = 0;
        while let Ok(Some(piece)) = response.chunk().await {
            bytes += piece.len();
            if bytes > REST_BYTES_MAX {
                break;
            }
        }
    };
    // A server that keeps a complete reply open loses its connection.
    let _ = tokio::time::timeout(REST_MAX, reading).await;
}

impl Reply<'_> {
    async fn read(
        mut self,
        mut response: reqwest::Response,
        limits: &Deadlines,
        host: &str,
    ) -> Result<Ended, UpstreamFailure> {
        let (mut waiting, mut patience) = (Waiting::FirstByte, Patience::new(limits));
        loop {
            let failure = match patience.within(limits.next(waiting), response.chunk()).await {
                Ok(Ok(Some(piece))) => {
                    // An empty piece is no byte.
                    if !piece.is_empty() {
                        if *self.bytes == 0 {
                            self.listeners.watch.moment(|at| ModelMoment::FirstByte { at });
                        }
                        *self.bytes += piece.len() as u64;
                        self.raw.push(&piece);
                        waiting = Waiting::NextPiece;
                    }
                    let mut events = Batch::default();
                    self.decoder.push(&piece, &mut |event| events.push(event));
                    self.pass_on(events.into_events()).await?;
                    if self.decoder.is_over() {
                        return Ok(Ended::Early(response));
                    }
                    continue;
                }
                Ok(Ok(None)) => {
                    let mut events = Batch::default();
                    self.decoder.finish(&mut |event| events.push(event));
                    self.pass_on(events.into_events()).await?;
                    return Ok(Ended::Wholly);
                }
                Ok(Err(error)) => failure::of_transport(&error, host),
                Err(_) => limits.expired(waiting),
            };
            return self.broken_off(failure).await;
        }
    }

    /// The connection is lost or given up. What the decoder still holds is passed on; the failure takes the place of
    /// its `End`, unless the reply turns out to have been complete.
    async fn broken_off(mut self, failure: UpstreamFailure) -> Result<Ended, UpstreamFailure> {
        let mut events = Batch::default();
        self.decoder.finish(&mut |event| events.push(event));
        let mut events = events.into_events();
        if events.last() == Some(&StepEvent::End(End::Complete)) {
            self.pass_on(events).await?;
            return Ok(Ended::Wholly);
        }
        events.retain(|event| !matches!(event, StepEvent::End(_)));
        self.pass_on(events).await?;
        Err(failure)
    }

    async fn pass_on(&mut self, mut events: Vec<StepEvent<'static>>) -> Result<(), UpstreamFailure> {
        if events.is_empty() {
            return Ok(());
        }
        for event in &mut events {
            self.client.clean(event);
            if let StepEvent::Image(media) = event {
                self.listeners.shelf.put_away(media).await;
            }
            match event {
                StepEvent::End(End::Error(error)) if self.said == Said::Nothing => {
                    if let Some(failure) = failure::of_first_event(error, self.offered) {
                        return Err(failure);
                    }
                }
                StepEvent::Problem(_)
                | StepEvent::Usage(_)
                | StepEvent::Opaque(_)
                | StepEvent::Finish { .. } => {}
                _ if self.said == Said::Something => {}
                _ => {
                    self.said = Said::Something;
                    self.listeners.watch.moment(|at| ModelMoment::FirstToken { at });
                }
            }
        }
        self.listeners.out.put(ModelItem::Events(events)).await;
        Ok(())
    }
}

/// rustls wants one cryptography for the process. A program that has chosen its own keeps it.
fn install_tls() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Lost only to someone who installs theirs at this very moment, which is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
    });
}
