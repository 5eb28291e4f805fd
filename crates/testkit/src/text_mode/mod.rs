//! Text mode as a model sees it: tools described in the system prompt, calls written into the reply, results read from
//! the user's next message.
//!
//! Writer and reader are the testkit's own. If they shared a line with `throughline_wire::text_calls`, no test would see a
//! misunderstanding of the protocol. The reader is strict: framing that data could have broken is a violation.

mod tilde;
mod vcp;
mod xml;

use crate::parsed_request::{
    ParsedMessage, ParsedRequest, ParsedTool, ParsedToolCall, ParsedToolChoice, ParsedToolResult,
};
use crate::script::{CallMove, ModelScript, ScriptFinish, ScriptMove, SpeechMove};
use serde::{Deserialize, Serialize};

/// Notation of calls as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallProtocol {
    /// `<<<[TOOL_REQUEST]>>>` blocks with `key:「始」value「末」`.
    Vcp,
    /// `<tool_call>{"name": …, "arguments": …}</tool_call>`.
    Xml,
}

/// Notation of the calls in a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStyle {
    /// As the request demands: as text if it describes its tools in text and offers none natively, else
    /// natively.
    #[default]
    Auto,
    /// In the wire format's own field, for every request.
    Native,
    /// As VCP blocks.
    Vcp,
    /// As `<tool_call>` elements.
    Xml,
}

impl CallStyle {
    /// The protocol for a request; `None` = native.
    pub(crate) fn protocol(self, seen: &ParsedRequest) -> Option<CallProtocol> {
        match self {
            Self::Auto => seen.protocol,
            Self::Native => None,
            Self::Vcp => Some(CallProtocol::Vcp),
            Self::Xml => Some(CallProtocol::Xml),
        }
    }
}

/// Extent to which a call is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallExtent {
    /// With its end marker.
    Whole,
    /// Torn off in front of it.
    Torn,
}

impl CallProtocol {
    const ALL: [Self; 2] = [Self::Vcp, Self::Xml];

    fn call(self, call: &CallMove, extent: CallExtent) -> String {
        match self {
            Self::Vcp => vcp::call(call, extent),
            Self::Xml => xml::call(call, extent),
        }
    }

    fn history(
        self,
        text: &str,
        tools: &[ParsedTool],
        faults: &mut Vec<String>,
    ) -> (String, Vec<ParsedToolCall>) {
        match self {
            Self::Vcp => vcp::history(text, tools, faults),
            Self::Xml => xml::history(text, faults),
        }
    }

    /// Finds markup inside data.
    fn find_markup(self, data: &str) -> Option<String> {
        match self {
            Self::Vcp => vcp::find_markup(data),
            Self::Xml => xml::find_markup(data),
        }
    }

    fn unescape(self, data: &str) -> String {
        match self {
            Self::Vcp => vcp::unescape(data),
            Self::Xml => xml::unescape(data),
        }
    }

    /// The reply with its calls as text, each at the beginning of a line.
    pub(crate) fn with_text_calls(self, script: &ModelScript) -> ModelScript {
        let mut moves = Vec::with_capacity(script.moves.len());
        let mut column = ColumnState::Start;
        for next in &script.moves {
            match next {
                ScriptMove::Call(call) => {
                    self.push_call(call, CallExtent::Whole, &mut column, script, &mut moves)
                }
                ScriptMove::HalfCall(call) => {
                    self.push_call(call, CallExtent::Torn, &mut column, script, &mut moves)
                }
                ScriptMove::Parallel(calls) => {
                    for call in calls {
                        self.push_call(call, CallExtent::Whole, &mut column, script, &mut moves);
                    }
                }
                ScriptMove::Say(speech) => {
                    let mut speech = speech.clone();
                    if column == ColumnState::AfterBlock
                        && !speech.text.is_empty()
                        && !speech.text.starts_with('\n')
                    {
                        speech.text.insert(0, '\n');
                    }
                    column = if speech.text.is_empty() {
                        column
                    } else if speech.text.ends_with('\n') {
                        ColumnState::Start
                    } else {
                        ColumnState::Middle
                    };
                    moves.push(ScriptMove::Say(speech));
                }
                // A model without calls knows no other way to end.
                ScriptMove::Finish(ScriptFinish::ToolCalls) => {
                    moves.push(ScriptMove::Finish(ScriptFinish::Stop))
                }
                other => moves.push(other.clone()),
            }
        }
        ModelScript { moves, ..script.clone() }
    }

    fn push_call(
        self,
        call: &CallMove,
        extent: CallExtent,
        column: &mut ColumnState,
        script: &ModelScript,
        moves: &mut Vec<ScriptMove>,
    ) {
        let gap = if *column == ColumnState::Start { "" } else { "\n" };
        moves.push(ScriptMove::Say(SpeechMove {
            text: format!("{gap}{}", self.call(call, extent)),
            chunk_chars: call.fragment_chars.or(script.pace.fragment_chars),
            tokens_per_second: None,
        }));
        *column = ColumnState::AfterBlock;
    }
}

/// Column at which the next character of the reply would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnState {
    Start,
    Middle,
    AfterBlock,
}

/// A system prompt, read.
#[derive(Debug, Default)]
struct DescribedTools {
    tools: Vec<ParsedTool>,
    /// Text that looks like a definition but is not one.
    faults: Vec<String>,
}

/// The beginning of a user message that holds the results of the step before.
#[derive(Debug, Default)]
struct ResultFrame<'t> {
    results: Vec<ParsedToolResult>,
    /// Text after the frame.
    rest: &'t str,
    faults: Vec<String>,
}

/// Beginning of the note that replaces a forced tool choice, where the API has none.
const FORCED: &str = "[Note from the system: this reply must call ";
const SWITCHED_OFF: &str = "[Note from the system: tools are disabled for this reply.";

/// Converts a request in text mode to its tools, calls and results. Returns the violations of framing; a
/// request that is not in text mode stays unchanged.
pub(crate) fn read(seen: &mut ParsedRequest) -> Vec<String> {
    let native = !seen.tools.is_empty() || seen.messages.iter().any(is_native);
    let instructions = seen.instructions.clone().unwrap_or_default();
    // A tool's description may hold the signs of another protocol: the guide comes before it.
    let offsets = CallProtocol::ALL.into_iter().filter_map(|protocol| {
        let offset = match protocol {
            CallProtocol::Vcp => vcp::tools_offset(&instructions),
            CallProtocol::Xml => xml::tools_offset(&instructions),
        };
        Some((offset?, protocol))
    });
    let protocol = offsets.min_by_key(|(offset, _)| *offset).map(|(_, protocol)| protocol);
    let (false, Some(protocol)) = (native, protocol) else { return Vec::new() };
    let described = match protocol {
        CallProtocol::Vcp => vcp::described_tools(&instructions),
        CallProtocol::Xml => xml::described_tools(&instructions),
    };
    let mut faults = described.faults;
    (seen.protocol, seen.tools) = (Some(protocol), described.tools);
    let mut messages = Vec::with_capacity(seen.messages.len());
    for message in std::mem::take(&mut seen.messages) {
        match message {
            ParsedMessage::Assistant { text, thinking, mut calls } => {
                let (text, written) = protocol.history(&text, &seen.tools, &mut faults);
                calls.extend(written);
                messages.push(ParsedMessage::Assistant { text, thinking, calls });
            }
            ParsedMessage::User { text, images, files } => {
                let framed = match protocol {
                    CallProtocol::Vcp => vcp::result_frame(&text),
                    CallProtocol::Xml => xml::result_frame(&text),
                };
                faults.extend(framed.faults);
                check_results(&messages, &framed.results, &mut faults);
                let rest = framed.rest.trim_start_matches('\n');
                faults.extend(protocol.find_markup(rest).map(|found| format!("a user's text holds {found}")));
                let rest = if framed.results.is_empty() {
                    protocol.unescape(&text)
                } else {
                    protocol.unescape(rest)
                };
                if !framed.results.is_empty() {
                    messages.push(ParsedMessage::Results(framed.results));
                }
                let (user_text, choice) = strip_tool_switch(rest);
                if let Some(choice) = choice {
                    seen.tool_choice = choice;
                }
                let is_empty = user_text.is_empty() && images.is_empty() && files.is_empty();
                if !is_empty || !matches!(messages.last(), Some(ParsedMessage::Results(_))) {
                    messages.push(ParsedMessage::User { text: user_text, images, files });
                }
            }
            ParsedMessage::Results(results) => messages.push(ParsedMessage::Results(results)),
        }
    }
    seen.messages = messages;
    faults
}

fn is_native(message: &ParsedMessage) -> bool {
    match message {
        ParsedMessage::Assistant { calls, .. } => !calls.is_empty(),
        ParsedMessage::Results(_) => true,
        ParsedMessage::User { .. } => false,
    }
}

/// Every call before a frame is answered in it, in order, and nothing else is.
fn check_results(messages: &[ParsedMessage], results: &[ParsedToolResult], faults: &mut Vec<String>) {
    let calls: &[_] = match messages.last() {
        Some(ParsedMessage::Assistant { calls, .. }) => calls,
        _ => &[],
    };
    let called: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
    let answered: Vec<&str> = results.iter().map(|result| result.name.as_str()).collect();
    if called != answered {
        faults.push(format!("calls of {called:?} are answered by results of {answered:?}"));
    }
}

/// Takes the note out that switches tools off, or forces a call.
fn strip_tool_switch(text: String) -> (String, Option<ParsedToolChoice>) {
    if !text.ends_with(']') {
        return (text, None);
    }
    let named = |note: &str| match note.split('`').nth(1) {
        Some(name) => ParsedToolChoice::Named(name.to_owned()),
        None => ParsedToolChoice::Required,
    };
    if let Some(at) = text.find(SWITCHED_OFF) {
        return (text[..at].trim_end().to_owned(), Some(ParsedToolChoice::None));
    }
    match text.find(FORCED) {
        Some(at) => (text[..at].trim_end().to_owned(), Some(named(&text[at..]))),
        None => (text, None),
    }
}
