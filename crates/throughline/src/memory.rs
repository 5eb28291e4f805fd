//! What people have said should always hold: `always` answers, kept beyond the turn and the program. R: A2
//!
//! Never decides anything: which call an answer fits is [`engine::Remembered`](throughline_engine::Remembered)'s, bound
//! to the tool's definition. What holds for a conversation only lives with the [`Conversation`](crate::Conversation).

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use throughline_engine::Remembered;
use throughline_tools::private_file::{PrivateFile, PrivateFileError, Versioned};

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

    /// The same where nothing has to be waited for, so that a turn can begin at once; `None` = ask for [`all`](Self::all).
    fn at_hand(&self) -> Option<Vec<Kept>> {
        None
    }

    /// What is kept was changed past this memory: what it has at hand counts no more.
    fn changed_elsewhere(&self) {}

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

/// Whose memory: in a program with several users nobody's answer may hold for another. R: A2, R3
pub trait Memories: Send + Sync + fmt::Debug {
    /// The memory of a user; `None` = of a program that knows no users.
    fn of(&self, user: Option<&str>) -> Arc<dyn Memory>;
}

/// One memory, whoever asks: for programs with one user.
#[derive(Debug)]
pub(crate) struct Everybodys(pub Arc<dyn Memory>);

impl Memories for Everybodys {
    fn of(&self, _user: Option<&str>) -> Arc<dyn Memory> {
        self.0.clone()
    }
}

/// A memory for each user; all end with the program.
#[derive(Debug, Default)]
pub struct InMemoryByUser {
    users: Mutex<HashMap<Option<String>, Arc<InMemory>>>,
}

impl Memories for InMemoryByUser {
    fn of(&self, user: Option<&str>) -> Arc<dyn Memory> {
        // An entry is made whole or not at all.
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.entry(user.map(str::to_owned)).or_default().clone()
    }
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
    /// They are not in a file, and what they are in says no.
    #[error("remembered answers cannot be kept: {why}")]
    Store {
        /// Why.
        why: String,
    },
    /// One of them cannot be read. It may be a denial, so nothing is decided without it.
    #[error("the remembered answer {number} cannot be read: {why}")]
    Unreadable {
        /// Which.
        number: u64,
        /// What is wrong.
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
        Self { v: Self::FORMAT, next: 1, answers: Vec::new() }
    }
}

impl Versioned for Document {
    const FORMAT: u32 = 1;

    fn version(&self) -> u32 {
        self.v
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
    file: PrivateFile,
}

impl InFile {
    /// In this file. It is made, with its folder, when something is first kept.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { file: PrivateFile::at(path, MEMORY_FILE_BYTES_MAX) }
    }

    fn failed(&self, error: PrivateFileError) -> MemoryError {
        let path = self.file.path().to_owned();
        match error {
            PrivateFileError::File(error) => MemoryError::File { path, why: error.to_string() },
            PrivateFileError::Format(why) => MemoryError::Format { path, why },
        }
    }
}

impl Memory for InFile {
    fn all(&self) -> Result<Vec<Kept>, MemoryError> {
        let document: Document = self.file.read().map_err(|error| self.failed(error))?;
        Ok(document.answers)
    }

    fn keep(&self, answer: Remembered, at_ms: i64) -> Result<(), MemoryError> {
        let keep = |document: &mut Document| document.keep(answer, at_ms);
        self.file.change(keep).map_err(|error| self.failed(error))
    }

    fn forget(&self, number: u64) -> Result<Option<Kept>, MemoryError> {
        let forget = |document: &mut Document| document.forget(number);
        self.file.change(forget).map_err(|error| self.failed(error))
    }
}
