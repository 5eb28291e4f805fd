//! The schema of a structured reply as the provider takes it.
//!
//! Clients write it for OpenAI. Constraints that a provider does not accept do not bind the model.

use super::Dialect;
use super::gemini;
use super::tool_schema::{plain, standard};
use crate::profile::{ToolSchemaForm, UpstreamProfile};
use serde_json::{Map, Value};

/// Writes it in the provider's form.
pub(super) fn adapt(dialect: Dialect, profile: &UpstreamProfile, body: &mut Value) {
    let (pointer, form) = match dialect {
        Dialect::OpenaiChat if profile.tool_schemas == ToolSchemaForm::Plain => {
            ("/response_format/json_schema/schema", ReplySchemaForm::Plain)
        }
        Dialect::Anthropic | Dialect::BedrockAnthropic => {
            ("/output_config/format/schema", ReplySchemaForm::Closed)
        }
        Dialect::Gemini => ("/generationConfig/responseJsonSchema", ReplySchemaForm::Gemini),
        // A grammar is made of it.
        Dialect::Ollama => ("/format", ReplySchemaForm::Plain),
        Dialect::Cohere => ("/response_format/json_schema", ReplySchemaForm::Standard),
        _ => return,
    };
    let Some(schema) = body.pointer_mut(pointer).filter(|schema| describes_object(schema)) else { return };
    let standard = standard(schema);
    let adapted = match form {
        ReplySchemaForm::Standard => standard.into(),
        ReplySchemaForm::Plain => plain::plain(&standard).into(),
        ReplySchemaForm::Closed => {
            let mut closed = plain::plain(&standard).into();
            close(&mut closed);
            closed
        }
        ReplySchemaForm::Gemini => match gemini::adapt_schema(&standard.into()) {
            Some(schema) => schema,
            None => Value::Object(Map::from_iter([("type".to_owned(), "object".into())])),
        },
    };
    *schema = adapted;
}

/// Others, such as lists, are the client's own affair: a tool's schema is never one.
fn describes_object(schema: &Value) -> bool {
    schema["type"] == "object"
        || ["properties", "$ref", "allOf"].iter().any(|keyword| schema.get(keyword).is_some())
}

#[derive(Clone, Copy)]
enum ReplySchemaForm {
    Standard,
    Plain,
    /// Plain, and no object has more than its properties: "For 'object' type, 'additionalProperties' must be explicitly set to
    /// false" (<https://platform.claude.com/docs/en/build-with-claude/structured-outputs>).
    Closed,
    Gemini,
}

fn close(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    if members.get("type").is_some_and(|kind| kind == "object") {
        members.insert("additionalProperties".to_owned(), false.into());
    }
    for (keyword, value) in members.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(close),
            ("anyOf", Value::Array(alternatives)) => alternatives.iter_mut().for_each(close),
            ("items", items) => close(items),
            _ => {}
        }
    }
}
