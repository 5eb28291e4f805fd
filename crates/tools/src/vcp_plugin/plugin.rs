//! One plugin's program with its environment, folder, sandbox and secrets.

use super::manifest::PluginManifest;
use super::manual::PluginCommand;
use super::preprocessor::MODULE_RUNNER;
use super::{VCP_PLUGINS, VcpPlugins};
use crate::process::{ProgramSpec, SandboxRules, SpawnContext, child_environment, sandbox_remedy};
use crate::secrets::SecretSet;
use crate::settings::{ToolSettingError, is_secret_name};
use crate::tool::{AgentCallable, ToolSpec};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use throughline_engine::Effect;
use throughline_wire::{ToolName, VcpCommand};

/// Full path of a module.
fn script_path(folder: &Path, script: &str) -> Result<String, ToolSettingError> {
    let path = folder.join(script);
    if path.is_file() {
        return Ok(path.display().to_string());
    }
    Err(ToolSettingError::new(format!("there is no module {}", path.display()), "entryPoint.script"))
}

/// One plugin, ready to run.
pub(super) struct VcpPlugin {
    pub(super) program: ProgramSpec,
    /// Values that descriptions may name.
    pub(super) values: BTreeMap<String, String>,
    pub(super) secrets: SecretSet,
    pub(super) timeout: Duration,
}

impl VcpPlugin {
    pub(super) fn new(
        manifest: &PluginManifest,
        folder: &Path,
        settings: &VcpPlugins,
        spawn_context: &SpawnContext,
    ) -> Result<Self, ToolSettingError> {
        let words = match manifest.script().filter(|_| manifest.is_direct()) {
            // A module that VCP would load into its own process.
            Some(script) => vec![
                "node".to_owned(),
                "-e".to_owned(),
                MODULE_RUNNER.to_owned(),
                script_path(folder, script)?,
            ],
            None => manifest.command_words()?,
        };
        let (name, rest) = words
            .split_first()
            .ok_or_else(|| ToolSettingError::new("its entry point names no program", ""))?;
        // Relative to the plugin, as its own shell would find it. Debian has Python 3 under its full name only.
        let here = SpawnContext { folder: folder.to_owned(), ..spawn_context.clone() };
        let path = here.find_program(name).or_else(|error| match name.as_str() {
            "python" => here.find_program("python3").map_err(|_| error),
            _ => Err(error),
        })?;
        let values = settings.values(folder, spawn_context)?;
        let overrides = manifest.environment(&values, folder);
        let secrets = values.iter().filter(|(name, _)| is_secret_name(name)).map(|(_, value)| value);
        let secrets = SecretSet::new(secrets);
        let mut program = ProgramSpec::new(path, spawn_context);
        program.arguments = rest.iter().map(Into::into).collect();
        program.environment = child_environment(spawn_context, &[], &overrides);
        program.folder = Some(folder.to_owned());
        program.limits = settings.limits;
        let rules = settings
            .sandbox
            .resolve(&spawn_context.folder, spawn_context.home())
            .map_err(|why| ToolSettingError::new(why, ""))?;
        let mut write = rules.write;
        write.push(folder.to_owned());
        program.sandbox = SandboxRules { write, ..rules };
        Ok(Self { program, values, secrets, timeout: manifest.timeout() })
    }

    pub(super) fn spec(
        &self,
        manifest: &PluginManifest,
        command: &PluginCommand,
        effect: Effect,
    ) -> ToolSpec {
        let name = ToolName::from(format!("{}.{}", manifest.name, command.identifier).as_str());
        let mut spec = ToolSpec::new(name, self.expand_values(&command.description(manifest)));
        spec.title = match &command.command_field {
            Some(_) => format!("{} · {}", manifest.title(), command.identifier),
            None => manifest.title().to_owned(),
        };
        spec.parameters = command.parameters();
        // Plugins get texts. A model that reads of a number sends a number, and it becomes a text on the way.
        spec.accepted = Some(json!({"type": "object"}));
        spec.effect = effect;
        spec.agent_callable = AgentCallable::Yes;
        spec.timeout = self.timeout;
        VCP_PLUGINS.clone_into(&mut spec.source);
        spec.vcp_command = Some(VcpCommand {
            aliases: command.aliases.clone(),
            ..VcpCommand::new(manifest.name.as_str(), command.command_field.as_deref())
        });
        spec
    }

    /// A failure, followed by the setting that would permit what the sandbox has refused.
    pub(super) fn explained(&self, why: String) -> String {
        match sandbox_remedy(&why, &self.program, "[vcp_plugins]") {
            Some(remedy) => format!("{why}\n{remedy}"),
            None => why,
        }
    }

    /// `{{Name}}` is a value of the settings, as in VCP's prompts. A name without a value stays, and a secret does.
    fn expand_values(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            filled.push_str(before);
            let expanded = after.split_once("}}").and_then(|(name, remainder)| {
                let value = self.values.get(name).filter(|_| !is_secret_name(name))?;
                Some((value, remainder))
            });
            match expanded {
                Some((value, remainder)) => {
                    filled.push_str(value);
                    rest = remainder;
                }
                None => {
                    filled.push_str("{{");
                    rest = after;
                }
            }
        }
        filled.push_str(rest);
        filled
    }
}
