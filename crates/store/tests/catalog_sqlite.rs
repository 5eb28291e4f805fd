//! The catalog in SQLite does what every catalog must do.

#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used)]

#[macro_use]
mod catalog_conformance;

use catalog_conformance::Opened;
use std::sync::Arc;
use throughline_store::catalog::CatalogLimits;
use throughline_store::{SqliteSettings, SqliteStore};

async fn open(catalog: CatalogLimits) -> Option<Opened> {
    let folder = tempfile::tempdir().unwrap();
    // The reserve is for full disks, which these tests do not have.
    let settings =
        SqliteSettings { catalog, ballast_bytes: 0, free_bytes_min: 0, ..SqliteSettings::default() };
    let store = SqliteStore::open(&folder.path().join("throughline.db"), settings).await.unwrap();
    Some(Opened { catalog: Arc::new(store.clone()), log: Arc::new(store), _kept: Box::new(folder) })
}

catalog_conformance!(open);
