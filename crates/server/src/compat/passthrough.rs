//! `POST /v1/completions` and `POST /v1/embeddings`: handed on to the upstream that the model names, and its answer back. No
//! turn, no tool and no agent's prompt has a part in it. // R: E2

use crate::compat::models::{self, ModelSelector};
use crate::error::{ApiError, ErrorResponse};
use crate::extract::Json;
use crate::principal::{KeyScope, Principal};
use crate::state::AppState;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use futures_util::StreamExt;
use http::{HeaderValue, StatusCode, header};
use serde_json::{Map, Value};
use throughline::engine::{FailureKind, UpstreamChoice, UpstreamFailure};
use throughline_wire::Dialect;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// `/v1/completions` and `/v1/embeddings`.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(completions)).routes(routes!(embeddings))
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
    forward(&state, &principal, "/completions", body).await
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
    forward(&state, &principal, "/embeddings", body).await
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
            .remedy("GET /v1/models lists what there is"));
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
    body.insert("model".to_owned(), choice.model.as_str().into());
    let forwarded =
        state.app.pass_through(&choice, path, &Value::Object(body)).await.map_err(upstream_error)?;
    let mut response = Response::new(Body::from_stream(
        forwarded.body.map(|piece| piece.map_err(|failure| std::io::Error::other(failure.message))),
    ));
    if let Ok(kind) = HeaderValue::try_from(forwarded.content_type) {
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform"));
    Ok(response)
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
    agent.and_then(|agent| agent.models.first()).cloned().ok_or_else(|| ApiError::not_found("model", ""))
}

/// The class of what the upstream says stays what it is, but for its own key: that is this server's affair.
fn upstream_error(failure: UpstreamFailure) -> ApiError {
    let UpstreamFailure { kind, status, message, retry_after_ms } = failure;
    let status = status.and_then(|status| StatusCode::from_u16(status).ok());
    let passed_status = status.filter(|status| match *status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => false,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => true,
        status => status.is_client_error(),
    });
    let code = match kind {
        FailureKind::RateLimited => "rate_limit_exceeded",
        FailureKind::ContextTooLong => "context_length_exceeded",
        _ => "upstream_error",
    };
    let mut error = ApiError::new(passed_status.unwrap_or(StatusCode::BAD_GATEWAY), code, message);
    error.retry_after_s = retry_after_ms.map(|ms| ms.div_ceil(1_000));
    error
}
