//! Commands to a running turn, and their outcomes.

use crate::approval::{ApprovalOutcome, ApprovalResponse};
use throughline_engine::{
    ApprovalId, ApprovalTarget, ClientAnswer, QueuedMessage, ToolAnswer, UserMessageId,
};
use throughline_wire::{CallId, UserPart};
use tokio::sync::oneshot;

/// Capacity of a turn's command channel. A sender waits while it is full.
pub(crate) const COMMANDS_MAX: usize = 64;

/// A command to a running turn.
#[derive(Debug)]
pub(crate) enum TurnCommand {
    Answer {
        question: ApprovalTarget,
        answer: ApprovalResponse,
        by: String,
    },
    AnswerTool {
        question: ApprovalId,
        answer: ToolAnswer,
        by: String,
        reply: oneshot::Sender<ToolAnswerResult>,
    },
    SendMessage(QueuedMessage),
    Retract {
        id: UserMessageId,
        reply: oneshot::Sender<RetractResult>,
    },
    ClientAnswer {
        call: CallId,
        attempt: Option<u32>,
        answer: ClientAnswer,
        reply: oneshot::Sender<ClientAnswerResult>,
    },
    Decide {
        question: ApprovalId,
        answer: ApprovalResponse,
        by: String,
        reply: oneshot::Sender<ApprovalOutcome>,
    },
    Cancel {
        /// `None` = the user wants it.
        why: Option<String>,
    },
    CancelCall {
        call: CallId,
        reply: oneshot::Sender<CancelCallResult>,
    },
}

/// Receipt of a command by a turn. The result is reported by its events: if a cancel races with the end, one of them
/// wins, and all viewers see the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a turn that is over does nothing any more"]
pub enum CommandAck {
    /// The turn will process it.
    Accepted,
    /// The turn is over.
    TurnEnded,
}

/// Outcome of sending a message to a running turn.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a message that is not queued is not heard"]
#[non_exhaustive]
pub enum SendResult {
    /// It waits for its time.
    Queued(UserMessageId),
    /// Too many wait already (`messages_queued_max`).
    QueueFull,
    /// The turn is over: send the message to the next one.
    TurnEnded,
}

/// Outcome of retracting a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "it may be too late"]
pub enum RetractResult {
    /// The turn will not read it. These are its parts.
    Retracted(Vec<UserPart>),
    /// The turn has read it, or it was never sent.
    TooLate,
}

/// Outcome of a request to cancel one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "the call may have ended before"]
pub enum CancelCallResult {
    /// It ends now, or as soon as its tool has reported how it ended.
    Cancelled,
    /// It had an outcome before.
    AlreadyEnded,
    /// The turn has no such call.
    Unknown,
    /// The turn is over.
    TurnEnded,
}

/// Outcome of an answer to a question of a running tool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an answer that does not fit can be corrected"]
pub enum ToolAnswerResult {
    /// It is the answer, and in the log.
    Accepted,
    /// The question is not open: it was answered, expired, or is another turn's.
    NotOpen,
    /// The values do not fit the form; the question is still open.
    Invalid {
        /// The fields at fault and the reason.
        message: String,
    },
    /// The turn is over.
    TurnEnded,
}

/// Outcome of a client's answer. Over HTTP: 200, 409, 410, 403, 404.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "an answer may come too late"]
pub enum ClientAnswerResult {
    /// It was the first one in time: it is the call's outcome, and in the log.
    Accepted,
    /// The call has an outcome already: another answer, a stop.
    AlreadyClosed,
    /// The call's time was over.
    TooLate,
    /// The call is another user's.
    WrongUser,
    /// No client is asked to run such a call, or that was long ago.
    Unknown,
}
