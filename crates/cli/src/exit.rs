//! Exit codes: what a script learns from the command without reading its output.

use crate::chinese;
use crate::messages::{self, UiLanguage};
use crate::output::{err, errln, out};
use std::fmt;
use std::process::ExitCode;
use throughline_engine::TurnStatus;

/// Exit status of the command. The numbers are documented in `--help` and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CliExit {
    /// The command succeeded.
    Done = 0,
    /// Wrong arguments, wrong configuration, unreadable input.
    Usage = 1,
    /// The turn ended in an error.
    Failed = 2,
    /// The answer was cut by a limit.
    Cut = 3,
    /// A tool that was run manually did not succeed.
    ToolFailed = 4,
    /// The command was interrupted; 128 + SIGINT, as in shells.
    Cancelled = 130,
}

impl CliExit {
    /// Exit code for the status of a turn.
    pub(crate) fn of(status: TurnStatus) -> Self {
        match status {
            TurnStatus::Completed => CliExit::Done,
            TurnStatus::Length | TurnStatus::Limit => CliExit::Cut,
            TurnStatus::Error | TurnStatus::Interrupted => CliExit::Failed,
            TurnStatus::Cancelled => CliExit::Cancelled,
        }
    }
}

impl From<CliExit> for ExitCode {
    fn from(exit: CliExit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// Failure with its cause and a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CliFailure {
    /// The exit code.
    pub(crate) exit: CliExit,
    /// The failure in one line.
    pub(crate) what: String,
    /// The reason.
    pub(crate) why: String,
    /// Advice for the user; empty if there is none.
    pub(crate) remedy: String,
}

impl CliFailure {
    /// A wrong argument, configuration or input.
    pub(crate) fn usage(what: impl Into<String>, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { exit: CliExit::Usage, what: what.into(), why: why.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for CliFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        messages::failure(f, &self.what, &self.why, &self.remedy)
    }
}

/// Return type of every subcommand.
pub(crate) type CommandResult = Result<CliExit, CliFailure>;

/// Prints a failure on stderr and returns the exit code.
pub(crate) fn print_failure(failure: &CliFailure) -> CliExit {
    errln!("{failure}");
    failure.exit
}

/// Prints the output of clap: help and version are wanted output, the rest is a usage error.
pub(crate) fn print_clap_error(error: &clap::Error) -> CliExit {
    let exit = if error.use_stderr() { CliExit::Usage } else { CliExit::Done };
    if UiLanguage::current() == UiLanguage::English {
        // A closed stdout or stderr is ignored.
        let _ = error.print();
        return exit;
    }
    match exit {
        CliExit::Done => out!("{}", chinese::rendered(&error.render().to_string())),
        _ => err!("{}", chinese::usage_error(error)),
    }
    exit
}
