//! Spans over OTLP/HTTP to a collector, behind the feature `otel`.
//!
//! The exporter's client is a blocking one and runs on the batch processor's thread: the asynchronous one
//! panics there, since the thread has no runtime.

use super::redaction::Redaction;
use super::span_sender::SpanSender;
use super::traces::{AttributeValue, SpanKind, SpanRecord, TraceSink, TurnTrace};
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanId, SpanKind as OtelKind, Status, TraceContextExt, TraceId, Tracer as _,
    TracerProvider,
};
use opentelemetry::{Array, Context, KeyValue, StringValue};
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SdkTracer, SdkTracerProvider};
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Default service name if `OTEL_SERVICE_NAME` is not set.
const SERVICE: &str = "throughline";

/// Most bytes of an error in a span's status: the rest is left out.
const ERROR_BYTES_MAX: usize = 1_024;

/// Exports spans to a collector. They wait in a queue of the exporter (`OTEL_BSP_MAX_QUEUE_SIZE`, 2,048 by
/// default) and are sent from its thread: spans that do not fit are dropped and logged, and turns never wait.
pub struct OtlpExporter {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    redaction: Arc<Redaction>,
}

impl OtlpExporter {
    /// Exports to the collector at `endpoint` (its address for traces, such as `http://127.0.0.1:4318/v1/traces`), or
    /// to the address in the usual `OTEL_EXPORTER_OTLP_…` variables. Does not connect yet.
    ///
    /// # Errors
    /// A message about an invalid address or variable.
    pub fn new(endpoint: Option<String>, redaction: Arc<Redaction>) -> Result<Self, String> {
        // A program that has chosen its cryptography keeps it, also one that does so at this very moment.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        // A blocking client creates and drops its own runtime, which must not happen within another one.
        let build = move || -> Result<SdkTracerProvider, String> {
            let builder = SpanExporter::builder().with_http();
            let builder = match endpoint.clone() {
                Some(endpoint) => builder.with_endpoint(endpoint),
                None => builder,
            };
            let exporter = builder.build().map_err(|error| error.to_string())?;
            let service = std::env::var("OTEL_SERVICE_NAME").unwrap_or_else(|_| SERVICE.to_owned());
            let resource = Resource::builder()
                .with_service_name(service)
                .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
                .build();
            let builder = SdkTracerProvider::builder()
                .with_resource(resource)
                .with_id_generator(OtlpIdGenerator::default());
            Ok(builder.with_batch_exporter(SpanSender::new(exporter, endpoint)).build())
        };
        let built =
            thread("traces-begin", build).map_err(|error| format!("cannot start a thread: {error}"))?;
        let provider = built.join().map_err(|_| "the exporter panicked".to_owned())??;
        let tracer = provider.tracer(SERVICE);
        Ok(Self { provider, tracer, redaction })
    }

    /// Sends what has gathered, and waits until that is done or given up.
    pub async fn flush(&self) {
        let provider = self.provider.clone();
        // The exporter logs what goes wrong.
        let _ = tokio::task::spawn_blocking(move || provider.force_flush()).await;
    }

    /// Sends what is left and takes no more. A collector that does not answer within this time does without.
    pub async fn finish(&self, within: Duration) {
        let provider = self.provider.clone();
        // Sends over a blocking client, which a thread of the runtime must not wait for.
        let (sent, waiting) = tokio::sync::oneshot::channel();
        let finish = move || {
            // The exporter logs what goes wrong.
            let _ = provider.shutdown_with_timeout(within);
            // The receiver is dropped after the timeout.
            let _ = sent.send(());
        };
        // If no thread can be started the rest is not sent, and the wait ends because the sender is dropped.
        let _ = thread("traces-end", finish);
        let _ = tokio::time::timeout(within, waiting).await;
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
            let error = self.redaction.redact(&error).into_owned();
            span.set_status(Status::error(error[..error.floor_char_boundary(ERROR_BYTES_MAX)].to_owned()));
        }
        span
    }

    fn value(&self, value: AttributeValue) -> opentelemetry::Value {
        let clean = |text: &str| StringValue::from(self.redaction.redact(text).into_owned());
        match value {
            AttributeValue::Text(text) => clean(&text).into(),
            AttributeValue::Int(number) => number.into(),
            AttributeValue::Float(number) => number.into(),
            AttributeValue::Texts(texts) => {
                opentelemetry::Value::Array(Array::String(texts.iter().map(|text| clean(text)).collect()))
            }
        }
    }
}

fn thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<std::thread::JoinHandle<T>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work)
}

impl Drop for OtlpExporter {
    /// Does not wait, unlike [`finish`](OtlpExporter::finish): the dropping thread may belong to a runtime.
    fn drop(&mut self) {
        let provider = self.provider.clone();
        // Without a thread what is left is not sent.
        let _ = thread("traces-end", move || drop(provider.shutdown()));
    }
}

impl TraceSink for OtlpExporter {
    fn export(&self, trace: TurnTrace) {
        let end = time(trace.root.end);
        let parent_context = match trace.context.parent {
            Some(parent) => Context::new().with_remote_span_context(parent),
            None => {
                NEXT_TRACE.set(Some(trace.context.trace_id));
                Context::new()
            }
        };
        let mut root = self.span(trace.root, &parent_context);
        let parent = Context::new().with_remote_span_context(root.span_context().clone());
        for child in trace.children {
            let end = time(child.end);
            self.span(child, &parent).end_with_timestamp(end);
        }
        root.end_with_timestamp(end);
    }
}

thread_local! {
    /// The trace that the next span without a parent begins. Set and taken within one call on one thread.
    static NEXT_TRACE: Cell<Option<TraceId>> = const { Cell::new(None) };
}

/// Generates ids of spans, and of traces without a given id.
#[derive(Debug, Default)]
struct OtlpIdGenerator(RandomIdGenerator);

impl IdGenerator for OtlpIdGenerator {
    fn new_trace_id(&self) -> TraceId {
        NEXT_TRACE.take().unwrap_or_else(|| self.0.new_trace_id())
    }

    fn new_span_id(&self) -> SpanId {
        self.0.new_span_id()
    }
}

fn time(millis: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis.max(0).unsigned_abs())
}
