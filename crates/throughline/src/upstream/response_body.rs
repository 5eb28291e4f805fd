//! Bodies of answers that are no reply of a model, or that have to be looked at before they are one.

use super::deadlines::{CallDeadlines, WaitPhase};
use super::error_body;
use super::failure;
use reqwest::header::{self, HeaderName};
use std::time::Duration;
use throughline_engine::{FailureKind, UpstreamFailure};
use throughline_tools::{BodyExtent, BodyText, SecretSet};
use tokio::time::{Instant, timeout_at};

/// Most bytes of an error body that are read.
const ERROR_BODY_BYTES_MAX: usize = 64 << 10;

/// A body that can be a reply, or the failure that it reports.
pub(super) async fn check_response(
    response: reqwest::Response,
    secrets: &SecretSet,
) -> Result<reqwest::Response, UpstreamFailure> {
    let status = Some(response.status().as_u16());
    let text = |name: HeaderName| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().trim().to_ascii_lowercase()
    };
    let coding = text(header::CONTENT_ENCODING);
    if !coding.is_empty() && coding != "identity" {
        let message = format!("the reply is compressed ({coding}) although `identity` was requested");
        return Err(UpstreamFailure { status, ..failure::without_status(FailureKind::Status, message) });
    }
    if text(header::CONTENT_TYPE).starts_with("text/html") {
        let page = body_start(response, 512).await;
        let message = format!(
            "received a web page instead of a reply: {}",
            error_body::strip_markup(&secrets.redact(&page))
        );
        return Err(UpstreamFailure { status, ..failure::without_status(FailureKind::Status, message) });
    }
    Ok(response)
}

/// The first bytes of a body, within a second: the page's title is a courtesy, not worth a wait.
async fn body_start(mut response: reqwest::Response, bytes_max: usize) -> String {
    let deadline = Instant::now() + Duration::from_secs(1);
    let mut bytes = Vec::new();
    while bytes.len() < bytes_max {
        match timeout_at(deadline, response.chunk()).await {
            Ok(Ok(Some(piece))) => bytes.extend_from_slice(&piece),
            Ok(Ok(None) | Err(_)) | Err(_) => break,
        }
    }
    bytes.truncate(bytes_max);
    decoded_start(&response, &bytes)
}

/// The beginning of a body, decoded. Gateways send error texts in various encodings.
fn decoded_start(response: &reqwest::Response, bytes: &[u8]) -> String {
    let content_type = response.headers().get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
    BodyText::decode(content_type, bytes, BodyExtent::Cut, ERROR_BODY_BYTES_MAX).text
}

pub(super) async fn error_body(mut response: reqwest::Response, limits: &CallDeadlines) -> String {
    let mut bytes = Vec::new();
    // If the body breaks off or stalls, the part so far is used: the status is known.
    while let Ok(Ok(Some(piece))) = timeout_at(limits.next(WaitPhase::NextChunk), response.chunk()).await {
        bytes.extend_from_slice(&piece[..piece.len().min(ERROR_BODY_BYTES_MAX - bytes.len())]);
        if bytes.len() == ERROR_BODY_BYTES_MAX {
            break;
        }
    }
    decoded_start(&response, &bytes)
}
