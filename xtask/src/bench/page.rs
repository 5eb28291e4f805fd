//! `cargo xtask bench page`: performance of the page in a browser, through the real server, compared with
//! other projects' views of the same stream.

mod figures;

use super::{BenchOptions, InstructionGate, MeasureEffort, ReportTarget};
use crate::fault::fault;
use crate::repository::{self, MachineLoad};
use crate::{generated, program, web};
use anyhow::{Result, bail};
use figures::PageRows;
use serde_json::Value;
use std::path::PathBuf;

const DOCUMENT: &str = "docs/performance.md";
const SECTION: &str = "page";

/// Runs the benchmark; returns a summary line.
///
/// # Errors
/// The server, the browser or the page fails. Peers that cannot be installed are reported and left out.
pub(crate) fn page(options: &BenchOptions) -> Result<String> {
    let Some(binary) = binary()? else { return Ok("skipped".to_owned()) };
    let machine = MachineLoad::now();
    let folder = program::target()?.join("bench-page");
    let mut rows: Vec<Value> = Vec::new();
    let quick: &[&str] = if options.effort == MeasureEffort::Quick { &["--quick"] } else { &[] };
    let run = match web::script("bench", quick, &binary) {
        Ok(run) => run.env("BENCH_FOLDER", &folder),
        Err(why) => {
            println!("skipped: {why}");
            return Ok("skipped".to_owned());
        }
    };
    let status = run.lines(|line| {
        if let Ok(row) = serde_json::from_str(line) {
            println!("  {}", figures::line(&row));
            rows.push(row);
        }
    })?;
    if !status.success() {
        bail!("the bench ended with {status}\n  remedy: see what it says above");
    }
    let rows = PageRows(rows);
    let verdicts = rows.verdicts();
    for verdict in &verdicts {
        println!("{}", verdict.line());
    }
    if options.report == ReportTarget::Written {
        let document = repository::read(DOCUMENT)?;
        let text = rows.render(&verdicts, &machine);
        repository::write(DOCUMENT, &generated::replace(&document, SECTION, &text)?)?;
    }
    let missed: Vec<_> = verdicts.iter().filter(|verdict| verdict.is_gate && !verdict.is_met).collect();
    if options.gate == InstructionGate::Enforced && !missed.is_empty() {
        let lines: Vec<_> = missed.iter().map(|verdict| verdict.line()).collect();
        return Err(fault(lines.join("\n"), "the page's own profiler shows where the time goes"));
    }
    Ok(super::summary(&verdicts))
}

/// The server with the page in it, built now, or the one that the variable `SERVER` names.
fn binary() -> Result<Option<PathBuf>> {
    if let Some(binary) = std::env::var_os("SERVER") {
        return Ok(Some(PathBuf::from(binary)));
    }
    if let Err(why) = web::build()? {
        println!("skipped: {why}");
        return Ok(None);
    }
    program::release().map(Some)
}
