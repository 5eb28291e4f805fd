//! Quirks of the bytes: the written reply, event by event, changed as servers with the quirk write it.

use super::PlantedQuirk as Q;
use crate::dialect::FakeDialect;
use crate::fake_ids::garbage;
use crate::parsed_request::{ParsedRequest, ReplyDelivery};
use crate::response::{ResponseStep, ScriptedResponse};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Bytes of noise instead of a stream.
const NOISE_BYTES: u32 = 96;

/// Changes a streamed reply.
pub(crate) fn rewrite(
    quirks: &[Q],
    seen: &ParsedRequest,
    mut response: ScriptedResponse,
) -> ScriptedResponse {
    if seen.delivery == ReplyDelivery::Whole || response.status != 200 {
        return response;
    }
    for quirk in quirks.iter().filter(|quirk| quirk.dialects().contains(&seen.dialect)) {
        if *quirk == Q::BrokenStream {
            response.steps = vec![ResponseStep::Bytes(garbage(NOISE_BYTES))];
            return response;
        }
        // Frames are no text; what changes the events of a reply is for others.
        if seen.dialect.streams_frames() {
            continue;
        }
        let mut rewriter = EventRewriter { quirk: *quirk, dialect: seen.dialect, arguments: BTreeMap::new() };
        for step in &mut response.steps {
            if let ResponseStep::Bytes(bytes) = step {
                *bytes = rewriter.events(&String::from_utf8_lossy(bytes)).into_bytes();
            }
        }
    }
    response
}

struct EventRewriter {
    quirk: Q,
    dialect: FakeDialect,
    /// Argument text so far, by the call's index.
    arguments: BTreeMap<u64, String>,
}

impl EventRewriter {
    /// The events in a piece of the body.
    fn events(&mut self, text: &str) -> String {
        if self.dialect == FakeDialect::Ollama {
            return text.split_inclusive('\n').map(|line| self.line(line)).collect();
        }
        let mut out = String::new();
        for event in text.split_inclusive("\n\n") {
            if self.quirk == Q::Comments {
                out.push_str(": keep-alive\n\n");
            }
            let is_end = event.contains("data: [DONE]") || event.starts_with("event: message_stop");
            if self.quirk == Q::NoEndMarker && is_end {
                continue;
            }
            let Some((head, data)) = event.split_once("data: ") else {
                out.push_str(event);
                continue;
            };
            match serde_json::from_str::<Value>(data.trim_end()) {
                Ok(mut payload) => {
                    if self.change(&mut payload) {
                        out.push_str(&format!("{head}data: {payload}\n\n"));
                    }
                }
                Err(_) => out.push_str(event),
            }
        }
        out
    }

    fn line(&mut self, line: &str) -> String {
        let Ok(mut payload) = serde_json::from_str::<Value>(line) else { return line.to_owned() };
        if self.change(&mut payload) { format!("{payload}\n") } else { String::new() }
    }

    /// False if the event is left out.
    fn change(&mut self, payload: &mut Value) -> bool {
        if self.quirk == Q::NoStreamUsage {
            return without_usage(payload);
        }
        match self.dialect {
            FakeDialect::OpenaiChat => self.change_chunk(payload),
            FakeDialect::Anthropic => self.change_anthropic(payload),
            _ => {}
        }
        true
    }

    fn change_chunk(&mut self, chunk: &mut Value) {
        let Some(choice) = chunk.pointer_mut("/choices/0") else { return };
        match self.quirk {
            Q::FinishEveryChunk if choice["finish_reason"].is_null() => {
                choice["finish_reason"] = "stop".into()
            }
            Q::NoFinishReason => choice["finish_reason"] = Value::Null,
            Q::StopWithCalls if choice["finish_reason"] == "tool_calls" => {
                choice["finish_reason"] = "stop".into();
            }
            _ => {}
        }
        let Some(delta) = choice.get_mut("delta").and_then(Value::as_object_mut) else { return };
        if self.quirk == Q::ThinksInReasoning
            && let Some(text) = delta.remove("reasoning_content")
        {
            delta.insert("reasoning".to_owned(), text);
        }
        for call in delta.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
            self.change_call(call);
        }
    }

    fn change_call(&mut self, call: &mut Value) {
        let index = call["index"].as_u64().unwrap_or_default();
        let is_opening = call.get("id").is_some();
        let Some(fields) = call.as_object_mut() else { return };
        match self.quirk {
            Q::ZeroIndex => _ = fields.insert("index".to_owned(), json!(0)),
            Q::NoIndex => _ = fields.remove("index"),
            Q::NoCallIds => _ = fields.remove("id"),
            Q::RepeatedCallIds if is_opening => _ = fields.insert("id".to_owned(), json!("call_1")),
            Q::EmptyNames if !is_opening => call["function"]["name"] = "".into(),
            Q::PlaceholderArguments if is_opening => call["function"]["arguments"] = "{}".into(),
            Q::CumulativeArguments => {
                let text = self.cumulative(index, call.pointer("/function/arguments"));
                call["function"]["arguments"] = text.into();
            }
            _ => {}
        }
    }

    fn change_anthropic(&mut self, event: &mut Value) {
        match self.quirk {
            Q::StopWithCalls if event.pointer("/delta/stop_reason") == Some(&json!("tool_use")) => {
                event["delta"]["stop_reason"] = "end_turn".into();
            }
            Q::CumulativeArguments if event.pointer("/delta/partial_json").is_some() => {
                let index = event["index"].as_u64().unwrap_or_default();
                let text = self.cumulative(index, event.pointer("/delta/partial_json"));
                event["delta"]["partial_json"] = text.into();
            }
            _ => {}
        }
    }

    fn cumulative(&mut self, index: u64, fragment: Option<&Value>) -> String {
        let so_far = self.arguments.entry(index).or_default();
        so_far.push_str(fragment.and_then(Value::as_str).unwrap_or_default());
        so_far.clone()
    }
}

/// Removes token counts, at every provider's position. False if nothing is left to send.
fn without_usage(payload: &mut Value) -> bool {
    let was_usage_only = payload["choices"].as_array().is_some_and(Vec::is_empty);
    for pointer in ["", "/message", "/response", "/delta"] {
        if let Some(fields) = payload.pointer_mut(pointer).and_then(Value::as_object_mut) {
            for name in ["usage", "usageMetadata", "prompt_eval_count", "eval_count"] {
                fields.remove(name);
            }
        }
    }
    !was_usage_only
}
