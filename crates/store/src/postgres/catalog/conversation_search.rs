//! Conversations in which a text is, those with the latest events first: as hits are found ([`search`](super::search)),
//! those with the latest events are looked through, then the index is asked, then the next ones are looked through.

use super::db::PostgresCatalogDb;
use super::search;
use crate::catalog::sql::conversations;
use crate::catalog::texts::SearchTerm;
use crate::catalog::{ConversationSummary, PagePosition, PageRequest, ResultPage};
use crate::error::StoreError;
use crate::postgres::connection::sanitize_param as key;
use crate::postgres::search_pool::{SearchSession, is_timeout};
use sqlx::Row;

/// The next conversations, each with whether the text is in it.
const NEXT_WINDOW: &str = "
    WITH page_window AS MATERIALIZED (
        SELECT c.id, c.updated_at, c.title_lower FROM conversation c
        WHERE c.user_id = $1 AND (c.updated_at, c.id) < ($3, $4)
        ORDER BY c.updated_at DESC, c.id DESC LIMIT $5
    )
    SELECT page_window.id, page_window.updated_at, (page_window.title_lower LIKE $2 OR EXISTS (
        SELECT 1 FROM turn t JOIN search_text s ON s.n = t.n WHERE t.conversation_id = page_window.id AND s.text LIKE $2)) AS is_hit
    FROM page_window ORDER BY page_window.updated_at DESC, page_window.id DESC";

/// All that are left.
const ALL_REMAINING: &str = "
    SELECT c.id, c.updated_at, true AS is_hit FROM conversation c
    WHERE c.user_id = $1 AND (c.updated_at, c.id) < ($3, $4) AND (c.title_lower LIKE $2 OR c.id IN (
        SELECT t.conversation_id FROM search_text s JOIN turn t ON t.n = s.n WHERE t.user_id = $1 AND s.text LIKE $2))
    ORDER BY c.updated_at DESC, c.id DESC LIMIT $5";

/// Conversations that are looked through before the index is asked, and then at a time.
const FIRST_WINDOW: usize = 100;
const WINDOW: usize = 500;

struct ConversationSearch<'a, 'b> {
    session: &'a mut SearchSession<'b>,
    user: &'a str,
    pattern: String,
    /// Everything before it has been looked at.
    after: PagePosition,
    conversation_ids: Vec<String>,
    rows: usize,
}

pub(super) async fn conversations(
    session: &mut SearchSession<'_>,
    user: &str,
    term: &SearchTerm,
    page: &PageRequest,
) -> Result<ResultPage<ConversationSummary>, StoreError> {
    let first = PagePosition { at: i64::MAX, id: String::new() };
    let after = page.position()?.unwrap_or(first);
    let has_index = match term {
        SearchTerm::Blank | SearchTerm::Unmatchable => return Ok(ResultPage::empty()),
        SearchTerm::Indexed(_) => true,
        SearchTerm::Short(_) => false,
    };
    let pattern = search::pattern(term.text());
    let rows = page.rows() as usize;
    let mut conversation_search =
        ConversationSearch { session, user, pattern, after, conversation_ids: Vec::new(), rows };
    let is_complete = conversation_search.run(has_index).await?;
    let ConversationSearch { session, conversation_ids, after, .. } = conversation_search;
    let partial = !is_complete && conversation_ids.len() < rows;
    let items =
        conversations::by_ids(&mut PostgresCatalogDb::reader(session.db()?), user, conversation_ids).await?;
    Ok(ResultPage { items, next: (!is_complete).then(|| after.to_string()), partial })
}

impl ConversationSearch<'_, '_> {
    /// True if there is nothing after the rows that were searched.
    async fn run(&mut self, has_index: bool) -> Result<bool, StoreError> {
        if let Some(ended) = self.search_window(FIRST_WINDOW).await? {
            return Ok(ended);
        }
        if has_index {
            self.session.use_search_timeout().await?;
            let window = self.query(ALL_REMAINING, self.rows - self.conversation_ids.len() + 1).await;
            self.session.use_wait_timeout().await?;
            match window {
                Ok(window) => return Ok(self.conversation_ids.len() < self.rows || !window.page_full),
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        while !self.session.is_expired() {
            if let Some(ended) = self.search_window(WINDOW).await? {
                return Ok(ended);
            }
        }
        Ok(false)
    }

    /// The next so many: whether these were the last ones, once that is known or the page is full.
    async fn search_window(&mut self, conversations: usize) -> Result<Option<bool>, StoreError> {
        let window = self.query(NEXT_WINDOW, conversations).await?;
        let ended = window.rows < conversations && !window.page_full;
        Ok((ended || self.conversation_ids.len() >= self.rows).then_some(ended))
    }

    async fn query(&mut self, query: &'static str, limit: usize) -> Result<WindowResult, sqlx::Error> {
        let db = self.session.db().map_err(|_| sqlx::Error::PoolClosed)?;
        let rows = sqlx::query(query)
            .bind(key(self.user))
            .bind(&self.pattern)
            .bind(self.after.at)
            .bind(&self.after.id)
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_all(db)
            .await?;
        for row in &rows {
            // What is behind a full page is of the next one.
            if self.conversation_ids.len() == self.rows {
                return Ok(WindowResult { rows: rows.len(), page_full: true });
            }
            let id: String = row.try_get("id")?;
            self.after = PagePosition { at: row.try_get("updated_at")?, id: id.clone() };
            if row.try_get("is_hit")? {
                self.conversation_ids.push(id);
            }
        }
        Ok(WindowResult { rows: rows.len(), page_full: false })
    }
}

struct WindowResult {
    rows: usize,
    /// The page was full before the last of them.
    page_full: bool,
}
