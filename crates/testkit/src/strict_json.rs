//! Reading a request as strictly as the provider does: each field at its path, each refusal in words.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::parsed_request::ParsedImage;

/// Reason why a request was refused. `message` follows the provider's wording where that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestRefusal {
    pub status: u16,
    pub message: String,
    /// `code` on the wire, where the provider has one.
    pub code: Option<&'static str>,
    /// The field concerned.
    pub param: Option<String>,
}

impl RequestRefusal {
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

pub(crate) type RequestResult<T> = Result<T, RequestRefusal>;

/// A dialect's notation for the path of a list item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathStyle {
    /// `messages[1].content`
    Brackets,
    /// `messages.1.content`
    Dots,
}

/// A value and its path.
#[derive(Clone, Debug)]
pub(crate) struct RequestNode<'a> {
    pub value: &'a Value,
    pub path: String,
    indexing: PathStyle,
}

impl<'a> RequestNode<'a> {
    pub fn root(value: &'a Value, indexing: PathStyle) -> Self {
        Self { value, path: String::new(), indexing }
    }

    /// A refusal that names this path.
    pub fn refuse(&self, why: impl AsRef<str>) -> RequestRefusal {
        let message = if self.path.is_empty() {
            why.as_ref().to_owned()
        } else {
            match self.indexing {
                PathStyle::Brackets => format!("Invalid '{}': {}", self.path, why.as_ref()),
                PathStyle::Dots => format!("{}: {}", self.path, why.as_ref()),
            }
        };
        let param = (!self.path.is_empty()).then(|| self.path.clone());
        RequestRefusal { status: 400, message, code: None, param }
    }

    fn expected(&self, what: &str) -> RequestRefusal {
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

    pub fn map(&self) -> RequestResult<&'a Map<String, Value>> {
        self.value.as_object().ok_or_else(|| self.expected("an object"))
    }

    pub fn text(&self) -> RequestResult<&'a str> {
        self.value.as_str().ok_or_else(|| self.expected("a string"))
    }

    pub fn flag(&self) -> RequestResult<bool> {
        self.value.as_bool().ok_or_else(|| self.expected("a boolean"))
    }

    pub fn count(&self) -> RequestResult<u64> {
        self.value.as_u64().ok_or_else(|| self.expected("a non-negative integer"))
    }

    pub fn items(&self) -> RequestResult<Vec<RequestNode<'a>>> {
        let list = self.value.as_array().ok_or_else(|| self.expected("an array"))?;
        let at = |(i, value)| {
            let path = match self.indexing {
                PathStyle::Brackets => format!("{}[{i}]", self.path),
                PathStyle::Dots => format!("{}.{i}", self.path),
            };
            RequestNode { value, path, indexing: self.indexing }
        };
        Ok(list.iter().enumerate().map(at).collect())
    }

    /// As `items`, and at least one.
    pub fn non_empty_items(&self) -> RequestResult<Vec<RequestNode<'a>>> {
        let items = self.items()?;
        if items.is_empty() {
            return Err(self.refuse(
                "empty array. Expected an array with minimum length 1, but got an empty array instead.",
            ));
        }
        Ok(items)
    }

    /// A field that may be absent; `null` is absent.
    pub fn get(&self, key: &str) -> Option<RequestNode<'a>> {
        let value = self.value.get(key)?;
        (!value.is_null()).then(|| self.child(key, value))
    }

    /// The first of several spellings.
    pub fn get_any(&self, keys: &[&str]) -> Option<RequestNode<'a>> {
        keys.iter().find_map(|key| self.get(key))
    }

    pub fn require(&self, key: &str) -> RequestResult<RequestNode<'a>> {
        self.get(key).ok_or_else(|| {
            let path = self.child(key, self.value).path;
            let message = match self.indexing {
                PathStyle::Brackets => format!("Missing required parameter: '{path}'."),
                PathStyle::Dots => format!("{path}: Field required"),
            };
            RequestRefusal { param: Some(path), ..RequestRefusal::new(message) }
        })
    }

    pub fn require_text(&self, key: &str) -> RequestResult<&'a str> {
        self.require(key)?.text()
    }

    pub fn get_text(&self, key: &str) -> RequestResult<Option<&'a str>> {
        self.get(key).map(|at| at.text()).transpose()
    }

    /// Refuses fields outside `known`; `words` is the provider's wording.
    pub fn allow_only(
        &self,
        known: &[&str],
        words: impl Fn(&RequestNode<'_>, &str) -> String,
    ) -> RequestResult<()> {
        match self.map()?.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => {
                Err(RequestRefusal { param: Some(key.clone()), ..RequestRefusal::new(words(self, key)) })
            }
            None => Ok(()),
        }
    }

    /// A tool name in the provider's alphabet.
    pub fn name(&self, extra: &str, length_max: usize) -> RequestResult<&'a str> {
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
    pub fn object_schema(&self) -> RequestResult<Value> {
        let map = self.map()?;
        match map.get("type").and_then(Value::as_str) {
            Some(kind) if kind.eq_ignore_ascii_case("object") => Ok(self.value.clone()),
            _ => Err(self.refuse("schema must be a JSON Schema of 'type: \"object\"'.")),
        }
    }

    /// Base64 bytes.
    pub fn bytes(&self) -> RequestResult<Vec<u8>> {
        STANDARD.decode(self.text()?).map_err(|_| self.refuse("invalid base64 data"))
    }

    /// A picture given as an address or a `data:` address.
    pub fn image_url(&self) -> RequestResult<ParsedImage> {
        let url = self.text()?;
        let Some(data) = url.strip_prefix("data:") else {
            if !url.starts_with("https://") && !url.starts_with("http://") {
                return Err(self.refuse("Expected a valid URL, but got a value with an invalid format."));
            }
            return Ok(ParsedImage { media_type: String::new(), bytes: Vec::new(), url: Some(url.into()) });
        };
        let broken = || self.refuse("Expected a base64-encoded data URL with an image MIME type.");
        let (media_type, data) = data.split_once(";base64,").ok_or_else(broken)?;
        if !media_type.starts_with("image/") {
            return Err(broken());
        }
        let bytes = STANDARD.decode(data).map_err(|_| broken())?;
        Ok(ParsedImage { media_type: media_type.into(), bytes, url: None })
    }

    fn child(&self, key: &str, value: &'a Value) -> RequestNode<'a> {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        RequestNode { value, path, indexing: self.indexing }
    }
}

/// The first repeated name.
pub(crate) fn first_duplicate<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = std::collections::HashSet::new();
    names.into_iter().find(|name| !seen.insert(*name))
}

/// Joins system texts.
pub(crate) fn join_texts(parts: Vec<String>) -> Option<String> {
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}
