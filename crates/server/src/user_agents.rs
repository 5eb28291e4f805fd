//! Agents that users have created over the API, loaded from the catalog into the application.
//!
//! They are read once for each user, before the first turn that may name one; later changes are written to
//! both.

use crate::error::ApiError;
use serde_json::Value;
use throughline::Throughline;
use throughline_store::{Catalog, DocumentKind};

/// Name of the field in which a document stores the settings of `[agents.NAME]`.
pub(crate) const SETTINGS_FIELD: &str = "settings";

/// Loads the agents of a user into the application, if they are not loaded yet. An agent that can no longer
/// be used (its upstream was removed) is left out, and the list of agents gives the reason.
///
/// # Errors
/// The catalog cannot be read.
pub(crate) async fn load_user_agents(
    app: &Throughline,
    catalog: &dyn Catalog,
    user: &str,
) -> Result<(), ApiError> {
    let owner = Some(user.to_owned());
    if app.has_agents_for(&owner) {
        return Ok(());
    }
    let mut agents = Vec::new();
    for document in catalog.documents(user, DocumentKind::Agent).await? {
        let settings = document.body.get(SETTINGS_FIELD).unwrap_or(&Value::Null);
        match app.parse_agent(&document.name, settings) {
            Ok(agent) => agents.push(agent),
            Err(error) => tracing::warn!(agent = %document.name, %error, "cannot use a stored agent"),
        }
    }
    app.set_agents(owner, agents);
    Ok(())
}
