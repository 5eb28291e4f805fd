//! Upstreams of the tests' own, and what holds for every log.

use serde_json::Value;
use throughline_testkit::{FakeDialect, FakeModel, FakeUpstream, FakeUpstreamHandle};

/// An upstream that plays a script, on a separate runtime so that the test can wait for the binary.
pub struct Played {
    pub upstream: FakeUpstreamHandle,
    _runtime: tokio::runtime::Runtime,
}

impl Played {
    pub fn new(model: impl FakeModel) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Self { upstream: runtime.block_on(FakeUpstream::start(model)).unwrap(), _runtime: runtime }
    }

    /// Arguments that make `ask` use it.
    pub fn arguments(&self, dialect: FakeDialect) -> Vec<String> {
        let base_url = self.upstream.base_url(dialect);
        ["--base-url", &base_url, "--api", dialect.name(), "--model", "mock", "--demo-tools"]
            .map(str::to_owned)
            .to_vec()
    }
}

/// Checks the invariants of every log: one message, every call one outcome.
#[track_caller]
pub fn check_log(log: &str) -> Vec<Value> {
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| -> Vec<&Value> { events.iter().filter(|event| event["type"] == kind).collect() };
    for (at, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], at + 1, "dense from 1");
    }
    assert_eq!(events.first().map(|event| &event["type"]), Some(&Value::from("stream_start")));
    assert_eq!(events.last().map(|event| &event["type"]), Some(&Value::from("stream_end")));
    assert_eq!(of("stream_end").len(), 1);
    let ids = |kind: &str| {
        let mut ids: Vec<&str> = of(kind).iter().map(|event| event["tool_id"].as_str().unwrap()).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(ids("tool_use"), ids("tool_result"), "every call ends exactly once");
    events
}
