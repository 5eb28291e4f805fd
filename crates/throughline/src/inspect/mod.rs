//! Dry run of a reply: the calls in a pasted text, which of them would run, and the errors in the others. Runs
//! nothing.

pub mod views;

use crate::agent::{Agent, TextProtocolKind, ToolSelection};
use serde_json::Value;
use std::ops::Range;
use throughline_engine::{OfferedTool, PolicyDecision, RememberedDecision, explain, suggest_names};
use throughline_tools::{ToolAvailability, ToolRegistry};
use throughline_wire::text_calls::{
    self, MarkupFinding, ParsedCall, TextProtocol, find_leaked, line_and_column,
};
use throughline_wire::{CallArguments, ToolDefinition, ToolName, WireName};

/// The grammars that a text is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolFilter {
    /// All text protocols; each reports the calls that it finds.
    Any,
    /// One text protocol.
    Only(TextProtocolKind),
}

/// Contents of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplyInspection {
    /// Calls and refused blocks, in the order of the text.
    pub calls: Vec<InspectedCall>,
    /// Other findings, in the order of the text.
    pub warnings: Vec<MarkupFinding>,
    /// The text that a reader would see: everything but markup. Leaked calls are part of it.
    pub visible_text: String,
}

/// A call in a text, or a block that does not form one.
#[derive(Clone, Debug, PartialEq)]
pub struct InspectedCall {
    /// Syntax of the call: a text protocol, or the format of a leaked call.
    pub format: &'static str,
    /// Written in the protocol that is read, or in another model's markup.
    pub origin: CallOrigin,
    /// The name as written; empty if it is missing.
    pub name: String,
    /// The tool that it means.
    pub tool: Option<ToolName>,
    /// The arguments, if they could be read.
    pub arguments: Option<Value>,
    /// Prediction of its fate in a turn.
    pub prediction: CallPrediction,
    /// The block, in bytes of the text.
    pub span: Range<usize>,
    /// Line of the call, from 1.
    pub line: u32,
    /// Column of the call in characters, from 1.
    pub column: u32,
}

/// Origin of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOrigin {
    /// A text protocol.
    Protocol,
    /// Markup of a model that a server did not turn into a call: reported, and run only where the upstream's profile says
    /// so (`leaked_calls = "run"`).
    Leaked,
}

/// Prediction of a call's fate in a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallPrediction {
    /// The call would run.
    Runs {
        /// The rule that decides.
        rule: String,
    },
    /// A person would be asked for approval first.
    Asks {
        /// The rule that decides.
        rule: String,
    },
    /// The call would be denied.
    Denied {
        /// The rule that decides.
        rule: String,
        /// Reason that the model would receive.
        reason: String,
    },
    /// The call would not start: refused, unknown, not offered, or with arguments that do not fit.
    NotStarted {
        /// Reason that the model and the user would receive.
        why: String,
    },
}

impl CallPrediction {
    /// True if the call ends without a question to a person.
    pub fn is_refusal(&self) -> bool {
        matches!(self, CallPrediction::Denied { .. } | CallPrediction::NotStarted { .. })
    }
}

/// Context of an inspection: an agent, the available tools, and earlier decisions.
#[derive(Clone, Copy, Debug)]
pub struct InspectionContext<'a> {
    /// The agent whose rules apply.
    pub agent: &'a Agent,
    /// All registered tools.
    pub registry: &'a ToolRegistry,
    /// The tools that the agent is offered.
    pub selection: &'a ToolSelection,
    /// Remembered decisions.
    pub remembered: &'a [RememberedDecision],
}

/// Reads a whole reply as the end of a step does, with the simple parser, and decides about each call without running it.
pub fn inspect(text: &str, filter: ProtocolFilter, context: InspectionContext<'_>) -> ReplyInspection {
    let definitions: Vec<ToolDefinition> = context.registry.iter().map(|tool| tool.definition()).collect();
    let mut inspection =
        ReplyInspection { calls: Vec::new(), warnings: Vec::new(), visible_text: text.to_owned() };
    let protocols = text_calls::PROTOCOLS.iter().filter(|protocol| match filter {
        ProtocolFilter::Any => true,
        ProtocolFilter::Only(one) => protocol.name() == one.name(),
    });
    for protocol in protocols {
        inspection.read_protocol(*protocol, &definitions, filter, text, context);
    }
    let names: Vec<String> = definitions.iter().map(|tool| tool.name.as_str().to_owned()).collect();
    for leaked in find_leaked(text, &names) {
        if inspection.calls.iter().all(|request| !overlap(&request.span, &leaked.span)) {
            let arguments = Ok(leaked.arguments);
            let request = InspectedCall::new(
                leaked.format,
                CallOrigin::Leaked,
                leaked.name,
                arguments,
                leaked.span,
                text,
                context,
            );
            inspection.calls.push(request);
        }
    }
    inspection.calls.sort_by_key(|request| request.span.start);
    inspection.warnings.sort_by_key(|warning| warning.offset);
    inspection
}

/// Predicts the fate of one call: the answer of [`inspect`] without surrounding text. Runs nothing.
pub fn predict_call(tool: &ToolName, arguments: Value, context: InspectionContext<'_>) -> CallPrediction {
    predict(tool.as_str(), Some(tool), Ok(&CallArguments::from_value(arguments)), context)
}

impl ReplyInspection {
    fn read_protocol(
        &mut self,
        protocol: &dyn TextProtocol,
        definitions: &[ToolDefinition],
        filter: ProtocolFilter,
        text: &str,
        context: InspectionContext<'_>,
    ) {
        let parsed = protocol.parse(text, definitions);
        let mut has_calls = false;
        let earlier_spans: Vec<Range<usize>> =
            self.calls.iter().map(|request| request.span.clone()).collect();
        for ParsedCall { name, arguments, span, .. } in parsed.calls {
            // Another protocol has read this part: its blocks quote anything.
            if earlier_spans.iter().all(|taken| !overlap(taken, &span)) {
                has_calls = true;
                let format = protocol.name();
                let request =
                    InspectedCall::new(format, CallOrigin::Protocol, name, arguments, span, text, context);
                self.calls.push(request);
            }
        }
        let is_outside =
            |finding: &MarkupFinding| earlier_spans.iter().all(|taken| !taken.contains(&finding.offset));
        let findings: Vec<MarkupFinding> = parsed.findings.into_iter().filter(is_outside).collect();
        if has_calls || !findings.is_empty() || filter != ProtocolFilter::Any {
            self.visible_text = parsed.text;
        }
        self.warnings.extend(findings);
    }
}

impl InspectedCall {
    fn new(
        format: &'static str,
        origin: CallOrigin,
        name: String,
        arguments: Result<String, String>,
        span: Range<usize>,
        text: &str,
        context: InspectionContext<'_>,
    ) -> Self {
        let (line, column) = line_and_column(text, span.start);
        let registered = context.registry.by_wire_name(&WireName::from(name.as_str()));
        let tool = registered.map(|tool| tool.spec().name.clone());
        // Arguments of a text protocol in JSON are parsed strictly; those of a leaked call may need repair.
        let read = arguments.and_then(|json| {
            let value = serde_json::from_str(&json)
                .map_err(|error| format!("its arguments are not valid JSON: {error}"))?;
            Ok(CallArguments { text: json, value, repairs: Vec::new() })
        });
        let prediction = predict(&name, tool.as_ref(), read.as_ref(), context);
        let arguments = read.ok().map(|arguments| arguments.value);
        Self { format, origin, name, tool, arguments, prediction, span, line, column }
    }
}

/// Applies the same checks in the same order as a turn: is it a call, does the tool exist, is it offered, do
/// the arguments fit, what do the rules decide.
fn predict(
    name: &str,
    tool: Option<&ToolName>,
    arguments: Result<&CallArguments, &String>,
    context: InspectionContext<'_>,
) -> CallPrediction {
    let not_started = |why: String| CallPrediction::NotStarted { why };
    let arguments = match arguments {
        Ok(arguments) => arguments,
        Err(why) => return not_started(why.clone()),
    };
    let discovered = tool.and_then(|tool| {
        context.selection.discovered.iter().find(|discovered| discovered.tool.spec().name == *tool)
    });
    let Some(discovered) = discovered else {
        let offered = context.selection.discovered.iter().filter(|found| found.is_offered());
        let suggestions = suggest_names(name, offered.map(|found| found.tool.wire_name().as_str()));
        return not_started(match suggestions.as_slice() {
            [] => format!("there is no tool `{name}`"),
            suggestions => {
                format!("there is no tool `{name}`; did the model mean `{}`?", suggestions.join("`, `"))
            }
        });
    };
    if let ToolAvailability::Withheld(why) = &discovered.availability {
        return not_started(format!("`{name}` is not offered: {why}"));
    }
    if let Err(error) = discovered.tool.validate(arguments) {
        return not_started(format!("its arguments are invalid: {error}"));
    }
    let offered: Vec<OfferedTool> = context.registry.offered(&context.agent.tool_call.toggles);
    let Some(tool) = offered.iter().find(|offered| offered.name == discovered.tool.spec().name) else {
        return not_started(format!("`{name}` is not offered"));
    };
    match explain(tool, arguments, &context.agent.policy(), context.remembered) {
        PolicyDecision::Allow { rule } => CallPrediction::Runs { rule },
        PolicyDecision::Ask { rule } => CallPrediction::Asks { rule },
        PolicyDecision::Deny { rule, reason } => CallPrediction::Denied { rule, reason },
    }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}
