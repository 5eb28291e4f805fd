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

// R: S4, R2 `search_ms_max`
#[tokio::test]
async fn a_search_without_time_gives_what_it_has_and_goes_on_from_there() {
    use catalog_conformance::{ANN, first, with_input};
    use throughline_store::catalog::PageRequest;

    let hurried = CatalogLimits { search_ms_max: 0, ..CatalogLimits::default() };
    let store = open(hurried).await.unwrap();
    for n in 0..30 {
        let word = if n % 10 == 0 { "rare" } else { "common" };
        store
            .complete_turn(ANN, with_input(first(&format!("t{n}"), &format!("c{n}"), n), word), "an answer")
            .await;
    }
    for (text, hits, conversations) in
        [("rare", 6, 3), ("common", 54, 27), ("ra", 6, 3), ("none of it", 0, 0)]
    {
        let (mut found, mut request, mut pages) = (Vec::new(), PageRequest::first(), 0);
        loop {
            let page = store.catalog.search(ANN, text, &request).await.unwrap();
            pages += 1;
            assert_eq!(page.partial, page.next.is_some(), "{text}: fewer than asked for, and it says so");
            found.extend(page.items);
            let Some(next) = page.next else { break };
            request = PageRequest::after(next);
        }
        assert_eq!(found.len(), hits, "{text}");
        assert!(pages > hits / 2, "{text}: {pages} pages");
        let mut once = found.clone();
        once.dedup();
        assert_eq!(once, found, "{text}: each once");
        let walked = catalog_conformance::walk(50, |page| {
            let catalog = store.catalog.clone();
            async move { catalog.conversations(ANN, Some(text), &page).await }
        });
        assert_eq!(walked.await.len(), conversations, "{text}");
    }
}
