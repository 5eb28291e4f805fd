//! `plugin-manifest.json`: what is read of it, and what it means.

use crate::settings::ToolSettingError;
use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

/// A larger one is none.
const MANIFEST_BYTES_MAX: u64 = 1024 * 1024;
/// Time limit of a plugin that sets none: as in VCP.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);
/// Most characters of a field in an example that describe the argument.
const HINT_CHARS_MAX: usize = 200;

/// Unknown fields are other programs' business.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PluginManifest {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    display_name: Option<String>,
    #[serde(default)]
    description: Option<String>,
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
}

#[derive(Clone, Debug, Default, Deserialize)]
struct EntryPoint {
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    timeout: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct PluginCommunication {
    #[serde(default)]
    protocol: Option<String>,
    /// In milliseconds.
    #[serde(default)]
    timeout: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PluginCapabilities {
    #[serde(default)]
    invocation_commands: Vec<InvocationCommand>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct InvocationCommand {
    #[serde(default)]
    command_identifier: Option<String>,
    /// Some manifests call it so.
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    example: Option<String>,
}

/// An invocation command.
#[derive(Clone, Debug)]
pub(super) struct PluginCommand {
    pub(super) identifier: String,
    /// Value of the field `command` in its requests; `None` = they have none.
    pub(super) command_field: Option<String>,
    description: String,
    example: Option<String>,
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
            return Err(invalid(format!("{size} bytes are too many")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| invalid(error.to_string()))?;
        let manifest: Self = serde_json::from_str(text.trim_start_matches('\u{feff}'))
            .map_err(|error| invalid(error.to_string()))?;
        if manifest.name.is_empty() { Err(invalid("it has no name".to_owned())) } else { Ok(manifest) }
    }

    /// # Errors
    /// Why a plugin of this kind is not run here.
    pub(super) fn check_kind(&self) -> Result<(), ToolSettingError> {
        let what = match self.plugin_type.as_str() {
            "synchronous" => {
                let protocol = self.communication.protocol.as_deref().unwrap_or("none");
                return if protocol == "stdio" {
                    Ok(())
                } else {
                    let message = format!("{} speaks `{protocol}`, and only stdio is understood", self.name);
                    Err(ToolSettingError::new(
                        message,
                        "Only plugins with communication.protocol \"stdio\" are run.",
                    ))
                };
            }
            "asynchronous" => "which answers later by calling the VCP server back",
            "static" => "which fills a placeholder of prompts and is no tool",
            "messagePreprocessor" => "which changes messages inside the VCP server",
            "service" | "hybridservice" => "which runs inside the VCP server",
            "" => "which is no kind",
            _ => "which is not known here",
        };
        let message = format!("{} is of the kind `{}`, {what}", self.name, self.plugin_type);
        Err(ToolSettingError::new(
            message,
            "Only synchronous plugins are run; leave this one to VCP, or take it out of the folders.",
        ))
    }

    pub(super) fn title(&self) -> &str {
        self.display_name.as_deref().filter(|title| !title.is_empty()).unwrap_or(&self.name)
    }

    /// Also that of the entry point, where some manifests have it.
    pub(super) fn timeout(&self) -> Duration {
        let limit = self.communication.timeout.or(self.entry_point.timeout).filter(|limit| *limit >= 1.0);
        limit.map_or(TIMEOUT_DEFAULT, |limit| Duration::from_millis(limit as u64))
    }

    /// The words of the entry point. VCP hands it to a shell; here there is none.
    pub(super) fn command_words(&self) -> Result<Vec<String>, ToolSettingError> {
        let line = self.entry_point.command.as_deref().unwrap_or_default();
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        for c in line.chars() {
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (Some('"'), '$' | '`')
                | (None, '|' | '&' | ';' | '<' | '>' | '$' | '`' | '(' | ')' | '*' | '\n') => {
                    let message = format!("its entry point `{line}` needs a shell, and there is none");
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

    /// The environment that VCP would give: what the schema names, with its types, and what every plugin gets.
    pub(super) fn environment(
        &self,
        values: &BTreeMap<String, String>,
        folder: &Path,
    ) -> BTreeMap<String, String> {
        let mut env_vars = BTreeMap::new();
        for (name, entry) in self.config_schema.iter().flatten() {
            let Some(value) = values.get(name) else { continue };
            let kind = entry.get("type").unwrap_or(entry).as_str().unwrap_or_default();
            let value = match kind {
                "boolean" => value.eq_ignore_ascii_case("true").to_string(),
                // As JavaScript reads it: the digits in front, or nothing.
                "integer" => match leading_integer(value) {
                    Some(number) => number.to_string(),
                    None => continue,
                },
                _ => value.clone(),
            };
            env_vars.insert(name.clone(), value);
        }
        let debug = values.get("DebugMode").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        env_vars.insert("DebugMode".to_owned(), debug.to_string());
        env_vars.insert("PYTHONIOENCODING".to_owned(), "utf-8".to_owned());
        // Plugins stand in `Plugin/NAME` of the project.
        if let Some(base) = folder.parent().and_then(Path::parent) {
            env_vars.insert("PROJECT_BASE_PATH".to_owned(), base.display().to_string());
        }
        env_vars
    }

    pub(super) fn commands(&self) -> Result<Vec<PluginCommand>, ToolSettingError> {
        let invocations = &self.capabilities.invocation_commands;
        if invocations.is_empty() {
            let message = format!("{} has no invocation commands", self.name);
            return Err(ToolSettingError::new(
                message,
                "capabilities.invocationCommands lists what can be called.",
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

/// A field of a request, as examples and descriptions show them.
static FIELD_PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?s)([A-Za-z_][A-Za-z0-9_-]*)\s*[:：]\s*「始(?:ESCAPE)?」(.*?)「末(?:ESCAPE)?」").ok()
});

fn request_fields(text: &str) -> Vec<(&str, &str)> {
    let Some(pattern) = FIELD_PATTERN.as_ref() else { return Vec::new() };
    let captures = pattern
        .captures_iter(text)
        .filter_map(|field| Some((field.get(1)?.as_str(), field.get(2)?.as_str())));
    captures.map(|(name, value)| (name, value.trim())).collect()
}

impl InvocationCommand {
    fn command(&self, plugin: &str, several: bool) -> PluginCommand {
        let named =
            self.command_identifier.as_ref().or(self.command.as_ref()).filter(|name| !name.trim().is_empty());
        let identifier = named.map_or(plugin, |name| name.trim()).to_owned();
        // VCP sends what the model wrote, and the model writes what it was shown. A plugin with one command is often
        // shown without any.
        let shown = [self.example.as_deref().unwrap_or_default(), &self.description]
            .into_iter()
            .flat_map(request_fields)
            .find(|(name, _)| *name == "command")
            .map(|(_, value)| value.to_owned());
        let is_name = |text: &String| {
            !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
        };
        let command_field = match shown {
            Some(shown) if is_name(&shown) => Some(shown),
            Some(_) => Some(identifier.clone()),
            None if several || self.command.is_some() => Some(identifier.clone()),
            None => None,
        };
        PluginCommand {
            identifier,
            command_field,
            description: self.description.clone(),
            example: self.example.clone(),
        }
    }
}

impl PluginCommand {
    /// As it is given, followed by the example.
    pub(super) fn description(&self, manifest: &PluginManifest) -> String {
        let description = match self.description.trim() {
            "" => manifest.description.as_deref().unwrap_or_default(),
            own => own,
        };
        match self.example.as_deref().map(str::trim).filter(|example| !example.is_empty()) {
            Some(example) => format!("{description}\n\n{example}"),
            None => description.to_owned(),
        }
    }

    /// Texts, whatever their names. Those that the description shows are named, for models that want them listed.
    pub(super) fn parameters(&self) -> Value {
        let mut properties = Map::new();
        let described = request_fields(&self.description).into_iter().map(|field| (field, ""));
        let example = request_fields(self.example.as_deref().unwrap_or_default())
            .into_iter()
            .map(|field| (field, "for example: "));
        for ((name, hint), prefix) in described.chain(example) {
            if matches!(name, "tool_name" | "command") || properties.contains_key(name) {
                continue;
            }
            let mut property = json!({"type": "string"});
            if !hint.is_empty() {
                let hint: String = hint.chars().take(HINT_CHARS_MAX).collect();
                property["description"] = Value::from(format!("{prefix}{hint}"));
            }
            properties.insert(name.to_owned(), property);
        }
        json!({"type": "object", "properties": properties, "additionalProperties": true})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn command(invocation: Value) -> PluginCommand {
        let mut commands =
            manifest(json!({"capabilities": {"invocationCommands": [invocation]}})).commands().unwrap();
        commands.remove(0)
    }

    #[test]
    fn the_field_command_is_sent_where_it_is_shown() {
        for (invocation, identifier, command_field) in [
            (
                json!({"commandIdentifier": "Calc", "description": "tool_name:「始」Demo「末」\nexpression:「始」1+1「末」"}),
                "Calc",
                None,
            ),
            (
                json!({"commandIdentifier": "Read", "example": "command:「始」ReadFile「末」"}),
                "Read",
                Some("ReadFile"),
            ),
            (
                json!({"commandIdentifier": "Read", "description": "command :「始」read or write「末」"}),
                "Read",
                Some("Read"),
            ),
            (json!({"command": "ReadFile", "description": "reads"}), "ReadFile", Some("ReadFile")),
            (json!({"description": "nameless"}), "Demo", None),
        ] {
            let command = command(invocation);
            assert_eq!(
                (command.identifier.as_str(), command.command_field.as_deref()),
                (identifier, command_field)
            );
        }
        let two = json!({"capabilities": {"invocationCommands": [{"commandIdentifier": "a"}, {"commandIdentifier": "b"}]}});
        let command_field: Vec<_> = manifest(two)
            .commands()
            .unwrap()
            .into_iter()
            .map(|command| command.command_field.unwrap())
            .collect();
        assert_eq!(command_field, ["a", "b"]);
    }

    #[test]
    fn arguments_are_those_that_are_shown() {
        let command = command(json!({
            "commandIdentifier": "Search",
            "description": "tool_name:「始」Demo「末」,\nquery:「始」(required) what to look for「末」,\nimage-size : 「始」「末」",
            "example": "query:「始」cats「末」\nmax_results:「始」7「末」\ncontent:「始ESCAPE」a「末」b「末ESCAPE」",
        }));
        assert_eq!(
            command.parameters(),
            json!({"type": "object", "additionalProperties": true, "properties": {
                "query": {"type": "string", "description": "(required) what to look for"},
                "image-size": {"type": "string"},
                "max_results": {"type": "string", "description": "for example: 7"},
                "content": {"type": "string", "description": "for example: a"},
            }})
        );
    }

    #[test]
    fn entry_points_are_words_without_a_shell() {
        for (line, expected) in [
            ("node demo.js", Ok(vec!["node", "demo.js"])),
            (
                "  python   -u \"my script.py\" 'a b' \"\" ",
                Ok(vec!["python", "-u", "my script.py", "a b", ""]),
            ),
            (
                "node a.js | tee log",
                Err("its entry point `node a.js | tee log` needs a shell, and there is none"),
            ),
            (
                "node \"$HOME/a.js\"",
                Err("its entry point `node \"$HOME/a.js\"` needs a shell, and there is none"),
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
    fn settings_have_the_types_of_the_schema() {
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
    fn time_limits_are_found_where_they_are() {
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
