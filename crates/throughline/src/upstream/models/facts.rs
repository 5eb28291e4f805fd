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
    /// It sees pictures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vision: Option<bool>,
    /// It calls tools natively.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// It hears sound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio: Option<bool>,
}

impl ModelFacts {
    /// These facts, with gaps filled from `other`.
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
