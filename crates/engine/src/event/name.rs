//! The names of events on the wire.

use super::EventKind;

impl EventKind {
    /// The names of all kinds that this release writes, in the order of the documentation.
    pub const NAMES: [&'static str; 28] = [
        "stream_start",
        "step_start",
        "step_end",
        "block_start",
        "block_end",
        "content_delta",
        "model_text",
        "thinking",
        "citation",
        "tool_use",
        "tool_input_delta",
        "tool_input_reset",
        "tool_input",
        "approval_request",
        "approval_resolved",
        "tool_redefined",
        "tool_start",
        "tool_progress",
        "tool_result",
        "audio_delta",
        "user_message",
        "waiting",
        "problem",
        "session_stats",
        "error",
        "turn_resumed",
        "block_superseded",
        "stream_end",
    ];

    /// The `type` on the wire. No arm for "the rest": a new kind comes by
    /// here, and then to [`NAMES`](Self::NAMES).
    pub fn name(&self) -> &'static str {
        use EventKind as E;
        match self {
            E::StreamStart { .. } => "stream_start",
            E::StepStart { .. } => "step_start",
            E::StepEnd { .. } => "step_end",
            E::BlockStart(_) => "block_start",
            E::BlockEnd => "block_end",
            E::ContentDelta { .. } => "content_delta",
            E::ModelText { .. } => "model_text",
            E::Thinking { .. } => "thinking",
            E::Citation { .. } => "citation",
            E::ToolUse { .. } => "tool_use",
            E::ToolInputDelta { .. } => "tool_input_delta",
            E::ToolInputReset => "tool_input_reset",
            E::ToolInput(_) => "tool_input",
            E::ApprovalRequest { .. } => "approval_request",
            E::ApprovalResolved { .. } => "approval_resolved",
            E::ToolRedefined { .. } => "tool_redefined",
            E::ToolStart { .. } => "tool_start",
            E::ToolProgress(_) => "tool_progress",
            E::ToolResult(_) => "tool_result",
            E::AudioDelta { .. } => "audio_delta",
            E::UserMessage { .. } => "user_message",
            E::Waiting { .. } => "waiting",
            E::Problem { .. } => "problem",
            E::SessionStats(_) => "session_stats",
            E::Error(_) => "error",
            E::TurnResumed { .. } => "turn_resumed",
            E::BlockSuperseded { .. } => "block_superseded",
            E::StreamEnd { .. } => "stream_end",
            E::Unrecognised => "unrecognised",
        }
    }
}
