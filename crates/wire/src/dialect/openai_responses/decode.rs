//! Events of a response, or a whole response, to [`Step`].
//!
//! Everything is said up to four times: as deltas, as the end of a part, as the end of an item and in the terminal
//! snapshot, and any three of them may be missing (P1, P3). So deltas append, snapshots replace, and a text that was
//! said is not said again. A call named `multi_tool_use.parallel` (P7) stays the one call that it is: it has one
//! `call_id` to be answered, and "no such tool" lets the model make the calls itself.

use super::items::{Channel, IsNew, Items, Kind, call_id};
use crate::assemble::CallHead;
use crate::dialect::{Decode, Frame};
use crate::json::Json;
use crate::step::{Step, error_of};
use crate::vocabulary::{CallKind, FinishReason, Hosted, Media, ProblemKind, Slot, UpstreamError, Usage};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;

#[derive(Default)]
pub(crate) struct Decoder {
    items: Items,
    /// Kinds of events and items that were reported as unknown.
    unknown: BTreeSet<String>,
    /// Calls that were told as complete without a byte of arguments. A cut can look the same (A2), so they count once
    /// the model went on.
    empty: Vec<Slot>,
}

impl Decode for Decoder {
    fn frame(&mut self, frame: &Frame<'_>, step: &mut Step<'_>) {
        let event = frame.json;
        let kind = event.nonempty("type").unwrap_or(Cow::Borrowed(frame.event));
        match kind.as_ref() {
            "response.output_text.delta" => self.text(event, "delta", Channel::Text, step),
            "response.function_call_arguments.delta" => self.arguments_delta(event, CallKind::Function, step),
            "response.reasoning_summary_text.delta" => self.text(event, "delta", Channel::Summary, step),
            "response.reasoning_text.delta" => self.text(event, "delta", Channel::Reasoning, step),
            "response.refusal.delta" => self.text(event, "delta", Channel::Refusal, step),
            "response.custom_tool_call_input.delta" => self.arguments_delta(event, CallKind::Custom, step),

            "response.output_text.done" => self.text_snapshot(event, "text", Channel::Text, step),
            "response.refusal.done" => self.text_snapshot(event, "refusal", Channel::Refusal, step),
            "response.reasoning_summary_text.done" => {
                self.text_snapshot(event, "text", Channel::Summary, step)
            }
            "response.reasoning_text.done" => self.text_snapshot(event, "text", Channel::Reasoning, step),
            "response.output_text.annotation.added" => self.annotation(event, step),
            "response.function_call_arguments.done" => {
                self.arguments_done(event, "arguments", CallKind::Function, step);
            }
            "response.custom_tool_call_input.done" => {
                self.arguments_done(event, "input", CallKind::Custom, step)
            }

            "response.output_item.added" => {
                if let Some(item) = event.get("item") {
                    let (at, is_new) = self.items.added(event, item);
                    if is_new == IsNew::Yes {
                        self.empty.drain(..).for_each(|slot| step.seal_call(slot));
                        self.opened(at, item, step);
                        if self.items.get(at).kind == Kind::Reasoning {
                            step.thinking_unseen();
                        }
                    }
                }
            }
            "response.output_item.done" => {
                if let Some(item) = event.get("item") {
                    let (at, is_new) = self.items.done(event, item);
                    if is_new == IsNew::Yes {
                        self.opened(at, item, step);
                    }
                    let cut = item.nonempty("status").as_deref() == Some("incomplete");
                    self.told_whole(at, item, cut, step);
                }
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled"
            | "response.done" => {
                let verdict = kind.strip_prefix("response.").unwrap_or_default();
                self.terminal(event.get("response").unwrap_or(event), verdict, step);
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

    fn body(&mut self, json: &Json<'_>, step: &mut Step<'_>) {
        let response = json.get("response").filter(|inner| inner.is_object()).unwrap_or(json);
        if response.get("output").is_some() || response.get("status").is_some() {
            self.terminal(response, "completed", step);
        }
    }

    /// `item_id` is read where there is no `output_index` only, so it is not among them.
    fn ignored_members(&self) -> Option<&'static [&'static str]> {
        Some(&["sequence_number", "obfuscation"])
    }

    fn end(&mut self, step: &mut Step<'_>) {
        for at in 0..self.items.len() {
            let item = self.items.get(at);
            if !matches!(item.kind, Kind::Call(_)) || item.held.is_empty() {
                continue;
            }
            // Arguments whose call never got a name, or that nothing followed.
            let held = std::mem::take(&mut item.held);
            let slot = match item.slot {
                Some(slot) => slot,
                None => self.open(at, "", step),
            };
            step.append_arguments_text(slot, &held);
        }
        let values = self.items.take_values();
        if !values.is_empty() {
            step.echo(Value::Array(values));
        }
    }
}

// --- texts ---

impl Decoder {
    fn text(&mut self, event: &Json<'_>, key: &str, channel: Channel, step: &mut Step<'_>) {
        let Some(text) = event.get(key).filter(|text| text.is_string()) else { return };
        let kind =
            if matches!(channel, Channel::Text | Channel::Refusal) { Kind::Message } else { Kind::Reasoning };
        let (at, is_new) = self.items.of_event_or_new(event, kind);
        forget_if(is_new, step);
        self.items.get(at).said.insert((channel, part_index(event)));
        say(text, channel, step);
    }

    fn text_snapshot(&mut self, event: &Json<'_>, key: &str, channel: Channel, step: &mut Step<'_>) {
        let said = (channel, part_index(event));
        if !self.items.of_event(event).is_some_and(|at| self.items.get(at).said.contains(&said)) {
            self.text(event, key, channel, step);
        }
    }

    fn annotation(&mut self, event: &Json<'_>, step: &mut Step<'_>) {
        if let Some(at) = self.items.of_event(event) {
            self.items.get(at).cited = true;
        }
        if let Some(annotation) = event.get("annotation") {
            step.citation(annotation);
        }
    }

    /// The texts of a whole item that were not said before.
    fn texts_of(&mut self, at: usize, item: &Json<'_>, step: &mut Step<'_>) {
        let known = self.items.get(at);
        let open = |channel| !known.has_said(channel);
        let (text, refusal) = (open(Channel::Text), open(Channel::Refusal));
        let thoughts = open(Channel::Summary) && open(Channel::Reasoning);
        let citations = !std::mem::replace(&mut known.cited, true);
        let mut told = |json: Option<&Json<'_>>, channel, step: &mut Step<'_>| {
            if let Some(text) = json.filter(|text| text.is_string()) {
                known.said.insert((channel, 0));
                say(text, channel, step);
            }
        };
        let content = item.get("content").map(Json::items).unwrap_or_default();
        if known.kind == Kind::Reasoning {
            let summary = item.get("summary").map(Json::items).unwrap_or_default();
            let (parts, channel) =
                if summary.is_empty() { (content, Channel::Reasoning) } else { (summary, Channel::Summary) };
            if thoughts {
                parts.iter().for_each(|part| told(part.get("text"), channel, step));
            }
            return;
        }
        for part in content {
            match part.nonempty("type").as_deref() {
                Some("refusal") if refusal => told(part.get("refusal"), Channel::Refusal, step),
                Some("output_text" | "text") if text => told(part.get("text"), Channel::Text, step),
                _ => {}
            }
            if citations {
                part.get("annotations")
                    .map(Json::items)
                    .unwrap_or_default()
                    .iter()
                    .for_each(|a| step.citation(a));
            }
        }
        // Some compatible servers put the text itself there.
        if text {
            told(item.get("content"), Channel::Text, step);
        }
    }
}

fn say(text: &Json<'_>, channel: Channel, step: &mut Step<'_>) {
    match channel {
        Channel::Text => step.text(text),
        Channel::Refusal => step.refusal(text),
        Channel::Summary | Channel::Reasoning => step.thinking(text),
    }
}

fn part_index(event: &Json<'_>) -> u64 {
    event.get("content_index").or_else(|| event.get("summary_index")).and_then(Json::as_u64).unwrap_or(0)
}

// --- calls ---

impl Decoder {
    fn arguments_delta(&mut self, event: &Json<'_>, kind: CallKind, step: &mut Step<'_>) {
        let Some(delta) = event.get("delta") else { return };
        let (at, is_new) = self.items.of_event_or_new(event, Kind::Call(kind));
        forget_if(is_new, step);
        let item = self.items.get(at);
        match item.slot {
            Some(slot) => {
                // What the head said in advance is said again by the deltas.
                item.held.clear();
                if delta.is_string() {
                    step.append_arguments(slot, delta);
                } else {
                    step.append_arguments_text(slot, delta.raw());
                }
            }
            None => item.held.push_str(&argument_text(Some(delta))),
        }
    }

    fn arguments_done(&mut self, event: &Json<'_>, key: &str, kind: CallKind, step: &mut Step<'_>) {
        let (at, is_new) = self.items.of_event_or_new(event, Kind::Call(kind));
        forget_if(is_new, step);
        let text = argument_text(event.get(key));
        self.restate(at, &event.nonempty("name").unwrap_or_default(), &text, step);
        // An empty snapshot is no evidence: the real one may follow with the end of the item (P3).
        if !text.is_empty()
            && let Some(slot) = self.items.get(at).slot
        {
            step.seal_call(slot);
        }
    }

    /// A call's whole arguments, which replace what came before; an empty text says nothing.
    fn restate(&mut self, at: usize, name: &str, text: &str, step: &mut Step<'_>) {
        let item = self.items.get(at);
        if item.slot.is_none() && !name.is_empty() {
            self.open(at, name, step);
        }
        let item = self.items.get(at);
        let text = if text.is_empty() { std::mem::take(&mut item.held) } else { text.to_owned() };
        match item.slot {
            Some(slot) if !text.is_empty() => {
                item.held.clear();
                step.restate_arguments(slot, &text);
            }
            Some(_) => {}
            None => item.held = text,
        }
    }

    fn open(&mut self, at: usize, name: &str, step: &mut Step<'_>) -> Slot {
        let key = self.items.key(at);
        let item = self.items.get(at);
        let kind =
            if item.kind == Kind::Call(CallKind::Custom) { CallKind::Custom } else { CallKind::Function };
        let slot = step.open_call(key, CallHead { id: &item.call_id, name, kind });
        item.slot = Some(slot);
        slot
    }
}

/// Argument text of any JSON type: proxies send objects.
fn argument_text<'a>(json: Option<&Json<'a>>) -> Cow<'a, str> {
    json.map_or(Cow::Borrowed(""), |json| json.as_str().unwrap_or(Cow::Borrowed(json.raw())))
}

fn arguments_of<'a>(item: &Json<'a>, kind: Kind) -> Cow<'a, str> {
    argument_text(item.get(if kind == Kind::Call(CallKind::Custom) { "input" } else { "arguments" }))
}

// --- items ---

impl Decoder {
    /// An item's first sight.
    fn opened(&mut self, at: usize, item: &Json<'_>, step: &mut Step<'_>) {
        forget_if(IsNew::Yes, step);
        let kind = self.items.get(at).kind;
        match kind {
            Kind::Call(_) => {
                self.items.get(at).held = arguments_of(item, kind).into_owned();
                if let Some(name) = item.nonempty("name") {
                    self.open(at, &name, step);
                }
            }
            Kind::Unknown => self.report_unknown(&item.nonempty("type").unwrap_or_default(), step),
            Kind::Message | Kind::Reasoning | Kind::Hosted | Kind::Opaque => {}
        }
    }

    /// An item as a whole. `cut`: its end did not come.
    fn told_whole(&mut self, at: usize, item: &Json<'_>, cut: bool, step: &mut Step<'_>) {
        let known = self.items.get(at);
        let kind = known.kind;
        let was_done = std::mem::replace(&mut known.done, true);
        if known.value.is_none() {
            known.value = Some(item.to_value());
        }
        match kind {
            Kind::Call(_) => {
                if known.call_id.is_empty() {
                    known.call_id = call_id(item).into_owned();
                }
                self.restate(at, &item.nonempty("name").unwrap_or_default(), &arguments_of(item, kind), step);
                match self.items.get(at).slot {
                    Some(slot) if !cut && step.has_no_arguments(slot) => self.empty.push(slot),
                    Some(slot) if !cut => step.seal_call(slot),
                    _ => {}
                }
            }
            Kind::Message | Kind::Reasoning => self.texts_of(at, item, step),
            Kind::Hosted if !was_done => hosted(item, step),
            Kind::Hosted | Kind::Opaque | Kind::Unknown => {}
        }
    }

    /// The end of the response, with a snapshot of everything.
    fn terminal(&mut self, response: &Json<'_>, verdict: &str, step: &mut Step<'_>) {
        let status = response.nonempty("status").unwrap_or(Cow::Borrowed(verdict));
        let status = if status == "in_progress" || status == "done" { "completed" } else { status.as_ref() };
        let mut matching = self.items.to_match();
        for (position, item) in response.get("output").map(Json::items).unwrap_or_default().iter().enumerate()
        {
            let (at, is_new) = self.items.of_snapshot(&mut matching, position, item);
            if is_new == IsNew::Yes {
                self.opened(at, item, step);
            }
            let item_status = item.nonempty("status").unwrap_or_default();
            let cut = item_status == "incomplete" || (status != "completed" && item_status != "completed");
            self.told_whole(at, item, cut, step);
        }
        if let Some(usage) = response.get("usage") {
            step.usage(Usage {
                input_tokens: usage.get("input_tokens").and_then(Json::as_u64),
                output_tokens: usage.get("output_tokens").and_then(Json::as_u64),
                cached_input_tokens: usage
                    .path(&["input_tokens_details", "cached_tokens"])
                    .and_then(Json::as_u64),
                cache_written_tokens: None,
                reasoning_tokens: usage
                    .path(&["output_tokens_details", "reasoning_tokens"])
                    .and_then(Json::as_u64),
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
                    message: "the response failed, and the upstream does not say why".to_owned(),
                    ..UpstreamError::default()
                }));
            }
            (_, details) => step.finish(FinishReason::Other, details.unwrap_or(status)),
        }
        step.complete_and_over();
    }

    fn report_unknown(&mut self, kind: &str, step: &mut Step<'_>) {
        if self.unknown.insert(kind.to_owned()) {
            step.problem(ProblemKind::UnknownEvent, kind);
        }
    }
}

/// A new item may take over a number that fragments were sent under before.
fn forget_if(is_new: IsNew, step: &mut Step<'_>) {
    if is_new == IsNew::Yes {
        step.forget_frames();
    }
}

/// Something that the provider did: its name, what it was asked and what it answered.
fn hosted(item: &Json<'_>, step: &mut Step<'_>) {
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
    step.hosted(Hosted {
        id: item.scalar("id").map(Cow::into_owned),
        name: name.into_owned(),
        input,
        output,
    });
}

/// Events that only say that something goes on, or that repeat what others say.
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
