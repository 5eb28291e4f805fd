//! `throughline.toml`, the environment and flags: read strictly, layered purely.
//!
//! Never reads the environment or a clock by itself: both are given, so every combination is a test.

mod agent;
mod connected;
mod error;
mod file;
mod resolve;
mod serving;
mod sources;

pub(crate) use agent::agent_from_settings;
pub use agent::{AGENT_NAME_CHARS_MAX, FieldError};
pub use connected::{
    CONNECTED_FILE, Connected, ConnectedError, ConnectedFile, Connection, KEY_BYTES_MAX, OwnAddress,
    pasted_key,
};
pub use error::{ConfigError, Place};
pub use file::{
    AgentLimitsSection, AgentSection, File, FilesSection, HttpSection, LimitsSection, Mode, ProfileSection,
    Protocol, ResultsAs, Start, Steering, Switch, TimeoutsSection, ToolCallSection, ToolsSection,
    UpstreamSection, UserSection,
};
pub use resolve::{DEFAULT_AGENT, DEMO, Environment, Flags, Settings, resolve, resolve_connected};
pub use serving::{
    Auth, DRAIN_MS, Durable, LISTEN, Render, STORE_FILE, ServerLimits, ServerSection, ServerSettings,
    StoreAt, StoreSection, StoreSettings, TlsSection,
};
pub use sources::{ConfiguredSource, SourceSettings};
