//! An agent as a JSON value: the fields of `[agents.NAME]`, with the same checks and messages as in the file. Errors
//! give the path of the field instead of line and column.
//!
//! A value can never do more than the file: it is converted to the file's form and read by the same code. It can do
//! less: it selects among the configured upstreams and never defines one.

use super::file::ConfigFile;
use super::resolve::{ConfigFlags, DEMO, EnvVars, resolve_agent};
use super::{ConfigError, ConfigLocation};
use crate::agent::prompt::PromptTemplate;
use crate::agent::{Agent, AgentLimitsSection, CallStartMode, ConfirmationMode, ToolStartMode, parse_model};
use crate::upstream::Upstream;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use throughline_engine::{ExecutionMode, StartRule, TurnLimits};
use throughline_tools::ToolToggle;

/// Longest name of an agent, in characters.
pub const AGENT_NAME_CHARS_MAX: usize = 64;

/// One mistake in a value, with the field that has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct FieldError {
    /// The field: `tool_call.max_iterations`, `policy[0].decide`, `tool_call.tool_toggles."files.read"`. Empty = the whole.
    pub path: String,
    /// The mistake.
    pub message: String,
    /// The valid alternative, if known.
    pub help: Option<String>,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.message)?,
            path => write!(f, "{path}: {}", self.message)?,
        }
        self.help.as_ref().map_or(Ok(()), |help| write!(f, "; {help}"))
    }
}

impl FieldError {
    fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), help: None }
    }
}

/// Reads an agent. Its models must be at one of `upstreams`.
pub(crate) fn agent_from_settings(
    name: &str,
    settings: &Value,
    upstreams: &BTreeMap<String, Upstream>,
) -> Result<Agent, FieldError> {
    check_name(name)?;
    let Value::Object(settings) = settings else {
        return Err(FieldError::new("", "agent settings must be an object"));
    };
    if let Some(Value::String(prompt)) = settings.get("prompt") {
        check_prompt(prompt)?;
    }
    let mut toml = SettingsToml::default();
    toml.write_section(settings)?;
    let file = ConfigFile::parse("agent", &toml.text).map_err(|error| toml.field_error(&error, upstreams))?;
    let Some(section) = file.agents.get(AGENT) else {
        return Err(FieldError::new("", "agent settings must be an object"));
    };
    for model in std::iter::once(&section.model).chain(&section.fallback) {
        let text = model.get_ref().as_str();
        let wanted = match text {
            DEMO => DEMO,
            // A text that is no `upstream/model` is reported by the parser below.
            _ => match text.split_once('/') {
                Some((upstream, _)) => upstream,
                None => continue,
            },
        };
        if parse_model(text).is_ok() || text == DEMO {
            let exists = upstreams.contains_key(wanted);
            if !exists {
                let error = file
                    .error(model, format!("there is no upstream `{wanted}`"))
                    .valid_names(wanted, upstreams.keys().map(String::as_str));
                return Err(toml.field_error(&error, upstreams));
            }
        }
    }
    // Environment and flags apply to the agents of the file.
    let (environment, flags) = (EnvVars::new(), ConfigFlags::default());
    resolve_agent(&file, &environment, &flags, name, section, upstreams.clone())
        .map_err(|error| toml.field_error(&error, upstreams))
}

/// Names are parts of addresses and of `model` fields, and those of upstreams come before a `/`.
fn check_name(name: &str) -> Result<(), FieldError> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let length = name.chars().count();
    if length == 0 || length > AGENT_NAME_CHARS_MAX || !name.chars().all(is_plain) || name.starts_with('.') {
        return Err(FieldError {
            path: "name".into(),
            message: format!("`{name}` is not a valid agent name"),
            help: Some(format!(
                "use 1 to {AGENT_NAME_CHARS_MAX} letters, digits, `-`, `_` or `.`, not starting with `.`"
            )),
        });
    }
    Ok(())
}

fn check_prompt(prompt: &str) -> Result<(), FieldError> {
    PromptTemplate::compile(prompt).map(drop).map_err(|error| FieldError {
        path: "prompt".into(),
        message: format!("{} (line {}, column {} of the prompt)", error.message, error.line, error.column),
        help: error.help,
    })
}

/// The section's name in the text that is made of a value; the agent's own may need quoting.
const AGENT: &str = "it";

/// A value written as TOML, with the position of each field.
#[derive(Default)]
struct SettingsToml {
    text: String,
    field_spans: Vec<(Range<usize>, String)>,
}

impl SettingsToml {
    fn write_section(&mut self, settings: &Map<String, Value>) -> Result<(), FieldError> {
        self.text.push_str("[agents.it]\n");
        for (key, value) in settings.iter().filter(|(_, value)| !value.is_null()) {
            self.write_member("", key, value)?;
            self.text.push('\n');
        }
        Ok(())
    }

    fn write_member(&mut self, of: &str, key: &str, value: &Value) -> Result<(), FieldError> {
        let path = join_path(of, key);
        self.with_span(&path, |toml| {
            toml.write_string(key);
            Ok(())
        })?;
        self.text.push_str(" = ");
        self.with_span(&path, |toml| toml.write_value(&path, value))
    }

    fn with_span(
        &mut self,
        path: &str,
        write: impl FnOnce(&mut Self) -> Result<(), FieldError>,
    ) -> Result<(), FieldError> {
        let start = self.text.len();
        write(self)?;
        self.field_spans.push((start..self.text.len(), path.to_owned()));
        Ok(())
    }

    fn write_value(&mut self, path: &str, value: &Value) -> Result<(), FieldError> {
        match value {
            Value::Null => return Err(FieldError::new(path, "null is not a value here; leave it out")),
            Value::Bool(true) => self.text.push_str("true"),
            Value::Bool(false) => self.text.push_str("false"),
            Value::Number(number) if number.is_u64() && !number.is_i64() => {
                return Err(FieldError::new(path, format!("the number {number} is too large")));
            }
            Value::Number(number) => self.text.push_str(&number.to_string()),
            Value::String(text) => self.write_string(text),
            Value::Array(items) => {
                self.text.push('[');
                for (at, item) in items.iter().enumerate() {
                    let path = format!("{path}[{at}]");
                    self.with_span(&path, |toml| toml.write_value(&path, item))?;
                    self.text.push_str(", ");
                }
                self.text.push(']');
            }
            Value::Object(members) => {
                // A null member counts as absent; fields that are sent to the upstream unchanged may be null.
                let is_set = |value: &Value| !value.is_null() || is_extra_path(path);
                self.text.push('{');
                for (at, (key, value)) in members.iter().filter(|(_, value)| is_set(value)).enumerate() {
                    self.text.push_str(if at == 0 { " " } else { ", " });
                    self.write_member(path, key, value)?;
                }
                self.text.push_str(" }");
            }
        }
        Ok(())
    }

    fn write_string(&mut self, text: &str) {
        self.text.push('"');
        for c in text.chars() {
            match c {
                '"' => self.text.push_str("\\\""),
                '\\' => self.text.push_str("\\\\"),
                c if c.is_control() => self.text.push_str(&format!("\\u{:04X}", u32::from(c))),
                c => self.text.push(c),
            }
        }
        self.text.push('"');
    }

    /// The innermost field that contains the position of an error.
    fn field_error(&self, error: &ConfigError, upstreams: &BTreeMap<String, Upstream>) -> FieldError {
        let at = match &error.location {
            ConfigLocation::File { line, column, .. } => self.byte_offset(*line, *column),
            _ => None,
        };
        let around = |at: usize| self.field_spans.iter().filter(move |(range, _)| range.contains(&at));
        let field = at.and_then(|at| around(at).min_by_key(|(range, _)| range.len()));
        let mut path = field.map(|(_, path)| path.clone()).unwrap_or_default();
        if let Some(missing) =
            error.message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'))
        {
            path = join_path(&path, missing);
        }
        let help = match path.as_str() {
            "model" if error.help.is_none() || error.message.starts_with("missing field") => {
                let names: Vec<String> = upstreams.keys().map(|name| format!("`{name}`")).collect();
                Some(format!("use `upstream/model`; configured upstreams: {}", names.join(", ")))
            }
            _ => error.help.clone(),
        };
        FieldError { path, message: error.message.clone(), help }
    }

    fn byte_offset(&self, line: usize, column: usize) -> Option<usize> {
        let start = match line.checked_sub(2) {
            None => 0,
            Some(before) => self.text.match_indices('\n').nth(before)?.0 + 1,
        };
        let within = self.text.get(start..)?.char_indices().nth(column.checked_sub(1)?)?;
        Some(start + within.0)
    }
}

fn is_extra_path(path: &str) -> bool {
    path == "extra" || path.starts_with("extra.")
}

fn join_path(path: &str, key: &str) -> String {
    let is_bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    let key = if is_bare { key.to_owned() } else { format!("{key:?}") };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

impl Agent {
    /// The complete settings of this agent, defaults included, as a file or value would state them: to be shown,
    /// edited and read again.
    pub fn to_settings(&self) -> Value {
        let tools = &self.tool_call;
        let mut models =
            self.models.iter().map(|choice| match (choice.name.as_str(), choice.model.as_str()) {
                (DEMO, DEMO) => DEMO.to_owned(),
                (upstream, model) => format!("{upstream}/{model}"),
            });
        let toggles: BTreeMap<&str, bool> =
            tools.toggles.switches().map(|(name, toggle)| (name, toggle == ToolToggle::On)).collect();
        json!({
            "model": models.next(),
            "fallback": models.collect::<Vec<_>>(),
            "mode": self.mode.name(),
            "prompt": self.prompt.as_ref().map(PromptTemplate::source),
            "temperature": self.settings.temperature,
            "max_output_tokens": self.settings.max_output_tokens,
            "hosted": self.settings.hosted,
            "extra": self.settings.extra,
            "tool_call": {
                "enabled": tools.tools == ToolToggle::On,
                "mode": match tools.mode { CallStartMode::Auto => "auto", CallStartMode::Manual => "manual" },
                "tool_toggles": toggles,
                "default_tool_enabled": tools.toggles.default_toggle() == ToolToggle::On,
                "max_iterations": tools.max_iterations,
                "timeout_ms": tools.timeout_ms,
                "require_confirmation": tools.confirmation == ConfirmationMode::Everything,
                "parallel_execution": tools.execution == ExecutionMode::Parallel,
                "protocol": tools.protocol.name(),
                "start": match tools.start {
                    StartRule::AfterStream => ToolStartMode::AfterStream,
                    _ => ToolStartMode::Eager,
                },
                "results": tools.results,
            },
            "policy": self.policy,
            "permissions": self.permissions,
            "text_rules": self.text_rules,
            "guard": self.guard,
            "steering": self.steering,
            "on_interrupted": self.on_interrupted,
            "limits": set_limits(self.limits),
        })
    }

    /// Default settings of an agent under these global limits: every field that has a default.
    pub(crate) fn default_settings(limits: TurnLimits) -> Value {
        let mut default_agent = Agent::new("", Vec::new());
        // A stored agent has tools only if it enables them.
        default_agent.tool_call.tools = ToolToggle::Off;
        let mut settings = default_agent.to_settings();
        let mut limits = json!(limits);
        if let Value::Object(limits) = &mut limits {
            // `tool_call.max_iterations` sets it.
            limits.remove("iterations_max");
        }
        settings["limits"] = limits;
        settings
    }
}

/// Only the fields that are set.
fn set_limits(limits: AgentLimitsSection) -> Value {
    match json!(limits) {
        Value::Object(members) => {
            Value::Object(members.into_iter().filter(|(_, value)| !value.is_null()).collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstreams() -> BTreeMap<String, Upstream> {
        let upstream = |name: &str| {
            let at = Upstream::new(name, throughline_wire::Dialect::OpenaiChat, "http://127.0.0.1:9/v1");
            (name.to_owned(), at.unwrap())
        };
        BTreeMap::from([upstream("demo"), upstream("mine")])
    }

    fn read(settings: Value) -> Result<Agent, FieldError> {
        agent_from_settings("helper", &settings, &upstreams())
    }

    /// Field path, and part of its message.
    fn check(settings: Value, path: &str, says: &str) {
        let error = read(settings.clone()).expect_err(&settings.to_string());
        assert_eq!(error.path, path, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }

    #[test]
    fn invalid_agent_settings_name_their_field() {
        let with = |key: &str, value: Value| {
            let mut settings = json!({"model": "mine/m"});
            settings[key] = value;
            settings
        };
        check(json!({}), "model", "missing field");
        check(json!([]), "", "an object");
        check(json!({"model": 7}), "model", "expected a string");
        check(json!({"model": "mine"}), "model", "is not `upstream/model`");
        check(json!({"model": "mien/m"}), "model", "did you mean `mine`?");
        // Known by name, and still not brought into being: its key would be sent there.
        check(json!({"model": "openai/gpt-5"}), "model", "there is no upstream `openai`");
        check(
            with("fallback", json!(["mine/a", "nowhere/b"])),
            "fallback[1]",
            "there is no upstream `nowhere`",
        );
        check(with("modle", json!("x")), "modle", "did you mean `model`?");
        check(with("mode", json!("txt")), "mode", "did you mean `text`?");
        check(with("prompt", json!("Hi {{ usr }}")), "prompt", "line 1, column 7 of the prompt");
        check(with("prompt", json!("One\nHi {% if %}")), "prompt", "line 2");
        check(with("tool_call", json!({"max_iterations": -1})), "tool_call.max_iterations", "");
        check(
            with("tool_call", json!({"mode": "text"})),
            "tool_call.mode",
            "it decides whether calls need approval",
        );
        check(with("tool_call", json!({"enabeld": true})), "tool_call.enabeld", "did you mean `enabled`?");
        let toggles = json!({"tool_toggles": {"files.read": "yes"}});
        check(with("tool_call", toggles), "tool_call.tool_toggles.\"files.read\"", "expected a boolean");
        check(
            with("policy", json!([{"decide": "allow"}, {"decide": "perhaps"}])),
            "policy[1].decide",
            "perhaps",
        );
        check(with("policy", json!([{"tool": "x"}])), "policy[0].decide", "missing field");
        let good = json!({"pattern": "x", "replace": "y", "in": "shown"});
        let text_rules = |wrong: Value| with("text_rules", json!([good.clone(), wrong]));
        let open = json!({"pattern": "(x", "replace": "y", "in": "shown"});
        check(text_rules(open), "text_rules[1]", "unclosed group");
        check(
            text_rules(json!({"pattern": "x", "replace": "y", "in": "sight"})),
            "text_rules[1].in",
            "sight",
        );
        check(with("limits", json!({"approval_ms_max": u64::MAX})), "limits.approval_ms_max", "too large");
        check(with("extra", json!({"a": {"b": null}})), "extra.a.b", "null is not a value here");
        check(with("fallback", json!([null])), "fallback[0]", "null is not a value here");
        // Settings of the operator are not fields of an agent.
        for foreign in
            ["upstreams", "mcp", "commands", "http_tools", "vcp_plugins", "tools", "roots", "base_url"]
        {
            check(with(foreign, json!({})), foreign, "unknown field");
        }
    }

    #[test]
    fn invalid_agent_names_are_rejected() {
        for name in ["", ".", "..", "a/b", "a b", "a\nb", &"x".repeat(65)] {
            let error = agent_from_settings(name, &json!({"model": "mine/m"}), &upstreams()).unwrap_err();
            assert_eq!(error.path, "name");
        }
        for name in ["a", "研究员", "my-agent_2.1"] {
            agent_from_settings(name, &json!({"model": "mine/m"}), &upstreams()).unwrap();
        }
    }

    #[test]
    fn agent_settings_round_trip() {
        let settings = json!({
            "model": "mine/a/b", "fallback": ["demo"], "mode": "text",
            "prompt": "You are \"{{ agent }}\".\n\tTools:\n{{ tools }}\u{7f}",
            "temperature": 1, "max_output_tokens": 100, "extra": {"top_k": 4, "nested": {"a": [1.5, true]}},
            "tool_call": {
                "enabled": true, "mode": "manual", "tool_toggles": {"files": true, "files.read": false},
                "default_tool_enabled": false, "max_iterations": 9, "timeout_ms": 1000, "require_confirmation": true,
                "parallel_execution": true, "protocol": "xml", "start": "after_stream", "results": "tool",
            },
            "policy": [
                {"decide": "deny", "tool": "commands.*", "arguments": {"/args/0": {"one_of": ["rm"]}}, "reason": "no"},
                {"decide": "allow", "effect": ["write"], "source": "mcp:*"},
            ],
            "guard": {"note_after": 2, "ask_after": 0, "stop_after": 5, "period_max": 3},
            "steering": "after_turn", "on_interrupted": "end", "limits": {"calls_per_turn_max": 3},
        });
        let agent = read(settings).unwrap();
        assert_eq!(agent.tool_call.max_iterations, 9);
        assert_eq!(agent.tool_call.toggles.get(&"files.read".into()), ToolToggle::Off);
        let said = agent.to_settings();
        let again = read(said.clone()).unwrap();
        assert_eq!(again.to_settings(), said);
        assert_eq!(said["prompt"], "You are \"{{ agent }}\".\n\tTools:\n{{ tools }}\u{7f}");
        assert_eq!(said["model"], "mine/a/b");
        assert_eq!(said["fallback"], json!(["demo"]));
        assert_eq!(said["limits"], json!({"calls_per_turn_max": 3}));
        assert_eq!(said["on_interrupted"], "end");
        // An agent without settings has the defaults, and these can be read back.
        let plain = read(json!({"model": "demo", "prompt": null})).unwrap().to_settings();
        assert_eq!(read(plain.clone()).unwrap().to_settings(), plain);
        assert_eq!(plain["tool_call"]["enabled"], false);
    }

    #[test]
    fn default_settings_equal_those_of_a_minimal_agent() {
        let defaults = Agent::default_settings(TurnLimits { calls_per_turn_max: 7, ..TurnLimits::default() });
        let default_agent = read(json!({"model": "demo"})).unwrap().to_settings();
        for (field, value) in default_agent.as_object().unwrap() {
            match field.as_str() {
                // The one field that has none.
                "model" => assert_eq!(defaults[field], Value::Null),
                "limits" => assert_eq!(defaults[field]["calls_per_turn_max"], 7),
                _ => assert_eq!(defaults[field], *value, "{field}"),
            }
        }
        let mut said = defaults;
        said["model"] = json!("demo");
        read(said).expect("whatever has a default can be said");
    }
}
