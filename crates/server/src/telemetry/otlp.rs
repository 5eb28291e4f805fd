//! Spans over OTLP/HTTP to a collector, behind the feature `otel`.
//!
//! The exporter's client is a blocking one and lives on the batch processor's own thread: the asynchronous one panics
//! there, for want of a runtime. R: O1

use super::redaction::Redaction;
use super::traces::{SpanKind, SpanRecord, TraceSink, TurnTrace, Value};
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanKind as OtelKind, Status, TraceContextExt, Tracer as _, TracerProvider,
};
use opentelemetry::{Array, Context, KeyValue, StringValue};
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// What this service is called where `OTEL_SERVICE_NAME` says nothing.
const SERVICE: &str = "throughline";

/// The way to a collector. Dropping it sends what is left.
pub struct Otlp {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    redaction: Arc<Redaction>,
}

impl Otlp {
    /// To the collector at `endpoint` (its address for traces, such as `http://127.0.0.1:4318/v1/traces`), or where the
    /// usual `OTEL_EXPORTER_OTLP_…` variables say. Nothing is asked of it yet.
    ///
    /// # Errors
    /// What is wrong with the address or the variables, in words.
    pub fn new(endpoint: Option<String>, redaction: Arc<Redaction>) -> Result<Self, String> {
        // A blocking client makes and drops a runtime of its own, which must not happen within another one.
        let built = std::thread::spawn(move || -> Result<SdkTracerProvider, String> {
            let builder = SpanExporter::builder().with_http();
            let builder = match endpoint {
                Some(endpoint) => builder.with_endpoint(endpoint),
                None => builder,
            };
            let exporter = builder.build().map_err(|error| error.to_string())?;
            let service = std::env::var("OTEL_SERVICE_NAME").unwrap_or_else(|_| SERVICE.to_owned());
            let resource = Resource::builder()
                .with_service_name(service)
                .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
                .build();
            Ok(SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build())
        });
        let provider = built.join().map_err(|_| "the exporter panicked".to_owned())??;
        let tracer = provider.tracer(SERVICE);
        Ok(Self { provider, tracer, redaction })
    }

    /// Sends what is left; blocks until it is sent or given up. Not for a thread of the runtime.
    ///
    /// # Errors
    /// What the collector or the network said.
    pub fn flush(&self) -> Result<(), String> {
        self.provider.force_flush().map_err(|error| error.to_string())
    }

    fn span(&self, record: SpanRecord, parent: &Context) -> opentelemetry_sdk::trace::Span {
        let attributes =
            record.attributes.into_iter().map(|(name, value)| KeyValue::new(name, self.value(value)));
        let builder = SpanBuilder::from_name(self.redaction.redact(&record.name).into_owned())
            .with_kind(match record.kind {
                SpanKind::Internal => OtelKind::Internal,
                SpanKind::Client => OtelKind::Client,
            })
            .with_start_time(time(record.start))
            .with_attributes(attributes.collect::<Vec<_>>());
        let mut span = self.tracer.build_with_context(builder, parent);
        if let Some(error) = record.error {
            span.set_status(Status::error(self.redaction.redact(&error).into_owned()));
        }
        span
    }

    fn value(&self, value: Value) -> opentelemetry::Value {
        let clean = |text: &str| StringValue::from(self.redaction.redact(text).into_owned());
        match value {
            Value::Text(text) => clean(&text).into(),
            Value::Int(number) => number.into(),
            Value::Float(number) => number.into(),
            Value::Texts(texts) => {
                opentelemetry::Value::Array(Array::String(texts.iter().map(|text| clean(text)).collect()))
            }
        }
    }
}

impl TraceSink for Otlp {
    fn export(&self, trace: TurnTrace) {
        let end = time(trace.root.end);
        let mut root = self.span(trace.root, &Context::new());
        let parent = Context::new().with_remote_span_context(root.span_context().clone());
        for child in trace.children {
            let end = time(child.end);
            self.span(child, &parent).end_with_timestamp(end);
        }
        root.end_with_timestamp(end);
    }
}

impl Drop for Otlp {
    fn drop(&mut self) {
        let provider = self.provider.clone();
        // Sends over a blocking client, which a thread of the runtime must not wait for.
        let sent = std::thread::spawn(move || provider.shutdown());
        // A collector that cannot be reached has been complained about by the processor itself.
        let _ = sent.join();
    }
}

fn time(millis: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis.max(0).unsigned_abs())
}
