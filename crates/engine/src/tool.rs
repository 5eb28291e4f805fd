//! A tool as a turn knows it: its effect, its runner, and its limits.

use serde::{Deserialize, Serialize};
use throughline_wire::{ToolDefinition, ToolName, WireName};

/// A tool as the machine needs to know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfferedTool {
    /// `group.method`.
    pub name: ToolName,
    /// Name on the wire; unique among the offered tools.
    pub wire_name: WireName,
    /// Name for people.
    #[serde(default)]
    pub title: String,
    /// Source of the tool: `builtin`, `mcp:files`, ...
    pub source: String,
    /// The strongest effect it may have.
    pub effect: Effect,
    /// Limits on running together with others, in [`ExecutionMode::Parallel`].
    #[serde(default)]
    pub concurrency: ToolConcurrency,
    /// Time limit, in milliseconds. The executor enforces it; the machine has its own later timer as a
    /// fallback.
    pub timeout_ms: u64,
    /// Definition that the model sees.
    pub definition: ToolDefinition,
    /// `Poller` if repeating the same call is its purpose.
    #[serde(default)]
    pub polling: PollingMode,
    /// Party that runs it.
    #[serde(default)]
    pub runs: CallRunner,
    /// Hash of the whole definition. Approvals are bound to it.
    #[serde(default)]
    pub fingerprint: String,
    /// Approval that the tool itself demands.
    #[serde(default)]
    pub permission: PermissionRule,
    /// Role of the tool in opening addresses.
    #[serde(default, skip_serializing_if = "AddressRole::is_none")]
    pub addresses: AddressRole,
}

impl OfferedTool {
    /// A tool with every other field at its default; for tests and testers.
    pub fn new(name: &str, effect: Effect) -> Self {
        let wire_name = WireName::new(name.replace('.', "_"));
        Self {
            name: ToolName::new(name),
            wire_name: wire_name.clone(),
            title: String::new(),
            source: "builtin".into(),
            effect,
            concurrency: ToolConcurrency::Shared,
            timeout_ms: 30_000,
            definition: ToolDefinition::new(wire_name, "", serde_json::json!({ "type": "object" })),
            polling: PollingMode::No,
            runs: CallRunner::Here,
            fingerprint: String::new(),
            permission: PermissionRule::ByEffect,
            addresses: AddressRole::None,
        }
    }
}

/// The strongest effect that a tool may have, least first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Only computes.
    Pure,
    /// Reads what others may change.
    Read,
    /// Changes only what is on the screen (an avatar's face).
    Cosmetic,
    /// Changes something; twice is the same as once.
    Idempotent,
    /// Changes something.
    Write,
    /// Acts outside this machine. Unknown effects count as this.
    #[default]
    #[serde(other)]
    External,
}

impl Effect {
    /// All of them, least first.
    pub const ALL: [Effect; 6] =
        [Effect::Pure, Effect::Read, Effect::Cosmetic, Effect::Idempotent, Effect::Write, Effect::External];

    /// Name of the effect in events and configurations.
    pub fn name(self) -> &'static str {
        match self {
            Effect::Pure => "pure",
            Effect::Read => "read",
            Effect::Cosmetic => "cosmetic",
            Effect::Idempotent => "idempotent",
            Effect::Write => "write",
            Effect::External => "external",
        }
    }

    /// True if the call may change something that outlives the screen. A lost call may have done so, and is
    /// not repeated automatically.
    pub fn has_effects(self) -> bool {
        !matches!(self, Effect::Pure | Effect::Read | Effect::Cosmetic)
    }

    /// True if the call may start before the commit: a run whose result is discarded does no harm.
    pub fn may_start_early(self) -> bool {
        !self.has_effects()
    }

    /// True if the call may be run again after a crash: a second run changes nothing.
    pub fn may_repeat(self) -> bool {
        matches!(self, Effect::Pure | Effect::Read | Effect::Cosmetic | Effect::Idempotent)
    }
}

/// Limits on running together with other calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolConcurrency {
    /// Runs in parallel with any other call.
    #[default]
    Shared,
    /// Anything but calls of the same class (one database, one device).
    Class(String),
    /// Runs in parallel with no other call.
    Alone,
}

/// Exempts tools from the loop guard that are made to be called again and again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PollingMode {
    /// No: the loop guard watches it.
    #[default]
    No,
    /// Yes: it waits for something to change.
    Poller,
}

/// Approval that the tool itself demands. It can only be stricter than the tool's effect, never milder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionRule {
    /// The rules for its effect hold.
    #[default]
    ByEffect,
    /// A person is asked each time, for any effect.
    Ask,
}

/// Role of a tool in opening addresses: an address can carry out what the model has read, so a call to a host
/// that neither a person nor the settings have named needs an approval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressRole {
    /// None, or only addresses from the tool's own settings.
    #[default]
    None,
    /// Finds addresses: each line of a result that is an address may be opened unchanged.
    Names,
    /// Opens the address in an argument.
    Visits(AddressRule),
}

impl AddressRole {
    fn is_none(&self) -> bool {
        *self == AddressRole::None
    }
}

/// Argument that holds the address of a call, and the hosts that need no approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressRule {
    /// The argument that holds the address.
    pub argument: String,
    /// Hosts that the settings name: `docs.rs`, `*.example.org` (all below it), `*` (all there are).
    pub hosts: Vec<String>,
    /// The setting that names them, as users find it.
    pub setting: String,
}

/// Party that runs a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallRunner {
    /// The driver, in this process.
    #[default]
    Here,
    /// A connected page or app.
    Client {
        /// Id of the client; `None` = none is connected, and the call ends immediately as `not_started`, code
        /// `no_viewer`.
        client_id: Option<String>,
    },
    /// The requester of the turn: it declared the tool with its request and sends the outcome under the id of
    /// the call. Its calls need no approval; only a rule that denies applies to them. Its calls wait in
    /// parallel, also in serial execution. `client_id` of their `tool_start` is [`REQUESTER`].
    Requester,
}

/// `client_id` of calls that the requester of the turn runs ([`CallRunner::Requester`]). No client that connects can be called so.
pub const REQUESTER: &str = "requester";

impl CallRunner {
    /// True if the driver does not run the call itself: it is offered to a client, and the turn waits for the
    /// outcome.
    pub fn is_remote(&self) -> bool {
        !matches!(self, CallRunner::Here)
    }

    /// True if a connected client runs the call: the client can change or withdraw its declaration during the
    /// turn.
    pub(crate) fn is_connected_client(&self) -> bool {
        matches!(self, CallRunner::Client { client_id: Some(_) })
    }

    /// Id of the client that is asked to run the call.
    pub(crate) fn client_id(&self) -> Option<&str> {
        match self {
            CallRunner::Here => None,
            CallRunner::Client { client_id } => client_id.as_deref(),
            CallRunner::Requester => Some(REQUESTER),
        }
    }
}
