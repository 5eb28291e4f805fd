//! One model endpoint: its address, wire format, timeouts and profile.

mod address;
mod authorize;
mod batch;
mod client;
mod deadlines;
mod error_body;
mod failure;
mod failure_rules;
mod handoff;
mod in_process;
mod learned_profile;
mod measure;
mod model_call;
pub mod models;
mod named_tools;
mod passthrough;
mod probe;
pub mod providers;
mod reply_reader;
mod response_body;
mod secret;
mod stream;
mod streaming;
#[cfg(test)]
mod tests;
mod too_long;

pub use authorize::{AuthorizeError, OutgoingRequest};
pub(crate) use batch::EventBatch;
pub(crate) use client::UpstreamClient;
pub(crate) use failure::{unsendable, without_status};
pub(crate) use handoff::{ModelHandoff, ModelItem};
pub use in_process::{InProcessModel, ReplySender};
pub use measure::{
    FeatureVerdict, MEASURE_REQUESTS, MEASURE_REQUESTS_MAX, MEASURE_TOKENS_MAX, MeasureOptions,
    MeasureProgress, MeasuredFeature, MeasuredSetting, UpstreamMeasurement,
};
pub(crate) use model_call::CallTime;
pub use passthrough::PassthroughResponse;
pub use probe::{ProbeError, ProbeFailure};
pub use secret::Secret;
pub use stream::ModelStream;
pub use streaming::StreamingSetting;

use crate::suggest::suggest;
use address::BaseUrl;
use authorize::RequestAuthorizer;
use in_process::LocalModel;
use serde::{Deserialize, Serialize};
use throughline_wire::{Dialect, HostedToolKind, TransferMode, UpstreamProfile};

/// A model endpoint.
///
/// ```
/// use throughline::{Upstream, wire::Dialect};
///
/// let deepseek = Upstream::known("deepseek")?.key("sk-…");
/// let mine = Upstream::new("mine", Dialect::OpenaiChat, "http://localhost:9000/v1")?;
/// assert_eq!(Upstream::known("deepsek").unwrap_err().to_string(),
///     "unknown upstream preset `deepsek`; did you mean `deepseek`?");
/// # Ok::<(), throughline::UpstreamConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Upstream {
    pub(crate) name: String,
    pub(crate) dialect: Dialect,
    pub(crate) base_url: BaseUrl,
    pub(crate) key: KeyState,
    pub(crate) key_origin: KeyOrigin,
    pub(crate) key_env: Option<String>,
    pub(crate) headers: Vec<(reqwest::header::HeaderName, Secret)>,
    pub(crate) profile: UpstreamProfile,
    /// `None` = the defaults for the upstream's address.
    timeouts: Option<UpstreamTimeouts>,
    pub(crate) proxy: UpstreamProxy,
    pub(crate) transfer: TransferMode,
    /// Tools of the provider that every request switches on.
    pub(crate) hosted: Vec<HostedToolKind>,
    /// `None` = the key alone authorizes.
    pub(crate) authorizer: Option<RequestAuthorizer>,
    /// Answers in this process instead of the address.
    pub(crate) local_model: Option<LocalModel>,
    /// Requests a reply again, whole, if its stream breaks before its first content.
    pub(crate) whole_fallback: bool,
}

/// Dialect and profile of an upstream's replies: together with the bytes, enough to decode them again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecodeProfile {
    /// Wire format of the upstream.
    pub dialect: Dialect,
    /// Quirks of the upstream.
    pub profile: UpstreamProfile,
}

/// Presence of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyState {
    /// None is needed.
    NotNeeded,
    /// The key.
    Given(Secret),
    /// A key is needed, and this environment variable, which should hold it, is not set.
    Missing(String),
}

/// Origin of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrigin {
    /// An environment variable.
    Environment,
    /// The key was stored when the upstream was connected.
    Stored,
    /// The program gave it.
    Program,
}

impl KeyOrigin {
    /// Name of the origin, one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Environment => "environment",
            Self::Stored => "stored",
            Self::Program => "program",
        }
    }
}

/// Time limits of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpstreamTimeouts {
    /// Limit for connecting, TLS included, in milliseconds. Default 5,000.
    pub connect_ms: u64,
    /// Limit from the request to the first byte of the body, in milliseconds. Default 300,000 (5 minutes), on
    /// your own network 600,000. Does not apply to whole replies, which begin when the model has finished:
    /// only `total_ms` bounds them.
    pub first_byte_ms: u64,
    /// Between two pieces of the body, in milliseconds. Comments and pings count as life. Default 300,000.
    pub idle_ms: u64,
    /// Limit for one model call with all its attempts and the waits between them, in milliseconds. Default
    /// 900,000 (15 minutes), on your own network 3,600,000. A fallback has its own limit.
    pub total_ms: u64,
}

impl UpstreamTimeouts {
    /// Defaults of a model on this machine or your own network: it may read a long prompt for minutes without
    /// sending anything (ggml-org/llama.cpp#22997), and writes slowly.
    pub const OWN_NETWORK: Self =
        Self { connect_ms: 5_000, first_byte_ms: 600_000, idle_ms: 300_000, total_ms: 3_600_000 };
}

impl Default for UpstreamTimeouts {
    /// Defaults of a provider. A thinking model may be silent for minutes, before its reply and in the middle
    /// of it (1jehuang/jcode#196, futuregene/future-os#431); a dead connection is detected within two minutes
    /// by keep-alive.
    fn default() -> Self {
        Self { connect_ms: 5_000, first_byte_ms: 300_000, idle_ms: 300_000, total_ms: 900_000 }
    }
}

/// The proxy of an upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UpstreamProxy {
    /// The system's: `HTTPS_PROXY`, `NO_PROXY` and the like. Upstreams on this machine are always reached directly.
    #[default]
    System,
    /// None.
    Off,
    /// The proxy at this URL.
    Url(String),
}

/// Reasons why an upstream cannot be configured that way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamConfigError {
    /// [`Upstream::known`] has no upstream of this name.
    #[error("unknown upstream preset `{name}`{}", did_you_mean(.closest))]
    Unknown {
        /// The requested name.
        name: String,
        /// The nearest known name, if one is near.
        closest: Option<&'static str>,
    },
    /// The base URL is invalid.
    #[error("`{url}` is not a valid base URL: {why}")]
    BadBaseUrl {
        /// The URL as given.
        url: String,
        /// The mistake.
        why: String,
    },
    /// The dialect has no such tool of the provider.
    #[error(
        "upstream `{upstream}` uses {dialect}, which has no provider tool `{tool}`; openai-responses, \
         anthropic and gemini have it"
    )]
    NoHostedTool {
        /// Name of the upstream.
        upstream: String,
        /// Dialect of the upstream.
        dialect: Dialect,
        /// The requested tool.
        tool: HostedToolKind,
    },
    /// A header cannot be sent.
    #[error("invalid header `{name}`: {why}")]
    BadHeader {
        /// The name as given.
        name: String,
        /// The mistake.
        why: String,
    },
    /// The name contains a `/`, which ends it in `upstream/model`, or is empty.
    #[error("`{name}` is not a valid upstream name: it must not be empty or contain `/`")]
    BadName {
        /// The name as given.
        name: String,
    },
}

fn did_you_mean(closest: &Option<&'static str>) -> String {
    closest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

impl Upstream {
    /// An upstream of the table [`providers`]: its address, wire format and quirks. The key comes
    /// from [`key_from_env`](Self::key_from_env) or [`key`](Self::key).
    ///
    /// # Errors
    /// [`UpstreamConfigError::Unknown`], with the nearest name.
    pub fn known(name: &str) -> Result<Self, UpstreamConfigError> {
        let Some(row) = providers::find(name) else {
            let closest = suggest(name, providers::names());
            return Err(UpstreamConfigError::Unknown { name: name.to_owned(), closest });
        };
        let mut upstream = Self::new(row.name, row.dialect, row.base_url)?;
        upstream.profile = row.profile;
        upstream.key_env = row.key_env.map(str::to_owned);
        upstream.key =
            row.key_env.map_or(KeyState::NotNeeded, |variable| KeyState::Missing(variable.to_owned()));
        Ok(upstream)
    }

    /// Any other upstream. It gets no key unless [`key`](Self::key) gives one.
    ///
    /// # Errors
    /// A name with `/`; a base URL that is not `http` or `https`, or that contains a password.
    pub fn new(
        name: impl Into<String>,
        dialect: Dialect,
        base_url: &str,
    ) -> Result<Self, UpstreamConfigError> {
        let name = name.into();
        if name.is_empty() || name.contains('/') {
            return Err(UpstreamConfigError::BadName { name });
        }
        Ok(Self {
            name,
            dialect,
            base_url: BaseUrl::parse(base_url)?,
            key: KeyState::NotNeeded,
            key_origin: KeyOrigin::Program,
            key_env: None,
            headers: Vec::new(),
            profile: UpstreamProfile::default(),
            timeouts: None,
            proxy: UpstreamProxy::default(),
            transfer: TransferMode::Stream,
            hosted: Vec::new(),
            authorizer: None,
            local_model: None,
            whole_fallback: false,
        })
    }

    /// Renames the upstream, for two keys at one provider.
    ///
    /// # Errors
    /// A name with `/`.
    pub fn named(mut self, name: impl Into<String>) -> Result<Self, UpstreamConfigError> {
        self.name = name.into();
        if self.name.is_empty() || self.name.contains('/') {
            return Err(UpstreamConfigError::BadName { name: self.name });
        }
        Ok(self)
    }

    /// The key.
    pub fn key(mut self, key: impl Into<Secret>) -> Self {
        self.key = KeyState::Given(key.into());
        self.key_origin = KeyOrigin::Program;
        self
    }

    /// Sets a stored key, unless there is a key already: the environment takes precedence.
    pub(crate) fn or_stored_key(mut self, key: Secret) -> Self {
        if !self.has_key() {
            self.key = KeyState::Given(key);
            self.key_origin = KeyOrigin::Stored;
        }
        self
    }

    /// Reads the key from the environment variable that the table names. If it is not set, building an agent
    /// on this upstream fails with an error that names the variable.
    pub fn key_from_env(self) -> Self {
        match self.key_env.clone() {
            Some(variable) => self.key_from_variable(&variable),
            None => self,
        }
    }

    /// The key from this environment variable.
    pub fn key_from_variable(self, variable: &str) -> Self {
        self.with_key_value(variable, std::env::var(variable).ok())
    }

    /// An empty variable counts as unset.
    pub(crate) fn with_key_value(mut self, variable: &str, value: Option<String>) -> Self {
        self.key_env = Some(variable.to_owned());
        self.key = match value.map(|value| value.trim().to_owned()) {
            Some(value) if !value.is_empty() => {
                self.key_origin = KeyOrigin::Environment;
                KeyState::Given(value.into())
            }
            _ => KeyState::Missing(variable.to_owned()),
        };
        self
    }

    /// Sets another address: a proxy in front of the provider, another region.
    ///
    /// # Errors
    /// As in [`new`](Self::new).
    pub fn base_url(mut self, base_url: &str) -> Result<Self, UpstreamConfigError> {
        self.base_url = BaseUrl::parse(base_url)?;
        Ok(self)
    }

    /// Sets the wire format.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// A header sent with every request, after those of the dialect, which it replaces.
    ///
    /// # Errors
    /// A name or value that HTTP cannot carry.
    pub fn header(mut self, name: &str, value: impl Into<Secret>) -> Result<Self, UpstreamConfigError> {
        let bad = |why: String| UpstreamConfigError::BadHeader { name: name.to_owned(), why };
        let header = reqwest::header::HeaderName::try_from(name).map_err(|error| bad(error.to_string()))?;
        let value = value.into();
        // The error leaves the value out: it may be a key.
        if reqwest::header::HeaderValue::try_from(value.reveal()).is_err() {
            return Err(bad("its value contains characters that are not allowed in a header".to_owned()));
        }
        self.headers.push((header, value));
        Ok(self)
    }

    /// Quirks that differ from those of the table.
    pub fn profile(mut self, profile: UpstreamProfile) -> Self {
        self.profile = profile;
        self
    }

    /// Time limits. Without, they are the defaults of where it is.
    pub fn timeouts(mut self, timeouts: UpstreamTimeouts) -> Self {
        self.timeouts = Some(timeouts);
        self
    }

    /// The time limits that hold.
    pub(crate) fn time_limits(&self) -> UpstreamTimeouts {
        self.timeouts.unwrap_or_else(|| {
            if self.is_on_own_network() { UpstreamTimeouts::OWN_NETWORK } else { UpstreamTimeouts::default() }
        })
    }

    /// True for a model on this machine or network.
    pub(crate) fn is_on_own_network(&self) -> bool {
        self.base_url.is_on_own_network()
    }

    /// The proxy.
    pub fn proxy(mut self, proxy: UpstreamProxy) -> Self {
        self.proxy = proxy;
        self
    }

    /// Streams replies or requests them whole. [`TransferMode::Whole`] is for servers that cannot stream: the
    /// turn is the same, and its text arrives in one piece.
    pub fn transfer(mut self, transfer: TransferMode) -> Self {
        self.transfer = transfer;
        self
    }

    /// Switches on tools of the provider in every request: it runs them itself, and their calls are shown.
    ///
    /// # Errors
    /// Its dialect has no such tool.
    pub fn hosted(
        mut self,
        tools: impl IntoIterator<Item = HostedToolKind>,
    ) -> Result<Self, UpstreamConfigError> {
        self.hosted = tools.into_iter().collect();
        match self.hosted.iter().find(|tool| !self.dialect.hosted_tools().contains(tool)) {
            Some(tool) => Err(UpstreamConfigError::NoHostedTool {
                upstream: self.name,
                dialect: self.dialect,
                tool: *tool,
            }),
            None => Ok(self),
        }
    }

    /// Sets [`transfer`](Self::transfer), with the additional choice of [`StreamingSetting::Auto`].
    pub fn streaming(mut self, setting: StreamingSetting) -> Self {
        self.transfer = match setting {
            StreamingSetting::On | StreamingSetting::Auto => TransferMode::Stream,
            StreamingSetting::Off => TransferMode::Whole,
        };
        self.whole_fallback = setting == StreamingSetting::Auto;
        self
    }

    /// Name of the upstream, the part before the `/` of `upstream/model`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Quirks of the upstream, as built in or configured.
    pub fn quirks(&self) -> &UpstreamProfile {
        &self.profile
    }

    /// The environment variable that should hold its key and does not.
    pub fn missing_key(&self) -> Option<&str> {
        match &self.key {
            KeyState::Missing(variable) => Some(variable),
            KeyState::NotNeeded | KeyState::Given(_) => None,
        }
    }

    /// The environment variable that holds its key, if it needs one.
    pub fn key_variable(&self) -> Option<&str> {
        self.key_env.as_deref()
    }

    /// True if it can be used: it has the key that it needs, or needs none.
    pub fn has_key(&self) -> bool {
        matches!(self.key, KeyState::Given(_))
    }

    /// Origin of its key; `None` = it has none.
    pub fn key_origin(&self) -> Option<KeyOrigin> {
        self.has_key().then_some(self.key_origin)
    }

    /// Secrets of the upstream: the key, the headers, and the password of its proxy.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let key = match &self.key {
            KeyState::Given(key) => Some(key.reveal()),
            KeyState::NotNeeded | KeyState::Missing(_) => None,
        };
        let headers = self.headers.iter().map(|(_, value)| value.reveal());
        // `Bearer …`: what follows is the secret.
        let tokens = headers.clone().filter_map(|value| Some(value.split_once(' ')?.1));
        let mut secrets: Vec<String> =
            key.into_iter().chain(headers).chain(tokens).map(str::to_owned).collect();
        if let UpstreamProxy::Url(url) = &self.proxy {
            secrets.extend(throughline_tools::url_passwords(url));
        }
        secrets
    }

    /// Wire format of the upstream.
    pub fn wire_format(&self) -> Dialect {
        self.dialect
    }

    /// Address of the upstream, without secrets.
    pub fn address(&self) -> String {
        self.base_url.to_string()
    }

    /// A line for people: wire format and address, no secrets.
    pub fn summary(&self) -> String {
        format!("{} {}", self.dialect, self.base_url)
    }
}
