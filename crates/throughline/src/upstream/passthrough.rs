//! Requests that are passed through to an upstream unchanged, such as embeddings.

use super::client::UpstreamClient;
use super::deadlines::{CallDeadlines, WaitPhase};
use super::failure::{self, ToolsInRequest, UpstreamErrorResponse};
use super::response_body::error_body;
use crate::clock::TurnClock;
use futures_util::stream::{self, BoxStream, StreamExt};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::Value;
use throughline_engine::UpstreamFailure;
use tokio::time::timeout_at;

/// An upstream's answer to a request that was passed through.
pub struct PassthroughResponse {
    /// `Content-Type` of the response.
    pub content_type: String,
    /// Body of the response as it arrives. Dropping it closes the connection.
    pub body: BoxStream<'static, Result<Vec<u8>, UpstreamFailure>>,
}

impl UpstreamClient {
    pub(crate) async fn pass_through(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<PassthroughResponse, UpstreamFailure> {
        self.pass_bytes_through(path, "application/json", body.to_string().into_bytes()).await
    }

    /// Passes a request with a body that is not JSON.
    pub(crate) async fn pass_bytes_through(
        &self,
        path: &str,
        content_type: &str,
        body: Vec<u8>,
    ) -> Result<PassthroughResponse, UpstreamFailure> {
        let mut headers = self.headers("*/*", &[])?;
        let content_type = HeaderValue::try_from(content_type);
        headers.insert(CONTENT_TYPE, content_type.map_err(|error| failure::unsendable(error.to_string()))?);
        let limits = CallDeadlines::new(self.upstream(), self.deadline());
        let response = self.post_bytes(path, headers, body, &limits).await?;
        let status = response.status();
        let text = |headers: &HeaderMap, name: &str| {
            headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        if !status.is_success() {
            let headers = response.headers().clone();
            let body = self.redact(&error_body(response, &limits).await);
            let (retry_after, retry_after_ms) =
                (text(&headers, "retry-after"), text(&headers, "retry-after-ms"));
            let answer = UpstreamErrorResponse {
                status: status.as_u16(),
                retry_after: retry_after.as_deref(),
                retry_after_ms: retry_after_ms.as_deref(),
                body: &body,
                now: TurnClock::start().now(),
            };
            return Err(failure::from_response(&answer, ToolsInRequest::Absent));
        }
        let content_type = text(response.headers(), CONTENT_TYPE.as_str());
        let host = self.upstream().name().to_owned();
        let body = stream::unfold(Some((response, limits, host)), |open| async {
            let (mut response, limits, host) = open?;
            let failure = match timeout_at(limits.next(WaitPhase::NextChunk), response.chunk()).await {
                Ok(Ok(None)) => return None,
                Ok(Ok(Some(piece))) => return Some((Ok(piece.to_vec()), Some((response, limits, host)))),
                Ok(Err(error)) => failure::from_transport(&error, &host),
                Err(_) => limits.expired(WaitPhase::NextChunk),
            };
            Some((Err(failure), None))
        });
        let content_type = content_type.unwrap_or_else(|| "application/json".to_owned());
        Ok(PassthroughResponse { content_type, body: body.boxed() })
    }
}
