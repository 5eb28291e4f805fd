//! Stream and body to [`StepWriter`].

use super::blocks::{ContentBlockKind, ContentBlocks};
use crate::assemble::CallHead;
use crate::dialect::pending_seals::PendingSeals;
use crate::dialect::text_fragments::TextFragments;
use crate::dialect::{DialectDecoder, PayloadFrame};
use crate::json::JsonRef;
use crate::step::{StepWriter, error_of, excerpt_of};
use crate::vocabulary::{CallKind, FinishReason, HostedTool, ProblemKind, UpstreamError, Usage};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Decodes one reply. A hosted tool is reported twice under its id: with its input, then with its result.
#[derive(Default)]
pub(crate) struct AnthropicDecoder {
    /// Id of the message; empty if it had none, `None` before the first `message_start`.
    message_id: Option<String>,
    blocks: ContentBlocks,
    pending_seals: PendingSeals,
    /// Names of hosted tools by id, for their results.
    hosted_names: BTreeMap<String, String>,
    /// The code execution container, which the next request must name.
    container: Option<Value>,
}

impl DialectDecoder for AnthropicDecoder {
    fn decode_event(&mut self, frame: &PayloadFrame<'_>, step: &mut StepWriter<'_>) {
        let json = frame.json;
        match &*event_type(frame) {
            "content_block_delta" => self.block_delta(json, step),
            "content_block_start" => self.block_start(json, step),
            "content_block_stop" => {
                if let Some(at) = self.blocks.find(index_of(json)) {
                    self.close_block(at, step);
                }
            }
            "message_start" => self.message_start(json.get("message").unwrap_or(json), step),
            "message_delta" => {
                if let Some(delta) = json.get("delta") {
                    self.read_stop_reason(delta, step);
                }
                read_usage(json, step);
            }
            "message_stop" => step.complete_and_end(),
            "error" => step.fail(error_of(json).unwrap_or_else(|| unknown_error(json))),
            // A whole message in one event: gateways that cannot stream.
            "message" if json.get("content").is_some() => self.decode_body(json, step),
            "ping" | "heartbeat" => {}
            other => step.problem(ProblemKind::UnknownEvent, other),
        }
    }

    fn decode_body(&mut self, json: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        if json.get("content").is_none() {
            return step.fail(error_of(json).unwrap_or_else(|| unknown_error(json)));
        }
        self.message_start(json, step);
        step.complete();
    }

    fn finish(&mut self, step: &mut StepWriter<'_>) {
        for at in self.blocks.open_blocks() {
            self.finish_block(at, step);
        }
        let content = std::mem::take(&mut self.blocks).into_content(!step.is_finished());
        if !content.is_empty() {
            step.provider_state(super::echo::write(content, self.container.take()));
        }
    }
}

impl AnthropicDecoder {
    /// A message begins, or (a plain body, and replies that a proxy stored) is there whole.
    fn message_start(&mut self, message: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        let id = message.nonempty("id").unwrap_or_default();
        if let Some(known) = &self.message_id {
            // Quirk N8. A proxy that retried sends a second head: the same message again, or another generation.
            let repeated =
                if id.is_empty() || known.is_empty() { self.blocks.is_empty() } else { *known == id };
            if repeated {
                return read_usage(message, step);
            }
            step.restart(&id);
            *self = Self::default();
        }
        self.message_id = Some(id.into_owned());
        for block in message.get("content").map(JsonRef::items).unwrap_or_default() {
            self.pending_seals.seal_all(step);
            let at = self.open_block(self.blocks.next_index(), block, step);
            self.close_block(at, step);
        }
        self.read_stop_reason(message, step);
        read_usage(message, step);
    }

    fn block_start(&mut self, json: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        self.pending_seals.seal_all(step);
        match json.get("content_block") {
            Some(block) => {
                let index = index_of(json).unwrap_or_else(|| self.blocks.next_index());
                self.open_block(index, block, step);
            }
            None => step.problem(ProblemKind::InvalidEvent, json.raw()),
        }
    }

    fn open_block(&mut self, index: u64, block: &JsonRef<'_>, step: &mut StepWriter<'_>) -> usize {
        let name = block.nonempty("type").unwrap_or_default();
        let kind = match &*name {
            "text" => {
                let mut text = TextFragments::default();
                if let Some(start) = block.get("text") {
                    step.text(start);
                    text.push(start);
                }
                let citations = block.get("citations").map(JsonRef::items).unwrap_or_default();
                citations.iter().for_each(|citation| step.citation(citation));
                ContentBlockKind::Text { text, citations: citations.iter().map(JsonRef::to_value).collect() }
            }
            "thinking" => {
                let (mut text, mut signature) = (TextFragments::default(), TextFragments::default());
                if let Some(start) = block.get("thinking") {
                    step.thinking(start);
                    text.push(start);
                }
                if let Some(start) = block.get("signature") {
                    signature.push(start);
                }
                ContentBlockKind::Thinking { text, signature }
            }
            "redacted_thinking" => {
                step.hidden_thinking();
                ContentBlockKind::Complete
            }
            "tool_use" => {
                let (id, tool) =
                    (block.scalar("id").unwrap_or_default(), block.nonempty("name").unwrap_or_default());
                let slot = step.open_call(index, CallHead { id: &id, name: &tool, kind: CallKind::Function });
                ContentBlockKind::Call {
                    slot,
                    start_input: block.get("input").and_then(input_text),
                    input: TextFragments::default(),
                }
            }
            "server_tool_use" | "mcp_tool_use" => {
                if let (Some(id), Some(tool)) = (block.nonempty("id"), block.nonempty("name")) {
                    self.hosted_names.insert(id.into_owned(), tool.into_owned());
                }
                ContentBlockKind::hosted()
            }
            result if result.ends_with("_tool_result") => {
                let id = block.nonempty("tool_use_id").map(Cow::into_owned);
                let known = id.as_ref().and_then(|id| self.hosted_names.get(id)).cloned();
                let name = known.unwrap_or_else(|| result.trim_end_matches("_tool_result").to_owned());
                step.provider_tool(HostedTool {
                    id,
                    name,
                    input: None,
                    output: block.get("content").map(JsonRef::to_value),
                });
                ContentBlockKind::Complete
            }
            "compaction" => {
                let mut content = TextFragments::default();
                if let Some(start) = block.get("content") {
                    content.push(start);
                }
                ContentBlockKind::Compaction { content }
            }
            // Which model answered, and files of a container: of use to the provider only.
            "fallback" | "container_upload" => ContentBlockKind::Complete,
            other => {
                step.problem(ProblemKind::UnknownEvent, other);
                ContentBlockKind::Unknown
            }
        };
        let head = match block.to_value() {
            Value::Object(head) => head,
            _ => Map::new(),
        };
        self.blocks.open(index, head, kind)
    }

    fn block_delta(&mut self, json: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        let Some(delta) = json.get("delta") else { return };
        let index = index_of(json);
        match &*delta_type(delta) {
            "text_delta" => {
                let Some(part) = delta.get("text") else { return };
                step.text(part);
                if let ContentBlockKind::Text { text, .. } =
                    &mut self.blocks.block_for_delta(index, ContentBlockKind::text()).kind
                {
                    text.push(part);
                }
            }
            "input_json_delta" => {
                if let Some(part) = delta.get("partial_json") {
                    self.input_delta(index, part, step);
                }
            }
            "thinking_delta" => {
                let Some(part) = delta.get("thinking") else { return };
                step.thinking(part);
                if let ContentBlockKind::Thinking { text, .. } =
                    &mut self.blocks.block_for_delta(index, ContentBlockKind::thinking()).kind
                {
                    text.push(part);
                }
            }
            "signature_delta" => {
                let Some(part) = delta.get("signature") else { return };
                if let ContentBlockKind::Thinking { signature, .. } =
                    &mut self.blocks.block_for_delta(index, ContentBlockKind::thinking()).kind
                {
                    signature.push(part);
                }
            }
            "citations_delta" => {
                let Some(citation) = delta.get("citation") else { return };
                step.citation(citation);
                if let ContentBlockKind::Text { citations, .. } =
                    &mut self.blocks.block_for_delta(index, ContentBlockKind::text()).kind
                {
                    citations.push(citation.to_value());
                }
            }
            "compaction_delta" => {
                let (Some(part), Some(at)) = (delta.get("content"), self.blocks.find(index)) else { return };
                if let ContentBlockKind::Compaction { content } = &mut self.blocks.get(at).kind {
                    content.push(part);
                }
            }
            other => step.problem(ProblemKind::UnknownEvent, other),
        }
    }

    fn input_delta(&mut self, index: Option<u64>, part: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        let takes_input = |kind: &ContentBlockKind| {
            use ContentBlockKind as K;
            matches!(kind, K::Call { .. } | K::Hosted { .. } | K::Unknown)
        };
        let own = self.blocks.find(index).filter(|at| takes_input(&self.blocks.get(*at).kind));
        if own.is_none() && part.string_body() == Some("") {
            return;
        }
        let at = own.or_else(|| step.adopt(part).and_then(|slot| self.blocks.find_call(slot)));
        match at.map(|at| &mut self.blocks.get(at).kind) {
            Some(ContentBlockKind::Call { slot, input, .. }) => {
                if part.is_string() {
                    step.append_arguments(*slot, part);
                    input.push(part);
                } else {
                    // Quirk A3: an object where its text should be.
                    step.append_arguments_text(*slot, part.raw());
                    input.push_str(part.raw());
                }
            }
            Some(ContentBlockKind::Hosted { input, .. }) => input.push(part),
            Some(ContentBlockKind::Unknown) => step.problem(ProblemKind::UnknownEvent, part.raw()),
            _ => {
                // Arguments whose call was never opened stay visible as a call without a name (quirk T16).
                let index = index.unwrap_or_else(|| self.blocks.next_index());
                let slot = step.open_call(index, CallHead::default());
                let kind =
                    ContentBlockKind::Call { slot, start_input: None, input: TextFragments::default() };
                let head = Map::from_iter([("type".to_owned(), Value::from("tool_use"))]);
                self.blocks.open(index, head, kind);
                self.input_delta(Some(index), part, step);
            }
        }
    }

    /// The upstream reports a block as complete.
    fn close_block(&mut self, at: usize, step: &mut StepWriter<'_>) {
        if std::mem::replace(&mut self.blocks.get(at).closed, true) {
            return;
        }
        self.finish_block(at, step);
        if let ContentBlockKind::Call { slot, .. } = self.blocks.get(at).kind {
            self.pending_seals.seal_or_hold(slot, step);
        }
    }

    /// No more deltas for a block, with or without a stop event.
    fn finish_block(&mut self, at: usize, step: &mut StepWriter<'_>) {
        let block = self.blocks.get(at);
        if let ContentBlockKind::Call { slot, start_input, input } = &mut block.kind
            && let Some(text) = start_input.take()
            && step.has_no_arguments(*slot)
        {
            step.snapshot_arguments(*slot, &text);
            input.push_str(&text);
        }
        if let Some(hosted) = block.report_hosted() {
            step.provider_tool(hosted);
        }
    }

    /// Stop reason and what comes with it: in `message_delta.delta`, or in a whole message.
    fn read_stop_reason(&mut self, json: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        if let Some(reason) = json.nonempty("stop_reason") {
            step.finish(finish_reason(&reason), &reason);
        }
        if let Some(explanation) = json.path(&["stop_details", "explanation"]) {
            step.refusal(explanation);
        }
        if let Some(id) = json.path(&["container", "id"]).filter(|id| id.is_string()) {
            self.container = Some(id.to_value());
        }
    }
}

/// `type` of the payload, else the `event:` line, else what its members show.
fn event_type<'a>(frame: &PayloadFrame<'a>) -> Cow<'a, str> {
    let json = frame.json;
    if let Some(name) = json.nonempty("type") {
        return name;
    }
    let has = |key: &str| json.get(key).is_some();
    match frame.event {
        "" | "message" | "data" => Cow::Borrowed(if has("error") {
            "error"
        } else if has("content_block") {
            "content_block_start"
        } else if has("delta") && has("index") {
            "content_block_delta"
        } else if has("delta") {
            "message_delta"
        } else if has("message") {
            "message_start"
        } else if has("index") {
            "content_block_stop"
        } else {
            "event without a type"
        }),
        event => Cow::Borrowed(event),
    }
}

/// `type` of a delta, else what its members show.
fn delta_type<'a>(delta: &JsonRef<'a>) -> Cow<'a, str> {
    delta.nonempty("type").unwrap_or_else(|| {
        let known = [
            ("text", "text_delta"),
            ("partial_json", "input_json_delta"),
            ("thinking", "thinking_delta"),
            ("signature", "signature_delta"),
        ];
        let shown = known.into_iter().find(|(member, _)| delta.get(member).is_some());
        Cow::Borrowed(shown.map_or("delta without a type", |(_, name)| name))
    })
}

fn index_of(json: &JsonRef<'_>) -> Option<u64> {
    json.get("index").and_then(JsonRef::as_u64)
}

/// Text of a non-empty `input`: `{}` is the placeholder that deltas follow.
fn input_text(input: &JsonRef<'_>) -> Option<String> {
    match input.as_str() {
        Some(text) => Some(text.into_owned()),
        None if input.is_object() && input.members().is_empty() => None,
        None => Some(input.raw().to_owned()),
    }
    .filter(|text| !text.is_empty())
}

/// Reads token counts, which are absolute in every event; the last ones count. `input_tokens` excludes tokens
/// read from a cache or written to it, as the upstream counts.
fn read_usage(json: &JsonRef<'_>, step: &mut StepWriter<'_>) {
    let Some(usage) = json.get("usage") else { return };
    let tokens = |keys: &[&str]| usage.path(keys).and_then(JsonRef::as_u64);
    step.usage(Usage {
        input_tokens: tokens(&["input_tokens"]),
        output_tokens: tokens(&["output_tokens"]),
        cached_input_tokens: tokens(&["cache_read_input_tokens"]),
        cache_written_tokens: tokens(&["cache_creation_input_tokens"]),
        reasoning_tokens: tokens(&["output_tokens_details", "thinking_tokens"]),
    });
}

/// Finish reason by `platform.claude.com/docs/en/build-with-claude/handling-stop-reasons`.
fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "pause_turn" => FinishReason::Pause,
        "refusal" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    }
}

/// An error event in no known form.
fn unknown_error(json: &JsonRef<'_>) -> UpstreamError {
    let message = json.nonempty("message").map_or_else(|| excerpt_of(json.raw()), Cow::into_owned);
    UpstreamError { message, kind: None, code: None }
}
