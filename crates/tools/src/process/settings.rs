//! Programs as sections of a configuration describe them.

use super::{ProcessLimits, SandboxSettings, SpawnContext};
use crate::settings::is_secret_name;
#[cfg(feature = "process")]
use crate::{
    process::{ProgramSpec, child_environment},
    secrets::SecretSet,
    settings::ToolSettingError,
};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The part that all sections with a program have: those of commands, voices and ears.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramSettings {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables that the program gets from our environment, besides [those that all programs
    /// get](super::ENVIRONMENT_ALLOWED).
    pub env_allow: Vec<String>,
    /// Variables that it gets with these values; `"$NAME"` takes one of ours.
    pub env: BTreeMap<String, String>,
    /// Working folder. `None` = a new empty folder, removed at the end.
    pub cwd: Option<PathBuf>,
    /// The parts of the machine that are closed to it.
    pub sandbox: SandboxSettings,
    /// The time, memory and processes that it may take.
    pub limits: ProcessLimits,
}

impl ProgramSettings {
    /// The program with its arguments, environment, folder and rules, and the values in them that must be
    /// redacted.
    ///
    /// # Errors
    ///
    /// The program, the folder or a variable does not exist.
    #[cfg(feature = "process")]
    pub fn spec(&self, spawn_context: &SpawnContext) -> Result<(ProgramSpec, SecretSet), ToolSettingError> {
        let (name, arguments) =
            self.argv.split_first().map_or(("", &[][..]), |(name, rest)| (name.as_str(), rest));
        let mut spec = ProgramSpec::new(spawn_context.find_program(name)?, spawn_context);
        spec.arguments = arguments.iter().map(Into::into).collect();
        spec.folder = self.cwd.as_deref().map(|cwd| spawn_context.resolve_path(cwd));
        if let Some(folder) = spec.folder.as_deref().filter(|folder| !folder.is_dir()) {
            let message = format!("cwd: there is no folder {}", folder.display());
            return Err(ToolSettingError::new(message, "Make it, or correct `cwd`."));
        }
        let mut overrides = BTreeMap::new();
        for (name, text) in &self.env {
            let value = spawn_context.resolve_value(text).map_err(|message| {
                ToolSettingError::new(format!("env.{name}: {message}"), "Set it, or remove it from `env`.")
            })?;
            overrides.insert(name.clone(), value);
        }
        spec.environment = child_environment(spawn_context, &self.env_allow, &overrides);
        spec.limits = self.limits;
        spec.sandbox = self
            .sandbox
            .resolve(&spawn_context.folder, spawn_context.home())
            .map_err(|message| ToolSettingError::new(message, "Create it, or remove it from `sandbox`."))?;
        Ok((spec, SecretSet::new(self.secret_values(spawn_context))))
    }

    /// Values that must be redacted: those taken from variables, and those with the name of a secret.
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
