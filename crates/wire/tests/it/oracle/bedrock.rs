//! AWS Bedrock: Converse, and Anthropic bodies inside InvokeModelWithResponseStream.

use super::OracleOutcome;
use super::anthropic::Reader;
use super::draft::{Draft, DraftCall, error_message, string};
use super::frames::{base64, event_stream};
use super::surrogates::parse;
use serde_json::Value;

pub fn read_anthropic(body: &[u8]) -> OracleOutcome {
    let mut reader = Reader::default();
    for (kind, name, payload) in event_stream(body) {
        let value = parse(&String::from_utf8_lossy(&payload)).unwrap_or_default();
        if kind != "event" {
            reader.fail(&value);
        } else if name == "chunk" {
            let inner = base64(value["bytes"].as_str().unwrap_or_default());
            reader.event("", &parse(&String::from_utf8_lossy(&inner)).unwrap_or_default());
        }
    }
    reader.settle()
}

pub fn read_converse(body: &[u8]) -> OracleOutcome {
    let mut draft = Draft::default();
    let mut numbers: Vec<(Value, usize)> = Vec::new();
    let mut hosted = Vec::new();
    for (kind, name, payload) in event_stream(body) {
        let value = parse(&String::from_utf8_lossy(&payload)).unwrap_or_default();
        if kind != "event" {
            draft.fail(error_message(&value).unwrap_or(name));
            continue;
        }
        let number = &value["contentBlockIndex"];
        let position = numbers.iter().rfind(|(known, _)| known == number).map(|(_, at)| *at);
        match name.as_str() {
            "contentBlockStart" => {
                let call = &value["start"]["toolUse"];
                if call["type"] == "server_tool_use" {
                    hosted.push(number.clone());
                }
                if call.is_object() && call["type"] != "server_tool_use" {
                    numbers.push((number.clone(), draft.calls.len()));
                    draft.calls.push(DraftCall {
                        id: string(call, "toolUseId"),
                        name: string(call, "name").unwrap_or_default(),
                        ..DraftCall::default()
                    });
                }
            }
            "contentBlockDelta" => {
                let delta = &value["delta"];
                draft.text += delta["text"].as_str().unwrap_or_default();
                draft.reasoning += delta["reasoningContent"]["text"].as_str().unwrap_or_default();
                match (position, string(&delta["toolUse"], "input")) {
                    (Some(at), input) => draft.calls[at].fragments.extend(input),
                    (None, Some(input)) if !hosted.contains(number) => {
                        let known = draft.calls.len();
                        draft.stray(Some(input));
                        if draft.calls.len() > known {
                            numbers.push((number.clone(), known));
                        }
                    }
                    (None, _) => {}
                }
            }
            "contentBlockStop" => {
                if let Some(at) = position {
                    draft.calls[at].is_closed = true;
                }
            }
            "messageStop" => {
                draft.is_complete = true;
                draft.finish = string(&value, "stopReason");
            }
            "metadata" => draft.use_tokens(&value["usage"]["inputTokens"], &value["usage"]["outputTokens"]),
            _ => {}
        }
    }
    draft.settle(|raw| match raw {
        "end_turn" | "tool_use" | "stop_sequence" => "stop",
        "max_tokens" | "model_context_window_exceeded" => "length",
        "guardrail_intervened" | "content_filtered" => "content_filter",
        _ => "other",
    })
}
