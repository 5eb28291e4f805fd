//! The log in SQLite fulfils every guarantee of a log: with a ring that is always empty, so that everything
//! is read from segments, and with the usual one.

#![cfg(feature = "sqlite")]

use crate::log_conformance::{Restarted, Subject};
use async_trait::async_trait;
use std::sync::Arc;
use throughline_store::{Log, SqliteSettings, SqliteStore};

struct InSqlite {
    folder: tempfile::TempDir,
    settings: SqliteSettings,
    store: SqliteStore,
}

impl InSqlite {
    async fn new(settings: SqliteSettings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("store.db"), settings).await.unwrap();
        Self { folder, settings, store }
    }
}

#[async_trait]
impl Subject for InSqlite {
    fn log(&self) -> Arc<dyn Log> {
        Arc::new(self.store.clone())
    }
    async fn restart(&mut self) -> Restarted {
        self.store.close().await;
        self.store = SqliteStore::open(&self.folder.path().join("store.db"), self.settings).await.unwrap();
        Restarted::AsItWas
    }
    fn fsyncs(&self) -> Option<u64> {
        Some(self.store.stats().fsyncs)
    }
}

fn settings() -> SqliteSettings {
    SqliteSettings { ballast_bytes: 0, ..SqliteSettings::default() }
}

mod usual {
    use super::*;

    async fn make() -> InSqlite {
        InSqlite::new(settings()).await
    }

    crate::conformance!(make);
}

mod with_a_ring_of_a_few_records {
    use super::*;

    async fn make() -> InSqlite {
        InSqlite::new(SqliteSettings { ring_bytes_max: 500, ..settings() }).await
    }

    crate::conformance!(make);
}
