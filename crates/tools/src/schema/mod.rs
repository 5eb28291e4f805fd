//! JSON Schema of arguments: compiled once per tool, checked before every run.
//!
//! Never fetches anything: a `$ref` that leaves the document fails when the tool is registered. The message
//! is for the model, which may try again, so it names the path, the expected type and the received one.

#[cfg(feature = "json-schema")]
mod full;
mod messages;
#[cfg(any(test, not(feature = "json-schema")))]
mod small;

#[cfg(feature = "json-schema")]
use full::FullValidator as Validator;
pub(crate) use messages::truncate_chars;
#[cfg(not(feature = "json-schema"))]
use small::SmallValidator as Validator;

use serde_json::Value;
use std::fmt;
use throughline_wire::needs_backtracking;

/// Violations that are listed in full; the rest is counted.
pub const VIOLATIONS_LISTED_MAX: usize = 8;
/// Violations that are looked for at all, so that an array of a million wrong items costs no more than one of a hundred.
pub const VIOLATIONS_COUNTED_MAX: usize = 100;
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

/// Violations of the schema: never empty.
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
    pub fn compile_any(document: &Value) -> Result<Self, SchemaFault> {
        let mut document = document.clone();
        drop_unusable_patterns(&mut document);
        let validator = Validator::compile(&document)?;
        Ok(Self { document, validator })
    }

    /// The schema as JSON.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// Checks arguments.
    ///
    /// # Errors
    /// The mismatches and their paths.
    pub fn check(&self, arguments: &Value) -> Result<(), SchemaError> {
        let mut violations = self.validator.violations(&self.document, arguments);
        let count = violations.len();
        violations.truncate(VIOLATIONS_LISTED_MAX);
        match count - violations.len() {
            0 if violations.is_empty() => Ok(()),
            more => Err(SchemaError { violations, more }),
        }
    }
}

/// Removes patterns that only a backtracking engine can run: the tool's implementation checks those itself. A
/// property named `pattern` holds a schema and not a text, and stays.
fn drop_unusable_patterns(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(drop_unusable_patterns),
        Value::Object(members) => {
            if members.get("pattern").and_then(Value::as_str).is_some_and(needs_backtracking) {
                members.shift_remove("pattern");
            }
            members.values_mut().for_each(drop_unusable_patterns);
        }
        _ => {}
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
        let small = small::SmallValidator::compile(schema.document()).unwrap();
        let small = small.violations(schema.document(), &arguments);
        let small: Vec<String> = small.iter().map(ToString::to_string).collect();
        let small = if small.is_empty() { "fits".to_owned() } else { small.join("\n") };
        assert_eq!(small, expected, "the small validator, for {arguments}");
    }

    /// Both validators accept and refuse the same values.
    #[cfg(feature = "json-schema")]
    #[test]
    fn the_small_validator_agrees_with_the_full_one() {
        let schemas = [
            json!({"type": ["integer", "null"], "minimum": -1, "exclusiveMaximum": 3}),
            json!({"multipleOf": 0.5}),
            json!({"const": 1}),
            json!({"enum": [1.0, "a", {"a": [1]}]}),
            json!({"minLength": 1, "maxLength": 2, "pattern": "^a"}),
            json!({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}, "minItems": 1}),
            json!({"items": false}),
            json!({"uniqueItems": true, "maxItems": 2}),
            json!({"properties": {"a": {"type": "integer"}}, "patternProperties": {"^x": {"type": "string"}}, "additionalProperties": {"type": "null"}}),
            json!({"properties": {"a": {}}, "additionalProperties": false, "minProperties": 1}),
            json!({"propertyNames": {"maxLength": 1}, "maxProperties": 1}),
            json!({"required": ["a"], "not": {"required": ["b"]}}),
            json!({"allOf": [{"type": "object"}, {"required": ["x"]}]}),
            json!({"oneOf": [{"type": "integer"}, {"type": "number"}]}),
            json!({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#"}}]}),
            json!({"if": {"type": "object"}, "then": {"required": ["a"]}, "else": {"type": "string"}}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}),
            json!(true),
            json!(false),
        ];
        let values = [
            json!(null),
            json!(true),
            json!(0),
            json!(1),
            json!(1.0),
            json!(1.25),
            json!(-2),
            json!(3),
            json!(1e300),
            json!(""),
            json!("a"),
            json!("ab"),
            json!("abc"),
            json!("北"),
            json!([]),
            json!([1]),
            json!(["a", 1]),
            json!([1, 1.0]),
            json!([1, "b", 2]),
            json!([[1], [[]]]),
            json!({}),
            json!({"a": 1}),
            json!({"a": "1"}),
            json!({"a": [1]}),
            json!({"b": null}),
            json!({"a": 1, "b": 2}),
            json!({"x": "y"}),
            json!({"xx": 1}),
        ];
        for schema in &schemas {
            let full = full::FullValidator::compile(schema).unwrap();
            let small = small::SmallValidator::compile(schema).unwrap();
            for value in &values {
                let (full, small) = (full.violations(schema, value), small.violations(schema, value));
                assert_eq!(full.is_empty(), small.is_empty(), "{schema} with {value}: {full:?}, {small:?}");
            }
        }
    }

    #[test]
    fn small_validator_refuses_unsupported_and_endless_schemas() {
        for (schema, part) in [
            (json!({"unevaluatedProperties": false}), "`unevaluatedProperties` needs the cargo feature"),
            (json!({"properties": {"a": {"contains": {}}}}), "`contains` needs"),
            (json!({"items": [{}]}), "a list in `items`"),
            (json!({"$ref": "https://example.com/s.json"}), "is not in this document"),
            (json!({"$ref": "#/$defs/none"}), "is not in this document"),
            (json!({"type": "strnig"}), "strnig"),
            (json!({"minLength": -1}), "-1 is no value of `minLength`"),
            (json!({"pattern": "("}), "`(` is not a pattern"),
            (json!({"anyOf": []}), "no value of `anyOf`"),
        ] {
            let fault = small::SmallValidator::compile(&schema).unwrap_err();
            assert!(fault.0.contains(part), "{schema}: {fault}");
        }
        // A check that would not terminate is ended, and no value passes because of that.
        let endless = json!({"allOf": [{"$ref": "#"}]});
        let doubling: serde_json::Map<String, Value> = (0..40)
            .map(|n| {
                let next = json!({"$ref": format!("#/$defs/s{}", n + 1)});
                (format!("s{n}"), json!({"not": {"not": {"allOf": [next.clone(), next]}}}))
            })
            .chain([("s40".to_owned(), json!(true))])
            .collect();
        let doubling = json!({"$ref": "#/$defs/s0", "$defs": doubling});
        for schema in [endless, doubling] {
            let small = small::SmallValidator::compile(&schema).unwrap();
            let found = small.violations(&schema, &json!({}));
            assert!(
                found.iter().any(|violation| violation.message.contains("within the limits")),
                "{found:?}"
            );
        }
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

    #[test]
    fn violation_names_path_expected_and_actual_value() {
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
                "/at: matches none of the 2 alternatives (expected string; expected null), got 5",
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
    fn all_violations_are_reported_together() {
        check(
            weather(),
            json!({"days": "three", "unit": 1}),
            "/days: expected integer, got \"three\"\n/unit: expected one of \"c\", \"f\", got 1\n/city: missing, expected string",
        );
    }

    #[test]
    fn reported_violations_are_bounded() {
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

    #[test]
    fn remote_references_and_non_object_schemas_are_refused() {
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
    fn internal_references_are_resolved() {
        let schema = json!({
            "type": "object",
            "properties": {"child": {"$ref": "#/$defs/node"}},
            "$defs": {"node": {"type": "object", "properties": {"n": {"type": "integer"}, "child": {"$ref": "#/$defs/node"}}}}
        });
        check(schema.clone(), json!({"child": {"child": {"n": 1}}}), "fits");
        check(schema, json!({"child": {"child": {"n": "1"}}}), "/child/child/n: expected integer, got \"1\"");
    }

    #[test]
    fn unknown_argument_of_tool_without_parameters_is_named() {
        let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
        check(schema, json!({"city": 1}), "/city: unknown property");
    }

    #[test]
    fn unsupported_patterns_are_skipped_and_other_checks_hold() {
        let schema = json!({"type": "object", "properties": {
            "mail": {"type": "string", "pattern": "^(?!\\.)[a-z]+@", "minLength": 3},
            "pattern": {"type": "string", "pattern": "(a|b)\\1"},
        }});
        check(schema.clone(), json!({"mail": ".a@", "pattern": "ab"}), "fits");
        check(schema, json!({"mail": "a"}), "/mail: expected at least 3 characters, got \"a\"");
    }

    #[test]
    fn a_hostile_pattern_does_not_hang() {
        let schema = json!({"type": "object", "properties": {"t": {"type": "string", "pattern": "^(a+)+$"}}});
        let text = format!("{}b", "a".repeat(50_000));
        let error = CompiledSchema::compile(&schema).unwrap().check(&json!({"t": text})).unwrap_err();
        assert!(error.to_string().starts_with("/t: expected text that matches `^(a+)+$`, got \"aaa"));
    }
}
