//! Limit of the size that copies add to a schema.
//!
//! A definition that is referred to a thousand times is written once by its author and a thousand times when
//! references are expanded: a definition of 65 kB would become a request of 20 MB.

use serde_json::{Map, Value};

/// Most bytes that copies of parts of a tool's schema may add to it. What would be copied beyond may be anything.
pub(super) const COPIED_BYTES_MAX: usize = 64 << 10;

/// Bytes that copies may still add.
pub(super) struct CopyBudget {
    bytes: usize,
}

impl CopyBudget {
    pub(super) fn new() -> Self {
        Self { bytes: COPIED_BYTES_MAX }
    }

    /// Charges the size of a value that is to be copied. False if that exceeds the budget; the first such
    /// value ends all copies, so that a hostile schema is measured once.
    pub(super) fn take(&mut self, value: &Value) -> bool {
        self.bytes > 0 && self.take_bytes(size(value))
    }

    /// Charges the size of an object's members.
    pub(super) fn take_members(&mut self, members: &Map<String, Value>) -> bool {
        self.bytes > 0 && self.take_bytes(size_of_members(members))
    }

    fn take_bytes(&mut self, bytes: usize) -> bool {
        let rest = self.bytes.checked_sub(bytes);
        self.bytes = rest.unwrap_or(0);
        rest.is_some()
    }
}

/// Serialized size of a value in bytes, not counting escapes.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 5,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(members) => size_of_members(members),
    }
}

fn size_of_members(members: &Map<String, Value>) -> usize {
    members.iter().map(|(name, value)| name.len() + size(value) + 4).sum::<usize>() + 2
}
