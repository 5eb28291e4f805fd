//! JSON Schema of arguments: compiled once per tool, checked before every run.
//!
//! Never fetches anything: a `$ref` that leaves the document fails when the tool is registered. The message is for
//! the model, which may try again (L4), so it names the path, what was expected and what was got.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;
use std::fmt;

/// Violations that are listed in full; the rest is counted.
pub const VIOLATIONS_LISTED_MAX: usize = 8;
/// Violations that are looked for at all, so that an array of a million wrong items costs no more than one of a hundred.
pub const VIOLATIONS_COUNTED_MAX: usize = 100;
/// Most characters of a value, a list of choices or a pattern that a message quotes.
const QUOTE_CHARS_MAX: usize = 80;
/// Most characters of a path that a message quotes.
const PATH_CHARS_MAX: usize = 200;

/// A compiled schema.
///
/// ```
/// use serde_json::json;
/// use throughline_tools::CompiledSchema;
///
/// let schema = CompiledSchema::compile(&json!({"type": "object", "properties": {"city": {"type": "string"}}}))?;
/// assert!(schema.check(&json!({"city": "Oslo"})).is_ok());
/// let error = schema.check(&json!({"city": 42})).unwrap_err();
/// assert_eq!(error.to_string(), "/city: expected string, got 42");
/// # Ok::<(), throughline_tools::SchemaFault>(())
/// ```
#[derive(Debug)]
pub struct CompiledSchema {
    document: Value,
    validator: Validator,
}

/// A schema that cannot be used: not valid itself, or with a reference that leaves the document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the schema cannot be used: {0}")]
pub struct SchemaFault(pub String);

/// Why arguments do not fit: never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// The first [`VIOLATIONS_LISTED_MAX`] violations.
    pub violations: Vec<SchemaViolation>,
    /// Number of further mismatches; counting stops at [`VIOLATIONS_COUNTED_MAX`].
    pub more: usize,
}

/// One mismatch of the arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaViolation {
    /// JSON Pointer into the arguments; empty = the arguments as a whole.
    pub path: String,
    /// Expectation and actual value.
    pub message: String,
}

impl fmt::Display for SchemaViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "arguments" } else { &self.path };
        write!(f, "{}: {}", truncate_chars(path, PATH_CHARS_MAX), self.message)
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, violation) in self.violations.iter().enumerate() {
            if position > 0 {
                f.write_str("\n")?;
            }
            violation.fmt(f)?;
        }
        match self.more {
            0 => Ok(()),
            more if self.violations.len() + more >= VIOLATIONS_COUNTED_MAX => {
                write!(f, "\n… and at least {more} more")
            }
            more => write!(f, "\n… and {more} more"),
        }
    }
}

impl std::error::Error for SchemaError {}

impl CompiledSchema {
    /// Compiles a schema of a tool's arguments, which must describe an object.
    ///
    /// # Errors
    /// The document is not a JSON Schema, does not say `"type": "object"` at the top, or refers to another document.
    pub fn compile(document: &Value) -> Result<Self, SchemaFault> {
        // Upstreams refuse anything else, some of them with the whole request (OpenAI: "schema must be of type object").
        if document.get("type").and_then(Value::as_str) != Some("object") {
            return Err(SchemaFault("the arguments of a tool are an object: `\"type\": \"object\"`".into()));
        }
        Self::compile_any(document)
    }

    /// Compiles a schema of anything.
    ///
    /// # Errors
    /// The document is not a JSON Schema, or refers to another document.
    pub(crate) fn compile_any(document: &Value) -> Result<Self, SchemaFault> {
        let validator = jsonschema::options()
            .offline()
            // A pattern may come from a stranger's tool: the backtracking engine can be made to hang, this one cannot.
            .with_pattern_options(PatternOptions::regex())
            .build(document)
            .map_err(|error| SchemaFault(truncate_chars(&error.to_string(), 400)))?;
        Ok(Self { document: document.clone(), validator })
    }

    /// The schema as JSON.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// Checks arguments.
    ///
    /// # Errors
    /// The mismatches and their paths.
    // R: L4
    pub fn check(&self, arguments: &Value) -> Result<(), SchemaError> {
        let mut count = 0;
        let mut violations = Vec::new();
        for error in self.validator.iter_errors(arguments).take(VIOLATIONS_COUNTED_MAX) {
            for violation in self.explain(&error) {
                count += 1;
                if violations.len() < VIOLATIONS_LISTED_MAX {
                    violations.push(violation);
                }
            }
        }
        match count - violations.len() {
            0 if violations.is_empty() => Ok(()),
            more => Err(SchemaError { violations, more }),
        }
    }

    /// One violation, or one for each unknown property.
    fn explain(&self, error: &ValidationError<'_>) -> Vec<SchemaViolation> {
        let path = error.instance_path().as_str().to_owned();
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                let known = self.known_properties(error);
                unexpected
                    .iter()
                    .take(VIOLATIONS_COUNTED_MAX)
                    .map(|name| SchemaViolation {
                        path: child_pointer(&path, name),
                        message: match known.as_deref() {
                            None | Some([]) => "unknown property".to_owned(),
                            Some(known) => {
                                format!(
                                    "unknown property; known: {}",
                                    truncate_chars(&known.join(", "), QUOTE_CHARS_MAX * 2)
                                )
                            }
                        },
                    })
                    .collect()
            }
            ValidationErrorKind::Required { property } => {
                let name = property.as_str().map_or_else(|| property.to_string(), str::to_owned);
                let message = match self.type_of_property(error, &name) {
                    Some(expected) => format!("missing, expected {expected}"),
                    None => "missing, but required".to_owned(),
                };
                vec![SchemaViolation { path: child_pointer(&path, &name), message }]
            }
            _ => vec![SchemaViolation { path, message: expectation(error) }],
        }
    }

    /// The schema object that holds the failed keyword; `None` inside a `$ref`, whose target is not looked up.
    fn parent_of_keyword(&self, error: &ValidationError<'_>) -> Option<&Value> {
        let (parent, _keyword) = error.schema_path().as_str().rsplit_once('/')?;
        self.document.pointer(parent)
    }

    fn known_properties(&self, error: &ValidationError<'_>) -> Option<Vec<String>> {
        let properties = self.parent_of_keyword(error)?.get("properties")?.as_object()?;
        Some(properties.keys().cloned().collect())
    }

    fn type_of_property(&self, error: &ValidationError<'_>, name: &str) -> Option<String> {
        match self.parent_of_keyword(error)?.get("properties")?.get(name)?.get("type")? {
            Value::String(one) => Some(one.clone()),
            Value::Array(several) => {
                let names: Vec<_> = several.iter().filter_map(Value::as_str).collect();
                Some(names.join(" or "))
            }
            _ => None,
        }
    }
}

/// "expected …, got …" for one error.
fn expectation(error: &ValidationError<'_>) -> String {
    use ValidationErrorKind as K;
    let value = error.instance().as_ref();
    let got = describe_value(value);
    match error.kind() {
        K::Type { kind } => format!("expected {}, got {got}", type_names(kind)),
        K::Enum { options } => format!("expected one of {}, got {got}", choice_list(options)),
        K::Constant { expected_value } => format!("expected {}, got {got}", quote_value(expected_value)),
        K::Minimum { limit } => format!("expected at least {limit}, got {got}"),
        K::Maximum { limit } => format!("expected at most {limit}, got {got}"),
        K::ExclusiveMinimum { limit } => format!("expected more than {limit}, got {got}"),
        K::ExclusiveMaximum { limit } => format!("expected less than {limit}, got {got}"),
        K::MultipleOf { multiple_of } => format!("expected a multiple of {multiple_of}, got {got}"),
        K::MinLength { limit } => format!("expected at least {}, got {got}", pluralize(*limit, "character")),
        K::MaxLength { limit } => {
            format!("expected at most {}, got {}", pluralize(*limit, "character"), value_length(value))
        }
        K::MinItems { limit } => {
            format!("expected at least {}, got {}", pluralize(*limit, "item"), value_length(value))
        }
        K::MaxItems { limit } => {
            format!("expected at most {}, got {}", pluralize(*limit, "item"), value_length(value))
        }
        K::AdditionalItems { limit } => {
            format!("expected at most {}, got {}", pluralize(*limit as u64, "item"), value_length(value))
        }
        K::MinProperties { limit } => {
            format!("expected at least {} properties, got {}", limit, value_length(value))
        }
        K::MaxProperties { limit } => {
            format!("expected at most {} properties, got {}", limit, value_length(value))
        }
        K::UniqueItems => "expected items that are all different".to_owned(),
        K::Contains => "expected an item of another kind among them".to_owned(),
        K::Pattern { pattern } => {
            format!("expected text that matches `{}`, got {got}", truncate_chars(pattern, QUOTE_CHARS_MAX))
        }
        K::Format { format } => format!("expected a {format}, got {got}"),
        K::FalseSchema => "must not be there".to_owned(),
        K::AnyOf { context } | K::OneOfNotValid { context } => {
            format!(
                "fits none of the {} alternatives ({}), got {got}",
                context.len(),
                alternatives(error, context)
            )
        }
        K::OneOfMultipleValid { .. } => format!("fits more than one alternative, got {got}"),
        _ => truncate_chars(&error.to_string(), QUOTE_CHARS_MAX * 3),
    }
}

/// Expectation of each alternative, by its first mismatch.
fn alternatives(error: &ValidationError<'_>, context: &[Vec<ValidationError<'static>>]) -> String {
    let here = error.instance_path().as_str();
    let wanted: Vec<String> = context
        .iter()
        .filter_map(|errors| errors.first())
        .map(|error| {
            let path = error.instance_path().as_str();
            let path = path.strip_prefix(here).unwrap_or(path);
            let message = match error.kind() {
                ValidationErrorKind::Required { property } => format!("{property} is missing"),
                _ => expectation(error),
            };
            // What was got is said once, by the caller.
            let message = message.split(", got ").next().unwrap_or_default();
            if path.is_empty() { message.to_owned() } else { format!("{path}: {message}") }
        })
        .collect();
    truncate_chars(&wanted.join("; "), QUOTE_CHARS_MAX * 3)
}

fn type_names(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(several) => {
            several.iter().map(|one| one.to_string()).collect::<Vec<_>>().join(" or ")
        }
    }
}

fn choice_list(options: &Value) -> String {
    let list: Vec<String> = options.as_array().into_iter().flatten().map(quote_value).collect();
    truncate_chars(&list.join(", "), QUOTE_CHARS_MAX * 3)
}

fn describe_value(value: &Value) -> String {
    match value {
        Value::Object(fields) if fields.is_empty() => "an empty object".to_owned(),
        Value::Object(_) => format!("an object ({})", quote_value(value)),
        Value::Array(items) if items.is_empty() => "an empty array".to_owned(),
        Value::Array(_) => format!("an array ({})", quote_value(value)),
        _ => quote_value(value),
    }
}

fn value_length(value: &Value) -> String {
    match value {
        Value::String(text) => text.chars().count().to_string(),
        Value::Array(items) => items.len().to_string(),
        Value::Object(fields) => fields.len().to_string(),
        other => quote_value(other),
    }
}

fn pluralize(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn quote_value(value: &Value) -> String {
    // Only as much is written out as can be shown: a wrong argument may be megabytes long.
    if let Value::String(text) = value {
        let start: String = text.chars().take(QUOTE_CHARS_MAX + 1).collect();
        return truncate_chars(&Value::String(start).to_string(), QUOTE_CHARS_MAX);
    }
    truncate_chars(&value.to_string(), QUOTE_CHARS_MAX)
}

/// A child's JSON Pointer (RFC 6901 §3).
fn child_pointer(parent: &str, name: &str) -> String {
    format!("{parent}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// At most `chars_max` characters, the cut marked.
pub(crate) fn truncate_chars(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((cut, _)) => format!("{}…", &text[..cut]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: Value, arguments: Value, expected: &str) {
        let schema = CompiledSchema::compile(&schema).unwrap();
        let result = match schema.check(&arguments) {
            Ok(()) => "fits".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(result, expected, "for {arguments}");
    }

    fn weather() -> Value {
        json!({
            "type": "object",
            "properties": {
                "city": {"type": "string", "minLength": 1},
                "days": {"type": "integer", "minimum": 1, "maximum": 7},
                "unit": {"enum": ["c", "f"]},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2, "uniqueItems": true},
                "at": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "where": {
                    "type": "object",
                    "properties": {"a/b": {"type": "number", "exclusiveMinimum": 0}},
                    "required": ["a/b"],
                    "additionalProperties": false
                },
                "code": {"type": "string", "pattern": "^[a-z]{3}$", "maxLength": 3}
            },
            "required": ["city"],
            "additionalProperties": false
        })
    }

    // R: L4
    #[test]
    fn the_error_names_the_path_and_what_was_expected() {
        for (arguments, expected) in [
            (json!({"city": "北京"}), "fits"),
            (json!({"city": 42}), "/city: expected string, got 42"),
            (json!({"city": null}), "/city: expected string, got null"),
            (json!({"city": ""}), "/city: expected at least 1 character, got \"\""),
            (json!({}), "/city: missing, expected string"),
            (json!([]), "arguments: expected object, got an empty array"),
            (json!("text"), "arguments: expected object, got \"text\""),
            (json!({"city": "x", "days": 9}), "/days: expected at most 7, got 9"),
            (json!({"city": "x", "days": 0}), "/days: expected at least 1, got 0"),
            (json!({"city": "x", "days": 1.5}), "/days: expected integer, got 1.5"),
            (json!({"city": "x", "unit": "k"}), "/unit: expected one of \"c\", \"f\", got \"k\""),
            (json!({"city": "x", "tags": ["a", 2]}), "/tags/1: expected string, got 2"),
            (json!({"city": "x", "tags": ["a", "b", "c"]}), "/tags: expected at most 2 items, got 3"),
            (json!({"city": "x", "tags": ["a", "a"]}), "/tags: expected items that are all different"),
            (
                json!({"city": "x", "at": 5}),
                "/at: fits none of the 2 alternatives (expected string; expected null), got 5",
            ),
            (json!({"city": "x", "where": {}}), "/where/a~1b: missing, expected number"),
            (json!({"city": "x", "where": {"a/b": 0}}), "/where/a~1b: expected more than 0, got 0"),
            (json!({"city": "x", "where": {"a/b": 1, "c": 2}}), "/where/c: unknown property; known: a/b"),
            (
                json!({"city": "x", "citty": 1}),
                "/citty: unknown property; known: city, days, unit, tags, at, where, code",
            ),
            (
                json!({"city": "x", "code": "AB"}),
                "/code: expected text that matches `^[a-z]{3}$`, got \"AB\"",
            ),
        ] {
            check(weather(), arguments, expected);
        }
    }

    #[test]
    fn several_errors_come_at_once() {
        check(
            weather(),
            json!({"days": "three", "unit": 1}),
            "/days: expected integer, got \"three\"\n/unit: expected one of \"c\", \"f\", got 1\n/city: missing, expected string",
        );
    }

    #[test]
    fn a_flood_of_errors_is_bounded() {
        let schema =
            json!({"type": "object", "properties": {"n": {"type": "array", "items": {"type": "integer"}}}});
        let ten: Vec<&str> = vec!["x"; 10];
        let many: Vec<String> = vec!["y".repeat(5_000); 20_000];
        let compiled = CompiledSchema::compile(&schema).unwrap();
        let few = compiled.check(&json!({"n": ten})).unwrap_err();
        assert_eq!((few.violations.len(), few.more), (VIOLATIONS_LISTED_MAX, 2));
        assert!(few.to_string().ends_with("\n… and 2 more"));
        let flood = compiled.check(&json!({"n": many})).unwrap_err();
        assert_eq!(flood.violations.len() + flood.more, VIOLATIONS_COUNTED_MAX);
        assert!(flood.to_string().ends_with("\n… and at least 92 more"), "{flood}");
        assert!(flood.to_string().len() < 4_000, "{} bytes", flood.to_string().len());

        let closed = CompiledSchema::compile(
            &json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false}),
        )
        .unwrap();
        let names: serde_json::Map<String, Value> =
            (0..10_000).map(|n| (format!("{n}{}", "x".repeat(500)), json!(1))).collect();
        let flood = closed.check(&Value::Object(names)).unwrap_err();
        assert_eq!(flood.violations.len() + flood.more, VIOLATIONS_COUNTED_MAX);
        assert!(flood.to_string().len() < 4_000, "{} bytes", flood.to_string().len());
    }

    // R: R4
    #[test]
    fn nothing_is_fetched_and_only_objects_are_taken() {
        for (schema, part) in [
            (
                json!({"type": "object", "properties": {"a": {"$ref": "https://example.com/s.json"}}}),
                "example.com",
            ),
            (
                json!({"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}),
                "file:///etc/passwd",
            ),
            (json!({"type": "string"}), "are an object"),
            (json!({}), "are an object"),
            (json!(true), "are an object"),
            (json!({"type": "object", "properties": {"a": {"type": "strnig"}}}), "strnig"),
            (json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}), "("),
        ] {
            let fault = CompiledSchema::compile(&schema).unwrap_err();
            assert!(fault.0.contains(part), "{schema}: {fault}");
        }
    }

    #[test]
    fn a_reference_inside_the_document_works() {
        let schema = json!({
            "type": "object",
            "properties": {"child": {"$ref": "#/$defs/node"}},
            "$defs": {"node": {"type": "object", "properties": {"n": {"type": "integer"}, "child": {"$ref": "#/$defs/node"}}}}
        });
        check(schema.clone(), json!({"child": {"child": {"n": 1}}}), "fits");
        check(schema, json!({"child": {"child": {"n": "1"}}}), "/child/child/n: expected integer, got \"1\"");
    }

    #[test]
    fn a_tool_without_arguments_says_which_one_is_too_many() {
        let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
        check(schema, json!({"city": 1}), "/city: unknown property");
    }

    #[test]
    fn a_hostile_pattern_does_not_hang() {
        let schema = json!({"type": "object", "properties": {"t": {"type": "string", "pattern": "^(a+)+$"}}});
        let text = format!("{}b", "a".repeat(50_000));
        let error = CompiledSchema::compile(&schema).unwrap().check(&json!({"t": text})).unwrap_err();
        assert!(error.to_string().starts_with("/t: expected text that matches `^(a+)+$`, got \"aaa"));
    }
}
