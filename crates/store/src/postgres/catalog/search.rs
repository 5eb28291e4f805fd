//! Texts in titles, inputs and answers. They are kept once more in small letters, made so by us: what `ILIKE` thinks of
//! letters depends on the locale of the database. With `pg_trgm` an index makes it fast.

use super::Db;
use super::rows::each;
use super::rows::sought as key;
use crate::catalog::texts::{Sought, like_pattern, snippet};
use crate::catalog::{CatalogLimits, Hit, HitPart, Page, PageRequest, Place};
use crate::error::StoreError;
use sqlx::Row;
use sqlx::postgres::PgRow;

/// A text in small letters, each by itself: no letter depends on what stands around it.
pub(super) fn folded(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// What a text matches in the tables; `None`: nothing.
pub(super) fn pattern(text: &str) -> String {
    like_pattern(&folded(text))
}

const HITS: &str = "SELECT * FROM (
    SELECT 0::smallint AS part, c.id AS conversation_id, c.title, NULL::text AS turn_id, c.title AS text,
        c.created_at AS at, (c.id || '.0') COLLATE \"C\" AS place
    FROM conversation c WHERE c.user_id = $1 AND c.folded LIKE $2
    UNION ALL
    SELECT s.part, c.id, c.title, t.id, CASE s.part WHEN 1 THEN b.input_text ELSE e.text END, t.created_at,
        (t.id || '.' || s.part) COLLATE \"C\"
    FROM said s JOIN turn t ON t.n = s.n JOIN conversation c ON c.id = t.conversation_id
        JOIN turn_begin b ON b.n = t.n LEFT JOIN turn_end e ON e.n = t.n
    WHERE t.user_id = $1 AND s.text LIKE $2) hit
 WHERE ($3::bigint IS NULL OR (at, place) < ($3, $4 COLLATE \"C\")) ORDER BY at DESC, place DESC LIMIT $5";

pub(super) async fn hits(
    db: Db<'_>,
    limits: &CatalogLimits,
    user: &str,
    text: &str,
    page: &PageRequest,
) -> Result<Page<Hit>, StoreError> {
    let place = page.place()?;
    let sought = Sought::of(text, limits.search_chars_max)?;
    let term = match &sought {
        Sought::Blank | Sought::Never => return Ok(Page { items: Vec::new(), next: None }),
        Sought::Indexed(text) | Sought::Short(text) => pattern(text),
    };
    let rows = sqlx::query(HITS)
        .bind(key(user))
        .bind(term)
        .bind(place.as_ref().map(|place| place.at))
        .bind(place.as_ref().map(|place| place.id.clone()))
        .bind(i64::from(page.rows() + 1))
        .fetch_all(db)
        .await?;
    let hits = each(&rows, |row| Ok((row.try_get::<String, _>("place")?, hit(row, sought.text())?)))?;
    let page = Page::of(hits, page.rows(), |(place, hit)| Place { at: hit.at, id: place.clone() });
    Ok(Page { items: page.items.into_iter().map(|(_, hit)| hit).collect(), next: page.next })
}

fn hit(row: &PgRow, sought: &str) -> Result<Hit, StoreError> {
    let part = match row.try_get::<i16, _>("part")? {
        0 => HitPart::Title,
        1 => HitPart::Input,
        _ => HitPart::Answer,
    };
    let text: Option<String> = row.try_get("text")?;
    Ok(Hit {
        conversation_id: row.try_get("conversation_id")?,
        title: row.try_get("title")?,
        turn_id: row.try_get("turn_id")?,
        part,
        snippet: snippet(&text.unwrap_or_default(), sought),
        at: row.try_get("at")?,
    })
}

/// Part 1: what was said.
pub(super) async fn index_input(db: Db<'_>, n: i64, text: &str) -> Result<(), StoreError> {
    index_said(db, n, 1, text).await
}

/// Part 2: what was answered.
pub(super) async fn index_answer(db: Db<'_>, n: i64, text: &str) -> Result<(), StoreError> {
    index_said(db, n, 2, text).await
}

async fn index_said(db: Db<'_>, n: i64, part: i16, text: &str) -> Result<(), StoreError> {
    if !text.is_empty() {
        sqlx::query("INSERT INTO said (n, part, text) VALUES ($1, $2, $3)")
            .bind(n)
            .bind(part)
            .bind(folded(text))
            .execute(db)
            .await?;
    }
    Ok(())
}
