//! One call of a program: input in, output and progress out, to its end or to ours.

use super::complaints::Complaints;
use super::plain::PlainText;
use super::program::Program;
use super::running::Ended;
use crate::context::ToolContext;
use crate::secrets::Secrets;
use crate::tool::ToolError;
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::time::timeout;

/// What becomes of stdout.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stdout {
    /// It is the output, shown as it comes.
    Shown,
    /// It is read when it is complete; a program that writes more is stopped.
    Kept { bytes_max: usize },
}

/// How a call of a program ended.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// The program's own end.
    pub(crate) ended: Ended,
    /// Stdout if it was to be kept.
    pub(crate) kept: Vec<u8>,
    /// It was stopped because it wrote more than may be kept.
    pub(crate) flooded: bool,
    /// The end of stderr, without secrets.
    pub(crate) complaints: String,
}

/// How much is read at a time.
const PIECE_BYTES: usize = 64 * 1024;
/// How long pipes are read after everything has ended: what is in them is read in no time.
const PIPES_WAIT: Duration = Duration::from_secs(1);

/// From the wish that a program ends to the notice that it has not yet: before the executor has waited long enough (its
/// grace is 1.5 s) and tells what is known.
const NOTICE_AFTER: Duration = Duration::from_millis(1_300);
/// What a call that was stopped must not leave out.
const NOT_ENDED_YET: &str =
    "\n[not everything that this program started has ended yet; it goes on being killed]\n";

/// Runs the program once. When the context says stop, it is stopped, and what it wrote until then is what is told.
///
/// # Errors
/// It could not be started.
pub(crate) async fn exchange(
    program: &Program,
    input: &[u8],
    stdout: Stdout,
    secrets: &Secrets,
    context: &ToolContext,
) -> Result<Exchange, ToolError> {
    let mut running = program.start()?;
    let mut stdin = running.stdin.take();
    let (out, err) = (running.stdout.take(), running.stderr.take());
    let flood = Notify::new();
    let write = async {
        if let Some(stdin) = &mut stdin {
            // A program may end without having read everything, or anything.
            let _ = stdin.write_all(input).await;
            let _ = stdin.shutdown().await;
        }
        drop(stdin.take());
    };
    let read = async {
        match (out, stdout) {
            (Some(out), Stdout::Shown) => {
                show(out, secrets, context).await;
                Vec::new()
            }
            (Some(out), Stdout::Kept { bytes_max }) => keep(out, bytes_max, &flood).await,
            (None, _) => Vec::new(),
        }
    };
    let complain = async {
        match err {
            Some(err) => complaints(err, secrets, context).await,
            None => String::new(),
        }
    };
    let mut flooded = false;
    let end = async {
        tokio::select! {
            ended = running.wait() => ended,
            () = context.cancellation().cancelled() => {
                let mut stopping = pin!(running.stop());
                match timeout(NOTICE_AFTER, &mut stopping).await {
                    Ok(ended) => ended,
                    Err(_over_time) => {
                        context.write(NOT_ENDED_YET).await;
                        stopping.await
                    }
                }
            }
            () = flood.notified() => {
                flooded = true;
                running.stop().await
            }
        }
    };
    let ended = {
        let pipes = async { tokio::join!(read, complain, write) };
        let (mut pipes, mut end) = (pin!(pipes), pin!(end));
        tokio::select! {
            piped = &mut pipes => (end.await, Some(piped)),
            // Nothing of the program runs any more, so the pipes end, too; but for what may have escaped where nobody
            // supervises, and that is not waited for.
            ended = &mut end => (ended, timeout(PIPES_WAIT, &mut pipes).await.ok()),
        }
    };
    let (ended, piped) = ended;
    let (kept, complaints, ()) = piped.unwrap_or_default();
    Ok(Exchange { ended: ended?, kept, flooded, complaints })
}

async fn show(mut out: impl AsyncRead + Unpin, secrets: &Secrets, context: &ToolContext) {
    let mut plain = PlainText::default();
    let mut redactor = secrets.redactor();
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(read @ 1..) = out.read(&mut piece).await {
        let shown = redactor.push(&plain.push(&piece[..read]));
        if !shown.is_empty() {
            context.write(shown).await;
        }
    }
    context.write(redactor.finish()).await;
}

async fn keep(mut out: impl AsyncRead + Unpin, bytes_max: usize, flood: &Notify) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(read @ 1..) = out.read(&mut piece).await {
        let room = bytes_max - kept.len();
        kept.extend_from_slice(&piece[..read.min(room)]);
        if read > room {
            flood.notify_one();
        }
    }
    kept
}

async fn complaints(mut err: impl AsyncRead + Unpin, secrets: &Secrets, context: &ToolContext) -> String {
    let mut complaints = Complaints::new(secrets);
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(read @ 1..) = err.read(&mut piece).await {
        if let Some(progress) = complaints.push(&piece[..read]) {
            context.report(progress);
        }
    }
    complaints.finish()
}

/// How a program that did not succeed ended, for the model. `None` = it succeeded.
pub(crate) fn failure(program: &Program, exchange: &Exchange) -> Option<String> {
    let name = program.path.file_name().unwrap_or(program.path.as_os_str()).to_string_lossy().into_owned();
    let how = match exchange.ended {
        Ended { code: Some(0), .. } => return None,
        Ended { code: Some(code), .. } => format!("{name} ended with exit code {code}"),
        Ended { signal: Some(signal), .. } => {
            format!("{name} was ended by signal {signal}{}", signal_name(signal))
        }
        Ended { code: None, signal: None } => format!("{name} ended, and nobody knows how"),
    };
    Some(if exchange.complaints.is_empty() { how } else { format!("{how}: {}", exchange.complaints) })
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        2 => " (SIGINT)",
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        24 => " (SIGXCPU)",
        25 => " (SIGXFSZ: a file larger than allowed)",
        31 => " (SIGSYS)",
        _ => "",
    }
}
