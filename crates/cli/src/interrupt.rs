//! Ctrl-C and SIGTERM as a stream of wishes to stop.

use std::io;
use tokio::sync::mpsc;

/// Each time somebody wants the command to stop. From the first call on, signals no longer end the process by
/// themselves.
pub fn wishes() -> io::Result<mpsc::Receiver<()>> {
    // Two wishes are all that is ever acted on.
    let (sender, receiver) = mpsc::channel(2);
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut interrupts = signal(SignalKind::interrupt())?;
        let mut terminations = signal(SignalKind::terminate())?;
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = interrupts.recv() => {}
                    _ = terminations.recv() => {}
                }
                if sender.send(()).await.is_err() {
                    break;
                }
            }
        });
    }
    #[cfg(not(unix))]
    tokio::spawn(
        async move { while tokio::signal::ctrl_c().await.is_ok() && sender.send(()).await.is_ok() {} },
    );
    Ok(receiver)
}
