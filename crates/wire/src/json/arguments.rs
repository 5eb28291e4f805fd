//! Argument text as it arrives.

use serde_json::Value;

/// Why argument text is not one JSON document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentsError {
    /// Byte offset in the text.
    pub at: usize,
    /// What is wrong there.
    pub what: &'static str,
}

/// Reads one JSON document in fragments: linear, readable at any moment, knows when the top level has closed.
#[derive(Clone, Debug, Default)]
pub struct ArgumentsReader {
    text: String,
}

impl ArgumentsReader {
    /// Takes the next fragment.
    pub fn push(&mut self, fragment: &str) {
        self.text.push_str(fragment);
    }
    /// The text so far.
    pub fn text(&self) -> &str {
        &self.text
    }
    /// The value so far.
    pub fn partial(&mut self) -> Option<&Value> {
        None
    }
}
