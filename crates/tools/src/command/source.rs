//! The source of commands, and one call of a command.

use super::argv::ArgvTemplate;
use super::{COMMANDS, CommandInput, CommandOutput, CommandTool, JSON_BYTES_MAX};
use crate::context::ToolContext;
use crate::process::{
    ProgramOutput, ProgramSpec, SandboxMode, SpawnContext, StdoutMode, failure_text, run_program,
    sandbox_remedy,
};
use crate::secrets::SecretSet;
use crate::settings::{ToolSettingError, tool_name};
use crate::template;
use crate::tool::{AgentCallable, Tool, ToolError, ToolSpec};
use crate::toolbox::{SourceReporter, ToolSource};
use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use throughline_wire::{CallArguments, ToolName, ToolOutput};

/// `[commands.*]` of a configuration as a [`ToolSource`]. A broken command does not affect the others.
pub struct CommandSource {
    settings: BTreeMap<String, CommandTool>,
    spawn_context: SpawnContext,
}

impl CommandSource {
    /// Commands by the name of their section.
    pub fn new(settings: BTreeMap<String, CommandTool>, spawn_context: SpawnContext) -> Self {
        Self { settings, spawn_context }
    }
}

#[async_trait]
impl ToolSource for CommandSource {
    fn name(&self) -> &str {
        COMMANDS
    }

    async fn start(&self, news: SourceReporter) {
        let sandbox_check = check_sandbox(&self.settings, &self.spawn_context).await;
        let (mut tools, mut faults) = (Vec::new(), Vec::new());
        for (key, settings) in &self.settings {
            let name = tool_name(key, settings.name.as_deref(), COMMANDS);
            match CommandRunner::new(name.clone(), settings, &self.spawn_context, &sandbox_check) {
                Ok(command) => tools.push(Arc::new(command) as Arc<dyn Tool>),
                Err(error) => faults.push(error.into_fault(COMMANDS, Some(name))),
            }
        }
        news.set_state(tools, faults);
    }

    async fn stop(&self) {}
}

/// Result of the sandbox check; made only if something must be confined.
async fn check_sandbox(
    settings: &BTreeMap<String, CommandTool>,
    spawn_context: &SpawnContext,
) -> Result<(), String> {
    if settings.values().all(|settings| settings.sandbox.mode != SandboxMode::Required) {
        return Ok(());
    }
    spawn_context.check_sandbox().await
}

/// One command, ready to run.
struct CommandRunner {
    spec: ToolSpec,
    program: ProgramSpec,
    argv: ArgvTemplate,
    input: CommandInput,
    output: CommandOutput,
    secrets: SecretSet,
}

impl CommandRunner {
    fn new(
        name: ToolName,
        settings: &CommandTool,
        spawn_context: &SpawnContext,
        sandbox_check: &Result<(), String>,
    ) -> Result<Self, ToolSettingError> {
        let (program, secrets) = settings.program().spec(spawn_context)?;
        let argv = ArgvTemplate::parse(settings.argv.get(1..).unwrap_or_default(), &settings.dash_allowed);
        let names: Vec<&str> = argv.names().collect();
        let parameters =
            template::parameters_schema(settings.parameters.as_ref(), &names).map_err(|message| {
                let remedy = "Declare it under `parameters`; `{{` and `}}` are braces themselves.";
                ToolSettingError::new(format!("argv: {message}"), remedy)
            })?;
        if let (SandboxMode::Required, Err(why)) = (settings.sandbox.mode, sandbox_check) {
            let message = format!("its sandbox is required but not available: {why}");
            return Err(ToolSettingError::new(
                message,
                "Run `throughline doctor` for details; `sandbox.mode = \"on\"` makes the sandbox optional.",
            ));
        }
        let mut spec = ToolSpec::new(name, settings.description.clone());
        if let Some(title) = &settings.title {
            spec.title.clone_from(title);
        }
        spec.parameters = parameters;
        spec.effect = settings.effect;
        spec.agent_callable = AgentCallable::Yes;
        COMMANDS.clone_into(&mut spec.source);
        spec.timeout = crate::settings::time_limit(settings.timeout_ms)?;
        Ok(Self { spec, program, argv, input: settings.input, output: settings.output, secrets })
    }
}

#[async_trait]
impl Tool for CommandRunner {
    fn definition(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, arguments: &CallArguments, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let mut program = self.program.clone();
        let filled = self.argv.fill(&arguments.value).map_err(ToolError::invalid_arguments)?;
        program.arguments.extend(filled.into_iter().map(Into::into));
        let input = match self.input {
            CommandInput::Json => {
                let mut text = arguments.value.to_string();
                text.push('\n');
                text
            }
            CommandInput::None => String::new(),
        };
        let stdout = match self.output {
            CommandOutput::Text => StdoutMode::Streamed,
            CommandOutput::Json => StdoutMode::Captured { bytes_max: JSON_BYTES_MAX },
        };
        let result = run_program(&program, input.as_bytes(), stdout, &self.secrets, &context).await?;
        match self.output {
            CommandOutput::Text => match self.failure(&program, &result) {
                // The streamed text is the output.
                None => Ok(ToolOutput::default()),
                Some(why) if result.was_cut_short() => Err(ToolError::lost(why)),
                Some(why) => Err(ToolError::new(why)),
            },
            CommandOutput::Json => self.json_output(&program, result),
        }
    }
}

impl CommandRunner {
    /// Failure of a run, and the setting that would permit what the sandbox has refused. `None` = success.
    fn failure(&self, program: &ProgramSpec, result: &ProgramOutput) -> Option<String> {
        let why = failure_text(program, result)?;
        Some(match sandbox_remedy(&why, program, "this command") {
            Some(remedy) => format!("{why}\n{remedy}"),
            None => why,
        })
    }

    fn json_output(&self, program: &ProgramSpec, result: ProgramOutput) -> Result<ToolOutput, ToolError> {
        let with_partial = |error: ToolError| match result.partial(&self.secrets) {
            Some(partial) => error.with_partial(partial),
            None => error,
        };
        if result.overflowed {
            let why = format!("it wrote more than {JSON_BYTES_MAX} bytes of JSON, and was stopped");
            return Err(with_partial(ToolError::lost(why)));
        }
        if let Some(why) = self.failure(program, &result) {
            let error = if result.was_cut_short() { ToolError::lost(why) } else { ToolError::new(why) };
            return Err(with_partial(error));
        }
        match serde_json::from_slice::<Value>(&result.stdout) {
            Ok(value) => {
                let value = self.secrets.redact_value(value);
                let text = match &value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                Ok(ToolOutput { value: Some(value), ..ToolOutput::text(text) })
            }
            Err(error) => {
                let why = format!("its output is not JSON: {error}");
                Err(with_partial(ToolError::new(why)))
            }
        }
    }
}
