//! Opening what a server keeps: the data folder, the store, the files.

use crate::args::ModelArgs;
use crate::data_dir;
use crate::exit::CliFailure;
use crate::messages;
use crate::setup;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use throughline::config::{DurabilityMode, STORE_FILE, StoreBackend, StoreSettings};
use throughline_server::BackupFn;
use throughline_store::BlobLimits;
#[cfg(feature = "postgres")]
use throughline_store::{
    BlobFolder, Catalog, CommitPolicy, Log, PostgresSettings, PostgresStore, SqliteOpenError, SqliteSettings,
    SqliteStore, StoreStats, SyncPolicy,
};

/// Stores of a server.
pub(crate) struct ServerStorage {
    pub(crate) store: OpenStore,
    pub(crate) folder: PathBuf,
}

/// The store that `[store] url` names.
#[derive(Clone)]
pub(crate) enum OpenStore {
    File(SqliteStore, PathBuf),
    /// PostgreSQL, with its URL without secrets.
    #[cfg(feature = "postgres")]
    Database(PostgresStore, String),
}

impl OpenStore {
    pub(crate) fn metrics(&self) -> StoreStats {
        match self {
            Self::File(store, _) => store.stats(),
            #[cfg(feature = "postgres")]
            Self::Database(store, _) => store.stats(),
        }
    }

    pub(crate) async fn close(&self) {
        match self {
            Self::File(store, _) => store.close().await,
            #[cfg(feature = "postgres")]
            Self::Database(store, _) => store.close().await,
        }
    }

    /// Location of the store, for people.
    pub(crate) fn location(&self) -> String {
        match self {
            Self::File(_, path) => path.display().to_string(),
            #[cfg(feature = "postgres")]
            Self::Database(_, shown) => shown.clone(),
        }
    }
}

/// Reason why the store cannot be opened.
pub(crate) enum OpenStoreError {
    /// Another server has it open.
    InUse(String),
    /// Any other error.
    Failed(CliFailure),
}

impl From<OpenStoreError> for CliFailure {
    fn from(error: OpenStoreError) -> Self {
        match error {
            OpenStoreError::InUse(why) => messages::no_store(&why),
            OpenStoreError::Failed(failure) => failure,
        }
    }
}

impl ServerStorage {
    pub(crate) async fn open(settings: &StoreSettings) -> Result<Self, OpenStoreError> {
        let folder = data_folder().map_err(OpenStoreError::Failed)?;
        let path = match &settings.backend {
            StoreBackend::DataFolder => folder.join(STORE_FILE),
            StoreBackend::File(path) => path.clone(),
            #[cfg(not(feature = "postgres"))]
            StoreBackend::Postgres(_) => return Err(OpenStoreError::Failed(messages::no_postgres())),
            #[cfg(feature = "postgres")]
            StoreBackend::Postgres(url) => {
                let store = open_database(url, settings).await.map_err(OpenStoreError::Failed)?;
                return Ok(Self { store: OpenStore::Database(store, without_secrets(url)), folder });
            }
        };
        let sqlite = SqliteSettings {
            sync: match settings.durability {
                DurabilityMode::ByEvent => SyncPolicy::ByClass,
                DurabilityMode::Everything => SyncPolicy::Always,
            },
            ..SqliteSettings::default()
        };
        #[cfg(feature = "bench")]
        let sqlite = super::bench::store(sqlite);
        match SqliteStore::open(&path, sqlite).await {
            Ok(store) => Ok(Self { store: OpenStore::File(store, path), folder }),
            Err(error @ SqliteOpenError::InUse { .. }) => Err(OpenStoreError::InUse(error.to_string())),
            Err(error) => Err(OpenStoreError::Failed(messages::no_store(&error))),
        }
    }

    pub(crate) fn log(&self) -> Arc<dyn Log> {
        match &self.store {
            OpenStore::File(store, _) => Arc::new(store.clone()),
            #[cfg(feature = "postgres")]
            OpenStore::Database(store, _) => Arc::new(store.clone()),
        }
    }

    pub(crate) fn catalog(&self) -> Arc<dyn Catalog> {
        match &self.store {
            OpenStore::File(store, _) => Arc::new(store.clone()),
            #[cfg(feature = "postgres")]
            OpenStore::Database(store, _) => Arc::new(store.clone()),
        }
    }

    /// Backup of a SQLite store; databases have their own tools.
    pub(crate) fn backup(&self) -> Option<BackupFn> {
        let store = match &self.store {
            OpenStore::File(store, _) => store.clone(),
            #[cfg(feature = "postgres")]
            OpenStore::Database(..) => return None,
        };
        Some(Arc::new(move |age| {
            let store = store.clone();
            Box::pin(async move { store.backup_if_older(age).await })
        }))
    }

    /// The blob folder without its lock, for commands that run while a server may have it open.
    pub(crate) fn blobs_unlocked(&self) -> BlobFolder {
        blobs_in(&self.folder)
    }

    pub(crate) async fn blobs(&self, upload_bytes_max: u64) -> Result<BlobFolder, CliFailure> {
        let limits = BlobLimits { file_bytes_max: upload_bytes_max };
        let folder = self.folder.join(data_dir::FILES_FOLDER);
        BlobFolder::open(&folder, limits).await.map_err(|error| messages::bad_data_folder(&folder, &error))
    }
}

/// The blob folder of a data folder, for commands that run while a server may have it open.
pub(crate) fn blobs_in(folder: &Path) -> BlobFolder {
    BlobFolder::attach(folder.join(data_dir::FILES_FOLDER), BlobLimits::default())
}

/// Location of a store, for commands that read it.
pub(crate) enum StoreLocation {
    File(PathBuf),
    #[cfg(feature = "postgres")]
    Database {
        url: String,
        /// URL without its password.
        shown: String,
    },
}

/// The store that is meant: the one that is named, else that of the configuration.
pub(crate) fn store_location(named: Option<&Path>) -> Result<StoreLocation, CliFailure> {
    let at = match named.map(|named| (named, named.to_str().unwrap_or_default())) {
        Some((_, url)) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
            StoreBackend::Postgres(url.to_owned())
        }
        Some((file, _)) => StoreBackend::File(file.to_owned()),
        None => {
            let config = std::env::var_os("THROUGHLINE_CONFIG").map(PathBuf::from);
            setup::load_settings_with(&ModelArgs { config, ..ModelArgs::default() }, None, None)?
                .store
                .backend
        }
    };
    Ok(match at {
        StoreBackend::DataFolder => {
            StoreLocation::File(data_dir::folder().ok_or_else(messages::no_data_folder)?.join(STORE_FILE))
        }
        StoreBackend::File(file) => StoreLocation::File(file),
        #[cfg(feature = "postgres")]
        StoreBackend::Postgres(url) => StoreLocation::Database { shown: without_secrets(&url), url },
        #[cfg(not(feature = "postgres"))]
        StoreBackend::Postgres(_) => return Err(messages::no_postgres()),
    })
}

#[cfg(feature = "postgres")]
async fn open_database(url: &str, settings: &StoreSettings) -> Result<PostgresStore, CliFailure> {
    let postgres = PostgresSettings {
        commit: match settings.durability {
            DurabilityMode::ByEvent => CommitPolicy::ByClass,
            DurabilityMode::Everything => CommitPolicy::Always,
        },
        ..PostgresSettings::default()
    };
    PostgresStore::open(url, postgres)
        .await
        .map_err(|error| messages::no_database(&without_secrets(url), &error))
}

/// True if the store was never created, so it is empty.
pub(crate) fn is_absent(settings: &StoreSettings) -> bool {
    !is_database(settings) && file_of(settings).is_none_or(|file| !file.exists())
}

/// True if the store is in a database and no file.
pub(crate) fn is_database(settings: &StoreSettings) -> bool {
    matches!(settings.backend, StoreBackend::Postgres(_))
}

/// The file of the store; `None` = it is in a database, or the data folder is unknown.
pub(crate) fn file_of(settings: &StoreSettings) -> Option<PathBuf> {
    match &settings.backend {
        StoreBackend::DataFolder => Some(data_dir::folder()?.join(STORE_FILE)),
        StoreBackend::File(path) => Some(path.clone()),
        StoreBackend::Postgres(_) => None,
    }
}

/// The database of these settings as it can be shown; `None` = the store is a file.
pub(crate) fn store_of(settings: &StoreSettings) -> Option<String> {
    match &settings.backend {
        StoreBackend::Postgres(url) => Some(without_secrets(url)),
        StoreBackend::DataFolder | StoreBackend::File(_) => None,
    }
}

/// A URL that can be shown: without password and without parameters after the name of the database.
pub(crate) fn without_secrets(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((user, host_and_path))) => {
            // A password may contain anything; the name before it may not contain a colon.
            let user =
                user.split_once("://").map_or("", |(_, user)| user).split(':').next().unwrap_or_default();
            let at = if user.is_empty() { "" } else { "@" };
            format!("{scheme}://{user}{at}{host_and_path}")
        }
        _ => url.to_owned(),
    }
}

/// The data folder, made if it is not there, for its owner only.
pub(crate) fn data_folder() -> Result<PathBuf, CliFailure> {
    let folder = data_dir::folder().ok_or_else(messages::no_data_folder)?;
    create_private(&folder).map_err(|error| messages::bad_data_folder(&folder, &error))?;
    Ok(folder)
}

fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use super::*;

    #[test]
    fn store_url_is_shown_without_its_password() {
        for (url, shown) in [
            ("postgres://user:p@ss@host/db?password=x", "postgres://user@host/db"),
            ("postgres://user@host:5433/db", "postgres://user@host:5433/db"),
            ("postgresql://host/db", "postgresql://host/db"),
        ] {
            assert_eq!(without_secrets(url), shown);
        }
    }
}
