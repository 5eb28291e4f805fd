//! Observers of a server's turns: metrics, logs, the call history, and traces where a collector is named.

use super::store::ServerStorage;
use crate::exit::CliFailure;
use crate::messages;
use std::sync::Arc;
use std::time::Duration;
use throughline_server::{
    AppState, CallHistory, HistoryWriterTask, Redaction, StoreMetrics, StoreMetricsFn, Telemetry,
};
#[cfg(feature = "otel")]
use throughline_server::{ContentCapture, OtlpExporter};
use tokio_util::task::AbortOnDropHandle;

/// Time limit for writing the call history at shutdown.
const HISTORY_MAX: Duration = Duration::from_secs(2);
/// Time limit for sending the last spans to the collector.
#[cfg(feature = "otel")]
const COLLECTOR_MAX: Duration = Duration::from_secs(3);
/// Name the collector of traces: the usual variables of OpenTelemetry.
#[cfg(feature = "otel")]
const COLLECTOR: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
/// Transport protocol of the collector: HTTP with protobuf alone; gRPC and JSON are not supported.
#[cfg(feature = "otel")]
const PROTOCOL: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
#[cfg(feature = "otel")]
const SUPPORTED_PROTOCOL: &str = "http/protobuf";
/// Headers of every request to the collector: as secret as a key.
#[cfg(feature = "otel")]
const COLLECTOR_HEADERS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];
/// Permission to record inputs and outputs of tools in spans.
#[cfg(feature = "otel")]
const CONTENT: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

/// The observer of all turns, before the store is open.
pub(crate) struct Monitoring {
    telemetry: Arc<Telemetry>,
    #[cfg(feature = "otel")]
    collector: Option<Arc<OtlpExporter>>,
}

/// Monitoring with its running tasks.
pub(crate) struct RunningMonitoring {
    monitoring: Monitoring,
    _writer: HistoryWriterTask,
    _maintenance: AbortOnDropHandle<()>,
}

impl Monitoring {
    /// Metrics, logs, and traces if a collector is configured. Does not connect to it yet.
    pub(crate) fn new(redaction: Arc<Redaction>) -> Result<Self, CliFailure> {
        let telemetry = Telemetry::new(redaction.clone());
        #[cfg(feature = "otel")]
        {
            let collector = collector(redaction)?;
            let telemetry = match &collector {
                Some(collector) => telemetry.with_traces(collector.clone(), content_capture()),
                None => telemetry,
            };
            Ok(Self { telemetry: Arc::new(telemetry), collector })
        }
        #[cfg(not(feature = "otel"))]
        Ok(Self { telemetry: Arc::new(telemetry) })
    }

    /// Observer that the application reports to.
    pub(crate) fn observer(&self) -> Arc<Telemetry> {
        self.telemetry.clone()
    }

    /// Begins to write the call history.
    pub(crate) fn start(self, storage: &ServerStorage) -> RunningMonitoring {
        let telemetry = &self.telemetry;
        let (history, writer) =
            CallHistory::start(storage.catalog(), storage.log(), telemetry.meter().clone());
        telemetry.set_call_history(history);
        let maintenance = AbortOnDropHandle::new(tokio::spawn(telemetry.clone().run_upkeep()));
        RunningMonitoring { monitoring: self, _writer: writer, _maintenance: maintenance }
    }
}

impl RunningMonitoring {
    /// The state of a server whose viewers are counted, and which shows all figures.
    pub(crate) fn attach(&self, state: &AppState, storage: &ServerStorage) -> AppState {
        let store = storage.store.clone();
        let metrics: StoreMetricsFn = Arc::new(move || {
            let now = store.metrics();
            StoreMetrics {
                commits: now.commits,
                fsyncs: now.fsyncs,
                events: now.events,
                queue: now.queue_jobs as u64,
            }
        });
        if let Some(history) = self.monitoring.telemetry.history() {
            state.turn_manager.set_call_history(history.clone());
        }
        state.with_telemetry(self.monitoring.telemetry.clone(), Some(metrics))
    }

    /// Waits until everything reported is written and sent, if store and collector are available.
    pub(crate) async fn finish(&self) {
        let history = async {
            if let Some(history) = self.monitoring.telemetry.history() {
                // A store that has failed will not take it, and the log has it all.
                let _ = tokio::time::timeout(HISTORY_MAX, history.wait_flushed()).await;
            }
        };
        #[cfg(feature = "otel")]
        let sent = async {
            if let Some(collector) = &self.monitoring.collector {
                collector.finish(COLLECTOR_MAX).await;
            }
        };
        #[cfg(not(feature = "otel"))]
        let sent = std::future::ready(());
        tokio::join!(history, sent);
    }
}

/// An environment variable that is not empty.
#[cfg(feature = "otel")]
fn non_empty_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

#[cfg(feature = "otel")]
fn collector(redaction: Arc<Redaction>) -> Result<Option<Arc<OtlpExporter>>, CliFailure> {
    let is = |name: &str, wanted: &str| {
        non_empty_variable(name).is_some_and(|value| value.trim().eq_ignore_ascii_case(wanted))
    };
    let is_off = is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none");
    if is_off || !COLLECTOR.iter().any(|name| non_empty_variable(name).is_some()) {
        return Ok(None);
    }
    if let Some(other) = PROTOCOL
        .iter()
        .find_map(|name| non_empty_variable(name))
        .filter(|protocol| protocol.trim() != SUPPORTED_PROTOCOL)
    {
        return Err(messages::no_collector(&messages::other_protocol(other.trim(), SUPPORTED_PROTOCOL)));
    }
    // `authorization=Bearer%20abc,x-key=def`
    let headers = COLLECTOR_HEADERS.iter().filter_map(|name| non_empty_variable(name));
    for (_, value) in headers.flat_map(|all| {
        let pairs = all.split(',').filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect::<Vec<_>>()
    }) {
        let token =
            value.rsplit([' ', '+']).next().and_then(|last| last.rsplit("%20").next()).map(str::to_owned);
        redaction.add([value].into_iter().chain(token));
    }
    let otlp = OtlpExporter::new(None, redaction).map_err(|why| messages::no_collector(&why))?;
    Ok(Some(Arc::new(otlp)))
}

#[cfg(feature = "otel")]
fn content_capture() -> ContentCapture {
    if non_empty_variable(CONTENT).is_some_and(|value| value.trim().eq_ignore_ascii_case("true")) {
        ContentCapture::Captured
    } else {
        ContentCapture::Omitted
    }
}
