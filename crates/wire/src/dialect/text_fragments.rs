//! A text that arrives in JSON strings and is needed whole at the end.

use crate::json::{JsonRef, SurrogateCarry};

/// Joins fragments; half a surrogate pair at the end of one waits for the next.
#[derive(Debug, Default)]
pub(super) struct TextFragments {
    text: String,
    carry: SurrogateCarry,
}

impl TextFragments {
    /// Appends a JSON string's content; anything else adds nothing.
    pub(super) fn push(&mut self, json: &JsonRef<'_>) {
        if let Some(text) = json.as_text(&mut self.carry) {
            self.text.push_str(&text);
        }
    }

    /// Appends text.
    pub(super) fn push_str(&mut self, text: &str) {
        self.text.extend(self.carry.finish());
        self.text.push_str(text);
    }

    /// The whole text.
    pub(super) fn into_string(mut self) -> String {
        self.text.extend(self.carry.finish());
        self.text
    }
}
