//! A reply as it came over the wire, before decoding puts it right: decoders hide quirks, and a measurement looks for them.

use serde_json::Value;
use throughline_wire::Dialect;

/// Events of a streamed body.
#[derive(Debug, Default)]
pub(super) struct RawReply {
    /// The body consists of events, not of one document.
    pub is_stream: bool,
    /// Comments between the events.
    pub comments: usize,
    /// The end marker came, or the dialect has none.
    pub has_end_marker: bool,
    /// The events, as far as they are JSON.
    pub events: Vec<Value>,
}

/// One call of a Chat Completions or Anthropic stream.
#[derive(Debug, Default)]
pub(super) struct RawCall {
    pub index: Option<u64>,
    pub id: Option<String>,
    /// Argument text, piece by piece, without empty ones.
    pub fragments: Vec<String>,
    /// A later piece has an empty name.
    pub has_empty_name: bool,
}

impl RawReply {
    pub(super) fn read(dialect: Dialect, bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        if dialect == Dialect::Ollama {
            let events: Vec<Value> =
                text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            return Self { is_stream: events.len() > 1, has_end_marker: true, comments: 0, events };
        }
        if matches!(dialect, Dialect::BedrockConverse | Dialect::BedrockAnthropic) {
            // Binary frames, whose quirks are not known yet; a plain reply is JSON.
            let is_stream = !text.trim_start().starts_with('{');
            return Self { is_stream, has_end_marker: true, ..Self::default() };
        }
        let mut reply = Self::default();
        let mut has_done = false;
        for line in text.lines() {
            if let Some(data) = line.strip_prefix("data:") {
                reply.is_stream = true;
                has_done |= data.trim() == "[DONE]";
                reply.events.extend(serde_json::from_str::<Value>(data.trim()).ok());
            } else if line.starts_with(':') {
                reply.comments += 1;
            }
        }
        reply.has_end_marker = match dialect {
            Dialect::OpenaiChat => has_done,
            Dialect::Anthropic => reply.events.iter().any(|event| event["type"] == "message_stop"),
            _ => true,
        };
        reply
    }

    /// Deltas of Chat Completions.
    pub(super) fn deltas(&self) -> impl Iterator<Item = &Value> {
        self.events.iter().filter_map(|event| event.pointer("/choices/0/delta"))
    }

    /// Finish reasons as sent, of Chat Completions and Anthropic.
    pub(super) fn finishes(&self) -> Vec<&str> {
        let reasons = self.events.iter().map(|event| {
            let chat = event.pointer("/choices/0/finish_reason").and_then(Value::as_str);
            chat.or_else(|| event.pointer("/delta/stop_reason").and_then(Value::as_str))
        });
        reasons.flatten().collect()
    }

    /// Calls in the order in which they were opened.
    pub(super) fn calls(&self, dialect: Dialect) -> Vec<RawCall> {
        match dialect {
            Dialect::OpenaiChat => self.chat_calls(),
            Dialect::Anthropic => self.anthropic_calls(),
            _ => Vec::new(),
        }
    }

    fn chat_calls(&self) -> Vec<RawCall> {
        let mut calls: Vec<RawCall> = Vec::new();
        let entries = self.deltas().filter_map(|delta| delta["tool_calls"].as_array()).flatten();
        for entry in entries {
            let name = entry.pointer("/function/name").and_then(Value::as_str);
            let index = entry["index"].as_u64();
            if name.is_some_and(|name| !name.is_empty()) {
                let id = entry["id"].as_str().map(str::to_owned);
                calls.push(RawCall { index, id, ..RawCall::default() });
            }
            let same_index = calls.iter().filter(|call| call.index == index).count() == 1;
            let at = match calls.iter().position(|call| call.index == index) {
                Some(at) if same_index && index.is_some() => at,
                _ => calls.len().saturating_sub(1),
            };
            let Some(call) = calls.get_mut(at) else { continue };
            call.has_empty_name |= name == Some("");
            let fragment = entry.pointer("/function/arguments").and_then(Value::as_str).unwrap_or_default();
            call.push(fragment);
        }
        calls
    }

    fn anthropic_calls(&self) -> Vec<RawCall> {
        let mut calls: Vec<RawCall> = Vec::new();
        for event in &self.events {
            let index = event["index"].as_u64();
            if event.pointer("/content_block/type").is_some_and(|kind| kind == "tool_use") {
                let id = event.pointer("/content_block/id").and_then(Value::as_str).map(str::to_owned);
                calls.push(RawCall { index, id, ..RawCall::default() });
            } else if let Some(fragment) = event.pointer("/delta/partial_json").and_then(Value::as_str)
                && let Some(call) = calls.iter_mut().find(|call| call.index == index)
            {
                call.push(fragment);
            }
        }
        calls
    }
}

impl RawCall {
    fn push(&mut self, fragment: &str) {
        if !fragment.is_empty() {
            self.fragments.push(fragment.to_owned());
        }
    }

    /// True if each fragment begins with the one before, and only the last is the whole arguments.
    pub(super) fn is_cumulative(&self) -> bool {
        let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok();
        self.fragments.len() > 1
            && self.fragments.windows(2).all(|pair| pair[1].starts_with(&pair[0]))
            && self.fragments.last().is_some_and(|last| is_json(last))
            && !is_json(&self.fragments.concat())
    }

    pub(super) fn has_placeholder(&self) -> bool {
        self.fragments.len() > 1 && self.fragments[0].trim() == "{}"
    }
}
