//! HTTP to the provider: no redirects, within a time and a size.

use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};
use std::pin::Pin;
use std::time::Duration;

/// Most bytes of one answer of a provider.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Client of the provider alone. It is made when it is used first, as the cryptography of a program is chosen by then.
pub(super) struct ProviderHttp {
    timeout: Duration,
    client: std::sync::OnceLock<Result<reqwest::Client, String>>,
}

/// Reason of a failed request to the provider.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProviderHttpError {
    #[error("cannot create an HTTP client: {0}")]
    Client(String),
    #[error(transparent)]
    Request(#[from] reqwest::Error),
    #[error("the response is larger than {ANSWER_BYTES_MAX} bytes")]
    TooLarge,
    #[error(transparent)]
    Http(#[from] http::Error),
}

impl ProviderHttp {
    pub(super) fn new(timeout: Duration) -> Self {
        Self { timeout, client: std::sync::OnceLock::new() }
    }

    fn client(&self) -> Result<reqwest::Client, ProviderHttpError> {
        let made = self.client.get_or_init(|| {
            if rustls::crypto::CryptoProvider::get_default().is_none() {
                let _ = rustls::crypto::ring::default_provider().install_default();
            }
            // A redirect could lead to any address of this network.
            let builder = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
            builder.timeout(self.timeout).build().map_err(|error| error.to_string())
        });
        made.clone().map_err(ProviderHttpError::Client)
    }

    async fn fetch(&self, request: HttpRequest) -> Result<HttpResponse, ProviderHttpError> {
        let mut answer = self.client()?.execute(request.try_into()?).await?;
        let mut response = http::Response::builder().status(answer.status());
        for (name, value) in answer.headers() {
            response = response.header(name, value);
        }
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await? {
            if body.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(ProviderHttpError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(response.body(body)?)
    }
}

impl<'c> AsyncHttpClient<'c> for ProviderHttp {
    type Error = ProviderHttpError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, Self::Error>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.fetch(request))
    }
}
