//! Builds an application from arguments: configuration, upstreams, tools, and the demo model if no other is
//! configured.

use crate::approvals;
use crate::args::ModelArgs;
use crate::chinese::source_text;
use crate::data_dir;
use crate::exit::CliFailure;
use crate::messages::{self, UiText};
use crate::output::errln;
use crate::terminal::text::TextColor;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use throughline::config::{
    AppSettings, ConfigFile, ConfigFlags, DEMO, EnvVars, STORED_UPSTREAMS_FILE, SteeringMode,
    StoredUpstreams, StoredUpstreamsFile, looks_like_key, resolve_with_stored,
};
use throughline::{
    Agent, ApprovalMode, PolicyRule, StreamingSetting, Throughline, ThroughlineBuilder, Upstream,
};
use throughline_engine::{
    MessageTiming, OfferedTool, PolicyDecision, RememberedDecision, UnmatchedRule, explain,
};
use throughline_tools::builtin::{self, files::FileRoots};
use throughline_tools::mcp::PinStore;
use throughline_tools::process::{ControlGroups, ExecHelper, SpawnContext};
use throughline_tools::{SourceAddition, SourceFault, Tool, ToolRegistry, ToolToggle, Toolbox};
use throughline_wire::CallArguments;
use throughline_wire::display_escape;

/// Read when no other file is named.
const CONFIG_FILE: &str = "throughline.toml";

/// An application with the resources that it needs.
pub(crate) struct AppContext {
    /// Ready to run turns.
    pub(crate) app: Throughline,
    /// The model that answers, as `upstream/model`.
    pub(crate) model: String,
    /// Tool-calling mode.
    pub(crate) mode: String,
    agent: String,
    /// The demo model, if it is used.
    #[cfg(feature = "demo")]
    _demo: Option<throughline_testkit::FakeUpstreamHandle>,
}

/// An offered tool as a line.
pub(crate) struct OfferedToolRow {
    /// `group.method`.
    pub(crate) name: String,
    /// Effect of the tool.
    pub(crate) effect: String,
    /// Source of the tool.
    pub(crate) source: String,
    /// Outcome of a call, as far as it does not depend on the arguments.
    pub(crate) policy: CallPolicy,
    /// The first line of its description.
    pub(crate) description: String,
}

/// Outcome of calls of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallPolicy {
    Runs,
    /// A person is asked.
    Asks,
    /// The call is refused.
    Denied,
}

impl From<&PolicyDecision> for CallPolicy {
    fn from(decision: &PolicyDecision) -> Self {
        match decision {
            PolicyDecision::Allow { .. } => Self::Runs,
            PolicyDecision::Ask { .. } => Self::Asks,
            PolicyDecision::Deny { .. } => Self::Denied,
        }
    }
}

impl CallPolicy {
    pub(crate) fn text(self, words: UiText) -> &'static str {
        match self {
            Self::Runs => words.tool_runs(),
            Self::Asks => words.tool_asks_first(),
            Self::Denied => words.tool_denied(),
        }
    }

    pub(crate) fn ink(self) -> TextColor {
        match self {
            Self::Runs => TextColor::Green,
            Self::Asks => TextColor::Yellow,
            Self::Denied => TextColor::Red,
        }
    }
}

/// A source of tools and its state.
pub(crate) struct SourceState {
    /// `builtin`, `mcp:files`.
    pub(crate) name: String,
    /// Tools that it has now.
    pub(crate) tools: usize,
    /// Faults, each with its remedy.
    pub(crate) faults: Vec<(String, Option<String>)>,
}

impl AppContext {
    /// All sources of tools.
    pub(crate) fn sources(&self) -> Vec<SourceState> {
        let state = |name: &String| SourceState { name: name.clone(), tools: 0, faults: Vec::new() };
        let mut sources: BTreeMap<String, SourceState> =
            self.app.toolbox().sources().iter().map(|name| (name.clone(), state(name))).collect();
        for tool in self.app.tools().iter() {
            let name = &tool.spec().source;
            sources.entry(name.clone()).or_insert_with(|| state(name)).tools += 1;
        }
        for fault in self.app.source_faults() {
            let message = source_text(&fault.message);
            let what = match &fault.tool {
                Some(tool) => format!("{tool}: {message}"),
                None => message,
            };
            let source = sources.entry(fault.source.clone()).or_insert_with(|| state(&fault.source));
            source.faults.push((what, fault.remedy.as_deref().map(source_text)));
        }
        sources.into_values().collect()
    }

    /// True if the demo model is the only one.
    pub(crate) fn is_demo(&self) -> bool {
        self.model.split('/').next() == Some(DEMO)
    }

    fn agent(&self) -> Option<Agent> {
        self.app.agents().into_iter().find(|agent| agent.name == self.agent)
    }

    /// Default delivery of messages that are sent while a turn runs, as the agent has it.
    pub(crate) fn steering(&self) -> MessageTiming {
        match self.agent().map(|agent| agent.steering).unwrap_or_default() {
            SteeringMode::NextStep => MessageTiming::NextStep,
            SteeringMode::AfterTurn => MessageTiming::AfterTurn,
        }
    }

    /// The tools that the model may call; `remembered` are earlier decisions.
    pub(crate) fn offered_tools(&self, remembered: &[RememberedDecision]) -> Vec<OfferedToolRow> {
        let Some(agent) = self.agent() else { return Vec::new() };
        offered_tools(&self.app.tools(), &agent, remembered)
    }

    /// Builds the application.
    pub(crate) async fn open(choice: &ModelArgs, approval: ApprovalMode) -> Result<Self, CliFailure> {
        Self::open_with(choice, load_settings(choice)?, |builder| builder.approval(approval)).await
    }

    /// Builds the application with additions of this program, such as its log.
    pub(crate) async fn open_with(
        choice: &ModelArgs,
        settings: AppSettings,
        customize: impl FnOnce(ThroughlineBuilder) -> ThroughlineBuilder,
    ) -> Result<Self, CliFailure> {
        Self::open_in(choice, settings, surroundings(choice), customize).await
    }

    /// As [`open_with`](Self::open_with), with another working directory for programs.
    pub(crate) async fn open_in(
        choice: &ModelArgs,
        settings: AppSettings,
        surroundings: SpawnContext,
        customize: impl FnOnce(ThroughlineBuilder) -> ThroughlineBuilder,
    ) -> Result<Self, CliFailure> {
        let given_upstream = given_upstream(choice)?;
        let wants_demo = settings.wants_demo() && given_upstream.is_none();
        let approvals = approvals::permanent(&settings.store);
        let mut builder = customize(Throughline::builder().approval_store(approvals)).tools(build_tools(
            &settings,
            FileAccess::of(wants_demo),
            choice.demo_tools || wants_demo,
        )?);
        let name = settings.agent.clone();
        let agent = settings.agents.get(&name);
        let mode = agent.map(|agent| agent.mode.name().to_owned()).unwrap_or_default();
        let mut model = agent
            .and_then(|agent| agent.models.first())
            .map(|first| {
                if first.name == first.model {
                    first.name.clone()
                } else {
                    format!("{}/{}", first.name, first.model)
                }
            })
            .unwrap_or_default();
        builder = builder.settings(settings).spawn_context(surroundings).pins(pins());
        if let Some(upstream) = given_upstream {
            model = format!("{}/{}", upstream.name(), choice.model.as_deref().unwrap_or("default"));
            builder = builder.upstream(upstream).model(model.clone());
        }
        #[cfg(feature = "demo")]
        {
            let demo = if wants_demo {
                Some(throughline_testkit::demo::start().await.map_err(|error| messages::no_demo(&error))?)
            } else {
                None
            };
            if let Some(handle) = &demo {
                let base_url = handle.base_url(throughline_testkit::FakeDialect::OpenaiChat);
                let upstream = Upstream::new(DEMO, throughline_wire::Dialect::OpenaiChat, &base_url)
                    .map_err(|error| messages::setup(&error))?
                    .proxy(throughline::UpstreamProxy::Off);
                builder = builder.upstream(upstream);
            }
            let app = builder.build().map_err(|error| messages::setup(&error))?;
            Ok(Self { app, model, mode, agent: name, _demo: demo })
        }
        #[cfg(not(feature = "demo"))]
        {
            if wants_demo {
                return Err(messages::without_demo());
            }
            let app = builder.build().map_err(|error| messages::setup(&error))?;
            Ok(Self { app, model, mode, agent: name })
        }
    }
}

/// The tools that the model of an agent may call, with the decision of its rules on a call.
pub(crate) fn offered_tools(
    registry: &ToolRegistry,
    agent: &Agent,
    remembered: &[RememberedDecision],
) -> Vec<OfferedToolRow> {
    if agent.tool_call.tools == ToolToggle::Off {
        return Vec::new();
    }
    let policy = agent.policy();
    let no_arguments = CallArguments::from_value(Value::Object(Default::default()));
    let row = |tool: OfferedTool| OfferedToolRow {
        policy: CallPolicy::from(&explain(&tool, &no_arguments, &policy, remembered)),
        name: tool.name.to_string(),
        effect: tool.effect.name().to_owned(),
        source: tool.source.clone(),
        description: tool.definition.description.lines().next().unwrap_or("").to_owned(),
    };
    registry.offered(&agent.tool_call.toggles).into_iter().map(row).collect()
}

/// Working directory and environment of the configuration's programs: relative paths begin at its folder.
pub(crate) fn surroundings(choice: &ModelArgs) -> SpawnContext {
    let base = SpawnContext::of_this_process();
    let config = config_file(choice.config.as_deref());
    let folder = config.as_deref().and_then(Path::parent).map(|folder| base.folder.join(folder));
    let surroundings = SpawnContext { folder: folder.unwrap_or_else(|| base.folder.clone()), ..base };
    match ExecHelper::this_program(crate::EXEC) {
        Some(helper) => surroundings.with_helper(helper),
        None => surroundings,
    }
}

/// Parent of the control groups of a server's programs, from `control_groups` of `[tools]`.
///
/// # Errors
/// A configured one cannot be used. If it would only be detected, its absence is no error.
pub(crate) fn control_groups(settings: &AppSettings) -> Result<Option<ControlGroups>, CliFailure> {
    match settings.tools.control_groups.as_deref() {
        Some("off") => Ok(None),
        None | Some("auto") => {
            let found = ControlGroups::of_this_process();
            if let Err(why) = &found {
                tracing::debug!("no control groups: {why}");
            }
            Ok(found.ok())
        }
        Some(folder) => match ControlGroups::claim(Path::new(folder)) {
            Ok(groups) => Ok(Some(groups)),
            Err(why) => Err(messages::no_control_groups(folder, &why)),
        },
    }
}

/// Approved definitions of MCP tools; for this run only if there is no data folder.
pub(crate) fn pins() -> PinStore {
    data_dir::folder()
        .map_or_else(PinStore::in_memory, |folder| PinStore::in_file(folder.join(data_dir::PINS_FILE)))
}

/// Time limit for tool sources to start: `npx` may have to download a server first.
const SOURCES_WAIT: Duration = Duration::from_secs(30);

/// All tools, those of sources included, without a model: for listing them and running one.
pub(crate) struct ToolSources {
    toolbox: Toolbox,
}

impl ToolSources {
    /// Waits for the sources, and reports their faults.
    pub(crate) async fn open(choice: &ModelArgs, settings: &AppSettings) -> Result<Self, CliFailure> {
        let demo = settings.wants_demo() && choice.base_url.is_none();
        let fixed = build_tools(settings, FileAccess::of(demo), demo || choice.demo_tools)?;
        let toolbox = Toolbox::new(fixed).map_err(|error| messages::setup(&error))?;
        for configured in settings.sources.sources(&surroundings(choice), &pins()).into_values() {
            toolbox.add(configured.source);
        }
        let silent = toolbox.wait_ready(SOURCES_WAIT).await;
        print_faults(&toolbox.faults());
        for source in silent {
            errln!("{}", messages::silent_source(&source, SOURCES_WAIT));
        }
        Ok(Self { toolbox })
    }

    /// Rules that fit none of them.
    pub(crate) fn unmatched_rules(&self, rules: &[PolicyRule]) -> Vec<UnmatchedRule> {
        self.toolbox.unmatched_rules(rules)
    }

    /// Parts of sources that are no tools.
    pub(crate) fn additions(&self) -> Vec<SourceAddition> {
        self.toolbox.hooks().iter().flat_map(|hook| hook.additions()).collect()
    }

    /// Current registry of the tools.
    pub(crate) fn registry(&self) -> Arc<ToolRegistry> {
        self.toolbox.registry()
    }

    /// Stops the sources.
    pub(crate) async fn close(self) {
        self.toolbox.stop().await;
    }
}

/// Prints faults of tool sources, a line each, to standard error. Text of servers may contain control characters.
pub(crate) fn print_faults(faults: &[SourceFault]) {
    for fault in faults {
        errln!("{}", crate::plain::for_terminal(&display_escape::escape(&messages::source_fault(fault))));
    }
}

/// Prints rules that match no tool on standard error, one per line.
pub(crate) fn print_unmatched_rules(app: &Throughline) {
    for (agent, rule) in app.unmatched_rules() {
        errln!(
            "{}",
            crate::plain::for_terminal(&display_escape::escape(&messages::unmatched_rule(&agent, &rule)))
        );
    }
}

/// Configuration file, environment and flags on top of each other.
pub(crate) fn load_settings(choice: &ModelArgs) -> Result<AppSettings, CliFailure> {
    load_settings_with(choice, None, None)
}

/// As [`load_settings`], with `--listen` and `--store`.
pub(crate) fn load_settings_with(
    choice: &ModelArgs,
    listen: Option<&str>,
    store: Option<&str>,
) -> Result<AppSettings, CliFailure> {
    load_settings_over(choice, listen, store, &connected()?)
}

/// Upstreams that were connected, by the page or by `throughline connect`. Empty without a data folder.
pub(crate) fn connected() -> Result<StoredUpstreams, CliFailure> {
    match connected_file() {
        Some(file) => file.read().map_err(|error| messages::setup(&error)),
        None => Ok(StoredUpstreams::default()),
    }
}

/// File of the connected upstreams.
pub(crate) fn connected_file() -> Option<StoredUpstreamsFile> {
    data_dir::folder().map(|folder| StoredUpstreamsFile::at(folder.join(STORED_UPSTREAMS_FILE)))
}

/// As [`load_settings_with`], with these upstreams connected.
pub(crate) fn load_settings_over(
    choice: &ModelArgs,
    listen: Option<&str>,
    store: Option<&str>,
    connected: &StoredUpstreams,
) -> Result<AppSettings, CliFailure> {
    let file = match config_file(choice.config.as_deref()) {
        Some(path) => {
            let file = ConfigFile::load(&path).map_err(|error| messages::config(&error))?;
            for key in file.renamed_keys() {
                errln!("{}", messages::renamed_key(&path, &key));
            }
            Some(file)
        }
        None => None,
    };
    // Variables that are not Unicode cannot be meant for us.
    let environment: EnvVars = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let flags = ConfigFlags {
        agent: choice.agent.clone(),
        // With --base-url the model is that endpoint's own name for it.
        model: choice.model.clone().filter(|_| choice.base_url.is_none()),
        mode: choice.mode.clone(),
        streaming: choice.streaming.clone(),
        listen: listen.map(str::to_owned),
        store: store.map(str::to_owned),
    };
    resolve_with_stored(file, connected, &environment, &flags).map_err(|error| messages::config(&error))
}

/// The file that is read: the one that is named, else ours in this folder if it is there.
pub(crate) fn config_file(named: Option<&Path>) -> Option<PathBuf> {
    match named {
        // An empty THROUGHLINE_CONFIG is one that is not set.
        Some(path) if !path.as_os_str().is_empty() => Some(path.to_owned()),
        _ => Some(PathBuf::from(CONFIG_FILE)).filter(|path| path.exists()),
    }
}

/// The key of the endpoint that `--base-url` names.
pub(crate) fn given_key(choice: &ModelArgs) -> Option<String> {
    std::env::var(choice.key_env.as_deref()?).ok().map(|key| key.trim().to_owned())
}

/// The name of an upstream that is given by its address: `127.0.0.1:9000`. Failures name it.
fn name_of_address(base_url: &str) -> &str {
    let address = base_url.split_once("://").map_or(base_url, |(_, address)| address);
    let host = address.split(['/', '?', '#']).next().unwrap_or_default();
    // A password before the host must not be shown.
    match host.rsplit_once('@').map_or(host, |(_, host)| host) {
        "" => "base-url",
        host => host,
    }
}

fn given_upstream(choice: &ModelArgs) -> Result<Option<Upstream>, CliFailure> {
    let (Some(base_url), Some(api)) = (&choice.base_url, choice.api) else { return Ok(None) };
    if choice.key_env.as_deref().is_some_and(looks_like_key) {
        return Err(messages::key_instead_of_variable());
    }
    let streaming = choice.streaming.as_deref().and_then(StreamingSetting::from_name).unwrap_or_default();
    let upstream = Upstream::new(name_of_address(base_url), api, base_url)
        .map_err(|error| messages::setup(&error))?
        .streaming(streaming);
    Ok(Some(match &choice.key_env {
        Some(variable) => upstream.key_from_variable(variable),
        None => upstream,
    }))
}

/// Folders that tools may read if the configuration names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileAccess {
    /// None.
    Configured,
    /// The current one: the demo model is a script on this machine, what it is shown goes nowhere.
    CurrentFolder,
}

impl FileAccess {
    /// Access with or without the demo model.
    pub(crate) fn of(demo: bool) -> Self {
        if demo { FileAccess::CurrentFolder } else { FileAccess::Configured }
    }
}

/// All tools: the built-in ones, files if folders are allowed, and the demo's if requested.
pub(crate) fn build_tools(
    settings: &AppSettings,
    file_access: FileAccess,
    demo: bool,
) -> Result<Vec<Arc<dyn Tool>>, CliFailure> {
    let ports = builtin::http::AllowedPorts { extra: settings.tools.http.ports.clone() };
    let mut tools = builtin::standard_with(ports, settings.tools.http.hosts.clone());
    let mut folders = settings.tools.files.roots.clone();
    if file_access == FileAccess::CurrentFolder && folders.is_empty() {
        folders.extend(std::env::current_dir());
    }
    if !folders.is_empty() {
        let mut roots = FileRoots::new();
        for folder in &folders {
            roots =
                roots.with(root_name(folder), folder).map_err(|error| messages::bad_root(folder, &error))?;
        }
        tools.extend(roots.tools());
    }
    if demo {
        tools.extend(builtin::demo::tools());
    }
    Ok(tools)
}

/// Models see a folder under its last name.
fn root_name(folder: &Path) -> String {
    let full = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    full.file_name().map_or_else(|| "root".to_owned(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unnamed_upstream_is_named_by_host_and_port() {
        for (url, name) in [
            ("http://127.0.0.1:9000/v1", "127.0.0.1:9000"),
            ("https://user:secret@example.com?x=/", "example.com"),
            ("http://[::1]:80", "[::1]:80"),
            ("", "base-url"),
        ] {
            assert_eq!(name_of_address(url), name);
        }
    }

    #[test]
    fn root_name_is_the_last_path_component() {
        assert_eq!(root_name(Path::new("/tmp/some/notes")), "notes");
        assert_eq!(root_name(Path::new("/")), "root");
    }
}
