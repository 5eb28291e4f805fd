//! An invocation command of a synchronous plugin: one run of its program, input in, answer out.

use super::plugin::VcpPlugin;
use super::{ANSWER_BYTES_MAX, reply};
use crate::context::ToolContext;
use crate::process::{StdoutMode, failure_text, run_program};
use crate::tool::{Tool, ToolError, ToolSpec};
use async_trait::async_trait;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use throughline_wire::{CallArguments, ToolOutput};

/// A tool for one invocation command of a synchronous plugin.
pub(super) struct PluginTool {
    pub(super) spec: ToolSpec,
    pub(super) plugin: Arc<VcpPlugin>,
    /// Value of the field `command`, for plugins that read it.
    pub(super) command: Option<String>,
}

#[async_trait]
impl Tool for PluginTool {
    fn definition(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, arguments: &CallArguments, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let VcpPlugin { program, secrets, .. } = self.plugin.as_ref();
        let input = self.input(arguments);
        let stdout = StdoutMode::Captured { bytes_max: ANSWER_BYTES_MAX };
        let result = run_program(program, input.as_bytes(), stdout, secrets, &context).await?;
        if result.overflowed {
            let why = format!("it answered with more than {ANSWER_BYTES_MAX} bytes, and was stopped");
            return Err(ToolError::lost(why));
        }
        // As in VCP: the reply decides, not the exit code.
        match reply::parse_reply(&result.stdout) {
            Ok(reply) => reply_output(&self.plugin, reply),
            Err(no_answer) => {
                let why = failure_text(program, &result).unwrap_or_else(|| match result.stderr.as_str() {
                    "" => no_answer.clone(),
                    complaints => format!("{no_answer}; stderr: {complaints}"),
                });
                let why = self.plugin.explained(why);
                let error = if result.was_cut_short() { ToolError::lost(why) } else { ToolError::new(why) };
                Err(match result.partial(secrets) {
                    Some(partial) => error.with_partial(partial),
                    None => error,
                })
            }
        }
    }
}

impl PluginTool {
    /// Input of the plugin: texts by name, `command` first. Nothing at all if there is no content, as in VCP.
    pub(super) fn input(&self, arguments: &CallArguments) -> String {
        let mut fields = Map::new();
        if let Some(command) = &self.command {
            fields.insert("command".to_owned(), Value::from(command.as_str()));
        }
        // As written: a number of twenty digits is an id, and must not be rounded.
        let written: BTreeMap<String, &RawValue> = serde_json::from_str(&arguments.text).unwrap_or_default();
        for (name, value) in arguments.value.as_object().into_iter().flatten() {
            if name == "command" && self.command.is_some() {
                continue;
            }
            // A block of text has texts only, and that is what plugins are written for.
            let text = match value {
                Value::Null => continue,
                Value::String(text) => text.clone(),
                Value::Number(number) => {
                    written.get(name).map_or_else(|| number.to_string(), |text| text.get().to_owned())
                }
                other => other.to_string(),
            };
            fields.insert(name.clone(), Value::String(text));
        }
        if fields.is_empty() { String::new() } else { Value::Object(fields).to_string() }
    }
}

/// A plugin's result as an output, or its own error.
fn reply_output(plugin: &VcpPlugin, reply: Result<Value, String>) -> Result<ToolOutput, ToolError> {
    match reply {
        Ok(result) => Ok(reply::output_from_result(plugin.secrets.redact_value(result))),
        Err(error) => Err(ToolError::new(plugin.explained(plugin.secrets.redact(&error).into_owned()))),
    }
}

/// Output or error of a whole answer.
pub(super) fn output_or_error(
    plugin: &VcpPlugin,
    answer: Result<Value, String>,
) -> Result<ToolOutput, ToolError> {
    reply_output(plugin, answer.and_then(reply::read_answer).unwrap_or_else(Err))
}
