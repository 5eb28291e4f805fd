//! One message over HTTP, and the server's answer to it.
//!
//! The rules about statuses are those of the SDK's client, which does not pass on a body that it cannot read.

use super::http::{ExtraHeaders, SseEvents, StreamError};
use super::lenient::{UNREADABLE_REPLY, content_looks_like_message};
use super::stdio::MESSAGE_BYTES_MAX;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, Stream};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{AuthRequiredError, HttpStatusError, InsufficientScopeError};
use serde_json::json;
use sse_stream::{Sse, SseStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Longest body of an answer that is a failure, in bytes.
const FAILURE_BYTES_MAX: usize = 64 * 1024;
/// Header with the number of a session.
const SESSION_ID: &str = "mcp-session-id";
/// Headers that the protocol sets.
const RESERVED_HEADERS: [&str; 3] = ["accept", SESSION_ID, "last-event-id"];

/// Answer to a message, and the session that it names.
pub(super) enum PostAnswer {
    Accepted,
    Body(Vec<u8>, Option<String>),
    Events(SseEvents, Option<String>),
    /// A status that refuses, with a body that may hold the error.
    Refused {
        status: StatusCode,
        body: Vec<u8>,
        session: Option<String>,
        error: StreamError,
    },
}

/// A message to a server.
pub(super) struct OutgoingPost<'a> {
    pub(super) uri: &'a str,
    pub(super) message: &'a ClientJsonRpcMessage,
    /// Number of the request, if it is one.
    pub(super) id: Option<i64>,
    pub(super) session: Option<Arc<str>>,
    pub(super) auth: Option<String>,
    pub(super) headers: ExtraHeaders,
}

impl OutgoingPost<'_> {
    /// Sends the message.
    pub(super) async fn send(self, client: &Client) -> Result<PostAnswer, StreamError> {
        let Self { uri, message, id, session, auth, headers } = self;
        let has_session = session.is_some();
        let mut request = client.post(uri).header(ACCEPT, "text/event-stream, application/json");
        if let Some(auth) = auth {
            request = request.bearer_auth(auth);
        }
        request = with_headers(request, headers)?;
        if let Some(session) = &session {
            request = request.header(SESSION_ID, session.as_ref());
        }
        // Readers of the error know the URL, and a long one would leave no space for the cause.
        let response = request.json(message).send().await.map_err(reqwest::Error::without_url)?;
        let status = response.status();
        if let Some(error) = refused_access(&response) {
            return Err(error);
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(PostAnswer::Accepted);
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamError::SessionExpired);
        }
        let session = text_of(response.headers(), SESSION_ID);
        let kind = text_of(response.headers(), CONTENT_TYPE.as_str());
        let is_json = kind.as_deref().is_some_and(|kind| kind.starts_with("application/json"));
        if !status.is_success() {
            return refusal(response, is_json, session).await;
        }
        let Some(id) = id else {
            // Nothing is waited for; some servers answer all the same.
            return Ok(PostAnswer::Accepted);
        };
        if kind.as_deref().is_some_and(|kind| kind.starts_with("text/event-stream")) {
            return Ok(PostAnswer::Events(events(response, id), session));
        }
        let body = read_body(response, MESSAGE_BYTES_MAX).await?;
        // A message is one under any type, and also without.
        if is_json || content_looks_like_message(&body) {
            return Ok(PostAnswer::Body(body, session));
        }
        Err(StreamError::UnexpectedContentType(kind))
    }
}

fn with_headers(request: RequestBuilder, headers: ExtraHeaders) -> Result<RequestBuilder, StreamError> {
    headers.into_iter().try_fold(request, |request, (name, value): (HeaderName, _)| {
        if RESERVED_HEADERS.contains(&name.as_str()) {
            return Err(StreamError::ReservedHeaderConflict(name.to_string()));
        }
        Ok(request.header(name, value))
    })
}

fn text_of(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// A status that asks for a key, with the scheme that it names.
fn refused_access(response: &Response) -> Option<StreamError> {
    let challenge = response.headers().get(WWW_AUTHENTICATE)?;
    let challenge = String::from_utf8_lossy(challenge.as_bytes()).into_owned();
    match response.status() {
        StatusCode::UNAUTHORIZED => Some(StreamError::AuthRequired(AuthRequiredError::new(challenge))),
        StatusCode::FORBIDDEN => {
            Some(StreamError::InsufficientScope(InsufficientScopeError::new(challenge, None)))
        }
        _ => None,
    }
}

async fn refusal(
    response: Response,
    is_json: bool,
    session: Option<String>,
) -> Result<PostAnswer, StreamError> {
    let status = response.status();
    let retry_after = text_of(response.headers(), RETRY_AFTER.as_str());
    let has_status_error = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let status_error = || StreamError::HttpStatus(HttpStatusError::new(status.as_u16(), retry_after.clone()));
    if has_status_error && (!is_json || status == StatusCode::TOO_MANY_REQUESTS) {
        return Err(status_error());
    }
    let body = match read_body(response, FAILURE_BYTES_MAX).await {
        Ok(body) => body,
        Err(_) if has_status_error => return Err(status_error()),
        Err(error @ StreamError::ResponseBodyTooLarge { .. }) => return Err(error),
        Err(_) => b"<failed to read response body>".to_vec(),
    };
    let error = if has_status_error {
        status_error()
    } else {
        let text = String::from_utf8_lossy(&body);
        StreamError::UnexpectedServerResponse(format!("HTTP {status}: {text}").into())
    };
    let body = if is_json { body } else { Vec::new() };
    Ok(PostAnswer::Refused { status, body, session, error })
}

async fn read_body(response: Response, size_max: usize) -> Result<Vec<u8>, StreamError> {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        body.extend_from_slice(&chunk.map_err(reqwest::Error::without_url)?);
        if body.len() > size_max {
            return Err(StreamError::ResponseBodyTooLarge { max_size: size_max });
        }
    }
    Ok(body)
}

/// The events of an answer. One that is too long ends them with an error for the request.
fn events(response: Response, id: i64) -> SseEvents {
    let is_too_long = Arc::new(AtomicBool::new(false));
    let bounded = bounded(response.bytes_stream(), is_too_long.clone());
    let problem = format!("the reply exceeds the limit of {MESSAGE_BYTES_MAX} bytes");
    let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": UNREADABLE_REPLY, "message": problem}});
    let end = stream::iter([Sse::default().data(error.to_string())])
        .filter(move |_| std::future::ready(is_too_long.load(Ordering::Relaxed)))
        .map(Ok);
    SseStream::from_bytes_stream(bounded).chain(end).boxed()
}

/// Ends at an event that is longer than is taken.
fn bounded<E>(
    chunks: impl Stream<Item = Result<Bytes, E>>,
    is_too_long: Arc<AtomicBool>,
) -> impl Stream<Item = Result<Bytes, E>> {
    chunks.scan(EventSize::default(), move |size, chunk| {
        let fits = chunk.as_ref().map_or(true, |chunk| size.add(chunk) <= MESSAGE_BYTES_MAX);
        if !fits {
            is_too_long.store(true, Ordering::Relaxed);
        }
        std::future::ready(fits.then_some(chunk))
    })
}

/// Bytes since the last empty line, which ends an event. Lines end with LF, CR or both.
#[derive(Default)]
struct EventSize {
    event: usize,
    line: usize,
    after_cr: bool,
}

impl EventSize {
    /// Adds a chunk, and returns the largest size on the way.
    fn add(&mut self, chunk: &[u8]) -> usize {
        let mut largest = 0;
        for byte in chunk {
            let ends_crlf = std::mem::take(&mut self.after_cr) && *byte == b'\n';
            match byte {
                _ if ends_crlf => {}
                b'\n' | b'\r' => {
                    self.event = if self.line == 0 { 0 } else { self.event + 1 };
                    self.line = 0;
                    self.after_cr = *byte == b'\r';
                }
                _ => {
                    self.event += 1;
                    self.line += 1;
                }
            }
            largest = largest.max(self.event);
        }
        largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_size_is_measured_between_blank_lines() {
        for (chunks, largest) in [
            (&["data: ab\n\n", "data: c\n\n"][..], 9),
            (&["data: ab\r\n\r\n", "data: c\r\n\r\n"], 9),
            (&["data: ab\r\r", "data: c\r\r"], 9),
            (&["data: ab\r", "\ndata: c\r", "\n\r", "\n"], 17),
            (&["data: ab\n", "data: c"], 16),
        ] {
            let mut size = EventSize::default();
            let found = chunks.iter().map(|chunk| size.add(chunk.as_bytes())).max();
            assert_eq!(found, Some(largest), "{chunks:?}");
        }
    }
}
