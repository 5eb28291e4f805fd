//! Text mode: how calls and their outcomes travel when the upstream's own field for them is not used.

use super::TextProtocol;
use crate::vocabulary::ToolDefinition;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Form in which a model calls tools.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum CallFormat {
    /// In the upstream's own field for calls.
    #[default]
    Native,
    /// As blocks in its text.
    Text(TextCalls),
}

/// Form of calls that are written and read as text.
#[derive(Clone, Debug)]
pub struct TextCalls {
    /// Text protocol of the calls.
    pub protocol: &'static dyn TextProtocol,
    /// The offered tools: blocks that name others are still calls (of an unknown tool).
    pub tools: Arc<[ToolDefinition]>,
    /// Role of the outcomes that go back.
    pub results: ResultRole,
}

/// Role in which the outcomes of calls written as text go back to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultRole {
    /// As a framed message of the user, which any model understands.
    #[default]
    User,
    /// In the dialect's tool role, for models that were trained on it although their server takes no tools. An outcome
    /// there belongs to a call by the rules of every dialect, so the calls go back in the dialect's own form as well.
    Tool,
}
