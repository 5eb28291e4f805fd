//! Tests of the command as shipped: built alone, so without features that only another crate of the workspace
//! enables, and packed into the released archive.

use super::{CheckOutcome, programs::TestPrograms};
use crate::program;
use crate::{dist, web};
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;

/// Names the program to the tests.
const PROGRAM: &str = "THROUGHLINE_SHIPPED";
/// Environment variable with the archive for the tests. Empty: it could not be made, which this check
/// reports, or this check runs them.
pub(super) const ARCHIVE: &str = "THROUGHLINE_ARCHIVE";

/// Builds it in the dev profile and runs the tests of it.
pub(crate) fn check() -> Result<CheckOutcome> {
    let page = web::built()?;
    let shipped = copy_of_the_command()?;
    let (archive, skipped) = match page {
        Ok(()) => (dist::assemble(&shipped, &dist::DistOptions::for_tests())?, None),
        Err(why) => (PathBuf::new(), Some(format!("the archive for this platform: {why}"))),
    };
    let variables = vec![(PROGRAM, shipped.into()), (ARCHIVE, archive.into())];
    let mut report = TestPrograms { modules: &["cli::shipped", "cli::archive"], variables }.run()?;
    report.skipped.extend(skipped);
    Ok(CheckOutcome::Tests(report))
}

/// A copy: the tests' own build of the command replaces the one that cargo shows.
fn copy_of_the_command() -> Result<PathBuf> {
    let built = program::throughline()?;
    let folder = program::target()?.join("shipped");
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let copy = folder.join(built.file_name().unwrap_or_default());
    // A file that runs cannot be overwritten.
    let _ = fs::remove_file(&copy);
    fs::copy(&built, &copy).with_context(|| format!("{} cannot be copied", built.display()))?;
    Ok(copy)
}
