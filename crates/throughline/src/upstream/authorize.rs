//! The last hand on a request before it is sent: tokens that expire, signatures over the body.

use super::{KeyState, Secret, Upstream};
use futures_util::future::BoxFuture;
use reqwest::header::{HeaderName, HeaderValue};
use std::fmt;
use std::sync::Arc;

/// A request as it is about to be sent to an upstream: for [`Upstream::authorize`].
pub struct OutgoingRequest {
    pub(super) inner: reqwest::Request,
    /// Values that were set, which must not appear anywhere else.
    pub(super) secrets: Vec<String>,
}

impl fmt::Debug for OutgoingRequest {
    /// Shows neither headers nor body: they may contain a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (method, host) = (self.method(), self.inner.url().host_str());
        f.debug_struct("OutgoingRequest")
            .field("method", &method)
            .field("host", &host)
            .finish_non_exhaustive()
    }
}

impl OutgoingRequest {
    /// `POST` or `GET`.
    pub fn method(&self) -> &str {
        self.inner.method().as_str()
    }

    /// The whole address, with its query.
    pub fn url(&self) -> &url::Url {
        self.inner.url()
    }

    /// Sends it to another address, such as another region.
    pub fn set_url(&mut self, url: url::Url) {
        *self.inner.url_mut() = url;
    }

    /// The bytes of the body; empty for a `GET`.
    pub fn body(&self) -> &[u8] {
        self.inner.body().and_then(reqwest::Body::as_bytes).unwrap_or_default()
    }

    /// Replaces the body, for platforms that wrap the provider's.
    pub fn set_body(&mut self, body: Vec<u8>) {
        *self.inner.body_mut() = Some(body.into());
    }

    /// The value of a header, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.inner.headers().get(name)?.to_str().ok()
    }

    /// The headers, by name in lower case.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let headers = self.inner.headers().iter();
        headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
    }

    /// Sets a header, replacing one of the same name. Its value is redacted from errors and recordings.
    ///
    /// # Errors
    /// An invalid name or value of an HTTP header.
    pub fn set_header(&mut self, name: &str, value: impl Into<Secret>) -> Result<(), AuthorizeError> {
        let value = value.into();
        let bad = |why: &str| AuthorizeError::new(format!("invalid header `{name}`: {why}"));
        let header = HeaderName::try_from(name).map_err(|_| bad("it is not a valid header name"))?;
        // The error leaves the value out: it is a key.
        let mut sent = HeaderValue::try_from(value.reveal())
            .map_err(|_| bad("its value contains characters that are not allowed in a header"))?;
        sent.set_sensitive(true);
        self.inner.headers_mut().insert(header, sent);
        // `Bearer …`: what follows is the secret.
        let token = value.reveal().rsplit(' ').next().unwrap_or_default();
        self.secrets.push(token.to_owned());
        Ok(())
    }

    /// Takes a header away.
    pub fn remove_header(&mut self, name: &str) {
        self.inner.headers_mut().remove(name);
    }
}

/// Reason why a request cannot be authorized, for people: it becomes the failure of the model call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizeError(String);

impl AuthorizeError {
    /// An error with this reason.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for AuthorizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: std::error::Error> From<E> for AuthorizeError {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

type AuthorizeFn =
    dyn Fn(OutgoingRequest) -> BoxFuture<'static, Result<OutgoingRequest, AuthorizeError>> + Send + Sync;

/// The hook of an upstream.
#[derive(Clone)]
pub(crate) struct RequestAuthorizer(Arc<AuthorizeFn>);

impl fmt::Debug for RequestAuthorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestAuthorizer")
    }
}

impl RequestAuthorizer {
    pub(super) async fn authorize(
        &self,
        request: OutgoingRequest,
    ) -> Result<OutgoingRequest, AuthorizeError> {
        (self.0)(request).await
    }
}

impl Upstream {
    /// Lets the program authorize each request right before it is sent, retries included: with a token that
    /// is refreshed (Vertex), or with a signature over address, headers and body (SigV4). The upstream then
    /// needs no key. The time of the hook counts towards the first-byte timeout.
    ///
    /// ```
    /// use throughline::{Upstream, wire::Dialect};
    /// # async fn fresh_token() -> Result<String, std::io::Error> { Ok("token".to_owned()) }
    ///
    /// let vertex = Upstream::new("vertex", Dialect::Gemini, "https://example.com/v1/publishers/google")?
    ///     .authorize(|mut request| async move {
    ///         request.set_header("authorization", format!("Bearer {}", fresh_token().await?))?;
    ///         Ok(request)
    ///     });
    /// # let _ = vertex;
    /// # Ok::<(), throughline::UpstreamConfigError>(())
    /// ```
    #[must_use]
    pub fn authorize<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(OutgoingRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<OutgoingRequest, AuthorizeError>> + Send + 'static,
    {
        if let KeyState::Missing(_) = self.key {
            self.key = KeyState::NotNeeded;
        }
        self.authorizer = Some(RequestAuthorizer(Arc::new(move |request| Box::pin(hook(request)))));
        self
    }
}
