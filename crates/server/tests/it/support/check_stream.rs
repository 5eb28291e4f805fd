//! The rules of a Chat Completions stream, as strict as the strictest known client (docs/openai-clients.md), read from
//! bytes and from nothing else.

#![allow(dead_code, reason = "each test file uses its part")]

use serde_json::Value;
use std::collections::BTreeSet;

/// The content that a client gets out of a stream that breaks no rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answer {
    pub id: String,
    pub model: String,
    pub content: String,
    pub refusal: String,
    pub reasoning: String,
    /// Id, name and arguments of what the client is to run.
    pub calls: Vec<(String, String, Value)>,
    /// Pieces in which the first of them arrived, if it was not in one.
    pub fragments: usize,
    pub finish: Option<String>,
    pub usage: Option<Value>,
    /// Values under `throughline`.
    pub events: Vec<Value>,
    /// Values under `event`, for Open WebUI.
    pub statuses: Vec<Value>,
    pub error: Option<Value>,
    /// Signs of life.
    pub comments: usize,
}

impl Answer {
    /// The types of the events, in order.
    pub(crate) fn event_types(&self) -> Vec<&str> {
        self.events.iter().filter_map(|event| event["type"].as_str()).collect()
    }
}

/// Reads a whole stream, and panics at the first broken rule.
pub(crate) fn check_stream(bytes: &[u8]) -> Answer {
    read(bytes).unwrap_or_else(|broken| panic!("{broken}\nin:\n{}", String::from_utf8_lossy(bytes)))
}

/// As [`check_stream`], with a broken rule as an error.
pub(crate) fn read(bytes: &[u8]) -> Result<Answer, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    need(!text.contains('\r'), "a line ends with CR: @ag-ui/client cannot read it")?;
    let text = text.strip_prefix(": open\n\n").ok_or("the first bytes are not `: open`")?;
    let text = text.strip_suffix("\n\n").ok_or("the last frame is not closed")?;
    let mut reader = Reader::default();
    for frame in text.split("\n\n") {
        reader.frame(frame)?;
    }
    reader.end()
}

#[derive(Default)]
struct Reader {
    answer: Answer,
    created: Option<Value>,
    stage: Stage,
    /// Arguments of the calls so far.
    arguments: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
enum Stage {
    #[default]
    Begin,
    Speaks,
    Finished,
    ToldUsage,
    Failed,
    Done,
}

fn need(holds: bool, rule: impl Into<String>) -> Result<(), String> {
    if holds { Ok(()) } else { Err(rule.into()) }
}

impl Reader {
    fn frame(&mut self, frame: &str) -> Result<(), String> {
        need(self.stage != Stage::Done, format!("behind [DONE]: {frame}"))?;
        need(!frame.contains('\n') && !frame.is_empty(), format!("a frame is one line: {frame:?}"))?;
        if frame.starts_with(':') {
            self.answer.comments += 1;
            return Ok(());
        }
        let data = frame.strip_prefix("data: ").ok_or(format!("neither comment nor data: {frame}"))?;
        if data == "[DONE]" {
            let is_last = matches!(self.stage, Stage::Finished | Stage::ToldUsage | Stage::Failed);
            need(is_last, "[DONE] without a finish or an error")?;
            self.stage = Stage::Done;
            return Ok(());
        }
        let chunk: Value = serde_json::from_str(data).map_err(|error| format!("{error}: {data}"))?;
        match chunk.get("error") {
            Some(error) => self.error(error),
            None => self.chunk(&chunk),
        }
    }

    fn error(&mut self, error: &Value) -> Result<(), String> {
        need(self.stage == Stage::Speaks, "an error in front of the role or behind the finish")?;
        let has = |name: &str| error[name].as_str().is_some_and(|text| !text.is_empty());
        need(has("message") && has("type") && has("code"), format!("an error without words: {error}"))?;
        need(self.are_calls_incomplete(), "an error behind a call that can be run")?;
        self.answer.error = Some(error.clone());
        self.stage = Stage::Failed;
        Ok(())
    }

    fn chunk(&mut self, chunk: &Value) -> Result<(), String> {
        let keys: BTreeSet<&str> =
            chunk.as_object().ok_or("a chunk is no object")?.keys().map(String::as_str).collect();
        let known =
            BTreeSet::from(["id", "object", "created", "model", "choices", "usage", "throughline", "event"]);
        need(keys.is_subset(&known), format!("unknown keys: {keys:?}"))?;
        need(chunk["object"] == "chat.completion.chunk", "another object")?;
        let (id, model) = (chunk["id"].as_str().ok_or("no id")?, chunk["model"].as_str().ok_or("no model")?);
        need(chunk["created"].is_i64(), "`created` is no whole number")?;
        if self.stage == Stage::Begin {
            (self.answer.id, self.answer.model) = (id.to_owned(), model.to_owned());
            self.created = Some(chunk["created"].clone());
        }
        let same = self.answer.id == id
            && self.answer.model == model
            && self.created.as_ref() == Some(&chunk["created"]);
        need(same, "id, model and creation are not the same on all chunks: LangChain joins them")?;
        match chunk["choices"].as_array().map(Vec::as_slice) {
            Some([choice]) => self.choice(chunk, choice),
            Some([]) => {
                need(self.stage == Stage::Finished, "no choice in mid-stream: `chunk.choices[0]` fails")?;
                need(chunk["usage"].is_object(), "neither choice nor usage")?;
                self.answer.usage = Some(chunk["usage"].clone());
                self.stage = Stage::ToldUsage;
                Ok(())
            }
            _ => Err(format!("not one choice: {chunk}")),
        }
    }

    fn choice(&mut self, chunk: &Value, choice: &Value) -> Result<(), String> {
        need(self.stage <= Stage::Speaks, format!("behind the finish: {chunk}"))?;
        need(choice["index"] == 0, "another index")?;
        need(chunk.get("usage").is_none(), "usage beside a choice: openai-py's last chunk wins")?;
        let delta = choice["delta"].as_object().ok_or("no delta")?;
        let things: Vec<&str> = delta.keys().map(String::as_str).collect();
        if self.stage == Stage::Begin {
            need(
                things == ["role", "content"] && delta["role"] == "assistant" && delta["content"] == "",
                "the first chunk is not the role",
            )?;
            need(choice["finish_reason"].is_null(), "a finish on the role's chunk")?;
            self.stage = Stage::Speaks;
            return Ok(());
        }
        need(!things.contains(&"role"), "a second role: openai-py says `assistantassistant`")?;
        if let Some(event) = chunk.get("throughline") {
            need(things.is_empty(), "an event on a chunk that says something else")?;
            need(event["type"].is_string(), "an event without type")?;
            self.answer.events.push(event.clone());
        }
        if let Some(status) = chunk.get("event") {
            need(
                status["type"] == "status" && status["data"]["description"].is_string(),
                "no status of Open WebUI",
            )?;
            self.answer.statuses.push(status.clone());
        }
        if let Some(finish) = choice["finish_reason"].as_str() {
            need(
                things.is_empty() && chunk.get("throughline").is_none(),
                "content on the finish chunk: LobeChat loses it",
            )?;
            need(
                ["stop", "length", "tool_calls", "content_filter"].contains(&finish),
                format!("finish `{finish}`"),
            )?;
            let has_calls = !self.answer.calls.is_empty();
            need(has_calls == (finish == "tool_calls"), "calls and finish do not agree")?;
            for (call, text) in self.answer.calls.iter_mut().zip(&self.arguments) {
                call.2 = serde_json::from_str(text).map_err(|error| format!("{error}: {text}"))?;
            }
            self.answer.finish = Some(finish.to_owned());
            self.stage = Stage::Finished;
            return Ok(());
        }
        match things.as_slice() {
            [] => need(chunk.get("throughline").is_some(), "a chunk that says nothing"),
            ["tool_calls"] => self.calls(&delta["tool_calls"]),
            [name @ ("content" | "refusal" | "reasoning_content")] => {
                let text = delta[*name].as_str().filter(|text| !text.is_empty()).ok_or("an empty delta")?;
                need(self.are_calls_incomplete(), "text behind calls")?;
                match *name {
                    "content" => self.answer.content.push_str(text),
                    "refusal" => self.answer.refusal.push_str(text),
                    _ => self.answer.reasoning.push_str(text),
                }
                Ok(())
            }
            _ => Err(format!("not one thing: {things:?}")),
        }
    }

    fn calls(&mut self, calls: &Value) -> Result<(), String> {
        for call in calls.as_array().ok_or("tool_calls is no list")? {
            if call.get("id").is_none() {
                self.more_arguments(call)?;
                continue;
            }
            need(call["index"] == self.answer.calls.len(), "a call at another index")?;
            need(call["type"] == "function", "a call of another kind")?;
            let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
            let id = text(&call["id"]).ok_or("a call without id")?;
            need(!self.answer.calls.iter().any(|known| known.0 == id), "two calls with one id")?;
            let name = text(&call["function"]["name"]).ok_or("a call without name")?;
            self.arguments.push(text(&call["function"]["arguments"]).ok_or("a call without arguments")?);
            self.answer.calls.push((id, name, Value::Null));
        }
        Ok(())
    }

    fn are_calls_incomplete(&self) -> bool {
        self.arguments.iter().all(|arguments| serde_json::from_str::<Value>(arguments).is_err())
    }

    /// Clients take the next call for the end of the one before, and run one as soon as its arguments are JSON.
    fn more_arguments(&mut self, call: &Value) -> Result<(), String> {
        let [arguments] = self.arguments.as_mut_slice() else {
            return Err("more of a call that is over".into());
        };
        need(call["index"] == 0, "a fragment at another index")?;
        need(call.get("type").is_none() && call["function"].get("name").is_none(), "a name twice")?;
        need(serde_json::from_str::<Value>(arguments).is_err(), format!("more than JSON: {arguments}"))?;
        let more = call["function"]["arguments"].as_str().filter(|more| !more.is_empty());
        arguments.push_str(more.ok_or("an empty fragment")?);
        self.answer.fragments += 1;
        Ok(())
    }

    fn end(self) -> Result<Answer, String> {
        need(self.stage == Stage::Done, "no [DONE]")?;
        Ok(self.answer)
    }
}
