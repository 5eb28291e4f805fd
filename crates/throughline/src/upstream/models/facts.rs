//! Facts about a model, as the table, the configuration and the API write them.

use serde::{Deserialize, Serialize};

/// Facts about a model. `None` = unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelFacts {
    /// Tokens of prompt and answer together or, where the maker counts so, of the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Most tokens of one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// True if the model accepts pictures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vision: Option<bool>,
    /// True if the model calls tools natively.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// True if the model accepts sound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio: Option<bool>,
}

impl ModelFacts {
    /// Merges these facts with `other`, which fills gaps.
    pub fn or(self, other: Self) -> Self {
        Self {
            context_tokens: self.context_tokens.or(other.context_tokens),
            output_tokens: self.output_tokens.or(other.output_tokens),
            vision: self.vision.or(other.vision),
            tools: self.tools.or(other.tools),
            audio: self.audio.or(other.audio),
        }
    }
}
