//! The server: own API, OpenAI-compatible surface, keys, metrics. Every viewer is a cursor in the log.
//!
//! It never holds state of a turn that a restart would lose: turns, conversations and what is asked of people are in the
//! store, and a turn that was running is resumed when the server starts again.

// The command is its only user: comments stand where a name is not enough.
#![allow(missing_docs)]

pub mod api;
pub mod approval_store;
mod chat_questions;
mod compat;
mod error;
mod extract;
pub mod gate;
pub mod hub;
mod language;
pub mod maintenance;
pub mod media_store;
mod net;
pub mod portable;
pub mod principal;
pub mod recording;
pub mod state;
pub mod surface;
pub mod telemetry;
pub mod turn_log;
pub mod upstream_keys;
mod user_agents;
pub mod viewer;
mod web;

pub use error::ApiError;
pub use gate::Gate;
pub use hub::Hub;
pub use net::{BIND_RETRY_FOR, BindError, BoundServer, HttpServer, ServeOutcome};
pub use principal::{KeyScopes, Principal};
pub use state::AppState;
pub use viewer::{Viewer, ViewerItem};

use axum::extract::DefaultBodyLimit;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

/// All routes with what describes them, before a state is given to them.
fn documented_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().merge(api::routes()).merge(compat::routes()).merge(telemetry::routes())
}

/// The description of all routes, OpenAPI 3.1. // R: E5
pub fn openapi() -> OpenApi {
    documented_routes().into_openapi()
}

/// All routes: our own API and the compatible ones. They check no key: wrap them with [`gate::Gate::wrap`] before serving.
pub fn router(state: AppState) -> axum::Router {
    let (router, _) = documented_routes().split_for_parts();
    let router = router
        .merge(web::routes())
        .merge(api::home::routes())
        .merge(api::question_links::pages())
        .merge(api::reference::routes());
    // Without it axum stops at 2 MB, whatever the configuration says.
    let bodies = DefaultBodyLimit::max(state.limits.body_bytes_max as usize);
    let router =
        router.fallback(error::route_not_found).method_not_allowed_fallback(error::method_not_allowed);
    router.layer(bodies).with_state(state)
}
