//! Denies new sockets to this process and the program that it executes: Landlock does not cover all kinds,
//! such as UDP and Unix sockets.

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};
use std::collections::BTreeMap;

/// `EACCES`, which programs know of firewalls.
const EACCES: u32 = 13;
/// `socket`, then `io_uring_setup`, which could create one without that call. A pair of connected sockets
/// reaches no other process, and many programs use one to communicate with their children.
#[cfg(target_arch = "x86_64")]
const DENIED_SYSCALLS: [i64; 4] = [41, 425, X32 + 41, X32 + 425];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_SYSCALLS: [i64; 2] = [198, 425];
/// Offset of the same calls for programs with 32-bit pointers.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

/// Denies them permanently.
///
/// # Errors
/// The obstacle.
pub(super) fn deny_sockets() -> Result<(), String> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)
        .map_err(|_| format!("seccomp is not supported on {}", std::env::consts::ARCH))?;
    let rules: BTreeMap<i64, _> = DENIED_SYSCALLS.into_iter().map(|call| (call, Vec::new())).collect();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(EACCES), architecture);
    let program: Result<BpfProgram, _> = filter.and_then(TryInto::try_into);
    let program = program.map_err(|error| error.to_string())?;
    apply_filter(&program).map_err(|error| error.to_string())
}
