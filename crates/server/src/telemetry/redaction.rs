//! Redaction of secrets in everything that leaves the process: logs, errors, labels, exports, spans.

use std::borrow::Cow;
use std::sync::{PoisonError, RwLock};
use throughline_tools::SecretSet;

/// The secrets of this process, found in every encoding ([`SecretSet`]). Grows as keys are created.
#[derive(Default)]
pub struct Redaction {
    known: RwLock<KnownSecrets>,
}

#[derive(Default)]
struct KnownSecrets {
    values: Vec<String>,
    secrets: SecretSet,
}

impl std::fmt::Debug for Redaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Redaction")
    }
}

impl Redaction {
    /// A set of these secrets.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let redaction = Self::default();
        redaction.add(values);
        redaction
    }

    /// Adds secrets.
    pub fn add(&self, values: impl IntoIterator<Item = String>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let before = known.values.len();
        for value in values {
            if !known.values.contains(&value) {
                known.values.push(value);
            }
        }
        if known.values.len() > before {
            known.secrets = SecretSet::new(&known.values);
        }
    }

    /// The text without them.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).secrets.redact(text)
    }
}
