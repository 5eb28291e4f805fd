//! Conversations that contain a text, those with the latest events first. As with hits
//! ([`search`](super::search)), the conversations with the latest events are scanned, then the index is
//! queried, then the next ones are scanned.

use super::db::PostgresCatalogDb;
use super::search::{self, FIRST_WINDOWS, WINDOW_TURNS_MAX};
use crate::catalog::sql::conversations;
use crate::catalog::texts::SearchTerm;
use crate::catalog::{ConversationFilter, ConversationSummary, PagePosition, PageRequest, ResultPage};
use crate::error::StoreError;
use crate::postgres::connection::sanitize_param as key;
use crate::postgres::search_pool::{SearchSession, SearchStep, in_time};
use sqlx::Row;

/// Condition of a [`ConversationFilter`].
macro_rules! filtered {
    ($before:literal, $after:literal) => {
        concat!(
            $before,
            " AND c.temporary = 0 AND ($6::text IS NULL OR c.folder = $6)
              AND ($7::text IS NULL OR EXISTS (
                SELECT 1 FROM conversation_tag g WHERE g.conversation_id = c.id AND g.tag = $7))
              AND ($8::boolean IS NULL OR (c.archived_at IS NOT NULL) = $8)
              AND ($9::boolean IS NULL OR (c.pinned_at IS NOT NULL) = $9) ",
            $after
        )
    };
}

/// The next conversations up to a total number of turns, at least one conversation, each with a flag if it
/// contains the text. `LIMIT` prevents the planner from scanning all texts first: it would treat the `EXISTS`
/// as a table to hash.
const NEXT_WINDOW: &str = filtered!(
    "
    WITH candidate AS MATERIALIZED (
        SELECT c.id, c.updated_at, c.title_lower, c.turns FROM conversation c
        WHERE c.user_id = $1 AND (c.updated_at, c.id) < ($3, $4)",
    "ORDER BY c.updated_at DESC, c.id DESC LIMIT $5
    ), page_window AS MATERIALIZED (
        SELECT * FROM (
            SELECT candidate.*, sum(turns) OVER newest_first - turns AS turns_before,
                row_number() OVER newest_first = count(*) OVER () AND count(*) OVER () < $5 AS is_last
            FROM candidate WINDOW newest_first AS (ORDER BY updated_at DESC, id DESC)
        ) counted WHERE turns_before < $10
    )
    SELECT page_window.id, page_window.updated_at,
        (page_window.title_lower || '') LIKE $2 OR text_hit.n IS NOT NULL AS is_hit, is_last
    FROM page_window LEFT JOIN LATERAL (
        SELECT t.n FROM turn t JOIN search_text s ON s.n = t.n
        WHERE t.conversation_id = page_window.id AND (s.text || '') LIKE $2 LIMIT 1) text_hit ON true
    ORDER BY page_window.updated_at DESC, page_window.id DESC"
);

/// All remaining conversations.
const ALL_REMAINING: &str = filtered!(
    "
    SELECT c.id, c.updated_at, true AS is_hit, false AS is_last FROM conversation c
    WHERE c.user_id = $1 AND (c.updated_at, c.id) < ($3, $4) AND (c.title_lower LIKE $2 OR c.id IN (
        SELECT t.conversation_id FROM search_text s JOIN turn t ON t.n = s.n WHERE t.user_id = $1 AND s.text LIKE $2))",
    "ORDER BY c.updated_at DESC, c.id DESC LIMIT $5"
);

/// Conversations that are looked through at a time, whose titles count, too.
const WINDOW_CONVERSATIONS_MAX: usize = 500;

struct ConversationSearch<'a, 'b> {
    session: &'a mut SearchSession<'b>,
    user: &'a str,
    filter: &'a ConversationFilter,
    pattern: String,
    /// Position up to which everything has been searched.
    after: PagePosition,
    conversation_ids: Vec<String>,
    rows: usize,
}

pub(super) async fn conversations(
    session: &mut SearchSession<'_>,
    user: &str,
    term: &SearchTerm,
    filter: &ConversationFilter,
    page: &PageRequest,
) -> Result<ResultPage<ConversationSummary>, StoreError> {
    // A position like any other: the next page begins with it if there was no time for anything.
    let first = page.position()?.unwrap_or_else(|| PagePosition::after_time(i64::MAX));
    let after = first.clone();
    let has_index = match term {
        SearchTerm::Blank | SearchTerm::Unmatchable => return Ok(ResultPage::empty()),
        SearchTerm::Indexed(_) => true,
        SearchTerm::Short(_) => false,
    };
    let pattern = search::pattern(term.text());
    let rows = page.rows() as usize;
    let mut conversation_search =
        ConversationSearch { session, user, filter, pattern, after, conversation_ids: Vec::new(), rows };
    let is_complete = conversation_search.run(has_index).await?;
    let ConversationSearch { session, conversation_ids, after, .. } = conversation_search;
    let partial = !is_complete && conversation_ids.len() < rows;
    let items = match load(session, user, conversation_ids).await {
        Ok(items) => items,
        Err(StoreError::Busy { .. }) => {
            return Ok(ResultPage { next: Some(first.to_string()), partial: true, ..ResultPage::empty() });
        }
        Err(error) => return Err(error),
    };
    Ok(ResultPage { items, next: (!is_complete).then(|| after.to_string()), partial })
}

/// Reads the conversations that are shown. Busy if that took too long.
async fn load(
    session: &mut SearchSession<'_>,
    user: &str,
    ids: Vec<String>,
) -> Result<Vec<ConversationSummary>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let db = session.db(SearchStep::Show).await?;
    conversations::by_ids(&mut PostgresCatalogDb::reader(db), user, ids).await
}

impl ConversationSearch<'_, '_> {
    /// True if there is nothing after the rows that were searched.
    async fn run(&mut self, has_index: bool) -> Result<bool, StoreError> {
        let mut windows = FIRST_WINDOWS.into_iter();
        let mut turns = loop {
            let Some((step, turns)) = windows.next() else { return Ok(false) };
            match in_time(self.search_window(step, turns).await)? {
                Some(Some(ended)) => return Ok(ended),
                Some(None) => break turns,
                None => {}
            }
        };
        if has_index && !self.session.is_expired() {
            let limit = self.rows - self.conversation_ids.len() + 1;
            let result = self.query(SearchStep::AskIndex, ALL_REMAINING, limit, None).await;
            if let Some(window) = in_time(result)? {
                return Ok(self.conversation_ids.len() < self.rows || !window.page_full);
            }
        }
        while !self.session.is_expired() {
            turns = (turns * 2).min(WINDOW_TURNS_MAX);
            match in_time(self.search_window(SearchStep::Continue, turns).await)? {
                Some(Some(ended)) => return Ok(ended),
                Some(None) => {}
                None => return Ok(false),
            }
        }
        Ok(false)
    }

    /// Searches the next `turns` turns; returns whether these were the last ones, once that is known or the
    /// page is full.
    async fn search_window(&mut self, step: SearchStep, turns: i64) -> Result<Option<bool>, sqlx::Error> {
        let window = self.query(step, NEXT_WINDOW, WINDOW_CONVERSATIONS_MAX, Some(turns)).await?;
        let ended = window.ended && !window.page_full;
        Ok((ended || self.conversation_ids.len() >= self.rows).then_some(ended))
    }

    async fn query(
        &mut self,
        step: SearchStep,
        query: &'static str,
        limit: usize,
        turns: Option<i64>,
    ) -> Result<WindowResult, sqlx::Error> {
        let statement = sqlx::query(query)
            .bind(key(self.user))
            .bind(&self.pattern)
            .bind(self.after.at)
            .bind(&self.after.id)
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .bind(self.filter.folder.as_deref().map(key))
            .bind(self.filter.tag.as_deref().map(key))
            .bind(self.filter.archived)
            .bind(self.filter.pinned);
        let statement = match turns {
            Some(turns) => statement.bind(turns),
            None => statement,
        };
        let rows = statement.fetch_all(self.session.db(step).await?).await?;
        let mut ended = rows.is_empty();
        for row in &rows {
            // Conversations after a full page belong to the next one.
            if self.conversation_ids.len() == self.rows {
                return Ok(WindowResult { ended, page_full: true });
            }
            let id: String = row.try_get("id")?;
            self.after = PagePosition { at: row.try_get("updated_at")?, id: id.clone() };
            ended = row.try_get("is_last")?;
            if row.try_get("is_hit")? {
                self.conversation_ids.push(id);
            }
        }
        Ok(WindowResult { ended, page_full: false })
    }
}

struct WindowResult {
    /// True if no conversations are left.
    ended: bool,
    /// The page was full before the last of them.
    page_full: bool,
}
