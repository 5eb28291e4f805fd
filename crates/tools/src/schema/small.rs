//! The validator of builds without the cargo feature `json-schema`: the keywords that definitions of tools have, and a
//! refusal of every other keyword that constrains, when the tool is registered.
//!
//! Never accepts what it cannot check, never follows a reference out of the document.

use super::messages::{
    QUOTE_CHARS_MAX, child_pointer, choice_list, describe_value, pluralize, quote_value, truncate_chars,
    unknown_property,
};
use super::{SchemaFault, SchemaViolation, VIOLATIONS_COUNTED_MAX};
use regex::Regex;
use serde_json::{Map, Number, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Most applications of a subschema to a value in one check.
pub(super) const CHECK_STEPS_MAX: u32 = 1_000_000;
/// Deepest nesting of subschemas and references, at registration and in a check.
pub(super) const SCHEMA_DEPTH_MAX: u32 = 200;

/// Keywords that hold one schema.
const ONE: [&str; 7] = ["additionalProperties", "items", "not", "propertyNames", "if", "then", "else"];
/// Keywords that hold a list of schemas.
const LIST: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords that hold schemas by name.
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
/// Keywords that hold a count.
const COUNTS: [&str; 6] =
    ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"];
/// Keywords that hold a number.
const NUMBERS: [&str; 5] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
/// Keywords that constrain, and that this validator does not know.
const REFUSED: [&str; 13] = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "additionalItems",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const TYPES: [&str; 7] = ["string", "integer", "number", "boolean", "object", "array", "null"];

/// Patterns of a schema that was checked when it was compiled.
#[derive(Debug)]
pub(super) struct SmallValidator {
    patterns: BTreeMap<String, Regex>,
}

impl SmallValidator {
    pub(super) fn compile(document: &Value) -> Result<Self, SchemaFault> {
        let mut walk = Compilation { document, patterns: BTreeMap::new(), seen: BTreeSet::new() };
        walk.schema(document, 0).map_err(SchemaFault)?;
        Ok(Self { patterns: walk.patterns })
    }

    /// At least the first [`VIOLATIONS_COUNTED_MAX`] violations.
    pub(super) fn violations(&self, document: &Value, arguments: &Value) -> Vec<SchemaViolation> {
        let mut check = Check { validator: self, document, steps: 0, found: Vec::new() };
        let _ended_early = check.schema(document, arguments, "", 0);
        check.found
    }
}

struct Compilation<'d> {
    document: &'d Value,
    patterns: BTreeMap<String, Regex>,
    seen: BTreeSet<&'d str>,
}

impl<'d> Compilation<'d> {
    fn schema(&mut self, schema: &'d Value, depth: u32) -> Result<(), String> {
        if depth > SCHEMA_DEPTH_MAX {
            return Err(format!("it is nested deeper than {SCHEMA_DEPTH_MAX} levels"));
        }
        let fields = match schema {
            Value::Bool(_) => return Ok(()),
            Value::Object(fields) => fields,
            other => return Err(format!("{} is not a schema", quote_value(other))),
        };
        for (keyword, value) in fields {
            self.keyword(keyword, value, depth).map_err(|why| truncate_chars(&why, 400))?;
        }
        Ok(())
    }

    fn keyword(&mut self, keyword: &str, value: &'d Value, depth: u32) -> Result<(), String> {
        let wrong = || format!("{} is no value of `{keyword}`", quote_value(value));
        let nested = depth + 1;
        match keyword {
            "$ref" => return self.reference(value.as_str().ok_or_else(wrong)?, nested),
            "pattern" => return self.pattern(value.as_str().ok_or_else(wrong)?),
            "items" if value.is_array() => {
                return Err("a list in `items` needs the cargo feature `json-schema`".into());
            }
            "$id" if std::ptr::eq(self.document.get("$id").unwrap_or(&Value::Null), value) => {}
            _ if REFUSED.contains(&keyword) => {
                return Err(format!("`{keyword}` needs the cargo feature `json-schema`"));
            }
            _ if ONE.contains(&keyword) => self.schema(value, nested)?,
            _ if LIST.contains(&keyword) => {
                for schema in value.as_array().filter(|list| !list.is_empty()).ok_or_else(wrong)? {
                    self.schema(schema, nested)?;
                }
            }
            _ if NAMED.contains(&keyword) => {
                for (name, schema) in value.as_object().ok_or_else(wrong)? {
                    if keyword == "patternProperties" {
                        self.pattern(name)?;
                    }
                    self.schema(schema, nested)?;
                }
            }
            _ if COUNTS.contains(&keyword) && !value.is_u64() => return Err(wrong()),
            "multipleOf" if value.as_f64().is_none_or(|number| number <= 0.0) => return Err(wrong()),
            _ if NUMBERS.contains(&keyword) && !value.is_number() => return Err(wrong()),
            "enum" | "required" if !value.is_array() => return Err(wrong()),
            "required" if !value.as_array().into_iter().flatten().all(Value::is_string) => {
                return Err(wrong());
            }
            "uniqueItems" if !value.is_boolean() => return Err(wrong()),
            "type" => {
                let one = std::slice::from_ref(value);
                let names = value.as_array().map_or(one, Vec::as_slice);
                let is_type = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
                if names.is_empty() || !names.iter().all(is_type) {
                    return Err(wrong());
                }
            }
            // Annotations, and words of others.
            _ => {}
        }
        Ok(())
    }

    fn reference(&mut self, reference: &'d str, depth: u32) -> Result<(), String> {
        let target = target(self.document, reference).ok_or_else(|| {
            format!("`$ref`: {} is not in this document", truncate_chars(reference, QUOTE_CHARS_MAX))
        })?;
        if self.seen.insert(reference) { self.schema(target, depth) } else { Ok(()) }
    }

    fn pattern(&mut self, pattern: &str) -> Result<(), String> {
        if !self.patterns.contains_key(pattern) {
            let compiled = Regex::new(pattern).map_err(|_| format!("`{pattern}` is not a pattern"))?;
            self.patterns.insert(pattern.to_owned(), compiled);
        }
        Ok(())
    }
}

/// Resolves a reference into this document.
fn target<'d>(document: &'d Value, reference: &str) -> Option<&'d Value> {
    let pointer = reference.strip_prefix('#')?;
    // Percent-encoding is rare in a fragment; a pointer that has it leads nowhere.
    document.pointer(pointer)
}

struct Check<'d> {
    validator: &'d SmallValidator,
    document: &'d Value,
    steps: u32,
    found: Vec<SchemaViolation>,
}

/// Ends early when enough has been found.
type Flow = ControlFlow<()>;

impl<'d> Check<'d> {
    fn report(&mut self, path: &str, message: impl Into<String>) -> Flow {
        self.found.push(SchemaViolation { path: path.to_owned(), message: message.into() });
        if self.found.len() < VIOLATIONS_COUNTED_MAX { Flow::Continue(()) } else { Flow::Break(()) }
    }

    /// Violations of one schema, evaluated separately.
    fn apart(&mut self, schema: &'d Value, value: &Value, path: &str, depth: u32) -> Vec<SchemaViolation> {
        let before = std::mem::take(&mut self.found);
        let _ended_early = self.schema(schema, value, path, depth);
        std::mem::replace(&mut self.found, before)
    }

    fn schema(&mut self, schema: &'d Value, value: &Value, path: &str, depth: u32) -> Flow {
        // Too deep ends the whole check: inside of a `not` it would otherwise count as fitting.
        self.steps = if depth > SCHEMA_DEPTH_MAX { CHECK_STEPS_MAX + 1 } else { self.steps + 1 };
        if self.steps > CHECK_STEPS_MAX {
            self.report(path, "cannot be checked within the limits")?;
            return Flow::Break(());
        }
        let fields = match schema {
            Value::Bool(false) => return self.report(path, "must not be there"),
            Value::Object(fields) => fields,
            _ => return Flow::Continue(()),
        };
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str)
            && let Some(target) = target(self.document, reference)
        {
            self.schema(target, value, path, depth + 1)?;
        }
        self.value(fields, value, path)?;
        match value {
            Value::Number(number) => self.number(fields, number, path)?,
            Value::String(text) => self.text(fields, text, path)?,
            Value::Array(items) => self.items(fields, items, path, depth)?,
            Value::Object(members) => self.members(fields, members, path, depth)?,
            Value::Null | Value::Bool(_) => {}
        }
        self.combinations(fields, value, path, depth)
    }

    /// Keywords for values of every type.
    fn value(&mut self, schema: &Map<String, Value>, value: &Value, path: &str) -> Flow {
        if let Some(types) = schema.get("type") {
            let one = std::slice::from_ref(types);
            let names = types.as_array().map_or(one, Vec::as_slice).iter().filter_map(Value::as_str);
            let names: Vec<&str> = names.collect();
            if !names.iter().any(|name| is_of_type(value, name)) {
                self.report(path, format!("expected {}, got {}", names.join(" or "), describe_value(value)))?;
            }
        }
        if let Some(options) = schema.get("enum")
            && !options.as_array().into_iter().flatten().any(|option| is_equal(option, value))
        {
            let expected = choice_list(options);
            self.report(path, format!("expected one of {expected}, got {}", describe_value(value)))?;
        }
        if let Some(expected) = schema.get("const").filter(|expected| !is_equal(expected, value)) {
            let expected = quote_value(expected);
            self.report(path, format!("expected {expected}, got {}", describe_value(value)))?;
        }
        Flow::Continue(())
    }

    fn number(&mut self, schema: &Map<String, Value>, number: &Number, path: &str) -> Flow {
        let value = number.as_f64().unwrap_or(f64::NAN);
        for (keyword, fits, words) in [
            ("minimum", (|value, limit| value >= limit) as fn(f64, f64) -> bool, "at least"),
            ("maximum", |value, limit| value <= limit, "at most"),
            ("exclusiveMinimum", |value, limit| value > limit, "more than"),
            ("exclusiveMaximum", |value, limit| value < limit, "less than"),
            ("multipleOf", is_multiple, "a multiple of"),
        ] {
            if let Some(limit) = schema.get(keyword)
                && !limit.as_f64().is_some_and(|limit| fits(value, limit))
            {
                self.report(path, format!("expected {words} {limit}, got {number}"))?;
            }
        }
        Flow::Continue(())
    }

    fn text(&mut self, schema: &Map<String, Value>, text: &str, path: &str) -> Flow {
        let value = || quote_value(&Value::String(text.chars().take(QUOTE_CHARS_MAX + 1).collect()));
        let (min, max) = (count(schema, "minLength"), count(schema, "maxLength"));
        if min.is_some() || max.is_some() {
            let length = text.chars().count() as u64;
            if let Some(limit) = min.filter(|limit| length < *limit) {
                let limit = pluralize(limit, "character");
                self.report(path, format!("expected at least {limit}, got {}", value()))?;
            }
            if let Some(limit) = max.filter(|limit| length > *limit) {
                self.report(
                    path,
                    format!("expected at most {}, got {length}", pluralize(limit, "character")),
                )?;
            }
        }
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
            && !self.validator.matches(pattern, text)
        {
            let pattern = truncate_chars(pattern, QUOTE_CHARS_MAX);
            self.report(path, format!("expected text that matches `{pattern}`, got {}", value()))?;
        }
        Flow::Continue(())
    }

    fn items(&mut self, schema: &'d Map<String, Value>, items: &[Value], path: &str, depth: u32) -> Flow {
        let prefix = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (position, item) in items.iter().enumerate() {
            if let Some(schema) = prefix.get(position).or_else(|| schema.get("items")) {
                self.schema(schema, item, &format!("{path}/{position}"), depth + 1)?;
            }
        }
        let length = items.len() as u64;
        if let Some(limit) = count(schema, "minItems").filter(|limit| length < *limit) {
            self.report(path, format!("expected at least {}, got {length}", pluralize(limit, "item")))?;
        }
        if let Some(limit) = count(schema, "maxItems").filter(|limit| length > *limit) {
            self.report(path, format!("expected at most {}, got {length}", pluralize(limit, "item")))?;
        }
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            let mut seen = BTreeSet::new();
            if !items.iter().all(|item| seen.insert(canonical(item))) {
                self.report(path, "expected items that are all different")?;
            }
        }
        Flow::Continue(())
    }

    fn members(
        &mut self,
        schema: &'d Map<String, Value>,
        members: &Map<String, Value>,
        path: &str,
        depth: u32,
    ) -> Flow {
        let named = schema.get("properties").and_then(Value::as_object);
        for (name, schema) in named.into_iter().flatten() {
            if let Some(value) = members.get(name) {
                self.schema(schema, value, &child_pointer(path, name), depth + 1)?;
            }
        }
        let known = || named.into_iter().flat_map(Map::keys).cloned().collect::<Vec<_>>();
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        for (name, value) in members {
            let child = child_pointer(path, name);
            let mut is_known = named.is_some_and(|named| named.contains_key(name));
            for (pattern, schema) in patterns.into_iter().flatten() {
                if self.validator.matches(pattern, name) {
                    is_known = true;
                    self.schema(schema, value, &child, depth + 1)?;
                }
            }
            match schema.get("additionalProperties") {
                Some(Value::Bool(false)) if !is_known => self.report(&child, unknown_property(&known()))?,
                Some(schema) if !is_known => self.schema(schema, value, &child, depth + 1)?,
                _ => {}
            }
            if let Some(schema) = schema.get("propertyNames") {
                self.schema(schema, &Value::String(name.clone()), &child, depth + 1)?;
            }
        }
        self.member_counts(schema, members, path)
    }

    fn member_counts(
        &mut self,
        schema: &Map<String, Value>,
        members: &Map<String, Value>,
        path: &str,
    ) -> Flow {
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            let name = name.as_str().unwrap_or_default();
            if !members.contains_key(name) {
                let types = schema.get("properties").and_then(|known| known.get(name)?.get("type"));
                self.report(&child_pointer(path, name), super::messages::missing(types))?;
            }
        }
        let length = members.len() as u64;
        if let Some(limit) = count(schema, "minProperties").filter(|limit| length < *limit) {
            self.report(path, format!("expected at least {limit} properties, got {length}"))?;
        }
        if let Some(limit) = count(schema, "maxProperties").filter(|limit| length > *limit) {
            self.report(path, format!("expected at most {limit} properties, got {length}"))?;
        }
        Flow::Continue(())
    }

    /// `allOf`, `anyOf`, `oneOf`, `not`, `if`.
    fn combinations(
        &mut self,
        schema: &'d Map<String, Value>,
        value: &Value,
        path: &str,
        depth: u32,
    ) -> Flow {
        let list = |keyword| schema.get(keyword).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for schema in list("allOf") {
            self.schema(schema, value, path, depth + 1)?;
        }
        for keyword in ["anyOf", "oneOf"] {
            let schemas = list(keyword);
            let results: Vec<_> =
                schemas.iter().map(|schema| self.apart(schema, value, path, depth + 1)).collect();
            let fitting = results.iter().filter(|violations| violations.is_empty()).count();
            if !schemas.is_empty() && fitting == 0 {
                let wanted = alternatives(&results, path);
                let got = describe_value(value);
                let count = schemas.len();
                self.report(path, format!("matches none of the {count} alternatives ({wanted}), got {got}"))?;
            } else if keyword == "oneOf" && fitting > 1 {
                self.report(path, format!("fits more than one alternative, got {}", describe_value(value)))?;
            }
        }
        if let Some(schema) = schema.get("not")
            && self.apart(schema, value, path, depth + 1).is_empty()
        {
            self.report(path, format!("expected something else, got {}", describe_value(value)))?;
        }
        if let Some(condition) = schema.get("if") {
            let holds = self.apart(condition, value, path, depth + 1).is_empty();
            if let Some(schema) = schema.get(if holds { "then" } else { "else" }) {
                self.schema(schema, value, path, depth + 1)?;
            }
        }
        if self.steps > CHECK_STEPS_MAX {
            // Reported by a branch whose violations may not have counted.
            self.report(path, "cannot be checked within the limits")?;
            return Flow::Break(());
        }
        Flow::Continue(())
    }
}

impl SmallValidator {
    fn matches(&self, pattern: &str, text: &str) -> bool {
        self.patterns.get(pattern).is_some_and(|pattern| pattern.is_match(text))
    }
}

fn count(schema: &Map<String, Value>, keyword: &str) -> Option<u64> {
    schema.get(keyword).and_then(Value::as_u64)
}

/// Expectation of each alternative, by its first mismatch.
fn alternatives(results: &[Vec<SchemaViolation>], path: &str) -> String {
    let wanted = results.iter().filter_map(|violations| violations.first()).map(|violation| {
        let message = violation.message.split(", got ").next().unwrap_or_default();
        match violation.path.strip_prefix(path).unwrap_or(&violation.path) {
            "" => message.to_owned(),
            below => format!("{below}: {message}"),
        }
    });
    truncate_chars(&wanted.collect::<Vec<_>>().join("; "), QUOTE_CHARS_MAX * 3)
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match (name, value) {
        ("string", Value::String(_))
        | ("boolean", Value::Bool(_))
        | ("object", Value::Object(_))
        | ("array", Value::Array(_))
        | ("null", Value::Null)
        | ("number", Value::Number(_)) => true,
        ("integer", Value::Number(number)) => {
            !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        _ => false,
    }
}

/// Equal as JSON: 1 is 1.0.
fn is_equal(left: &Value, right: &Value) -> bool {
    left == right || canonical(left) == canonical(right)
}

/// A text that is the same for equal values only.
fn canonical(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            // Whole numbers that a float holds exactly are written as integers are.
            if float.fract() == 0.0 && float.abs() < 9e15 {
                format!("{float:.0}")
            } else {
                number.to_string()
            }
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        Value::Object(members) => {
            let sorted: BTreeMap<&String, String> =
                members.iter().map(|(name, value)| (name, canonical(value))).collect();
            format!("{sorted:?}")
        }
        other => other.to_string(),
    }
}

fn is_multiple(value: f64, of: f64) -> bool {
    let quotient = value / of;
    quotient.is_finite() && quotient.fract() == 0.0
}
