//! Figures of the browser: the goals, and the section of the document.

use super::super::goals::GoalResult;
use crate::repository::{self, MachineLoad};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The subject that is ours.
pub(crate) const OURS: &str = "throughline";

/// Rows of `web/e2e/bench`.
pub(crate) struct PageRows(pub(crate) Vec<Value>);

/// Limits of a scenario.
struct PageGoals {
    scenario: &'static str,
    what: &'static str,
    script_s: f64,
    long_tasks: Option<f64>,
    frame_p95_ms: Option<f64>,
    frame_p99_ms: Option<f64>,
    frames_over_25: Option<f64>,
    lag_p95_ms: Option<f64>,
    heap_mb: f64,
}

/// Half a millisecond on top of a whole number of frames: clocks of browsers are that coarse.
const GOALS: [PageGoals; 4] = [
    PageGoals {
        scenario: "s1",
        what: "S1, 300 tokens/s with cards",
        script_s: 3.0,
        long_tasks: Some(5.0),
        frame_p95_ms: Some(17.0),
        frame_p99_ms: Some(34.0),
        frames_over_25: Some(1.5),
        lag_p95_ms: Some(32.0),
        heap_mb: 25.0,
    },
    PageGoals {
        scenario: "s2",
        what: "S2, one long text",
        script_s: 2.0,
        long_tasks: Some(5.0),
        frame_p95_ms: Some(17.0),
        frame_p99_ms: Some(34.0),
        frames_over_25: Some(1.5),
        lag_p95_ms: Some(32.0),
        heap_mb: 20.0,
    },
    PageGoals {
        scenario: "s3",
        what: "S3, processor four times slower",
        script_s: 4.0,
        long_tasks: None,
        frame_p95_ms: Some(34.0),
        frame_p99_ms: Some(84.0),
        frames_over_25: Some(8.0),
        lag_p95_ms: Some(66.0),
        heap_mb: 20.0,
    },
    PageGoals {
        scenario: "s4",
        what: "S4, 1,500 tokens/s",
        script_s: 5.0,
        long_tasks: None,
        frame_p95_ms: None,
        frame_p99_ms: None,
        frames_over_25: None,
        lag_p95_ms: None,
        heap_mb: 25.0,
    },
];

/// Line for the terminal, with all figures of a row.
pub(crate) fn line(row: &Value) -> String {
    let text = |name: &str| row[name].as_str().unwrap_or_default();
    let figures: Vec<_> = row
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| !["subject", "scenario"].contains(&name.as_str()))
        .map(|(name, value)| format!("{name}={}", value.to_string().trim_matches('"')))
        .collect();
    format!("{} {}: {}", text("subject"), text("scenario"), figures.join(" "))
}

impl PageRows {
    fn row(&self, subject: &str, scenario: &str) -> Option<&Value> {
        self.0.iter().find(|row| row["subject"] == subject && row["scenario"] == scenario)
    }

    /// NaN, if it was not measured.
    fn figure(&self, subject: &str, scenario: &str, name: &str) -> f64 {
        self.row(subject, scenario).and_then(|row| row[name].as_f64()).unwrap_or(f64::NAN)
    }

    /// Subjects in the order in which they came, ours first.
    fn subjects(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let all = self.0.iter().filter_map(|row| row["subject"].as_str());
        all.filter(|subject| seen.insert(*subject)).collect()
    }

    /// Share of processor time stolen by the hypervisor in the most disturbed row, in percent.
    fn stolen_percent(&self) -> Option<f64> {
        self.0.iter().filter_map(|row| row["stolen_percent"].as_f64()).reduce(f64::max)
    }

    /// Share of slow frames, in percent of all frames.
    fn slow_frames(&self, subject: &str, scenario: &str) -> f64 {
        let of = |name| self.figure(subject, scenario, name);
        of("frames_over_25") / of("frames") * 100.0
    }

    /// The goals for the page, as far as they were measured.
    pub(crate) fn verdicts(&self) -> Vec<GoalResult> {
        let mut all = Vec::new();
        for goals in &GOALS {
            self.judge(goals, &mut all);
        }
        let ours = |scenario: &str, name: &str| self.figure(OURS, scenario, name);
        let at_most = GoalResult::at_most;
        let s1 = |name: &str| ours("s1", name);
        all.extend([
            at_most("S1: longest task", s1("long_max_ms"), 120.0, " ms"),
            at_most("S4: everything on the screen after the end", ours("s4", "tail_ms"), 2_000.0, " ms"),
            at_most(
                "a card on the screen after the first byte of its call, p95",
                s1("card_p95_ms"),
                200.0,
                " ms",
            ),
            at_most(
                "the frame that answers a key while it streams, slowest",
                s1("input_max_ms"),
                100.0,
                " ms",
            ),
            as_gate(at_most("start: script", ours("start", "script_ms"), 300.0, " ms")),
            at_most("start: longest task", ours("start", "long_max_ms"), 100.0, " ms"),
            as_gate(at_most("start: memory", ours("start", "heap_mb"), 12.0, " MB")),
            at_most(
                "scrolling through 200 messages with 5 cards each: script, style and layout of a frame, p95",
                ours("scroll", "work_p95_ms"),
                6.0,
                " ms",
            ),
            at_most("the card of a result of 2 MB is opened", ours("big", "opened_ms"), 100.0, " ms"),
            at_most("all of its 2 MB are fetched and shown", ours("big", "loaded_ms"), 100.0, " ms"),
            as_gate(at_most("50 turns: memory that stays", ours("growth", "heap_mb"), 1.0, " MB")),
            as_gate(at_most("50 turns: listeners that stay", ours("growth", "listeners"), 0.0, "")),
            as_gate(at_most(
                "50 turns: nodes that stay, without what a field keeps for undoing",
                ours("growth", "nodes"),
                0.0,
                "",
            )),
        ]);
        for peer in self.subjects().into_iter().filter(|subject| *subject != OURS) {
            for (name, what) in [("long_tasks", "long tasks"), ("frames_over_25", "frames over 25 ms")] {
                let figure = self.figure(peer, "s1", name);
                all.push(GoalResult::at_most(format!("S1: {what}, beside {peer}"), s1(name), figure, ""));
            }
        }
        all.into_iter().filter(|verdict| verdict.value.is_finite() && verdict.goal.is_finite()).collect()
    }

    fn judge(&self, goals: &PageGoals, all: &mut Vec<GoalResult>) {
        let PageGoals { scenario, what, .. } = goals;
        let short = what.split(',').next().unwrap_or(what);
        let of = |name| self.figure(OURS, scenario, name);
        all.push(as_gate(GoalResult::at_most(
            format!("{what}: script"),
            of("script_s"),
            goals.script_s,
            " s",
        )));
        let mut judge = |what: &str, value: f64, goal: Option<f64>, unit| {
            all.extend(goal.map(|goal| GoalResult::at_most(format!("{short}: {what}"), value, goal, unit)));
        };
        judge("tasks over 50 ms", of("long_tasks"), goals.long_tasks, "");
        judge("frame p95", of("frame_p95_ms"), goals.frame_p95_ms, " ms");
        judge("frame p99", of("frame_p99_ms"), goals.frame_p99_ms, " ms");
        judge("frames over 25 ms", self.slow_frames(OURS, scenario), goals.frames_over_25, " %");
        if let Some(lag) = goals.lag_p95_ms {
            all.push(as_gate(GoalResult::at_most(
                format!("{short}: from the model to the screen, p95"),
                of("lag_p95_ms"),
                lag,
                " ms",
            )));
        }
        all.push(as_gate(GoalResult::at_most(
            format!("{short}: memory"),
            of("heap_mb"),
            goals.heap_mb,
            " MB",
        )));
    }

    /// The section of the document.
    pub(crate) fn render(&self, verdicts: &[GoalResult], machine: &MachineLoad) -> String {
        let mut text = format!(
            "Measured on {} at commit {}, {}, {}.\n\n",
            repository::date(),
            repository::commit(),
            repository::machine(),
            machine.sentence_until_now()
        );
        for peer in self.subjects() {
            let version = self.row(peer, "version").and_then(|row| row["version"].as_str());
            if let Some(version) = version.filter(|version| !version.is_empty()) {
                let _ = writeln!(text, "`{peer}` is {version}.");
            }
        }
        if let Some(percent) = self.stolen_percent() {
            let _ = writeln!(
                text,
                "\nOther machines on the same host had at most {percent:.1} % of the processors' time while a row was measured."
            );
        }
        text += "\n| | view | script (s) | main thread (s) | tasks over 50 ms: number, longest | frame p95, p99 (ms) | frames over 25 ms | model to screen p50, p95 (ms) | card p95 (ms) | memory (MB) | nodes |\n\
                 |---|---|---|---|---|---|---|---|---|---|---|\n";
        for goals in &GOALS {
            for subject in self.subjects() {
                if self.row(subject, goals.scenario).is_some() {
                    text += &self.table_row(subject, goals);
                }
            }
        }
        let of = |scenario: &str, name: &str| self.figure(OURS, scenario, name);
        let _ = writeln!(
            text,
            "\nA cold start takes {:.0} ms until the page can be typed into, {:.0} of them script. {:.0} messages with 5 cards each are \
             {:.0} nodes and {:.1} MB; painting a scrolled frame takes {:.1} ms of the processor at p95, without a graphics processor.",
            of("start", "wall_ms"),
            of("start", "script_ms"),
            of("scroll", "messages"),
            of("scroll", "nodes"),
            of("scroll", "heap_mb"),
            of("scroll", "painting_p95_ms"),
        );
        text += "\n| goal | at most | measured | |\n|---|---|---|---|\n";
        for verdict in verdicts {
            let _ = writeln!(text, "{}", verdict.row());
        }
        text
    }

    fn table_row(&self, subject: &str, goals: &PageGoals) -> String {
        let number = |name: &str, digits: usize| match self.figure(subject, goals.scenario, name) {
            value if value.is_finite() => format!("{value:.digits$}"),
            _ => "-".to_owned(),
        };
        format!(
            "| {} | {subject} | **{}** | {} | {}, {} | {}, {} | {} of {} | {}, {} | {} | {} | {} |\n",
            goals.scenario.to_uppercase(),
            number("script_s", 2),
            number("task_s", 1),
            number("long_tasks", 0),
            number("long_max_ms", 0),
            number("frame_p95_ms", 1),
            number("frame_p99_ms", 1),
            number("frames_over_25", 0),
            number("frames", 0),
            number("lag_p50_ms", 0),
            number("lag_p95_ms", 0),
            number("card_p95_ms", 0),
            number("heap_mb", 1),
            number("nodes", 0),
        )
    }
}

/// Turns a missed goal into an error: for figures that a busy machine barely moves.
fn as_gate(verdict: GoalResult) -> GoalResult {
    GoalResult { is_gate: true, ..verdict }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_become_a_table_and_goals_compared_with_peers() {
        let s1 = |subject: &str, script: f64, long: u32, slow: u32| {
            json!({"subject": subject, "scenario": "s1", "script_s": script, "task_s": 9.0, "long_tasks": long, "long_max_ms": 80,
                   "frames": 1000, "frame_p95_ms": 16.8, "frame_p99_ms": 16.9, "frames_over_25": slow, "lag_p50_ms": 9.0,
                   "lag_p95_ms": 40.0, "card_p95_ms": 30.0, "input_max_ms": 24.0, "heap_mb": 9.5, "nodes": 4000,
                   "stolen_percent": if subject == OURS { 1.3 } else { 0.4 }})
        };
        let rows = PageRows(vec![
            json!({"subject": OURS, "scenario": "version", "version": ""}),
            json!({"subject": "streamdown", "scenario": "version", "version": "streamdown 2.7.1"}),
            s1(OURS, 1.5, 2, 20),
            s1("streamdown", 4.7, 1, 30),
        ]);
        let verdicts = rows.verdicts();
        let found = |what: &str| {
            let found = verdicts.iter().find(|verdict| verdict.what.contains(what)).unwrap();
            (found.is_met, found.is_gate)
        };
        assert_eq!(found("S1, 300 tokens/s with cards: script"), (true, true));
        assert_eq!(found("S1: frames over 25 ms"), (false, false), "2 % of the frames");
        assert_eq!(found("S1: from the model"), (false, true));
        assert_eq!(found("long tasks, beside streamdown"), (false, false));
        assert_eq!(found("frames over 25 ms, beside streamdown"), (true, false));
        assert!(!verdicts.iter().any(|verdict| verdict.what.starts_with("S2")), "not measured is not judged");
        let text = rows.render(&verdicts, &MachineLoad::now());
        assert!(text.contains("`streamdown` is streamdown 2.7.1."), "{text}");
        assert!(text.contains("at most 1.3 % of the processors' time"), "{text}");
        let row = "| S1 | throughline | **1.50** | 9.0 | 2, 80 | 16.8, 16.9 | 20 of 1000 | 9, 40 | 30 | 9.5 | 4000 |";
        assert!(text.contains(row), "{text}");
    }
}
