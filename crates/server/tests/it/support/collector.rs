//! A collector of traces on a socket: OTLP over HTTP, the protobuf decoded.

#![allow(dead_code, reason = "each test file uses its part")]

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use prost::Message;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Time that spans may take to arrive.
const PATIENCE: Duration = Duration::from_secs(60);

/// Behavior of the collector on receiving spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// The collector accepts the spans.
    Takes,
    /// The collector reads them and never answers.
    Silent,
}

/// A span as it has arrived.
#[derive(Clone, Debug)]
pub struct Span {
    pub name: String,
    /// 32 hexadecimal digits.
    pub trace: String,
    /// 16 hexadecimal digits.
    pub id: String,
    /// Id of the parent span, or empty.
    pub parent: String,
    /// 1 = internal, 3 = client.
    pub kind: i32,
    /// Milliseconds since 1970.
    pub start: u64,
    pub end: u64,
    pub attributes: BTreeMap<String, String>,
    /// The error in its status.
    pub error: Option<String>,
    pub service: String,
}

pub struct Collector {
    pub address: SocketAddr,
    received: mpsc::Receiver<Received>,
}

/// One received request.
pub struct Received {
    /// `POST /v1/traces HTTP/1.1` and the headers.
    pub head: String,
    pub spans: Vec<Span>,
}

impl Collector {
    pub fn start(habit: Habit) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let (sender, received) = mpsc::channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let sender = sender.clone();
                std::thread::spawn(move || serve(stream, habit, &sender));
            }
        });
        Self { address, received }
    }

    /// `http://127.0.0.1:4318`
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next request.
    pub fn next(&self) -> Received {
        self.received.recv_timeout(PATIENCE).expect("spans arrive")
    }

    /// Spans up to the one of this name, the last of its turn to be sent.
    pub fn until(&self, name: &str) -> Vec<Span> {
        let (mut spans, until) = (Vec::new(), Instant::now() + PATIENCE);
        while !spans.iter().any(|span: &Span| span.name == name) {
            let left = until.saturating_duration_since(Instant::now());
            spans.extend(self.received.recv_timeout(left).expect("spans arrive").spans);
        }
        spans
    }

    /// Received spans that no test has taken yet.
    pub fn rest(&self) -> Vec<Span> {
        self.received.try_iter().flat_map(|received| received.spans).collect()
    }
}

fn serve(mut stream: TcpStream, habit: Habit, sender: &mpsc::Sender<Received>) {
    let (mut held, mut piece) = (Vec::new(), [0; 16_384]);
    loop {
        let whole = held.windows(4).position(|window| window == b"\r\n\r\n").and_then(|end| {
            let head = String::from_utf8_lossy(&held[..end]).into_owned();
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
            });
            let body_end = end + 4 + length.unwrap_or(0);
            (held.len() >= body_end).then_some((head, end + 4..body_end))
        });
        let Some((head, body)) = whole else {
            match stream.read(&mut piece) {
                Ok(read @ 1..) => held.extend_from_slice(&piece[..read]),
                Ok(_) | Err(_) => return,
            }
            continue;
        };
        let request = ExportTraceServiceRequest::decode(&held[body.clone()]).expect("OTLP in protobuf");
        held.drain(..body.end);
        let _ = sender.send(Received { head, spans: spans(request) });
        if habit == Habit::Silent {
            continue;
        }
        let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn spans(request: ExportTraceServiceRequest) -> Vec<Span> {
    let mut all = Vec::new();
    for resource in request.resource_spans {
        let about = texts(resource.resource.map(|resource| resource.attributes).unwrap_or_default());
        for scope in resource.scope_spans {
            all.extend(scope.spans.into_iter().map(|span| Span {
                name: span.name,
                trace: hex(&span.trace_id),
                id: hex(&span.span_id),
                parent: hex(&span.parent_span_id),
                kind: span.kind,
                start: span.start_time_unix_nano / 1_000_000,
                end: span.end_time_unix_nano / 1_000_000,
                attributes: texts(span.attributes),
                error: span.status.filter(|status| status.code == 2).map(|status| status.message),
                service: about.get("service.name").cloned().unwrap_or_default(),
            }));
        }
    }
    all
}

fn texts(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Option<AnyValue>| match value.and_then(|value| value.value) {
        Some(any_value::Value::StringValue(text)) => text,
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        Some(any_value::Value::DoubleValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    attributes.into_iter().map(|pair| (pair.key, text(pair.value))).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
