//! A running child process, and its end: always together with everything that it started.

use super::control_groups::ProgramGroup;
use super::program::ProgramSpec;
use super::run_as::RunAs;
#[cfg(target_os = "linux")]
use super::supervise::SuperviseRequest;
#[cfg(unix)]
use super::sweep;
#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// Error of a child that did not start.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {error}")]
pub struct StartError {
    what: String,
    #[source]
    error: io::Error,
}

/// End of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildExit {
    /// Exit code, if the child ended without a signal. 125 with a line on stderr = the helper could not start
    /// it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

impl ChildExit {
    /// True for exit code 0.
    pub fn is_success(self) -> bool {
        self.code == Some(0)
    }
}

/// A child process. Dropping it kills it with everything that it started.
#[derive(Debug)]
pub struct ChildProcess {
    /// Standard input; dropping it closes it.
    pub stdin: Option<ChildStdin>,
    /// Standard output.
    pub stdout: Option<ChildStdout>,
    /// Standard error.
    pub stderr: Option<ChildStderr>,
    child: Child,
    #[cfg_attr(not(unix), allow(dead_code, reason = "programs are supervised on Unix only"))]
    mark: String,
    grace: Duration,
    supervision: Supervision,
    group: Option<ProgramGroup>,
    exit: Option<ChildExit>,
    /// Last field, so that the folder is removed after the processes have been asked to end.
    _private: tempfile::TempDir,
}

/// Supervisor that leaves nothing alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Supervision {
    /// A supervisor: the child that we know is it.
    Supervised,
    /// We, as well as we can.
    Unsupervised,
}

/// Time to wait for the end beyond the grace. Killing continues after it; only the wait ends.
const KILL_WAIT: Duration = Duration::from_secs(3);
/// Interval of wake-ups for a supervisor that is waited for: the processes that it kills may stop it with SIGSTOP.
const WAKE_INTERVAL: Duration = Duration::from_millis(100);

impl ProgramSpec {
    /// Starts a child with pipes for input, output and errors. Needs a tokio runtime.
    ///
    /// # Errors
    ///
    /// The system refuses. A program that exists but cannot be run (a script whose interpreter is missing)
    /// ends with code 125 and a line on stderr.
    pub fn start(&self) -> Result<ChildProcess, StartError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |error| StartError { what, error }
        };
        if let RunAs::Unavailable { why } = &self.run_as {
            return Err(failed("the program is not started")(io::Error::new(
                io::ErrorKind::PermissionDenied,
                why.clone(),
            )));
        }
        let private = tempfile::Builder::new()
            .prefix("throughline-")
            .tempdir()
            .map_err(failed("cannot create a folder for the program"))?;
        let mark = new_mark();
        let group = self.control_groups.as_ref().map(|groups| groups.program_group(&mark));
        let (mut command, supervision) = self
            .command(private.path(), group.as_ref())
            .map_err(failed("the program cannot be described"))?;
        command.env_clear().envs(&self.environment).env("TMPDIR", private.path());
        #[cfg(unix)]
        command.env(sweep::MARK_VARIABLE, &mark);
        command.current_dir(self.folder.as_deref().unwrap_or(private.path()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let name = self.path.display().to_string();
        let mut child = command.spawn().map_err(failed(&format!("{name} cannot be started")))?;
        Ok(ChildProcess {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            child,
            mark,
            grace: Duration::from_millis(self.limits.grace_ms),
            supervision,
            group: group.filter(|_| supervision == Supervision::Supervised),
            exit: None,
            _private: private,
        })
    }

    #[cfg(target_os = "linux")]
    fn command(
        &self,
        private: &std::path::Path,
        group: Option<&ProgramGroup>,
    ) -> io::Result<(Command, Supervision)> {
        let Some(helper) = &self.helper else { return Ok(self.unsupervised_command()) };
        let request = SuperviseRequest {
            parent: std::process::id(),
            limits: self.limits,
            sandbox: self.sandbox.clone(),
            private: private.to_owned(),
            user: self.run_as.user().cloned(),
            group: group.cloned(),
        };
        let mut command = Command::new(&helper.program);
        command.args(&helper.arguments).arg("supervise").arg(serde_json::to_string(&request)?);
        command.arg(&self.path).args(&self.arguments);
        Ok((command, Supervision::Supervised))
    }

    #[cfg(not(target_os = "linux"))]
    fn command(
        &self,
        _private: &std::path::Path,
        _group: Option<&ProgramGroup>,
    ) -> io::Result<(Command, Supervision)> {
        Ok(self.unsupervised_command())
    }

    fn unsupervised_command(&self) -> (Command, Supervision) {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments);
        #[cfg(unix)]
        command.process_group(0);
        #[cfg(unix)]
        if let Some(user) = self.run_as.user() {
            // Further groups are dropped with it.
            command.uid(user.uid).gid(user.gid);
        }
        #[cfg(not(unix))]
        command.kill_on_drop(true);
        (command, Supervision::Unsupervised)
    }
}

/// Different for each child that ever was on this machine, as far as that matters.
fn new_mark() -> String {
    static CHILDREN: AtomicU64 = AtomicU64::new(0);
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let number = CHILDREN.fetch_add(1, Ordering::Relaxed);
    format!("{}-{number}-{:x}", std::process::id(), since.as_nanos())
}

impl ChildProcess {
    /// The process that we started: the child, or its supervisor. `None` = it has ended.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits for its end. Its remaining descendants are ended with it. Cancel safe.
    ///
    /// # Errors
    /// The system does not say how it ended, or a remaining descendant cannot be ended: the kind is
    /// [`TimedOut`](io::ErrorKind::TimedOut), and it is still being killed.
    pub async fn wait(&mut self) -> io::Result<ChildExit> {
        if let Some(exit) = self.exit {
            return Ok(exit);
        }
        let status = self.child.wait().await?;
        self.record_exit(status).await
    }

    /// Asks the child to end (SIGTERM), and kills it after the grace. When this returns, no process of it
    /// runs any more.
    ///
    /// # Errors
    ///
    /// The system does not report how the child ended, or not every process that it started has ended yet:
    /// the kind is [`TimedOut`](io::ErrorKind::TimedOut), and killing continues.
    pub async fn stop(&mut self) -> io::Result<ChildExit> {
        if let Some(exit) = self.exit {
            return Ok(exit);
        }
        self.request_stop();
        let status = match self.supervision {
            Supervision::Supervised => {
                let deadline = tokio::time::Instant::now() + self.grace + KILL_WAIT;
                loop {
                    tokio::select! {
                        status = self.child.wait() => break status?,
                        () = tokio::time::sleep(WAKE_INTERVAL) => self.wake(),
                        () = tokio::time::sleep_until(deadline) => return Err(still_running_error()),
                    }
                }
            }
            Supervision::Unsupervised => match tokio::time::timeout(self.grace, self.child.wait()).await {
                Ok(status) => status?,
                Err(_over_time) => {
                    self.kill_group();
                    self.child.start_kill()?;
                    tokio::time::timeout(KILL_WAIT, self.child.wait())
                        .await
                        .map_err(|_| still_running_error())??
                }
            },
        };
        self.record_exit(status).await
    }

    /// The one we know has ended; its remaining descendants follow.
    async fn record_exit(&mut self, status: ExitStatus) -> io::Result<ChildExit> {
        let exit = self.exit_from_status(status);
        // A supervisor that exited normally has ended all processes. One that was killed has not.
        if self.supervision == Supervision::Unsupervised || status.code().is_none() {
            if let Some(group) = &self.group {
                group.kill();
            }
            self.sweep().await?;
            if let Some(group) = &self.group {
                group.remove();
            }
        }
        self.exit = Some(exit);
        Ok(exit)
    }

    fn exit_from_status(&self, status: ExitStatus) -> ChildExit {
        #[cfg(unix)]
        let by_signal = std::os::unix::process::ExitStatusExt::signal(&status);
        #[cfg(not(unix))]
        let by_signal = None;
        match (self.supervision, status.code()) {
            (Supervision::Supervised, Some(code @ 129..=192)) => {
                ChildExit { code: None, signal: Some(code - 128) }
            }
            (_, code) => ChildExit { code, signal: by_signal },
        }
    }

    #[cfg(unix)]
    async fn sweep(&self) -> io::Result<()> {
        let killed = kill_marked_in_background(self.mark.clone())?;
        let waited = tokio::time::timeout(KILL_WAIT, killed).await;
        waited.map_err(|_| still_running_error())?.map_err(io::Error::other)
    }

    #[cfg(not(unix))]
    async fn sweep(&self) -> io::Result<()> {
        Ok(())
    }

    #[cfg(unix)]
    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.child.id()?).ok()?)
    }

    #[cfg(unix)]
    fn request_stop(&self) {
        let Some(pid) = self.pid() else { return };
        // The process may just have ended, which is fine.
        let _ = match self.supervision {
            Supervision::Supervised => signal_supervisor(pid, Signal::TERM),
            Supervision::Unsupervised => kill_process_group(pid, Signal::TERM),
        };
    }

    #[cfg(not(unix))]
    fn request_stop(&mut self) {
        let _ = self.child.start_kill();
    }

    #[cfg(unix)]
    fn kill_group(&self) {
        if let Some(pid) = self.pid() {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }

    #[cfg(not(unix))]
    fn kill_group(&self) {}

    #[cfg(unix)]
    fn wake(&self) {
        if let Some(pid) = self.pid() {
            let _ = kill_process(pid, Signal::CONT);
        }
    }

    #[cfg(not(unix))]
    fn wake(&self) {}
}

fn still_running_error() -> io::Error {
    let what = "some of its processes are still running and are being killed";
    io::Error::new(io::ErrorKind::TimedOut, what)
}

/// Ends every process with the mark on a separate thread, which runs until none is left.
#[cfg(unix)]
fn kill_marked_in_background(mark: String) -> io::Result<tokio::sync::oneshot::Receiver<()>> {
    let (done, waiting) = tokio::sync::oneshot::channel();
    std::thread::Builder::new().name("kill-marked".into()).spawn(move || {
        sweep::kill_marked(&mark);
        // The caller may have stopped waiting.
        let _ = done.send(());
    })?;
    Ok(waiting)
}

/// A child may have stopped its supervisor (SIGSTOP), which then receives no other signal.
#[cfg(unix)]
fn signal_supervisor(pid: Pid, signal: Signal) -> rustix::io::Result<()> {
    kill_process(pid, signal)?;
    kill_process(pid, Signal::CONT)
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if self.exit.is_some() {
            return;
        }
        #[cfg(unix)]
        match (self.pid(), self.supervision) {
            // The supervisor kills immediately, and does not need this process for it.
            (Some(pid), Supervision::Supervised) => drop(signal_supervisor(pid, Signal::USR1)),
            (pid, Supervision::Unsupervised) => {
                if let Some(pid) = pid {
                    let _ = kill_process_group(pid, Signal::KILL);
                }
                if kill_marked_in_background(self.mark.clone()).is_err() {
                    // There is no supervisor to do it.
                    sweep::kill_marked(&self.mark);
                }
            }
            (None, Supervision::Supervised) => {}
        }
    }
}
