//! Stores of commands that found the store in use. Their content is moved into the store when it is free: by
//! the command at its end, by the process that had it open at its end, or by the next one that opens it.

use crate::exit::CliFailure;
use crate::export;
use crate::messages;
use crate::serve::read_only_store::ReadOnlyStore;
use crate::serve::store::{OpenStore, ServerStorage, blobs_in, data_folder};
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use throughline_server::{CatalogMediaStore, ImportTarget, LOCAL_USER, import_conversation};
use throughline_store::{SqliteSettings, SqliteStore, StoreError};

/// Folder of these stores in the data folder.
const FOLDER: &str = "pending";
/// The database of each.
const FILE: &str = "turns.db";
/// Most stores that are moved at a time; the rest waits for the next opening.
const STORES_MAX: usize = 100;
/// Most conversations of one of them. A chat that begins more has the latest moved.
const CONVERSATIONS_MAX: u32 = 200;

/// A store of this process alone.
///
/// # Errors
/// The data folder cannot be written.
pub(crate) async fn open() -> Result<ServerStorage, CliFailure> {
    let name = format!("{}-{}", Timestamp::now().as_nanosecond(), std::process::id());
    let folder = data_folder()?.join(FOLDER).join(name);
    let made = std::fs::create_dir_all(&folder);
    made.map_err(|error| messages::bad_data_folder(&folder, &error))?;
    let path = folder.join(FILE);
    let store = open_file(&path).await.map_err(|error| messages::no_store(&error))?;
    Ok(ServerStorage { store: OpenStore::File(store, path), folder })
}

async fn open_file(path: &Path) -> Result<SqliteStore, throughline_store::SqliteOpenError> {
    SqliteStore::open(path, SqliteSettings { ballast_bytes: 0, ..SqliteSettings::default() }).await
}

/// Moves what other commands have left into this store. What cannot be moved stays for the next time.
pub(crate) async fn move_into(storage: &ServerStorage, inline_max: u32) {
    let Ok(folder) = data_folder() else { return };
    let Ok(entries) = std::fs::read_dir(folder.join(FOLDER)) else { return };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    for pending in folders.into_iter().take(STORES_MAX) {
        // One that is in use belongs to a command that still runs. Opening it recovers what a crash has left.
        let Ok(store) = open_file(&pending.join(FILE)).await else { continue };
        store.close().await;
        if move_store(&pending, storage, inline_max).await.is_ok() {
            // If it stayed it would be moved once more: better twice than never.
            let _ = std::fs::remove_dir_all(&pending);
        }
    }
}

async fn move_store(pending: &Path, storage: &ServerStorage, inline_max: u32) -> Result<(), StoreError> {
    let opened = ReadOnlyStore::open(Some(&pending.join(FILE))).await;
    let reader = opened.map_err(|failure| StoreError::failed(failure.what))?;
    let media = CatalogMediaStore::new(storage.catalog(), storage.blobs_unlocked(), inline_max.into());
    let (log, catalog) = (storage.log(), storage.catalog());
    let mut conversations = reader.latest_conversations(CONVERSATIONS_MAX).await?;
    conversations.reverse();
    for (id, _) in conversations {
        let Some(row) = reader.conversation(&id).await? else { continue };
        let portable = export::portable(&reader, row, &blobs_in(pending)).await?;
        let target = ImportTarget { log: &*log, catalog: &*catalog, media: &media };
        let now = Timestamp::now().as_millisecond();
        import_conversation(target, LOCAL_USER, portable, now).await.map_err(StoreError::failed)?;
    }
    Ok(())
}
