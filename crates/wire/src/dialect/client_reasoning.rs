//! Reasoning that a client of Chat Completions sends back, as the provider state that an encoder echoes.
//!
//! No client reports which model wrote a message, so it is assumed to be the requested one, and a form is
//! passed on only where its origin allows it: signed blocks are Anthropic's, signatures in Google's member
//! are Gemini's, and `reasoning_details` carry their origin for OpenRouter (`format`). A model that did not
//! write them refuses them, and the request is repeated without.

use super::{Dialect, anthropic, gemini, openai_chat};
use crate::profile::{ReasoningEcho, UpstreamProfile};
use crate::vocabulary::ProviderState;
use serde_json::Value;

/// Form of reasoning that only its provider can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReasoningForm {
    /// `reasoning_details` of OpenRouter.
    Details,
    /// Blocks of Anthropic: `thinking` with its `signature`, and `redacted_thinking`.
    Blocks,
    /// `extra_content.google.thought_signature` of calls.
    ThoughtSignatures,
}

/// Reasoning of one step in those forms, as its client sent it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientReasoning {
    /// Items of `reasoning_details`.
    pub details: Vec<Value>,
    /// Content blocks of Anthropic.
    pub blocks: Vec<Value>,
    /// Gemini's signatures by id of the call.
    pub thought_signatures: Vec<(String, String)>,
}

/// The model that reasoning is sent back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasoningTarget {
    dialect: Dialect,
    model: String,
    text: bool,
    form: Option<ReasoningForm>,
}

impl ReasoningTarget {
    /// The model at an upstream with this dialect and profile.
    ///
    /// ```
    /// use throughline_wire::{Dialect, ReasoningForm, ReasoningTarget, UpstreamProfile};
    ///
    /// let claude = ReasoningTarget::new(Dialect::Anthropic, &UpstreamProfile::default(), "claude-opus-4-5");
    /// assert_eq!((claude.form(), claude.takes_text()), (Some(ReasoningForm::Blocks), false));
    /// ```
    pub fn new(dialect: Dialect, profile: &UpstreamProfile, model: &str) -> Self {
        let form = match (dialect, profile.reasoning_echo) {
            (Dialect::Anthropic | Dialect::BedrockAnthropic, _) => Some(ReasoningForm::Blocks),
            (Dialect::Gemini, _) => Some(ReasoningForm::ThoughtSignatures),
            (Dialect::OpenaiChat, ReasoningEcho::ReasoningDetails) => Some(ReasoningForm::Details),
            // Google's compatible endpoint and gateways to it. Servers of other models may refuse a member that they do not know.
            (Dialect::OpenaiChat, _) if model.to_ascii_lowercase().contains("gemini") => {
                Some(ReasoningForm::ThoughtSignatures)
            }
            _ => None,
        };
        let text = match dialect {
            Dialect::OpenaiChat => matches!(
                profile.reasoning_echo,
                ReasoningEcho::ReasoningContent | ReasoningEcho::Reasoning | ReasoningEcho::ThinkingParts
            ),
            _ => matches!(dialect, Dialect::Ollama | Dialect::Cohere),
        };
        Self { dialect, model: model.to_owned(), text, form }
    }

    /// The upstream's name of the model.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// True if it takes reasoning back as plain text, be it only in turns with calls.
    pub fn takes_text(&self) -> bool {
        self.text
    }

    /// The form with signatures that it takes, if there is one.
    pub fn form(&self) -> Option<ReasoningForm> {
        self.form
    }

    /// State of a step with this visible text; `None` if none of its reasoning is in an accepted form.
    pub fn provider_state(&self, reasoning: ClientReasoning, text: &str) -> Option<ProviderState> {
        let ClientReasoning { details, blocks, thought_signatures } = reasoning;
        let value = match self.form? {
            ReasoningForm::Details if !details.is_empty() => openai_chat::state_of_details(details),
            ReasoningForm::Blocks if !blocks.is_empty() => anthropic::state_of_blocks(blocks, text),
            ReasoningForm::ThoughtSignatures if !thought_signatures.is_empty() => match self.dialect {
                Dialect::Gemini => gemini::state_of_signatures(thought_signatures),
                _ => openai_chat::state_of_signatures(thought_signatures),
            },
            _ => return None,
        };
        Some(ProviderState { dialect: self.dialect, value })
    }
}
