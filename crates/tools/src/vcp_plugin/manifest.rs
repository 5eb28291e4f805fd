//! `plugin-manifest.json`: the fields that are read, and their meaning.

use super::cron::CronSchedule;
use super::manual::{InvocationCommand, PluginCommand};
use crate::settings::ToolSettingError;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Largest manifest, in bytes; a larger one is refused.
const MANIFEST_BYTES_MAX: u64 = 1024 * 1024;
/// Time limit of a plugin that sets none: as in VCP.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);
/// Default time limit of an asynchronous plugin, including its work after the answer.
const ASYNC_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30 * 60);

/// Unknown fields are other programs' business.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PluginManifest {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    display_name: Option<String>,
    #[serde(default)]
    pub(super) description: Option<String>,
    #[serde(default)]
    plugin_type: String,
    #[serde(default)]
    entry_point: EntryPoint,
    #[serde(default)]
    communication: PluginCommunication,
    /// Name to type, as a text or as a table with a `type`.
    #[serde(default)]
    config_schema: Option<Map<String, Value>>,
    #[serde(default)]
    capabilities: PluginCapabilities,
    #[serde(default)]
    refresh_interval_cron: Option<String>,
    /// True if the plugin needs data that another plugin, a service, has in memory.
    #[serde(default)]
    pub(super) requires_context_bridge: bool,
}

/// Kinds of plugins that are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PluginKind {
    Synchronous,
    Asynchronous,
    Static,
    MessagePreprocessor,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct EntryPoint {
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    script: Option<String>,
    #[serde(default)]
    timeout: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct PluginCommunication {
    #[serde(default)]
    protocol: Option<String>,
    /// Time limit, in milliseconds.
    #[serde(default)]
    timeout: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PluginCapabilities {
    #[serde(default)]
    invocation_commands: Vec<InvocationCommand>,
    #[serde(default)]
    system_prompt_placeholders: Vec<ListedPlaceholder>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct ListedPlaceholder {
    #[serde(default)]
    placeholder: String,
}

impl PluginManifest {
    pub(super) fn read(path: &Path) -> Result<Self, ToolSettingError> {
        let invalid = |why: String| {
            ToolSettingError::new(
                format!("its manifest cannot be used: {why}"),
                "It must be JSON with name, pluginType and entryPoint.",
            )
        };
        let size = std::fs::metadata(path).map_err(|error| invalid(error.to_string()))?.len();
        if size > MANIFEST_BYTES_MAX {
            return Err(invalid(format!("{size} bytes exceed the limit")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| invalid(error.to_string()))?;
        let manifest: Self = serde_json::from_str(text.trim_start_matches('\u{feff}'))
            .map_err(|error| invalid(error.to_string()))?;
        if manifest.name.is_empty() { Err(invalid("it has no name".to_owned())) } else { Ok(manifest) }
    }

    /// # Errors
    /// Why a plugin of this kind is not run here.
    pub(super) fn kind(&self) -> Result<PluginKind, ToolSettingError> {
        let protocol = self.communication.protocol.as_deref();
        let (kind, protocols): (PluginKind, &[Option<&str>]) = match self.plugin_type.as_str() {
            "synchronous" => (PluginKind::Synchronous, &[Some("stdio")]),
            "asynchronous" => (PluginKind::Asynchronous, &[Some("stdio")]),
            "static" => (PluginKind::Static, &[None, Some("stdio"), Some("process_stdio")]),
            "messagePreprocessor" => (PluginKind::MessagePreprocessor, &[Some("direct"), Some("stdio")]),
            other => return Err(self.unknown_kind(other)),
        };
        if protocols.contains(&protocol) {
            return Ok(kind);
        }
        let understood: Vec<String> =
            protocols.iter().flatten().map(|protocol| format!("\"{protocol}\"")).collect();
        let message = format!("{} uses `{}`, which is not supported", self.name, protocol.unwrap_or("none"));
        let remedy = format!(
            "A plugin of the kind `{}` is run with communication.protocol {}.",
            self.plugin_type,
            understood.join(" or ")
        );
        Err(ToolSettingError::new(message, &remedy))
    }

    fn unknown_kind(&self, kind: &str) -> ToolSettingError {
        let what = match kind {
            "service" => "whose routes and sockets are parts of the VCP server",
            "hybridservice" => {
                "which uses internals of the VCP server: its databases, routes and other plugins"
            }
            "" => "which is not a kind",
            _ => "which is unknown",
        };
        let message = format!("{} is of the kind `{kind}`, {what}", self.name);
        let remedy = "Synchronous, asynchronous and static plugins and message preprocessors are supported; \
         leave this one to VCP, or remove it from the folders.";
        ToolSettingError::new(message, remedy)
    }

    /// Names of the placeholders that a static plugin fills, without braces.
    pub(super) fn placeholders(&self) -> Vec<String> {
        let listed = self.capabilities.system_prompt_placeholders.iter();
        let names = listed.map(|listed| {
            listed.placeholder.trim().trim_start_matches('{').trim_end_matches('}').trim().to_owned()
        });
        names.filter(|name| !name.is_empty()).collect()
    }

    /// The times at which a static plugin runs again.
    pub(super) fn schedule(&self) -> Result<Option<CronSchedule>, ToolSettingError> {
        let line = self.refresh_interval_cron.as_deref().map(str::trim).filter(|line| !line.is_empty());
        line.map(CronSchedule::parse).transpose().map_err(|why| {
            ToolSettingError::new(
                format!("its refreshIntervalCron cannot be read: {why}"),
                "It has five fields, or six with seconds in front: \"0 * * * *\".",
            )
        })
    }

    /// The file of a plugin that VCP would load into its own process.
    pub(super) fn script(&self) -> Option<&str> {
        self.entry_point.script.as_deref().filter(|script| !script.is_empty())
    }

    /// True for a plugin whose program is a script for our runner of Node modules.
    pub(super) fn is_direct(&self) -> bool {
        self.communication.protocol.as_deref() == Some("direct")
    }

    pub(super) fn title(&self) -> &str {
        self.display_name.as_deref().filter(|title| !title.is_empty()).unwrap_or(&self.name)
    }

    /// Also that of the entry point, where some manifests have it.
    pub(super) fn timeout(&self) -> Duration {
        let default =
            if self.plugin_type == "asynchronous" { ASYNC_TIMEOUT_DEFAULT } else { TIMEOUT_DEFAULT };
        let limit = self.communication.timeout.or(self.entry_point.timeout).filter(|limit| *limit >= 1.0);
        limit.map_or(default, |limit| Duration::from_millis(limit as u64))
    }

    /// Words of the entry point. VCP passes it to a shell; here there is none.
    pub(super) fn command_words(&self) -> Result<Vec<String>, ToolSettingError> {
        let line = self.entry_point.command.as_deref().unwrap_or_default();
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        for c in line.chars() {
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (Some('"'), '$' | '`')
                | (None, '|' | '&' | ';' | '<' | '>' | '$' | '`' | '(' | ')' | '*' | '\n') => {
                    let message =
                        format!("its entry point `{line}` requires a shell, which is not supported");
                    return Err(ToolSettingError::new(
                        message,
                        "Put the line into a script and name that: \"sh run.sh\".",
                    ));
                }
                (None, '"' | '\'') => {
                    quote = Some(c);
                    word.get_or_insert_default();
                }
                (None, c) if c.is_whitespace() => words.extend(word.take()),
                (_, c) => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        if words.is_empty() {
            Err(ToolSettingError::new("its entry point names no program", "entryPoint.command"))
        } else {
            Ok(words)
        }
    }

    /// Environment as in VCP: the variables of the schema, with their types, and those that every plugin
    /// gets.
    pub(super) fn environment(
        &self,
        values: &BTreeMap<String, String>,
        folder: &Path,
    ) -> BTreeMap<String, String> {
        let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let mut env_vars: BTreeMap<String, String> =
            self.config(values).into_iter().map(|(name, value)| (name, text(value))).collect();
        let debug = values.get("DebugMode").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        env_vars.insert("DebugMode".to_owned(), debug.to_string());
        env_vars.insert("PYTHONIOENCODING".to_owned(), "utf-8".to_owned());
        // Plugins are in `Plugin/NAME` of the project.
        if let Some(base) = folder.parent().and_then(Path::parent) {
            env_vars.insert("PROJECT_BASE_PATH".to_owned(), base.display().to_string());
        }
        env_vars
    }

    /// The values that the schema names, with its types.
    pub(super) fn config(&self, values: &BTreeMap<String, String>) -> Map<String, Value> {
        let mut config = Map::new();
        for (name, entry) in self.config_schema.iter().flatten() {
            let Some(value) = values.get(name) else { continue };
            let kind = entry.get("type").unwrap_or(entry).as_str().unwrap_or_default();
            let value = match kind {
                "boolean" => Value::from(value.eq_ignore_ascii_case("true")),
                // As JavaScript reads it: the digits in front, or nothing.
                "integer" => match leading_integer(value) {
                    Some(number) => Value::from(number),
                    None => continue,
                },
                _ => Value::from(value.as_str()),
            };
            config.insert(name.clone(), value);
        }
        config
    }

    pub(super) fn commands(&self) -> Result<Vec<PluginCommand>, ToolSettingError> {
        let invocations = &self.capabilities.invocation_commands;
        if invocations.is_empty() {
            let message = format!("{} has no invocation commands", self.name);
            return Err(ToolSettingError::new(
                message,
                "List the commands in capabilities.invocationCommands.",
            ));
        }
        let several = invocations.len() > 1;
        Ok(invocations.iter().map(|invocation| invocation.command(&self.name, several)).collect())
    }
}

fn leading_integer(text: &str) -> Option<i64> {
    let text = text.trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let end = text.len() - digits.len() + digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    text[..end].trim_start_matches('+').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn manifest(more: Value) -> PluginManifest {
        let mut value = json!({
            "name": "Demo", "pluginType": "synchronous", "entryPoint": {"command": "node demo.js"},
            "communication": {"protocol": "stdio"},
        });
        for (key, field) in more.as_object().unwrap() {
            value[key] = field.clone();
        }
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn entry_point_is_split_without_a_shell() {
        for (line, expected) in [
            ("node demo.js", Ok(vec!["node", "demo.js"])),
            (
                "  python   -u \"my script.py\" 'a b' \"\" ",
                Ok(vec!["python", "-u", "my script.py", "a b", ""]),
            ),
            (
                "node a.js | tee log",
                Err("its entry point `node a.js | tee log` requires a shell, which is not supported"),
            ),
            (
                "node \"$HOME/a.js\"",
                Err("its entry point `node \"$HOME/a.js\"` requires a shell, which is not supported"),
            ),
            ("", Err("its entry point names no program")),
        ] {
            let words = manifest(json!({"entryPoint": {"command": line}}))
                .command_words()
                .map_err(|invalid| invalid.message);
            let expected =
                expected.map(|words| words.into_iter().map(str::to_owned).collect()).map_err(str::to_owned);
            assert_eq!(words, expected, "{line}");
        }
    }

    #[test]
    fn environment_values_follow_the_config_schema() {
        let schema = json!({"configSchema": {"Key": "string", "Max": {"type": "integer"}, "Bad": "integer", "On": "boolean", "Off": "boolean", "Absent": "string"}});
        let values = [
            ("Key", "k"),
            ("Max", "12px"),
            ("Bad", "x"),
            ("On", "True"),
            ("Off", "yes"),
            ("Other", "o"),
            ("DebugMode", "TRUE"),
        ];
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let env_vars = manifest(schema).environment(&values, Path::new("/vcp/Plugin/Demo"));
        let env_vars: Vec<String> =
            env_vars.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            env_vars,
            [
                "DebugMode=true",
                "Key=k",
                "Max=12",
                "Off=false",
                "On=true",
                "PROJECT_BASE_PATH=/vcp",
                "PYTHONIOENCODING=utf-8"
            ]
        );
    }

    #[test]
    fn timeout_is_read_from_communication_or_entry_point() {
        for (more, expected) in [
            (json!({}), 60_000),
            (json!({"communication": {"timeout": 15_000}, "entryPoint": {"timeout": 1}}), 15_000),
            (json!({"entryPoint": {"timeout": 300_000}}), 300_000),
            (json!({"communication": {"timeout": 0}}), 60_000),
        ] {
            assert_eq!(manifest(more).timeout(), Duration::from_millis(expected));
        }
    }
}
