//! Events of a response, or a whole response, to [`StepWriter`].
//!
//! Everything is sent up to four times: as deltas, as the end of a part, as the end of an item and in the terminal
//! snapshot, and any three of them may be missing. So deltas append, snapshots replace, and a text that was
//! sent is not emitted again. A call named `multi_tool_use.parallel` stays one call: it has one `call_id` to
//! be answered, and "no such tool" lets the model make the calls itself.

use super::items::{ItemKind, OutputItems, TextChannel, call_id};
use crate::assemble::CallHead;
use crate::dialect::pending_seals::PendingSeals;
use crate::dialect::{DialectDecoder, PayloadFrame};
use crate::json::JsonRef;
use crate::step::{StepWriter, error_of};
use crate::vocabulary::{
    CallKind, CallSlot, FinishReason, HostedTool, Media, ProblemKind, UpstreamError, Usage,
};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;

#[derive(Default)]
pub(crate) struct ResponsesDecoder {
    items: OutputItems,
    /// Kinds of events and items that were reported as unknown.
    reported_kinds: BTreeSet<String>,
    /// Calls that were reported complete without a byte of arguments. A truncated call can look the same, so
    /// they count once the model continued.
    pending_seals: PendingSeals,
}

impl DialectDecoder for ResponsesDecoder {
    fn decode_event(&mut self, frame: &PayloadFrame<'_>, step: &mut StepWriter<'_>) {
        let event = frame.json;
        let kind = event.nonempty("type").unwrap_or(Cow::Borrowed(frame.event));
        match kind.as_ref() {
            "response.output_text.delta" => self.text(event, "delta", TextChannel::Text, step),
            "response.function_call_arguments.delta" => self.arguments_delta(event, CallKind::Function, step),
            "response.reasoning_summary_text.delta" => self.text(event, "delta", TextChannel::Summary, step),
            "response.reasoning_text.delta" => self.text(event, "delta", TextChannel::Reasoning, step),
            "response.refusal.delta" => self.text(event, "delta", TextChannel::Refusal, step),
            "response.custom_tool_call_input.delta" => self.arguments_delta(event, CallKind::Custom, step),

            "response.output_text.done" => self.text_snapshot(event, "text", TextChannel::Text, step),
            "response.refusal.done" => self.text_snapshot(event, "refusal", TextChannel::Refusal, step),
            "response.reasoning_summary_text.done" => {
                self.text_snapshot(event, "text", TextChannel::Summary, step)
            }
            "response.reasoning_text.done" => self.text_snapshot(event, "text", TextChannel::Reasoning, step),
            "response.output_text.annotation.added" => self.annotation(event, step),
            "response.function_call_arguments.done" => {
                self.arguments_done(event, "arguments", CallKind::Function, step);
            }
            "response.custom_tool_call_input.done" => {
                self.arguments_done(event, "input", CallKind::Custom, step)
            }

            "response.output_item.added" => {
                if let Some(item) = event.get("item") {
                    let (at, is_new) = self.items.item_added(event, item);
                    if is_new {
                        self.pending_seals.seal_all(step);
                        self.register_item(at, item, step);
                        if self.items.get(at).kind == ItemKind::Reasoning {
                            step.hidden_thinking();
                        }
                    }
                }
            }
            "response.output_item.done" => {
                if let Some(item) = event.get("item") {
                    let (at, is_new) = self.items.item_done(event, item);
                    if is_new {
                        self.register_item(at, item, step);
                    }
                    let cut = item.nonempty("status").as_deref() == Some("incomplete");
                    self.complete_item(at, item, cut, step);
                }
            }
            // Sent by OpenRouter; without the response it ends nothing (F8).
            "response.done" if event.path(&["response", "status"]).is_none() => {
                step.problem(ProblemKind::ForeignEnd, event.raw());
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled"
            | "response.done" => {
                let event_status = kind.strip_prefix("response.").unwrap_or_default();
                self.finish_response(event.get("response").unwrap_or(event), event_status, step);
            }
            kind => {
                if let Some(error) = error_of(event) {
                    step.fail(error);
                } else if !is_progress(kind) && !kind.is_empty() {
                    self.report_unknown(kind, step);
                }
            }
        }
    }

    fn decode_body(&mut self, json: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        let response = json.get("response").filter(|inner| inner.is_object()).unwrap_or(json);
        if response.get("output").is_some() || response.get("status").is_some() {
            self.finish_response(response, "completed", step);
        }
    }

    /// `item_id` is read where there is no `output_index` only, so it is not among them.
    fn ignored_members(&self) -> Option<&'static [&'static str]> {
        Some(&["sequence_number", "obfuscation"])
    }

    fn finish(&mut self, step: &mut StepWriter<'_>) {
        let mut orphans = Vec::new();
        for at in 0..self.items.len() {
            let item = self.items.get(at);
            let pending = std::mem::take(&mut item.pending_arguments);
            match item.slot {
                _ if pending.is_empty() || !matches!(item.kind, ItemKind::Call(_)) => {}
                // The head had them, and nothing followed.
                Some(slot) => step.append_arguments_text(slot, &pending),
                None => orphans.push((at, pending)),
            }
        }
        self.show_orphans(orphans, step);
        let values = self.items.take_values();
        if !values.is_empty() {
            step.provider_state(Value::Array(values));
        }
    }
}

// --- texts ---

impl ResponsesDecoder {
    fn text(&mut self, event: &JsonRef<'_>, key: &str, channel: TextChannel, step: &mut StepWriter<'_>) {
        let Some(text) = event.get(key).filter(|text| text.is_string()) else { return };
        let kind = if matches!(channel, TextChannel::Text | TextChannel::Refusal) {
            ItemKind::Message
        } else {
            ItemKind::Reasoning
        };
        let (at, is_new) = self.items.find_or_open(event, kind);
        invalidate_if_new(is_new, step);
        self.items.get(at).emitted.insert((channel, part_index(event)));
        emit_text(text, channel, step);
    }

    fn text_snapshot(
        &mut self,
        event: &JsonRef<'_>,
        key: &str,
        channel: TextChannel,
        step: &mut StepWriter<'_>,
    ) {
        let part = (channel, part_index(event));
        if !self.items.find_for_event(event).is_some_and(|at| self.items.get(at).emitted.contains(&part)) {
            self.text(event, key, channel, step);
        }
    }

    fn annotation(&mut self, event: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        if let Some(at) = self.items.find_for_event(event) {
            self.items.get(at).citations_emitted = true;
        }
        if let Some(annotation) = event.get("annotation") {
            step.citation(annotation);
        }
    }

    /// The texts of a whole item that were not emitted before.
    fn emit_texts(&mut self, at: usize, item: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        let known = self.items.get(at);
        let open = |channel| !known.has_emitted(channel);
        let (text, refusal) = (open(TextChannel::Text), open(TextChannel::Refusal));
        let thoughts = open(TextChannel::Summary) && open(TextChannel::Reasoning);
        let citations = !std::mem::replace(&mut known.citations_emitted, true);
        let mut emit = |json: Option<&JsonRef<'_>>, channel, step: &mut StepWriter<'_>| {
            if let Some(text) = json.filter(|text| text.is_string()) {
                known.emitted.insert((channel, 0));
                emit_text(text, channel, step);
            }
        };
        let content = item.get("content").map(JsonRef::items).unwrap_or_default();
        if known.kind == ItemKind::Reasoning {
            let summary = item.get("summary").map(JsonRef::items).unwrap_or_default();
            let (parts, channel) = if summary.is_empty() {
                (content, TextChannel::Reasoning)
            } else {
                (summary, TextChannel::Summary)
            };
            if thoughts {
                parts.iter().for_each(|part| emit(part.get("text"), channel, step));
            }
            return;
        }
        for part in content {
            match part.nonempty("type").as_deref() {
                Some("refusal") if refusal => emit(part.get("refusal"), TextChannel::Refusal, step),
                Some("output_text" | "text") if text => emit(part.get("text"), TextChannel::Text, step),
                _ => {}
            }
            if citations {
                part.get("annotations")
                    .map(JsonRef::items)
                    .unwrap_or_default()
                    .iter()
                    .for_each(|a| step.citation(a));
            }
        }
        // Some compatible servers put the text itself there.
        if text {
            emit(item.get("content"), TextChannel::Text, step);
        }
    }
}

fn emit_text(text: &JsonRef<'_>, channel: TextChannel, step: &mut StepWriter<'_>) {
    match channel {
        TextChannel::Text => step.text(text),
        TextChannel::Refusal => step.refusal(text),
        TextChannel::Summary | TextChannel::Reasoning => step.thinking(text),
    }
}

fn part_index(event: &JsonRef<'_>) -> u64 {
    event.get("content_index").or_else(|| event.get("summary_index")).and_then(JsonRef::as_u64).unwrap_or(0)
}

// --- calls ---

impl ResponsesDecoder {
    fn arguments_delta(&mut self, event: &JsonRef<'_>, kind: CallKind, step: &mut StepWriter<'_>) {
        let Some(delta) = event.get("delta") else { return };
        let append = |slot, step: &mut StepWriter<'_>| {
            if delta.is_string() {
                step.append_arguments(slot, delta);
            } else {
                step.append_arguments_text(slot, delta.raw());
            }
        };
        if !self.items.is_known(event, ItemKind::Call(kind))
            && let Some(slot) = step.adopt(delta)
        {
            self.items.clear_pending(slot);
            return append(slot, step);
        }
        let (at, is_new) = self.items.find_or_open(event, ItemKind::Call(kind));
        invalidate_if_new(is_new, step);
        let item = self.items.get(at);
        match item.slot {
            Some(slot) => {
                // The deltas repeat the arguments of the head.
                item.pending_arguments.clear();
                append(slot, step);
            }
            None => item.pending_arguments.push_str(&argument_text(Some(delta))),
        }
    }

    fn arguments_done(&mut self, event: &JsonRef<'_>, key: &str, kind: CallKind, step: &mut StepWriter<'_>) {
        let text = argument_text(event.get(key));
        if !self.items.is_known(event, ItemKind::Call(kind))
            && !text.is_empty()
            && event.nonempty("name").is_none()
        {
            if step.is_repetition_of_call(&text) {
                return;
            }
            if let Some(slot) = event.get(key).and_then(|fragment| step.adopt(fragment)) {
                self.items.clear_pending(slot);
                step.snapshot_arguments(slot, &text);
                return step.seal_call(slot);
            }
        }
        let (at, is_new) = self.items.find_or_open(event, ItemKind::Call(kind));
        invalidate_if_new(is_new, step);
        self.apply_snapshot(at, &event.nonempty("name").unwrap_or_default(), &text, step);
        // An empty snapshot is no evidence: the real one may follow with the end of the item (P3).
        if !text.is_empty()
            && let Some(slot) = self.items.get(at).slot
        {
            step.seal_call(slot);
        }
    }

    /// Sets a call's whole arguments, which replace earlier ones; an empty text has no effect.
    fn apply_snapshot(&mut self, at: usize, name: &str, text: &str, step: &mut StepWriter<'_>) {
        let item = self.items.get(at);
        if item.slot.is_none() && !name.is_empty() {
            self.open_call(at, name, step);
        }
        let item = self.items.get(at);
        let text =
            if text.is_empty() { std::mem::take(&mut item.pending_arguments) } else { text.to_owned() };
        match item.slot {
            Some(slot) if !text.is_empty() => {
                item.pending_arguments.clear();
                step.snapshot_arguments(slot, &text);
            }
            Some(_) => {}
            None => item.pending_arguments = text,
        }
    }

    /// Arguments of items that never got a name, in the order of the items.
    fn show_orphans(&mut self, orphans: Vec<(usize, String)>, step: &mut StepWriter<'_>) {
        let joined: String = orphans.iter().map(|(_, text)| text.as_str()).collect();
        if orphans.is_empty() || step.is_repetition_of_call(&joined) {
            return;
        }
        for (at, text) in orphans {
            if !step.is_repetition_of_call(&text) {
                let slot = self.open_call(at, "", step);
                step.append_arguments_text(slot, &text);
            }
        }
    }

    fn open_call(&mut self, at: usize, name: &str, step: &mut StepWriter<'_>) -> CallSlot {
        let key = self.items.key(at);
        let item = self.items.get(at);
        let kind =
            if item.kind == ItemKind::Call(CallKind::Custom) { CallKind::Custom } else { CallKind::Function };
        let slot = step.open_call(key, CallHead { id: &item.call_id, name, kind });
        self.items.set_slot(at, slot);
        slot
    }
}

/// Argument text of any JSON type: proxies send objects.
fn argument_text<'a>(json: Option<&JsonRef<'a>>) -> Cow<'a, str> {
    json.map_or(Cow::Borrowed(""), |json| json.as_str().unwrap_or(Cow::Borrowed(json.raw())))
}

fn arguments_of<'a>(item: &JsonRef<'a>, kind: ItemKind) -> Cow<'a, str> {
    argument_text(item.get(if kind == ItemKind::Call(CallKind::Custom) { "input" } else { "arguments" }))
}

// --- items ---

impl ResponsesDecoder {
    /// An item's first sight.
    fn register_item(&mut self, at: usize, item: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        step.invalidate_templates();
        let kind = self.items.get(at).kind;
        match kind {
            ItemKind::Call(_) => {
                self.items.get(at).pending_arguments = arguments_of(item, kind).into_owned();
                if let Some(name) = item.nonempty("name") {
                    self.open_call(at, &name, step);
                }
            }
            ItemKind::Unknown => self.report_unknown(&item.nonempty("type").unwrap_or_default(), step),
            ItemKind::Message | ItemKind::Reasoning | ItemKind::Hosted | ItemKind::Opaque => {}
        }
    }

    /// An item as a whole. `cut`: its end did not come.
    fn complete_item(&mut self, at: usize, item: &JsonRef<'_>, cut: bool, step: &mut StepWriter<'_>) {
        let known = self.items.get(at);
        let kind = known.kind;
        let was_done = std::mem::replace(&mut known.done, true);
        if known.value.is_none() {
            known.value = Some(item.to_value());
        }
        match kind {
            ItemKind::Call(_) => {
                if known.call_id.is_empty() {
                    known.call_id = call_id(item).into_owned();
                }
                self.apply_snapshot(
                    at,
                    &item.nonempty("name").unwrap_or_default(),
                    &arguments_of(item, kind),
                    step,
                );
                match self.items.get(at).slot {
                    Some(slot) if !cut => self.pending_seals.seal_or_hold(slot, step),
                    _ => {}
                }
            }
            ItemKind::Message | ItemKind::Reasoning => self.emit_texts(at, item, step),
            ItemKind::Hosted if !was_done => emit_hosted(item, step),
            ItemKind::Hosted | ItemKind::Opaque | ItemKind::Unknown => {}
        }
    }

    /// The end of the response, with a snapshot of everything.
    fn finish_response(&mut self, response: &JsonRef<'_>, event_status: &str, step: &mut StepWriter<'_>) {
        let status = response.nonempty("status").unwrap_or(Cow::Borrowed(event_status));
        let status = if status == "in_progress" || status == "done" { "completed" } else { status.as_ref() };
        let mut matching = self.items.snapshot_matcher();
        for (position, item) in
            response.get("output").map(JsonRef::items).unwrap_or_default().iter().enumerate()
        {
            let (at, is_new) = self.items.match_snapshot(&mut matching, position, item);
            if is_new {
                self.register_item(at, item, step);
            }
            let item_status = item.nonempty("status").unwrap_or_default();
            let cut = item_status == "incomplete" || (status != "completed" && item_status != "completed");
            self.complete_item(at, item, cut, step);
        }
        if let Some(usage) = response.get("usage") {
            step.usage(Usage {
                input_tokens: usage.get("input_tokens").and_then(JsonRef::as_u64),
                output_tokens: usage.get("output_tokens").and_then(JsonRef::as_u64),
                cached_input_tokens: usage
                    .path(&["input_tokens_details", "cached_tokens"])
                    .and_then(JsonRef::as_u64),
                cache_written_tokens: None,
                reasoning_tokens: usage
                    .path(&["output_tokens_details", "reasoning_tokens"])
                    .and_then(JsonRef::as_u64),
            });
        }
        let details = response.path(&["incomplete_details"]).and_then(|details| details.nonempty("reason"));
        match (status, details.as_deref()) {
            ("completed", _) => step.finish(FinishReason::Stop, status),
            ("incomplete", Some(raw @ "max_output_tokens")) => step.finish(FinishReason::Length, raw),
            ("incomplete", Some(raw @ "content_filter")) => step.finish(FinishReason::ContentFilter, raw),
            ("failed", _) => {
                step.finish(FinishReason::Error, status);
                step.fail(error_of(response).unwrap_or_else(|| UpstreamError {
                    message: "the response failed without a reason from the upstream".to_owned(),
                    ..UpstreamError::default()
                }));
            }
            (_, details) => step.finish(FinishReason::Other, details.unwrap_or(status)),
        }
        step.complete_and_end();
    }

    fn report_unknown(&mut self, kind: &str, step: &mut StepWriter<'_>) {
        if self.reported_kinds.insert(kind.to_owned()) {
            step.problem(ProblemKind::UnknownEvent, kind);
        }
    }
}

/// A new item may take over a number that fragments were sent under before.
fn invalidate_if_new(is_new: bool, step: &mut StepWriter<'_>) {
    if is_new {
        step.invalidate_templates();
    }
}

/// A call of the provider's own tool: its name, its input and its result.
fn emit_hosted(item: &JsonRef<'_>, step: &mut StepWriter<'_>) {
    let kind = item.nonempty("type").unwrap_or_default();
    let own_name = item.nonempty("name").filter(|_| kind.starts_with("mcp_"));
    let name = own_name.unwrap_or_else(|| Cow::Owned(kind.strip_suffix("_call").unwrap_or(&kind).to_owned()));
    let pick = |keys: &[&str]| {
        let found: Map<String, Value> = keys
            .iter()
            .filter_map(|key| item.get(key).map(|value| ((*key).to_owned(), value.to_value())))
            .collect();
        (!found.is_empty()).then_some(Value::Object(found))
    };
    let input = pick(&[
        "action",
        "queries",
        "code",
        "arguments",
        "prompt",
        "revised_prompt",
        "operation",
        "server_label",
    ]);
    let output = pick(&["results", "outputs", "output", "tools", "error"]);
    if let Some(data) = item.nonempty("result").filter(|_| kind == "image_generation_call") {
        let format = item.nonempty("output_format").unwrap_or(Cow::Borrowed("png"));
        step.image(Media::new(format!("image/{format}"), data.into_owned()));
    }
    step.provider_tool(HostedTool {
        id: item.scalar("id").map(Cow::into_owned),
        name: name.into_owned(),
        input,
        output,
    });
}

/// Events that only report progress, or repeat other events.
fn is_progress(kind: &str) -> bool {
    let Some(rest) = kind.strip_prefix("response.") else {
        return matches!(kind, "keepalive" | "ping" | "heartbeat");
    };
    let (subject, _) = rest.split_once('.').unwrap_or((rest, ""));
    matches!(
        subject,
        "created" | "queued" | "in_progress" | "content_part" | "reasoning_summary_part" | "rate_limits"
    ) || subject.contains("_call")
        || subject.starts_with("mcp_")
}
