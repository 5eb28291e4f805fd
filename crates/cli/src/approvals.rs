//! Permanent approvals of the user of this machine: in the store, also while another process has it open, so
//! that the command, the API and the page show and revoke the same ones.
//!
//! Earlier releases stored them in a file. It counts as long as it exists, and receives answers where no
//! store can be created. Its content moves into the store of the data folder with the first program that can
//! do so.

use crate::data_dir;
use crate::exit::CliFailure;
use crate::messages;
use crate::serve::store::{self, OpenStoreError, ServerStorage};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use throughline::approval_store::{
    ApprovalStore, ApprovalStoreError, ApprovalStores, FileApprovalStore, InMemoryApprovalStore,
    STORED_APPROVALS_MAX, StoredApproval,
};
use throughline::config::{StoreBackend, StoreSettings};
use throughline_engine::{ApprovalDecision, RememberedDecision};
use throughline_server::{CatalogApprovals, LOCAL_USER};
use throughline_store::{PostgresOpenError, PostgresReader, SqliteEditor, SqliteFileState};
use tokio::runtime::Handle;

/// Numbers of answers in the file begin here, so that none of them is one of the store.
const FILE_NUMBERS: u64 = 1 << 32;
/// Number of attempts, and the pause between them, for a store that another process is creating.
const MAKING_TRIES: u32 = 20;
const MAKING_PAUSE: Duration = Duration::from_millis(50);

/// The store of these settings; in memory for this run if there is no data folder. Must be called inside a
/// runtime.
pub(crate) fn permanent(settings: &StoreSettings) -> Arc<dyn ApprovalStore> {
    if store::file_of(settings).is_none() && !store::is_database(settings) {
        return Arc::new(InMemoryApprovalStore::default());
    }
    Arc::new(PermanentApprovals { settings: settings.clone(), runtime: Handle::current() })
}

/// All permanent approvals.
///
/// # Errors
/// They cannot be read. A denial may be among them.
pub(crate) async fn all(store: &Arc<dyn ApprovalStore>) -> Result<Vec<StoredApproval>, CliFailure> {
    blocking(store, |store| store.all()).await
}

/// All permanent approvals, without their numbers.
///
/// # Errors
/// As for [`all`].
pub(crate) async fn decisions(settings: &StoreSettings) -> Result<Vec<RememberedDecision>, CliFailure> {
    let stored = all(&permanent(settings)).await?;
    Ok(stored.into_iter().map(|stored| stored.answer).collect())
}

/// Revokes an approval; `None` if none has this number.
///
/// # Errors
/// The store cannot be read or written.
pub(crate) async fn remove(
    store: &Arc<dyn ApprovalStore>,
    number: u64,
) -> Result<Option<StoredApproval>, CliFailure> {
    blocking(store, move |store| store.remove(number)).await
}

/// Moves the file of earlier releases into the store of a server.
///
/// # Errors
/// The file cannot be read, or the store not written. The file stays.
pub(crate) async fn adopt_file(settings: &StoreSettings, storage: &ServerStorage) -> Result<(), CliFailure> {
    let Some(file) = adoptable_file(settings) else { return Ok(()) };
    let store = CatalogApprovals::new(storage.catalog()).for_user(Some(LOCAL_USER));
    blocking(&store, move |store| adopt(&file, store)).await
}

/// Stores block their thread.
async fn blocking<T: Send + 'static>(
    store: &Arc<dyn ApprovalStore>,
    run: impl FnOnce(&dyn ApprovalStore) -> Result<T, ApprovalStoreError> + Send + 'static,
) -> Result<T, CliFailure> {
    let store = store.clone();
    let ended = tokio::task::spawn_blocking(move || run(&*store)).await;
    let ended = ended.unwrap_or_else(|panic| Err(ApprovalStoreError::Store { why: panic.to_string() }));
    ended.map_err(|error| messages::memory(&error))
}

/// The file of earlier releases, if it exists or its existence cannot be determined.
fn former_file() -> Option<FormerFile> {
    let path = data_dir::folder()?.join(data_dir::REMEMBERED_FILE);
    path.try_exists().unwrap_or(true).then(|| FormerFile(FileApprovalStore::at(path)))
}

/// The file of earlier releases, if it belongs to this store: it was shared by all stores, and a store
/// outside the data folder may be temporary.
fn adoptable_file(settings: &StoreSettings) -> Option<FormerFile> {
    former_file().filter(|_| settings.backend == StoreBackend::DataFolder)
}

struct FormerFile(FileApprovalStore);

impl FormerFile {
    /// Approvals of the file, with numbers that do not occur in the store.
    fn all(&self) -> Result<Vec<StoredApproval>, ApprovalStoreError> {
        let mut stored = self.0.all()?;
        stored.iter_mut().for_each(|stored| stored.number += FILE_NUMBERS);
        Ok(stored)
    }
}

/// Moves the approvals of the file. An entry of the store about the same calls stays if it is newer, or a
/// denial.
fn adopt(file: &FormerFile, store: &dyn ApprovalStore) -> Result<(), ApprovalStoreError> {
    let stored = store.all()?;
    let is_missing = |former: &StoredApproval| {
        !stored.iter().any(|stored| {
            stored.answer.is_about_same_calls(&former.answer)
                && (stored.answer.decision == ApprovalDecision::Deny || stored.at_ms >= former.at_ms)
        })
    };
    let moved: Vec<StoredApproval> = file.all()?.into_iter().filter(is_missing).collect();
    // The oldest go first, as they would have.
    let surplus = (stored.len() + moved.len()).saturating_sub(STORED_APPROVALS_MAX).min(moved.len());
    for StoredApproval { at_ms, answer, .. } in moved.into_iter().skip(surplus) {
        store.save(answer, at_ms)?;
    }
    file.0.delete()
}

/// Opened for each access, so that a store that was replaced in between is not used.
struct PermanentApprovals {
    settings: StoreSettings,
    runtime: Handle,
}

impl fmt::Debug for PermanentApprovals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PermanentApprovals")
    }
}

/// Purpose of an access to the store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StoreAccess {
    Read,
    /// A missing store is not created.
    Revoke,
    Add,
}

impl PermanentApprovals {
    /// Calls this with the answers in the store; `None` = the store does not exist yet.
    fn in_store<T>(
        &self,
        access: StoreAccess,
        run: impl FnOnce(&dyn ApprovalStore) -> Result<T, ApprovalStoreError>,
    ) -> Result<Option<T>, ApprovalStoreError> {
        let _inside = self.runtime.enter();
        let of_catalog = |catalog| CatalogApprovals::new(catalog).for_user(Some(LOCAL_USER));
        if let Some(file) = store::file_of(&self.settings) {
            return match self.editor(&file, access)? {
                None => Ok(None),
                Some(editor) => run(&*of_catalog(Arc::new(editor))).map(Some),
            };
        }
        if access == StoreAccess::Read {
            return match self.runtime.block_on(database_reader(&self.settings))? {
                None => Ok(None),
                Some(reader) => run(&*of_catalog(Arc::new(reader))).map(Some),
            };
        }
        let storage = self.runtime.block_on(ServerStorage::open(&self.settings)).map_err(open_error)?;
        let result = run(&*of_catalog(storage.catalog()));
        self.runtime.block_on(storage.store.close());
        result.map(Some)
    }

    /// Opens the store's file, also while another process has it open. A store of an earlier release is
    /// upgraded.
    fn editor(&self, file: &Path, access: StoreAccess) -> Result<Option<SqliteEditor>, ApprovalStoreError> {
        for _ in 0..MAKING_TRIES {
            match SqliteEditor::open(file).map_err(store_error)? {
                SqliteFileState::Ready(editor) => return Ok(Some(editor)),
                SqliteFileState::Absent if access != StoreAccess::Add => return Ok(None),
                SqliteFileState::Absent | SqliteFileState::Older => {}
            }
            match self.runtime.block_on(ServerStorage::open(&self.settings)) {
                Ok(storage) => self.runtime.block_on(storage.store.close()),
                Err(OpenStoreError::InUse(_)) => std::thread::sleep(MAKING_PAUSE),
                Err(error) => return Err(open_error(error)),
            }
        }
        Err(store_error(messages::store_not_ready(file)))
    }
}

impl ApprovalStore for PermanentApprovals {
    fn all(&self) -> Result<Vec<StoredApproval>, ApprovalStoreError> {
        if let Some(file) = adoptable_file(&self.settings) {
            // If it cannot be moved, the file still counts.
            let _ = self.in_store(StoreAccess::Add, |store| adopt(&file, store));
        }
        // In this order: an entry that another process moves meanwhile is read twice, and never missed.
        let mut all = former_file().map_or(Ok(Vec::new()), |file| file.all())?;
        all.extend(self.in_store(StoreAccess::Read, |store| store.all())?.unwrap_or_default());
        Ok(all)
    }

    fn save(&self, answer: RememberedDecision, at_ms: i64) -> Result<(), ApprovalStoreError> {
        let stored = self.in_store(StoreAccess::Add, |store| store.save(answer.clone(), at_ms));
        let Err(error) = stored else { return Ok(()) };
        // On a network file system the store cannot be opened, and the answer goes to the file.
        let folder = data_dir::folder().ok_or_else(|| error.clone())?;
        let file = FileApprovalStore::at(folder.join(data_dir::REMEMBERED_FILE));
        file.save(answer, at_ms).map_err(|_| error)
    }

    fn remove(&self, number: u64) -> Result<Option<StoredApproval>, ApprovalStoreError> {
        if let Some(in_file) = number.checked_sub(FILE_NUMBERS) {
            let removed = former_file().map_or(Ok(None), |file| file.0.remove(in_file))?;
            return Ok(removed.map(|removed| StoredApproval { number, ..removed }));
        }
        self.in_store(StoreAccess::Revoke, |store| store.remove(number)).map(Option::flatten)
    }
}

/// `None` = the database has no store yet.
async fn database_reader(settings: &StoreSettings) -> Result<Option<PostgresReader>, ApprovalStoreError> {
    let StoreBackend::Postgres(url) = &settings.backend else { return Ok(None) };
    match PostgresReader::open(url).await {
        Ok(reader) => Ok(Some(reader)),
        Err(PostgresOpenError::NoStore) => Ok(None),
        Err(error) => Err(store_error(messages::no_database(&store::without_secrets(url), &error))),
    }
}

fn open_error(error: OpenStoreError) -> ApprovalStoreError {
    store_error(CliFailure::from(error))
}

fn store_error(error: impl fmt::Display) -> ApprovalStoreError {
    ApprovalStoreError::Store { why: error.to_string() }
}
