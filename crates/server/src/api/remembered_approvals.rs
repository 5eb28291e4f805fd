//! Remembered approvals: listing and revoking them.

use super::page::{ListPage, PageQuery};
use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Path, Query};
use crate::principal::{KeyScope, Principal};
use crate::state::AppState;
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use throughline::RememberedDecision;
use throughline_store::{PAGE_ROWS_MAX, RememberedRow};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// `/v1/remembered`.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list_remembered)).routes(routes!(forget_remembered))
}

/// An answer that is remembered.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct RememberedApproval {
    /// By which it is taken back. Never used again.
    pub number: u64,
    /// Holds in this conversation only; absent = always.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// When it was given, in milliseconds since 1970.
    pub at: i64,
    /// The decision and the calls that it is about. Absent: a later release wrote it, and nothing of the kind is allowed until it
    /// is taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<RememberedRule>,
    /// The stored form: `decision`, `scope`, `tool`, `fingerprint`, `arguments_hash`, `arguments`, `reason`, `asked`, `question`
    /// (the id).
    #[schema(value_type = Object)]
    pub answer: Value,
}

/// The decision of a remembered answer and the calls that it is about.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct RememberedRule {
    /// `approve` or `deny`.
    pub decision: String,
    /// `conversation` or `always`.
    pub scope: String,
    /// Calls of this tool, as it was defined then: if it is defined otherwise, it asks again.
    pub tool: String,
    /// `these`: the same arguments as then and no others. `any`. Otherwise tests by name or JSON pointer, all of which the arguments have to pass.
    #[schema(value_type = Object)]
    pub for_arguments: Value,
    /// Why it was denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Text of the question that was answered, safe to display; absent in approvals from earlier releases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// Id of that question; absent in approvals from earlier releases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    /// The turn that asked it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
}

impl From<&RememberedDecision> for RememberedRule {
    fn from(answer: &RememberedDecision) -> Self {
        let name = |value: Result<Value, serde_json::Error>| {
            value.ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
        };
        let for_arguments = match (&answer.arguments_hash, answer.arguments.is_empty()) {
            (Some(_), _) => json!("these"),
            (None, true) => json!("any"),
            (None, false) => serde_json::to_value(&answer.arguments).unwrap_or_default(),
        };
        let approval_id = answer.question.as_ref().map(|id| id.as_str().to_owned());
        Self {
            decision: name(serde_json::to_value(answer.decision)),
            scope: answer.scope.name().to_owned(),
            tool: answer.tool.as_str().to_owned(),
            for_arguments,
            reason: answer.reason.clone(),
            // The id of a question begins with that of its call, which begins with its turn's.
            turn_id: approval_id.as_deref().and_then(|id| Some(id.rsplitn(3, '.').nth(2)?.to_owned())),
            question: answer.asked.clone(),
            approval_id,
        }
    }
}

impl From<RememberedRow> for RememberedApproval {
    fn from(row: RememberedRow) -> Self {
        let answer = serde_json::from_value::<RememberedDecision>(row.answer.clone()).ok();
        Self {
            number: row.number,
            conversation_id: row.conversation_id,
            at: row.at,
            rule: answer.as_ref().map(RememberedRule::from),
            answer: row.answer,
        }
    }
}

/// Filter of remembered approvals.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RememberedQuery {
    /// Those that hold in this conversation too; absent = only those that always hold.
    conversation_id: Option<String>,
    /// `true`: those of every conversation too.
    #[serde(default)]
    #[param(required = false)]
    everywhere: bool,
    /// `next` of the previous page.
    cursor: Option<String>,
    /// Maximum number of rows, 1 to 200. Default 200.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// List remembered approvals, oldest first.
#[utoipa::path(get, path = "/v1/remembered", tag = "approvals", params(RememberedQuery), responses(
    (status = 200, description = "One page", body = ListPage<RememberedApproval>),
    (status = 400, description = "Invalid query", body = ErrorResponse),
))]
async fn list_remembered(
    State(state): State<AppState>,
    principal: Principal,
    Query(query): Query<RememberedQuery>,
) -> Result<axum::Json<ListPage<RememberedApproval>>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let page = PageQuery::page_request(query.cursor, query.limit.or(Some(PAGE_ROWS_MAX)))?;
    let after = match page.cursor.as_deref().map(str::parse::<u64>) {
        None => 0,
        Some(Ok(after)) => after,
        Some(Err(_)) => {
            let error = ApiError::bad_request("invalid_value", "`cursor` is the `next` of a page before");
            return Err(error.param("cursor"));
        }
    };
    // Catalog limits keep the number of a user's approvals small enough to read all in one query.
    let rows = if query.everywhere {
        state.catalog.all_remembered(&principal.user).await?
    } else {
        state.catalog.remembered(&principal.user, query.conversation_id.as_deref()).await?
    };
    let mut rows: Vec<RememberedRow> = rows.into_iter().filter(|row| row.number > after).collect();
    let has_more = rows.len() > page.limit as usize;
    rows.truncate(page.limit as usize);
    let next = rows.last().filter(|_| has_more).map(|last| last.number.to_string());
    Ok(axum::Json(ListPage {
        items: rows.into_iter().map(RememberedApproval::from).collect(),
        next,
        partial: false,
    }))
}

/// Forget a remembered approval: the next such call asks again.
#[utoipa::path(delete, path = "/v1/remembered/{number}", tag = "approvals",
    params(("number" = u64, Path, description = "Number of the approval")), responses(
    (status = 204, description = "Deleted"),
    (status = 404, description = "Not found", body = ErrorResponse),
))]
async fn forget_remembered(
    State(state): State<AppState>,
    principal: Principal,
    Path(number): Path<u64>,
) -> Result<StatusCode, ApiError> {
    principal.require(KeyScope::Chat)?;
    let forgotten = state.catalog.delete_remembered(&principal.user, number).await;
    state.app.invalidate_permanent_approvals(Some(&principal.user));
    match forgotten? {
        Some(_) => Ok(StatusCode::NO_CONTENT),
        None => Err(ApiError::not_found("remembered answer", &number.to_string())),
    }
}
