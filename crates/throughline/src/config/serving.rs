//! `[server]` and `[store]`: address, authentication, limits and storage.
//!
//! Plain data. Nothing here opens a socket or a file; the server does.

use super::error::ConfigError;
use super::file::{ConfigFile, on_or_off};
use super::oidc::{OidcSection, OidcSettings, resolve_oidc};
use super::proxy_header::{TrustedProxySection, TrustedProxySettings, resolve_trusted_proxy};
use super::resolve::{ConfigFlags, EnvVars};
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use toml::Spanned;
use url::Url;

/// Default address: this machine only.
pub const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8787);
/// Default time for running turns to end after a shutdown was requested, in milliseconds.
pub const DRAIN_MS_DEFAULT: u64 = 30_000;
/// File name of the database in the data folder, unless `url` sets another.
pub const STORE_FILE: &str = "throughline.db";

/// `[server]` of the file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSection {
    /// `ADDRESS:PORT`; port 0 takes a free one. Default `127.0.0.1:8787`.
    pub listen: Option<Spanned<String>>,
    /// Further names that requests may use in `Host`, such as those of a proxy. Loopback names are always accepted.
    pub hosts: Vec<Spanned<String>>,
    /// Origins of other pages whose scripts may call this server, such as `https://chat.example.com`.
    pub origins: Vec<Spanned<String>>,
    /// `keys` (default) or `off`, which only a loopback address may have.
    pub auth: Option<Spanned<AuthMode>>,
    /// HTTPS without a proxy in front.
    pub tls: Option<TlsSection>,
    /// A proxy that signs people in and names them in a header.
    pub trusted_proxy: Option<TrustedProxySection>,
    /// A provider of OpenID Connect at which people sign in.
    pub oidc: Option<OidcSection>,
    /// Rendering of tools for clients of `/v1/chat/completions` unless the request sets another. Default
    /// `none`.
    pub render: ToolRendering,
    /// Renderings of tools under which `/v1/models` also lists agents, as suffixes of their names: for
    /// clients that let people pick a model and set nothing else.
    /// Default: all but `none`.
    pub listed_renders: Option<Vec<ToolRendering>>,
    /// Public address of the page, for links in chats: `https://chat.example.com`. Default: the address at which the
    /// client reaches the API.
    pub public_url: Option<Spanned<String>>,
    /// Time for running turns to end after a shutdown was requested, in milliseconds. Default 30,000.
    pub drain_ms: Option<u64>,
    /// Bounds.
    pub limits: Option<Spanned<ServerLimits>>,
}

/// `tls = { … }`: both are PEM files; relative paths are relative to the folder of the configuration file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsSection {
    /// The certificate, with those between it and its root.
    pub cert: PathBuf,
    /// Private key of the certificate.
    pub key: PathBuf,
}

/// `[store]` of the file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSection {
    /// `postgres://…`, or the path of a SQLite file; relative paths are relative to the folder of the configuration file.
    /// `"$NAME"` takes the value of an environment variable. Default: `throughline.db` in the data folder.
    pub url: Option<Spanned<String>>,
    /// Conversations without activity for this many days are deleted. Default: never.
    pub retention_days: Option<Spanned<u32>>,
    /// Merges adjacent deltas of ended turns. Default on.
    #[serde(deserialize_with = "on_or_off")]
    pub merge: Option<bool>,
    /// Stores the raw bytes of upstreams, so that a later version can decode them again. Default off.
    #[serde(deserialize_with = "on_or_off")]
    pub keep_raw: Option<bool>,
    /// Durability across power failures. Default `by_event`.
    pub durability: DurabilityMode,
}

/// Authentication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthMode {
    /// Requests need a key.
    #[default]
    Keys,
    /// Every program and every person on this machine has access.
    Off,
}

/// Rendering of server-side tools for clients of `/v1/chat/completions`, which do not know tool cards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolRendering {
    /// Nothing visible; tool events are in a field that clients ignore.
    #[default]
    None,
    /// A line of Markdown for each call.
    Text,
    /// A folded card for each call, as Open WebUI draws it.
    Details,
    /// Progress as reasoning.
    Reasoning,
    /// Status lines of Open WebUI.
    OwuiEvent,
    /// An information block of VCP for each result, which VCP's front ends draw.
    Vcp,
}

impl ToolRendering {
    /// All renderings, by name.
    pub const ALL: [(&'static str, ToolRendering); 6] = [
        ("none", ToolRendering::None),
        ("text", ToolRendering::Text),
        ("details", ToolRendering::Details),
        ("reasoning", ToolRendering::Reasoning),
        ("owui_event", ToolRendering::OwuiEvent),
        ("vcp", ToolRendering::Vcp),
    ];

    /// Name of the rendering.
    pub fn name(self) -> &'static str {
        match self {
            ToolRendering::None => "none",
            ToolRendering::Text => "text",
            ToolRendering::Details => "details",
            ToolRendering::Reasoning => "reasoning",
            ToolRendering::OwuiEvent => "owui_event",
            ToolRendering::Vcp => "vcp",
        }
    }

    /// The rendering of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(other, _)| *other == name).map(|(_, render)| *render)
    }
}

/// Durability across power failures; a crash of the server alone loses nothing in either mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DurabilityMode {
    /// Messages, decisions and side effects are on disk before they are acknowledged; the last milliseconds of
    /// displayed text may be lost, and viewers are notified.
    #[default]
    ByEvent,
    /// Every event is on disk before it is shown.
    Everything,
}

/// `limits = { … }` of the server. A request over a limit is refused with the limit's name; nothing is slowed or
/// dropped silently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerLimits {
    /// Maximum of open connections; further ones wait in the kernel. Default 10,000.
    pub connections_max: u32,
    /// The head of a request, in bytes. Default 32 KiB.
    pub header_bytes_max: u32,
    /// Longest time for the head of a request and for an idle connection, in milliseconds. Default 15,000.
    pub header_ms_max: u64,
    /// The body of a request, in bytes. Default 4 MiB.
    pub body_bytes_max: u32,
    /// The body of a chat (`POST /v1/chat/completions`) with its pictures, in bytes. Clients send all pictures of a chat with each
    /// message. Default 64 MiB: more than any provider takes.
    pub chat_body_bytes_max: u64,
    /// Body of a chat without its pictures and files (of more than `media_inline_bytes_max`), in bytes.
    /// Clients send the whole chat with each message; the provider reports what is too long for the model.
    /// Default 16 MiB: about four million tokens of English, twice the context of the largest model of the
    /// table.
    pub chat_text_bytes_max: u32,
    /// Bodies of more than 1 MiB that one key may have in progress, in bytes, until each is answered: further
    /// ones wait, unread. Default 256 MiB: four of the largest chats.
    pub large_bodies_bytes_per_key_max: u64,
    /// Memory for processing large bodies without their pictures and files, of all keys together, in bytes; a
    /// key gets half of it, or one request of it more. Requests with more than 1 MiB of text, or with many
    /// commas and brackets, wait. Default 256 MiB.
    pub large_bodies_memory_bytes_max: u64,
    /// Maximum time that a large body waits for `large_bodies_bytes_per_key_max` or for memory, in
    /// milliseconds. Default 45,000: many proxies close a connection that is silent for a minute.
    pub large_body_wait_ms_max: u64,
    /// Longest time for the body of a request, in milliseconds. Default 15,000.
    pub body_ms_max: u64,
    /// Deepest nesting of a request's JSON. Default 64.
    pub json_depth_max: u32,
    /// Values in a request's JSON: members of objects and items of lists. Default 500,000: each takes memory, however short it is,
    /// and a chat of 16 MiB has a few ten thousand.
    pub json_values_max: u32,
    /// An uploaded file, in bytes. Default 32 MiB.
    pub upload_bytes_max: u64,
    /// Longest time for an upload, in milliseconds. Default 300,000.
    pub upload_ms_max: u64,
    /// Longest time to read the text of a PDF for one request, in milliseconds; what was read by then is the answer. Default
    /// 20,000: a book of 1,000 pages takes a few seconds.
    pub pdf_ms_max: u64,
    /// Memory of the process that reads a PDF, in bytes. Default 512 MiB: some files unpack to many times their size.
    pub pdf_memory_bytes_max: u64,
    /// Pages of a PDF that are read for one request. Default 500.
    pub pdf_pages_max: u32,
    /// Text of a PDF in one answer, in bytes. Default 1 MiB: what one message may have.
    pub pdf_text_bytes_max: u32,
    /// PDF files that are read in parallel, each in a separate process; others wait for `pdf_ms_max`. Default
    /// 2.
    pub pdf_readers_max: u32,
    /// Largest user message in a conversation of the server, in bytes of text. Default 1 MiB: coding clients put files into it. In
    /// OpenAI's format, where a request is the whole chat, a message may be as long as that.
    pub message_bytes_max: u32,
    /// Largest image, audio or file that stays in its event, in bytes; a larger one is stored as a file that the
    /// event references. Default 16 KiB.
    pub media_inline_bytes_max: u32,
    /// The `messages` of a turn that belongs to no conversation (`POST /v1/turns`), in bytes. Default 2 MiB.
    pub history_bytes_max: u32,
    /// New turns of a key in a minute. Default 60.
    pub turns_per_minute_max: u32,
    /// Requests to a shared link in a minute. Default 300: a long conversation is read in parts.
    pub shared_reads_per_minute_max: u32,
    /// Running turns of a key. Default 8.
    pub turns_per_key_max: u32,
    /// Turns of a key that only wait for a person or a client. They do not count as running; over the limit
    /// the oldest that waits for a client is ended. If all of them wait for a person, the newest gives way:
    /// its question is denied, or it is ended if it waits for a client. Default 64: many conversations in
    /// parallel, at the cost of a few megabytes.
    pub parked_turns_per_key_max: u32,
    /// Text that the waiting turns of a key were begun with, histories included, if they are more than one,
    /// in bytes. Over the limit a turn is ended as for `parked_turns_per_key_max`. Default 64 MiB; less than
    /// `chat_text_bytes_max` would let one long chat end all others.
    pub parked_text_bytes_per_key_max: u64,
    /// Streams and WebSockets of a key. Default 64.
    pub streams_per_key_max: u32,
    /// Largest backlog of a viewer that has read nothing for a second, in bytes, before its connection is closed; it
    /// can resume from its position. Default 1 MiB.
    #[serde(alias = "behind_bytes_max")]
    pub viewer_backlog_bytes_max: u64,
    /// Time for which a viewer may read nothing before its connection is closed, in milliseconds. Default
    /// 10,000.
    #[serde(alias = "behind_ms_max")]
    pub viewer_stall_ms_max: u64,
    /// Silence on a stream after which a keep-alive comment is sent, in milliseconds. Default 10,000.
    pub heartbeat_ms: u64,
    /// Longest time that the head of a streamed chat completion waits for the first sign of the model, so that an
    /// early failure becomes an HTTP status, in milliseconds. Default 3,000: proxies and clients wait longer, people
    /// do not.
    pub head_hold_ms: u64,
    /// Time until the head of a response that is not streamed is sent, in milliseconds. Afterwards an empty
    /// line follows every `heartbeat_ms`, before the JSON, and a failure can no longer set the status.
    /// Default 45,000: many proxies close a connection that is silent for a minute.
    pub whole_head_hold_ms: u64,
    /// Time without viewers after a restart before a turn that should not continue unseen is stopped, in
    /// milliseconds. Default 30,000.
    pub reconnect_ms: u64,
    /// Duration of a store outage before streams report it, in milliseconds. Default 10,000.
    pub store_wait_ms: u64,
    /// Length of a WebSocket message, in bytes. Default 4 MiB.
    pub socket_message_bytes_max: u32,
    /// Length of a WebSocket frame, in bytes. Default 1 MiB.
    pub socket_frame_bytes_max: u32,
    /// Interval of WebSocket pings, in milliseconds. Default 15,000.
    pub socket_ping_ms: u64,
    /// Lifetime of a ticket, in milliseconds. Default 60,000.
    pub ticket_ms: u64,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            header_bytes_max: 32 << 10,
            header_ms_max: 15_000,
            body_bytes_max: 4 << 20,
            chat_body_bytes_max: 64 << 20,
            chat_text_bytes_max: 16 << 20,
            large_bodies_bytes_per_key_max: 256 << 20,
            large_bodies_memory_bytes_max: 256 << 20,
            large_body_wait_ms_max: 45_000,
            body_ms_max: 15_000,
            json_depth_max: 64,
            json_values_max: 500_000,
            upload_bytes_max: 32 << 20,
            upload_ms_max: 300_000,
            pdf_ms_max: 20_000,
            pdf_memory_bytes_max: 512 << 20,
            pdf_pages_max: 500,
            pdf_text_bytes_max: 1 << 20,
            pdf_readers_max: 2,
            message_bytes_max: 1 << 20,
            media_inline_bytes_max: 16 << 10,
            history_bytes_max: 2 << 20,
            turns_per_minute_max: 60,
            shared_reads_per_minute_max: 300,
            turns_per_key_max: 8,
            parked_turns_per_key_max: 64,
            parked_text_bytes_per_key_max: 64 << 20,
            streams_per_key_max: 64,
            viewer_backlog_bytes_max: 1 << 20,
            viewer_stall_ms_max: 10_000,
            heartbeat_ms: 10_000,
            head_hold_ms: 3_000,
            whole_head_hold_ms: 45_000,
            reconnect_ms: 30_000,
            store_wait_ms: 10_000,
            socket_message_bytes_max: 4 << 20,
            socket_frame_bytes_max: 1 << 20,
            socket_ping_ms: 15_000,
            ticket_ms: 60_000,
        }
    }
}

impl ServerLimits {
    /// Every limit by name. None of them may be 0, which would allow nothing.
    fn all(&self) -> [(&'static str, u64); 39] {
        [
            ("connections_max", self.connections_max.into()),
            ("header_bytes_max", self.header_bytes_max.into()),
            ("header_ms_max", self.header_ms_max),
            ("body_bytes_max", self.body_bytes_max.into()),
            ("chat_body_bytes_max", self.chat_body_bytes_max),
            ("chat_text_bytes_max", self.chat_text_bytes_max.into()),
            ("large_bodies_bytes_per_key_max", self.large_bodies_bytes_per_key_max),
            ("large_bodies_memory_bytes_max", self.large_bodies_memory_bytes_max),
            ("large_body_wait_ms_max", self.large_body_wait_ms_max),
            ("body_ms_max", self.body_ms_max),
            ("json_depth_max", self.json_depth_max.into()),
            ("json_values_max", self.json_values_max.into()),
            ("upload_bytes_max", self.upload_bytes_max),
            ("upload_ms_max", self.upload_ms_max),
            ("pdf_ms_max", self.pdf_ms_max),
            ("pdf_memory_bytes_max", self.pdf_memory_bytes_max),
            ("pdf_pages_max", self.pdf_pages_max.into()),
            ("pdf_text_bytes_max", self.pdf_text_bytes_max.into()),
            ("pdf_readers_max", self.pdf_readers_max.into()),
            ("message_bytes_max", self.message_bytes_max.into()),
            ("media_inline_bytes_max", self.media_inline_bytes_max.into()),
            ("history_bytes_max", self.history_bytes_max.into()),
            ("turns_per_minute_max", self.turns_per_minute_max.into()),
            ("shared_reads_per_minute_max", self.shared_reads_per_minute_max.into()),
            ("turns_per_key_max", self.turns_per_key_max.into()),
            ("parked_turns_per_key_max", self.parked_turns_per_key_max.into()),
            ("parked_text_bytes_per_key_max", self.parked_text_bytes_per_key_max),
            ("streams_per_key_max", self.streams_per_key_max.into()),
            ("viewer_backlog_bytes_max", self.viewer_backlog_bytes_max),
            ("viewer_stall_ms_max", self.viewer_stall_ms_max),
            ("heartbeat_ms", self.heartbeat_ms),
            ("head_hold_ms", self.head_hold_ms),
            ("whole_head_hold_ms", self.whole_head_hold_ms),
            ("reconnect_ms", self.reconnect_ms),
            ("store_wait_ms", self.store_wait_ms),
            ("socket_message_bytes_max", self.socket_message_bytes_max.into()),
            ("socket_frame_bytes_max", self.socket_frame_bytes_max.into()),
            ("socket_ping_ms", self.socket_ping_ms),
            ("ticket_ms", self.ticket_ms),
        ]
    }
}

/// `[server]`, decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Further names for `Host`, in lower case, with a port where the file gives one.
    pub hosts: Vec<String>,
    /// Origins of other pages, as browsers write them.
    pub origins: Vec<String>,
    /// Authentication.
    pub auth: AuthMode,
    /// Certificate and key, for a server that terminates HTTPS itself.
    pub tls: Option<TlsSection>,
    /// A proxy that signs people in.
    pub trusted_proxy: Option<TrustedProxySettings>,
    /// A provider at which people sign in.
    pub oidc: Option<OidcSettings>,
    /// Rendering of tools on `/v1/chat/completions`.
    pub render: ToolRendering,
    /// The renderings under which `/v1/models` also lists agents.
    pub listed_renders: Vec<ToolRendering>,
    /// Public address of the page; `None` = the address at which the client reaches the API.
    pub public_url: Option<String>,
    /// Time for running turns to end, in milliseconds.
    pub drain_ms: u64,
    /// Bounds.
    pub limits: ServerLimits,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            listen: LISTEN_DEFAULT,
            hosts: Vec::new(),
            origins: Vec::new(),
            auth: AuthMode::Keys,
            tls: None,
            trusted_proxy: None,
            oidc: None,
            render: ToolRendering::None,
            listed_renders: vec![
                ToolRendering::Text,
                ToolRendering::Details,
                ToolRendering::Reasoning,
                ToolRendering::OwuiEvent,
            ],
            public_url: None,
            drain_ms: DRAIN_MS_DEFAULT,
            limits: ServerLimits::default(),
        }
    }
}

/// Database of turns and conversations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StoreBackend {
    /// [`STORE_FILE`] in the data folder.
    #[default]
    DataFolder,
    /// A SQLite file.
    File(PathBuf),
    /// A PostgreSQL database, by URL. It may hold a password, so it is not for showing.
    Postgres(String),
}

/// `[store]`, decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// The database.
    pub backend: StoreBackend,
    /// Days after which untouched conversations are deleted; `None` = never.
    pub retention_days: Option<u32>,
    /// Merges adjacent deltas of ended turns.
    pub merge: bool,
    /// Stores the raw bytes of upstreams.
    pub keep_raw: bool,
    /// Durability across power failures.
    pub durability: DurabilityMode,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            backend: StoreBackend::DataFolder,
            retention_days: None,
            merge: true,
            keep_raw: false,
            durability: DurabilityMode::ByEvent,
        }
    }
}

/// Flags over environment over file over defaults.
pub(crate) fn resolve_server(
    file: &ConfigFile,
    environment: &EnvVars,
    flags: &ConfigFlags,
) -> Result<ServerSettings, ConfigError> {
    let section = &file.server;
    let base = ServerSettings::default();
    let mut listen = base.listen;
    if let Some(text) = &section.listen {
        listen = parse_listen(text.get_ref()).map_err(|invalid| error_at(file, text, invalid))?;
    }
    if let Some(text) = env_value(environment, "THROUGHLINE_LISTEN") {
        listen = parse_listen(text)
            .map_err(|invalid| invalid.into_error(ConfigError::in_environment("THROUGHLINE_LISTEN", "")))?;
    }
    if let Some(text) = &flags.listen {
        listen =
            parse_listen(text).map_err(|invalid| invalid.into_error(ConfigError::in_flag("--listen", "")))?;
    }
    let auth = section.auth.as_ref().map(|auth| *auth.get_ref()).unwrap_or_default();
    if let (AuthMode::Off, false, Some(location)) = (auth, listen.ip().is_loopback(), &section.auth) {
        let message =
            format!("without API keys, anyone who can reach {listen} could use every tool and model");
        let help = "set auth = \"keys\" (the default), or listen = \"127.0.0.1:8787\"";
        return Err(file.error(location, message).help(help));
    }
    let parse_all = |texts: &[Spanned<String>],
                     read: fn(&str) -> Result<String, InvalidValue>|
     -> Result<Vec<String>, _> {
        texts
            .iter()
            .map(|text| read(text.get_ref()).map_err(|invalid| error_at(file, text, invalid)))
            .collect()
    };
    let limits = section.limits.as_ref().map(|limits| *limits.get_ref()).unwrap_or_default();
    if let (Some((name, _)), Some(location)) =
        (limits.all().iter().find(|(_, value)| *value == 0), &section.limits)
    {
        let message = format!("the limit `{name}` must not be 0");
        return Err(file.error_at_key(location, Some(name), message));
    }
    let resolve = |path: &PathBuf| resolve_path(file, path);
    Ok(ServerSettings {
        listen,
        hosts: parse_all(&section.hosts, parse_host)?,
        origins: parse_all(&section.origins, parse_origin)?,
        auth,
        tls: section.tls.as_ref().map(|tls| TlsSection { cert: resolve(&tls.cert), key: resolve(&tls.key) }),
        trusted_proxy: section
            .trusted_proxy
            .as_ref()
            .map(|section| resolve_trusted_proxy(file, section, auth))
            .transpose()?,
        oidc: section
            .oidc
            .as_ref()
            .map(|section| resolve_oidc(file, section, environment, auth))
            .transpose()?,
        render: section.render,
        listed_renders: section.listed_renders.clone().unwrap_or(base.listed_renders),
        public_url: section
            .public_url
            .as_ref()
            .map(|text| parse_origin(text.get_ref()).map_err(|invalid| error_at(file, text, invalid)))
            .transpose()?,
        drain_ms: section.drain_ms.unwrap_or(base.drain_ms),
        limits,
    })
}

/// Flags over environment over file over defaults.
pub(crate) fn resolve_store(
    file: &ConfigFile,
    environment: &EnvVars,
    flags: &ConfigFlags,
) -> Result<StoreSettings, ConfigError> {
    const VARIABLE: &str = "THROUGHLINE_STORE";
    let section = &file.store;
    let base = StoreSettings::default();
    let mut location = base.backend;
    if let Some(text) = &section.url {
        let named = text.get_ref().strip_prefix('$').map(|name| {
            env_value(environment, name)
                .ok_or_else(|| file.error(text, format!("the environment variable {name} is not set")))
        });
        let url = named.transpose()?.unwrap_or(text.get_ref());
        location = match parse_store(url).map_err(|invalid| error_at(file, text, invalid))? {
            StoreBackend::File(path) => StoreBackend::File(resolve_path(file, &path)),
            other => other,
        };
    }
    if let Some(text) = env_value(environment, VARIABLE) {
        location = parse_store(text)
            .map_err(|invalid| invalid.into_error(ConfigError::in_environment(VARIABLE, "")))?;
    }
    if let Some(text) = &flags.store {
        location =
            parse_store(text).map_err(|invalid| invalid.into_error(ConfigError::in_flag("--store", "")))?;
    }
    if let Some(days) = section.retention_days.as_ref().filter(|days| *days.get_ref() == 0) {
        let message = "0 days would delete every conversation";
        return Err(file
            .error(days, message)
            .help("leave it out to store conversations until they are deleted"));
    }
    Ok(StoreSettings {
        backend: location,
        retention_days: section.retention_days.as_ref().map(|days| *days.get_ref()),
        merge: section.merge.unwrap_or(base.merge),
        keep_raw: section.keep_raw.unwrap_or(base.keep_raw),
        durability: section.durability,
    })
}

/// An invalid value, without its location.
pub(super) struct InvalidValue {
    pub(super) message: String,
    pub(super) help: &'static str,
}

impl InvalidValue {
    fn into_error(self, location: ConfigError) -> ConfigError {
        ConfigError { message: self.message, ..location }.help(self.help)
    }
}

pub(super) fn error_at(file: &ConfigFile, text: &Spanned<String>, invalid: InvalidValue) -> ConfigError {
    file.error(text, invalid.message).help(invalid.help)
}

/// An empty variable counts as unset.
pub(super) fn env_value<'e>(environment: &'e EnvVars, name: &str) -> Option<&'e str> {
    environment.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
}

/// A path of the file, which begins at the file's folder.
fn resolve_path(file: &ConfigFile, path: &Path) -> PathBuf {
    match Path::new(&file.source.file).parent() {
        Some(folder) => folder.join(path),
        None => path.to_owned(),
    }
}

fn parse_listen(text: &str) -> Result<SocketAddr, InvalidValue> {
    let named = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    named.as_deref().unwrap_or(text).parse().map_err(|_| InvalidValue {
        message: format!("`{text}` is not a valid listen address"),
        help: "use an address and a port: \"127.0.0.1:8787\", \"[::1]:8787\", or \"0.0.0.0:8787\" for all networks",
    })
}

/// A name for `Host`: exact, since a pattern would let in the names of others.
fn parse_host(text: &str) -> Result<String, InvalidValue> {
    let invalid = || InvalidValue {
        message: format!("`{text}` is not a valid host name"),
        help: "use exactly the name that clients use, with the port if it is not the default: \"chat.example.com\"",
    };
    let parsed = Url::parse(&format!("http://{text}/")).map_err(|_| invalid())?;
    // What a URL would take apart is no plain name.
    let is_plain = !text.is_empty()
        && !text.contains(['/', '@', '?', '#', '*', '\\'])
        && !text.trim().contains(char::is_whitespace);
    match (is_plain, parsed.host_str()) {
        (true, Some(name)) => Ok(match parsed.port() {
            Some(port) => format!("{name}:{port}"),
            None => name.to_owned(),
        }),
        _ => Err(invalid()),
    }
}

/// An origin: scheme, host and port, exactly. Neither `*` nor `null`: these match any page.
fn parse_origin(text: &str) -> Result<String, InvalidValue> {
    let invalid = || InvalidValue {
        message: format!("`{text}` is not a valid origin"),
        help: "use scheme and host as shown by the browser, without a path: \"https://chat.example.com\"",
    };
    let parsed = Url::parse(text).map_err(|_| invalid())?;
    let is_plain = matches!(parsed.scheme(), "http" | "https")
        && parsed.path() == "/"
        && !text.contains(['@', '?', '#', '*']);
    is_plain.then(|| parsed.origin().ascii_serialization()).ok_or_else(invalid)
}

fn parse_store(text: &str) -> Result<StoreBackend, InvalidValue> {
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        return match Url::parse(text) {
            Ok(_) => Ok(StoreBackend::Postgres(text.to_owned())),
            // Not shown: it may hold a password.
            Err(error) => Err(InvalidValue {
                message: format!("invalid database URL: {error}"),
                help: "postgres://user@host/database",
            }),
        };
    }
    let path = text.strip_prefix("sqlite:").unwrap_or(text);
    let path = path.strip_prefix("//").unwrap_or(path);
    // Not a bare colon: `C:\…` is a path.
    if path.is_empty() || path.contains("://") {
        let scheme = text.split(':').next().unwrap_or_default();
        return Err(InvalidValue {
            message: format!("there is no store for `{scheme}:`"),
            help: "use a file path for SQLite, or postgres://user@host/database",
        });
    }
    Ok(StoreBackend::File(PathBuf::from(path)))
}
