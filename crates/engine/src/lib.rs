//! One assistant turn as a pure state machine: inputs in, events and actions out.
//!
//! This crate has no async, no clock, no randomness, no file, no socket and no global. It does not know which dialect
//! or mode a call came from, and no provider's name appears in it. It never fails on input: whatever comes at
//! whatever time is handled by rule.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod fold;

mod action;
mod approvals;
mod calls;
mod canonical;
mod client;
mod diff;
mod elicitation;
mod ending;
mod event;
mod history;
mod id;
mod input;
mod loop_guard;
mod outbox;
mod policy;
mod record;
mod retry;
mod schedule;
mod setup;
mod shorten;
mod steering;
mod stream;
mod suggest;
mod summary;
mod tool_result;
mod turn;
mod wait_notice;
mod waterfall;
mod wording;

pub use action::{EarlyStart, StepProviderState, TurnAction, TurnOutput};
pub use client::{ClientAnswer, ClientCallState, ClientStatus};
pub use elicitation::{ElicitationMode, QuestionState, ToolAnswer, ToolQuestion};
pub use event::{
    ApprovalDecision, BlockKind, BlockStart, CallError, CallProgress, CallStatus, Event, EventKind, FORMAT,
    QuestionKind, SessionStats, ToolInput, ToolResult, TurnFault, TurnStatus, WaitReason,
};
pub use fold::merge_deltas;
pub use id::{ApprovalId, ConversationId, EventSeq, MessageId, TurnId, UnixMillis, UserMessageId};
pub use input::{
    ApprovalTarget, ArgumentValidation, FailureKind, TimerDeadline, TimerId, TurnInput, UpstreamFailure,
};
pub use loop_guard::LoopGuard;
pub use outbox::{AppendBatch, Outbox, ReleasedBatch};
pub use policy::{
    ApprovalScope, ArgumentConstraints, ArgumentTest, ConfirmMode, PatternList, Policy, PolicyDecision,
    PolicyRule, RememberRequest, RememberedDecision, RuleAction, RulePart, UnmatchedRule, explain,
    unmatched_rules,
};
pub use record::QuestionResolution;
pub use setup::{
    ApprovalRule, CallRunner, Effect, ExecutionMode, OfferedTool, OnInterrupted, PermissionRule, PollingMode,
    REQUESTER, RetryPolicy, SetupRemark, StartRule, ToolConcurrency, TurnLimits, TurnSetup, TurnStart,
    UpstreamChoice,
};
pub use steering::{MessageTiming, QueuedMessage};
pub use suggest::suggest_names;
pub use turn::Turn;
pub use waterfall::{SegmentKind, TimeSegment, Waterfall};
