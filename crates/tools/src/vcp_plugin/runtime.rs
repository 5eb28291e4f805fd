//! Parts of a source's plugins other than tools: static plugins, message preprocessors, and late results.

use super::VCP_PLUGINS;
use super::async_results::AsyncResults;
use super::preprocessor::PreprocessorPlugin;
use super::static_plugin::StaticPlugin;
use crate::source_hook::{CallbackError, SourceAddition, SourceCallback, SourceHook};
use crate::toolbox::{SourceFault, SourceReporter};
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use throughline_wire::ModelRequest;

/// The loaded plugins with their results and faults.
pub(super) struct VcpRuntime {
    loaded: RwLock<Arc<LoadedPlugins>>,
    pub(super) results: Arc<AsyncResults>,
    pub(super) faults: Arc<FaultBoard>,
}

/// The plugins that are no tools.
#[derive(Default)]
pub(super) struct LoadedPlugins {
    pub(super) statics: Vec<StaticPlugin>,
    /// In the order in which they run.
    pub(super) preprocessors: Vec<PreprocessorPlugin>,
    /// Preprocessors that the settings do not name.
    pub(super) idle_preprocessors: Vec<String>,
    /// Names of asynchronous plugins.
    pub(super) asynchronous: BTreeSet<String>,
}

impl VcpRuntime {
    pub(super) fn new(results: AsyncResults) -> Self {
        Self { loaded: RwLock::default(), results: Arc::new(results), faults: Arc::default() }
    }

    /// Takes over the loaded plugins. Static plugins without placeholders start here: nothing else would ever
    /// start them.
    pub(super) fn begin(&self, loaded: LoadedPlugins) {
        for plugin in loaded.statics.iter().filter(|plugin| plugin.placeholders.is_empty()) {
            plugin.start();
        }
        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(loaded);
    }

    /// Ends the background work.
    pub(super) fn end(&self) {
        self.loaded().statics.iter().for_each(StaticPlugin::stop);
    }

    fn loaded(&self) -> Arc<LoadedPlugins> {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl SourceHook for VcpRuntime {
    fn additions(&self) -> Vec<SourceAddition> {
        let loaded = self.loaded();
        let addition = |name: &str, kind, summary| SourceAddition {
            source: VCP_PLUGINS.to_owned(),
            name: name.to_owned(),
            kind,
            summary,
        };
        let statics = loaded.statics.iter().map(|plugin| {
            let names: Vec<String> =
                plugin.placeholders.iter().map(|name| format!("{{{{{name}}}}}")).collect();
            let summary = match names.as_slice() {
                [] => "runs when it is loaded".to_owned(),
                names => format!("fills {} in prompts", names.join(", ")),
            };
            addition(&plugin.name, "static", summary)
        });
        let preprocessors = loaded.preprocessors.iter().map(|plugin| {
            addition(&plugin.name, "messagePreprocessor", "changes the messages of every turn".to_owned())
        });
        let idle = loaded.idle_preprocessors.iter().map(|name| {
            addition(
                name,
                "messagePreprocessor",
                "is off: name it in `preprocessors` of [vcp_plugins]".to_owned(),
            )
        });
        statics.chain(preprocessors).chain(idle).collect()
    }

    fn has_preprocessors(&self) -> bool {
        !self.loaded().preprocessors.is_empty()
    }

    async fn preprocess(&self, request: &mut ModelRequest) {
        for plugin in &self.loaded().preprocessors {
            match plugin.run(request).await {
                Ok(()) => self.faults.clear(&plugin.name),
                // As in VCP: the messages stay unchanged.
                Err(why) => {
                    let message = format!(
                        "the message preprocessor {} failed, and messages were left as they are: {why}",
                        plugin.name
                    );
                    self.faults.set(&plugin.name, message);
                }
            }
        }
    }

    async fn fill_placeholders(&self, request: &mut ModelRequest) {
        let loaded = self.loaded();
        if let Some(instructions) = &mut request.instructions {
            for plugin in &loaded.statics {
                let tokens: Vec<String> =
                    plugin.placeholders.iter().map(|name| format!("{{{{{name}}}}}")).collect();
                if tokens.iter().any(|token| instructions.contains(token.as_str())) {
                    let value = plugin.value().await;
                    for token in &tokens {
                        *instructions = instructions.replace(token.as_str(), &value);
                    }
                }
            }
        }
        if loaded.asynchronous.is_empty() || !AsyncResults::is_named_in(request) {
            return;
        }
        let (results, mut filled) = (self.results.clone(), std::mem::take(request));
        let read = tokio::task::spawn_blocking(move || {
            results.fill(&mut filled);
            filled
        });
        if let Ok(filled) = read.await {
            *request = filled;
        }
    }

    fn set_callback_base(&self, base: &str) {
        self.results.set_base(base);
    }

    async fn accept_callback(&self, callback: &SourceCallback) -> Option<Result<(), CallbackError>> {
        if !self.results.is_token(&callback.token) {
            return None;
        }
        if !self.loaded().asynchronous.contains(&callback.plugin) {
            return Some(Err(CallbackError::UnknownTask));
        }
        let (results, callback) = (self.results.clone(), callback.clone());
        let stored = tokio::task::spawn_blocking(move || results.store(&callback)).await;
        Some(stored.unwrap_or_else(|error| Err(CallbackError::NotStored { why: error.to_string() })))
    }
}

/// The faults of a source: those of loading, and the last one of each plugin that runs in the background.
#[derive(Default)]
pub(super) struct FaultBoard {
    state: Mutex<FaultState>,
}

#[derive(Default)]
struct FaultState {
    reporter: Option<SourceReporter>,
    of_loading: Vec<SourceFault>,
    of_plugins: BTreeMap<String, String>,
}

impl FaultBoard {
    /// The faults of loading, and where faults are reported from now on.
    pub(super) fn begin(&self, reporter: SourceReporter, of_loading: Vec<SourceFault>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = FaultState { reporter: Some(reporter), of_loading, of_plugins: BTreeMap::new() };
    }

    pub(super) fn set(&self, plugin: &str, message: String) {
        self.change(|faults| faults.insert(plugin.to_owned(), message.clone()) != Some(message));
    }

    pub(super) fn clear(&self, plugin: &str) {
        self.change(|faults| faults.remove(plugin).is_some());
    }

    /// Reports only changes: every report makes a new registry.
    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, String>) -> bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !change(&mut state.of_plugins) {
            return;
        }
        let running = state.of_plugins.values().map(|message| SourceFault {
            source: VCP_PLUGINS.to_owned(),
            tool: None,
            message: message.clone(),
            remedy: Some("Run the plugin manually, or remove it from the folders.".to_owned()),
        });
        let faults: Vec<SourceFault> = state.of_loading.iter().cloned().chain(running).collect();
        if let Some(reporter) = &state.reporter {
            reporter.set_faults(faults);
        }
    }
}
