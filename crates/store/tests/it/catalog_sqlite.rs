//! The catalog in SQLite does what every catalog must do.

#![cfg(feature = "sqlite")]

use crate::catalog_conformance::{self, Opened};
use std::sync::Arc;
use throughline_store::{CatalogLimits, SqliteSettings, SqliteStore};

async fn open(catalog: CatalogLimits) -> Option<Opened> {
    let folder = tempfile::tempdir().unwrap();
    // The reserve is for full disks, which these tests do not have.
    let settings =
        SqliteSettings { catalog, ballast_bytes: 0, free_bytes_min: 0, ..SqliteSettings::default() };
    let store = SqliteStore::open(&folder.path().join("throughline.db"), settings).await.unwrap();
    Some(Opened { catalog: Arc::new(store.clone()), log: Arc::new(store), _kept: Box::new(folder) })
}

crate::catalog_conformance!(open);

// Limit: `search_ms_max`.
#[tokio::test]
async fn search_out_of_time_returns_partial_pages_that_resume() {
    use crate::catalog_conformance::{ANN, first, with_input};
    use throughline_store::{ConversationFilter, PageRequest};

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
            async move { catalog.conversations(ANN, &ConversationFilter::text(text), &page).await }
        });
        assert_eq!(walked.await.len(), conversations, "{text}");
    }
}

#[tokio::test]
async fn hundred_thousand_turns_are_each_listed_and_counted_once() {
    use throughline_store::{Catalog, PAGE_ROWS_MAX, PageRequest, TurnFilter};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("throughline.db");
    // Time is over as soon as a search begins: each page is one window of turns.
    let catalog = CatalogLimits { search_ms_max: 0, ..CatalogLimits::default() };
    let settings =
        SqliteSettings { ballast_bytes: 0, free_bytes_min: 0, catalog, ..SqliteSettings::default() };
    let store = SqliteStore::open(&path, settings).await.unwrap();
    // Three of each time, so that pages end between turns of one.
    let rows = "WITH RECURSIVE numbers (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i < 99999)
        INSERT INTO turn (id, user_id, message_id, agent, model, status, created_at, ended_at)
        SELECT printf('t%06d', i), 'ann', 'm', 'default', iif(i % 10 = 0, 'rare', 'common'),
            iif(i % 1000 = 0, 'error', 'completed'), i / 3, i / 3 + 1 FROM numbers;
        INSERT INTO turn_begin (n, input_text, stored) SELECT n, 'input of ' || id, '{}' FROM turn;";
    rusqlite::Connection::open(&path).unwrap().execute_batch(rows).unwrap();

    let walk = async |filter: TurnFilter| {
        let (mut ids, mut page) = (Vec::new(), PageRequest::first().limit(PAGE_ROWS_MAX));
        loop {
            let found = store.turns("ann", &filter, &page).await.unwrap();
            ids.extend(found.items.into_iter().map(|row| row.turn.id));
            let Some(next) = found.next else { return ids };
            page = PageRequest::after(next).limit(PAGE_ROWS_MAX);
        }
    };
    let all = walk(TurnFilter::default()).await;
    assert!(all.iter().eq((0..100_000).rev().map(|i| format!("t{i:06}")).collect::<Vec<_>>().iter()));
    let failed = TurnFilter { statuses: vec!["error".into()], ..TurnFilter::default() };
    assert_eq!(walk(failed.clone()).await.len(), 100);
    let search = async |text: &str, filter: &TurnFilter| {
        let (mut ids, mut pages, mut page) = (Vec::new(), 0, PageRequest::first().limit(PAGE_ROWS_MAX));
        loop {
            let found = store.search_turns("ann", text, filter, &page).await.unwrap();
            assert!(found.partial || found.next.is_none() || found.items.len() == PAGE_ROWS_MAX as usize);
            ids.extend(found.items.into_iter().map(|row| row.turn.id));
            pages += 1;
            let Some(next) = found.next else { return (ids, pages) };
            page = PageRequest::after(next).limit(PAGE_ROWS_MAX);
        }
    };
    let newest = search("t099999", &TurnFilter::default()).await;
    assert_eq!(newest.0, ["t099999"]);
    assert!((50..=400).contains(&newest.1), "{} pages, none of which looks through everything", newest.1);
    assert_eq!(
        search("T000000", &TurnFilter::default()).await.0,
        ["t000000"],
        "the last one is looked at, too"
    );
    assert_eq!(search("input of", &TurnFilter::default()).await.0, all, "each once");
    assert_eq!(search("input of", &failed).await.0.len(), 100);
    let late = TurnFilter { from: Some(33_332), until: Some(33_333), ..TurnFilter::default() };
    assert_eq!(search("t0", &late).await, (vec!["t099998".into(), "t099997".into(), "t099996".into()], 1));
    let counts = store.count_turns("ann", &TurnFilter::default()).await.unwrap();
    assert_eq!((counts.total, counts.by_model[0].count, counts.by_model[1].count), (100_000, 90_000, 10_000));
    assert_eq!(store.count_turns("ann", &failed).await.unwrap().total, 100);
    store.close().await;
}

// Limit: `search_ms_max`.
#[tokio::test]
async fn call_search_out_of_time_resumes_on_the_next_page() {
    use throughline_store::{CallFilter, Catalog, PAGE_ROWS_MAX, PageRequest};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("throughline.db");
    let catalog = CatalogLimits { search_ms_max: 0, ..CatalogLimits::default() };
    let settings =
        SqliteSettings { ballast_bytes: 0, free_bytes_min: 0, catalog, ..SqliteSettings::default() };
    let store = SqliteStore::open(&path, settings).await.unwrap();
    let rows = "INSERT INTO turn (id, user_id, message_id, agent, status, created_at, ended_at)
        VALUES ('t', 'ann', 'm', 'default', 'completed', 0, 1);
        WITH RECURSIVE numbers (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i < 19999)
        INSERT INTO call (turn_id, tool_id, user_id, step, tool_name, source, effect, status, arguments, started_at)
        SELECT 't', printf('t_%06d', i), 'ann', 1, 'notes.add', 'notes', 'write',
            iif(i % 1000 = 0, 'error', 'success'), printf('{\"title\":\"note %06d\"}', i), i / 3 FROM numbers;";
    rusqlite::Connection::open(&path).unwrap().execute_batch(rows).unwrap();

    let search = async |filter: &CallFilter| {
        let (mut ids, mut pages, mut page) = (Vec::new(), 0, PageRequest::first().limit(PAGE_ROWS_MAX));
        loop {
            let found = store.calls("ann", filter, &page).await.unwrap();
            assert!(found.partial || found.next.is_none() || found.items.len() == PAGE_ROWS_MAX as usize);
            ids.extend(found.items.into_iter().map(|call| call.tool_id));
            pages += 1;
            let Some(next) = found.next else { return (ids, pages) };
            page = PageRequest::after(next).limit(PAGE_ROWS_MAX);
        }
    };
    let filter = |text: &str| CallFilter { text: Some(text.to_owned()), ..CallFilter::default() };
    let oldest = search(&filter("NOTE 000000")).await;
    assert_eq!(oldest.0, ["t_000000"], "the last one is looked at, too");
    assert!((10..=100).contains(&oldest.1), "{} pages, none of which looks through everything", oldest.1);
    assert!(
        search(&filter("note")).await.0.iter().eq((0..20_000)
            .rev()
            .map(|i| format!("t_{i:06}"))
            .collect::<Vec<_>>()
            .iter())
    );
    let failed = CallFilter { statuses: vec!["error".into()], ..filter("note") };
    assert_eq!(search(&failed).await.0.len(), 20);

    let newest = store.count_calls("ann", &filter("note")).await.unwrap();
    assert!(newest.partial && (1..20_000).contains(&newest.total), "{newest:?}");
    let late = CallFilter { from: Some(6_600), until: Some(6_660), ..filter("note") };
    let counted = store.count_calls("ann", &late).await.unwrap();
    assert_eq!((counted.total, counted.partial), (180, false));
    let all = store.count_calls("ann", &CallFilter::default()).await.unwrap();
    assert_eq!((all.total, all.by_tool[0].count, all.partial), (20_000, 20_000, false));
    assert_eq!(all.by_status.iter().map(|status| status.count).collect::<Vec<_>>(), [19_980, 20]);
    store.close().await;
}
