//! A history as every provider takes it.
//!
//! Logs and clients bring histories that some provider refuses, and with them every request that follows: two
//! messages of the user in a row, an empty one, a beginning without one, an end that is the model's own. So
//! they are written in one form for all providers:
//!
//! - It begins with the user. Anthropic: "first message must use the \"user\" role"; Bedrock: "A conversation must start with
//!   a user message"; Gemini: "function call turn comes immediately after a user turn".
//! - Consecutive messages of the user become one, and between two of the model the user asks it to continue.
//!   Templates of models: "Conversation roles must alternate user/assistant/user/assistant/…"
//!   (janhq/jan#6254, vllm-project/vllm#6862).
//! - No message is blank. Anthropic: "text content blocks must contain non-whitespace text"; Moonshot: "message at position
//!   2 with role 'user' must not be empty"; Bedrock: "The text field in the ContentBlock object is blank".
//! - It ends with the user or with outcomes of calls. Anthropic: "This model does not support assistant
//!   message prefill. The conversation must end with a user message"; Mistral: "Expected last role User or
//!   Tool (or Assistant with prefix True)". A step in which the provider's own tool runs is the exception: it
//!   continues where it paused.

use super::Dialect;
use crate::vocabulary::{ClosedStep, Message, ModelRequest, UserPart};
use serde_json::Value;
use std::borrow::Cow;

/// First message of a history that begins with the model.
const MISSING_BEGINNING: &str = "(The beginning of this conversation is not available.)";
/// Text of an empty user message.
const EMPTY_MESSAGE: &str = "(This message is empty.)";
/// Last message of a history that ends with the model.
const GO_ON: &str = "(Continue exactly where your last message ends. Do not repeat any of it.)";

/// The request with its history in that form.
pub(super) fn adapt(dialect: Dialect, request: &ModelRequest) -> Cow<'_, ModelRequest> {
    let form = HistoryForm { dialect, model: &request.model };
    let has_blank_prompt = request.instructions.as_ref().is_some_and(|text| text.trim().is_empty());
    if form.is_taken(&request.messages) && !has_blank_prompt {
        return Cow::Borrowed(request);
    }
    Cow::Owned(ModelRequest {
        messages: form.written(&request.messages),
        model: request.model.clone(),
        instructions: request.instructions.clone().filter(|_| !has_blank_prompt),
        tools: request.tools.clone(),
        tool_choice: request.tool_choice.clone(),
        settings: request.settings.clone(),
        cache_key: request.cache_key.clone(),
    })
}

struct HistoryForm<'r> {
    dialect: Dialect,
    model: &'r str,
}

impl HistoryForm<'_> {
    fn is_taken(&self, messages: &[Message]) -> bool {
        let alternates = messages.windows(2).all(|pair| match pair {
            [Message::User(_), Message::User(_)] => false,
            [before, Message::Step(_)] => !self.is_unfinished(before),
            _ => true,
        });
        let is_full = |message: &Message| match message {
            Message::User(parts) => !parts.is_empty() && !parts.iter().any(is_blank),
            Message::Step(step) => {
                !self.says_nothing(step) && (step.text.is_empty() || !step.text.trim().is_empty())
            }
        };
        matches!(messages.first(), Some(Message::User(_)))
            && alternates
            && messages.iter().all(is_full)
            && !messages.last().is_some_and(|last| self.is_unfinished(last))
    }

    fn written(&self, messages: &[Message]) -> Vec<Message> {
        let mut written: Vec<Message> = Vec::with_capacity(messages.len() + 2);
        if !matches!(messages.first(), Some(Message::User(_))) {
            written.push(user(MISSING_BEGINNING));
        }
        for message in messages {
            match message {
                Message::Step(step) if self.says_nothing(step) => {}
                Message::Step(step) => {
                    self.ask_to_go_on(&mut written);
                    let mut step = step.clone();
                    if step.text.trim().is_empty() {
                        step.text.clear();
                    }
                    written.push(Message::Step(step));
                }
                Message::User(parts) => {
                    let parts = parts.iter().filter(|part| !is_blank(part)).cloned();
                    match written.last_mut() {
                        Some(Message::User(before)) => before.extend(parts),
                        _ => written.push(Message::User(parts.collect())),
                    }
                }
            }
        }
        self.ask_to_go_on(&mut written);
        for message in &mut written {
            if let Message::User(parts) = message
                && parts.is_empty()
            {
                parts.push(UserPart::Text { text: EMPTY_MESSAGE.to_owned() });
            }
        }
        written
    }

    fn ask_to_go_on(&self, written: &mut Vec<Message>) {
        if written.last().is_some_and(|last| self.is_unfinished(last)) {
            written.push(user(GO_ON));
        }
    }

    /// A step of which no word is left to send.
    fn says_nothing(&self, step: &ClosedStep) -> bool {
        step.calls.is_empty() && step.text.trim().is_empty() && self.own_state(step).is_none()
    }

    /// True if the history ends with text of the model that it should continue.
    fn is_unfinished(&self, last: &Message) -> bool {
        match last {
            Message::User(_) => false,
            Message::Step(step) => step.calls.is_empty() && !self.own_state(step).is_some_and(is_paused),
        }
    }

    /// Provider state of the step for this model, if it is a message in itself: more than reasoning.
    fn own_state<'s>(&self, step: &'s ClosedStep) -> Option<&'s [Value]> {
        let state = step.provider_state.as_ref()?;
        let content = state.value.get("content").unwrap_or(&state.value).as_array()?;
        (state.dialect == self.dialect && step.model == self.model && !content.iter().all(is_thought))
            .then_some(content)
    }
}

/// True if the last block is the provider's own tool, or its result (`pause_turn` of Anthropic, also at
/// Bedrock).
fn is_paused(content: &[Value]) -> bool {
    let Some(last) = content.last() else { return false };
    let kind = last
        .get("type")
        .or_else(|| last.pointer("/toolUse/type"))
        .or_else(|| last.pointer("/toolResult/type"));
    kind.and_then(Value::as_str)
        .is_some_and(|kind| kind.ends_with("_tool_use") || kind.ends_with("_tool_result"))
}

/// A thought in one of the forms of the providers.
fn is_thought(block: &Value) -> bool {
    matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking" | "reasoning"))
        || block["thought"] == true
        || block.get("reasoningContent").is_some()
}

fn is_blank(part: &UserPart) -> bool {
    matches!(part, UserPart::Text { text } if text.trim().is_empty())
}

fn user(text: &str) -> Message {
    Message::User(vec![UserPart::Text { text: text.to_owned() }])
}
