//! `files.list`: the entries of a folder.

use super::roots::FileRoots;
use super::{into_read_tool, run_blocking};
use crate::output::format_bytes;
use crate::tool::{Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use throughline_wire::ToolOutput;

/// Entries of a folder that are shown, the first by name.
pub const ENTRIES_SHOWN_MAX: usize = 500;
/// Entries of a folder that are read at all.
pub const ENTRIES_READ_MAX: usize = 100_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    /// Folder, for example notes/2026. Without it: the allowed folders.
    path: Option<String>,
}

pub(super) fn tool(roots: Arc<FileRoots>) -> Arc<dyn Tool> {
    let description = format!("Lists the files in a folder; {}.", roots.hint());
    let run = move |arguments: ListArguments, context| {
        let roots = roots.clone();
        run_blocking(context, move |context| list(&roots, &arguments, || context.is_cancelled()))
    };
    into_read_tool(crate::tool("files.list", &description, run), "List files")
}

fn list(
    roots: &FileRoots,
    arguments: &ListArguments,
    is_cancelled: impl Fn() -> bool,
) -> Result<ToolOutput, ToolError> {
    let location =
        roots.locate(arguments.path.as_deref().unwrap_or_default()).map_err(ToolError::invalid_arguments)?;
    let Some(location) = location else {
        let entries: Vec<Value> = roots.names().map(|name| json!({"name": name, "kind": "folder"})).collect();
        let text = roots.names().map(|name| format!("{name}/\n")).collect::<String>();
        let text = if text.is_empty() { "No folder is allowed.".to_owned() } else { text };
        return Ok(ToolOutput {
            value: Some(json!({"path": "", "entries": entries, "more": 0})),
            ..ToolOutput::text(text)
        });
    };
    let folder = location.open_folder().map_err(ToolError::new)?;
    let mut names = Vec::new();
    let mut has_unread = false;
    for entry in folder.entries().map_err(|error| ToolError::new(location.describe_error(&error)))? {
        if is_cancelled() {
            return Err(ToolError::new("stopped"));
        }
        if names.len() == ENTRIES_READ_MAX {
            has_unread = true;
            break;
        }
        // The entry may have been removed in the meantime.
        if let Ok(entry) = entry {
            names.push((entry.file_name().to_string_lossy().into_owned(), entry));
        }
    }
    names.sort_by(|(one, _), (other, _)| one.cmp(other));
    let more = names.len().saturating_sub(ENTRIES_SHOWN_MAX);
    let mut text = String::new();
    let mut entries = Vec::new();
    for (name, entry) in names.iter().take(ENTRIES_SHOWN_MAX) {
        // Metadata of the link itself, not of its target, which may be outside the root.
        let Ok(metadata) = entry.metadata() else { continue };
        let kind = match metadata.file_type() {
            kind if kind.is_dir() => "folder",
            kind if kind.is_file() => "file",
            kind if kind.is_symlink() => "link",
            _ => "other",
        };
        match kind {
            "folder" => text.push_str(&format!("{name}/\n")),
            "file" => text.push_str(&format!("{name}  {}\n", format_bytes(metadata.len()))),
            kind => text.push_str(&format!("{name}  ({kind})\n")),
        }
        entries.push(json!({"name": name, "kind": kind, "bytes": metadata.len()}));
    }
    if text.is_empty() {
        text.push_str("The folder is empty.");
    }
    match (more, has_unread) {
        (0, _) => {}
        (more, false) => text.push_str(&format!("… and {more} more entries")),
        (more, true) => text.push_str(&format!("… and at least {more} more entries")),
    }
    Ok(ToolOutput {
        value: Some(json!({"path": location.display_path(), "entries": entries, "more": more})),
        ..ToolOutput::text(text)
    })
}
