//! The catalog in PostgreSQL does what every catalog must do.

#![cfg(feature = "postgres")]

use crate::catalog_conformance::{self, Opened};
use crate::cluster::Cluster;
use std::sync::Arc;
use throughline_store::{CatalogLimits, ConversationFilter, PostgresSettings, PostgresStore};

async fn open(catalog: CatalogLimits) -> Option<Opened> {
    let cluster = Cluster::shared()?;
    let settings = PostgresSettings { catalog, ..PostgresSettings::default() };
    let store = PostgresStore::open(&cluster.fresh(), settings).await.unwrap();
    Some(Opened { catalog: Arc::new(store.clone()), log: Arc::new(store), _kept: Box::new(cluster) })
}

crate::catalog_conformance!(open);

/// More turns than one stretch scans: a search without time left returns the newest hits found so far, and
/// the next page begins where it stopped. Limit: `search_ms_max`.
#[tokio::test]
async fn search_out_of_time_returns_newest_hits_and_resumes() {
    use crate::catalog_conformance::{ANN, first, with_input};
    use futures_util::stream::{self, StreamExt};
    use throughline_store::PageRequest;

    const TURNS: i64 = 600;
    /// More in parallel would wait for a connection longer than the limit.
    const AT_ONCE: usize = 16;
    let hurried = CatalogLimits { search_ms_max: 0, ..CatalogLimits::default() };
    let Some(store) = open(hurried).await else { return };
    let store = &store;
    let turns = stream::iter(0..TURNS).map(|n| async move {
        let word = if n % 100 == 0 { "rare" } else { "common" };
        let turn = first(&format!("t{n:03}"), &format!("c{n:03}"), n);
        store.complete_turn(ANN, with_input(turn, word), "an answer").await;
    });
    turns.buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    // The word of an input is in the title of its conversation, too.
    for (text, conversations) in [("rare", 6), ("ra", 6), ("none of it", 0)] {
        let (mut found, mut request, mut pages) = (Vec::new(), PageRequest::first(), 0);
        loop {
            let page = store.catalog.search(ANN, text, &request).await.unwrap();
            pages += 1;
            assert_eq!(page.partial, page.next.is_some(), "{text}: fewer than asked for, and it says so");
            found.extend(page.items);
            let Some(next) = page.next else { break };
            request = PageRequest::after(next);
        }
        assert!(pages > 1, "{text}: {pages} pages");
        assert_eq!(found.len(), 2 * conversations, "{text}");
        assert!(found.is_sorted_by(|newer, older| newer.at >= older.at), "{text}: in order");
        let mut once = found.clone();
        once.dedup();
        assert_eq!(once, found, "{text}: each once");
        let walked = catalog_conformance::walk(50, |page| {
            let catalog = store.catalog.clone();
            let filter = ConversationFilter::text(text);
            async move { catalog.conversations(ANN, &filter, &page).await }
        });
        assert_eq!(walked.await.len(), conversations, "{text}");
    }
}
