//! Sources of tools as a configuration describes them.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use throughline_tools::ToolSource;
#[cfg(feature = "process")]
use throughline_tools::command::CommandSource;
use throughline_tools::command::CommandTool;
use throughline_tools::http_tool::{HttpTool, HttpToolSource};
use throughline_tools::mcp::{McpServer, PinStore};
use throughline_tools::process::{RunAs, SpawnContext};
#[cfg(feature = "process")]
use throughline_tools::vcp_plugin::VcpPluginSource;
use throughline_tools::vcp_plugin::VcpPlugins;
use throughline_tools::web_search::{WebSearchSettings, WebSearchSource};

/// Settings of sources, as the configuration states them.
#[derive(Clone, Debug, Default)]
pub struct SourceSettings {
    /// `[mcp.NAME]`, those that are enabled.
    pub mcp: BTreeMap<String, McpServer>,
    /// `[commands.NAME]`.
    pub commands: BTreeMap<String, CommandTool>,
    /// `[http_tools.NAME]`.
    pub http_tools: BTreeMap<String, HttpTool>,
    /// `[vcp_plugins]`.
    pub vcp_plugins: VcpPlugins,
    /// `[web_search]`.
    pub web_search: Option<WebSearchSettings>,
    /// `run_as` of `[tools]`.
    pub run_as: Option<String>,
}

/// A source that has not been started, with a hash of its settings.
#[derive(Clone)]
pub struct ConfiguredSource {
    /// The source.
    pub source: Arc<dyn ToolSource>,
    /// Hash of all settings, secrets included: when it changes, the source is restarted.
    pub settings_hash: u64,
}

impl ConfiguredSource {
    /// A source made from `settings`.
    pub fn new(source: Arc<dyn ToolSource>, settings: &impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        settings.hash(&mut hasher);
        Self { source, settings_hash: hasher.finish() }
    }
}

impl fmt::Debug for ConfiguredSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.source.name())
    }
}

impl SourceSettings {
    /// The sources by name. Nothing is started, and nothing can go wrong: what is wrong with one tool is its own fault
    /// when the source is started.
    pub fn sources(
        &self,
        surroundings: &SpawnContext,
        pins: &PinStore,
    ) -> BTreeMap<String, ConfiguredSource> {
        let mut surroundings = surroundings.clone();
        if let Some(name) = &self.run_as {
            surroundings.run_as = RunAs::from_setting(name);
        }
        let surroundings = &surroundings;
        let mut sources = BTreeMap::new();
        let mut add = |source: Arc<dyn ToolSource>, settings: &dyn fmt::Debug| {
            let settings = (settings, &surroundings.run_as);
            let configured = ConfiguredSource::new(source.clone(), &with_variables(&settings, surroundings));
            sources.insert(source.name().to_owned(), configured);
        };
        self.add_programs(surroundings, &mut add);
        if !self.http_tools.is_empty() {
            add(
                Arc::new(HttpToolSource::new(self.http_tools.clone(), surroundings.clone())),
                &self.http_tools,
            );
        }
        if let Some(search) = &self.web_search {
            add(Arc::new(WebSearchSource::new(search.clone(), surroundings.clone())), search);
        }
        self.add_mcp(surroundings, pins, &mut add);
        sources
    }

    /// Secret values among the settings of the sources.
    pub fn secret_values(&self, surroundings: &SpawnContext) -> Vec<String> {
        let mcp = self.mcp.values().flat_map(|server| server.secret_values(surroundings));
        let commands = self.commands.values().flat_map(|command| command.secret_values(surroundings));
        let http = self.http_tools.values().flat_map(|tool| tool.secret_values(surroundings));
        let search = self.web_search.iter().flat_map(|search| search.secret_values(surroundings));
        let plugins = self.vcp_plugins.secret_values(surroundings);
        mcp.chain(commands).chain(http).chain(plugins).chain(search).collect()
    }

    #[cfg(feature = "process")]
    fn add_programs(
        &self,
        surroundings: &SpawnContext,
        add: &mut impl FnMut(Arc<dyn ToolSource>, &dyn fmt::Debug),
    ) {
        if !self.commands.is_empty() {
            add(Arc::new(CommandSource::new(self.commands.clone(), surroundings.clone())), &self.commands);
        }
        if !self.vcp_plugins.folders.is_empty() {
            let plugins = VcpPluginSource::new(self.vcp_plugins.clone(), surroundings.clone());
            add(Arc::new(plugins), &self.vcp_plugins);
        }
    }

    #[cfg(not(feature = "process"))]
    fn add_programs(&self, _: &SpawnContext, add: &mut impl FnMut(Arc<dyn ToolSource>, &dyn fmt::Debug)) {
        use throughline_tools::command::COMMANDS;
        use throughline_tools::vcp_plugin::VCP_PLUGINS;
        if !self.commands.is_empty() {
            add(Arc::new(UnbuiltSource { name: COMMANDS.to_owned(), feature: "process" }), &self.commands);
        }
        if !self.vcp_plugins.folders.is_empty() {
            let plugins = UnbuiltSource { name: VCP_PLUGINS.to_owned(), feature: "process" };
            add(Arc::new(plugins), &self.vcp_plugins);
        }
    }

    #[cfg(feature = "mcp")]
    fn add_mcp(
        &self,
        surroundings: &SpawnContext,
        pins: &PinStore,
        add: &mut impl FnMut(Arc<dyn ToolSource>, &dyn fmt::Debug),
    ) {
        use throughline_tools::mcp::McpSource;
        for (name, server) in &self.mcp {
            // What can be wrong with the settings has been found when they were read.
            if let Ok(source) = McpSource::new(name, server.clone(), surroundings.clone(), pins.clone()) {
                add(Arc::new(source), server);
            }
        }
    }

    #[cfg(not(feature = "mcp"))]
    fn add_mcp(
        &self,
        _: &SpawnContext,
        _: &PinStore,
        add: &mut impl FnMut(Arc<dyn ToolSource>, &dyn fmt::Debug),
    ) {
        for (name, server) in &self.mcp {
            add(Arc::new(UnbuiltSource { name: format!("mcp:{name}"), feature: "mcp" }), server);
        }
    }
}

/// A source that is configured and not part of this build: nothing but its fault.
#[cfg(any(not(feature = "mcp"), not(feature = "process")))]
struct UnbuiltSource {
    name: String,
    feature: &'static str,
}

#[cfg(any(not(feature = "mcp"), not(feature = "process")))]
#[async_trait::async_trait]
impl ToolSource for UnbuiltSource {
    fn name(&self) -> &str {
        &self.name
    }

    async fn start(&self, news: throughline_tools::SourceReporter) {
        let Self { name, feature } = self;
        let remedy =
            format!("Build with the cargo feature {feature}, or remove {name} from the configuration.");
        news.set_fault(format!("this program was built without {feature}"), Some(remedy));
    }

    async fn stop(&self) {}
}

/// The settings, and the values of the variables that they name: a new key is a change, too.
fn with_variables(settings: &dyn fmt::Debug, surroundings: &SpawnContext) -> (String, Vec<Option<String>>) {
    let settings = format!("{settings:?}");
    let names = settings.split('$').skip(1).map(|rest| {
        rest.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap_or_default()
    });
    let values = names.map(|name| surroundings.environment.get(name).cloned()).collect();
    (settings, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "[mcp.a]\ncommand = [\"x\"]\n[mcp.b]\nurl = \"http://127.0.0.1:9/mcp\"\n\
                        headers = { k = \"$KEY\" }\n[commands.c]\nargv = [\"true\"]\ndescription = \"does nothing\"\n\
                        [vcp_plugins]\nfolders = [\"p\"]\n";

    fn sources(text: &str, key: &str) -> BTreeMap<String, ConfiguredSource> {
        let file = crate::config::ConfigFile::parse("throughline.toml", text).unwrap_or_default();
        let settings = SourceSettings {
            mcp: file.mcp.into_iter().map(|(name, server)| (name, server.into_inner())).collect(),
            commands: file.commands,
            http_tools: file.http_tools,
            vcp_plugins: file.vcp_plugins,
            web_search: file.web_search,
            run_as: file.tools.run_as,
        };
        let environment = BTreeMap::from([("KEY".to_owned(), key.to_owned())]);
        let surroundings = SpawnContext { environment, folder: "/".into(), ..SpawnContext::default() };
        settings.sources(&surroundings, &PinStore::in_memory())
    }

    #[test]
    fn settings_hash_changes_only_with_settings_and_secrets() {
        let settings = |text: &str, key: &str| -> BTreeMap<String, u64> {
            sources(text, key).into_iter().map(|(name, source)| (name, source.settings_hash)).collect()
        };
        let base = settings(BASE, "1");
        let changed = |text: &str, key: &str| -> Vec<String> {
            let after = settings(text, key).into_iter();
            after.filter(|(name, settings)| base.get(name) != Some(settings)).map(|(name, _)| name).collect()
        };
        let names: Vec<String> = base.keys().cloned().collect();
        // Without their features, too: each is then a fault.
        let expected = ["commands", "mcp:a", "mcp:b", "vcp_plugins"];
        assert_eq!(names, expected);
        assert_eq!(changed(BASE, "1"), [""; 0]);
        assert_eq!(changed(&BASE.replace("does nothing", "does it"), "1"), ["commands"]);
        assert_eq!(changed(&BASE.replace("[\"p\"]", "[\"q\"]"), "1"), ["vcp_plugins"]);
        assert_eq!(changed(BASE, "2"), ["mcp:b"]);
        assert_eq!(changed(&BASE.replace("[\"x\"]", "[\"y\"]"), "1"), ["mcp:a"]);
        let another = format!("{BASE}[tools]\nrun_as = \"no-such-user\"\n");
        assert_eq!(changed(&another, "1"), expected);
    }
}
