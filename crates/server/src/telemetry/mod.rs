//! Telemetry for operators: metrics, logs, traces and the call history.
//!
//! All of it is a fold of events that the log has acknowledged ([`TelemetryFold`]); it is never queried while
//! a turn runs and never delays one. Only [`names`] defines the names.

pub(crate) mod labels;
pub(crate) mod logs;
pub(crate) mod names;
pub(crate) mod traces;

mod calls;
mod fold;
mod history;
mod measurement;
mod meter;
#[cfg(feature = "otel")]
mod otlp;
mod percentiles;
mod recorder;
mod redaction;
mod rollback;
#[cfg(feature = "otel")]
mod span_sender;
mod thresholds;
mod trace_context;

pub(crate) use calls::{CallChange, CallFold};
pub use fold::{ContentCapture, TelemetryFold};
pub use history::{CallHistory, HistoryWriterTask};
pub(crate) use meter::ViewerResume;
pub use meter::{StoreMetrics, StoreMetricsFn};
#[cfg(feature = "otel")]
pub use otlp::OtlpExporter;
pub(crate) use percentiles::Percentiles;
pub use recorder::Telemetry;
pub use redaction::Redaction;
pub(crate) use thresholds::ThresholdInfo;
pub use trace_context::TraceContext;
pub(crate) use trace_context::trace_parent;

use std::sync::{Arc, OnceLock};

/// Telemetry for parts of the server that exist before it is set.
pub(crate) type TelemetryCell = Arc<OnceLock<Arc<Telemetry>>>;

#[cfg(test)]
mod tests;
