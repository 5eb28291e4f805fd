//! A store of the version before is opened: everything in it is found under the tables' new names.

#[cfg(feature = "postgres")]
use crate::cluster;
use throughline_store::{Catalog, ConversationFilter, Log, PageRequest, RawId};

/// Rows that both databases take: a turn that has ended, in a conversation, with raw bytes.
const ROWS: &str = "
    INSERT INTO turn_begin (n, input_text, stored) VALUES (1, 'How is the weather?', '{}');
    INSERT INTO turn_end (n, adds, text, usage) VALUES (1, '[]', 'Sunny.', NULL);
    INSERT INTO turn_log (turn, epoch, owner, state, last_seq) VALUES ('t', 1, 1, 1, 4);";

/// Search, provider state and raw bytes of [`ROWS`].
async fn check(store: &(impl Catalog + Log)) {
    for (text, parts) in [("weather", 2), ("SUNNY", 1), ("nothing of it", 0)] {
        let found = Catalog::search(store, "ann", text, &PageRequest::first()).await.unwrap();
        assert_eq!((found.items.len(), found.partial), (parts, false), "{text}");
        let conversations =
            store.conversations("ann", &ConversationFilter::text(text), &PageRequest::first()).await.unwrap();
        assert_eq!(conversations.items.len(), parts.min(1), "{text}");
    }
    let states = store.read_provider_state("t").await.unwrap();
    let states: Vec<_> = states.iter().map(|state| (state.step, &*state.payload)).collect();
    assert_eq!(states, [(2, &b"opaque"[..])]);
    let id = RawId { turn_id: "t".into(), step: 1, attempt: 1 };
    assert_eq!(store.raw("ann", &id).await.unwrap().as_deref(), Some(&b"data: 1"[..]));
    // Rows written now are found as well.
    assert!(store.rename("ann", "c", "Climate", 9).await.unwrap());
    let found = Catalog::search(store, "ann", "climate", &PageRequest::first()).await.unwrap();
    assert_eq!(found.items.len(), 1);
    assert!(store.append_raw("ann", &id, b"!", 9).await.unwrap().is_some());
    assert_eq!(store.raw("ann", &id).await.unwrap().as_deref(), Some(&b"data: 1!"[..]));
    store.delete("t").await.unwrap();
    assert!(store.read_provider_state("t").await.is_err());
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn sqlite_file_of_the_previous_version_keeps_its_data() {
    use throughline_store::{SqliteSettings, SqliteStore};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("throughline.db");
    let file = rusqlite::Connection::open(&path).unwrap();
    for version in [
        include_str!("../../src/sqlite/schema/log.sql"),
        include_str!("../../src/sqlite/schema/catalog.sql"),
        include_str!("../../src/sqlite/schema/pace.sql"),
        include_str!("../../src/sqlite/schema/unindexed.sql"),
        include_str!("../../src/sqlite/schema/search.sql"),
        // Two texts wait for the index, one is in it.
        "INSERT INTO conversation (n, id, user_id, title, title_by, created_at, updated_at)
         VALUES (1, 'c', 'ann', 'Weather', 1, 5, 5);
         INSERT INTO turn (n, id, user_id, conversation_id, message_id, agent, status, created_at, ended_at)
         VALUES (1, 't', 'ann', 'c', 'm', 'a', 'completed', 5, 6)",
        ROWS,
        "INSERT INTO unindexed (row) VALUES (-1), (2);
         INSERT INTO search_user (n, user_id) VALUES (1, 'ann');
         INSERT INTO search_row (rank, user_n, part, n) VALUES ((1 << 52) + 9, 1, 2, 1);
         INSERT INTO search_trigram (rowid, text) VALUES ((1 << 52) + 9, 'Sunny.');
         INSERT INTO beside (n, step, data) SELECT n, 2, CAST('opaque' AS BLOB) FROM turn_log;
         INSERT INTO raw (n, turn_id, step, attempt, bytes, extent, created_at) VALUES (3, 't', 1, 1, 7, 0, 5);
         INSERT INTO raw_piece (raw_n, data) VALUES (3, CAST('data: ' AS BLOB)), (3, CAST('1' AS BLOB));
         PRAGMA application_id = 0x5448524C; PRAGMA user_version = 4",
    ] {
        file.execute_batch(version).unwrap();
    }
    drop(file);
    let settings = SqliteSettings { ballast_bytes: 0, free_bytes_min: 0, ..SqliteSettings::default() };
    let store = SqliteStore::open(&path, settings).await.unwrap();
    check(&store).await;
    store.close().await;
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn postgres_database_of_a_previous_version_keeps_its_data() {
    use throughline_store::{PostgresSettings, PostgresStore};

    let Some(cluster) = cluster::Cluster::shared() else { return };
    let url = cluster.fresh();
    let database = url.rsplit('/').next().unwrap();
    let version_3 = [
        "CREATE SCHEMA tl; SET search_path = tl, public;
         CREATE TABLE version (version BIGINT NOT NULL); INSERT INTO version VALUES (3);",
        include_str!("../../src/postgres/schema/log.sql"),
        include_str!("../../src/postgres/schema/catalog.sql"),
        include_str!("../../src/postgres/schema/pace.sql"),
        include_str!("../../src/postgres/schema/search.sql"),
        "INSERT INTO conversation (id, user_id, title, folded, title_by, created_at, updated_at)
         VALUES ('c', 'ann', 'Weather', 'weather', 1, 5, 5);
         INSERT INTO turn (id, user_id, conversation_id, message_id, agent, status, replica, created_at, ended_at)
         VALUES ('t', 'ann', 'c', 'm', 'a', 'completed', 1, 5, 6);",
        ROWS,
        "INSERT INTO said (n, part, text) VALUES (1, 1, 'how is the weather?'), (1, 2, 'sunny.');
         INSERT INTO beside (n, step, data) SELECT n, 2, 'opaque' FROM turn_log;
         INSERT INTO raw (turn_id, step, attempt, bytes, extent, created_at) VALUES ('t', 1, 1, 7, 0, 5);
         INSERT INTO raw_piece (raw_n, data) VALUES (1, 'data: '), (1, '1');",
    ];
    cluster.sql(database, &version_3.concat());
    // As on a server that has the extension; without it there is nothing to rename.
    let trigrams = "CREATE EXTENSION pg_trgm WITH SCHEMA public; SET search_path = tl, public;
         CREATE INDEX said_trigrams ON said USING gin (text public.gin_trgm_ops);
         CREATE INDEX titled_trigrams ON conversation USING gin (folded public.gin_trgm_ops);";
    let available = "SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_trgm'";
    let has_trigrams = cluster.sql(database, available) == "1";
    if has_trigrams {
        cluster.sql(database, trigrams);
    }
    let store = PostgresStore::open(&url, PostgresSettings::default()).await.unwrap();
    check(&store).await;
    store.close().await;
    let indexes = "SELECT string_agg(indexname, ' ' ORDER BY indexname) FROM pg_indexes
         WHERE schemaname = 'tl' AND (indexname LIKE '%trigram%' OR indexname LIKE 'beside_of%' OR indexname LIKE '%_of_raw')";
    let found = cluster.sql(database, indexes);
    let trigrams = if has_trigrams { "conversation_title_trigram " } else { "" };
    let texts = if has_trigrams { " search_text_trigram" } else { "" };
    assert_eq!(found, format!("{trigrams}raw_chunk_of_raw{texts}"));
}
