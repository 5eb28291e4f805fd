//! A WebSocket that echoes its messages, for conformance suites. Only with the feature `test-routes`.

use crate::state::AppState;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::get;
use utoipa_axum::router::OpenApiRouter;

/// Length of Autobahn's largest message, in bytes.
const MESSAGE_BYTES_MAX: usize = 32 << 20;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().route("/_echo", get(echo))
}

async fn echo(upgrade: WebSocketUpgrade) -> Response {
    upgrade.max_frame_size(MESSAGE_BYTES_MAX).max_message_size(MESSAGE_BYTES_MAX).on_upgrade(echo_messages)
}

async fn echo_messages(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        // Pings and closing are answered below us.
        if matches!(message, Message::Text(_) | Message::Binary(_)) && socket.send(message).await.is_err() {
            return;
        }
    }
}
