//! Tool calls as history has them.

use super::DbConnection;
use super::rows::{map_rows, sanitize_param, unsigned, unsigned_32};
use crate::catalog::texts::{like_pattern, replace_nul, validate_id};
use crate::catalog::{
    CallCounts, CallFilter, CallRow, CallSample, CatalogLimits, NamedCount, PagePosition, PageRequest,
    ResultPage, SampleRange, SampleRows,
};
use crate::error::StoreError;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Postgres, Row};

/// Condition of a [`CallFilter`], over the parameters of [`PostgresCallFilter`].
const FILTER: &str = "user_id = $1
    AND ($2::text IS NULL OR tool_name = $2)
    AND ($3::text IS NULL OR source = $3)
    AND (cardinality($4::text[]) = 0 OR status = ANY($4))
    AND ($5::text IS NULL OR conversation_id = $5)
    AND ($6::text IS NULL OR turn_id = $6)
    AND ($7::bigint IS NULL OR started_at >= $7)
    AND ($8::bigint IS NULL OR started_at < $8)
    AND ($9::bigint IS NULL OR duration_ms > $9)
    AND ($10::text IS NULL OR tool_name ILIKE $10 OR arguments ILIKE $10 OR output_summary ILIKE $10 OR error ILIKE $10)";

pub(super) async fn put(db: DbConnection<'_>, user: &str, calls: &[CallRow]) -> Result<u64, StoreError> {
    let mut stored = 0;
    for call in calls {
        validate_id("tool_id", &call.tool_id)?;
        let put = sqlx::query(
            "INSERT INTO call (turn_id, tool_id, user_id, conversation_id, step, tool_name, source, effect, status,
                arguments, output_summary, error, started_at, duration_ms)
             SELECT id, $3, user_id, conversation_id, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13
             FROM turn WHERE id = $1 AND user_id = $2
             ON CONFLICT (turn_id, tool_id) DO UPDATE SET step = excluded.step, tool_name = excluded.tool_name,
                source = excluded.source, effect = excluded.effect, status = excluded.status,
                arguments = excluded.arguments, output_summary = excluded.output_summary, error = excluded.error,
                started_at = excluded.started_at, duration_ms = excluded.duration_ms",
        )
        .bind(sanitize_param(&call.turn_id))
        .bind(sanitize_param(user))
        .bind(&call.tool_id)
        .bind(i64::from(call.step))
        .bind(replace_nul(&call.tool_name))
        .bind(replace_nul(&call.source))
        .bind(replace_nul(&call.effect))
        .bind(replace_nul(&call.status))
        .bind(replace_nul(&call.arguments))
        .bind(call.output_summary.as_deref().map(replace_nul))
        .bind(call.error.as_deref().map(replace_nul))
        .bind(call.started_at)
        .bind(call.duration_ms)
        .execute(&mut *db)
        .await?;
        stored += put.rows_affected();
    }
    Ok(stored)
}

pub(super) async fn get(
    db: DbConnection<'_>,
    user: &str,
    turn_id: &str,
    tool_id: &str,
) -> Result<Option<CallRow>, StoreError> {
    let row = sqlx::query("SELECT * FROM call WHERE turn_id = $1 AND tool_id = $2 AND user_id = $3")
        .bind(sanitize_param(turn_id))
        .bind(sanitize_param(tool_id))
        .bind(sanitize_param(user))
        .fetch_optional(db)
        .await?;
    row.as_ref().map(call).transpose()
}

pub(in crate::postgres) async fn list(
    db: DbConnection<'_>,
    limits: &CatalogLimits,
    user: &str,
    filter: &CallFilter,
    page: &PageRequest,
) -> Result<ResultPage<CallRow>, StoreError> {
    let position = page.position()?;
    let filter_params = PostgresCallFilter::of(limits, user, filter)?;
    let query = format!(
        "SELECT * FROM call WHERE {FILTER} AND ($11::bigint IS NULL OR (started_at, tool_id) < ($11, $12))
         ORDER BY started_at DESC, tool_id DESC LIMIT $13"
    );
    let rows = filter_params
        .bind(sqlx::query(AssertSqlSafe(query)))
        .bind(position.as_ref().map(|position| position.at))
        .bind(position.as_ref().map(|position| position.id.clone()))
        .bind(i64::from(page.rows() + 1))
        .fetch_all(db)
        .await?;
    Ok(ResultPage::from_rows(map_rows(&rows, call)?, page.rows(), |call| PagePosition {
        at: call.started_at,
        id: call.tool_id.clone(),
    }))
}

pub(super) async fn count(
    db: DbConnection<'_>,
    limits: &CatalogLimits,
    user: &str,
    filter: &CallFilter,
) -> Result<CallCounts, StoreError> {
    let filter_params = PostgresCallFilter::of(limits, user, filter)?;
    let by_status = counts(db, &filter_params, "status").await?;
    Ok(CallCounts {
        total: by_status.iter().map(|count| count.count).sum(),
        by_status,
        by_tool: counts(db, &filter_params, "tool_name").await?,
    })
}

async fn counts(
    db: DbConnection<'_>,
    filter_params: &PostgresCallFilter,
    column: &'static str,
) -> Result<Vec<NamedCount>, StoreError> {
    let query = format!(
        "SELECT {column} AS name, count(*) AS count FROM call WHERE {FILTER} GROUP BY name ORDER BY count DESC, name"
    );
    let rows = filter_params.bind(sqlx::query(AssertSqlSafe(query))).fetch_all(db).await?;
    map_rows(&rows, |row| Ok(NamedCount { name: row.try_get("name")?, count: unsigned(row, "count")? }))
}

/// Calls of a time as figures.
pub(super) async fn samples(
    db: DbConnection<'_>,
    user: &str,
    range: &SampleRange,
) -> Result<SampleRows<CallSample>, StoreError> {
    let rows = sqlx::query(
        "SELECT tool_name, status, started_at, duration_ms FROM call
         WHERE user_id = $1 AND started_at >= $2 AND started_at < $3
         ORDER BY started_at DESC, tool_id DESC LIMIT $4",
    )
    .bind(sanitize_param(user))
    .bind(range.from)
    .bind(range.until)
    .bind(i64::from(range.rows_max) + 1)
    .fetch_all(db)
    .await?;
    let rows = map_rows(&rows, |row| {
        Ok(CallSample {
            tool_name: row.try_get("tool_name")?,
            status: row.try_get("status")?,
            started_at: row.try_get("started_at")?,
            duration_ms: row.try_get("duration_ms")?,
        })
    })?;
    Ok(SampleRows::from_rows(rows, range.rows_max))
}

/// Number of calls that wait for a person: by way of the turns that run, which are few.
pub(super) async fn count_waiting(db: DbConnection<'_>, user: &str) -> Result<u64, StoreError> {
    let row = sqlx::query(
        "SELECT count(*) AS count FROM turn t JOIN call c ON c.turn_id = t.id
         WHERE t.ended_at IS NULL AND t.user_id = $1 AND c.status = 'awaiting_approval'",
    )
    .bind(sanitize_param(user))
    .fetch_one(db)
    .await?;
    unsigned(&row, "count")
}

/// A filter as parameters.
struct PostgresCallFilter {
    user: String,
    filter: CallFilter,
    text: Option<String>,
}

impl PostgresCallFilter {
    fn of(limits: &CatalogLimits, user: &str, filter: &CallFilter) -> Result<Self, StoreError> {
        let text = filter.text.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let max = limits.search_chars_max;
        if text.is_some_and(|text| text.chars().count() > max) {
            return Err(StoreError::OverLimit { limit: "search_chars_max", max: max as u64 });
        }
        let text = text.map(|text| like_pattern(&sanitize_param(text)));
        Ok(Self { user: sanitize_param(user).into_owned(), filter: filter.clone(), text })
    }

    fn bind<'q>(&self, query: Query<'q, Postgres, PgArguments>) -> Query<'q, Postgres, PgArguments> {
        let filter = &self.filter;
        let text = |text: &Option<String>| text.as_deref().map(|text| sanitize_param(text).into_owned());
        query
            .bind(self.user.clone())
            .bind(text(&filter.tool_name))
            .bind(text(&filter.source))
            .bind(
                filter.statuses.iter().map(|status| sanitize_param(status).into_owned()).collect::<Vec<_>>(),
            )
            .bind(text(&filter.conversation_id))
            .bind(text(&filter.turn_id))
            .bind(filter.from)
            .bind(filter.until)
            .bind(filter.longer_than_ms)
            .bind(self.text.clone())
    }
}

fn call(row: &PgRow) -> Result<CallRow, StoreError> {
    Ok(CallRow {
        turn_id: row.try_get("turn_id")?,
        tool_id: row.try_get("tool_id")?,
        conversation_id: row.try_get("conversation_id")?,
        step: unsigned_32(row, "step")?,
        tool_name: row.try_get("tool_name")?,
        source: row.try_get("source")?,
        effect: row.try_get("effect")?,
        status: row.try_get("status")?,
        arguments: row.try_get("arguments")?,
        output_summary: row.try_get("output_summary")?,
        error: row.try_get("error")?,
        started_at: row.try_get("started_at")?,
        duration_ms: row.try_get("duration_ms")?,
    })
}
