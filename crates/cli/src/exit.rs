//! Exit codes: what a script learns from the command without reading its output.

use crate::messages;
use std::fmt;
use std::process::ExitCode;
use throughline_engine::TurnStatus;

/// How the command ended. The numbers are documented in `--help` and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything asked for was done.
    Done = 0,
    /// Wrong arguments, wrong configuration, an input that cannot be read.
    Usage = 1,
    /// The turn ended in an error.
    Failed = 2,
    /// The answer was cut by a limit.
    Cut = 3,
    /// A tool that was run by hand did not succeed.
    ToolFailed = 4,
    /// Somebody stopped it; 128 + SIGINT, as shells have it.
    Cancelled = 130,
}

impl Exit {
    /// For a turn that ended so.
    pub fn of(status: TurnStatus) -> Self {
        match status {
            TurnStatus::Completed => Exit::Done,
            TurnStatus::Length | TurnStatus::Limit => Exit::Cut,
            TurnStatus::Error | TurnStatus::Interrupted => Exit::Failed,
            TurnStatus::Cancelled => Exit::Cancelled,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// What went wrong, why, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What did not work, one line.
    pub what: String,
    /// The reason.
    pub why: String,
    /// What the reader can do; empty if nothing.
    pub remedy: String,
}

impl Failure {
    /// A wrong argument, configuration or input.
    pub fn usage(what: impl Into<String>, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, what: what.into(), why: why.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        messages::failure(f, &self.what, &self.why, &self.remedy)
    }
}

/// What every subcommand returns.
pub type Ended = Result<Exit, Failure>;

/// Prints a failure on stderr and says how to exit.
pub fn report(failure: &Failure) -> Exit {
    eprintln!("{failure}");
    failure.exit
}

/// Prints what clap has to say: help and version are wanted output, the rest is a usage error.
pub fn usage(error: &clap::Error) -> Exit {
    // A closed stdout or stderr leaves nobody to tell.
    let _ = error.print();
    if error.use_stderr() { Exit::Usage } else { Exit::Done }
}
