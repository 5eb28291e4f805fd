//! What a person decided, told to the turn.

use super::dialog::Reply;
use super::queue::Queued;
use throughline::{Decision, Throughline, TurnControl};
use throughline_engine::UserMessageId;
use throughline_wire::{Arguments, ToolName};

/// Whether arguments that a person wrote fit the tool. The turn checks them again.
///
/// # Errors
/// What does not fit, with its path.
pub fn check(app: &Throughline, tool: &str, reply: &Reply) -> Result<(), String> {
    let Reply::Decide(_, answer) = reply else { return Ok(()) };
    let Some(arguments) = &answer.arguments else { return Ok(()) };
    let arguments = Arguments::from_value(arguments.clone());
    app.tools().validate(&ToolName::new(tool), &arguments).map_err(|error| error.to_string())
}

/// Answers. Whether the turn took it is told by its events.
pub async fn answer(control: &TurnControl, reply: Reply) {
    let _ = match reply {
        Reply::Decide(id, answer) => control.answer_with(id, answer).await,
        Reply::ApproveAll => control.answer_all(Decision::Approve, None).await,
        Reply::Told(..) => return,
    };
}

/// Sends a message into the turn. R: T14
pub async fn say(_control: &TurnControl, _queued: Queued) {}

/// Takes it back. R: T14
pub async fn take_back(_control: &TurnControl, _id: UserMessageId) {}
