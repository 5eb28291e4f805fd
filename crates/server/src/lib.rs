//! The server: own API, OpenAI-compatible surface, keys, metrics. Every viewer is a cursor in the log.
//!
//! It never holds state of a turn that a restart would lose: turns, conversations and what is asked of people are in the
//! store, and a turn that was running is resumed when the server starts again.

pub mod api;
pub mod chat_questions;
pub mod compat;
pub mod connections;
pub mod error;
pub mod extract;
pub mod gate;
pub mod hub;
pub mod kept_media;
pub mod language;
mod media_type;
pub mod memories;
pub mod net;
pub mod own_agents;
mod pace;
pub mod portable;
pub mod principal;
pub mod recording;
pub mod state;
pub mod surface;
pub mod telemetry;
pub mod turn_log;
pub mod upkeep;
pub mod viewer;
mod web;

pub use error::ApiError;
pub use gate::Gate;
pub use hub::Hub;
pub use net::{BIND_WAIT, BindError, Bound, Served, Server};
pub use principal::{Principal, Scopes};
pub use state::AppState;
pub use viewer::{Viewed, Viewer};

use axum::extract::DefaultBodyLimit;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

/// All routes with what describes them, before a state is given to them.
fn described() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().merge(api::routes()).merge(compat::routes()).merge(telemetry::routes())
}

/// The description of all routes, OpenAPI 3.1. // R: E5
pub fn openapi() -> OpenApi {
    described().into_openapi()
}

/// All routes: the own API and the compatible surfaces, behind the gate.
pub fn router(state: AppState) -> axum::Router {
    let (router, _) = described().split_for_parts();
    let router = router
        .merge(web::routes())
        .merge(api::home::routes())
        .merge(api::question_links::pages())
        .merge(api::reference::routes());
    // Without it axum stops at 2 MB, whatever the configuration says.
    let bodies = DefaultBodyLimit::max(state.limits.body_bytes_max as usize);
    let router = router.fallback(error::no_such_route).method_not_allowed_fallback(error::no_such_method);
    router.layer(bodies).with_state(state)
}
