//! Programs as children of ours: started from an argument list, confined, and ended with everything that they started.
//!
//! Never uses a shell, never passes on an environment variable that was not requested, never leaves a process
//! running that it can find. Does not interpret a program's output.
//!
//! On Linux a child has a *supervisor* between itself and us: the [`ExecHelper`], which is our own binary, or
//! any program that calls [`helper_main`]. It guarantees the "everything that they started": it is the
//! [subreaper](https://man7.org/linux/man-pages/man2/PR_SET_CHILD_SUBREAPER.2const.html) of the child, so
//! that every process that forks, detaches or becomes a daemon stays its descendant, and it kills its
//! descendants until there is none, also when we are killed ourselves. It also sets resource limits and
//! applies Landlock. All of that in safe code, after `exec`, where no half-copied state of a forked process
//! exists.
//!
//! Without a helper (a library user's program that has none, or another system than Linux) a child has a
//! separate process group, and on Linux every process with its mark in the environment is found and killed.
//! Such a child can, and one with a helper cannot: outlive us when we are killed with SIGKILL; detach *and*
//! replace its environment, and so escape; use more memory and files than allowed; read and write what our
//! user can. [`SandboxStatus::Unavailable`] reports this.
//!
//! Where a control group was delegated to us ([`ControlGroups`]), a child gets a subgroup: its processes and
//! its memory are bounded together, and the kernel kills them together.
//!
//! A process that the kernel holds in an uninterruptible wait (a dead network file system) cannot be ended
//! without privileges. Such a call reports that not everything has ended yet, and killing continues.
//!
//! Without the cargo feature `process` only the settings are here, and nothing is started.

#[cfg(feature = "process")]
mod child;
#[cfg_attr(not(feature = "process"), expect(dead_code, reason = "only children enter a group"))]
mod control_groups;
#[cfg(feature = "process")]
mod denied;
#[cfg(feature = "process")]
mod escapes;
mod limits;
mod program;
#[cfg(feature = "process")]
mod run;
mod run_as;
mod sandbox;
mod settings;
#[cfg(feature = "process")]
mod stderr_log;

#[cfg(all(target_os = "linux", feature = "process"))]
mod confine;
mod helper;
#[cfg(all(target_os = "linux", feature = "process"))]
mod sockets;
#[cfg(all(target_os = "linux", feature = "process"))]
mod supervise;
#[cfg(all(unix, feature = "process"))]
mod sweep;

#[cfg(feature = "process")]
pub use child::{ChildExit, ChildProcess, StartError};
pub use control_groups::ControlGroups;
#[cfg(feature = "process")]
pub(crate) use denied::sandbox_remedy;
pub use helper::{ExecHelper, SandboxProbe, helper_main, hide_this_process};
pub use limits::ProcessLimits;
pub use program::{ENVIRONMENT_ALLOWED, ProgramError, ProgramSpec, SpawnContext, child_environment};
#[cfg(feature = "process")]
pub(crate) use run::{ProgramOutput, StdoutMode, failure_text, run_program};
pub(crate) use run_as::RUN_AS_REMEDY;
pub use run_as::{RunAs, RunAsUser, is_root};
pub use sandbox::{NetworkAccess, SandboxMode, SandboxRules, SandboxSettings, SandboxStatus};
pub use settings::ProgramSettings;
#[cfg(feature = "process")]
pub use stderr_log::{PROGRESS_PREFIX, STDERR_LOG_BYTES_MAX, StderrLog};
