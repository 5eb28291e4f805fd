//! Close codes of a WebSocket.

use axum::extract::ws::CloseFrame;
use tokio_tungstenite::tungstenite::Error;

/// Reason for which a WebSocket is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// The server stops. The client reconnects with its cursors.
    Stopping,
    /// Invalid frames, or frames of an unsupported kind.
    Protocol,
    /// A binary message.
    NotText,
    /// A text that is no UTF-8.
    NotUtf8,
    /// A frame or message over its limit.
    TooLarge,
    /// The key is no longer valid.
    Unauthenticated,
    /// The client does not read what it is sent.
    TooSlow,
}

impl CloseReason {
    pub(super) fn frame(self) -> CloseFrame {
        let (code, reason) = match self {
            CloseReason::Stopping => (1001, "the server is stopping; connect again"),
            CloseReason::Protocol => (1002, "unsupported WebSocket frame"),
            CloseReason::NotText => (1003, "messages are JSON texts"),
            CloseReason::NotUtf8 => (1007, "a text is not UTF-8"),
            CloseReason::TooLarge => (1009, "frame or message too large"),
            CloseReason::Unauthenticated => (4401, "the key is no longer valid"),
            CloseReason::TooSlow => (4408, "too slow; reconnect and continue after the last seq"),
        };
        CloseFrame { code, reason: reason.into() }
    }

    /// Close reason of a read error; `None` if the connection is already closed.
    pub(super) fn of(error: axum::Error) -> Option<Self> {
        match error.into_inner().downcast::<Error>().map(|error| *error) {
            Ok(Error::Capacity(_)) => Some(CloseReason::TooLarge),
            Ok(Error::Utf8(_)) => Some(CloseReason::NotUtf8),
            Ok(Error::Protocol(_)) => Some(CloseReason::Protocol),
            Ok(_) | Err(_) => None,
        }
    }
}
