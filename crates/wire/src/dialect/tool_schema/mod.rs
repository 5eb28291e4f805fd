//! Definitions of tools as providers take them.
//!
//! A provider that dislikes one schema refuses the whole request, and every later one: even "Hi" fails. So
//! the schema that is sent is derived from the tool's own schema, against which arguments are still checked:
//!
//! 1. [`normal`]: one draft (2020-12) and no member of a wrong type, for every dialect. OpenAI and Anthropic check a schema
//!    against its metaschema ("JSON schema is invalid. It must match JSON Schema draft 2020-12", "[…] is not of type
//!    'object', 'boolean'"), Ollama reads it into Go structs.
//! 2. [`top`]: one object with properties and no union, for every dialect. Anthropic: "input_schema does not support oneOf,
//!    allOf, or anyOf at the top level"; OpenAI: "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/
//!    'enum'/'not' at the top level", "object schema missing properties" (makenotion/notion-mcp-server#341,
//!    zereight/gitlab-mcp#550, xpzouying/xiaohongshu-mcp#677).
//! 3. [`argument_names`]: names of arguments that Anthropic and Bedrock take (beautyfree/appstore-connect-mcp#1).
//! 4. [`plain`]: a subset for servers that turn schemas into grammars or have their own flavor (Moonshot,
//!    llama.cpp), by the profile or after a refusal.
//!
//! A tool that is refused nevertheless is left out and reported ([`UpstreamProfile::refused_tools`]).
//!
//! A constraint that is left out is still enforced: the model learns of it when the check refuses its
//! arguments.

pub(super) mod argument_names;
mod copies;
pub(super) mod normal;
pub(super) mod plain;
pub(super) mod references;
mod top;

use super::Dialect;
use crate::profile::{ToolSchemaForm, UpstreamProfile};
use crate::vocabulary::{ModelRequest, ToolChoice, ToolDefinition, WireName};
use argument_names::ArgumentNames;
use copies::CopyBudget;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// Deepest nesting of schemas that is sent, in levels; deeper values are unconstrained. Gemini has a limit
/// ("exceeds the maximum allowed nesting depth", google-gemini/gemini-cli#5923) and names none; real tools
/// have at most a dozen.
pub(super) const SCHEMA_DEPTH_MAX: usize = 16;

/// "At most 512 function declarations can be specified." (HTTP 400; google-gemini/gemini-cli#19083)
const GEMINI_TOOLS_MAX: u32 = 512;

/// The tools of a request as its dialect takes them.
pub(super) struct AdaptedTools {
    pub tools: Vec<ToolDefinition>,
    /// Tools that the upstream does not take, or no more of.
    pub left_out: Vec<WireName>,
    pub names: ArgumentNames,
}

/// The tools of a request with this choice, which its own may only say in words.
pub(super) fn adapt(
    dialect: Dialect,
    request: &ModelRequest,
    choice: &ToolChoice,
    profile: &UpstreamProfile,
) -> AdaptedTools {
    let names = ArgumentNames::of(dialect, &request.tools);
    let (mut tools, mut left_out) = (Vec::new(), Vec::new());
    for (tool, is_sent) in request.tools.iter().zip(sent_tools(dialect, request, choice, profile)) {
        if !is_sent {
            left_out.push(tool.name.clone());
            continue;
        }
        let mut schema = standard(&tool.parameters);
        // `strict: false` is the default and need not be sent.
        let mut strict = tool.strict.filter(|strict| *strict && profile.strict_tools);
        if profile.tool_schemas == ToolSchemaForm::Plain {
            schema = plain::plain(&schema);
            // It demands things that the plain form does not say.
            strict = None;
        }
        names.rename_properties(&tool.name, &mut schema);
        tools.push(ToolDefinition { parameters: Arc::new(Value::Object(schema)), strict, ..tool.clone() });
    }
    AdaptedTools { tools, left_out, names }
}

/// True for each tool that is sent. The one that has to be called always is: without it the request is another.
fn sent_tools(
    dialect: Dialect,
    request: &ModelRequest,
    choice: &ToolChoice,
    profile: &UpstreamProfile,
) -> Vec<bool> {
    let is_forced = |tool: &ToolDefinition| matches!(choice, ToolChoice::Tool(name) if *name == tool.name);
    let of_dialect = (dialect == Dialect::Gemini).then_some(GEMINI_TOOLS_MAX);
    let most = profile.tools_max.into_iter().chain(of_dialect).min();
    let most = most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
    let mut places = most.saturating_sub(usize::from(request.tools.iter().any(is_forced)));
    let mut taken = Cow::Borrowed(profile);
    if !profile.refused_tools.is_empty() && choice.is_forced() {
        taken.to_mut().take_needed_tools(&request.tools, choice);
    }
    let is_sent = request.tools.iter().map(|tool| {
        if is_forced(tool) {
            return true;
        }
        // Hashes cost a walk through every schema.
        let is_refused =
            !taken.refused_tools.is_empty() && taken.refused_tools.contains(&tool.definition_hash());
        let is_sent = !is_refused && places > 0;
        places -= usize::from(is_sent);
        is_sent
    });
    is_sent.collect()
}

/// The schema of a tool's arguments as every provider of JSON Schema takes it.
pub(super) fn standard(schema: &Value) -> Map<String, Value> {
    let mut copies = CopyBudget::new();
    let mut schema = normal::normalize(schema, &mut copies);
    top::flatten(&mut schema, &mut copies);
    schema
}

/// The arguments of earlier calls under the names that this request offers.
pub(super) fn with_wire_arguments<'r>(
    request: &'r ModelRequest,
    names: &ArgumentNames,
) -> Cow<'r, ModelRequest> {
    if names.is_empty() || !request.messages.iter().any(|message| names.concern(message)) {
        return Cow::Borrowed(request);
    }
    let messages = request.messages.iter().map(|message| names.to_wire(message)).collect();
    Cow::Owned(ModelRequest { messages, ..request.clone() })
}

/// Every schema directly inside a schema.
pub(super) fn for_each_subschema(schema: &mut Map<String, Value>, visit: &mut impl FnMut(&mut Value)) {
    for (keyword, value) in schema.iter_mut() {
        match (Keyword::of(keyword), value) {
            (Keyword::SchemasByName, Value::Object(named)) => named.values_mut().for_each(&mut *visit),
            (Keyword::Schemas, Value::Array(schemas)) => schemas.iter_mut().for_each(&mut *visit),
            (Keyword::Schema, schema) => visit(schema),
            _ => {}
        }
    }
}

/// Nested schemas of a schema, read-only.
fn subschemas(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    schema.iter().flat_map(|(keyword, value)| match (Keyword::of(keyword), value) {
        (Keyword::SchemasByName, Value::Object(named)) => named.values().collect(),
        (Keyword::Schemas, Value::Array(schemas)) => schemas.iter().collect(),
        (Keyword::Schema, schema) => vec![schema],
        _ => Vec::new(),
    })
}

/// The value that a keyword of JSON Schema takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keyword {
    /// A schema.
    Schema,
    /// A list of schemas, at least one.
    Schemas,
    /// An object of schemas.
    SchemasByName,
    /// One or several names of types.
    Type,
    /// A list of any values, at least one.
    Values,
    /// A list of different texts.
    Names,
    /// A list of different texts by name.
    NamesByName,
    Text,
    Number,
    /// A non-negative integer.
    Count,
    Flag,
    /// Anything: an annotation, or an unknown keyword.
    Any,
    /// Not needed by a model or a provider.
    Unsent,
}

impl Keyword {
    fn of(name: &str) -> Self {
        match name {
            "items"
            | "additionalProperties"
            | "contains"
            | "not"
            | "if"
            | "then"
            | "else"
            | "propertyNames"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "contentSchema" => Self::Schema,
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => Self::Schemas,
            "properties" | "patternProperties" | "$defs" | "dependentSchemas" => Self::SchemasByName,
            "type" => Self::Type,
            "enum" => Self::Values,
            "required" => Self::Names,
            "dependentRequired" => Self::NamesByName,
            "description" | "title" | "format" | "pattern" | "$ref" | "contentEncoding"
            | "contentMediaType" => Self::Text,
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => Self::Number,
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
            | "minContains" | "maxContains" => Self::Count,
            "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => Self::Flag,
            // References are made local by their `$ref` alone; the version is that of this form.
            "$schema" | "$id" | "id" | "$anchor" | "$dynamicAnchor" | "$dynamicRef" | "$recursiveAnchor"
            | "$recursiveRef" | "$vocabulary" | "$comment" | "dependencies" | "additionalItems"
            | "nullable" => Self::Unsent,
            _ => Self::Any,
        }
    }
}

#[cfg(test)]
mod tests;
