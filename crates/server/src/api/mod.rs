//! The own API, one file a resource.

pub mod events;
pub mod turns;

use crate::state::AppState;
use utoipa_axum::router::OpenApiRouter;

/// All routes of the own API. One line a resource, sorted.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().merge(events::routes()).merge(turns::routes())
}
