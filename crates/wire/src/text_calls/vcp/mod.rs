//! The VCP protocol: blocks of `name:「始」value「末」` between `<<<[TOOL_REQUEST]>>>` and `<<<[END_TOOL_REQUEST]>>>`.
//!
//! The grammar, its tolerances and the answer to each doubtful input are in `docs/text-protocol.md`.
//! Src: the format as VCPToolBox and its users implement it; all code here is written from that description.

mod block;
mod definitions;
mod history;
mod interpret;
mod lexer;
mod parser;
mod request;
mod syntax;
mod texts;

use super::block_scanner::{BlockScanner, TextPosition};
use super::escape::{escape, unescape};
use super::protocol::{ParsedText, TextProtocol, TextScanner};
use super::{flat_arguments, text_parser};
use crate::vocabulary::{Call, CallOutcome, ToolDefinition};
use std::borrow::Cow;
use std::sync::Arc;

#[cfg(test)]
pub(super) use syntax::MARKER_PREFIXES;
#[cfg(not(test))]
use syntax::MARKER_PREFIXES;

/// The protocol `vcp`.
#[derive(Debug)]
pub struct VcpProtocol;

impl TextProtocol for VcpProtocol {
    fn name(&self) -> &'static str {
        "vcp"
    }

    fn guide(&self) -> &'static str {
        texts::GUIDE
    }

    fn definitions(&self, tools: &[ToolDefinition]) -> String {
        definitions::definitions_text(tools)
    }

    fn can_offer(&self, tool: &ToolDefinition) -> Result<(), String> {
        flat_arguments::check_flat(&tool.parameters)?;
        definitions::check_names(tool)
    }

    fn scanner(&self, tools: Arc<[ToolDefinition]>) -> Box<dyn TextScanner> {
        let tools = Arc::new(request::VcpTools::new(&tools));
        Box::new(BlockScanner::new(block::VcpBlockReader::new(tools, TextPosition::START)))
    }

    fn parse(&self, text: &str, tools: &[ToolDefinition]) -> ParsedText {
        text_parser::parse(&parser::VcpParser { tools }, text)
    }

    fn format_call(&self, call: &Call, tools: &[ToolDefinition]) -> String {
        history::call_text(call, tools)
    }

    fn format_results(&self, results: &[(Call, CallOutcome)], tools: &[ToolDefinition]) -> String {
        history::results_text(results, tools)
    }

    fn escape<'t>(&self, data: &'t str) -> Cow<'t, str> {
        escape(MARKER_PREFIXES, data)
    }

    fn unescape<'t>(&self, text: &'t str) -> Cow<'t, str> {
        unescape(MARKER_PREFIXES, text)
    }
}
