//! Limits of a child.

use serde::{Deserialize, Serialize};

/// Limits of one child. The sizes hold for each of its processes, and only with an [`ExecHelper`](super::ExecHelper).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProcessLimits {
    /// Most bytes of memory that a process can write to (`RLIMIT_DATA`), and in a control group all of them together
    /// (`memory.max`). Default 4 GiB. Address space is not limited: Node and the JVM reserve far more of it than they ever
    /// use.
    pub memory_bytes_max: u64,
    /// Largest file that a process can write (`RLIMIT_FSIZE`). Default 1 GiB.
    pub file_bytes_max: u64,
    /// Most open files of a process (`RLIMIT_NOFILE`). Default 1,024.
    pub open_files_max: u64,
    /// Most processes and threads: in a control group exactly (`pids.max`), else in addition to the user's
    /// present ones (`RLIMIT_NPROC`). Root is exempt from `RLIMIT_NPROC`; the processes of its programs are
    /// counted every tenth of a second, and a program over the limit is ended. Default 512.
    pub processes_max: u64,
    /// From SIGTERM to SIGKILL. Default 1,000 ms: less than the executor's grace, so that the end is ours to tell.
    pub grace_ms: u64,
}

impl Default for ProcessLimits {
    fn default() -> Self {
        Self {
            memory_bytes_max: 4 << 30,
            file_bytes_max: 1 << 30,
            open_files_max: 1_024,
            processes_max: 512,
            grace_ms: 1_000,
        }
    }
}
