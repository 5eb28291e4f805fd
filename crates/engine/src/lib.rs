//! One assistant turn as a pure state machine: inputs in, events and actions out.
//!
//! This crate has no async, no clock, no randomness, no file, no socket and no global. It does not know which
//! dialect or mode a call came from, and no provider's name appears in it. It never fails on input: every
//! input in every phase is handled by rule.
//!
//! A turn's life, by folder: [`Turn`] takes an input (`turn`), asks the model and reads its reply (`step`),
//! brings each call to its outcome (`call`), and asks people where a rule (`policy`) requires it
//! (`approval`). All of them change the turn through `machine`, which writes an event and applies it to the
//! `record`.
//!
//! ```
//! use throughline_engine::{EventKind, Turn, TurnAction, TurnOutput, TurnSetup, TurnStart, UpstreamChoice};
//!
//! let upstream = UpstreamChoice { name: "demo".into(), model: "small".into() };
//! let setup = TurnSetup { upstreams: vec![upstream], ..TurnSetup::default() };
//! let mut out = TurnOutput::default();
//! let turn = Turn::new(setup, TurnStart::default(), 1_000, &mut out);
//!
//! assert!(matches!(out.events[0].kind, EventKind::StreamStart { .. }));
//! assert!(matches!(out.actions[0], TurnAction::CallModel { step: 1, attempt: 1, .. }));
//! assert!(!turn.is_over());
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod fold;

mod action;
mod approval;
mod call;
mod event;
mod id;
mod input;
mod machine;
mod outbox;
mod policy;
mod record;
mod schedule;
mod setup;
mod step;
mod text;
mod text_rules;
mod tool;
mod turn;
mod waterfall;
mod wording;

pub use action::{CallOfferKind, StepProviderState, TurnAction, TurnOutput};
pub use event::{
    BlockKind, BlockStart, CallError, CallProgress, CallStatus, Event, EventKind, FORMAT, QuestionKind,
    SegmentKind, SessionStats, TimeSegment, ToolInput, ToolResult, TurnFault, TurnStatus, WaitReason,
    missing_stop,
};
pub use fold::merge_deltas;
pub use id::{ApprovalId, ConversationId, EventSeq, MessageId, TurnId, UnixMillis, UserMessageId};
pub use input::{
    ApprovalTarget, ArgumentValidation, ClientAnswer, ClientStatus, ElicitationMode, FailureKind,
    MessageTiming, QueuedMessage, TimerDeadline, TimerId, ToolAnswer, ToolQuestion, TurnInput,
    UpstreamFailure,
};
pub use outbox::{AppendBatch, Outbox, ReleasedBatch};
pub use policy::{
    ApprovalDecision, ApprovalRule, ApprovalScope, ArgumentConstraints, ArgumentTest, ConfirmMode, LoopGuard,
    PatternList, PermissionPreset, Policy, PolicyDecision, PolicyRule, RememberRequest, RememberedDecision,
    RuleAction, RulePart, UnmatchedRule, explain, unmatched_rules,
};
pub use record::QuestionResolution;
pub use setup::{
    ExecutionMode, OnInterrupted, RetryPolicy, SetupRemark, StartRule, TurnLimits, TurnSetup, TurnStart,
    UpstreamChoice,
};
pub use step::request::conversation_key;
pub use text::suggest::suggest_names;
pub use text_rules::{
    TEXT_RULE_ADDED_BYTES_MAX, TEXT_RULE_COMPILED_BYTES_MAX, TEXT_RULE_HELD_BYTES_MAX,
    TEXT_RULE_PATTERN_CHARS_MAX, TEXT_RULE_READ_AGAIN_BYTES_MAX, TEXT_RULE_REPLACE_CHARS_MAX, TEXT_RULES_MAX,
    TEXT_WITHHELD, TextRule, TextRuleError, TextRuleHit, TextRuleRole, TextRuleSettings, TextRuleTarget,
    apply_text_rules,
};
pub use tool::{
    AddressRole, AddressRule, CallRunner, Effect, OfferedTool, PermissionRule, PollingMode, REQUESTER,
    ToolConcurrency,
};
pub use turn::Turn;
pub use turn::query::{ClientCallState, QuestionState, TurnWait};
pub use waterfall::Waterfall;
