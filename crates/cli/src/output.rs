//! Standard output, where a reader who has seen enough (`| head`) is no failure.

use serde::Serialize;
use std::io::{self, Write};
use throughline_wire::visible;

/// Prints text.
pub(crate) fn text(text: &str) -> io::Result<()> {
    forgiving(|out| out.write_all(text.as_bytes()))
}

/// Prints a value as one line of JSON: exactly the value, and nothing in its text is invisible on a terminal.
pub(crate) fn json_line(value: &impl Serialize) -> io::Result<()> {
    let line = serde_json::to_string(value)?;
    text(&format!("{}\n", visible::escape(&line)))
}

fn forgiving(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
