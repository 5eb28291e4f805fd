//! A tool's arguments as a flat list: the arguments that a protocol without nesting can carry, and their
//! description for the model.

use serde_json::Value;

/// Number of schemas read for one parameter: references may be circular, and schemas come from strangers.
const SCHEMAS_MAX: usize = 64;

/// One parameter of a tool.
pub(super) struct FlatParameter<'s> {
    pub(super) name: &'s str,
    pub(super) schema: &'s Value,
    pub(super) kinds: ValueKinds,
    pub(super) required: bool,
}

/// Kinds of JSON value that a schema allows. A schema without a type allows text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ValueKinds {
    pub(super) text: bool,
    pub(super) integer: bool,
    pub(super) number: bool,
    pub(super) boolean: bool,
    pub(super) null: bool,
    pub(super) nested: bool,
    /// The only values, if they are listed.
    pub(super) choices: Vec<Value>,
}

impl ValueKinds {
    /// True if any text is a valid value of this parameter.
    pub(super) fn is_any_text(&self) -> bool {
        self.text && self.choices.is_empty()
    }

    /// In the words of JSON Schema.
    pub(super) fn describe(&self) -> String {
        let known = [
            (self.text, "string"),
            (self.integer, "integer"),
            (self.number, "number"),
            (self.boolean, "boolean"),
            (self.null, "null"),
        ];
        let names: Vec<_> = known.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect();
        names.join(" or ")
    }

    fn add(&mut self, kind: &str) {
        match kind {
            "string" => self.text = true,
            "integer" => self.integer = true,
            "number" => self.number = true,
            "boolean" => self.boolean = true,
            "null" => self.null = true,
            _ => self.nested = true,
        }
    }

    fn add_value(&mut self, value: &Value) {
        match value {
            Value::String(_) => self.text = true,
            Value::Number(number) if number.is_f64() => self.number = true,
            Value::Number(_) => self.integer = true,
            Value::Bool(_) => self.boolean = true,
            Value::Null => self.null = true,
            Value::Array(_) | Value::Object(_) => self.nested = true,
        }
    }

    fn merge(&mut self, other: ValueKinds) {
        self.text |= other.text;
        self.integer |= other.integer;
        self.number |= other.number;
        self.boolean |= other.boolean;
        self.null |= other.null;
        self.nested |= other.nested;
    }

    fn is_empty(&self) -> bool {
        *self == ValueKinds::default()
    }
}

/// The parameters of a tool in the order of its schema.
pub(super) fn parameters(schema: &Value) -> Vec<FlatParameter<'_>> {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties
        .map(|(name, property)| FlatParameter {
            name,
            schema: property,
            kinds: kinds(schema, property),
            required: required.contains(&name.as_str()),
        })
        .collect()
}

fn kinds(root: &Value, schema: &Value) -> ValueKinds {
    let mut kinds = read_kinds(root, schema, &mut { SCHEMAS_MAX });
    if kinds.is_empty() {
        kinds.text = true;
    }
    kinds
}

fn read_kinds(root: &Value, schema: &Value, left: &mut usize) -> ValueKinds {
    let mut kinds = ValueKinds::default();
    if *left == 0 {
        return kinds;
    }
    *left -= 1;
    if let Some(target) = schema["$ref"].as_str() {
        let found = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return found.map_or(kinds, |found| read_kinds(root, found, left));
    }
    match &schema["type"] {
        Value::String(kind) => kinds.add(kind),
        Value::Array(several) => several.iter().filter_map(Value::as_str).for_each(|kind| kinds.add(kind)),
        _ => {}
    }
    let listed = schema["enum"].as_array().cloned();
    let choices = listed.or_else(|| schema.get("const").map(|only| vec![only.clone()])).unwrap_or_default();
    if kinds.is_empty() {
        choices.iter().for_each(|choice| kinds.add_value(choice));
    }
    if kinds.is_empty() {
        for several in ["anyOf", "oneOf", "allOf"] {
            for one in schema[several].as_array().into_iter().flatten() {
                kinds.merge(read_kinds(root, one, left));
            }
        }
    }
    kinds.choices = choices;
    kinds
}

/// Checks that the arguments can be written as a flat list of names and texts.
///
/// # Errors
/// The parameter that cannot, and the remedy.
pub(super) fn check_flat(schema: &Value) -> Result<(), String> {
    for several in ["anyOf", "oneOf", "allOf", "$ref"] {
        if schema.get(several).is_some() {
            return Err(format!(
                "its arguments are described by `{several}` and not as one flat list; offer it in native mode, or \
                 through a tool with plain arguments"
            ));
        }
    }
    for parameter in parameters(schema) {
        if parameter.kinds.nested && !parameter.kinds.text {
            return Err(format!(
                "its argument `{}` is a list or an object, and this protocol has flat arguments only; offer it in \
                 native mode, or through a tool with plain arguments",
                parameter.name
            ));
        }
    }
    Ok(())
}
