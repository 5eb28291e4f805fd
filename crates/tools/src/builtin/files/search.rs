//! `files.search`: where a text or pattern occurs.
//!
//! Never follows links, and passes over hidden files and folders unless the path names one.

use super::lines::{Lines, is_text};
use super::roots::FileRoots;
use super::{blocking, finished};
use crate::context::{Progress, ToolContext};
use crate::output::bytes;
use crate::schema::shortened;
use crate::tool::{Tool, ToolError};
use cap_std::fs::Dir;
use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::BufReader;
use std::sync::Arc;
use throughline_wire::Output;

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
        blocking(context, move |context| search(&roots, &arguments, context))
    };
    finished(crate::tool("files.search", &description, run), "Search files")
}

fn search(
    roots: &FileRoots,
    arguments: &SearchArguments,
    context: &ToolContext,
) -> Result<Output, ToolError> {
    let pattern = if arguments.regex { arguments.query.clone() } else { regex::escape(&arguments.query) };
    let pattern = RegexBuilder::new(&pattern)
        .case_insensitive(!arguments.case_sensitive)
        .size_limit(PATTERN_BYTES_MAX)
        .build()
        .map_err(|error| {
            ToolError::invalid_arguments(format!("/query: {}", shortened(&error.to_string(), 500)))
        })?;
    let place =
        roots.locate(arguments.path.as_deref().unwrap_or_default()).map_err(ToolError::invalid_arguments)?;
    let mut search = Search { pattern, context, found: Vec::new(), files: 0, passed_over: 0, full: None };
    match place {
        None => {
            for name in roots.names() {
                if let Some(place) = roots.locate(name).ok().flatten() {
                    search.folder(&place.open_folder().map_err(ToolError::new)?, name, 0);
                }
            }
        }
        Some(place) => {
            let metadata = place.root.directory.metadata(&place.below);
            if metadata.map_err(|error| ToolError::new(place.explained(&error)))?.is_dir() {
                search.folder(&place.open_folder().map_err(ToolError::new)?, &place.shown(), 0);
            } else {
                let (file, size) = place.open_file().map_err(ToolError::new)?;
                search.file(file, size, &place.shown());
            }
        }
    }
    if context.is_cancelled() {
        return Err(ToolError::new("stopped").with_partial(search.output()));
    }
    Ok(search.output())
}

struct Search<'a> {
    pattern: Regex,
    context: &'a ToolContext,
    found: Vec<Found>,
    files: u64,
    passed_over: u64,
    /// The limit that ended it.
    full: Option<String>,
}

struct Found {
    path: String,
    line: u64,
    text: String,
}

impl Search<'_> {
    fn is_over(&self) -> bool {
        self.full.is_some() || self.context.is_cancelled()
    }

    /// Files first, then folders, each by name: the same answer every time.
    fn folder(&mut self, folder: &Dir, shown: &str, depth: usize) {
        // A folder that may not be read or that has gone is passed over: the rest is worth more than an error.
        let Ok(entries) = folder.entries() else {
            self.passed_over += 1;
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
            if self.is_over() {
                return;
            }
            let shown = format!("{shown}/{name}");
            // Beneath this folder's handle: a link that was swapped in since does not lead out.
            match entry.open().and_then(|file| Ok((file.metadata()?, file))) {
                Ok((metadata, file)) if metadata.is_file() => self.file(file, metadata.len(), &shown),
                _ => self.passed_over += 1,
            }
        }
        for (name, entry) in folders {
            if self.is_over() {
                return;
            }
            match entry.open_dir() {
                Ok(inner) if depth < SEARCH_DEPTH_MAX => {
                    self.folder(&inner, &format!("{shown}/{name}"), depth + 1)
                }
                _ => self.passed_over += 1,
            }
        }
    }

    fn file(&mut self, file: cap_std::fs::File, size: u64, shown: &str) {
        if self.files >= SEARCH_FILES_MAX {
            self.full = Some(format!("{SEARCH_FILES_MAX} files"));
            return;
        }
        self.files += 1;
        if self.files.is_multiple_of(500) {
            self.context.report(Progress::at(self.files as f64).saying(format!("{} files", self.files)));
        }
        let mut input = BufReader::new(file);
        if size > SEARCH_FILE_BYTES_MAX || !is_text(&mut input).unwrap_or(false) {
            self.passed_over += 1;
            return;
        }
        let mut lines = Lines::new(input);
        let mut number = 0;
        while let Ok(Some(line)) = lines.next() {
            number += 1;
            // It may be growing while it is read.
            if lines.read_bytes > SEARCH_FILE_BYTES_MAX || self.context.is_cancelled() {
                return;
            }
            let Some(place) = self.pattern.find(&line) else { continue };
            if self.found.len() == SEARCH_MATCHES_MAX {
                self.full = Some(format!("{SEARCH_MATCHES_MAX} matches"));
                return;
            }
            let text = around(&line, place.start());
            self.found.push(Found { path: shown.to_owned(), line: number, text });
        }
    }

    fn output(&self) -> Output {
        let mut text: String =
            self.found.iter().map(|Found { path, line, text }| format!("{path}:{line}: {text}\n")).collect();
        if self.found.is_empty() {
            text.push_str(&format!("Nothing found in {} files.\n", self.files));
        }
        if let Some(limit) = &self.full {
            text.push_str(&format!("[stopped at {limit}: narrow the search]\n"));
        }
        if self.passed_over > 0 {
            let max = bytes(SEARCH_FILE_BYTES_MAX);
            text.push_str(&format!(
                "[{} passed over: not text, unreadable or over {max}]\n",
                self.passed_over
            ));
        }
        let matches: Vec<Value> = self
            .found
            .iter()
            .map(|found| json!({"path": found.path, "line": found.line, "text": found.text}))
            .collect();
        let value = json!({"matches": matches, "files": self.files, "passed_over": self.passed_over, "is_whole": self.full.is_none()});
        Output { value: Some(value), ..Output::text(text) }
    }
}

/// The part of a line around a match.
fn around(line: &str, at: usize) -> String {
    let start = line.floor_char_boundary(at.saturating_sub(LINE_CHARS_MAX / 4));
    let part = shortened(&line[start..], LINE_CHARS_MAX);
    if start == 0 { part } else { format!("…{part}") }
}
