//! `cargo xtask bench store`: cost of an event in the log, compared with raw inserts.

use super::goals::GoalResult;
use super::{BenchOptions, MeasureEffort, ReportTarget};
use crate::program::{self, ExternalProgram};
use crate::{generated, repository};
use anyhow::{Result, bail};
use serde_json::Value;
use std::fmt::Write;

const DOCUMENT: &str = "docs/performance.md";
const SECTION: &str = "store";

/// Processor time of an event at 1,000 turns x 30 a second, by that of a raw insert at one event a commit.
const BY_RAW_MAX: f64 = 1.0;
/// Time from an append to its acknowledgment in the middle of the same load, in milliseconds.
const P50_MS_MAX: f64 = 4.0;
/// Maximum time to open a store with 10,000 ended and 100 running turns after its process died, in
/// milliseconds.
const OPEN_MS_MAX: f64 = 200.0;

/// Runs the benchmark; returns a summary line.
///
/// # Errors
/// A store that reads other data than were written.
pub(crate) fn store(options: &BenchOptions) -> Result<String> {
    let program = program::executable(&[
        "bench",
        "--package",
        "throughline-store",
        "--features",
        "postgres,raw-sqlx",
        "--bench",
        "store",
        "--no-run",
    ])?;
    let quick: &[&str] = if options.effort == MeasureEffort::Quick { &["--quick"] } else { &[] };
    let mut figures = Vec::new();
    let status = ExternalProgram::new(&program).args(["measure"]).args(quick).lines(|line| {
        println!("  {line}");
        figures.extend(serde_json::from_str::<Value>(line).ok());
    })?;
    if !status.success() || figures.is_empty() {
        bail!("the benchmark ended with {status}\n  remedy: see what it says above");
    }
    let verdicts = judge_figures(&figures);
    for verdict in &verdicts {
        println!("{}", verdict.line());
    }
    if options.report == ReportTarget::Written {
        let document = repository::read(DOCUMENT)?;
        let section = render(&figures, &verdicts);
        repository::write(DOCUMENT, &generated::replace(&document, SECTION, &section)?)?;
    }
    Ok(super::summary(&verdicts))
}

fn judge_figures(figures: &[Value]) -> Vec<GoalResult> {
    let mut verdicts = Vec::new();
    let raw = figures.iter().find(|one| one["batch"] == 1).and_then(|one| one["rusqlite"].as_f64());
    // The goals are the default store's.
    let busy = figures.iter().find(|one| one["load"] == "1000 turns x 30/s" && one["store"] != "postgres");
    if let (Some(raw), Some(busy)) = (raw, busy) {
        let number = |key: &str| busy[key].as_f64().unwrap_or(f64::NAN);
        let what = "1,000 turns x 30/s: processor time by a raw insert's in a commit of its own";
        verdicts.push(GoalResult::at_most(what, number("cpu_us") / raw, BY_RAW_MAX, ""));
        let what = "1,000 turns x 30/s: acknowledged, p50";
        verdicts.push(GoalResult::at_most(what, number("p50_ms"), P50_MS_MAX, " ms"));
    }
    if let Some(ms) = figures.iter().find_map(|one| one["open_ms"].as_f64()) {
        verdicts.push(GoalResult::at_most("open after kill -9", ms, OPEN_MS_MAX, " ms"));
    }
    verdicts
}

fn render(figures: &[Value], verdicts: &[GoalResult]) -> String {
    let mut text = format!(
        "Measured on {} at commit {}, {}{}.\n\n",
        repository::date(),
        repository::commit(),
        repository::machine(),
        repository::load().map(|load| format!(", load average {load}")).unwrap_or_default()
    );
    text +=
        "| raw inserts, us of processor time an event | rusqlite | sqlx | by rusqlite |\n|---|---|---|---|\n";
    for one in figures.iter().filter(|one| one["raw"] == true) {
        let number = |key: &str| one[key].as_f64().unwrap_or(f64::NAN);
        let class = if one["full"] == true { "FULL" } else { "NORMAL" };
        let (ours, theirs) = (number("rusqlite"), number("sqlx"));
        let _ = writeln!(
            text,
            "| {} a commit, {class} | {ours:.2} | {theirs:.2} | {:.1} |",
            one["batch"],
            theirs / ours
        );
    }
    text += "\n| through `dyn Log` | **us an event** | events/s | acknowledged p50, p99 (ms) | events a commit |\n\
             |---|---|---|---|---|\n";
    for one in figures.iter().filter(|one| one["load"].is_string()) {
        let number = |key: &str| one[key].as_f64().unwrap_or(f64::NAN);
        let store = if one["store"] == "postgres" { ", PostgreSQL" } else { "" };
        let _ = writeln!(
            text,
            "| {}{store} | **{:.2}** | {:.0} | {:.2}, {:.2} | {:.1} |",
            one["load"].as_str().unwrap_or_default(),
            number("cpu_us"),
            number("per_second"),
            number("p50_ms"),
            number("p99_ms"),
            number("events") / number("commits")
        );
    }
    let find = |key: &str| figures.iter().find_map(|one| one[key].as_f64()).unwrap_or(f64::NAN);
    let _ = writeln!(
        text,
        "\nA store of {:.0} ended and 100 running turns ({:.0} MB) is open {:.0} ms after its process was killed, {:.0} ms \
         after it was closed. With 1,000 viewers on one turn an append takes {:.2} ms instead of {:.2}, and one event for \
         one viewer costs {:.2} us.\n",
        find("turns_ended"),
        find("bytes") / 1e6,
        find("open_ms"),
        find("clean_ms"),
        find("append_watched_ms"),
        find("append_alone_ms"),
        find("cpu_us_a_delivery")
    );
    text += "| goal | at most | measured | |\n|---|---|---|---|\n";
    for verdict in verdicts {
        let _ = writeln!(text, "{}", verdict.row());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_become_table_rows_and_goals() {
        let lines = [
            r#"{"raw":true,"batch":1,"full":false,"rusqlite":10.0,"sqlx":40.0}"#,
            r#"{"load":"1000 turns x 30/s","events":300,"cpu_us":5.0,"p50_ms":1.0,"p99_ms":9.5,"commits":10,"fsyncs":0,"per_second":30000}"#,
            r#"{"open":true,"turns_ended":10000,"open_ms":250.0,"clean_ms":20.0,"bytes":5000000}"#,
        ];
        let figures: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let verdicts = judge_figures(&figures);
        let met: Vec<bool> = verdicts.iter().map(|verdict| verdict.is_met).collect();
        assert_eq!(met, [true, true, false], "by raw 0.5, p50 1 ms, open 250 ms");
        let text = render(&figures, &verdicts);
        assert!(text.contains("| 1 a commit, NORMAL | 10.00 | 40.00 | 4.0 |"), "{text}");
        assert!(text.contains("| 1000 turns x 30/s | **5.00** | 30000 | 1.00, 9.50 | 30.0 |"), "{text}");
        assert!(text.contains("**missed**"), "{text}");
    }
}
