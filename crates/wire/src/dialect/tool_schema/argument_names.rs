//! Names of arguments at providers that accept only some names, and the mapping back.
//!
//! "tools.N.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"
//! (Anthropic and Bedrock, HTTP 400; beautyfree/appstore-connect-mcp#1, ComposioHQ/composio#3500). Only the
//! arguments themselves are checked, not their nested properties (decocms/studio#6874). Every call and every
//! event has the tool's own names: they are changed where a request is written, and back where a reply is
//! read.

use super::Dialect;
use crate::json::KeyRewriter;
use crate::vocabulary::{Call, CallArguments, CallSlot, Message, StepEvent, ToolDefinition, WireName};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Longest name of an argument, in characters.
const NAME_CHARS_MAX: usize = 64;
/// Keywords whose schemas apply to the arguments themselves.
const SAME_OBJECT: [&str; 4] = ["if", "then", "else", "dependentSchemas"];

/// Names of arguments that are others on the wire, by tool. Empty where the provider takes every name.
///
/// A decoder that is given those of a request ([`DecodeOptions::argument_names`](crate::DecodeOptions::argument_names))
/// reports the tool's own names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArgumentNames {
    tools: HashMap<WireName, RenamedArguments>,
}

/// The renamed arguments of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RenamedArguments {
    to_wire: Arc<BTreeMap<String, String>>,
    from_wire: Arc<BTreeMap<String, String>>,
}

impl ArgumentNames {
    /// The names that a request with these tools uses in a dialect.
    ///
    /// ```
    /// use throughline_wire::{ArgumentNames, Dialect, ToolDefinition};
    ///
    /// let schema = serde_json::json!({"type": "object", "properties": {"filter[app]": {"type": "string"}}});
    /// let tools = [ToolDefinition::new("list_builds", "", schema)];
    /// assert!(ArgumentNames::of(Dialect::OpenaiChat, &tools).is_empty());
    /// assert!(!ArgumentNames::of(Dialect::Anthropic, &tools).is_empty());
    /// ```
    pub fn of(dialect: Dialect, tools: &[ToolDefinition]) -> Self {
        match dialect {
            Dialect::Anthropic | Dialect::BedrockAnthropic | Dialect::BedrockConverse => {}
            _ => return Self::default(),
        }
        let renamed = tools.iter().filter_map(|tool| {
            let schema = needs_new_names(&tool.parameters).then(|| super::standard(&tool.parameters))?;
            let names = RenamedArguments::of(schema.get("properties")?.as_object()?)?;
            Some((tool.name.clone(), names))
        });
        Self { tools: renamed.collect() }
    }

    /// Every name is the tool's own.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Writes the wire's names into the schema of a tool.
    pub(super) fn rename_properties(&self, tool: &WireName, schema: &mut Map<String, Value>) {
        if let Some(names) = self.tools.get(tool) {
            names.rename_in(schema);
        }
    }

    /// The message has calls whose arguments have other names on the wire.
    pub(super) fn concern(&self, message: &Message) -> bool {
        match message {
            Message::User(_) => false,
            Message::Step(step) => step.calls.iter().any(|(call, _)| self.tools.contains_key(&call.name)),
        }
    }

    /// The message with the wire's names.
    pub(super) fn to_wire(&self, message: &Message) -> Message {
        let mut message = message.clone();
        if let Message::Step(step) = &mut message {
            step.calls.iter_mut().for_each(|(call, _)| self.rename_in_call(call));
        }
        message
    }

    fn rename_in_call(&self, call: &mut Call) {
        let Some(names) = self.tools.get(&call.name) else { return };
        let arguments = call.arguments.as_mut().ok();
        for arguments in arguments.into_iter().chain(call.ran_with.as_mut()) {
            rename_arguments(arguments, &names.to_wire);
        }
    }
}

/// A schema that [`ArgumentNames`] has to look at closely.
fn needs_new_names(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(name, value)| {
            (name == "properties"
                && value.as_object().is_some_and(|named| named.keys().any(|name| !is_taken_as_is(name))))
                || needs_new_names(value)
        }),
        Value::Array(items) => items.iter().any(needs_new_names),
        _ => false,
    }
}

/// True for a name that matches `^[a-zA-Z0-9_.-]{1,64}$`.
fn is_taken_as_is(name: &str) -> bool {
    (1..=NAME_CHARS_MAX).contains(&name.len()) && name.bytes().all(is_name_byte)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

impl RenamedArguments {
    fn of(properties: &Map<String, Value>) -> Option<Self> {
        let mut from_wire: BTreeMap<String, String> = BTreeMap::new();
        let mut to_wire = BTreeMap::new();
        for (number, name) in (1_usize..).zip(properties.keys()) {
            if is_taken_as_is(name) {
                continue;
            }
            let is_free = |wire: &str| !properties.contains_key(wire) && !from_wire.contains_key(wire);
            let legible = legible_name(name, number);
            let wire = if is_free(&legible) { legible } else { numbered_name(&legible, is_free) };
            to_wire.insert(name.clone(), wire.clone());
            from_wire.insert(wire, name.clone());
        }
        (!to_wire.is_empty()).then(|| Self { to_wire: Arc::new(to_wire), from_wire: Arc::new(from_wire) })
    }

    fn rename_in(&self, schema: &mut Map<String, Value>) {
        for keyword in ["properties", "dependentRequired", "dependentSchemas"] {
            if let Some(Value::Object(named)) = schema.get_mut(keyword) {
                *named = std::mem::take(named)
                    .into_iter()
                    .map(|(name, value)| match self.to_wire.get(&name) {
                        Some(wire) if keyword == "properties" => (wire.clone(), with_own_name(value, &name)),
                        Some(wire) => (wire.clone(), value),
                        None => (name, value),
                    })
                    .collect();
            }
        }
        if let Some(Value::Array(names)) = schema.get_mut("required") {
            names.iter_mut().for_each(|name| self.rename(name));
        }
        if let Some(Value::Object(named)) = schema.get_mut("dependentRequired") {
            let lists = named.values_mut().filter_map(Value::as_array_mut);
            lists.flatten().for_each(|name| self.rename(name));
        }
        for keyword in SAME_OBJECT {
            match schema.get_mut(keyword) {
                Some(Value::Object(named)) if keyword == "dependentSchemas" => {
                    named.values_mut().filter_map(Value::as_object_mut).for_each(|one| self.rename_in(one));
                }
                Some(Value::Object(one)) => self.rename_in(one),
                _ => {}
            }
        }
    }

    fn rename(&self, name: &mut Value) {
        if let Some(wire) = name.as_str().and_then(|name| self.to_wire.get(name)) {
            *name = wire.as_str().into();
        }
    }
}

/// The name with other characters replaced; its number if no valid character is left (`城市`).
fn legible_name(name: &str, number: usize) -> String {
    let replaced: String =
        name.chars().map(|c| if c.is_ascii() && is_name_byte(c as u8) { c } else { '_' }).collect();
    if !replaced.bytes().any(|byte| byte.is_ascii_alphanumeric()) {
        return format!("argument_{number}");
    }
    replaced.chars().take(NAME_CHARS_MAX).collect()
}

fn numbered_name(legible: &str, is_free: impl Fn(&str) -> bool) -> String {
    let mut number = 2_usize;
    loop {
        let suffix = format!("_{number}");
        let wire = format!("{}{suffix}", &legible[..legible.len().min(NAME_CHARS_MAX - suffix.len())]);
        if is_free(&wire) {
            return wire;
        }
        number += 1;
    }
}

/// The schema, with the argument's own name in its description: a model may know it from the tool's.
fn with_own_name(mut schema: Value, name: &str) -> Value {
    if let Value::Object(members) = &mut schema {
        let own = match members.get("description").and_then(Value::as_str) {
            Some(text) if !text.trim().is_empty() => format!("{text} ({name})"),
            _ => name.to_owned(),
        };
        members.insert("description".to_owned(), own.into());
    }
    schema
}

fn rename_arguments(arguments: &mut CallArguments, names: &Arc<BTreeMap<String, String>>) {
    let Value::Object(members) = &mut arguments.value else { return };
    if !members.keys().any(|name| names.contains_key(name)) {
        return;
    }
    *members = std::mem::take(members)
        .into_iter()
        .map(|(name, value)| (names.get(&name).cloned().unwrap_or(name), value))
        .collect();
    let mut rewriter = KeyRewriter::new(Arc::clone(names));
    let mut text = rewriter.push(&arguments.text).into_owned();
    text.push_str(&rewriter.finish());
    arguments.text = text;
}

/// Gives the calls of a reply the tools' own names of arguments.
pub(crate) struct ArgumentRenamer {
    names: ArgumentNames,
    /// The calls whose arguments are renamed as they arrive.
    calls: HashMap<CallSlot, (Arc<BTreeMap<String, String>>, KeyRewriter)>,
}

impl ArgumentRenamer {
    pub(crate) fn new(names: ArgumentNames) -> Option<Self> {
        (!names.is_empty()).then(|| Self { names, calls: HashMap::new() })
    }

    /// Passes one event on.
    pub(crate) fn pass(&mut self, event: StepEvent<'_>, sink: &mut dyn FnMut(StepEvent<'_>)) {
        match event {
            StepEvent::CallOpened { slot, position, upstream_id, name, kind, arguments } => {
                let names = self.names.tools.get(&name).map(|names| Arc::clone(&names.from_wire));
                let arguments = match (&names, arguments) {
                    (Some(names), Some(text)) => {
                        let mut rewriter = KeyRewriter::new(Arc::clone(names));
                        let mut own = rewriter.push(&text).into_owned();
                        own.push_str(&rewriter.finish());
                        Some(Cow::Owned(own))
                    }
                    (_, arguments) => arguments,
                };
                self.calls.remove(&slot);
                if let Some(names) = names {
                    let rewriter = KeyRewriter::new(Arc::clone(&names));
                    self.calls.insert(slot, (names, rewriter));
                }
                sink(StepEvent::CallOpened { slot, position, upstream_id, name, kind, arguments });
            }
            StepEvent::CallArguments { slot, delta } => match self.calls.get_mut(&slot) {
                None => sink(StepEvent::CallArguments { slot, delta }),
                Some((_, rewriter)) => {
                    let delta = rewriter.push(&delta);
                    if !delta.is_empty() {
                        sink(StepEvent::CallArguments { slot, delta });
                    }
                }
            },
            StepEvent::CallSealed { slot, seal, mut arguments } => {
                self.flush(slot, sink);
                if let Some((names, _)) = self.calls.get(&slot) {
                    rename_arguments(&mut arguments, names);
                }
                sink(StepEvent::CallSealed { slot, seal, arguments });
            }
            StepEvent::CallBroken { slot, reason, raw } => {
                self.flush(slot, sink);
                sink(StepEvent::CallBroken { slot, reason, raw });
            }
            StepEvent::CallReopened { slot } => {
                if let Some((names, rewriter)) = self.calls.get_mut(&slot) {
                    *rewriter = KeyRewriter::new(Arc::clone(names));
                }
                sink(StepEvent::CallReopened { slot });
            }
            other => sink(other),
        }
    }

    /// The beginning of a name that never ended.
    fn flush(&mut self, slot: CallSlot, sink: &mut dyn FnMut(StepEvent<'_>)) {
        let Some((_, rewriter)) = self.calls.get_mut(&slot) else { return };
        let rest = rewriter.finish();
        if !rest.is_empty() {
            sink(StepEvent::CallArguments { slot, delta: Cow::Owned(rest) });
        }
    }
}
