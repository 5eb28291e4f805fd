//! Every metric of `/metrics`, with its unit, labels and buckets. Only this module defines these names.
//!
//! The GenAI names are those that instrumentation emits today (OpenTelemetry GenAI semantic conventions,
//! *Development*; a rename to `gen_ai.client.inference.*` is in flight, and is one constant each here). In
//! the Prometheus text dots become `_` and the unit is appended. `docs/observability.md` is compared with
//! [`METRICS`] by a test.

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricKind {
    /// A number that only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Observations, counted in these buckets (upper bounds).
    Histogram(&'static [f64]),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Name in the Prometheus text.
    pub name: &'static str,
    pub kind: MetricKind,
    /// Unit of the values: `s`, `tokens`, ..., or the counted objects.
    pub unit: &'static str,
    /// Labels, in order. A label that does not apply (`error_type` of a success) is left out.
    pub labels: &'static [&'static str],
    /// Meaning, in a sentence.
    pub help: &'static str,
}

/// The GenAI conventions' boundaries for durations in seconds: .01·2ⁿ.
pub(crate) const SECONDS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// The conventions' boundaries for whole turns in seconds: .1·2ⁿ.
pub(crate) const TURN_SECONDS: &[f64] =
    &[0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6];
/// The conventions' boundaries for tokens: 4ⁿ.
pub(crate) const TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
/// Buckets for operations that should be immediate, in seconds.
pub(crate) const INSTANT_SECONDS: &[f64] = &[0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0];
/// Seconds of tools: finer around the alerts' thresholds of 1 and 3 s.
pub(crate) const LATENCY_SECONDS: &[f64] =
    &[0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0];
/// Model calls of a turn.
pub(crate) const STEPS: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0];

/// Label: the operation (`chat`, `execute_tool`, `invoke_agent`).
pub(crate) const OPERATION: &str = "gen_ai_operation_name";
/// Label: the provider of the model.
pub(crate) const PROVIDER: &str = "gen_ai_provider_name";
/// Label: the requested model.
pub(crate) const MODEL: &str = "gen_ai_request_model";
/// Label: `input` or `output`.
pub(crate) const TOKEN_TYPE: &str = "gen_ai_token_type";
/// Label: the tool.
pub(crate) const TOOL: &str = "gen_ai_tool_name";
/// Label: the agent.
pub(crate) const AGENT: &str = "gen_ai_agent_name";
/// Label: why it failed.
pub(crate) const ERROR_TYPE: &str = "error_type";

macro_rules! metrics {
    ($($(#[$doc:meta])* $constant:ident = $name:literal, $kind:expr, $unit:literal, [$($label:expr),*], $help:literal;)*) => {
        $($(#[$doc])* #[doc = $help] pub(crate) const $constant: Metric =
            Metric { name: $name, kind: $kind, unit: $unit, labels: &[$($label),*], help: $help };)*
        pub const METRICS: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    OPERATION_DURATION = "gen_ai_client_operation_duration_seconds", MetricKind::Histogram(SECONDS), "s",
        [OPERATION, PROVIDER, MODEL, ERROR_TYPE], "Duration of a model call, from the request to the end of its reply.";
    FIRST_CHUNK = "gen_ai_client_operation_time_to_first_chunk_seconds", MetricKind::Histogram(SECONDS), "s",
        [OPERATION, PROVIDER, MODEL], "Time from the request of a model call to the first content of its reply.";
    PER_CHUNK = "gen_ai_client_operation_time_per_output_chunk_seconds", MetricKind::Histogram(SECONDS), "s",
        [OPERATION, PROVIDER, MODEL], "Mean time between two pieces of content of a reply after the first, one \
         value per reply.";
    TOKEN_USAGE = "gen_ai_client_token_usage", MetricKind::Histogram(TOKENS), "tokens",
        [OPERATION, PROVIDER, MODEL, TOKEN_TYPE], "Tokens of a model call, as the upstream counts them.";
    TOOL_DURATION = "gen_ai_execute_tool_duration_seconds", MetricKind::Histogram(SECONDS), "s",
        [OPERATION, TOOL, ERROR_TYPE], "Duration of a tool call, from its start to its result.";
    AGENT_DURATION = "gen_ai_invoke_agent_duration_seconds", MetricKind::Histogram(TURN_SECONDS), "s",
        [OPERATION, AGENT, ERROR_TYPE], "Duration of a turn, from its start to its end.";
    MCP_DURATION = "mcp_client_operation_duration_seconds", MetricKind::Histogram(SECONDS), "s",
        ["mcp_method_name", TOOL, ERROR_TYPE], "Duration of a call to an MCP server's tool.";

    DETECTION_RATE = "streaming_tool_detection_rate", MetricKind::Gauge, "ratio", [],
        "Share of recent calls on the wire that arrived complete: the name of an offered tool and valid arguments.";
    EXECUTION_LATENCY = "streaming_tool_execution_latency_seconds", MetricKind::Histogram(LATENCY_SECONDS), "s", [],
        "Duration of all tools from start to result, the source of p50 and p95.";
    JANK_FRAMES = "streaming_ui_jank_frames_total", MetricKind::Counter, "frames", [],
        "Late frames, as reported by pages.";
    ROLLBACKS = "streaming_rollback_count_total", MetricKind::Counter, "changes", ["change"],
        "Changes of model or mode, or from streaming to non-streaming, within a conversation.";

    RATINGS = "throughline_ratings_total", MetricKind::Counter, "ratings", ["value"],
        "Answers rated up or down by people.";
    TURNS = "throughline_turns_total", MetricKind::Counter, "turns", ["status"], "Turns that have ended, by reason.";
    ACTIVE_TURNS = "throughline_active_turns", MetricKind::Gauge, "turns", [], "Turns running in this process.";
    STEPS_PER_TURN = "throughline_steps_per_turn", MetricKind::Histogram(STEPS), "steps", [], "Model calls of a turn.";
    FIRST_CONTENT = "throughline_time_to_first_content_seconds", MetricKind::Histogram(SECONDS), "s", [],
        "Time from the start of a turn to the first content that a client can see.";
    CALLS_SEEN = "throughline_tool_calls_seen_total", MetricKind::Counter, "calls", [],
        "Calls on the wire whose arguments are complete or were cut off.";
    CALLS_DETECTED = "throughline_tool_calls_detected_total", MetricKind::Counter, "calls", [],
        "Calls seen on the wire that were decoded completely.";
    CALLS = "throughline_tool_calls_total", MetricKind::Counter, "calls", [TOOL, "status"], "Calls that have ended, by outcome.";
    DETECTION = "throughline_tool_detection_seconds", MetricKind::Histogram(INSTANT_SECONDS), "s", [],
        "Time from the delta that named a call to its `tool_use` event in the log.";
    TURNS_RESUMED = "throughline_turns_resumed_total", MetricKind::Counter, "turns", [],
        "Turns of an earlier process that were resumed.";
    RESUMES = "throughline_resume_total", MetricKind::Counter, "viewers", ["outcome"],
        "Viewers that reconnected to a turn: `continued` at their cursor, from a `snapshot`, `gone`, or with a \
         `resync`.";
    DROPS = "throughline_subscriber_drops_total", MetricKind::Counter, "viewers", [],
        "Viewers that were disconnected because they did not read.";
    VIEWERS = "throughline_viewers", MetricKind::Gauge, "viewers", [], "Connected viewers.";
    UPSTREAM_ERRORS = "throughline_upstream_errors_total", MetricKind::Counter, "failures", ["code"],
        "Failed model calls, including those that were retried.";
    STORE_COMMITS = "throughline_store_commits_total", MetricKind::Counter, "commits", [], "Transactions of the store.";
    STORE_FSYNCS = "throughline_store_fsyncs_total", MetricKind::Counter, "fsyncs", [],
        "Transactions that were synced to disk.";
    STORE_EVENTS = "throughline_store_events_total", MetricKind::Counter, "events", [], "Events that the store has written.";
    STORE_QUEUE = "throughline_store_queue", MetricKind::Gauge, "jobs", [], "Appends waiting for the store's writer.";
    HISTORY_QUEUE = "throughline_call_history_queue", MetricKind::Gauge, "calls", [],
        "Ended calls waiting to be written to the call history.";
    RESIDENT_MEMORY = "process_resident_memory_bytes", MetricKind::Gauge, "bytes", [],
        "Resident memory of the process. Linux only.";
    BUILD = "throughline_build_info", MetricKind::Gauge, "1", ["version"], "1, labeled with the version of the program.";
}

/// Provider name, in the vocabulary of the conventions, of an upstream in the configuration.
pub(crate) fn provider_name(upstream: &str) -> &str {
    match upstream {
        "gemini" => "gcp.gemini",
        "bedrock" => "aws.bedrock",
        "azure" => "azure.ai.openai",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        other => other,
    }
}

/// Names of span attributes (OpenTelemetry GenAI semantic conventions).
pub(crate) mod attribute {
    pub(crate) const OPERATION: &str = "gen_ai.operation.name";
    /// Provider of the model.
    pub(crate) const PROVIDER: &str = "gen_ai.provider.name";
    /// The requested model.
    pub(crate) const REQUEST_MODEL: &str = "gen_ai.request.model";
    /// Id of the conversation.
    pub(crate) const CONVERSATION: &str = "gen_ai.conversation.id";
    pub(crate) const AGENT: &str = "gen_ai.agent.name";
    /// The model's finish reasons.
    pub(crate) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
    /// Time to the first content, in seconds.
    pub(crate) const FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
    pub(crate) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
    /// Tokens out.
    pub(crate) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
    /// Tokens that came from a cache.
    pub(crate) const CACHED_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
    pub(crate) const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
    pub(crate) const TOOL: &str = "gen_ai.tool.name";
    /// `function`.
    pub(crate) const TOOL_TYPE: &str = "gen_ai.tool.type";
    pub(crate) const CALL: &str = "gen_ai.tool.call.id";
    /// Opt-in: the arguments of the tool.
    pub(crate) const ARGUMENTS: &str = "gen_ai.tool.call.arguments";
    /// Opt-in: the result of the tool.
    pub(crate) const RESULT: &str = "gen_ai.tool.call.result";
    /// Code of the error.
    pub(crate) const ERROR_TYPE: &str = "error.type";
    /// Method of a call of an MCP server's tool: `tools/call`.
    pub(crate) const MCP_METHOD: &str = "mcp.method.name";
    /// Our turn.
    pub(crate) const TURN: &str = "throughline.turn.id";
    /// Our step, from 1.
    pub(crate) const STEP: &str = "throughline.step";
    /// Number of the attempt at the step, from 1.
    pub(crate) const ATTEMPT: &str = "throughline.attempt";
    /// Status of a turn or call.
    pub(crate) const STATUS: &str = "throughline.status";
}

#[cfg(test)]
mod tests;
