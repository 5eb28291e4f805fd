//! Plugins of VCP, used in their own folders.
//!
//! A plugin is a folder with a `plugin-manifest.json`. Each invocation command of a synchronous or
//! asynchronous plugin becomes a tool `PluginName.commandIdentifier` that a VCP block calls as in VCP
//! (`tool_name`, `command`). Static plugins fill placeholders, message preprocessors change messages: both
//! are the source's [`SourceHook`]. Nothing in the folder has to change; the differences are outside of it:
//! no shell, no environment except the variables in the manifest, a sandbox, and no process left running.
//! Facts about the format: the manifests and the loader of lioensky/VCPToolBox, read in November 2026.

#[cfg(feature = "process")]
mod async_results;
#[cfg(feature = "process")]
mod async_tool;
#[cfg(feature = "process")]
mod command_tool;
#[cfg(feature = "process")]
mod cron;
mod dotenv;
#[cfg(feature = "process")]
mod loader;
#[cfg(feature = "process")]
mod manifest;
#[cfg(feature = "process")]
mod manual;
#[cfg(feature = "process")]
mod plugin;
#[cfg(feature = "process")]
mod preprocessor;
#[cfg(feature = "process")]
mod reply;
#[cfg(feature = "process")]
mod runtime;
mod settings;
#[cfg(feature = "process")]
mod source;
#[cfg(feature = "process")]
mod static_plugin;

#[cfg(feature = "process")]
pub use async_results::{PLACEHOLDERS_FILLED_MAX, RESULT_BYTES_MAX, RESULT_SHOWN_BYTES_MAX, RESULTS_MAX};
#[cfg(feature = "process")]
pub use async_tool::BACKGROUND_MAX;
pub use settings::VcpPlugins;
#[cfg(feature = "process")]
pub use source::VcpPluginSource;
#[cfg(feature = "process")]
pub use static_plugin::{FIRST_VALUE_WAIT_MAX, PLACEHOLDER_BYTES_MAX};

/// The name of this source.
pub const VCP_PLUGINS: &str = "vcp_plugins";
/// File that describes a plugin.
pub const MANIFEST_FILE: &str = "plugin-manifest.json";
/// Most bytes of an answer; a plugin that writes more is stopped. 32 MiB: pictures come in it.
pub const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;
