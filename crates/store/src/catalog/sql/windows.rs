//! Searches that no index answers: rows are looked through in windows of time, newest first, until the page is full or
//! the time of a search is over.

use super::{CatalogDb, SqlText, bind, query_optional};
use crate::catalog::{CatalogLimits, PagePosition, PageRequest, ResultPage};
use crate::error::StoreError;
use std::time::{Duration, Instant};

/// Rows of the first window, and of the largest. Each window has twice as many as the one before.
const WINDOW_ROWS: (i64, i64) = (250, 2_000);

/// The window that is being looked through.
pub(super) struct SearchWindow<'a> {
    /// Finds the time `at` of the row of user `$1` that `$3` rows before time `$2` precede.
    find_edge: &'a SqlText,
    user: &'a str,
    before: Option<PagePosition>,
    /// Time of its oldest row; `None` = the window has all remaining rows.
    edge: Option<i64>,
    oldest: Option<i64>,
    rows: i64,
    deadline: Instant,
}

impl<'a> SearchWindow<'a> {
    /// The first window of a page in the rows from a time on, until another.
    pub(super) async fn first(
        db: &mut dyn CatalogDb,
        limits: &CatalogLimits,
        (find_edge, user): (&'a SqlText, &'a str),
        (from, until): (Option<i64>, Option<i64>),
        page: &PageRequest,
    ) -> Result<Self, StoreError> {
        let before = page.position()?.or(until.map(PagePosition::after_time));
        let deadline = Instant::now() + Duration::from_millis(limits.search_ms_max);
        let rows = WINDOW_ROWS.0;
        let mut window = Self { find_edge, user, before, edge: None, oldest: from, rows, deadline };
        window.find_edge(db).await?;
        Ok(window)
    }

    /// Advances to the older rows. `false`: there are none, or the time limit is reached.
    pub(super) async fn advance(&mut self, db: &mut dyn CatalogDb) -> Result<bool, StoreError> {
        if self.edge.is_none() || self.is_cut_short() {
            return Ok(false);
        }
        self.before = self.edge.map(PagePosition::after_time);
        self.rows = (self.rows * 2).min(WINDOW_ROWS.1);
        self.find_edge(db).await?;
        Ok(true)
    }

    async fn find_edge(&mut self, db: &mut dyn CatalogDb) -> Result<(), StoreError> {
        let params = bind![self.user, self.until(), self.rows];
        let edge: Option<i64> = query_optional(db, self.find_edge, params, |row| row.get("at")).await?;
        // Rows older than the oldest wanted one are not read.
        self.edge = edge.filter(|edge| self.oldest.is_none_or(|oldest| *edge > oldest));
        Ok(())
    }

    /// Upper bound: the window's rows come after this one in the list; `None` = it begins with the newest.
    pub(super) fn before(&self) -> (Option<i64>, Option<&'_ str>) {
        (self.until(), self.before.as_ref().map(|before| before.id.as_str()))
    }

    /// Time of that position; `None` = the window begins with the newest row.
    pub(super) fn until(&self) -> Option<i64> {
        self.before.as_ref().map(|before| before.at)
    }

    /// Lower bound in time, inclusive.
    pub(super) fn from(&self) -> Option<i64> {
        self.edge.or(self.oldest)
    }

    /// Time is over although rows are left.
    pub(super) fn is_cut_short(&self) -> bool {
        self.edge.is_some() && Instant::now() >= self.deadline
    }

    /// A page of the rows found, which are one more than the page has if another page follows.
    pub(super) fn into_page<T>(
        self,
        found: Vec<T>,
        rows: u32,
        position: impl Fn(&T) -> PagePosition,
    ) -> ResultPage<T> {
        match self.edge.filter(|_| found.len() <= rows as usize) {
            None => ResultPage::from_rows(found, rows, position),
            Some(edge) => {
                let next = Some(PagePosition::after_time(edge).to_string());
                ResultPage { items: found, next, partial: true }
            }
        }
    }
}
