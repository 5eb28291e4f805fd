//! The catalog in PostgreSQL does what every catalog must do.

#![cfg(feature = "postgres")]
#![allow(clippy::unwrap_used)]

#[macro_use]
mod catalog_conformance;
mod cluster;

use catalog_conformance::Opened;
use cluster::Cluster;
use std::sync::Arc;
use throughline_store::catalog::CatalogLimits;
use throughline_store::{PostgresSettings, PostgresStore};

async fn open(catalog: CatalogLimits) -> Option<Opened> {
    let cluster = Cluster::shared()?;
    let settings = PostgresSettings { catalog, ..PostgresSettings::default() };
    let store = PostgresStore::open(&cluster.fresh(), settings).await.unwrap();
    Some(Opened { catalog: Arc::new(store.clone()), log: Arc::new(store), _kept: Box::new(cluster) })
}

catalog_conformance!(open);
