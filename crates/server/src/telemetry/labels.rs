//! Label values with a bound: each new value is a time series that is never removed.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Maximum number of tools with separate series.
pub(crate) const TOOL_LABELS_MAX: usize = 200;
/// Maximum number of models with separate series.
pub(crate) const MODEL_LABELS_MAX: usize = 100;
/// Maximum number of agents with separate series.
pub(crate) const AGENT_LABELS_MAX: usize = 100;
/// Maximum number of upstreams, error codes and similar values with separate series.
pub(crate) const WORD_LABELS_MAX: usize = 100;
/// Characters of a label's value.
const LABEL_CHARS_MAX: usize = 100;
/// Label value for everything over the limit.
pub(crate) const OTHER: &str = "other";

/// The values of one label: the first ones by name, all others as [`OTHER`].
#[derive(Debug)]
pub(crate) struct BoundedLabel {
    limit: usize,
    known: Mutex<HashSet<String>>,
}

impl BoundedLabel {
    /// At most `limit` values in addition to [`OTHER`].
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, known: Mutex::default() }
    }

    /// The value to be shown.
    pub(crate) fn value(&self, name: &str) -> String {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(name) {
            return name.to_owned();
        }
        if known.len() >= self.limit || name.chars().nth(LABEL_CHARS_MAX).is_some() {
            return OTHER.to_owned();
        }
        known.insert(name.to_owned());
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_beyond_the_limit_become_other() {
        let tools = BoundedLabel::new(2);
        let shown: Vec<String> = ["a", "b", "c", "a", "d"].map(|name| tools.value(name)).into();
        assert_eq!(shown, ["a", "b", OTHER, "a", OTHER]);
        let long = "x".repeat(LABEL_CHARS_MAX + 1);
        assert_eq!(BoundedLabel::new(2).value(&long), OTHER);
        assert_eq!(BoundedLabel::new(2).value(&long[1..]), long[1..]);
    }
}
