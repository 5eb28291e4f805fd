//! Answers to the questions of a turn: whether a call may run, and what a running tool asks. // R: A2, A3, A4, L6

use crate::error::{ApiError, ErrorBody};
use crate::extract::{Json, Path};
use crate::hub::Standing;
use crate::principal::Principal;
use crate::state::AppState;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use throughline::{
    Answer, ArgumentTest, Constraints, Decided, Decision, Event, EventKind, Remember, Scope, TurnControl,
};
use throughline_engine::{ApprovalId, TurnId};
use throughline_store::Log;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Records read at once to find a question.
const RECORDS_PER_READ: usize = 1_024;

/// `/v1/turns/{turn_id}/approvals/…`.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(approve))
}

/// An answer.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Approve {
    /// `approve` or `deny`. A running tool's own question: `approve` accepts it with what is in `arguments`, `deny` declines.
    #[schema(value_type = String)]
    pub decision: Decision,
    /// Why; a denial's reason is told to the model.
    #[serde(default)]
    pub reason: Option<String>,
    /// Run it with these arguments instead: a full replacement. Of a running tool's question: what is filled in.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub arguments: Option<Value>,
    /// Hash of the arguments that were looked at, from the question: if they are others by now, the answer is refused.
    #[serde(default)]
    pub arguments_hash: Option<String>,
    /// For how long the answer holds, and for which arguments of the tool. Absent = for this call.
    #[serde(default)]
    pub remember: Option<RememberFor>,
}

/// For how long an answer holds, and for which arguments. It always holds for the tool as it is defined now, and no other.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "`remember` is `call`, `turn`, `conversation` or `always`, or {scope, arguments} with `these`, `any` or tests"
)]
pub enum RememberFor {
    /// For these arguments exactly.
    Scope(RememberScope),
    /// For these or others.
    Chosen(RememberChoice),
}

/// For how long an answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RememberScope {
    /// For this call; nothing is kept.
    Call,
    /// For later calls of the turn.
    Turn,
    /// For later turns of the conversation as well.
    Conversation,
    /// In every conversation.
    Always,
}

/// For how long, and for which arguments.
#[derive(Clone, Debug, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RememberChoice {
    /// For how long.
    pub scope: RememberScope,
    /// For which arguments. Absent = `these`.
    #[serde(default)]
    pub arguments: Option<RememberArguments>,
    /// An older name of the same: `exact`, `any`, or `{"arguments": {…}}` with the tests.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub constraints: Option<Constraints>,
}

/// For which arguments an answer holds.
#[derive(Clone, Debug, PartialEq, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum RememberArguments {
    /// In a word.
    Named(RememberNamed),
    /// Those that pass all of these tests, by name or JSON pointer; others are not looked at.
    #[schema(value_type = Object)]
    Tests(BTreeMap<String, ArgumentTest>),
}

/// For which arguments an answer holds, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RememberNamed {
    /// Exactly those that were asked about.
    These,
    /// Any: the answer is about the tool.
    Any,
}

impl RememberFor {
    /// # Errors
    /// 400: both names of the arguments are given.
    fn into_remember(self) -> Result<Remember, ApiError> {
        let RememberChoice { scope, arguments, constraints } = match self {
            RememberFor::Scope(scope) => RememberChoice { scope, arguments: None, constraints: None },
            RememberFor::Chosen(choice) => choice,
        };
        let constraints = match (arguments, constraints) {
            (Some(_), Some(_)) => {
                let message = "`arguments` and `constraints` are two names of one thing; give one of them";
                return Err(ApiError::bad_request("contradiction", message).param("remember.constraints"));
            }
            (None, constraints) => constraints.unwrap_or_default(),
            (Some(RememberArguments::Named(RememberNamed::These)), None) => Constraints::Exact,
            (Some(RememberArguments::Named(RememberNamed::Any)), None) => Constraints::Any,
            (Some(RememberArguments::Tests(tests)), None) if tests.is_empty() => {
                let message = "no test is given: `\"any\"` says that the answer holds for all arguments";
                return Err(ApiError::bad_request("invalid_value", message).param("remember.arguments"));
            }
            (Some(RememberArguments::Tests(tests)), None) => Constraints::Arguments(tests),
        };
        let scope = match scope {
            RememberScope::Call => Scope::Call,
            RememberScope::Turn => Scope::Turn,
            RememberScope::Conversation => Scope::Conversation,
            RememberScope::Always => Scope::Always,
        };
        Ok(Remember { scope, constraints })
    }
}

/// What became of an answer.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Answered {
    /// `resolved`: it is in the log. `queued`: the question has not been asked yet and will be answered so.
    pub status: &'static str,
}

/// Answer a question, or `all` that are open.
///
/// The first answer counts; the same one again is as good. Of a cancel and an answer that race one wins, and everybody is
/// told the same.
#[utoipa::path(post, path = "/v1/turns/{turn_id}/approvals/{approval_id}", tag = "turns", request_body = Approve,
    params(("turn_id" = String, Path, description = "Which turn"), ("approval_id" = String, Path, description = "Which question, or `all`")),
    responses(
        (status = 200, description = "It is the answer", body = Answered),
        (status = 202, description = "The question has not been asked yet; it will be answered so", body = Answered),
        (status = 404, description = "There is no such turn or question", body = ErrorBody),
        (status = 409, description = "It was answered differently", body = ErrorBody),
        (status = 410, description = "Its time is over, or its call went away", body = ErrorBody),
        (status = 422, description = "What was filled in does not fit; the question is still open", body = ErrorBody),
        (status = 503, description = "Another server runs the turn: `owner` says which", body = ErrorBody),
    ))]
async fn approve(
    State(state): State<AppState>,
    principal: Principal,
    Path((turn, question)): Path<(String, String)>,
    Json(body): Json<Approve>,
) -> Result<Response, ApiError> {
    let turn = TurnId::new(turn);
    let standing = state.hub.control(&principal.user, &turn).await?;
    let question = match (question.as_str(), &standing) {
        ("all", Standing::Running(control)) => return Ok(all(control, body).await.into_response()),
        ("all", Standing::Ended(_)) => return Err(over()),
        _ => ApprovalId::new(question),
    };
    let decided = decide(&*state.log, standing, &turn, &question, body, &principal.user).await?;
    told(decided, &question).map(IntoResponse::into_response)
}

/// Answers one question of a turn, whether it runs or is over.
pub async fn decide(
    log: &dyn Log,
    standing: Standing,
    turn: &TurnId,
    question: &ApprovalId,
    answer: Approve,
    by: &str,
) -> Result<Decided, ApiError> {
    let answer = answer.into_answer()?;
    let decided = match standing {
        Standing::Running(control) => control.decide_as(question.clone(), answer.clone(), by).await,
        Standing::Ended(_) => Decided::TurnIsOver,
    };
    match decided {
        Decided::TurnIsOver => in_the_log(log, turn, question, &answer).await,
        decided => Ok(decided),
    }
}

impl Approve {
    /// As the library takes it.
    ///
    /// # Errors
    /// 400: what is to be remembered contradicts itself.
    pub fn into_answer(self) -> Result<Answer, ApiError> {
        let mut answer = Answer::plain(self.decision, self.reason);
        answer.arguments = self.arguments;
        answer.arguments_hash = self.arguments_hash;
        answer.remember = self.remember.map(RememberFor::into_remember).transpose()?;
        Ok(answer)
    }
}

/// What an answer is told.
pub fn told(decided: Decided, question: &ApprovalId) -> Result<(StatusCode, axum::Json<Answered>), ApiError> {
    let question = question.as_str();
    match decided {
        Decided::Resolved | Decided::SameAlready => {
            Ok((StatusCode::OK, axum::Json(Answered { status: "resolved" })))
        }
        Decided::Queued => Ok((StatusCode::ACCEPTED, axum::Json(Answered { status: "queued" }))),
        Decided::DifferentAlready => {
            let message = format!("question `{question}` was answered differently before");
            Err(ApiError::conflict("answered_differently", message))
        }
        Decided::Expired => {
            let message =
                format!("question `{question}` is closed: its time was over, or its call went away");
            Err(ApiError::gone("question_closed", message))
        }
        Decided::DoesNotFit { message } => Err(ApiError::unprocessable("does_not_fit", message)
            .param("arguments")
            .remedy("the question is still open")),
        Decided::Unknown => Err(ApiError::not_found("question", question)),
        Decided::TurnIsOver => Err(over()),
    }
}

fn over() -> ApiError {
    ApiError::gone("turn_is_over", "the turn is over: nothing of it can be answered any more")
}

async fn all(control: &TurnControl, body: Approve) -> (StatusCode, axum::Json<Answered>) {
    // Those that are open now are told by their events; that the turn has just ended is no failure.
    let _ = control.answer_all(body.decision, body.reason).await;
    (StatusCode::ACCEPTED, axum::Json(Answered { status: "queued" }))
}

/// What became of a question of a turn that is over.
pub async fn in_the_log(
    log: &dyn Log,
    turn: &TurnId,
    question: &ApprovalId,
    answer: &Answer,
) -> Result<Decided, ApiError> {
    let (mut after, mut found) = (0, Decided::Unknown);
    loop {
        let records = log.read(turn.as_str(), after, RECORDS_PER_READ).await?;
        let Some(last) = records.last() else { return Ok(found) };
        after = last.seq;
        let questions = records.iter().filter(|record| record.kind.starts_with("approval_"));
        for event in questions.filter_map(|record| serde_json::from_slice::<Event>(&record.payload).ok()) {
            match event.kind {
                EventKind::ApprovalRequest { approval_id, .. } if approval_id == *question => {
                    found = Decided::Expired
                }
                EventKind::ApprovalResolved { approval_id, decision, by, arguments, content, .. }
                    if approval_id == *question =>
                {
                    let answered =
                        throughline_engine::Answered { decision, by, content: arguments.or(content) };
                    found = Decided::after(answer, &answered);
                }
                _ => {}
            }
        }
    }
}
