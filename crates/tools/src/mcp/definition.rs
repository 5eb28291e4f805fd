//! From a server's definition of a tool to ours: name, title, description, schemas, and the value of its
//! hints.
//!
//! Descriptions are data here: they reach a model in definitions only, and are not interpreted.

use super::depth::depth;
use super::pins::PinnedDefinition;
use super::settings::McpServer;
use crate::naming::TOOL_NAME_BYTES_MAX;
use crate::tool::{AgentCallable, ToolSpec};
use rmcp::model::{Tool as RmcpTool, ToolAnnotations};
use serde_json::Value;
use throughline_engine::Effect;
use throughline_wire::{ToolName, display_escape};

/// Largest accepted definition, in bytes of its JSON: a larger one would fill the model's context. Those of
/// widely used servers have up to 80 kB.
pub const DEFINITION_BYTES_MAX: usize = 128 * 1024;
/// Limit of nesting in the JSON of a definition, in levels: the same as for a request to us. Providers refuse
/// schemas long before that.
pub const DEFINITION_DEPTH_MAX: usize = 64;
/// Hex digits that tell apart names which had to be changed.
const SUFFIX_DIGITS: usize = 8;

/// A tool of a server, not yet compared with its pin.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct McpToolDefinition {
    pub(crate) spec: ToolSpec,
    pub(crate) pin: PinnedDefinition,
}

/// # Errors
/// Why the tool cannot be taken.
pub(crate) fn parse_definition(
    server: &str,
    settings: &McpServer,
    offered: RmcpTool,
) -> Result<McpToolDefinition, String> {
    let json = serde_json::to_vec(&offered).map_err(|error| format!("its definition: {error}"))?;
    if depth(&json) > DEFINITION_DEPTH_MAX {
        return Err(format!(
            "its definition is nested deeper than the limit of {DEFINITION_DEPTH_MAX} levels"
        ));
    }
    let size = json.len();
    if size > DEFINITION_BYTES_MAX {
        return Err(format!(
            "its definition has {size} bytes, more than the limit of {DEFINITION_BYTES_MAX}"
        ));
    }
    let hints = offered.annotations;
    let effect = effect_from_hints(settings.trusted, hints.as_ref());
    let declared_title = offered.title.or_else(|| hints.as_ref().and_then(|hints| hints.title.clone()));
    let pin = PinnedDefinition {
        server: settings.identity(),
        tool: offered.name.to_string(),
        title: declared_title.clone(),
        description: offered.description.unwrap_or_default().into_owned(),
        parameters: with_object_type(Value::Object(offered.input_schema.as_ref().clone())),
        output: offered.output_schema.map(|schema| Value::Object(schema.as_ref().clone())),
        hints: serde_json::to_value(hints).unwrap_or_default(),
    };
    let mut spec = ToolSpec::new(tool_name(server, &pin.tool), pin.description.clone());
    spec.title = declared_title.filter(|title| !title.trim().is_empty()).unwrap_or_else(|| pin.tool.clone());
    spec.parameters = pin.parameters.clone();
    spec.output = pin.output.clone();
    spec.effect = effect;
    spec.agent_callable = AgentCallable::Yes;
    spec.timeout = settings.total_timeout();
    spec.source = format!("mcp:{server}");
    Ok(McpToolDefinition { spec, pin })
}

/// Name `server.method`. An invalid method is changed, and gets a suffix made from the original, so that no
/// two become one.
pub(crate) fn tool_name(server: &str, tool: &str) -> ToolName {
    let room = TOOL_NAME_BYTES_MAX - server.len() - 1;
    // Two names that look the same are not.
    let is_allowed = |c: char| !c.is_whitespace() && !display_escape::is_hidden(c);
    if !tool.is_empty() && tool.len() <= room && tool.chars().all(is_allowed) {
        return ToolName::from(format!("{server}.{tool}"));
    }
    let hash = blake3::hash(tool.as_bytes()).to_hex();
    let room = room - SUFFIX_DIGITS - 1;
    let mut method = String::new();
    for c in tool.chars().map(|c| if is_allowed(c) { c } else { '_' }) {
        if method.len() + c.len_utf8() > room {
            break;
        }
        method.push(c);
    }
    ToolName::from(format!("{server}.{method}_{}", &hash.as_str()[..SUFFIX_DIGITS]))
}

/// Annotations are hints, not proof: those of an untrusted server change nothing. Defaults of absent hints:
/// not read-only, destructive, not idempotent, open world (MCP 2025-11-25 `ToolAnnotations`).
fn effect_from_hints(trusted: bool, hints: Option<&ToolAnnotations>) -> Effect {
    let Some(hints) = hints.filter(|_| trusted) else { return Effect::External };
    if hints.read_only_hint == Some(true) {
        Effect::Read
    } else if hints.idempotent_hint == Some(true) {
        Effect::Idempotent
    } else if hints.open_world_hint == Some(false) {
        Effect::Write
    } else {
        Effect::External
    }
}

/// Some servers leave out the type of a schema without arguments, or of a union of objects.
fn with_object_type(mut schema: Value) -> Value {
    if let Value::Object(fields) = &mut schema
        && !fields.contains_key("type")
    {
        fields.insert("type".to_owned(), Value::from("object"));
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeSet;

    fn offered(value: Value) -> RmcpTool {
        serde_json::from_value(value).unwrap()
    }

    fn of(value: Value) -> McpToolDefinition {
        parse_definition("files", &McpServer::default(), offered(value)).unwrap()
    }

    #[test]
    fn title_falls_back_to_annotation_then_name() {
        let title = |value| of(value).spec.title;
        let with = |more: Value| {
            let mut value = json!({"name": "read", "inputSchema": {"type": "object"}});
            value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            value
        };
        assert_eq!(title(with(json!({"title": "Read", "annotations": {"title": "Hint"}}))), "Read");
        assert_eq!(title(with(json!({"annotations": {"title": "Hint"}}))), "Hint");
        assert_eq!(title(with(json!({"title": " "}))), "read");
        assert_eq!(title(with(json!({}))), "read");
    }

    #[test]
    fn hints_count_only_where_the_server_is_trusted() {
        let table = [
            (json!({"readOnlyHint": true}), Effect::Read),
            (json!({"readOnlyHint": false, "destructiveHint": true}), Effect::External),
            (json!({"destructiveHint": false, "openWorldHint": false}), Effect::Write),
            (json!({"destructiveHint": true, "openWorldHint": false}), Effect::Write),
            (json!({"idempotentHint": true, "destructiveHint": true}), Effect::Idempotent),
            (json!({}), Effect::External),
        ];
        for (hints, expected) in table {
            let tool = json!({"name": "read", "inputSchema": {"type": "object"}, "annotations": hints});
            let as_seen = |trusted| {
                let settings = McpServer { trusted, ..McpServer::default() };
                parse_definition("files", &settings, offered(tool.clone())).unwrap().spec.effect
            };
            assert_eq!(as_seen(true), expected, "{hints}");
            assert_eq!(as_seen(false), Effect::External, "{hints}");
        }
    }

    #[test]
    fn tool_names_are_registrable_and_distinct() {
        let long = "x".repeat(300);
        let longer = "x".repeat(301);
        let names = [
            "read",
            "read file",
            "read_file",
            "a.b/c",
            "",
            " ",
            "天气",
            "re\u{202e}ad",
            "read\u{200b}",
            "read\u{3164}",
            &long,
            &longer,
        ];
        let ours: BTreeSet<String> =
            names.iter().map(|name| tool_name("files", name).into_string()).collect();
        assert_eq!(ours.len(), names.len());
        for name in &ours {
            assert!(crate::naming::check_name(&ToolName::from(name.as_str())).is_ok(), "{name}");
            assert!(!name.chars().any(display_escape::is_hidden), "{name:?}");
        }
        assert!(ours.contains("files.read") && ours.contains("files.a.b/c") && ours.contains("files.天气"));
    }

    #[test]
    fn schema_without_type_becomes_an_object_schema() {
        assert_eq!(of(json!({"name": "now", "inputSchema": {}})).spec.parameters, json!({"type": "object"}));
        let own = json!({"type": "string"});
        assert_eq!(
            of(json!({"name": "now", "inputSchema": own})).spec.parameters,
            own,
            "left for the registry to refuse"
        );
    }

    #[test]
    fn definition_size_is_limited() {
        let with = |size: usize| {
            let tool =
                json!({"name": "read", "description": "x".repeat(size), "inputSchema": {"type": "object"}});
            parse_definition("files", &McpServer::default(), offered(tool))
        };
        assert!(with(DEFINITION_BYTES_MAX - 200).is_ok());
        assert!(with(DEFINITION_BYTES_MAX).unwrap_err().contains("the limit of"));
    }

    #[test]
    fn definition_depth_is_limited() {
        let with = |levels: usize| {
            // The tool and its schema are two, and the innermost is one.
            let inner = (0..levels - 3).fold(json!({}), |inner, _| json!({"items": inner}));
            let schema = json!({"type": "object", "properties": inner});
            parse_definition(
                "files",
                &McpServer::default(),
                offered(json!({"name": "read", "inputSchema": schema})),
            )
        };
        assert!(with(DEFINITION_DEPTH_MAX).is_ok());
        let refused = with(DEFINITION_DEPTH_MAX + 1).unwrap_err();
        assert_eq!(refused, "its definition is nested deeper than the limit of 64 levels");
    }
}
