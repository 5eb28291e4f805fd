//! Texts of the settings with `{names}` of arguments in them.
//!
//! This module only finds them: valid values and their escaping are decided where they are inserted into an
//! argument list or a URL.

use serde_json::{Map, Value, json};

/// Parts of a text, in order: literal text and names of arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ArgumentTemplate {
    pub(crate) parts: Vec<ArgumentTemplatePart>,
}

/// A part of a [`ArgumentTemplate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentTemplatePart {
    Text(String),
    Argument(String),
}

impl ArgumentTemplate {
    /// `{name}` is an argument, `{{` and `}}` are braces, and any other brace is itself.
    pub(crate) fn parse(text: &str) -> Self {
        let mut template = Self::default();
        let mut rest = text;
        while let Some(brace) = rest.find(['{', '}']) {
            let (before, from_brace) = rest.split_at(brace);
            template.push_text(before);
            let name = from_brace.strip_prefix('{').and_then(parse_name);
            rest = if let Some(after) =
                from_brace.strip_prefix("{{").or_else(|| from_brace.strip_prefix("}}"))
            {
                template.push_text(&from_brace[..1]);
                after
            } else if let Some(name) = name {
                template.parts.push(ArgumentTemplatePart::Argument(name.to_owned()));
                &from_brace[name.len() + 2..]
            } else {
                template.push_text(&from_brace[..1]);
                &from_brace[1..]
            };
        }
        template.push_text(rest);
        template
    }

    fn push_text(&mut self, text: &str) {
        match self.parts.last_mut() {
            _ if text.is_empty() => {}
            Some(ArgumentTemplatePart::Text(before)) => before.push_str(text),
            _ => self.parts.push(ArgumentTemplatePart::Text(text.to_owned())),
        }
    }

    /// The arguments it names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            ArgumentTemplatePart::Argument(name) => Some(name.as_str()),
            ArgumentTemplatePart::Text(_) => None,
        })
    }

    /// The argument's name, if the template is one argument and nothing else.
    pub(crate) fn sole_argument(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [ArgumentTemplatePart::Argument(name)] => Some(name),
            _ => None,
        }
    }
}

/// The name before the next `}`.
fn parse_name(text: &str) -> Option<&str> {
    let name = &text[..text.find('}')?];
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some(name)
}

/// An argument as text: a text as it is, numbers and truth values as JSON. `None` = it is not there.
///
/// # Errors
/// It is a list or an object.
pub(crate) fn argument_text(arguments: &Value, name: &str) -> Result<Option<String>, String> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(plain @ (Value::Bool(_) | Value::Number(_))) => Ok(Some(plain.to_string())),
        Some(_) => Err(format!("/{name}: a list or an object cannot be put here; send it as JSON")),
    }
}

/// The schema of the settings, or one made of names: texts, all of them required.
///
/// # Errors
/// A name that the given schema does not have.
pub(crate) fn parameters_schema(given: Option<&Value>, names: &[&str]) -> Result<Value, String> {
    let Some(given) = given else {
        let properties: Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
        let mut required: Vec<&str> = names.to_vec();
        required.sort_unstable();
        required.dedup();
        return Ok(json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        }));
    };
    // A schema may be written as one JSON text.
    let schema = match given {
        Value::String(text) => {
            serde_json::from_str(text).map_err(|error| format!("`parameters` is not JSON: {error}"))?
        }
        table => table.clone(),
    };
    for name in names {
        let Some(property) = schema.get("properties").and_then(|properties| properties.get(name)) else {
            return Err(format!("{{{name}}} is no parameter of the schema"));
        };
        if matches!(property.get("type").and_then(Value::as_str), Some("object" | "array")) {
            return Err(format!("{{{name}}} is a list or an object, which cannot be inserted into text"));
        }
    }
    Ok(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let parts = ArgumentTemplate::parse(text).parts.into_iter().map(|part| match part {
            ArgumentTemplatePart::Text(text) => format!("'{text}'"),
            ArgumentTemplatePart::Argument(name) => format!("<{name}>"),
        });
        parts.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn names_in_braces_are_arguments() {
        for (text, expected) in [
            ("", ""),
            ("plain", "'plain'"),
            ("{city}", "<city>"),
            ("a{b}{c}d", "'a' <b> <c> 'd'"),
            ("{{city}}", "'{city}'"),
            ("{ print $1 }", "'{ print $1 }'"),
            ("{\"a\": {n}}", "'{\"a\": ' <n> '}'"),
            ("{}", "'{}'"),
            ("{9x}", "'{9x}'"),
            ("{open", "'{open'"),
            ("close}", "'close}'"),
            ("{城市}", "'{城市}'"),
            ("}}{{", "'}{'"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }
}
