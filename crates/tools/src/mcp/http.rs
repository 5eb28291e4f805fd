//! A server at a URL: one client with our rules about redirects, secrets and sizes.

use super::lenient::{MessageOrigin, MessageReader};
use super::post::{OutgoingPost, PostAnswer};
use super::session::{CallFailure, error_chain};
use super::settings::McpServer;
use super::stdio::MESSAGE_BYTES_MAX;
use crate::builtin::http::{is_broken_gateway, was_not_sent};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, StatusCode, redirect};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
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
/// Attempts to resume a broken stream, the first after a second.
const STREAM_ATTEMPTS_MAX: usize = 8;
/// Longest pause between them.
const STREAM_PAUSE_MAX: Duration = Duration::from_secs(15);

/// # Errors
/// A secret that is missing, or a header that cannot be sent.
pub(crate) fn build_transport(
    url: &str,
    settings: &McpServer,
    value_of: impl Fn(&str) -> Result<String, String>,
    reader: MessageReader,
) -> Result<StreamableHttpClientTransport<LenientClient>, String> {
    let mut headers = HashMap::new();
    for (name, text) in &settings.headers {
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("`{name}` is no header"))?;
        let mut value = HeaderValue::from_str(&value_of(text)?)
            .map_err(|_| format!("the value of the header `{name}` has characters that cannot be sent"))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    // reqwest panics without a provider. An installed one stays.
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
    Ok(StreamableHttpClientTransport::with_client(LenientClient { client, reader }, config))
}

/// Headers with secrets go to the origin that they were written for and to no other.
fn same_origin_only(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let is_same = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    if !is_same {
        let origin = attempt.url().origin().ascii_serialization();
        return attempt.error(format!("it redirects to another origin, {origin}"));
    }
    // These make a GET of a POST, which loses the message: the answer to something else would pass for that to a call.
    if matches!(attempt.status().as_u16(), 301..=303) {
        return attempt.stop();
    }
    if attempt.previous().len() > REDIRECTS_MAX {
        return attempt.error("too many redirects");
    }
    attempt.follow()
}

/// Classifies a failed POST: not sent, answered by a status, or lost.
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
        // A status of the server is its answer. After a 404 the SDK begins a new session and sends the
        // message again: the first one was not acted on.
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

/// HTTP client: sends and receives like the SDK's, but reads the server's answers before the SDK does.
#[derive(Clone)]
pub(crate) struct LenientClient {
    client: Client,
    reader: MessageReader,
}

pub(super) type SseEvents = BoxStream<'static, Result<Sse, SseError>>;
pub(super) type StreamError = StreamableHttpError<reqwest::Error>;
pub(super) type ExtraHeaders = HashMap<HeaderName, HeaderValue>;

/// Number of a request, and its kind as far as it matters to HTTP. `None` = nothing is waited for.
fn request_of(message: &ClientJsonRpcMessage) -> Option<(i64, bool)> {
    match message {
        JsonRpcMessage::Request(request) => match request.id {
            RequestId::Number(id) => Some((id, matches!(request.request, ClientRequest::DiscoverRequest(_)))),
            RequestId::String(_) => None,
        },
        _ => None,
    }
}

impl LenientClient {
    fn read_events(&self, events: SseEvents, origin: MessageOrigin) -> SseEvents {
        let reader = self.reader.clone();
        let read = move |event: Result<Sse, SseError>| {
            let mut event = match event {
                Ok(event) => event,
                Err(error) => return vec![Err(error)],
            };
            // Other events (`ping`, `endpoint`) hold no messages.
            let is_message = matches!(event.event.as_deref(), None | Some("" | "message"));
            let data = event.data.take().filter(|_| is_message);
            let messages = data.map_or_else(Vec::new, |data| reader.read(data.as_bytes(), &origin));
            let mut texts = messages.iter().filter_map(|message| serde_json::to_string(message).ok());
            // An event without data still advances the position from which a broken stream is resumed.
            event.data = texts.next();
            let more = texts.map(|text| Ok(Sse::default().data(text)));
            std::iter::once(Ok(event)).chain(more).collect()
        };
        events.flat_map(move |event| stream::iter(read(event))).boxed()
    }

    /// An unreadable answer is the failure of its call and of no other.
    fn unreadable_answer(
        &self,
        error: StreamError,
        id: i64,
    ) -> Result<StreamableHttpPostResponse, StreamError> {
        let problem = match &error {
            StreamError::UnexpectedContentType(Some(kind)) => {
                format!("its answer is `{kind}`, and neither JSON nor events")
            }
            StreamError::UnexpectedContentType(None) => "its answer is neither JSON nor events".to_owned(),
            StreamError::ResponseBodyTooLarge { max_size } => {
                format!("the reply exceeds the limit of {max_size} bytes")
            }
            _ => return Err(error),
        };
        let reply = self
            .reader
            .fail_answer(id, problem)
            .map_err(|problem| StreamError::UnexpectedServerResponse(problem.into()))?;
        Ok(StreamableHttpPostResponse::Json(reply, None))
    }

    fn json_answer(
        &self,
        reply: Result<ServerJsonRpcMessage, String>,
        session: Option<String>,
    ) -> Result<StreamableHttpPostResponse, StreamError> {
        match reply {
            Ok(reply) => Ok(StreamableHttpPostResponse::Json(reply, session)),
            Err(problem) => Err(StreamError::UnexpectedServerResponse(problem.into())),
        }
    }

    async fn post(
        &self,
        post: OutgoingPost<'_>,
        is_probe: bool,
    ) -> Result<StreamableHttpPostResponse, StreamError> {
        let (id, has_session) = (post.id, post.session.is_some());
        let answer = match (post.send(&self.client).await, id) {
            (Ok(answer), _) => answer,
            (Err(error), Some(id)) => return self.unreadable_answer(error, id),
            (Err(error), None) => return Err(error),
        };
        match (answer, id) {
            (PostAnswer::Accepted, Some(id)) if !has_session => {
                let problem = "it accepted the request, and has no stream to answer it on".to_owned();
                self.json_answer(self.reader.fail_answer(id, problem), None)
            }
            (PostAnswer::Accepted, _) | (PostAnswer::Body(..), None) => {
                Ok(StreamableHttpPostResponse::Accepted)
            }
            (PostAnswer::Events(events, session), id) => {
                let origin = id.map_or(MessageOrigin::Stream, MessageOrigin::Response);
                Ok(StreamableHttpPostResponse::Sse(self.read_events(events, origin), session))
            }
            (PostAnswer::Body(body, session), Some(id)) => {
                self.json_answer(self.reader.read_answer(&body, id), session)
            }
            (PostAnswer::Refused { error, .. }, None) => Err(error),
            (PostAnswer::Refused { status, body, session, error }, Some(id)) => {
                let is_about_access = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
                let reply = if is_about_access { None } else { self.reader.read_refusal(&body, id) };
                match reply {
                    Some(reply) => Ok(StreamableHttpPostResponse::Json(reply, session)),
                    // A server that was written before the probe refuses it in any way.
                    None if is_probe && !has_session && status.is_client_error() && !is_about_access => {
                        let error = ErrorData::invalid_request(error.to_string(), None);
                        let reply = ServerJsonRpcMessage::error(error, Some(RequestId::Number(id)));
                        Ok(StreamableHttpPostResponse::Json(reply, None))
                    }
                    None => Err(error),
                }
            }
        }
    }
}

impl StreamableHttpClient for LenientClient {
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
        _: usize,
    ) -> Result<StreamableHttpPostResponse, StreamError> {
        self.reader.sent(&message);
        let (id, is_probe) = request_of(&message).unzip();
        let post = OutgoingPost { uri: &uri, message: &message, id, session, auth, headers };
        let answer = self.post(post, is_probe == Some(true)).await;
        if let (Err(_), Some(id)) = (&answer, id) {
            self.reader.forget(&RequestId::Number(id));
        }
        answer
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
        Ok(self.read_events(events, MessageOrigin::Stream))
    }
}
