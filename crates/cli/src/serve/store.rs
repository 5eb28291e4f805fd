//! Opening what a server keeps: the data folder, the store, the files.

use crate::args::Choice;
use crate::data;
use crate::exit::Failure;
use crate::messages;
use crate::setup;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use throughline::config::{Durable, STORE_FILE, StoreAt, StoreSettings};
use throughline_server::upkeep::Backup;
use throughline_store::blobs::BlobLimits;
use throughline_store::sqlite::{OpenError, SqliteSettings, SqliteStore, Sync};
use throughline_store::{BlobFolder, Catalog, Log};

/// What a server keeps.
pub struct Kept {
    pub store: SqliteStore,
    pub folder: PathBuf,
    pub path: PathBuf,
}

/// Why the store cannot be had.
pub enum NoStore {
    /// Another server has it open.
    InUse(String),
    /// Anything else.
    Failed(Failure),
}

impl From<NoStore> for Failure {
    fn from(error: NoStore) -> Self {
        match error {
            NoStore::InUse(why) => messages::no_store(&why),
            NoStore::Failed(failure) => failure,
        }
    }
}

impl Kept {
    pub async fn open(settings: &StoreSettings) -> Result<Self, NoStore> {
        let folder = data_folder().map_err(NoStore::Failed)?;
        let path = match &settings.at {
            StoreAt::DataFolder => folder.join(STORE_FILE),
            StoreAt::File(path) => path.clone(),
            StoreAt::Postgres(_) => return Err(NoStore::Failed(messages::no_postgres())),
        };
        let sqlite = SqliteSettings {
            sync: match settings.durability {
                Durable::ByEvent => Sync::ByClass,
                Durable::Everything => Sync::Always,
            },
            ..SqliteSettings::default()
        };
        #[cfg(feature = "bench")]
        let sqlite = super::bench::store(sqlite);
        match SqliteStore::open(&path, sqlite).await {
            Ok(store) => Ok(Self { store, folder, path }),
            Err(error @ OpenError::InUse { .. }) => Err(NoStore::InUse(error.to_string())),
            Err(error) => Err(NoStore::Failed(messages::no_store(&error))),
        }
    }

    pub fn log(&self) -> Arc<dyn Log> {
        Arc::new(self.store.clone())
    }

    pub fn catalog(&self) -> Arc<dyn Catalog> {
        Arc::new(self.store.clone())
    }

    /// How a backup is made.
    pub fn backup(&self) -> Backup {
        let store = self.store.clone();
        Arc::new(move |age| {
            let store = store.clone();
            Box::pin(async move { store.backup_if_older(age).await })
        })
    }

    pub async fn blobs(&self, upload_bytes_max: u64) -> Result<BlobFolder, Failure> {
        let limits = BlobLimits { file_bytes_max: upload_bytes_max, ..BlobLimits::default() };
        let folder = self.folder.join(data::FILES);
        BlobFolder::open(&folder, limits).await.map_err(|error| messages::bad_data_folder(&folder, &error))
    }
}

/// The file of the store that is meant, for commands that look into it: the one that is named, else that of the configuration.
pub fn file_of(named: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(file) = named {
        return Ok(file.to_owned());
    }
    let choice =
        Choice { config: std::env::var_os("THROUGHLINE_CONFIG").map(PathBuf::from), ..Choice::default() };
    match setup::settings_with(&choice, None, None)?.store.at {
        StoreAt::DataFolder => Ok(data::folder().ok_or_else(messages::no_data_folder)?.join(STORE_FILE)),
        StoreAt::File(file) => Ok(file),
        StoreAt::Postgres(_) => Err(messages::no_file_of_postgres()),
    }
}

/// The data folder, made if it is not there, for its owner only.
pub fn data_folder() -> Result<PathBuf, Failure> {
    let folder = data::folder().ok_or_else(messages::no_data_folder)?;
    make(&folder).map_err(|error| messages::bad_data_folder(&folder, &error))?;
    Ok(folder)
}

fn make(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
