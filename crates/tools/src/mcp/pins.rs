//! Approved definitions: when a server changes one, the tool is switched off until a person has approved the
//! difference.
//!
//! Several programs can share the file: every change is read, made and written under a lock, and the file is
//! replaced whole. Never holds a secret: no values of variables, no headers.

use crate::private_file::{PrivateFile, PrivateFileError, VersionedDocument};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Largest file that is read, in bytes: a larger one was not written by this program.
pub const PIN_FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Everything that a server declares about a tool, and the server itself: the input of a fingerprint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PinnedDefinition {
    /// The server's command line, or its URL.
    pub server: Vec<String>,
    /// The tool as its server calls it.
    pub tool: String,
    /// Title, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description, for the model.
    pub description: String,
    /// Schema of the arguments.
    pub parameters: Value,
    /// Schema of the structured output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// The server's own hints about its effects.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub hints: Value,
}

impl PinnedDefinition {
    /// BLAKE3 hash of the definition, in hex. The order of keys has no effect.
    pub fn fingerprint(&self) -> String {
        let document = serde_json::to_value(self).map(crate::registry::canonicalize).unwrap_or_default();
        blake3::hash(document.to_string().as_bytes()).to_hex().to_string()
    }
}

/// A tool whose definition is not the one that was agreed to.
#[derive(Clone, Debug, PartialEq)]
pub struct DefinitionChange {
    /// Name of the tool, `server.method`.
    pub name: String,
    /// The approved definition.
    pub before: PinnedDefinition,
    /// The server's current definition.
    pub after: PinnedDefinition,
}

impl DefinitionChange {
    /// The difference, line by line: `- ` was, `+ ` is, two spaces for lines around it.
    pub fn diff(&self) -> String {
        let (before, after) = (&self.before, &self.after);
        let mut text = String::new();
        let mut part = |title: &str, before: &str, after: &str| {
            if before != after {
                text.push_str(&format!("{title}\n{}", line_diff(before, after)));
            }
        };
        part("server", &before.server.join(" "), &after.server.join(" "));
        part("title", before.title.as_deref().unwrap_or(""), after.title.as_deref().unwrap_or(""));
        part("description", &before.description, &after.description);
        part("arguments", &pretty(&before.parameters), &pretty(&after.parameters));
        let schema = |output: &Option<Value>| output.as_ref().map(pretty).unwrap_or_default();
        part("output", &schema(&before.output), &schema(&after.output));
        part("hints", &pretty(&before.hints), &pretty(&after.hints));
        text
    }
}

/// Result of comparing a definition with its pin.
#[derive(Clone, Debug, PartialEq)]
pub enum PinComparison {
    /// The definition equals the approved one, or was seen for the first time and is pinned now.
    Agreed,
    /// The definition has changed: the tool stays off.
    Changed(Box<DefinitionChange>),
}

/// The pins of all servers. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct PinStore {
    inner: Arc<PinStoreInner>,
}

#[derive(Debug)]
struct PinStoreInner {
    /// `None` = in memory only.
    file: Option<PrivateFile>,
    memory: Mutex<PinDocument>,
    approvals: watch::Sender<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct PinDocument {
    v: u32,
    /// Approved definitions by `server.method`.
    pins: BTreeMap<String, PinnedDefinition>,
    /// Changed definitions that have not been approved yet.
    #[serde(default)]
    #[serde(rename = "waiting")]
    pending: BTreeMap<String, PinnedDefinition>,
}

impl Default for PinDocument {
    fn default() -> Self {
        Self { v: Self::FORMAT_VERSION, pins: BTreeMap::new(), pending: BTreeMap::new() }
    }
}

impl VersionedDocument for PinDocument {
    const FORMAT_VERSION: u32 = 1;

    fn version(&self) -> u32 {
        self.v
    }
}

/// Error of reading or writing pins.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PinsError {
    /// Error of the file system.
    #[error("{}: {error}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the file system.
        #[source]
        error: io::Error,
    },
    /// The file has another format, or that of a later version.
    #[error("{}: not a file of pinned definitions: {problem}", path.display())]
    Format {
        /// Path of the file.
        path: PathBuf,
        /// Problem with the content.
        problem: String,
    },
    /// No change with this name waits for an approval.
    #[error("no changed definition of `{name}` is waiting")]
    NotPending {
        /// Name of the tool.
        name: String,
        /// Names that wait for an approval.
        pending: Vec<String>,
    },
}

impl PinStore {
    /// Pins that end with the program.
    pub fn in_memory() -> Self {
        Self::new(None)
    }

    /// Pins in a file, which is made when it is first needed, for its owner's eyes only.
    pub fn in_file(path: impl Into<PathBuf>) -> Self {
        Self::new(Some(PrivateFile::at(path, PIN_FILE_BYTES_MAX)))
    }

    fn new(file: Option<PrivateFile>) -> Self {
        let memory = Mutex::new(PinDocument::default());
        Self { inner: Arc::new(PinStoreInner { file, memory, approvals: watch::Sender::new(0) }) }
    }

    /// Compares the present definitions of a server with its pins. A tool that is seen for the first time is
    /// pinned; one that equals its pin again no longer waits for an approval. Results are in the order of
    /// `now`, which has pairs of `server.method` and definition. Blocks its thread for the file.
    ///
    /// # Errors
    /// The pins cannot be read or written: nothing may be offered then.
    pub fn compare(
        &self,
        definitions: &[(String, PinnedDefinition)],
    ) -> Result<Vec<PinComparison>, PinsError> {
        self.update(|document| {
            let mut comparisons = Vec::with_capacity(definitions.len());
            for (name, definition) in definitions {
                match document.pins.get(name) {
                    Some(pinned) if pinned.fingerprint() != definition.fingerprint() => {
                        comparisons.push(PinComparison::Changed(Box::new(DefinitionChange {
                            name: name.clone(),
                            before: pinned.clone(),
                            after: definition.clone(),
                        })));
                        document.pending.insert(name.clone(), definition.clone());
                        continue;
                    }
                    Some(_) => {}
                    None => drop(document.pins.insert(name.clone(), definition.clone())),
                }
                document.pending.remove(name);
                comparisons.push(PinComparison::Agreed);
            }
            Ok(comparisons)
        })
    }

    /// All changes that wait for an approval, by name. Blocks its thread for the file.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn pending_changes(&self) -> Result<Vec<DefinitionChange>, PinsError> {
        let document = self.read()?;
        let changed = document.pending.into_iter().filter_map(|(name, after)| {
            let before = document.pins.get(&name)?.clone();
            Some(DefinitionChange { name, before, after })
        });
        Ok(changed.collect())
    }

    /// Approves the definition that waits under this name. The server's present definition is then compared
    /// with it, so an unread one cannot slip in. Blocks its thread for the file.
    ///
    /// # Errors
    /// No change waits under this name, or the file cannot be written.
    pub fn approve(&self, name: &str) -> Result<DefinitionChange, PinsError> {
        let approved = self.update(|document| {
            let Some(after) = document.pending.remove(name) else {
                let pending = document.pending.keys().cloned().collect();
                return Err(PinsError::NotPending { name: name.to_owned(), pending });
            };
            let before =
                document.pins.insert(name.to_owned(), after.clone()).unwrap_or_else(|| after.clone());
            Ok(DefinitionChange { name: name.to_owned(), before, after })
        })?;
        self.inner.approvals.send_modify(|count| *count += 1);
        Ok(approved)
    }

    /// Changes whenever this program has agreed to something.
    #[cfg(feature = "mcp")]
    pub(crate) fn approvals(&self) -> watch::Receiver<u64> {
        self.inner.approvals.subscribe()
    }

    fn memory(&self) -> MutexGuard<'_, PinDocument> {
        // A panic in between leaves the document as it was before or after: it is changed by single inserts.
        self.inner.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> Result<PinDocument, PinsError> {
        match &self.inner.file {
            None => Ok(self.memory().clone()),
            Some(file) => file.read().map_err(|error| PinsError::from_file_error(file, error)),
        }
    }

    fn update<T>(&self, edit: impl FnOnce(&mut PinDocument) -> Result<T, PinsError>) -> Result<T, PinsError> {
        match &self.inner.file {
            None => edit(&mut self.memory()),
            Some(file) => file.update(edit).map_err(|error| PinsError::from_file_error(file, error))?,
        }
    }
}

impl PinsError {
    fn from_file_error(file: &PrivateFile, error: PrivateFileError) -> Self {
        let path = file.path().to_owned();
        match error {
            PrivateFileError::File(error) => Self::File { path, error },
            PrivateFileError::Format(problem) => Self::Format { path, problem },
        }
    }
}

fn pretty(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        value => {
            serde_json::to_string_pretty(&crate::registry::canonicalize(value.clone())).unwrap_or_default()
        }
    }
}

/// Lines of context around a difference.
const CONTEXT_LINES: usize = 2;
/// Lines of one side up to which the smallest difference is looked for, which costs their product.
const EXACT_LINES_MAX: usize = 1_000;

fn line_diff(before: &str, after: &str) -> String {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let rows = diff_rows(&before, &after);
    let context_rows: BTreeSet<usize> = rows
        .iter()
        .enumerate()
        .filter(|(_, (mark, _))| *mark != ' ')
        .flat_map(|(at, _)| at.saturating_sub(CONTEXT_LINES)..=at + CONTEXT_LINES)
        .collect();
    let mut text = String::new();
    let mut last = None;
    for (at, (mark, line)) in rows.iter().enumerate().filter(|(at, _)| context_rows.contains(at)) {
        if last.is_some_and(|last| at > last + 1) {
            text.push_str("  …\n");
        }
        last = Some(at);
        text.push_str(&format!("{mark} {line}\n"));
    }
    text
}

/// Every line with its mark, by the longest common subsequence.
fn diff_rows<'t>(before: &[&'t str], after: &[&'t str]) -> Vec<(char, &'t str)> {
    if before.len() > EXACT_LINES_MAX || after.len() > EXACT_LINES_MAX {
        let was = before.iter().map(|line| ('-', *line));
        return was.chain(after.iter().map(|line| ('+', *line))).collect();
    }
    let mut common = vec![vec![0_u32; after.len() + 1]; before.len() + 1];
    for b in (0..before.len()).rev() {
        for n in (0..after.len()).rev() {
            common[b][n] = if before[b] == after[n] {
                common[b + 1][n + 1] + 1
            } else {
                common[b + 1][n].max(common[b][n + 1])
            };
        }
    }
    let (mut b, mut n, mut rows) = (0, 0, Vec::new());
    while b < before.len() || n < after.len() {
        if b < before.len() && n < after.len() && before[b] == after[n] {
            rows.push((' ', before[b]));
            (b, n) = (b + 1, n + 1);
        } else if n == after.len() || (b < before.len() && common[b + 1][n] >= common[b][n + 1]) {
            rows.push(('-', before[b]));
            b += 1;
        } else {
            rows.push(('+', after[n]));
            n += 1;
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn definition(description: &str) -> PinnedDefinition {
        PinnedDefinition {
            server: vec!["mcp-server-files".into(), "/tmp".into()],
            tool: "read".into(),
            title: None,
            description: description.into(),
            parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
            output: None,
            hints: Value::Null,
        }
    }

    fn compare(pins: &PinStore, definition: PinnedDefinition) -> PinComparison {
        pins.compare(&[("files.read".into(), definition)]).unwrap().remove(0)
    }

    fn both(check: impl Fn(&PinStore)) {
        check(&PinStore::in_memory());
        let folder = tempfile::tempdir().unwrap();
        check(&PinStore::in_file(folder.path().join("deep/pins.json")));
    }

    // One server could otherwise turn all others off, for good.
    #[test]
    fn oversized_definitions_are_refused_and_other_pins_stay() {
        let folder = tempfile::tempdir().unwrap();
        let pins = PinStore::new(Some(PrivateFile::at(folder.path().join("pins.json"), 4_000)));
        assert_eq!(compare(&pins, definition("Reads a file")), PinComparison::Agreed);
        let error = pins.compare(&[("big.read".into(), definition(&"x".repeat(4_000)))]).unwrap_err();
        assert!(error.to_string().contains("at most 4000 are read"), "{error}");
        assert_eq!(compare(&pins, definition("Reads a file")), PinComparison::Agreed);
    }

    #[test]
    fn changed_definition_is_refused_until_approved() {
        both(|pins| {
            assert_eq!(compare(pins, definition("Reads a file")), PinComparison::Agreed);
            assert_eq!(compare(pins, definition("Reads a file")), PinComparison::Agreed);
            for _ in 0..2 {
                let PinComparison::Changed(changed) = compare(pins, definition("Reads a file and mails it"))
                else {
                    panic!("a changed definition was taken")
                };
                assert_eq!(changed.name, "files.read");
            }
            assert_eq!(pins.pending_changes().unwrap().len(), 1);
            pins.approve("files.read").unwrap();
            assert_eq!(compare(pins, definition("Reads a file and mails it")), PinComparison::Agreed);
            assert!(matches!(compare(pins, definition("Reads a file")), PinComparison::Changed(_)));
        });
    }

    #[test]
    fn approval_does_not_cover_a_later_change() {
        both(|pins| {
            compare(pins, definition("one"));
            compare(pins, definition("two"));
            pins.approve("files.read").unwrap();
            assert!(matches!(compare(pins, definition("three")), PinComparison::Changed(_)));
        });
    }

    #[test]
    fn reverted_definition_is_no_longer_pending() {
        both(|pins| {
            compare(pins, definition("one"));
            compare(pins, definition("two"));
            assert_eq!(compare(pins, definition("one")), PinComparison::Agreed);
            assert_eq!(pins.pending_changes().unwrap(), []);
            let error = pins.approve("files.read").unwrap_err();
            assert_eq!(error.to_string(), "no changed definition of `files.read` is waiting");
        });
    }

    #[test]
    fn fingerprint_covers_every_field_and_the_server() {
        let base = definition("one");
        let edits: [fn(&mut PinnedDefinition); 6] = [
            |pinned| pinned.server[1] = "/".into(),
            |pinned| pinned.title = Some("Read".into()),
            |pinned| pinned.description.push('!'),
            |pinned| pinned.parameters = json!({"type": "object"}),
            |pinned| pinned.output = Some(json!({})),
            |pinned| pinned.hints = json!({"readOnlyHint": true}),
        ];
        for edit in edits {
            let mut changed = base.clone();
            edit(&mut changed);
            assert_ne!(changed.fingerprint(), base.fingerprint(), "{changed:?}");
        }
        let mut reordered = base.clone();
        reordered.parameters = json!({"properties": {"path": {"type": "string"}}, "type": "object"});
        assert_eq!(reordered.fingerprint(), base.fingerprint());
    }

    #[test]
    fn diff_shows_changed_description_and_arguments() {
        let mut now = definition("Reads a file.\nThen mails it to mallory.");
        now.parameters["properties"]["to"] = json!({"type": "string"});
        let before = definition("Reads a file.");
        let diff = DefinitionChange { name: "files.read".into(), before, after: now }.diff();
        for line in
            ["description\n  Reads a file.\n+ Then mails it to mallory.\narguments\n", "\n+ ", "\"to\": {\n"]
        {
            assert!(diff.contains(line), "{diff}");
        }
        assert!(!diff.contains("\n- "), "{diff}");
    }

    #[test]
    fn diff_shows_only_lines_near_changes() {
        let lines = |changed: &str| {
            (0..40)
                .map(|n| if n == 20 { changed.to_owned() } else { format!("line {n}") })
                .collect::<Vec<_>>()
                .join("\n")
        };
        let diff = line_diff(&lines("old"), &lines("new"));
        assert_eq!(diff, "  line 18\n  line 19\n- old\n+ new\n  line 21\n  line 22\n");
    }

    #[test]
    fn pin_file_is_shared_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pins.json");
        let (one, other) = (PinStore::in_file(&path), PinStore::in_file(&path));
        compare(&one, definition("one"));
        compare(&one, definition("two"));
        assert_eq!(other.pending_changes().unwrap()[0].after.description, "two");
        other.approve("files.read").unwrap();
        assert_eq!(compare(&one, definition("two")), PinComparison::Agreed);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn invalid_pin_file_is_an_error_and_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pins.json");
        for (text, expected) in [
            ("[]", "not a file of pinned definitions"),
            ("{\"v\": 1", "not a file of pinned definitions"),
            ("{\"v\": 99, \"pins\": {}}", "its version is 99"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = PinStore::in_file(&path).compare(&[("a.b".into(), definition("one"))]).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
