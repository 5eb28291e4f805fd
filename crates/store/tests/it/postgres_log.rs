//! The log in PostgreSQL fulfils every guarantee of a log: with a ring that is always empty, so that
//! everything is read from the database, and with the usual one.

#![cfg(feature = "postgres")]

use crate::cluster::Cluster;
use crate::log_conformance::{Restarted, Subject};
use async_trait::async_trait;
use std::sync::Arc;
use throughline_store::{Log, PostgresSettings, PostgresStore};

struct InPostgres {
    url: String,
    settings: PostgresSettings,
    store: PostgresStore,
    _cluster: Arc<Cluster>,
}

impl InPostgres {
    async fn new(settings: PostgresSettings) -> Option<Self> {
        let cluster = Cluster::shared()?;
        let url = cluster.fresh();
        let store = PostgresStore::open(&url, settings).await.unwrap();
        Some(Self { url, settings, store, _cluster: cluster })
    }
}

#[async_trait]
impl Subject for InPostgres {
    fn log(&self) -> Arc<dyn Log> {
        Arc::new(self.store.clone())
    }
    async fn restart(&mut self) -> Restarted {
        self.store.close().await;
        self.store = PostgresStore::open(&self.url, self.settings).await.unwrap();
        Restarted::AsItWas
    }
    fn fsyncs(&self) -> Option<u64> {
        Some(self.store.stats().fsyncs)
    }
}

mod usual {
    use super::*;

    async fn make() -> Option<InPostgres> {
        InPostgres::new(PostgresSettings::default()).await
    }

    crate::conformance!(if there make, 6);
}

mod with_a_ring_of_a_few_records {
    use super::*;

    async fn make() -> Option<InPostgres> {
        InPostgres::new(PostgresSettings { ring_bytes_max: 500, ..PostgresSettings::default() }).await
    }

    crate::conformance!(if there make, 6);
}
