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
    Program, SandboxMode, SandboxRules, Stdout, Surroundings, child_environment, exchange, failure,
};
use crate::secrets::Secrets;
use crate::settings::{Wrong, is_secret_name};
use crate::tool::{AgentCallable, Tool, ToolError, ToolSpec};
use crate::toolbox::{Source, SourceFault, SourceNews};
use async_trait::async_trait;
use manifest::{Command, Manifest};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use throughline_engine::Effect;
use throughline_wire::{Arguments, Output, ToolName, VcpCommand};

/// The name of this source.
pub const VCP_PLUGINS: &str = "vcp_plugins";
/// What a plugin is described by.
pub const MANIFEST: &str = "plugin-manifest.json";
/// Most bytes of an answer; a plugin that writes more is stopped. 32 MiB: pictures come in it.
pub const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;

/// `[vcp_plugins]` of a configuration as a [`Source`]. What is wrong with one plugin is its own fault.
pub struct VcpPluginSource {
    settings: VcpPlugins,
    surroundings: Surroundings,
}

impl VcpPluginSource {
    /// The plugins of these folders.
    pub fn new(settings: VcpPlugins, surroundings: Surroundings) -> Self {
        Self { settings, surroundings }
    }
}

#[async_trait]
impl Source for VcpPluginSource {
    fn name(&self) -> &str {
        VCP_PLUGINS
    }

    async fn start(&self, news: SourceNews) {
        let confinable = match self.settings.sandbox.mode {
            SandboxMode::Required => self.surroundings.confinable().await,
            SandboxMode::On | SandboxMode::Off => Ok(()),
        };
        if let Err(why) = confinable {
            let remedy = "`throughline doctor` says more; `sandbox.mode = \"on\"` does without.";
            return news
                .fault(format!("the sandbox is required and cannot be had: {why}"), Some(remedy.to_owned()));
        }
        let (settings, surroundings) = (self.settings.clone(), self.surroundings.clone());
        let loaded = tokio::task::spawn_blocking(move || Loader::new(&settings, &surroundings).load());
        match loaded.await {
            Ok((tools, faults)) => news.state(tools, faults),
            Err(error) => news.fault(format!("the folders cannot be read: {error}"), None),
        }
    }

    async fn stop(&self) {}
}

/// Reads the folders.
struct Loader<'a> {
    settings: &'a VcpPlugins,
    from: &'a Surroundings,
    tools: Vec<Arc<dyn Tool>>,
    faults: Vec<SourceFault>,
    names: BTreeSet<String>,
}

impl<'a> Loader<'a> {
    fn new(settings: &'a VcpPlugins, from: &'a Surroundings) -> Self {
        Self { settings, from, tools: Vec::new(), faults: Vec::new(), names: BTreeSet::new() }
    }

    fn load(mut self) -> (Vec<Arc<dyn Tool>>, Vec<SourceFault>) {
        for folder in &self.settings.folders {
            let folder = self.from.path(folder);
            match plugin_folders(&folder) {
                Ok(plugins) => plugins.iter().for_each(|plugin| self.plugin(plugin)),
                Err(wrong) => self.faults.push(wrong.of(VCP_PLUGINS, None)),
            }
        }
        (self.tools, self.faults)
    }

    fn plugin(&mut self, folder: &Path) {
        match self.tools_of(folder) {
            Ok(tools) => self.tools.extend(tools),
            Err(wrong) => {
                let message = format!("{}: {}", folder.display(), wrong.message);
                self.faults.push(Wrong { message, ..wrong }.of(VCP_PLUGINS, None));
            }
        }
    }

    fn tools_of(&mut self, folder: &Path) -> Result<Vec<Arc<dyn Tool>>, Wrong> {
        let manifest = Manifest::read(&folder.join(MANIFEST))?;
        manifest.check_kind()?;
        let commands = manifest.commands()?;
        let plugin = Arc::new(Plugin::new(&manifest, folder, self.settings, self.from)?);
        if !self.names.insert(manifest.name.clone()) {
            let message = format!("there are two plugins named {}; this one is left out", manifest.name);
            return Err(Wrong::new(message, "Take one of them out of the folders."));
        }
        let tools = commands.into_iter().map(|command| {
            let effect = self.settings.effect(&manifest.name, &command.identifier);
            let spec = plugin.spec(&manifest, &command, effect);
            let tool = PluginTool { spec, plugin: plugin.clone(), command: command.sent };
            Arc::new(tool) as Arc<dyn Tool>
        });
        Ok(tools.collect())
    }
}

/// A folder that is a plugin, or the plugins in it.
fn plugin_folders(folder: &Path) -> Result<Vec<PathBuf>, Wrong> {
    if folder.join(MANIFEST).is_file() {
        return Ok(vec![folder.to_owned()]);
    }
    let entries = std::fs::read_dir(folder).map_err(|error| {
        Wrong::new(format!("{}: {error}", folder.display()), "Correct `folders` under [vcp_plugins].")
    })?;
    let mut plugins: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join(MANIFEST).is_file())
        .collect();
    plugins.sort();
    if plugins.is_empty() {
        let message =
            format!("{}: there is no plugin in it, which would have a {MANIFEST}", folder.display());
        return Err(Wrong::new(message, "Name the folder of a plugin, or one that holds such folders."));
    }
    Ok(plugins)
}

/// One plugin, ready to run.
struct Plugin {
    program: Program,
    /// Values that descriptions may name.
    values: BTreeMap<String, String>,
    secrets: Secrets,
    timeout: Duration,
}

impl Plugin {
    fn new(
        manifest: &Manifest,
        folder: &Path,
        settings: &VcpPlugins,
        from: &Surroundings,
    ) -> Result<Self, Wrong> {
        let words = manifest.words()?;
        let (name, rest) =
            words.split_first().ok_or_else(|| Wrong::new("its entry point names no program", ""))?;
        // Relative to the plugin, as its own shell would find it. Debian has Python 3 under its full name only.
        let here = Surroundings { folder: folder.to_owned(), ..from.clone() };
        let path = here.find(name).or_else(|error| match name.as_str() {
            "python" => here.find("python3").map_err(|_| error),
            _ => Err(error),
        })?;
        let values = settings.values(folder, from)?;
        let set = manifest.environment(&values, folder);
        let secrets = values.iter().filter(|(name, _)| is_secret_name(name)).map(|(_, value)| value);
        let secrets = Secrets::new(secrets);
        let mut program = Program::new(path, from);
        program.arguments = rest.iter().map(Into::into).collect();
        program.environment = child_environment(from, &[], &set);
        program.folder = Some(folder.to_owned());
        program.limits = settings.limits;
        let rules = settings.sandbox.resolve(&from.folder, from.home()).map_err(|why| Wrong::new(why, ""))?;
        let mut write = rules.write;
        write.push(folder.to_owned());
        program.sandbox = SandboxRules { write, ..rules };
        Ok(Self { program, values, secrets, timeout: manifest.timeout() })
    }

    fn spec(&self, manifest: &Manifest, command: &Command, effect: Effect) -> ToolSpec {
        let name = ToolName::from(format!("{}.{}", manifest.name, command.identifier).as_str());
        let mut spec = ToolSpec::new(name, self.filled(&command.description(manifest)));
        spec.title = match &command.sent {
            Some(_) => format!("{} · {}", manifest.title(), command.identifier),
            None => manifest.title().to_owned(),
        };
        spec.parameters = command.parameters();
        spec.effect = effect;
        spec.agent_callable = AgentCallable::Yes;
        spec.timeout = self.timeout;
        VCP_PLUGINS.clone_into(&mut spec.source);
        spec.vcp_command =
            Some(VcpCommand { tool_name: manifest.name.clone(), command: command.sent.clone() });
        spec
    }

    /// `{{Name}}` is a value of the settings, as in VCP's prompts. A name without a value stays, and a secret does.
    fn filled(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            filled.push_str(before);
            let found = after.split_once("}}").and_then(|(name, behind)| {
                let value = self.values.get(name).filter(|_| !is_secret_name(name))?;
                Some((value, behind))
            });
            match found {
                Some((value, behind)) => {
                    filled.push_str(value);
                    rest = behind;
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
    plugin: Arc<Plugin>,
    /// What the field `command` says, for plugins that read it.
    command: Option<String>,
}

#[async_trait]
impl Tool for PluginTool {
    fn definition(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, arguments: &Arguments, context: ToolContext) -> Result<Output, ToolError> {
        let Plugin { program, secrets, .. } = self.plugin.as_ref();
        let input = self.input(&arguments.value);
        let stdout = Stdout::Kept { bytes_max: ANSWER_BYTES_MAX };
        let said = exchange(program, input.as_bytes(), stdout, secrets, &context).await?;
        if said.flooded {
            let why = format!("it answered with more than {ANSWER_BYTES_MAX} bytes, and was stopped");
            return Err(ToolError::new(why));
        }
        // As VCP has it: what the answer says counts, not the exit code.
        match reply::read(&said.kept) {
            Ok(Ok(result)) => Ok(reply::output(secrets.redact_value(result))),
            Ok(Err(error)) => Err(ToolError::new(secrets.redact(&error).into_owned())),
            Err(no_answer) => {
                let why = failure(program, &said).unwrap_or_else(|| match said.complaints.as_str() {
                    "" => no_answer.clone(),
                    complaints => format!("{no_answer}; it complained: {complaints}"),
                });
                let partial = String::from_utf8_lossy(&said.kept);
                let partial = Output::text(secrets.redact(&partial).into_owned());
                let failed = ToolError::new(why);
                Err(if partial.text.is_empty() { failed } else { failed.with_partial(partial) })
            }
        }
    }
}

impl PluginTool {
    /// What the plugin reads: texts by name, `command` first. Nothing at all if there is nothing to say, as in VCP.
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
