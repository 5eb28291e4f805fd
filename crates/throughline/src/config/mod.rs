//! `throughline.toml`, the environment and flags: read strictly, layered purely.
//!
//! Never reads the environment or a clock by itself: both are given, so every combination is a test.

mod agent;
mod error;
mod file;
mod resolve;
mod serving;
mod sources;

pub(crate) use agent::agent_from_settings;
pub use agent::{AGENT_NAME_CHARS_MAX, FieldError};
pub use error::{ConfigError, Place};
pub use file::{
    AgentLimitsSection, AgentSection, File, FilesSection, HttpSection, LimitsSection, Mode, ProfileSection,
    Protocol, ResultsAs, Start, Steering, Switch, TimeoutsSection, ToolCallSection, ToolsSection,
    UpstreamSection, UserSection,
};
pub use resolve::{DEFAULT_AGENT, DEMO, Environment, Flags, Settings, resolve};
pub use serving::{
    Auth, DRAIN_MS, Durable, LISTEN, Render, STORE_FILE, ServerLimits, ServerSection, ServerSettings,
    StoreAt, StoreSection, StoreSettings, TlsSection,
};
pub use sources::{ConfiguredSource, SourceSettings};
