//! An upstream with its connections, its key and its secrets.

use super::deadlines::{CallDeadlines, WaitPhase};
use super::failure::{self, ToolsInRequest, UpstreamErrorResponse};
use super::learned_profile::LearnedProfile;
use super::models::ModelFacts;
use super::response_body::error_body;
use super::too_long::TooLongHistories;
use super::{DecodeProfile, KeyState, OutgoingRequest, Upstream, UpstreamProxy};
use crate::error::Error;
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, Once, PoisonError, RwLock};
use std::time::Duration;
use throughline_engine::{FailureKind, UpstreamFailure};
use throughline_tools::SecretSet;
use throughline_wire::{DecodeLimits, Dialect, Message, StepEvent, StreamEnd};
use tokio::time::{Instant, timeout_at};

/// Version header that Anthropic's API requires of every request.
const ANTHROPIC_VERSION: &str = "2023-06-01";
/// Time for which an idle connection is pooled for the next call. Below the shortest common server setting (60 s), so
/// that few calls meet a stale one.
const POOL_IDLE: Duration = Duration::from_secs(30);

/// Secrets of an authorizer that are redacted: those of calls that may still run.
const FRESH_SECRETS_MAX: usize = 32;

/// An upstream with its connections.
pub(crate) struct UpstreamClient {
    pub(super) upstream: Upstream,
    /// Secrets that it sends and that must not appear anywhere else.
    secrets: RwLock<SecretSet>,
    /// The last ones that the authorizer has set.
    fresh_secrets: Mutex<VecDeque<String>>,
    pub(super) limits: DecodeLimits,
    /// Facts that the configuration states about models.
    pub(super) models: Arc<BTreeMap<String, ModelFacts>>,
    pub(super) http: reqwest::Client,
    /// A connection of an earlier call may be in the pool, and may be stale by now.
    pub(super) may_be_stale: AtomicBool,
    pub(super) profile: LearnedProfile,
    pub(super) too_long: TooLongHistories,
}

impl UpstreamClient {
    pub(crate) fn new(upstream: Upstream, limits: DecodeLimits) -> Result<Self, Error> {
        install_tls();
        let mut builder = reqwest::Client::builder()
            // A redirect would send the key and the conversation to an address that is not configured.
            .redirect(reqwest::redirect::Policy::none())
            // Streams are requested as `identity`; a compressed one is refused, so that a few bytes cannot
            // expand to many.
            .no_gzip()
            .connect_timeout(Duration::from_millis(upstream.time_limits().connect_ms))
            .pool_idle_timeout(POOL_IDLE)
            .tcp_keepalive(POOL_IDLE)
            .user_agent(concat!("throughline/", env!("CARGO_PKG_VERSION")));
        match &upstream.proxy {
            UpstreamProxy::System if upstream.base_url.is_loopback() => builder = builder.no_proxy(),
            UpstreamProxy::System => {}
            UpstreamProxy::Off => builder = builder.no_proxy(),
            UpstreamProxy::Url(url) => {
                let proxy = reqwest::Proxy::all(url).map_err(|error| Error::BadProxy {
                    upstream: upstream.name.clone(),
                    why: error.to_string(),
                })?;
                builder = builder.proxy(proxy);
            }
        }
        if !upstream.base_url.is_encrypted() && !matches!(&upstream.proxy, UpstreamProxy::Url(_)) {
            // Reading the system's certificates takes time, and fails where none are installed; a server in
            // clear text, as in a small container, needs neither.
            builder = builder.tls_certs_only(std::iter::empty());
        }
        let http = builder.build().map_err(|error| Error::NoHttpClient {
            upstream: upstream.name.clone(),
            why: error.to_string(),
        })?;
        Ok(Self {
            secrets: RwLock::new(SecretSet::new(upstream.secrets())),
            fresh_secrets: Mutex::default(),
            profile: LearnedProfile::new(upstream.dialect, upstream.profile.clone()),
            upstream,
            limits,
            models: Arc::default(),
            http,
            may_be_stale: AtomicBool::new(false),
            too_long: TooLongHistories::default(),
        })
    }

    /// Adds facts about models from the configuration.
    pub(crate) fn with_models(self, models: Arc<BTreeMap<String, ModelFacts>>) -> Self {
        Self { models, ..self }
    }

    pub(crate) fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// True if this model has refused an earlier history of the same conversation as too long.
    pub(crate) fn has_refused_as_too_long(
        &self,
        model: &str,
        conversation: &str,
        history: &[Message],
    ) -> bool {
        self.too_long.contains(model, conversation, history)
    }

    /// Deadline of a call that starts now, with all its attempts.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + Duration::from_millis(self.upstream.time_limits().total_ms)
    }

    /// Sends a request other than a model call, such as for the list of models, and returns the whole answer.
    pub(crate) async fn get(&self, path: &str, bytes_max: usize) -> Result<Vec<u8>, UpstreamFailure> {
        let version = match self.upstream.dialect {
            Dialect::Anthropic => vec![("anthropic-version", ANTHROPIC_VERSION.to_owned())],
            _ => Vec::new(),
        };
        let headers = self.headers("application/json", &version)?;
        let limits = CallDeadlines::new(&self.upstream, self.deadline());
        let url = self.upstream.base_url.join(path);
        let address = shown_address(&url);
        let request = self.http.get(url).headers(headers).build();
        let request = request.map_err(|error| failure::unsendable(error.to_string()))?;
        let sending = self.http.execute(self.authorize(request, &limits).await?);
        let mut response = match timeout_at(limits.first_byte, sending).await {
            Err(_) => return Err(limits.expired(WaitPhase::FirstByte)),
            Ok(Err(error)) => return Err(failure::from_transport(&error, self.host())),
            Ok(Ok(response)) => response,
        };
        let status = response.status();
        if !status.is_success() {
            let body = self.redact(&error_body(response, &limits).await);
            let answer = UpstreamErrorResponse {
                status: status.as_u16(),
                retry_after: None,
                retry_after_ms: None,
                body: &body,
                now: 0,
            };
            let failure = failure::from_response(&answer, ToolsInRequest::Absent);
            return Err(failure::with_address(failure, &format!("GET {address}")));
        }
        let mut bytes = Vec::new();
        loop {
            match timeout_at(limits.next(WaitPhase::NextChunk), response.chunk()).await {
                Err(_) => return Err(limits.expired(WaitPhase::NextChunk)),
                Ok(Err(error)) => return Err(failure::from_transport(&error, self.host())),
                Ok(Ok(None)) => return Ok(bytes),
                Ok(Ok(Some(piece))) if bytes.len() + piece.len() > bytes_max => {
                    let message = format!("the response is larger than {bytes_max} bytes");
                    return Err(failure::without_status(FailureKind::Status, message));
                }
                Ok(Ok(Some(piece))) => bytes.extend_from_slice(&piece),
            }
        }
    }

    /// Sends JSON unchanged.
    pub(super) async fn post(
        &self,
        path: &str,
        headers: HeaderMap,
        body: &serde_json::Value,
        limits: &CallDeadlines,
    ) -> Result<reqwest::Response, UpstreamFailure> {
        self.post_bytes(path, headers, body.to_string().into_bytes(), limits).await
    }

    pub(super) async fn post_bytes(
        &self,
        path: &str,
        headers: HeaderMap,
        body: Vec<u8>,
        limits: &CallDeadlines,
    ) -> Result<reqwest::Response, UpstreamFailure> {
        let request = self.http.post(self.upstream.base_url.join(path)).headers(headers);
        let request = request.body(body).build();
        let request = request.map_err(|error| failure::unsendable(error.to_string()))?;
        let sending = self.http.execute(self.authorize(request, limits).await?);
        match timeout_at(limits.first_byte, sending).await {
            Err(_) => Err(limits.expired(WaitPhase::FirstByte)),
            Ok(sent) => sent.map_err(|error| failure::from_transport(&error, self.host())),
        }
    }

    /// True if a request's files may be read while it is sent: a model in this process gets them, and the program's hook may sign
    /// the body.
    pub(crate) fn streams_files(&self) -> bool {
        self.upstream.local_model.is_none() && self.upstream.authorizer.is_none()
    }

    /// Passes the request to the program's hook, if any.
    pub(super) async fn authorize(
        &self,
        request: reqwest::Request,
        limits: &CallDeadlines,
    ) -> Result<reqwest::Request, UpstreamFailure> {
        let Some(authorizer) = &self.upstream.authorizer else { return Ok(request) };
        let outgoing = OutgoingRequest { inner: request, secrets: Vec::new() };
        let authorized = timeout_at(limits.first_byte, authorizer.authorize(outgoing)).await;
        let authorized = authorized.map_err(|_| limits.expired(WaitPhase::FirstByte))?.map_err(|error| {
            failure::without_status(
                FailureKind::Unauthorized,
                format!("the request could not be authorized: {error}"),
            )
        })?;
        self.note_secrets(authorized.secrets);
        Ok(authorized.inner)
    }

    /// Adds secrets to redact.
    fn note_secrets(&self, secrets: Vec<String>) {
        let mut fresh = self.fresh_secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let before = fresh.len();
        for secret in secrets {
            if !fresh.contains(&secret) {
                fresh.push_back(secret);
            }
        }
        if fresh.len() == before {
            return;
        }
        let excess = fresh.len().saturating_sub(FRESH_SECRETS_MAX);
        fresh.drain(..excess);
        let all = self.upstream.secrets().into_iter().chain(fresh.iter().cloned());
        *self.secrets.write().unwrap_or_else(PoisonError::into_inner) = SecretSet::new(all);
    }

    pub(super) fn secrets(&self) -> SecretSet {
        self.secrets.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Headers of every request, the key included.
    pub(super) fn headers(
        &self,
        accept: &str,
        more: &[(&'static str, String)],
    ) -> Result<HeaderMap, UpstreamFailure> {
        let unsendable = |why: String| failure::without_status(FailureKind::Unsendable, why);
        let mut headers = HeaderMap::new();
        let mut insert =
            |name: HeaderName, value: &str, secrecy: HeaderSecrecy| match HeaderValue::try_from(value) {
                Ok(mut value) => {
                    value.set_sensitive(secrecy == HeaderSecrecy::Secret);
                    headers.insert(name, value);
                    Ok(())
                }
                Err(_) => Err(unsendable(format!("the header `{name}` has an invalid value"))),
            };
        insert(header::CONTENT_TYPE, "application/json", HeaderSecrecy::Plain)?;
        insert(header::ACCEPT_ENCODING, "identity", HeaderSecrecy::Plain)?;
        insert(header::ACCEPT, accept, HeaderSecrecy::Plain)?;
        for (name, value) in more {
            insert(HeaderName::from_static(name), value, HeaderSecrecy::Plain)?;
        }
        match &self.upstream.key {
            KeyState::NotNeeded => {}
            KeyState::Given(key) => match self.upstream.dialect {
                Dialect::Anthropic => {
                    insert(HeaderName::from_static("x-api-key"), key.reveal(), HeaderSecrecy::Secret)?
                }
                Dialect::Gemini => {
                    insert(HeaderName::from_static("x-goog-api-key"), key.reveal(), HeaderSecrecy::Secret)?
                }
                _ => {
                    insert(header::AUTHORIZATION, &format!("Bearer {}", key.reveal()), HeaderSecrecy::Secret)?
                }
            },
            KeyState::Missing(variable) => {
                let why = format!(
                    "there is no key: the environment variable {variable} is not set, and none is stored"
                );
                return Err(failure::without_status(FailureKind::Unauthorized, why));
            }
        }
        for (name, value) in &self.upstream.headers {
            insert(name.clone(), value.reveal(), HeaderSecrecy::Secret)?;
        }
        Ok(headers)
    }

    /// Dialect and profile of its replies.
    pub(crate) fn decode_profile(&self) -> DecodeProfile {
        DecodeProfile { dialect: self.upstream.dialect, profile: self.upstream.profile.clone() }
    }

    pub(super) fn host(&self) -> &str {
        &self.upstream.name
    }

    /// Upstreams like to repeat a wrong key, also in the middle of a stream.
    pub(super) fn redact_event(&self, event: &mut StepEvent<'static>) {
        match event {
            StepEvent::End(StreamEnd::Error(error)) => {
                error.message = self.redact(&error.message);
                error.kind = error.kind.as_deref().map(|kind| self.redact(kind));
                error.code = error.code.as_deref().map(|code| self.redact(code));
            }
            StepEvent::Problem(problem) => problem.excerpt = self.redact(&problem.excerpt),
            _ => {}
        }
    }

    pub(super) fn redact(&self, message: &str) -> String {
        self.secrets().redact(message).into_owned()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HeaderSecrecy {
    Plain,
    Secret,
}

/// An address without its query, which may hold a key.
pub(super) fn shown_address(url: &reqwest::Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.into()
}

/// rustls wants one cryptography for the process. A program that has chosen its own keeps it.
fn install_tls() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Fails only if another thread installs a provider at this moment, which serves as well.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
    });
}
