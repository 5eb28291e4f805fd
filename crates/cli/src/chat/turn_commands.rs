//! Sends the user's decisions to the turn.

use super::dialog::DialogReply;
use super::queue::QueuedText;
use throughline::approval_store::ApprovalStoreError;
use throughline::{ApprovalDecision, Event, EventKind, Throughline, ToolAnswerResult, TurnControl};
use throughline_engine::UserMessageId;
use throughline_wire::{CallArguments, ToolName};

/// Checks arguments that the user wrote against the tool's schema. The turn checks them again.
///
/// # Errors
/// The arguments do not fit, with the path of the value.
pub(crate) fn check_arguments(app: &Throughline, tool: &str, reply: &DialogReply) -> Result<(), String> {
    let DialogReply::Decide(_, answer) = reply else { return Ok(()) };
    let Some(arguments) = &answer.arguments else { return Ok(()) };
    let arguments = CallArguments::from_value(arguments.clone());
    app.tools().validate(&ToolName::new(tool), &arguments).map_err(|error| error.to_string())
}

/// Answers. Whether the turn took it is told by its events.
///
/// # Errors
/// Why what was filled in does not fit: the question is still open.
pub(crate) async fn send_answer(control: &TurnControl, reply: DialogReply) -> Result<(), String> {
    let _ = match reply {
        DialogReply::Decide(id, answer) => control.answer_with(id, answer).await,
        DialogReply::ApproveAll => control.answer_all(ApprovalDecision::Approve, None).await,
        DialogReply::ToolAnswered(id, answer) => {
            return match control.answer_tool(id, answer).await {
                ToolAnswerResult::Invalid { message } => Err(message),
                ToolAnswerResult::Accepted | ToolAnswerResult::NotOpen | ToolAnswerResult::TurnEnded => {
                    Ok(())
                }
            };
        }
    };
    Ok(())
}

/// Sends a message into the turn. What it does not take in stays in the queue and begins the next one. R: T14
pub(crate) async fn queue_message(control: &TurnControl, queued: QueuedText) {
    let _ = control.send_as(queued.id, queued.text, queued.when).await;
}

/// Takes it back. One that was taken in meanwhile is in the events. R: T14
pub(crate) async fn retract_message(control: &TurnControl, id: UserMessageId) {
    let _ = control.retract(id).await;
}

/// Tracks answers that should apply always, and the outcome of storing them.
// R: A2
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

    /// The turn is over: why such an answer was not kept, told once.
    pub(crate) fn fault(&mut self, app: &Throughline) -> Option<ApprovalStoreError> {
        std::mem::take(&mut self.seen).then(|| app.approval_store_error()).flatten()
    }
}
