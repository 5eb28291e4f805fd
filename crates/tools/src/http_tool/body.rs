//! The body of a request: JSON with arguments in it.

use crate::template::{ArgumentTemplate, ArgumentTemplatePart, argument_text};
use bytes::Bytes;
use serde_json::{Map, Value};

/// Template of the body.
#[derive(Clone, Debug)]
pub(super) enum BodyTemplate {
    /// The arguments as they are.
    Arguments,
    /// A template with argument values in it.
    Template(BodyNode),
}

/// A JSON value with places for arguments.
#[derive(Clone, Debug)]
pub(super) enum BodyNode {
    Fixed(Value),
    Argument(String),
    Text(ArgumentTemplate),
    List(Vec<BodyNode>),
    Fields(Vec<(String, BodyNode)>),
}

impl BodyTemplate {
    pub(super) fn parse(value: &Value) -> Result<Self, String> {
        match value {
            Value::String(text) if text == "arguments" => Ok(Self::Arguments),
            Value::Object(_) | Value::Array(_) => Ok(Self::Template(BodyNode::parse(value))),
            other => Err(format!("{other} must be a table or \"arguments\"")),
        }
    }

    /// Arguments that are inserted into a longer text.
    pub(super) fn text_arguments(&self) -> Vec<&str> {
        self.collect_names(|node| match node {
            BodyNode::Text(template) => template.names().collect(),
            _ => Vec::new(),
        })
    }

    /// Arguments that are whole values.
    pub(super) fn value_arguments(&self) -> Vec<&str> {
        self.collect_names(|node| match node {
            BodyNode::Argument(name) => vec![name.as_str()],
            _ => Vec::new(),
        })
    }

    fn collect_names<'b>(&'b self, select: fn(&'b BodyNode) -> Vec<&'b str>) -> Vec<&'b str> {
        fn walk<'b>(node: &'b BodyNode, select: fn(&'b BodyNode) -> Vec<&'b str>, names: &mut Vec<&'b str>) {
            names.extend(select(node));
            match node {
                BodyNode::List(items) => items.iter().for_each(|item| walk(item, select, names)),
                BodyNode::Fields(fields) => fields.iter().for_each(|(_, field)| walk(field, select, names)),
                BodyNode::Fixed(_) | BodyNode::Argument(_) | BodyNode::Text(_) => {}
            }
        }
        let mut names = Vec::new();
        if let Self::Template(node) = self {
            walk(node, select, &mut names);
        }
        names
    }

    /// The bytes to send.
    pub(super) fn fill(&self, arguments: &Value) -> Result<Bytes, String> {
        let value = match self {
            Self::Arguments => arguments.clone(),
            Self::Template(node) => node.fill(arguments)?.unwrap_or_default(),
        };
        Ok(Bytes::from(value.to_string()))
    }
}

impl BodyNode {
    fn parse(value: &Value) -> Self {
        match value {
            Value::String(text) => {
                let template = ArgumentTemplate::parse(text);
                match template.sole_argument() {
                    Some(name) => Self::Argument(name.to_owned()),
                    None => Self::Text(template),
                }
            }
            Value::Array(items) => Self::List(items.iter().map(Self::parse).collect()),
            Value::Object(fields) => {
                Self::Fields(fields.iter().map(|(name, value)| (name.clone(), Self::parse(value))).collect())
            }
            fixed => Self::Fixed(fixed.clone()),
        }
    }

    /// `None` = it names an argument that is not there, and is left out with its field.
    fn fill(&self, arguments: &Value) -> Result<Option<Value>, String> {
        Ok(match self {
            Self::Fixed(value) => Some(value.clone()),
            Self::Argument(name) => arguments.get(name).cloned(),
            Self::Text(template) => {
                let mut text = String::new();
                for part in &template.parts {
                    match part {
                        ArgumentTemplatePart::Text(fixed) => text.push_str(fixed),
                        ArgumentTemplatePart::Argument(name) => match argument_text(arguments, name)? {
                            Some(value) => text.push_str(&value),
                            None => return Ok(None),
                        },
                    }
                }
                Some(Value::String(text))
            }
            Self::List(items) => {
                let filled = items.iter().filter_map(|item| item.fill(arguments).transpose());
                Some(Value::Array(filled.collect::<Result<_, _>>()?))
            }
            Self::Fields(fields) => {
                let mut filled = Map::new();
                for (name, field) in fields {
                    if let Some(value) = field.fill(arguments)? {
                        filled.insert(name.clone(), value);
                    }
                }
                Some(Value::Object(filled))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn body_template_values_cannot_change_its_structure() {
        let template = json!({
            "city": "{city}", "text": "about {city}, {n} times", "fixed": [1, null, "{{city}}"],
            "deep": {"list": ["{tags}", "{absent}"], "gone": "{absent}"},
        });
        let body = BodyTemplate::parse(&template).unwrap();
        let arguments = json!({"city": "\"},{\"x\":\"", "n": 2, "tags": {"a": [1]}});
        let sent: Value = serde_json::from_slice(&body.fill(&arguments).unwrap()).unwrap();
        assert_eq!(
            sent,
            json!({
                "city": "\"},{\"x\":\"", "text": "about \"},{\"x\":\", 2 times", "fixed": [1, null, "{city}"],
                "deep": {"list": [{"a": [1]}]},
            })
        );
        assert_eq!(
            (body.text_arguments(), body.value_arguments()),
            (vec!["city", "n"], vec!["city", "tags", "absent", "absent"])
        );
        assert_eq!(
            BodyTemplate::parse(&json!("arguments")).unwrap().fill(&json!({"a": 1})).unwrap(),
            "{\"a\":1}"
        );
        assert!(BodyTemplate::parse(&json!("other")).is_err());
        assert!(body.fill(&json!({"city": "x", "n": []})).unwrap_err().starts_with("/n: "));
    }
}
