//! Agents that users have made over the API, from the catalog into the application.
//!
//! They are read once for each user, before the first turn that may name one; later changes go to both places at once.

use crate::error::ApiError;
use serde_json::Value;
use throughline::Throughline;
use throughline_store::{Catalog, DocumentKind};

/// Under this name a document has what `[agents.NAME]` would say.
pub(crate) const SETTINGS_FIELD: &str = "settings";

/// Makes the agents of a user known to the application, if they are not yet. One that can no longer be used (its upstream
/// was taken away) is left out, and the list of agents says why.
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
            Err(error) => tracing::warn!(agent = %document.name, %error, "a stored agent cannot be used"),
        }
    }
    app.set_agents(owner, agents);
    Ok(())
}
