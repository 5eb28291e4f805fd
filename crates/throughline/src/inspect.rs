//! What would become of a reply: the calls in a pasted text, which of them would run, and what is wrong with the others.
//! Runs nothing. R: X2, X3, W8, A1

use crate::agent::Agent;
use crate::config::Protocol;
use crate::offer::Offer;
use serde_json::Value;
use std::ops::Range;
use throughline_engine::{OfferedTool, Remembered, Ruling, closest_names, explain};
use throughline_tools::{Registry, Verdict};
use throughline_wire::text::{self, Finding, ParsedCall, TextProtocol, find_leaked, line_and_column};
use throughline_wire::{Arguments, ToolDefinition, ToolName, WireName};

/// What a text is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// All text protocols, each where it finds something.
    Any,
    /// One of them.
    As(Protocol),
}

/// What a text holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspection {
    /// Calls and refused blocks, in the order of the text.
    pub requests: Vec<Request>,
    /// What else there is to know, in the order of the text.
    pub warnings: Vec<Finding>,
    /// What a reader would see: all but markup. Calls that leaked are in it.
    pub visible: String,
}

/// A call in a text, or a block that is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// How it is written: a text protocol, or the format of a leaked call.
    pub format: &'static str,
    /// Whether it is written in a protocol that is read, or is another model's markup.
    pub origin: Origin,
    /// The name as it was written; empty if none was.
    pub name: String,
    /// The tool that it means.
    pub tool: Option<ToolName>,
    /// The arguments, if they could be read.
    pub arguments: Option<Value>,
    /// What would become of it.
    pub outlook: Outlook,
    /// The block, in bytes of the text.
    pub span: Range<usize>,
    /// From 1.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
}

/// Where a call comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A text protocol.
    Protocol,
    /// Markup of a model that a server did not turn into a call: reported, and run only where the upstream's profile says
    /// so (`leaked_calls = "run"`).
    Leaked,
}

/// What would become of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// It would run.
    Runs {
        /// The rule that decides.
        rule: String,
    },
    /// A person would be asked first.
    Asks {
        /// The rule that decides.
        rule: String,
    },
    /// It would be denied.
    Denied {
        /// The rule that decides.
        rule: String,
        /// Told to the model.
        reason: String,
    },
    /// It would not start: refused, unknown, not offered, or with arguments that do not fit.
    NotStarted {
        /// Told to the model and to the user.
        why: String,
    },
}

impl Outlook {
    /// It ends without a question to anyone.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Outlook::Denied { .. } | Outlook::NotStarted { .. })
    }
}

/// Who would be asked: an agent, the tools that there are, and what was said before.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Whose rules hold.
    pub agent: &'a Agent,
    /// All tools.
    pub registry: &'a Registry,
    /// What the agent is offered of them.
    pub offer: &'a Offer,
    /// What people have said before.
    pub remembered: &'a [Remembered],
}

/// Reads a whole reply as the end of a step does, with the simple parser, and decides about each call without running it.
pub fn inspect(text: &str, reading: Reading, asked: Asked<'_>) -> Inspection {
    let definitions: Vec<ToolDefinition> = asked.registry.iter().map(|tool| tool.definition()).collect();
    let mut inspection = Inspection { requests: Vec::new(), warnings: Vec::new(), visible: text.to_owned() };
    let protocols = text::PROTOCOLS.iter().filter(|protocol| match reading {
        Reading::Any => true,
        Reading::As(one) => protocol.name() == one.name(),
    });
    for protocol in protocols {
        inspection.read(*protocol, &definitions, reading, text, asked);
    }
    let names: Vec<String> = definitions.iter().map(|tool| tool.name.as_str().to_owned()).collect();
    for leaked in find_leaked(text, &names) {
        if inspection.requests.iter().all(|request| !overlap(&request.span, &leaked.span)) {
            let arguments = Ok(leaked.arguments);
            let request =
                Request::new(leaked.format, Origin::Leaked, leaked.name, arguments, leaked.span, text, asked);
            inspection.requests.push(request);
        }
    }
    inspection.requests.sort_by_key(|request| request.span.start);
    inspection.warnings.sort_by_key(|warning| warning.at);
    inspection
}

/// What would become of one call: the answer of [`inspect`] without a text around it. Runs nothing. R: A1, U4
pub fn foresee(tool: &ToolName, arguments: Value, asked: Asked<'_>) -> Outlook {
    outlook(tool.as_str(), Some(tool), Ok(&Arguments::from_value(arguments)), asked)
}

impl Inspection {
    fn read(
        &mut self,
        protocol: &dyn TextProtocol,
        definitions: &[ToolDefinition],
        reading: Reading,
        text: &str,
        asked: Asked<'_>,
    ) {
        let parsed = protocol.parse(text, definitions);
        let mut found = false;
        let free: Vec<Range<usize>> = self.requests.iter().map(|request| request.span.clone()).collect();
        for ParsedCall { name, arguments, span, .. } in parsed.calls {
            // Another protocol has read this part: its blocks quote anything.
            if free.iter().all(|taken| !overlap(taken, &span)) {
                found = true;
                let format = protocol.name();
                let request = Request::new(format, Origin::Protocol, name, arguments, span, text, asked);
                self.requests.push(request);
            }
        }
        let is_outside = |finding: &Finding| free.iter().all(|taken| !taken.contains(&finding.at));
        let findings: Vec<Finding> = parsed.findings.into_iter().filter(is_outside).collect();
        if found || !findings.is_empty() || reading != Reading::Any {
            self.visible = parsed.text;
        }
        self.warnings.extend(findings);
    }
}

impl Request {
    fn new(
        format: &'static str,
        origin: Origin,
        name: String,
        arguments: Result<String, String>,
        span: Range<usize>,
        text: &str,
        asked: Asked<'_>,
    ) -> Self {
        let (line, column) = line_and_column(text, span.start);
        let registered = asked.registry.by_wire_name(&WireName::from(name.as_str()));
        let tool = registered.map(|tool| tool.spec().name.clone());
        // What a protocol says is JSON is JSON; a leaked call may not be.
        let read = arguments.and_then(|json| {
            let value =
                serde_json::from_str(&json).map_err(|error| format!("its arguments are no JSON: {error}"))?;
            Ok(Arguments { text: json, value, repairs: Vec::new() })
        });
        let outlook = outlook(&name, tool.as_ref(), read.as_ref(), asked);
        let arguments = read.ok().map(|arguments| arguments.value);
        Self { format, origin, name, tool, arguments, outlook, span, line, column }
    }
}

/// The same questions in the same order as in a turn: is it a call, is there such a tool, is it offered, do the arguments
/// fit, what do the rules say.
fn outlook(
    name: &str,
    tool: Option<&ToolName>,
    arguments: Result<&Arguments, &String>,
    asked: Asked<'_>,
) -> Outlook {
    let not_started = |why: String| Outlook::NotStarted { why };
    let arguments = match arguments {
        Ok(arguments) => arguments,
        Err(why) => return not_started(why.clone()),
    };
    let found = tool.and_then(|tool| asked.offer.found.iter().find(|found| found.tool.spec().name == *tool));
    let Some(found) = found else {
        let offered = asked.offer.found.iter().filter(|found| found.is_offered());
        let near = closest_names(name, offered.map(|found| found.tool.wire_name().as_str()));
        return not_started(match near.as_slice() {
            [] => format!("there is no tool `{name}`"),
            near => format!("there is no tool `{name}`; did the model mean `{}`?", near.join("`, `")),
        });
    };
    if let Verdict::Withheld(why) = &found.verdict {
        return not_started(format!("`{name}` is not offered: {why}"));
    }
    if let Err(error) = found.tool.validate(arguments) {
        return not_started(format!("its arguments do not fit: {error}"));
    }
    let offered: Vec<OfferedTool> = asked.registry.offered(&asked.agent.tool_call.toggles);
    let Some(tool) = offered.iter().find(|offered| offered.name == found.tool.spec().name) else {
        return not_started(format!("`{name}` is not offered"));
    };
    match explain(tool, arguments, &asked.agent.policy(), asked.remembered) {
        Ruling::Allow { rule } => Outlook::Runs { rule },
        Ruling::Ask { rule } => Outlook::Asks { rule },
        Ruling::Deny { rule, reason } => Outlook::Denied { rule, reason },
    }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}
