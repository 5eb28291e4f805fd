//! Lists in pages, newest first.

use crate::error::StoreError;
use serde::{Deserialize, Serialize};

/// Most rows of one page.
pub const PAGE_ROWS_MAX: u32 = 200;
/// Rows of a page by default.
pub const PAGE_ROWS_DEFAULT: u32 = 50;

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRequest {
    /// [`ResultPage::next`] of the page before; `None` = the first page.
    pub cursor: Option<String>,
    /// Most rows of the page, from 1 to [`PAGE_ROWS_MAX`]; a value outside is moved to the nearer end.
    pub limit: u32,
}

impl Default for PageRequest {
    fn default() -> Self {
        Self { cursor: None, limit: PAGE_ROWS_DEFAULT }
    }
}

impl PageRequest {
    /// The first page, of the usual size.
    pub fn first() -> Self {
        Self::default()
    }

    /// The page after `cursor`.
    pub fn after(cursor: impl Into<String>) -> Self {
        Self { cursor: Some(cursor.into()), ..Self::default() }
    }

    /// With other many rows.
    #[must_use]
    pub fn limit(self, limit: u32) -> Self {
        Self { limit, ..self }
    }

    /// Number of rows on the page, within the limits.
    pub fn rows(&self) -> u32 {
        self.limit.clamp(1, PAGE_ROWS_MAX)
    }

    /// Position after which the page begins.
    ///
    /// # Errors
    ///
    /// The cursor was not made by a page.
    pub fn position(&self) -> Result<Option<PagePosition>, StoreError> {
        self.cursor.as_deref().map(PagePosition::parse).transpose()
    }
}

/// Some rows, and where the next ones begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultPage<T> {
    /// Rows of the page, newest first.
    pub items: Vec<T>,
    /// Cursor of the next page; `None` = there is nothing more.
    pub next: Option<String>,
    /// True if not everything before [`next`](Self::next) has been searched, for want of time or because
    /// texts still wait for the index: there may be fewer items than requested, even none, although more
    /// exist.
    #[serde(default)]
    pub partial: bool,
}

impl<T> ResultPage<T> {
    /// A page of at most `rows` of `items`, which are one more than that if another page follows.
    pub(crate) fn from_rows(mut items: Vec<T>, rows: u32, position: impl Fn(&T) -> PagePosition) -> Self {
        let more = items.len() > rows as usize;
        items.truncate(rows as usize);
        let next = items.last().filter(|_| more).map(|last| position(last).to_string());
        Self { items, next, partial: false }
    }

    /// An empty page with no next one.
    pub fn empty() -> Self {
        Self { items: Vec::new(), next: None, partial: false }
    }
}

/// A position in a list: the time of a row and, among rows of the same time, its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagePosition {
    /// Milliseconds since 1970.
    pub at: i64,
    /// Id of the row.
    pub id: String,
}

impl PagePosition {
    /// After all rows of this time, newest first: their ids begin with letters, and a cursor has one.
    pub(crate) fn after_time(at: i64) -> Self {
        Self { at, id: "!".to_owned() }
    }

    fn parse(cursor: &str) -> Result<Self, StoreError> {
        let bad = || StoreError::invalid("cursor", "it is not a cursor of an earlier page");
        let (at, id) = cursor.split_once('~').ok_or_else(bad)?;
        if id.is_empty() || id.contains('\0') {
            return Err(bad());
        }
        Ok(Self { at: at.parse().map_err(|_| bad())?, id: id.to_owned() })
    }
}

impl std::fmt::Display for PagePosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}~{}", self.at, self.id)
    }
}
