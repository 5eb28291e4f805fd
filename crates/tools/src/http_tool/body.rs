//! The body of a request: JSON with arguments in it.

use crate::template::{Part, Template, text_of};
use bytes::Bytes;
use serde_json::{Map, Value};

/// What is sent.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// The arguments as they are.
    Arguments,
    /// This, with values in it.
    Filled(Node),
}

/// A JSON value with places for arguments.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Fixed(Value),
    Whole(String),
    Text(Template),
    List(Vec<Node>),
    Fields(Vec<(String, Node)>),
}

impl Body {
    pub(super) fn parse(value: &Value) -> Result<Self, String> {
        match value {
            Value::String(text) if text == "arguments" => Ok(Self::Arguments),
            Value::Object(_) | Value::Array(_) => Ok(Self::Filled(Node::of(value))),
            other => Err(format!("{other} is neither a table nor \"arguments\"")),
        }
    }

    /// Arguments that become part of a text.
    pub(super) fn names_in_texts(&self) -> Vec<&str> {
        self.names(|node| match node {
            Node::Text(template) => template.names().collect(),
            _ => Vec::new(),
        })
    }

    /// Arguments that stand for themselves.
    pub(super) fn names_of_values(&self) -> Vec<&str> {
        self.names(|node| match node {
            Node::Whole(name) => vec![name.as_str()],
            _ => Vec::new(),
        })
    }

    fn names<'b>(&'b self, of: fn(&'b Node) -> Vec<&'b str>) -> Vec<&'b str> {
        fn walk<'b>(node: &'b Node, of: fn(&'b Node) -> Vec<&'b str>, names: &mut Vec<&'b str>) {
            names.extend(of(node));
            match node {
                Node::List(items) => items.iter().for_each(|item| walk(item, of, names)),
                Node::Fields(fields) => fields.iter().for_each(|(_, field)| walk(field, of, names)),
                Node::Fixed(_) | Node::Whole(_) | Node::Text(_) => {}
            }
        }
        let mut names = Vec::new();
        if let Self::Filled(node) = self {
            walk(node, of, &mut names);
        }
        names
    }

    /// The bytes to send.
    pub(super) fn fill(&self, arguments: &Value) -> Result<Bytes, String> {
        let value = match self {
            Self::Arguments => arguments.clone(),
            Self::Filled(node) => node.fill(arguments)?.unwrap_or_default(),
        };
        Ok(Bytes::from(value.to_string()))
    }
}

impl Node {
    fn of(value: &Value) -> Self {
        match value {
            Value::String(text) => {
                let template = Template::parse(text);
                match template.only() {
                    Some(name) => Self::Whole(name.to_owned()),
                    None => Self::Text(template),
                }
            }
            Value::Array(items) => Self::List(items.iter().map(Self::of).collect()),
            Value::Object(fields) => {
                Self::Fields(fields.iter().map(|(name, value)| (name.clone(), Self::of(value))).collect())
            }
            fixed => Self::Fixed(fixed.clone()),
        }
    }

    /// `None` = it names an argument that is not there, and is left out with its field.
    fn fill(&self, arguments: &Value) -> Result<Option<Value>, String> {
        Ok(match self {
            Self::Fixed(value) => Some(value.clone()),
            Self::Whole(name) => arguments.get(name).cloned(),
            Self::Text(template) => {
                let mut text = String::new();
                for part in &template.parts {
                    match part {
                        Part::Text(fixed) => text.push_str(fixed),
                        Part::Argument(name) => match text_of(arguments, name)? {
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
    fn values_fill_their_places_and_nothing_else() {
        let template = json!({
            "city": "{city}", "text": "about {city}, {n} times", "fixed": [1, null, "{{city}}"],
            "deep": {"list": ["{tags}", "{absent}"], "gone": "{absent}"},
        });
        let body = Body::parse(&template).unwrap();
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
            (body.names_in_texts(), body.names_of_values()),
            (vec!["city", "n"], vec!["city", "tags", "absent", "absent"])
        );
        assert_eq!(Body::parse(&json!("arguments")).unwrap().fill(&json!({"a": 1})).unwrap(), "{\"a\":1}");
        assert!(Body::parse(&json!("other")).is_err());
        assert!(body.fill(&json!({"city": "x", "n": []})).unwrap_err().starts_with("/n: "));
    }
}
