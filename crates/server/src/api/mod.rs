//! The own API, one file a resource.

mod agent_fields;
mod agent_preview;
pub(crate) mod agents;
pub(crate) mod approvals;
pub(crate) mod calls;
pub(crate) mod cancel;
pub(crate) mod clients;
pub(crate) mod conversations;
pub(crate) mod decode;
#[cfg(feature = "test-routes")]
mod echo;
pub(crate) mod events;
pub(crate) mod files;
pub(crate) mod health;
pub(crate) mod history;
pub(crate) mod home;
mod keys;
pub(crate) mod messages;
mod metrics;
pub(crate) mod openapi;
pub(crate) mod page;
pub(crate) mod page_file;
pub(crate) mod plugin_callbacks;
#[cfg(feature = "oidc")]
pub(crate) mod provider_sign_in;
pub(crate) mod question_links;
pub(crate) mod rating;
pub(crate) mod reference;
mod remembered_approvals;
mod retry;
mod saved_prompts;
mod sign_in;
pub(crate) mod tools;
pub(crate) mod turns;
pub(crate) mod upstreams;
mod users;
mod view;
pub(crate) mod ws;

use crate::state::AppState;
use utoipa_axum::router::OpenApiRouter;

/// All routes of the native API, one line per resource, sorted.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    let routes = OpenApiRouter::new()
        .merge(agents::routes())
        .merge(agent_fields::routes())
        .merge(agent_preview::routes())
        .merge(conversations::routes())
        .merge(approvals::routes())
        .merge(calls::routes())
        .merge(rating::routes())
        .merge(retry::routes())
        .merge(cancel::routes())
        .merge(clients::routes())
        .merge(decode::routes())
        .merge(events::routes())
        .merge(files::routes())
        .merge(health::routes())
        .merge(history::routes())
        .merge(keys::routes())
        .merge(metrics::routes())
        .merge(openapi::routes())
        .merge(question_links::routes())
        .merge(remembered_approvals::routes())
        .merge(saved_prompts::routes())
        .merge(sign_in::routes())
        .merge(tools::routes())
        .merge(messages::routes())
        .merge(turns::routes())
        .merge(upstreams::routes())
        .merge(users::routes())
        .merge(ws::routes());
    #[cfg(feature = "test-routes")]
    let routes = routes.merge(echo::routes());
    routes
}
