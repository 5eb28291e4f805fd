//! Figures of the server: the goals, and the section of the document.

use super::super::goals::GoalResult;
use crate::repository::{self, MachineLoad};
use serde_json::Value;
use std::fmt::Write;

/// The targets of ours.
pub(crate) const OURS: &str = "throughline";
pub(crate) const NO_WAIT: &str = "throughline-nowait";
pub(crate) const MEMORY: &str = "throughline-memory";
pub(crate) const OWN_API: &str = "throughline-turns";

/// Rows of `scripts/part2.py` and our own.
pub(crate) struct ServerRows(pub(crate) Vec<Value>);

impl ServerRows {
    /// Median over all rows of a target and scenario; NaN without rows.
    fn median(&self, target: &str, scenario: &str, figure: impl Fn(&Value) -> Option<f64>) -> f64 {
        let here = self.0.iter().filter(|row| row["target"] == target && row["scen"] == scenario);
        let mut all: Vec<f64> = here.filter_map(figure).collect();
        all.sort_by(f64::total_cmp);
        match all.len() {
            0 => f64::NAN,
            n => (all[(n - 1) / 2] + all[n / 2]) / 2.0,
        }
    }

    fn plain(&self, target: &str, scenario: &str, name: &str) -> f64 {
        self.median(target, scenario, |row| row[name].as_f64())
    }

    /// Time until the first token, in milliseconds; `at` 0 = p50, 1 = p99.
    fn first_token(&self, target: &str, at: usize) -> f64 {
        self.median(target, "s1.ttft", |row| Some(row["ttft_us"][at].as_f64()? / 1e3))
    }

    /// Milliseconds from a token's birth to its arrival.
    fn token(&self, target: &str, scenario: &str, percentile: &str) -> f64 {
        self.median(target, scenario, |row| Some(row["lat_us"][percentile].as_f64()? / 1e3))
    }

    /// Microseconds of processor time for a token, of 100 streams.
    fn cpu(&self, target: &str) -> f64 {
        self.plain(target, "s1.n100", "target_cpu_us_per_token")
    }

    /// Milliseconds of a turn with one tool call that are not the model's.
    fn turn(&self, target: &str, scenario: &str, figure: &str) -> f64 {
        self.median(target, scenario, |row| Some(row["turn"][figure].as_f64()? / 1e3))
    }

    fn streams(&self, target: &str) -> f64 {
        self.plain(target, "s3.result", "capacity")
    }

    fn is_measured(&self, target: &str) -> bool {
        self.0.iter().any(|row| row["target"] == target && row["scen"] == "s1.n100")
    }

    /// Goals of the issue, and those rows of the scoreboard that can be measured here.
    pub(crate) fn verdicts(&self) -> Vec<GoalResult> {
        let added = |target: &str| self.first_token(target, 0) - self.first_token("direct", 0);
        let late = |scenario: &str| {
            self.median(OURS, scenario, |row| {
                Some(row["turn"]["between_calls_us_p50"].as_f64()? / 1e3 - row["optimum_ms"].as_f64()?)
            })
        };
        let latest = ["s4.par", "s4.3s1s1s", "s4.tail"].into_iter().map(late).fold(f64::NAN, f64::max);
        let all = [
            GoalResult::at_most(
                "processor time of a token, by relay-turn's",
                self.cpu(NO_WAIT) / self.cpu("relay-turn"),
                1.25,
                "",
            ),
            GoalResult::at_most(
                "added time to first token p50, by relay-pass's",
                added(NO_WAIT) / added("relay-pass"),
                2.0,
                "",
            ),
            GoalResult::at_most(
                "time to first token p50, fsyncs included: no step of 40 ms",
                self.first_token(OURS, 0),
                20.0,
                " ms",
            ),
            GoalResult::at_most("turn overhead p50", self.turn(NO_WAIT, "s2", "added_us_p50"), 1.0, " ms"),
            GoalResult::at_most(
                "between two model calls p50",
                self.turn(NO_WAIT, "s2", "between_calls_us_p50"),
                0.4,
                " ms",
            ),
            GoalResult::at_most(
                "streams per core at 50 tokens/s: relay-turn's by ours",
                self.streams("relay-turn") / self.streams(NO_WAIT),
                1.11,
                "",
            ),
            GoalResult::at_most(
                "memory of an active stream",
                self.plain(OURS, "active", "kib_a_stream"),
                64.0,
                " KiB",
            ),
            GoalResult::at_most(
                "memory of an idle stream (row 11)",
                self.plain(OURS, "idle", "kib_a_stream"),
                20.0,
                " KiB",
            ),
            GoalResult::at_most("next call behind the optimum with eager tools", latest, 2.0, " ms"),
            GoalResult::at_most(
                "from start to ready after kill -9 (row 6)",
                self.plain(OURS, "restart", "ready_ms"),
                1000.0,
                " ms",
            ),
            GoalResult::at_most(
                "added time to first token p99, one stream (row 7)",
                self.first_token(NO_WAIT, 1) - self.first_token("direct", 1),
                0.4,
                " ms",
            ),
            GoalResult::at_most(
                "memory of the idle process (row 12)",
                self.plain(OURS, "cold", "rss_kib") / 1024.0,
                25.0,
                " MiB",
            ),
            GoalResult::at_most(
                "processor time of a token with the log, 100 streams (row 13)",
                self.cpu(OURS),
                15.0,
                " us",
            ),
        ];
        all.into_iter().filter(|verdict| verdict.value.is_finite()).collect()
    }

    /// The section of the document.
    pub(crate) fn render(&self, verdicts: &[GoalResult], build: &str, machine: &MachineLoad) -> String {
        let mut text = format!(
            "Measured on {} at commit {}, {}, {build}, {}.\n\n",
            repository::date(),
            repository::commit(),
            repository::machine(),
            machine.sentence_until_now()
        );
        text += "| target | first token p50, p99 (ms) | a token, 1 stream p50, p99 (ms) | 100 streams p50, p99 (ms) | **us of processor a token** | turn overhead p50 (ms) | between calls p50 (ms) | streams per core | memory at 100 (MiB) |\n\
                 |---|---|---|---|---|---|---|---|---|\n";
        let number = |value: f64, digits: usize| {
            if value.is_finite() { format!("{value:.digits$}") } else { "-".to_owned() }
        };
        let mut targets: Vec<&str> = self.0.iter().filter_map(|row| row["target"].as_str()).collect();
        let mut seen = std::collections::BTreeSet::new();
        targets.retain(|target| seen.insert(*target) && (self.is_measured(target)));
        for target in targets {
            let _ = writeln!(
                text,
                "| {target} | {}, {} | {}, {} | {}, {} | **{}** | {} | {} | {} | {} |",
                number(self.first_token(target, 0), 2),
                number(self.first_token(target, 1), 2),
                number(self.token(target, "s1.n1", "p50"), 2),
                number(self.token(target, "s1.n1", "p99"), 2),
                number(self.token(target, "s1.n100", "p50"), 2),
                number(self.token(target, "s1.n100", "p99"), 1),
                number(self.cpu(target), 1),
                number(self.turn(target, "s2", "added_us_p50"), 2),
                number(self.turn(target, "s2", "between_calls_us_p50"), 2),
                number(self.streams(target), 0),
                number(self.median(target, "s1.n100", |row| row["target_rss_mib"][1].as_f64()), 0),
            );
        }
        let of = |scenario: &str, name: &str| self.plain(OURS, scenario, name);
        let _ = writeln!(
            text,
            "\nA turn without tools takes {:.1} fsyncs and {:.1} commits; one fsync takes {:.2} ms on this disk. Ready {:.0} ms after \
             the start with an empty store, {:.0} ms with {:.0} turns in it after `kill -9` ({:.0} MiB resident then).\n",
            of("fsyncs", "fsyncs_a_turn"),
            of("fsyncs", "commits_a_turn"),
            of("fsyncs", "fsync_ms"),
            of("cold", "ready_ms"),
            of("restart", "ready_ms"),
            of("restart", "turns"),
            of("restart", "rss_kib") / 1024.0,
        );
        text += "| three calls, then the next model call | optimum (ms) | throughline (ms) | relay-turn-eager (ms) |\n|---|---|---|---|\n";
        for (scenario, what) in
            [("s4.par", "3 x 1 s"), ("s4.3s1s1s", "3 s, 1 s, 1 s"), ("s4.tail", "3 x 1 s, then 1 s of text")]
        {
            let _ = writeln!(
                text,
                "| {what} | {} | {} | {} |",
                number(of(scenario, "optimum_ms"), 0),
                number(self.turn(OURS, scenario, "between_calls_us_p50"), 1),
                number(self.turn("relay-turn-eager", scenario, "between_calls_us_p50"), 1),
            );
        }
        text += "\n| goal | at most | measured | |\n|---|---|---|---|\n";
        for verdict in verdicts {
            let _ = writeln!(text, "{}", verdict.row());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_become_a_table_and_goals() {
        let s1 = |target: &str, ttft: f64, cpu: f64| {
            [
                json!({"target": target, "scen": "s1.ttft", "ttft_us": [ttft, ttft * 2.0]}),
                json!({"target": target, "scen": "s1.n100", "target_cpu_us_per_token": cpu,
                       "lat_us": {"p50": 200.0, "p99": 4000.0}, "target_rss_mib": [5, 9]}),
            ]
        };
        let rows: Vec<Value> = [s1("direct", 100.0, 0.0), s1("relay-pass", 200.0, 14.0), s1("relay-turn", 300.0, 16.0)]
            .into_iter()
            .chain([s1(OURS, 1500.0, 33.0), s1(NO_WAIT, 280.0, 32.0)])
            .flatten()
            .chain([json!({"target": OURS, "scen": "s4.tail", "turn": {"between_calls_us_p50": 1500.0}, "optimum_ms": 0.0})])
            .collect();
        let rows = ServerRows(rows);
        let verdicts = rows.verdicts();
        let found = |what: &str| {
            let found = verdicts.iter().find(|verdict| verdict.what.starts_with(what)).unwrap();
            (found.value, found.is_met)
        };
        assert_eq!(found("processor time of a token, by"), (2.0, false));
        assert!(found("added time to first token p50").1, "180 against 100 us");
        assert_eq!(found("next call behind"), (1.5, true));
        assert!(
            !verdicts.iter().any(|verdict| verdict.what.starts_with("streams")),
            "not measured is not judged"
        );
        let text = rows.render(&verdicts, "release", &MachineLoad::now());
        assert!(
            text.contains("| throughline-nowait | 0.28, 0.56 | -, - | 0.20, 4.0 | **32.0** | - |"),
            "{text}"
        );
        assert!(text.contains("| 3 x 1 s, then 1 s of text | 0 | 1.5 | - |"), "{text}");
    }
}
