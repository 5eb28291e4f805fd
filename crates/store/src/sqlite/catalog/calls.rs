//! Tool calls as history has them.

use super::rows::unsigned;
use crate::catalog::texts::{like_pattern, replace_nul, validate_id};
use crate::catalog::{
    CallCounts, CallFilter, CallRow, CallSample, CatalogLimits, NamedCount, PagePosition, PageRequest,
    ResultPage, SampleRange, SampleRows,
};
use crate::error::StoreError;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, named_params, params};

/// Condition of a [`CallFilter`], over the parameters of [`SqliteCallFilter`].
const FILTER: &str = "user_id = :user
    AND (:tool_name IS NULL OR tool_name = :tool_name)
    AND (:source IS NULL OR source = :source)
    AND (:statuses = '[]' OR status IN (SELECT value FROM json_each(:statuses)))
    AND (:conversation_id IS NULL OR conversation_id = :conversation_id)
    AND (:turn_id IS NULL OR turn_id = :turn_id)
    AND (:from IS NULL OR started_at >= :from)
    AND (:until IS NULL OR started_at < :until)
    AND (:longer_than_ms IS NULL OR duration_ms > :longer_than_ms)
    AND (:text IS NULL OR tool_name LIKE :text ESCAPE '\\' OR arguments LIKE :text ESCAPE '\\'
        OR output_summary LIKE :text ESCAPE '\\' OR error LIKE :text ESCAPE '\\')";

pub(super) fn put(db: &Connection, user: &str, calls: &[CallRow]) -> Result<u64, StoreError> {
    let mut put = db.prepare_cached(
        "INSERT INTO call (turn_id, tool_id, user_id, conversation_id, step, tool_name, source, effect, status, arguments,
            output_summary, error, started_at, duration_ms)
         SELECT id, ?3, user_id, conversation_id, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13
         FROM turn WHERE id = ?1 AND user_id = ?2
         ON CONFLICT (turn_id, tool_id) DO UPDATE SET step = excluded.step, tool_name = excluded.tool_name,
            source = excluded.source, effect = excluded.effect, status = excluded.status,
            arguments = excluded.arguments, output_summary = excluded.output_summary, error = excluded.error,
            started_at = excluded.started_at, duration_ms = excluded.duration_ms",
    )?;
    let mut stored = 0;
    for call in calls {
        validate_id("tool_id", &call.tool_id)?;
        stored += put.execute(params![
            call.turn_id,
            user,
            call.tool_id,
            call.step,
            call.tool_name,
            call.source,
            call.effect,
            call.status,
            replace_nul(&call.arguments),
            call.output_summary.as_deref().map(replace_nul),
            call.error.as_deref().map(replace_nul),
            call.started_at,
            call.duration_ms,
        ])?;
    }
    Ok(stored as u64)
}

pub(super) fn get(
    db: &Connection,
    user: &str,
    turn_id: &str,
    tool_id: &str,
) -> Result<Option<CallRow>, StoreError> {
    Ok(db
        .prepare_cached("SELECT * FROM call WHERE turn_id = ?1 AND tool_id = ?2 AND user_id = ?3")?
        .query_row([turn_id, tool_id, user], call)
        .optional()?)
}

pub(in crate::sqlite) fn list(
    db: &Connection,
    limits: &CatalogLimits,
    user: &str,
    filter: &CallFilter,
    page: &PageRequest,
) -> Result<ResultPage<CallRow>, StoreError> {
    let position = page.position()?;
    let filter_params = SqliteCallFilter::of(limits, user, filter)?;
    let (at, id) =
        (position.as_ref().map(|position| position.at), position.as_ref().map(|position| &position.id));
    let rows = page.rows() + 1;
    let mut parameters = filter_params.parameters();
    parameters.extend_from_slice(named_params! { ":at": at, ":id": id, ":rows": rows });
    let mut query = db.prepare_cached(&format!(
        "SELECT * FROM call WHERE {FILTER} AND (:at IS NULL OR (started_at, tool_id) < (:at, :id))
         ORDER BY started_at DESC, tool_id DESC LIMIT :rows"
    ))?;
    let calls = query.query_map(parameters.as_slice(), call)?.collect::<Result<Vec<_>, _>>()?;
    Ok(ResultPage::from_rows(calls, page.rows(), |call| PagePosition {
        at: call.started_at,
        id: call.tool_id.clone(),
    }))
}

pub(super) fn count(
    db: &Connection,
    limits: &CatalogLimits,
    user: &str,
    filter: &CallFilter,
) -> Result<CallCounts, StoreError> {
    let filter_params = SqliteCallFilter::of(limits, user, filter)?;
    let counts = |column: &str| -> Result<Vec<NamedCount>, StoreError> {
        let mut query = db.prepare_cached(&format!(
            "SELECT {column} AS name, count(*) AS count FROM call WHERE {FILTER} GROUP BY name ORDER BY count DESC, name"
        ))?;
        let rows = query.query_map(filter_params.parameters().as_slice(), |row| {
            Ok(NamedCount { name: row.get("name")?, count: unsigned(row, "count")? })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    };
    let by_status = counts("status")?;
    Ok(CallCounts {
        total: by_status.iter().map(|count| count.count).sum(),
        by_status,
        by_tool: counts("tool_name")?,
    })
}

/// Calls of a time as figures.
pub(super) fn samples(
    db: &Connection,
    user: &str,
    range: &SampleRange,
) -> Result<SampleRows<CallSample>, StoreError> {
    let mut query = db.prepare_cached(
        "SELECT tool_name, status, started_at, duration_ms FROM call
         WHERE user_id = ?1 AND started_at >= ?2 AND started_at < ?3
         ORDER BY started_at DESC, tool_id DESC LIMIT ?4",
    )?;
    let filter_params = params![user, range.from, range.until, i64::from(range.rows_max) + 1];
    let rows = query.query_map(filter_params, |row| {
        Ok(CallSample {
            tool_name: row.get("tool_name")?,
            status: row.get("status")?,
            started_at: row.get("started_at")?,
            duration_ms: row.get("duration_ms")?,
        })
    })?;
    Ok(SampleRows::from_rows(rows.collect::<Result<_, _>>()?, range.rows_max))
}

/// Number of calls that wait for a person: by way of the turns that run, which are few.
pub(super) fn count_waiting(db: &Connection, user: &str) -> Result<u64, StoreError> {
    let mut query = db.prepare_cached(
        "SELECT count(*) AS count FROM turn t JOIN call c ON c.turn_id = t.id
         WHERE t.ended_at IS NULL AND t.user_id = ?1 AND c.status = 'awaiting_approval'",
    )?;
    Ok(query.query_row([user], |row| unsigned(row, "count"))?)
}

/// A filter as parameters.
struct SqliteCallFilter<'a> {
    user: &'a str,
    filter: &'a CallFilter,
    /// A JSON array.
    statuses: String,
    text: Option<String>,
}

impl<'a> SqliteCallFilter<'a> {
    fn of(limits: &CatalogLimits, user: &'a str, filter: &'a CallFilter) -> Result<Self, StoreError> {
        let text = filter.text.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let max = limits.search_chars_max;
        if text.is_some_and(|text| text.chars().count() > max) {
            return Err(StoreError::OverLimit { limit: "search_chars_max", max: max as u64 });
        }
        let statuses = serde_json::json!(filter.statuses).to_string();
        Ok(Self { user, filter, statuses, text: text.map(like_pattern) })
    }

    fn parameters(&self) -> Vec<(&'static str, &dyn ToSql)> {
        let filter = self.filter;
        vec![
            (":user", &self.user),
            (":tool_name", &filter.tool_name),
            (":source", &filter.source),
            (":statuses", &self.statuses),
            (":conversation_id", &filter.conversation_id),
            (":turn_id", &filter.turn_id),
            (":from", &filter.from),
            (":until", &filter.until),
            (":longer_than_ms", &filter.longer_than_ms),
            (":text", &self.text),
        ]
    }
}

fn call(row: &Row<'_>) -> rusqlite::Result<CallRow> {
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
