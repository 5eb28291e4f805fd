//! The layers on top of each other: known upstreams, the file, the environment, flags.

use super::error::ConfigError;
use super::file::{
    AgentSection, ConfigFile, LimitsSection, TimeoutsSection, ToolsSection, UpstreamSection, UserSection,
};
use super::hints;
use super::serving::{self, ServerSettings, StoreBackend, StoreSettings};
use super::sources::SourceSettings;
use super::stored_upstreams::{StoredUpstream, StoredUpstreams};
use crate::agent::prompt::{PromptTemplate, PromptUser};
use crate::agent::{
    Agent, AgentTools, CallStartMode, ConfirmationMode, ToolMode, ToolStartMode, parse_model,
};
use crate::upstream::models::ModelFacts;
use crate::upstream::providers;
use crate::upstream::{StreamingSetting, Upstream, UpstreamConfigError, UpstreamProxy, UpstreamTimeouts};
use crate::voice::{EarsSettings, VoiceSettings, resolve_ears, resolve_voices};
use jiff::tz::TimeZone;
use std::collections::BTreeMap;
use throughline_engine::{
    ExecutionMode, PolicyRule, StartRule, TEXT_RULES_MAX, TextRule, TextRuleSettings, UpstreamChoice,
};
use throughline_tools::mcp::McpSettingError;
use throughline_tools::process::SpawnContext;
use throughline_tools::{ToolToggle, ToolToggles, expand_variables, url_passwords};
use throughline_wire::{Dialect, HostedToolKind, ModelSettings};
use toml::Spanned;

/// The agent that answers when none is named.
pub const DEFAULT_AGENT: &str = "default";
/// Name of the built-in demo model, as upstream and as model. The program that runs the turn must provide an
/// upstream of this name.
pub const DEMO: &str = "demo";

/// Remedy where a dialect has no tool of the provider.
const HOSTED_TOOLS_HELP: &str = "remove it, or use your own tool such as `web.search` ([web_search])";

/// Environment variables by name.
pub type EnvVars = BTreeMap<String, String>;

/// Settings from the command line; they override everything else.
#[derive(Clone, Debug, Default)]
pub struct ConfigFlags {
    /// `--agent`.
    pub agent: Option<String>,
    /// `--model upstream/model`.
    pub model: Option<String>,
    /// `--mode auto|native|text`.
    pub mode: Option<String>,
    /// `--streaming on|off`.
    pub streaming: Option<String>,
    /// `--listen ADDRESS:PORT`.
    pub listen: Option<String>,
    /// `--store FILE|URL`.
    pub store: Option<String>,
}

/// Settings of an application, with all layers combined.
#[derive(Clone, Debug)]
pub struct AppSettings {
    /// Upstreams by name: those of the file, and known ones that a model names.
    pub upstreams: BTreeMap<String, Upstream>,
    /// Model facts from the configuration.
    pub models: BTreeMap<String, ModelFacts>,
    /// Agents by name.
    pub agents: BTreeMap<String, Agent>,
    /// Name of the default agent.
    pub agent: String,
    /// Bounds.
    pub limits: LimitsSection,
    /// Settings of built-in tools.
    pub tools: ToolsSection,
    /// Facts about the user for prompt templates.
    pub user: PromptUser,
    /// Sources of tools in addition to the program's own.
    pub sources: SourceSettings,
    /// Speech engines by name.
    pub voices: BTreeMap<String, VoiceSettings>,
    /// Transcription engines by name.
    pub ears: BTreeMap<String, EarsSettings>,
    /// Server settings.
    pub server: ServerSettings,
    /// Storage settings.
    pub store: StoreSettings,
}

impl Default for AppSettings {
    /// Empty settings: no upstream, no agent.
    fn default() -> Self {
        Self {
            upstreams: BTreeMap::new(),
            models: BTreeMap::new(),
            agents: BTreeMap::new(),
            agent: DEFAULT_AGENT.to_owned(),
            limits: LimitsSection::default(),
            tools: ToolsSection::default(),
            user: PromptUser::default(),
            sources: SourceSettings::default(),
            voices: BTreeMap::new(),
            ears: BTreeMap::new(),
            server: ServerSettings::default(),
            store: StoreSettings::default(),
        }
    }
}

impl AppSettings {
    /// True if any agent uses the demo model, so that the program must provide it.
    pub fn wants_demo(&self) -> bool {
        let is_demo = |choice: &UpstreamChoice| choice.name == DEMO;
        self.agents.values().any(|agent| agent.models.iter().any(is_demo))
            && !self.upstreams.contains_key(DEMO)
    }

    /// Every secret value: keys and headers of upstreams, secrets of tools and their servers, passwords in addresses.
    /// A server redacts these from everything it sends or logs.
    pub fn secret_values(&self, surroundings: &SpawnContext) -> Vec<String> {
        let mut values: Vec<String> = self.upstreams.values().flat_map(Upstream::secrets).collect();
        values.extend(self.sources.secret_values(surroundings));
        values.extend(self.voices.values().flat_map(|voice| voice.engine.secrets(surroundings)));
        values.extend(self.ears.values().flat_map(|ears| ears.engine.secrets(surroundings)));
        let oidc = self.server.oidc.as_ref().and_then(|oidc| oidc.client_secret.as_ref());
        values.extend(oidc.map(|secret| secret.reveal().to_owned()));
        if let StoreBackend::Postgres(url) = &self.store.backend {
            values.extend(url_passwords(url));
        }
        values
    }
}

/// Combines the layers, later ones overriding earlier ones.
///
/// - `THROUGHLINE_AGENT`, `THROUGHLINE_MODEL`: as the flags.
/// - `THROUGHLINE_STREAMING`, `THROUGHLINE_MODE`: for all upstreams; with an upstream's name appended
///   (`THROUGHLINE_STREAMING_DEEPSEEK`) for that one, which takes precedence.
/// - `THROUGHLINE_BASE_URL_NAME`: another address for one upstream.
/// - `THROUGHLINE_LISTEN`, `THROUGHLINE_STORE`: as the flags.
/// - Keys: the variable that `key_env` or the table of known upstreams names; otherwise the stored key.
///
/// Without file, environment and flags the result is the demo model with tools.
///
/// ```
/// use throughline::config::{ConfigFlags, EnvVars, resolve};
///
/// let settings = resolve(None, &EnvVars::new(), &ConfigFlags::default())?;
/// assert!(settings.wants_demo());
/// # Ok::<(), throughline::config::ConfigError>(())
/// ```
///
/// # Errors
/// The first mistake, with its location and the valid names.
pub fn resolve(
    file: Option<ConfigFile>,
    environment: &EnvVars,
    flags: &ConfigFlags,
) -> Result<AppSettings, ConfigError> {
    resolve_with_stored(file, &StoredUpstreams::default(), environment, flags)
}

/// Like [`resolve`], with stored upstreams. A stored key is used where the environment has none; a stored upstream
/// where the file has none of the name.
///
/// # Errors
/// As in [`resolve`].
pub fn resolve_with_stored(
    file: Option<ConfigFile>,
    stored: &StoredUpstreams,
    environment: &EnvVars,
    flags: &ConfigFlags,
) -> Result<AppSettings, ConfigError> {
    let file = file.unwrap_or_default();
    let user = resolve_user(&file)?;
    check_turn_limits(&file)?;
    let sources = resolve_sources(&file)?;
    let (voices, ears) = (resolve_voices(&file, environment)?, resolve_ears(&file, environment)?);
    let server = serving::resolve_server(&file, environment, flags)?;
    let store = serving::resolve_store(&file, environment, flags)?;
    let layers = ConfigLayers { file: &file, stored, environment, flags };
    let mut upstreams = BTreeMap::new();
    for (name, section) in &file.upstreams {
        upstreams.insert(name.clone(), layers.upstream(name, section)?);
    }
    for (name, entry) in stored.iter().filter(|(name, _)| *name != DEMO) {
        if !upstreams.contains_key(name)
            && let Some(upstream) = layers.stored_upstream(name, entry)
        {
            upstreams.insert(name.to_owned(), layers.with_environment(upstream)?);
        }
    }
    let mut agents = BTreeMap::new();
    for (name, section) in &file.agents {
        agents.insert(name.clone(), layers.agent(name, section, &mut upstreams)?);
    }
    let agent = layers.choose_agent(&mut agents, &mut upstreams)?;
    let (limits, tools) = (file.limits, file.tools.clone());
    let models = file.models.clone();
    Ok(AppSettings {
        upstreams,
        models,
        agents,
        agent,
        limits,
        tools,
        user,
        sources,
        voices,
        ears,
        server,
        store,
    })
}

/// Sources whose settings can be used; programs and servers are looked for when they are started.
fn resolve_sources(file: &ConfigFile) -> Result<SourceSettings, ConfigError> {
    let mut mcp = BTreeMap::new();
    for (name, server) in &file.mcp {
        let to_error =
            |McpSettingError { key, message, help }| file.error_at_key(server, key, message).help(help);
        server.get_ref().check(name).map_err(to_error)?;
        if server.get_ref().enabled {
            mcp.insert(name.clone(), server.get_ref().clone());
        }
    }
    if !mcp.is_empty() && cfg!(not(feature = "mcp")) {
        let message = "MCP servers are configured, but this program was built without MCP";
        let help = "build with the cargo feature `mcp`, or set `enabled = false` for each";
        return Err(ConfigError::whole_file(&file.source.file, message).help(help));
    }
    Ok(SourceSettings {
        mcp,
        commands: file.commands.clone(),
        http_tools: file.http_tools.clone(),
        vcp_plugins: file.vcp_plugins.clone(),
        web_search: file.web_search.clone(),
        run_as: file.tools.run_as.clone(),
    })
}

/// Limits for all agents with which no turn could do anything.
fn check_turn_limits(file: &ConfigFile) -> Result<(), ConfigError> {
    let limits = &file.limits.turn;
    let zeros = [
        ("calls_per_turn_max", limits.calls_per_turn_max == 0),
        ("own_tool_ms_max", limits.own_tool_ms_max == 0),
        ("approval_ms_max", limits.approval_ms_max == Some(0)),
    ];
    match zeros.into_iter().find(|(_, is_zero)| *is_zero) {
        Some((name, _)) => {
            let message = format!("`{name}` must not be 0");
            Err(file.error_at_path(&["limits", "turn", name], message).help("omit it to use the default"))
        }
        None => Ok(()),
    }
}

/// The user's settings, with the time zone checked.
fn resolve_user(file: &ConfigFile) -> Result<PromptUser, ConfigError> {
    let UserSection { name, time_zone } = &file.user;
    let time_zone = match time_zone {
        None => None,
        Some(zone) => Some(TimeZone::get(zone.get_ref()).map_err(|_| {
            let message = format!("there is no time zone `{}`", zone.get_ref());
            let help = "use an IANA time zone name: \"Europe/Paris\", \"Asia/Shanghai\", \"UTC\"";
            file.error(zone, message).help(help)
        })?),
    };
    let base = PromptUser::default();
    Ok(PromptUser { name: name.clone().unwrap_or(base.name), time_zone })
}

/// One agent of a file, with environment and flags applied. An upstream created for it is not stored.
pub(super) fn resolve_agent(
    file: &ConfigFile,
    environment: &EnvVars,
    flags: &ConfigFlags,
    name: &str,
    section: &AgentSection,
    mut upstreams: BTreeMap<String, Upstream>,
) -> Result<Agent, ConfigError> {
    ConfigLayers { file, stored: &StoredUpstreams::default(), environment, flags }.agent(
        name,
        section,
        &mut upstreams,
    )
}

struct ConfigLayers<'a> {
    file: &'a ConfigFile,
    stored: &'a StoredUpstreams,
    environment: &'a EnvVars,
    flags: &'a ConfigFlags,
}

/// Creates an error at the location of a setting.
type ConfigErrorAt<'a> = &'a dyn Fn(String) -> ConfigError;

impl ConfigLayers<'_> {
    fn upstream(&self, name: &str, section: &Spanned<UpstreamSection>) -> Result<Upstream, ConfigError> {
        let section_error = |message: String| self.file.error(section, message);
        let to_error = |error: UpstreamConfigError| section_error(error.to_string());
        let s = section.get_ref();
        let upstream = match (&s.known, &s.dialect, &s.base_url) {
            (Some(known), _, _) => self.known(known)?.named(name).map_err(to_error)?,
            (None, Some(dialect), Some(base_url)) => Upstream::new(
                name,
                self.dialect(dialect)?,
                base_url.get_ref(),
            )
            .map_err(|error| match error {
                UpstreamConfigError::BadBaseUrl { .. } => self.file.error(base_url, error.to_string()),
                other => to_error(other),
            })?,
            (None, _, _) => {
                let message = format!("upstream `{name}` needs `known`, or both `dialect` and `base_url`");
                let help = "set known = \"…\", or dialect = \"openai-chat\" and base_url = \"https://…/v1\"";
                return Err(section_error(message).help(help));
            }
        };
        self.apply_section(upstream, s, &section_error)
    }

    /// `None` if another release knew this upstream and this one does not. Using its name is an error that
    /// reports this.
    fn stored_upstream(&self, name: &str, entry: &StoredUpstream) -> Option<Upstream> {
        match &entry.endpoint {
            Some(own) => Upstream::new(name, own.dialect, &own.base_url).ok(),
            None => Upstream::known(name).ok(),
        }
    }

    fn known(&self, name: &Spanned<String>) -> Result<Upstream, ConfigError> {
        Upstream::known(name.get_ref()).map_err(|_| {
            let message = format!("unknown upstream preset `{}`", name.get_ref());
            self.file.error(name, message).valid_names(name.get_ref(), providers::names())
        })
    }

    fn dialect(&self, name: &Spanned<String>) -> Result<Dialect, ConfigError> {
        let dialects = &Dialect::ALL;
        dialects.iter().copied().find(|dialect| dialect.name() == name.get_ref()).ok_or_else(|| {
            let message = format!("unknown dialect `{}`", name.get_ref());
            self.file
                .error(name, message)
                .valid_names(name.get_ref(), dialects.iter().map(|dialect| dialect.name()))
        })
    }

    /// Applies the section over the table of `providers`, and the environment over both.
    fn apply_section(
        &self,
        mut upstream: Upstream,
        s: &UpstreamSection,
        section_error: ConfigErrorAt<'_>,
    ) -> Result<Upstream, ConfigError> {
        if s.known.is_some() {
            if let Some(dialect) = &s.dialect {
                upstream = upstream.dialect(self.dialect(dialect)?);
            }
            if let Some(base_url) = &s.base_url {
                let to_error = |error: UpstreamConfigError| self.file.error(base_url, error.to_string());
                upstream = upstream.base_url(base_url.get_ref()).map_err(to_error)?;
            }
        }
        if let Some(variable) = &s.key_env {
            if hints::looks_like_key(variable.get_ref()) {
                let message =
                    "`key_env` takes the name of an environment variable, but this looks like a key";
                let help = "set key_env = \"MY_API_KEY\" and put the key into that variable, or run `throughline connect`";
                return Err(self.file.error(variable, message).without_values().help(help));
            }
            upstream.key_env = Some(variable.get_ref().clone());
        }
        for (name, value) in &s.headers {
            let expanded = expand_variables(value.get_ref(), |variable| {
                self.variable(variable).ok_or_else(|| {
                    self.file.error(value, format!("the environment variable {variable} is not set"))
                })
            })?;
            upstream = upstream
                .header(name, expanded.text)
                .map_err(|error| self.file.error(value, error.to_string()))?;
        }
        if let Some(proxy) = &s.proxy {
            upstream.proxy = match proxy.get_ref().as_str() {
                "system" => UpstreamProxy::System,
                "off" => UpstreamProxy::Off,
                url if url::Url::parse(url).is_ok() => UpstreamProxy::Url(url.to_owned()),
                other => {
                    let message = format!("`{other}` is not a valid proxy");
                    return Err(self.file.error(proxy, message).help("use \"system\", \"off\", or a URL"));
                }
            };
        }
        let TimeoutsSection { connect_ms, first_byte_ms, idle_ms, total_ms } = s.timeouts;
        if [connect_ms, first_byte_ms, idle_ms, total_ms].contains(&Some(0)) {
            return Err(section_error("a timeout must not be 0 ms".to_owned()));
        }
        if s.timeouts != TimeoutsSection::default() {
            let base = upstream.time_limits();
            upstream = upstream.timeouts(UpstreamTimeouts {
                connect_ms: connect_ms.unwrap_or(base.connect_ms),
                first_byte_ms: first_byte_ms.unwrap_or(base.first_byte_ms),
                idle_ms: idle_ms.unwrap_or(base.idle_ms),
                total_ms: total_ms.unwrap_or(base.total_ms),
            });
        }
        upstream.profile = s.profile.clone().over(upstream.profile);
        if let Some(hosted) = &s.hosted {
            upstream = upstream
                .hosted(hosted.get_ref().iter().copied())
                .map_err(|error| self.file.error(hosted, error.to_string()).help(HOSTED_TOOLS_HELP))?;
        }
        if let Some(setting) = s.streaming {
            upstream = upstream.streaming(setting);
        }
        self.with_environment(upstream)
    }

    fn with_environment(&self, mut upstream: Upstream) -> Result<Upstream, ConfigError> {
        if let Some(variable) = upstream.key_env.clone() {
            let value = self.environment.get(&variable).cloned();
            upstream = upstream.with_key_value(&variable, value);
        }
        if let Some(key) = self.stored.get(&upstream.name).and_then(|entry| entry.key.clone()) {
            upstream = upstream.or_stored_key(key);
        }
        let of_this = |what: &str| format!("THROUGHLINE_{what}_{}", env_suffix(&upstream.name));
        let (base_url, streaming) = (of_this("BASE_URL"), of_this("STREAMING"));
        if let Some(url) = self.variable(&base_url) {
            let to_error =
                |error: UpstreamConfigError| ConfigError::in_environment(&base_url, error.to_string());
            upstream = upstream.base_url(&url).map_err(to_error)?;
        }
        for variable in ["THROUGHLINE_STREAMING", streaming.as_str()] {
            if let Some(text) = self.variable(variable) {
                let setting =
                    parse_streaming(&text, &|message| ConfigError::in_environment(variable, message))?;
                upstream = upstream.streaming(setting);
            }
        }
        if let Some(text) = &self.flags.streaming {
            let setting = parse_streaming(text, &|message| ConfigError::in_flag("--streaming", message))?;
            upstream = upstream.streaming(setting);
        }
        Ok(upstream)
    }

    fn agent(
        &self,
        name: &str,
        section: &AgentSection,
        upstreams: &mut BTreeMap<String, Upstream>,
    ) -> Result<Agent, ConfigError> {
        let mut models = Vec::new();
        for text in std::iter::once(&section.model).chain(&section.fallback) {
            models.push(self.model(text.get_ref(), upstreams, &|message| self.file.error(text, message))?);
        }
        self.check_numbers(section)?;
        let t = &section.tool_call;
        let call_mode = match &t.mode {
            Some(mode) => parse_call_mode(mode.get_ref(), &|message| self.file.error(mode, message))?,
            None => CallStartMode::Auto,
        };
        let default = if t.default_tool_enabled { ToolToggle::On } else { ToolToggle::Off };
        let toggles = t.tool_toggles.iter().fold(ToolToggles::new(default), |toggles, (name, on)| {
            toggles.set(name, if *on { ToolToggle::On } else { ToolToggle::Off })
        });
        let extra = match serde_json::to_value(&section.extra) {
            Ok(serde_json::Value::Object(extra)) => extra,
            _ => return Err(self.file.error(&section.model, "`extra` cannot be converted to JSON")),
        };
        Ok(Agent {
            name: name.to_owned(),
            mode: self.resolve_mode(&models, section.mode.unwrap_or_default())?,
            prompt: section.prompt.as_ref().map(|prompt| self.template(prompt)).transpose()?,
            settings: ModelSettings {
                temperature: section.temperature,
                max_output_tokens: section.max_output_tokens,
                parallel_tool_calls: None,
                hosted: self.hosted_tools(section, &models, upstreams)?,
                extra,
            },
            tool_call: AgentTools {
                tools: if t.enabled { ToolToggle::On } else { ToolToggle::Off },
                mode: call_mode,
                toggles,
                max_iterations: t.max_iterations,
                timeout_ms: t.timeout_ms,
                confirmation: if t.require_confirmation {
                    ConfirmationMode::Everything
                } else {
                    ConfirmationMode::ByPolicy
                },
                protocol: t.protocol,
                results: t.results,
                execution: if t.parallel_execution { ExecutionMode::Parallel } else { ExecutionMode::Serial },
                start: match t.start {
                    ToolStartMode::Eager => StartRule::Eager,
                    ToolStartMode::AfterStream => StartRule::AfterStream,
                },
            },
            policy: resolve_rules(self.file, &section.policy)?,
            permissions: section.permissions,
            text_rules: resolve_text_rules(self.file, &section.text_rules)?,
            guard: section.guard,
            steering: section.steering,
            on_interrupted: section.on_interrupted,
            limits: section.limits,
            models,
        })
    }

    /// The providers' tools of an agent. Every model that may answer must have them.
    fn hosted_tools(
        &self,
        section: &AgentSection,
        models: &[UpstreamChoice],
        upstreams: &BTreeMap<String, Upstream>,
    ) -> Result<Vec<HostedToolKind>, ConfigError> {
        let Some(hosted) = &section.hosted else { return Ok(Vec::new()) };
        let used = models.iter().filter_map(|model| upstreams.get(&model.name));
        for upstream in used {
            upstream
                .clone()
                .hosted(hosted.get_ref().iter().copied())
                .map_err(|error| self.file.error(hosted, error.to_string()).help(HOSTED_TOOLS_HELP))?;
        }
        Ok(hosted.get_ref().clone())
    }

    /// Numbers of an agent with which no turn could do anything, or which no model takes.
    fn check_numbers(&self, section: &AgentSection) -> Result<(), ConfigError> {
        let source = &self.file.source.text;
        let agent = hints::agent_with_model_at(source, section.model.span()).unwrap_or_default();
        let error = |path: &[&str], message: &str| {
            self.file.error_at_path(&[&["agents", agent.as_str()], path].concat(), message)
        };
        if section.temperature.is_some_and(|value| !(0.0..=2.0).contains(&value)) {
            return Err(error(&["temperature"], "`temperature` must be from 0 to 2"));
        }
        let no_calls = "use tool_call = { enabled = false } to disable tools";
        let zeros: [(Option<u64>, &[&str], &str); 6] = [
            (
                section.max_output_tokens.map(u64::from),
                &["max_output_tokens"],
                "leave it out to use the model's limit",
            ),
            (Some(section.tool_call.max_iterations.into()), &["tool_call", "max_iterations"], no_calls),
            (Some(section.tool_call.timeout_ms), &["tool_call", "timeout_ms"], "in milliseconds: 30000"),
            (section.limits.calls_per_turn_max.map(u64::from), &["limits", "calls_per_turn_max"], no_calls),
            (section.limits.own_tool_ms_max, &["limits", "own_tool_ms_max"], "in milliseconds: 600000"),
            (section.limits.approval_ms_max, &["limits", "approval_ms_max"], "in milliseconds: 600000"),
        ];
        match zeros.into_iter().find(|(value, ..)| *value == Some(0)) {
            Some((_, path, help)) => {
                let name = path.last().copied().unwrap_or_default();
                Err(error(path, &format!("`{name}` must not be 0")).help(help))
            }
            None => Ok(()),
        }
    }

    /// Compiles a prompt; a mistake is reported at its position in the file.
    fn template(&self, prompt: &Spanned<String>) -> Result<PromptTemplate, ConfigError> {
        PromptTemplate::compile(prompt.get_ref()).map_err(|error| {
            let file = &self.file.source;
            let written = file.text.get(prompt.span()).unwrap_or_default();
            // Escapes shift positions between the file and the text; the error is then about the whole
            // prompt.
            let config_error = match written.find(prompt.get_ref().as_str()) {
                Some(offset) => {
                    let start = prompt.span().start + offset;
                    let span = start + error.span.start..start + error.span.end;
                    ConfigError::in_file(&file.file, &file.text, span, &error.message)
                }
                None => {
                    let message = format!(
                        "{} (line {}, column {} of the prompt)",
                        error.message, error.line, error.column
                    );
                    self.file.error(prompt, message)
                }
            };
            match error.help {
                Some(help) => config_error.help(help),
                None => config_error,
            }
        })
    }

    /// The mode that the environment or a flag sets for an agent on this upstream, else its own.
    fn resolve_mode(&self, models: &[UpstreamChoice], own: ToolMode) -> Result<ToolMode, ConfigError> {
        let mut mode = own;
        let upstream = models.first().map(|choice| env_suffix(&choice.name)).unwrap_or_default();
        for variable in ["THROUGHLINE_MODE".to_owned(), format!("THROUGHLINE_MODE_{upstream}")] {
            if let Some(text) = self.variable(&variable) {
                mode = parse_mode(&text, &|message| ConfigError::in_environment(&variable, message))?;
            }
        }
        if let Some(text) = &self.flags.mode {
            mode = parse_mode(text, &|message| ConfigError::in_flag("--mode", message))?;
        }
        Ok(mode)
    }

    /// `upstream/model`; a known upstream that the file does not mention comes into being here.
    fn model(
        &self,
        text: &str,
        upstreams: &mut BTreeMap<String, Upstream>,
        error_at: ConfigErrorAt<'_>,
    ) -> Result<UpstreamChoice, ConfigError> {
        if text == DEMO {
            return Ok(UpstreamChoice { name: DEMO.to_owned(), model: DEMO.to_owned() });
        }
        let choice = parse_model(text).map_err(|message| {
            let is_upstream = upstreams.contains_key(text) || providers::find(text).is_some();
            error_at(message).help(if is_upstream {
                format!(
                    "this is an upstream; `throughline connect {text}` lists its models: use {text}/MODEL"
                )
            } else {
                "for example \"openai/gpt-5-mini\"; `demo` is built in".to_owned()
            })
        })?;
        if choice.name == DEMO || upstreams.contains_key(&choice.name) {
            return Ok(choice);
        }
        match Upstream::known(&choice.name) {
            Ok(upstream) => {
                upstreams.insert(choice.name.clone(), self.with_environment(upstream)?);
                Ok(choice)
            }
            Err(_) => {
                let names: Vec<&str> =
                    upstreams.keys().map(String::as_str).chain(providers::names()).chain([DEMO]).collect();
                let message = format!("there is no upstream `{}`", choice.name);
                Err(error_at(message).valid_names(&choice.name, names))
            }
        }
    }

    /// The model of a flag or variable: where the file has one upstream, its models need no other name.
    fn chosen_model(&self, text: &str) -> String {
        let mut configured = self.file.upstreams.keys();
        let is_plain = !text.contains('/') && text != DEMO && providers::find(text).is_none();
        match (configured.next(), configured.next()) {
            (Some(only), None) if is_plain && text != only => format!("{only}/{text}"),
            _ => text.to_owned(),
        }
    }

    /// The agent that answers, with the model that the environment or a flag sets for it.
    fn choose_agent(
        &self,
        agents: &mut BTreeMap<String, Agent>,
        upstreams: &mut BTreeMap<String, Upstream>,
    ) -> Result<String, ConfigError> {
        const MODEL: &str = "THROUGHLINE_MODEL";
        const AGENT: &str = "THROUGHLINE_AGENT";
        let model = match (&self.flags.model, self.variable(MODEL)) {
            (Some(text), _) => {
                let text = self.chosen_model(text);
                Some(self.model(&text, upstreams, &|message| ConfigError::in_flag("--model", message))?)
            }
            (None, Some(text)) => {
                let text = self.chosen_model(&text);
                Some(self.model(&text, upstreams, &|message| ConfigError::in_environment(MODEL, message))?)
            }
            (None, None) => None,
        };
        let named = match (&self.flags.agent, self.variable(AGENT)) {
            (Some(name), _) => Some((name.clone(), ConfigError::in_flag("--agent", ""))),
            (None, Some(name)) => Some((name, ConfigError::in_environment(AGENT, ""))),
            (None, None) => None,
        };
        let name = match named {
            Some((name, _)) if agents.contains_key(&name) => name,
            // Without a file the only agent is the default one.
            Some((name, _)) if name == DEFAULT_AGENT && agents.is_empty() => name,
            Some((name, error)) => {
                let error = ConfigError { message: format!("there is no agent `{name}`"), ..error };
                return Err(error.valid_names(&name, agents.keys().map(String::as_str)));
            }
            None if agents.contains_key(DEFAULT_AGENT) || agents.is_empty() => DEFAULT_AGENT.to_owned(),
            None => match (agents.keys().next(), agents.len()) {
                (Some(only), 1) => only.clone(),
                _ => {
                    let names = agents.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                    let message = format!("there are several agents ({names}), but none is named `default`");
                    return Err(ConfigError::whole_file(&self.file.source.file, message)
                        .help("select one with --agent, or name one `default`"));
                }
            },
        };
        match (agents.get_mut(&name), model) {
            (Some(agent), Some(model)) => {
                // A model that is named explicitly has no fallbacks.
                agent.models = vec![model];
                agent.mode = self.resolve_mode(&agent.models, agent.mode)?;
            }
            (Some(_), None) => {}
            (None, model) => {
                if model.is_none() && !self.file.upstreams.is_empty() {
                    let message = "the file configures upstreams but no agent, so no model is selected";
                    return Err(ConfigError::whole_file(&self.file.source.file, message)
                        .help("add [agents.default] with model = \"upstream/model\", or use --model"));
                }
                let demo = || UpstreamChoice { name: DEMO.to_owned(), model: DEMO.to_owned() };
                let models = vec![model.unwrap_or_else(demo)];
                let mode = self.resolve_mode(&models, ToolMode::Auto)?;
                let mut agent = Agent { mode, ..Agent::new(name.clone(), models) };
                // The demo model announces that its calls run in parallel.
                if agent.models.iter().all(|choice| choice.name == DEMO) {
                    agent.tool_call.execution = ExecutionMode::Parallel;
                }
                agents.insert(name.clone(), agent);
            }
        }
        Ok(name)
    }

    /// An empty variable counts as unset.
    fn variable(&self, name: &str) -> Option<String> {
        self.environment.get(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }
}

/// `llama.cpp` as part of a variable's name: `LLAMA_CPP`.
fn env_suffix(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

fn parse_streaming(text: &str, error_at: ConfigErrorAt<'_>) -> Result<StreamingSetting, ConfigError> {
    StreamingSetting::from_name(text)
        .ok_or_else(|| error_at(format!("`streaming` must be `on`, `off` or `auto`, not `{text}`")))
}

fn parse_mode(text: &str, error_at: ConfigErrorAt<'_>) -> Result<ToolMode, ConfigError> {
    ToolMode::from_name(text)
        .ok_or_else(|| error_at(format!("there is no mode `{text}`")).valid_names(text, ToolMode::NAMES))
}

fn parse_call_mode(text: &str, error_at: ConfigErrorAt<'_>) -> Result<CallStartMode, ConfigError> {
    match text {
        "auto" => Ok(CallStartMode::Auto),
        "manual" => Ok(CallStartMode::Manual),
        "native" | "text" => {
            let message = format!(
                "`tool_call.mode` must be `auto` or `manual`, not `{text}`: it decides whether calls need approval"
            );
            let help = format!(
                "for native or text tool calls, set `mode = \"{text}\"` of the agent, next to its model"
            );
            Err(error_at(message).help(help))
        }
        other => {
            let message = format!("`tool_call.mode` must be `auto` or `manual`, not `{other}`");
            Err(error_at(message).valid_names(other, ["auto", "manual"]))
        }
    }
}

/// The text rules of an agent. A mistake is reported at its rule: deserialization reports only the whole
/// list.
fn resolve_text_rules(
    file: &ConfigFile,
    rules: &[Spanned<TextRuleSettings>],
) -> Result<Vec<TextRule>, ConfigError> {
    match rules.get(TEXT_RULES_MAX) {
        Some(rule) => {
            let message = format!("an agent can have at most {TEXT_RULES_MAX} text rules");
            Err(file
                .error(rule, message)
                .help("join patterns with `|`, or remove rules that are not enabled"))
        }
        None => rules
            .iter()
            .map(|rule| {
                TextRule::new(rule.get_ref().clone()).map_err(|error| file.error(rule, error.to_string()))
            })
            .collect(),
    }
}

/// The rules of an agent. A rule without a condition would decide about every call and is most often an incomplete
/// entry, so it is an error.
fn resolve_rules(file: &ConfigFile, rules: &[Spanned<PolicyRule>]) -> Result<Vec<PolicyRule>, ConfigError> {
    match rules.iter().find(|rule| rule.get_ref().is_unconditional()) {
        Some(rule) => {
            let error = file.error(rule, "this rule has no condition".to_owned());
            Err(error
                .help("set `tool`, `source`, `effect` or `arguments`; `tool = \"*\"` matches every call"))
        }
        None => Ok(rules.iter().map(|rule| rule.get_ref().clone()).collect()),
    }
}
