//! A turn as spans: `invoke_agent` ⊃ `chat`, `execute_tool`, with the times that its events carry.
//!
//! Created from measurements when the turn ends, so that a crash leaves no span half open. An MCP server's
//! call has no separate span: the conventions put `mcp.*` on `execute_tool` where both would exist.

use super::measurement::{CallMetrics, Measurement, StepMetrics, TurnMetrics};
use super::meter::{call_error, call_status, turn_status};
use super::names::{self, attribute};
use super::trace_context::TraceContext;
use throughline_engine::{TurnStatus, UnixMillis};
use throughline_wire::Usage;

/// Spans of one turn; what comes beyond them is left out of its trace.
pub(crate) const SPANS_PER_TURN_MAX: usize = 1_000;
/// Maximum length of a tool's input or output in a span, in bytes; the rest is left out.
pub const SPAN_CONTENT_BYTES_MAX: usize = 8 * 1024;

/// Destination of spans.
pub trait TraceSink: Send + Sync {
    /// Takes a turn that is over. Must not wait.
    fn export(&self, trace: TurnTrace);
}

/// A turn as spans.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnTrace {
    /// Trace and parent span.
    pub context: TraceContext,
    /// `invoke_agent`.
    pub root: SpanRecord,
    /// `chat` and `execute_tool`, in the order in which they ended; all are children of the root.
    pub children: Vec<SpanRecord>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SpanRecord {
    /// `{operation} {what}`.
    pub name: String,
    pub kind: SpanKind,
    /// Time of the beginning.
    pub start: UnixMillis,
    /// Time of the end.
    pub end: UnixMillis,
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// Code of the error, if it failed.
    pub error: Option<String>,
}

/// Kind of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Work of this process.
    Internal,
    /// A request to another process.
    Client,
}

/// Value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    Text(String),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// Several texts.
    Texts(Vec<String>),
}

/// Gathers the spans of one turn.
#[derive(Clone, Debug)]
pub struct TraceFold {
    context: TraceContext,
    children: Vec<SpanRecord>,
}

impl TraceFold {
    /// The fold of a turn at this position.
    pub fn new(context: TraceContext) -> Self {
        Self { context, children: Vec::new() }
    }

    /// Takes a finding; gives the trace with the last one.
    pub fn apply(&mut self, measurement: &Measurement) -> Option<TurnTrace> {
        let child = match measurement {
            Measurement::StepEnded(step) => chat(step),
            Measurement::CallEnded(call) => match call.started_at {
                Some(started) => execute_tool(call, started),
                // What never ran took no time.
                None => return None,
            },
            Measurement::TurnEnded(turn) => {
                return Some(TurnTrace {
                    context: self.context.clone(),
                    root: invoke_agent(turn),
                    children: std::mem::take(&mut self.children),
                });
            }
            _ => return None,
        };
        if self.children.len() < SPANS_PER_TURN_MAX {
            self.children.push(child);
        }
        None
    }
}

fn text_value(value: impl Into<String>) -> AttributeValue {
    AttributeValue::Text(value.into())
}

/// A text shortened to the limit of a span, at a character boundary.
fn truncate_content(text: &str) -> &str {
    &text[..text.floor_char_boundary(SPAN_CONTENT_BYTES_MAX)]
}

fn invoke_agent(turn: &TurnMetrics) -> SpanRecord {
    let mut attributes = vec![
        (attribute::OPERATION, text_value("invoke_agent")),
        (attribute::AGENT, text_value(&turn.agent)),
        (attribute::TURN, text_value(turn.turn.as_str())),
        (attribute::STATUS, text_value(turn_status(turn.status))),
    ];
    attributes
        .extend(turn.conversation.as_ref().map(|id| (attribute::CONVERSATION, text_value(id.as_str()))));
    attributes.extend(tokens(&turn.usage));
    let error = match turn.status {
        TurnStatus::Error => Some(turn.error.clone().unwrap_or_else(|| "error".to_owned())),
        TurnStatus::Interrupted => Some("interrupted".to_owned()),
        _ => None,
    };
    span(
        format!("invoke_agent {}", turn.agent),
        SpanKind::Internal,
        (turn.started_at, turn.ended_at),
        attributes,
        error,
    )
}

fn chat(step: &StepMetrics) -> SpanRecord {
    let mut attributes = vec![
        (attribute::OPERATION, text_value("chat")),
        (attribute::PROVIDER, text_value(names::provider_name(&step.upstream))),
        (attribute::REQUEST_MODEL, text_value(&step.model)),
        (attribute::STEP, AttributeValue::Int(step.step.into())),
        (attribute::ATTEMPT, AttributeValue::Int(step.attempt.into())),
    ];
    attributes.extend(
        step.first_chunk_ms.map(|ms| (attribute::FIRST_CHUNK, AttributeValue::Float(ms as f64 / 1_000.0))),
    );
    let finish = step.finish.and_then(|finish| serde_json::to_value(finish).ok());
    let finish = finish.as_ref().and_then(serde_json::Value::as_str);
    attributes.extend(
        finish.map(|finish| (attribute::FINISH_REASONS, AttributeValue::Texts(vec![finish.to_owned()]))),
    );
    attributes.extend(tokens(&step.usage.unwrap_or_default()));
    let name = format!("chat {}", step.model);
    span(name, SpanKind::Client, (step.started_at, step.ended_at), attributes, step.error.clone())
}

fn execute_tool(call: &CallMetrics, started: UnixMillis) -> SpanRecord {
    let tool = call.tool.as_deref().unwrap_or("unknown");
    let mut attributes = vec![
        (attribute::OPERATION, text_value("execute_tool")),
        (attribute::TOOL, text_value(tool)),
        (attribute::TOOL_TYPE, text_value("function")),
        (attribute::CALL, text_value(call.call.as_str())),
        (attribute::STEP, AttributeValue::Int(call.step.into())),
        (attribute::STATUS, text_value(call_status(call.status))),
    ];
    if call.source.starts_with("mcp:") {
        attributes.push((attribute::MCP_METHOD, text_value("tools/call")));
    }
    if let Some(content) = &call.content {
        attributes.push((attribute::ARGUMENTS, text_value(truncate_content(&content.arguments))));
        attributes.push((attribute::RESULT, text_value(truncate_content(&content.output))));
    }
    let error = call_error(call).map(ToOwned::to_owned);
    span(format!("execute_tool {tool}"), SpanKind::Internal, (started, call.ended_at), attributes, error)
}

fn span(
    name: String,
    kind: SpanKind,
    (start, end): (UnixMillis, UnixMillis),
    mut attributes: Vec<(&'static str, AttributeValue)>,
    error: Option<String>,
) -> SpanRecord {
    attributes.extend(error.as_ref().map(|error| (attribute::ERROR_TYPE, text_value(error))));
    SpanRecord { name, kind, start, end: end.max(start), attributes, error }
}

fn tokens(usage: &Usage) -> impl Iterator<Item = (&'static str, AttributeValue)> {
    let all = [
        (attribute::INPUT_TOKENS, usage.input_tokens),
        (attribute::OUTPUT_TOKENS, usage.output_tokens),
        (attribute::CACHED_TOKENS, usage.cached_input_tokens),
        (attribute::REASONING_TOKENS, usage.reasoning_tokens),
    ];
    all.into_iter()
        .filter_map(|(name, tokens)| Some((name, AttributeValue::Int(i64::try_from(tokens?).ok()?))))
}
