//! A text in the person's own editor: `$VISUAL`, else `$EDITOR`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;

/// The program with its own arguments; `None` if none is named.
pub(crate) fn editor_command() -> Option<Vec<String>> {
    let named = ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok());
    split_words(&named?)
}

/// Splits a command such as `code --wait` at spaces, without a shell. An editor whose path contains spaces
/// needs a wrapper, as with `git`.
fn split_words(text: &str) -> Option<Vec<String>> {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    (!words.is_empty()).then_some(words)
}

/// Opens the text in the editor and waits until it is closed.
///
/// # Errors
/// The file cannot be written or read, or the program fails.
pub(crate) fn edit(program: &[String], text: &str) -> io::Result<String> {
    let file = TempDraft::with(text)?;
    let [name, arguments @ ..] = program else { return Err(io::Error::other("no editor")) };
    let status = Command::new(name)
        .args(arguments)
        .arg(&file.path)
        .status()
        .map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
    if !status.success() {
        return Err(io::Error::other(format!("{name}: {status}")));
    }
    fs::read_to_string(&file.path)
}

/// A private temporary file, deleted when dropped.
struct TempDraft {
    path: PathBuf,
}

impl TempDraft {
    fn with(text: &str) -> io::Result<Self> {
        let process = std::process::id();
        // An existing name is not used: `create_new` never follows links.
        for attempt in 0..64 {
            let path = std::env::temp_dir().join(format!("throughline-{process}-{attempt}.json"));
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            match options.open(&path) {
                Ok(mut file) => {
                    let draft = Self { path };
                    file.write_all(text.as_bytes())?;
                    file.write_all(b"\n")?;
                    return Ok(draft);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }
}

impl Drop for TempDraft {
    fn drop(&mut self) {
        // A temporary folder is emptied by others, too.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn external_editor_output_is_used_unless_it_fails() {
        let sed: Vec<String> = ["sed", "-i", "s/Paris/Oslo/"].map(str::to_owned).to_vec();
        assert_eq!(edit(&sed, "{\"city\": \"Paris\"}").unwrap().trim(), "{\"city\": \"Oslo\"}");
        let error = edit(&["throughline-no-such-editor".to_owned()], "x").unwrap_err();
        assert!(error.to_string().starts_with("throughline-no-such-editor: "), "{error}");
        assert!(edit(&["false".to_owned()], "x").is_err(), "what a failed editor leaves is not taken");
        assert_eq!(split_words(" code  --wait "), Some(vec!["code".into(), "--wait".into()]));
        assert_eq!(split_words("  "), None);
    }
}
