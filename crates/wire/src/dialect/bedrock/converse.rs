//! `ConverseStream` and `Converse`.
//!
//! Format: `docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html`.

use super::converse_blocks::{ConverseBlock, ConverseBlocks, object_of};
use super::{exception, failure};
use crate::assemble::CallHead;
use crate::dialect::pending_seals::PendingSeals;
use crate::dialect::text_fragments::TextFragments;
use crate::dialect::{DialectDecoder, FrameKind, PayloadFrame};
use crate::json::JsonRef;
use crate::step::StepWriter;
use crate::vocabulary::{CallKind, FinishReason, HostedTool, Media, ProblemKind, Usage};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Decodes one reply. A hosted tool is reported twice under its id: with its input, then with its result.
#[derive(Default)]
pub(crate) struct ConverseDecoder {
    blocks: ConverseBlocks,
    pending_seals: PendingSeals,
    /// Names of hosted tools by id, for their results.
    hosted_names: BTreeMap<String, String>,
}

impl DialectDecoder for ConverseDecoder {
    fn decode_event(&mut self, frame: &PayloadFrame<'_>, step: &mut StepWriter<'_>) {
        if frame.kind == FrameKind::Exception {
            return step.fail(exception(frame));
        }
        let (event, json) = event_payload(frame);
        match event {
            "contentBlockDelta" => self.block_delta(json, step),
            "contentBlockStart" => self.block_start(json, step),
            "contentBlockStop" => {
                if let Some(block) = self.blocks.find(index_of(json)) {
                    close_block(block, &self.hosted_names, &mut self.pending_seals, step);
                }
            }
            "messageStart" => {}
            "messageStop" => {
                read_stop_reason(json, step);
                step.complete();
            }
            "metadata" => read_usage(json, step),
            other => step.problem(ProblemKind::UnknownEvent, other),
        }
    }

    fn decode_body(&mut self, json: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        let Some(content) = json.path(&["output", "message", "content"]) else {
            return step.fail(failure("", json));
        };
        for block in content.items() {
            self.whole_block(block, step);
        }
        read_stop_reason(json, step);
        read_usage(json, step);
        step.complete();
    }

    fn finish(&mut self, step: &mut StepWriter<'_>) {
        for block in self.blocks.iter_mut() {
            report_hosted(block, &self.hosted_names, step);
        }
        let content = std::mem::take(&mut self.blocks).into_content();
        if !content.is_empty() {
            step.provider_state(json!({ "role": "assistant", "content": content }));
        }
    }
}

impl ConverseDecoder {
    fn block_start(&mut self, json: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        self.pending_seals.seal_all(step);
        let (index, start) = (index_of(json), json.get("start"));
        if let Some(call) = start.and_then(|start| start.get("toolUse")) {
            self.open_call(index, call, step);
        } else if let Some(answer) = start.and_then(|start| start.get("toolResult")) {
            self.blocks.open(
                index,
                ConverseBlock::ToolResult { head: members(answer), content: Vec::new(), reported: false },
            );
        } else if let Some(start) = start.filter(|start| !start.members().is_empty()) {
            step.problem(ProblemKind::UnknownEvent, start.raw());
        }
    }

    fn open_call(&mut self, index: u64, call: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        let (id, name) =
            (call.scalar("toolUseId").unwrap_or_default(), call.nonempty("name").unwrap_or_default());
        let (mut head, input) = (members(call), TextFragments::default());
        head.remove("input");
        let block = if call.nonempty("type").as_deref() == Some("server_tool_use") {
            self.hosted_names.insert(id.into_owned(), name.into_owned());
            ConverseBlock::Hosted { head, input, reported: false }
        } else {
            let slot = step.open_call(index, CallHead { id: &id, name: &name, kind: CallKind::Function });
            ConverseBlock::Call { slot, head, input }
        };
        self.blocks.open(index, block);
    }

    fn block_delta(&mut self, json: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        let (index, Some(delta)) = (index_of(json), json.get("delta")) else { return };
        if let Some(part) = delta.get("text") {
            step.text(part);
            if let ConverseBlock::Text { text, .. } =
                self.blocks.block_for_delta(index, ConverseBlock::text())
            {
                text.push(part);
            }
        } else if let Some(part) = delta.path(&["toolUse", "input"]) {
            self.input_delta(index, part, step);
        } else if let Some(reasoning) = delta.get("reasoningContent") {
            self.reasoning(index, reasoning, step);
        } else if let Some(citation) = delta.get("citation") {
            step.citation(citation);
            if let ConverseBlock::Text { citations, .. } =
                self.blocks.block_for_delta(index, ConverseBlock::text())
            {
                citations.push(citation.to_value());
            }
        } else if let Some(parts) = delta.get("toolResult") {
            if let Some(ConverseBlock::ToolResult { content, .. }) = self.blocks.find(index) {
                content.extend(parts.items().iter().map(JsonRef::to_value));
            }
        } else if !delta.members().is_empty() {
            step.problem(ProblemKind::UnknownEvent, delta.raw());
        }
    }

    fn input_delta(&mut self, index: u64, part: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        let takes_input = |block: &mut ConverseBlock| {
            matches!(block, ConverseBlock::Call { .. } | ConverseBlock::Hosted { .. })
        };
        let block = if self.blocks.find(index).is_some_and(takes_input) {
            self.blocks.find(index)
        } else if part.string_body() == Some("") {
            return;
        } else {
            step.adopt(part).and_then(|slot| self.blocks.find_call(slot))
        };
        match block {
            Some(ConverseBlock::Call { slot, input, .. }) => {
                if part.is_string() {
                    step.append_arguments(*slot, part);
                    input.push(part);
                } else {
                    step.append_arguments_text(*slot, part.raw());
                    input.push_str(part.raw());
                }
            }
            Some(ConverseBlock::Hosted { input, .. }) => input.push(part),
            _ => {
                // Arguments whose call was never opened stay visible as a call without a name (quirk T16).
                let slot = step.open_call(index, CallHead::default());
                self.blocks.open(
                    index,
                    ConverseBlock::Call { slot, head: Map::new(), input: TextFragments::default() },
                );
                self.input_delta(index, part, step);
            }
        }
    }

    /// `reasoningContent` of a delta, or `reasoningText` of a whole block: the same members.
    fn reasoning(&mut self, index: u64, reasoning: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        if let Some(data) = reasoning.get("redactedContent").or_else(|| reasoning.get("data")) {
            step.hidden_thinking();
            if let ConverseBlock::Redacted(fragments) =
                self.blocks.block_for_delta(index, ConverseBlock::Redacted(TextFragments::default()))
            {
                fragments.push(data);
            }
        }
        for (member, part) in reasoning.members() {
            let ConverseBlock::Reasoning { text, signature } = (match &**member {
                "text" | "signature" => self.blocks.block_for_delta(index, ConverseBlock::reasoning()),
                _ => continue,
            }) else {
                continue;
            };
            if member == "text" {
                step.thinking(part);
                text.push(part);
            } else {
                signature.push(part);
            }
        }
    }

    /// A block of a plain body: the same parts, already joined.
    fn whole_block(&mut self, block: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        self.pending_seals.seal_all(step);
        let index = self.blocks.next_index();
        if let Some(text) = block.get("text") {
            step.text(text);
            if let ConverseBlock::Text { text: fragments, .. } =
                self.blocks.open(index, ConverseBlock::text())
            {
                fragments.push(text);
            }
        } else if let Some(cited) = block.get("citationsContent") {
            let sources = cited.get("citations").map(JsonRef::items).unwrap_or_default();
            if let ConverseBlock::Text { text, citations } = self.blocks.open(index, ConverseBlock::text()) {
                for part in cited.get("content").map(JsonRef::items).unwrap_or_default() {
                    if let Some(part) = part.get("text") {
                        step.text(part);
                        text.push(part);
                    }
                }
                citations.extend(sources.iter().map(JsonRef::to_value));
            }
            sources.iter().for_each(|source| step.citation(source));
        } else if let Some(call) = block.get("toolUse") {
            self.open_call(index, call, step);
            if let Some(input) =
                call.get("input").filter(|input| input.is_string() || !input.members().is_empty())
            {
                self.input_delta(index, input, step);
            }
        } else if let Some(reasoning) = block.get("reasoningContent") {
            self.reasoning(index, reasoning.get("reasoningText").unwrap_or(reasoning), step);
        } else if let Some(answer) = block.get("toolResult") {
            let content = answer.get("content").map(JsonRef::items).unwrap_or_default();
            let content = content.iter().map(JsonRef::to_value).collect();
            self.blocks
                .open(index, ConverseBlock::ToolResult { head: members(answer), content, reported: false });
        } else if let Some(data) = block.path(&["image", "source", "bytes"]).and_then(JsonRef::as_str) {
            let format = block.path(&["image", "format"]).and_then(JsonRef::as_str).unwrap_or_default();
            step.image(Media::new(format!("image/{format}"), data.into_owned()));
        } else {
            step.problem(ProblemKind::UnknownEvent, block.raw());
        }
        if let Some(block) = self.blocks.find(index) {
            close_block(block, &self.hosted_names, &mut self.pending_seals, step);
        }
    }
}

/// The upstream reports a block as complete.
fn close_block(
    block: &mut ConverseBlock,
    names: &BTreeMap<String, String>,
    pending_seals: &mut PendingSeals,
    step: &mut StepWriter<'_>,
) {
    if let ConverseBlock::Call { slot, .. } = block {
        pending_seals.seal_or_hold(*slot, step);
    }
    report_hosted(block, names, step);
}

/// Reports a hosted tool's question or answer, once.
fn report_hosted(block: &mut ConverseBlock, names: &BTreeMap<String, String>, step: &mut StepWriter<'_>) {
    let text =
        |head: &Map<String, Value>, key: &str| head.get(key).and_then(Value::as_str).map(str::to_owned);
    match block {
        ConverseBlock::Hosted { head, input, reported: reported @ false } => {
            *reported = true;
            let input_value = object_of(std::mem::take(input));
            input.push_str(&input_value.to_string());
            let (id, name) = (text(head, "toolUseId"), text(head, "name").unwrap_or_default());
            step.provider_tool(HostedTool { id, name, input: Some(input_value), output: None });
        }
        ConverseBlock::ToolResult { head, content, reported: reported @ false } => {
            *reported = true;
            let id = text(head, "toolUseId");
            let known = id.as_ref().and_then(|id| names.get(id)).cloned();
            let name = known.or_else(|| text(head, "type")).unwrap_or_default();
            step.provider_tool(HostedTool { id, name, input: None, output: Some(content.clone().into()) });
        }
        _ => {}
    }
}

/// The event's name: the frame's, or the only member of a payload that was taken out of its frame.
fn event_payload<'f, 'a: 'f>(frame: &'f PayloadFrame<'a>) -> (&'f str, &'f JsonRef<'a>) {
    match (frame.event, frame.json.members()) {
        ("", [(name, json)]) => (name, json),
        (event, _) => (event, frame.json),
    }
}

fn index_of(json: &JsonRef<'_>) -> u64 {
    json.get("contentBlockIndex").and_then(JsonRef::as_u64).unwrap_or(0)
}

fn members(json: &JsonRef<'_>) -> Map<String, Value> {
    match json.to_value() {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn read_usage(json: &JsonRef<'_>, step: &mut StepWriter<'_>) {
    let Some(usage) = json.get("usage") else { return };
    let tokens = |key: &str| usage.get(key).and_then(JsonRef::as_u64);
    step.usage(Usage {
        input_tokens: tokens("inputTokens"),
        output_tokens: tokens("outputTokens"),
        cached_input_tokens: tokens("cacheReadInputTokens"),
        cache_written_tokens: tokens("cacheWriteInputTokens"),
        reasoning_tokens: None,
    });
}

fn read_stop_reason(json: &JsonRef<'_>, step: &mut StepWriter<'_>) {
    let Some(reason) = json.nonempty("stopReason") else { return };
    let normal = match &*reason {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "guardrail_intervened" | "content_filtered" => FinishReason::ContentFilter,
        "malformed_model_output" | "malformed_tool_use" => FinishReason::Error,
        _ => FinishReason::Other,
    };
    step.finish(normal, &reason);
}
