//! Arguments for a tool that the script does not know: values that fit its JSON Schema, as far as a script can tell.

use super::cities;
use super::language::DemoLanguage;
use serde_json::{Map, Number, Value, json};
use std::cell::Cell;

/// Schemas may refer to themselves.
const DEPTH_MAX: usize = 8;
/// One that refers to itself twice would double with each level.
const VALUES_MAX: u32 = 100;
/// A schema may ask for any number of items.
const ITEMS_MAX: u64 = 16;
/// Any day: only its form counts.
const DATE: &str = "2026-11-21";

/// Fills schemas with values from the user's text.
pub(crate) struct SchemaFiller<'a> {
    /// The whole schema, which `$ref` points into.
    root: &'a Value,
    text: &'a str,
    language: DemoLanguage,
    values_left: Cell<u32>,
}

impl<'a> SchemaFiller<'a> {
    /// For the arguments of one tool.
    pub fn new(root: &'a Value, text: &'a str, language: DemoLanguage) -> Self {
        Self { root, text, language, values_left: Cell::new(VALUES_MAX) }
    }

    /// The arguments: all required ones, and no others.
    pub fn arguments(&self) -> Value {
        match self.value("", self.root, 0) {
            Value::Object(arguments) => Value::Object(arguments),
            _ => json!({}),
        }
    }

    fn value(&self, name: &str, schema: &Value, depth: usize) -> Value {
        let Some(values_left) = self.values_left.get().checked_sub(1) else { return Value::Null };
        self.values_left.set(values_left);
        let examples = schema.get("examples").and_then(Value::as_array).and_then(|examples| examples.first());
        let choices = schema.get("enum").and_then(Value::as_array);
        let choice = choices.and_then(|choices| self.nearest(choices));
        let given = schema.get("const").or(schema.get("default")).or(examples).or(choice);
        if let Some(given) = given {
            return given.clone();
        }
        if depth == DEPTH_MAX {
            return Value::Null;
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let target = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            return target.map_or(Value::Null, |target| self.value(name, target, depth + 1));
        }
        for one_of in ["anyOf", "oneOf"] {
            let variants = schema.get(one_of).and_then(Value::as_array).into_iter().flatten();
            let mut filled = variants.map(|variant| self.value(name, variant, depth + 1));
            if let Some(value) = filled.find(|value| !value.is_null()) {
                return value;
            }
        }
        if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
            return self.all_of(name, schema, parts, depth);
        }
        match kind(schema) {
            Some("integer" | "number") => self.number(schema).map_or(Value::Null, Value::Number),
            Some("boolean") => true.into(),
            Some("null") => Value::Null,
            Some("array") => self.items(name, schema, depth),
            Some("object") => Value::Object(self.object(schema, depth)),
            None if schema.get("properties").is_some() => Value::Object(self.object(schema, depth)),
            _ => self.string(name, schema).into(),
        }
    }

    /// One of the choices that the user names, else the first.
    fn nearest<'v>(&self, choices: &'v [Value]) -> Option<&'v Value> {
        let text = self.text.to_lowercase();
        let named = |choice: &&Value| {
            choice.as_str().is_some_and(|word| !word.is_empty() && text.contains(&word.to_lowercase()))
        };
        choices.iter().find(named).or(choices.first())
    }

    /// An object with the members of all parts; other values are those of the first part.
    fn all_of(&self, name: &str, schema: &Value, parts: &[Value], depth: usize) -> Value {
        let mut values = parts.iter().map(|part| self.value(name, part, depth + 1));
        let Some(Value::Object(mut members)) = values.next() else {
            return parts.first().map_or(Value::Null, |part| self.value(name, part, depth + 1));
        };
        members.extend(values.filter_map(|value| value.as_object().cloned()).flatten());
        members.extend(self.object(schema, depth));
        Value::Object(members)
    }

    fn object(&self, schema: &Value, depth: usize) -> Map<String, Value> {
        let properties = schema.get("properties");
        let required = schema.get("required").and_then(Value::as_array);
        let names = required.into_iter().flatten().filter_map(Value::as_str);
        let member = |name: &str| {
            let schema = properties.and_then(|properties| properties.get(name)).unwrap_or(&Value::Null);
            (name.to_owned(), self.value(name, schema, depth + 1))
        };
        names.map(member).collect()
    }

    fn items(&self, name: &str, schema: &Value, depth: usize) -> Value {
        let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
        let least = bound("minItems").unwrap_or(0).min(ITEMS_MAX);
        let count = bound("maxItems").unwrap_or(u64::MAX).min(least.max(1));
        let first = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let rest = schema.get("items").unwrap_or(&Value::Null);
        let count = usize::try_from(count).unwrap_or(1).max(first.len());
        let item = |at: usize| self.value(name, first.get(at).unwrap_or(rest), depth + 1);
        (0..count).map(item).collect()
    }

    /// The user's first number, or 1, moved to where the schema takes it.
    fn number(&self, schema: &Value) -> Option<Number> {
        let is_integer = kind(schema) == Some("integer");
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        let step = bound("multipleOf").filter(|step| *step > 0.0).or(is_integer.then_some(1.0));
        let nearly = if is_integer { 1.0 } else { step.unwrap_or(0.5) };
        let least = bound("minimum").or(bound("exclusiveMinimum").map(|least| least + nearly));
        let most = bound("maximum").or(bound("exclusiveMaximum").map(|most| most - nearly));
        let mut words =
            self.text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse::<f64>().ok());
        let mut value = words.next().unwrap_or(1.0);
        value = least.map_or(value, |least| value.max(least));
        value = most.map_or(value, |most| value.min(most));
        if let Some(step) = step {
            let up = (value / step).ceil() * step;
            value = if most.is_some_and(|most| up > most) { (value / step).floor() * step } else { up };
        }
        if value.fract() == 0.0 && value.abs() < 9e15 {
            return Some(Number::from(value as i64));
        }
        Number::from_f64(value)
    }

    fn string(&self, name: &str, schema: &Value) -> String {
        match schema.get("format").and_then(Value::as_str) {
            Some("date") => return DATE.to_owned(),
            Some("date-time") => return format!("{DATE}T09:00:00Z"),
            Some("time") => return "09:00:00Z".to_owned(),
            Some("duration") => return "PT1H".to_owned(),
            Some("email") => return "ada@example.com".to_owned(),
            Some("uri" | "url") => return "https://example.com/".to_owned(),
            Some("uuid") => return "6f1ed002-ab55-4598-9014-ebf0951522d9".to_owned(),
            _ => {}
        }
        let text = match name.to_lowercase().as_str() {
            "city" | "location" | "place" | "town" => self.city(),
            "timezone" | "time_zone" | "tz" | "zone" => "Europe/Paris".to_owned(),
            _ => self.text.trim().to_owned(),
        };
        let text = if text.is_empty() { "demo".to_owned() } else { text };
        let bound =
            |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|chars| usize::try_from(chars).ok());
        let least = bound("minLength").unwrap_or(0).min(1_000);
        let text = text.repeat(least.div_ceil(text.chars().count()).max(1));
        text.chars().take(bound("maxLength").unwrap_or(usize::MAX)).collect()
    }

    fn city(&self) -> String {
        let named = cities::requested_cities(self.text, self.language).into_iter().next();
        named.unwrap_or_else(|| self.language.choose("Paris", "巴黎").to_owned())
    }
}

/// The type; of several the first that is more than nothing.
fn kind(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        kind => kind.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_tools::CompiledSchema;

    /// The arguments for a required property `it`, which the schema takes.
    fn check(property: Value, expected: Value) {
        let schema = json!({
            "type": "object", "properties": {"it": property, "more": {"type": "string"}}, "required": ["it"],
            "additionalProperties": false,
            "$defs": {"Tree": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"},
                "left": {"$ref": "#/$defs/Tree"}}}},
        });
        let text = "Put 3 lamps into the kitchen in Oslo";
        let arguments = SchemaFiller::new(&schema, text, DemoLanguage::English).arguments();
        assert_eq!(arguments, json!({"it": expected}), "{schema}");
        let compiled = CompiledSchema::compile(&schema).unwrap();
        assert!(compiled.check(&arguments).is_ok(), "{schema}");
    }

    #[test]
    fn required_property_gets_a_value_that_fits() {
        let text = "Put 3 lamps into the kitchen in Oslo";
        check(json!({"type": "string"}), json!(text));
        check(json!({"type": "string", "maxLength": 5}), json!("Put 3"));
        check(json!({"type": "string", "minLength": 40}), json!(format!("{text}{text}")));
        check(json!({"type": "string", "format": "date"}), json!("2026-11-21"));
        check(json!({"type": ["null", "string"], "enum": [null, "hall", "kitchen"]}), json!("kitchen"));
        check(json!({"enum": [7, 8]}), json!(7));
        check(json!({"const": "x"}), json!("x"));
        check(json!({"type": "integer", "default": 12}), json!(12));
        check(json!({"type": "string", "examples": ["seen"]}), json!("seen"));
        check(json!({"type": "integer"}), json!(3));
        check(json!({"type": "integer", "maximum": 2}), json!(2));
        check(json!({"type": "integer", "exclusiveMinimum": 3, "multipleOf": 5}), json!(5));
        check(json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}), json!(0.5));
        check(json!({"type": "boolean"}), json!(true));
        check(json!({"type": "null"}), json!(null));
        check(json!({"type": "array", "items": {"type": "integer"}, "minItems": 2}), json!([3, 3]));
        check(json!({"type": "array", "maxItems": 0}), json!([]));
        check(json!({"type": "object"}), json!({}));
        check(json!({"$ref": "#/$defs/Tree"}), json!({"name": text}));
        check(json!({"anyOf": [{"type": "null"}, {"type": "boolean"}]}), json!(true));
        let part = |name: &str| json!({"type": "object", "properties": {name: {"type": "boolean"}}, "required": [name]});
        check(json!({"allOf": [part("a"), part("b")]}), json!({"a": true, "b": true}));
        check(json!({}), json!(text));
    }

    #[test]
    fn city_is_taken_from_the_user_message() {
        let schema = json!({"properties": {"city": {"type": "string"}}, "required": ["city"]});
        let of = |text: &str, language| SchemaFiller::new(&schema, text, language).arguments();
        assert_eq!(of("Is it warm in Oslo?", DemoLanguage::English), json!({"city": "Oslo"}));
        assert_eq!(of("Is it warm?", DemoLanguage::English), json!({"city": "Paris"}));
        assert_eq!(of("暖和吗？", DemoLanguage::Chinese), json!({"city": "巴黎"}));
    }

    #[test]
    fn arguments_of_a_tool_without_a_schema_are_empty() {
        for schema in [Value::Null, json!({}), json!({"type": "object"}), json!({"type": "string"})] {
            assert_eq!(
                SchemaFiller::new(&schema, "x", DemoLanguage::English).arguments(),
                json!({}),
                "{schema}"
            );
        }
    }

    #[test]
    fn schema_that_doubles_with_each_level_is_cut() {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let properties: Map<_, _> =
            names.map(|name| (name.to_owned(), json!({"$ref": "#"}))).into_iter().collect();
        let schema = json!({"type": "object", "properties": properties, "required": names});
        let arguments = SchemaFiller::new(&schema, "x", DemoLanguage::English).arguments().to_string();
        assert!(arguments.len() < 20_000, "{} bytes", arguments.len());
    }

    #[test]
    fn nested_arrays_of_many_items_are_cut() {
        let mut schema = json!({"type": "integer"});
        for _ in 0..DEPTH_MAX {
            schema = json!({"type": "array", "minItems": 1_000, "items": schema});
        }
        let schema = json!({"properties": {"all": schema}, "required": ["all"]});
        let arguments = SchemaFiller::new(&schema, "x", DemoLanguage::English).arguments().to_string();
        assert!(arguments.len() < 20_000, "{} bytes", arguments.len());
    }
}
