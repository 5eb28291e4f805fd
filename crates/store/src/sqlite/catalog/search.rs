//! Texts in titles, inputs and answers, by trigrams or, where they are too short for that, one by one.
//!
//! What was said in turn `n` is row `2n` of the index, what was answered row `2n + 1`.

use crate::catalog::texts::{Sought, like_pattern, snippet};
use crate::catalog::{CatalogLimits, Hit, HitPart, Page, PageRequest, Place};
use crate::error::StoreError;
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};

/// A condition on `conversation c`: `:term` is a [`phrase`].
pub(super) const CONVERSATIONS_INDEXED: &str = "AND (
    c.n IN (SELECT rowid FROM titled WHERE titled MATCH :term)
    OR c.id IN (SELECT t.conversation_id FROM said s JOIN turn t ON t.n = s.rowid / 2
        WHERE said MATCH :term AND t.user_id = :user))";

/// A condition on `conversation c`: `:term` is a pattern for `LIKE`.
pub(super) const CONVERSATIONS_SHORT: &str = "AND (
    c.title LIKE :term ESCAPE '\\'
    OR EXISTS (SELECT 1 FROM turn t JOIN turn_begin b ON b.n = t.n LEFT JOIN turn_end e ON e.n = t.n
        WHERE t.conversation_id = c.id
        AND (b.input_text LIKE :term ESCAPE '\\' OR e.text LIKE :term ESCAPE '\\')))";

/// Which rows: title, input and answer each in a form of its own, since only the index knows which part it found.
const HITS_INDEXED: &str = "
    SELECT 0 AS part, c.id AS conversation_id, c.title, NULL AS turn_id, c.title AS text, c.created_at AS at,
        c.id || '.0' AS place
    FROM titled i JOIN conversation c ON c.n = i.rowid WHERE titled MATCH :term AND c.user_id = :user
    UNION ALL
    SELECT 1 + (i.rowid % 2), c.id, c.title, t.id, CASE i.rowid % 2 WHEN 0 THEN b.input_text ELSE e.text END,
        t.created_at, t.id || '.' || (1 + i.rowid % 2)
    FROM said i JOIN turn t ON t.n = i.rowid / 2 JOIN conversation c ON c.id = t.conversation_id
        JOIN turn_begin b ON b.n = t.n LEFT JOIN turn_end e ON e.n = t.n
    WHERE said MATCH :term AND t.user_id = :user";

const HITS_SHORT: &str = "
    SELECT 0 AS part, c.id AS conversation_id, c.title, NULL AS turn_id, c.title AS text, c.created_at AS at,
        c.id || '.0' AS place
    FROM conversation c WHERE c.user_id = :user AND c.title LIKE :term ESCAPE '\\'
    UNION ALL
    SELECT 1, c.id, c.title, t.id, b.input_text, t.created_at, t.id || '.1'
    FROM turn t JOIN conversation c ON c.id = t.conversation_id JOIN turn_begin b ON b.n = t.n
    WHERE t.user_id = :user AND b.input_text LIKE :term ESCAPE '\\'
    UNION ALL
    SELECT 2, c.id, c.title, t.id, e.text, t.created_at, t.id || '.2'
    FROM turn t JOIN conversation c ON c.id = t.conversation_id JOIN turn_end e ON e.n = t.n
    WHERE t.user_id = :user AND e.text LIKE :term ESCAPE '\\'";

pub(super) fn hits(
    db: &Connection,
    limits: &CatalogLimits,
    user: &str,
    text: &str,
    page: &PageRequest,
) -> Result<Page<Hit>, StoreError> {
    let place = page.place()?;
    let sought = Sought::of(text, limits.search_chars_max)?;
    let (found, term) = match &sought {
        Sought::Blank | Sought::Never => return Ok(Page { items: Vec::new(), next: None }),
        Sought::Indexed(text) => (HITS_INDEXED, phrase(text)),
        Sought::Short(text) => (HITS_SHORT, like_pattern(text)),
    };
    let mut query = db.prepare_cached(&format!(
        "SELECT * FROM ({found}) WHERE (:at IS NULL OR (at, place) < (:at, :place))
         ORDER BY at DESC, place DESC LIMIT :rows"
    ))?;
    let rows = query.query_map(
        named_params! {
            ":user": user,
            ":term": term,
            ":at": place.as_ref().map(|place| place.at),
            ":place": place.as_ref().map(|place| &place.id),
            ":rows": page.rows() + 1,
        },
        |row| Ok((row.get::<_, String>("place")?, hit(row, sought.text())?)),
    )?;
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    let page = Page::of(rows, page.rows(), |(place, hit)| Place { at: hit.at, id: place.clone() });
    Ok(Page { items: page.items.into_iter().map(|(_, hit)| hit).collect(), next: page.next })
}

fn hit(row: &Row<'_>, sought: &str) -> rusqlite::Result<Hit> {
    let part = match row.get::<_, i64>("part")? {
        0 => HitPart::Title,
        1 => HitPart::Input,
        _ => HitPart::Answer,
    };
    let text: Option<String> = row.get("text")?;
    Ok(Hit {
        conversation_id: row.get("conversation_id")?,
        title: row.get("title")?,
        turn_id: row.get("turn_id")?,
        part,
        snippet: snippet(&text.unwrap_or_default(), sought),
        at: row.get("at")?,
    })
}

/// A text as FTS5 takes it: one phrase, in which nothing is an operator.
pub(super) fn phrase(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// A text of a conversation's turn is to be found. It is indexed later ([`index`]): that takes as long as all other writing
/// of a turn together, and whoever waits for the turn does not wait for that.
pub(super) fn index_input(db: &Connection, n: i64, text: &str) -> Result<(), StoreError> {
    index_later(db, n * 2, text)
}

/// The same of an answer.
pub(super) fn index_answer(db: &Connection, n: i64, text: &str) -> Result<(), StoreError> {
    index_later(db, n * 2 + 1, text)
}

/// The same of a title.
pub(super) fn index_title(db: &Connection, n: i64, title: &str) -> Result<(), StoreError> {
    index_later(db, -n, title)
}

fn index_later(db: &Connection, row: i64, text: &str) -> Result<(), StoreError> {
    if !text.is_empty() {
        db.prepare_cached("INSERT OR IGNORE INTO unindexed (row) VALUES (?1)")?.execute([row])?;
    }
    Ok(())
}

pub(super) fn forget_said(db: &Connection, n: i64) -> Result<(), StoreError> {
    for sql in ["DELETE FROM said WHERE rowid IN (?1, ?2)", "DELETE FROM unindexed WHERE row IN (?1, ?2)"] {
        db.prepare_cached(sql)?.execute([n * 2, n * 2 + 1])?;
    }
    Ok(())
}

pub(super) fn forget_title(db: &Connection, n: i64) -> Result<(), StoreError> {
    db.prepare_cached("DELETE FROM titled WHERE rowid = ?1")?.execute([n])?;
    db.prepare_cached("DELETE FROM unindexed WHERE row = ?1")?.execute([-n])?;
    Ok(())
}

/// Bytes of text indexed in one transaction, for which appends wait.
pub(in crate::sqlite) const INDEX_BYTES: usize = 16 << 10;

/// Whether everything that is to be found is in the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::sqlite) enum Index {
    Complete,
    /// Or nobody has looked yet.
    #[default]
    Behind,
}

/// How far the index is.
pub(in crate::sqlite) fn index_state(db: &Connection) -> Result<Index, StoreError> {
    let waits = db.prepare_cached("SELECT 1 FROM unindexed LIMIT 1")?.exists([])?;
    Ok(if waits { Index::Behind } else { Index::Complete })
}

/// Indexes texts that wait, those first that came first, until it has taken so many bytes: others wait for the transaction.
pub(in crate::sqlite) fn index(db: &Connection, bytes: usize) -> Result<Index, StoreError> {
    let mut next = db.prepare_cached(
        "SELECT row, CASE WHEN row < 0 THEN (SELECT title FROM conversation WHERE n = -row)
            WHEN row % 2 = 0 THEN (SELECT input_text FROM turn_begin WHERE n = row / 2)
            ELSE (SELECT text FROM turn_end WHERE n = row / 2) END
         FROM unindexed ORDER BY row LIMIT 1",
    )?;
    let mut taken = 0;
    while taken < bytes {
        let waits = next.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some((row, text)): Option<(i64, Option<String>)> = waits else { return Ok(Index::Complete) };
        if let Some(text) = text {
            taken += text.len();
            let (into, at) = match row < 0 {
                true => ("INSERT INTO titled (rowid, text) VALUES (?1, ?2)", -row),
                false => ("INSERT INTO said (rowid, text) VALUES (?1, ?2)", row),
            };
            db.prepare_cached(into)?.execute(params![at, text])?;
        }
        db.prepare_cached("DELETE FROM unindexed WHERE row = ?1")?.execute([row])?;
    }
    index_state(db)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store's tables, with turns of one conversation that said and answered this.
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
        let mut find = db.prepare("SELECT rowid FROM said WHERE said MATCH ?1 ORDER BY rowid").unwrap();
        let rows = find.query_map([phrase(text)], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    // R: S4
    #[test]
    fn texts_are_indexed_in_order_and_no_more_at_once_than_asked() {
        let db = turns(&[("sunny or not", "sunny"), ("and then", "sunny, too")]);
        assert_eq!((found(&db, "sunny"), index_state(&db)), (vec![], Ok(Index::Behind)));
        assert_eq!(index(&db, 8), Ok(Index::Behind), "the title and one text");
        assert_eq!(found(&db, "sunny"), [2]);
        assert_eq!(index(&db, 6), Ok(Index::Behind));
        assert_eq!(found(&db, "sunny"), [2, 3]);
        assert_eq!(index(&db, usize::MAX), Ok(Index::Complete));
        assert_eq!(found(&db, "sunny"), [2, 3, 5]);
        assert_eq!(index(&db, usize::MAX), Ok(Index::Complete), "nothing is indexed twice");
        assert_eq!(found(&db, "sunny"), [2, 3, 5]);
    }

    // R: S4
    #[test]
    fn what_is_gone_or_has_changed_before_it_was_indexed_is_not_found() {
        let db = turns(&[("sunny", "very"), ("sunny again", "indeed")]);
        forget_said(&db, 1).unwrap();
        db.execute("UPDATE conversation SET title = 'Clouds' WHERE n = 7", []).unwrap();
        forget_title(&db, 7).unwrap();
        index_title(&db, 7, "Clouds").unwrap();
        db.execute("DELETE FROM turn_end WHERE n = 2", []).unwrap();
        assert_eq!(index(&db, usize::MAX), Ok(Index::Complete));
        assert_eq!(found(&db, "sunny"), [4]);
        let titles: i64 = db
            .query_row("SELECT count(*) FROM titled WHERE titled MATCH ?1", [phrase("Weather")], |row| {
                row.get(0)
            })
            .unwrap();
        assert_eq!(titles, 0);
    }
}
