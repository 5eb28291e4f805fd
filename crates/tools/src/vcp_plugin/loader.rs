//! Loads the plugins of folders: each by its manifest. A broken plugin does not affect the others.

use super::async_results::is_plugin_name;
use super::async_tool::{AsyncPluginTool, BACKGROUND_MAX};
use super::command_tool::PluginTool;
use super::manifest::{PluginKind, PluginManifest};
use super::plugin::VcpPlugin;
use super::preprocessor::PreprocessorPlugin;
use super::runtime::{LoadedPlugins, VcpRuntime};
use super::static_plugin::StaticPlugin;
use super::{MANIFEST_FILE, VCP_PLUGINS, VcpPlugins};
use crate::process::SpawnContext;
use crate::settings::ToolSettingError;
use crate::tool::Tool;
use crate::toolbox::SourceFault;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Reads the folders.
pub(super) struct PluginLoader<'a> {
    settings: &'a VcpPlugins,
    spawn_context: &'a SpawnContext,
    runtime: &'a VcpRuntime,
    background: Arc<Semaphore>,
    /// Names of all plugins, which are no aliases of others.
    names: Vec<String>,
    loaded: Loaded,
}

/// Result of loading.
#[derive(Default)]
pub(super) struct Loaded {
    pub(super) tools: Vec<Arc<dyn Tool>>,
    pub(super) plugins: LoadedPlugins,
    pub(super) faults: Vec<SourceFault>,
}

impl<'a> PluginLoader<'a> {
    pub(super) fn new(
        settings: &'a VcpPlugins,
        spawn_context: &'a SpawnContext,
        runtime: &'a VcpRuntime,
    ) -> Self {
        let background = Arc::new(Semaphore::new(BACKGROUND_MAX));
        Self { settings, spawn_context, runtime, background, names: Vec::new(), loaded: Loaded::default() }
    }

    pub(super) fn load(mut self) -> Loaded {
        let mut manifests = Vec::new();
        for folder in &self.settings.folders {
            let folder = self.spawn_context.resolve_path(folder);
            match plugin_folders(&folder) {
                Ok(plugins) => manifests.extend(plugins.into_iter().map(|plugin| {
                    let manifest = PluginManifest::read(&plugin.join(MANIFEST_FILE));
                    (plugin, manifest)
                })),
                Err(error) => self.loaded.faults.push(error.into_fault(VCP_PLUGINS, None)),
            }
        }
        let name =
            |(_, manifest): &(_, Result<PluginManifest, _>)| Some(manifest.as_ref().ok()?.name.clone());
        self.names = manifests.iter().filter_map(name).collect();
        let mut taken = BTreeSet::new();
        for (folder, manifest) in manifests {
            let loaded = manifest.and_then(|manifest| {
                if taken.contains(&manifest.name) {
                    let message =
                        format!("there are two plugins named {}; this one is left out", manifest.name);
                    return Err(ToolSettingError::new(message, "Remove one of them from the folders."));
                }
                self.load_plugin(&manifest, &folder)?;
                taken.insert(manifest.name);
                Ok(())
            });
            if let Err(error) = loaded {
                let message = format!("{}: {}", folder.display(), error.message);
                self.loaded.faults.push(ToolSettingError { message, ..error }.into_fault(VCP_PLUGINS, None));
            }
        }
        self.order_preprocessors();
        self.loaded
    }

    fn load_plugin(&mut self, manifest: &PluginManifest, folder: &Path) -> Result<(), ToolSettingError> {
        match manifest.kind()? {
            PluginKind::Synchronous | PluginKind::Asynchronous => self.load_commands(manifest, folder),
            PluginKind::Static => self.load_static(manifest, folder),
            PluginKind::MessagePreprocessor => self.load_preprocessor(manifest, folder),
        }
    }

    fn load_commands(&mut self, manifest: &PluginManifest, folder: &Path) -> Result<(), ToolSettingError> {
        let is_async = manifest.kind()? == PluginKind::Asynchronous;
        if is_async && !is_plugin_name(&manifest.name) {
            let message = format!("`{}` cannot be the name of an asynchronous plugin", manifest.name);
            return Err(ToolSettingError::new(message, "Letters, digits, `_`, `-` and `.` can."));
        }
        let commands = manifest.commands()?;
        let plugin = Arc::new(VcpPlugin::new(manifest, folder, self.settings, self.spawn_context)?);
        for mut command in commands {
            command.aliases.retain(|alias| !self.names.contains(alias));
            let effect = self.settings.effect(&manifest.name, &command.identifier);
            let spec = plugin.spec(manifest, &command, effect);
            let tool = PluginTool { spec, plugin: plugin.clone(), command: command.command_field };
            self.loaded.tools.push(if is_async {
                let (results, background) = (self.runtime.results.clone(), self.background.clone());
                Arc::new(AsyncPluginTool { command: tool, results, background })
            } else {
                Arc::new(tool)
            });
        }
        if is_async {
            self.loaded.plugins.asynchronous.insert(manifest.name.clone());
        }
        Ok(())
    }

    fn load_static(&mut self, manifest: &PluginManifest, folder: &Path) -> Result<(), ToolSettingError> {
        let schedule = manifest.schedule()?;
        let plugin = VcpPlugin::new(manifest, folder, self.settings, self.spawn_context)?;
        let (name, faults) = (manifest.name.clone(), self.runtime.faults.clone());
        let plugin = StaticPlugin::new(name, manifest.placeholders(), plugin, schedule, faults);
        self.loaded.plugins.statics.push(plugin);
        Ok(())
    }

    fn load_preprocessor(
        &mut self,
        manifest: &PluginManifest,
        folder: &Path,
    ) -> Result<(), ToolSettingError> {
        if !self.settings.preprocessors.contains(&manifest.name) {
            self.loaded.plugins.idle_preprocessors.push(manifest.name.clone());
            return Ok(());
        }
        if manifest.requires_context_bridge {
            let message = format!(
                "{} uses the memory of RAGDiaryPlugin, which is part of the VCP server",
                manifest.name
            );
            return Err(ToolSettingError::new(message, "Remove it from `preprocessors`."));
        }
        let plugin = VcpPlugin::new(manifest, folder, self.settings, self.spawn_context)?;
        let config = manifest.config(&plugin.values);
        let plugin = PreprocessorPlugin { name: manifest.name.clone(), plugin, config };
        self.loaded.plugins.preprocessors.push(plugin);
        Ok(())
    }

    /// The order of the settings. A name that is no preprocessor's is a fault.
    fn order_preprocessors(&mut self) {
        let wanted = &self.settings.preprocessors;
        let position = |name: &str| wanted.iter().position(|wanted| wanted == name);
        self.loaded.plugins.preprocessors.sort_by_key(|plugin| position(&plugin.name));
        for name in wanted.iter().filter(|name| !self.names.contains(name)) {
            let message = format!("preprocessors: there is no plugin `{name}` in the folders");
            let remedy = "Correct `preprocessors` under [vcp_plugins].";
            self.loaded.faults.push(ToolSettingError::new(message, remedy).into_fault(VCP_PLUGINS, None));
        }
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
        let message = format!("{}: no plugin found (no {MANIFEST_FILE})", folder.display());
        return Err(ToolSettingError::new(
            message,
            "Name the folder of a plugin, or one that holds such folders.",
        ));
    }
    Ok(plugins)
}
