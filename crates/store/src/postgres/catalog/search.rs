//! Texts in titles, inputs and answers. They are stored a second time, case-folded by us: case folding by
//! `ILIKE` depends on the locale of the database. With `pg_trgm` an index finds rare texts.
//!
//! That index has no order: for a common word it returns all hits before the newest one is known. So the
//! newest turns are scanned first, text by text, then the index is queried for the rest, and if that takes
//! too long, one stretch of turns after the other is scanned until time is over. A stretch that is unfinished
//! by then is cancelled, and the next page begins with it. If the first one is not finished in its time, a
//! smaller one is tried.

use crate::catalog::fold::fold;
use crate::catalog::texts::{SearchTerm, snippet};
use crate::catalog::{CatalogLimits, PagePosition, PageRequest, ResultPage, SearchHit, SearchHitPart};
use crate::error::StoreError;
use crate::postgres::connection::sanitize_param as key;
use crate::postgres::search_pool::{SearchSession, SearchStep, in_time};
use sqlx::Row;
use sqlx::postgres::PgRow;
use std::collections::HashMap;

/// Pattern of a text for the folded columns.
pub(super) fn pattern(text: &str) -> String {
    like_pattern(&fold(text))
}

/// A pattern for `LIKE … ESCAPE '\'` that matches what contains the text.
fn like_pattern(text: &str) -> String {
    let mut pattern = String::from("%");
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}

/// Hits of a stretch of time, as row numbers: texts are read only for those that are shown.
macro_rules! hits_query {
    ($title:literal, $text:literal) => {
        concat!(
            "SELECT part, n, at, position FROM (
    SELECT 0::smallint AS part, c.n, c.created_at AS at, (c.id || '.0') COLLATE \"C\" AS position
    FROM conversation c WHERE c.user_id = $1 AND c.temporary = 0 AND ",
            $title,
            " LIKE $2 AND c.created_at BETWEEN $3 AND $4
    UNION ALL
    SELECT s.part, s.n, t.created_at, (t.id || '.' || s.part) COLLATE \"C\"
    FROM turn t JOIN search_text s ON s.n = t.n
    WHERE t.user_id = $1 AND t.created_at BETWEEN $3 AND $4 AND ",
            $text,
            " LIKE $2
        AND NOT EXISTS (SELECT 1 FROM conversation c WHERE c.id = t.conversation_id AND c.temporary = 1)) hit
 WHERE (at, position) < ($4, $5 COLLATE \"C\") ORDER BY at DESC, position DESC LIMIT $6"
        )
    };
}

const HITS_BY_INDEX: &str = hits_query!("c.title_lower", "s.text");
/// For a word that it estimates as absent the planner would read every text, or the whole index; an
/// expression has neither an index nor a statistic, so this query goes by time.
const HITS_BY_TIME: &str = hits_query!("(c.title_lower || '')", "(s.text || '')");

/// Start of a stretch of this many turns.
const WINDOW_EDGE: &str = "SELECT created_at FROM turn WHERE user_id = $1 AND created_at < $2
    ORDER BY created_at DESC, id DESC OFFSET $3 LIMIT 1";

/// Hits by row number. Without statistics the planner would scan all texts of the user; an expression has no
/// index.
const SELECT_HITS: &str = "
    SELECT 0 AS part, c.n, c.id AS conversation_id, c.title, NULL::text AS turn_id, c.title AS text
    FROM conversation c WHERE c.n = ANY ($2) AND (c.user_id || '') = $1
    UNION ALL
    SELECT 1, t.n, c.id, c.title, t.id, b.input_text
    FROM turn t JOIN conversation c ON c.id = t.conversation_id JOIN turn_begin b ON b.n = t.n
    WHERE t.n = ANY ($3) AND (t.user_id || '') = $1
    UNION ALL
    SELECT 2, t.n, c.id, c.title, t.id, e.text
    FROM turn t JOIN conversation c ON c.id = t.conversation_id JOIN turn_end e ON e.n = t.n
    WHERE t.n = ANY ($4) AND (t.user_id || '') = $1";

/// Turns that are scanned, text by text, before the index is queried: a common word is found there quickly,
/// while the index would return all of its hits. The later sizes are for texts, or a database, too slow for
/// the first; the last one always runs to its end, so that each page advances.
pub(super) const FIRST_WINDOWS: [(SearchStep, i64); 3] =
    [(SearchStep::Begin, 250), (SearchStep::Begin, 16), (SearchStep::Least, 1)];
/// Stretches that are scanned one after the other when there is no index, or it was too slow: twice as many
/// turns each time, up to this many.
pub(super) const WINDOW_TURNS_MAX: i64 = 2_000;

/// A hit, with its position in the common order.
struct RankedHit {
    part: i16,
    n: i64,
    position: PagePosition,
}

/// Hits until the page is full, and where the next one begins if time is over before.
struct HitSearch<'a, 'b> {
    session: &'a mut SearchSession<'b>,
    user: &'a str,
    pattern: String,
    /// Position up to which everything has been searched.
    after: PagePosition,
    ranked: Vec<RankedHit>,
    rows: usize,
}

pub(super) async fn hits(
    session: &mut SearchSession<'_>,
    limits: &CatalogLimits,
    user: &str,
    text: &str,
    page: &PageRequest,
) -> Result<ResultPage<SearchHit>, StoreError> {
    // A position like any other: the next page begins with it if there was no time for anything.
    let first = page.position()?.unwrap_or_else(|| PagePosition::after_time(i64::MAX));
    let after = first.clone();
    let term = SearchTerm::parse(text, limits.search_chars_max)?;
    let (pattern, has_index) = match &term {
        SearchTerm::Blank | SearchTerm::Unmatchable => return Ok(ResultPage::empty()),
        SearchTerm::Indexed(text) => (pattern(text), true),
        SearchTerm::Short(text) => (pattern(text), false),
    };
    let rows = page.rows() as usize;
    let mut hit_search = HitSearch { session, user, pattern, after, ranked: Vec::new(), rows: rows + 1 };
    let is_complete = hit_search.run(has_index).await?;
    let HitSearch { session, mut ranked, after, .. } = hit_search;
    let next = if ranked.len() > rows {
        ranked.truncate(rows);
        ranked.last().map(|last| last.position.to_string())
    } else {
        (!is_complete).then(|| after.to_string())
    };
    let Some(rows_shown) = in_time(load_hits(session, user, &ranked).await)? else {
        return Ok(ResultPage { next: Some(first.to_string()), partial: true, ..ResultPage::empty() });
    };
    let items = shown_hits(&rows_shown, term.text(), &ranked)?;
    Ok(ResultPage { items, next, partial: !is_complete && ranked.len() < rows })
}

impl HitSearch<'_, '_> {
    /// True if everything has been searched, or the page is full.
    async fn run(&mut self, has_index: bool) -> Result<bool, StoreError> {
        let mut windows = FIRST_WINDOWS.into_iter();
        let mut turns = loop {
            let Some((step, turns)) = windows.next() else { return Ok(false) };
            match in_time(self.search_window(step, turns).await)? {
                Some(true) => return Ok(true),
                Some(false) => break turns,
                None => {}
            }
        };
        if has_index && !self.session.is_expired() {
            // Everything that remains.
            let result = self.query(SearchStep::AskIndex, HITS_BY_INDEX, i64::MIN).await;
            if in_time(result)?.is_some() {
                return Ok(true);
            }
        }
        while !self.session.is_expired() {
            turns = (turns * 2).min(WINDOW_TURNS_MAX);
            match in_time(self.search_window(SearchStep::Continue, turns).await)? {
                Some(true) => return Ok(true),
                Some(false) => {}
                None => return Ok(false),
            }
        }
        Ok(false)
    }

    /// Searches the next `turns` turns, and titles of the same time. Returns true if none are left or the
    /// page is full.
    async fn search_window(&mut self, step: SearchStep, turns: i64) -> Result<bool, sqlx::Error> {
        let edge: Option<i64> = sqlx::query_scalar(WINDOW_EDGE)
            .bind(key(self.user))
            .bind(self.after.at)
            .bind(turns)
            .fetch_optional(self.session.db(step).await?)
            .await?;
        self.query(step, HITS_BY_TIME, edge.unwrap_or(i64::MIN)).await?;
        // Also rows of this time, at any position.
        self.after = PagePosition::after_time(edge.unwrap_or(i64::MIN));
        Ok(edge.is_none() || self.ranked.len() >= self.rows)
    }

    async fn query(&mut self, step: SearchStep, query: &'static str, from: i64) -> Result<(), sqlx::Error> {
        let wanted = i64::try_from(self.rows - self.ranked.len()).unwrap_or(i64::MAX);
        let rows = sqlx::query(query)
            .bind(key(self.user))
            .bind(self.pattern.clone())
            .bind(from)
            .bind(self.after.at)
            .bind(self.after.id.clone())
            .bind(wanted)
            .fetch_all(self.session.db(step).await?)
            .await?;
        for row in rows {
            let position = PagePosition { at: row.try_get("at")?, id: row.try_get("position")? };
            self.ranked.push(RankedHit { part: row.try_get("part")?, n: row.try_get("n")?, position });
        }
        Ok(())
    }
}

/// Reads the titles and texts of hits.
async fn load_hits(
    session: &mut SearchSession<'_>,
    user: &str,
    ranked: &[RankedHit],
) -> Result<Vec<PgRow>, sqlx::Error> {
    let of = |part: i16| -> Vec<i64> {
        ranked.iter().filter(|ranked| ranked.part == part).map(|ranked| ranked.n).collect()
    };
    if ranked.is_empty() {
        return Ok(Vec::new());
    }
    let select = sqlx::query(SELECT_HITS).bind(key(user)).bind(of(0)).bind(of(1)).bind(of(2));
    select.fetch_all(session.db(SearchStep::Show).await?).await
}

/// The hits that are shown, in their order; hits that have just been deleted are left out.
fn shown_hits(rows: &[PgRow], term: &str, ranked: &[RankedHit]) -> Result<Vec<SearchHit>, StoreError> {
    let mut hits = HashMap::new();
    for row in rows {
        let (part, n): (i32, i64) = (row.try_get("part")?, row.try_get("n")?);
        hits.insert((part, n), row);
    }
    let shown = ranked.iter().filter_map(|ranked| {
        let row = hits.get(&(i32::from(ranked.part), ranked.n))?;
        Some(hit(row, term, ranked))
    });
    shown.collect()
}

fn hit(row: &PgRow, term: &str, ranked: &RankedHit) -> Result<SearchHit, StoreError> {
    let text: String = row.try_get("text")?;
    Ok(SearchHit {
        conversation_id: row.try_get("conversation_id")?,
        title: row.try_get("title")?,
        turn_id: row.try_get("turn_id")?,
        part: match ranked.part {
            0 => SearchHitPart::Title,
            1 => SearchHitPart::Input,
            _ => SearchHitPart::Answer,
        },
        snippet: snippet(&text, term),
        at: ranked.position.at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_wildcards_are_escaped() {
        assert_eq!(like_pattern("100%_\\"), "%100\\%\\_\\\\%");
    }
}
