//! Members of messages other than text and calls: reasoning that is sent back to its model, and names of all
//! members that are not sent to the model.

use super::{NAMED_MAX, is_plain_name, says_something};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use throughline_wire::{ClientReasoning, ReasoningForm, ReasoningTarget};

/// Members of messages that are read.
const MESSAGE_FIELDS: &[&str] = &["role", "content", "tool_call_id"];
/// Further ones of the assistant's messages.
const ASSISTANT_FIELDS: &[&str] =
    &["refusal", "reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "tool_calls"];
const CALL_FIELDS: &[&str] = &["type", "function", "custom", "extra_content"];
/// Members of replies that have no meaning for a model, or repeat others.
const ECHOED_FIELDS: &[&str] = &["id", "index", "name", "object", "parsed", "status"];

pub(super) struct MemberReader<'a> {
    /// The model that reasoning goes back to, if it is known.
    target: Option<&'a ReasoningTarget>,
    omitted: BTreeSet<String>,
    /// Blocks of the message's parts that cannot go back as they are.
    blocks: PartBlocks,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum PartBlocks {
    #[default]
    Whole,
    /// One block has no signature.
    Partial,
    /// Blocks were left out.
    Omitted,
}

impl<'a> MemberReader<'a> {
    pub(super) fn new(target: Option<&'a ReasoningTarget>) -> Self {
        Self { target, omitted: BTreeSet::new(), blocks: PartBlocks::Whole }
    }

    pub(super) fn target(&self) -> Option<&'a ReasoningTarget> {
        self.target
    }

    /// Names of what the model is not given.
    pub(super) fn into_omitted(self) -> BTreeSet<String> {
        self.omitted
    }

    /// Names what the model is not given.
    pub(super) fn omit(&mut self, path: &str, name: &str) {
        if self.omitted.len() < NAMED_MAX && is_plain_name(name) {
            self.omitted.insert(format!("{path}.{name}"));
        }
    }

    /// Names the members of a message that nothing reads.
    pub(super) fn omit_unread(&mut self, message: &Value) {
        let more = if message["role"] == "assistant" { ASSISTANT_FIELDS } else { &[] };
        self.omit_others("messages", message, &[MESSAGE_FIELDS, more]);
    }

    fn omit_others(&mut self, path: &str, value: &Value, read: &[&[&str]]) {
        for (name, value) in value.as_object().into_iter().flatten() {
            let is_known = read.iter().chain(&[ECHOED_FIELDS]).any(|names| names.contains(&name.as_str()));
            if !is_known && says_something(value) {
                self.omit(path, name);
            }
        }
    }

    /// A part with thinking: its text, and its block in `reasoning` if the model takes it.
    pub(super) fn read_thought(
        &mut self,
        part: &Value,
        kind: &str,
        reasoning: &mut ClientReasoning,
    ) -> String {
        let thought = thought_text(part, kind);
        match self.signed_block(part) {
            Some(block) => reasoning.blocks.push(block),
            None if self.takes(ReasoningForm::Blocks) && !thought.is_empty() => {
                self.blocks = PartBlocks::Partial;
                self.omit("messages.content", kind);
            }
            None if !self.takes_text() && !thought.is_empty() => self.omit("messages.content", kind),
            None if says_something(&part["signature"]) => {
                self.omit(&format!("messages.content.{kind}"), "signature");
            }
            None => {}
        }
        thought
    }

    /// Leaves out the blocks of thinking of a message's parts if they would be others than the model wrote, or in another order.
    pub(super) fn check_blocks(&mut self, are_in_front: bool, reasoning: &mut ClientReasoning) {
        let is_odd = !are_in_front || self.blocks == PartBlocks::Partial;
        self.blocks = PartBlocks::Whole;
        if is_odd && !std::mem::take(&mut reasoning.blocks).is_empty() {
            self.blocks = PartBlocks::Omitted;
            self.omit("messages.content", "thinking");
        }
    }

    /// A part without text.
    pub(super) fn read_other(&mut self, part: &Value, kind: &str, reasoning: &mut ClientReasoning) {
        match self.signed_block(part) {
            Some(block) => reasoning.blocks.push(block),
            None => self.omit("messages.content", kind),
        }
    }

    /// Reads the reasoning of an assistant's message, which may be a `thought` among its parts. Forms that
    /// the model accepts unchanged go into `reasoning`.
    pub(super) fn read_reasoning(
        &mut self,
        message: &Value,
        thought: String,
        reasoning: &mut ClientReasoning,
    ) -> String {
        // As LiteLLM writes them, which puts the same among the parts for some clients.
        let omitted = std::mem::take(&mut self.blocks) == PartBlocks::Omitted;
        if let Some(blocks) = message["thinking_blocks"].as_array()
            && reasoning.blocks.is_empty()
            && !omitted
        {
            // A part of them is refused.
            let signed: Option<Vec<Value>> = blocks.iter().map(|block| self.signed_block(block)).collect();
            reasoning.blocks = signed.unwrap_or_default();
        }
        if reasoning.blocks.is_empty() && says_something(&message["thinking_blocks"]) {
            self.omit("messages", "thinking_blocks");
        }
        match message["reasoning_details"].as_array() {
            Some(details) if self.takes(ReasoningForm::Details) && details.iter().all(is_detail) => {
                reasoning.details.clone_from(details);
            }
            _ if says_something(&message["reasoning_details"]) => self.omit("messages", "reasoning_details"),
            _ => {}
        }
        // What goes back with its signature holds the text.
        let goes_back = self.takes_text() || !reasoning.blocks.is_empty() || !reasoning.details.is_empty();
        let mut thinking = String::new();
        for name in ["reasoning_content", "reasoning"] {
            let text = message[name].as_str().unwrap_or_default();
            if thinking.is_empty() {
                text.clone_into(&mut thinking);
            }
            if says_something(&message[name]) && (!goes_back || text.is_empty()) {
                self.omit("messages", name);
            }
        }
        if thinking.is_empty() { thought } else { thinking }
    }

    /// Members of a call other than the call itself.
    pub(super) fn read_call(&mut self, call: &Value, reasoning: &mut ClientReasoning) {
        let extra = &call["extra_content"];
        match (call["id"].as_str(), extra["google"]["thought_signature"].as_str()) {
            (Some(id), Some(signature))
                if is_base64(signature) && self.takes(ReasoningForm::ThoughtSignatures) =>
            {
                reasoning.thought_signatures.push((id.to_owned(), signature.to_owned()));
            }
            _ if says_something(extra) => self.omit("messages.tool_calls", "extra_content"),
            _ => {}
        }
        self.omit_others("messages.tool_calls", call, &[CALL_FIELDS]);
    }

    /// A block with reasoning that Anthropic has signed or encrypted, if the model takes it. Members that are not Anthropic's
    /// would be refused.
    fn signed_block(&self, block: &Value) -> Option<Value> {
        if !self.takes(ReasoningForm::Blocks) {
            return None;
        }
        let text = |name: &str| block[name].as_str();
        let signed = |name: &str| text(name).filter(|text| !text.is_empty());
        match text("type")? {
            kind @ "thinking" => {
                Some(json!({"type": kind, "thinking": text(kind)?, "signature": signed("signature")?}))
            }
            kind @ "redacted_thinking" => Some(json!({"type": kind, "data": signed("data")?})),
            _ => None,
        }
    }

    fn takes(&self, form: ReasoningForm) -> bool {
        self.target.is_some_and(|target| target.form() == Some(form))
    }

    fn takes_text(&self) -> bool {
        self.target.is_some_and(ReasoningTarget::takes_text)
    }
}

/// Deepest nesting of an item of `reasoning_details`, in levels. Real ones have two; what is stored is read again up to a depth.
const DETAIL_DEPTH_MAX: usize = 32;

/// An item of `reasoning_details`: OpenRouter refuses a request with anything else in the list.
fn is_detail(item: &Value) -> bool {
    let is_reasoning = item["type"].as_str().is_some_and(|kind| kind.starts_with("reasoning."));
    is_reasoning && !is_deeper(item, DETAIL_DEPTH_MAX)
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    let Some(levels) = levels.checked_sub(1) else { return true };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper(item, levels)),
        Value::Object(members) => members.values().any(|member| is_deeper(member, levels)),
        _ => false,
    }
}

/// True for either alphabet of base64, as Gemini reads it, which refuses the whole request for other text.
fn is_base64(text: &str) -> bool {
    let unpadded = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
    !unpadded.is_empty()
        && unpadded.len() % 4 != 1
        && text.len() - unpadded.len() <= 2
        && unpadded.bytes().all(is_digit)
}

/// The text of a part with thinking: itself (Anthropic), the texts of a list (Mistral), or the field `text`.
fn thought_text(part: &Value, kind: &str) -> String {
    match part.get(kind).or_else(|| part.get("text")) {
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        thought => thought.and_then(Value::as_str).unwrap_or_default().to_owned(),
    }
}
