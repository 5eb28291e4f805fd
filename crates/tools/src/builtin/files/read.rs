//! `files.read`: the text of a file, by lines.

use super::lines::{Lines, is_text};
use super::roots::FileRoots;
use super::{blocking, finished};
use crate::output::bytes;
use crate::tool::{Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::io::BufReader;
use std::sync::Arc;
use throughline_wire::Output;

/// Lines that are returned when the call does not say how many.
pub const LINES_DEFAULT: u32 = 500;
/// Most lines that are returned.
pub const LINES_MAX: u32 = 2_000;
/// Most bytes that are returned: less than what a model is shown of any output, so that it is cut at a line, with the
/// number to go on from, and not in the middle.
pub const READ_BYTES_MAX: usize = 28 * 1024;
/// Most bytes that are passed over to get to the first line.
pub const SCAN_BYTES_MAX: u64 = 256 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    /// File, for example notes/2026/plan.md.
    path: String,
    /// First line to read, from 1.
    #[serde(default = "first")]
    #[schemars(range(min = 1))]
    start_line: u64,
    /// How many lines to read.
    #[serde(default = "lines_default")]
    #[schemars(range(min = 1, max = 2000))]
    lines: u32,
}

fn first() -> u64 {
    1
}

fn lines_default() -> u32 {
    LINES_DEFAULT
}

pub(super) fn tool(roots: Arc<FileRoots>) -> Arc<dyn Tool> {
    let description = format!("Reads a text file, or a part of it by lines; {}.", roots.hint());
    let run = move |arguments: ReadArguments, context| {
        let roots = roots.clone();
        blocking(context, move |context| read(&roots, &arguments, || context.is_cancelled()))
    };
    finished(crate::tool("files.read", &description, run), "Read a file")
}

fn read(roots: &FileRoots, arguments: &ReadArguments, stop: impl Fn() -> bool) -> Result<Output, ToolError> {
    let place = roots.locate(&arguments.path).map_err(ToolError::invalid_arguments)?;
    let place =
        place.ok_or_else(|| ToolError::invalid_arguments(format!("no file is named; {}", roots.hint())))?;
    let (file, size) = place.open_file().map_err(ToolError::new)?;
    let failed = |error: std::io::Error| ToolError::new(place.explained(&error));
    let mut input = BufReader::new(file);
    if !is_text(&mut input).map_err(failed)? {
        return Err(ToolError::new(format!("`{}` is not text ({})", place.shown(), bytes(size))));
    }
    let mut lines = Lines::new(input);
    let last = arguments.start_line.saturating_add(u64::from(arguments.lines.min(LINES_MAX)) - 1);
    let mut text = String::new();
    let mut number = 0;
    let mut is_whole = false;
    loop {
        if stop() {
            return Err(ToolError::new("stopped"));
        }
        let Some(line) = lines.next().map_err(failed)? else {
            is_whole = true;
            break;
        };
        if number + 1 > last || text.len() + line.len() > READ_BYTES_MAX {
            break;
        }
        number += 1;
        if number >= arguments.start_line {
            text.push_str(&line);
            text.push('\n');
        } else if lines.read_bytes > SCAN_BYTES_MAX {
            return Err(ToolError::new(format!(
                "line {} is beyond the first {}",
                arguments.start_line,
                bytes(SCAN_BYTES_MAX)
            )));
        }
    }
    if number < arguments.start_line && number > 0 {
        return Err(ToolError::new(format!("`{}` has only {number} lines", place.shown())));
    }
    if number == 0 {
        text.push_str("(the file is empty)\n");
    } else if !is_whole {
        text.push_str(&format!(
            "[lines {}-{number}; there is more: go on with start_line {}]\n",
            arguments.start_line,
            number + 1
        ));
    }
    let value = json!({
        "path": place.shown(), "bytes": size, "first_line": arguments.start_line, "last_line": number, "is_end": is_whole,
    });
    Ok(Output { value: Some(value), ..Output::text(text) })
}
