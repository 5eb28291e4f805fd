//! The words that every layer shares: ids, calls, outcomes, messages, and the event of a model step.

mod call;
mod hosted_tool;
mod id;
mod media;
mod media_placeholder;
mod message;
mod outcome;
mod outcome_text;
mod picture_size;
mod step_event;
mod tool_definition;

pub use call::{ArgumentRepair, Call, CallArguments, CallKind, RawArguments};
pub use hosted_tool::HostedToolKind;
pub use id::{CallId, CallSlot, ToolName, UpstreamCallId, WireName};
pub use media::{Media, MediaContent, picture_type};
pub use media_placeholder::MediaPlaceholder;
pub use message::{ClosedStep, Message, ModelRequest, ModelSettings, ProviderState, ToolChoice, UserPart};
pub use outcome::{CallOutcome, NotStarted, StartState, ToolOutput};
pub use step_event::{
    BrokenCall, FinishReason, HostedTool, ProblemKind, SealEvidence, StepEvent, StepProblem, StreamEnd,
    UpstreamError, Usage,
};
pub use tool_definition::{DefinitionHash, ToolDefinition, VcpCommand};
