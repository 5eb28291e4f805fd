//! Conversations in which a text is, those with the latest events first: as hits are found ([`search`](super::search)),
//! those with the latest events are looked through, then the index is asked, then the next ones are looked through.

use super::rows::sought as key;
use super::{conversations, search};
use crate::catalog::texts::Sought;
use crate::catalog::{ConversationSummary, Page, PageRequest, Place};
use crate::error::StoreError;
use crate::postgres::searchers::{Searching, took_too_long};
use sqlx::Row;

/// The next conversations, each with whether the text is in it.
const STRETCH: &str = "
    WITH stretch AS MATERIALIZED (
        SELECT c.id, c.updated_at, c.folded FROM conversation c
        WHERE c.user_id = $1 AND (c.updated_at, c.id) < ($3, $4)
        ORDER BY c.updated_at DESC, c.id DESC LIMIT $5
    )
    SELECT stretch.id, stretch.updated_at, (stretch.folded LIKE $2 OR EXISTS (
        SELECT 1 FROM turn t JOIN said s ON s.n = t.n WHERE t.conversation_id = stretch.id AND s.text LIKE $2)) AS is_hit
    FROM stretch ORDER BY stretch.updated_at DESC, stretch.id DESC";

/// All that are left.
const REST: &str = "
    SELECT c.id, c.updated_at, true AS is_hit FROM conversation c
    WHERE c.user_id = $1 AND (c.updated_at, c.id) < ($3, $4) AND (c.folded LIKE $2 OR c.id IN (
        SELECT t.conversation_id FROM said s JOIN turn t ON t.n = s.n WHERE t.user_id = $1 AND s.text LIKE $2))
    ORDER BY c.updated_at DESC, c.id DESC LIMIT $5";

/// Conversations that are looked through before the index is asked, and then at a time.
const FIRST_CONVERSATIONS: usize = 100;
const CONVERSATIONS: usize = 500;

struct Walk<'a, 'b> {
    searching: &'a mut Searching<'b>,
    user: &'a str,
    pattern: String,
    /// Everything before it has been looked at.
    after: Place,
    found: Vec<String>,
    rows: usize,
}

pub(super) async fn conversations(
    searching: &mut Searching<'_>,
    user: &str,
    sought: &Sought,
    page: &PageRequest,
) -> Result<Page<ConversationSummary>, StoreError> {
    let first = Place { at: i64::MAX, id: String::new() };
    let after = page.place()?.unwrap_or(first);
    let has_index = match sought {
        Sought::Blank | Sought::Never => return Ok(Page::empty()),
        Sought::Indexed(_) => true,
        Sought::Short(_) => false,
    };
    let pattern = search::pattern(sought.text());
    let rows = page.rows() as usize;
    let mut walk = Walk { searching, user, pattern, after, found: Vec::new(), rows };
    let is_whole = walk.walk(has_index).await?;
    let Walk { searching, found, after, .. } = walk;
    let partial = !is_whole && found.len() < rows;
    let items = conversations::by_ids(searching.db()?, user, &found).await?;
    Ok(Page { items, next: (!is_whole).then(|| after.to_string()), partial })
}

impl Walk<'_, '_> {
    /// Whether there is nothing behind what has been looked at.
    async fn walk(&mut self, has_index: bool) -> Result<bool, StoreError> {
        if let Some(ended) = self.stretch(FIRST_CONVERSATIONS).await? {
            return Ok(ended);
        }
        if has_index {
            self.searching.hurry().await?;
            let seen = self.look(REST, self.rows - self.found.len() + 1).await;
            self.searching.take_time().await?;
            match seen {
                Ok(seen) => return Ok(self.found.len() < self.rows || !seen.is_cut),
                Err(error) if took_too_long(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        while !self.searching.is_over() {
            if let Some(ended) = self.stretch(CONVERSATIONS).await? {
                return Ok(ended);
            }
        }
        Ok(false)
    }

    /// The next so many: whether these were the last ones, once that is known or the page is full.
    async fn stretch(&mut self, conversations: usize) -> Result<Option<bool>, StoreError> {
        let seen = self.look(STRETCH, conversations).await?;
        let ended = seen.rows < conversations && !seen.is_cut;
        Ok((ended || self.found.len() >= self.rows).then_some(ended))
    }

    async fn look(&mut self, query: &'static str, limit: usize) -> Result<Seen, sqlx::Error> {
        let db = self.searching.db().map_err(|_| sqlx::Error::PoolClosed)?;
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
            if self.found.len() == self.rows {
                return Ok(Seen { rows: rows.len(), is_cut: true });
            }
            let id: String = row.try_get("id")?;
            self.after = Place { at: row.try_get("updated_at")?, id: id.clone() };
            if row.try_get("is_hit")? {
                self.found.push(id);
            }
        }
        Ok(Seen { rows: rows.len(), is_cut: false })
    }
}

struct Seen {
    rows: usize,
    /// The page was full before the last of them.
    is_cut: bool,
}
