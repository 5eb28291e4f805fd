//! A tool of a server: called through whatever connection there is by then, and never said to have done nothing when
//! that is not known.

use super::content;
use super::definition::Definition;
use super::session::{CallEnd, Session};
use super::source::Server;
use crate::context::ToolContext;
use crate::schema::{Schema, shortened};
use crate::tool::{Tool, ToolError, ToolSpec};
use async_trait::async_trait;
use rmcp::model::CallToolRequestParams;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use throughline_engine::Effect;
use throughline_wire::{Arguments, Output};

/// How long a call waits for a server that is being restarted.
pub const RESTART_WAIT: Duration = Duration::from_secs(10);
/// Most characters of a server's complaint that are passed on to a fault.
const COMPLAINT_CHARS_MAX: usize = 300;

/// One tool of one server.
pub(crate) struct McpTool {
    server: Arc<Server>,
    spec: ToolSpec,
    /// As the server calls it.
    name: String,
    output: Option<Schema>,
}

impl McpTool {
    pub(crate) fn new(server: Arc<Server>, definition: Definition) -> Self {
        // A schema of the output that cannot be used checks nothing; only that of the arguments keeps a tool out.
        let output = definition.spec.output.as_ref().and_then(|schema| Schema::of_output(schema).ok());
        Self { server, spec: definition.spec, name: definition.pinned.tool, output }
    }
}

#[async_trait]
impl Tool for McpTool {
    fn definition(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, arguments: &Arguments, context: ToolContext) -> Result<Output, ToolError> {
        let Some(session) = self.server.session(RESTART_WAIT, context.cancellation()).await else {
            let state = self.server.state();
            return Err(ToolError::new(format!(
                "the MCP server `{}` is not there: {state}",
                self.server.name
            )));
        };
        let mut params = CallToolRequestParams::new(self.name.clone());
        params.arguments = arguments.value.as_object().cloned();
        let idle = self.server.settings.idle();
        match session.call(params, &context, idle).await {
            Ok(result) => {
                self.check_output(result.structured_content.as_ref(), result.is_error == Some(true));
                self.without_secrets(content::answer(result))
            }
            Err(end) => self.without_secrets(Err(self.error(end, &session))),
        }
    }
}

impl McpTool {
    /// R: R4
    fn without_secrets(&self, answer: Result<Output, ToolError>) -> Result<Output, ToolError> {
        let secrets = &self.server.secrets;
        answer.map(|output| secrets.redact_output(output)).map_err(|error| match error {
            ToolError::Failed { message, partial } => ToolError::Failed {
                message: secrets.redact(&message).into_owned(),
                partial: partial.map(|partial| Box::new(secrets.redact_output(*partial))),
            },
            other => other,
        })
    }

    /// What a server breaks of its own word is said once, and the output is used all the same.
    fn check_output(&self, structured: Option<&Value>, is_error: bool) {
        let Some(schema) = &self.output else { return };
        let problem = match structured {
            _ if is_error => None,
            None => Some("it has no structured output, which its definition promises".to_owned()),
            Some(value) => schema
                .check(value)
                .err()
                .map(|error| format!("its output is not what its definition promises: {error}")),
        };
        if let Some(problem) = problem {
            self.server.complain(&self.spec.name, &shortened(&problem, COMPLAINT_CHARS_MAX));
        }
    }

    /// R: L5 L2
    fn error(&self, end: CallEnd, session: &Session) -> ToolError {
        let server = &self.server.name;
        let has_no_effects = matches!(self.spec.effect, Effect::Pure | Effect::Read | Effect::Cosmetic);
        match end {
            CallEnd::Refused { code, message } => {
                ToolError::new(format!("the MCP server `{server}` refused the call (code {code}): {message}"))
            }
            CallEnd::NotSent(why) => {
                self.server.suspect();
                ToolError::new(format!("the call did not reach the MCP server `{server}`: {why}"))
            }
            CallEnd::Protocol(what) => ToolError::new(format!("the MCP server `{server}`: {what}")),
            CallEnd::Stopped => ToolError::new("stopped"),
            CallEnd::Silent(limit) => {
                self.server.suspect();
                ToolError::TimedOut { limit }
            }
            CallEnd::Gone if has_no_effects => {
                ToolError::new(format!("the MCP server `{server}` ended before it had answered"))
            }
            CallEnd::Gone => {
                debug_assert!(session.is_closed() || !has_no_effects);
                ToolError::Unknown
            }
        }
    }
}
