//! Bytes of any LLM provider to one small vocabulary, and back: framing, dialects, tool-call assembly.
//!
//! This crate has no async, no clock, no randomness, no file, no socket and no global. It never fails on input: errors
//! of a stream are reported as [`StepEvent::Problem`] and decoding continues.

#![warn(clippy::unwrap_used)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod dialect;
pub mod display_escape;
pub mod frame;
pub mod json;
pub mod text_calls;

mod assemble;
mod decoder;
mod deltas;
mod limits;
mod profile;
mod reply;
mod step;
mod vocabulary;

pub use decoder::{DecodeOptions, StepDecoder, ThinkMode};
pub use deltas::DeltaAccumulator;
pub use dialect::{
    ArgumentNames, ClientReasoning, Dialect, EncodeError, EncodedRequest, ReasoningForm, ReasoningTarget,
    TransferMode, encode, has_setting, needs_backtracking,
};
pub use limits::DecodeLimits;
pub use profile::{LeakedCalls, ReasoningEcho, ToolIdFormat, ToolSchemaForm, UpstreamProfile};
pub use reply::{ModelReply, ReplyAudio, ReplyCall};
pub use vocabulary::*;

/// The examples of the page run like those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/streaming-tool-calls.md")]
mod page {}
