//! One call of a program: input in, output and progress out, to its end or to ours.

use super::child::ChildExit;
use super::escapes::EscapeStripper;
use super::program::ProgramSpec;
use super::stderr_log::StderrLog;
use crate::context::ToolContext;
use crate::secrets::SecretSet;
use crate::tool::ToolError;
use std::io;
use std::pin::pin;
use std::time::Duration;
use throughline_wire::ToolOutput;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::time::timeout;

/// Use of stdout.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StdoutMode {
    /// The stream is the output, shown as it arrives.
    Streamed,
    /// The stream is read when it is complete; a program that writes more is stopped.
    Captured { bytes_max: usize },
}

/// Result of a program's run.
#[derive(Debug)]
pub(crate) struct ProgramOutput {
    /// The program's own end.
    pub(crate) exit: ChildExit,
    /// Stdout if it was to be captured.
    pub(crate) stdout: Vec<u8>,
    /// True if the program was stopped because it wrote more than the limit.
    pub(crate) overflowed: bool,
    /// The end of stderr, without secrets.
    pub(crate) stderr: String,
}

impl ProgramOutput {
    /// True if the program did not exit normally: a signal ended it, or we did. Its progress is unknown.
    pub(crate) fn was_cut_short(&self) -> bool {
        self.overflowed || self.exit.code.is_none()
    }

    /// The captured stdout, without secrets; `None` = nothing.
    pub(crate) fn partial(&self, secrets: &SecretSet) -> Option<ToolOutput> {
        partial_output(&self.stdout, secrets)
    }
}

fn partial_output(stdout: &[u8], secrets: &SecretSet) -> Option<ToolOutput> {
    let text = String::from_utf8_lossy(stdout);
    (!text.is_empty()).then(|| ToolOutput::text(secrets.redact(&text).into_owned()))
}

/// Number of bytes read at a time.
const CHUNK_BYTES: usize = 64 * 1024;
/// Time to read pipes after everything has ended: their content is read in no time.
const PIPES_WAIT: Duration = Duration::from_secs(1);

/// Fraction of the executor's grace after which a program that should have ended and has not is reported:
/// early enough for the notice to be part of the result, and later than the program's own grace (1 s of 1.5
/// s).
const NOTICE_AFTER: f64 = 0.8;
/// Sentence that the result of a stopped call must include.
const STILL_ENDING_TEXT: &str = "\n[some processes of this program are still running and are being killed]\n";

/// Runs the program once. When the context is cancelled, the program is stopped, and its output so far is
/// reported.
///
/// # Errors
///
/// The program could not be started; or its exit status is unknown, which is [`ToolError::Lost`].
pub(crate) async fn run_program(
    program: &ProgramSpec,
    input: &[u8],
    stdout: StdoutMode,
    secrets: &SecretSet,
    context: &ToolContext,
) -> Result<ProgramOutput, ToolError> {
    let mut running = program.start()?;
    let mut stdin = running.stdin.take();
    let (out, err) = (running.stdout.take(), running.stderr.take());
    let overflow = Notify::new();
    let write_stdin = async {
        if let Some(stdin) = &mut stdin {
            // A program may end without having read everything, or anything.
            let _ = stdin.write_all(input).await;
            let _ = stdin.shutdown().await;
        }
        drop(stdin.take());
    };
    let read_stdout = async {
        match (out, stdout) {
            (Some(out), StdoutMode::Streamed) => {
                stream_stdout(out, secrets, context).await;
                Vec::new()
            }
            (Some(out), StdoutMode::Captured { bytes_max }) => {
                capture_stdout(out, bytes_max, &overflow).await
            }
            (None, _) => Vec::new(),
        }
    };
    let read_stderr = async {
        match err {
            Some(err) => collect_stderr(err, secrets, context).await,
            None => String::new(),
        }
    };
    let mut overflowed = false;
    let end = async {
        tokio::select! {
            exit = running.wait() => exit,
            () = context.cancellation().cancelled() => {
                let mut stopping = pin!(running.stop());
                let notice_after = context.stop_grace().mul_f64(NOTICE_AFTER);
                let stopped = timeout(notice_after, &mut stopping).await;
                let has_ended = matches!(&stopped, Ok(exit) if !is_still_ending(exit));
                if !has_ended {
                    context.write(STILL_ENDING_TEXT).await;
                }
                match stopped {
                    Ok(exit) => exit,
                    Err(_over_time) => stopping.await,
                }
            }
            () = overflow.notified() => {
                overflowed = true;
                running.stop().await
            }
        }
    };
    let exit = {
        let pipes = async { tokio::join!(read_stdout, read_stderr, write_stdin) };
        let (mut pipes, mut end) = (pin!(pipes), pin!(end));
        tokio::select! {
            pipe_results = &mut pipes => (end.await, Some(pipe_results)),
            // No process of the program runs any more, so the pipes end, too; only without a supervisor a
            // process may have escaped, and that one is not waited for.
            exit = &mut end => (exit, timeout(PIPES_WAIT, &mut pipes).await.ok()),
        }
    };
    let (exit, pipe_results) = exit;
    let (captured, stderr_text, ()) = pipe_results.unwrap_or_default();
    match exit {
        Ok(exit) => Ok(ProgramOutput { exit, stdout: captured, overflowed, stderr: stderr_text }),
        Err(error) => {
            let name = program_name(program);
            let lost =
                ToolError::lost(format!("{name} was started, but its exit status is unknown: {error}"));
            Err(match partial_output(&captured, secrets) {
                Some(partial) => lost.with_partial(partial),
                None => lost,
            })
        }
    }
}

/// True if the stop was given up on, and killing continues in the background.
fn is_still_ending(exit: &io::Result<ChildExit>) -> bool {
    exit.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut)
}

async fn stream_stdout(mut out: impl AsyncRead + Unpin, secrets: &SecretSet, context: &ToolContext) {
    let mut plain = EscapeStripper::default();
    let mut redactor = secrets.redactor();
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(read @ 1..) = out.read(&mut chunk).await {
        let redacted = redactor.push(&plain.push(&chunk[..read]));
        if !redacted.is_empty() {
            context.write(redacted).await;
        }
    }
    context.write(redactor.finish()).await;
}

async fn capture_stdout(mut out: impl AsyncRead + Unpin, bytes_max: usize, overflow: &Notify) -> Vec<u8> {
    let mut captured = Vec::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(read @ 1..) = out.read(&mut chunk).await {
        let remaining = bytes_max - captured.len();
        captured.extend_from_slice(&chunk[..read.min(remaining)]);
        if read > remaining {
            overflow.notify_one();
        }
    }
    captured
}

async fn collect_stderr(
    mut err: impl AsyncRead + Unpin,
    secrets: &SecretSet,
    context: &ToolContext,
) -> String {
    let mut log = StderrLog::new(secrets);
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(read @ 1..) = err.read(&mut chunk).await {
        if let Some(progress) = log.push(&chunk[..read]) {
            context.report(progress);
        }
    }
    log.finish()
}

/// Description of a program's failure, for the model. `None` = it succeeded.
pub(crate) fn failure_text(program: &ProgramSpec, output: &ProgramOutput) -> Option<String> {
    let name = program_name(program);
    let how = match output.exit {
        ChildExit { code: Some(0), .. } => return None,
        ChildExit { code: Some(code), .. } => format!("{name} exited with code {code}"),
        ChildExit { signal: Some(signal), .. } => {
            format!("{name} was killed by signal {signal}{}", signal_name(signal))
        }
        ChildExit { code: None, signal: None } => format!("{name} ended, exit status unknown"),
    };
    Some(if output.stderr.is_empty() { how } else { format!("{how}: {}", output.stderr) })
}

fn program_name(program: &ProgramSpec) -> String {
    program.path.file_name().unwrap_or(program.path.as_os_str()).to_string_lossy().into_owned()
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
