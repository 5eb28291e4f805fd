//! Retry of an ended call: a turn that begins with the same call, so that the model learns its result and continues.

use super::turns::TurnStarted;
use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Json, Path};
use crate::principal::Principal;
use crate::state::AppState;
use crate::turn_log::message_of;
use crate::turn_manager::{ConversationRef, ParentRef, TurnSpec};
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use throughline::config::ToolMode;
use throughline::{FirstCall, TurnRequest};
use throughline_engine::fold::{AssistantMessage, MessageBlock, ToolCallBlock};
use throughline_store::TurnParent;
use throughline_wire::CallId;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// `/v1/turns/{turn_id}/calls/{tool_id}/retry`.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(retry_call))
}

/// Request to retry a call.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RetryCall {
    /// Arguments of the call. Absent for those with which it ran.
    #[serde(default)]
    pub arguments: Option<serde_json::Map<String, Value>>,
    /// Text of the user's message. Absent for a sentence that names the tool.
    #[serde(default)]
    pub text: Option<String>,
}

/// Retry a call of an ended turn.
///
/// A new turn follows the one of the call. It begins with the same call, which is subject to the rules and questions of any
/// other; then the model is asked with its result.
#[utoipa::path(post, path = "/v1/turns/{turn_id}/calls/{tool_id}/retry", tag = "turns", request_body = RetryCall,
    params(("turn_id" = String, Path, description = "Id of the turn"), ("tool_id" = String, Path, description = "Id of the call")),
    responses(
        (status = 201, description = "A turn has started with the call", body = TurnStarted),
        (status = 400, description = "Invalid request", body = ErrorResponse),
        (status = 404, description = "Turn or call not found", body = ErrorResponse),
        (status = 409, description = "A turn of the conversation is running, or the turn belongs to no conversation",
            body = ErrorResponse),
        (status = 413, description = "The arguments or the text are too large", body = ErrorResponse),
        (status = 422, description = "The call has no arguments, or its tool is no longer offered", body = ErrorResponse),
        (status = 429, description = "Too many turns", body = ErrorResponse),
        (status = 503, description = "The server is stopping, or its store is unavailable", body = ErrorResponse),
    ))]
async fn retry_call(
    State(state): State<AppState>,
    principal: Principal,
    Path((turn, call)): Path<(String, String)>,
    Json(body): Json<RetryCall>,
) -> Result<(StatusCode, axum::Json<TurnStarted>), ApiError> {
    let row = state.catalog.turn(&principal.user, &turn).await?;
    let row = row.ok_or_else(|| ApiError::not_found("turn", &turn))?;
    let Some(conversation_id) = row.conversation_id.clone() else {
        let error =
            ApiError::conflict("no_conversation", "the turn belongs to no conversation that could continue");
        return Err(error.remedy("run the tool outside of the turn: POST /v1/tools/{tool}/call"));
    };
    let message = message_of(&*state.log, &row).await?;
    let block = find_call(&message, &call).ok_or_else(|| ApiError::not_found("call", &call))?;
    let arguments = body.arguments.map(Value::Object).or_else(|| block.ran_with.clone());
    let Some(arguments) = arguments.or_else(|| block.arguments.clone()) else {
        let error = ApiError::unprocessable("no_arguments", "the call has no arguments that could run again");
        return Err(error.param("arguments").remedy("send the arguments"));
    };
    let tool = block.tool_name.as_ref().map(|name| name.as_str().to_owned()).unwrap_or_default();
    let text = body.text.unwrap_or_else(|| format!("Run `{tool}` again."));
    let text = vec![super::turns::InputPart::Text { text }];
    let (input, files) = super::turns::input_parts(&state, &principal.user, text).await?;
    let request = TurnRequest {
        input: input.into(),
        agent: Some(row.agent.clone()),
        mode: row.mode.as_deref().and_then(ToolMode::from_name),
        first_call: Some(FirstCall::new(tool, arguments)),
        ..TurnRequest::default()
    };
    let parent = ParentRef::Turn(TurnParent::after_turn(row.id));
    let conversation = ConversationRef::Existing { conversation_id, parent };
    let spec = TurnSpec { request, conversation, files, ..TurnSpec::default() };
    let started = state.turn_manager.start_turn(&principal, spec).await?;
    Ok((StatusCode::CREATED, axum::Json(TurnStarted::from(started))))
}

fn find_call<'a>(message: &'a AssistantMessage, id: &str) -> Option<&'a ToolCallBlock> {
    let id = CallId::new(id);
    message.blocks.iter().find_map(|block| match block {
        MessageBlock::ToolCall(call) if call.tool_id.as_ref() == Some(&id) => Some(&**call),
        _ => None,
    })
}
