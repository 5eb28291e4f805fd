//! One draft, and no member of a wrong type.

use super::copies::CopyBudget;
use super::{Keyword, SCHEMA_DEPTH_MAX, references};
use serde_json::{Map, Value, json};

/// Types that JSON Schema has.
const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];

/// The schema of arguments in the form of draft 2020-12. Older forms are converted (`definitions`, `items` as
/// a list, an exclusive bound as a flag); invalid schemas, and members of a wrong type for their keyword, are
/// left out.
pub(super) fn normalize(schema: &Value, copies: &mut CopyBudget) -> Map<String, Value> {
    let mut schema = schema.clone();
    let has_copies = references::localize(&mut schema, copies);
    let Value::Object(mut members) = schema else { return Map::new() };
    normalize_members(&mut members, 0);
    if has_copies {
        references::drop_unused(&mut members);
    }
    members
}

/// Normalizes a nested schema; `None` for one that accepts nothing, and for an invalid one.
fn normalize_schema(schema: &mut Value, depth: usize) -> Option<()> {
    match schema {
        Value::Object(members) if depth < SCHEMA_DEPTH_MAX => normalize_members(members, depth),
        Value::Object(_) | Value::Bool(true) => *schema = json!({}),
        _ => return None,
    }
    Some(())
}

fn normalize_members(members: &mut Map<String, Value>, depth: usize) {
    modernize(members);
    members.retain(|keyword, value| {
        let inside = depth + 1;
        match Keyword::of(keyword) {
            // Closed objects are expressed by a flag.
            Keyword::Schema if value.is_boolean() && keyword == "additionalProperties" => true,
            Keyword::Schema => normalize_schema(value, inside).is_some(),
            Keyword::Schemas => match value {
                Value::Array(schemas) => {
                    schemas.retain_mut(|schema| normalize_schema(schema, inside).is_some());
                    !schemas.is_empty()
                }
                _ => false,
            },
            Keyword::SchemasByName => match value {
                Value::Object(named) => {
                    named.retain(|_, schema| normalize_schema(schema, inside).is_some());
                    true
                }
                _ => false,
            },
            Keyword::Type => normalize_type(value),
            Keyword::Values => value.as_array().is_some_and(|values| !values.is_empty()),
            Keyword::Names => normalize_names(value),
            Keyword::NamesByName => match value {
                Value::Object(named) => {
                    named.retain(|_, names| normalize_names(names));
                    true
                }
                _ => false,
            },
            Keyword::Text if keyword == "pattern" => {
                value.as_str().is_some_and(|pattern| !needs_backtracking(pattern))
            }
            Keyword::Text => value.is_string(),
            Keyword::Number => value.is_number(),
            Keyword::Count => value.as_f64().is_some_and(|count| count >= 0.0 && count.fract() == 0.0),
            Keyword::Flag => value.is_boolean(),
            Keyword::Any => true,
            Keyword::Unsent => false,
        }
    });
    // "array schema missing items" (OpenAI, HTTP 400; streamnative/streamnative-mcp-server#26).
    let is_list = members.contains_key("prefixItems") || has_type(members, "array");
    if is_list && !members.contains_key("items") {
        members.insert("items".to_owned(), json!({}));
    }
}

/// Forms of older drafts in those of 2020-12.
fn modernize(members: &mut Map<String, Value>) {
    if members.get("items").is_some_and(Value::is_array)
        && let Some(prefix) = members.shift_remove("items")
    {
        let rest = members.shift_remove("additionalItems").unwrap_or_else(|| json!({}));
        members.insert("prefixItems".to_owned(), prefix);
        members.insert("items".to_owned(), rest);
    }
    for (flag, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if members.get(flag) == Some(&Value::Bool(true))
            && let Some(value) = members.shift_remove(bound)
        {
            members.insert(flag.to_owned(), value);
        }
    }
}

/// True for a pattern that only a backtracking engine can run: it has lookarounds or backreferences.
/// Providers whose engine does not refuse the schema ("'^(?!…' is not a 'regex'"), and a hostile pattern can
/// make a backtracking engine run without end.
///
/// ```
/// use throughline_wire::needs_backtracking;
///
/// assert!(needs_backtracking(r"^(?!\.)[a-z]+$") && needs_backtracking(r"(a|b)\1"));
/// assert!(!needs_backtracking(r"^(?:a|b)\(?=$") && !needs_backtracking(r"\\1"));
/// ```
pub fn needs_backtracking(pattern: &str) -> bool {
    let mut rest = pattern;
    while let Some(at) = rest.find(['\\', '(']) {
        let (found, after) = rest[at..].split_at(1);
        if found == "(" {
            if ["?=", "?!", "?<=", "?<!"].iter().any(|look| after.starts_with(look)) {
                return true;
            }
            rest = after;
        } else {
            if after.starts_with(|c: char| ('1'..='9').contains(&c)) || after.starts_with("k<") {
                return true;
            }
            // The escaped character stands for itself.
            rest = after.char_indices().nth(1).map_or("", |(next, _)| &after[next..]);
        }
    }
    false
}

/// Normalizes a type name to lower case (Gemini users write `STRING`); false if it is unknown.
fn normalize_type(value: &mut Value) -> bool {
    let known = |name: &Value| {
        let name = name.as_str()?.to_ascii_lowercase();
        TYPES.into_iter().find(|known| *known == name)
    };
    let names: Vec<&str> = match &*value {
        Value::Array(names) => names.iter().filter_map(known).collect(),
        one => known(one).into_iter().collect(),
    };
    let mut different: Vec<&str> = Vec::new();
    names.into_iter().for_each(|name| {
        if !different.contains(&name) {
            different.push(name);
        }
    });
    *value = match different.as_slice() {
        [] => return false,
        [one] => json!(one),
        several => json!(several),
    };
    true
}

fn normalize_names(value: &mut Value) -> bool {
    let Value::Array(names) = value else { return false };
    let mut different: Vec<Value> = Vec::new();
    for name in names.drain(..) {
        if name.is_string() && !different.contains(&name) {
            different.push(name);
        }
    }
    *names = different;
    true
}

/// The schema names this type, alone or among others.
pub(super) fn has_type(members: &Map<String, Value>, name: &str) -> bool {
    match members.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(several)) => several.iter().any(|one| one == name),
        _ => false,
    }
}
