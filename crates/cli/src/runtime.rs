//! The threads that everything runs on. A system that gives none is an error with a remedy, at the start and later.

use crate::exit::CommandResult;
use crate::messages;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Mutex;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio_util::task::AbortOnDropHandle;

/// Time limit for tasks to stop when the command exits.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// Shorter than tokio's timeout of an idle thread for blocking work (10 s).
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(4);

/// Runs what needs the network. Tasks that are left get a moment to stop what they started.
pub(crate) fn with_runtime(work: impl Future<Output = CommandResult>) -> CommandResult {
    // One provider for all TLS of the process. Set already = by the library, to the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = build_runtime().map_err(|error| messages::no_runtime(&error))?;
    let ended = runtime.block_on(async {
        let _spare = AbortOnDropHandle::new(tokio::spawn(keep_spare_thread()));
        work.await
    });
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    ended
}

fn build_runtime() -> io::Result<Runtime> {
    // On one processor a scheduler for several only costs: tasks that wake each other would run one by one, and each write to
    // a client would wake it alone.
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut builder = match processors {
        1 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    builder.enable_all();
    // If tokio could start no thread, blocking work would wait forever.
    try_threads(processors + 1)?;
    // The one thing of tokio that panics for want of a thread, both here and where blocking work finds none. Nothing else
    // runs yet that could miss the usual report of a panic.
    let usual = take_hook();
    set_hook(Box::new(|_| {}));
    let built = catch_unwind(AssertUnwindSafe(|| {
        let runtime = builder.build()?;
        runtime.spawn_blocking(|| ());
        Ok(runtime)
    }));
    set_hook(usual);
    built.unwrap_or_else(|_| {
        Err(io::Error::new(io::ErrorKind::WouldBlock, crate::messages::no_further_thread()))
    })
}

/// Tries to start `count` threads in parallel.
fn try_threads(count: usize) -> io::Result<()> {
    let gate = Mutex::new(());
    let shut = gate.lock();
    std::thread::scope(|scope| {
        for _ in 0..count {
            std::thread::Builder::new().spawn_scoped(scope, || drop(gate.lock()))?;
        }
        drop(shut);
        Ok(())
    })
}

/// Keeps one thread for blocking work alive: with it, tokio lets further work wait for that thread when the system gives no
/// other one, and without any it panics.
async fn keep_spare_thread() {
    loop {
        let _ = tokio::task::spawn_blocking(|| ()).await;
        tokio::time::sleep(KEEP_ALIVE_INTERVAL).await;
    }
}
