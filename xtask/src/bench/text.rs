//! `cargo xtask bench text`: cost of reading calls out of text compared with native decoding, at every
//! length.

use super::goals::{GoalResult, exponent};
use super::{BenchOptions, MeasureEffort, ReportTarget, callgrind};
use crate::program::{self, ExternalProgram};
use crate::{generated, repository};
use anyhow::{Result, bail};
use serde_json::Value;
use std::fmt::Write;

const DOCUMENT: &str = "docs/performance.md";
const SECTION: &str = "text";
/// Limit for the time that the scanner adds to a text delta, in nanoseconds.
const ADDED_NS_MAX: f64 = 25.0;
const EXPONENT_MAX: f64 = 1.05;
/// The size that is counted: longer texts take the same instructions a delta, but minutes under valgrind.
const COUNTED: &str = "64k";

/// Result for one size. Times are nanoseconds per delta.
#[derive(Clone, Debug, PartialEq)]
struct TextRow {
    size: String,
    bytes: f64,
    deltas: f64,
    native: f64,
    protocols: Vec<ProtocolCost>,
}

#[derive(Clone, Debug, PartialEq)]
struct ProtocolCost {
    name: String,
    ns: f64,
    /// Additional cost over native decoding: median of the rounds' differences.
    added: f64,
}

/// Runs the benchmark; returns a summary line.
///
/// # Errors
/// A format that reads another text than the others.
pub(crate) fn text(options: &BenchOptions) -> Result<String> {
    let program =
        program::executable(&["bench", "--package", "throughline-wire", "--bench", "text", "--no-run"])?;
    let quick: &[&str] = if options.effort == MeasureEffort::Quick { &["--quick"] } else { &[] };
    let mut rows = Vec::new();
    let status = ExternalProgram::new(&program).args(["measure"]).args(quick).lines(|line| {
        if let Some(row) = parse_row(line) {
            println!("  {}", row.line());
            rows.push(row);
        }
    })?;
    if !status.success() || rows.is_empty() {
        bail!("the benchmark ended with {status}\n  remedy: a format reads something wrong; see above");
    }
    let counts = instructions(&program, &rows)?;
    for (format, count) in &counts {
        println!("  {format}: {count:.0} instructions a delta");
    }
    let verdicts = judge_rows(&rows);
    for verdict in &verdicts {
        println!("{}", verdict.line());
    }
    if options.report == ReportTarget::Written {
        let document = repository::read(DOCUMENT)?;
        let section = render(&rows, &counts, &verdicts);
        repository::write(DOCUMENT, &generated::replace(&document, SECTION, &section)?)?;
    }
    Ok(super::summary(&verdicts))
}

/// Instructions of a delta, by format.
fn instructions(program: &std::path::Path, rows: &[TextRow]) -> Result<Vec<(String, f64)>> {
    if !ExternalProgram::new("valgrind").args(["--version"]).succeeds() {
        println!("skipped: instruction counts need valgrind");
        return Ok(Vec::new());
    }
    let protocols = rows.iter().flat_map(|row| &row.protocols).map(|protocol| protocol.name.as_str());
    let mut formats: Vec<&str> = std::iter::once("native").chain(protocols).collect();
    formats.dedup();
    formats.truncate(1 + rows.first().map_or(0, |row| row.protocols.len()));
    let count = |format: &str| Ok((format.to_owned(), callgrind::per_event(program, COUNTED, format)?));
    formats.into_iter().map(count).collect()
}

fn judge_rows(rows: &[TextRow]) -> Vec<GoalResult> {
    let mut verdicts = Vec::new();
    let names = rows.first().map(|row| row.protocols.iter().map(|protocol| protocol.name.clone()));
    for (at, name) in names.into_iter().flatten().enumerate() {
        for (row, protocol) in rows.iter().filter_map(|row| Some((row, row.protocols.get(at)?))) {
            let what = format!("{name}, {}: added to a delta", row.size);
            verdicts.push(GoalResult::at_most(what, protocol.added, ADDED_NS_MAX, " ns"));
        }
        let points: Vec<_> =
            rows.iter().filter_map(|row| Some((row.bytes, row.protocols.get(at)?.ns * row.deltas))).collect();
        if let Some(exponent) = exponent(&points) {
            let what = format!("{name}: exponent over {} lengths", points.len());
            verdicts.push(GoalResult::at_most(what, exponent, EXPONENT_MAX, ""));
        }
    }
    verdicts
}

fn parse_row(line: &str) -> Option<TextRow> {
    let value: Value = serde_json::from_str(line).ok()?;
    let number = |key: &str| value[key].as_f64();
    let names = value.as_object()?.keys().filter_map(|key| key.strip_suffix("_added"));
    let protocols = names
        .map(|name| {
            let added = number(&format!("{name}_added"))?;
            Some(ProtocolCost { name: name.to_owned(), ns: number(name)?, added })
        })
        .collect::<Option<_>>()?;
    Some(TextRow {
        size: value["size"].as_str()?.to_owned(),
        bytes: number("bytes")?,
        deltas: number("deltas")?,
        native: number("native")?,
        protocols,
    })
}

impl TextRow {
    fn line(&self) -> String {
        let added: Vec<_> = self
            .protocols
            .iter()
            .map(|ProtocolCost { name, ns, added }| format!("{name} {ns:.1} ({added:+.1})"))
            .collect();
        format!("{}: native {:.1} ns a delta, {}", self.size, self.native, added.join(", "))
    }
}

fn render(rows: &[TextRow], counts: &[(String, f64)], verdicts: &[GoalResult]) -> String {
    let mut text = format!(
        "Measured on {} at commit {}, {}{}; medians of rounds.\n\n",
        repository::date(),
        repository::commit(),
        repository::machine(),
        repository::load().map(|load| format!(", load average {load}")).unwrap_or_default()
    );
    let names: Vec<&str> = rows
        .first()
        .map(|row| row.protocols.iter().map(|protocol| protocol.name.as_str()).collect())
        .unwrap_or_default();
    let _ = writeln!(text, "| text | deltas | native | {} |", names.join(" | "));
    let _ = writeln!(text, "|---|---|---|{}", "---|".repeat(names.len()));
    for row in rows {
        let added = |protocol: &ProtocolCost| format!("{:.0} (**{:+.1}**)", protocol.ns, protocol.added);
        let cells: Vec<_> = row.protocols.iter().map(added).collect();
        let _ = writeln!(
            text,
            "| {} | {:.0} | {:.0} | {} |",
            row.size,
            row.deltas,
            row.native,
            cells.join(" | ")
        );
    }
    if let Some((_, native)) = counts.first() {
        let added = |(name, count): &(String, f64)| format!("{name} {count:.0} ({:+.0})", count - native);
        let cells: Vec<_> = counts.iter().skip(1).map(added).collect();
        let _ = writeln!(
            text,
            "\nInstructions of a delta at {COUNTED}: native {native:.0}, {}.",
            cells.join(", ")
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

    const LINE: &str = r#"{"size":"64k","bytes":65536,"deltas":15000,"native":50.0,"vcp":60.0,"vcp_added":10.2,"xml":90.0,"xml_added":40.0}"#;

    #[test]
    fn benchmark_line_becomes_a_row() {
        let row = parse_row(LINE).unwrap();
        assert_eq!(row.line(), "64k: native 50.0 ns a delta, vcp 60.0 (+10.2), xml 90.0 (+40.0)");
        assert_eq!(parse_row("no JSON"), None);
    }

    #[test]
    fn missed_goals_are_reported() {
        let short = parse_row(LINE).unwrap();
        let mut long = TextRow { size: "1m".into(), bytes: 1_048_576.0, deltas: 240_000.0, ..short.clone() };
        long.protocols[0].ns *= 2.0;
        let missed: Vec<_> =
            judge_rows(&[short, long]).into_iter().filter(|verdict| !verdict.is_met).collect();
        let missed: Vec<_> = missed.iter().map(|verdict| verdict.what.as_str()).collect();
        assert_eq!(
            missed,
            ["vcp: exponent over 2 lengths", "xml, 64k: added to a delta", "xml, 1m: added to a delta"]
        );
    }
}
