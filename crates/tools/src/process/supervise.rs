//! The supervisor of one child: a process of its own, between us and the child, that outlives neither.
//!
//! The subreaper of everything that the child starts, so that nothing leaves its sight; the only one in its session and
//! group, so that a signal for a group of the child can never reach somebody else's.

use super::confine::tasks_of_all;
use super::control_groups::ProgramGroup;
use super::helper::{failed, hide_this_process};
use super::limits::ProcessLimits;
use super::run_as::User;
use super::sandbox::SandboxRules;
use super::sweep::{self, Groups, Hunt};
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

/// What the supervisor is told, as JSON, in front of the program and its arguments.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Orders {
    /// Who starts it; if that process is gone, so is the wish.
    pub(super) parent: u32,
    /// What it may use.
    pub(super) limits: ProcessLimits,
    /// What it may reach.
    pub(super) sandbox: SandboxRules,
    /// Its private folder, which is removed at the end.
    pub(super) private: PathBuf,
    /// Whose rights it has; `None` = ours.
    pub(super) user: Option<User>,
    /// Its control group.
    pub(super) group: Option<ProgramGroup>,
}

impl Orders {
    pub(super) fn read(arguments: &[OsString]) -> Result<(Self, &[OsString]), String> {
        let (first, program) = arguments.split_first().ok_or("no orders")?;
        let orders = first.to_str().ok_or("the orders are not Unicode")?;
        let orders = serde_json::from_str(orders).map_err(|error| format!("the orders: {error}"))?;
        if program.is_empty() { Err("no program".to_owned()) } else { Ok((orders, program)) }
    }
}

/// How often processes are counted where no limit of the system counts them: root is exempt from `RLIMIT_NPROC`.
const COUNT_EVERY: Duration = Duration::from_millis(100);

pub(super) fn supervise(arguments: &[OsString]) -> ExitCode {
    let (orders, program) = match Orders::read(arguments) {
        Ok(read) => read,
        Err(why) => return failed(why),
    };
    // What the program was given in secret is in our environment, too.
    hide_this_process();
    // Fails if we lead a group already, which does no harm.
    let _ = setsid();
    if let Err(error) = set_child_subreaper(Some(getpid())) {
        return failed(format_args!("descendants cannot be kept: {error}"));
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(format_args!("the supervisor cannot work: {error}")),
    };
    let code = runtime.block_on(watch(&orders, program));
    // Whoever started us removes it, too, if still there.
    let _ = std::fs::remove_dir_all(&orders.private);
    code
}

/// What only we may do, before there is a program.
fn prepare(orders: &Orders) -> Result<(), String> {
    if let Some(user) = &orders.user {
        chown(&orders.private, Some(user.uid), Some(user.gid))
            .map_err(|error| format!("the program's folder cannot be given to user {}: {error}", user.uid))?;
    }
    let made = orders.group.as_ref().map_or(Ok(()), |group| group.make(&orders.limits));
    made.map_err(|error| format!("the program's control group cannot be made: {error}"))
}

/// Starts the child and comes back when nothing of it is left.
async fn watch(orders: &Orders, program: &[OsString]) -> ExitCode {
    // Before there is a child, so that no signal finds us unprepared with one. SIGUSR1 = at once.
    let signals = (|| {
        let ended = signal(SignalKind::child())?;
        let stop = signal(SignalKind::terminate())?;
        let kill = signal(SignalKind::user_defined1())?;
        let interrupt = signal(SignalKind::interrupt())?;
        Ok::<_, std::io::Error>((ended, stop, kill, interrupt))
    })();
    let (mut ended, mut stop, mut kill, _interrupt) = match signals {
        Ok(signals) => signals,
        Err(error) => return failed(format_args!("the supervisor cannot work: {error}")),
    };
    let parent = Parent::of(orders.parent);
    if parent.is_gone() {
        return failed("whoever wanted this is gone");
    }
    if let Err(error) = prepare(orders) {
        return failed(error);
    }
    let orders_text = serde_json::to_string(orders).unwrap_or_default();
    let mut command = Command::new("/proc/self/exe");
    let own_words = std::env::args_os().skip(1).take_while(|word| word != "supervise");
    command.args(own_words).arg("become").arg(orders_text).args(program).process_group(0);
    // Not waited for by its handle: descendants that come to us are reaped in one place.
    let main = match command.spawn() {
        Ok(child) => child.id(),
        Err(error) => return failed(format_args!("the program cannot be started: {error}")),
    };
    // Whatever runs wild must not keep us from the processor. Only root may; the program has what it was begun with.
    let _ = setpriority_process(None, -20);
    let mut state = None;
    let mut deadline = None;
    let is_counted = orders.group.as_ref().is_some_and(ProgramGroup::counts_processes);
    let mut census = if is_counted { None } else { Census::new(orders.limits.processes_max) };
    let mut is_over = false;
    // One clock for all rounds: whoever forks for ever ends a child of ours at any moment, too.
    let mut counting = interval(COUNT_EVERY);
    counting.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        state = reap(main).code.or(state);
        // Until it is over; or, once asked to stop, until nobody is left to stop by itself.
        if state.is_some() && (deadline.is_none() || sweep::descendants_of(getpid()).is_empty()) {
            break;
        }
        tokio::select! {
            _ = ended.recv() => {}
            _ = stop.recv() => {
                let everyone = sweep::descendants_of(getpid());
                sweep::signal(&everyone, Signal::TERM, groups());
                // What was stopped with SIGSTOP hears nothing.
                sweep::signal(&everyone, Signal::CONT, groups());
                deadline.get_or_insert(Instant::now() + Duration::from_millis(orders.limits.grace_ms));
            }
            _ = kill.recv() => break,
            () = parent.gone() => break,
            _ = counting.tick(), if census.is_some() => {
                is_over = census.as_mut().is_some_and(Census::is_over);
                if is_over {
                    break;
                }
            }
            () = async { sleep_until(deadline.unwrap_or_else(Instant::now)).await }, if deadline.is_some() => break,
        }
    }
    let state = end_everyone(main, orders.group.as_ref()).await.or(state);
    if let Some(group) = &orders.group {
        tell_what_ran_out(group, &orders.limits);
        group.remove();
    }
    if is_over {
        let most = orders.limits.processes_max;
        return failed(format_args!("the program ran more than {most} processes at once (processes_max)"));
    }
    state.map_or_else(|| failed("how the program ended is not known"), ExitCode::from)
}

/// Ends everybody, however long that takes: there is nobody left when we have no child any more, since whoever loses its
/// parent becomes ours.
async fn end_everyone(main: u32, group: Option<&ProgramGroup>) -> Option<u8> {
    let (mut hunt, mut state) = (Hunt::default(), None);
    for looks in 0.. {
        if let Some(group) = group {
            group.kill();
        }
        hunt.take(&sweep::descendants_of(getpid()), groups());
        let reaped = reap(main);
        state = reaped.code.or(state);
        if !reaped.has_children {
            break;
        }
        sleep(sweep::pause_before_look(looks)).await;
    }
    state
}

/// The kernel ends a program without a word, and refuses a process with one that programs seldom pass on.
fn tell_what_ran_out(group: &ProgramGroup, limits: &ProcessLimits) {
    if group.ran_out_of_memory() {
        let most = limits.memory_bytes_max;
        eprintln!(
            "throughline: its processes used more than {most} bytes of memory together (memory_bytes_max)"
        );
    }
    if group.ran_out_of_processes() {
        let most = limits.processes_max;
        eprintln!("throughline: it wanted more than {most} processes and threads at once (processes_max)");
    }
}

struct Reaped {
    /// That of the program itself, as shells have it.
    code: Option<u8>,
    has_children: bool,
}

/// Takes note of everything that has ended.
fn reap(main: u32) -> Reaped {
    let mut code = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get().unsigned_abs() == main => {
                let signal = status.terminating_signal().map(|signal| 128 + signal);
                let raw = status.exit_status().or(signal).unwrap_or(255);
                code = Some(u8::try_from(raw).unwrap_or(255));
            }
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return Reaped { code, has_children: true },
            Err(_) => return Reaped { code, has_children: false },
        }
    }
}

/// Counts the processes of a program where the system does not.
struct Census {
    most: u64,
    /// So many tasks on the whole machine are no reason to count ours, which is cheap to see.
    look_from: u64,
}

impl Census {
    /// `None` where the system counts.
    fn new(processes_max: u64) -> Option<Self> {
        let look_from = tasks_of_all()?.saturating_add(processes_max);
        getuid().is_root().then_some(Self { most: processes_max, look_from })
    }

    fn is_over(&mut self) -> bool {
        let Some(all) = tasks_of_all().filter(|all| *all > self.look_from) else { return false };
        let ours = sweep::descendants_of(getpid()).len() as u64;
        self.look_from = all.saturating_add(self.most.saturating_sub(ours) / 2);
        ours > self.most
    }
}

fn groups() -> Groups {
    Groups::Whole { own: rustix::process::getpgrp().as_raw_nonzero().get() }
}

/// The process that started us.
struct Parent {
    pid: Option<Pid>,
    /// Readable when it has ended. Unlike a parent-death signal it does not fire when merely the thread ends that
    /// started us.
    handle: Option<AsyncFd<OwnedFd>>,
}

impl Parent {
    /// How often to look where the kernel has no handles (before Linux 5.3).
    const LOOK_EVERY: Duration = Duration::from_millis(500);

    // `new` is deprecated for descriptors that do not own what they name, and `register` is unsafe. This one owns.
    #[allow(deprecated, reason = "there is no other safe way, and an `OwnedFd` is what makes it sound")]
    fn of(pid: u32) -> Self {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let handle = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Self { pid, handle: handle.and_then(|handle| AsyncFd::new(handle).ok()) }
    }

    fn is_gone(&self) -> bool {
        getppid() != self.pid
    }

    async fn gone(&self) {
        loop {
            match &self.handle {
                Some(handle) if handle.readable().await.is_ok() => return,
                _ => sleep(Self::LOOK_EVERY).await,
            }
            if self.is_gone() {
                return;
            }
        }
    }
}
