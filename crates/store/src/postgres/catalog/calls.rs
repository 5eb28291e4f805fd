//! Tool calls as history has them.

use super::Db;
use super::rows::{each, small, sought, unsigned};
use crate::catalog::texts::{check_id, like_pattern, without_nul};
use crate::catalog::{
    CallCounts, CallFilter, CallRow, CallSample, CatalogLimits, Count, Page, PageRequest, Place, SampleRange,
    Sampled,
};
use crate::error::StoreError;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Postgres, Row};

/// What a [`CallFilter`] says, over the parameters of [`Given`].
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

pub(super) async fn put(db: Db<'_>, user: &str, calls: &[CallRow]) -> Result<u64, StoreError> {
    let mut kept = 0;
    for call in calls {
        check_id("tool_id", &call.tool_id)?;
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
        .bind(sought(&call.turn_id))
        .bind(sought(user))
        .bind(&call.tool_id)
        .bind(i64::from(call.step))
        .bind(without_nul(&call.tool_name))
        .bind(without_nul(&call.source))
        .bind(without_nul(&call.effect))
        .bind(without_nul(&call.status))
        .bind(without_nul(&call.arguments))
        .bind(call.output_summary.as_deref().map(without_nul))
        .bind(call.error.as_deref().map(without_nul))
        .bind(call.started_at)
        .bind(call.duration_ms)
        .execute(&mut *db)
        .await?;
        kept += put.rows_affected();
    }
    Ok(kept)
}

pub(super) async fn get(
    db: Db<'_>,
    user: &str,
    turn_id: &str,
    tool_id: &str,
) -> Result<Option<CallRow>, StoreError> {
    let row = sqlx::query("SELECT * FROM call WHERE turn_id = $1 AND tool_id = $2 AND user_id = $3")
        .bind(sought(turn_id))
        .bind(sought(tool_id))
        .bind(sought(user))
        .fetch_optional(db)
        .await?;
    row.as_ref().map(call).transpose()
}

pub(in crate::postgres) async fn list(
    db: Db<'_>,
    limits: &CatalogLimits,
    user: &str,
    filter: &CallFilter,
    page: &PageRequest,
) -> Result<Page<CallRow>, StoreError> {
    let place = page.place()?;
    let given = Given::of(limits, user, filter)?;
    let query = format!(
        "SELECT * FROM call WHERE {FILTER} AND ($11::bigint IS NULL OR (started_at, tool_id) < ($11, $12))
         ORDER BY started_at DESC, tool_id DESC LIMIT $13"
    );
    let rows = given
        .bind(sqlx::query(AssertSqlSafe(query)))
        .bind(place.as_ref().map(|place| place.at))
        .bind(place.as_ref().map(|place| place.id.clone()))
        .bind(i64::from(page.rows() + 1))
        .fetch_all(db)
        .await?;
    Ok(Page::of(each(&rows, call)?, page.rows(), |call| Place {
        at: call.started_at,
        id: call.tool_id.clone(),
    }))
}

pub(super) async fn count(
    db: Db<'_>,
    limits: &CatalogLimits,
    user: &str,
    filter: &CallFilter,
) -> Result<CallCounts, StoreError> {
    let given = Given::of(limits, user, filter)?;
    let by_status = counts(db, &given, "status").await?;
    Ok(CallCounts {
        total: by_status.iter().map(|count| count.count).sum(),
        by_status,
        by_tool: counts(db, &given, "tool_name").await?,
    })
}

async fn counts(db: Db<'_>, given: &Given, column: &'static str) -> Result<Vec<Count>, StoreError> {
    let query = format!(
        "SELECT {column} AS name, count(*) AS count FROM call WHERE {FILTER} GROUP BY name ORDER BY count DESC, name"
    );
    let rows = given.bind(sqlx::query(AssertSqlSafe(query))).fetch_all(db).await?;
    each(&rows, |row| Ok(Count { name: row.try_get("name")?, count: unsigned(row, "count")? }))
}

/// Calls of a time as figures.
pub(super) async fn samples(
    db: Db<'_>,
    user: &str,
    range: &SampleRange,
) -> Result<Sampled<CallSample>, StoreError> {
    let rows = sqlx::query(
        "SELECT tool_name, status, started_at, duration_ms FROM call
         WHERE user_id = $1 AND started_at >= $2 AND started_at < $3
         ORDER BY started_at DESC, tool_id DESC LIMIT $4",
    )
    .bind(sought(user))
    .bind(range.from)
    .bind(range.until)
    .bind(i64::from(range.rows_max) + 1)
    .fetch_all(db)
    .await?;
    let rows = each(&rows, |row| {
        Ok(CallSample {
            tool_name: row.try_get("tool_name")?,
            status: row.try_get("status")?,
            started_at: row.try_get("started_at")?,
            duration_ms: row.try_get("duration_ms")?,
        })
    })?;
    Ok(Sampled::of(rows, range.rows_max))
}

/// How many calls wait for a person: by way of the turns that run, which are few.
pub(super) async fn waiting(db: Db<'_>, user: &str) -> Result<u64, StoreError> {
    let row = sqlx::query(
        "SELECT count(*) AS count FROM turn t JOIN call c ON c.turn_id = t.id
         WHERE t.ended_at IS NULL AND t.user_id = $1 AND c.status = 'awaiting_approval'",
    )
    .bind(sought(user))
    .fetch_one(db)
    .await?;
    unsigned(&row, "count")
}

/// A filter as parameters.
struct Given {
    user: String,
    filter: CallFilter,
    text: Option<String>,
}

impl Given {
    fn of(limits: &CatalogLimits, user: &str, filter: &CallFilter) -> Result<Self, StoreError> {
        let text = filter.text.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let max = limits.search_chars_max;
        if text.is_some_and(|text| text.chars().count() > max) {
            return Err(StoreError::OverLimit { limit: "search_chars_max", max: max as u64 });
        }
        let text = text.map(|text| like_pattern(&sought(text)));
        Ok(Self { user: sought(user).into_owned(), filter: filter.clone(), text })
    }

    fn bind<'q>(&self, query: Query<'q, Postgres, PgArguments>) -> Query<'q, Postgres, PgArguments> {
        let filter = &self.filter;
        let text = |text: &Option<String>| text.as_deref().map(|text| sought(text).into_owned());
        query
            .bind(self.user.clone())
            .bind(text(&filter.tool_name))
            .bind(text(&filter.source))
            .bind(filter.statuses.iter().map(|status| sought(status).into_owned()).collect::<Vec<_>>())
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
        step: small(row, "step")?,
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
