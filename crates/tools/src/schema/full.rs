//! The validator of the cargo feature `json-schema`: every keyword of every draft.

use super::messages::{
    QUOTE_CHARS_MAX, child_pointer, choice_list, describe_value, missing, pluralize, quote_value,
    truncate_chars, unknown_property, value_length,
};
use super::{SchemaFault, SchemaViolation, VIOLATIONS_COUNTED_MAX};
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

#[derive(Debug)]
pub(super) struct FullValidator(Validator);

impl FullValidator {
    pub(super) fn compile(document: &Value) -> Result<Self, SchemaFault> {
        let validator = jsonschema::options()
            .offline()
            // A pattern may come from a stranger's tool: the backtracking engine can be made to hang, this one cannot.
            .with_pattern_options(PatternOptions::regex())
            .build(document);
        validator.map(Self).map_err(|error| SchemaFault(truncate_chars(&error.to_string(), 400)))
    }

    /// At least the first [`VIOLATIONS_COUNTED_MAX`] violations.
    pub(super) fn violations(&self, document: &Value, arguments: &Value) -> Vec<SchemaViolation> {
        let errors = self.0.iter_errors(arguments).take(VIOLATIONS_COUNTED_MAX);
        errors.flat_map(|error| explain(document, &error)).collect()
    }
}

/// One violation, or one for each unknown property.
fn explain(document: &Value, error: &ValidationError<'_>) -> Vec<SchemaViolation> {
    let path = error.instance_path().as_str().to_owned();
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let message = unknown_property(&known_properties(document, error).unwrap_or_default());
            let names = unexpected.iter().take(VIOLATIONS_COUNTED_MAX);
            names
                .map(|name| SchemaViolation { path: child_pointer(&path, name), message: message.clone() })
                .collect()
        }
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().map_or_else(|| property.to_string(), str::to_owned);
            let types = parent_of_keyword(document, error)
                .and_then(|parent| parent.get("properties")?.get(&name)?.get("type"));
            vec![SchemaViolation { path: child_pointer(&path, &name), message: missing(types) }]
        }
        _ => vec![SchemaViolation { path, message: expectation(error) }],
    }
}

/// The schema object that holds the failed keyword; `None` inside a `$ref`, whose target is not looked up.
fn parent_of_keyword<'d>(document: &'d Value, error: &ValidationError<'_>) -> Option<&'d Value> {
    let (parent, _keyword) = error.schema_path().as_str().rsplit_once('/')?;
    document.pointer(parent)
}

fn known_properties(document: &Value, error: &ValidationError<'_>) -> Option<Vec<String>> {
    let properties = parent_of_keyword(document, error)?.get("properties")?.as_object()?;
    Some(properties.keys().cloned().collect())
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
                "matches none of the {} alternatives ({}), got {got}",
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
            // The caller adds the received type once.
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
