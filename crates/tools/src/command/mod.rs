//! Commands as tools: a program that reads JSON and writes text or JSON.
//!
//! Never through a shell: an argument that a model wrote is one item of the argument list, or a JSON value on standard
//! input, and nothing in between looks at it.
//!
//! ```toml
//! [commands."text.count"]
//! description = "Counts lines, words and bytes of a text"
//! argv = ["python3", "count.py"]
//! effect = "pure"
//! output = "json"
//! parameters.type = "object"
//! parameters.properties.text.type = "string"
//! parameters.required = ["text"]
//! ```
// R: L2, L5, L6, R4

mod argv;
mod settings;

pub use argv::ARGUMENT_BYTES_MAX;
pub use settings::{CommandInput, CommandOutput, CommandTool};

use crate::context::ToolContext;
use crate::process::{
    ProgramOutput, ProgramSpec, SandboxMode, SpawnContext, StdoutMode, child_environment, failure_text,
    run_program,
};
use crate::secrets::SecretSet;
use crate::settings::{ToolSettingError, is_secret_name, tool_name};
use crate::template;
use crate::tool::{AgentCallable, Tool, ToolError, ToolSpec};
use crate::toolbox::{SourceReporter, ToolSource};
use argv::ArgvTemplate;
use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use throughline_wire::{CallArguments, ToolName, ToolOutput};

/// The name of this source.
pub const COMMANDS: &str = "commands";
/// Most bytes of standard output that are read as JSON; a command that writes more is stopped. 16 MiB.
pub const JSON_BYTES_MAX: usize = 16 * 1024 * 1024;

/// `[commands.*]` of a configuration as a [`ToolSource`]. What is wrong with one is its own fault.
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
        let (path, rest) = match settings.argv.split_first() {
            Some((program, rest)) => (spawn_context.find_program(program)?, rest),
            None => (spawn_context.find_program("")?, [].as_slice()),
        };
        let argv = ArgvTemplate::parse(rest, &settings.dash_allowed);
        let names: Vec<&str> = argv.names().collect();
        let parameters =
            template::parameters_schema(settings.parameters.as_ref(), &names).map_err(|message| {
                let remedy = "Declare it under `parameters`; `{{` and `}}` are braces themselves.";
                ToolSettingError::new(format!("argv: {message}"), remedy)
            })?;
        let directory = settings.cwd.as_deref().map(|cwd| spawn_context.resolve_path(cwd));
        if let Some(directory) = directory.as_deref().filter(|directory| !directory.is_dir()) {
            let message = format!("cwd: there is no folder {}", directory.display());
            return Err(ToolSettingError::new(message, "Make it, or correct `cwd`."));
        }
        if let (SandboxMode::Required, Err(why)) = (settings.sandbox.mode, sandbox_check) {
            let message = format!("its sandbox is required and cannot be had: {why}");
            return Err(ToolSettingError::new(
                message,
                "`throughline doctor` says more; `sandbox.mode = \"on\"` does without.",
            ));
        }
        let mut program = ProgramSpec::new(path, spawn_context);
        let (environment, secrets) = settings.environment(spawn_context)?;
        program.environment = environment;
        program.folder = directory;
        program.limits = settings.limits;
        program.sandbox = settings
            .sandbox
            .resolve(&spawn_context.folder, spawn_context.home())
            .map_err(|message| ToolSettingError::new(message, "Make it, or take it out of `sandbox`."))?;
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

impl CommandTool {
    /// The whole environment of the child, and which of it is secret.
    fn environment(
        &self,
        spawn_context: &SpawnContext,
    ) -> Result<(BTreeMap<String, String>, SecretSet), ToolSettingError> {
        let mut overrides = BTreeMap::new();
        for (name, text) in &self.env {
            let value = spawn_context.resolve_value(text).map_err(|message| {
                ToolSettingError::new(format!("env.{name}: {message}"), "Set it, or take it out of `env`.")
            })?;
            overrides.insert(name.clone(), value);
        }
        let environment = child_environment(spawn_context, &self.env_allow, &overrides);
        Ok((environment, SecretSet::new(self.secret_values(spawn_context))))
    }

    /// Values that nobody may see: those taken from variables, and what is named like a secret.
    // R: R4
    pub fn secret_values(&self, spawn_context: &SpawnContext) -> Vec<String> {
        let is_secret = |(name, text): &(&String, &String)| text.starts_with('$') || is_secret_name(name);
        let env_secrets =
            self.env.iter().filter(is_secret).filter_map(|(_, text)| spawn_context.resolve_value(text).ok());
        let allowed_secrets = self.env_allow.iter().filter(|name| is_secret_name(name));
        env_secrets
            .chain(allowed_secrets.filter_map(|name| spawn_context.environment.get(name)).cloned())
            .collect()
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
            CommandOutput::Text => match failure_text(&program, &result) {
                // What it wrote is the output.
                None => Ok(ToolOutput::default()),
                Some(why) => Err(ToolError::new(why)),
            },
            CommandOutput::Json => self.json_output(&program, result),
        }
    }
}

impl CommandRunner {
    fn json_output(&self, program: &ProgramSpec, result: ProgramOutput) -> Result<ToolOutput, ToolError> {
        let partial_output = || {
            let text = self.secrets.redact(&String::from_utf8_lossy(&result.stdout)).into_owned();
            ToolOutput::text(text)
        };
        if result.overflowed {
            let why = format!("it wrote more than {JSON_BYTES_MAX} bytes of JSON, and was stopped");
            return Err(ToolError::new(why).with_partial(partial_output()));
        }
        if let Some(why) = failure_text(program, &result) {
            let failed = ToolError::new(why);
            return Err(if result.stdout.is_empty() {
                failed
            } else {
                failed.with_partial(partial_output())
            });
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
                Err(ToolError::new(why).with_partial(partial_output()))
            }
        }
    }
}
