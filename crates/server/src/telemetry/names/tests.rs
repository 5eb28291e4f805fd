//! `docs/observability.md`, `ops/alerts.yml` and `ops/grafana.json` against the code.

use super::{METRICS, Metric, MetricKind};
use std::collections::BTreeSet;
use std::path::Path;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).expect(path)
}

#[test]
fn metrics_match_the_documentation() {
    let page = read("docs/observability.md");
    let rows: Vec<&str> = page
        .lines()
        .skip_while(|line| !line.starts_with("| metric |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    let expected: Vec<String> = METRICS
        .iter()
        .map(|metric| {
            let kind = match metric.kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
                MetricKind::Histogram(_) => "histogram",
            };
            let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
            let labels = if labels.is_empty() { "-".to_owned() } else { labels.join(", ") };
            format!("| `{}` | {kind} | {} | {labels} | {} |", metric.name, metric.unit, metric.help)
        })
        .collect();
    assert_eq!(rows, expected);
}

#[test]
fn every_attribute_is_documented() {
    use super::attribute::*;
    let page = read("docs/observability.md");
    for name in [
        OPERATION,
        PROVIDER,
        REQUEST_MODEL,
        CONVERSATION,
        AGENT,
        FINISH_REASONS,
        FIRST_CHUNK,
        INPUT_TOKENS,
        OUTPUT_TOKENS,
        CACHED_TOKENS,
        REASONING_TOKENS,
        TOOL,
        TOOL_TYPE,
        CALL,
        ARGUMENTS,
        RESULT,
        ERROR_TYPE,
        MCP_METHOD,
        TURN,
        STEP,
        ATTEMPT,
        STATUS,
    ] {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}

/// The names of metrics in an expression: words with `_` in a position of a metric or label.
fn metrics_in(expression: &str) -> BTreeSet<&str> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':');
    words
        .filter(|word| {
            ["gen_ai_", "mcp_", "process_", "streaming_", "throughline_"]
                .iter()
                .any(|start| word.starts_with(start))
        })
        .collect()
}

/// The series that a metric has in the text.
fn series(metric: &Metric) -> Vec<String> {
    match metric.kind {
        MetricKind::Histogram(_) => {
            ["_bucket", "_sum", "_count"].map(|end| metric.name.to_owned() + end).into()
        }
        _ => vec![metric.name.to_owned()],
    }
}

#[test]
fn alerts_are_documented_and_use_existing_metrics() {
    let rules = read("ops/alerts.yml");
    let exist: BTreeSet<String> = METRICS.iter().flat_map(series).collect();
    let mut asked = BTreeSet::new();
    let mut lines = rules.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(expression) = line.trim().strip_prefix("expr:") else { continue };
        let mut whole = expression.to_owned();
        let indent = line.len() - line.trim_start().len();
        // A folded expression continues in deeper lines.
        while let Some(next) = lines.next_if(|next| next.len() - next.trim_start().len() > indent) {
            whole.push_str(next);
        }
        let metrics = metrics_in(&whole);
        assert!(!metrics.is_empty(), "nothing is asked in {whole}");
        for metric in metrics {
            assert!(exist.contains(metric), "{metric} in {whole}");
            asked.insert(metric.to_owned());
        }
    }
    for seed in [
        "throughline_tool_calls_detected_total",
        "streaming_tool_execution_latency_seconds_bucket",
        "streaming_ui_jank_frames_total",
        "streaming_rollback_count_total",
    ] {
        assert!(asked.contains(seed), "no alert for {seed}");
    }
    let page = read("docs/observability.md");
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(page.contains(&format!("| `{alert}` |")), "{alert} is not documented");
    }
    for recorded in rules.lines().filter_map(|line| line.trim().strip_prefix("- record: ")) {
        assert!(recorded.starts_with("streaming_tool_execution_latency_p"), "{recorded}");
    }
}

/// The labels that an expression groups by.
fn groups_in(expression: &str) -> BTreeSet<&str> {
    let lists = expression.split(" by (").skip(1).filter_map(|rest| rest.split(')').next());
    lists.flat_map(|list| list.split(", ")).collect()
}

#[test]
fn dashboard_uses_existing_metrics_and_labels() {
    let dashboard: serde_json::Value = serde_json::from_str(&read("ops/grafana.json")).expect("JSON");
    let mut shown = BTreeSet::new();
    let mut cells = BTreeSet::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        let title = panel["title"].as_str().expect("a title");
        let place = &panel["gridPos"];
        assert!(cells.insert((place["x"].as_u64(), place["y"].as_u64())), "{title} covers another panel");
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title} asks the source that was chosen");
        assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{title} has a unit");
        for target in panel["targets"].as_array().expect("targets") {
            let expression = target["expr"].as_str().expect("an expression");
            assert_eq!(expression.matches('(').count(), expression.matches(')').count(), "{expression}");
            let groups = groups_in(expression);
            let named = metrics_in(expression);
            let asked: Vec<&Metric> = METRICS
                .iter()
                .filter(|metric| series(metric).iter().any(|one| named.contains(&**one)))
                .collect();
            let labels: BTreeSet<&str> = asked
                .iter()
                .flat_map(|metric| metric.labels)
                .copied()
                .chain(["le", "instance", "job"])
                .collect();
            // What is neither a series nor a label that it groups by is nothing.
            let series: BTreeSet<String> = asked.iter().flat_map(|metric| series(metric)).collect();
            for word in named {
                assert!(series.contains(word) || groups.contains(word), "{word} of {title}: {expression}");
            }
            for group in &groups {
                assert!(labels.contains(group), "{group} of {title}: {expression}");
            }
            let legend = target["legendFormat"].as_str().expect("a legend");
            for label in legend.split("{{").skip(1).filter_map(|rest| rest.split("}}").next()) {
                let kept = groups.contains(label) || (groups.is_empty() && labels.contains(label));
                assert!(kept, "{label} in the legend of {title}");
            }
            shown.extend(asked.iter().map(|metric| metric.name));
        }
    }
    // Not on it: what another panel shows in more detail.
    let hidden: Vec<&str> =
        METRICS.iter().map(|metric| metric.name).filter(|name| !shown.contains(name)).collect();
    assert_eq!(
        hidden,
        [
            "gen_ai_client_operation_time_per_output_chunk_seconds",
            "gen_ai_invoke_agent_duration_seconds",
            "streaming_tool_execution_latency_seconds",
        ]
    );
    let page = read("docs/observability.md");
    assert!(page.contains("(../ops/grafana.json)"));
}

// The limits of the requirement are those of the rules: < 95 %, 1 s, 3 s, 5 a minute, 10 a minute.
#[test]
fn alert_thresholds_match_the_requirement() {
    let rules = read("ops/alerts.yml");
    for (alert, threshold) in [
        ("StreamingToolDetectionRateLow", "< 0.95"),
        ("StreamingToolExecutionSlowP50", "> 1"),
        ("StreamingToolExecutionSlowP95", "> 3"),
        ("StreamingUiJank", "* 60 > 5"),
        ("StreamingRollbacks", "* 60 > 10"),
    ] {
        let rule = rules.split("- alert: ").find(|rule| rule.starts_with(alert)).expect(alert);
        let condition = rule.split("for:").next().unwrap_or_default();
        let hit = condition.lines().any(|line| line.trim_end().ends_with(threshold));
        assert!(hit, "{alert}: {condition}");
    }
}
