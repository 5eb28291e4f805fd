//! Tools that a page or app runs itself, declared without a WebSocket.

use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Json, Path};
use crate::principal::Principal;
use crate::state::AppState;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use throughline::{CLIENT_GRACE_DEFAULT, ClientError, ClientToolSpec};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Longest id of a client, in bytes.
const CLIENT_ID_BYTES_MAX: usize = 128;

/// `/v1/clients/{client_id}/tools`.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(declare_tools))
}

/// Tools of a client.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeclareTools {
    /// Its tools: `{name, title?, description?, input_schema?, effect?, timeout_ms?}`. Names are `client.<name>`, or
    /// `live2d.<name>` for an avatar.
    #[schema(value_type = Vec<Object>)]
    pub tools: Vec<ClientToolSpec>,
}

/// They are declared.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ToolDeclaration {
    pub client_id: String,
    /// Number of tools that the client has declared.
    pub tools: usize,
    /// Lifetime in milliseconds: declare the tools again before it ends, or they are no longer offered.
    pub valid_ms: u64,
}

/// Declare the tools that a client runs.
///
/// They are offered in new turns of the same user. A `tool_start` event that names the client asks it to run a call; submit the
/// result with `POST /v1/turns/{turn_id}/calls/{tool_id}/result`.
#[utoipa::path(put, path = "/v1/clients/{client_id}/tools", tag = "clients", request_body = DeclareTools,
    params(("client_id" = String, Path, description = "Id that the client chooses")),
    responses(
        (status = 200, description = "Declared", body = ToolDeclaration),
        (status = 400, description = "Invalid declaration", body = ErrorResponse),
        (status = 409, description = "Invalid client id", body = ErrorResponse),
    ))]
async fn declare_tools(
    State(state): State<AppState>,
    principal: Principal,
    Path(client_id): Path<String>,
    Json(body): Json<DeclareTools>,
) -> Result<axum::Json<ToolDeclaration>, ApiError> {
    check_client_id(&client_id)?;
    let tools = body.tools.len();
    // This connection receives no calls: it is dropped immediately, so that the grace period begins.
    drop(
        state
            .app
            .connect_client(client_id.as_str(), Some(principal.user), body.tools)
            .map_err(declaration_error)?,
    );
    let valid_ms = u64::try_from(CLIENT_GRACE_DEFAULT.as_millis()).unwrap_or(u64::MAX);
    Ok(axum::Json(ToolDeclaration { client_id, tools, valid_ms }))
}

/// Checks that a client may use this id.
pub(crate) fn check_client_id(client_id: &str) -> Result<(), ApiError> {
    match client_id.len() {
        1..=CLIENT_ID_BYTES_MAX => Ok(()),
        _ => {
            let message = format!("a client's id has 1 to {CLIENT_ID_BYTES_MAX} bytes");
            Err(ApiError::bad_request("invalid_value", message).param("client_id"))
        }
    }
}

/// The error of a declaration that is not accepted.
pub(crate) fn declaration_error(error: ClientError) -> ApiError {
    let message = error.to_string();
    match error {
        ClientError::Reserved { .. } => ApiError::conflict("client_id_reserved", message).param("client_id"),
        ClientError::TooMany { .. } => ApiError::bad_request("too_many_tools", message).param("tools"),
        _ => ApiError::bad_request("invalid_tool", message).param("tools"),
    }
}
