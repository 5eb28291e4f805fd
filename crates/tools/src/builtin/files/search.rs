//! `files.search`: where a text or pattern occurs.
//!
//! Never follows links, and passes over hidden files and folders unless the path names one.

use super::lines::{LineReader, is_text};
use super::roots::FileRoots;
use super::{into_read_tool, run_blocking};
use crate::context::{ToolContext, ToolProgress};
use crate::output::format_bytes;
use crate::schema::truncate_chars;
use crate::tool::{Tool, ToolError};
use cap_std::fs::Dir;
use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::BufReader;
use std::sync::Arc;
use throughline_wire::ToolOutput;

/// Most matches that are returned.
pub const SEARCH_MATCHES_MAX: usize = 100;
/// Most files that are looked into.
pub const SEARCH_FILES_MAX: u64 = 20_000;
/// Most bytes of a file; larger ones are passed over and counted.
pub const SEARCH_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Most folders in folders.
pub const SEARCH_DEPTH_MAX: usize = 64;
/// Most characters of a matching line that are returned.
const LINE_CHARS_MAX: usize = 200;
/// Size of a compiled pattern: a model can write one that would need gigabytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    /// Text to look for in each line.
    #[schemars(length(min = 1, max = 1000))]
    query: String,
    /// Folder or file to look in. Without it: all allowed folders.
    path: Option<String>,
    /// Take the query as a regular expression.
    #[serde(default)]
    regex: bool,
    /// Tell capital from small letters.
    #[serde(default)]
    case_sensitive: bool,
}

pub(super) fn tool(roots: Arc<FileRoots>) -> Arc<dyn Tool> {
    let description =
        format!("Finds the lines of files that contain a text or match a pattern; {}.", roots.hint());
    let run = move |arguments: SearchArguments, context| {
        let roots = roots.clone();
        run_blocking(context, move |context| search(&roots, &arguments, context))
    };
    into_read_tool(crate::tool("files.search", &description, run), "Search files")
}

fn search(
    roots: &FileRoots,
    arguments: &SearchArguments,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let pattern = if arguments.regex { arguments.query.clone() } else { regex::escape(&arguments.query) };
    let pattern = RegexBuilder::new(&pattern)
        .case_insensitive(!arguments.case_sensitive)
        .size_limit(PATTERN_BYTES_MAX)
        .build()
        .map_err(|error| {
            ToolError::invalid_arguments(format!("/query: {}", truncate_chars(&error.to_string(), 500)))
        })?;
    let location =
        roots.locate(arguments.path.as_deref().unwrap_or_default()).map_err(ToolError::invalid_arguments)?;
    let mut search = FileSearch {
        pattern,
        context,
        matches: Vec::new(),
        files_searched: 0,
        skipped: 0,
        limit_reached: None,
    };
    match location {
        None => {
            for name in roots.names() {
                if let Some(location) = roots.locate(name).ok().flatten() {
                    search.search_folder(&location.open_folder().map_err(ToolError::new)?, name, 0);
                }
            }
        }
        Some(location) => {
            let metadata = location.root.directory.metadata(&location.relative);
            if metadata.map_err(|error| ToolError::new(location.describe_error(&error)))?.is_dir() {
                search.search_folder(
                    &location.open_folder().map_err(ToolError::new)?,
                    &location.display_path(),
                    0,
                );
            } else {
                let (file, size) = location.open_file().map_err(ToolError::new)?;
                search.search_file(file, size, &location.display_path());
            }
        }
    }
    if context.is_cancelled() {
        return Err(ToolError::new("stopped").with_partial(search.output()));
    }
    Ok(search.output())
}

struct FileSearch<'a> {
    pattern: Regex,
    context: &'a ToolContext,
    matches: Vec<LineMatch>,
    files_searched: u64,
    skipped: u64,
    /// The limit that ended it.
    limit_reached: Option<String>,
}

struct LineMatch {
    path: String,
    line: u64,
    text: String,
}

impl FileSearch<'_> {
    fn is_finished(&self) -> bool {
        self.limit_reached.is_some() || self.context.is_cancelled()
    }

    /// Files first, then folders, each by name: the same answer every time.
    fn search_folder(&mut self, folder: &Dir, display_path: &str, depth: usize) {
        // An unreadable or removed folder is skipped: the other results are worth more than an error.
        let Ok(entries) = folder.entries() else {
            self.skipped += 1;
            return;
        };
        let mut files = Vec::new();
        let mut folders = Vec::new();
        for entry in entries.flatten().take(super::ENTRIES_READ_MAX) {
            if self.context.is_cancelled() {
                return;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            match entry.file_type() {
                _ if name.starts_with('.') => {}
                Ok(kind) if kind.is_file() => files.push((name, entry)),
                Ok(kind) if kind.is_dir() => folders.push((name, entry)),
                _ => {}
            }
        }
        files.sort_by(|(one, _), (other, _)| one.cmp(other));
        folders.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (name, entry) in files {
            if self.is_finished() {
                return;
            }
            let display_path = format!("{display_path}/{name}");
            // Beneath this folder's handle: a link that was swapped in since does not lead out.
            match entry.open().and_then(|file| Ok((file.metadata()?, file))) {
                Ok((metadata, file)) if metadata.is_file() => {
                    self.search_file(file, metadata.len(), &display_path)
                }
                _ => self.skipped += 1,
            }
        }
        for (name, entry) in folders {
            if self.is_finished() {
                return;
            }
            match entry.open_dir() {
                Ok(inner) if depth < SEARCH_DEPTH_MAX => {
                    self.search_folder(&inner, &format!("{display_path}/{name}"), depth + 1)
                }
                _ => self.skipped += 1,
            }
        }
    }

    fn search_file(&mut self, file: cap_std::fs::File, size: u64, display_path: &str) {
        if self.files_searched >= SEARCH_FILES_MAX {
            self.limit_reached = Some(format!("{SEARCH_FILES_MAX} files"));
            return;
        }
        self.files_searched += 1;
        if self.files_searched.is_multiple_of(500) {
            self.context.report(
                ToolProgress::new(self.files_searched as f64)
                    .with_message(format!("{} files", self.files_searched)),
            );
        }
        let mut input = BufReader::new(file);
        if size > SEARCH_FILE_BYTES_MAX || !is_text(&mut input).unwrap_or(false) {
            self.skipped += 1;
            return;
        }
        let mut lines = LineReader::new(input);
        let mut number = 0;
        while let Ok(Some(line)) = lines.next() {
            number += 1;
            // It may be growing while it is read.
            if lines.read_bytes > SEARCH_FILE_BYTES_MAX || self.context.is_cancelled() {
                return;
            }
            let Some(hit) = self.pattern.find(&line) else { continue };
            if self.matches.len() == SEARCH_MATCHES_MAX {
                self.limit_reached = Some(format!("{SEARCH_MATCHES_MAX} matches"));
                return;
            }
            let text = excerpt(&line, hit.start());
            self.matches.push(LineMatch { path: display_path.to_owned(), line: number, text });
        }
    }

    fn output(&self) -> ToolOutput {
        let mut text: String = self
            .matches
            .iter()
            .map(|LineMatch { path, line, text }| format!("{path}:{line}: {text}\n"))
            .collect();
        if self.matches.is_empty() {
            text.push_str(&format!("Nothing found in {} files.\n", self.files_searched));
        }
        if let Some(limit) = &self.limit_reached {
            text.push_str(&format!("[stopped at {limit}: narrow the search]\n"));
        }
        if self.skipped > 0 {
            let max = format_bytes(SEARCH_FILE_BYTES_MAX);
            text.push_str(&format!(
                "[{} skipped: not text, unreadable or larger than {max}]\n",
                self.skipped
            ));
        }
        let matches: Vec<Value> = self
            .matches
            .iter()
            .map(|hit| json!({"path": hit.path, "line": hit.line, "text": hit.text}))
            .collect();
        let value = json!({"matches": matches, "files": self.files_searched, "passed_over": self.skipped, "is_whole": self.limit_reached.is_none()});
        ToolOutput { value: Some(value), ..ToolOutput::text(text) }
    }
}

/// The part of a line around a match.
fn excerpt(line: &str, offset: usize) -> String {
    let start = line.floor_char_boundary(offset.saturating_sub(LINE_CHARS_MAX / 4));
    let part = truncate_chars(&line[start..], LINE_CHARS_MAX);
    if start == 0 { part } else { format!("…{part}") }
}
