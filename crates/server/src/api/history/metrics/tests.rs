//! Metrics of turns and calls, compared with a naive computation.

use super::{
    BUCKETS_MAX, CallsMetrics, METRIC_CONVERSATIONS_MAX, METRIC_NAMES_MAX, MetricsInfo, NamedTurnsMetrics,
    TOOLS_MAX, compute_metrics,
};
use crate::telemetry::Percentiles;
use proptest::prelude::*;
use throughline_store::{CallSample, MetricSamples, SampleRange, SampleRows, TurnSample, TurnTiming};

fn turn(created_at: i64, first_content_ms: Option<i64>, tokens: i64, writing_ms: i64) -> TurnSample {
    let some = |number: i64| Some(number).filter(|number| *number > 0);
    let pace = TurnTiming { first_content_ms, writing_ms: some(writing_ms), output_tokens: some(tokens) };
    TurnSample {
        created_at,
        status: "completed".into(),
        agent: "default".into(),
        model: None,
        conversation_id: None,
        input_tokens: None,
        pace,
        rating: None,
    }
}

fn call(tool: &str, status: &str, started_at: i64, duration_ms: Option<i64>) -> CallSample {
    CallSample {
        tool_name: tool.into(),
        status: status.into(),
        started_at,
        duration_ms,
        error: None,
        conversation_id: None,
    }
}

fn all<T>(rows: Vec<T>) -> SampleRows<T> {
    SampleRows { rows, truncated: false }
}

/// The nearest-rank percentile by its definition, tried with every value.
fn naive(values: &[f64], percent: usize) -> Option<f64> {
    let is_enough = |at_most: f64| {
        values.iter().filter(|value| **value <= at_most).count() * 100 >= percent * values.len()
    };
    values.iter().copied().filter(|value| is_enough(*value)).min_by(f64::total_cmp)
}

fn check_spread(spread: Percentiles, values: &[f64]) {
    let expected = Percentiles { count: values.len() as u64, p50: naive(values, 50), p95: naive(values, 95) };
    assert_eq!(spread, expected, "{values:?}");
}

fn check_calls(metrics: &CallsMetrics, calls: &[&CallSample]) {
    let with = |statuses: &[&str]| {
        calls.iter().filter(|call| statuses.contains(&call.status.as_str())).count() as u64
    };
    let (succeeded, failed) = (with(&["success"]), with(&["error", "timed_out", "unknown"]));
    assert_eq!(
        (metrics.total, metrics.finished, metrics.failed),
        (calls.len() as u64, succeeded + failed, failed)
    );
    match metrics.error_rate {
        None => assert_eq!(metrics.finished, 0),
        Some(rate) => assert!((rate * metrics.finished as f64 - failed as f64).abs() < 1e-6),
    }
    let took: Vec<f64> = calls.iter().filter_map(|call| call.duration_ms).map(|ms| ms as f64).collect();
    check_spread(metrics.duration_ms, &took);
}

/// Computes every figure of an answer again from all samples, and compares.
fn check(samples: &MetricSamples, range: &SampleRange, buckets: u32) -> MetricsInfo {
    let found = compute_metrics(samples, range, buckets);
    let calls: Vec<&CallSample> = samples.calls.rows.iter().collect();
    check_calls(&found.calls, &calls);
    let first: Vec<f64> =
        samples.turns.rows.iter().filter_map(|turn| turn.pace.first_content_ms).map(|ms| ms as f64).collect();
    check_spread(found.turns.first_token_ms, &first);
    for tool in &found.tools {
        let own: Vec<&CallSample> =
            calls.iter().copied().filter(|call| call.tool_name == tool.tool_name).collect();
        check_calls(&tool.calls, &own);
    }
    assert!(found.tools.windows(2).all(|pair| pair[0].calls.total >= pair[1].calls.total));
    assert!(found.buckets.len() <= buckets as usize);
    let last = found.buckets.last().expect("a time has a part");
    assert!(last.from < range.until && last.from + found.bucket_ms >= range.until, "the parts are the time");
    for (number, bucket) in found.buckets.iter().enumerate() {
        assert_eq!(bucket.from, range.from + number as i64 * found.bucket_ms);
        let is_in = |at: i64| (bucket.from..bucket.from + found.bucket_ms).contains(&at);
        let own: Vec<&CallSample> = calls.iter().copied().filter(|call| is_in(call.started_at)).collect();
        check_calls(&bucket.calls, &own);
        let turns = samples.turns.rows.iter().filter(|turn| is_in(turn.created_at)).count();
        assert_eq!(bucket.turns.total, turns as u64);
    }
    assert_eq!(found.buckets.iter().map(|bucket| bucket.calls.total).sum::<u64>(), found.calls.total);
    assert_eq!(found.buckets.iter().map(|bucket| bucket.turns.total).sum::<u64>(), found.turns.total);
    for (counts, total) in
        [(&found.turns_by_status, found.turns.total), (&found.calls_by_status, found.calls.total)]
    {
        assert_eq!(counts.iter().map(|count| count.count).sum::<u64>(), total);
        assert!(counts.windows(2).all(|pair| pair[0].count >= pair[1].count));
    }
    found
}

fn any_call(from: i64, until: i64) -> impl Strategy<Value = CallSample> {
    let tool = prop::sample::select(vec!["a.one", "b.two", "c.three"]);
    let status = prop::sample::select(vec![
        "success",
        "success",
        "error",
        "denied",
        "cancelled",
        "timed_out",
        "not_started",
        "unknown",
        "running",
    ]);
    (tool, status, from..until, prop::option::of(0_i64..50))
        .prop_map(|(tool, status, at, took)| call(tool, status, at, took))
}

fn any_turn(from: i64, until: i64) -> impl Strategy<Value = TurnSample> {
    (from..until, prop::option::of(0_i64..500), 0_i64..300, 0_i64..3_000)
        .prop_map(|(at, first, tokens, ms)| turn(at, first, tokens, ms))
}

fn any_time() -> impl Strategy<Value = (MetricSamples, SampleRange, u32)> {
    (-50_i64..1_000_000, 1_i64..5_000, 1..=BUCKETS_MAX).prop_flat_map(|(from, span, buckets)| {
        let until = from + span;
        let calls = prop::collection::vec(any_call(from, until), 0..60);
        let turns = prop::collection::vec(any_turn(from, until), 0..40);
        (calls, turns, 0_u64..3).prop_map(move |(calls, turns, waiting)| {
            let samples = MetricSamples { turns: all(turns), calls: all(calls), waiting };
            (samples, SampleRange { from, until, rows_max: 9 }, buckets)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn metrics_match_their_definitions((samples, range, buckets) in any_time()) {
        check(&samples, &range, buckets);
    }
}

#[test]
fn percentile_is_one_of_the_values() {
    let spread = |values: &[f64]| {
        let found = Percentiles::of(values.to_vec());
        (found.p50, found.p95)
    };
    assert_eq!(spread(&[]), (None, None));
    assert_eq!(spread(&[7.0]), (Some(7.0), Some(7.0)));
    assert_eq!(spread(&[9.0, 1.0]), (Some(1.0), Some(9.0)));
    let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
    assert_eq!(spread(&hundred), (Some(50.0), Some(95.0)));
}

#[test]
fn metrics_cover_speed_error_rate_and_buckets() {
    let range = SampleRange { from: 1_000, until: 1_100, rows_max: 5 };
    let calls = vec![
        call("b.two", "success", 1_000, Some(10)),
        call("b.two", "error", 1_049, Some(30)),
        call("b.two", "denied", 1_050, None),
        call("a.one", "timed_out", 1_099, Some(1_000)),
    ];
    // 60 tokens in two seconds are 30 in one; what an upstream does not count has no speed.
    let turns =
        vec![turn(1_000, Some(200), 60, 2_000), turn(1_060, Some(300), 0, 900), turn(1_061, None, 9, 0)];
    let samples =
        MetricSamples { turns: SampleRows { rows: turns, truncated: true }, calls: all(calls), waiting: 2 };
    let found = check(&samples, &range, 2);
    assert_eq!(found.calls.error_rate, Some(2.0 / 3.0), "a denial is no failure of the tool");
    assert_eq!(found.turns.tokens_per_second, Percentiles { count: 1, p50: Some(30.0), p95: Some(30.0) });
    assert_eq!(found.tools[0].tool_name, "b.two");
    assert_eq!(found.buckets.iter().map(|bucket| bucket.calls.total).collect::<Vec<_>>(), [2, 2]);
    assert_eq!((found.approvals_waiting, found.turns_cut, found.calls_cut), (2, true, false));
    assert_eq!(check(&MetricSamples::default(), &range, 7).turns.first_token_ms, Percentiles::default());
}

#[test]
fn turns_group_by_name_and_failed_calls_by_error_code() {
    let range = SampleRange { from: 0, until: 10, rows_max: 99 };
    let of = |model: Option<&str>, agent: &str, conversation: &str, status: &str, read: i64, wrote: i64| {
        TurnSample {
            status: status.into(),
            agent: agent.into(),
            model: model.map(Into::into),
            conversation_id: Some(conversation.into()),
            input_tokens: Some(read),
            ..turn(1, None, wrote, 0)
        }
    };
    let turns = vec![
        of(Some("one"), "a", "quiet", "completed", 10, 1),
        of(Some("one"), "b", "loud", "error", 1_000, 20),
        of(Some("two"), "a", "loud", "interrupted", 500, 30),
        of(None, "a", "quiet", "cancelled", -1, 2),
    ];
    let failed = |status: &str, error: Option<&str>, conversation: &str| CallSample {
        error: error.map(Into::into),
        conversation_id: Some(conversation.into()),
        ..call("t.one", status, 1, None)
    };
    let calls = vec![
        failed("error", Some("http_500: the server said: no"), "loud"),
        failed("error", Some("http_500"), "quiet"),
        failed("timed_out", None, "loud"),
        // Neither counts as a failure of the tool.
        failed("denied", Some("denied: not now"), "loud"),
        failed("success", None, "deleted"),
    ];
    let samples = MetricSamples { turns: all(turns), calls: all(calls), waiting: 0 };
    let found = check(&samples, &range, 1);
    assert_eq!((found.turns.input_tokens, found.turns.output_tokens), (1_510, 53));
    assert_eq!(found.buckets[0].turns.input_tokens, 1_510);
    let named = |rows: &[NamedTurnsMetrics]| -> Vec<(String, u64, u64, u64)> {
        let row =
            |row: &NamedTurnsMetrics| (row.name.clone(), row.turns.total, row.failed, row.turns.input_tokens);
        rows.iter().map(row).collect()
    };
    assert_eq!(named(&found.models), [("one".into(), 2, 1, 1_010), ("two".into(), 1, 1, 500)]);
    assert_eq!(named(&found.agents), [("a".into(), 3, 1, 510), ("b".into(), 1, 1, 1_000)]);
    let errors: Vec<_> = found.errors.iter().map(|error| (error.name.as_str(), error.count)).collect();
    assert_eq!(errors, [("http_500", 2), ("timed_out", 1)]);
    let conversations: Vec<_> = found
        .conversations
        .iter()
        .map(|found| {
            (
                found.conversation_id.as_str(),
                found.turns,
                found.output_tokens,
                found.calls,
                found.failed_calls,
            )
        })
        .collect();
    assert_eq!(conversations, [("loud", 2, 50, 3, 2), ("quiet", 2, 3, 1, 1)]);
}

#[test]
fn named_metrics_are_limited() {
    let range = SampleRange { from: 0, until: 10, rows_max: 9_999 };
    let turns = (0..METRIC_NAMES_MAX + 3).map(|number| TurnSample {
        model: Some(format!("m/{number}")),
        agent: format!("a{number}"),
        conversation_id: Some(format!("c{number}")),
        ..turn(1, None, 0, 0)
    });
    let calls = (0..METRIC_NAMES_MAX + 3)
        .map(|number| CallSample { error: Some(format!("e{number}: x")), ..call("t", "error", 1, None) });
    let samples = MetricSamples { turns: all(turns.collect()), calls: all(calls.collect()), waiting: 0 };
    let found = check(&samples, &range, 1);
    let most = METRIC_NAMES_MAX;
    assert_eq!((found.models.len(), found.agents.len(), found.errors.len()), (most, most, most));
    assert_eq!(found.conversations.len(), METRIC_CONVERSATIONS_MAX);
}

#[test]
fn tool_metrics_are_limited_and_omissions_counted() {
    let range = SampleRange { from: 0, until: 10, rows_max: 999 };
    let calls = (0..TOOLS_MAX + 3).map(|number| call(&format!("t.{number}"), "success", 1, Some(1)));
    let samples = MetricSamples { calls: all(calls.collect()), ..MetricSamples::default() };
    let found = check(&samples, &range, 1);
    assert_eq!((found.tools.len(), found.tools_left_out), (TOOLS_MAX, 3));
}
