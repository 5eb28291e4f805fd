//! The last step before the program: this process takes on its limits, and then becomes it.

use super::control_groups::ProgramGroup;
use super::helper::{SandboxProbe, exit_failed};
use super::limits::ProcessLimits;
use super::run_as::RunAsUser;
use super::sandbox::{NetworkAccess, SandboxMode, SandboxRules, SandboxStatus};
use super::sockets::deny_sockets;
use super::supervise::SuperviseRequest;
use landlock::{
    ABI, Access, AccessFs, AccessNet, LandlockStatus, RestrictionStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::process::{
    Gid, Resource, Rlimit, Signal, Uid, getpid, getppid, getuid, set_child_subreaper,
    set_parent_process_death_signal, setrlimit,
};
use rustix::thread::{
    CapabilitySet, remove_capability_from_bounding_set, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The ABI that this code was written and tested for. The additional denials of a newer kernel are not known here.
const ABI_USED: ABI = ABI::V6;

/// Paths that are readable besides those of the settings: without these no program starts.
const SYSTEM_PATHS: [&str; 16] = [
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/usr",
    "/etc",
    "/opt",
    "/nix",
    "/gnu",
    "/snap",
    "/run/current-system",
    "/proc",
    "/sys/devices/system",
    "/sys/fs/cgroup",
];
/// Files that are not data.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Executes the program, or returns the error.
pub(super) fn become_program(arguments: &[OsString]) -> ExitCode {
    let (request, program) = match SuperviseRequest::parse(arguments) {
        Ok(read) => read,
        Err(why) => return exit_failed(why),
    };
    let supervisor = getppid();
    if let Some(Err(error)) = request.group.as_ref().map(ProgramGroup::enter) {
        return exit_failed(format_args!("its control group cannot be entered: {error}"));
    }
    let user = request.user.as_ref().map_or_else(getuid, |user| Uid::from_raw(user.uid));
    set_rlimits(&request.limits, user);
    // The first to go if memory runs out for all.
    let _ = std::fs::write("/proc/self/oom_score_adj", "500");
    let _ = set_no_new_privs(true);
    let Some((path, rest)) = program.split_first() else { return exit_failed("no program") };
    let is_required =
        |why: &str| exit_failed(format_args!("the sandbox is required but not available: {why}"));
    let mode = request.sandbox.mode;
    if mode != SandboxMode::Off {
        drop_capabilities();
        let sandbox = confine(&request.sandbox, Path::new(path), &request.private);
        if let (SandboxMode::Required, SandboxStatus::Unavailable { why }) = (mode, &sandbox) {
            return is_required(why);
        }
    }
    if let Some(Err(error)) = request.user.as_ref().map(become_user) {
        return exit_failed(format_args!("cannot switch to the user in `run_as`: {error}"));
    }
    // A change of user clears this setting. The supervisor has one thread, so that its end and that of the
    // thread are the same.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    if getppid() != supervisor {
        return exit_failed("the supervisor has exited");
    }
    let closes_sockets = mode != SandboxMode::Off && request.sandbox.network == NetworkAccess::Deny;
    if closes_sockets
        && let Err(why) = deny_sockets()
        && mode == SandboxMode::Required
    {
        return is_required(&why);
    }
    let error = Command::new(path).args(rest).exec();
    exit_failed(format_args!("{} cannot be started: {error}", Path::new(path).display()))
}

/// Groups first: a process that is no longer root cannot choose them.
fn become_user(user: &RunAsUser) -> rustix::io::Result<()> {
    let groups: Vec<Gid> = user.groups.iter().map(|group| Gid::from_raw(*group)).collect();
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    // This process has one thread, so that the thread's are its own.
    set_thread_groups(&groups)?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)
}

/// Drops the capabilities with which root could undo the rest. Others have none of them, and may not drop them.
fn drop_capabilities() {
    for capability in [
        CapabilitySet::SYS_ADMIN,
        CapabilitySet::SYS_PTRACE,
        // Opens `/proc/PID/environ` of any process, including ours with its secrets, in spite of Landlock.
        CapabilitySet::PERFMON,
        CapabilitySet::SYS_RESOURCE,
        CapabilitySet::SYS_MODULE,
        CapabilitySet::SYS_RAWIO,
        CapabilitySet::SYS_BOOT,
        CapabilitySet::BPF,
    ] {
        let _ = remove_capability_from_bounding_set(capability);
    }
}

/// Sets the limits. One that cannot be set stays as it is, for example because it is lower already.
fn set_rlimits(limits: &ProcessLimits, user: Uid) {
    // Root is not bound by it, so what root runs need not be looked for.
    let all = system_task_count();
    let running = if user.is_root() { all } else { user_task_count(user, all).or(all) };
    let hard_limit = |most: u64| Rlimit { current: Some(most), maximum: Some(most) };
    let _ = setrlimit(Resource::Core, hard_limit(0));
    let _ = setrlimit(Resource::Data, hard_limit(limits.memory_bytes_max));
    let _ = setrlimit(Resource::Fsize, hard_limit(limits.file_bytes_max));
    let _ = setrlimit(Resource::Nofile, hard_limit(limits.open_files_max));
    if let Some(running) = running {
        // The limit counts every task of the user, also in other containers. Where those cannot be seen, the
        // number of all tasks is a bound.
        let _ = setrlimit(Resource::Nproc, hard_limit(running.saturating_add(limits.processes_max)));
    }
}

/// Processes and threads of this real user, as the system counts them for its limit, plus those of `all` that
/// `/proc` does not show: a container's `/proc` shows only its own, while the system counts those of the same
/// user id in other containers.
///
/// Not by the owner of `/proc/PID`: that is the effective user, and root for a process that may not be
/// dumped, like this one.
fn user_task_count(user: Uid, all: Option<u64>) -> Option<u64> {
    let processes = std::fs::read_dir("/proc").ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    // A process that has ended in the meantime has no file any more. A name in it may be cut inside a
    // character.
    let statuses = processes.filter_map(|process| std::fs::read(process.join("status")).ok());
    let (of_user, seen) = statuses.fold((0, 0), |(of_user, seen), status| {
        let (real_user, tasks) = tasks_in(&String::from_utf8_lossy(&status));
        (of_user + if real_user == Some(user.as_raw()) { tasks } else { 0 }, seen + tasks)
    });
    Some(of_user + all?.saturating_sub(seen))
}

/// Real user and threads of a process, by its `status` in `/proc`.
fn tasks_in(status: &str) -> (Option<u32>, u64) {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    let real_user = field("Uid:").split_whitespace().next().and_then(|uid| uid.parse().ok());
    (real_user, field("Threads:").trim().parse().unwrap_or(1))
}

/// Processes and threads on this machine.
pub(super) fn system_task_count() -> Option<u64> {
    // `0.00 0.01 0.05 2/345 6789`: the number after the slash.
    let loadavg = std::fs::read_to_string("/proc/loadavg").ok()?;
    loadavg.split(' ').nth(3)?.split_once('/')?.1.parse().ok()
}

/// Confines this thread, which is all of this process, permanently.
fn confine(rules: &SandboxRules, program: &Path, private: &Path) -> SandboxStatus {
    match restrict(rules, program, private) {
        Err(error) => SandboxStatus::Unavailable { why: error.to_string() },
        Ok(status) => sandbox_status(&status),
    }
}

fn restrict(
    rules: &SandboxRules,
    program: &Path,
    private: &Path,
) -> Result<RestrictionStatus, landlock::RulesetError> {
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI_USED))?
        // Signals and abstract sockets reach only what the child itself has started.
        .scope(Scope::Signal | Scope::AbstractUnixSocket)?;
    if rules.network == NetworkAccess::Deny {
        ruleset = ruleset.handle_access(AccessNet::from_all(ABI_USED))?;
    }
    let read: Vec<PathBuf> = match &rules.read {
        None => vec!["/".into()],
        Some(named) => {
            let program_folder = program.parent().map(Path::to_owned);
            SYSTEM_PATHS
                .iter()
                .map(PathBuf::from)
                .chain(named.iter().cloned())
                .chain(program_folder)
                .collect()
        }
    };
    let write: Vec<&Path> =
        rules.write.iter().map(PathBuf::as_path).chain([private]).chain(DEVICES.map(Path::new)).collect();
    ruleset
        .create()?
        .add_rules(path_beneath_rules(read, AccessFs::from_read(ABI_USED)))?
        .add_rules(path_beneath_rules(write, AccessFs::from_all(ABI_USED)))?
        .restrict_self()
}

fn sandbox_status(status: &RestrictionStatus) -> SandboxStatus {
    let abi = match status.landlock {
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            kernel_abi.and_then(|abi| u32::try_from(abi).ok()).unwrap_or(effective_abi as u32)
        }
        LandlockStatus::NotEnabled => {
            return SandboxStatus::Unavailable {
                why: "Landlock is not switched on in this kernel".to_owned(),
            };
        }
        LandlockStatus::NotImplemented => {
            return SandboxStatus::Unavailable {
                why: "this kernel has no Landlock (it came with Linux 5.13)".to_owned(),
            };
        }
    };
    if status.ruleset == RulesetStatus::NotEnforced {
        return SandboxStatus::Unavailable { why: "Landlock enforces nothing here".to_owned() };
    }
    let features = [
        (2, "moving files between folders"),
        (3, "truncating files"),
        (4, "TCP"),
        (5, "controlling devices"),
        (6, "signals to other programs"),
    ];
    let missing =
        features.iter().filter(|(since, _)| abi < *since).map(|(_, what)| (*what).to_owned()).collect();
    SandboxStatus::Landlock { abi, missing }
}

/// Tries everything on this process, which ends then, and prints what worked.
pub(super) fn probe() -> ExitCode {
    let cannot_supervise = set_child_subreaper(Some(getpid())).err().map(|error| error.to_string());
    let rules = SandboxRules::default();
    let sandbox = confine(&rules, Path::new("/"), Path::new("/dev/null"));
    let cannot_deny_sockets =
        set_no_new_privs(true).map_err(|error| error.to_string()).and_then(|()| deny_sockets());
    let probe = SandboxProbe {
        sandbox,
        cannot_supervise,
        processes_limited: !getuid().is_root(),
        cannot_deny_sockets: cannot_deny_sockets.err(),
    };
    match serde_json::to_string(&probe) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => exit_failed(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_counted_for_the_real_uid() {
        let status = |uids: &str, threads: &str| {
            format!("Name:\tx\nUmask:\t0022\nUid:\t{uids}\nGid:\t0\t0\t0\t0\nThreads:\t{threads}\n")
        };
        for (status, expected) in [
            (status("1000\t1000\t1000\t1000", "7"), (Some(1000), 7)),
            // Setuid, either way.
            (status("1000\t0\t0\t0", "2"), (Some(1000), 2)),
            (status("0\t1000\t1000\t1000", "2"), (Some(0), 2)),
            ("Name:\tx\n".to_owned(), (None, 1)),
            (String::new(), (None, 1)),
        ] {
            assert_eq!(tasks_in(&status), expected, "{status}");
        }
        // The user has at least the process of this test.
        let visible = user_task_count(getuid(), Some(0)).unwrap();
        assert!(visible > 0);
        // Invisible tasks may belong to the user.
        assert!(user_task_count(getuid(), Some(1 << 40)).unwrap() > 1 << 39);
    }
}
