//! The own API, one file a resource.

mod agent_fields;
mod agent_preview;
pub mod agents;
pub mod approvals;
pub mod calls;
pub mod cancel;
pub mod clients;
pub mod conversations;
pub mod decode;
#[cfg(feature = "test-routes")]
mod echo;
pub mod events;
pub mod files;
pub mod health;
pub mod history;
pub mod home;
mod keys;
pub mod messages;
pub mod openapi;
pub mod page;
pub(crate) mod page_file;
pub mod question_links;
pub mod reference;
mod remembered_approvals;
pub mod tools;
pub mod turns;
pub mod upstreams;
mod view;
pub mod ws;

use crate::state::AppState;
use utoipa_axum::router::OpenApiRouter;

/// All routes of the own API. One line a resource, sorted.
pub fn routes() -> OpenApiRouter<AppState> {
    let routes = OpenApiRouter::new()
        .merge(agents::routes())
        .merge(agent_fields::routes())
        .merge(agent_preview::routes())
        .merge(conversations::routes())
        .merge(approvals::routes())
        .merge(calls::routes())
        .merge(cancel::routes())
        .merge(clients::routes())
        .merge(decode::routes())
        .merge(events::routes())
        .merge(files::routes())
        .merge(health::routes())
        .merge(history::routes())
        .merge(keys::routes())
        .merge(openapi::routes())
        .merge(question_links::routes())
        .merge(remembered_approvals::routes())
        .merge(tools::routes())
        .merge(messages::routes())
        .merge(turns::routes())
        .merge(upstreams::routes())
        .merge(ws::routes());
    #[cfg(feature = "test-routes")]
    let routes = routes.merge(echo::routes());
    routes
}
