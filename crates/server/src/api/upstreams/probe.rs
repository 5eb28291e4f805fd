//! Measuring an upstream: the measurement of `throughline probe`, followed as it goes. Nothing is written.
//!
//! The measurement runs inside the answer's body: when its client leaves, nothing is left of it.

use super::connect::probe_error;
use crate::api::events::sse_response;
use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Json, Path};
use crate::principal::{KeyScope, Principal};
use crate::running_probes::ProbeSlot;
use crate::state::AppState;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;
use throughline::{
    Agent, MEASURE_REQUESTS, MEASURE_REQUESTS_MAX, MEASURE_TOKENS_MAX, MeasureOptions, MeasureProgress,
    Upstream,
};
use throughline_wire::display_escape;
use tokio::sync::mpsc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Time limit for an upstream to list its models.
const LIST_TIMEOUT: Duration = Duration::from_secs(15);
/// Silence after which a keep-alive comment is sent during a measurement.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// Fewest and most tokens of each reply.
const TOKENS_RANGE: std::ops::RangeInclusive<u32> = 16..=32_768;
/// Longest name of a model, in bytes.
const MODEL_BYTES_MAX: usize = 256;
/// Maximum number of models named in the error that asks to choose one.
const NAMED_MODELS_MAX: usize = 8;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(probe))
}

/// Options of a measurement.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ProbeRequest {
    /// Model. Default: that of an agent of yours that uses the upstream, or the only one that it lists.
    #[serde(default)]
    #[schema(example = "deepseek-chat")]
    model: Option<String>,
    /// Most tokens of each reply, 16 to 32,768. Default 1,024.
    #[serde(default)]
    tokens_max: Option<u32>,
}

/// Measure what an upstream can do and where it departs from its API, by 8 small requests, 16 at most. They cost what such
/// requests cost there. One measurement of an upstream runs at a time, and ends when its client leaves. Nothing is changed.
#[utoipa::path(post, path = "/v1/upstreams/{upstream}/probe", tag = "upstreams",
    params(("upstream" = String, Path, description = "Name")), request_body = ProbeRequest, responses(
    (status = 200, description = "Events `progress` with `request`, `requests` and `purpose` before each request; then `result` with the measurement as `throughline probe --json` prints it, or `error`",
        content_type = "text/event-stream", body = String),
    (status = 400, description = "No model, or an invalid one", body = ErrorResponse),
    (status = 403, description = "The key lacks the scope `admin`", body = ErrorResponse),
    (status = 404, description = "No such upstream", body = ErrorResponse),
    (status = 409, description = "A measurement is running", body = ErrorResponse),
))]
async fn probe(
    State(state): State<AppState>,
    principal: Principal,
    Path(name): Path<String>,
    Json(body): Json<ProbeRequest>,
) -> Result<Response, ApiError> {
    principal.require(KeyScope::Admin)?;
    let upstream = state.app.upstreams().into_iter().find(|upstream| upstream.name() == name);
    let upstream = upstream.ok_or_else(|| ApiError::not_found("upstream", &name))?;
    let tokens_max = body.tokens_max.unwrap_or(MEASURE_TOKENS_MAX);
    if !TOKENS_RANGE.contains(&tokens_max) {
        let (least, most) = (TOKENS_RANGE.start(), TOKENS_RANGE.end());
        let message = format!("`tokens_max` is {tokens_max}, and may be {least} to {most}");
        return Err(ApiError::bad_request("invalid_value", message).param("tokens_max"));
    }
    let slot = state.probes.begin(&name).ok_or_else(|| {
        ApiError::conflict("probe_running", format!("`{name}` is being measured"))
            .remedy("wait for the running measurement, or close its connection to stop it")
    })?;
    crate::user_agents::load_user_agents(&state.app, &*state.catalog, &principal.user).await?;
    let agents = state.app.agents_for(&Some(principal.user));
    let model = choose_model(&upstream, body.model, &agents).await?;
    let options = MeasureOptions { tokens_max, ..MeasureOptions::default() };
    Ok(event_stream(ProbeStream::new(upstream, model, options, slot)))
}

/// The model that is named or in use, else the only one that the upstream lists.
async fn choose_model(
    upstream: &Upstream,
    named: Option<String>,
    agents: &[Agent],
) -> Result<String, ApiError> {
    if let Some(model) = named {
        let model = model.strip_prefix(&format!("{}/", upstream.name())).unwrap_or(&model);
        let is_name = !model.trim().is_empty() && model.len() <= MODEL_BYTES_MAX;
        return if is_name && display_escape::escape(model) == model {
            Ok(model.to_owned())
        } else {
            let message =
                format!("a model's name has 1 to {MODEL_BYTES_MAX} bytes, and none that cannot be seen");
            Err(ApiError::bad_request("invalid_value", message).param("model"))
        };
    }
    let mut used = agents.iter().flat_map(|agent| &agent.models);
    if let Some(choice) = used.find(|choice| choice.name == upstream.name()) {
        return Ok(choice.model.clone());
    }
    let models = upstream.models(LIST_TIMEOUT).await.map_err(|error| probe_error(upstream, &error))?;
    match models.as_slice() {
        [model] => Ok(model.clone()),
        models => {
            let names: Vec<_> =
                models.iter().take(NAMED_MODELS_MAX).map(|model| display_escape::escape(model)).collect();
            let message = format!("`{}` has {} models", upstream.name(), models.len());
            Err(ApiError::bad_request("model_needed", message)
                .param("model")
                .remedy(format!("name one of them: {}", names.join(", "))))
        }
    }
}

type Measured = Pin<Box<dyn Future<Output = Result<Value, ApiError>> + Send>>;

/// A measurement that is under way.
struct ProbeStream {
    /// `None`: its end was sent.
    measured: Option<Measured>,
    progress: mpsc::UnboundedReceiver<MeasureProgress>,
    heartbeat: tokio::time::Interval,
    _slot: ProbeSlot,
}

impl ProbeStream {
    fn new(upstream: Upstream, model: String, options: MeasureOptions, slot: ProbeSlot) -> Self {
        // At most `MEASURE_REQUESTS_MAX` are ever sent.
        let (sender, progress) = mpsc::unbounded_channel();
        let measured = async move {
            let mut announce = |step: MeasureProgress| {
                // A closed receiver means that the client has disconnected: the measurement is dropped, too.
                let _ = sender.send(step);
            };
            match upstream.measure(&model, options, &mut announce).await {
                Ok(measured) => serde_json::to_value(&measured).map_err(ApiError::internal),
                Err(error) => Err(probe_error(&upstream, &error)),
            }
        };
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        heartbeat.reset();
        Self { measured: Some(Box::pin(measured)), progress, heartbeat, _slot: slot }
    }

    async fn next_frame(&mut self) -> Option<Bytes> {
        let measured = self.measured.as_mut()?;
        let text = tokio::select! {
            biased;
            Some(step) = self.progress.recv() => frame("progress", &json!({
                "request": step.request,
                "requests": MEASURE_REQUESTS.max(step.request).min(MEASURE_REQUESTS_MAX),
                "purpose": step.purpose,
            })),
            result = measured => {
                self.measured = None;
                match result {
                    Ok(measurement) => frame("result", &measurement),
                    Err(error) => frame("error", &json!(error.body())),
                }
            }
            _ = self.heartbeat.tick() => ": measuring\n\n".to_owned(),
        };
        Some(Bytes::from(text))
    }
}

fn frame(event: &str, data: &Value) -> String {
    format!("event: {event}\ndata: {data}\n\n")
}

fn event_stream(probe: ProbeStream) -> Response {
    let frames = stream::unfold(probe, |mut probe| async move {
        let frame = probe.next_frame().await?;
        Some((Ok::<_, Infallible>(frame), probe))
    });
    sse_response(Body::from_stream(frames))
}
