//! Searches in PostgreSQL end in time for any delay of the database, and the planner has statistics of the
//! searched tables.

#![cfg(feature = "postgres")]

use crate::catalog_conformance::{ANN, Opened, first};
use crate::cluster::Cluster;
use std::sync::Arc;
use std::time::{Duration, Instant};
use throughline_store::{
    Catalog, CatalogLimits, ConversationFilter, ImportedConversation, PageRequest, PostgresSettings,
    PostgresStore, ResultPage, TurnRow,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// Statistics are checked all the time; only the test waits for a search.
fn settings() -> PostgresSettings {
    let catalog =
        CatalogLimits { search_ms_max: 3_600_000, search_wait_ms_max: 3_600_000, ..CatalogLimits::default() };
    PostgresSettings {
        statistics_interval: Duration::from_millis(20),
        catalog,
        ..PostgresSettings::default()
    }
}

async fn open(url: &str, settings: PostgresSettings) -> (PostgresStore, Opened) {
    let store = PostgresStore::open(url, settings).await.unwrap();
    let (catalog, log) = (Arc::new(store.clone()), Arc::new(store.clone()));
    (store, Opened { catalog, log, _kept: Box::new(()) })
}

fn database(url: &str) -> &str {
    url.rsplit('/').next().unwrap()
}

/// Waits for background work of the store.
async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Imports a conversation of this many turns with long texts. The importing server makes no statistics, and
/// its writes are counted once it has closed.
async fn import(cluster: &Cluster, url: &str, id: &str, turns: usize) {
    let (store, opened) =
        open(url, PostgresSettings { statistics_interval: Duration::from_secs(3_600), ..settings() }).await;
    cluster.sql(database(url), "ALTER TABLE tl.search_text SET (autovacuum_enabled = off)");
    let template = format!("{id}-template");
    opened.complete_turn(ANN, first(&template, &template, 1), &"words ".repeat(100)).await;
    let row = opened.turn_row(ANN, &template).await;
    let rows = (0..turns).map(|n| TurnRow {
        id: format!("{id}-{n}"),
        message_id: format!("{id}-{n}.m"),
        ..row.clone()
    });
    let mut conversation = opened.summary(ANN, &template).await.conversation;
    (conversation.id, conversation.leaf_id) = (id.to_owned(), None);
    let imported =
        ImportedConversation { conversation, turns: rows.collect(), calls: Vec::new(), files: Vec::new() };
    opened.catalog.import(ANN, imported).await.unwrap();
    store.close().await;
}

/// Columns of which there are statistics, and rows as the planner knows them.
fn known_of_texts(cluster: &Cluster, url: &str) -> (String, String) {
    let sql = |query| cluster.sql(database(url), query);
    (
        sql("SELECT count(*) FROM pg_stats WHERE schemaname = 'tl' AND tablename = 'search_text'"),
        sql("SELECT reltuples::bigint FROM pg_class WHERE oid = 'tl.search_text'::regclass"),
    )
}

#[tokio::test]
async fn imported_texts_are_analyzed_without_autovacuum() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.fresh();
    let mut texts = 0;
    for (id, turns) in [("one", 300), ("two", 400)] {
        import(&cluster, &url, id, turns).await;
        texts += 2 * (turns + 1);
        let (store, _) = open(&url, settings()).await;
        let all = ("3".to_owned(), texts.to_string());
        eventually("statistics of all texts", || known_of_texts(&cluster, &url) == all).await;
        store.close().await;
    }
}

#[tokio::test]
async fn only_one_server_analyzes_at_a_time() {
    /// Takes `statistics::LOCK` in another session.
    const OF_ANOTHER: &str = "DO 'BEGIN PERFORM pg_advisory_lock(127991945101314); END'";
    const ATTEMPT: &str = "SELECT pg_try_advisory_lock($1)";
    // With a separate server log.
    let Some(cluster) = Cluster::start() else { return };
    let url = cluster.fresh();
    import(&cluster, &url, "one", 300).await;
    cluster.sql(database(&url), &format!("ALTER DATABASE {} SET log_statement = 'all'", database(&url)));
    let other = cluster.hold(database(&url), OF_ANOTHER);
    let (store, _) = open(&url, settings()).await;
    let attempts = || cluster.log().lines().filter(|line| line.ends_with(ATTEMPT)).count();
    eventually("it tries, and tries again", || attempts() > 2).await;
    assert!(!cluster.log().contains("ANALYZE"), "another one is at it");
    drop(other);
    eventually("statistics", || known_of_texts(&cluster, &url).0 == "3").await;
    store.close().await;
}

#[tokio::test]
async fn role_without_analyze_permission_can_still_search() {
    let Some(cluster) = Cluster::start() else { return };
    let url = cluster.fresh();
    // By the owner of the tables.
    import(&cluster, &url, "one", 300).await;
    let grants = format!(
        "CREATE ROLE guest LOGIN; GRANT CREATE ON DATABASE {} TO guest; GRANT ALL ON SCHEMA tl TO guest;
         GRANT ALL ON ALL TABLES IN SCHEMA tl TO guest; GRANT ALL ON ALL SEQUENCES IN SCHEMA tl TO guest",
        database(&url)
    );
    cluster.sql(database(&url), &grants);
    let (store, opened) = open(&url.replace("tl@", "guest@"), settings()).await;
    let is_refused = |line: &str| line.contains("search_text") && line.contains("skipping");
    eventually("it was refused", || cluster.log().lines().any(is_refused)).await;
    opened.complete_turn(ANN, first("t", "c", 9), "an answer of words").await;
    let found = opened.catalog.search(ANN, "an answer", &PageRequest::first()).await.unwrap();
    assert_eq!(found.items[0].conversation_id, "c");
    assert_eq!(known_of_texts(&cluster, &url).0, "0");
    store.close().await;
}

/// Both searches, with the rows of their page.
async fn both(catalog: &dyn Catalog, from: [&Option<String>; 2]) -> [ResultPage<String>; 2] {
    let [hits_from, conversations_from] =
        from.map(|from| from.clone().map_or_else(PageRequest::first, PageRequest::after));
    let filter = ConversationFilter::text("words");
    let searches = async {
        let hits = catalog.search(ANN, "words", &hits_from).await.unwrap();
        let conversations = catalog.conversations(ANN, &filter, &conversations_from).await.unwrap();
        let ids = hits.items.into_iter().map(|hit| hit.conversation_id).collect();
        let listed = conversations.items.into_iter().map(|item| item.conversation.id).collect();
        [
            ResultPage { items: ids, next: hits.next, partial: hits.partial },
            ResultPage { items: listed, next: conversations.next, partial: conversations.partial },
        ]
    };
    // One that ends has a limit of 150 ms; one that does not would wait for the lock.
    tokio::time::timeout(PATIENCE, searches).await.expect("a search has no end")
}

/// No statement of a search exceeds its limit, neither one that searches nor one that reads the shown rows.
/// Limit: `search_ms_max`.
#[tokio::test]
async fn search_blocked_by_the_database_resumes_on_the_next_page() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.fresh();
    let (store, opened) = open(&url, settings()).await;
    // The check with the limit of a release.
    let catalog = CatalogLimits { search_ms_max: 150, ..settings().catalog };
    let (hasty_store, hasty) = open(&url, PostgresSettings { catalog, ..settings() }).await;
    for n in 0..3 {
        let turn = first(&format!("t{n}"), &format!("c{n}"), n);
        opened.complete_turn(ANN, turn, "an answer of words").await;
    }
    let catalog = &*opened.catalog;
    let [hits, conversations] = both(catalog, [&None, &None]).await;
    assert_eq!(hits.items, ["c2", "c1", "c0"]);
    assert_eq!(conversations.items, ["c2", "c1", "c0"]);
    // The first three block the scan, for both or one; the last ones only the reading of shown rows.
    for table in ["search_text", "turn", "conversation", "turn_end", "call"] {
        let lock = format!("LOCK TABLE tl.{table} IN ACCESS EXCLUSIVE MODE");
        let held = cluster.hold(database(&url), &lock);
        let mut from = [None, None];
        for _ in 0..2 {
            let cut = both(&*hasty.catalog, [&from[0], &from[1]]).await;
            let is_held_up = match table {
                "turn_end" => [true, false],
                "call" => [false, true],
                _ => [true, true],
            };
            for (page, is_held_up) in cut.iter().zip(is_held_up) {
                if is_held_up {
                    assert_eq!(
                        (page.items.len(), page.partial),
                        (0, true),
                        "{table}: nothing, and it says so"
                    );
                    assert!(page.next.is_some(), "{table}: it goes on");
                }
            }
            // A search that was not blocked has finished.
            let mut is_held_up = is_held_up.into_iter();
            from = cut.map(|page| page.next.filter(|_| is_held_up.next() == Some(true)));
        }
        drop(held);
        let [hits_from, conversations_from] = from;
        let [hits_after, conversations_after] = both(catalog, [&hits_from, &conversations_from]).await;
        assert_eq!(hits_after.items, hits.items, "{table}: as if nothing had been");
        assert_eq!(conversations_after.items, conversations.items, "{table}: as if nothing had been");
    }
    hasty_store.close().await;
    store.close().await;
}

/// Each page scans a minimum, and the next one begins after it.
#[tokio::test]
async fn search_pages_advance_with_a_zero_time_limit() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.fresh();
    // Turns of one moment, which are one stretch.
    import(&cluster, &url, "one", 400).await;
    let catalog = CatalogLimits { search_ms_max: 0, ..settings().catalog };
    let (store, opened) = open(&url, PostgresSettings { catalog, ..settings() }).await;
    opened.complete_turn(ANN, first("older", "c0", 0), "an answer of words").await;
    let mut pages = [PageRequest::first(), PageRequest::first()];
    let mut found = [Vec::new(), Vec::new()];
    let mut is_over = [false, false];
    for _ in 0..1_000 {
        let [hits_from, conversations_from] = &pages;
        let filter = ConversationFilter::text("answer");
        let hits = opened.catalog.search(ANN, "answer", hits_from).await.unwrap();
        let conversations = opened.catalog.conversations(ANN, &filter, conversations_from).await.unwrap();
        found[0].extend(hits.items.into_iter().map(|hit| hit.conversation_id));
        found[1].extend(conversations.items.into_iter().map(|item| item.conversation.id));
        for (at, next) in [hits.next, conversations.next].into_iter().enumerate() {
            match next {
                Some(next) => {
                    let page = PageRequest::after(next);
                    assert_ne!(page, pages[at], "a page that begins where it began");
                    pages[at] = page;
                }
                None => is_over[at] = true,
            }
        }
        if is_over == [true, true] {
            break;
        }
    }
    assert_eq!(is_over, [true, true], "it comes to an end");
    for found in found {
        assert!(found.contains(&"c0".to_owned()), "{found:?}");
    }
    store.close().await;
}
