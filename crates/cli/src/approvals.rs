//! Answers to approvals that always hold, of the person at this machine: in the store, whoever has it open, so that the
//! command, the API and the page show and revoke the same ones.

use crate::data_dir;
use crate::exit::CliFailure;
use crate::messages;
use crate::serve::store::{self, ServerStorage};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use throughline::approval_store::{
    ApprovalStore, ApprovalStoreError, ApprovalStores, FileApprovalStore, InMemoryApprovalStore,
    StoredApproval,
};
use throughline::config::StoreSettings;
use throughline_engine::RememberedDecision;
use throughline_server::{CatalogApprovals, LOCAL_USER};
use throughline_store::{Catalog, SqliteEditor};
use tokio::runtime::Handle;

/// The store of these settings; for this run only where there is no folder for one. Made inside a runtime.
pub(crate) fn permanent(settings: &StoreSettings) -> Arc<dyn ApprovalStore> {
    if store::file_of(settings).is_none() && !store::is_database(settings) {
        return Arc::new(InMemoryApprovalStore::default());
    }
    Arc::new(PermanentApprovals {
        settings: settings.clone(),
        runtime: Handle::current(),
        opened: OnceLock::new(),
    })
}

/// All of them.
///
/// # Errors
/// They cannot be read. A denial may be among them.
pub(crate) async fn all(store: &Arc<dyn ApprovalStore>) -> Result<Vec<StoredApproval>, CliFailure> {
    blocking(store, |store| store.all()).await
}

/// All of them, without their numbers.
///
/// # Errors
/// As those of [`all`].
pub(crate) async fn decisions(settings: &StoreSettings) -> Result<Vec<RememberedDecision>, CliFailure> {
    let stored = all(&permanent(settings)).await?;
    Ok(stored.into_iter().map(|stored| stored.answer).collect())
}

/// Revokes one; `None` = there is none of that number.
///
/// # Errors
/// The store cannot be read or written.
pub(crate) async fn remove(
    store: &Arc<dyn ApprovalStore>,
    number: u64,
) -> Result<Option<StoredApproval>, CliFailure> {
    blocking(store, move |store| store.remove(number)).await
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

/// Moves the file in which earlier releases had them into the store.
///
/// # Errors
/// The file cannot be read, or the store not written. The file stays.
pub(crate) async fn adopt_file(folder: &Path, catalog: Arc<dyn Catalog>) -> Result<(), CliFailure> {
    if !folder.join(data_dir::REMEMBERED_FILE).exists() {
        return Ok(());
    }
    let (folder, store) = (folder.to_owned(), of_catalog(catalog));
    blocking(&store, move |store| adopt(&folder, store)).await
}

fn adopt(folder: &Path, store: &dyn ApprovalStore) -> Result<(), ApprovalStoreError> {
    let path = folder.join(data_dir::REMEMBERED_FILE);
    for StoredApproval { at_ms, answer, .. } in FileApprovalStore::at(&path).all()? {
        store.save(answer, at_ms)?;
    }
    match std::fs::remove_file(&path) {
        // Another command was quicker.
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(ApprovalStoreError::File { path, why: error.to_string() })
        }
        _ => Ok(()),
    }
}

/// Inside a runtime.
fn of_catalog(catalog: Arc<dyn Catalog>) -> Arc<dyn ApprovalStore> {
    CatalogApprovals::new(catalog).for_user(Some(LOCAL_USER))
}

/// Opened when it is first needed, and made when there is first something to keep.
struct PermanentApprovals {
    settings: StoreSettings,
    runtime: Handle,
    opened: OnceLock<Arc<dyn ApprovalStore>>,
}

impl fmt::Debug for PermanentApprovals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PermanentApprovals")
    }
}

impl PermanentApprovals {
    /// `None` = there is no store yet.
    fn existing(&self) -> Result<Option<Arc<dyn ApprovalStore>>, ApprovalStoreError> {
        let former_file = || data_dir::folder().map(|folder| folder.join(data_dir::REMEMBERED_FILE));
        if self.opened.get().is_none()
            && store::is_absent(&self.settings)
            && !former_file().is_some_and(|file| file.exists())
        {
            return Ok(None);
        }
        self.open().map(Some)
    }

    fn open(&self) -> Result<Arc<dyn ApprovalStore>, ApprovalStoreError> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened.clone());
        }
        let opening = async { open_catalog(&self.settings).await.map(of_catalog) };
        let opened = self
            .runtime
            .block_on(opening)
            .map_err(|failure| ApprovalStoreError::Store { why: failure.to_string() })?;
        if let Some(folder) = data_dir::folder() {
            adopt(&folder, &*opened)?;
        }
        Ok(self.opened.get_or_init(|| opened).clone())
    }
}

impl ApprovalStore for PermanentApprovals {
    fn all(&self) -> Result<Vec<StoredApproval>, ApprovalStoreError> {
        self.existing()?.map_or(Ok(Vec::new()), |store| store.all())
    }

    fn save(&self, answer: RememberedDecision, at_ms: i64) -> Result<(), ApprovalStoreError> {
        self.open()?.save(answer, at_ms)
    }

    fn remove(&self, number: u64) -> Result<Option<StoredApproval>, ApprovalStoreError> {
        self.existing()?.map_or(Ok(None), |store| store.remove(number))
    }
}

/// The catalog, beside a server that may have it open.
async fn open_catalog(settings: &StoreSettings) -> Result<Arc<dyn Catalog>, CliFailure> {
    let Some(file) = store::file_of(settings) else {
        return Ok(ServerStorage::open(settings).await?.catalog());
    };
    if let Ok(editor) = SqliteEditor::open(&file) {
        return Ok(Arc::new(editor));
    }
    // It is not there yet, or of an earlier release: opened once, it is as it should be.
    ServerStorage::open(settings).await?.store.close().await;
    let editor = SqliteEditor::open(&file).map_err(|error| messages::no_store(&error))?;
    Ok(Arc::new(editor))
}
