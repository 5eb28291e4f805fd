//! The catalog's statements, once for both databases. Each function decides, asks and decodes; a [`CatalogDb`] only runs
//! the statements it is given.
//!
//! Placeholders are `$1`, `$2`, ... for both. Where the databases differ, a [`SqlText`] has two texts; everything else
//! that differs is a method of [`CatalogDb`]. SQLite runs a function on its writer thread or on a reader, where no future
//! waits; PostgreSQL runs the same one inside a transaction. Which of them is which method of the catalog:
//! [`methods`](super::methods).

pub(crate) mod calls;
pub(crate) mod conversations;
pub(crate) mod documents;
pub(crate) mod files;
pub(crate) mod filing;
pub(crate) mod keys;
pub(crate) mod overview;
pub(crate) mod people;
pub(crate) mod raw;
pub(crate) mod removal;
pub(crate) mod shares;
pub(crate) mod turns;
mod windows;

use super::page::{PagePosition, PageRequest};
use super::{CatalogLimits, MetricSamples, SampleRange};
use crate::error::StoreError;
use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;

/// SQL text of one statement.
#[derive(Clone, Copy)]
pub(crate) struct SqlText {
    #[cfg_attr(not(feature = "sqlite"), allow(dead_code, reason = "no one runs it"))]
    pub sqlite: &'static str,
    #[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "no one runs it"))]
    pub postgres: &'static str,
    /// Names the thing that exists already if the statement violates a constraint; `None`: that is a failure.
    pub exists: Option<&'static str>,
}

impl SqlText {
    /// A broken constraint means that a row of this id exists.
    pub(crate) const fn or_exists(self, what: &'static str) -> Self {
        Self { exists: Some(what), ..self }
    }
}

/// A statement from one text for both databases, from a text and a lock that only PostgreSQL needs, with a condition on
/// a list (`"... WHERE id", in 1, "..."`), or from two texts.
macro_rules! sql {
    ($both:expr) => {
        $crate::catalog::sql::SqlText { sqlite: $both, postgres: $both, exists: None }
    };
    ($both:literal, lock $lock:literal) => {
        sql!(sqlite: $both, postgres: concat!($both, " ", $lock))
    };
    ($before:expr, in $number:literal, $after:literal) => {
        sql!(
            sqlite: concat!($before, " IN (SELECT value FROM json_each($", $number, "))", $after),
            postgres: concat!($before, " = ANY ($", $number, ")", $after)
        )
    };
    (sqlite: $sqlite:expr, postgres: $postgres:expr) => {
        $crate::catalog::sql::SqlText { sqlite: $sqlite, postgres: $postgres, exists: None }
    };
}
use sql;

/// The value of a placeholder.
pub(crate) enum SqlParam<'a> {
    Text(Option<Cow<'a, str>>),
    Integer(Option<i64>),
    Bytes(&'a [u8]),
    /// A JSON array in SQLite, an array in PostgreSQL.
    Texts(Vec<String>),
    /// A list of numbers.
    Integers(Vec<i64>),
    /// A text that is looked for in others: itself for `contains_folded` of SQLite, a pattern for `~` of PostgreSQL.
    Sought(Option<&'a str>),
}

macro_rules! into_param {
    ($($kind:ident: |$value:ident: $from:ty| $into:expr;)*) => { $(
        impl<'a> From<$from> for SqlParam<'a> {
            fn from($value: $from) -> Self {
                Self::$kind($into)
            }
        }
    )* };
}

into_param! {
    Text: |text: &'a str| Some(text.into());
    Text: |text: &'a String| Some(text.into());
    Text: |text: String| Some(text.into());
    Text: |text: Cow<'a, str>| Some(text);
    Text: |text: Option<&'a str>| text.map(Cow::from);
    Text: |text: &'a Option<String>| text.as_deref().map(Cow::from);
    Text: |text: Option<String>| text.map(Cow::from);
    Text: |text: Option<Cow<'a, str>>| text;
    Integer: |number: i64| Some(number);
    Integer: |number: u32| Some(number.into());
    Integer: |number: Option<i64>| number;
    Bytes: |bytes: &'a [u8]| bytes;
    Texts: |texts: Vec<String>| texts;
    Integers: |numbers: Vec<i64>| numbers;
}

/// Values of placeholders, in their order.
macro_rules! bind {
    ($($value:expr),* $(,)?) => { &[$($crate::catalog::sql::SqlParam::from($value)),*] };
}
use bind;

/// A row of a result, by the names of its columns.
pub(crate) trait CatalogRow {
    fn text(&self, column: &str) -> Result<Option<String>, StoreError>;
    fn integer(&self, column: &str) -> Result<Option<i64>, StoreError>;
    fn bytes(&self, column: &str) -> Result<Vec<u8>, StoreError>;
}

impl dyn CatalogRow + '_ {
    pub(crate) fn get<T: FromColumn>(&self, column: &str) -> Result<T, StoreError> {
        T::from_column(self, column)
    }

    /// JSON that the catalog has written.
    pub(crate) fn json<T: DeserializeOwned>(&self, column: &str) -> Result<T, StoreError> {
        serde_json::from_str(&self.get::<String>(column)?).map_err(StoreError::failed)
    }

    pub(crate) fn optional_json<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>, StoreError> {
        let text: Option<String> = self.get(column)?;
        text.map(|text| serde_json::from_str(&text).map_err(StoreError::failed)).transpose()
    }
}

/// A type that a column is read as.
pub(crate) trait FromColumn: Sized {
    fn from_column(row: &dyn CatalogRow, column: &str) -> Result<Self, StoreError>;
}

fn is_null(column: &str) -> StoreError {
    StoreError::failed(format!("column `{column}` has no value"))
}

macro_rules! from_column {
    ($($target:ty: |$row:ident, $column:ident| $read:expr;)*) => { $(
        impl FromColumn for $target {
            fn from_column($row: &dyn CatalogRow, $column: &str) -> Result<Self, StoreError> {
                $read
            }
        }
    )* };
}

// Numbers that are never negative in the tables are unsigned outside.
from_column! {
    Option<String>: |row, column| row.text(column);
    String: |row, column| row.text(column)?.ok_or_else(|| is_null(column));
    Option<i64>: |row, column| row.integer(column);
    i64: |row, column| row.integer(column)?.ok_or_else(|| is_null(column));
    Option<u64>: |row, column| Ok(row.integer(column)?.and_then(|number| u64::try_from(number).ok()));
    u64: |row, column| Ok(u64::try_from(i64::from_column(row, column)?).unwrap_or_default());
    u32: |row, column| Ok(u32::try_from(u64::from_column(row, column)?).unwrap_or(u32::MAX));
    Vec<u8>: |row, column| row.bytes(column);
}

pub(crate) type RowDecoder<T> = fn(&dyn CatalogRow) -> Result<T, StoreError>;

/// A change of what can be searched, for an index that is not in the tables of the catalog.
#[cfg_attr(not(feature = "sqlite"), allow(dead_code, reason = "PostgreSQL searches the tables themselves"))]
pub(crate) enum IndexChange<'a> {
    /// A turn of a conversation has an input.
    Input(i64, &'a str),
    /// A turn of a conversation has an answer.
    Answer(i64, &'a str),
    /// A new conversation has a title.
    Title(i64, &'a str),
    /// The title of a conversation is another one.
    Retitled(i64, &'a str),
    /// A turn is deleted.
    TurnDeleted(i64),
    /// A conversation is deleted.
    ConversationDeleted(i64),
    /// Many texts were imported.
    Imported,
}

/// Takes the rows of a result, one by one.
pub(crate) type RowSink<'a> = dyn FnMut(&dyn CatalogRow) -> Result<(), StoreError> + Send + 'a;

/// A database that runs statements of the catalog: a connection, inside a transaction if the function writes.
#[async_trait]
pub(crate) trait CatalogDb: Send {
    /// Runs a statement and returns the number of rows that it changed.
    async fn execute(&mut self, sql: &SqlText, params: &[SqlParam<'_>]) -> Result<u64, StoreError>;

    /// Runs a statement and hands over its rows.
    async fn for_each_row(
        &mut self,
        sql: &SqlText,
        params: &[SqlParam<'_>],
        sink: &mut RowSink<'_>,
    ) -> Result<(), StoreError>;

    /// Keeps the search index in step with the tables.
    async fn update_index(&mut self, change: IndexChange<'_>) -> Result<(), StoreError>;

    /// Deletes the log of a turn whose row is deleted.
    async fn delete_turn_log(&mut self, turn_id: &str) -> Result<(), StoreError>;

    /// Id of this server among those that share the database.
    fn replica(&self) -> i64;
}

impl dyn CatalogDb + '_ {
    /// Runs a statement and decodes its rows.
    async fn query<T: Send>(
        &mut self,
        sql: &SqlText,
        params: &[SqlParam<'_>],
        decode: RowDecoder<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut rows = Vec::new();
        let mut sink = |row: &dyn CatalogRow| -> Result<(), StoreError> {
            rows.push(decode(row)?);
            Ok(())
        };
        self.for_each_row(sql, params, &mut sink).await?;
        Ok(rows)
    }
}

/// The one row, or none.
async fn query_optional<T: Send>(
    db: &mut dyn CatalogDb,
    sql: &SqlText,
    params: &[SqlParam<'_>],
    decode: RowDecoder<T>,
) -> Result<Option<T>, StoreError> {
    Ok(db.query(sql, params, decode).await?.into_iter().next())
}

/// Runs a query that returns exactly one row.
async fn query_one<T: Send>(
    db: &mut dyn CatalogDb,
    sql: &SqlText,
    params: &[SqlParam<'_>],
    decode: RowDecoder<T>,
) -> Result<T, StoreError> {
    let row = query_optional(db, sql, params, decode).await?;
    row.ok_or_else(|| StoreError::failed("a statement returned no row"))
}

/// True if the statement returns a row.
async fn exists(db: &mut dyn CatalogDb, sql: &SqlText, params: &[SqlParam<'_>]) -> Result<bool, StoreError> {
    Ok(!db.query(sql, params, |_| Ok(())).await?.is_empty())
}

/// Refuses one more row if there are `max` already.
async fn check_count(
    db: &mut dyn CatalogDb,
    sql: &SqlText,
    params: &[SqlParam<'_>],
    limit: &'static str,
    max: u64,
) -> Result<(), StoreError> {
    let count: u64 = query_one(db, sql, params, |row| row.get("count")).await?;
    if count >= max { Err(StoreError::OverLimit { limit, max }) } else { Ok(()) }
}

/// Turns and calls of a time as figures.
pub(crate) async fn samples(
    db: &mut dyn CatalogDb,
    user: &str,
    range: &SampleRange,
) -> Result<MetricSamples, StoreError> {
    Ok(MetricSamples {
        turns: turns::samples(db, user, range).await?,
        calls: calls::samples(db, user, range).await?,
        waiting: calls::count_waiting(db, user).await?,
    })
}

/// A number that a database can hold.
fn to_sql(field: &'static str, number: u64) -> Result<i64, StoreError> {
    i64::try_from(number).map_err(|_| StoreError::invalid(field, "it is too large for the database"))
}

fn to_json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(StoreError::failed)
}

/// The text that a list is filtered by; `None`: by none.
fn sought_text<'a>(limits: &CatalogLimits, text: Option<&'a str>) -> Result<Option<&'a str>, StoreError> {
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    let max = limits.search_chars_max;
    if text.is_some_and(|text| text.chars().count() > max) {
        return Err(StoreError::OverLimit { limit: "search_chars_max", max: max as u64 });
    }
    Ok(text)
}

/// Time and id of the row after which a page begins, and the number of rows to request: one more shows if
/// there is another page.
fn page_params(page: &PageRequest) -> Result<(Option<i64>, Option<String>, i64), StoreError> {
    let (at, id) = match page.position()? {
        Some(PagePosition { at, id }) => (Some(at), Some(id)),
        None => (None, None),
    };
    Ok((at, id, i64::from(page.rows() + 1)))
}
