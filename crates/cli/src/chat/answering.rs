//! What a person decided, told to the turn.

use super::dialog::Reply;
use super::queue::Queued;
use throughline::memory::MemoryError;
use throughline::{Decision, Event, EventKind, Throughline, ToolAnswered, TurnControl};
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
///
/// # Errors
/// Why what was filled in does not fit: the question is still open.
pub async fn answer(control: &TurnControl, reply: Reply) -> Result<(), String> {
    let _ = match reply {
        Reply::Decide(id, answer) => control.answer_with(id, answer).await,
        Reply::ApproveAll => control.answer_all(Decision::Approve, None).await,
        Reply::Told(id, answer) => {
            return match control.answer_tool(id, answer).await {
                ToolAnswered::DoesNotFit { message } => Err(message),
                ToolAnswered::Taken | ToolAnswered::NotOpen | ToolAnswered::TurnIsOver => Ok(()),
            };
        }
    };
    Ok(())
}

/// Sends a message into the turn. What it does not take in stays in the queue and begins the next one. R: T14
pub async fn say(control: &TurnControl, queued: Queued) {
    let _ = control.say_as(queued.id, queued.text, queued.when).await;
}

/// Takes it back. One that was taken in meanwhile is in the events. R: T14
pub async fn take_back(control: &TurnControl, id: UserMessageId) {
    let _ = control.take_back(id).await;
}

/// Whether a turn had an answer that should always hold, and what became of it. R: A2
#[derive(Debug, Default)]
pub struct Always {
    said: bool,
}

impl Always {
    /// Takes an event of the turn.
    pub fn apply(&mut self, event: &Event) {
        if let EventKind::ApprovalResolved { remember: Some(scope), .. } = &event.kind {
            self.said |= scope == "always";
        }
    }

    /// The turn is over: why such an answer was not kept, told once.
    pub fn fault(&mut self, app: &Throughline) -> Option<MemoryError> {
        std::mem::take(&mut self.said).then(|| app.memory_fault()).flatten()
    }
}
