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
#[cfg(feature = "postgres")]
use throughline_store::postgres::{Commit, PostgresSettings, PostgresStore};
use throughline_store::sqlite::{OpenError, SqliteSettings, SqliteStore, Sync};
use throughline_store::{BlobFolder, Catalog, Figures, Log};

/// What a server keeps.
pub struct Kept {
    pub store: Opened,
    pub folder: PathBuf,
}

/// The store that `[store] url` names.
#[derive(Clone)]
pub enum Opened {
    File(SqliteStore, PathBuf),
    /// With its URL as it can be shown.
    #[cfg(feature = "postgres")]
    Database(PostgresStore, String),
}

impl Opened {
    pub fn figures(&self) -> Figures {
        match self {
            Self::File(store, _) => store.figures(),
            #[cfg(feature = "postgres")]
            Self::Database(store, _) => store.figures(),
        }
    }

    pub async fn close(&self) {
        match self {
            Self::File(store, _) => store.close().await,
            #[cfg(feature = "postgres")]
            Self::Database(store, _) => store.close().await,
        }
    }

    /// Where it is.
    pub fn place(&self) -> String {
        match self {
            Self::File(_, path) => path.display().to_string(),
            #[cfg(feature = "postgres")]
            Self::Database(_, shown) => shown.clone(),
        }
    }
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
            #[cfg(not(feature = "postgres"))]
            StoreAt::Postgres(_) => return Err(NoStore::Failed(messages::no_postgres())),
            #[cfg(feature = "postgres")]
            StoreAt::Postgres(url) => {
                let store = database(url, settings).await.map_err(NoStore::Failed)?;
                return Ok(Self { store: Opened::Database(store, without_secrets(url)), folder });
            }
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
            Ok(store) => Ok(Self { store: Opened::File(store, path), folder }),
            Err(error @ OpenError::InUse { .. }) => Err(NoStore::InUse(error.to_string())),
            Err(error) => Err(NoStore::Failed(messages::no_store(&error))),
        }
    }

    pub fn log(&self) -> Arc<dyn Log> {
        match &self.store {
            Opened::File(store, _) => Arc::new(store.clone()),
            #[cfg(feature = "postgres")]
            Opened::Database(store, _) => Arc::new(store.clone()),
        }
    }

    pub fn catalog(&self) -> Arc<dyn Catalog> {
        match &self.store {
            Opened::File(store, _) => Arc::new(store.clone()),
            #[cfg(feature = "postgres")]
            Opened::Database(store, _) => Arc::new(store.clone()),
        }
    }

    /// How a backup is made; a database has its own.
    pub fn backup(&self) -> Option<Backup> {
        let store = match &self.store {
            Opened::File(store, _) => store.clone(),
            #[cfg(feature = "postgres")]
            Opened::Database(..) => return None,
        };
        Some(Arc::new(move |age| {
            let store = store.clone();
            Box::pin(async move { store.backup_if_older(age).await })
        }))
    }

    /// The same for commands beside a server, which may have it open.
    pub fn blobs_beside(&self) -> BlobFolder {
        blobs_of(&self.folder)
    }

    pub async fn blobs(&self, upload_bytes_max: u64) -> Result<BlobFolder, Failure> {
        let limits = BlobLimits { file_bytes_max: upload_bytes_max };
        let folder = self.folder.join(data::FILES);
        BlobFolder::open(&folder, limits).await.map_err(|error| messages::bad_data_folder(&folder, &error))
    }
}

/// The folder of files of a data folder, for commands beside a server.
pub fn blobs_of(folder: &Path) -> BlobFolder {
    BlobFolder::beside(folder.join(data::FILES), BlobLimits::default())
}

/// Where a store is, for commands that look into it.
pub enum Place {
    File(PathBuf),
    #[cfg(feature = "postgres")]
    Database {
        url: String,
        /// Without its password.
        shown: String,
    },
}

/// The store that is meant: the one that is named, else that of the configuration.
pub fn place_of(named: Option<&Path>) -> Result<Place, Failure> {
    let at = match named.map(|named| (named, named.to_str().unwrap_or_default())) {
        Some((_, url)) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
            StoreAt::Postgres(url.to_owned())
        }
        Some((file, _)) => StoreAt::File(file.to_owned()),
        None => {
            let config = std::env::var_os("THROUGHLINE_CONFIG").map(PathBuf::from);
            setup::settings_with(&Choice { config, ..Choice::default() }, None, None)?.store.at
        }
    };
    Ok(match at {
        StoreAt::DataFolder => {
            Place::File(data::folder().ok_or_else(messages::no_data_folder)?.join(STORE_FILE))
        }
        StoreAt::File(file) => Place::File(file),
        #[cfg(feature = "postgres")]
        StoreAt::Postgres(url) => Place::Database { shown: without_secrets(&url), url },
        #[cfg(not(feature = "postgres"))]
        StoreAt::Postgres(_) => return Err(messages::no_postgres()),
    })
}

#[cfg(feature = "postgres")]
async fn database(url: &str, settings: &StoreSettings) -> Result<PostgresStore, Failure> {
    let postgres = PostgresSettings {
        commit: match settings.durability {
            Durable::ByEvent => Commit::ByClass,
            Durable::Everything => Commit::Always,
        },
        ..PostgresSettings::default()
    };
    PostgresStore::open(url, postgres).await.map_err(|error| messages::no_store(&error))
}

/// A URL as it can be shown: without a password, and without what stands behind the name of the database.
#[cfg(feature = "postgres")]
fn without_secrets(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, place))) => format!("{scheme}://{place}"),
        _ => url.to_owned(),
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

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        for (url, shown) in [
            ("postgres://user:p@ss@host/db?password=x", "postgres://host/db"),
            ("postgres://user@host:5433/db", "postgres://host:5433/db"),
            ("postgresql://host/db", "postgresql://host/db"),
        ] {
            assert_eq!(without_secrets(url), shown);
        }
    }
}
