//! The supervisor of one child: a process of its own, between us and the child, that outlives neither.
//!
//! The subreaper of everything that the child starts, so that nothing leaves its sight; the only one in its session and
//! group, so that a signal for a group of the child can never reach somebody else's.

use super::helper::failed;
use super::limits::ProcessLimits;
use super::sandbox::SandboxRules;
use super::sweep;
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, getppid, pidfd_open, set_child_subreaper, setsid, wait,
};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep, sleep_until};

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
}

impl Orders {
    pub(super) fn read(arguments: &[OsString]) -> Result<(Self, &[OsString]), String> {
        let (first, program) = arguments.split_first().ok_or("no orders")?;
        let orders = first.to_str().ok_or("the orders are not Unicode")?;
        let orders = serde_json::from_str(orders).map_err(|error| format!("the orders: {error}"))?;
        if program.is_empty() { Err("no program".to_owned()) } else { Ok((orders, program)) }
    }
}

/// How long descendants are killed over and over before the supervisor gives up: only the kernel can keep one so long.
const KILLING_MAX: Duration = Duration::from_millis(1_500);
/// Between two looks at what is left.
const KILLING_PAUSE: Duration = Duration::from_millis(4);

pub(super) fn supervise(arguments: &[OsString]) -> ExitCode {
    let (orders, program) = match Orders::read(arguments) {
        Ok(read) => read,
        Err(why) => return failed(why),
    };
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
    let orders_text = serde_json::to_string(orders).unwrap_or_default();
    let mut command = Command::new("/proc/self/exe");
    let own_words = std::env::args_os().skip(1).take_while(|word| word != "supervise");
    command.args(own_words).arg("become").arg(orders_text).args(program).process_group(0);
    // Not waited for by its handle: descendants that come to us are reaped in one place.
    let main = match command.spawn() {
        Ok(child) => child.id(),
        Err(error) => return failed(format_args!("the program cannot be started: {error}")),
    };
    let mut state = None;
    let mut deadline = None;
    loop {
        state = reap(main).or(state);
        // Until it is over; or, once asked to stop, until nobody is left to stop by itself.
        if state.is_some() && (deadline.is_none() || sweep::descendants_of(getpid()).is_empty()) {
            break;
        }
        tokio::select! {
            _ = ended.recv() => {}
            _ = stop.recv() => {
                let everyone = sweep::descendants_of(getpid());
                sweep::signal(&everyone, Signal::TERM, own_group());
                // What was stopped with SIGSTOP hears nothing.
                sweep::signal(&everyone, Signal::CONT, own_group());
                deadline.get_or_insert(Instant::now() + Duration::from_millis(orders.limits.grace_ms));
            }
            _ = kill.recv() => break,
            () = parent.gone() => break,
            () = async { sleep_until(deadline.unwrap_or_else(Instant::now)).await }, if deadline.is_some() => break,
        }
    }
    let state = kill_everyone(main).await.or(state);
    match state {
        Some(code) => ExitCode::from(code),
        None => failed("a process of the program cannot be killed"),
    }
}

/// Kills descendants until there are none. They come to us as their parents die, so none can be missed for ever.
async fn kill_everyone(main: u32) -> Option<u8> {
    let give_up = Instant::now() + KILLING_MAX;
    let mut state = None;
    loop {
        let left = sweep::descendants_of(getpid());
        sweep::signal(&left, Signal::KILL, own_group());
        state = reap(main).or(state);
        if left.is_empty() || Instant::now() >= give_up {
            return state;
        }
        sleep(KILLING_PAUSE).await;
    }
}

/// Takes note of everything that has ended. The code of the program itself, if it is among it: as shells have it.
fn reap(main: u32) -> Option<u8> {
    let mut code = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get().unsigned_abs() == main => {
                let signal = status.terminating_signal().map(|signal| 128 + signal);
                let raw = status.exit_status().or(signal).unwrap_or(255);
                code = Some(u8::try_from(raw).unwrap_or(255));
            }
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) | Err(_) => return code,
        }
    }
}

fn own_group() -> i32 {
    rustix::process::getpgrp().as_raw_nonzero().get()
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
