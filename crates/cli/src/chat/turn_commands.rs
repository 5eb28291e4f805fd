//! The user's decisions, before they are sent and after.

use super::dialog::DialogReply;
use throughline::approval_store::ApprovalStoreError;
use throughline::{Event, EventKind, Throughline};
use throughline_wire::{CallArguments, ToolName};

/// Checks arguments that the user wrote against the tool's schema. The turn checks them again.
///
/// # Errors
/// The arguments do not fit, with the path of the value.
pub(crate) fn check_arguments(
    app: Option<&Throughline>,
    tool: &str,
    reply: &DialogReply,
) -> Result<(), String> {
    // A server checks what it runs.
    let Some(app) = app else { return Ok(()) };
    let DialogReply::Decide(_, answer) = reply else { return Ok(()) };
    let Some(arguments) = &answer.arguments else { return Ok(()) };
    let arguments = CallArguments::from_value(arguments.clone());
    app.tools().validate(&ToolName::new(tool), &arguments).map_err(|error| error.to_string())
}

/// Tracks answers that should apply always, and the outcome of storing them.
#[derive(Debug, Default)]
pub(crate) struct AlwaysAnswers {
    seen: bool,
}

impl AlwaysAnswers {
    /// Takes an event of the turn.
    pub(crate) fn apply(&mut self, event: &Event) {
        if let EventKind::ApprovalResolved { remember: Some(scope), .. } = &event.kind {
            self.seen |= scope == "always";
        }
    }

    /// After the end of the turn: the error of a permanent answer that was not stored, returned once.
    pub(crate) fn fault(&mut self, app: Option<&Throughline>) -> Option<ApprovalStoreError> {
        std::mem::take(&mut self.seen).then(|| app?.approval_store_error()).flatten()
    }
}
