//! One object at the top, without a union.

use super::copies::CopyBudget;
use super::references;
use serde_json::{Map, Value, json};

/// Keywords that are refused at the top, with any value.
const REFUSED_AT_TOP: [&str; 7] = ["$ref", "anyOf", "oneOf", "allOf", "enum", "const", "not"];
/// Deepest nesting of unions and references that is followed.
const UNIONS_DEPTH_MAX: usize = 8;
/// Most schemas that are read for one tool.
const SCHEMAS_READ_MAX: usize = 500;
/// Most alternatives whose sets of arguments are written out.
const ALTERNATIVES_LISTED_MAX: usize = 12;

/// Makes the schema one object that names the properties of all alternatives; what one of them requires and the others do
/// not is written into the description.
pub(super) fn flatten(schema: &mut Map<String, Value>, copies: &mut CopyBudget) {
    let definitions = match schema.get("$defs") {
        Some(Value::Object(definitions)) => definitions.clone(),
        _ => Map::new(),
    };
    if flatten_object(schema, &definitions, copies) {
        references::drop_unused(schema);
    }
}

/// Flattens an object whose definitions are elsewhere. True if it has a keyword that is refused at the top.
pub(super) fn flatten_object(
    schema: &mut Map<String, Value>,
    definitions: &Map<String, Value>,
    copies: &mut CopyBudget,
) -> bool {
    let is_refused = REFUSED_AT_TOP.iter().any(|keyword| schema.contains_key(*keyword));
    if is_refused {
        let mut reader = ArgumentReader { definitions, read: 0, copies };
        let object = reader.object(schema, 0);
        schema.retain(|keyword, _| !REFUSED_AT_TOP.contains(&keyword.as_str()));
        let description = object.description(schema.get("description").and_then(Value::as_str));
        schema.extend(description.map(|text| ("description".to_owned(), text.into())));
        schema.insert("properties".to_owned(), object.properties.into());
        if !object.required.is_empty() {
            schema.insert("required".to_owned(), json!(object.required));
        }
    }
    schema.insert("type".to_owned(), "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    is_refused
}

struct ArgumentReader<'a> {
    definitions: &'a Map<String, Value>,
    /// Schemas read so far.
    read: usize,
    copies: &'a mut CopyBudget,
}

impl ArgumentReader<'_> {
    fn object(&mut self, schema: &Map<String, Value>, depth: usize) -> ObjectArguments {
        self.read += 1;
        let mut object = ObjectArguments {
            description: schema.get("description").and_then(Value::as_str).map(str::to_owned),
            properties: schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default(),
            required: names(schema.get("required")),
            alternatives: Vec::new(),
        };
        if depth == UNIONS_DEPTH_MAX || self.read >= SCHEMAS_READ_MAX {
            return object;
        }
        let target = references::target(self.definitions, schema);
        let target = target.filter(|target| self.copies.take(target));
        let mut inside = |schema: &Value| {
            let members = schema.as_object().filter(|members| can_be_object(members))?;
            Some(self.object(members, depth + 1))
        };
        let all = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
        for part in target.into_iter().chain(all).filter_map(&mut inside) {
            object.require_also(part);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(alternatives)) = schema.get(keyword) {
                object.require_one_of(alternatives.iter().filter_map(&mut inside).collect());
            }
        }
        object
    }
}

/// The arguments that an object schema names.
#[derive(Clone, Default)]
struct ObjectArguments {
    description: Option<String>,
    properties: Map<String, Value>,
    required: Vec<String>,
    /// Sets of arguments of which one must be there: what each requires beyond [`Self::required`], with fixed values.
    alternatives: Vec<Vec<String>>,
}

impl ObjectArguments {
    fn require_also(&mut self, other: Self) {
        for (name, schema) in other.properties {
            match self.properties.get_mut(&name) {
                Some(known) => *known = both(known.take(), schema),
                None => _ = self.properties.insert(name, schema),
            }
        }
        for name in other.required {
            if !self.required.contains(&name) {
                self.required.push(name);
            }
        }
        self.description = self.description.take().or(other.description);
        if self.alternatives.is_empty() {
            self.alternatives = other.alternatives;
        }
    }

    fn require_one_of(&mut self, alternatives: Vec<Self>) {
        let Some(first) = alternatives.first() else { return };
        let common: Vec<String> = first
            .required
            .iter()
            .filter(|name| alternatives.iter().all(|one| one.required.contains(name)))
            .filter(|name| !self.required.contains(name))
            .cloned()
            .collect();
        let fixed = |object: &Self, name: &String| {
            let value = object.properties.get(name)?.get("const")?;
            Some(format!("{name} = {value}"))
        };
        let beyond = |object: &Self| {
            let names = object.required.iter().filter(|name| !self.required.contains(name));
            names
                .filter_map(|name| match fixed(object, name) {
                    Some(value) => Some(value),
                    None => (!common.contains(name)).then(|| name.clone()),
                })
                .collect::<Vec<_>>()
        };
        let sets: Vec<Vec<String>> = alternatives.iter().map(beyond).collect();
        // If one alternative requires nothing more, there is no constraint to add. A nested union does
        // require something, though it names no property.
        let needs_more =
            alternatives.iter().zip(&sets).all(|(one, set)| !set.is_empty() || !one.alternatives.is_empty());
        if self.alternatives.is_empty() && needs_more && sets.iter().any(|set| *set != sets[0]) {
            self.alternatives = sets;
        }
        self.required.extend(common);
        for (name, schema) in alternatives.into_iter().flat_map(|one| one.properties) {
            match self.properties.get_mut(&name) {
                Some(known) => *known = either(known.take(), schema),
                None => _ = self.properties.insert(name, schema),
            }
        }
    }

    /// The schema's own description, with the alternatives.
    fn description(&self, own: Option<&str>) -> Option<String> {
        let own = own.or(self.description.as_deref());
        let listed: Vec<String> = self
            .alternatives
            .iter()
            .filter(|set| !set.is_empty())
            .take(ALTERNATIVES_LISTED_MAX)
            .map(|set| format!("({})", set.join(", ")))
            .collect();
        if listed.is_empty() {
            return own.map(str::to_owned);
        }
        let alternatives = format!("Needs one of these sets of arguments: {}.", listed.join(" or "));
        Some(own.map_or_else(|| alternatives.clone(), |own| format!("{own}\n{alternatives}")))
    }
}

/// A schema that takes what both do.
fn both(one: Value, other: Value) -> Value {
    if one == other { one } else { json!({ "allOf": with_another(one, other, "allOf") }) }
}

/// A schema that takes what either does.
fn either(one: Value, other: Value) -> Value {
    if one == other {
        return one;
    }
    if let (Some(mut values), Some(more)) = (fixed_values(&one), fixed_values(&other)) {
        more.into_iter().for_each(|value| {
            if !values.contains(&value) {
                values.push(value);
            }
        });
        let mut merged = one.as_object().cloned().unwrap_or_default();
        merged.shift_remove("const");
        merged.insert("enum".to_owned(), values.into());
        return merged.into();
    }
    json!({ "anyOf": with_another(one, other, "anyOf") })
}

/// The schemas of a list, which may have been made here for those before, and another one.
fn with_another(one: Value, other: Value, keyword: &str) -> Vec<Value> {
    let mut schemas = match one {
        Value::Object(mut members) if members.len() == 1 && members.contains_key(keyword) => {
            match members.shift_remove(keyword) {
                Some(Value::Array(schemas)) => schemas,
                _ => Vec::new(),
            }
        }
        one => vec![one],
    };
    if !schemas.contains(&other) {
        schemas.push(other);
    }
    schemas
}

/// The values of a schema that lists them and has few other constraints.
fn fixed_values(schema: &Value) -> Option<Vec<Value>> {
    let members = schema.as_object()?;
    let is_plain =
        |keyword: &String| matches!(keyword.as_str(), "const" | "enum" | "type" | "description" | "title");
    if !members.keys().all(is_plain) {
        return None;
    }
    match (members.get("const"), members.get("enum")) {
        (Some(value), None) => Some(vec![value.clone()]),
        (None, Some(Value::Array(values))) => Some(values.clone()),
        _ => None,
    }
}

fn can_be_object(schema: &Map<String, Value>) -> bool {
    !schema.contains_key("type") || super::normal::has_type(schema, "object")
}

fn names(list: Option<&Value>) -> Vec<String> {
    let names = list.and_then(Value::as_array).into_iter().flatten();
    names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}
