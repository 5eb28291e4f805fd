//! The own API, one file a resource.

#[cfg(feature = "test-routes")]
mod echo;
pub mod events;
pub mod health;
mod keys;
pub mod turns;

use crate::state::AppState;
use utoipa_axum::router::OpenApiRouter;

/// All routes of the own API. One line a resource, sorted.
pub fn routes() -> OpenApiRouter<AppState> {
    let routes = OpenApiRouter::new()
        .merge(events::routes())
        .merge(health::routes())
        .merge(keys::routes())
        .merge(turns::routes());
    #[cfg(feature = "test-routes")]
    let routes = routes.merge(echo::routes());
    routes
}
