//! Stream and body to [`StepWriter`].

use crate::assemble::CallDelta;
use crate::dialect::{DialectDecoder, PayloadFrame};
use crate::json::JsonRef;
use crate::step::{StepWriter, error_of};
use crate::vocabulary::{CallKind, FinishReason, Media, Usage};
use serde_json::{Map, Value, json};

/// State that must be sent back and is not streamed text. Everything else goes straight to the
/// [`StepWriter`].
#[derive(Default)]
pub(crate) struct ChatDecoder {
    /// `reasoning_details[]` of OpenRouter, fragments of one entry joined.
    reasoning_details: Vec<Value>,
    /// `extra_content` of calls in their order (Gemini's `thought_signature` on its compatible endpoint).
    extra_content: Vec<Value>,
    /// Top-level `citations` / `search_results` (Perplexity repeats them on every chunk).
    sources: Option<Value>,
    /// Text or calls of the first choice have come in a `delta`: a `message` after it is the whole of them.
    has_deltas: bool,
}

/// Chunk members that nothing reads.
const IGNORED: &[&str] = &[
    "id",
    "created",
    "model",
    "obfuscation",
    "system_fingerprint",
    "service_tier",
    "provider",
    "native_finish_reason",
];

impl DialectDecoder for ChatDecoder {
    fn decode_event(&mut self, frame: &PayloadFrame<'_>, step: &mut StepWriter<'_>) {
        self.chunk(frame.json, step);
    }

    fn decode_body(&mut self, json: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        self.chunk(json, step);
        step.complete();
    }

    fn finish(&mut self, step: &mut StepWriter<'_>) {
        for source in self.sources.take().iter().filter_map(Value::as_array).flatten() {
            step.citation_value(source.clone());
        }
        let mut echo = Map::new();
        for (name, list) in
            [("reasoning_details", &mut self.reasoning_details), ("extra_content", &mut self.extra_content)]
        {
            if !list.is_empty() {
                echo.insert(name.to_owned(), Value::Array(std::mem::take(list)));
            }
        }
        if !echo.is_empty() {
            step.provider_state(Value::Object(echo));
        }
    }

    fn ignored_members(&self) -> Option<&'static [&'static str]> {
        Some(IGNORED)
    }

    fn ends_with_done(&self) -> bool {
        true
    }
}

impl ChatDecoder {
    fn chunk(&mut self, chunk: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        for choice in chunk.get("choices").map(JsonRef::items).unwrap_or_default() {
            // C4: each choice has its own numbers of calls.
            let index = choice.get("index").and_then(JsonRef::as_u64).unwrap_or(0);
            step.choice(u32::try_from(index).unwrap_or(0));
            self.choice(choice, index == 0, step);
        }
        step.choice(0);
        // C1: usage in a separate chunk, next to choices, or in `x_groq`.
        for usage in [chunk.get("usage"), chunk.path(&["x_groq", "usage"])].into_iter().flatten() {
            read_usage(usage, step);
        }
        for name in ["search_results", "citations"] {
            if let Some(sources) = chunk.get(name).filter(|sources| !sources.items().is_empty()) {
                let sources = sources.to_value();
                if self.sources.as_ref() != Some(&sources) {
                    self.sources = Some(sources);
                    step.invalidate_templates();
                }
                break;
            }
        }
    }

    fn choice(&mut self, choice: &JsonRef<'_>, is_first: bool, step: &mut StepWriter<'_>) {
        // C2: `delta` if it is an object, else `message`; never both.
        let [delta, message] = ["delta", "message"].map(|name| choice.get(name).filter(|it| it.is_object()));
        match (delta, message) {
            (Some(delta), _) => {
                self.delta(delta, is_first, step);
                self.has_deltas |= is_first && has_content(delta);
            }
            (None, Some(message)) if is_first && self.has_deltas && is_closing(choice, message, step) => {
                self.closing_message(message, step);
            }
            (None, Some(message)) => self.delta(message, is_first, step),
            (None, None) => {}
        }
        if let Some(usage) = choice.get("usage") {
            read_usage(usage, step);
        }
        // F4: "" is no reason; F3: the last one counts.
        if let Some(reason) = choice.nonempty("finish_reason") {
            step.finish(finish_reason(&reason), &reason);
            if is_first {
                step.complete();
            }
        }
        // OpenRouter: an error of the provider during its reply.
        // https://openrouter.ai/docs/api/reference/errors-and-debugging
        if is_first
            && choice.get("error").is_some_and(JsonRef::is_object)
            && let Some(error) = error_of(choice)
        {
            step.fail(error);
        }
    }

    /// The streamed message again, whole, in the last chunk (abundantbeing/hermes-browser-extension#11,
    /// raullenchai/Rapid-MLX#1709). Missing parts are added and nothing is repeated: its n-th call is the
    /// n-th streamed one.
    fn closing_message(&mut self, message: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        if let Some(text) = message.nonempty("content") {
            step.text_snapshot(&text);
        }
        let streamed = step.call_count();
        for (nth, entry) in
            message.get("tool_calls").map(JsonRef::items).unwrap_or_default().iter().enumerate()
        {
            self.call_entry(entry, true, step, |delta, step| {
                if nth >= streamed || !step.repeat_call(nth, &delta) {
                    step.call_delta(delta);
                }
            });
        }
        step.require_full_decode();
    }

    /// All members of a delta, reasoning first, calls last: proxies put all of them in one.
    fn delta(&mut self, delta: &JsonRef<'_>, is_first: bool, step: &mut StepWriter<'_>) {
        self.reasoning(delta, is_first, step);
        if let Some(content) = delta.get("content") {
            content_parts(content, step);
        }
        if let Some(refusal) = delta.get("refusal") {
            step.refusal(refusal);
        }
        if let Some(audio) = delta.get("audio") {
            let data = audio.nonempty("data").unwrap_or_default();
            let transcript = audio.nonempty("transcript").unwrap_or_default();
            if !data.is_empty() || !transcript.is_empty() {
                step.audio(&data, &transcript);
            }
        }
        for image in delta.get("images").map(JsonRef::items).unwrap_or_default() {
            image_part(image, step);
        }
        for annotation in delta.get("annotations").map(JsonRef::items).unwrap_or_default() {
            step.citation(annotation);
        }
        if let Some(calls) = delta.get("tool_calls") {
            // T17: an object instead of an array is one entry.
            let entries = if calls.is_object() { std::slice::from_ref(calls) } else { calls.items() };
            for entry in entries {
                self.call_entry(entry, is_first, step, |delta, step| step.call_delta(delta));
            }
        }
        // T18: the legacy form is one call without id.
        if let Some(call) = delta.get("function_call").filter(|call| call.is_object()) {
            let name = call.nonempty("name").unwrap_or_default();
            step.call_delta(CallDelta {
                index: Some(0),
                id: "",
                name: &name,
                arguments: call.get("arguments"),
                kind: CallKind::Function,
            });
        }
    }

    /// Reasoning from any of its fields; the same text in two fields counts once.
    fn reasoning(&mut self, delta: &JsonRef<'_>, is_first: bool, step: &mut StepWriter<'_>) {
        let details = delta.get("reasoning_details").map(JsonRef::items).unwrap_or_default();
        if is_first && !details.is_empty() {
            for detail in details {
                self.merge_detail(detail);
            }
            step.require_full_decode();
        }
        let fields = ["reasoning_content", "reasoning", "reasoning_text", "thinking"];
        let field = fields
            .iter()
            .filter_map(|name| delta.get(name))
            .find(|field| field.string_body().is_some_and(|body| !body.is_empty()));
        match field {
            Some(field) => step.thinking(field),
            None => {
                for text in
                    details.iter().filter_map(|detail| detail.get("text").or_else(|| detail.get("summary")))
                {
                    step.thinking(text);
                }
            }
        }
    }

    /// Streamed entries of one `index` and `type` are one entry cut in pieces.
    fn merge_detail(&mut self, detail: &JsonRef<'_>) {
        let value = detail.to_value();
        let same = |known: &&mut Value| known["type"] == value["type"] && known["index"] == value["index"];
        let known = self.reasoning_details.last_mut().filter(|_| !value["index"].is_null()).filter(same);
        let (Some(Value::Object(known)), Value::Object(new)) = (known, &value) else {
            self.reasoning_details.push(value);
            return;
        };
        for (name, new) in new {
            match (known.get_mut(name), new) {
                (Some(Value::String(text)), Value::String(more))
                    if matches!(name.as_str(), "text" | "summary" | "data") =>
                {
                    text.push_str(more);
                }
                (_, Value::Null) => {}
                _ => {
                    known.insert(name.clone(), new.clone());
                }
            }
        }
    }

    fn call_entry<'s>(
        &mut self,
        entry: &JsonRef<'_>,
        is_first: bool,
        step: &mut StepWriter<'s>,
        apply: impl FnOnce(CallDelta<'_>, &mut StepWriter<'s>),
    ) {
        let custom = entry.get("custom").filter(|custom| custom.is_object());
        let (function, kind) = match custom {
            Some(custom) => (Some(custom), CallKind::Custom),
            None => (entry.get("function").filter(|function| function.is_object()), CallKind::Function),
        };
        let name = function.and_then(|function| function.nonempty("name")).unwrap_or_default();
        let id = entry.scalar("id").unwrap_or_default();
        let arguments =
            function.and_then(|function| function.get("arguments").or_else(|| function.get("input")));
        let index = entry.get("index").and_then(JsonRef::as_i64);
        apply(CallDelta { index, id: &id, name: &name, arguments, kind }, step);
        if let Some(extra) = entry.get("extra_content").filter(|_| is_first) {
            let extra = json!({ "id": id, "value": extra.to_value() });
            if !self.extra_content.contains(&extra) {
                self.extra_content.push(extra);
            }
            step.require_full_decode();
        }
    }
}

/// True for a `message` that repeats the whole streamed reply and is not an increment: the reply ends with
/// it, or its text repeats everything.
fn is_closing(choice: &JsonRef<'_>, message: &JsonRef<'_>, step: &mut StepWriter<'_>) -> bool {
    choice.nonempty("finish_reason").is_some()
        || step.is_finished()
        || message.nonempty("content").is_some_and(|text| step.is_more_of_text(&text))
}

/// A delta with more than a role.
fn has_content(delta: &JsonRef<'_>) -> bool {
    let content = delta.get("content");
    ["content", "reasoning_content", "reasoning"].iter().any(|name| delta.nonempty(name).is_some())
        || content.is_some_and(|parts| !parts.items().is_empty())
        || delta.get("tool_calls").is_some_and(|calls| !calls.items().is_empty())
}

/// Text, or parts (Mistral's Magistral).
fn content_parts(content: &JsonRef<'_>, step: &mut StepWriter<'_>) {
    if content.is_string() {
        return step.text(content);
    }
    for part in content.items() {
        match part.get("type").and_then(JsonRef::as_str).as_deref() {
            Some("thinking") => {
                let thinking = part.get("thinking");
                match thinking.filter(|thinking| thinking.is_string()) {
                    Some(text) => step.thinking(text),
                    None => {
                        let texts = thinking.map(JsonRef::items).unwrap_or_default();
                        texts.iter().filter_map(|text| text.get("text")).for_each(|text| step.thinking(text));
                    }
                }
            }
            Some("image_url") => image_part(part, step),
            Some("reference") => step.citation(part),
            _ => {
                if let Some(text) = part.get("text") {
                    step.text(text);
                }
            }
        }
    }
}

/// `{"image_url": {"url": "data:image/png;base64,…"}}`. Pictures that would have to be fetched are only named.
fn image_part(part: &JsonRef<'_>, step: &mut StepWriter<'_>) {
    let Some(image) = part.get("image_url") else { return };
    let Some(url) = image.as_str().or_else(|| image.nonempty("url")) else { return };
    match url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        Some((media_type, data)) => {
            step.image(Media::new(media_type.to_owned(), data.to_owned()));
        }
        None => step.citation(part),
    }
}

fn read_usage(usage: &JsonRef<'_>, step: &mut StepWriter<'_>) {
    let number = |path: &[&str]| usage.path(path).and_then(JsonRef::as_u64);
    let read = Usage {
        input_tokens: number(&["prompt_tokens"]).or_else(|| number(&["input_tokens"])),
        output_tokens: number(&["completion_tokens"]).or_else(|| number(&["output_tokens"])),
        cached_input_tokens: number(&["prompt_tokens_details", "cached_tokens"])
            .or_else(|| number(&["prompt_cache_hit_tokens"])),
        cache_written_tokens: None,
        reasoning_tokens: number(&["completion_tokens_details", "reasoning_tokens"]),
    };
    if read != Usage::default() {
        step.usage(read);
    }
}

fn finish_reason(raw: &str) -> FinishReason {
    match raw.to_ascii_lowercase().as_str() {
        "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" | "completed" => FinishReason::Stop,
        "tool_calls" | "function_call" | "tool_use" => FinishReason::ToolCalls,
        "length" | "max_tokens" | "model_length" => FinishReason::Length,
        "content_filter" | "safety" | "recitation" | "refusal" | "sensitive" => FinishReason::ContentFilter,
        "error" | "network_error" => FinishReason::Error,
        _ => FinishReason::Other,
    }
}
