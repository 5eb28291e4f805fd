//! A text that must not be printed.

use std::fmt;

/// A key or another secret. `Debug` and `Display` show that it is there, never what it is.
///
/// ```
/// let key = throughline::Secret::from("sk-123");
/// assert_eq!(format!("{key:?} {key}"), "Secret(…) …");
/// assert_eq!(key.reveal(), "sk-123");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The secret itself: for the header that carries it and nothing else.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// `text` without the secret in any encoding: upstreams often repeat a wrong key in their error. Short
    /// values ("none", "x") are placeholders of local servers and stay.
    pub fn redact(&self, text: &str) -> String {
        throughline_tools::SecretSet::new([&self.0]).redact(text).into_owned()
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
