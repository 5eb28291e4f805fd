//! Comparison of figures with goals, and their text.

use super::callgrind::HOSTILE_FACTOR;
use crate::repository;
use std::fmt::Write;

/// Result of one workload. Times are nanoseconds per event.
#[derive(Clone, Debug)]
pub(crate) struct DecodeResult {
    pub(crate) workload: String,
    pub(crate) events: f64,
    pub(crate) bytes: f64,
    /// Length of the arguments of all calls together.
    pub(crate) arguments_bytes: f64,
    pub(crate) throughline: f64,
    pub(crate) memo: Option<f64>,
    pub(crate) straight: Option<f64>,
    pub(crate) lines: f64,
    pub(crate) copy: f64,
    /// Ours by the floor's, median of rounds.
    pub(crate) ratio: Option<f64>,
    pub(crate) instructions: Option<f64>,
    pub(crate) memo_instructions: Option<f64>,
}

impl DecodeResult {
    /// Line for the terminal.
    pub(crate) fn line(&self) -> String {
        let ratio = self.ratio.map(|ratio| format!(", {ratio:.2} times the floor")).unwrap_or_default();
        let straight = self.straight.map(|ns| format!(", straight {ns:.0}")).unwrap_or_default();
        format!("{}: {:.1} ns an event{ratio}{straight}", self.workload, self.throughline)
    }
}

/// A goal and what came of it.
#[derive(Clone, Debug)]
pub(crate) struct GoalResult {
    pub(crate) what: String,
    pub(crate) value: f64,
    pub(crate) goal: f64,
    pub(crate) unit: &'static str,
    pub(crate) is_met: bool,
    /// Missing it fails the command.
    pub(crate) is_gate: bool,
}

impl GoalResult {
    /// A goal that is met up to `goal`, and fails nothing.
    pub(crate) fn at_most(what: impl Into<String>, value: f64, goal: f64, unit: &'static str) -> Self {
        Self { what: what.into(), value, goal, unit, is_met: value <= goal, is_gate: false }
    }

    /// Value with unit.
    pub(crate) fn figure(&self) -> String {
        let digits = if self.goal >= 100.0 { 0 } else { 2 };
        format!("{:.digits$}{}", self.value, self.unit)
    }

    /// Row of the document's table.
    pub(crate) fn row(&self) -> String {
        let word = if self.is_met { "met" } else { "**missed**" };
        format!("| {} | {}{} | {} | {word} |", self.what, self.goal, self.unit, self.figure())
    }

    /// Line for the terminal.
    pub(crate) fn line(&self) -> String {
        let word = if self.is_met { "met" } else { "MISSED" };
        format!("{}: {} (goal {}{}): {word}", self.what, self.figure(), self.goal, self.unit)
    }
}

const FLOOR_RATIO_MAX: f64 = 2.0;
const SECOND_FIELD_RATIO_MAX: f64 = 3.0;
const INSTRUCTIONS_MAX: f64 = 2_000.0;
const EXPONENT_MAX: f64 = 1.05;
const MEGABYTE_MS_MAX: f64 = 40.0;
/// Maximum growth of time for four times the input; a table or a buffer that grows explains the tenth above
/// four.
const HOSTILE_GROWTH_MAX: f64 = 4.4;

/// Judges every goal that the figures allow to judge.
pub(crate) fn judge_all(all: &[DecodeResult], hostile: &[(String, f64)]) -> Vec<GoalResult> {
    let mut verdicts = Vec::new();
    for one in all.iter().filter(|one| ["w1-text", "w2-calls", "w4-mixed"].contains(&one.workload.as_str())) {
        if let Some(ratio) = one.ratio {
            let what = format!("{}: time by the floor's", one.workload);
            verdicts.push(GoalResult::at_most(what, ratio, FLOOR_RATIO_MAX, ""));
        }
    }
    for one in all.iter().filter(|one| one.workload.contains('+')) {
        // The floor has one changing field, so the plain workload's floor is used.
        let base = one.workload.split('+').next().unwrap_or_default();
        let floor = all.iter().find(|plain| plain.workload == base).and_then(|plain| plain.memo);
        if let Some(floor) = floor {
            let what = format!("{}: time by the plain floor's", one.workload);
            verdicts.push(GoalResult::at_most(what, one.throughline / floor, SECOND_FIELD_RATIO_MAX, ""));
        }
    }
    let calls: Vec<_> = all.iter().filter(|one| one.workload.starts_with("w3-long")).collect();
    let points: Vec<_> =
        calls.iter().map(|one| (one.arguments_bytes, one.throughline * one.events)).collect();
    if let Some(exponent) = exponent(&points) {
        let what = format!("w3-long: exponent over {} sizes", points.len());
        verdicts.push(GoalResult::at_most(what, exponent, EXPONENT_MAX, ""));
    }
    if let Some(megabyte) = calls.iter().find(|one| one.workload == "w3-long.1m") {
        let milliseconds = megabyte.throughline * megabyte.events / 1e6;
        verdicts.push(GoalResult::at_most("w3-long.1m: the whole", milliseconds, MEGABYTE_MS_MAX, " ms"));
    }
    // The goals are set for these workloads; text in other dialects is there to be seen.
    for one in all.iter().filter(|one| one.workload.starts_with('w')) {
        if let Some(instructions) = one.instructions {
            let what = format!("{}: instructions an event", one.workload);
            verdicts.push(GoalResult {
                is_gate: true,
                ..GoalResult::at_most(what, instructions, INSTRUCTIONS_MAX, "")
            });
        }
    }
    for (shape, growth) in hostile {
        let what = format!("{shape}: instructions for {HOSTILE_FACTOR} times as much");
        verdicts
            .push(GoalResult { is_gate: true, ..GoalResult::at_most(what, *growth, HOSTILE_GROWTH_MAX, "") });
    }
    verdicts
}

/// Slope of log cost over log size, by least squares: 1 is linear.
pub(crate) fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    if points.len() < 2 {
        return None;
    }
    let points: Vec<_> = points.iter().map(|(size, cost)| (size.ln(), cost.ln())).collect();
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / count, y + point.1 / count));
    let covariance: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let variance: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    Some(covariance / variance)
}

/// The section of docs/performance.md.
pub(crate) fn render(all: &[DecodeResult], verdicts: &[GoalResult]) -> String {
    let mut text = format!(
        "Measured on {} at commit {}, {}{}.\n\n",
        repository::date(),
        repository::commit(),
        repository::machine(),
        repository::load().map(|load| format!(", load average {load}")).unwrap_or_default()
    );
    text += "Nanoseconds of processor time for each event; instructions for each event in brackets.\n\n\
             | workload | events | bytes an event | **throughline** | memo | by memo | straight | lines | copy |\n\
             |---|---|---|---|---|---|---|---|---|\n";
    for one in all {
        let with = |ns: f64, count: Option<f64>| match count {
            Some(count) => format!("{ns:.0} ({count:.0})"),
            None => format!("{ns:.0}"),
        };
        let or_none = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let _ = writeln!(
            text,
            "| {} | {:.0} | {:.0} | **{}** | {} | {} | {} | {:.0} | {:.0} |",
            one.workload,
            one.events,
            one.bytes / one.events,
            with(one.throughline, one.instructions),
            or_none(one.memo.map(|ns| with(ns, one.memo_instructions))),
            or_none(one.ratio.map(|ratio| format!("{ratio:.2}"))),
            or_none(one.straight.map(|ns| format!("{ns:.0}"))),
            one.lines,
            one.copy,
        );
    }
    text += "\n| goal | at most | measured | |\n|---|---|---|---|\n";
    for verdict in verdicts {
        let _ = writeln!(text, "{}", verdict.row());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(workload: &str, throughline: f64, memo: f64, instructions: f64) -> DecodeResult {
        DecodeResult {
            workload: workload.to_owned(),
            events: 100.0,
            bytes: 30_000.0,
            arguments_bytes: 400.0,
            throughline,
            memo: Some(memo),
            straight: None,
            lines: 10.0,
            copy: 10.0,
            ratio: Some(throughline / memo),
            instructions: Some(instructions),
            memo_instructions: None,
        }
    }

    #[test]
    fn missed_goals_are_reported() {
        let all = [
            measured("w1-text", 70.0, 40.0, 1_999.0),
            measured("w2-calls", 130.0, 60.0, 2_001.0),
            measured("w1-text+created", 110.0, 500.0, 900.0),
            measured("text.ollama", 900.0, 1.0, 9_000.0),
        ];
        let hostile = [("linear".to_owned(), 3.9), ("square".to_owned(), 15.8)];
        let missed: Vec<_> =
            judge_all(&all, &hostile).into_iter().filter(|verdict| !verdict.is_met).collect();
        let missed: Vec<_> = missed.iter().map(|verdict| (verdict.what.as_str(), verdict.is_gate)).collect();
        assert_eq!(
            missed,
            [
                ("w2-calls: time by the floor's", false),
                ("w2-calls: instructions an event", true),
                ("square: instructions for 4 times as much", true),
            ]
        );
    }

    #[test]
    fn growth_exponent_is_estimated() {
        let sizes = [64.0, 256.0, 1024.0, 4096.0_f64];
        for (power, expected) in [(1.0, 1.0), (1.5, 1.5), (2.0, 2.0)] {
            let points: Vec<_> = sizes.iter().map(|size| (*size, 3.0 * size.powf(power))).collect();
            let found = exponent(&points).unwrap();
            assert!((found - expected).abs() < 1e-9, "{found}");
        }
        assert_eq!(exponent(&[(1.0, 1.0)]), None);
    }
}
