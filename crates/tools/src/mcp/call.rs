//! A tool of a server: called through the current connection, and never reported to have done nothing when
//! that is not known.

use super::content;
use super::definition::McpToolDefinition;
use super::session::CallFailure;
use super::source::McpServerHandle;
use crate::context::ToolContext;
use crate::schema::{CompiledSchema, truncate_chars};
use crate::tool::{Tool, ToolError, ToolSpec};
use async_trait::async_trait;
use rmcp::model::CallToolRequestParams;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use throughline_wire::{CallArguments, ToolOutput};

/// Time that a call waits for a server that is being restarted.
pub const RESTART_WAIT: Duration = Duration::from_secs(10);
/// Most characters of a server's complaint that are passed on to a fault.
const PROBLEM_CHARS_MAX: usize = 300;

/// One tool of one server.
pub(crate) struct McpTool {
    server: Arc<McpServerHandle>,
    spec: ToolSpec,
    /// Name of the tool at the server.
    name: String,
    output: Option<CompiledSchema>,
}

impl McpTool {
    pub(crate) fn new(server: Arc<McpServerHandle>, definition: McpToolDefinition) -> Self {
        // A schema of the output that cannot be used checks nothing; only that of the arguments keeps a tool out.
        let output =
            definition.spec.output.as_ref().and_then(|schema| CompiledSchema::compile_any(schema).ok());
        Self { server, spec: definition.spec, name: definition.pin.tool, output }
    }
}

#[async_trait]
impl Tool for McpTool {
    fn definition(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, arguments: &CallArguments, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let Some(session) = self.server.session(RESTART_WAIT, context.cancellation()).await else {
            let state = self.server.state();
            return Err(ToolError::new(format!(
                "the MCP server `{}` is not there: {state}",
                self.server.name
            )));
        };
        let mut params = CallToolRequestParams::new(self.name.clone());
        params.arguments = arguments.value.as_object().cloned();
        let idle = self.server.settings.idle_timeout();
        match session.call(params, &context, idle).await {
            Ok(result) => {
                self.check_output(result.structured_content.as_ref(), result.is_error == Some(true));
                self.redact_answer(content::output_from_result(result))
            }
            Err(failure) => self.redact_answer(Err(self.tool_error(failure))),
        }
    }
}

impl McpTool {
    fn redact_answer(&self, answer: Result<ToolOutput, ToolError>) -> Result<ToolOutput, ToolError> {
        let secrets = &self.server.secrets;
        answer.map(|output| secrets.redact_output(output)).map_err(|error| error.redacted(secrets))
    }

    /// Checks an output against the server's own schema. A violation is logged once, and the output is used all the same.
    fn check_output(&self, structured: Option<&Value>, is_error: bool) {
        let Some(schema) = &self.output else { return };
        let problem = match structured {
            _ if is_error => None,
            None => Some("its result has no structured output, which its definition requires".to_owned()),
            Some(value) => schema
                .check(value)
                .err()
                .map(|error| format!("its output does not match its definition: {error}")),
        };
        if let Some(problem) = problem {
            self.server.report_problem(&self.spec.name, &truncate_chars(&problem, PROBLEM_CHARS_MAX));
        }
    }

    fn tool_error(&self, failure: CallFailure) -> ToolError {
        let server = &self.server.name;
        match failure {
            CallFailure::Refused { code, message } => {
                ToolError::new(format!("the MCP server `{server}` refused the call (code {code}): {message}"))
            }
            CallFailure::NotSent(why) => {
                self.server.request_check();
                ToolError::new(format!("nothing was sent to the MCP server `{server}`: {why}"))
            }
            CallFailure::HttpStatus(why) => {
                self.server.request_check();
                ToolError::new(format!("the MCP server `{server}` gave no result: {why}"))
            }
            CallFailure::Unfinished(what) => ToolError::new(format!("the MCP server `{server}`: {what}")),
            CallFailure::Protocol(what) => ToolError::lost(format!("the MCP server `{server}`: {what}")),
            CallFailure::Lost(why) => {
                self.server.request_check();
                ToolError::lost(format!(
                    "the connection to the MCP server `{server}` failed before it replied: {why}"
                ))
            }
            CallFailure::Cancelled => ToolError::new("stopped"),
            CallFailure::TimedOut(limit) => {
                self.server.request_check();
                ToolError::TimedOut { limit }
            }
            CallFailure::Disconnected => ToolError::lost(format!(
                "the connection to the MCP server `{server}` closed before it replied"
            )),
        }
    }
}
