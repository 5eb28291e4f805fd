//! The history of turns: input, agent and model, and how each ended.

use super::CountInfo;
use crate::api::page::{ListPage, PageQuery};
use crate::error::{ApiError, ErrorResponse};
use crate::extract::Query;
use crate::principal::{KeyScope, Principal};
use crate::state::AppState;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use throughline_store::{CallFilter, NamedCount, TurnCounts, TurnFilter, TurnHistoryRow};
use throughline_wire::display_escape;
use utoipa::{IntoParams, ToSchema};

/// A turn in short.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct TurnInfo {
    /// Id.
    #[schema(example = "turn_01a1fe3a01c37659bcb2d47dd61a216d")]
    pub turn_id: String,
    /// Id of the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// Agent that answered.
    pub agent: String,
    /// Model that answered, as `upstream/model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tool-calling mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The beginning of the input, for people.
    pub input: String,
    /// The beginning of the answer, for people.
    pub answer: String,
    /// `running`, or the status at its end.
    #[schema(example = "completed")]
    pub status: String,
    /// Start time, in milliseconds since 1970.
    pub started_at: i64,
    /// Time from start to end in milliseconds; absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
    /// Time from start to the first content in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_content_ms: Option<i64>,
    /// Tokens read by models, as the upstream counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens written by models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Number of tool calls.
    pub calls: u64,
    /// Number of tool calls that failed.
    pub failed_calls: u64,
}

impl From<TurnHistoryRow> for TurnInfo {
    fn from(row: TurnHistoryRow) -> Self {
        let (input_tokens, output_tokens) = (row.tokens("input_tokens"), row.tokens("output_tokens"));
        let turn = row.turn;
        Self {
            turn_id: turn.id,
            conversation_id: turn.conversation_id,
            agent: turn.agent,
            model: turn.model,
            mode: row.mode,
            input: display_escape::escape_prose(&turn.input).into_owned(),
            answer: display_escape::escape_prose(&turn.answer).into_owned(),
            status: turn.status,
            started_at: turn.created_at,
            duration_ms: turn.ended_at.map(|ended_at| ended_at.saturating_sub(turn.created_at)),
            first_content_ms: row.pace.first_content_ms,
            input_tokens,
            output_tokens,
            calls: row.calls,
            failed_calls: row.failed_calls,
        }
    }
}

/// Filter of turns; an absent field matches all.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TurnsQuery {
    /// `running`, or a status at the end, or several separated by commas.
    #[param(example = "error,interrupted")]
    status: Option<String>,
    /// Name of the agent.
    agent: Option<String>,
    /// Model, as `upstream/model`.
    model: Option<String>,
    /// Id of the conversation.
    conversation_id: Option<String>,
    /// Started at this time or later, in milliseconds since 1970.
    from: Option<i64>,
    /// Started before this time, in milliseconds since 1970.
    until: Option<i64>,
    /// Text in input or answer; case-insensitive. The answer may then be `partial`.
    q: Option<String>,
    /// `next` of the previous page.
    cursor: Option<String>,
    /// Maximum number of rows, 1 to 200. Default 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// Filter of the turns that are counted; an absent field matches all.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TurnCountsQuery {
    /// `running`, or a status at the end, or several separated by commas.
    #[param(example = "error,interrupted")]
    status: Option<String>,
    /// Name of the agent.
    agent: Option<String>,
    /// Model, as `upstream/model`.
    model: Option<String>,
    /// Id of the conversation.
    conversation_id: Option<String>,
    /// Started at this time or later, in milliseconds since 1970.
    from: Option<i64>,
    /// Started before this time, in milliseconds since 1970.
    until: Option<i64>,
}

impl From<TurnCountsQuery> for TurnFilter {
    fn from(query: TurnCountsQuery) -> Self {
        let TurnCountsQuery { status, agent, model, conversation_id, from, until } = query;
        let statuses = CallFilter::parse_statuses(status.as_deref());
        Self { conversation_id, agent, model, statuses, from, until }
    }
}

/// List turns, newest first, those that run included.
#[utoipa::path(get, path = "/v1/history/turns", tag = "history", params(TurnsQuery), responses(
    (status = 200, description = "One page", body = ListPage<TurnInfo>),
    (status = 400, description = "Invalid query", body = ErrorResponse),
))]
pub(super) async fn list_turn_history(
    State(state): State<AppState>,
    principal: Principal,
    Query(query): Query<TurnsQuery>,
) -> Result<axum::Json<ListPage<TurnInfo>>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let TurnsQuery { status, agent, model, conversation_id, from, until, q, cursor, limit } = query;
    let page = PageQuery::page_request(cursor, limit)?;
    let filter = TurnCountsQuery { status, agent, model, conversation_id, from, until }.into();
    let page_rows = match q {
        Some(text) => state.catalog.search_turns(&principal.user, &text, &filter, &page).await?,
        None => state.catalog.turns(&principal.user, &filter, &page).await?,
    };
    Ok(axum::Json(ListPage::from_page(page_rows, TurnInfo::from)))
}

/// Counts of turns.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct TurnCountsInfo {
    /// Number of all turns.
    pub total: u64,
    /// Number by status, most frequent first.
    pub by_status: Vec<CountInfo>,
    /// Number by model, most frequent first.
    pub by_model: Vec<CountInfo>,
    /// Number by agent, most frequent first.
    pub by_agent: Vec<CountInfo>,
}

impl From<TurnCounts> for TurnCountsInfo {
    fn from(counts: TurnCounts) -> Self {
        let infos = |counts: Vec<NamedCount>| {
            counts.into_iter().map(|count| CountInfo { name: count.name, count: count.count }).collect()
        };
        Self {
            total: counts.total,
            by_status: infos(counts.by_status),
            by_model: infos(counts.by_model),
            by_agent: infos(counts.by_agent),
        }
    }
}

/// Count turns by status, model and agent.
#[utoipa::path(get, path = "/v1/history/turn-counts", tag = "history", params(TurnCountsQuery), responses(
    (status = 200, description = "The counts", body = TurnCountsInfo),
    (status = 400, description = "Invalid query", body = ErrorResponse),
))]
pub(super) async fn count_turns(
    State(state): State<AppState>,
    principal: Principal,
    Query(query): Query<TurnCountsQuery>,
) -> Result<axum::Json<TurnCountsInfo>, ApiError> {
    principal.require(KeyScope::Chat)?;
    Ok(axum::Json(state.catalog.count_turns(&principal.user, &query.into()).await?.into()))
}
