//! Calls and results in the history that a model reads.

use super::super::escape::escape;
use super::super::result_frame::{nonce, outcome_status};
use super::syntax::MARKER_PREFIXES;
use crate::vocabulary::{Call, CallOutcome, ToolDefinition};
use serde_json::Value;
use std::fmt::Write;

/// Names of a tool in requests: `tool_name` and `command`.
pub(super) fn names(tool: &ToolDefinition) -> (&str, Option<&str>) {
    match &tool.vcp {
        Some(vcp) => (&vcp.tool_name, vcp.command.as_deref()),
        None => (tool.name.as_str(), None),
    }
}

fn names_of<'d>(call: &'d Call, tools: &'d [ToolDefinition]) -> (&'d str, Option<&'d str>) {
    let tool = tools.iter().find(|tool| tool.name == call.name);
    tool.map_or((call.name.as_str(), None), names)
}

/// A request block that is being written.
pub(super) struct RequestWriter {
    text: String,
}

impl RequestWriter {
    pub(super) fn new(tool_name: &str, command: Option<&str>) -> Self {
        let mut request = Self { text: "<<<[TOOL_REQUEST]>>>".to_owned() };
        request.line("", "tool_name", tool_name);
        if let Some(command) = command {
            request.field("command", command);
        }
        request
    }

    pub(super) fn field(&mut self, key: &str, value: &str) {
        self.line(",", key, value);
    }

    fn line(&mut self, before: &str, key: &str, value: &str) {
        // Writing to a String cannot fail.
        let (key, value) = (escape(MARKER_PREFIXES, key), escape(MARKER_PREFIXES, value));
        let _ = write!(self.text, "{before}\n{key}:「始」{value}「末」");
    }

    pub(super) fn text(mut self) -> String {
        self.text += "\n<<<[END_TOOL_REQUEST]>>>";
        self.text
    }
}

/// A call as a request block. Values that this protocol cannot carry become JSON text: they come from a
/// history in native mode, and the model must see them.
pub(super) fn call_text(call: &Call, tools: &[ToolDefinition]) -> String {
    let (tool_name, command) = names_of(call, tools);
    let mut request = RequestWriter::new(tool_name, command);
    if let Value::Object(arguments) = call.arguments_object() {
        for (key, value) in &arguments {
            match value {
                Value::String(text) => request.field(key, text),
                other => request.field(key, &other.to_string()),
            }
        }
    }
    request.text()
}

/// One frame for each result.
pub(super) fn results_text(results: &[(Call, CallOutcome)], tools: &[ToolDefinition]) -> String {
    let Some((first, _)) = results.first() else { return String::new() };
    let nonce = nonce(&first.id);
    let frame = |(at, (call, outcome)): (usize, &(Call, CallOutcome))| {
        let (tool_name, command) = names_of(call, tools);
        let field =
            |key: &str, value: &str| format!("{key}:「始」{}「末」\n", escape(MARKER_PREFIXES, value));
        let mut text = format!("<<<[TOOL_RESULT n={nonce}]>>>\n");
        text += &field("tool_name", tool_name);
        text += &command.map(|command| field("command", command)).unwrap_or_default();
        if results.len() > 1 {
            text += &field("call", &format!("{} of {}", at + 1, results.len()));
        }
        text += &field("status", outcome_status(outcome));
        text += &field("result", &call.outcome_text(outcome));
        text + &format!("<<<[END_TOOL_RESULT n={nonce}]>>>")
    };
    results.iter().enumerate().map(frame).collect::<Vec<_>>().join("\n\n")
}
