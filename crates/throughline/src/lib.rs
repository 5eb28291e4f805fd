//! One turn, one message, one stream: ask a model, run the tools that it calls, and read ONE message that begins with
//! the first token and never breaks off.
//!
//! This crate never serves HTTP, never prints, reads configuration and the environment only on request, and never
//! decides anything about a turn: every rule is in [`engine`], which is pure.
//!
//! - [`Throughline`]: the application, with a worked example.
//! - [`TurnHandle`]: the events of a turn ([`Event`]), and the message that they add up to.
//! - [`Conversation`]: turns that share a history.
//! - [`Upstream`]: a model endpoint; [`providers`] has seventeen of them by name.
//! - [`config`]: `throughline.toml`, the environment and flags.
//! - [`tools`]: Rust functions as tools.
//!
//! Tools with side effects ask for approval first; see [`ApprovalMode`]. A turn that fails reports it in its events
//! and in its message, never by a panic and never by an `Err` in mid-stream.

pub mod approval_store;
pub mod config;
pub mod inspect;
pub mod models;
pub mod prompt;
pub mod providers;
pub mod views;

mod agent;
mod app;
mod app_plan;
mod approval;
mod approval_outcome;
mod builder;
mod clients;
mod clock;
mod conversation;
mod driver;
mod error;
mod hooks;
mod input;
mod manual_call;
mod media;
mod observer;
mod redecode;
mod secret;
mod start;
mod steering_queue;
mod stored_turn;
mod suggest;
mod tool_selection;
mod tool_transport;
mod turn;
mod upstream;
mod user_agents;

pub use agent::{Agent, AgentTools, CallStartMode, ConfirmationMode};
pub use app::{PersonaMode, ReloadReport, SOURCES_WAIT_MAX, Throughline, TurnRequest};
pub use approval::{ApprovalMode, ApprovalRequest, ApprovalResponse};
pub use approval_outcome::{ApprovalOutcome, CancelCallResult};
pub use builder::ThroughlineBuilder;
pub use clients::{
    CLIENT_GRACE_DEFAULT, CLIENT_TOOLS_MAX, ClientAnswerResult, ClientError, ClientEvent, ClientHandle,
    ClientToolSpec, IncomingCall, REQUEST_TOOLS_MAX,
};
pub use conversation::Conversation;
pub use driver::ToolAnswerResult;
pub use error::Error;
pub use hooks::{TurnHooks, TurnResult};
pub use input::UserInput;
pub use manual_call::{ManualCall, ManualCallError, ManualCallResult, ManualConsent};
pub use media::{MediaError, MediaOwner, MediaStore};
pub use observer::{KeepRaw, ModelCallEvent, ModelCallFacts, TurnFacts, TurnObserver};
pub use redecode::{
    DecodeDifference, RecordedBytes, RecordedExtent, RedecodeOutcome, RedecodedReply, redecode,
};
pub use secret::Secret;
pub use steering_queue::{RetractResult, SendResult};
pub use stored_turn::{DecodeProfile, HistorySource, PreparedTurn, STORED_TURN_VERSION, StoredTurn};
pub use tool_selection::{SourceTokens, ToolSelection};
pub use turn::{CommandAck, TurnControl, TurnHandle};
pub use upstream::{
    KeyOrigin, PassthroughResponse, ProbeError, ProbeFailure, Upstream, UpstreamConfigError, UpstreamProxy,
    UpstreamTimeouts,
};

pub use throughline_engine as engine;
pub use throughline_engine::fold::{AssistantMessage, MessageBlock};
pub use throughline_engine::{
    ApprovalDecision, ApprovalScope, ArgumentConstraints, ArgumentTest, CallStatus, Event, EventKind,
    MessageTiming, Policy, PolicyRule, RememberRequest, RememberedDecision, ToolAnswer, TurnStatus,
};
pub use throughline_store as store;
pub use throughline_tools as tools;
pub use throughline_wire as wire;

/// The examples of the README run as doctests.
// R: D2
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}
