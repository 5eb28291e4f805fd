//! Log lines about turns, and the output of logs: JSON lines for collectors, plain text on a terminal,
//! secrets redacted in every line.

use super::measurement::{CallDetected, CallMetrics, Measurement, StepMetrics, TurnMetrics};
use super::meter::{call_status, turn_status};
use super::redaction::Redaction;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use throughline_engine::TurnId;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

/// Environment variable with the log filter; [`FALLBACK_VARIABLE`] counts if it is not set.
pub(crate) const LOG_VARIABLE: &str = "THROUGHLINE_LOG";
/// The usual name in Rust programs.
pub(crate) const FALLBACK_VARIABLE: &str = "RUST_LOG";
const DEFAULT_FILTER: &str = "info";
/// A line that cannot be written is lost. A report would go to standard error, too, and writing there after
/// the terminal was closed panics in the code that logs.
const REPORTS_LOST_LINES: bool = false;
/// Libraries that log network activity, which is noise here, and would be an endless loop if logs are sent
/// over HTTP.
const QUIET_LIBRARIES: [&str; 8] =
    ["hyper", "hyper_util", "h2", "reqwest", "rustls", "tower", "opentelemetry", "rmcp"];

/// The exporter of traces, whose failures are logged by `SpanSender`, once and with the address.
const SILENT_LIBRARY: &str = "opentelemetry-otlp";

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// [`Self::Plain`] on a terminal, else [`Self::Json`].
    #[default]
    Auto,
    /// One JSON object per line: `time`, `level`, `msg`, `target`, and the other fields.
    Json,
    /// Plain text for people.
    Plain,
}

/// Logs the measurements of a turn that deserve a line; each line has the turn's trace.
pub(crate) fn log_measurement(turn: &TurnId, trace: &str, measurement: &Measurement) {
    match measurement {
        Measurement::CallDetected(call) => log_call_detected(turn, trace, call),
        Measurement::CallEnded(call) => log_call_ended(turn, trace, call),
        Measurement::StepEnded(step) => log_step_ended(turn, trace, step),
        Measurement::UpstreamFailed(failure) => {
            tracing::warn!(
                turn_id = %turn,
                trace_id = trace,
                code = failure.code.as_str(),
                upstream = failure.upstream.as_deref(),
                why = failure.why.as_deref(),
                remedy = failure.remedy.as_deref(),
                "upstream_failed"
            );
        }
        Measurement::TurnResumed => tracing::info!(turn_id = %turn, trace_id = trace, "turn_resumed"),
        Measurement::TurnEnded(figures) => log_turn_ended(trace, figures),
        Measurement::TurnBegan => tracing::info!(turn_id = %turn, trace_id = trace, "turn_began"),
        Measurement::ChoiceMade(_) | Measurement::CallAssessed(_) => {}
    }
}

fn log_call_detected(turn: &TurnId, trace: &str, call: &CallDetected) {
    tracing::info!(
        turn_id = %turn,
        trace_id = trace,
        step = call.step,
        tool_id = %call.call,
        tool_name = call.tool.as_deref().unwrap_or("unknown"),
        detection_latency_ms = call.latency_ms,
        stream_position = call.stream_position,
        "streaming_tool_call_detected"
    );
}

fn log_call_ended(turn: &TurnId, trace: &str, call: &CallMetrics) {
    let name = call.tool.as_deref().unwrap_or("unknown");
    let (status, error) = (call_status(call.status), call.error.as_deref());
    match call.duration_ms {
        Some(ms) => tracing::info!(
            turn_id = %turn,
        trace_id = trace,
            step = call.step,
            tool_id = %call.call,
            tool_name = name,
            execution_latency_ms = ms,
            is_parallel = call.parallel,
            is_early = call.early,
            status,
            error,
            "streaming_tool_executed"
        ),
        None => tracing::info!(
            turn_id = %turn,
        trace_id = trace,
            step = call.step,
            tool_id = %call.call,
            tool_name = name,
            status,
            error,
            "streaming_tool_not_executed"
        ),
    }
}

fn log_step_ended(turn: &TurnId, trace: &str, step: &StepMetrics) {
    let usage = step.usage.unwrap_or_default();
    tracing::debug!(
        turn_id = %turn,
        trace_id = trace,
        step = step.step,
        attempt = step.attempt,
        upstream = step.upstream.as_str(),
        model = step.model.as_str(),
        duration_ms = step.ended_at.saturating_sub(step.started_at),
        first_chunk_ms = step.first_chunk_ms,
        input_tokens = usage.input_tokens,
        output_tokens = usage.output_tokens,
        error = step.error.as_deref(),
        "step_ended"
    );
}

fn log_turn_ended(trace: &str, turn: &TurnMetrics) {
    tracing::info!(
        turn_id = %turn.turn,
        trace_id = trace,
        conversation_id = turn.conversation.as_ref().map(|id| id.as_str()),
        agent = turn.agent.as_str(),
        mode = turn.mode.as_str(),
        status = turn_status(turn.status),
        steps = turn.steps,
        calls = turn.calls,
        duration_ms = turn.ended_at.saturating_sub(turn.started_at),
        first_content_ms = turn.first_content_ms,
        error = turn.error.as_deref(),
        "turn_ended"
    );
}

/// Begins to log to standard error, for the whole process. `false` = something else logs already.
pub fn install(format: LogFormat, redaction: Arc<Redaction>) -> bool {
    let terminal = io::stderr().is_terminal();
    let filter = env_filter(|name| std::env::var(name).ok());
    let plain = format == LogFormat::Plain || (format == LogFormat::Auto && terminal);
    let out = RedactingMakeWriter { redaction, out: io::stderr };
    if plain {
        let ansi = terminal && std::env::var_os("NO_COLOR").is_none();
        let builder = tracing_subscriber::fmt()
            .log_internal_errors(REPORTS_LOST_LINES)
            .with_env_filter(filter)
            .with_ansi(ansi)
            .with_target(false);
        tracing::subscriber::set_global_default(builder.with_writer(out).finish()).is_ok()
    } else {
        tracing::subscriber::set_global_default(json_subscriber(filter, out)).is_ok()
    }
}

/// A subscriber that writes JSON lines, redacted, to `out`.
pub fn json_to<W>(redaction: Arc<Redaction>, out: W) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    json_subscriber(EnvFilter::new(DEFAULT_FILTER), RedactingMakeWriter { redaction, out })
}

fn json_subscriber<W>(filter: EnvFilter, out: W) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    tracing_subscriber::fmt()
        .log_internal_errors(REPORTS_LOST_LINES)
        .with_env_filter(filter)
        .event_format(JsonLine)
        .with_writer(out)
        .finish()
}

/// Filter from the environment. An invalid one is ignored.
fn env_filter(variable: impl Fn(&str) -> Option<String>) -> EnvFilter {
    let directives = [LOG_VARIABLE, FALLBACK_VARIABLE]
        .iter()
        .find_map(|name| variable(name))
        .filter(|directives| !directives.is_empty());
    let directives = directives.unwrap_or_else(|| DEFAULT_FILTER.to_owned());
    // A library that is named is wanted.
    let quiet = QUIET_LIBRARIES
        .iter()
        .filter(|library| !directives.contains(*library))
        .map(|library| format!(",{library}=warn"));
    let mut all = directives.clone() + &quiet.collect::<String>();
    if !directives.contains("opentelemetry") {
        all += &format!(",{SILENT_LIBRARY}=off");
    }
    EnvFilter::try_new(&all).unwrap_or_else(|_| EnvFilter::new(DEFAULT_FILTER))
}

/// Formatter of one event as one JSON object on one line.
struct JsonLine;

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let mut line = serde_json::Map::new();
        line.insert("time".into(), jiff::Timestamp::now().to_string().into());
        line.insert("level".into(), metadata.level().as_str().to_lowercase().into());
        let mut fields = JsonFields(serde_json::Map::new());
        event.record(&mut fields);
        line.insert("msg".into(), fields.0.remove("message").unwrap_or_default());
        line.insert("target".into(), metadata.target().into());
        line.append(&mut fields.0);
        // Invisible characters are spelled out, for readers at a terminal.
        writeln!(writer, "{}", throughline_wire::display_escape::json(&serde_json::Value::Object(line)))
    }
}

struct JsonFields(serde_json::Map<String, serde_json::Value>);

impl Visit for JsonFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name().to_owned(), value.into());
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

/// Takes secrets out of what is written through it. A line is written in one piece.
struct RedactingMakeWriter<W> {
    redaction: Arc<Redaction>,
    out: W,
}

impl<'w, W: MakeWriter<'w>> MakeWriter<'w> for RedactingMakeWriter<W> {
    type Writer = RedactingWriter<'w, W::Writer>;

    fn make_writer(&'w self) -> Self::Writer {
        RedactingWriter { redaction: &self.redaction, out: self.out.make_writer() }
    }
}

struct RedactingWriter<'w, W> {
    redaction: &'w Redaction,
    out: W,
}

impl<W: Write> Write for RedactingWriter<'_, W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        self.out.write_all(self.redaction.redact(&text).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
