//! Lines of `/api/chat` (`message`) and `/api/generate` (`response`) to [`StepWriter`].
//!
//! Calls come whole, in any line up to and including the one with `done`; lists of several lines add up.

use crate::assemble::CallHead;
use crate::dialect::{DialectDecoder, PayloadFrame};
use crate::json::JsonRef;
use crate::step::{StepWriter, error_of};
use crate::vocabulary::{CallKind, FinishReason, ProblemKind, Usage};
use std::borrow::Cow;
use std::collections::HashMap;

#[derive(Default)]
pub(crate) struct OllamaDecoder {
    /// First use of each id: (`index`, name, arguments).
    by_id: HashMap<String, (String, String, String)>,
}

impl DialectDecoder for OllamaDecoder {
    fn decode_event(&mut self, frame: &PayloadFrame<'_>, step: &mut StepWriter<'_>) {
        self.line(frame.json, step);
    }

    /// One line that was printed over several, or `stream: false`: the same object.
    fn decode_body(&mut self, json: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        self.line(json, step);
    }
}

impl OllamaDecoder {
    fn line(&mut self, line: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        if let Some(error) = error_of(line) {
            step.fail(error);
            return;
        }
        let message = line.get("message");
        for source in [Some(line), message].into_iter().flatten() {
            if let Some(thinking) = source.get("thinking") {
                step.thinking(thinking);
            }
        }
        if let Some(text) = line.get("response") {
            step.text(text);
        }
        if let Some(text) = message.and_then(|message| message.get("content")) {
            step.text(text);
        }
        match message.and_then(|message| message.get("tool_calls")) {
            Some(call) if call.is_object() => self.call(call, step),
            Some(calls) => calls.items().iter().for_each(|call| self.call(call, step)),
            None => {}
        }
        read_usage(line, step);
        if line.get("done").and_then(JsonRef::as_bool) == Some(true) {
            // Early servers give no reason; a reply that is done has stopped (`syn-oll-no-done-reason`).
            let raw = line.nonempty("done_reason").unwrap_or(Cow::Borrowed("stop"));
            let reason = match raw.as_ref() {
                "stop" => FinishReason::Stop,
                "length" => FinishReason::Length,
                _ => FinishReason::Other,
            };
            step.finish(reason, &raw);
            step.complete_and_end();
        }
    }

    fn call(&mut self, call: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        let function = call.get("function");
        let id = call.scalar("id").unwrap_or_default();
        let name = function.and_then(|function| function.nonempty("name")).unwrap_or_default();
        let arguments = function.and_then(|function| function.get("arguments"));
        let text = match arguments {
            None => Cow::Borrowed(""),
            Some(json) => json.as_str().unwrap_or(Cow::Borrowed(json.raw())),
        };
        if id.is_empty() && name.is_empty() && text.is_empty() {
            step.problem(ProblemKind::PhantomCall, call.raw());
            return;
        }
        if !id.is_empty() {
            // The index alone is no evidence: it is 0 for every call of some versions (O1).
            let index = function.and_then(|function| function.scalar("index")).unwrap_or_default();
            let this = (index.into_owned(), name.clone().into_owned(), text.clone().into_owned());
            match self.by_id.get(id.as_ref()) {
                // Proxies send the list again with the line that has `done` (T15).
                Some(before) if *before == this => {
                    step.problem(ProblemKind::IdChanged, call.raw());
                    return;
                }
                Some(_) => {}
                None => drop(self.by_id.insert(id.clone().into_owned(), this)),
            }
        }
        step.complete_call(CallHead { id: &id, name: &name, kind: CallKind::Function }, &text);
    }
}

fn read_usage(line: &JsonRef<'_>, step: &mut StepWriter<'_>) {
    let input_tokens = line.get("prompt_eval_count").and_then(JsonRef::as_u64);
    let output_tokens = line.get("eval_count").and_then(JsonRef::as_u64);
    if input_tokens.is_some() || output_tokens.is_some() {
        step.usage(Usage { input_tokens, output_tokens, ..Usage::default() });
    }
}
