//! The helper: the same binary, or one next to ours, started as the supervisor of a child.
//!
//! Its words are an interface between two builds of the same version, not between releases.

use super::sandbox::SandboxStatus;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// A program that calls [`helper_main`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecHelper {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
}

/// Confinement that is possible on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxProbe {
    /// Sandbox of children that ask for one.
    pub sandbox: SandboxStatus,
    /// Reason why detached descendants cannot be supervised; `None` = they can.
    pub cannot_supervise: Option<String>,
    /// True if the system counts and limits processes: root is exempt, and is counted every tenth of a second instead.
    pub processes_limited: bool,
    /// Reason why not all sockets can be denied, UDP and those of Unix among them; `None` = they can.
    pub cannot_deny_sockets: Option<String>,
}

impl ExecHelper {
    /// A program that hands what follows `arguments` to [`helper_main`].
    pub fn new(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = OsString>) -> Self {
        Self { program: program.into(), arguments: arguments.into_iter().collect() }
    }

    /// The program that runs now, which does so if its first argument is `subcommand`.
    pub fn this_program(subcommand: &str) -> Option<Self> {
        // The link leads to the binary that runs, even if an update has replaced its file.
        let link = PathBuf::from("/proc/self/exe");
        let program = if link.exists() { link } else { std::env::current_exe().ok()? };
        Some(Self::new(program, [subcommand.into()]))
    }

    /// Asks the helper for the sandbox features of this machine.
    ///
    /// # Errors
    ///
    /// The program cannot be started, or is not a helper.
    pub async fn probe(&self) -> Result<SandboxProbe, String> {
        let mut command = tokio::process::Command::new(&self.program);
        command.args(&self.arguments).arg("probe").env_clear().stdin(std::process::Stdio::null());
        let output = command.kill_on_drop(true).output().await;
        let output = output.map_err(|error| format!("the helper cannot be started: {error}"))?;
        serde_json::from_slice(&output.stdout)
            .map_err(|_| format!("{} is not a helper", self.program.display()))
    }
}

/// Makes this process unreadable for others of the same user: `/proc/PID/environ` and `/proc/PID/mem`, where its keys are,
/// belong to root then, and no debugger of that user attaches. Programs of tools are such others.
pub fn hide_this_process() {
    // Elsewhere there is no /proc. It cannot fail.
    #[cfg(all(target_os = "linux", feature = "process"))]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Runs as the helper: to be called in the first lines of `main`, before other threads exist. `arguments` are
/// those after the ones in the [`ExecHelper`].
///
/// ```no_run
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     let mut arguments = std::env::args_os().skip(1);
///     if arguments.next().is_some_and(|first| first == "__exec") {
///         return throughline_tools::process::helper_main(arguments);
///     }
///     // the program itself: tools get ExecHelper::this_program("__exec")
///     ExitCode::SUCCESS
/// }
/// ```
pub fn helper_main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    #[cfg(all(target_os = "linux", feature = "process"))]
    {
        match arguments.split_first() {
            Some((verb, rest)) if verb == "supervise" => super::supervise::supervise(rest),
            Some((verb, rest)) if verb == "become" => super::confine::become_program(rest),
            Some((verb, [])) if verb == "probe" => super::confine::probe(),
            _ => exit_failed("this is an internal helper of Throughline's tools; do not run it directly"),
        }
    }
    #[cfg(not(all(target_os = "linux", feature = "process")))]
    {
        drop(arguments);
        exit_failed("the helper is for Linux, built with the cargo feature `process`")
    }
}

/// Reports that the helper could not do its work; no shell gives this code to a program that ran.
pub(super) fn exit_failed(why: impl std::fmt::Display) -> ExitCode {
    eprintln!("throughline: {why}");
    ExitCode::from(125)
}
