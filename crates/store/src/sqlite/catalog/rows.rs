//! Between rows of SQLite and those of the catalog.

use crate::error::StoreError;
use rusqlite::{ErrorCode, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A number that SQLite can hold.
pub(super) fn to_sql(field: &'static str, number: u64) -> Result<i64, StoreError> {
    i64::try_from(number).map_err(|_| StoreError::invalid(field, "it is larger than any number of ours"))
}

/// A number that is never negative in our tables.
pub(super) fn unsigned(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    Ok(u64::try_from(number).unwrap_or_default())
}

/// As [`unsigned`], if it is there.
pub(super) fn optional_unsigned(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<u64>> {
    let number: Option<i64> = row.get(column)?;
    Ok(number.and_then(|number| u64::try_from(number).ok()))
}

/// JSON that we have written.
pub(super) fn json<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    let index = row.as_ref().column_index(column)?;
    serde_json::from_str(&text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(index, rusqlite::types::Type::Text, error.into())
    })
}

/// As [`json`], if it is there.
pub(super) fn optional_json<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<T>> {
    let absent = row.get::<_, Option<String>>(column)?.is_none();
    if absent { Ok(None) } else { json(row, column).map(Some) }
}

pub(super) fn to_json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(StoreError::failed)
}

/// A broken constraint means that something of this id is there already; the rest is the store's fault.
pub(super) fn exists_error(what: &'static str) -> impl Fn(rusqlite::Error) -> StoreError {
    move |error| match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => StoreError::Exists { what },
        _ => error.into(),
    }
}
