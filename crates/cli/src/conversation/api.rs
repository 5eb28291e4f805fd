//! The server's API, in this process or over HTTP: the same requests, the same JSON.

use crate::chinese::{remedy_text, server_text};
use crate::exit::{CliExit, CliFailure};
use crate::messages;
use crate::serve::running_server::RunningServer;
use reqwest::Method;
use serde_json::Value;
use std::sync::Arc;
use throughline_server::{InProcessApi, InProcessResponse};

const JSON: &str = "application/json";
const OCTETS: &str = "application/octet-stream";
/// Largest response that is read whole, in bytes. Event streams are read in parts.
const RESPONSE_BYTES_MAX: usize = 64 << 20;

/// Access to conversations.
#[derive(Clone)]
pub(crate) enum ConversationApi {
    /// The store, opened by this process.
    InProcess(InProcessApi),
    /// The server that has the store open.
    Server(Arc<RunningServer>),
}

/// Response, of which the body is still to be read.
pub(crate) struct ApiReply {
    status: u16,
    body: ReplyBody,
}

enum ReplyBody {
    InProcess(InProcessResponse),
    Http(reqwest::Response),
}

/// A request that was refused, or did not arrive.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ApiFailure {
    /// HTTP status; 0 if there was no response.
    pub(crate) status: u16,
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) remedy: String,
    /// The turn that is in the way, if one is.
    pub(crate) turn_id: Option<String>,
}

impl ApiFailure {
    fn disconnected(why: impl ToString) -> Self {
        Self { message: why.to_string(), ..Self::default() }
    }

    fn of_body(status: u16, body: &Value) -> Self {
        let text = |name: &str| body["error"][name].as_str().unwrap_or_default().to_owned();
        let turn_id = body["error"]["turn_id"].as_str().map(str::to_owned);
        Self { status, code: text("code"), message: text("message"), remedy: text("remedy"), turn_id }
    }

    /// True if the connection broke, or the server did not answer.
    pub(crate) fn is_disconnected(&self) -> bool {
        self.status == 0
    }
}

impl From<ApiFailure> for CliFailure {
    fn from(failure: ApiFailure) -> Self {
        if failure.is_disconnected() {
            return messages::server_unreachable(&failure.message);
        }
        let what = server_text(&failure.message, &failure.code);
        let remedy = remedy_text(&failure.remedy, &failure.code);
        CliFailure { exit: CliExit::Usage, what, why: String::new(), remedy }
    }
}

impl ConversationApi {
    async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Vec<u8>,
    ) -> Result<ApiReply, ApiFailure> {
        match self {
            Self::InProcess(api) => {
                let response =
                    api.call(method, path, content_type, body).await.map_err(ApiFailure::disconnected)?;
                Ok(ApiReply { status: response.status.as_u16(), body: ReplyBody::InProcess(response) })
            }
            Self::Server(server) => {
                let request = server.request(method, path).header("content-type", content_type).body(body);
                let response = request.send().await.map_err(ApiFailure::disconnected)?;
                Ok(ApiReply { status: response.status().as_u16(), body: ReplyBody::Http(response) })
            }
        }
    }

    async fn json(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Vec<u8>,
    ) -> Result<Value, ApiFailure> {
        let text = self.send(method, path, content_type, body).await?.text().await?;
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    /// # Errors
    /// The request is refused, or the server does not answer.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, ApiFailure> {
        self.json(Method::GET, path, JSON, Vec::new()).await
    }

    /// # Errors
    /// As [`get`](Self::get).
    pub(crate) async fn get_text(&self, path: &str) -> Result<String, ApiFailure> {
        self.send(Method::GET, path, JSON, Vec::new()).await?.text().await
    }

    /// # Errors
    /// As [`get`](Self::get).
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, ApiFailure> {
        self.json(Method::POST, path, JSON, body.to_string().into_bytes()).await
    }

    /// # Errors
    /// As [`get`](Self::get).
    pub(crate) async fn delete(&self, path: &str) -> Result<Value, ApiFailure> {
        self.json(Method::DELETE, path, JSON, Vec::new()).await
    }

    /// Uploads a file and returns its id.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(crate) async fn upload(&self, name: &str, bytes: Vec<u8>) -> Result<String, ApiFailure> {
        let path = format!("/v1/files?name={}", query_value(name));
        let file = self.json(Method::POST, &path, OCTETS, bytes).await?;
        Ok(file["id"].as_str().unwrap_or_default().to_owned())
    }

    /// Follows a turn from after this event. `None`: it has ended, and there are no further events.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(crate) async fn events(&self, turn: &str, after: u64) -> Result<Option<ApiReply>, ApiFailure> {
        let path = format!("/v1/turns/{}/events?after={after}", query_value(turn));
        let reply = self.send(Method::GET, &path, JSON, Vec::new()).await?;
        match reply.status {
            204 => Ok(None),
            200 => Ok(Some(reply)),
            _ => Err(reply.failure().await),
        }
    }
}

impl ApiReply {
    /// The next part of the body; `None` at its end.
    ///
    /// # Errors
    /// The connection broke.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Vec<u8>>, ApiFailure> {
        match &mut self.body {
            ReplyBody::InProcess(response) => response.chunk().await.map_err(ApiFailure::disconnected),
            ReplyBody::Http(response) => match response.chunk().await {
                Ok(chunk) => Ok(chunk.map(|bytes| bytes.to_vec())),
                Err(error) => Err(ApiFailure::disconnected(error)),
            },
        }
    }

    async fn failure(self) -> ApiFailure {
        let status = self.status;
        match self.read_to_end().await {
            Ok(text) => ApiFailure::of_body(status, &serde_json::from_str(&text).unwrap_or_default()),
            Err(failure) => failure,
        }
    }

    async fn read_to_end(mut self) -> Result<String, ApiFailure> {
        let mut bytes = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if bytes.len() + chunk.len() > RESPONSE_BYTES_MAX {
                let message = messages::response_too_long(RESPONSE_BYTES_MAX >> 20);
                return Err(ApiFailure { status: 413, message, ..ApiFailure::default() });
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    async fn text(self) -> Result<String, ApiFailure> {
        if (200..300).contains(&self.status) { self.read_to_end().await } else { Err(self.failure().await) }
    }
}

/// Text as a part of an address: everything but letters, digits, `-`, `_` and `.` is escaped.
pub(crate) fn query_value(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_value_is_percent_encoded() {
        assert_eq!(query_value("a b&c=ü/..png"), "a%20b%26c%3D%C3%BC%2F..png");
    }

    #[test]
    fn conversation_busy_error_includes_the_turn_id() {
        let body =
            serde_json::json!({"error": {"code": "conversation_busy", "message": "m", "turn_id": "t"}});
        let failure = ApiFailure::of_body(409, &body);
        assert_eq!((failure.code.as_str(), failure.turn_id.as_deref()), ("conversation_busy", Some("t")));
    }
}
