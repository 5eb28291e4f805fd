//! All tools, and the selection that is offered.
//!
//! Immutable once built: a turn uses the registry that it began with, and a change makes a new one. Never
//! runs anything.

use crate::naming;
use crate::schema::{CompiledSchema, SchemaError, SchemaFault};
use crate::toggles::{ToolToggle, ToolToggles};
use crate::tool::{AgentCallable, RunsOn, Tool, ToolSpec};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use throughline_engine::{CallRunner, OfferedTool, PermissionRule, suggest_names};
use throughline_wire::{CallArguments, ToolDefinition, ToolName, WireName};

/// All tools, in the order of their names.
///
/// ```
/// use throughline_tools::{Effect, NoArguments, ToolRegistry, ToolToggles, tool};
///
/// let ping = tool("net.ping", "Answers pong", |_: NoArguments, _| async { "pong" }).effect(Effect::Pure);
/// let registry = ToolRegistry::builder().tool(ping.agent_callable()).build()?;
/// let offered = registry.offered(&ToolToggles::default());
/// assert_eq!(offered[0].wire_name.as_str(), "net_ping");
/// # Ok::<(), throughline_tools::RegistryError>(())
/// ```
#[derive(Clone, Default)]
pub struct ToolRegistry {
    entries: BTreeMap<ToolName, Arc<RegisteredTool>>,
    by_wire_name: BTreeMap<WireName, ToolName>,
}

/// One registered tool: its code, its definition and what was made from it.
pub struct RegisteredTool {
    tool: Arc<dyn Tool>,
    spec: ToolSpec,
    /// Schema of the definition, shared because every turn has it and it is large.
    parameters: Arc<Value>,
    schema: CompiledSchema,
    wire_name: WireName,
    fingerprint: ToolFingerprint,
}

/// Error that prevents tools from being registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The name is not `group.method`.
    #[error("`{name}` cannot be a tool's name: {problem}")]
    Name {
        /// The name.
        name: ToolName,
        /// Problem with the name.
        problem: String,
    },
    /// Two tools of one name.
    #[error("there are two tools named `{name}`, from {first} and from {second}")]
    Duplicate {
        /// The name.
        name: ToolName,
        /// Source of the first tool with this name.
        first: String,
        /// Source of the other.
        second: String,
    },
    /// The schema of its arguments cannot be used.
    #[error("tool `{name}`: {fault}")]
    Schema {
        /// The tool.
        name: ToolName,
        /// The fault of the schema.
        fault: SchemaFault,
    },
}

/// BLAKE3 over a definition in canonical form. Approvals are bound to it: a tool that has changed in any way is
/// another tool.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolFingerprint([u8; 32]);

impl fmt::Display for ToolFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ToolFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolFingerprint({self})")
    }
}

/// Collects tools for a [`ToolRegistry`].
#[derive(Clone, Default)]
#[must_use]
pub struct RegistryBuilder {
    tools: Vec<Arc<dyn Tool>>,
}

impl RegistryBuilder {
    /// Adds a tool.
    pub fn tool(self, tool: impl Tool + 'static) -> Self {
        self.shared_tool(Arc::new(tool))
    }

    /// Adds a tool that others hold, too.
    pub fn shared_tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds several.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Asks each tool for its definition and compiles its schema.
    ///
    /// # Errors
    /// The first tool that cannot be registered; nothing is left out silently.
    pub fn build(self) -> Result<ToolRegistry, RegistryError> {
        let (registry, rejected) = self.build_valid();
        match rejected.into_iter().next() {
            None => Ok(registry),
            Some(RejectedTool { why, .. }) => Err(why),
        }
    }

    /// Builds a registry without the tools that cannot be registered; of two tools with the same name the
    /// first stays.
    pub(crate) fn build_valid(self) -> (ToolRegistry, Vec<RejectedTool>) {
        let mut accepted: BTreeMap<ToolName, (Arc<dyn Tool>, ToolSpec, CompiledSchema)> = BTreeMap::new();
        let mut rejected = Vec::new();
        for tool in self.tools {
            let spec = tool.definition();
            match check_spec(&spec, &accepted) {
                Ok(schema) => {
                    accepted.insert(spec.name.clone(), (tool, spec, schema));
                }
                Err(why) => rejected.push(RejectedTool { source: spec.source, why }),
            }
        }
        let by_wire_name = naming::wire_names(accepted.keys());
        let entries = by_wire_name
            .iter()
            .filter_map(|(wire_name, name)| {
                let (tool, spec, schema) = accepted.remove(name)?;
                Some((name.clone(), Arc::new(RegisteredTool::new(tool, spec, schema, wire_name))))
            })
            .collect();
        (ToolRegistry { entries, by_wire_name }, rejected)
    }
}

/// A tool that is left out, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RejectedTool {
    pub(crate) source: String,
    pub(crate) why: RegistryError,
}

/// The compiled schema of a tool that can be registered with those found before.
fn check_spec(
    spec: &ToolSpec,
    accepted: &BTreeMap<ToolName, (Arc<dyn Tool>, ToolSpec, CompiledSchema)>,
) -> Result<CompiledSchema, RegistryError> {
    let name = spec.name.clone();
    naming::check_name(&name).map_err(|problem| RegistryError::Name { name: name.clone(), problem })?;
    if let Some((_, other, _)) = accepted.get(&name) {
        let (first, second) = (other.source.clone(), spec.source.clone());
        return Err(RegistryError::Duplicate { name, first, second });
    }
    compile_schema(spec)
}

/// The schema that arguments are checked against. That of `parameters` must be one, too: models are shown it.
fn compile_schema(spec: &ToolSpec) -> Result<CompiledSchema, RegistryError> {
    let compile = |schema| {
        CompiledSchema::compile(schema)
            .map_err(|fault| RegistryError::Schema { name: spec.name.clone(), fault })
    };
    let shown = compile(&spec.parameters)?;
    spec.accepted.as_ref().map_or(Ok(shown), compile)
}

impl RegisteredTool {
    /// A single tool under a wire name that it already has.
    ///
    /// # Errors
    ///
    /// The schema is invalid.
    pub fn under(tool: Arc<dyn Tool>, wire_name: &WireName) -> Result<Self, RegistryError> {
        let spec = tool.definition();
        let schema = compile_schema(&spec)?;
        Ok(Self::new(tool, spec, schema, wire_name))
    }

    fn new(tool: Arc<dyn Tool>, spec: ToolSpec, schema: CompiledSchema, wire_name: &WireName) -> Self {
        let (fingerprint, parameters) =
            (ToolFingerprint::of(&spec, wire_name), Arc::new(spec.parameters.clone()));
        Self { tool, spec, parameters, schema, wire_name: wire_name.clone(), fingerprint }
    }

    /// Implementation of the tool.
    pub fn tool(&self) -> &Arc<dyn Tool> {
        &self.tool
    }
    /// Definition of the tool.
    pub fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    /// Name of the tool on the wire.
    pub fn wire_name(&self) -> &WireName {
        &self.wire_name
    }
    /// Hash of its whole definition.
    pub fn fingerprint(&self) -> ToolFingerprint {
        self.fingerprint
    }
    /// Checks arguments.
    ///
    /// # Errors
    /// The mismatches and their paths.
    pub fn validate(&self, arguments: &CallArguments) -> Result<(), SchemaError> {
        self.schema.check(&arguments.value)
    }
    /// The definition for models.
    pub fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.wire_name.clone(),
            description: self.spec.description.clone(),
            parameters: self.parameters.clone(),
            vcp: self.spec.vcp_command.clone(),
            strict: None,
        }
    }

    /// The tool as the turn machine takes it; `client_id` runs it if it is a client-side tool.
    pub fn to_offered(&self, client_id: Option<String>) -> OfferedTool {
        let spec = &self.spec;
        OfferedTool {
            name: spec.name.clone(),
            wire_name: self.wire_name.clone(),
            title: spec.title.clone(),
            source: spec.source.clone(),
            effect: spec.effect,
            concurrency: spec.concurrency.clone(),
            timeout_ms: u64::try_from(spec.timeout.as_millis()).unwrap_or(u64::MAX),
            definition: self.definition(),
            polling: spec.polling,
            runs: match spec.runs_on {
                RunsOn::Here => CallRunner::Here,
                RunsOn::Client => CallRunner::Client { client_id },
            },
            fingerprint: self.fingerprint.to_string(),
            permission: spec.permission,
            addresses: spec.addresses.clone(),
        }
    }
}

impl ToolRegistry {
    /// An empty builder.
    pub fn builder() -> RegistryBuilder {
        RegistryBuilder::default()
    }

    /// A builder that begins with these tools.
    pub fn to_builder(&self) -> RegistryBuilder {
        RegistryBuilder { tools: self.entries.values().map(|entry| entry.tool.clone()).collect() }
    }

    /// A registry with these additional tools; one with an existing name replaces it. Unchanged tools are not
    /// built again.
    ///
    /// # Errors
    ///
    /// As in [`RegistryBuilder::build`].
    pub fn with_tools(
        &self,
        tools: impl IntoIterator<Item = Arc<dyn Tool>>,
    ) -> Result<ToolRegistry, RegistryError> {
        let added = Self::builder().tools(tools).build()?;
        let mut all: BTreeMap<&ToolName, &Arc<RegisteredTool>> = self.entries.iter().collect();
        all.extend(added.entries.iter());
        let by_wire_name = naming::wire_names(all.keys().copied());
        let mut entries = BTreeMap::new();
        for (wire_name, name) in &by_wire_name {
            let Some(entry) = all.get(name) else { continue };
            let entry = if entry.wire_name == *wire_name {
                Arc::clone(entry)
            } else {
                // Wire names distinguish names that look alike: a new tool can change the wire name of another.
                let schema = compile_schema(&entry.spec)?;
                Arc::new(RegisteredTool::new(entry.tool.clone(), entry.spec.clone(), schema, wire_name))
            };
            entries.insert(name.clone(), entry);
        }
        Ok(ToolRegistry { entries, by_wire_name })
    }

    /// A tool by its own name.
    pub fn get(&self, name: &ToolName) -> Option<&Arc<RegisteredTool>> {
        self.entries.get(name)
    }

    /// A tool by its name at upstreams.
    pub fn by_wire_name(&self, name: &WireName) -> Option<&Arc<RegisteredTool>> {
        self.entries.get(self.by_wire_name.get(name)?)
    }

    /// All tools, by name, including those that models may not call.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<RegisteredTool>> {
        self.entries.values()
    }

    /// Number of tools.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if there are no tools.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All tools as rules see them, including those that agents may not call.
    pub(crate) fn all_as_offered(&self) -> Vec<OfferedTool> {
        self.entries.values().map(|entry| entry.to_offered(None)).collect()
    }

    /// The tools that an agent with these toggles may call, by name, with no client connected.
    pub fn offered(&self, toggles: &ToolToggles) -> Vec<OfferedTool> {
        self.offered_with(toggles, |_| None)
    }

    /// Offered tools, with `client_of` naming the connected client that runs a client-side tool.
    pub fn offered_with(
        &self,
        toggles: &ToolToggles,
        client_of: impl Fn(&ToolName) -> Option<String>,
    ) -> Vec<OfferedTool> {
        self.callable(toggles).map(|entry| entry.to_offered(client_of(&entry.spec.name))).collect()
    }

    fn callable(&self, toggles: &ToolToggles) -> impl Iterator<Item = &Arc<RegisteredTool>> {
        self.entries.values().filter(|entry| {
            entry.spec.agent_callable == AgentCallable::Yes && toggles.get(&entry.spec.name) == ToolToggle::On
        })
    }

    /// Checks arguments. A tool that is not there has no schema to break: running it answers with that.
    ///
    /// # Errors
    /// The mismatches and their paths.
    pub fn validate(&self, name: &ToolName, arguments: &CallArguments) -> Result<(), SchemaError> {
        self.get(name).map_or(Ok(()), |entry| entry.validate(arguments))
    }

    /// Offered tools whose names resemble one that is not there, as the model has to write them, best first.
    pub fn suggest(&self, name: &str, toggles: &ToolToggles) -> Vec<String> {
        let offered = self.callable(toggles).map(|entry| entry.wire_name.as_str());
        suggest_names(name, offered).into_iter().map(str::to_owned).collect()
    }

    /// The names in `toggles` that switch nothing here: no tool and no group is called so.
    pub fn unknown_toggles<'a>(&self, toggles: &'a ToolToggles) -> Vec<&'a str> {
        let is_known = |part: &str| {
            self.entries.keys().any(|name| {
                name.as_str().strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
        };
        toggles.names().filter(|part| !is_known(part)).collect()
    }

    /// Hash over all definitions: equal if, and only if, every tool is the same.
    pub fn fingerprint(&self) -> ToolFingerprint {
        let mut hasher = blake3::Hasher::new();
        for entry in self.entries.values() {
            hasher.update(&entry.fingerprint.0);
        }
        ToolFingerprint(*hasher.finalize().as_bytes())
    }
}

impl fmt::Debug for ToolRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.entries.values().map(|entry| (&entry.spec.name, &entry.wire_name)))
            .finish()
    }
}

impl ToolFingerprint {
    /// The fingerprint of a definition that has this name at upstreams.
    pub fn of(spec: &ToolSpec, wire_name: &WireName) -> Self {
        let ToolSpec { name, title, description, parameters, output, effect, source, .. } = spec;
        let ToolSpec {
            agent_callable,
            concurrency,
            timeout,
            permission,
            polling,
            runs_on,
            vcp_command,
            accepted,
            ..
        } = spec;
        let mut document = json!({
            "name": name, "wire_name": wire_name, "title": title, "description": description, "parameters": parameters,
            "output": output, "effect": effect, "source": source, "concurrency": concurrency, "polling": polling,
            "timeout_ms": timeout.as_millis() as u64,
            "agent_callable": agent_callable == &AgentCallable::Yes,
            "asks": permission == &PermissionRule::Ask,
            "runs_on_client": runs_on == &RunsOn::Client,
        });
        if let Some(vcp) = vcp_command {
            document["vcp"] = json!([vcp.tool_name, vcp.command]);
            if !vcp.aliases.is_empty() {
                document["aliases"] = json!(vcp.aliases);
            }
        }
        if let Some(accepted) = accepted {
            document["accepted"] = accepted.clone();
        }
        Self(*blake3::hash(canonicalize(document).to_string().as_bytes()).as_bytes())
    }
}

/// An equal value with the keys of every object in order.
pub(crate) fn canonicalize(value: Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(canonicalize).collect()),
        Value::Object(fields) => {
            let sorted: BTreeMap<String, Value> =
                fields.into_iter().map(|(key, value)| (key, canonicalize(value))).collect();
            Value::Object(sorted.into_iter().collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::ToolContext;
    use crate::function::{FunctionTool, NoArguments, tool};
    use crate::tool::ToolError;
    use async_trait::async_trait;
    use std::collections::BTreeSet;
    use std::time::Duration;
    use throughline_engine::Effect;
    use throughline_wire::{ToolOutput, VcpCommand};

    fn quiet(name: &str) -> FunctionTool {
        tool(name, "does nothing", |_: NoArguments, _| async {})
    }

    fn registry(names: &[&str]) -> ToolRegistry {
        let builder = names
            .iter()
            .fold(ToolRegistry::builder(), |builder, name| builder.tool(quiet(name).agent_callable()));
        builder.build().unwrap()
    }

    fn offered_names(registry: &ToolRegistry, toggles: &ToolToggles) -> Vec<String> {
        registry.offered(toggles).into_iter().map(|offered| offered.name.into_string()).collect()
    }

    struct Plain(ToolSpec);

    #[async_trait]
    impl Tool for Plain {
        fn definition(&self) -> ToolSpec {
            self.0.clone()
        }
        async fn call(&self, _: &CallArguments, _: ToolContext) -> Result<ToolOutput, ToolError> {
            Ok(ToolOutput::default())
        }
    }

    #[test]
    fn tools_are_offered_only_if_agent_callable() {
        let registry = ToolRegistry::builder()
            .tool(quiet("a.yes").agent_callable())
            .tool(quiet("a.no"))
            .build()
            .unwrap();
        assert_eq!(offered_names(&registry, &ToolToggles::default()), ["a.yes"]);
        assert!(registry.get(&"a.no".into()).is_some());
        let forced = ToolToggles::new(ToolToggle::On).set("a.no", ToolToggle::On);
        assert_eq!(offered_names(&registry, &forced), ["a.yes"], "a toggle cannot make a tool callable");
    }

    #[test]
    fn vcp_command_is_part_of_the_offered_definition() {
        let tool = quiet("a.b").agent_callable().vcp_command("FileOperator", Some("ReadFile"));
        let registry =
            ToolRegistry::builder().tool(tool).tool(quiet("a.c").agent_callable()).build().unwrap();
        let offered = registry.offered(&ToolToggles::default());
        let expected = VcpCommand::new("FileOperator", Some("ReadFile"));
        assert_eq!(offered[0].definition.vcp, Some(expected));
        assert_eq!(offered[1].definition.vcp, None);
    }

    #[test]
    fn offered_tools_and_fingerprint_ignore_registration_order() {
        let names = ["time.now", "a.b", "files.read", "files.list"];
        let mut backwards = names;
        backwards.reverse();
        let (one, other) = (registry(&names), registry(&backwards));
        assert_eq!(
            offered_names(&one, &ToolToggles::default()),
            ["a.b", "files.list", "files.read", "time.now"]
        );
        assert_eq!(one.offered(&ToolToggles::default()), other.offered(&ToolToggles::default()));
        assert_eq!(one.fingerprint(), other.fingerprint());
        let toggles =
            ToolToggles::new(ToolToggle::On).set("files", ToolToggle::Off).set("files.read", ToolToggle::On);
        assert_eq!(offered_names(&one, &toggles), ["a.b", "files.read", "time.now"]);
    }

    #[test]
    fn wire_names_map_back_to_their_tools() {
        let registry = registry(&["a.b_c", "a_b.c", "live2d.expression"]);
        for entry in registry.iter() {
            let back = registry.by_wire_name(entry.wire_name()).unwrap();
            assert_eq!(back.spec().name, entry.spec().name);
        }
        assert!(registry.by_wire_name(&"a_b_c".into()).is_none(), "a name in dispute belongs to nobody");
        assert!(registry.by_wire_name(&"live2d.expression".into()).is_none());
    }

    #[test]
    fn a_changed_definition_has_another_fingerprint() {
        let base = ToolSpec::new("a.b", "one");
        let of = |spec: &ToolSpec| ToolFingerprint::of(spec, &"a_b".into());
        let change = |edit: fn(&mut ToolSpec)| {
            let mut spec = base.clone();
            edit(&mut spec);
            spec
        };
        let changed = [
            change(|spec| spec.description = "two".into()),
            change(|spec| spec.title = "two".into()),
            change(|spec| spec.parameters = json!({"type": "object"})),
            change(|spec| spec.effect = Effect::Read),
            change(|spec| spec.source = "mcp:x".into()),
            change(|spec| spec.permission = PermissionRule::Ask),
            change(|spec| spec.agent_callable = AgentCallable::Yes),
            change(|spec| spec.runs_on = RunsOn::Client),
            change(|spec| spec.timeout = Duration::from_secs(1)),
            change(|spec| spec.output = Some(json!({}))),
            change(|spec| {
                spec.vcp_command = Some(VcpCommand::new("A", Some("b")));
            }),
            change(|spec| {
                let aliases = vec!["B".to_owned()];
                spec.vcp_command = Some(VcpCommand { aliases, ..VcpCommand::new("A", Some("b")) });
            }),
            change(|spec| spec.accepted = Some(json!({"type": "object"}))),
        ];
        for spec in &changed {
            assert_ne!(of(spec), of(&base), "{spec:?}");
        }
        assert_eq!(changed.iter().map(of).collect::<BTreeSet<_>>().len(), changed.len(), "all differ");
        let one =
            change(|spec| spec.parameters = json!({"type": "object", "properties": {"a": {}, "b": {}}}));
        let other =
            change(|spec| spec.parameters = json!({"properties": {"b": {}, "a": {}}, "type": "object"}));
        assert_eq!(of(&one), of(&other), "the order of keys says nothing");
        assert_eq!(of(&base).to_string().len(), 64);
    }

    #[test]
    fn invalid_names_duplicates_and_schemas_are_refused() {
        let broken = |parameters: Value| {
            let mut spec = ToolSpec::new("a.b", "");
            spec.parameters = parameters;
            Plain(spec)
        };
        let message = |builder: RegistryBuilder| builder.build().unwrap_err().to_string();
        assert_eq!(
            message(ToolRegistry::builder().tool(quiet("now"))),
            "`now` cannot be a tool's name: it has no group: `group.method`"
        );
        assert_eq!(
            message(ToolRegistry::builder().tool(quiet("a.b")).tool(quiet("a.b").source("demo"))),
            "there are two tools named `a.b`, from rust and from demo"
        );
        assert_eq!(
            message(ToolRegistry::builder().tool(broken(json!({"type": "string"})))),
            "tool `a.b`: the schema cannot be used: the arguments of a tool are an object: `\"type\": \"object\"`"
        );
        let fetching = broken(json!({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1/s"}}}));
        assert!(message(ToolRegistry::builder().tool(fetching)).contains("127.0.0.1"));
    }

    #[test]
    fn offered_tool_carries_effect_permission_and_fingerprint() {
        let tool = quiet("a.b").effect(Effect::Read).agent_callable().require_approval();
        let registry = ToolRegistry::builder().tool(tool).build().unwrap();
        let offered = registry.offered(&ToolToggles::default()).remove(0);
        assert_eq!((offered.effect, offered.permission), (Effect::Read, PermissionRule::Ask));
        let fingerprint = registry.get(&"a.b".into()).unwrap().fingerprint().to_string();
        assert_eq!((offered.fingerprint.as_str(), offered.fingerprint.len()), (fingerprint.as_str(), 64));
    }

    #[test]
    fn client_side_tools_name_their_client() {
        let mut spec = ToolSpec::new("live2d.motion", "");
        spec.runs_on = RunsOn::Client;
        spec.agent_callable = AgentCallable::Yes;
        let registry =
            ToolRegistry::builder().tool(Plain(spec)).tool(quiet("a.b").agent_callable()).build().unwrap();
        let runs = |client: Option<&str>| {
            let offered = registry.offered_with(&ToolToggles::default(), |_| client.map(str::to_owned));
            offered.into_iter().map(|offered| offered.runs).collect::<Vec<_>>()
        };
        assert_eq!(runs(None), [CallRunner::Here, CallRunner::Client { client_id: None }]);
        assert_eq!(runs(Some("c1")), [CallRunner::Here, CallRunner::Client { client_id: Some("c1".into()) }]);
    }

    #[test]
    fn suggest_skips_disabled_and_unknown_toggles_are_listed() {
        let registry = ToolRegistry::builder()
            .tool(quiet("demo.weather").agent_callable())
            .tool(quiet("demo.whether"))
            .build()
            .unwrap();
        assert_eq!(registry.suggest("demo_wether", &ToolToggles::default()), ["demo_weather"]);
        assert!(registry.suggest("demo_weather", &ToolToggles::new(ToolToggle::Off)).is_empty());
        let toggles = ToolToggles::default()
            .set("demo", ToolToggle::On)
            .set("dem", ToolToggle::On)
            .set("demo.x", ToolToggle::On);
        assert_eq!(registry.unknown_toggles(&toggles), ["dem", "demo.x"]);
    }
}
