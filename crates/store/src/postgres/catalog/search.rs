//! Texts in titles, inputs and answers. They are kept once more in small letters, made so by us: what `ILIKE` thinks of
//! letters depends on the locale of the database. With `pg_trgm` an index finds what is rare.
//!
//! That index has no order: of a common word it names all hits before the first one is known to be the newest. So the
//! newest turns are looked through first, text by text, then the index is asked about the rest, and if that takes too long,
//! one stretch of turns after the other is looked through until time is over.

use super::Db;
use super::rows::sought as key;
use crate::catalog::texts::{Sought, like_pattern, snippet};
use crate::catalog::{CatalogLimits, Hit, HitPart, Page, PageRequest, Place};
use crate::error::StoreError;
use crate::postgres::searchers::{Searching, took_too_long};
use sqlx::Row;
use sqlx::postgres::PgRow;
use std::collections::HashMap;

/// A text in small letters, each by itself: no letter depends on what stands around it.
pub(super) fn folded(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// What a text matches in the tables; `None`: nothing.
pub(super) fn pattern(text: &str) -> String {
    like_pattern(&folded(text))
}

/// Hits of a stretch of time, as numbers: what they say is looked up for those that are shown.
const HITS: &str = "SELECT part, n, at, place FROM (
    SELECT 0::smallint AS part, c.n, c.created_at AS at, (c.id || '.0') COLLATE \"C\" AS place
    FROM conversation c WHERE c.user_id = $1 AND c.folded LIKE $2 AND c.created_at BETWEEN $3 AND $4
    UNION ALL
    SELECT s.part, s.n, t.created_at, (t.id || '.' || s.part) COLLATE \"C\"
    FROM turn t JOIN said s ON s.n = t.n
    WHERE t.user_id = $1 AND t.created_at BETWEEN $3 AND $4 AND s.text LIKE $2) hit
 WHERE (at, place) < ($4, $5 COLLATE \"C\") ORDER BY at DESC, place DESC LIMIT $6";

/// Where a stretch of so many turns begins.
const EDGE: &str = "SELECT created_at FROM turn WHERE user_id = $1 AND created_at < $2
    ORDER BY created_at DESC, id DESC OFFSET $3 LIMIT 1";

const SHOWN: &str = "
    SELECT 0 AS part, c.n, c.id AS conversation_id, c.title, NULL::text AS turn_id, c.title AS text
    FROM conversation c WHERE c.n = ANY ($2) AND c.user_id = $1
    UNION ALL
    SELECT 1, t.n, c.id, c.title, t.id, b.input_text
    FROM turn t JOIN conversation c ON c.id = t.conversation_id JOIN turn_begin b ON b.n = t.n
    WHERE t.n = ANY ($3) AND t.user_id = $1
    UNION ALL
    SELECT 2, t.n, c.id, c.title, t.id, e.text
    FROM turn t JOIN conversation c ON c.id = t.conversation_id JOIN turn_end e ON e.n = t.n
    WHERE t.n = ANY ($4) AND t.user_id = $1";

/// Turns that are looked through, text by text, before the index is asked: a common word is found there at once, and the
/// index would name all of its hits.
const FIRST_TURNS: i64 = 500;
/// Likewise one after the other when the index was not quick enough.
const TURNS: i64 = 2_000;

/// A hit, and where it stands in the order of all.
struct Found {
    part: i16,
    n: i64,
    place: Place,
}

/// Hits until the page is full, and where the next one begins if time is over before.
struct Walk<'a, 'b> {
    searching: &'a mut Searching<'b>,
    user: &'a str,
    pattern: String,
    /// Everything before it has been looked at.
    after: Place,
    found: Vec<Found>,
    rows: usize,
}

pub(super) async fn hits(
    searching: &mut Searching<'_>,
    limits: &CatalogLimits,
    user: &str,
    text: &str,
    page: &PageRequest,
) -> Result<Page<Hit>, StoreError> {
    let first = Place { at: i64::MAX, id: String::new() };
    let after = page.place()?.unwrap_or(first);
    let sought = Sought::of(text, limits.search_chars_max)?;
    let (pattern, has_index) = match &sought {
        Sought::Blank | Sought::Never => return Ok(Page::empty()),
        Sought::Indexed(text) => (pattern(text), true),
        Sought::Short(text) => (pattern(text), false),
    };
    let rows = page.rows() as usize;
    let mut walk = Walk { searching, user, pattern, after, found: Vec::new(), rows: rows + 1 };
    let is_whole = walk.walk(has_index).await?;
    let Walk { searching, mut found, after, .. } = walk;
    let next = if found.len() > rows {
        found.truncate(rows);
        found.last().map(|last| last.place.to_string())
    } else {
        (!is_whole).then(|| after.to_string())
    };
    let items = shown(searching.db()?, user, sought.text(), &found).await?;
    Ok(Page { items, next, partial: !is_whole && found.len() < rows })
}

impl Walk<'_, '_> {
    /// Whether everything has been looked at, or the page is full.
    async fn walk(&mut self, has_index: bool) -> Result<bool, StoreError> {
        if self.stretch(FIRST_TURNS).await? {
            return Ok(true);
        }
        if has_index && self.rest().await? {
            return Ok(true);
        }
        loop {
            if self.searching.is_over() {
                return Ok(false);
            }
            if self.stretch(TURNS).await? {
                return Ok(true);
            }
        }
    }

    /// The next so many turns, and titles of their time. Whether that was all, or enough.
    async fn stretch(&mut self, turns: i64) -> Result<bool, StoreError> {
        let edge: Option<i64> = sqlx::query_scalar(EDGE)
            .bind(key(self.user))
            .bind(self.after.at)
            .bind(turns)
            .fetch_optional(self.searching.db()?)
            .await?;
        self.look(edge.unwrap_or(i64::MIN)).await?;
        // Also those of this time, whatever their place.
        self.after = Place { at: edge.unwrap_or(i64::MIN), id: String::new() };
        Ok(edge.is_none() || self.found.len() >= self.rows)
    }

    /// Everything that is left, by the index. `false`: it is too much for the time that there is.
    async fn rest(&mut self) -> Result<bool, StoreError> {
        self.searching.hurry().await?;
        let looked = self.look(i64::MIN).await;
        self.searching.take_time().await?;
        match looked {
            Ok(()) => Ok(true),
            Err(error) if took_too_long(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn look(&mut self, from: i64) -> Result<(), sqlx::Error> {
        let db = self.searching.db().map_err(|_| sqlx::Error::PoolClosed)?;
        let rows = sqlx::query(HITS)
            .bind(key(self.user))
            .bind(&self.pattern)
            .bind(from)
            .bind(self.after.at)
            .bind(&self.after.id)
            .bind(i64::try_from(self.rows - self.found.len()).unwrap_or(i64::MAX))
            .fetch_all(db)
            .await?;
        for row in rows {
            let place = Place { at: row.try_get("at")?, id: row.try_get("place")? };
            self.found.push(Found { part: row.try_get("part")?, n: row.try_get("n")?, place });
        }
        Ok(())
    }
}

/// Hits as they are shown, in their order; those that have just gone are left out.
async fn shown(db: Db<'_>, user: &str, sought: &str, found: &[Found]) -> Result<Vec<Hit>, StoreError> {
    let of = |part: i16| -> Vec<i64> {
        found.iter().filter(|found| found.part == part).map(|found| found.n).collect()
    };
    let rows = sqlx::query(SHOWN).bind(key(user)).bind(of(0)).bind(of(1)).bind(of(2)).fetch_all(db).await?;
    let mut hits = HashMap::new();
    for row in &rows {
        let (part, n): (i32, i64) = (row.try_get("part")?, row.try_get("n")?);
        hits.insert((part, n), row);
    }
    let shown = found.iter().filter_map(|found| {
        let row = hits.get(&(i32::from(found.part), found.n))?;
        Some(hit(row, sought, found))
    });
    shown.collect()
}

fn hit(row: &PgRow, sought: &str, found: &Found) -> Result<Hit, StoreError> {
    let text: String = row.try_get("text")?;
    Ok(Hit {
        conversation_id: row.try_get("conversation_id")?,
        title: row.try_get("title")?,
        turn_id: row.try_get("turn_id")?,
        part: match found.part {
            0 => HitPart::Title,
            1 => HitPart::Input,
            _ => HitPart::Answer,
        },
        snippet: snippet(&text, sought),
        at: found.place.at,
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
