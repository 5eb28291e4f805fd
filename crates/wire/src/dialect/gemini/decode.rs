//! Chunks of `generateContent` to [`StepWriter`].
//!
//! There is no end marker: a finish reason makes the step complete, but text may follow the first one, so the
//! bytes are read to their end. Calls come whole, or as values for JSON paths ([`partial_arguments`](super::partial_arguments)).

use super::partial_arguments::PartialArguments;
use crate::assemble::CallHead;
use crate::dialect::{DialectDecoder, PayloadFrame};
use crate::json::JsonRef;
use crate::step::{StepWriter, error_of};
use crate::vocabulary::{CallKind, CallSlot, FinishReason, HostedTool, Media, ProblemKind, Usage};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

/// The key of a part that must come back where it was.
const SIGNATURE: &str = "thoughtSignature";

#[derive(Default)]
pub(crate) struct GeminiDecoder {
    choices: BTreeMap<u64, CandidateState>,
    output_tokens_seen: bool,
}

/// State of one candidate. Only the first one is echoed.
#[derive(Default)]
struct CandidateState {
    /// The parts so far, neighboring texts joined.
    parts: Vec<Value>,
    /// True if `parts` has content that cannot be rebuilt from text and calls.
    echo_needed: bool,
    /// Number of calls opened so far.
    calls: u64,
    /// A call whose arguments are still coming.
    partial: Option<PartialCall>,
    /// Code or a hosted tool that has not answered yet.
    hosted: Option<HostedTool>,
    citations: HashSet<String>,
    /// Calls by id: name and arguments.
    seen_calls: HashSet<(String, String, String)>,
}

struct PartialCall {
    slot: CallSlot,
    /// Index in `CandidateState::parts`.
    part: usize,
    arguments: PartialArguments,
}

impl DialectDecoder for GeminiDecoder {
    fn streams_json_array(&self) -> bool {
        true
    }

    fn decode_event(&mut self, frame: &PayloadFrame<'_>, step: &mut StepWriter<'_>) {
        self.chunk(frame.json, step);
    }

    fn decode_body(&mut self, json: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        if self.chunk(json, step) == ChunkKind::Reply {
            step.complete();
        }
    }

    fn finish(&mut self, step: &mut StepWriter<'_>) {
        for (index, candidate) in &mut self.choices {
            select_choice(*index, step);
            if let Some(hosted) = candidate.hosted.take() {
                step.provider_tool(hosted);
            }
        }
        step.choice(0);
        if let Some(first) = self.choices.get_mut(&0)
            && first.echo_needed
        {
            step.provider_state(Value::Array(std::mem::take(&mut first.parts)));
        }
    }
}

/// Kind of a chunk: part of a reply or not.
#[derive(PartialEq, Eq)]
enum ChunkKind {
    Reply,
    Other,
}

impl GeminiDecoder {
    fn chunk(&mut self, chunk: &JsonRef<'_>, step: &mut StepWriter<'_>) -> ChunkKind {
        // Code-assist endpoints wrap every chunk (G5).
        let chunk = chunk.get("response").filter(|inner| inner.is_object()).unwrap_or(chunk);
        if let Some(error) = error_of(chunk) {
            step.fail(error);
            return ChunkKind::Other;
        }
        let candidates = chunk.get("candidates");
        for (position, candidate) in candidates.map(JsonRef::items).unwrap_or_default().iter().enumerate() {
            // Zero is left out by some serializers; so is the number of an only candidate.
            let index = candidate.get("index").and_then(JsonRef::as_u64).unwrap_or(position as u64);
            select_choice(index, step);
            self.choices.entry(index).or_default().read(candidate, step);
            if index == 0 && step.is_finished() {
                step.complete();
            }
        }
        step.choice(0);
        let blocked = chunk.path(&["promptFeedback", "blockReason"]).and_then(reason_text);
        if let Some(reason) =
            blocked.filter(|reason| !matches!(reason.as_ref(), "0" | "BLOCK_REASON_UNSPECIFIED"))
        {
            step.finish(FinishReason::ContentFilter, &format!("BLOCKED:{reason}"));
            step.complete();
        }
        if let Some(usage) = chunk.get("usageMetadata") {
            self.usage(usage, step);
        }
        let is_reply = candidates.is_some() || chunk.get("promptFeedback").is_some();
        if is_reply { ChunkKind::Reply } else { ChunkKind::Other }
    }

    /// Usage is on every chunk and grows; counts of zero are left out.
    fn usage(&mut self, usage: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        let count = |key: &str| usage.get(key).and_then(JsonRef::as_u64);
        let (prompt, answer, thoughts) =
            (count("promptTokenCount"), count("candidatesTokenCount"), count("thoughtsTokenCount"));
        if prompt.is_none() && answer.is_none() && thoughts.is_none() {
            return;
        }
        let generated = answer.is_some() || thoughts.is_some();
        // Output tokens include reasoning tokens, which Gemini counts separately.
        let output_tokens = (generated || !self.output_tokens_seen)
            .then(|| answer.unwrap_or(0).saturating_add(thoughts.unwrap_or(0)));
        self.output_tokens_seen |= generated;
        step.usage(Usage {
            input_tokens: prompt,
            output_tokens,
            cached_input_tokens: count("cachedContentTokenCount"),
            cache_written_tokens: None,
            reasoning_tokens: thoughts,
        });
    }
}

impl CandidateState {
    fn read(&mut self, candidate: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        match candidate.path(&["content", "parts"]) {
            Some(part) if part.is_object() => self.part(part, step),
            Some(parts) => parts.items().iter().for_each(|part| self.part(part, step)),
            None => {}
        }
        self.sources(candidate, step);
        if let Some(raw) = candidate.get("finishReason").and_then(reason_text)
            && let Some(reason) = finish_reason(&raw)
        {
            // A call without its own terminator ends with the reply, unless the reply was cut.
            if reason == FinishReason::Stop {
                self.close_partial(step);
            }
            step.finish(reason, &raw);
        }
    }

    fn part(&mut self, part: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        let is_answer = part.get("codeExecutionResult").is_some() || part.get("toolResponse").is_some();
        if let Some(hosted) = self.hosted.take_if(|_| !is_answer) {
            step.provider_tool(hosted);
        }
        let is_thought = part.get("thought").and_then(JsonRef::as_bool) == Some(true);
        self.echo_needed |= part.get(SIGNATURE).is_some();
        if let Some(text) = part.get("text").filter(|text| text.is_string()) {
            if is_thought {
                step.thinking(text)
            } else {
                step.text(text)
            }
            self.push_text(part, text, is_thought);
        } else if let Some(call) = part.get("functionCall") {
            self.echo_needed = true;
            self.call(part, call, step);
        } else if let Some(data) = part.get("inlineData") {
            self.push_part(part);
            inline_data(data, is_thought, step);
        } else if let Some(code) = part.get("executableCode") {
            self.push_part(part);
            self.hosted = Some(HostedTool {
                id: code.scalar("id").map(Cow::into_owned),
                name: "code_execution".to_owned(),
                input: Some(code.to_value()),
                output: None,
            });
        } else if let Some(result) = part.get("codeExecutionResult") {
            self.push_part(part);
            self.hosted_result(result, "code_execution", step);
        } else if let Some(call) = part.get("toolCall") {
            self.push_part(part);
            self.hosted = Some(HostedTool {
                id: call.scalar("id").map(Cow::into_owned),
                name: tool_type(call),
                input: call.get("args").map(JsonRef::to_value),
                output: None,
            });
        } else if let Some(result) = part.get("toolResponse") {
            self.push_part(part);
            self.hosted_result(result, &tool_type(result), step);
        } else if part.get(SIGNATURE).is_some() {
            self.push_part(part);
        } else if let Some((name, _)) = part.members().iter().find(|(name, _)| name != "thought") {
            self.push_part(part);
            step.problem(ProblemKind::UnknownEvent, name);
        }
    }

    fn push_part(&mut self, part: &JsonRef<'_>) {
        self.echo_needed = true;
        self.parts.push(part.to_value());
    }

    /// Joins a text to the one before. A part with a signature stays what and where it is: joining it with one that
    /// has none makes the signature invalid.
    fn push_text(&mut self, part: &JsonRef<'_>, text: &JsonRef<'_>, is_thought: bool) {
        let addition = text.as_str().unwrap_or_default();
        if part.get(SIGNATURE).is_none() {
            if addition.is_empty() {
                return;
            }
            if let Some(Value::Object(last)) = self.parts.last_mut()
                && !last.contains_key(SIGNATURE)
                && last.contains_key("thought") == is_thought
                && let Some(Value::String(before)) = last.get_mut("text")
            {
                before.push_str(&addition);
                return;
            }
        }
        self.parts.push(part.to_value());
    }

    fn hosted_result(&mut self, result: &JsonRef<'_>, name: &str, step: &mut StepWriter<'_>) {
        let mut hosted = self.hosted.take().unwrap_or_else(|| HostedTool {
            id: result.scalar("id").map(Cow::into_owned),
            name: name.to_owned(),
            input: None,
            output: None,
        });
        hosted.output = Some(result.to_value());
        step.provider_tool(hosted);
    }

    // --- calls ---

    fn call(&mut self, part: &JsonRef<'_>, call: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        let id = call.scalar("id").unwrap_or_default();
        let name = call.nonempty("name").unwrap_or_default();
        let args = call.get("args");
        let pieces = call.get("partialArgs");
        let continues = call.get("willContinue").and_then(JsonRef::as_bool) == Some(true);

        if name.is_empty() && args.is_none() {
            // A continuation, or the empty object that ends a call.
            if self.partial.is_none() {
                match pieces.filter(|pieces| !pieces.items().is_empty()) {
                    // Pieces whose call was never opened, or has ended, stay visible as a call without a name (T16).
                    Some(pieces) => drop(step.complete_call(CallHead::default(), pieces.raw())),
                    None => step.problem(ProblemKind::PhantomCall, part.raw()),
                }
                return;
            }
            self.continue_partial(part, pieces, step);
            if !continues {
                self.close_partial(step);
            }
            return;
        }
        self.close_partial(step);
        let head = CallHead { id: &id, name: &name, kind: CallKind::Function };
        if pieces.is_some() || (continues && args.is_none()) {
            let slot = step.open_call(self.calls, head);
            self.calls += 1;
            self.partial =
                Some(PartialCall { slot, part: self.parts.len(), arguments: PartialArguments::default() });
            self.push_call(part, call, json!({}));
            self.continue_partial(part, pieces, step);
            if !continues {
                self.close_partial(step);
            }
            return;
        }
        // Arguments without any member are left out by the protocol (G2): no repair.
        let text = match args {
            None => Cow::Borrowed("{}"),
            Some(args) => args.as_str().unwrap_or(Cow::Borrowed(args.raw())),
        };
        if !id.is_empty() {
            let this = (id.clone().into_owned(), name.clone().into_owned(), text.clone().into_owned());
            if !self.seen_calls.insert(this) {
                step.problem(ProblemKind::IdChanged, call.raw());
                return;
            }
        }
        self.push_call(part, call, args.map_or(json!({}), JsonRef::to_value));
        self.calls += 1;
        step.complete_call(head, &text);
    }

    /// The part as it came, but for the fields of streaming.
    fn push_call(&mut self, part: &JsonRef<'_>, call: &JsonRef<'_>, args: Value) {
        let mut echoed = match part.to_value() {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        let mut function: Map<String, Value> = match call.to_value() {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        function.retain(|key, _| key != "partialArgs" && key != "willContinue");
        function.insert("args".to_owned(), args);
        echoed.insert("functionCall".to_owned(), Value::Object(function));
        self.parts.push(Value::Object(echoed));
    }

    fn continue_partial(
        &mut self,
        part: &JsonRef<'_>,
        pieces: Option<&JsonRef<'_>>,
        step: &mut StepWriter<'_>,
    ) {
        let Some(partial) = &mut self.partial else { return };
        let mut text = String::new();
        for piece in pieces.map(JsonRef::items).unwrap_or_default() {
            if partial.arguments.apply(piece, &mut text).is_err() {
                step.problem(ProblemKind::Ambiguous, piece.raw());
            }
        }
        if !text.is_empty() {
            step.append_arguments_text(partial.slot, &text);
        }
        // A signature may come with any piece of a call.
        if let (Some(signature), Some(Value::Object(echoed))) =
            (part.get(SIGNATURE), self.parts.get_mut(partial.part))
        {
            echoed.insert(SIGNATURE.to_owned(), signature.to_value());
        }
    }

    fn close_partial(&mut self, step: &mut StepWriter<'_>) {
        let Some(mut partial) = self.partial.take() else { return };
        let mut text = String::new();
        partial.arguments.close(&mut text);
        step.append_arguments_text(partial.slot, &text);
        if let Some(whole) = partial.arguments.rewritten_text() {
            step.snapshot_arguments(partial.slot, &whole);
        }
        step.seal_call(partial.slot);
        if let Some(function) = self.parts.get_mut(partial.part).and_then(|part| part.get_mut("functionCall"))
        {
            function["args"] = partial.arguments.to_value();
        }
    }

    // --- the rest ---

    fn sources(&mut self, candidate: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        // Lists grow from chunk to chunk and repeat earlier entries.
        let lists = [
            candidate.path(&["groundingMetadata", "groundingChunks"]),
            candidate.path(&["citationMetadata", "citationSources"]),
            candidate.path(&["citationMetadata", "citations"]),
        ];
        for source in lists.into_iter().flatten().flat_map(JsonRef::items) {
            if self.citations.insert(source.raw().to_owned()) {
                step.citation(source);
            }
        }
    }
}

fn select_choice(index: u64, step: &mut StepWriter<'_>) {
    step.choice(u32::try_from(index).unwrap_or(u32::MAX));
}

fn inline_data(data: &JsonRef<'_>, is_thought: bool, step: &mut StepWriter<'_>) {
    let media_type = data.nonempty("mimeType").unwrap_or_default();
    let base64 = data.nonempty("data").unwrap_or_default();
    if is_thought {
        // A sketch on the way to the picture.
        step.hidden_thinking();
    } else if media_type.starts_with("audio/") {
        step.typed_audio(&media_type, &base64);
    } else if media_type.starts_with("image/") {
        step.image(Media::new(media_type.into_owned(), base64.into_owned()));
    } else {
        step.problem(ProblemKind::UnknownEvent, &format!("inlineData of type {media_type}"));
    }
}

fn tool_type(tool: &JsonRef<'_>) -> String {
    tool.nonempty("toolType").map_or_else(|| "tool".to_owned(), |name| name.to_lowercase())
}

/// A reason is a name, or its number in the protocol's enumeration.
fn reason_text<'a>(reason: &JsonRef<'a>) -> Option<Cow<'a, str>> {
    if reason.is_number() {
        return Some(Cow::Borrowed(reason.raw()));
    }
    reason.as_str().filter(|text| !text.is_empty())
}

/// `FinishReason` of the API, by name and number; `None` for an unspecified one.
fn finish_reason(raw: &str) -> Option<FinishReason> {
    Some(match raw {
        "0" | "FINISH_REASON_UNSPECIFIED" => return None,
        "1" | "STOP" => FinishReason::Stop,
        "2" | "MAX_TOKENS" => FinishReason::Length,
        "3"
        | "SAFETY"
        | "4"
        | "RECITATION"
        | "7"
        | "BLOCKLIST"
        | "8"
        | "PROHIBITED_CONTENT"
        | "9"
        | "SPII"
        | "11"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MODEL_ARMOR" => FinishReason::ContentFilter,
        // Nothing usable was generated, and the content is often empty (G4).
        "10"
        | "MALFORMED_FUNCTION_CALL"
        | "12"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MISSING_THOUGHT_SIGNATURE"
        | "MALFORMED_RESPONSE" => FinishReason::Error,
        _ => FinishReason::Other,
    })
}
