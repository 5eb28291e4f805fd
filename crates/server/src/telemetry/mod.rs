//! Telemetry for operators: metrics, logs, traces and the call history.
//!
//! All of it is a fold of events that the log has acknowledged ([`TelemetryFold`]); it is never queried while a turn
//! runs and never delays one. Names are in [`names`] only. R: O1, E1

pub(crate) mod labels;
pub mod logs;
pub mod names;
pub mod traces;

mod calls;
mod fold;
mod history;
mod measurement;
mod meter;
#[cfg(feature = "otel")]
mod otlp;
mod recorder;
mod redaction;
mod rollback;
mod routes;
mod trace_context;

pub use calls::{CallChange, CallFold};
pub use fold::{ContentCapture, TelemetryFold};
pub use history::{
    CALLS_WAITING_MAX, CallHistory, HistoryWriterTask, RAW_BYTES_WAITING_MAX, RAW_TRUNCATED_MAX, call_rows_of,
};
pub use logs::LogFormat;
pub use measurement::{
    CallAssessment, CallContent, CallDetected, CallMetrics, Measurement, StepMetrics, TurnChoice, TurnMetrics,
};
pub use meter::{DETECTION_WINDOW_CALLS, StoreMetrics, TelemetryMeter, ViewerResume};
#[cfg(feature = "otel")]
pub use otlp::OtlpExporter;
pub use recorder::Telemetry;
pub use redaction::Redaction;
pub use rollback::{CONVERSATIONS_REMEMBERED_MAX, ChoiceHistory, RollbackKind, UpstreamDelivery};
pub(crate) use routes::routes;
pub use routes::{FRAMES_PER_SECOND_MAX, StoreMetricsFn};
pub use trace_context::{TraceContext, TraceParent};

use std::sync::{Arc, OnceLock};

/// Telemetry for parts of the server that exist before it is set.
pub(crate) type TelemetryCell = Arc<OnceLock<Arc<Telemetry>>>;
