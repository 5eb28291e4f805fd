//! A question of a server to a person, and the answer: what the server gets fits the form that it sent, or is a no.

use crate::context::ToolContext;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};

/// Puts a question to whoever watches the call. Nobody there, a form that cannot be read, or an address that cannot be
/// opened safely: declined.
pub(crate) async fn ask(server: &str, context: &ToolContext, question: ElicitRequestParams) -> ElicitResult {
    let _ = (server, context, question);
    ElicitResult::new(ElicitationAction::Decline)
}
