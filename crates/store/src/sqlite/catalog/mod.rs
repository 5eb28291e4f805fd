//! The catalog, in the same file as the log. Its tables: `schema/catalog.sql`.

pub(super) mod db;
pub(super) mod search;

use super::SqliteStore;
use super::search_pool::SearchBudget;
use crate::catalog::methods::{CatalogBackend, CatalogJob};
use crate::catalog::sql::turns;
use crate::catalog::texts::SearchTerm;
use crate::catalog::{
    CatalogLimits, ConversationFilter, ConversationSummary, OpenTurn, PageRequest, ResultPage, SearchHit,
};
use crate::error::StoreError;
use crate::log::Durability::{self, Process};
use async_trait::async_trait;
use db::run_now;
use futures_util::FutureExt;
use rusqlite::Connection;
use search::{INDEX_BATCH_BYTES, IndexState};
use std::sync::Arc;
use std::time::{Duration, Instant};

impl SqliteStore {
    /// Searches all texts up to now: texts that wait for the index are indexed first. If that takes longer
    /// than the time of a search, they are indexed when the writer is idle, and the page is marked partial.
    async fn search_indexed<T: Send + 'static>(
        &self,
        f: impl Fn(&mut Connection, &SearchBudget) -> Result<ResultPage<T>, StoreError> + Send + Sync + 'static,
    ) -> Result<ResultPage<T>, StoreError> {
        let f = Arc::new(f);
        let first = f.clone();
        let first_page = self.run_search(move |db, budget| match search::index_state(db)? {
            IndexState::Complete => in_snapshot(db, |view| first(view, budget)).map(Some),
            IndexState::Stale => Ok(None),
        });
        if let Some(page) = first_page.await? {
            return Ok(page);
        }
        let index = self.index_pending().await;
        let page = self.run_search(move |db, budget| in_snapshot(db, |view| f(view, budget))).await?;
        Ok(ResultPage { partial: page.partial || index == IndexState::Stale, ..page })
    }

    /// Indexes what waits, in pieces between which others write. A store that cannot be written is searched as far as its
    /// index goes.
    async fn index_pending(&self) -> IndexState {
        let until = Instant::now() + Duration::from_millis(self.limits().search_ms_max / 3);
        loop {
            match self.write(Process, |db| search::index(db, INDEX_BATCH_BYTES)).await {
                Ok(IndexState::Stale) if Instant::now() < until => {}
                Ok(index) => return index,
                Err(_) => return IndexState::Stale,
            }
        }
    }
}

#[async_trait]
impl CatalogBackend for SqliteStore {
    fn limits(&self) -> CatalogLimits {
        self.inner.shared.settings.catalog
    }

    async fn read<T: Send + 'static>(&self, job: CatalogJob<T>) -> Result<T, StoreError> {
        self.read(move |db| run_now(db, job)).await
    }

    async fn scan<T: Send + 'static>(&self, job: CatalogJob<T>) -> Result<T, StoreError> {
        self.run_search(move |db, _| run_now(db, job)).await
    }

    async fn write<T: Send + 'static>(
        &self,
        durability: Durability,
        _user: &str,
        job: CatalogJob<T>,
    ) -> Result<T, StoreError> {
        self.write(durability, move |db| run_now(db, job)).await
    }

    fn evict(&self, turn_id: &str) {
        self.evict_turn(turn_id);
    }

    async fn open_turn_rows(&self) -> Result<Vec<OpenTurn>, StoreError> {
        self.read(|db| run_now(db, |db| turns::open_turns(db).boxed())).await
    }

    async fn search_hits(
        &self,
        user: &str,
        text: &str,
        page: &PageRequest,
    ) -> Result<ResultPage<SearchHit>, StoreError> {
        let (limits, user, text, page) = (self.limits(), user.to_owned(), text.to_owned(), page.clone());
        self.search_indexed(move |db, budget| search::hits(db, &limits, &user, &text, &page, budget)).await
    }

    async fn search_conversations(
        &self,
        user: &str,
        term: SearchTerm,
        filter: &ConversationFilter,
        page: &PageRequest,
    ) -> Result<ResultPage<ConversationSummary>, StoreError> {
        let (user, filter, page) = (user.to_owned(), filter.clone(), page.clone());
        self.search_indexed(move |db, budget| {
            search::conversations_with(db, &user, &term, &filter, &page, budget)
        })
        .await
    }
}

/// Reads in one snapshot of the file: rows that are removed during it are still visible.
fn in_snapshot<T>(
    db: &mut Connection,
    read: impl FnOnce(&mut Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    db.execute_batch("BEGIN")?;
    let result = read(db);
    // If this fails, the pool closes the connection.
    let _ = db.execute_batch("ROLLBACK");
    result
}

#[cfg(test)]
mod tests {
    use crate::catalog::sql::conversations::LISTS;
    use rusqlite::{Connection, params_from_iter};

    #[test]
    fn turn_list_pages_by_index_without_sorting() {
        let mut db = Connection::open_in_memory().unwrap();
        crate::sqlite::schema::migrate(&mut db, 0).unwrap();
        let list = crate::catalog::sql::turns::LIST;
        let mut explain = db.prepare(&format!("EXPLAIN QUERY PLAN {}", list.sqlite)).unwrap();
        let given = vec![rusqlite::types::Value::Null; explain.parameter_count()];
        let plan = explain.query_map(params_from_iter(given), |row| row.get::<_, String>("detail"));
        let plan: Vec<String> = plan.unwrap().collect::<Result<_, _>>().unwrap();
        let begin = "SEARCH t USING INDEX turn_of_user (user_id=? AND (created_at,id)<";
        assert!(plan[0].starts_with(begin), "{plan:#?}");
        assert!(plan.iter().all(|step| !step.contains("B-TREE") && !step.contains("SCAN t")), "{plan:#?}");
    }

    #[test]
    fn conversation_lists_page_by_index_without_sorting() {
        let mut db = Connection::open_in_memory().unwrap();
        crate::sqlite::schema::migrate(&mut db, 0).unwrap();
        for (index, list) in LISTS {
            let mut explain = db.prepare(&format!("EXPLAIN QUERY PLAN {}", list.sqlite)).unwrap();
            let given = vec![rusqlite::types::Value::Null; explain.parameter_count()];
            let plan = explain.query_map(params_from_iter(given), |row| row.get::<_, String>("detail"));
            let plan: Vec<String> = plan.unwrap().collect::<Result<_, _>>().unwrap();
            assert!(plan[0].contains(&format!("INDEX {index} (user_id=?")), "{plan:#?}");
            // From the position of the cursor on, no row is read twice and nothing is sorted.
            assert!(plan[0].contains("<"), "{plan:#?}");
            assert!(plan.iter().all(|step| !step.contains("B-TREE") && !step.contains("SCAN")), "{plan:#?}");
        }
    }
}
