//! Settings of `[vcp_plugins]`.

use super::dotenv;
use crate::process::{ProcessLimits, SandboxSettings, SpawnContext};
use crate::settings::{ToolSettingError, is_secret_name};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use throughline_engine::Effect;

/// Settings of `[vcp_plugins]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VcpPlugins {
    /// Folders of plugins, or folders that hold such folders (VCP's `VcpPlugin`).
    pub folders: Vec<PathBuf>,
    /// Effect of a plugin (`SciCalculator`) or of one of its commands (`FileOperator.ReadFile`). Default: `external`.
    #[serde(deserialize_with = "crate::settings::effects")]
    pub effects: BTreeMap<String, Effect>,
    /// Variables of ours that manifests may ask for in `configSchema`. Default: none.
    pub env_allow: Vec<String>,
    /// A file with values for all plugins (VCP's own `config.env`). A plugin's `config.env` wins.
    pub env_file: Option<PathBuf>,
    /// Plugins of the kind `messagePreprocessor` that change the messages of turns, in this order. Default: none.
    pub preprocessors: Vec<String>,
    /// Folder for results that asynchronous plugins send after their call has ended. Default:
    /// `VCPAsyncResults` next to the configuration.
    pub results: Option<PathBuf>,
    /// Files and network that plugins may reach. Their own folder is always writable.
    pub sandbox: SandboxSettings,
    /// Resources that plugins may use.
    pub limits: ProcessLimits,
}

#[cfg(feature = "process")]
/// Default of `results`.
const RESULTS_FOLDER: &str = "VCPAsyncResults";

impl VcpPlugins {
    #[cfg(feature = "process")]
    pub(super) fn results_folder(&self, spawn_context: &SpawnContext) -> PathBuf {
        spawn_context.resolve_path(self.results.as_deref().unwrap_or(Path::new(RESULTS_FOLDER)))
    }

    #[cfg(feature = "process")]
    pub(super) fn effect(&self, plugin: &str, command: &str) -> Effect {
        let exact = self.effects.get(&format!("{plugin}.{command}"));
        exact.or_else(|| self.effects.get(plugin)).copied().unwrap_or_default()
    }

    /// Values for all plugins that must be redacted: those that are passed on or come from `env_file`, and
    /// have the name of a secret.
    pub fn secret_values(&self, spawn_context: &SpawnContext) -> Vec<String> {
        let allowed = self.env_allow.iter().filter_map(|name| spawn_context.environment.get_key_value(name));
        let mut values: BTreeMap<String, String> =
            allowed.map(|(name, value)| (name.clone(), value.clone())).collect();
        // A file that cannot be read is reported where the plugins are loaded.
        values.extend(
            self.env_file
                .iter()
                .filter_map(|file| read_env_file(&spawn_context.resolve_path(file)).ok())
                .flatten(),
        );
        values.into_iter().filter(|(name, _)| is_secret_name(name)).map(|(_, value)| value).collect()
    }

    #[cfg(feature = "process")]
    /// All values available to a plugin: its own settings, over those for all, over our environment.
    pub(super) fn values(
        &self,
        plugin: &Path,
        spawn_context: &SpawnContext,
    ) -> Result<BTreeMap<String, String>, ToolSettingError> {
        let allowed = self.env_allow.iter().filter_map(|name| spawn_context.environment.get_key_value(name));
        let mut values: BTreeMap<String, String> =
            allowed.map(|(name, value)| (name.clone(), value.clone())).collect();
        if let Some(file) = &self.env_file {
            values.extend(read_env_file(&spawn_context.resolve_path(file))?);
        }
        let own = plugin.join("config.env");
        if own.exists() {
            values.extend(read_env_file(&own)?);
        }
        Ok(values)
    }
}

fn read_env_file(path: &Path) -> Result<BTreeMap<String, String>, ToolSettingError> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        ToolSettingError::new(
            format!("{} cannot be read: {error}", path.display()),
            "The file must consist of NAME=value lines.",
        )
    })?;
    Ok(dotenv::parse(&text))
}
