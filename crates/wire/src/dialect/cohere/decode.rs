//! Stream and body to [`StepWriter`].
//!
//! Format: `docs.cohere.com/v2/docs/streaming`. A tool plan describes the model's intention, so it is
//! thinking and never answer text.

use crate::assemble::CallHead;
use crate::dialect::pending_seals::PendingSeals;
use crate::dialect::{DialectDecoder, PayloadFrame};
use crate::json::JsonRef;
use crate::step::{StepWriter, excerpt_of};
use crate::vocabulary::{CallKind, CallSlot, FinishReason, ProblemKind, UpstreamError, Usage};
use std::borrow::Cow;

#[derive(Default)]
pub(crate) struct CohereDecoder {
    pending_seals: PendingSeals,
    calls_opened: u64,
}

impl DialectDecoder for CohereDecoder {
    fn decode_event(&mut self, frame: &PayloadFrame<'_>, step: &mut StepWriter<'_>) {
        let json = frame.json;
        let name = json.nonempty("type").unwrap_or(Cow::Borrowed(frame.event));
        let message = json.path(&["delta", "message"]);
        match &*name {
            "content-delta" | "content-start" => {
                if let Some(content) = message.and_then(|message| message.get("content")) {
                    content_part(content, step);
                }
            }
            "tool-plan-delta" => {
                if let Some(plan) = message.and_then(|message| message.get("tool_plan")) {
                    step.thinking(plan);
                }
            }
            "tool-call-start" => {
                if let Some(call) = call_of(message) {
                    let key = json.get("index").and_then(JsonRef::as_u64).unwrap_or(self.calls_opened);
                    self.open_call(key, call, step);
                }
            }
            "tool-call-delta" => {
                if let Some(call) = call_of(message) {
                    match self.slot_of(json, step) {
                        Some(slot) => append(slot, call, step),
                        None => self.stray(json, call, step),
                    }
                }
            }
            "tool-call-end" => {
                if let Some(slot) = self.slot_of(json, step) {
                    self.pending_seals.seal_or_hold(slot, step);
                }
            }
            "citation-start" => {
                if let Some(citations) = message.and_then(|message| message.get("citations")) {
                    citation(citations, step);
                }
            }
            "message-end" => read_message_end(json.get("delta").unwrap_or(json), step),
            "message-start" | "content-end" | "citation-end" | "debug" => {}
            other => step.problem(ProblemKind::UnknownEvent, other),
        }
    }

    fn decode_body(&mut self, json: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        let Some(message) = json.get("message").filter(|message| message.is_object()) else {
            return step.fail(UpstreamError { message: excerpt_of(json.raw()), kind: None, code: None });
        };
        if let Some(plan) = message.get("tool_plan") {
            step.thinking(plan);
        }
        for part in message.get("content").map(JsonRef::items).unwrap_or_default() {
            content_part(part, step);
        }
        for call in message.get("tool_calls").map(JsonRef::items).unwrap_or_default() {
            let slot = self.open_call(self.calls_opened, call, step);
            self.pending_seals.seal_or_hold(slot, step);
        }
        if let Some(citations) = message.get("citations") {
            citation(citations, step);
        }
        read_message_end(json, step);
    }
}

impl CohereDecoder {
    fn open_call(&mut self, key: u64, call: &JsonRef<'_>, step: &mut StepWriter<'_>) -> CallSlot {
        self.pending_seals.seal_all(step);
        self.calls_opened += 1;
        let name = call.path(&["function", "name"]).and_then(JsonRef::as_str).unwrap_or_default();
        let id = call.scalar("id").unwrap_or_default();
        let slot = step.open_call(key, CallHead { id: &id, name: &name, kind: CallKind::Function });
        append(slot, call, step);
        slot
    }

    /// The call that an event means: by its number, else the one opened last.
    fn slot_of(&self, json: &JsonRef<'_>, step: &mut StepWriter<'_>) -> Option<CallSlot> {
        let last = self.calls_opened.saturating_sub(1);
        step.slot_of_block(json.get("index").and_then(JsonRef::as_u64).unwrap_or(last))
    }

    /// A fragment whose number is no call's. If no call can be meant, one without a name shows it.
    fn stray(&mut self, json: &JsonRef<'_>, call: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        let fragment = call.path(&["function", "arguments"]);
        let Some(fragment) = fragment.filter(|fragment| fragment.string_body() != Some("")) else { return };
        let slot = step.adopt(fragment).unwrap_or_else(|| {
            let key = json.get("index").and_then(JsonRef::as_u64).unwrap_or(self.calls_opened);
            step.open_call(key, CallHead::default())
        });
        append(slot, call, step);
    }
}

/// The entry of `tool_calls`, which is an object in streams; an array of one is taken as well.
fn call_of<'j, 'a>(message: Option<&'j JsonRef<'a>>) -> Option<&'j JsonRef<'a>> {
    let calls = message?.get("tool_calls")?;
    Some(calls.items().first().unwrap_or(calls))
}

fn append(slot: CallSlot, call: &JsonRef<'_>, step: &mut StepWriter<'_>) {
    match call.path(&["function", "arguments"]) {
        Some(part) if part.is_string() => step.append_arguments(slot, part),
        Some(part) => step.append_arguments_text(slot, part.raw()),
        None => {}
    }
}

/// `{"text"}` or `{"thinking"}`, in a start event, a delta or a body.
fn content_part(content: &JsonRef<'_>, step: &mut StepWriter<'_>) {
    if let Some(text) = content.get("text") {
        step.text(text);
    }
    if let Some(thinking) = content.get("thinking") {
        step.thinking(thinking);
    }
}

/// One source, or a list of them.
fn citation(citations: &JsonRef<'_>, step: &mut StepWriter<'_>) {
    if citations.is_array() {
        citations.items().iter().for_each(|one| step.citation(one));
    } else {
        step.citation(citations);
    }
}

/// Reads the reply's end: `message-end.delta`, or the top of a plain body.
fn read_message_end(json: &JsonRef<'_>, step: &mut StepWriter<'_>) {
    if let Some(usage) = json.get("usage") {
        let tokens = |keys: &[&str]| usage.path(keys).and_then(JsonRef::as_u64);
        step.usage(Usage {
            // `billed_units` excludes what the service adds to the prompt.
            input_tokens: tokens(&["tokens", "input_tokens"])
                .or_else(|| tokens(&["billed_units", "input_tokens"])),
            output_tokens: tokens(&["tokens", "output_tokens"])
                .or_else(|| tokens(&["billed_units", "output_tokens"])),
            cached_input_tokens: tokens(&["cached_tokens"]),
            cache_written_tokens: None,
            reasoning_tokens: tokens(&["tokens", "reasoning_tokens"]),
        });
    }
    let raw = json.nonempty("finish_reason").unwrap_or_default();
    let reason = match &*raw {
        "COMPLETE" | "STOP_SEQUENCE" => FinishReason::Stop,
        "TOOL_CALL" => FinishReason::ToolCalls,
        "MAX_TOKENS" => FinishReason::Length,
        "ERROR" | "TIMEOUT" => FinishReason::Error,
        _ => FinishReason::Other,
    };
    step.finish(reason, &raw);
    let message = json.nonempty("error");
    if message.is_some() || reason == FinishReason::Error {
        let message = message.unwrap_or(Cow::Borrowed("the reply ended with an unspecified error"));
        return step.fail(UpstreamError {
            message: message.into_owned(),
            kind: Some(raw.into_owned()),
            code: None,
        });
    }
    step.complete_and_end();
}
