//! A server at a URL: one client with our rules about redirects, secrets and sizes.

use super::listing::TaskOnly;
use super::settings::McpServer;
use super::stdio::MESSAGE_BYTES_MAX;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, redirect};
use rmcp::model::ClientJsonRpcMessage;
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
pub(crate) fn transport(
    url: &str,
    settings: &McpServer,
    value_of: impl Fn(&str) -> Result<String, String>,
    task_only: TaskOnly,
) -> Result<StreamableHttpClientTransport<Watched>, String> {
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
        .redirect(redirect::Policy::custom(within_the_origin))
        .referer(false)
        .no_gzip()
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("throughline/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| super::session::causes(&error))?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.to_owned())
        .custom_headers(headers)
        .max_sse_event_size(MESSAGE_BYTES_MAX);
    let mut patience = ExponentialBackoff::default();
    patience.max_times = Some(STREAM_ATTEMPTS_MAX);
    patience.max_delay = Some(STREAM_PAUSE_MAX);
    config.retry_config = Arc::new(patience);
    Ok(StreamableHttpClientTransport::with_client(Watched { client, task_only }, config))
}

/// Headers with secrets go to the origin that they were written for and to no other.
// R: R4
fn within_the_origin(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let is_same = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    if !is_same {
        return attempt.error("it redirects to another origin");
    }
    if attempt.previous().len() > REDIRECTS_MAX {
        return attempt.error("it redirects too often");
    }
    attempt.follow()
}

/// The client, with a look at what the SDK leaves out.
#[derive(Clone)]
pub(crate) struct Watched {
    client: Client,
    task_only: TaskOnly,
}

type Events = BoxStream<'static, Result<Sse, SseError>>;
type Failed = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

impl Watched {
    fn watch(&self, events: Events) -> Events {
        let task_only = self.task_only.clone();
        events
            .inspect(move |event| {
                if let Ok(Sse { data: Some(data), .. }) = event {
                    task_only.look_at(data.as_bytes());
                }
            })
            .boxed()
    }
}

impl StreamableHttpClient for Watched {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let size = MESSAGE_BYTES_MAX;
        self.post_message_with_max_sse_event_size(uri, message, session, auth, headers, size).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
        size: usize,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let response = self
            .client
            .post_message_with_max_sse_event_size(uri, message, session, auth, headers, size)
            .await?;
        Ok(match response {
            StreamableHttpPostResponse::Sse(events, session) => {
                StreamableHttpPostResponse::Sse(self.watch(events), session)
            }
            other => other,
        })
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<(), Failed> {
        self.client.delete_session(uri, session, auth, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failed> {
        let size = MESSAGE_BYTES_MAX;
        self.get_stream_with_max_sse_event_size(uri, session, last_event, auth, headers, size).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: Headers,
        size: usize,
    ) -> Result<Events, Failed> {
        let events = self
            .client
            .get_stream_with_max_sse_event_size(uri, session, last_event, auth, headers, size)
            .await?;
        Ok(self.watch(events))
    }
}
