//! Whether the server lives, and whether it takes new work. Neither tells anything of anybody, so neither takes a key. // R: O2

use crate::state::AppState;
use axum::Extension;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(healthz)).routes(routes!(readyz))
}

/// Where the server is between its start and its end. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<AtomicU8>);

/// Where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Turns that were running when it stopped are being resumed.
    Starting = 0,
    /// It takes new turns.
    Ready = 1,
    /// It takes none any more; those that run may end.
    Draining = 2,
}

impl Readiness {
    /// It is there now.
    pub fn is(&self, phase: Phase) {
        self.0.store(phase as u8, Ordering::Release);
    }

    /// Where it is.
    pub fn phase(&self) -> Phase {
        match self.0.load(Ordering::Acquire) {
            0 => Phase::Starting,
            1 => Phase::Ready,
            _ => Phase::Draining,
        }
    }
}

/// How it is.
#[derive(Debug, Serialize, ToSchema)]
struct Health {
    /// `ok`, `starting`, `draining`.
    status: &'static str,
}

/// Whether the server lives.
#[utoipa::path(get, path = "/healthz", tag = "server", security(()), responses((status = 200, description = "It does", body = Health)))]
async fn healthz() -> axum::Json<Health> {
    axum::Json(Health { status: "ok" })
}

/// Whether the server takes new turns.
#[utoipa::path(get, path = "/readyz", tag = "server", security(()), responses(
    (status = 200, description = "It does", body = Health),
    (status = 503, description = "Not yet, or no more", body = Health),
))]
async fn readyz(readiness: Option<Extension<Readiness>>) -> Response {
    // Where nobody drains it, it is always ready.
    let phase = readiness.map_or(Phase::Ready, |Extension(readiness)| readiness.phase());
    let (status, word) = match phase {
        Phase::Ready => (StatusCode::OK, "ok"),
        Phase::Starting => (StatusCode::SERVICE_UNAVAILABLE, "starting"),
        Phase::Draining => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
    };
    (status, axum::Json(Health { status: word })).into_response()
}
