//! The page that an approval link of a chat opens, and its API. The link is the credential: valid once, for
//! the questions of one answer.

use super::page_file::{HTML, JAVASCRIPT, StaticFile};
use crate::chat_approvals::{self, LINK_PATH};
use crate::error::{ApiError, ErrorResponse};
use crate::extract::Json;
use crate::projections::chat_completions::question::CallQuestion;
use crate::state::AppState;
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use throughline_engine::ApprovalDecision;
use throughline_wire::display_escape;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

const PAGE: StaticFile = StaticFile { media_type: HTML, content: include_str!("question_links/page.html") };
const SCRIPT: StaticFile =
    StaticFile { media_type: JAVASCRIPT, content: include_str!("question_links/page.js") };

/// `/approve` and its script.
pub(crate) fn pages() -> Router<AppState> {
    Router::new()
        .route(LINK_PATH, get(|headers: HeaderMap| async move { PAGE.respond(&headers) }))
        .route("/approve.js", get(|headers: HeaderMap| async move { SCRIPT.respond(&headers) }))
}

/// `/v1/question-links`.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(get_link)).routes(routes!(answer_link))
}

/// A link from a question in a chat.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct QuestionLink {
    /// Code after `#` in the link.
    link: String,
}

/// Questions behind a link.
#[derive(Debug, Serialize, ToSchema)]
struct LinkedQuestions {
    /// One for each call.
    questions: Vec<LinkedQuestion>,
}

/// A call that needs approval.
#[derive(Debug, Serialize, ToSchema)]
struct LinkedQuestion {
    /// In words, with nothing in them that cannot be seen.
    question: String,
    /// Complete arguments as JSON text, with invisible characters spelled out.
    arguments: String,
}

/// Answer to a question.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AnswerLink {
    /// Code after `#` in the link.
    link: String,
    /// `approve` or `deny`.
    #[schema(value_type = String)]
    decision: ApprovalDecision,
    /// Reason; that of a denial is sent to the model.
    #[serde(default)]
    reason: Option<String>,
}

/// Receipt for an answered link.
#[derive(Debug, Serialize, ToSchema)]
struct LinkAck {
    /// `resolved`: it is in the log.
    status: &'static str,
}

/// Get the question behind an approval link. Needs no key.
#[utoipa::path(post, path = "/v1/question-links", tag = "approvals", security(()), request_body = QuestionLink, responses(
    (status = 200, description = "The open question", body = LinkedQuestions),
    (status = 410, description = "The link is unknown or used, or its question is closed", body = ErrorResponse),
))]
async fn get_link(
    State(state): State<AppState>,
    Json(body): Json<QuestionLink>,
) -> Result<axum::Json<LinkedQuestions>, ApiError> {
    let questions = chat_approvals::questions_of_link(&state, &body.link).await?;
    let read = |CallQuestion { question, arguments, .. }: CallQuestion| LinkedQuestion {
        question,
        arguments: display_escape::pretty_json(&arguments),
    };
    Ok(axum::Json(LinkedQuestions { questions: questions.into_iter().map(read).collect() }))
}

/// Answer an approval link, once. The chat continues with its next message. Needs no key.
#[utoipa::path(post, path = "/v1/question-links/answer", tag = "approvals", security(()), request_body = AnswerLink, responses(
    (status = 200, description = "Answered", body = LinkAck),
    (status = 410, description = "The link is unknown or used, or its question is closed", body = ErrorResponse),
    (status = 503, description = "Another server runs the turn; the link stays good", body = ErrorResponse),
))]
async fn answer_link(
    State(state): State<AppState>,
    Json(AnswerLink { link, decision, reason }): Json<AnswerLink>,
) -> Result<axum::Json<LinkAck>, ApiError> {
    chat_approvals::answer_link(&state, &link, decision, reason).await?;
    Ok(axum::Json(LinkAck { status: "resolved" }))
}
