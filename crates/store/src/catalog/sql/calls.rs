//! Tool calls of the history.

use super::windows::SearchWindow;
use super::{
    CatalogDb, CatalogRow, SqlParam, SqlText, bind, page_params, query_one, query_optional, sought_text, sql,
};
use crate::catalog::texts::{replace_nul, validate_id};
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
                  AND ($10 IS NULL OR contains_folded(tool_name, $10) OR contains_folded(arguments, $10)
                    OR contains_folded(output_summary, $10) OR contains_folded(error, $10))",
                $after
            ),
            postgres: concat!(
                $before,
                filtered!(@common),
                " AND (cardinality($4) = 0 OR status = ANY ($4))
                  AND ($10 IS NULL OR tool_name ~ $10 OR arguments ~ $10 OR output_summary ~ $10 OR error ~ $10)",
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

pub(crate) async fn put(db: &mut dyn CatalogDb, user: &str, calls: &[CallRow]) -> Result<u64, StoreError> {
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
    db: &mut dyn CatalogDb,
    user: &str,
    turn_id: &str,
    tool_id: &str,
) -> Result<Option<CallRow>, StoreError> {
    let get = sql!("SELECT * FROM call WHERE turn_id = $1 AND tool_id = $2 AND user_id = $3");
    query_optional(db, &get, bind![turn_id, tool_id, user], call).await
}

const LIST: SqlText = filtered!(
    "SELECT *",
    " AND ($11 IS NULL OR (started_at, tool_id) < ($11, $12))
     ORDER BY started_at DESC, tool_id DESC LIMIT $13"
);

/// For a [`SearchWindow`] of calls.
const EDGE: SqlText = sql!(
    "SELECT started_at AS at FROM call WHERE user_id = $1 AND started_at < coalesce($2, 9223372036854775807)
     ORDER BY started_at DESC, tool_id DESC LIMIT 1 OFFSET $3"
);

/// A page of calls; with a text, as much of it as is found in the time of a search.
pub(crate) async fn list(
    db: &mut dyn CatalogDb,
    limits: &CatalogLimits,
    user: &str,
    filter: &CallFilter,
    page: &PageRequest,
) -> Result<ResultPage<CallRow>, StoreError> {
    let position = |call: &CallRow| PagePosition { at: call.started_at, id: call.tool_id.clone() };
    let sought = sought_text(limits, filter.text.as_deref())?;
    if sought.is_none() {
        let (at, id, rows) = page_params(page)?;
        let mut params = filter_params(user, filter, None);
        params.extend([SqlParam::from(at), SqlParam::from(id), SqlParam::from(rows)]);
        return Ok(ResultPage::from_rows(db.query(&LIST, &params, call).await?, page.rows(), position));
    }
    let times = (filter.from, filter.until);
    let mut window = SearchWindow::first(db, limits, (&EDGE, user), times, page).await?;
    let mut found = Vec::new();
    loop {
        let of_window = CallFilter { from: window.from(), ..filter.clone() };
        let mut params = filter_params(user, &of_window, sought);
        let (at, id) = window.before();
        let wanted = i64::from(page.rows()) + 1 - i64::try_from(found.len()).unwrap_or(0);
        params.extend([SqlParam::from(at), SqlParam::from(id), SqlParam::from(wanted)]);
        found.extend(db.query(&LIST, &params, call).await?);
        if found.len() > page.rows() as usize || !window.advance(db).await? {
            return Ok(window.into_page(found, page.rows(), position));
        }
    }
}

/// Counts calls; with a text, those that are found within the time limit of a search.
pub(crate) async fn count(
    db: &mut dyn CatalogDb,
    limits: &CatalogLimits,
    user: &str,
    filter: &CallFilter,
) -> Result<CallCounts, StoreError> {
    let sought = sought_text(limits, filter.text.as_deref())?;
    let (mut groups, mut partial) = (Vec::new(), false);
    if sought.is_none() {
        groups = count_groups(db, &filter_params(user, filter, None)).await?;
    } else {
        let times = (filter.from, filter.until);
        let page = PageRequest::first();
        let mut window = SearchWindow::first(db, limits, (&EDGE, user), times, &page).await?;
        loop {
            let of_window = CallFilter { from: window.from(), until: window.until(), ..filter.clone() };
            groups.extend(count_groups(db, &filter_params(user, &of_window, sought)).await?);
            if !window.advance(db).await? {
                break;
            }
        }
        partial = window.is_cut_short();
    }
    Ok(CallCounts {
        total: groups.iter().map(|(.., count)| count).sum(),
        by_status: NamedCount::sums(groups.iter().map(|(status, _, count)| (status, *count))),
        by_tool: NamedCount::sums(groups.iter().map(|(_, tool, count)| (tool, *count))),
        partial,
    })
}

/// Numbers of calls by status and tool.
async fn count_groups(
    db: &mut dyn CatalogDb,
    params: &[SqlParam<'_>],
) -> Result<Vec<(String, String, u64)>, StoreError> {
    let count = filtered!("SELECT status, tool_name, count(*) AS count", " GROUP BY status, tool_name");
    db.query(&count, params, |row| Ok((row.get("status")?, row.get("tool_name")?, row.get("count")?))).await
}

/// Figures of the calls of a time.
pub(crate) async fn samples(
    db: &mut dyn CatalogDb,
    user: &str,
    range: &SampleRange,
) -> Result<SampleRows<CallSample>, StoreError> {
    let list = sql!(
        "SELECT tool_name, status, started_at, duration_ms, substr(error, 1, 100) AS error, conversation_id FROM call
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
            error: row.get("error")?,
            conversation_id: row.get("conversation_id")?,
        })
    });
    Ok(SampleRows::from_rows(rows.await?, range.rows_max))
}

/// Number of calls that wait for a person: by way of the turns that run, which are few.
pub(crate) async fn count_waiting(db: &mut dyn CatalogDb, user: &str) -> Result<u64, StoreError> {
    let count = sql!(
        "SELECT count(*) AS count FROM turn t JOIN call c ON c.turn_id = t.id
         WHERE t.ended_at IS NULL AND t.user_id = $1 AND c.status = 'awaiting_approval'"
    );
    query_one(db, &count, bind![user], |row| row.get("count")).await
}

fn filter_params<'a>(user: &'a str, filter: &'a CallFilter, sought: Option<&'a str>) -> Vec<SqlParam<'a>> {
    vec![
        user.into(),
        (&filter.tool_name).into(),
        (&filter.source).into(),
        filter.statuses.clone().into(),
        (&filter.conversation_id).into(),
        (&filter.turn_id).into(),
        filter.from.into(),
        filter.until.into(),
        filter.longer_than_ms.into(),
        SqlParam::Sought(sought),
    ]
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
