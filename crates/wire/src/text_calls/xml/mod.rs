//! The protocol `xml`: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, as Hermes and Qwen models were trained.
//!
//! The block is the one that [`hermes`](super::hermes) reads when it leaks into the text of a native reply.

mod block;
mod parser;
mod texts;

use super::block_scanner::{BlockScanner, TextPosition};
use super::escape::{MarkerPrefix, escape, unescape};
use super::protocol::{ParsedText, TextProtocol, TextScanner};
use super::result_frame::{nonce, outcome_status};
use super::text_parser;
use crate::json::ARGUMENTS_DEPTH_MAX;
use crate::vocabulary::{Call, CallOutcome, ToolDefinition};
use serde_json::json;
use std::borrow::Cow;
use std::sync::Arc;

const START: &str = "<tool_call>";
const END: &str = "</tool_call>";
/// Length of the text after a start marker within which it is decided if it begins a block, in bytes.
const LOOK_BYTES_MAX: usize = 256;
/// White space between the JSON and the end marker, in bytes.
const TAIL_SPACES_MAX: usize = 1024;
/// One block, in bytes.
const BLOCK_BYTES_MAX: usize = 4 << 20;
/// Deepest nesting of a block's JSON. Less than that of arguments, whose reader reports too deep nesting
/// under another name.
const DEPTH_MAX: usize = 100;
const _: () = assert!(DEPTH_MAX < ARGUMENTS_DEPTH_MAX);

pub(super) const MARKER_PREFIXES: &[MarkerPrefix] =
    &[MarkerPrefix { before: "<", after: &["tool_", "/tool_"] }];

/// The protocol `xml`.
#[derive(Debug)]
pub struct XmlProtocol;

impl TextProtocol for XmlProtocol {
    fn name(&self) -> &'static str {
        "xml"
    }

    fn guide(&self) -> &'static str {
        texts::GUIDE
    }

    fn definitions(&self, tools: &[ToolDefinition]) -> String {
        let line = |tool: &ToolDefinition| {
            let ToolDefinition { name, description, parameters, .. } = tool;
            let function =
                json!({ "name": name.as_str(), "description": description, "parameters": **parameters });
            let line = json!({ "type": "function", "function": function }).to_string();
            escape(MARKER_PREFIXES, &line).replace("tools>", "tools\\u003e")
        };
        match tools {
            [] => String::new(),
            tools => {
                format!("<tools>\n{}\n</tools>", tools.iter().map(line).collect::<Vec<_>>().join("\n\n"))
            }
        }
    }

    fn can_offer(&self, _tool: &ToolDefinition) -> Result<(), String> {
        Ok(())
    }

    fn scanner(&self, tools: Arc<[ToolDefinition]>) -> Box<dyn TextScanner> {
        // Names are wire names and values have the types of JSON: nothing depends on the offered tools.
        drop(tools);
        Box::new(BlockScanner::new(block::XmlBlockReader::new(TextPosition::START)))
    }

    fn parse(&self, text: &str, _tools: &[ToolDefinition]) -> ParsedText {
        text_parser::parse(&parser::XmlParser, text)
    }

    fn format_call(&self, call: &Call, _tools: &[ToolDefinition]) -> String {
        let name = json!(call.name.as_str()).to_string();
        // The arguments as the model wrote them, whitespace included, if they are an object.
        let arguments = match &call.arguments {
            Ok(arguments) if arguments.value.is_object() => arguments.text.trim().to_owned(),
            _ => call.arguments_object().to_string(),
        };
        let body = format!("{{\"name\": {name}, \"arguments\": {arguments}}}");
        format!("{START}\n{}\n{END}", escape(MARKER_PREFIXES, &body))
    }

    fn format_results(&self, results: &[(Call, CallOutcome)], _tools: &[ToolDefinition]) -> String {
        let Some((first, _)) = results.first() else { return String::new() };
        let nonce = nonce(&first.id);
        let frame = |(call, outcome): &(Call, CallOutcome)| {
            let body = json!({ "name": call.name.as_str(), "status": outcome_status(outcome), "content": call.outcome_text(outcome) });
            let body = body.to_string();
            format!("<tool_response n=\"{nonce}\">\n{}\n</tool_response>", escape(MARKER_PREFIXES, &body))
        };
        results.iter().map(frame).collect::<Vec<_>>().join("\n")
    }

    fn escape<'t>(&self, data: &'t str) -> Cow<'t, str> {
        escape(MARKER_PREFIXES, data)
    }

    fn unescape<'t>(&self, text: &'t str) -> Cow<'t, str> {
        unescape(MARKER_PREFIXES, text)
    }
}
