//! The VCP protocol: blocks of `name:「始」value「末」` between `<<<[TOOL_REQUEST]>>>` and `<<<[END_TOOL_REQUEST]>>>`.
//!
//! The grammar, its tolerances and the answer to each doubtful input are in `docs/text-protocol.md`.
//! Src: the format as VCPToolBox and its users implement it; all code here is written from that description.
// R: X2

mod block;
mod definitions;
mod history;
mod marks;
mod meaning;
mod parser;
mod request;
mod signs;
mod words;

use super::escape::{escape, unescape};
use super::protocol::{Parsed, TextProtocol, TextScanner};
use super::scan::{Place, Scanner};
use super::{flat, whole};
use crate::vocabulary::{Call, Outcome, ToolDefinition};
use std::borrow::Cow;
use std::sync::Arc;

#[cfg(test)]
pub(super) use marks::BEGINNINGS;
#[cfg(not(test))]
use marks::BEGINNINGS;

/// The protocol `vcp`.
#[derive(Debug)]
pub struct Vcp;

impl TextProtocol for Vcp {
    fn name(&self) -> &'static str {
        "vcp"
    }

    fn guide(&self) -> &'static str {
        words::GUIDE
    }

    fn definitions(&self, tools: &[ToolDefinition]) -> String {
        definitions::all(tools)
    }

    fn can_offer(&self, tool: &ToolDefinition) -> Result<(), String> {
        flat::check(&tool.parameters)?;
        definitions::check_names(tool)
    }

    fn scanner(&self, tools: Arc<[ToolDefinition]>) -> Box<dyn TextScanner> {
        let tools = Arc::new(request::Tools::new(&tools));
        Box::new(Scanner::new(block::Blocks::new(tools, Place::START)))
    }

    fn parse(&self, text: &str, tools: &[ToolDefinition]) -> Parsed {
        whole::parse(&parser::Reader { tools }, text)
    }

    fn format_call(&self, call: &Call, tools: &[ToolDefinition]) -> String {
        history::call(call, tools)
    }

    fn format_results(&self, results: &[(Call, Outcome)], tools: &[ToolDefinition]) -> String {
        history::results(results, tools)
    }

    fn escape<'t>(&self, data: &'t str) -> Cow<'t, str> {
        escape(BEGINNINGS, data)
    }

    fn unescape<'t>(&self, text: &'t str) -> Cow<'t, str> {
        unescape(BEGINNINGS, text)
    }
}
