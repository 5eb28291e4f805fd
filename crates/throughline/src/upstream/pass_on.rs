//! Requests that are handed on to an upstream as they are, and its answers back: what is no conversation, such as embeddings.

use super::client::{UpstreamClient, error_body};
use super::deadlines::{Deadlines, Waiting};
use super::failure::{self, Answer, Offered};
use crate::app::Throughline;
use crate::clock::Clock;
use crate::error::Error;
use futures_util::stream::{self, BoxStream, StreamExt};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde_json::Value;
use throughline_engine::{FailureKind, UpstreamChoice, UpstreamFailure};
use tokio::time::timeout_at;

/// What an upstream answers to a request that was handed on.
pub struct PassedOn {
    /// Its `Content-Type`.
    pub content_type: String,
    /// Its body as it comes. Dropping it closes the connection.
    pub body: BoxStream<'static, Result<Vec<u8>, UpstreamFailure>>,
}

impl Throughline {
    /// `upstream/model` taken apart, or a model's name where there is one upstream.
    ///
    /// # Errors
    /// There is no such upstream, or there are several.
    pub fn model_choice(&self, model: &str) -> Result<UpstreamChoice, Error> {
        self.plan().choice(model)
    }

    /// Hands a request on to the upstream of a model, in the upstream's own words: nothing is read, nothing tried again, and
    /// nothing logged. Its key and its time limits hold as in every call.
    ///
    /// # Errors
    /// It cannot be reached, or refuses; its key is not in what it says.
    pub async fn pass_on(
        &self,
        choice: &UpstreamChoice,
        path: &str,
        body: &Value,
    ) -> Result<PassedOn, UpstreamFailure> {
        match self.plan().upstreams.get(&choice.name) {
            Some(client) => client.pass_on(path, body).await,
            None => {
                let why = format!("upstream `{}` is not there", choice.name);
                Err(failure::plain(FailureKind::Unsendable, why))
            }
        }
    }
}

impl UpstreamClient {
    async fn pass_on(&self, path: &str, body: &Value) -> Result<PassedOn, UpstreamFailure> {
        let headers = self.headers("*/*", &[])?;
        let limits = Deadlines::start(self.upstream(), self.until());
        let sending = self.post(path, headers, body);
        let response = match timeout_at(limits.first_byte, sending).await {
            Err(_) => return Err(limits.expired(Waiting::FirstByte)),
            Ok(Err(error)) => return Err(failure::of_transport(&error, self.upstream().name())),
            Ok(Ok(response)) => response,
        };
        let status = response.status();
        let text = |headers: &HeaderMap, name: &str| {
            headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        if !status.is_success() {
            let headers = response.headers().clone();
            let body = self.redact(&error_body(response, &limits).await);
            let (retry_after, retry_after_ms) =
                (text(&headers, "retry-after"), text(&headers, "retry-after-ms"));
            let answer = Answer {
                status: status.as_u16(),
                retry_after: retry_after.as_deref(),
                retry_after_ms: retry_after_ms.as_deref(),
                body: &body,
                now: Clock::start().now(),
            };
            return Err(failure::of_answer(&answer, Offered::Nothing));
        }
        let content_type = text(response.headers(), CONTENT_TYPE.as_str());
        let host = self.upstream().name().to_owned();
        let body = stream::unfold(Some((response, limits, host)), |open| async {
            let (mut response, limits, host) = open?;
            let failure = match timeout_at(limits.next(Waiting::NextPiece), response.chunk()).await {
                Ok(Ok(None)) => return None,
                Ok(Ok(Some(piece))) => return Some((Ok(piece.to_vec()), Some((response, limits, host)))),
                Ok(Err(error)) => failure::of_transport(&error, &host),
                Err(_) => limits.expired(Waiting::NextPiece),
            };
            Some((Err(failure), None))
        });
        let content_type = content_type.unwrap_or_else(|| "application/json".to_owned());
        Ok(PassedOn { content_type, body: body.boxed() })
    }
}
