//! The route at which asynchronous plugins deliver their results. The token in the address is the credential:
//! only programs that this server has started receive it.

use crate::error::ApiError;
use crate::state::AppState;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::routing::post;
use axum::{Json, Router};
use http::StatusCode;
use serde_json::{Value, json};
use throughline_tools::vcp_plugin::RESULT_BYTES_MAX;
use throughline_tools::{CallbackError, SourceCallback};

/// `/plugin-callback/{token}/{plugin}/{task}`. It is for plugins and not described with the API.
pub(crate) fn routes() -> Router<AppState> {
    Router::new().route("/plugin-callback/{token}/{plugin}/{task}", post(take_result))
}

async fn take_result(
    State(state): State<AppState>,
    Path((token, plugin, task)): Path<(String, String, String)>,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let hooks = state.app.toolbox().hooks();
    let body = to_bytes(body, RESULT_BYTES_MAX).await.map_err(|_| too_large(RESULT_BYTES_MAX))?.to_vec();
    let callback = SourceCallback { token, plugin, task, body };
    for hook in hooks {
        match hook.accept_callback(&callback).await {
            Some(Ok(())) => return Ok(Json(json!({"status": "success"}))),
            Some(Err(error)) => return Err(refusal(&callback, error)),
            None => {}
        }
    }
    Err(ApiError::not_found("task", &callback.task))
}

fn refusal(callback: &SourceCallback, error: CallbackError) -> ApiError {
    match error {
        CallbackError::TooLarge { bytes_max } => too_large(bytes_max),
        CallbackError::NotJson => ApiError::bad_request("invalid_value", "the result is not a JSON object")
            .remedy("Send an object with `status` and `message`."),
        CallbackError::NotStored { why } => ApiError::internal(why),
        _ => ApiError::not_found("task", &callback.task),
    }
}

fn too_large(bytes_max: usize) -> ApiError {
    let message = format!("a result may have {bytes_max} bytes");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
        .remedy("Send large content as a link.")
}
