//! Standard output and standard error, where a reader who has seen enough (`| head`) is no failure.
//!
//! The macros of the standard library panic when the other end of a pipe is closed; clippy forbids them in this crate.

use serde::Serialize;
use std::fmt::Arguments;
use std::io::{self, Write};
use throughline_wire::display_escape;

/// Prints to standard output.
macro_rules! out {
    ($($text:tt)*) => { $crate::output::to_stdout(format_args!($($text)*)) };
}

/// Prints a line to standard output.
macro_rules! outln {
    () => { $crate::output::to_stdout(format_args!("\n")) };
    ($($text:tt)*) => { $crate::output::to_stdout(format_args!("{}\n", format_args!($($text)*))) };
}

/// Prints to standard error.
macro_rules! err {
    ($($text:tt)*) => { $crate::output::to_stderr(format_args!($($text)*)) };
}

/// Prints a line to standard error.
macro_rules! errln {
    () => { $crate::output::to_stderr(format_args!("\n")) };
    ($($text:tt)*) => { $crate::output::to_stderr(format_args!("{}\n", format_args!($($text)*))) };
}

pub(crate) use {err, errln, out, outln};

/// Writes for `out!` and `outln!`. Errors are ignored: the reader has closed the output.
pub(crate) fn to_stdout(text: Arguments<'_>) {
    let mut out = io::stdout().lock();
    let _ = out.write_fmt(text).and_then(|()| out.flush());
}

/// Writes for `err!` and `errln!`.
pub(crate) fn to_stderr(text: Arguments<'_>) {
    // In one piece: another process may write to the same terminal.
    let _ = io::stderr().lock().write_all(text.to_string().as_bytes());
}

/// Prints text.
pub(crate) fn text(text: &str) -> io::Result<()> {
    forgiving(|out| out.write_all(text.as_bytes()))
}

/// Prints a value as one line of JSON: exactly the value, and nothing in its text is invisible on a terminal.
pub(crate) fn json_line(value: &impl Serialize) -> io::Result<()> {
    let line = serde_json::to_string(value)?;
    text(&format!("{}\n", display_escape::escape(&line)))
}

fn forgiving(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
