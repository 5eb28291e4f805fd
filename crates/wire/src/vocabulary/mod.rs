//! The words that every layer shares: ids, calls, outcomes, messages, and the event of a model step.

mod call;
mod id;
mod media;
mod message;
mod outcome;
mod step_event;
mod told;
mod tool_definition;

pub use call::{Arguments, Call, CallKind, RawArguments, Repair};
pub use id::{CallId, Slot, ToolName, UpstreamCallId, WireName};
pub use media::{Media, MediaContent};
pub use message::{ClosedStep, Message, ModelRequest, ProviderState, Settings, ToolChoice, UserPart};
pub use outcome::{NotStarted, Outcome, Output, Started};
pub use step_event::{
    BrokenCall, End, FinishReason, Hosted, Problem, ProblemKind, Seal, StepEvent, UpstreamError, Usage,
};
pub use tool_definition::{ToolDefinition, VcpCommand};
