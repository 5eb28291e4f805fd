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
mod closest;
mod diff;
mod ending;
mod event;
mod guard;
mod id;
mod input;
mod ledger;
mod outbox;
mod policy;
mod questions;
mod record;
mod result;
mod retry;
mod schedule;
mod setup;
mod shorten;
mod steering;
mod stream;
mod summary;
mod turn;
mod waiting;
mod waterfall;
mod wording;

pub use action::{Action, Beside, Early, Out};
pub use client::{ClientAnswer, ClientCall, ClientStatus};
pub use closest::{closest_names, edits};
pub use event::{
    BlockKind, BlockStart, CallStatus, Decision, Event, EventKind, FORMAT, Fault, Progress, QuestionKind,
    SessionStats, ToolError, ToolInput, ToolResult, TurnStatus, WaitReason,
};
pub use fold::merge_deltas;
pub use guard::LoopGuard;
pub use id::{ApprovalId, ConversationId, MessageId, Millis, Seq, TurnId, UserMessageId};
pub use input::{Deadline, FailureKind, Input, Question, TimerId, UpstreamFailure, Verdict};
pub use outbox::{Append, Outbox, Released};
pub use policy::{
    ArgumentTest, Confirm, Constraints, Decide, Patterns, Policy, Remember, Remembered, Rule, RulePart,
    Ruling, Scope, UnmatchedRule, explain, unmatched_rules,
};
pub use questions::{QuestionState, ToolAnswer, ToolQuestion, Wants};
pub use record::Answered;
pub use setup::{
    ApprovalRule, Concurrency, Effect, Execution, OfferedTool, OnInterrupted, Permission, Polling, REQUESTER,
    Remark, RetryPolicy, Runs, StartRule, TurnLimits, TurnSetup, TurnStart, UpstreamChoice,
};
pub use steering::{QueuedMessage, When};
pub use turn::Turn;
pub use waterfall::{Segment, SegmentKind, Waterfall};
