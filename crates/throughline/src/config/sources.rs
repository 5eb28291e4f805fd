//! Sources of tools as a configuration describes them.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use throughline_tools::Source;

/// A source, not started yet, and what the configuration said of it.
#[derive(Clone)]
pub struct ConfiguredSource {
    /// The source.
    pub source: Arc<dyn Source>,
    /// A hash of everything that was said, secrets included: when it changes, the source is started anew.
    pub said: u64,
}

impl ConfiguredSource {
    /// A source made from `said`.
    pub fn new(source: Arc<dyn Source>, said: &impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        said.hash(&mut hasher);
        Self { source, said: hasher.finish() }
    }
}

impl fmt::Debug for ConfiguredSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.source.name())
    }
}
