//! Reading a request as strictly as the provider does: each field at its path, each refusal in words.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::seen::SeenImage;

/// Why a request was refused. `message` follows the provider's wording where that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub status: u16,
    pub message: String,
    /// `code` on the wire, where the provider has one.
    pub code: Option<&'static str>,
    /// The field concerned.
    pub param: Option<String>,
}

impl Refusal {
    pub fn new(message: impl Into<String>) -> Self {
        Self { status: 400, message: message.into(), code: None, param: None }
    }

    pub fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }
}

pub(crate) type Checked<T> = Result<T, Refusal>;

/// How a dialect writes the place of a list item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Indexing {
    /// `messages[1].content`
    Brackets,
    /// `messages.1.content`
    Dots,
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct At<'a> {
    pub value: &'a Value,
    pub path: String,
    indexing: Indexing,
}

impl<'a> At<'a> {
    pub fn root(value: &'a Value, indexing: Indexing) -> Self {
        Self { value, path: String::new(), indexing }
    }

    /// A refusal that names this place.
    pub fn refuse(&self, why: impl AsRef<str>) -> Refusal {
        let message = if self.path.is_empty() {
            why.as_ref().to_owned()
        } else {
            match self.indexing {
                Indexing::Brackets => format!("Invalid '{}': {}", self.path, why.as_ref()),
                Indexing::Dots => format!("{}: {}", self.path, why.as_ref()),
            }
        };
        let param = (!self.path.is_empty()).then(|| self.path.clone());
        Refusal { status: 400, message, code: None, param }
    }

    fn expected(&self, what: &str) -> Refusal {
        let got = match self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
        };
        self.refuse(format!("expected {what}, but got {got} instead."))
    }

    pub fn map(&self) -> Checked<&'a Map<String, Value>> {
        self.value.as_object().ok_or_else(|| self.expected("an object"))
    }

    pub fn text(&self) -> Checked<&'a str> {
        self.value.as_str().ok_or_else(|| self.expected("a string"))
    }

    pub fn flag(&self) -> Checked<bool> {
        self.value.as_bool().ok_or_else(|| self.expected("a boolean"))
    }

    pub fn count(&self) -> Checked<u64> {
        self.value.as_u64().ok_or_else(|| self.expected("a non-negative integer"))
    }

    pub fn items(&self) -> Checked<Vec<At<'a>>> {
        let list = self.value.as_array().ok_or_else(|| self.expected("an array"))?;
        let at = |(i, value)| {
            let path = match self.indexing {
                Indexing::Brackets => format!("{}[{i}]", self.path),
                Indexing::Dots => format!("{}.{i}", self.path),
            };
            At { value, path, indexing: self.indexing }
        };
        Ok(list.iter().enumerate().map(at).collect())
    }

    /// As `items`, and at least one.
    pub fn some_items(&self) -> Checked<Vec<At<'a>>> {
        let items = self.items()?;
        if items.is_empty() {
            return Err(self.refuse(
                "empty array. Expected an array with minimum length 1, but got an empty array instead.",
            ));
        }
        Ok(items)
    }

    /// A field that may be absent; `null` is absent.
    pub fn get(&self, key: &str) -> Option<At<'a>> {
        let value = self.value.get(key)?;
        (!value.is_null()).then(|| self.child(key, value))
    }

    /// The first of several spellings.
    pub fn get_any(&self, keys: &[&str]) -> Option<At<'a>> {
        keys.iter().find_map(|key| self.get(key))
    }

    pub fn need(&self, key: &str) -> Checked<At<'a>> {
        self.get(key).ok_or_else(|| {
            let path = self.child(key, self.value).path;
            let message = match self.indexing {
                Indexing::Brackets => format!("Missing required parameter: '{path}'."),
                Indexing::Dots => format!("{path}: Field required"),
            };
            Refusal { param: Some(path), ..Refusal::new(message) }
        })
    }

    pub fn need_text(&self, key: &str) -> Checked<&'a str> {
        self.need(key)?.text()
    }

    pub fn get_text(&self, key: &str) -> Checked<Option<&'a str>> {
        self.get(key).map(|at| at.text()).transpose()
    }

    /// Refuses fields outside `known`; `words` says how this provider puts it.
    pub fn only(&self, known: &[&str], words: impl Fn(&At<'_>, &str) -> String) -> Checked<()> {
        match self.map()?.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => Err(Refusal { param: Some(key.clone()), ..Refusal::new(words(self, key)) }),
            None => Ok(()),
        }
    }

    /// A tool name in the provider's alphabet.
    pub fn name(&self, extra: &str, length_max: usize) -> Checked<&'a str> {
        let name = self.text()?;
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || extra.contains(c);
        if name.is_empty() || name.len() > length_max || !name.chars().all(legal) {
            let class = format!("^[a-zA-Z0-9_{extra}-]{{1,{length_max}}}$");
            return Err(self.refuse(format!(
                "string does not match pattern. Expected a string that matches the pattern '{class}'."
            )));
        }
        Ok(name)
    }

    /// A JSON Schema of an object.
    pub fn object_schema(&self) -> Checked<Value> {
        let map = self.map()?;
        match map.get("type").and_then(Value::as_str) {
            Some(kind) if kind.eq_ignore_ascii_case("object") => Ok(self.value.clone()),
            _ => Err(self.refuse("schema must be a JSON Schema of 'type: \"object\"'.")),
        }
    }

    /// Base64 bytes.
    pub fn bytes(&self) -> Checked<Vec<u8>> {
        STANDARD.decode(self.text()?).map_err(|_| self.refuse("invalid base64 data"))
    }

    /// A picture given as an address or a `data:` address.
    pub fn image_url(&self) -> Checked<SeenImage> {
        let url = self.text()?;
        let Some(data) = url.strip_prefix("data:") else {
            if !url.starts_with("https://") && !url.starts_with("http://") {
                return Err(self.refuse("Expected a valid URL, but got a value with an invalid format."));
            }
            return Ok(SeenImage { media_type: String::new(), bytes: Vec::new(), url: Some(url.into()) });
        };
        let broken = || self.refuse("Expected a base64-encoded data URL with an image MIME type.");
        let (media_type, data) = data.split_once(";base64,").ok_or_else(broken)?;
        if !media_type.starts_with("image/") {
            return Err(broken());
        }
        let bytes = STANDARD.decode(data).map_err(|_| broken())?;
        Ok(SeenImage { media_type: media_type.into(), bytes, url: None })
    }

    fn child(&self, key: &str, value: &'a Value) -> At<'a> {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        At { value, path, indexing: self.indexing }
    }
}

/// The first name that stands twice.
pub(crate) fn repeated<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = std::collections::HashSet::new();
    names.into_iter().find(|name| !seen.insert(*name))
}

/// Joins system texts.
pub(crate) fn joined(parts: Vec<String>) -> Option<String> {
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}
