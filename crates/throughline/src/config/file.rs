//! Structure of `throughline.toml`, field by field. Nothing else is accepted.

use super::error::ConfigError;
use super::hints;
use super::serving::{ServerSection, StoreSection};
use crate::agent::{AgentLimitsSection, ResultRole, SteeringMode, TextProtocolKind, ToolMode, ToolStartMode};
use crate::upstream::StreamingSetting;
use crate::upstream::models::ModelFacts;
use crate::voice::{EarsSection, VoiceSection};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::{BTreeMap, BTreeSet};
use throughline_engine::{
    LoopGuard, OnInterrupted, PermissionPreset, PolicyRule, RetryPolicy, TextRuleSettings, TurnLimits,
};
use throughline_tools::command::CommandTool;
use throughline_tools::http_tool::HttpTool;
use throughline_tools::mcp::McpServer;
use throughline_tools::vcp_plugin::VcpPlugins;
use throughline_tools::web_search::WebSearchSettings;
use throughline_wire::{
    DecodeLimits, HostedToolKind, LeakedCalls, ReasoningEcho, ToolIdFormat, ToolSchemaForm, UpstreamProfile,
};
use toml::Spanned;

/// The file.
///
/// ```
/// let file = throughline::config::ConfigFile::parse("throughline.toml", r#"
///     [upstreams.deepseek]
///     known = "deepseek"
///
///     [agents.default]
///     model = "deepseek/deepseek-chat"
///     tool_call = { enabled = true, max_iterations = 8 }
/// "#)?;
/// assert_eq!(file.agents["default"].tool_call.max_iterations, 8);
///
/// let error = throughline::config::ConfigFile::parse("throughline.toml", "[agents.a]\nmodle = \"x/y\"").unwrap_err();
/// assert!(error.to_string().contains("did you mean `model`?"), "{error}");
/// # Ok::<(), throughline::config::ConfigError>(())
/// ```
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConfigFile {
    /// Model endpoints by the name that `model = "upstream/model"` uses.
    pub upstreams: BTreeMap<String, Spanned<UpstreamSection>>,
    /// Facts about models that the built-in table lacks or that have changed: `[models."gpt-4o"]`, or
    /// `[models."upstream/model"]`.
    pub models: BTreeMap<String, ModelFacts>,
    /// Agents by name; `default` answers when none is named.
    pub agents: BTreeMap<String, AgentSection>,
    /// Bounds, for all agents.
    pub limits: LimitsSection,
    /// Settings of built-in tools.
    pub tools: ToolsSection,
    /// The user.
    pub user: UserSection,
    /// MCP servers by name.
    pub mcp: BTreeMap<String, Spanned<McpServer>>,
    /// Programs that are tools, by name.
    pub commands: BTreeMap<String, CommandTool>,
    /// HTTP endpoints that are tools, by name.
    pub http_tools: BTreeMap<String, HttpTool>,
    /// Plugin folders of VCP.
    pub vcp_plugins: VcpPlugins,
    /// The tool `web.search`.
    pub web_search: Option<WebSearchSettings>,
    /// Speech engines, by name.
    pub voices: BTreeMap<String, Spanned<VoiceSection>>,
    /// Transcription engines, by name.
    pub ears: BTreeMap<String, Spanned<EarsSection>>,
    /// `throughline serve`: address, authentication and limits.
    pub server: ServerSection,
    /// Storage settings.
    pub store: StoreSection,
    #[serde(skip)]
    pub(crate) source: ConfigSource,
}

/// Keys by the names of earlier releases, which are still read: section, old name, new name.
const RENAMED_KEYS: [([&str; 2], &str, &str); 2] = [
    (["server", "limits"], "behind_bytes_max", "viewer_backlog_bytes_max"),
    (["server", "limits"], "behind_ms_max", "viewer_stall_ms_max"),
];

/// A key under the name of an earlier release. It still works; new files use the new name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenamedKey {
    /// Section of the key, such as `server.limits`.
    pub section: String,
    /// The name in the file.
    pub old: &'static str,
    /// The name today.
    pub new: &'static str,
}

/// The text itself, for errors that are found later.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfigSource {
    pub(crate) file: String,
    pub(crate) text: String,
}

impl ConfigFile {
    /// Reads the text of a file called `name`.
    pub fn parse(name: &str, text: &str) -> Result<Self, ConfigError> {
        let mut file: ConfigFile =
            toml::from_str(text).map_err(|error| ConfigError::from_toml(name, text, &error))?;
        file.source = ConfigSource { file: name.to_owned(), text: text.to_owned() };
        Ok(file)
    }

    /// Keys of the file that have another name today, to warn about.
    ///
    /// ```
    /// let text = "[server]\nlimits = { behind_ms_max = 5000 }";
    /// let file = throughline::config::ConfigFile::parse("throughline.toml", text)?;
    /// assert_eq!(file.server.limits.as_ref().map(|limits| limits.get_ref().viewer_stall_ms_max), Some(5_000));
    /// assert_eq!(file.renamed_keys()[0].new, "viewer_stall_ms_max");
    /// # Ok::<(), throughline::config::ConfigError>(())
    /// ```
    pub fn renamed_keys(&self) -> Vec<RenamedKey> {
        let Ok(table) = self.source.text.parse::<toml::Table>() else { return Vec::new() };
        let found = RENAMED_KEYS.into_iter().filter(|(section, old, _)| {
            let section = section.iter().try_fold(&table, |table, name| table.get(*name)?.as_table());
            section.is_some_and(|section| section.contains_key(*old))
        });
        found.map(|(section, old, new)| RenamedKey { section: section.join("."), old, new }).collect()
    }

    /// Reads a file from disk.
    pub fn load(path: &std::path::Path) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&name, &text),
            Err(error) => {
                let message = format!("cannot read the configuration: {error}");
                let help = "check the path (--config, THROUGHLINE_CONFIG); by default, throughline.toml in the \
                 current folder is read if it exists";
                Err(ConfigError::whole_file(&name, message).help(help))
            }
        }
    }

    /// An error at a key of a section whose settings do not record positions; at the section if the key is
    /// not on a line of its own.
    pub(crate) fn error_at_key<T>(
        &self,
        section: &Spanned<T>,
        key: Option<&str>,
        message: impl Into<String>,
    ) -> ConfigError {
        let ConfigSource { file, text } = &self.source;
        let span = key.and_then(|key| find_key(text, section.span().start, key)).unwrap_or(section.span());
        ConfigError::in_file(file, text, span, message)
    }

    /// An error at the value of this path; for the file as a whole if the path does not occur in it.
    pub(crate) fn error_at_path(&self, path: &[&str], message: impl Into<String>) -> ConfigError {
        let ConfigSource { file, text } = &self.source;
        match hints::value_span(text, path) {
            Some(span) => ConfigError::in_file(file, text, span, message),
            None => ConfigError::whole_file(file, message),
        }
    }

    pub(crate) fn error<T>(&self, at: &Spanned<T>, message: impl Into<String>) -> ConfigError {
        ConfigError::in_file(&self.source.file, &self.source.text, at.span(), message)
    }
}

/// Position of a key of the section that starts at `start`, if it begins a line.
fn find_key(text: &str, start: usize, key: &str) -> Option<std::ops::Range<usize>> {
    let mut at = text.get(..start)?.rfind('\n').map_or(0, |newline| newline + 1);
    for (position, line) in text[at..].split_inclusive('\n').enumerate() {
        let trimmed = line.trim_start();
        if position > 0 && trimmed.starts_with('[') {
            return None;
        }
        let begin = at + line.len() - trimmed.len();
        if trimmed.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(['=', '.'])) {
            return Some(begin..begin + key.len());
        }
        at += line.len();
    }
    None
}

/// `[upstreams.NAME]`: either `known`, or `dialect` and `base_url`; other keys override those of `known`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UpstreamSection {
    /// A name in [`providers`](crate::providers).
    pub known: Option<Spanned<String>>,
    /// `openai-chat`, `openai-responses`, `anthropic`, `gemini`, `ollama`, `cohere`, `bedrock-converse`, `bedrock-anthropic`.
    pub dialect: Option<Spanned<String>>,
    /// Base URL, to which the dialect's path is appended.
    pub base_url: Option<Spanned<String>>,
    /// The environment variable that holds the key. A key itself is never written into the file.
    pub key_env: Option<Spanned<String>>,
    /// Further headers. `"$NAME"` takes the value of an environment variable.
    pub headers: BTreeMap<String, Spanned<String>>,
    /// `on` (default), `off`: ask for whole replies, or `auto`: ask for a whole reply where a stream breaks before its
    /// first content.
    pub streaming: Option<StreamingSetting>,
    /// `system` (default: the environment's proxies), `off`, or a URL.
    pub proxy: Option<Spanned<String>>,
    /// Tools of the provider that every request switches on: `web_search`, `code_execution`.
    pub hosted: Option<Spanned<Vec<HostedToolKind>>>,
    /// Time limits.
    pub timeouts: TimeoutsSection,
    /// Quirks that differ from those of `known`.
    pub profile: ProfileSection,
}

/// Reads `"on"` or `"off"`.
pub(super) fn on_or_off<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum OnOff {
        On,
        Off,
    }
    Ok(Some(matches!(OnOff::deserialize(deserializer)?, OnOff::On)))
}

/// `timeouts = { … }` of an upstream, in milliseconds; defaults in [`UpstreamTimeouts`](crate::UpstreamTimeouts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TimeoutsSection {
    /// Limit for connecting.
    pub connect_ms: Option<u64>,
    /// Limit from the request to the first byte of the body.
    pub first_byte_ms: Option<u64>,
    /// Between two pieces of the body.
    pub idle_ms: Option<u64>,
    /// Limit for the whole call.
    pub total_ms: Option<u64>,
}

/// `profile = { … }` of an upstream; each field as in [`UpstreamProfile`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs, reason = "fields are documented in throughline_wire::UpstreamProfile")]
pub struct ProfileSection {
    pub cumulative_arguments: Option<bool>,
    pub placeholder_arguments: Option<bool>,
    pub sequential_calls: Option<bool>,
    pub finish_reason_ends: Option<bool>,
    pub leaked_calls: Option<LeakedCalls>,
    pub reasoning_echo: Option<ReasoningEcho>,
    pub tool_id_format: Option<ToolIdFormat>,
    pub include_usage: Option<bool>,
    pub encrypted_reasoning: Option<bool>,
    pub vision: Option<bool>,
    pub pictures_max: Option<u32>,
    pub picture_base64_max: Option<u32>,
    pub audio: Option<bool>,
    pub fetches_images: Option<bool>,
    pub tool_choice_none: Option<bool>,
    pub tool_choice_required: Option<bool>,
    pub strict_tools: Option<bool>,
    pub tool_choice_while_thinking: Option<bool>,
    pub thinks_unasked: Option<bool>,
    pub cache_control: Option<bool>,
    pub eager_arguments: Option<bool>,
    pub prompt_cache_key: Option<bool>,
    pub tool_schemas: Option<ToolSchemaForm>,
    pub tools_max: Option<u32>,
    pub user_after_tool: Option<bool>,
    pub max_completion_tokens: Option<bool>,
    pub leave_out: Option<BTreeSet<String>>,
    pub developer_role: Option<bool>,
}

impl ProfileSection {
    pub(crate) fn over(self, base: UpstreamProfile) -> UpstreamProfile {
        UpstreamProfile {
            cumulative_arguments: self.cumulative_arguments.unwrap_or(base.cumulative_arguments),
            placeholder_arguments: self.placeholder_arguments.unwrap_or(base.placeholder_arguments),
            sequential_calls: self.sequential_calls.unwrap_or(base.sequential_calls),
            finish_reason_ends: self.finish_reason_ends.unwrap_or(base.finish_reason_ends),
            leaked_calls: self.leaked_calls.unwrap_or(base.leaked_calls),
            reasoning_echo: self.reasoning_echo.unwrap_or(base.reasoning_echo),
            tool_id_format: self.tool_id_format.unwrap_or(base.tool_id_format),
            include_usage: self.include_usage.unwrap_or(base.include_usage),
            encrypted_reasoning: self.encrypted_reasoning.unwrap_or(base.encrypted_reasoning),
            vision: self.vision.unwrap_or(base.vision),
            pictures_max: self.pictures_max.or(base.pictures_max),
            picture_base64_max: self.picture_base64_max.or(base.picture_base64_max),
            audio: self.audio.unwrap_or(base.audio),
            fetches_images: self.fetches_images.unwrap_or(base.fetches_images),
            tool_choice_none: self.tool_choice_none.unwrap_or(base.tool_choice_none),
            tool_choice_required: self.tool_choice_required.unwrap_or(base.tool_choice_required),
            strict_tools: self.strict_tools.unwrap_or(base.strict_tools),
            tool_choice_while_thinking: self
                .tool_choice_while_thinking
                .unwrap_or(base.tool_choice_while_thinking),
            thinks_unasked: self.thinks_unasked.unwrap_or(base.thinks_unasked),
            cache_control: self.cache_control.unwrap_or(base.cache_control),
            eager_arguments: self.eager_arguments.unwrap_or(base.eager_arguments),
            prompt_cache_key: self.prompt_cache_key.unwrap_or(base.prompt_cache_key),
            tool_schemas: self.tool_schemas.unwrap_or(base.tool_schemas),
            // Zero removes the limit of a known upstream.
            tools_max: self.tools_max.map_or(base.tools_max, |most| Some(most).filter(|most| *most > 0)),
            refused_tools: base.refused_tools,
            user_after_tool: self.user_after_tool.unwrap_or(base.user_after_tool),
            max_completion_tokens: self.max_completion_tokens.unwrap_or(base.max_completion_tokens),
            leave_out: self.leave_out.unwrap_or(base.leave_out),
            developer_role: self.developer_role.unwrap_or(base.developer_role),
        }
    }
}

/// `[agents.NAME]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSection {
    /// `upstream/model`; the upstream is a section of the file or a known name.
    pub model: Spanned<String>,
    /// Models to fall back to, before the first token only, when this one is unavailable.
    #[serde(default)]
    pub fallback: Vec<Spanned<String>>,
    /// Transport of tool calls: `native`, `text` or `auto`. Default auto.
    #[serde(default)]
    pub mode: Option<ToolMode>,
    /// Template of the system prompt.
    #[serde(default)]
    pub prompt: Option<Spanned<String>>,
    /// 0 to 2.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// Most tokens to generate in a step.
    #[serde(default)]
    pub max_output_tokens: Option<u32>,
    /// Tools of the models' providers: `web_search`, `code_execution`. Default: none.
    #[serde(default)]
    pub hosted: Option<Spanned<Vec<HostedToolKind>>>,
    /// Further fields of the request body, merged at the top level as they are.
    #[serde(default)]
    pub extra: toml::Table,
    /// Tools. An agent without it has none.
    #[serde(default)]
    pub tool_call: ToolCallSection,
    /// Rules for what may run without approval and what may not run at all: `[[agents.NAME.policy]]`. The first rule
    /// that matches decides; without one the tool's effect does.
    #[serde(default)]
    pub policy: Vec<Spanned<PolicyRule>>,
    /// Permission preset: `read_only`, `workspace` or `everything`, as rules after those of `policy`. Default
    /// none.
    #[serde(default)]
    pub permissions: Option<PermissionPreset>,
    /// Rules that rewrite the text shown to people or sent to the model: `[[agents.NAME.text_rules]]`, in
    /// order of application.
    #[serde(default)]
    pub text_rules: Vec<Spanned<TextRuleSettings>>,
    /// Limits on a model that repeats itself without progress.
    #[serde(default)]
    pub guard: LoopGuard,
    /// Handling of messages that the user sends while a reply is running. Default: at the next step.
    #[serde(default)]
    pub steering: SteeringMode,
    /// Recovery of a turn whose process died: `continue`, or `end`. Default continue.
    #[serde(default = "goes_on")]
    pub on_interrupted: OnInterrupted,
    /// Bounds of this agent's turns that differ from `[limits.turn]`.
    #[serde(default)]
    pub limits: AgentLimitsSection,
}

fn goes_on() -> OnInterrupted {
    OnInterrupted::Continue
}

/// `tool_call = { … }` of an agent.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolCallSection {
    /// Enables tools for the agent. Default false.
    pub enabled: bool,
    /// `auto`: calls run as the rules allow; `manual`: each waits for a person, without expiry. Default auto.
    // A string, so that the error for a former value can name the setting that replaced it.
    pub mode: Option<Spanned<String>>,
    /// A group or one method, on or off; the more exact name wins. Default none.
    pub tool_toggles: BTreeMap<String, bool>,
    /// Default for tools that are not listed. Default true.
    pub default_tool_enabled: bool,
    /// Steps with calls in a turn. Default 5.
    pub max_iterations: u32,
    /// Time limit of a tool that sets none, in milliseconds. Default 30,000.
    pub timeout_ms: u64,
    /// Asks before every call, regardless of its effect. Default false.
    pub require_confirmation: bool,
    /// Runs the calls of a step in parallel. Default false.
    pub parallel_execution: bool,
    /// Protocol of text mode: `vcp` or `xml`. Default vcp.
    pub protocol: TextProtocolKind,
    /// Moment at which tools without side effects start. Default eager.
    pub start: ToolStartMode,
    /// Role of tool results in text mode: `user` or `tool`. Default user.
    pub results: ResultRole,
}

impl Default for ToolCallSection {
    fn default() -> Self {
        Self {
            enabled: false,
            mode: None,
            tool_toggles: BTreeMap::new(),
            default_tool_enabled: true,
            max_iterations: 5,
            timeout_ms: 30_000,
            require_confirmation: false,
            parallel_execution: false,
            protocol: TextProtocolKind::Vcp,
            start: ToolStartMode::Eager,
            results: ResultRole::User,
        }
    }
}

/// `[limits]`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsSection {
    /// Bounds of a turn. `iterations_max` is the agent's `tool_call.max_iterations`, which wins.
    pub turn: TurnLimits,
    /// Bounds of the decoder.
    pub decode: DecodeLimits,
    /// Retries of a model call before its first token.
    pub retry: RetryPolicy,
}

/// `[user]`: values for templates. They are sent only if a template uses them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UserSection {
    /// `{{ user }}`. Default `the user`.
    pub name: Option<String>,
    /// Time zone of `{{ date }}` and `{{ time }}`, such as `Asia/Shanghai`. Default: this machine's.
    pub time_zone: Option<Spanned<String>>,
}

/// `[tools.…]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolsSection {
    /// Longest time that the first turn waits for sources of tools, in milliseconds. Default 10,000
    /// ([`SOURCES_WAIT_MAX`](crate::SOURCES_WAIT_MAX)).
    pub wait_ms: Option<u64>,
    /// User that runs programs of tools (commands, MCP servers that are started, plugins): a name of
    /// `/etc/passwd` or a number. Default: ours. Only root can become another one.
    pub run_as: Option<String>,
    /// Control groups for programs of `throughline serve`: `auto` (default: where one was delegated), `off`, or the folder of
    /// one.
    pub control_groups: Option<String>,
    /// `files.list`, `files.read`, `files.search`.
    pub files: FilesSection,
    /// `http.fetch`.
    pub http: HttpSection,
}

/// `[tools.files]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FilesSection {
    /// Folders that may be read; none = the tools are not offered.
    pub roots: Vec<std::path::PathBuf>,
}

/// `[tools.http]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpSection {
    /// Ports that may be dialled, on top of 80 and 443. Private addresses never are.
    pub ports: Vec<u16>,
    /// Hosts that are fetched without asking: `docs.rs`, `*.example.org` (all subdomains), `*` (all hosts).
    /// Other hosts ask once per conversation, unless a person named them there.
    #[serde(deserialize_with = "host_patterns")]
    pub hosts: Vec<String>,
}

/// Rejects addresses, which would match no host.
fn host_patterns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let patterns = Vec::<String>::deserialize(deserializer)?;
    let is_host_char = |c: char| !c.is_whitespace() && !"/:@*?#[]\\".contains(c);
    let is_pattern = |pattern: &String| {
        let host = pattern.strip_prefix("*.").unwrap_or(pattern);
        pattern == "*" || (!host.is_empty() && host.chars().all(is_host_char))
    };
    match patterns.iter().find(|pattern| !is_pattern(pattern)) {
        Some(pattern) => Err(D::Error::custom(format!(
            "`{pattern}` is not a host pattern: use `docs.rs`, `*.example.org` for all subdomains, or `*` for all hosts"
        ))),
        None => Ok(patterns),
    }
}
