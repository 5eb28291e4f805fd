//! Constructors of the kinds that programs outside the engine write: an imported conversation is a log like any other.

use super::{CallStatus, EventKind, FORMAT, TurnStatus};
use crate::id::{MessageId, UserMessageId};
use crate::tool::Effect;
use throughline_wire::{CallKind, CallSlot, FinishReason, ToolName, UpstreamCallId, UserPart, WireName};

impl EventKind {
    /// `stream_start` of a turn outside any conversation.
    pub fn stream_start(message_id: MessageId, agent: impl Into<String>, input: Vec<UserPart>) -> Self {
        let (agent, mode) = (agent.into(), "auto".to_owned());
        EventKind::StreamStart { v: FORMAT, conversation_id: None, message_id, agent, mode, input }
    }

    /// `step_start` of a first try.
    pub fn step_start(upstream: impl Into<String>, model: impl Into<String>) -> Self {
        let (upstream, model) = (upstream.into(), model.into());
        EventKind::StepStart { upstream, model, attempt: 1, fallback: 0, tools_offered: Vec::new() }
    }

    /// `step_end` of a model that stopped normally.
    pub fn step_end(finish: FinishReason) -> Self {
        EventKind::StepEnd { finish: Some(finish), finish_raw: None, usage: None, segments: Vec::new() }
    }

    /// `content_delta`.
    pub fn content_delta(text: impl Into<String>) -> Self {
        EventKind::ContentDelta { text: text.into() }
    }

    /// `thinking`.
    pub fn thinking(text: impl Into<String>) -> Self {
        EventKind::Thinking { text: text.into() }
    }

    /// `tool_use` of a tool about which only its name is known.
    pub fn tool_use(
        tool_name: ToolName,
        wire_name: WireName,
        source: impl Into<String>,
        upstream_id: Option<UpstreamCallId>,
        slot: CallSlot,
    ) -> Self {
        EventKind::ToolUse {
            title: tool_name.as_str().to_owned(),
            tool_name,
            wire_name,
            source: source.into(),
            effect: Effect::External,
            status: CallStatus::Preparing,
            input_summary: String::new(),
            upstream_id,
            slot,
            position: slot.0,
            call_kind: CallKind::Function,
            supersedes: None,
        }
    }

    /// `tool_input_delta`.
    pub fn tool_input_delta(delta: impl Into<String>) -> Self {
        EventKind::ToolInputDelta { delta: delta.into(), input_summary: None }
    }

    /// `tool_start` of a first try, after the stream.
    pub fn tool_start() -> Self {
        EventKind::ToolStart { early: false, attempt: 1, rule: None, client_id: None }
    }

    /// `user_message`.
    pub fn user_message(id: Option<UserMessageId>, input: Vec<UserPart>) -> Self {
        EventKind::UserMessage { id, input }
    }

    /// `stream_end`.
    pub fn stream_end(status: TurnStatus) -> Self {
        EventKind::StreamEnd { status }
    }
}
