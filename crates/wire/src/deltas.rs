//! Accumulation of chunks that another client has parsed already.

use crate::decoder::{DecodeOptions, StepDecoder};
use crate::dialect::Dialect;
use crate::reply::{ModelReply, ReplyCall};
use crate::vocabulary::StepEvent;
use serde::Serialize;
use serde_json::{Value, json};

/// Adds up the chunks of one reply that arrive as values, as from an OpenAI client library, and returns each
/// call when its arguments are final. The same decoder and the same assembly read them as read bytes: a
/// repeated index, a changed id or a restated argument has the same answer.
///
/// ```
/// use serde_json::json;
/// use throughline_wire::DeltaAccumulator;
///
/// let mut deltas = DeltaAccumulator::default();
/// // A chunk, its `delta`, or an entry of `tool_calls`: whatever is at hand.
/// deltas.push(&json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather"}}));
/// deltas.push(&json!({"index": 0, "function": {"arguments": "{\"city\": \"Bei"}}));
/// deltas.push(&json!({"index": 0, "function": {"arguments": "jing\"}"}}));
/// let reply = deltas.seal();
/// assert!(reply.calls[0].is_complete());
/// assert_eq!(reply.calls[0].text, r#"{"city": "Beijing"}"#);
/// ```
pub struct DeltaAccumulator {
    decoder: StepDecoder,
    dialect: Dialect,
    reply: ModelReply,
    /// True once a chunk had a finish reason.
    stopped: bool,
}

impl Default for DeltaAccumulator {
    /// For chunks of OpenAI Chat Completions.
    fn default() -> Self {
        Self::new(Dialect::OpenaiChat, DecodeOptions::default())
    }
}

impl DeltaAccumulator {
    /// For the events of any dialect, each as the JSON value that its `data:` line holds.
    pub fn new(dialect: Dialect, options: DecodeOptions) -> Self {
        let decoder = StepDecoder::new(dialect, options);
        Self { decoder, dialect, reply: ModelReply::default(), stopped: false }
    }

    /// Takes the next chunk. Returns the calls that are final now, each once. The last call of a reply is final when the
    /// reply is: [`finish`](Self::finish) has all of them.
    ///
    /// A chunk is a [`Value`] or a client library's own type. In OpenAI's form a `delta` alone and a single entry of
    /// `tool_calls` are taken as well. What cannot be written as JSON counts as an event that cannot be read.
    pub fn push(&mut self, chunk: &impl Serialize) -> Vec<ReplyCall> {
        let chunk = serde_json::to_value(chunk).unwrap_or_default();
        let whole = match self.dialect {
            Dialect::OpenaiChat => as_chunk(&chunk),
            _ => None,
        };
        self.take(whole.as_ref().unwrap_or(&chunk))
    }

    /// The reply so far.
    pub fn reply(&self) -> &ModelReply {
        &self.reply
    }

    /// Ends the reply. A reply without a finish reason counts as cut, and its open calls are broken.
    pub fn finish(mut self) -> ModelReply {
        let reply = &mut self.reply;
        self.decoder.finish(&mut |event| reply.apply(event));
        self.reply
    }

    /// Ends a reply that the caller knows to be complete although no chunk had a finish reason, as when only
    /// the entries of `tool_calls` were passed on.
    pub fn seal(mut self) -> ModelReply {
        if self.dialect == Dialect::OpenaiChat && !self.stopped {
            let reason = if self.reply.calls.is_empty() { "stop" } else { "tool_calls" };
            self.take(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}));
        }
        self.finish()
    }

    fn take(&mut self, chunk: &Value) -> Vec<ReplyCall> {
        let (reply, stopped) = (&mut self.reply, &mut self.stopped);
        let mut sealed = Vec::new();
        self.decoder.push_value(chunk, &mut |event| {
            match &event {
                StepEvent::CallSealed { slot, .. } => sealed.push(*slot),
                StepEvent::CallReopened { slot } => sealed.retain(|other| other != slot),
                StepEvent::Finish { .. } => *stopped = true,
                _ => {}
            }
            reply.apply(event);
        });
        let calls = self.reply.calls.iter();
        calls.filter(|call| sealed.contains(&call.slot) && call.is_complete()).cloned().collect()
    }
}

/// A `delta` or an entry of `tool_calls` as a chunk; `None` = it is one.
fn as_chunk(value: &Value) -> Option<Value> {
    let has = |name: &str| value.get(name).is_some();
    if has("choices") || has("usage") || has("error") {
        return None;
    }
    let delta = if has("function") || has("custom") || has("index") {
        json!({ "tool_calls": [value] })
    } else {
        value.clone()
    };
    Some(json!({"choices": [{"index": 0, "delta": delta}]}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(index: u32, id: Option<&str>, name: &str, arguments: &str) -> Value {
        let mut call = json!({"index": index, "function": {"arguments": arguments}});
        if let Some(id) = id {
            call["id"] = id.into();
            call["type"] = "function".into();
            call["function"]["name"] = name.into();
        }
        call
    }

    fn chunk(delta: Value) -> Value {
        json!({"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]})
    }

    fn names(calls: &[ReplyCall]) -> Vec<&str> {
        calls.iter().map(|call| call.name.as_str()).collect()
    }

    /// A chunk with all fields of a client library's type: absent ones are `null`.
    #[derive(Serialize)]
    struct TypedChunk {
        id: String,
        choices: Vec<TypedChoice>,
        usage: Option<u32>,
    }

    #[derive(Serialize)]
    struct TypedChoice {
        index: u32,
        delta: TypedDelta,
        finish_reason: Option<&'static str>,
    }

    #[derive(Default, Serialize)]
    struct TypedDelta {
        content: Option<String>,
        function_call: Option<String>,
        tool_calls: Option<Vec<TypedCall>>,
        refusal: Option<String>,
    }

    #[derive(Serialize)]
    struct TypedCall {
        index: u32,
        id: Option<String>,
        r#type: Option<&'static str>,
        function: TypedFunction,
    }

    #[derive(Serialize)]
    struct TypedFunction {
        name: Option<String>,
        arguments: Option<String>,
    }

    #[test]
    fn typed_client_library_chunks_are_accepted() {
        let piece = |id: Option<&str>, name: Option<&str>, arguments: &str, finish_reason| {
            let function = TypedFunction { name: name.map(Into::into), arguments: Some(arguments.into()) };
            let kind = id.map(|_| "function");
            let call = TypedCall { index: 0, id: id.map(Into::into), r#type: kind, function };
            let delta = TypedDelta { tool_calls: Some(vec![call]), ..TypedDelta::default() };
            let choices = vec![TypedChoice { index: 0, delta, finish_reason }];
            TypedChunk { id: "c".into(), choices, usage: None }
        };
        let mut deltas = DeltaAccumulator::default();
        deltas.push(&piece(Some("call_1"), Some("weather"), "", None));
        deltas.push(&piece(None, None, "{\"city\": \"Bei", None));
        deltas.push(&piece(None, None, "jing\"}", Some("tool_calls")));
        let reply = deltas.finish();
        assert_eq!(
            (names(&reply.calls), reply.calls[0].text.as_str()),
            (vec!["weather"], r#"{"city": "Beijing"}"#)
        );
        assert!(reply.calls[0].is_complete() && reply.problems.is_empty(), "{reply:?}");
        // What has no form in JSON is an event that cannot be read, not a panic.
        let mut deltas = DeltaAccumulator::default();
        assert!(deltas.push(&std::collections::BTreeMap::from([((1, 2), 3)])).is_empty());
    }

    #[test]
    fn each_call_is_returned_once_when_sealed() {
        let mut deltas = DeltaAccumulator::default();
        assert!(deltas.push(&chunk(json!({"role": "assistant", "content": "Let me look."}))).is_empty());
        let first = [call(0, Some("a"), "one", ""), call(0, None, "", "{\"x\":"), call(0, None, "", "1}")];
        let mut sealed = Vec::new();
        for delta in first {
            sealed.extend(deltas.push(&chunk(json!({"tool_calls": [delta]}))));
        }
        sealed.extend(deltas.push(&chunk(json!({"tool_calls": [call(1, Some("b"), "two", "{}")]}))));
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
        sealed.extend(deltas.push(&end));
        assert_eq!(names(&sealed), ["one"], "the next one ends it; the last ends with the reply");
        let reply = deltas.finish();
        assert!(reply.calls.iter().all(ReplyCall::is_complete));
        assert_eq!((reply.text.as_str(), names(&reply.calls)), ("Let me look.", vec!["one", "two"]));
    }

    #[test]
    fn truncated_call_is_incomplete_unless_sealed_by_the_caller() {
        let cut = |deltas: &[Value]| {
            let mut accumulator = DeltaAccumulator::default();
            deltas.iter().for_each(|delta| drop(accumulator.push(delta)));
            accumulator
        };
        let open = [call(0, Some("a"), "one", "{\"x\": 1")];
        assert!(!cut(&open).finish().calls[0].is_complete());
        assert!(
            !cut(&open).seal().calls[0].is_complete(),
            "half a document is none, whatever its caller says"
        );
        let whole = [call(0, Some("a"), "one", ""), call(0, None, "", "{\"x\": 1}")];
        assert!(cut(&whole).seal().calls[0].is_complete());
    }

    #[test]
    fn anthropic_events_are_accepted() {
        let mut deltas = DeltaAccumulator::new(Dialect::Anthropic, DecodeOptions::default());
        let mut sealed = Vec::new();
        for event in [
            json!({"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 3}}}),
            json!({"type": "content_block_start", "index": 0, "content_block":
                {"type": "tool_use", "id": "t", "name": "one", "input": {}}}),
            json!({"type": "content_block_delta", "index": 0, "delta":
                {"type": "input_json_delta", "partial_json": "{\"x\": 1}"}}),
            json!({"type": "content_block_stop", "index": 0}),
        ] {
            sealed.extend(deltas.push(&event));
        }
        assert_eq!(names(&sealed), ["one"]);
    }
}
