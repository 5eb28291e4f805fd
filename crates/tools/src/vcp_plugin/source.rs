//! The source of plugins: loads the folders, and is the hook of static plugins and preprocessors.

use super::async_results::AsyncResults;
use super::loader::PluginLoader;
use super::runtime::VcpRuntime;
use super::{VCP_PLUGINS, VcpPlugins};
use crate::process::{SandboxMode, SpawnContext};
use crate::source_hook::SourceHook;
use crate::toolbox::{SourceReporter, ToolSource};
use async_trait::async_trait;
use std::sync::Arc;

/// `[vcp_plugins]` of a configuration as a [`ToolSource`]. A broken plugin does not affect the others.
pub struct VcpPluginSource {
    settings: VcpPlugins,
    spawn_context: SpawnContext,
    runtime: Arc<VcpRuntime>,
}

impl VcpPluginSource {
    /// The plugins of these folders.
    pub fn new(settings: VcpPlugins, spawn_context: SpawnContext) -> Self {
        let results = AsyncResults::new(settings.results_folder(&spawn_context));
        Self { settings, spawn_context, runtime: Arc::new(VcpRuntime::new(results)) }
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
            let remedy =
                "Run `throughline doctor` for details; `sandbox.mode = \"on\"` makes the sandbox optional.";
            return news.set_fault(
                format!("the sandbox is required but not available: {why}"),
                Some(remedy.to_owned()),
            );
        }
        let (settings, spawn_context) = (self.settings.clone(), self.spawn_context.clone());
        let runtime = self.runtime.clone();
        let loaded = tokio::task::spawn_blocking(move || {
            PluginLoader::new(&settings, &spawn_context, &runtime).load()
        });
        match loaded.await {
            Ok(loaded) => {
                self.runtime.faults.begin(news.clone(), loaded.faults.clone());
                news.set_state(loaded.tools, loaded.faults);
                self.runtime.begin(loaded.plugins);
            }
            Err(error) => news.set_fault(format!("the folders cannot be read: {error}"), None),
        }
    }

    async fn stop(&self) {
        self.runtime.end();
    }

    fn hook(&self) -> Option<Arc<dyn SourceHook>> {
        Some(self.runtime.clone())
    }
}
