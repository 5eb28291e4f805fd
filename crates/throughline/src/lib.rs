//! One turn, one message, one stream: ask a model, run the tools that it calls, and read ONE message that begins with
//! the first token and never breaks off.
//!
//! This crate never serves HTTP, never prints, reads configuration and the environment only on request, and never
//! decides anything about a turn: every rule is in [`engine`], which is pure.
//!
//! - [`Throughline`]: the application, with a worked example.
//! - [`TurnHandle`]: the events of a turn ([`Event`]), and the message that they add up to.
//! - [`Conversation`]: turns that share a history.
//! - [`Upstream`]: a model endpoint; [`providers`] has many of them by name.
//! - [`config`]: `throughline.toml`, the environment and flags.
//! - [`tools`]: Rust functions as tools.
//! - [`voice`]: speech synthesis and transcription.
//! - [`prelude`]: the names that most programs need.
//!
//! Tools with side effects ask for approval first; see [`ApprovalMode`]. A turn that fails reports it in its events
//! and in its message, never by a panic and never by an `Err` in mid-stream.

pub mod config;
pub mod inspect;
pub mod prelude;
pub mod recording;
pub mod voice;

mod agent;
mod app;
mod approval;
mod clients;
mod clock;
mod driver;
mod error;
mod language;
mod media;
mod observe;
mod request_files;
mod suggest;
mod turn;
mod upstream;

pub use agent::prompt;
pub use agent::{
    Agent, AgentLimitsSection, AgentTools, CallStartMode, ConfirmationMode, ResultRole, SourceTokens,
    SteeringMode, TextProtocolKind, ToolMode, ToolSelection, ToolStartMode,
};
pub use app::{
    ManualCall, ManualCallError, ManualCallResult, ManualConsent, ReloadReport, SOURCES_WAIT_MAX,
    Throughline, ThroughlineBuilder,
};
pub use approval::store as approval_store;
pub use approval::store::{ApprovalStore, ApprovalStoreError, ApprovalStores};
pub use approval::{ApprovalMode, ApprovalOutcome, ApprovalRequest, ApprovalResponse, decision_in_words};
pub use clients::{
    CLIENT_GRACE_DEFAULT, CLIENT_TOOLS_MAX, ClientError, ClientEvent, ClientHandle, ClientToolSpec,
    IncomingCall, REQUEST_TOOLS_MAX,
};
pub use config::AppSettings;
pub use error::Error;
pub use inspect::views;
pub use language::UserLanguage;
pub use media::{MediaError, MediaOwner, MediaReader, MediaStore};
pub use observe::{ModelCallEvent, ModelCallFacts, TurnFacts, TurnObserver};
pub use recording::redecode::{DecodeDifference, RecordedBytes, RedecodeOutcome, RedecodedReply, redecode};
pub use turn::{
    AnswerError, AnswerSchema, CancelCallResult, ClientAnswerResult, CommandAck, Conversation, FirstCall,
    HistorySource, PersonaMode, PreparedTurn, ResumedTurns, RetractResult, STORED_TURN_VERSION, SendResult,
    StoredTurn, ToolAnswerResult, TurnControl, TurnHandle, TurnHooks, TurnRequest, TurnResult, UserInput,
};
pub use upstream::{
    AuthorizeError, DecodeProfile, FeatureVerdict, InProcessModel, KeyOrigin, MEASURE_REQUESTS,
    MEASURE_REQUESTS_MAX, MEASURE_TOKENS_MAX, MeasureOptions, MeasureProgress, MeasuredFeature,
    MeasuredSetting, ModelStream, OutgoingRequest, PassthroughResponse, ProbeError, ProbeFailure,
    ReplySender, Secret, StreamingSetting, Upstream, UpstreamConfigError, UpstreamMeasurement, UpstreamProxy,
    UpstreamTimeouts,
};
pub use upstream::{models, providers};
pub use voice::{Ears, Voice, VoiceError};

pub use throughline_engine as engine;
pub use throughline_engine::fold::{AssistantMessage, MessageBlock};
pub use throughline_engine::{
    ApprovalDecision, ApprovalId, ApprovalScope, ArgumentConstraints, ArgumentTest, CallStatus, ClientAnswer,
    ConversationId, Event, EventKind, EventSeq, ExecutionMode, MessageId, MessageTiming, PermissionPreset,
    Policy, PolicyRule, QueuedMessage, RememberRequest, RememberedDecision, RetryPolicy, RuleAction,
    StartRule, StepProviderState, TextRule, TextRuleRole, TextRuleSettings, TextRuleTarget, ToolAnswer,
    TurnFault, TurnId, TurnLimits, TurnStatus, TurnWait, UpstreamChoice, UpstreamFailure, UserMessageId,
};
pub use throughline_store as store;
pub use throughline_store::{Log, RawExtent};
pub use throughline_tools as tools;
pub use throughline_tools::mcp::PinStore;
pub use throughline_tools::process::SpawnContext;
pub use throughline_tools::{ExecutorLimits, Tool, ToolRegistry, ToolSource, ToolToggle};
pub use throughline_wire as wire;
pub use throughline_wire::{
    CallId, DecodeLimits, Dialect, Message, ModelSettings, ToolChoice, ToolName, TransferMode,
    UpstreamProfile, UserPart,
};

/// The examples of the README run as doctests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}

/// Compiles the examples of the page on upstreams.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/upstreams.md")]
mod upstreams_page {}
