//! Liveness and readiness. Neither reveals user data, so neither needs a key. // R: O2

use crate::net::ConnectionInfo;
use crate::state::AppState;
use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Serialize;
use std::time::Duration;
use throughline_store::LogError;
use tokio::sync::Mutex;
use tokio::time::Instant;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// A store that takes longer to read and write a row is none that turns can count on.
const PROBE_MS_MAX: Duration = Duration::from_millis(1_000);
/// Time for which a readiness result is reused, so that frequent probes do not load the store.
const ANSWER_MS: Duration = Duration::from_millis(1_000);

/// Last readiness result of the store.
#[derive(Debug, Default)]
pub struct ReadinessProbe(Mutex<Option<(Instant, Result<(), LogError>)>>);

impl ReadinessProbe {
    /// Those who ask at the same time share one answer.
    async fn check<F>(&self, probe: impl FnOnce() -> F) -> Result<(), LogError>
    where
        F: Future<Output = Result<(), LogError>>,
    {
        let mut last = self.0.lock().await;
        if let Some((at, answer)) = &*last
            && at.elapsed() < ANSWER_MS
        {
            return answer.clone();
        }
        let answer = tokio::time::timeout(PROBE_MS_MAX, probe()).await;
        let answer =
            answer.unwrap_or_else(|_| Err(LogError::StoreFailure { why: "it does not answer".into() }));
        if let Err(error) = &answer {
            tracing::warn!(%error, "the store is not ready");
        }
        *last = Some((Instant::now(), answer.clone()));
        answer
    }
}

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(check_health)).routes(routes!(check_readiness))
}

/// Health of the server.
#[derive(Debug, Serialize, ToSchema)]
struct HealthStatus {
    /// `ok`, `draining`, `no_room` (turns that run can finish) or `store_unavailable`.
    status: &'static str,
    /// Why it takes no turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// Check that the server process is alive.
#[utoipa::path(get, path = "/healthz", tag = "server", security(()), responses((status = 200, description = "Healthy", body = HealthStatus)))]
async fn check_health() -> axum::Json<HealthStatus> {
    axum::Json(HealthStatus { status: "ok", why: None })
}

/// Check that the server accepts new turns: reads from and writes to the store at most once a second.
#[utoipa::path(get, path = "/readyz", tag = "server", security(()), responses(
    (status = 200, description = "Healthy", body = HealthStatus),
    (status = 503, description = "Not ready", body = HealthStatus),
))]
async fn check_readiness(
    State(state): State<AppState>,
    connection: Option<Extension<ConnectionInfo>>,
) -> Response {
    // Nothing is answered before the turns of the last start run again, so there is no state for that.
    let draining = connection.is_some_and(|Extension(connection)| connection.is_draining());
    let (status, why) = if draining {
        ("draining", None)
    } else {
        match state.readiness.check(|| state.log.probe()).await {
            Ok(()) => ("ok", None),
            Err(LogError::NoRoom { why }) => ("no_room", Some(why)),
            // What it says may name files: it is for the log, and this is for everybody.
            Err(_) => ("store_unavailable", None),
        }
    };
    let code = match status {
        "ok" => StatusCode::OK,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    (code, axum::Json(HealthStatus { status, why })).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::future::{pending, ready};

    // R: O2
    #[tokio::test(start_paused = true)]
    async fn the_store_is_asked_once_a_second_and_answers_within_one() {
        let (readiness, asked) = (ReadinessProbe::default(), Cell::new(0));
        let probe = |answer: Result<(), LogError>| {
            asked.set(asked.get() + 1);
            ready(answer)
        };
        let full = || Err(LogError::NoRoom { why: "the disk is full".into() });
        assert_eq!(readiness.check(|| probe(Ok(()))).await, Ok(()));
        tokio::time::advance(ANSWER_MS - Duration::from_millis(1)).await;
        assert_eq!((readiness.check(|| probe(full())).await, asked.get()), (Ok(()), 1), "it still holds");
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!((readiness.check(|| probe(full())).await, asked.get()), (full(), 2));
        tokio::time::advance(ANSWER_MS).await;
        // A store that hangs is none, and neither does it make others wait for long.
        let before = Instant::now();
        assert!(matches!(readiness.check(pending).await, Err(LogError::StoreFailure { .. })));
        assert_eq!(before.elapsed(), PROBE_MS_MAX);
    }
}
