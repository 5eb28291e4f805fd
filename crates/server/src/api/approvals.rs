//! Answers to the questions of a turn: approvals of calls, and elicitations of running tools.

use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Json, Path};
use crate::principal::Principal;
use crate::state::AppState;
use crate::turn_log;
use crate::turn_manager::TurnLookup;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use throughline::{
    ApprovalDecision, ApprovalOutcome, ApprovalResponse, ApprovalScope, ArgumentConstraints, ArgumentTest,
    CommandAck, Event, EventKind, RememberRequest, TurnControl,
};
use throughline_engine::{ApprovalId, TurnId};
use throughline_store::Log;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Records per read when searching for a question.
const RECORDS_PER_READ: usize = 1_024;

/// `/v1/turns/{turn_id}/approvals/…`.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(resolve))
}

/// Answer to a question.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResolveApproval {
    /// `approve` or `deny`. For a running tool's own question, `approve` submits the values in `arguments` and `deny` declines.
    #[schema(value_type = String)]
    pub decision: ApprovalDecision,
    /// Reason; that of a denial is sent to the model.
    #[serde(default)]
    pub reason: Option<String>,
    /// Replacement for all arguments. For a running tool's question, the values of its form.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub arguments: Option<Value>,
    /// Hash of the arguments from the question; the answer is refused if they have changed.
    #[serde(default)]
    pub arguments_hash: Option<String>,
    /// Scope and arguments for which the answer is remembered. Absent for this call only.
    #[serde(default)]
    pub remember: Option<RememberFor>,
    /// With `deny`: the turn stops as well. Its other calls are cancelled, the model is not asked again, and the turn ends as
    /// `cancelled`. 400 with `approve`.
    #[serde(default)]
    pub stop: bool,
}

/// Scope and arguments of a remembered answer. It applies only to the tool's current definition.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "`remember` is `call`, `turn`, `conversation` or `always`, or {scope, arguments} with `these`, `any` or tests"
)]
pub(crate) enum RememberFor {
    /// For exactly these arguments.
    Scope(RememberScope),
    /// For any arguments.
    Chosen(RememberChoice),
}

/// Scope of a remembered answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RememberScope {
    /// For this call only.
    Call,
    /// For later calls of the turn.
    Turn,
    /// For later turns of the conversation as well.
    Conversation,
    /// In every conversation.
    Always,
}

/// Scope and arguments of a remembered answer.
#[derive(Clone, Debug, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RememberChoice {
    /// Scope.
    pub scope: RememberScope,
    /// Arguments. Absent for `these`.
    #[serde(default)]
    pub arguments: Option<RememberArguments>,
    /// Older name of `arguments`: `exact`, `any`, or `{"arguments": {…}}` with conditions.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub constraints: Option<ArgumentConstraints>,
}

/// Arguments for which an answer is remembered.
#[derive(Clone, Debug, PartialEq, Deserialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum RememberArguments {
    /// By keyword.
    Named(ArgumentsKeyword),
    /// Conditions by name or JSON pointer; other arguments may have any value.
    #[schema(value_type = Object)]
    Tests(BTreeMap<String, ArgumentTest>),
}

/// Keyword for the arguments of a remembered answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ArgumentsKeyword {
    /// Exactly the arguments in question.
    These,
    /// Any arguments.
    Any,
}

impl RememberFor {
    /// # Errors
    /// 400: both names of the arguments are given.
    fn into_remember(self) -> Result<RememberRequest, ApiError> {
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
            (Some(RememberArguments::Named(ArgumentsKeyword::These)), None) => ArgumentConstraints::Exact,
            (Some(RememberArguments::Named(ArgumentsKeyword::Any)), None) => ArgumentConstraints::Any,
            (Some(RememberArguments::Tests(tests)), None) if tests.is_empty() => {
                let message = "test is missing: use `\"any\"` to remember the answer for all arguments";
                return Err(ApiError::bad_request("invalid_value", message).param("remember.arguments"));
            }
            (Some(RememberArguments::Tests(tests)), None) => ArgumentConstraints::Arguments(tests),
        };
        let scope = match scope {
            RememberScope::Call => ApprovalScope::Call,
            RememberScope::Turn => ApprovalScope::Turn,
            RememberScope::Conversation => ApprovalScope::Conversation,
            RememberScope::Always => ApprovalScope::Always,
        };
        Ok(RememberRequest { scope, constraints })
    }
}

/// Receipt for an answered approval.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ApprovalAck {
    /// `resolved`: the answer is in the log. `queued`: the question has not been asked yet; this will be its answer.
    pub status: &'static str,
}

/// Answer a question, or `all` that are open.
///
/// `all` takes `decision`, `reason` and `stop`, and is 400 with anything that is about one call: `arguments`,
/// `arguments_hash`, `remember`.
///
/// The first answer counts; repeating it succeeds. If a cancellation and an answer race, one of them wins, and every
/// client gets the same outcome.
#[utoipa::path(post, path = "/v1/turns/{turn_id}/approvals/{approval_id}", tag = "approvals", request_body = ResolveApproval,
    params(("turn_id" = String, Path, description = "Id of the turn"), ("approval_id" = String, Path, description = "Id of the question, or `all`")),
    responses(
        (status = 200, description = "Answered", body = ApprovalAck),
        (status = 202, description = "Queued: the approval has not been requested yet", body = ApprovalAck),
        (status = 400, description = "The answer contradicts itself, or `all` has a field that applies to one \
         call only", body = ErrorResponse),
        (status = 404, description = "Turn or question not found", body = ErrorResponse),
        (status = 409, description = "Already answered differently", body = ErrorResponse),
        (status = 410, description = "The question expired, or its call was cancelled", body = ErrorResponse),
        (status = 422, description = "The values are invalid; the question is still open", body = ErrorResponse),
        (status = 503, description = "Another server runs the turn and took no notice: `owner` names it", body = ErrorResponse),
    ))]
async fn resolve(
    State(state): State<AppState>,
    principal: Principal,
    Path((turn, question)): Path<(String, String)>,
    Json(body): Json<ResolveApproval>,
) -> Result<Response, ApiError> {
    let turn = TurnId::new(turn);
    if question == "all" {
        body.check_answers_all()?;
    }
    let turn_state = state.turn_manager.lookup(&principal.user, &turn).await?;
    if question == "all" {
        let control = turn_state.into_control(&turn)?.ok_or_else(turn_ended)?;
        return Ok(answer_all(&*state.log, &control, &turn, body).await?.into_response());
    }
    let question = ApprovalId::new(question);
    let outcome = resolve_approval(&*state.log, turn_state, &turn, &question, body, &principal.user).await?;
    approval_ack(outcome, &question).map(IntoResponse::into_response)
}

/// Answers one question of a turn, whether it runs or is over.
pub(crate) async fn resolve_approval(
    log: &dyn Log,
    turn_state: TurnLookup,
    turn: &TurnId,
    question: &ApprovalId,
    answer: ResolveApproval,
    by: &str,
) -> Result<ApprovalOutcome, ApiError> {
    let answer = answer.into_answer()?;
    let Some(control) = turn_state.into_control(turn)? else {
        return outcome_in_log(log, turn, question, &answer).await;
    };
    match control.decide_as(question.clone(), answer.clone(), by).await {
        ApprovalOutcome::TurnEnded => {}
        outcome => return Ok(outcome),
    }
    let outcome = outcome_in_log(log, turn, question, &answer).await?;
    if matches!(outcome, ApprovalOutcome::Expired | ApprovalOutcome::Unknown) {
        turn_log::check_end(log, turn).await?;
    }
    Ok(outcome)
}

impl ResolveApproval {
    /// # Errors
    /// 400: a field is set that applies to one call only, while the answer is for all calls.
    fn check_answers_all(&self) -> Result<(), ApiError> {
        let of_one = [
            ("arguments", self.arguments.is_some()),
            ("arguments_hash", self.arguments_hash.is_some()),
            ("remember", self.remember.is_some()),
        ];
        let Some((field, _)) = of_one.into_iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
        let message = format!("`{field}` is about one call and cannot answer `all`; nothing was answered");
        Err(ApiError::bad_request("contradiction", message)
            .param(field)
            .remedy("answer each question by its id, or leave the field out"))
    }

    /// The answer in the form that the library takes.
    ///
    /// # Errors
    /// 400: the memory settings contradict each other, or an approval is to stop the turn.
    pub(crate) fn into_answer(self) -> Result<ApprovalResponse, ApiError> {
        if self.stop && self.decision == ApprovalDecision::Approve {
            let message = "`stop` denies the call and ends the turn; it cannot be combined with an approval";
            return Err(ApiError::bad_request("contradiction", message)
                .param("stop")
                .remedy("deny with `stop`, or approve without it"));
        }
        let mut answer = ApprovalResponse::from_decision(self.decision, self.reason);
        answer.arguments = self.arguments;
        answer.arguments_hash = self.arguments_hash;
        answer.remember = self.remember.map(RememberFor::into_remember).transpose()?;
        answer.stop = self.stop;
        Ok(answer)
    }
}

/// Response to an answered approval.
pub(crate) fn approval_ack(
    outcome: ApprovalOutcome,
    question: &ApprovalId,
) -> Result<(StatusCode, axum::Json<ApprovalAck>), ApiError> {
    let question = question.as_str();
    match outcome {
        ApprovalOutcome::Resolved | ApprovalOutcome::AlreadyResolved => {
            Ok((StatusCode::OK, axum::Json(ApprovalAck { status: "resolved" })))
        }
        ApprovalOutcome::Queued => Ok((StatusCode::ACCEPTED, axum::Json(ApprovalAck { status: "queued" }))),
        ApprovalOutcome::Conflict => {
            let message = format!("question `{question}` was answered differently before");
            Err(ApiError::conflict("answered_differently", message))
        }
        ApprovalOutcome::Expired => {
            let message = format!("question `{question}` is closed: it timed out, or its call was cancelled");
            Err(ApiError::gone("question_closed", message))
        }
        ApprovalOutcome::Invalid { message } => Err(ApiError::unprocessable("does_not_fit", message)
            .param("arguments")
            .remedy("the question is still open")),
        ApprovalOutcome::Unknown => Err(ApiError::not_found("question", question)),
        ApprovalOutcome::TurnEnded => Err(turn_ended()),
    }
}

fn turn_ended() -> ApiError {
    ApiError::gone("turn_is_over", "the turn has ended; its questions can no longer be answered")
}

async fn answer_all(
    log: &dyn Log,
    control: &TurnControl,
    turn: &TurnId,
    body: ResolveApproval,
) -> Result<(StatusCode, axum::Json<ApprovalAck>), ApiError> {
    // The events report which questions were open; a turn that has just ended is no error.
    if control.answer_all_with(body.into_answer()?).await == CommandAck::TurnEnded {
        turn_log::check_end(log, turn).await?;
    }
    Ok((StatusCode::ACCEPTED, axum::Json(ApprovalAck { status: "queued" })))
}

/// Outcome of an approval of a turn that has ended.
pub(crate) async fn outcome_in_log(
    log: &dyn Log,
    turn: &TurnId,
    question: &ApprovalId,
    answer: &ApprovalResponse,
) -> Result<ApprovalOutcome, ApiError> {
    let (mut after, mut outcome) = (0, ApprovalOutcome::Unknown);
    let mut answer = answer.clone();
    loop {
        let records = log.read(turn.as_str(), after, RECORDS_PER_READ).await?;
        let Some(last) = records.last() else { return Ok(outcome) };
        after = last.seq;
        let questions = records.iter().filter(|record| record.kind.starts_with("approval_"));
        for event in questions.filter_map(|record| serde_json::from_slice::<Event>(&record.payload).ok()) {
            match event.kind {
                // Only the question of a running tool has a schema.
                EventKind::ApprovalRequest { approval_id, schema, .. } if approval_id == *question => {
                    answer = answer.completed(schema.as_ref());
                    outcome = ApprovalOutcome::Expired
                }
                EventKind::ApprovalResolved {
                    approval_id, decision, by, arguments, content, stop, ..
                } if approval_id == *question => {
                    let resolution = throughline_engine::QuestionResolution {
                        decision,
                        by,
                        content: arguments.or(content),
                        stop,
                    };
                    outcome = ApprovalOutcome::from_resolution(&answer, &resolution);
                }
                _ => {}
            }
        }
    }
}
