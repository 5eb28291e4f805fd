//! A server at a URL: one client with our rules about redirects, secrets and sizes.

use super::listing::TaskOnly;
use super::message_filter::{FilteredMessage, filter_message};
use super::session::{CallFailure, error_chain};
use super::settings::McpServer;
use super::stdio::MESSAGE_BYTES_MAX;
use crate::builtin::http::{is_broken_gateway, was_not_sent};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::header::{ACCEPT, HeaderName, HeaderValue};
use reqwest::{Client, redirect};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::Sse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Limit of connecting, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Redirects that are followed, all of them to the same origin.
const REDIRECTS_MAX: usize = 3;
/// Attempts to go on with a stream that broke, the first after a second.
const STREAM_ATTEMPTS_MAX: usize = 8;
/// Longest pause between them.
const STREAM_PAUSE_MAX: Duration = Duration::from_secs(15);

/// # Errors
/// A secret that is missing, or a header that cannot be sent.
pub(crate) fn build_transport(
    url: &str,
    settings: &McpServer,
    value_of: impl Fn(&str) -> Result<String, String>,
    task_only: TaskOnly,
) -> Result<StreamableHttpClientTransport<ObservedClient>, String> {
    let mut headers = HashMap::new();
    for (name, text) in &settings.headers {
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("`{name}` is no header"))?;
        let mut value = HeaderValue::from_str(&value_of(text)?)
            .map_err(|_| format!("the value of the header `{name}` has characters that cannot be sent"))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    // reqwest panics without a provider. Whoever has installed one, keeps it.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    let client = Client::builder()
        .redirect(redirect::Policy::custom(same_origin_only))
        .referer(false)
        .no_gzip()
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("throughline/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| error_chain(&error))?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.to_owned())
        .custom_headers(headers)
        .max_sse_event_size(MESSAGE_BYTES_MAX);
    let mut backoff = ExponentialBackoff::default();
    backoff.max_times = Some(STREAM_ATTEMPTS_MAX);
    backoff.max_delay = Some(STREAM_PAUSE_MAX);
    config.retry_config = Arc::new(backoff);
    Ok(StreamableHttpClientTransport::with_client(ObservedClient { client, task_only }, config))
}

/// Headers with secrets go to the origin that they were written for and to no other.
fn same_origin_only(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let is_same = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    if !is_same {
        return attempt.error("it redirects to another origin");
    }
    // These make a GET of a POST, which loses the message: the answer to something else would pass for that to a call.
    if matches!(attempt.status().as_u16(), 301..=303) {
        return attempt.stop();
    }
    if attempt.previous().len() > REDIRECTS_MAX {
        return attempt.error("it redirects too often");
    }
    attempt.follow()
}

/// The fate of the message of a failed POST: not sent, answered by a status, or lost.
pub(super) fn failure_of_post(error: &StreamError) -> CallFailure {
    match error {
        StreamableHttpError::Client(client) => match client.status() {
            _ if was_not_sent(client) => CallFailure::NotSent(error_chain(client)),
            Some(status) if !is_broken_gateway(status.as_u16()) => {
                CallFailure::HttpStatus(error_chain(client))
            }
            // Only 307 and 308 come as this, which ask for the message somewhere else.
            None if client.is_redirect() => CallFailure::HttpStatus(error_chain(client)),
            _ => CallFailure::Lost(error_chain(client)),
        },
        StreamableHttpError::HttpStatus(status) if is_broken_gateway(status.status) => {
            CallFailure::Lost(error_chain(error))
        }
        StreamableHttpError::UnexpectedServerResponse(answer) if !answer.starts_with("HTTP 4") => {
            CallFailure::Lost(error_chain(error))
        }
        // A status of the server's own is its answer. After a 404 the SDK begins a new session and sends the message once
        // more: nobody has acted on it.
        StreamableHttpError::HttpStatus(_)
        | StreamableHttpError::UnexpectedServerResponse(_)
        | StreamableHttpError::SessionExpired
        | StreamableHttpError::ReinitializationFailed(_)
        | StreamableHttpError::AuthRequired(_)
        | StreamableHttpError::InsufficientScope(_) => CallFailure::HttpStatus(error_chain(error)),
        StreamableHttpError::ReservedHeaderConflict(_) => CallFailure::NotSent(error_chain(error)),
        _ => CallFailure::Lost(error_chain(error)),
    }
}

/// The client, with a look at what the SDK leaves out.
#[derive(Clone)]
pub(crate) struct ObservedClient {
    client: Client,
    task_only: TaskOnly,
}

fn is_list_request(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Request(request) if matches!(request.request, ClientRequest::ListToolsRequest(_)))
}

fn has_string_id(message: &ServerJsonRpcMessage) -> bool {
    let id = match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    };
    matches!(id, Some(RequestId::String(_)))
}

type SseEvents = BoxStream<'static, Result<Sse, SseError>>;
type StreamError = StreamableHttpError<reqwest::Error>;
type ExtraHeaders = HashMap<HeaderName, HeaderValue>;

impl ObservedClient {
    fn filter_events(&self, events: SseEvents) -> SseEvents {
        let task_only = self.task_only.clone();
        events
            .map(move |event| {
                let mut event = event?;
                if let Some(data) = event.data.take() {
                    task_only.observe(data.as_bytes());
                    event.data = match filter_message(data.as_bytes()) {
                        FilteredMessage::Unchanged => Some(data),
                        FilteredMessage::Replaced(replaced) => String::from_utf8(replaced).ok(),
                        // An event without data still moves the place from which a broken stream goes on.
                        FilteredMessage::Dropped => None,
                    };
                }
                Ok(event)
            })
            .boxed()
    }

    /// Asks for a list once more and reads the answer here: the SDK hands on no body that it could not parse.
    async fn retry_list(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        headers: ExtraHeaders,
    ) -> Result<StreamableHttpPostResponse, StreamError> {
        let mut request = self.client.post(uri).header(ACCEPT, "application/json, text/event-stream");
        request = headers.into_iter().fold(request, |request, (name, value)| request.header(name, value));
        if let Some(session) = &session {
            request = request.header("Mcp-Session-Id", session.as_ref());
        }
        let response = request.json(message).send().await?.error_for_status()?;
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk?);
            if body.len() > MESSAGE_BYTES_MAX {
                return Err(StreamError::ResponseBodyTooLarge { max_size: MESSAGE_BYTES_MAX });
            }
        }
        self.task_only.observe(&body);
        if let FilteredMessage::Replaced(replaced) = filter_message(&body) {
            body = replaced;
        }
        Ok(StreamableHttpPostResponse::Json(serde_json::from_slice(&body)?, session.map(|id| id.to_string())))
    }
}

impl StreamableHttpClient for ObservedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: ExtraHeaders,
    ) -> Result<StreamableHttpPostResponse, StreamError> {
        let size = MESSAGE_BYTES_MAX;
        self.post_message_with_max_sse_event_size(uri, message, session, auth, headers, size).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: ExtraHeaders,
        size: usize,
    ) -> Result<StreamableHttpPostResponse, StreamError> {
        // A list changes nothing at the server and may be asked for twice.
        let list = is_list_request(&message)
            .then(|| (uri.clone(), message.clone(), session.clone(), headers.clone()));
        let response = self
            .client
            .post_message_with_max_sse_event_size(uri, message, session, auth, headers, size)
            .await;
        match (response, list) {
            (Ok(StreamableHttpPostResponse::Sse(events, session)), _) => {
                Ok(StreamableHttpPostResponse::Sse(self.filter_events(events), session))
            }
            (Ok(StreamableHttpPostResponse::Json(reply, _)), _) if has_string_id(&reply) => {
                Err(StreamError::UnexpectedServerResponse(
                    "the id of its reply is a text, and ours is a number".into(),
                ))
            }
            (Err(StreamError::UnexpectedServerResponse(_)), Some((uri, message, session, headers))) => {
                self.retry_list(&uri, &message, session, headers).await
            }
            (response, _) => response,
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        auth: Option<String>,
        headers: ExtraHeaders,
    ) -> Result<(), StreamError> {
        self.client.delete_session(uri, session, auth, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: ExtraHeaders,
    ) -> Result<SseEvents, StreamError> {
        let size = MESSAGE_BYTES_MAX;
        self.get_stream_with_max_sse_event_size(uri, session, last_event, auth, headers, size).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: ExtraHeaders,
        size: usize,
    ) -> Result<SseEvents, StreamError> {
        let events = self
            .client
            .get_stream_with_max_sse_event_size(uri, session, last_event, auth, headers, size)
            .await?;
        Ok(self.filter_events(events))
    }
}
