//! The search index, which is filled a little later than the texts are written.
//!
//! Until then a text waits in `index_queue` under a key: `2n` for the input of turn `n`, `2n + 1` for its answer, `-n` for the
//! title of conversation `n`.

use super::grams::grams;
use super::scan::{MARK, is_marked};
use super::{ANSWER, INPUT, TITLE, rank};
use crate::catalog::fold::fold;
use crate::catalog::sql::removal::live_user;
use crate::error::StoreError;
use rusqlite::{Connection, OptionalExtension, params};

/// Queues a text of a conversation's turn for the index. It is indexed later ([`index`]): that takes as long
/// as all other writes of a turn together, and callers that wait for the turn should not wait for it.
pub(in super::super) fn index_input(db: &Connection, n: i64, text: &str) -> Result<(), StoreError> {
    enqueue(db, n * 2, text)
}

/// Queues an answer for the index.
pub(in super::super) fn index_answer(db: &Connection, n: i64, text: &str) -> Result<(), StoreError> {
    enqueue(db, n * 2 + 1, text)
}

/// Queues a title for the index.
pub(in super::super) fn index_title(db: &Connection, n: i64, title: &str) -> Result<(), StoreError> {
    enqueue(db, -n, title)
}

fn enqueue(db: &Connection, text_key: i64, text: &str) -> Result<(), StoreError> {
    if !text.is_empty() {
        db.prepare_cached("INSERT OR IGNORE INTO index_queue (text_key) VALUES (?1)")?.execute([text_key])?;
    }
    Ok(())
}

/// Removes the texts of a turn from the index.
pub(in super::super) fn remove_turn_texts(db: &Connection, n: i64) -> Result<(), StoreError> {
    remove(db, n, INPUT)?;
    remove(db, n, ANSWER)?;
    db.prepare_cached("DELETE FROM index_queue WHERE text_key IN (?1, ?2)")?.execute([n * 2, n * 2 + 1])?;
    Ok(())
}

/// Removes a title from the index.
pub(in super::super) fn remove_title(db: &Connection, n: i64) -> Result<(), StoreError> {
    remove(db, n, TITLE)?;
    db.prepare_cached("DELETE FROM index_queue WHERE text_key = ?1")?.execute([-n])?;
    Ok(())
}

fn remove(db: &Connection, n: i64, part: i64) -> Result<(), StoreError> {
    let rank: Option<i64> = db
        .prepare_cached("DELETE FROM search_row WHERE n = ?1 AND part = ?2 RETURNING rank")?
        .query_row([n, part], |row| row.get(0))
        .optional()?;
    if let Some(rank) = rank {
        db.prepare_cached("DELETE FROM search_trigram WHERE rowid = ?1")?.execute([rank])?;
        db.prepare_cached("DELETE FROM search_short WHERE rowid = ?1")?.execute([rank])?;
    }
    Ok(())
}

/// Bytes of text indexed in one transaction, for which appends wait.
pub(in crate::sqlite) const INDEX_BATCH_BYTES: usize = 16 << 10;

/// State of the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::sqlite) enum IndexState {
    Complete,
    /// Texts may wait, or the queue has not been checked yet.
    #[default]
    Stale,
}

/// Checks if texts wait for the index.
pub(in crate::sqlite) fn index_state(db: &Connection) -> Result<IndexState, StoreError> {
    let has_pending = db.prepare_cached("SELECT 1 FROM index_queue LIMIT 1")?.exists([])?;
    Ok(if has_pending { IndexState::Stale } else { IndexState::Complete })
}

/// Indexes waiting texts, the oldest first, up to this many bytes: other writers wait for the transaction.
pub(in crate::sqlite) fn index(db: &Connection, bytes: usize) -> Result<IndexState, StoreError> {
    let mut next = db.prepare_cached("SELECT text_key FROM index_queue ORDER BY text_key LIMIT 1")?;
    let mut indexed_bytes = 0;
    while indexed_bytes < bytes {
        let Some(text_key) = next.query_row([], |row| row.get::<_, i64>(0)).optional()? else {
            return Ok(IndexState::Complete);
        };
        if let Some(pending) = load_pending(db, text_key)? {
            // A text of one character costs something, too.
            indexed_bytes += pending.text.len().max(64);
            // A deleted conversation can be restored.
            let user_n = rank::ensure_user_number(db, live_user(&pending.user))?;
            let rank = rank::insert(db, user_n, pending.at, pending.part, pending.n)?;
            db.prepare_cached("INSERT INTO search_trigram (rowid, text) VALUES (?1, ?2)")?
                .execute(params![rank, with_mark(&pending)])?;
            db.prepare_cached("INSERT INTO search_short (rowid, grams) VALUES (?1, ?2)")?
                .execute(params![rank, grams(&pending.text)])?;
        }
        db.prepare_cached("DELETE FROM index_queue WHERE text_key = ?1")?.execute([text_key])?;
    }
    index_state(db)
}

/// A text as it is indexed. The tokenizer folds letters, too, but not those of every script.
fn with_mark(pending: &PendingText) -> String {
    let mut text = fold(&pending.text);
    // Texts do not normally have these characters; one that does must not act as a mark.
    if text.contains(MARK) {
        text = text.replace(MARK, " ");
    }
    if is_marked(pending.part, pending.n) {
        text.push_str(MARK);
    }
    text
}

/// A text that waits for the index.
struct PendingText {
    text: String,
    user: String,
    at: i64,
    part: i64,
    n: i64,
}

/// A text that waits; `None`: it has been deleted.
fn load_pending(db: &Connection, text_key: i64) -> Result<Option<PendingText>, StoreError> {
    let (query, part, n) = if text_key < 0 {
        ("SELECT title, user_id, created_at FROM conversation WHERE n = ?1", TITLE, -text_key)
    } else if text_key % 2 == 0 {
        let query = "SELECT b.input_text, t.user_id, t.created_at FROM turn t JOIN turn_begin b ON b.n = t.n WHERE t.n = ?1";
        (query, INPUT, text_key / 2)
    } else {
        let query =
            "SELECT e.text, t.user_id, t.created_at FROM turn t JOIN turn_end e ON e.n = t.n WHERE t.n = ?1";
        (query, ANSWER, text_key / 2)
    };
    let of = |row: &rusqlite::Row<'_>| {
        Ok(PendingText { text: row.get(0)?, user: row.get(1)?, at: row.get(2)?, part, n })
    };
    Ok(db.prepare_cached(query)?.query_row([n], of).optional()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store's tables, with turns of one conversation that have these inputs and answers.
    fn turns(texts: &[(&str, &str)]) -> Connection {
        let mut db = Connection::open_in_memory().unwrap();
        crate::sqlite::schema::migrate(&mut db, 0).unwrap();
        db.execute_batch(
            "INSERT INTO conversation (n, id, user_id, title, title_by, created_at, updated_at)
             VALUES (7, 'c', 'ann', 'Weather', 0, 1, 1)",
        )
        .unwrap();
        index_title(&db, 7, "Weather").unwrap();
        for (n, (input, answer)) in (1..).zip(texts) {
            db.execute(
                "INSERT INTO turn (n, id, user_id, conversation_id, message_id, agent, status, created_at, ended_at)
                 VALUES (?1, 't' || ?1, 'ann', 'c', 'm', 'a', 'completed', 1, 2)",
                [n],
            )
            .unwrap();
            db.execute("INSERT INTO turn_begin VALUES (?1, ?2, '')", params![n, input]).unwrap();
            db.execute("INSERT INTO turn_end VALUES (?1, '[]', ?2, NULL)", params![n, answer]).unwrap();
            index_input(&db, n, input).unwrap();
            index_answer(&db, n, answer).unwrap();
        }
        db
    }

    fn found(db: &Connection, text: &str) -> Vec<i64> {
        let mut find = db
            .prepare(
                "SELECT s.n * 2 + s.part - 1 AS row FROM search_trigram i JOIN search_row s ON s.rank = i.rowid
                 WHERE search_trigram MATCH ?1 AND s.part > 0 ORDER BY row",
            )
            .unwrap();
        let rows = find.query_map([text], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn texts_are_indexed_in_order_within_the_byte_budget() {
        let db = turns(&[("sunny or not", "sunny"), ("and then", "sunny, too")]);
        assert_eq!((found(&db, "sunny"), index_state(&db)), (vec![], Ok(IndexState::Stale)));
        assert_eq!(index(&db, 65), Ok(IndexState::Stale), "the title and one text");
        assert_eq!(found(&db, "sunny"), [2]);
        assert_eq!(index(&db, 6), Ok(IndexState::Stale));
        assert_eq!(found(&db, "sunny"), [2, 3]);
        assert_eq!(index(&db, usize::MAX), Ok(IndexState::Complete));
        assert_eq!(found(&db, "sunny"), [2, 3, 5]);
        assert_eq!(index(&db, usize::MAX), Ok(IndexState::Complete), "nothing is indexed twice");
        assert_eq!(found(&db, "sunny"), [2, 3, 5]);
    }

    #[test]
    fn deleted_or_changed_unindexed_texts_are_not_found() {
        let db = turns(&[("sunny", "very"), ("sunny again", "indeed")]);
        remove_turn_texts(&db, 1).unwrap();
        db.execute("UPDATE conversation SET title = 'Clouds' WHERE n = 7", []).unwrap();
        remove_title(&db, 7).unwrap();
        index_title(&db, 7, "Clouds").unwrap();
        db.execute("DELETE FROM turn_end WHERE n = 2", []).unwrap();
        assert_eq!(index(&db, usize::MAX), Ok(IndexState::Complete));
        assert_eq!(found(&db, "sunny"), [4]);
        let titles: i64 = db
            .query_row(
                "SELECT count(*) FROM search_trigram WHERE search_trigram MATCH 'Weather'",
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(titles, 0);
    }

    // Limit: `search_ms_max`.
    #[test]
    fn scan_of_trigram_matches_without_hits_can_be_stopped() {
        use crate::catalog::texts::SearchTerm;
        use crate::sqlite::catalog::search::scan::SearchScan;
        use std::ops::ControlFlow;

        let db = turns(&[("abcd bcde", "abcd bcde"); 150]);
        assert_eq!(index(&db, usize::MAX), Ok(IndexState::Complete));
        let walk = |text: &str, stops: ControlFlow<()>| {
            let scan = SearchScan::for_term(&db, "ann", &SearchTerm::parse(text, 99).unwrap(), None)
                .unwrap()
                .unwrap();
            let mut seen = Vec::new();
            scan.walk(&db, |found| {
                seen.push((found.part, found.n, found.is_marked()));
                Ok(stops)
            })
            .unwrap();
            seen
        };
        let marks = [(INPUT, 128, true), (INPUT, 64, true)];
        assert_eq!(walk("abcde", ControlFlow::Continue(())), marks);
        assert_eq!(walk("abcde", ControlFlow::Break(())), marks[..1]);
        assert_eq!(walk("bcde", ControlFlow::Continue(())).len(), 300, "hits, two of them marked");
    }
}
