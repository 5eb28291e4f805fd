//! Sends spans, and logs a message when the collector does not accept them.

use opentelemetry_otlp::SpanExporter as OtlpSpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Address of the collector for traces alone, used as it is.
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
/// Environment variable with the collector's address for all signals.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The exporter of OTLP with an end to its silence: one line when an outage begins, and one when it ends.
#[derive(Debug)]
pub(super) struct SpanSender {
    exporter: OtlpSpanExporter,
    /// Address of the collector.
    collector: String,
    /// Spans lost since the collector was last reached.
    lost: AtomicUsize,
}

impl SpanSender {
    /// Sends with this exporter to the address that was given to it, or to that of the environment.
    pub(super) fn new(exporter: OtlpSpanExporter, endpoint: Option<String>) -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let named = endpoint.or_else(|| variable(TRACES_ENDPOINT)).or_else(|| variable(ENDPOINT));
        Self { exporter, collector: named.unwrap_or_default(), lost: AtomicUsize::new(0) }
    }

    fn record(&self, outcome: OTelSdkResult, spans: usize) {
        match outcome {
            Ok(()) => {
                let lost = self.lost.swap(0, Relaxed);
                if lost > 0 {
                    tracing::info!(collector = self.collector, lost_spans = lost, "collector_reached_again");
                }
            }
            Err(error) => {
                // An outage is logged once, however long it lasts.
                if self.lost.fetch_add(spans, Relaxed) == 0 {
                    tracing::warn!(
                        collector = self.collector,
                        error = %error,
                        remedy = "start the collector, or correct OTEL_EXPORTER_OTLP_ENDPOINT; \
                                  OTEL_TRACES_EXPORTER=none sends no traces",
                        "collector_failed"
                    );
                }
            }
        }
    }
}

impl SpanExporter for SpanSender {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let outcome = self.exporter.export(batch).await;
        self.record(outcome, spans);
        // It has been logged; the processor would log it again at each attempt, without the address.
        Ok(())
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
