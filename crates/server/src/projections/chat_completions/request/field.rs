//! A value of the request with its path.

use crate::projections::chat_completions::InvalidRequestError;
use serde_json::{Map, Value};

/// A value and its path.
#[derive(Clone, Debug)]
pub(super) struct BodyField<'a> {
    value: &'a Value,
    path: String,
}

impl<'a> BodyField<'a> {
    /// The whole body.
    pub(super) fn root(value: &'a Value) -> Result<Self, InvalidRequestError> {
        match value {
            Value::Object(_) => Ok(Self { value, path: String::new() }),
            _ => Err(InvalidRequestError::invalid("", "the body is no JSON object")),
        }
    }

    pub(super) fn value(&self) -> &'a Value {
        self.value
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// A member; absent and `null` are the same.
    pub(super) fn get(&self, name: &str) -> Option<BodyField<'a>> {
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        Some(BodyField { value, path })
    }

    pub(super) fn required(&self, name: &str) -> Result<BodyField<'a>, InvalidRequestError> {
        self.get(name).ok_or_else(|| {
            let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
            let message = format!("`{path}` is missing");
            InvalidRequestError::invalid(path, message)
        })
    }

    /// The items of a list.
    pub(super) fn items(&self) -> Result<Vec<BodyField<'a>>, InvalidRequestError> {
        let Value::Array(items) = self.value else { return Err(self.invalid("is no list")) };
        let item = |(at, value)| BodyField { value, path: format!("{}[{at}]", self.path) };
        Ok(items.iter().enumerate().map(item).collect())
    }

    pub(super) fn text(&self) -> Result<&'a str, InvalidRequestError> {
        self.value.as_str().ok_or_else(|| self.invalid("is no text"))
    }

    pub(super) fn object(&self) -> Result<&'a Map<String, Value>, InvalidRequestError> {
        self.value.as_object().ok_or_else(|| self.invalid("is no object"))
    }

    /// A member that is true, false or absent.
    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, InvalidRequestError> {
        match self.get(name) {
            None => Ok(None),
            Some(field) => {
                field.value.as_bool().map(Some).ok_or_else(|| field.invalid("is neither true nor false"))
            }
        }
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<f64>, InvalidRequestError> {
        match self.get(name) {
            None => Ok(None),
            Some(field) => field.value.as_f64().map(Some).ok_or_else(|| field.invalid("is no number")),
        }
    }

    /// A number of tokens; -1 and 0 are the same as absent.
    pub(super) fn count(&self, name: &str) -> Result<Option<u32>, InvalidRequestError> {
        let Some(field) = self.get(name) else { return Ok(None) };
        let invalid = || field.invalid("is no whole number");
        // Lua and JavaScript write 100.0.
        let count = field.value.as_f64().filter(|count| count.fract() == 0.0).ok_or_else(invalid)?;
        // As many servers have it: no limit.
        if count == -1.0 || count == 0.0 {
            return Ok(None);
        }
        if count < 0.0 || count > f64::from(u32::MAX) {
            return Err(field.invalid("is out of range"));
        }
        Ok(Some(count as u32))
    }

    /// An error at this path; `what` follows the path in the message.
    pub(super) fn invalid(&self, what: impl std::fmt::Display) -> InvalidRequestError {
        InvalidRequestError::invalid(self.path.clone(), format!("`{}` {what}", self.path))
    }

    pub(super) fn unsupported(&self, what: impl std::fmt::Display) -> InvalidRequestError {
        InvalidRequestError::unsupported(self.path.clone(), format!("`{}` {what}", self.path))
    }
}
