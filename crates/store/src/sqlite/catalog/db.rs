//! Runs the catalog's statements on a connection of SQLite, synchronously: no future of this module ever
//! waits.

use super::search;
use crate::catalog::sql::{CatalogDb, CatalogRow, IndexChange, RowSink, SqlParam, SqlText};
use crate::error::StoreError;
use crate::sqlite::log;
use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{CachedStatement, Connection, ErrorCode, Row, ToSql};

/// A connection: the writer's, inside its transaction, or a reader's.
pub(in crate::sqlite) struct SqliteCatalogDb<'a>(pub &'a mut Connection);

/// The result of a function of the catalog.
pub(in crate::sqlite) fn run_now<T>(
    connection: &mut Connection,
    function: impl for<'a> FnOnce(&'a mut dyn CatalogDb) -> BoxFuture<'a, Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let result = function(&mut SqliteCatalogDb(connection)).now_or_never();
    result.unwrap_or_else(|| Err(StoreError::failed("a statement of SQLite waited")))
}

impl SqliteCatalogDb<'_> {
    fn prepare(&self, sql: &SqlText, params: &[SqlParam<'_>]) -> rusqlite::Result<CachedStatement<'_>> {
        let mut statement = self.0.prepare_cached(sql.sqlite)?;
        for index in 1..=statement.parameter_count() {
            // SQLite numbers parameters by appearance; `$3` is the third value at every occurrence.
            let number =
                statement.parameter_name(index).and_then(|name| name.get(1..)?.parse::<usize>().ok());
            let param = number.and_then(|number| params.get(number.checked_sub(1)?));
            let param = param.ok_or(rusqlite::Error::InvalidParameterCount(params.len(), index))?;
            statement.raw_bind_parameter(index, param)?;
        }
        Ok(statement)
    }
}

#[async_trait]
impl CatalogDb for SqliteCatalogDb<'_> {
    async fn execute(&mut self, sql: &SqlText, params: &[SqlParam<'_>]) -> Result<u64, StoreError> {
        let changed = self.prepare(sql, params).and_then(|mut statement| statement.raw_execute());
        Ok(changed.map_err(|error| store_error(sql, error))? as u64)
    }

    async fn for_each_row(
        &mut self,
        sql: &SqlText,
        params: &[SqlParam<'_>],
        sink: &mut RowSink<'_>,
    ) -> Result<(), StoreError> {
        let failed = |error| store_error(sql, error);
        let mut statement = self.prepare(sql, params).map_err(failed)?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(failed)? {
            sink(row)?;
        }
        Ok(())
    }

    async fn update_index(&mut self, change: IndexChange<'_>) -> Result<(), StoreError> {
        match change {
            IndexChange::Input(n, text) => search::index_input(self.0, n, text),
            IndexChange::Answer(n, text) => search::index_answer(self.0, n, text),
            IndexChange::Title(n, title) => search::index_title(self.0, n, title),
            IndexChange::Retitled(n, title) => {
                search::remove_title(self.0, n)?;
                search::index_title(self.0, n, title)
            }
            IndexChange::TurnDeleted(n) => search::remove_turn_texts(self.0, n),
            IndexChange::ConversationDeleted(n) => search::remove_title(self.0, n),
            // The next search does not wait for it.
            IndexChange::Imported => search::index(self.0, usize::MAX).map(drop),
        }
    }

    async fn delete_turn_log(&mut self, turn_id: &str) -> Result<(), StoreError> {
        Ok(log::delete(self.0, turn_id)?)
    }

    fn replica(&self) -> i64 {
        0
    }
}

impl ToSql for SqlParam<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Text(Some(text)) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Sought(Some(text)) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Integer(Some(number)) => ToSqlOutput::Owned(Value::Integer(*number)),
            Self::Text(None) | Self::Sought(None) | Self::Integer(None) => ToSqlOutput::Owned(Value::Null),
            Self::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            Self::Texts(texts) => ToSqlOutput::Owned(Value::Text(serde_json::json!(texts).to_string())),
            Self::Integers(numbers) => {
                ToSqlOutput::Owned(Value::Text(serde_json::json!(numbers).to_string()))
            }
        })
    }
}

impl CatalogRow for Row<'_> {
    fn text(&self, column: &str) -> Result<Option<String>, StoreError> {
        Ok(self.get(column)?)
    }

    fn integer(&self, column: &str) -> Result<Option<i64>, StoreError> {
        Ok(self.get(column)?)
    }

    fn bytes(&self, column: &str) -> Result<Vec<u8>, StoreError> {
        Ok(self.get(column)?)
    }
}

fn store_error(sql: &SqlText, error: rusqlite::Error) -> StoreError {
    match (sql.exists, error.sqlite_error_code()) {
        (Some(what), Some(ErrorCode::ConstraintViolation)) => StoreError::Exists { what },
        _ => error.into(),
    }
}
