//! Settings of `[commands.NAME]`.

use crate::process::{ProcessLimits, ProgramSettings, SandboxSettings, SpawnContext};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use throughline_engine::Effect;

/// `[commands.NAME]`. A name with a dot is the tool's, another becomes `commands.NAME`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandTool {
    /// Another name for the tool than that of the section.
    #[serde(default)]
    pub name: Option<String>,
    /// For people, on the card. Default: the name.
    #[serde(default)]
    pub title: Option<String>,
    /// Purpose of the tool and when to use it, for the model.
    pub description: String,
    /// The program and its arguments. `{name}` is the value of an argument, always within one item.
    pub argv: Vec<String>,
    /// JSON Schema of the arguments, as a table or as JSON text. Default: the names in `argv`, as texts.
    #[serde(default)]
    pub parameters: Option<Value>,
    /// Effect: `pure`, `read`, `cosmetic`, `idempotent`, `write` or `external` (default).
    #[serde(default, deserialize_with = "crate::settings::effect")]
    pub effect: Effect,
    /// Time limit of a call, in milliseconds. Default 30,000.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Variables that the command gets from our environment, besides [those that all programs
    /// get](crate::process::ENVIRONMENT_ALLOWED).
    #[serde(default)]
    pub env_allow: Vec<String>,
    /// Variables that the command gets with these values. `"$NAME"` takes one of ours, which is then a
    /// secret: it is removed from the command's output.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Working folder. Default: a new empty folder, removed at the end.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// Content of standard input.
    #[serde(default)]
    pub input: CommandInput,
    /// Meaning of standard output.
    #[serde(default)]
    pub output: CommandOutput,
    /// Arguments whose values may begin with `-` where an item of `argv` begins with them.
    #[serde(default)]
    pub dash_allowed: Vec<String>,
    /// Files and network that it may reach.
    #[serde(default)]
    pub sandbox: SandboxSettings,
    /// Resources that it may use.
    #[serde(default)]
    pub limits: ProcessLimits,
}

/// Input of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommandInput {
    /// The arguments as one JSON object on one line.
    #[default]
    Json,
    /// Nothing.
    None,
}

/// Output of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CommandOutput {
    /// Text, shown as it comes.
    #[default]
    Text,
    /// One JSON value.
    Json,
}

impl CommandTool {
    /// The program that it runs. Its arguments are made for each call, from the rest of `argv`.
    pub(super) fn program(&self) -> ProgramSettings {
        ProgramSettings {
            argv: self.argv.first().cloned().into_iter().collect(),
            env_allow: self.env_allow.clone(),
            env: self.env.clone(),
            cwd: self.cwd.clone(),
            sandbox: self.sandbox.clone(),
            limits: self.limits,
        }
    }

    /// Values that must be redacted.
    pub fn secret_values(&self, spawn_context: &SpawnContext) -> Vec<String> {
        self.program().secret_values(spawn_context)
    }
}
