//! Names: what a schema is called in TypeScript, and which names of fields need quotes.

use crate::fault::fault;
use anyhow::Result;
use std::collections::BTreeMap;

/// Names that a type may not have, or that the generated file uses itself.
const RESERVED: [&str; 44] = [
    "Array",
    "Blob",
    "Json",
    "Operations",
    "NOT_JSON",
    "Record",
    "ReadableStream",
    "FormData",
    "Uint8Array",
    "any",
    "await",
    "bigint",
    "boolean",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "export",
    "extends",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "never",
    "new",
    "null",
    "number",
    "object",
    "string",
    "symbol",
    "this",
    "true",
    "type",
    "undefined",
    "unknown",
];

/// The schemas of a document, by name, and what each is called.
pub(crate) struct SchemaNames(BTreeMap<String, String>);

impl SchemaNames {
    /// Fails if two schemas would be called the same.
    pub(crate) fn of<'a>(schemas: impl Iterator<Item = &'a String>) -> Result<Self> {
        let mut names = BTreeMap::new();
        let mut owners: BTreeMap<String, &String> = BTreeMap::new();
        for schema in schemas {
            let name = identifier(schema);
            if let Some(other) = owners.insert(name.clone(), schema) {
                return Err(fault(
                    format!("the schemas `{other}` and `{schema}` would both be called `{name}`"),
                    "give one of them another name where the server describes it",
                ));
            }
            names.insert(schema.clone(), name);
        }
        Ok(Self(names))
    }

    pub(crate) fn of_schema(&self, schema: &str) -> Result<&str> {
        self.0.get(schema).map(String::as_str).ok_or_else(|| {
            fault(format!("there is no schema `{schema}`"), "describe it, or refer to one that there is")
        })
    }

    /// The type that `#/components/schemas/…` refers to.
    pub(crate) fn of_reference(&self, reference: &str) -> Result<&str> {
        let Some(pointer) = reference.strip_prefix("#/components/schemas/") else {
            return Err(fault(
                format!("`{reference}` refers to no schema of the document"),
                "put it below `components.schemas`",
            ));
        };
        self.of_schema(&pointer.replace("~1", "/").replace("~0", "~"))
    }
}

/// A name that TypeScript takes for a type.
fn identifier(schema: &str) -> String {
    let mut name: String =
        schema.chars().map(|one| if one.is_ascii_alphanumeric() { one } else { '_' }).collect();
    if name.starts_with(|one: char| one.is_ascii_digit()) || name.is_empty() {
        name.insert(0, '_');
    }
    if RESERVED.contains(&name.as_str()) {
        name.push('_');
    }
    name
}

/// The name of a field, in quotes where it needs them.
pub(crate) fn field(name: &str) -> String {
    let starts = name.starts_with(|one: char| one.is_ascii_alphabetic() || one == '_' || one == '$');
    let is_plain = starts && name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_' || one == '$');
    if is_plain { name.to_owned() } else { literal(name) }
}

/// A string in double quotes. JSON's form is TypeScript's, too.
pub(crate) fn literal(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
