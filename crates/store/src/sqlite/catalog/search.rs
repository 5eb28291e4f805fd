//! Texts in titles, inputs and answers, by trigrams or, where they are too short for that, one by one.
//!
//! What was said in turn `n` is row `2n` of the index, what was answered row `2n + 1`.

use crate::catalog::texts::{Sought, like_pattern, snippet};
use crate::catalog::{CatalogLimits, Hit, HitPart, Page, PageRequest, Place};
use crate::error::StoreError;
use rusqlite::{Connection, Row, named_params, params};

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

pub(super) fn index_input(db: &Connection, n: i64, text: &str) -> Result<(), StoreError> {
    index_said(db, n * 2, text)
}

pub(super) fn index_answer(db: &Connection, n: i64, text: &str) -> Result<(), StoreError> {
    index_said(db, n * 2 + 1, text)
}

fn index_said(db: &Connection, row: i64, text: &str) -> Result<(), StoreError> {
    if !text.is_empty() {
        db.prepare_cached("INSERT INTO said (rowid, text) VALUES (?1, ?2)")?.execute(params![row, text])?;
    }
    Ok(())
}

pub(super) fn forget_said(db: &Connection, n: i64) -> Result<(), StoreError> {
    db.prepare_cached("DELETE FROM said WHERE rowid IN (?1, ?2)")?.execute([n * 2, n * 2 + 1])?;
    Ok(())
}

pub(super) fn index_title(db: &Connection, n: i64, title: &str) -> Result<(), StoreError> {
    if !title.is_empty() {
        db.prepare_cached("INSERT INTO titled (rowid, text) VALUES (?1, ?2)")?.execute(params![n, title])?;
    }
    Ok(())
}

pub(super) fn forget_title(db: &Connection, n: i64) -> Result<(), StoreError> {
    db.prepare_cached("DELETE FROM titled WHERE rowid = ?1")?.execute([n])?;
    Ok(())
}
