//! `POST /v1/completions` and `POST /v1/embeddings`: forwarded to the upstream that the model names, and its
//! answer back. No turn, tool or agent's prompt is involved.

use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Json, Path};
use crate::openai::models::{self, ModelSelector};
use crate::people;
use crate::principal::{KeyScope, Principal};
use crate::stamps::now_ms;
use crate::state::AppState;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use futures_util::{Stream, StreamExt};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, PoisonError};
use throughline::engine::{FailureKind, UpstreamChoice, UpstreamFailure};
use throughline_store::{TurnCharge, UsageCount};
use throughline_wire::Dialect;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// `/v1/completions` and `/v1/embeddings`.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(completions))
        .routes(routes!(completions_rendered))
        .routes(routes!(embeddings))
        .routes(routes!(embeddings_rendered))
}

/// Create a text completion at the model's upstream. Streamed if the upstream streams.
#[utoipa::path(post, path = "/v1/completions", operation_id = "create", tag = "completions",
    request_body(content = Object,
    description = "OpenAI's format; `model` is `upstream/model`, or an agent, whose model is used."),
    responses(
        (status = 200, description = "The upstream's response", body = Object),
        (status = 400, description = "The upstream refuses the request or does not support it", body = ErrorResponse),
        (status = 404, description = "Model not found", body = ErrorResponse),
        (status = 429, description = "The upstream limits the rate", body = ErrorResponse),
        (status = 502, description = "The upstream cannot be reached", body = ErrorResponse),
    ))]
async fn completions(
    State(state): State<AppState>,
    principal: Principal,
    Json(body): Json<Map<String, Value>>,
) -> Result<Response, ApiError> {
    forward(&state, &principal, "/completions", body).await.map_err(models::to_openai_error)
}

/// Create embeddings at the model's upstream.
#[utoipa::path(post, path = "/v1/embeddings", operation_id = "create", tag = "embeddings",
    request_body(content = Object,
    description = "OpenAI's format; `model` is `upstream/model`."),
    responses(
        (status = 200, description = "The upstream's response", body = Object),
        (status = 400, description = "The upstream refuses the request or does not support it", body = ErrorResponse),
        (status = 404, description = "Model not found", body = ErrorResponse),
        (status = 429, description = "The upstream limits the rate", body = ErrorResponse),
        (status = 502, description = "The upstream cannot be reached", body = ErrorResponse),
    ))]
async fn embeddings(
    State(state): State<AppState>,
    principal: Principal,
    Json(body): Json<Map<String, Value>>,
) -> Result<Response, ApiError> {
    forward(&state, &principal, "/embeddings", body).await.map_err(models::to_openai_error)
}

/// Create a text completion at the base URL `/render/{render}/v1`: as at `/v1/completions`, since it has no tools to show.
#[utoipa::path(post, path = "/render/{render}/v1/completions", operation_id = "create_rendered", tag = "completions",
    request_body(content = Object, description = "As at `/v1/completions`."),
    params(("render" = String, Path, description = "`none`, `text`, `details`, `reasoning`, `owui_event` or `vcp`")),
    responses(
        (status = 200, description = "The upstream's response", body = Object),
        (status = 400, description = "The upstream refuses the request or does not support it", body = ErrorResponse),
        (status = 404, description = "Unknown rendering or model", body = ErrorResponse),
        (status = 429, description = "The upstream limits the rate", body = ErrorResponse),
        (status = 502, description = "The upstream cannot be reached", body = ErrorResponse),
    ))]
async fn completions_rendered(
    State(state): State<AppState>,
    principal: Principal,
    Path(render): Path<String>,
    Json(body): Json<Map<String, Value>>,
) -> Result<Response, ApiError> {
    models::parse_rendering(&render)?;
    forward(&state, &principal, "/completions", body).await.map_err(models::to_openai_error)
}

/// Create embeddings at the base URL `/render/{render}/v1`: as at `/v1/embeddings`.
#[utoipa::path(post, path = "/render/{render}/v1/embeddings", operation_id = "create_rendered", tag = "embeddings",
    request_body(content = Object, description = "As at `/v1/embeddings`."),
    params(("render" = String, Path, description = "`none`, `text`, `details`, `reasoning`, `owui_event` or `vcp`")),
    responses(
        (status = 200, description = "The upstream's response", body = Object),
        (status = 400, description = "The upstream refuses the request or does not support it", body = ErrorResponse),
        (status = 404, description = "Unknown rendering or model", body = ErrorResponse),
        (status = 429, description = "The upstream limits the rate", body = ErrorResponse),
        (status = 502, description = "The upstream cannot be reached", body = ErrorResponse),
    ))]
async fn embeddings_rendered(
    State(state): State<AppState>,
    principal: Principal,
    Path(render): Path<String>,
    Json(body): Json<Map<String, Value>>,
) -> Result<Response, ApiError> {
    models::parse_rendering(&render)?;
    forward(&state, &principal, "/embeddings", body).await.map_err(models::to_openai_error)
}

async fn forward(
    state: &AppState,
    principal: &Principal,
    path: &str,
    mut body: Map<String, Value>,
) -> Result<Response, ApiError> {
    principal.require(KeyScope::Chat)?;
    let Some(name) = body.get("model").and_then(Value::as_str) else {
        return Err(ApiError::bad_request("missing_field", "`model` is missing")
            .param("model")
            .remedy("GET /v1/models lists the models"));
    };
    let agents = models::visible_agents(state, principal).await?;
    let selector = models::parse_selector(&agents, name);
    let choice = upstream_choice(state, &agents, &selector)?;
    let upstreams = state.app.upstreams();
    let dialect =
        upstreams.iter().find(|upstream| upstream.name() == choice.name).map(|found| found.wire_format());
    if !matches!(dialect, Some(Dialect::OpenaiChat | Dialect::OpenaiResponses)) {
        let message =
            format!("`/v1{path}` is not there for `{name}`: its upstream does not speak OpenAI's API");
        return Err(ApiError::bad_request("unsupported", message)
            .param("model")
            .remedy("name a model of an upstream that does"));
    }
    // An agent of the configuration that the key may use is an alias of its first model.
    let is_agent =
        selector.agent.as_deref().filter(|name| state.app.agents().iter().any(|a| a.name == **name));
    principal.require_models(is_agent, &[format!("{}/{}", choice.name, choice.model)])?;
    let (charge, now) = (principal.charge(), now_ms());
    let request = UsageCount { turns: 1, tokens: 0 };
    if let Some(exceeded) = state.catalog.charge(&principal.user, charge.clone(), request, now).await? {
        return Err(people::usage_exceeded(exceeded, now));
    }
    body.insert("model".to_owned(), choice.model.as_str().into());
    let forwarded =
        state.app.pass_through(&choice, path, &Value::Object(body)).await.map_err(upstream_error)?;
    let meter = UsageMeter::default();
    let counted = meter.clone().count_at_end(state.clone(), principal.user.clone(), charge);
    let pieces = forwarded.body.map(move |piece| {
        let piece = piece.map_err(|failure| std::io::Error::other(failure.message))?;
        meter.read(&piece);
        Ok(Bytes::from(piece))
    });
    let mut response = Response::new(Body::from_stream(pieces.chain(counted)));
    if let Ok(kind) = HeaderValue::try_from(forwarded.content_type) {
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform"));
    Ok(response)
}

/// Reads how many tokens an answer has cost, streamed or whole, without holding it back.
#[derive(Clone, Default)]
struct UsageMeter(Arc<Mutex<Vec<u8>>>);

/// Length of the end of an answer that is searched for its usage, in bytes: the usage is the last member.
const USAGE_TAIL_BYTES: usize = 4_096;
const TOTAL_TOKENS: &str = "\"total_tokens\":";

impl UsageMeter {
    fn read(&self, piece: &[u8]) {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(&piece[piece.len().saturating_sub(USAGE_TAIL_BYTES)..]);
        let excess = tail.len().saturating_sub(USAGE_TAIL_BYTES);
        tail.drain(..excess);
    }

    /// The last number of tokens that the answer names.
    fn tokens(&self) -> u64 {
        let tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&tail);
        let Some((_, number)) = text.rsplit_once(TOTAL_TOKENS) else { return 0 };
        let number = number.trim_start();
        let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        number[..digits].parse::<u32>().map_or(0, u64::from)
    }

    /// An empty stream that counts the tokens when everything before it has been sent.
    fn count_at_end(
        self,
        state: AppState,
        user: String,
        charge: TurnCharge,
    ) -> impl Stream<Item = std::io::Result<Bytes>> + Send {
        let count = async move {
            let tokens = UsageCount { turns: 0, tokens: self.tokens() };
            // The request was allowed; its cost is counted regardless of the limits.
            let charge = TurnCharge { key_id: charge.key_id, ..TurnCharge::default() };
            if let Err(error) = state.catalog.charge(&user, charge, tokens, now_ms()).await {
                tracing::warn!(%error, "the tokens of a request that was passed on are not counted");
            }
            None
        };
        futures_util::stream::once(count).filter_map(std::future::ready)
    }
}

fn upstream_choice(
    state: &AppState,
    agents: &[throughline::Agent],
    selector: &ModelSelector,
) -> Result<UpstreamChoice, ApiError> {
    if let Some(model) = &selector.model {
        return Ok(state.app.model_choice(model)?);
    }
    let agent = models::agent_of(agents, selector);
    agent.and_then(|agent| agent.models.first()).cloned().ok_or_else(|| {
        ApiError::bad_request("unknown_model", "the agent has no model")
            .param("model")
            .remedy("GET /v1/models lists the models")
    })
}

/// Passes the class of the upstream's error through, except for a rejected key: the key is this server's.
pub(super) fn upstream_error(failure: UpstreamFailure) -> ApiError {
    let UpstreamFailure { kind, status, message, retry_after_ms } = failure;
    let status = status.and_then(|status| StatusCode::from_u16(status).ok());
    let passed_status = status.and_then(|status| match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => None,
        // As in a chat: 408 would blame a slow request, and clients do not handle 425.
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY => Some(StatusCode::SERVICE_UNAVAILABLE),
        StatusCode::SERVICE_UNAVAILABLE => Some(status),
        status => status.is_client_error().then_some(status),
    });
    let or = |status| passed_status.unwrap_or(status);
    let (status, code) = match kind {
        FailureKind::RateLimited => (or(StatusCode::TOO_MANY_REQUESTS), "rate_limit_exceeded"),
        FailureKind::QuotaExhausted => (StatusCode::TOO_MANY_REQUESTS, "insufficient_quota"),
        FailureKind::ModelNotFound => (StatusCode::NOT_FOUND, "model_not_found"),
        FailureKind::ContextTooLong => (or(StatusCode::BAD_REQUEST), "context_length_exceeded"),
        FailureKind::ContentFiltered => (or(StatusCode::BAD_REQUEST), "content_filter"),
        FailureKind::Overloaded => (or(StatusCode::SERVICE_UNAVAILABLE), "upstream_error"),
        _ => (or(StatusCode::BAD_GATEWAY), "upstream_error"),
    };
    let mut error = ApiError::new(status, code, message);
    error.retry_after_s = retry_after_ms.map(|ms| ms.div_ceil(1_000));
    error
}
