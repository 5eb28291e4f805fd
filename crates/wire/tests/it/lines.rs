//! The smallest text protocol, for tests of the code around a protocol: `@name {json}` on a separate line is
//! a call, `#` begins a line that yields a finding. Some variants have a parser that disagrees with their
//! scanner.

use std::borrow::Cow;
use std::sync::Arc;
use throughline_wire::text_calls::{
    FindingKind, MarkupFinding, ParsedCall, ParsedText, ScanEvent, TextProtocol, TextScanner,
};
use throughline_wire::{Call, CallOutcome, ToolDefinition};

pub static LINES: LinesProtocol = LinesProtocol(LinesParser::Agrees);
pub static READS_MORE: LinesProtocol = LinesProtocol(LinesParser::ReadsMore);
pub static READS_OTHER_ARGUMENTS: LinesProtocol = LinesProtocol(LinesParser::ReadsOtherArguments);
pub static MISSES_A_CALL: LinesProtocol = LinesProtocol(LinesParser::MissesTheFirst);

#[derive(Debug)]
pub struct LinesProtocol(LinesParser);

#[derive(Clone, Copy, Debug, PartialEq)]
enum LinesParser {
    Agrees,
    ReadsMore,
    ReadsOtherArguments,
    MissesTheFirst,
}

/// Kind of a line.
enum LinesToken<'l> {
    Text,
    Finding,
    Call { name: &'l str, arguments: Result<&'l str, &'static str> },
}

fn read(line: &str) -> LinesToken<'_> {
    if line.starts_with('#') {
        return LinesToken::Finding;
    }
    let Some(rest) = line.strip_prefix('@') else { return LinesToken::Text };
    let Some(body) = rest.strip_suffix('\n') else {
        let name = rest.split_once(' ').map_or("", |(name, _)| name);
        return LinesToken::Call { name, arguments: Err("the line has no end") };
    };
    let (name, arguments) = body.split_once(' ').unwrap_or((body, "{}"));
    let is_object = serde_json::from_str::<serde_json::Map<_, _>>(arguments).is_ok();
    let arguments = match (name.is_empty(), is_object) {
        (true, _) => Err("the line names no tool"),
        (false, false) => Err("the arguments are no JSON object"),
        (false, true) => Ok(arguments),
    };
    LinesToken::Call { name, arguments }
}

impl LinesProtocol {
    pub fn reads_more(&self) -> bool {
        self.0 == LinesParser::ReadsMore
    }
}

impl TextProtocol for LinesProtocol {
    fn name(&self) -> &'static str {
        "lines"
    }
    fn guide(&self) -> &'static str {
        "Call a tool with `@name {json}` on a line."
    }
    fn definitions(&self, tools: &[ToolDefinition]) -> String {
        tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join("\n\n")
    }
    fn can_offer(&self, _: &ToolDefinition) -> Result<(), String> {
        Ok(())
    }
    fn scanner(&self, _: Arc<[ToolDefinition]>) -> Box<dyn TextScanner> {
        Box::new(LinesScanner { held: String::new(), line: 1, at: 0 })
    }
    fn parse(&self, text: &str, _: &[ToolDefinition]) -> ParsedText {
        let mut parsed = ParsedText::default();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            match read(line) {
                LinesToken::Text | LinesToken::Finding => parsed.text.push_str(line),
                LinesToken::Call { name, arguments } => parsed.calls.push(ParsedCall {
                    name: name.to_owned(),
                    arguments: arguments.map(str::to_owned).map_err(str::to_owned),
                    span: at..at + line.len(),
                    block: parsed.calls.len(),
                }),
            }
            at += line.len();
        }
        match self.0 {
            LinesParser::Agrees => {}
            LinesParser::ReadsMore => parsed.calls.push(ParsedCall {
                name: "weather_today".to_owned(),
                arguments: Ok("{}".to_owned()),
                span: 0..0,
                block: 9,
            }),
            LinesParser::ReadsOtherArguments => {
                parsed
                    .calls
                    .iter_mut()
                    .for_each(|call| call.arguments = Ok("{\"city\": \"Bonn\"}".to_owned()));
            }
            LinesParser::MissesTheFirst => drop(parsed.calls.remove(0)),
        }
        parsed
    }
    fn format_call(&self, call: &Call, _: &[ToolDefinition]) -> String {
        format!("@{} {}\n", call.name, call.arguments_text())
    }
    fn format_results(&self, results: &[(Call, CallOutcome)], _: &[ToolDefinition]) -> String {
        let line = |(call, outcome): &(Call, CallOutcome)| {
            format!("={} {}", call.name, self.escape(&outcome.model_text()))
        };
        results.iter().map(line).collect::<Vec<_>>().join("\n")
    }
    fn escape<'t>(&self, data: &'t str) -> Cow<'t, str> {
        if data.contains(['@', '＠']) {
            data.replace('＠', "＠＠").replace('@', "＠").into()
        } else {
            data.into()
        }
    }
    fn unescape<'t>(&self, text: &'t str) -> Cow<'t, str> {
        text.into()
    }
}

struct LinesScanner {
    held: String,
    line: u32,
    /// Offset of `held`.
    at: usize,
}

impl TextScanner for LinesScanner {
    fn push(&mut self, text: &str, sink: &mut dyn FnMut(ScanEvent<'_>)) {
        for piece in text[self.at + self.held.len()..].split_inclusive('\n') {
            self.held.push_str(piece);
            if piece.ends_with('\n') {
                self.tell(sink);
            }
        }
    }
    fn finish(&mut self, _: &str, sink: &mut dyn FnMut(ScanEvent<'_>)) {
        if !self.held.is_empty() {
            self.tell(sink);
        }
    }
}

impl LinesScanner {
    fn tell(&mut self, sink: &mut dyn FnMut(ScanEvent<'_>)) {
        let line = std::mem::take(&mut self.held);
        match read(&line) {
            LinesToken::Text => sink(ScanEvent::Text(&line)),
            LinesToken::Finding => {
                let message = "a line that begins with # means nothing".to_owned();
                let kind = FindingKind::Directive;
                sink(ScanEvent::Finding(MarkupFinding {
                    kind,
                    offset: self.at,
                    line: self.line,
                    column: 1,
                    message,
                }));
                sink(ScanEvent::Text(&line));
            }
            LinesToken::Call { name, arguments } => {
                if !name.is_empty() {
                    sink(ScanEvent::Opened { name });
                }
                match arguments {
                    Ok(arguments) => {
                        sink(ScanEvent::Arguments(arguments));
                        sink(ScanEvent::Sealed);
                    }
                    Err(reason) => {
                        sink(ScanEvent::Refused { reason: reason.to_owned(), raw: line.trim_end() })
                    }
                }
            }
        }
        self.at += line.len();
        self.line += 1;
    }
}
