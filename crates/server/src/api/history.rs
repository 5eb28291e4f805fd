//! The history of tool calls with their outcomes, and the waterfall of a turn.

mod metrics;
mod turns;

use super::page::{ListPage, PageQuery};
use crate::error::{ApiError, ErrorResponse};
use crate::export::csv;
use crate::extract::{Path, Query};
use crate::principal::{KeyScope, Principal};
use crate::stamps::now_ms;
use crate::state::AppState;
use crate::turn_log;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use throughline_engine::fold::{AssistantMessage, ToolCallBlock};
use throughline_engine::{Event, EventKind, TimeSegment, Waterfall};
use throughline_store::{CallCounts, CallFilter, CallRow, PAGE_ROWS_MAX, PageRequest};
use throughline_wire::display_escape;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Maximum number of calls in one export, the newest: as many as a spreadsheet can open.
pub(crate) const EXPORTED_CALLS_MAX: usize = 100_000;

/// `/v1/history` and `/v1/turns/{turn_id}/waterfall`.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list_calls))
        .routes(routes!(get_call))
        .routes(routes!(count_calls))
        .routes(routes!(export_calls))
        .routes(routes!(turns::list_turn_history))
        .routes(routes!(turns::count_turns))
        .routes(routes!(metrics::get_metrics))
        .routes(routes!(get_waterfall))
}

/// A tool call in short.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct CallInfo {
    /// Id.
    #[schema(example = "turn_01a1fe3a01c37659bcb2d47dd61a216d.1")]
    pub tool_id: String,
    /// Id of the turn.
    pub turn_id: String,
    /// Id of the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// Number of the step, from 1.
    pub step: u32,
    /// Name of the tool.
    #[schema(example = "time.now")]
    pub tool_name: String,
    /// Source of the tool.
    pub source: String,
    /// Effect of the tool.
    pub effect: String,
    /// Status: that of `tool_result`, or the current activity.
    pub status: String,
    /// Arguments as JSON, or the raw text if it is not JSON; cut if it is long.
    pub arguments: String,
    /// The same for people: nothing in it is invisible, and JSON reads as the same value.
    pub arguments_text: String,
    /// Output in short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_summary: Option<String>,
    /// Error of a failed call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Start time, or time of announcement if it never ran, in milliseconds since 1970.
    pub started_at: i64,
    /// Run time in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
}

impl From<CallRow> for CallInfo {
    fn from(row: CallRow) -> Self {
        Self {
            tool_id: row.tool_id,
            turn_id: row.turn_id,
            conversation_id: row.conversation_id,
            step: row.step,
            tool_name: row.tool_name,
            source: row.source,
            effect: row.effect,
            status: row.status,
            arguments_text: display_escape::escape(&row.arguments).into_owned(),
            arguments: row.arguments,
            output_summary: row.output_summary.map(|summary| display_escape::escape(&summary).into_owned()),
            error: row.error.map(|error| display_escape::escape(&error).into_owned()),
            started_at: row.started_at,
            duration_ms: row.duration_ms,
        }
    }
}

/// A query with the filters of calls: fields before them, and fields after them.
macro_rules! calls_query {
    ($(#[$meta:meta])* $name:ident { $($before:tt)* } { $($after:tt)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, Deserialize, IntoParams)]
        #[serde(deny_unknown_fields)]
        #[into_params(parameter_in = Query)]
        pub(crate) struct $name {
            $($before)*
            /// Name of the tool.
            tool: Option<String>,
            /// Source of the tool.
            source: Option<String>,
            /// Status, or several separated by commas.
            #[param(example = "error,timeout")]
            status: Option<String>,
            /// Id of the conversation.
            conversation_id: Option<String>,
            /// Id of the turn.
            turn_id: Option<String>,
            /// Started at this time or later, in milliseconds since 1970.
            from: Option<i64>,
            /// Started before this time, in milliseconds since 1970.
            until: Option<i64>,
            /// Minimum run time in milliseconds, exclusive.
            longer_than_ms: Option<i64>,
            /// Text in name, arguments, summary or error; case-insensitive. The answer may then be `partial`.
            q: Option<String>,
            $($after)*
        }

        impl $name {
            fn filter(&self) -> CallFilter {
                CallFilter {
                    tool_name: self.tool.clone(),
                    source: self.source.clone(),
                    statuses: CallFilter::parse_statuses(self.status.as_deref()),
                    conversation_id: self.conversation_id.clone(),
                    turn_id: self.turn_id.clone(),
                    from: self.from,
                    until: self.until,
                    longer_than_ms: self.longer_than_ms,
                    text: self.q.clone(),
                }
            }
        }
    };
}

calls_query! {
    /// Filter of calls; an absent field matches all.
    CallsQuery {} {
        /// `next` of the previous page.
        cursor: Option<String>,
        /// Maximum number of rows, 1 to 200. Default 50.
        #[param(minimum = 1, maximum = 200)]
        limit: Option<u32>,
    }
}

/// List tool calls, newest first.
#[utoipa::path(get, path = "/v1/history/calls", tag = "history", params(CallsQuery), responses(
    (status = 200, description = "One page", body = ListPage<CallInfo>),
    (status = 400, description = "Invalid query", body = ErrorResponse),
))]
async fn list_calls(
    State(state): State<AppState>,
    principal: Principal,
    Query(query): Query<CallsQuery>,
) -> Result<axum::Json<ListPage<CallInfo>>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let page = PageQuery::page_request(query.cursor.clone(), query.limit)?;
    let page_rows = state.catalog.calls(&principal.user, &query.filter(), &page).await?;
    Ok(axum::Json(ListPage::from_page(page_rows, CallInfo::from)))
}

/// Count of one value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct CountInfo {
    /// The value.
    pub name: String,
    pub count: u64,
}

/// Counts of calls.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct CallCountsInfo {
    /// Number of all calls.
    pub total: u64,
    /// Number by status, most frequent first.
    pub by_status: Vec<CountInfo>,
    /// Number by tool, most frequent first.
    pub by_tool: Vec<CountInfo>,
    /// Searching for `q` took too long to count all: there are at least this many.
    pub partial: bool,
}

impl From<CallCounts> for CallCountsInfo {
    fn from(counts: CallCounts) -> Self {
        let infos = |counts: Vec<throughline_store::NamedCount>| {
            counts.into_iter().map(|count| CountInfo { name: count.name, count: count.count }).collect()
        };
        Self {
            total: counts.total,
            by_status: infos(counts.by_status),
            by_tool: infos(counts.by_tool),
            partial: counts.partial,
        }
    }
}

/// Count tool calls by status and tool.
#[utoipa::path(get, path = "/v1/history/counts", tag = "history", params(CallsQuery), responses(
    (status = 200, description = "The counts", body = CallCountsInfo),
    (status = 400, description = "Invalid query", body = ErrorResponse),
))]
async fn count_calls(
    State(state): State<AppState>,
    principal: Principal,
    Query(query): Query<CallsQuery>,
) -> Result<axum::Json<CallCountsInfo>, ApiError> {
    principal.require(KeyScope::Chat)?;
    // This list has no pages; a limit that is invalid elsewhere is invalid here as well.
    PageQuery::page_request(query.cursor.clone(), query.limit)?;
    Ok(axum::Json(state.catalog.count_calls(&principal.user, &query.filter()).await?.into()))
}

/// An event of a call's timeline.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct TimelineEntry {
    /// Number of the event.
    pub seq: u64,
    /// Milliseconds since 1970.
    pub at: i64,
    /// Time since the previous entry, in milliseconds.
    pub after_ms: u64,
    /// The event's type.
    #[schema(example = "tool_start")]
    pub event: String,
    /// Number of consecutive events that the entry stands for.
    pub count: u64,
    /// The event without what every event has; of several in a row, the last.
    #[schema(value_type = Object)]
    pub detail: Value,
}

/// A call in detail.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct CallDetail {
    /// In short.
    #[serde(flatten)]
    pub info: CallInfo,
    /// Its block in the message.
    #[schema(value_type = crate::api::openapi::ToolCallSchema)]
    pub call: ToolCallBlock,
    /// Output for people, with invisible characters spelled out.
    pub output_text: String,
    /// Events of the call, in order.
    pub timeline: Vec<TimelineEntry>,
    /// Text that the model received as the result; absent if it has received none (yet).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_by_model: Option<String>,
}

/// Get a call with its arguments, output and events.
#[utoipa::path(get, path = "/v1/history/calls/{tool_id}", tag = "history",
    params(("tool_id" = String, Path, description = "Id of the call")), responses(
    (status = 200, description = "The details", body = CallDetail),
    (status = 404, description = "Not found", body = ErrorResponse),
))]
async fn get_call(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
) -> Result<axum::Json<CallDetail>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let no_call = || ApiError::not_found("call", &id);
    // The id of a call begins with its turn's: whose turn it is decides who may see it.
    let (turn_id, _) = id.rsplit_once('.').ok_or_else(no_call)?;
    let row = state.catalog.turn(&principal.user, turn_id).await?.ok_or_else(no_call)?;
    let events = turn_log::events(&*state.log, &row.id).await?;
    let message = AssistantMessage::from_events(&events);
    let call = message.calls().find(|call| call.tool_id.as_ref().is_some_and(|one| one.as_str() == id));
    let call = call.cloned().ok_or_else(no_call)?;
    let info = turn_log::call_rows(&events).into_iter().find(|row| row.tool_id == id);
    let info = info.ok_or_else(no_call)?;
    let info = CallInfo { conversation_id: row.conversation_id, ..CallInfo::from(info) };
    let call_events: Vec<&Event> =
        events.iter().filter(|event| event.tool_id.as_ref().is_some_and(|one| one.as_str() == id)).collect();
    let output_text = display_escape::escape(&call.output).into_owned();
    let (seen_by_model, timeline) = (result_for_model(&call, &call_events), timeline(&call_events));
    Ok(axum::Json(CallDetail { info, call, output_text, timeline, seen_by_model }))
}

/// Text that the model reads as the result, derived from the outcome as the engine derives it.
fn result_for_model(call: &ToolCallBlock, events: &[&Event]) -> Option<String> {
    let result = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::ToolResult(result) => Some(result),
        _ => None,
    })?;
    (call.seen_by_model == Some(true)).then(|| result.outcome().model_text())
}

/// The events of a call one by one; pieces of arguments and of output in a row are one moment.
fn timeline(events: &[&Event]) -> Vec<TimelineEntry> {
    let mut entries: Vec<TimelineEntry> = Vec::new();
    let mut before = events.first().map_or(0, |event| event.timestamp);
    for event in events {
        let mut detail = serde_json::to_value(event).unwrap_or_default();
        let kind = detail.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(members) = detail.as_object_mut() {
            for common in ["type", "turn_id", "seq", "timestamp", "tool_id"] {
                members.remove(common);
            }
        }
        let is_piece = matches!(event.kind, EventKind::ToolInputDelta { .. } | EventKind::ToolProgress(_));
        match entries.last_mut().filter(|last| is_piece && last.event == kind) {
            Some(last) => {
                last.count += 1;
                last.detail = detail;
            }
            None => entries.push(TimelineEntry {
                seq: event.seq.0,
                at: event.timestamp,
                after_ms: u64::try_from(event.timestamp.saturating_sub(before)).unwrap_or(0),
                event: kind,
                count: 1,
                detail,
            }),
        }
        before = event.timestamp;
    }
    entries
}

/// A time segment of a turn.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = WaterfallSegment)]
pub(crate) struct SegmentInfo {
    /// `first_token`, `thinking`, `text`, `arguments`, `approval_wait`, `tool`, `retry` or `engine`.
    #[schema(example = "tool")]
    pub kind: String,
    /// Number of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// Call id, for tools and approvals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<String>,
    /// Milliseconds since 1970.
    pub start: i64,
    /// Duration in milliseconds.
    pub ms: u64,
}

impl From<TimeSegment> for SegmentInfo {
    fn from(segment: TimeSegment) -> Self {
        let kind = serde_json::to_value(segment.kind).unwrap_or_default();
        Self {
            kind: kind.as_str().unwrap_or_default().to_owned(),
            step: segment.step,
            tool_id: segment.tool_id.map(|id| id.as_str().to_owned()),
            start: segment.start,
            ms: segment.ms,
        }
    }
}

/// Time of a turn by activity.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct WaterfallInfo {
    /// `running`, or the status at its end.
    pub status: String,
    /// Time from start to end, or to now, in milliseconds.
    pub wall_ms: u64,
    /// Time from start to the first content, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_content_ms: Option<u64>,
    /// Tool time that overlapped with the model's stream, in milliseconds.
    pub saved_by_eager_ms: u64,
    /// Segments without gaps; their sum is `wall_ms`.
    pub segments: Vec<SegmentInfo>,
}

/// Get the waterfall of a turn: its wall time by activity, to the millisecond.
#[utoipa::path(get, path = "/v1/turns/{turn_id}/waterfall", tag = "turns",
    params(("turn_id" = String, Path, description = "Id of the turn")), responses(
    (status = 200, description = "Segments without gaps", body = WaterfallInfo),
    (status = 404, description = "Not found", body = ErrorResponse),
))]
async fn get_waterfall(
    State(state): State<AppState>,
    principal: Principal,
    Path(turn): Path<String>,
) -> Result<axum::Json<WaterfallInfo>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let row = state.catalog.turn(&principal.user, &turn).await?;
    let row = row.ok_or_else(|| ApiError::not_found("turn", &turn))?;
    let events = turn_log::events(&*state.log, &turn).await?;
    let mut fold = Waterfall::default();
    events.iter().for_each(|event| fold.apply(event));
    let is_over = events.last().is_some_and(|event| matches!(event.kind, EventKind::StreamEnd { .. }));
    let until = match events.last() {
        Some(last) if is_over => last.timestamp,
        _ => now_ms(),
    };
    Ok(axum::Json(WaterfallInfo {
        status: row.status().to_owned(),
        wall_ms: fold.wall_ms(until),
        first_content_ms: fold.first_content_ms(),
        saved_by_eager_ms: fold.saved_by_eager_ms(),
        segments: fold.segments_until(until).into_iter().map(SegmentInfo::from).collect(),
    }))
}

/// Format of exported calls.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallsExportFormat {
    /// One object per line, as in the list.
    #[default]
    Jsonl,
    /// RFC 4180 with a header. Values that a spreadsheet would read as formulas begin with `'`.
    Csv,
}

calls_query! {
    /// Filter and format of exported calls. The filters are those of the list, without pages.
    CallsExportQuery {
        /// `jsonl` or `csv`.
        #[serde(default)]
        #[param(inline)]
        format: CallsExportFormat,
    } {}
}

/// Export tool calls, newest first, as JSON Lines or CSV; at most 100,000.
#[utoipa::path(get, path = "/v1/history/export", tag = "history", params(CallsExportQuery), responses(
    (status = 200, description = "The file", content((String = "application/jsonl"), (String = "text/csv"))),
    (status = 400, description = "Invalid query", body = ErrorResponse),
))]
async fn export_calls(
    State(state): State<AppState>,
    principal: Principal,
    Query(query): Query<CallsExportQuery>,
) -> Result<Response, ApiError> {
    principal.require(KeyScope::Chat)?;
    let filter = query.filter();
    let mut text = match query.format {
        CallsExportFormat::Jsonl => String::new(),
        CallsExportFormat::Csv => csv::csv_header(),
    };
    let (mut written, mut page) = (0, PageRequest::first().limit(PAGE_ROWS_MAX));
    while written < EXPORTED_CALLS_MAX {
        let page_rows = state.catalog.calls(&principal.user, &filter, &page).await?;
        for row in page_rows.items.into_iter().take(EXPORTED_CALLS_MAX - written) {
            written += 1;
            match query.format {
                CallsExportFormat::Jsonl => {
                    let call = CallInfo::from(row);
                    text.push_str(&serde_json::to_string(&call).map_err(ApiError::internal)?);
                    text.push('\n');
                }
                CallsExportFormat::Csv => csv::write_row(&mut text, &row),
            }
        }
        match page_rows.next {
            Some(next) => page = PageRequest::after(next).limit(PAGE_ROWS_MAX),
            None => break,
        }
    }
    let (media_type, disposition) = match query.format {
        CallsExportFormat::Jsonl => ("application/jsonl", "attachment; filename=\"calls.jsonl\""),
        CallsExportFormat::Csv => ("text/csv; charset=utf-8", "attachment; filename=\"calls.csv\""),
    };
    let mut response = text.into_response();
    for (name, value) in [
        (header::CONTENT_TYPE, media_type),
        (header::CONTENT_DISPOSITION, disposition),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}
