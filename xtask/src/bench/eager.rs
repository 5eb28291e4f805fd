//! `cargo xtask bench eager`: benefit of starting tools before the end of the stream, row by row.

use super::ReportTarget;
use crate::program::{self, ExternalProgram};
use crate::{generated, repository};
use anyhow::{Result, bail};
use serde_json::Value;
use std::fmt::Write;

const DOCUMENT: &str = "docs/performance.md";
const SECTION: &str = "eager";

/// One scenario: seconds with the barrier, and with eager starts.
#[derive(Clone, Debug, PartialEq)]
struct EagerRow {
    scenario: String,
    serial: [f64; 2],
    parallel: [f64; 2],
    first_start: [f64; 2],
    /// Without streaming, in parallel: time of the last outcome, and of the first tool's start.
    whole: [f64; 2],
}

/// Runs the benchmark; returns a summary line.
///
/// # Errors
/// A failed turn, or eager starts that make a step slower.
pub(crate) fn eager(report: ReportTarget) -> Result<String> {
    // Nearly all of the time is waiting: the development profile gives the same figures, and is built
    // already.
    let package = ["--package", "throughline", "--bench", "eager", "--no-run"];
    let program = program::executable(&[&["bench", "--profile", "dev"], &package[..]].concat())?;
    println!(
        "  7 scenarios, serial and parallel, with and without the barrier, and without streaming, 3 times: about 40 s"
    );
    let mut rows = Vec::new();
    let status = ExternalProgram::new(&program).args(["measure"]).lines(|line| match parse_row(line) {
        Some(row) => {
            println!("{}", row.line());
            rows.push(row);
        }
        None => println!("{line}"),
    })?;
    if !status.success() || rows.is_empty() {
        bail!("the benchmark ended with {status}\n  remedy: see what it says above");
    }
    if report == ReportTarget::Written {
        let document = repository::read(DOCUMENT)?;
        repository::write(DOCUMENT, &generated::replace(&document, SECTION, &render(&rows))?)?;
    }
    check_rows(&rows)
}

/// The first tool must never start later than with the barrier, nor a step take longer.
fn check_rows(rows: &[EagerRow]) -> Result<String> {
    /// Tolerance for timers and a busy machine, in seconds.
    const NOISE_S: f64 = 0.15;
    // A reply that comes whole ends no sooner than one with the barrier, whose stream is read as it comes.
    if let Some(row) = rows.iter().find(|row| row.whole[0] < row.parallel[1] - NOISE_S) {
        bail!(
            "without streaming a step is faster: {}\n  remedy: does the fake model wait as long?",
            row.line()
        );
    }
    let slower = |[barrier, eager]: [f64; 2]| eager > barrier + NOISE_S;
    if let Some(row) =
        rows.iter().find(|row| slower(row.serial) || slower(row.parallel) || slower(row.first_start))
    {
        bail!("eager starts are slower: {}\n  remedy: was the machine busy? Run it again", row.line());
    }
    let gains = rows.iter().map(|row| row.first_start[0] - row.first_start[1]);
    let (least, most) = gains.fold((f64::MAX, f64::MIN), |(least, most), s| (least.min(s), most.max(s)));
    Ok(format!("first tool {least:.1} to {most:.1} s sooner in {} scenarios", rows.len()))
}

fn parse_row(line: &str) -> Option<EagerRow> {
    let value: Value = serde_json::from_str(line).ok()?;
    let pair = |key: &str| Some([value[key][0].as_f64()?, value[key][1].as_f64()?]);
    Some(EagerRow {
        scenario: value["scenario"].as_str()?.to_owned(),
        serial: pair("serial")?,
        parallel: pair("parallel")?,
        first_start: pair("first_start")?,
        whole: pair("whole")?,
    })
}

impl EagerRow {
    fn line(&self) -> String {
        format!(
            "| {} | {} | {} | {:.1} → {:.1} | {:.1}, {:.1} |",
            self.scenario,
            change(self.serial),
            change(self.parallel),
            self.first_start[0],
            self.first_start[1],
            self.whole[0],
            self.whole[1]
        )
    }
}

fn change([barrier, eager]: [f64; 2]) -> String {
    format!("{barrier:.1} → {eager:.1} ({:+.0} %)", (eager / barrier - 1.0) * 100.0)
}

fn render(rows: &[EagerRow]) -> String {
    let mut text = format!(
        "Measured on {} at commit {}, {}{}; medians of three.\n\n",
        repository::date(),
        repository::commit(),
        repository::machine(),
        repository::load().map(|load| format!(", load average {load}")).unwrap_or_default()
    );
    text += "| the model's step | serial: barrier → eager | parallel: barrier → eager | first tool starts | not streamed: last outcome, first tool |\n\
             |---|---|---|---|---|\n";
    for row in rows {
        let _ = writeln!(text, "{}", row.line());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(first_start: [f64; 2], serial: [f64; 2]) -> EagerRow {
        EagerRow {
            scenario: "one".into(),
            serial,
            parallel: serial,
            first_start,
            whole: [serial[0], first_start[0]],
        }
    }

    #[test]
    fn benchmark_line_becomes_a_table_row() {
        let line = r#"{"scenario":"one","serial":[6.2,4.0],"parallel":[4.2,4.0],"first_start":[3.2,1.0],"whole":[4.3,3.2]}"#;
        let row = parse_row(line).unwrap();
        assert_eq!(row.line(), "| one | 6.2 → 4.0 (-35 %) | 4.2 → 4.0 (-5 %) | 3.2 → 1.0 | 4.3, 3.2 |");
    }

    #[test]
    fn eager_starts_that_lose_time_are_rejected() {
        assert!(check_rows(&[row([3.2, 1.0], [6.0, 4.0]), row([1.0, 1.0], [2.0, 2.1])]).is_ok());
        assert!(check_rows(&[row([3.2, 1.0], [4.0, 4.5])]).is_err());
        assert!(check_rows(&[row([1.0, 1.3], [4.0, 4.0])]).is_err());
    }
}
