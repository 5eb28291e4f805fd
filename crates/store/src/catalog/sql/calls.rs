//! Tool calls of the history.

use super::{CatalogDb, CatalogRow, SqlParam, SqlText, bind, page_params, query_one, query_optional, sql};
use crate::catalog::texts::{like_pattern, replace_nul, validate_id};
use crate::catalog::{
    CallCounts, CallFilter, CallRow, CallSample, CatalogLimits, NamedCount, PagePosition, PageRequest,
    ResultPage, SampleRange, SampleRows,
};
use crate::error::StoreError;

/// A statement with the condition of a [`CallFilter`], over the parameters of [`filter_params`].
macro_rules! filtered {
    ($before:literal, $after:literal) => {
        sql!(
            sqlite: concat!(
                $before,
                filtered!(@common),
                " AND ($4 = '[]' OR status IN (SELECT value FROM json_each($4)))
                  AND ($10 IS NULL OR tool_name LIKE $10 ESCAPE '\\' OR arguments LIKE $10 ESCAPE '\\'
                    OR output_summary LIKE $10 ESCAPE '\\' OR error LIKE $10 ESCAPE '\\')",
                $after
            ),
            postgres: concat!(
                $before,
                filtered!(@common),
                " AND (cardinality($4) = 0 OR status = ANY ($4))
                  AND ($10 IS NULL OR tool_name ILIKE $10 OR arguments ILIKE $10 OR output_summary ILIKE $10
                    OR error ILIKE $10)",
                $after
            )
        )
    };
    (@common) => {
        " FROM call WHERE user_id = $1
            AND ($2 IS NULL OR tool_name = $2)
            AND ($3 IS NULL OR source = $3)
            AND ($5 IS NULL OR conversation_id = $5)
            AND ($6 IS NULL OR turn_id = $6)
            AND ($7 IS NULL OR started_at >= $7)
            AND ($8 IS NULL OR started_at < $8)
            AND ($9 IS NULL OR duration_ms > $9)"
    };
}

pub(crate) async fn put(db: &mut impl CatalogDb, user: &str, calls: &[CallRow]) -> Result<u64, StoreError> {
    let put = sql!(
        "INSERT INTO call (turn_id, tool_id, user_id, conversation_id, step, tool_name, source, effect, status,
            arguments, output_summary, error, started_at, duration_ms)
         SELECT id, $3, user_id, conversation_id, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13
         FROM turn WHERE id = $1 AND user_id = $2
         ON CONFLICT (turn_id, tool_id) DO UPDATE SET step = excluded.step, tool_name = excluded.tool_name,
            source = excluded.source, effect = excluded.effect, status = excluded.status,
            arguments = excluded.arguments, output_summary = excluded.output_summary, error = excluded.error,
            started_at = excluded.started_at, duration_ms = excluded.duration_ms"
    );
    let mut stored = 0;
    for call in calls {
        validate_id("tool_id", &call.tool_id)?;
        let params = bind![
            &call.turn_id,
            user,
            &call.tool_id,
            call.step,
            replace_nul(&call.tool_name),
            replace_nul(&call.source),
            replace_nul(&call.effect),
            replace_nul(&call.status),
            replace_nul(&call.arguments),
            call.output_summary.as_deref().map(replace_nul),
            call.error.as_deref().map(replace_nul),
            call.started_at,
            call.duration_ms,
        ];
        stored += db.execute(&put, params).await?;
    }
    Ok(stored)
}

pub(crate) async fn get(
    db: &mut impl CatalogDb,
    user: &str,
    turn_id: &str,
    tool_id: &str,
) -> Result<Option<CallRow>, StoreError> {
    let get = sql!("SELECT * FROM call WHERE turn_id = $1 AND tool_id = $2 AND user_id = $3");
    query_optional(db, &get, bind![turn_id, tool_id, user], call).await
}

pub(crate) async fn list(
    db: &mut impl CatalogDb,
    limits: &CatalogLimits,
    user: &str,
    filter: &CallFilter,
    page: &PageRequest,
) -> Result<ResultPage<CallRow>, StoreError> {
    let (at, id, rows) = page_params(page)?;
    let list = filtered!(
        "SELECT *",
        " AND ($11 IS NULL OR (started_at, tool_id) < ($11, $12))
         ORDER BY started_at DESC, tool_id DESC LIMIT $13"
    );
    let mut params = filter_params(limits, user, filter)?;
    params.extend([SqlParam::from(at), SqlParam::from(id), SqlParam::from(rows)]);
    let calls = db.query(&list, &params, call).await?;
    Ok(ResultPage::from_rows(calls, page.rows(), |call| PagePosition {
        at: call.started_at,
        id: call.tool_id.clone(),
    }))
}

pub(crate) async fn count(
    db: &mut impl CatalogDb,
    limits: &CatalogLimits,
    user: &str,
    filter: &CallFilter,
) -> Result<CallCounts, StoreError> {
    const BY_STATUS: SqlText =
        filtered!("SELECT status AS name, count(*) AS count", " GROUP BY status ORDER BY count DESC, name");
    const BY_TOOL: SqlText = filtered!(
        "SELECT tool_name AS name, count(*) AS count",
        " GROUP BY tool_name ORDER BY count DESC, name"
    );
    let params = filter_params(limits, user, filter)?;
    let by_status = db.query(&BY_STATUS, &params, named_count).await?;
    Ok(CallCounts {
        total: by_status.iter().map(|count| count.count).sum(),
        by_status,
        by_tool: db.query(&BY_TOOL, &params, named_count).await?,
    })
}

fn named_count(row: &dyn CatalogRow) -> Result<NamedCount, StoreError> {
    Ok(NamedCount { name: row.get("name")?, count: row.get("count")? })
}

/// Figures of the calls of a time.
pub(crate) async fn samples(
    db: &mut impl CatalogDb,
    user: &str,
    range: &SampleRange,
) -> Result<SampleRows<CallSample>, StoreError> {
    let list = sql!(
        "SELECT tool_name, status, started_at, duration_ms FROM call
         WHERE user_id = $1 AND started_at >= $2 AND started_at < $3
         ORDER BY started_at DESC, tool_id DESC LIMIT $4"
    );
    let params = bind![user, range.from, range.until, i64::from(range.rows_max) + 1];
    let rows = db.query(&list, params, |row| {
        Ok(CallSample {
            tool_name: row.get("tool_name")?,
            status: row.get("status")?,
            started_at: row.get("started_at")?,
            duration_ms: row.get("duration_ms")?,
        })
    });
    Ok(SampleRows::from_rows(rows.await?, range.rows_max))
}

/// Number of calls that wait for a person: by way of the turns that run, which are few.
pub(crate) async fn count_waiting(db: &mut impl CatalogDb, user: &str) -> Result<u64, StoreError> {
    let count = sql!(
        "SELECT count(*) AS count FROM turn t JOIN call c ON c.turn_id = t.id
         WHERE t.ended_at IS NULL AND t.user_id = $1 AND c.status = 'awaiting_approval'"
    );
    query_one(db, &count, bind![user], |row| row.get("count")).await
}

fn filter_params<'a>(
    limits: &CatalogLimits,
    user: &'a str,
    filter: &'a CallFilter,
) -> Result<Vec<SqlParam<'a>>, StoreError> {
    let text = filter.text.as_deref().map(str::trim).filter(|text| !text.is_empty());
    let max = limits.search_chars_max;
    if text.is_some_and(|text| text.chars().count() > max) {
        return Err(StoreError::OverLimit { limit: "search_chars_max", max: max as u64 });
    }
    Ok(vec![
        user.into(),
        (&filter.tool_name).into(),
        (&filter.source).into(),
        filter.statuses.clone().into(),
        (&filter.conversation_id).into(),
        (&filter.turn_id).into(),
        filter.from.into(),
        filter.until.into(),
        filter.longer_than_ms.into(),
        text.map(like_pattern).into(),
    ])
}

fn call(row: &dyn CatalogRow) -> Result<CallRow, StoreError> {
    Ok(CallRow {
        turn_id: row.get("turn_id")?,
        tool_id: row.get("tool_id")?,
        conversation_id: row.get("conversation_id")?,
        step: row.get("step")?,
        tool_name: row.get("tool_name")?,
        source: row.get("source")?,
        effect: row.get("effect")?,
        status: row.get("status")?,
        arguments: row.get("arguments")?,
        output_summary: row.get("output_summary")?,
        error: row.get("error")?,
        started_at: row.get("started_at")?,
        duration_ms: row.get("duration_ms")?,
    })
}
