//! Invocation commands: the requests described in a plugin's own manual for models.

use super::manifest::PluginManifest;
use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// Most characters of a field in an example that describe the argument.
const HINT_CHARS_MAX: usize = 200;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InvocationCommand {
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
    /// Other names of the plugin in the command's own manual. A model that follows it calls the plugin so.
    pub(super) aliases: Vec<String>,
    description: String,
    example: Option<String>,
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

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

impl InvocationCommand {
    pub(super) fn command(&self, plugin: &str, several: bool) -> PluginCommand {
        let named =
            self.command_identifier.as_ref().or(self.command.as_ref()).filter(|name| !name.trim().is_empty());
        let identifier = named.map_or(plugin, |name| name.trim()).to_owned();
        let shown = |key: &'static str| {
            let texts = [self.example.as_deref().unwrap_or_default(), &self.description];
            texts.into_iter().flat_map(request_fields).filter(move |(name, _)| *name == key)
        };
        // VCP sends what the model wrote, and the model copies the manual. A plugin with one command often
        // shows none.
        let command_field = match shown("command").next() {
            Some((_, shown)) if is_name(shown) => Some(shown.to_owned()),
            Some(_) => Some(identifier.clone()),
            None if several || self.command.is_some() => Some(identifier.clone()),
            None => None,
        };
        let mut aliases: Vec<String> = shown("tool_name")
            .filter(|(_, name)| is_name(name) && *name != plugin)
            .map(|(_, name)| name.to_owned())
            .collect();
        aliases.sort();
        aliases.dedup();
        PluginCommand {
            identifier,
            command_field,
            aliases,
            description: self.description.clone(),
            example: self.example.clone(),
        }
    }
}

impl PluginCommand {
    /// Description in the manifest, followed by the example.
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

    /// Text parameters with any name. Names that the description shows are listed, for models that need them.
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

    fn manifest(invocations: Value) -> PluginManifest {
        let manifest = json!({"name": "Demo", "capabilities": {"invocationCommands": invocations}});
        serde_json::from_value(manifest).unwrap()
    }

    fn command(invocation: Value) -> PluginCommand {
        let mut commands = manifest(json!([invocation])).commands().unwrap();
        commands.remove(0)
    }

    #[test]
    fn command_field_is_sent_if_the_manual_shows_it() {
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
        let two = json!([{"commandIdentifier": "a"}, {"commandIdentifier": "b"}]);
        let command_field: Vec<_> = manifest(two)
            .commands()
            .unwrap()
            .into_iter()
            .map(|command| command.command_field.unwrap())
            .collect();
        assert_eq!(command_field, ["a", "b"]);
    }

    #[test]
    fn parameters_are_read_from_description_and_example() {
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
    fn other_tool_names_in_a_manual_become_command_aliases() {
        let manual =
            "tool_name:「始」FileOperator「末」\ntool_name:「始」Demo「末」\ntool_name:「始」the tool「末」";
        let example = "tool_name :「始」FileOperator「末」, tool_name：「始」Files「末」";
        let aliased =
            command(json!({"commandIdentifier": "Read", "description": manual, "example": example}));
        assert_eq!(aliased.aliases, ["FileOperator", "Files"]);
        assert!(command(json!({"commandIdentifier": "Read", "description": "reads"})).aliases.is_empty());
    }
}
