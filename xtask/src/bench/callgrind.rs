//! Instructions per event, counted: the same on a busy machine as on an idle one.

use crate::program::ExternalProgram;
use anyhow::{Context, Result, ensure};
use std::path::Path;

/// Workloads that are counted. Longer calls take the same instructions an event, but minutes under valgrind.
pub(crate) const WORKLOADS: [&str; 13] = [
    "w1-text",
    "w2-calls",
    "w3-long.64k",
    "w4-mixed",
    "w1-text+obfuscation",
    "w1-text+created",
    "w2-calls+obfuscation",
    "w2-calls+created",
    "text.openai-responses",
    "text.anthropic",
    "text.gemini",
    "text.ollama",
    "text.cohere",
];

/// Two passes more cost this much; what comes once (writing the workload) cancels out.
const PASSES: [u32; 2] = [1, 3];

/// Instructions of an event.
pub(crate) fn per_event(program: &Path, workload: &str, decoder: &str) -> Result<f64> {
    let [few, many] = PASSES;
    let count = |passes: u32| {
        let (instructions, printed) = count(program, &["count", workload, decoder, &passes.to_string()])?;
        let events = number(&printed, "events ").context("the benchmark names no number of events")?;
        anyhow::Ok((instructions, events))
    };
    let ((less, events), (more, _)) = (count(few)?, count(many)?);
    Ok((more - less) / f64::from(many - few) / events)
}

/// Pieces of the smaller hostile reply, and how many times as many the larger one has.
const HOSTILE_PIECES: u32 = 500;
pub(crate) const HOSTILE_FACTOR: u32 = 4;

/// Hostile shapes, each with the instructions of the larger reply by those of the smaller.
pub(crate) fn hostile_growth(program: &Path) -> Result<Vec<(String, f64)>> {
    let shapes = ExternalProgram::new(program).args(["list"]).text()?;
    let growth = |shape: &str| {
        let count = |pieces: u32| count(program, &["count", shape, &pieces.to_string()]);
        let ((few, _), (many, _)) = (count(HOSTILE_PIECES)?, count(HOSTILE_PIECES * HOSTILE_FACTOR)?);
        println!("  {shape}: {:.2} times for {HOSTILE_FACTOR} times as much", many / few);
        Ok((shape.to_owned(), many / few))
    };
    shapes.lines().map(growth).collect()
}

/// Instructions of a whole run, and what it printed.
fn count(program: &Path, words: &[&str]) -> Result<(f64, String)> {
    let output = ExternalProgram::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args([program])
        .args(words)
        .output()?;
    ensure!(output.status.success(), "valgrind ended with {}:\n{}", output.status, output.stderr);
    Ok((collected(&output.stderr).context("callgrind printed no count")?, output.stdout))
}

/// `==17== Collected : 12345`.
fn collected(report: &str) -> Option<f64> {
    let line = report.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(':').next()?.split_whitespace().next()?.parse().ok()
}

fn number(text: &str, label: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(label)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instruction_and_event_counts_are_parsed() {
        let report = "==17== Events    : Ir\n==17== Collected : 12345678\n==17== \n";
        assert_eq!(collected(report), Some(12_345_678.0));
        assert_eq!(collected("==17== nothing"), None);
        assert_eq!(number("events 10003\n", "events "), Some(10_003.0));
    }
}
