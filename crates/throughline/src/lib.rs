//! One turn, one message, one stream: ask a model, run the tools that it calls, and read ONE message that begins with
//! the first token and never breaks off.
//!
//! This crate never serves HTTP, never prints, never reads configuration or the environment unless told to, and never
//! decides anything about a turn: every rule is in [`engine`], which is pure.
//!
//! - [`Throughline`]: the application, with a worked example.
//! - [`Turn`]: events as they come ([`Event`]), and the message that they add up to.
//! - [`Conversation`]: turns that know what was said before.
//! - [`Upstream`]: where models are; [`known`] has seventeen of them by name.
//! - [`config`]: `throughline.toml`, the environment and flags.
//! - [`tools`]: how a Rust function becomes a tool.
//!
//! Tools that change something ask first; see [`Approval`]. A turn that fails says so in its events and in its message,
//! never by a panic and never by an `Err` in mid-stream.

pub mod config;
pub mod described;
pub mod inspect;
pub mod known;
pub mod memory;
pub mod models;
pub mod prompt;

mod agent;
mod app;
mod approval;
mod begin;
mod builder;
mod by_hand;
mod calling;
mod clients;
mod clock;
mod closest;
mod conversation;
mod decided;
mod decoded_again;
mod driver;
mod error;
mod hooks;
mod input;
mod media;
mod observer;
mod offer;
mod own_agents;
mod plan;
mod said;
mod secret;
mod stored;
mod turn;
mod upstream;

pub use agent::{Agent, CallMode, Confirmation, ToolCall};
pub use app::{Persona, Reloaded, SOURCES_WAIT_MAX, Throughline, TurnRequest};
pub use approval::{Answer, Approval, ApprovalAsk};
pub use builder::Builder;
pub use by_hand::{Consent, HandCall, HandCalled, HandRefused};
pub use clients::{
    CLIENT_GRACE_DEFAULT, CLIENT_TOOLS_MAX, ClientAnswered, ClientError, ClientEvent, ClientHandle,
    ClientTool, IncomingCall, OWN_TOOLS_MAX,
};
pub use conversation::Conversation;
pub use decided::{CallCancelled, Decided};
pub use decoded_again::{Again, DecodedAgain, Difference, KeptBytes, KeptExtent, decode_again};
pub use driver::ToolAnswered;
pub use error::Error;
pub use hooks::{TurnEnded, TurnHooks};
pub use input::UserInput;
pub use media::{MediaError, MediaOwner, MediaStore};
pub use observer::{KeepRaw, ModelCallFacts, ModelMoment, Observer, TurnFacts};
pub use offer::{Offer, SourceTokens};
pub use said::{Said, TakenBack};
pub use secret::Secret;
pub use stored::{HistoryOf, Prepared, ReadAs, STORED_TURN, StoredTurn};
pub use turn::{Accepted, Turn, TurnControl};
pub use upstream::{KeyOrigin, PassedOn, ProbeError, ProbeFailure, Proxy, Timeouts, Upstream, UpstreamError};

pub use throughline_engine as engine;
pub use throughline_engine::fold::{Block, Message};
pub use throughline_engine::{
    ArgumentTest, CallStatus, Constraints, Decision, Event, EventKind, Policy, Remember, Remembered, Rule,
    Scope, ToolAnswer, TurnStatus, When,
};
pub use throughline_store as store;
pub use throughline_tools as tools;
pub use throughline_wire as wire;

/// The examples of the README run like those of the documentation. // R: D2
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}
