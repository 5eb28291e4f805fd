//! The supervisor of one child: a separate process between us and the child that outlives neither.
//!
//! It is the subreaper of everything that the child starts, so that no descendant escapes it; it is alone in
//! its session and group, so that a signal for a group of the child can never reach another group.

use super::confine::system_task_count;
use super::control_groups::ProgramGroup;
use super::helper::{exit_failed, hide_this_process};
use super::limits::ProcessLimits;
use super::run_as::RunAsUser;
use super::sandbox::SandboxRules;
use super::sweep::{self, GroupScope, ProcessKiller};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, getppid, getuid, pidfd_open, set_child_subreaper,
    setpriority_process, setsid, wait,
};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

/// Request to the supervisor, as JSON, in front of the program and its arguments.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SuperviseRequest {
    /// Process that starts it; if that process has exited, the request is void.
    pub(super) parent: u32,
    /// Resources that it may use.
    pub(super) limits: ProcessLimits,
    /// Files and network that it may reach.
    pub(super) sandbox: SandboxRules,
    /// Private folder of the child, removed at the end.
    pub(super) private: PathBuf,
    /// Whose rights it has; `None` = ours.
    pub(super) user: Option<RunAsUser>,
    /// Control group of the child.
    pub(super) group: Option<ProgramGroup>,
}

impl SuperviseRequest {
    pub(super) fn parse(arguments: &[OsString]) -> Result<(Self, &[OsString]), String> {
        let (first, program) = arguments.split_first().ok_or("no request")?;
        let request = first.to_str().ok_or("the request is not Unicode")?;
        let request = serde_json::from_str(request).map_err(|error| format!("the request: {error}"))?;
        if program.is_empty() { Err("no program".to_owned()) } else { Ok((request, program)) }
    }
}

/// Interval of counting processes where no limit of the system counts them: root is exempt from `RLIMIT_NPROC`.
const COUNT_INTERVAL: Duration = Duration::from_millis(100);

pub(super) fn supervise(arguments: &[OsString]) -> ExitCode {
    let (request, program) = match SuperviseRequest::parse(arguments) {
        Ok(read) => read,
        Err(why) => return exit_failed(why),
    };
    // The program's secrets are in our environment, too.
    hide_this_process();
    // Fails if we lead a group already, which does no harm.
    let _ = setsid();
    if let Err(error) = set_child_subreaper(Some(getpid())) {
        return exit_failed(format_args!("cannot adopt descendant processes: {error}"));
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return exit_failed(format_args!("the supervisor cannot work: {error}")),
    };
    let code = runtime.block_on(run_child(&request, program));
    // The process that started us also removes it, if it still exists.
    let _ = std::fs::remove_dir_all(&request.private);
    code
}

/// Preparations that only the supervisor may make, before there is a program.
fn prepare(request: &SuperviseRequest) -> Result<(), String> {
    if let Some(user) = &request.user {
        chown(&request.private, Some(user.uid), Some(user.gid)).map_err(|error| {
            format!("cannot change the owner of the program's folder to user {}: {error}", user.uid)
        })?;
    }
    let made = request.group.as_ref().map_or(Ok(()), |group| group.create(&request.limits));
    made.map_err(|error| format!("cannot create the program's control group: {error}"))
}

/// Starts the child and returns when none of its processes is left.
async fn run_child(request: &SuperviseRequest, program: &[OsString]) -> ExitCode {
    // Before the child exists, so that no signal arrives unprepared. SIGUSR1 = kill immediately.
    let signals = (|| {
        let ended = signal(SignalKind::child())?;
        let stop = signal(SignalKind::terminate())?;
        let kill = signal(SignalKind::user_defined1())?;
        let interrupt = signal(SignalKind::interrupt())?;
        Ok::<_, std::io::Error>((ended, stop, kill, interrupt))
    })();
    let (mut ended, mut stop, mut kill, _interrupt) = match signals {
        Ok(signals) => signals,
        Err(error) => return exit_failed(format_args!("the supervisor cannot work: {error}")),
    };
    let parent = ParentProcess::open(request.parent);
    if parent.has_exited() {
        return exit_failed("the parent process has exited");
    }
    if let Err(error) = prepare(request) {
        return exit_failed(error);
    }
    let request_json = serde_json::to_string(request).unwrap_or_default();
    let mut command = Command::new("/proc/self/exe");
    let helper_arguments = std::env::args_os().skip(1).take_while(|word| word != "supervise");
    command.args(helper_arguments).arg("become").arg(request_json).args(program).process_group(0);
    // Not waited for by its handle: all descendants are reaped in one place.
    let main = match command.spawn() {
        Ok(child) => child.id(),
        Err(error) => return exit_failed(format_args!("the program cannot be started: {error}")),
    };
    // A runaway program must not take the processor from the supervisor. Only root may do this; the program
    // has its original priority.
    let _ = setpriority_process(None, -20);
    let mut exit_code = None;
    let mut deadline = None;
    let is_counted = request.group.as_ref().is_some_and(ProgramGroup::counts_processes);
    let mut process_counter =
        if is_counted { None } else { ProcessCounter::new(request.limits.processes_max) };
    let mut is_exceeded = false;
    // One clock for all rounds: a program that forks without end ends a child of ours at any moment, too.
    let mut counting = interval(COUNT_INTERVAL);
    counting.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        exit_code = reap(main).code.or(exit_code);
        // Until the program is over; or, once asked to stop, until no process is left that could stop
        // voluntarily.
        if exit_code.is_some() && (deadline.is_none() || sweep::descendants_of(getpid()).is_empty()) {
            break;
        }
        tokio::select! {
            _ = ended.recv() => {}
            _ = stop.recv() => {
                let descendants = sweep::descendants_of(getpid());
                sweep::send_signal(&descendants, Signal::TERM, group_scope());
                // A process stopped with SIGSTOP receives no SIGTERM.
                sweep::send_signal(&descendants, Signal::CONT, group_scope());
                deadline.get_or_insert(Instant::now() + Duration::from_millis(request.limits.grace_ms));
            }
            _ = kill.recv() => break,
            () = parent.wait_exit() => break,
            _ = counting.tick(), if process_counter.is_some() => {
                is_exceeded = process_counter.as_mut().is_some_and(ProcessCounter::is_exceeded);
                if is_exceeded {
                    break;
                }
            }
            () = async { sleep_until(deadline.unwrap_or_else(Instant::now)).await }, if deadline.is_some() => break,
        }
    }
    let exit_code = kill_all(main, request.group.as_ref()).await.or(exit_code);
    if let Some(group) = &request.group {
        report_exhausted_limits(group, &request.limits);
        group.remove();
    }
    if is_exceeded {
        let most = request.limits.processes_max;
        return exit_failed(format_args!("the program exceeded {most} processes (processes_max)"));
    }
    exit_code.map_or_else(|| exit_failed("the program's exit status is unknown"), ExitCode::from)
}

/// Kills all descendants, in any time that takes: none is left when this process has no child any more, since
/// orphans are reparented to it.
async fn kill_all(main: u32, group: Option<&ProgramGroup>) -> Option<u8> {
    let (mut killer, mut exit_code) = (ProcessKiller::default(), None);
    for round in 0.. {
        if let Some(group) = group {
            group.kill();
        }
        killer.kill_round(&sweep::descendants_of(getpid()), group_scope());
        let reaped = reap(main);
        exit_code = reaped.code.or(exit_code);
        if !reaped.has_children {
            break;
        }
        sleep(sweep::round_pause(round)).await;
    }
    exit_code
}

/// Reports exhausted limits: the kernel kills a program without a message, and refuses a process with an
/// error that programs seldom pass on.
fn report_exhausted_limits(group: &ProgramGroup, limits: &ProcessLimits) {
    if group.ran_out_of_memory() {
        let most = limits.memory_bytes_max;
        eprintln!(
            "throughline: its processes used more than {most} bytes of memory together (memory_bytes_max)"
        );
    }
    if group.ran_out_of_processes() {
        let most = limits.processes_max;
        eprintln!("throughline: exceeded {most} processes and threads (processes_max)");
    }
}

struct ReapResult {
    /// Exit code of the program itself, as shells report it.
    code: Option<u8>,
    has_children: bool,
}

/// Reaps everything that has ended.
fn reap(main: u32) -> ReapResult {
    let mut code = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get().unsigned_abs() == main => {
                let signal = status.terminating_signal().map(|signal| 128 + signal);
                let raw = status.exit_status().or(signal).unwrap_or(255);
                code = Some(u8::try_from(raw).unwrap_or(255));
            }
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return ReapResult { code, has_children: true },
            Err(_) => return ReapResult { code, has_children: false },
        }
    }
}

/// Counts the processes of a program where the system does not.
struct ProcessCounter {
    processes_max: u64,
    /// Number of tasks on the whole machine, which is cheap to read, up to which ours need not be counted.
    count_threshold: u64,
    /// Time at which ours are counted in any case: other tasks that end leave room for ours to grow
    /// unnoticed.
    next_count: Instant,
}

impl ProcessCounter {
    const FULL_COUNT_INTERVAL: Duration = Duration::from_secs(1);

    /// `None` where the system counts.
    fn new(processes_max: u64) -> Option<Self> {
        let look_from = system_task_count()?.saturating_add(processes_max);
        let next_count = Instant::now() + Self::FULL_COUNT_INTERVAL;
        getuid().is_root().then_some(Self { processes_max, count_threshold: look_from, next_count })
    }

    fn is_exceeded(&mut self) -> bool {
        let began = Instant::now();
        let is_due = |all: u64| all > self.count_threshold || began >= self.next_count;
        let Some(all) = system_task_count().filter(|all| is_due(*all)) else { return false };
        let ours = sweep::descendants_of(getpid()).len() as u64;
        // At most a fiftieth of our time, however many processes the machine has.
        self.next_count = began + Self::FULL_COUNT_INTERVAL.max(began.elapsed() * 50);
        self.count_threshold = all.saturating_add(self.processes_max.saturating_sub(ours) / 2);
        ours > self.processes_max
    }
}

fn group_scope() -> GroupScope {
    GroupScope::All { own: rustix::process::getpgrp().as_raw_nonzero().get() }
}

/// The process that started us.
struct ParentProcess {
    pid: Option<Pid>,
    /// Readable when it has ended. Unlike a parent-death signal it does not fire when merely the thread ends that
    /// started us.
    handle: Option<AsyncFd<OwnedFd>>,
}

impl ParentProcess {
    /// Polling interval where the kernel has no handles (before Linux 5.3).
    const POLL_INTERVAL: Duration = Duration::from_millis(500);

    // `new` is deprecated for descriptors that do not own their file, and `register` is unsafe. This one owns
    // it.
    #[allow(deprecated, reason = "there is no other safe way, and an `OwnedFd` is what makes it sound")]
    fn open(pid: u32) -> Self {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let handle = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Self { pid, handle: handle.and_then(|handle| AsyncFd::new(handle).ok()) }
    }

    fn has_exited(&self) -> bool {
        getppid() != self.pid
    }

    async fn wait_exit(&self) {
        loop {
            match &self.handle {
                Some(handle) if handle.readable().await.is_ok() => return,
                _ => sleep(Self::POLL_INTERVAL).await,
            }
            if self.has_exited() {
                return;
            }
        }
    }
}
