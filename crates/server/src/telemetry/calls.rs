//! The history of tool calls as a fold of events: rows for the catalog.

use super::meter::call_status;
use std::collections::HashMap;
use throughline_engine::{CallStatus, Event, EventKind, QuestionKind};
use throughline_store::CallRow;
use throughline_wire::CallId;

/// The calls of one turn that have not ended, as far as the history is concerned.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallFold {
    open: HashMap<CallId, CallRow>,
}

/// Change of the call history by an event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallChange {
    /// The current row of a call.
    Row(Box<CallRow>),
    /// A change of a call whose beginning this fold has not seen: the turn's log has it.
    UnknownCall,
}

impl CallFold {
    /// Takes the next event. A row is produced when a call is announced, asks, starts and ends; not for every
    /// delta.
    pub(crate) fn apply(&mut self, event: &Event) -> Option<CallChange> {
        let id = event.tool_id.as_ref()?;
        if let EventKind::ToolUse { tool_name, source, effect, .. } = &event.kind {
            let row = CallRow {
                turn_id: event.turn_id.as_str().to_owned(),
                tool_id: id.as_str().to_owned(),
                conversation_id: None,
                step: event.step.unwrap_or_default(),
                tool_name: tool_name.as_str().to_owned(),
                source: source.clone(),
                effect: effect.name().to_owned(),
                status: call_status(CallStatus::Preparing).to_owned(),
                arguments: String::new(),
                output_summary: None,
                error: None,
                started_at: event.timestamp,
                duration_ms: None,
            };
            self.open.insert(id.clone(), row.clone());
            return Some(CallChange::Row(Box::new(row)));
        }
        let updated = match &event.kind {
            // A running tool with an open elicitation stays running.
            EventKind::ApprovalRequest { kind: QuestionKind::Call, .. } => Some(CallStatus::AwaitingApproval),
            EventKind::ToolInput(_) | EventKind::ApprovalResolved { .. } => Some(CallStatus::Queued),
            EventKind::ToolStart { .. } => Some(CallStatus::Running),
            EventKind::ToolResult(result) => Some(result.status),
            _ => return None,
        };
        let Some(row) = self.open.get_mut(id) else { return Some(CallChange::UnknownCall) };
        match &event.kind {
            EventKind::ToolInput(input) => {
                let text = input.arguments.as_ref().map(ToString::to_string).or_else(|| input.raw.clone());
                row.arguments = text.unwrap_or_default();
            }
            // Arguments that a person has edited are the ones that run.
            EventKind::ApprovalResolved { arguments: Some(edited), .. } => row.arguments = edited.to_string(),
            EventKind::ToolStart { .. } => row.started_at = event.timestamp,
            EventKind::ToolResult(result) => {
                row.started_at = result.started_at.unwrap_or(row.started_at);
                row.duration_ms = result.duration_ms.and_then(|ms| i64::try_from(ms).ok());
                let summary = Some(result.output_summary.clone()).filter(|summary| !summary.is_empty());
                row.output_summary = summary;
                row.error = result.error.as_ref().map(|error| match &error.message {
                    Some(message) => format!("{}: {message}", error.code),
                    None => error.code.clone(),
                });
            }
            _ => {}
        }
        let awaited_approval = row.status == call_status(CallStatus::AwaitingApproval);
        let is_stray_answer = matches!(event.kind, EventKind::ApprovalResolved { .. }) && !awaited_approval;
        if let Some(status) = updated.filter(|_| !is_stray_answer) {
            row.status = call_status(status).to_owned();
        }
        let now = row.clone();
        if matches!(event.kind, EventKind::ToolResult(_)) {
            self.open.remove(id);
        }
        Some(CallChange::Row(Box::new(now)))
    }
}
