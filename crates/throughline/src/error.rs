//! Setup and start errors. Errors inside a turn are reported by its events.

use crate::agent::prompt::TemplateError;
use crate::approval::store::ApprovalStoreError;
use crate::clients::REQUEST_TOOLS_MAX;
use crate::config::ConfigError;
use crate::upstream::UpstreamConfigError;
use throughline_engine::{ConversationId, TurnId};
use throughline_store::{LogError, StoreError};
use throughline_tools::RegistryError;

/// Reasons why an application cannot be built or a turn not started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An upstream's description.
    #[error(transparent)]
    Upstream(#[from] UpstreamConfigError),
    /// A prompt that is no template, or cannot be rendered.
    #[error("invalid prompt: {0}")]
    Prompt(#[from] TemplateError),
    /// The tools.
    #[error(transparent)]
    Tools(#[from] RegistryError),
    /// The permanent approvals cannot be read, so no turn is started without them.
    #[error(transparent)]
    ApprovalStore(#[from] ApprovalStoreError),
    /// The log refused the turn.
    #[error("cannot start the turn: writing its log failed: {0}")]
    Log(#[from] LogError),
    /// The store of a conversation cannot be read or written.
    #[error("cannot access the conversation's store: {0}")]
    Store(#[from] StoreError),
    /// The application logs elsewhere than into the store that is to hold the conversation.
    #[error(
        "the application's log is not this store; build it with `.log(store.clone())`, with the same `Arc`"
    )]
    OtherStore,
    /// The store has no such conversation of this user.
    #[error("there is no conversation `{id}` of this user")]
    NoConversation {
        /// Id of the conversation.
        id: ConversationId,
    },
    /// No model was chosen.
    #[error("no model is selected; call `.model(\"…\")`")]
    NoModel,
    /// The model's upstream does not exist.
    #[error("model `{model}` needs upstream `{upstream}`, which does not exist; add it with `.upstream(…)`")]
    NoUpstream {
        /// The model.
        model: String,
        /// The upstream that it names.
        upstream: String,
    },
    /// The model could be at any of several upstreams.
    #[error("`{model}` does not start with the name of an upstream, and there are several: {upstreams}")]
    AmbiguousUpstream {
        /// The model.
        model: String,
        /// Names of the upstreams.
        upstreams: String,
    },
    /// The upstream's key is not set.
    #[error(
        "upstream `{upstream}` needs a key: set the environment variable {variable}, or connect it once: throughline connect {upstream}"
    )]
    MissingKey {
        /// The upstream.
        upstream: String,
        /// Variable that should hold the key.
        variable: String,
    },
    /// A turn was to begin with a call of a tool that its agent does not offer.
    #[error("agent `{agent}` does not offer the tool `{tool}` that the first step must call")]
    FirstCallNotOffered {
        /// The agent.
        agent: String,
        /// The tool.
        tool: String,
    },
    /// The conversation's last turn is still running, and its contribution to the history is unknown.
    #[error(
        "the previous turn is still running; read it to its end, stop it, or wait for it with \
         `control().wait_for_end()`"
    )]
    TurnRunning,
    /// The text protocol of an agent is not built in.
    #[error("there is no text protocol `{protocol}`")]
    NoProtocol {
        /// Name of the protocol.
        protocol: &'static str,
    },
    /// A tool of the request has the name of a tool that is offered already, or of another one of the
    /// request.
    #[error("the request's tool `{name}` has the same name as one of `{from}`; rename it, or omit it")]
    ToolNameTaken {
        /// The name.
        name: String,
        /// Origin of the other one.
        from: String,
    },
    /// The request declares too many tools.
    #[error("too many tools in one request: {count}; the limit is {REQUEST_TOOLS_MAX}")]
    TooManyTools {
        /// Number of declared tools.
        count: usize,
    },
    /// A tool of the request has a name that no upstream takes.
    #[error("the request's tool `{name}` cannot be offered: {why}")]
    BadToolName {
        /// The name.
        name: String,
        /// The mistake.
        why: &'static str,
    },
    /// The stored turn was written by a later release.
    #[error("turn `{turn}` was stored by a later release (version {version}); resume it with that release")]
    LaterRelease {
        /// The turn.
        turn: TurnId,
        /// Version of the stored turn.
        version: u32,
    },
    /// No agent has this name.
    #[error("there is no agent `{agent}`; there are {agents}")]
    UnknownAgent {
        /// The name.
        agent: String,
        /// Names of the agents.
        agents: String,
    },
    /// The proxy's URL is invalid.
    #[error("invalid proxy for upstream `{upstream}`: {why}")]
    BadProxy {
        /// The upstream.
        upstream: String,
        /// The mistake.
        why: String,
    },
    /// HTTPS is not available, usually because the system has no certificates.
    #[error("cannot create an HTTP client for upstream `{upstream}`: {why} (are CA certificates installed?)")]
    NoHttpClient {
        /// The upstream.
        upstream: String,
        /// The missing part.
        why: String,
    },
}
