//! Plugins of VCP, in the folders where they are: those that run once per call and speak JSON over stdio.
//!
//! A plugin is a folder with a `plugin-manifest.json`. Each of its invocation commands becomes a tool
//! `PluginName.commandIdentifier` that a VCP block calls as ever (`tool_name`, `command`). Nothing in the folder has to
//! change; what is different is around it: no shell, no environment but what the manifest names, a sandbox, and nothing
//! left running. Facts about the format: the manifests and the loader of lioensky/VCPToolBox, read in November 2026.
// R: L2, L5, R4

mod dotenv;
mod manifest;
mod reply;
mod settings;

pub use settings::VcpPlugins;

use crate::context::ToolContext;
use crate::process::{
    ProgramSpec, SandboxMode, SandboxRules, SpawnContext, StdoutMode, child_environment, failure_text,
    run_program,
};
use crate::secrets::SecretSet;
use crate::settings::{ToolSettingError, is_secret_name};
use crate::tool::{AgentCallable, Tool, ToolError, ToolSpec};
use crate::toolbox::{SourceFault, SourceReporter, ToolSource};
use async_trait::async_trait;
use manifest::{PluginCommand, PluginManifest};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use throughline_engine::Effect;
use throughline_wire::{CallArguments, ToolName, ToolOutput, VcpCommand};

/// The name of this source.
pub const VCP_PLUGINS: &str = "vcp_plugins";
/// File that describes a plugin.
pub const MANIFEST_FILE: &str = "plugin-manifest.json";
/// Most bytes of an answer; a plugin that writes more is stopped. 32 MiB: pictures come in it.
pub const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;

/// `[vcp_plugins]` of a configuration as a [`ToolSource`]. What is wrong with one plugin is its own fault.
pub struct VcpPluginSource {
    settings: VcpPlugins,
    spawn_context: SpawnContext,
}

impl VcpPluginSource {
    /// The plugins of these folders.
    pub fn new(settings: VcpPlugins, spawn_context: SpawnContext) -> Self {
        Self { settings, spawn_context }
    }
}

#[async_trait]
impl ToolSource for VcpPluginSource {
    fn name(&self) -> &str {
        VCP_PLUGINS
    }

    async fn start(&self, news: SourceReporter) {
        let sandbox_check = match self.settings.sandbox.mode {
            SandboxMode::Required => self.spawn_context.check_sandbox().await,
            SandboxMode::On | SandboxMode::Off => Ok(()),
        };
        if let Err(why) = sandbox_check {
            let remedy = "`throughline doctor` says more; `sandbox.mode = \"on\"` does without.";
            return news.set_fault(
                format!("the sandbox is required and cannot be had: {why}"),
                Some(remedy.to_owned()),
            );
        }
        let (settings, spawn_context) = (self.settings.clone(), self.spawn_context.clone());
        let loaded = tokio::task::spawn_blocking(move || PluginLoader::new(&settings, &spawn_context).load());
        match loaded.await {
            Ok((tools, faults)) => news.set_state(tools, faults),
            Err(error) => news.set_fault(format!("the folders cannot be read: {error}"), None),
        }
    }

    async fn stop(&self) {}
}

/// Reads the folders.
struct PluginLoader<'a> {
    settings: &'a VcpPlugins,
    spawn_context: &'a SpawnContext,
    tools: Vec<Arc<dyn Tool>>,
    faults: Vec<SourceFault>,
    names: BTreeSet<String>,
}

impl<'a> PluginLoader<'a> {
    fn new(settings: &'a VcpPlugins, spawn_context: &'a SpawnContext) -> Self {
        Self { settings, spawn_context, tools: Vec::new(), faults: Vec::new(), names: BTreeSet::new() }
    }

    fn load(mut self) -> (Vec<Arc<dyn Tool>>, Vec<SourceFault>) {
        for folder in &self.settings.folders {
            let folder = self.spawn_context.resolve_path(folder);
            match plugin_folders(&folder) {
                Ok(plugins) => plugins.iter().for_each(|plugin| self.load_plugin(plugin)),
                Err(error) => self.faults.push(error.into_fault(VCP_PLUGINS, None)),
            }
        }
        (self.tools, self.faults)
    }

    fn load_plugin(&mut self, folder: &Path) {
        match self.plugin_tools(folder) {
            Ok(tools) => self.tools.extend(tools),
            Err(error) => {
                let message = format!("{}: {}", folder.display(), error.message);
                self.faults.push(ToolSettingError { message, ..error }.into_fault(VCP_PLUGINS, None));
            }
        }
    }

    fn plugin_tools(&mut self, folder: &Path) -> Result<Vec<Arc<dyn Tool>>, ToolSettingError> {
        let manifest = PluginManifest::read(&folder.join(MANIFEST_FILE))?;
        manifest.check_kind()?;
        let commands = manifest.commands()?;
        let plugin = Arc::new(VcpPlugin::new(&manifest, folder, self.settings, self.spawn_context)?);
        if !self.names.insert(manifest.name.clone()) {
            let message = format!("there are two plugins named {}; this one is left out", manifest.name);
            return Err(ToolSettingError::new(message, "Take one of them out of the folders."));
        }
        let tools = commands.into_iter().map(|command| {
            let effect = self.settings.effect(&manifest.name, &command.identifier);
            let spec = plugin.spec(&manifest, &command, effect);
            let tool = PluginTool { spec, plugin: plugin.clone(), command: command.command_field };
            Arc::new(tool) as Arc<dyn Tool>
        });
        Ok(tools.collect())
    }
}

/// A folder that is a plugin, or the plugins in it.
fn plugin_folders(folder: &Path) -> Result<Vec<PathBuf>, ToolSettingError> {
    if folder.join(MANIFEST_FILE).is_file() {
        return Ok(vec![folder.to_owned()]);
    }
    let entries = std::fs::read_dir(folder).map_err(|error| {
        ToolSettingError::new(
            format!("{}: {error}", folder.display()),
            "Correct `folders` under [vcp_plugins].",
        )
    })?;
    let mut plugins: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join(MANIFEST_FILE).is_file())
        .collect();
    plugins.sort();
    if plugins.is_empty() {
        let message =
            format!("{}: there is no plugin in it, which would have a {MANIFEST_FILE}", folder.display());
        return Err(ToolSettingError::new(
            message,
            "Name the folder of a plugin, or one that holds such folders.",
        ));
    }
    Ok(plugins)
}

/// One plugin, ready to run.
struct VcpPlugin {
    program: ProgramSpec,
    /// Values that descriptions may name.
    values: BTreeMap<String, String>,
    secrets: SecretSet,
    timeout: Duration,
}

impl VcpPlugin {
    fn new(
        manifest: &PluginManifest,
        folder: &Path,
        settings: &VcpPlugins,
        spawn_context: &SpawnContext,
    ) -> Result<Self, ToolSettingError> {
        let words = manifest.command_words()?;
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

    fn spec(&self, manifest: &PluginManifest, command: &PluginCommand, effect: Effect) -> ToolSpec {
        let name = ToolName::from(format!("{}.{}", manifest.name, command.identifier).as_str());
        let mut spec = ToolSpec::new(name, self.expand_values(&command.description(manifest)));
        spec.title = match &command.command_field {
            Some(_) => format!("{} · {}", manifest.title(), command.identifier),
            None => manifest.title().to_owned(),
        };
        spec.parameters = command.parameters();
        spec.effect = effect;
        spec.agent_callable = AgentCallable::Yes;
        spec.timeout = self.timeout;
        VCP_PLUGINS.clone_into(&mut spec.source);
        spec.vcp_command =
            Some(VcpCommand { tool_name: manifest.name.clone(), command: command.command_field.clone() });
        spec
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

/// One invocation command.
struct PluginTool {
    spec: ToolSpec,
    plugin: Arc<VcpPlugin>,
    /// Value of the field `command`, for plugins that read it.
    command: Option<String>,
}

#[async_trait]
impl Tool for PluginTool {
    fn definition(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, arguments: &CallArguments, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let VcpPlugin { program, secrets, .. } = self.plugin.as_ref();
        let input = self.input(&arguments.value);
        let stdout = StdoutMode::Captured { bytes_max: ANSWER_BYTES_MAX };
        let result = run_program(program, input.as_bytes(), stdout, secrets, &context).await?;
        if result.overflowed {
            let why = format!("it answered with more than {ANSWER_BYTES_MAX} bytes, and was stopped");
            return Err(ToolError::new(why));
        }
        // As VCP has it: what the answer says counts, not the exit code.
        match reply::parse_reply(&result.stdout) {
            Ok(Ok(result)) => Ok(reply::output_from_result(secrets.redact_value(result))),
            Ok(Err(error)) => Err(ToolError::new(secrets.redact(&error).into_owned())),
            Err(no_answer) => {
                let why = failure_text(program, &result).unwrap_or_else(|| match result.stderr.as_str() {
                    "" => no_answer.clone(),
                    complaints => format!("{no_answer}; stderr: {complaints}"),
                });
                let partial = String::from_utf8_lossy(&result.stdout);
                let partial = ToolOutput::text(secrets.redact(&partial).into_owned());
                let failed = ToolError::new(why);
                Err(if partial.text.is_empty() { failed } else { failed.with_partial(partial) })
            }
        }
    }
}

impl PluginTool {
    /// Input of the plugin: texts by name, `command` first. Nothing at all if there is no content, as in VCP.
    fn input(&self, arguments: &Value) -> String {
        let mut fields = Map::new();
        if let Some(command) = &self.command {
            fields.insert("command".to_owned(), Value::from(command.as_str()));
        }
        for (name, value) in arguments.as_object().into_iter().flatten() {
            if name == "command" && self.command.is_some() {
                continue;
            }
            // A block of text has texts only, and that is what plugins are written for.
            let text = match value {
                Value::Null => continue,
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            fields.insert(name.clone(), Value::String(text));
        }
        if fields.is_empty() { String::new() } else { Value::Object(fields).to_string() }
    }
}
