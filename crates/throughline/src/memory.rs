//! What people have said should always hold: `always` answers, kept beyond the turn and the program. R: A2
//!
//! Never decides anything: which call an answer fits is [`engine::Remembered`](throughline_engine::Remembered)'s, bound
//! to the tool's definition. What holds for a conversation only lives with the [`Conversation`](crate::Conversation).

use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use throughline_engine::Remembered;

/// Version of the file's format.
const FORMAT: u32 = 1;
/// Largest file that is read, in bytes: what is larger was not written by us.
pub const MEMORY_FILE_BYTES_MAX: u64 = 16 << 20;
/// Most answers that are kept; one more takes the place of the oldest.
pub const REMEMBERED_MAX: usize = 1_000;

/// An answer that is kept, with the number by which it can be taken back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// Never used again, not even for another answer.
    pub number: u64,
    /// When it was given, in milliseconds since 1970.
    pub at_ms: i64,
    /// The answer, and what it is bound to.
    pub answer: Remembered,
}

/// Where answers are kept that hold for ever. Its calls may block their thread for a file.
pub trait Memory: Send + Sync + fmt::Debug {
    /// All of them, oldest first.
    ///
    /// # Errors
    /// They cannot be read. A turn is not begun then: a denial among them might be forgotten.
    fn all(&self) -> Result<Vec<Kept>, MemoryError>;

    /// Keeps one more. One that says the same about the same is replaced.
    ///
    /// # Errors
    /// It cannot be written.
    fn keep(&self, answer: Remembered, at_ms: i64) -> Result<(), MemoryError>;

    /// Takes one back; `None` = there is none of that number.
    ///
    /// # Errors
    /// It cannot be written.
    fn forget(&self, number: u64) -> Result<Option<Kept>, MemoryError>;
}

/// Why answers cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The file system says no.
    #[error("remembered answers cannot be kept in {}: {why}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// It is no such file, or one of a later version.
    #[error("{} is not a file of remembered answers: {why}; mend it, or remove it to be asked again", path.display())]
    Format {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    v: u32,
    next: u64,
    answers: Vec<Kept>,
}

impl Default for Document {
    fn default() -> Self {
        Self { v: FORMAT, next: 1, answers: Vec::new() }
    }
}

impl Document {
    fn keep(&mut self, answer: Remembered, at_ms: i64) {
        // What was said about the same calls before holds no more, whatever it was.
        self.answers.retain(|kept| !is_about_the_same(&kept.answer, &answer));
        let surplus = (self.answers.len() + 1).saturating_sub(REMEMBERED_MAX);
        self.answers.drain(..surplus);
        self.answers.push(Kept { number: self.next, at_ms, answer });
        self.next += 1;
    }

    fn forget(&mut self, number: u64) -> Option<Kept> {
        let at = self.answers.iter().position(|kept| kept.number == number)?;
        Some(self.answers.remove(at))
    }
}

fn is_about_the_same(a: &Remembered, b: &Remembered) -> bool {
    (&a.tool, &a.fingerprint, &a.arguments_hash, &a.arguments)
        == (&b.tool, &b.fingerprint, &b.arguments_hash, &b.arguments)
}

/// Answers that end with the program.
#[derive(Debug, Default)]
pub struct InMemory {
    document: Mutex<Document>,
}

impl InMemory {
    fn document(&self) -> MutexGuard<'_, Document> {
        // Changed by single steps, each of which leaves a whole document.
        self.document.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory for InMemory {
    fn all(&self) -> Result<Vec<Kept>, MemoryError> {
        Ok(self.document().answers.clone())
    }

    fn keep(&self, answer: Remembered, at_ms: i64) -> Result<(), MemoryError> {
        self.document().keep(answer, at_ms);
        Ok(())
    }

    fn forget(&self, number: u64) -> Result<Option<Kept>, MemoryError> {
        Ok(self.document().forget(number))
    }
}

/// Answers in a file, for its owner's eyes only, that several programs may share: every change is read, made and written
/// under a lock, and the file replaced whole.
#[derive(Clone, Debug)]
pub struct InFile {
    path: PathBuf,
}

impl InFile {
    /// In this file. It is made, with its folder, when something is first kept.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    fn change<T>(&self, edit: impl FnOnce(&mut Document) -> T) -> Result<T, MemoryError> {
        let failed = |error: io::Error| self.failed(&error);
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        // Let go by the kernel if this program dies.
        let lock =
            private().create(true).truncate(false).open(self.path.with_extension("lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let before = self.read()?;
        let mut document = before.clone();
        let answer = edit(&mut document);
        if document != before {
            replace(&self.path, &document).map_err(failed)?;
        }
        Ok(answer)
    }

    fn read(&self) -> Result<Document, MemoryError> {
        let wrong = |why: String| MemoryError::Format { path: self.path.clone(), why };
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Document::default()),
            Err(error) => return Err(self.failed(&error)),
        };
        let mut text = String::new();
        file.take(MEMORY_FILE_BYTES_MAX + 1)
            .read_to_string(&mut text)
            .map_err(|error| self.failed(&error))?;
        if text.len() as u64 > MEMORY_FILE_BYTES_MAX {
            return Err(wrong("it is too large".to_owned()));
        }
        let document: Document = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        match document.v {
            FORMAT => Ok(document),
            v => Err(wrong(format!("its version is {v}, and this program knows {FORMAT}"))),
        }
    }

    fn failed(&self, error: &io::Error) -> MemoryError {
        MemoryError::File { path: self.path.clone(), why: error.to_string() }
    }
}

impl Memory for InFile {
    fn all(&self) -> Result<Vec<Kept>, MemoryError> {
        // The file is replaced whole, so what is read is whole without the lock.
        Ok(self.read()?.answers)
    }

    fn keep(&self, answer: Remembered, at_ms: i64) -> Result<(), MemoryError> {
        self.change(|document| document.keep(answer, at_ms))
    }

    fn forget(&self, number: u64) -> Result<Option<Kept>, MemoryError> {
        self.change(|document| document.forget(number))
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Written beside and moved into place: a crash leaves the old file or the new one.
fn replace(path: &Path, document: &Document) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = private().create(true).truncate(true).open(&beside)?;
    serde_json::to_writer_pretty(&mut file, document)?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    std::fs::rename(&beside, path)
}
