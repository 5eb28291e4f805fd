//! The real terminal: capabilities, raw mode, keys. Its state is restored on every exit.

use crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste, Event};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use crossterm::{cursor, execute};
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// Interval at which the key thread checks that its receiver exists.
const KEY_POLL: Duration = Duration::from_millis(250);
/// Capacity of the key queue: more than typing fills in a frame, less than an accidental paste.
const KEYS_WAITING_MAX: usize = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputStyle {
    /// Colours and repainting.
    Rich,
    /// Text from top to bottom, for pipes and dumb terminals.
    Plain,
}

/// Style that standard input and output support.
pub(crate) fn output_style() -> OutputStyle {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if io::stdin().is_terminal() && io::stdout().is_terminal() && !dumb && !set("NO_COLOR") {
        OutputStyle::Rich
    } else {
        OutputStyle::Plain
    }
}

/// Raw mode while it lives. Dropping it, or a panic, gives the terminal back.
pub(crate) struct RawTerminal(());

impl RawTerminal {
    /// Takes the terminal.
    pub(crate) fn enter() -> io::Result<Self> {
        restore_on_panic();
        enable_raw_mode()?;
        let raw = Self(());
        execute!(io::stdout(), EnableBracketedPaste)?;
        Ok(raw)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    // Nothing better can be done if the terminal is closed.
    let _ = execute!(io::stdout(), DisableBracketedPaste, cursor::Show);
    let _ = disable_raw_mode();
}

fn restore_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
    });
}

/// Keys, pastes and resizes as they arrive, from a thread that ends when the receiver is dropped.
pub(crate) struct KeyReader {
    receiver: mpsc::Receiver<Event>,
    gate: Arc<TerminalLock>,
}

/// Lock for reading from the terminal: the key thread holds it unless another program does.
#[derive(Default)]
struct TerminalLock {
    lent: Mutex<bool>,
    given_back: Condvar,
    /// Held by the thread while it waits for a key.
    reading: Mutex<()>,
}

impl KeyReader {
    /// Begins to listen.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn listen() -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel(KEYS_WAITING_MAX);
        let gate = Arc::new(TerminalLock::default());
        let own = gate.clone();
        std::thread::Builder::new().name("keys".into()).spawn(move || {
            while !sender.is_closed() {
                match own.next_key() {
                    Ok(None) => {}
                    Ok(Some(event)) => {
                        if sender.blocking_send(event).is_err() {
                            break;
                        }
                    }
                    Err(_) => break,
                }
            }
        })?;
        Ok(Self { receiver, gate })
    }

    /// The next event; `None` if the terminal is closed.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        self.receiver.recv().await
    }

    /// Lends the terminal, in its original state, to another reader; `clear` removes the live lines.
    pub(crate) async fn lend<T: Send + 'static>(
        &self,
        run: impl FnOnce() -> io::Result<T> + Send + 'static,
        clear: &str,
    ) -> io::Result<T> {
        write_frame(clear)?;
        let gate = self.gate.clone();
        let lent = tokio::task::spawn_blocking(move || {
            *lock(&gate.lent) = true;
            // The thread of the keys looks up at least every `KEY_POLL`.
            let reading = lock(&gate.reading);
            restore();
            let result = run();
            let restored = enable_raw_mode().and_then(|()| execute!(io::stdout(), EnableBracketedPaste));
            drop(reading);
            *lock(&gate.lent) = false;
            gate.given_back.notify_all();
            restored.and(result)
        });
        lent.await.map_err(io::Error::other)?
    }
}

impl TerminalLock {
    fn next_key(&self) -> io::Result<Option<Event>> {
        let lent = lock(&self.lent);
        drop(self.given_back.wait_while(lent, |lent| *lent).unwrap_or_else(PoisonError::into_inner));
        let _reading = lock(&self.reading);
        if event::poll(KEY_POLL)? { event::read().map(Some) } else { Ok(None) }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes and flushes a frame.
pub(crate) fn write_frame(frame: &str) -> io::Result<()> {
    if frame.is_empty() {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    out.write_all(frame.as_bytes())?;
    out.flush()
}
