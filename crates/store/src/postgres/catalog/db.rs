//! Runs the catalog's statements on a connection of PostgreSQL.

use crate::catalog::fold::{fold, regex_of_forms};
use crate::catalog::sql::{CatalogDb, CatalogRow, IndexChange, RowSink, SqlParam, SqlText};
use crate::error::StoreError;
use crate::postgres::connection::sanitize_param;
use crate::postgres::log;
use async_trait::async_trait;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::{Arguments, PgConnection, Row, TypeInfo, ValueRef};

/// A connection, inside a transaction if something is written.
pub(in crate::postgres) struct PostgresCatalogDb<'a> {
    db: &'a mut PgConnection,
    replica: i32,
}

impl<'a> PostgresCatalogDb<'a> {
    pub(crate) fn new(db: &'a mut PgConnection, replica: i32) -> Self {
        Self { db, replica }
    }

    /// For functions that write no turn.
    pub(crate) fn reader(db: &'a mut PgConnection) -> Self {
        Self::new(db, 0)
    }
}

const INPUT: i16 = 1;
const ANSWER: i16 = 2;

#[async_trait]
impl CatalogDb for PostgresCatalogDb<'_> {
    async fn execute(&mut self, sql: &SqlText, params: &[SqlParam<'_>]) -> Result<u64, StoreError> {
        let statement = sqlx::query_with(sql.postgres, arguments(params)?);
        let done = statement.execute(&mut *self.db).await.map_err(|error| store_error(sql, error))?;
        Ok(done.rows_affected())
    }

    async fn for_each_row(
        &mut self,
        sql: &SqlText,
        params: &[SqlParam<'_>],
        sink: &mut RowSink<'_>,
    ) -> Result<(), StoreError> {
        let statement = sqlx::query_with(sql.postgres, arguments(params)?);
        let rows = statement.fetch_all(&mut *self.db).await.map_err(|error| store_error(sql, error))?;
        rows.iter().try_for_each(|row| sink(row))
    }

    async fn update_index(&mut self, change: IndexChange<'_>) -> Result<(), StoreError> {
        let (n, part, text) = match change {
            IndexChange::Input(n, text) => (n, INPUT, text),
            IndexChange::Answer(n, text) => (n, ANSWER, text),
            // Titles are a column of their conversation, and texts of a deleted turn are deleted with it.
            IndexChange::Title(..)
            | IndexChange::Retitled(..)
            | IndexChange::TurnDeleted(_)
            | IndexChange::ConversationDeleted(_)
            | IndexChange::Imported => return Ok(()),
        };
        if !text.is_empty() {
            let insert = sqlx::query("INSERT INTO search_text (n, part, text) VALUES ($1, $2, $3)");
            insert.bind(n).bind(part).bind(fold(text)).execute(&mut *self.db).await?;
        }
        Ok(())
    }

    async fn delete_turn_log(&mut self, turn_id: &str) -> Result<(), StoreError> {
        Ok(log::delete(self.db, turn_id).await?)
    }

    fn replica(&self) -> i64 {
        self.replica.into()
    }
}

fn arguments(params: &[SqlParam<'_>]) -> Result<PgArguments, StoreError> {
    let mut arguments = PgArguments::default();
    for param in params {
        let added = match param {
            SqlParam::Text(text) => arguments.add(text.as_deref().map(sanitize_param)),
            SqlParam::Sought(text) => arguments.add(text.map(|text| regex_of_forms(&sanitize_param(text)))),
            SqlParam::Integer(number) => arguments.add(*number),
            SqlParam::Bytes(bytes) => arguments.add(*bytes),
            SqlParam::Texts(texts) => {
                arguments.add(texts.iter().map(|text| sanitize_param(text).into_owned()).collect::<Vec<_>>())
            }
            SqlParam::Integers(numbers) => arguments.add(numbers.as_slice()),
        };
        added.map_err(StoreError::failed)?;
    }
    Ok(arguments)
}

impl CatalogRow for PgRow {
    fn text(&self, column: &str) -> Result<Option<String>, StoreError> {
        Ok(self.try_get(column)?)
    }

    fn integer(&self, column: &str) -> Result<Option<i64>, StoreError> {
        Ok(match self.try_get_raw(column)?.type_info().name() {
            "INT2" => self.try_get::<Option<i16>, _>(column)?.map(i64::from),
            "INT4" => self.try_get::<Option<i32>, _>(column)?.map(i64::from),
            _ => self.try_get(column)?,
        })
    }

    fn bytes(&self, column: &str) -> Result<Vec<u8>, StoreError> {
        Ok(self.try_get(column)?)
    }
}

fn store_error(sql: &SqlText, error: sqlx::Error) -> StoreError {
    match (sql.exists, &error) {
        (Some(what), sqlx::Error::Database(database)) if database.is_unique_violation() => {
            StoreError::Exists { what }
        }
        _ => error.into(),
    }
}
