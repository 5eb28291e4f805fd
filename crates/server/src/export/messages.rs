//! A plain list of messages as OpenAI clients store it (`[{"role": …, "content": …}, …]`, or `{"messages":
//! […]}`), read as the turns that would have produced it.
//!
//! A turn begins with a user message and holds everything up to the next one. System and developer messages
//! are left out: instructions belong to the agent. The turns get logs like any other, so their origin makes
//! no difference elsewhere.

use super::{
    EVENTS_OF_LIST_MAX, EVENTS_PER_TURN_MAX, EventJson, LineError, PortableConversation, PortableTurn,
    TURNS_MAX, check_units, event, stream_start,
};
use crate::json_scanner::{JsonScanner, TreeUnits};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use throughline_engine::{
    BlockStart, CallError, CallStatus, Event, EventKind, MessageId, ToolInput, ToolResult, TurnId, TurnStatus,
};
use throughline_store::TurnParent;
use throughline_wire::json::ARGUMENTS_DEPTH_MAX;
use throughline_wire::{
    CallId, CallSlot, FinishReason, Media, SealEvidence, ToolName, UpstreamCallId, UserPart, WireName,
};

/// Longest tool name that all APIs accept.
const WIRE_NAME_CHARS_MAX: usize = 64;

/// Each message as its part of the text, so that an error can be reported with its line.
type RawMessages<'a> = Vec<&'a RawValue>;

#[derive(Deserialize)]
struct MessageListBody<'a> {
    #[serde(borrow)]
    messages: RawMessages<'a>,
}

#[derive(Deserialize)]
struct ChatMessageJson {
    role: String,
    #[serde(default)]
    content: Option<ChatContentJson>,
    #[serde(default)]
    tool_calls: Vec<ToolCallJson>,
    #[serde(default)]
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ChatContentJson {
    Text(String),
    Parts(Vec<ChatPartJson>),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChatPartJson {
    #[serde(alias = "input_text", alias = "output_text")]
    Text {
        text: String,
    },
    ImageUrl {
        image_url: ImageUrlJson,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct ImageUrlJson {
    url: String,
}

#[derive(Deserialize)]
struct ToolCallJson {
    id: String,
    function: FunctionCallJson,
}

#[derive(Deserialize)]
struct FunctionCallJson {
    name: String,
    #[serde(default)]
    arguments: String,
}

/// Reads a list of messages, turns with at most `units_max` tree units each. They have no times, so all
/// events are dated `now`.
///
/// # Errors
/// The line of the message that cannot be imported, with the reason.
pub fn parse_messages(text: &str, now: i64, units_max: u64) -> Result<PortableConversation, LineError> {
    let raw_messages: Result<RawMessages<'_>, _> = if text.trim_start().starts_with('[') {
        serde_json::from_str(text)
    } else {
        serde_json::from_str::<MessageListBody<'_>>(text).map(|wrapped| wrapped.messages)
    };
    let messages = raw_messages.map_err(|error| {
        let line = error.line().max(1);
        LineError::new(line, format!("this is no list of messages: {error}"))
            .help("[{\"role\": \"user\", \"content\": \"…\"}, …], or an object with it under `messages`")
    })?;
    let mut turns: Vec<TurnWriter> = Vec::new();
    let mut events_of_former = 0;
    let mut lines = LineCounter::new(text);
    for raw in messages {
        let line = lines.of(raw.get());
        // Checked alone before it is parsed; then together with the others of its turn.
        let units = TreeUnits::of(raw.get()).all;
        check_units(line, units, units_max)?;
        let parsed: ChatMessageJson = serde_json::from_str(raw.get())
            .map_err(|error| LineError::new(line, format!("this is no message: {error}")))?;
        let content = parsed.content.unwrap_or(ChatContentJson::Text(String::new()));
        match parsed.role.as_str() {
            "system" | "developer" => continue,
            "user" => {
                let parts = user_parts(line, content)?;
                match turns.last_mut() {
                    // Two in a row are joined: nothing came between them.
                    Some(turn) if turn.steps == 0 => turn.input.extend(parts),
                    _ => {
                        if turns.len() == TURNS_MAX {
                            return Err(LineError::new(line, format!("more than {TURNS_MAX} turns")));
                        }
                        events_of_former += turns.last().map_or(0, TurnWriter::events_at_end);
                        turns.push(TurnWriter::new(turns.len(), parts, now, units_max));
                    }
                }
            }
            "assistant" => {
                if turns.is_empty() {
                    // A greeting, without a user message before it.
                    turns.push(TurnWriter::new(0, Vec::new(), now, units_max));
                }
                let Some(turn) = turns.last_mut() else { continue };
                turn.write_step(line, &text_of(content), parsed.tool_calls)?;
            }
            "tool" => {
                let Some(id) = parsed.tool_call_id else {
                    return Err(LineError::new(line, "a result without its `tool_call_id`"));
                };
                let has_call = turns.last_mut().is_some_and(|turn| turn.write_result(&id, text_of(content)));
                if !has_call {
                    return Err(LineError::new(
                        line,
                        format!("a result for `{id}`, which is not an earlier call"),
                    ));
                }
            }
            other => {
                return Err(LineError::new(line, format!("`{other}` is not a role"))
                    .help("system, developer, user, assistant or tool"));
            }
        }
        if let Some(turn) = turns.last_mut() {
            turn.add_units(line, units)?;
            let events = turn.events_at_end();
            if events > EVENTS_PER_TURN_MAX {
                let what = format!("its turn would have more than {EVENTS_PER_TURN_MAX} events");
                return Err(LineError::new(line, what));
            }
            if events_of_former + events > EVENTS_OF_LIST_MAX {
                let what = format!("the messages would become more than {EVENTS_OF_LIST_MAX} events");
                return Err(LineError::new(line, what).help("import it in parts"));
            }
        }
    }
    if turns.is_empty() {
        return Err(LineError::new(1, "there is no message of a user in it"));
    }
    let mut before: Option<String> = None;
    let mut finished = Vec::with_capacity(turns.len());
    for turn in turns {
        let turn = turn.finish(before.as_deref().map(TurnParent::after_turn));
        before = Some(turn.id.clone());
        finished.push(turn);
    }
    Ok(PortableConversation {
        id: "imported".to_owned(),
        title: None,
        leaf_id: before,
        created_at: now,
        filing: Default::default(),
        turns: finished,
    })
}

/// Counts the lines of a text from one part of it to the next: counting from the beginning each time would be
/// quadratic.
struct LineCounter<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> LineCounter<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0, line: 1 }
    }

    /// The line of a part that follows the previous one.
    fn of(&mut self, part: &str) -> usize {
        // A raw value is a piece of the text it was read from.
        let offset = (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let offset = offset.clamp(self.at, self.text.len());
        self.line += self.text.as_bytes()[self.at..offset].iter().filter(|byte| **byte == b'\n').count();
        self.at = offset;
        self.line
    }
}

fn text_of(content: ChatContentJson) -> String {
    match content {
        ChatContentJson::Text(text) => text,
        ChatContentJson::Parts(parts) => {
            let texts = parts.into_iter().filter_map(|part| match part {
                ChatPartJson::Text { text } => Some(text),
                ChatPartJson::ImageUrl { .. } | ChatPartJson::Other => None,
            });
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}

fn user_parts(line: usize, content: ChatContentJson) -> Result<Vec<UserPart>, LineError> {
    let parts = match content {
        ChatContentJson::Text(text) => return Ok(vec![UserPart::Text { text }]),
        ChatContentJson::Parts(parts) => parts,
    };
    let part = |part| match part {
        ChatPartJson::Text { text } => Ok(UserPart::Text { text }),
        ChatPartJson::ImageUrl { image_url } => {
            let data = image_url.url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
            match data {
                Some((media_type, data)) => {
                    Ok(UserPart::Image(Media::new(media_type.to_owned(), data.to_owned())))
                }
                // External content is not fetched: an import must not make the server send requests.
                None => Ok(UserPart::Text { text: format!("[picture: {}]", image_url.url) }),
            }
        }
        ChatPartJson::Other => Err(LineError::new(line, "a content part of an unsupported kind")
            .help("`text`, and `image_url` with a data: URL")),
    };
    parts.into_iter().map(part).collect()
}

/// A tool's name as every API accepts it: dots are not allowed, and history with one could never be sent.
fn wire_name(name: &str) -> WireName {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    WireName::new(name.chars().take(WIRE_NAME_CHARS_MAX).map(plain).collect::<String>())
}

fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(80).collect()
}

/// A turn whose log is being written.
struct TurnWriter {
    id: TurnId,
    message: MessageId,
    input: Vec<UserPart>,
    now: i64,
    /// Events of the turn except the first.
    events: Vec<EventJson>,
    units: u64,
    units_max: u64,
    steps: u32,
    blocks: u32,
    calls: u32,
    /// Calls of the last step that have no result yet, by the id that the list gives them.
    open: BTreeMap<String, (CallId, u32)>,
}

impl TurnWriter {
    fn new(number: usize, input: Vec<UserPart>, now: i64, units_max: u64) -> Self {
        Self {
            id: TurnId::new(format!("imported_{number}")),
            message: MessageId::new(format!("imported_message_{number}")),
            input,
            now,
            events: Vec::new(),
            units: 0,
            units_max,
            steps: 0,
            blocks: 0,
            calls: 0,
            open: BTreeMap::new(),
        }
    }

    fn add_units(&mut self, line: usize, units: u64) -> Result<(), LineError> {
        self.units = self.units.saturating_add(units);
        check_units(line, self.units, self.units_max)
    }

    /// Events if it ended here: its first and last come to it, and two for each call that has no result.
    fn events_at_end(&self) -> usize {
        self.events.len() + 2 + 2 * self.open.len()
    }

    fn push(&mut self, block: Option<u32>, tool_id: Option<CallId>, kind: EventKind) {
        // `stream_start` takes the first number, and is written when all of the input is known.
        let seq = self.events.len() as u64 + 2;
        let step = (self.steps > 0).then_some(self.steps);
        let event = Event { step, block, tool_id, ..event(&self.id, seq, self.now, kind) };
        self.events.extend(EventJson::of(&event));
    }

    fn write_step(&mut self, line: usize, text: &str, calls: Vec<ToolCallJson>) -> Result<(), LineError> {
        self.close_step();
        self.steps += 1;
        self.push(None, None, EventKind::step_start("imported", "imported"));
        if !text.is_empty() {
            let block = Some(self.blocks);
            self.blocks += 1;
            self.push(block, None, EventKind::BlockStart(BlockStart::Text { code: None }));
            self.push(block, None, EventKind::content_delta(text));
            self.push(block, None, EventKind::BlockEnd);
        }
        let finish = if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
        for (slot, call) in (0..).zip(calls) {
            self.write_call(line, slot, call)?;
        }
        self.push(None, None, EventKind::step_end(finish));
        Ok(())
    }

    fn write_call(&mut self, line: usize, slot: u32, call: ToolCallJson) -> Result<(), LineError> {
        if self.open.contains_key(&call.id) {
            return Err(LineError::new(line, format!("two calls with the id `{}`", call.id)));
        }
        self.calls += 1;
        let id = CallId::new(format!("{}.{}", self.id, self.calls));
        let block = self.blocks;
        self.blocks += 1;
        let name = &call.function.name;
        self.push(
            Some(block),
            Some(id.clone()),
            EventKind::tool_use(
                ToolName::from(name.as_str()),
                wire_name(name),
                "imported",
                Some(UpstreamCallId::from(call.id.as_str())),
                CallSlot(slot),
            ),
        );
        let mut arguments = JsonScanner::default();
        if arguments.exceeds(call.function.arguments.as_bytes(), ARGUMENTS_DEPTH_MAX as u32) {
            let what = format!("the arguments of `{name}` nest deeper than {ARGUMENTS_DEPTH_MAX}");
            return Err(LineError::new(line, what));
        }
        self.add_units(line, arguments.units.all)?;
        let text = if call.function.arguments.trim().is_empty() { "{}" } else { &call.function.arguments };
        let input = match serde_json::from_str::<Value>(text) {
            Ok(arguments) => ToolInput {
                // The text is stored if it differs from the canonical form of the value.
                text: (arguments.to_string().as_str() != text).then(|| text.to_owned()),
                seal: Some(SealEvidence::Explicit),
                ..ToolInput::edited(&arguments)
            },
            Err(error) => {
                return Err(LineError::new(line, format!("the arguments of `{name}` are no JSON: {error}")));
            }
        };
        self.push(Some(block), Some(id.clone()), EventKind::ToolInput(input));
        self.open.insert(call.id, (id, block));
        Ok(())
    }

    /// Writes a result; `false`: there is no such call.
    fn write_result(&mut self, id: &str, text: String) -> bool {
        let Some((call, block)) = self.open.remove(id) else { return false };
        let start = EventKind::tool_start();
        self.push(Some(block), Some(call.clone()), start);
        let result = self.tool_result(CallStatus::Success, Some(text), None);
        self.push(Some(block), Some(call), result);
        true
    }

    /// Closes a step. A call without a result has an unknown outcome.
    fn close_step(&mut self) {
        for (_, (call, block)) in std::mem::take(&mut self.open) {
            let start = EventKind::tool_start();
            self.push(Some(block), Some(call.clone()), start);
            let unknown = CallError { code: "unknown".to_owned(), ..CallError::default() };
            let result = self.tool_result(CallStatus::Unknown, None, Some(unknown));
            self.push(Some(block), Some(call), result);
        }
    }

    fn tool_result(&self, status: CallStatus, output: Option<String>, error: Option<CallError>) -> EventKind {
        EventKind::ToolResult(ToolResult {
            status,
            output_summary: output.as_deref().map(first_line).unwrap_or_default(),
            output_size: output.as_ref().map(|text| text.len() as u64),
            output,
            output_value: None,
            output_media: Vec::new(),
            output_spilled_to: None,
            error,
            rule: None,
            started_at: Some(self.now),
            duration_ms: None,
            applied: None,
            seen_by_model: Some(true),
        })
    }

    fn finish(mut self, parent: Option<TurnParent>) -> PortableTurn {
        self.close_step();
        self.steps = 0;
        self.push(None, None, EventKind::stream_end(TurnStatus::Completed));
        let start = event(&self.id, 1, self.now, stream_start(&self.message, self.input));
        let events = EventJson::of(&start).into_iter().chain(self.events).collect();
        PortableTurn { id: self.id.as_str().to_owned(), parent, model: None, rating: None, events }
    }
}
