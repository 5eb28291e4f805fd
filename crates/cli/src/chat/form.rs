//! An elicitation as fields: the requested values, and validation of the input. No IO.
//!
//! The schema is the flat one that MCP allows in an elicitation (text, number, boolean, one of several,
//! several of several); anything else is entered as JSON, so that every question can be answered.

use crate::messages::UiText;
use serde_json::{Map, Value};
use throughline::{ApprovalDecision, decision_in_words};

/// Fields of one question, in the schema's order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct QuestionForm {
    pub(crate) fields: Vec<FormField>,
}

/// One requested value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FormField {
    /// Key in the answer.
    pub(crate) name: String,
    /// Label of the field.
    pub(crate) title: String,
    /// Description of the field.
    pub(crate) about: String,
    /// Type of value that the field accepts.
    pub(crate) kind: FormFieldKind,
    pub(crate) presence: FieldPresence,
    /// The answer if nothing is typed.
    pub(crate) default: Option<Value>,
}

/// Required or optional field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldPresence {
    /// A value is required.
    Required,
    /// The value may be omitted.
    Optional,
}

/// Type of value that a field accepts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FormFieldKind {
    /// Text of at least `least` and at most `most` characters.
    Text { least: Option<u64>, most: Option<u64> },
    /// A number within bounds.
    Number { number_kind: NumberKind, least: Option<f64>, most: Option<f64> },
    /// Yes or no.
    Switch,
    /// One of these values, each with its label.
    One(Vec<(Value, String)>),
    /// Any of these.
    Several(Vec<(Value, String)>),
    /// Any other value, as JSON.
    Json,
}

/// Range of numbers that a field accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberKind {
    /// Whole ones.
    Integer,
    Any,
}

impl QuestionForm {
    /// The fields of a JSON Schema of an object; none if it has no properties.
    pub(crate) fn of(schema: &Value) -> Self {
        let required = |name: &str| {
            let list = schema.get("required").and_then(Value::as_array);
            list.into_iter().flatten().any(|entry| entry.as_str() == Some(name))
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        let fields = properties.into_iter().flatten().map(|(name, schema)| {
            let presence = if required(name) { FieldPresence::Required } else { FieldPresence::Optional };
            FormField::of(name, schema, presence)
        });
        Self { fields: fields.collect() }
    }
}

impl FormField {
    fn of(name: &str, schema: &Value, presence: FieldPresence) -> Self {
        let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let title = Some(text("title")).filter(|title| !title.is_empty()).unwrap_or_else(|| name.to_owned());
        Self {
            name: name.to_owned(),
            title,
            about: text("description"),
            kind: FormFieldKind::of(schema),
            presence,
            default: schema.get("default").filter(|default| !default.is_null()).cloned(),
        }
    }

    /// Parses typed text as a value; empty text is the default, or no value if it is optional.
    ///
    /// # Errors
    /// The reason why it does not fit, for the user.
    pub(crate) fn parse_typed(&self, typed: &str, words: UiText) -> Result<Option<Value>, String> {
        let typed = typed.trim();
        if typed.is_empty() {
            return match (&self.default, self.presence) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, FieldPresence::Optional) => Ok(None),
                (None, FieldPresence::Required) => Err(words.field_needed().to_owned()),
            };
        }
        self.kind.parse_typed(typed, words).map(Some)
    }

    /// One line that describes the accepted input.
    pub(crate) fn hint(&self, words: UiText) -> String {
        let mut hint = self.kind.hint(words);
        match (&self.default, self.presence) {
            (Some(default), _) => {
                let default = self.kind.value_text(default, words);
                hint.push_str(&format!("{}Enter = {default}", if hint.is_empty() { "" } else { " · " }));
            }
            (None, FieldPresence::Optional) => {
                hint.push_str(if hint.is_empty() { "" } else { " · " });
                hint.push_str(words.field_optional());
            }
            (None, FieldPresence::Required) => {}
        }
        hint
    }
}

impl FormFieldKind {
    fn of(schema: &Value) -> Self {
        let number = |key: &str| schema.get(key).and_then(Value::as_f64);
        let length = |key: &str| schema.get(key).and_then(Value::as_u64);
        if let Some(choices) = choices(schema) {
            return Self::One(choices);
        }
        let (least, most) = (number("minimum"), number("maximum"));
        match schema.get("type").and_then(Value::as_str) {
            Some("string") => Self::Text { least: length("minLength"), most: length("maxLength") },
            Some("integer") => Self::Number { number_kind: NumberKind::Integer, least, most },
            Some("number") => Self::Number { number_kind: NumberKind::Any, least, most },
            Some("boolean") => Self::Switch,
            Some("array") => schema.get("items").and_then(choices).map_or(Self::Json, Self::Several),
            _ => Self::Json,
        }
    }

    fn parse_typed(&self, typed: &str, words: UiText) -> Result<Value, String> {
        match self {
            Self::Text { least, most } => {
                let length = typed.chars().count() as u64;
                match (least.is_some_and(|least| length < least), most.is_some_and(|most| length > most)) {
                    (true, _) => Err(words.field_too_short(least.unwrap_or(0))),
                    (_, true) => Err(words.field_too_long(most.unwrap_or(0))),
                    _ => Ok(typed.into()),
                }
            }
            Self::Number { number_kind, least, most } => {
                let value = match number_kind {
                    NumberKind::Integer => typed.parse::<i64>().ok().map(Value::from),
                    NumberKind::Any => {
                        typed.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from)
                    }
                };
                let value = value.ok_or_else(|| match number_kind {
                    NumberKind::Integer => words.field_whole_number().to_owned(),
                    NumberKind::Any => words.field_number().to_owned(),
                })?;
                let number = value.as_f64().unwrap_or_default();
                let out_of_bounds =
                    least.is_some_and(|least| number < least) || most.is_some_and(|most| number > most);
                if out_of_bounds { Err(words.field_between(&bounds_text(*least, *most))) } else { Ok(value) }
            }
            Self::Switch => match (typed.to_lowercase().as_str(), decision_in_words(typed)) {
                ("true" | "1", _) | (_, Some(ApprovalDecision::Approve)) => Ok(true.into()),
                ("false" | "0", _) | (_, Some(ApprovalDecision::Deny)) => Ok(false.into()),
                _ => Err(words.field_yes_or_no().to_owned()),
            },
            Self::One(choices) => {
                matching_choice(choices, typed).cloned().ok_or_else(|| words.field_one_of(choices.len()))
            }
            Self::Several(choices) => {
                let items = typed.split([',', '，', ' ']).map(str::trim).filter(|part| !part.is_empty());
                items
                    .map(|part| {
                        matching_choice(choices, part)
                            .cloned()
                            .ok_or_else(|| words.field_one_of(choices.len()))
                    })
                    .collect::<Result<Vec<_>, _>>()
                    .map(Value::Array)
            }
            Self::Json => serde_json::from_str(typed).map_err(|error| words.not_json(&error.to_string())),
        }
    }

    fn hint(&self, words: UiText) -> String {
        match self {
            Self::Text { .. } => String::new(),
            Self::Number { number_kind: NumberKind::Any, least: None, most: None } => {
                words.field_number().to_owned()
            }
            Self::Number { number_kind: NumberKind::Integer, least: None, most: None } => {
                words.field_whole_number().to_owned()
            }
            Self::Number { least, most, .. } => words.field_between(&bounds_text(*least, *most)),
            Self::Switch => words.field_yes_or_no().to_owned(),
            Self::One(choices) => numbered_choices(choices),
            Self::Several(choices) => format!("{} · {}", numbered_choices(choices), words.field_several()),
            Self::Json => "JSON".to_owned(),
        }
    }

    /// The label of a value.
    fn value_text(&self, value: &Value, words: UiText) -> String {
        match (self, value) {
            (Self::One(choices) | Self::Several(choices), _) => {
                let title =
                    choices.iter().find(|(choice, _)| choice == value).map(|(_, title)| title.clone());
                title.unwrap_or_else(|| value.to_string())
            }
            (Self::Switch, Value::Bool(yes)) => if *yes { words.yes() } else { words.no() }.to_owned(),
            (_, Value::String(text)) => text.clone(),
            _ => value.to_string(),
        }
    }
}

/// `enum` with `enumNames`, or `oneOf`/`anyOf` of constants with titles.
fn choices(schema: &Value) -> Option<Vec<(Value, String)>> {
    let named = |value: &Value, name: Option<&str>| {
        let plain = || value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (value.clone(), name.map_or_else(plain, str::to_owned))
    };
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let names = schema.get("enumNames").and_then(Value::as_array);
        let name = |index: usize| names.and_then(|names| names.get(index)).and_then(Value::as_str);
        return Some(values.iter().enumerate().map(|(index, value)| named(value, name(index))).collect());
    }
    let list = ["oneOf", "anyOf"].iter().find_map(|key| schema.get(key)).and_then(Value::as_array)?;
    let items =
        list.iter().map(|one| Some(named(one.get("const")?, one.get("title").and_then(Value::as_str))));
    items.collect()
}

/// Finds a choice by number, by value, or by label.
fn matching_choice<'a>(choices: &'a [(Value, String)], typed: &str) -> Option<&'a Value> {
    let equals_typed = |text: &str| text.to_lowercase() == typed.to_lowercase();
    let by_name =
        choices.iter().find(|(value, title)| equals_typed(title) || value.as_str().is_some_and(equals_typed));
    let by_number = || typed.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
    by_name.or_else(by_number).map(|(value, _)| value)
}

fn numbered_choices(choices: &[(Value, String)]) -> String {
    let items = choices.iter().enumerate().map(|(index, (_, title))| format!("[{}] {title}", index + 1));
    items.collect::<Vec<_>>().join("  ")
}

fn bounds_text(least: Option<f64>, most: Option<f64>) -> String {
    match (least, most) {
        (Some(least), Some(most)) => format!("{least} – {most}"),
        (Some(least), None) => format!("≥ {least}"),
        (None, Some(most)) => format!("≤ {most}"),
        (None, None) => String::new(),
    }
}

/// The answer so far, field by field.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FormAnswers {
    values: Vec<Option<Value>>,
}

impl FormAnswers {
    /// The current field; `None` = all are answered.
    pub(crate) fn next_field<'f>(&self, form: &'f QuestionForm) -> Option<&'f FormField> {
        form.fields.get(self.values.len())
    }

    /// Answers the current field.
    ///
    /// # Errors
    /// The reason why the input does not fit; the field stays current.
    pub(crate) fn answer_next(
        &mut self,
        form: &QuestionForm,
        typed: &str,
        words: UiText,
    ) -> Result<(), String> {
        if let Some(field) = self.next_field(form) {
            let value = field.parse_typed(typed, words)?;
            self.values.push(value);
        }
        Ok(())
    }

    /// Takes the last answer back, to be changed.
    pub(crate) fn undo_last(&mut self, form: &QuestionForm, words: UiText) -> String {
        let value = self.values.pop().flatten();
        let field = form.fields.get(self.values.len());
        field.zip(value).map(|(field, value)| field.kind.value_text(&value, words)).unwrap_or_default()
    }

    /// Name and value of what has been answered.
    pub(crate) fn answered_rows(&self, form: &QuestionForm, words: UiText) -> Vec<(String, String)> {
        let items = form.fields.iter().zip(&self.values);
        let shown = |(field, value): (&FormField, &Option<Value>)| {
            let value =
                value.as_ref().map_or_else(|| "–".to_owned(), |value| field.kind.value_text(value, words));
            (field.title.clone(), value)
        };
        items.map(shown).collect()
    }

    /// The answer as an object.
    pub(crate) fn answer(&self, form: &QuestionForm) -> Value {
        let pairs = form.fields.iter().zip(&self.values);
        let values = pairs.filter_map(|(field, value)| Some((field.name.clone(), value.clone()?)));
        Value::Object(values.collect::<Map<_, _>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::UiLanguage;
    use serde_json::json;

    const WORDS: UiText = UiText(UiLanguage::English);

    fn form() -> QuestionForm {
        QuestionForm::of(&json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "title": "Your name", "description": "As on the ticket", "minLength": 2, "maxLength": 5},
                "seats": {"type": "integer", "minimum": 1, "maximum": 4, "default": 2},
                "price": {"type": "number", "maximum": 10},
                "window": {"type": "boolean", "default": true},
                "class": {"type": "string", "enum": ["e", "b"], "enumNames": ["Economy", "Business"]},
                "meals": {"type": "array", "items": {"anyOf": [{"const": "v", "title": "Vegan"}, {"const": "f", "title": "Fish"}]}},
                "extra": {"type": "object"}
            },
            "required": ["name", "class"]
        }))
    }

    // Each kind of field accepts valid input and explains a rejection.
    #[test]
    fn form_fields_validate_input_by_type() {
        let form = form();
        let field = |name: &str| form.fields.iter().find(|field| field.name == name).unwrap();
        for (name, typed, expected) in [
            ("name", " Ada ", Ok(Some(json!("Ada")))),
            ("name", "A", Err("at least 2 characters")),
            ("name", "Adalbert", Err("at most 5 characters")),
            ("name", "", Err("an answer is required")),
            ("seats", "", Ok(Some(json!(2)))),
            ("seats", "4", Ok(Some(json!(4)))),
            ("seats", "5", Err("1 – 4")),
            ("seats", "1.5", Err("a whole number")),
            ("price", "9.5", Ok(Some(json!(9.5)))),
            ("price", "NaN", Err("a number")),
            ("price", "11", Err("≤ 10")),
            ("price", "", Ok(None)),
            ("window", "n", Ok(Some(json!(false)))),
            ("window", "是", Ok(Some(json!(true)))),
            ("window", "perhaps", Err("y or n")),
            ("class", "business", Ok(Some(json!("b")))),
            ("class", "1", Ok(Some(json!("e")))),
            ("class", "0", Err("1 to 2")),
            ("class", "", Err("an answer is required")),
            ("meals", "1, fish", Ok(Some(json!(["v", "f"])))),
            ("meals", "soup", Err("1 to 2")),
            ("extra", "{\"a\": 1}", Ok(Some(json!({"a": 1})))),
            ("extra", "{", Err("not JSON")),
        ] {
            let read = field(name).parse_typed(typed, WORDS);
            match expected {
                Ok(value) => assert_eq!(read, Ok(value), "{name} {typed:?}"),
                Err(part) => {
                    let said = read.expect_err(typed);
                    assert!(said.contains(part), "{name} {typed:?}: {said}");
                }
            }
        }
    }

    #[test]
    fn form_hints_describe_valid_input() {
        let hints: Vec<String> = form().fields.iter().map(|field| field.hint(WORDS)).collect();
        assert_eq!(
            hints,
            [
                "",
                "a number, 1 – 4 · Enter = 2",
                "a number, ≤ 10 · may be left empty",
                "y or n · Enter = yes",
                "[1] Economy  [2] Business",
                "[1] Vegan  [2] Fish · several, separated by commas · may be left empty",
                "JSON · may be left empty",
            ]
        );
    }

    #[test]
    fn form_is_filled_in_order_and_answers_can_be_undone() {
        let (form, mut filled) = (form(), FormAnswers::default());
        for typed in ["Ada", "9", "", "", "", "2", "", ""] {
            let _ = filled.answer_next(&form, typed, WORDS);
        }
        assert_eq!(filled.next_field(&form), None);
        assert_eq!(filled.answer(&form), json!({"name": "Ada", "seats": 2, "window": true, "class": "b"}));
        assert_eq!(filled.undo_last(&form, WORDS), "");
        filled.undo_last(&form, WORDS);
        assert_eq!(filled.undo_last(&form, WORDS), "Business");
        assert_eq!(filled.next_field(&form).map(|field| field.name.as_str()), Some("class"));
        assert_eq!(filled.answered_rows(&form, WORDS)[1], ("seats".to_owned(), "2".to_owned()));
    }
}
