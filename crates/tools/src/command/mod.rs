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
    Exchange, Program, SandboxMode, Stdout, Surroundings, child_environment, exchange, failure,
};
use crate::secrets::Secrets;
use crate::settings::{Wrong, is_secret_name, tool_name};
use crate::template;
use crate::tool::{AgentCallable, Tool, ToolError, ToolSpec};
use crate::toolbox::{Source, SourceNews};
use argv::Argv;
use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use throughline_wire::{Arguments, Output, ToolName};

/// The name of this source.
pub const COMMANDS: &str = "commands";
/// Most bytes of standard output that are read as JSON; a command that writes more is stopped. 16 MiB.
pub const JSON_BYTES_MAX: usize = 16 * 1024 * 1024;

/// `[commands.*]` of a configuration as a [`Source`]. What is wrong with one is its own fault.
pub struct CommandSource {
    settings: BTreeMap<String, CommandTool>,
    surroundings: Surroundings,
}

impl CommandSource {
    /// Commands by the name of their section.
    pub fn new(settings: BTreeMap<String, CommandTool>, surroundings: Surroundings) -> Self {
        Self { settings, surroundings }
    }
}

#[async_trait]
impl Source for CommandSource {
    fn name(&self) -> &str {
        COMMANDS
    }

    async fn start(&self, news: SourceNews) {
        let confinable = confinable(&self.settings, &self.surroundings).await;
        let (mut tools, mut faults) = (Vec::new(), Vec::new());
        for (key, settings) in &self.settings {
            let name = tool_name(key, settings.name.as_deref(), COMMANDS);
            match Command::new(name.clone(), settings, &self.surroundings, &confinable) {
                Ok(command) => tools.push(Arc::new(command) as Arc<dyn Tool>),
                Err(wrong) => faults.push(wrong.of(COMMANDS, Some(name))),
            }
        }
        news.state(tools, faults);
    }

    async fn stop(&self) {}
}

/// Whether what must be confined can be; asked only if something must.
async fn confinable(settings: &BTreeMap<String, CommandTool>, from: &Surroundings) -> Result<(), String> {
    if settings.values().all(|settings| settings.sandbox.mode != SandboxMode::Required) {
        return Ok(());
    }
    from.confinable().await
}

/// One command, ready to run.
struct Command {
    spec: ToolSpec,
    program: Program,
    argv: Argv,
    input: CommandInput,
    output: CommandOutput,
    secrets: Secrets,
}

impl Command {
    fn new(
        name: ToolName,
        settings: &CommandTool,
        from: &Surroundings,
        confinable: &Result<(), String>,
    ) -> Result<Self, Wrong> {
        let (path, rest) = match settings.argv.split_first() {
            Some((program, rest)) => (from.find(program)?, rest),
            None => (from.find("")?, [].as_slice()),
        };
        let argv = Argv::parse(rest, &settings.dash_allowed);
        let names: Vec<&str> = argv.names().collect();
        let parameters = template::schema(settings.parameters.as_ref(), &names).map_err(|message| {
            let remedy = "Declare it under `parameters`; `{{` and `}}` are braces themselves.";
            Wrong::new(format!("argv: {message}"), remedy)
        })?;
        let folder = settings.cwd.as_deref().map(|cwd| from.path(cwd));
        if let Some(folder) = folder.as_deref().filter(|folder| !folder.is_dir()) {
            let message = format!("cwd: there is no folder {}", folder.display());
            return Err(Wrong::new(message, "Make it, or correct `cwd`."));
        }
        if let (SandboxMode::Required, Err(why)) = (settings.sandbox.mode, confinable) {
            let message = format!("its sandbox is required and cannot be had: {why}");
            return Err(Wrong::new(
                message,
                "`throughline doctor` says more; `sandbox.mode = \"on\"` does without.",
            ));
        }
        let mut program = Program::new(path, from);
        let (environment, secrets) = settings.environment(from)?;
        program.environment = environment;
        program.folder = folder;
        program.limits = settings.limits;
        program.sandbox = settings
            .sandbox
            .resolve(&from.folder, from.home())
            .map_err(|message| Wrong::new(message, "Make it, or take it out of `sandbox`."))?;
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
    fn environment(&self, from: &Surroundings) -> Result<(BTreeMap<String, String>, Secrets), Wrong> {
        let mut set = BTreeMap::new();
        for (name, text) in &self.env {
            let value = from.value(text).map_err(|message| {
                Wrong::new(format!("env.{name}: {message}"), "Set it, or take it out of `env`.")
            })?;
            set.insert(name.clone(), value);
        }
        let environment = child_environment(from, &self.env_allow, &set);
        Ok((environment, Secrets::new(self.secret_values(from))))
    }

    /// Values that nobody may see: those taken from variables, and what is named like a secret. R: R4
    pub fn secret_values(&self, from: &Surroundings) -> Vec<String> {
        let is_taken = |(name, text): &(&String, &String)| text.starts_with('$') || is_secret_name(name);
        let set = self.env.iter().filter(is_taken).filter_map(|(_, text)| from.value(text).ok());
        let let_through = self.env_allow.iter().filter(|name| is_secret_name(name));
        set.chain(let_through.filter_map(|name| from.environment.get(name)).cloned()).collect()
    }
}

#[async_trait]
impl Tool for Command {
    fn definition(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, arguments: &Arguments, context: ToolContext) -> Result<Output, ToolError> {
        let mut program = self.program.clone();
        let words = self.argv.fill(&arguments.value).map_err(ToolError::invalid_arguments)?;
        program.arguments.extend(words.into_iter().map(Into::into));
        let input = match self.input {
            CommandInput::Json => {
                let mut text = arguments.value.to_string();
                text.push('\n');
                text
            }
            CommandInput::None => String::new(),
        };
        let stdout = match self.output {
            CommandOutput::Text => Stdout::Shown,
            CommandOutput::Json => Stdout::Kept { bytes_max: JSON_BYTES_MAX },
        };
        let exchange = exchange(&program, input.as_bytes(), stdout, &self.secrets, &context).await?;
        match self.output {
            CommandOutput::Text => match failure(&program, &exchange) {
                // What it wrote is the output.
                None => Ok(Output::default()),
                Some(why) => Err(ToolError::new(why)),
            },
            CommandOutput::Json => self.json(&program, exchange),
        }
    }
}

impl Command {
    fn json(&self, program: &Program, exchange: Exchange) -> Result<Output, ToolError> {
        let wrote = || {
            let text = self.secrets.redact(&String::from_utf8_lossy(&exchange.kept)).into_owned();
            Output::text(text)
        };
        if exchange.flooded {
            let why = format!("it wrote more than {JSON_BYTES_MAX} bytes of JSON, and was stopped");
            return Err(ToolError::new(why).with_partial(wrote()));
        }
        if let Some(why) = failure(program, &exchange) {
            let failed = ToolError::new(why);
            return Err(if exchange.kept.is_empty() { failed } else { failed.with_partial(wrote()) });
        }
        match serde_json::from_slice::<Value>(&exchange.kept) {
            Ok(value) => {
                let value = self.secrets.redact_value(value);
                let text = match &value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                Ok(Output { value: Some(value), ..Output::text(text) })
            }
            Err(error) => {
                let why = format!("its output is not JSON: {error}");
                Err(ToolError::new(why).with_partial(wrote()))
            }
        }
    }
}
