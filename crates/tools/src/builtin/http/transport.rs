//! One HTTP exchange with given addresses: no name is resolved, no redirect followed, no proxy used.

use super::guard::{HostResolver, SystemResolver};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryStreamExt;
use futures_util::stream::BoxStream;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Client, Method, Url, dns, redirect};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A request with the addresses that it may go to.
#[derive(Clone, Debug)]
pub struct PinnedRequest {
    /// Method of the request.
    pub method: Method,
    /// Address of the request.
    pub url: Url,
    /// The addresses of its host, checked; nothing else may be dialled. Never empty.
    pub addresses: Vec<SocketAddr>,
    /// Further headers.
    pub headers: HeaderMap,
    /// Body of the request; `None` = nothing.
    pub body: Option<Bytes>,
}

/// Response: the head, and the body as it comes.
pub struct HttpResponse {
    /// HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// The body; an error ends it.
    pub body: BoxStream<'static, Result<Bytes, String>>,
}

/// Failure before the head of a response. The two variants differ in whether the request can have had
/// effects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExchangeError {
    /// Nothing of the request was sent: there was no connection, or the request was invalid.
    NotSent(String),
    /// There was a connection, so the request may have arrived.
    Broken(String),
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent(why) | Self::Broken(why) => f.write_str(why),
        }
    }
}

/// True for the status of a gateway that lost the server after it had handed the request on, or cannot say: 502 and 504, and
/// Cloudflare's 520 (an answer that it could not read) and 524 (none in time). Any other status is an answer.
pub(crate) fn is_broken_gateway(status: u16) -> bool {
    matches!(status, 502 | 504 | 520 | 524)
}

/// Sends one request; replaced in tests.
#[async_trait]
pub trait HttpTransport: Send + Sync {
    /// Sends a request to one of its addresses and answers with the head of the reply. Must not follow redirects.
    ///
    /// # Errors
    /// The error, for the model, and whether anything can have been sent.
    async fn send(&self, request: PinnedRequest) -> Result<HttpResponse, ExchangeError>;
}

/// Transport over the network, by reqwest.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReqwestTransport;

/// Resolver and transport of a tool; by default those of the network.
#[derive(Clone)]
pub(crate) struct WebAccess {
    pub resolver: Arc<dyn HostResolver>,
    pub transport: Arc<dyn HttpTransport>,
}

impl Default for WebAccess {
    fn default() -> Self {
        Self { resolver: Arc::new(SystemResolver), transport: Arc::new(ReqwestTransport) }
    }
}

/// Limit of connecting, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

#[async_trait]
impl HttpTransport for ReqwestTransport {
    async fn send(&self, request: PinnedRequest) -> Result<HttpResponse, ExchangeError> {
        let client = build_client(request.addresses).map_err(ExchangeError::NotSent)?;
        let mut headers = request.headers;
        // A body of 10 MB must be 10 MB: without compression it cannot expand.
        headers.insert("accept-encoding", HeaderValue::from_static("identity"));
        let mut builder = client.request(request.method, request.url).headers(headers);
        if let Some(body) = request.body {
            builder = builder.body(body);
        }
        let response = builder.send().await.map_err(|error| exchange_error(&error))?;
        Ok(HttpResponse {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body: Box::pin(response.bytes_stream().map_err(|error| describe_error(&error))),
        })
    }
}

/// A client for one exchange: its resolver knows the checked addresses and nothing else.
fn build_client(addresses: Vec<SocketAddr>) -> Result<Client, String> {
    // reqwest panics without a provider. An installed one stays.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    Client::builder()
        // reqwest does not pass address literals to a resolver; those were checked in the URL.
        .dns_resolver(Arc::new(PinnedResolver(addresses)))
        .redirect(redirect::Policy::none())
        .no_proxy()
        .no_gzip()
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_max_idle_per_host(0)
        .user_agent(concat!("throughline/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| describe_error(&error))
}

#[derive(Debug)]
struct PinnedResolver(Vec<SocketAddr>);

impl dns::Resolve for PinnedResolver {
    fn resolve(&self, _name: dns::Name) -> dns::Resolving {
        let addresses: dns::Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

fn exchange_error(error: &reqwest::Error) -> ExchangeError {
    let why = describe_error(error);
    if was_not_sent(error) { ExchangeError::NotSent(why) } else { ExchangeError::Broken(why) }
}

/// True if no byte of the request can have left: no address, no connection, no TLS, or no request at all.
pub(crate) fn was_not_sent(error: &reqwest::Error) -> bool {
    error.is_connect() || error.is_builder()
}

/// An error with its causes, which is where reqwest puts what happened.
fn describe_error(error: &reqwest::Error) -> String {
    let mut text = if error.is_timeout() {
        "timed out".to_owned()
    } else if error.is_connect() {
        "cannot connect".to_owned()
    } else {
        "the exchange was interrupted".to_owned()
    };
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// Answers one connection with `reply` and returns the received request.
    async fn serve(reply: &'static str) -> (SocketAddr, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                asked.push(stream.read_u8().await.unwrap());
            }
            stream.write_all(reply.as_bytes()).await.unwrap();
            String::from_utf8(asked).unwrap()
        });
        (address, task)
    }

    fn request(url: &str, addresses: Vec<SocketAddr>) -> PinnedRequest {
        PinnedRequest {
            method: Method::GET,
            url: url.parse().unwrap(),
            addresses,
            headers: HeaderMap::new(),
            body: None,
        }
    }

    // The name does not exist: if it is reached, then by the address that was pinned.
    #[tokio::test]
    async fn only_the_pinned_address_is_dialled() {
        let (address, asked) = serve("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await;
        let url = format!("http://pinned.invalid:{}/path?q=1", address.port());
        let reply = ReqwestTransport.send(request(&url, vec![address])).await.unwrap();
        assert_eq!(reply.status, 200);
        let body: Vec<Bytes> = reply.body.try_collect().await.unwrap();
        assert_eq!(body.concat(), b"hello");
        let asked = asked.await.unwrap();
        assert!(asked.starts_with("GET /path?q=1 HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains("accept-encoding: identity\r\n"), "{asked}");
        assert!(asked.contains(&format!("host: pinned.invalid:{}\r\n", address.port())), "{asked}");
    }

    #[tokio::test]
    async fn redirects_are_returned_not_followed() {
        let (address, _) =
            serve("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1/\r\ncontent-length: 0\r\n\r\n").await;
        let url = format!("http://pinned.invalid:{}/", address.port());
        let reply = ReqwestTransport.send(request(&url, vec![address])).await.unwrap();
        assert_eq!(reply.status, 302);
        assert_eq!(reply.headers["location"], "http://127.0.0.1/");
    }

    #[tokio::test]
    async fn refused_connection_is_not_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let url = format!("http://pinned.invalid:{}/", address.port());
        let Err(error) = ReqwestTransport.send(request(&url, vec![address])).await else {
            panic!("connected")
        };
        let ExchangeError::NotSent(why) = error else { panic!("{error:?}") };
        assert!(why.starts_with("cannot connect") && why.contains("refused"), "{why}");
    }

    #[tokio::test]
    async fn connection_closed_after_the_request_is_broken() {
        let (address, asked) = serve("").await;
        let url = format!("http://pinned.invalid:{}/", address.port());
        let Err(error) = ReqwestTransport.send(request(&url, vec![address])).await else {
            panic!("answered")
        };
        assert!(matches!(error, ExchangeError::Broken(_)), "{error:?}");
        assert!(asked.await.unwrap().starts_with("GET / "));
    }

    // No byte of the request is sent in plain text, nor before the handshake is over.
    #[tokio::test]
    async fn failed_tls_handshake_is_not_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        });
        let url = format!("https://pinned.invalid:{}/", address.port());
        let Err(error) = ReqwestTransport.send(request(&url, vec![address])).await else {
            panic!("answered")
        };
        assert!(matches!(error, ExchangeError::NotSent(_)), "{error:?}");
    }
}
