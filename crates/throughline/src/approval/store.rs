//! Permanent approvals: `always` answers, stored beyond the turn and the program.
//!
//! Never decides anything: matching calls is the task of
//! [`engine::RememberedDecision`](throughline_engine::RememberedDecision), which is bound to the tool's definition.
//! Decisions that apply to one conversation live with the [`Conversation`](crate::Conversation).

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use throughline_engine::RememberedDecision;
use throughline_tools::private_file::{PrivateFile, PrivateFileError, VersionedDocument};

/// Largest file that is read, in bytes: a larger one was not written by this program.
pub const APPROVALS_FILE_BYTES_MAX: u64 = 16 << 20;
/// Largest number of stored approvals; one more replaces the oldest.
pub const STORED_APPROVALS_MAX: usize = 1_000;

/// A stored approval, with the number by which it can be revoked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredApproval {
    /// Never used again, not even for another answer.
    pub number: u64,
    /// Time of the answer, in milliseconds since 1970.
    pub at_ms: i64,
    /// The answer, with the call that it applies to.
    pub answer: RememberedDecision,
}

/// Store of permanent approvals. Its methods may block their thread on a file.
pub trait ApprovalStore: Send + Sync + fmt::Debug {
    /// Returns all stored approvals, oldest first.
    ///
    /// # Errors
    /// They cannot be read. The turn does not start then, since a stored denial might be missed.
    fn all(&self) -> Result<Vec<StoredApproval>, ApprovalStoreError>;

    /// Returns all approvals if that needs no waiting, so that a turn can start immediately; `None` = call
    /// [`all`](Self::all).
    fn cached(&self) -> Option<Vec<StoredApproval>> {
        None
    }

    /// Discards cached data: the store was changed by another program.
    fn invalidate(&self) {}

    /// Stores an approval. It replaces one about the same calls.
    ///
    /// # Errors
    /// It cannot be written.
    fn save(&self, answer: RememberedDecision, at_ms: i64) -> Result<(), ApprovalStoreError>;

    /// Removes the approval of this number; `None` if none has it.
    ///
    /// # Errors
    /// The change cannot be written.
    fn remove(&self, number: u64) -> Result<Option<StoredApproval>, ApprovalStoreError>;
}

/// The stores of a program with several users: an approval never applies to another user.
pub trait ApprovalStores: Send + Sync + fmt::Debug {
    /// The store of a user; `None` = of a program without users.
    fn for_user(&self, user: Option<&str>) -> Arc<dyn ApprovalStore>;
}

/// One store for all users: for programs with a single user.
#[derive(Debug)]
pub(crate) struct SharedApprovalStore(pub Arc<dyn ApprovalStore>);

impl ApprovalStores for SharedApprovalStore {
    fn for_user(&self, _user: Option<&str>) -> Arc<dyn ApprovalStore> {
        self.0.clone()
    }
}

/// A store for each user in memory; all end with the program.
#[derive(Debug, Default)]
pub struct InMemoryApprovalStores {
    users: Mutex<HashMap<Option<String>, Arc<InMemoryApprovalStore>>>,
}

impl ApprovalStores for InMemoryApprovalStores {
    fn for_user(&self, user: Option<&str>) -> Arc<dyn ApprovalStore> {
        // An entry is made whole or not at all.
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.entry(user.map(str::to_owned)).or_default().clone()
    }
}

/// Reasons why approvals cannot be read or stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApprovalStoreError {
    /// The file cannot be read or written.
    #[error("cannot store remembered approvals in {}: {why}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The operating system's error.
        why: String,
    },
    /// A store other than a file failed.
    #[error("cannot store remembered approvals: {why}")]
    Store {
        /// The store's error.
        why: String,
    },
    /// An entry cannot be read. It may be a denial, so nothing is decided without it.
    #[error("cannot read remembered answer {number}: {why}")]
    Unreadable {
        /// The number that is not there.
        number: u64,
        /// The mistake.
        why: String,
    },
    /// The file has another format, or the format of a later version.
    #[error("{} is not a file of remembered approvals: {why}; repair it, or remove it to be asked \
     again", path.display())]
    Format {
        /// Path of the file.
        path: PathBuf,
        /// The mistake.
        why: String,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovalsDocument {
    v: u32,
    next: u64,
    answers: Vec<StoredApproval>,
}

impl Default for ApprovalsDocument {
    fn default() -> Self {
        Self { v: Self::FORMAT_VERSION, next: 1, answers: Vec::new() }
    }
}

impl VersionedDocument for ApprovalsDocument {
    const FORMAT_VERSION: u32 = 1;

    fn version(&self) -> u32 {
        self.v
    }
}

impl ApprovalsDocument {
    fn insert(&mut self, answer: RememberedDecision, at_ms: i64) {
        // A new decision replaces every earlier one about the same calls.
        self.answers.retain(|stored| !stored.answer.is_about_same_calls(&answer));
        let surplus = (self.answers.len() + 1).saturating_sub(STORED_APPROVALS_MAX);
        self.answers.drain(..surplus);
        self.answers.push(StoredApproval { number: self.next, at_ms, answer });
        self.next += 1;
    }

    fn remove(&mut self, number: u64) -> Option<StoredApproval> {
        let at = self.answers.iter().position(|stored| stored.number == number)?;
        Some(self.answers.remove(at))
    }
}

/// Answers that end with the program.
#[derive(Debug, Default)]
pub struct InMemoryApprovalStore {
    document: Mutex<ApprovalsDocument>,
}

impl InMemoryApprovalStore {
    fn document(&self) -> MutexGuard<'_, ApprovalsDocument> {
        // Changed by single steps, each of which leaves a whole document.
        self.document.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ApprovalStore for InMemoryApprovalStore {
    fn all(&self) -> Result<Vec<StoredApproval>, ApprovalStoreError> {
        Ok(self.document().answers.clone())
    }

    fn save(&self, answer: RememberedDecision, at_ms: i64) -> Result<(), ApprovalStoreError> {
        self.document().insert(answer, at_ms);
        Ok(())
    }

    fn remove(&self, number: u64) -> Result<Option<StoredApproval>, ApprovalStoreError> {
        Ok(self.document().remove(number))
    }
}

/// Answers in a file, for its owner's eyes only, that several programs may share: every change is read, made and written
/// under a lock, and the file replaced whole.
///
/// ```
/// use std::sync::Arc;
/// use throughline::Throughline;
/// use throughline::approval_store::FileApprovalStore;
///
/// let builder = Throughline::builder().approval_store(Arc::new(FileApprovalStore::at("approvals.json")));
/// ```
#[derive(Clone, Debug)]
pub struct FileApprovalStore {
    file: PrivateFile,
}

impl FileApprovalStore {
    /// A store in this file, which is created with its folder when the first approval is stored.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { file: PrivateFile::at(path, APPROVALS_FILE_BYTES_MAX) }
    }

    /// Removes the file, after its answers have moved to another store.
    ///
    /// # Errors
    /// The file cannot be removed. A missing file counts as removed.
    pub fn delete(&self) -> Result<(), ApprovalStoreError> {
        match std::fs::remove_file(self.file.path()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(self.file_error(PrivateFileError::File(error)))
            }
            _ => Ok(()),
        }
    }

    fn file_error(&self, error: PrivateFileError) -> ApprovalStoreError {
        let path = self.file.path().to_owned();
        match error {
            PrivateFileError::File(error) => ApprovalStoreError::File { path, why: error.to_string() },
            PrivateFileError::Format(why) => ApprovalStoreError::Format { path, why },
        }
    }
}

impl ApprovalStore for FileApprovalStore {
    fn all(&self) -> Result<Vec<StoredApproval>, ApprovalStoreError> {
        let document: ApprovalsDocument = self.file.read().map_err(|error| self.file_error(error))?;
        Ok(document.answers)
    }

    fn save(&self, answer: RememberedDecision, at_ms: i64) -> Result<(), ApprovalStoreError> {
        let insert = |document: &mut ApprovalsDocument| document.insert(answer, at_ms);
        self.file.update(insert).map_err(|error| self.file_error(error))
    }

    fn remove(&self, number: u64) -> Result<Option<StoredApproval>, ApprovalStoreError> {
        let remove = |document: &mut ApprovalsDocument| document.remove(number);
        self.file.update(remove).map_err(|error| self.file_error(error))
    }
}
