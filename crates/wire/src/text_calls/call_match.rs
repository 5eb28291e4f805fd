//! A call found by a grammar: slices of the text, made into owned text only when the whole block was read.

use crate::json::JsonRef;
use std::borrow::Cow;
use std::fmt::Write;

/// A call as a grammar found it.
pub(super) struct CallMatch<'t> {
    pub(super) name: Cow<'t, str>,
    pub(super) id: Option<Cow<'t, str>>,
    pub(super) arguments: MatchArguments<'t>,
}

/// Arguments as a grammar found them.
pub(super) enum MatchArguments<'t> {
    /// The text of a JSON object.
    Json(Cow<'t, str>),
    /// One element for each parameter. A repeated name appears twice, and the last one counts, as in JSON.
    Members(Vec<(&'t str, ElementValue<'t>)>),
    /// The markup holds nothing but a name.
    Absent,
}

/// The value of a parameter written as an element.
#[derive(Clone, Copy)]
pub(super) enum ElementValue<'t> {
    /// Declared as a string.
    Text(&'t str),
    /// Unknown. Without a schema the rule is: a text that is JSON and not a JSON string (`1`, `true`, `null`,
    /// `{…}`, `[…]`) is that JSON; anything else is a string, exactly as written. So `02139` and `"x"` are strings
    /// (the latter with its quotes).
    Untyped(&'t str),
}

impl<'t> CallMatch<'t> {
    /// A call whose arguments are a JSON object.
    pub(super) fn with_object(name: &'t str, arguments: &JsonRef<'t>) -> Self {
        Self { name: name.into(), id: None, arguments: MatchArguments::Json(arguments.raw().into()) }
    }

    /// A call whose arguments are elements.
    pub(super) fn with_members(name: &'t str, members: Vec<(&'t str, ElementValue<'t>)>) -> Self {
        Self { name: name.into(), id: None, arguments: MatchArguments::Members(members) }
    }

    /// The calls that a JSON document describes: `{"name", "arguments" | "parameters"}`, the same inside
    /// `"function"`, or an array of them. All or nothing.
    pub(super) fn from_json(json: &JsonRef<'t>) -> Vec<Self> {
        let one = std::slice::from_ref(json);
        let all = if json.is_array() { json.items() } else { one };
        all.iter().map(Self::from_json_object).collect::<Option<Vec<_>>>().unwrap_or_default()
    }

    fn from_json_object(json: &JsonRef<'t>) -> Option<Self> {
        let function = json.get("function").filter(|function| function.is_object()).unwrap_or(json);
        let name = function.nonempty("name")?;
        let arguments = match function.get("arguments").or_else(|| function.get("parameters")) {
            None => "{}".into(),
            Some(object) if object.is_object() => object.raw().into(),
            // Double-encoded (A6): the string holds the object.
            Some(text) => {
                text.as_str().filter(|text| JsonRef::parse(text).is_ok_and(|json| json.is_object()))?
            }
        };
        Some(Self { name, id: json.nonempty("id"), arguments: MatchArguments::Json(arguments) })
    }
}

impl MatchArguments<'_> {
    /// The JSON text of the arguments.
    pub(super) fn into_text(self) -> String {
        match self {
            MatchArguments::Json(text) => text.into_owned(),
            MatchArguments::Absent => "{}".to_owned(),
            MatchArguments::Members(members) => {
                let mut out = String::from("{");
                for (at, (key, value)) in members.into_iter().enumerate() {
                    let separator = if at == 0 { "" } else { ", " };
                    // Writing to a String cannot fail.
                    let _ = write!(out, "{separator}{}: ", quoted(key));
                    value.write_to(&mut out);
                }
                out.push('}');
                out
            }
        }
    }
}

impl ElementValue<'_> {
    fn write_to(self, out: &mut String) {
        match self {
            ElementValue::Untyped(text) if JsonRef::parse(text).is_ok_and(|json| !json.is_string()) => {
                out.push_str(text.trim())
            }
            ElementValue::Text(text) | ElementValue::Untyped(text) => out.push_str(&quoted(text)),
        }
    }
}

/// A text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A parameter's text without the one line break after its opening and before its closing tag, which are layout.
pub(super) fn trim_layout(text: &str) -> &str {
    let text = text.strip_prefix("\r\n").or_else(|| text.strip_prefix('\n')).unwrap_or(text);
    text.strip_suffix("\r\n").or_else(|| text.strip_suffix('\n')).unwrap_or(text)
}
