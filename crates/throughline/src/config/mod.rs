//! `throughline.toml`, the environment and flags: read strictly, layered purely.
//!
//! Never reads the environment or a clock: both are arguments, so every combination can be tested.

mod agent;
mod error;
mod file;
mod hints;
mod oidc;
mod proxy_header;
mod resolve;
mod serving;
mod sources;
mod stored_upstreams;

pub use crate::agent::{
    AgentLimitsSection, ResultRole, SteeringMode, TextProtocolKind, ToolMode, ToolStartMode,
};
pub(crate) use agent::agent_from_settings;
pub use agent::{AGENT_NAME_CHARS_MAX, FieldError};
pub use error::{ConfigError, ConfigLocation};
pub use file::{
    AgentSection, ConfigFile, FilesSection, HttpSection, LimitsSection, ProfileSection, RenamedKey,
    TimeoutsSection, ToolCallSection, ToolsSection, UpstreamSection, UserSection,
};
pub use hints::looks_like_key;
pub use oidc::{ClientSecretText, OidcSection, OidcSettings, PersonClaim};
pub use proxy_header::{AddressRange, PersonScope, TrustedProxySection, TrustedProxySettings};
pub use resolve::{AppSettings, ConfigFlags, DEFAULT_AGENT, DEMO, EnvVars, resolve, resolve_with_stored};
pub use serving::{
    AuthMode, DRAIN_MS_DEFAULT, DurabilityMode, LISTEN_DEFAULT, STORE_FILE, ServerLimits, ServerSection,
    ServerSettings, StoreBackend, StoreSection, StoreSettings, TlsSection, ToolRendering,
};
pub use sources::{ConfiguredSource, SourceSettings};
pub use stored_upstreams::{
    CustomEndpoint, KEY_BYTES_MAX, STORED_UPSTREAMS_FILE, StoredUpstream, StoredUpstreams,
    StoredUpstreamsError, StoredUpstreamsFile, parse_pasted_key,
};
