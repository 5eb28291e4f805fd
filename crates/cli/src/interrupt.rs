//! Ctrl-C, SIGTERM and, for a server, the closing of its terminal, as a stream of stop signals.

use std::io;
use tokio::sync::mpsc;

/// The terminal that the process was started in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControllingTerminal {
    /// The process ends with it, as programs in a terminal do.
    Own,
    /// No terminal, as for a service, or the process is to outlive it (`nohup`): a hangup is a signal like
    /// any other.
    None,
}

impl ControllingTerminal {
    /// Must be called before the first signal handler: `nohup`'s setting is lost afterwards.
    pub(crate) fn of_this_process() -> Self {
        if std::fs::File::open(TTY_PATH).is_ok() && !hangups_are_ignored() { Self::Own } else { Self::None }
    }

    /// True if it was open and has been closed: the process that started this one has left.
    pub(crate) fn is_closed(self) -> bool {
        self == Self::Own && std::fs::File::open(TTY_PATH).is_err()
    }
}

/// Cannot be opened without a terminal of one's own.
const TTY_PATH: &str = "/dev/tty";

/// True if hangups are ignored, as `nohup` sets it.
fn hangups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // SIGHUP is the first signal.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// Receives a message for each request to stop. From the first call on, signals no longer end the process by
/// default.
pub(crate) fn stop_signals() -> io::Result<mpsc::Receiver<()>> {
    stop_signals_in(ControllingTerminal::None)
}

/// As [`stop_signals`], with the closing of this terminal as another signal.
pub(crate) fn stop_signals_in(terminal: ControllingTerminal) -> io::Result<mpsc::Receiver<()>> {
    // Only two signals are ever acted on.
    let (sender, receiver) = mpsc::channel(2);
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut interrupts = signal(SignalKind::interrupt())?;
        let mut terminations = signal(SignalKind::terminate())?;
        let mut hangups = match terminal {
            ControllingTerminal::Own => Some(signal(SignalKind::hangup())?),
            ControllingTerminal::None => None,
        };
        tokio::spawn(async move {
            loop {
                let hangup = async {
                    match &mut hangups {
                        Some(hangups) => hangups.recv().await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    _ = interrupts.recv() => {}
                    _ = terminations.recv() => {}
                    // Otherwise it was sent deliberately: the configuration is to be reloaded.
                    _ = hangup => if !terminal.is_closed() { continue },
                }
                if sender.send(()).await.is_err() {
                    break;
                }
            }
        });
    }
    #[cfg(not(unix))]
    {
        // The end of a terminal is a signal on Unix only.
        let _ = terminal;
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() && sender.send(()).await.is_ok() {}
        });
    }
    Ok(receiver)
}
