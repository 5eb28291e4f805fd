//! An async Rust function becomes a tool in one expression.
//!
//! The schema is made from the argument type, whole in itself: no `$ref` unless the type is recursive, and none of the
//! generator's extras, which cost tokens in every request and which some upstreams refuse.

use crate::context::ToolContext;
use crate::tool::{AgentCallable, Tool, ToolError, ToolSpec};
use async_trait::async_trait;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;
use throughline_engine::{AddressRole, Effect, PermissionRule, PollingMode, ToolConcurrency};
use throughline_wire::{CallArguments, ToolOutput, VcpCommand};

/// Makes a tool from an async function or closure.
///
/// The function takes its arguments as one type and the [`ToolContext`] of the call. It returns text, JSON
/// ([`JsonOutput`] or [`Value`]), an [`ToolOutput`] or nothing; or a `Result` of these, with any error type in the function's
/// body.
///
/// Its effect and its availability to models are set on the result: without [`agent_callable`] a tool is
/// registered but never offered, without [`effect`] it counts as [`Effect::External`].
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use throughline_tools::{Effect, tool};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct WeatherArgs {
///     /// City, in any language.
///     city: String,
/// }
///
/// let weather = tool("weather.today", "Today's weather in a city", |args: WeatherArgs, _context| async move {
///     format!("{}: sunny, 22 °C", args.city)
/// })
/// .effect(Effect::Read)
/// .agent_callable();
/// ```
///
/// [`agent_callable`]: FunctionTool::agent_callable
/// [`effect`]: FunctionTool::effect
pub fn tool<A, F, Fut, R>(name: &str, description: &str, function: F) -> FunctionTool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = R> + Send + 'static,
    R: IntoReply + 'static,
{
    let mut spec = ToolSpec::new(name, description);
    spec.parameters = argument_schema::<A>();
    spec.output = R::schema();
    // The checked value is the one that runs: the text could hold a key twice, and the check saw only the
    // last.
    let run = move |arguments: &CallArguments,
                    context: ToolContext|
          -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        match A::deserialize(&arguments.value) {
            Ok(typed) => {
                let reply = function(typed, context);
                Box::pin(async move { reply.await.into_reply() })
            }
            // The schema allowed a value that the type rejects (a number beyond its range, a rule in
            // `Deserialize`).
            Err(error) => Box::pin(std::future::ready(Err(ToolError::invalid_arguments(error.to_string())))),
        }
    };
    FunctionTool { spec, run: Box::new(run) }
}

/// Like [`tool`], for functions that can fail: errors of any type become the tool's with `?`, and `Ok` needs no type.
///
/// ```
/// use throughline_tools::{NoArguments, try_tool};
///
/// let save = try_tool("notes.save", "Saves the notes", |_: NoArguments, _| async {
///     std::fs::write("notes.txt", "…")?;
///     Ok("saved")
/// });
/// ```
pub fn try_tool<A, F, Fut, R>(name: &str, description: &str, function: F) -> FunctionTool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    R: IntoReply + 'static,
{
    tool(name, description, function)
}

type ToolFn =
    dyn Fn(&CallArguments, ToolContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync;

/// A tool made by [`tool`]. Its methods set what the function itself does not declare.
pub struct FunctionTool {
    spec: ToolSpec,
    run: Box<ToolFn>,
}

impl std::fmt::Debug for FunctionTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FunctionTool").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl FunctionTool {
    /// Sets the effect on the outside. Default: [`Effect::External`].
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.spec.effect = effect;
        self
    }

    /// Models may call it. Without this it is never offered.
    #[must_use]
    pub fn agent_callable(mut self) -> Self {
        self.spec.agent_callable = AgentCallable::Yes;
        self
    }

    /// Sets the name for people. Default: the tool's name.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.spec.title = title.into();
        self
    }

    /// Sets the calls that it may run concurrently with. Default: all.
    #[must_use]
    pub fn concurrency(mut self, concurrency: ToolConcurrency) -> Self {
        self.spec.concurrency = concurrency;
        self
    }

    /// Time limit of one call. Without this: 30 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.spec.timeout = timeout;
        self
    }

    /// Asks a person before each call, for any effect.
    #[must_use]
    pub fn require_approval(mut self) -> Self {
        self.spec.permission = PermissionRule::Ask;
        self
    }

    /// Declares that the tool opens addresses that its caller chooses, or finds addresses. Default: neither.
    #[must_use]
    pub fn addresses(mut self, role: AddressRole) -> Self {
        self.spec.addresses = role;
        self
    }

    /// Declares that the tool is called repeatedly with the same arguments; the loop guard ignores it.
    #[must_use]
    pub fn poller(mut self) -> Self {
        self.spec.polling = PollingMode::Poller;
        self
    }

    /// Sets the name in the VCP text protocol, where another system has named it. Default: its wire name.
    #[must_use]
    pub fn vcp_command(mut self, tool_name: impl Into<String>, command: Option<&str>) -> Self {
        self.spec.vcp_command = Some(VcpCommand::new(tool_name, command));
        self
    }

    /// Sets the source shown on the card. Default: `rust`.
    #[must_use]
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.spec.source = source.into();
        self
    }
}

#[async_trait]
impl Tool for FunctionTool {
    fn definition(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, arguments: &CallArguments, context: ToolContext) -> Result<ToolOutput, ToolError> {
        (self.run)(arguments, context).await
    }
}

/// The arguments of a tool that takes none.
///
/// ```
/// use throughline_tools::{Effect, NoArguments, tool};
/// let ping = tool("demo.ping", "Answers pong", |_: NoArguments, _| async { "pong" }).effect(Effect::Pure);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoArguments {}

/// A structured output: any type with `Serialize` and `JsonSchema`. The model reads it as JSON, the card shows a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JsonOutput<T>(pub T);

/// Return types of tool functions.
pub trait IntoReply: Send {
    /// Converts the value to the outcome of the call.
    ///
    /// # Errors
    ///
    /// The function's error.
    fn into_reply(self) -> Result<ToolOutput, ToolError>;

    /// JSON Schema of the structured form, if there is one.
    fn schema() -> Option<Value> {
        None
    }
}

impl IntoReply for ToolOutput {
    fn into_reply(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

impl IntoReply for String {
    fn into_reply(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(self))
    }
}

impl IntoReply for &'static str {
    fn into_reply(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(self))
    }
}

/// No output: the model reads the text written to the context, if any, else `done`.
impl IntoReply for () {
    fn into_reply(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::default())
    }
}

impl IntoReply for Value {
    fn into_reply(self) -> Result<ToolOutput, ToolError> {
        let text = self.to_string();
        Ok(ToolOutput { size: text.len() as u64, text, value: Some(self), ..ToolOutput::default() })
    }
}

impl<T: Serialize + JsonSchema + Send> IntoReply for JsonOutput<T> {
    fn into_reply(self) -> Result<ToolOutput, ToolError> {
        serde_json::to_value(self.0)?.into_reply()
    }
    fn schema() -> Option<Value> {
        Some(schema_for::<T>(SchemaSettings::draft2020_12().for_serialize()))
    }
}

impl<T: IntoReply, E: Into<ToolError> + Send> IntoReply for Result<T, E> {
    fn into_reply(self) -> Result<ToolOutput, ToolError> {
        self.map_err(Into::into)?.into_reply()
    }
    fn schema() -> Option<Value> {
        T::schema()
    }
}

/// The schema of an argument type, as a model should see it.
pub fn argument_schema<A: JsonSchema>() -> Value {
    let mut schema = schema_for::<A>(SchemaSettings::draft2020_12());
    if let Value::Object(fields) = &mut schema
        && fields.get("type").and_then(Value::as_str) == Some("object")
    {
        // OpenAI and some of its imitators refuse an object schema without `properties`.
        fields.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    schema
}

fn schema_for<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = Value::from(settings.into_generator().into_root_schema_for::<T>());
    simplify_schema(&mut schema, KeyKind::Keywords);
    if let Value::Object(fields) = &mut schema {
        // The root's description is the type's doc comment; the tool has a separate description.
        fields.shift_remove("description");
    }
    schema
}

/// Kind of an object's keys: keywords of JSON Schema, or names chosen by people.
#[derive(Clone, Copy)]
enum KeyKind {
    Keywords,
    Names,
}

/// Removes members without information for a model: type names as titles, and integer widths, which are not
/// formats of JSON Schema and which Gemini refuses.
fn simplify_schema(value: &mut Value, keys: KeyKind) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| simplify_schema(item, keys)),
        Value::Object(fields) => {
            if let KeyKind::Keywords = keys {
                fields.shift_remove("title");
                let width = |format: &str| {
                    matches!(format, "float" | "double")
                        || format.starts_with("int")
                        || format.starts_with("uint")
                };
                if fields.get("format").and_then(Value::as_str).is_some_and(width) {
                    fields.shift_remove("format");
                }
            }
            for (key, child) in fields {
                let child_keys = match (keys, key.as_str()) {
                    (KeyKind::Keywords, "properties" | "patternProperties" | "$defs") => KeyKind::Names,
                    // Data, not schemas.
                    (KeyKind::Keywords, "default" | "enum" | "const" | "examples") => continue,
                    _ => KeyKind::Keywords,
                };
                simplify_schema(child, child_keys);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A doc comment of the type.
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Trip {
        /// Destination.
        city: String,
        days: Option<u8>,
        unit: Unit,
        stops: Vec<Stop>,
        #[serde(default)]
        title: String,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Unit {
        Celsius,
        Fahrenheit,
    }

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Stop {
        name: String,
        format: f64,
    }

    #[test]
    fn argument_schema_is_inlined_and_minimal() {
        assert_eq!(
            argument_schema::<Trip>(),
            json!({
                "type": "object",
                "properties": {
                    "city": {"description": "Destination.", "type": "string"},
                    "days": {"type": ["integer", "null"], "minimum": 0, "maximum": 255},
                    "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                    "stops": {"type": "array", "items": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}, "format": {"type": "number"}},
                        "required": ["name", "format"]
                    }},
                    "title": {"type": "string", "default": ""}
                },
                "required": ["city", "unit", "stops"]
            })
        );
        assert_eq!(argument_schema::<NoArguments>(), json!({"type": "object", "properties": {}}));
    }

    async fn reply(tool: &FunctionTool, arguments: Value) -> Result<ToolOutput, ToolError> {
        tool.call(&CallArguments::from_value(arguments), ToolContext::detached()).await
    }

    #[tokio::test]
    async fn function_results_become_tool_outputs_or_errors() {
        #[derive(Serialize, JsonSchema)]
        struct Point {
            x: i32,
        }
        async fn parse(_: NoArguments, _: ToolContext) -> Result<String, std::num::ParseIntError> {
            "x".parse::<i32>().map(|n| n.to_string())
        }
        async fn mixed(_: NoArguments, _: ToolContext) -> Result<String, ToolError> {
            let number: i32 = "12".parse()?;
            if number > 10 { Err(ToolError::new("too many")) } else { Ok(number.to_string()) }
        }
        let guess = |_: NoArguments, _| async {
            let number: i32 = "12".parse()?;
            if number > 10 {
                return Err(ToolError::new("too many"));
            }
            "x".parse::<f64>()?;
            Ok("saved")
        };
        let failed = |message: &str| Err(ToolError::new(message));
        let none = json!({});

        let text = tool("a.text", "", |_: NoArguments, _| async { "text" });
        assert_eq!(reply(&text, none.clone()).await, Ok(ToolOutput::text("text")));
        let owned = tool("a.owned", "", |stop: Stop, _| async move { stop.name });
        assert_eq!(reply(&owned, json!({"name": "x", "format": 1})).await, Ok(ToolOutput::text("x")));
        let nothing = tool("a.nothing", "", |_: NoArguments, _| async {});
        assert_eq!(reply(&nothing, none.clone()).await, Ok(ToolOutput::default()));
        let point = tool("a.json", "", |_: NoArguments, _| async { JsonOutput(Point { x: 1 }) });
        let output = reply(&point, none.clone()).await.unwrap();
        assert_eq!((output.text.as_str(), output.value), ("{\"x\":1}", Some(json!({"x": 1}))));
        assert_eq!(point.definition().output.unwrap()["properties"]["x"], json!({"type": "integer"}));
        assert_eq!(
            reply(&tool("a.parse", "", parse), none.clone()).await,
            failed("invalid digit found in string")
        );
        assert_eq!(reply(&tool("a.mixed", "", mixed), none.clone()).await, failed("too many"));
        assert_eq!(reply(&try_tool("a.guess", "", guess), none).await, failed("too many"));
    }

    #[tokio::test]
    async fn arguments_outside_the_rust_type_are_invalid_arguments() {
        let trip = tool("a.trip", "", |_: Trip, _| async {});
        let error = reply(&trip, json!({"city": "x", "days": 256, "unit": "celsius", "stops": []}))
            .await
            .unwrap_err();
        assert_eq!(error, ToolError::invalid_arguments("invalid value: integer `256`, expected u8"));
    }
}
