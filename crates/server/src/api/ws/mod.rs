//! Several turns over one WebSocket: the same events, with `turn_id` and `seq` in each.

mod close_reason;
mod ops;
mod session;

use crate::error::ApiError;
use crate::net::ConnectionInfo;
use crate::principal::Principal;
use crate::request_guard::RequestGuard;
use crate::state::AppState;
use axum::Extension;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::Response;
use http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Subprotocol.
pub(crate) const PROTOCOL: &str = "throughline.v1";
/// Read chunk of a socket in bytes. The library's own default would take 128 KiB of every socket.
const READ_BUFFER_BYTES: usize = 4 << 10;

/// `/v1/ws`.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(connect))
}

/// Open a WebSocket for several turns: subprotocol `throughline.v1`, operations and responses as JSON texts.
#[utoipa::path(get, path = "/v1/ws", tag = "events", responses(
    (status = 101, description = "Switched to a WebSocket"),
    (status = 400, description = "Not a WebSocket request, or another subprotocol", body = crate::error::ErrorResponse),
    (status = 426, description = "Not a WebSocket request", body = crate::error::ErrorResponse),
))]
async fn connect(
    State(state): State<AppState>,
    principal: Principal,
    connection: Option<Extension<ConnectionInfo>>,
    request_guard: Option<Extension<RequestGuard>>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|rejection| {
        ApiError::new(StatusCode::UPGRADE_REQUIRED, "no_websocket", rejection.body_text())
            .remedy("connect with a WebSocket client, or use GET /v1/turns/{turn_id}/events")
    })?;
    let other = upgrade.requested_protocols().next().is_some();
    let upgrade = upgrade
        .max_frame_size(state.limits.socket_frame_bytes_max as usize)
        .max_message_size(state.limits.socket_message_bytes_max as usize)
        .read_buffer_size(READ_BUFFER_BYTES)
        // Each event is flushed immediately, at any size: the next one waits until it has been written.
        .write_buffer_size(0)
        .protocols([PROTOCOL]);
    if other && upgrade.selected_protocol().is_none() {
        let message = format!("the offered subprotocols do not include `{PROTOCOL}`");
        return Err(ApiError::bad_request("unknown_subprotocol", message).param("Sec-WebSocket-Protocol"));
    }
    let canceller = super::events::canceller_of(connection);
    let caller = session::SocketCaller {
        state,
        principal,
        request_guard: request_guard.map(|Extension(request_guard)| request_guard),
    };
    Ok(upgrade.on_upgrade(move |socket| session::run(caller, socket, canceller)))
}
