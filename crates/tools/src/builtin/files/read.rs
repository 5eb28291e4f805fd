//! `files.read`: the text of a file, by lines.

use super::lines::{LineReader, is_text};
use super::roots::FileRoots;
use super::{into_read_tool, run_blocking};
use crate::output::format_bytes;
use crate::tool::{Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::io::BufReader;
use std::sync::Arc;
use throughline_wire::ToolOutput;

/// Lines that are returned when the call does not say how many.
pub const LINES_DEFAULT: u32 = 500;
/// Most lines that are returned.
pub const LINES_MAX: u32 = 2_000;
/// Most bytes that are returned: less than the limit of any output, so that it is cut at a line, with the
/// number of the next one, and not in the middle.
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
    #[schemars(description = "How many lines to read.")]
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
        run_blocking(context, move |context| read(&roots, &arguments, || context.is_cancelled()))
    };
    into_read_tool(crate::tool("files.read", &description, run), "Read a file")
}

fn read(
    roots: &FileRoots,
    arguments: &ReadArguments,
    is_cancelled: impl Fn() -> bool,
) -> Result<ToolOutput, ToolError> {
    let location = roots.locate(&arguments.path).map_err(ToolError::invalid_arguments)?;
    let location = location
        .ok_or_else(|| ToolError::invalid_arguments(format!("no file is named; {}", roots.hint())))?;
    let (file, size) = location.open_file().map_err(ToolError::new)?;
    let failed = |error: std::io::Error| ToolError::new(location.describe_error(&error));
    let mut input = BufReader::new(file);
    if !is_text(&mut input).map_err(failed)? {
        return Err(ToolError::new(format!(
            "`{}` is not text ({})",
            location.display_path(),
            format_bytes(size)
        )));
    }
    let mut lines = LineReader::new(input);
    let last_line = arguments.start_line.saturating_add(u64::from(arguments.lines.min(LINES_MAX)) - 1);
    let mut text = String::new();
    let mut line_number = 0;
    let mut reached_end = false;
    loop {
        if is_cancelled() {
            return Err(ToolError::new("stopped"));
        }
        let Some(line) = lines.next().map_err(failed)? else {
            reached_end = true;
            break;
        };
        if line_number + 1 > last_line || text.len() + line.len() > READ_BYTES_MAX {
            break;
        }
        line_number += 1;
        if line_number >= arguments.start_line {
            text.push_str(&line);
            text.push('\n');
        } else if lines.read_bytes > SCAN_BYTES_MAX {
            return Err(ToolError::new(format!(
                "line {} is beyond the first {}",
                arguments.start_line,
                format_bytes(SCAN_BYTES_MAX)
            )));
        }
    }
    if line_number < arguments.start_line && line_number > 0 {
        return Err(ToolError::new(format!("`{}` has only {line_number} lines", location.display_path())));
    }
    if line_number == 0 {
        text.push_str("(the file is empty)\n");
    } else if !reached_end {
        text.push_str(&format!(
            "[lines {}-{line_number}; more follows: continue with start_line {}]\n",
            arguments.start_line,
            line_number + 1
        ));
    }
    let value = json!({
        "path": location.display_path(), "bytes": size, "first_line": arguments.start_line, "last_line": line_number, "is_end": reached_end,
    });
    Ok(ToolOutput { value: Some(value), ..ToolOutput::text(text) })
}
