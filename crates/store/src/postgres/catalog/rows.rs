//! Between rows of PostgreSQL and those of the catalog.

pub(super) use super::super::connection::sanitize_param;
use crate::error::StoreError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Row;
use sqlx::postgres::PgRow;

/// A number that PostgreSQL can hold.
pub(super) fn to_sql(field: &'static str, number: u64) -> Result<i64, StoreError> {
    i64::try_from(number).map_err(|_| StoreError::invalid(field, "it is larger than any number of ours"))
}

/// A number that is never negative in our tables.
pub(super) fn unsigned(row: &PgRow, column: &str) -> Result<u64, StoreError> {
    let number: i64 = row.try_get(column)?;
    Ok(u64::try_from(number).unwrap_or_default())
}

/// As [`unsigned`], if it is there.
pub(super) fn optional_unsigned(row: &PgRow, column: &str) -> Result<Option<u64>, StoreError> {
    let number: Option<i64> = row.try_get(column)?;
    Ok(number.and_then(|number| u64::try_from(number).ok()))
}

/// As [`unsigned`], of what is small.
pub(super) fn unsigned_32(row: &PgRow, column: &str) -> Result<u32, StoreError> {
    Ok(u32::try_from(unsigned(row, column)?).unwrap_or(u32::MAX))
}

/// JSON that we have written.
pub(super) fn json<T: DeserializeOwned>(row: &PgRow, column: &str) -> Result<T, StoreError> {
    let text: String = row.try_get(column)?;
    serde_json::from_str(&text).map_err(StoreError::failed)
}

/// As [`json`], if it is there.
pub(super) fn optional_json<T: DeserializeOwned>(row: &PgRow, column: &str) -> Result<Option<T>, StoreError> {
    let absent = row.try_get::<Option<String>, _>(column)?.is_none();
    if absent { Ok(None) } else { json(row, column).map(Some) }
}

pub(super) fn to_json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(StoreError::failed)
}

/// A value that is taken twice means that something of this id is there already; the rest is the store's fault.
pub(super) fn exists_error(what: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
    move |error| match &error {
        sqlx::Error::Database(database) if database.is_unique_violation() => StoreError::Exists { what },
        _ => error.into(),
    }
}

/// All rows as what they mean.
pub(super) fn map_rows<T>(
    rows: &[PgRow],
    of: impl Fn(&PgRow) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    rows.iter().map(of).collect()
}
