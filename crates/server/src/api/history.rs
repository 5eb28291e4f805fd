//! The history of tool calls: which there were, what became of each, and where the time of a turn went. // R: S4, U5

mod metrics;

pub use metrics::{
    BUCKETS_MAX, BucketMetrics, CallsMetrics, MetricsInfo, Percentiles, SAMPLES_MAX, TOOLS_MAX, ToolMetrics,
    TurnsMetrics, compute_metrics,
};

use super::conversations::now_ms;
use super::page::{ListPage, PageQuery};
use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Path, Query};
use crate::portable::csv;
use crate::principal::{KeyScope, Principal};
use crate::state::AppState;
use crate::turn_log;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use throughline_engine::fold::{AssistantMessage, ToolCallBlock};
use throughline_engine::{Event, EventKind, TimeSegment, Waterfall as Fold};
use throughline_store::catalog::{CallCounts, CallFilter, CallRow, PAGE_ROWS_MAX, PageRequest};
use throughline_wire::visible;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Most calls of one export, the newest: what a spreadsheet opens.
pub const EXPORTED_CALLS_MAX: usize = 100_000;

/// `/v1/history` and `/v1/turns/{turn_id}/get_waterfall`.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list_calls))
        .routes(routes!(get_call))
        .routes(routes!(count_calls))
        .routes(routes!(export_calls))
        .routes(routes!(metrics::get_metrics))
        .routes(routes!(get_waterfall))
}

/// A tool call in short.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CallInfo {
    /// Its id.
    #[schema(example = "turn_01a1fe3a01c37659bcb2d47dd61a216d.1")]
    pub tool_id: String,
    /// In which turn.
    pub turn_id: String,
    /// In which conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// In which step, from 1.
    pub step: u32,
    /// Name of the tool.
    #[schema(example = "time.now")]
    pub tool_name: String,
    /// Where the tool comes from.
    pub source: String,
    /// What the tool may do.
    pub effect: String,
    /// As in `tool_result`, or what it is doing now.
    pub status: String,
    /// As JSON, or the text that is not JSON; its beginning if it is long.
    pub arguments: String,
    /// The same for people: nothing in it is invisible, and JSON reads as the same value.
    pub arguments_text: String,
    /// What came out, in short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_summary: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it began to run, or was announced if it never ran; milliseconds since 1970.
    pub started_at: i64,
    /// How long it ran, in milliseconds.
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
            arguments_text: visible::escape(&row.arguments).into_owned(),
            arguments: row.arguments,
            output_summary: row.output_summary.map(|summary| visible::escape(&summary).into_owned()),
            error: row.error.map(|error| visible::escape(&error).into_owned()),
            started_at: row.started_at,
            duration_ms: row.duration_ms,
        }
    }
}

/// Which calls; what is absent matches all.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CallsQuery {
    /// Of this tool.
    tool: Option<String>,
    /// Of tools from this source.
    source: Option<String>,
    /// With this status, or with one of several, a comma between.
    #[param(example = "error,timeout")]
    status: Option<String>,
    /// Of this conversation.
    conversation_id: Option<String>,
    /// Of this turn.
    turn_id: Option<String>,
    /// Begun then or later, in milliseconds since 1970.
    from: Option<i64>,
    /// Begun before, in milliseconds since 1970.
    until: Option<i64>,
    /// That ran longer than so many milliseconds.
    longer_than_ms: Option<i64>,
    /// With this text in name, arguments, summary or error, whatever its case.
    q: Option<String>,
    /// `next` of the page before.
    cursor: Option<String>,
    /// Most rows, 1 to 200. Default 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

impl CallsQuery {
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

/// List tool calls, newest first.
#[utoipa::path(get, path = "/v1/history/calls", tag = "history", params(CallsQuery), responses(
    (status = 200, description = "A part of the list", body = ListPage<CallInfo>),
    (status = 400, description = "A query that cannot be answered", body = ErrorResponse),
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

/// How many of something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct CountInfo {
    /// Of what.
    pub name: String,
    /// How many.
    pub count: u64,
}

/// How many calls there are.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CallCountsInfo {
    /// All.
    pub total: u64,
    /// By status, the most frequent first.
    pub by_status: Vec<CountInfo>,
    /// By tool, the most frequent first.
    pub by_tool: Vec<CountInfo>,
}

impl From<CallCounts> for CallCountsInfo {
    fn from(counts: CallCounts) -> Self {
        let infos = |counts: Vec<throughline_store::catalog::NamedCount>| {
            counts.into_iter().map(|count| CountInfo { name: count.name, count: count.count }).collect()
        };
        Self { total: counts.total, by_status: infos(counts.by_status), by_tool: infos(counts.by_tool) }
    }
}

/// Count tool calls by status and tool.
#[utoipa::path(get, path = "/v1/history/counts", tag = "history", params(CallsQuery), responses(
    (status = 200, description = "How many there are", body = CallCountsInfo),
    (status = 400, description = "A query that cannot be answered", body = ErrorResponse),
))]
async fn count_calls(
    State(state): State<AppState>,
    principal: Principal,
    Query(query): Query<CallsQuery>,
) -> Result<axum::Json<CallCountsInfo>, ApiError> {
    principal.require(KeyScope::Chat)?;
    // There are no pages here; what would be no page elsewhere is a mistake here as well.
    PageQuery::page_request(query.cursor.clone(), query.limit)?;
    Ok(axum::Json(state.catalog.count_calls(&principal.user, &query.filter()).await?.into()))
}

/// A moment of a call.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TimelineEntry {
    /// Number of the event.
    pub seq: u64,
    /// Milliseconds since 1970.
    pub at: i64,
    /// Since the moment before, in milliseconds.
    pub after_ms: u64,
    /// The event's type.
    #[schema(example = "tool_start")]
    pub event: String,
    /// How many such events in a row it stands for.
    pub count: u64,
    /// The event without what every event has; of several in a row, the last.
    #[schema(value_type = Object)]
    pub detail: Value,
}

/// A call with all that is known of it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CallDetail {
    /// In short.
    #[serde(flatten)]
    pub info: CallInfo,
    /// Its block in the message.
    #[schema(value_type = crate::api::openapi::ToolCallSchema)]
    pub call: ToolCallBlock,
    /// What it produced, for people: nothing in it is invisible.
    pub output_text: String,
    /// What happened to it, in order.
    pub timeline: Vec<TimelineEntry>,
    /// What the model was told about it; absent = it was told nothing (yet).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_by_model: Option<String>,
}

/// A call with its arguments, output and everything that happened to it.
#[utoipa::path(get, path = "/v1/history/calls/{tool_id}", tag = "history",
    params(("tool_id" = String, Path, description = "Which call")), responses(
    (status = 200, description = "All that is known of it", body = CallDetail),
    (status = 404, description = "There is none", body = ErrorResponse),
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
    let output_text = visible::escape(&call.output).into_owned();
    let (seen_by_model, timeline) = (result_for_model(&call, &call_events), timeline(&call_events));
    Ok(axum::Json(CallDetail { info, call, output_text, timeline, seen_by_model }))
}

/// What the model reads in place of a result: derived from how the call ended, as the engine does it.
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

/// A stretch of time with one name.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SegmentInfo {
    /// `first_token`, `thinking`, `text`, `arguments`, `approval_wait`, `tool`, `retry` or `engine`.
    #[schema(example = "tool")]
    pub kind: String,
    /// In which step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// Which call, for tools and approvals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<String>,
    /// Milliseconds since 1970.
    pub start: i64,
    /// How long, in milliseconds.
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

/// Where the time of a turn went.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WaterfallInfo {
    /// `running`, or how it ended.
    pub status: String,
    /// From its beginning to its end, or to now; in milliseconds.
    pub wall_ms: u64,
    /// From its beginning to the first content, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_content_ms: Option<u64>,
    /// Tool time that ran beside the model's stream and so cost nothing, in milliseconds.
    pub saved_by_eager_ms: u64,
    /// Without gaps; their sum is `wall_ms`.
    pub segments: Vec<SegmentInfo>,
}

/// Where the wall time of a turn went, to the millisecond.
#[utoipa::path(get, path = "/v1/turns/{turn_id}/waterfall", tag = "history",
    params(("turn_id" = String, Path, description = "Which turn")), responses(
    (status = 200, description = "Stretches of time without gaps", body = WaterfallInfo),
    (status = 404, description = "There is none", body = ErrorResponse),
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
    let mut fold = Fold::default();
    events.iter().for_each(|event| fold.absorb(event));
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

/// How calls are written down.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallsExportFormat {
    /// One object a line, as in the list.
    #[default]
    Jsonl,
    /// RFC 4180, with a header. What a spreadsheet would take for a formula begins with `'`.
    Csv,
}

/// Which calls, and how they are written down. The same filters as of the list, without pages.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CallsExportQuery {
    /// `jsonl` or `csv`.
    #[serde(default)]
    #[param(inline)]
    format: CallsExportFormat,
    /// Of this tool.
    tool: Option<String>,
    /// Of tools from this source.
    source: Option<String>,
    /// With this status, or with one of several, a comma between.
    status: Option<String>,
    /// Of this conversation.
    conversation_id: Option<String>,
    /// Of this turn.
    turn_id: Option<String>,
    /// Begun then or later, in milliseconds since 1970.
    from: Option<i64>,
    /// Begun before, in milliseconds since 1970.
    until: Option<i64>,
    /// That ran longer than so many milliseconds.
    longer_than_ms: Option<i64>,
    /// With this text in name, arguments, summary or error, whatever its case.
    q: Option<String>,
}

/// Write tool calls down, newest first: JSON Lines or CSV, at most 100,000.
#[utoipa::path(get, path = "/v1/history/export", tag = "history", params(CallsExportQuery), responses(
    (status = 200, description = "The file", content((String = "application/jsonl"), (String = "text/csv"))),
    (status = 400, description = "A query that cannot be answered", body = ErrorResponse),
))]
async fn export_calls(
    State(state): State<AppState>,
    principal: Principal,
    Query(query): Query<CallsExportQuery>,
) -> Result<Response, ApiError> {
    principal.require(KeyScope::Chat)?;
    let filter = CallFilter {
        tool_name: query.tool,
        source: query.source,
        statuses: CallFilter::parse_statuses(query.status.as_deref()),
        conversation_id: query.conversation_id,
        turn_id: query.turn_id,
        from: query.from,
        until: query.until,
        longer_than_ms: query.longer_than_ms,
        text: query.q,
    };
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
