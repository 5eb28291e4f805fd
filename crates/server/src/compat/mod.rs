//! APIs of others, for clients that exist: each a way to start a turn of ours and to read it in another form. What is said
//! and how is decided in [`surface`](crate::surface); here are only HTTP, who asks, and what becomes of a turn whose client
//! is gone.

pub(crate) mod audio;
pub(crate) mod chat;
pub(crate) mod models;
pub(crate) mod passthrough;

use crate::state::AppState;
use utoipa_axum::router::OpenApiRouter;

/// All routes. One line an API, sorted.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .merge(audio::routes())
        .merge(chat::routes())
        .merge(models::routes())
        .merge(passthrough::routes())
}
