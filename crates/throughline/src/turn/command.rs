//! Commands to a running turn, and their outcomes.

use crate::approval::{ApprovalOutcome, ApprovalResponse};
use throughline_engine::{
    ApprovalId, ApprovalTarget, ClientAnswer, QueuedMessage, ToolAnswer, UserMessageId,
};
use throughline_wire::{CallId, UserPart};
use tokio::sync::{mpsc, oneshot};

/// Capacity of a turn's command channel. A sender waits while it is full.
const COMMANDS_MAX: usize = 64;

/// Sends commands to a turn.
#[derive(Clone, Debug)]
pub(crate) struct CommandSender(mpsc::Sender<Box<TurnCommand>>);

impl CommandSender {
    /// Boxed: a channel makes room for 32 of them at its beginning, for each turn.
    pub(crate) fn channel() -> (Self, mpsc::Receiver<Box<TurnCommand>>) {
        let (sender, receiver) = mpsc::channel(COMMANDS_MAX);
        (Self(sender), receiver)
    }

    pub(crate) async fn send(&self, command: TurnCommand) -> CommandAck {
        match self.0.send(Box::new(command)).await {
            Ok(()) => CommandAck::Accepted,
            Err(_) => CommandAck::TurnEnded,
        }
    }

    /// Sends a command and waits for its reply. `None`: the turn is over, and nothing came of the command.
    pub(crate) async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> TurnCommand) -> Option<T> {
        let (reply, result) = oneshot::channel();
        match self.send(command(reply)).await {
            CommandAck::Accepted => self.reply(result).await,
            CommandAck::TurnEnded => None,
        }
    }

    async fn reply<T>(&self, mut result: oneshot::Receiver<T>) -> Option<T> {
        tokio::select! {
            biased;
            result = &mut result => result.ok(),
            // A command sent in the moment in which the turn ends stays in the channel, together with its
            // reply, as long as a sender exists, which is as long as this waits.
            () = self.0.closed() => result.try_recv().ok(),
        }
    }
}

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
#[must_use = "the turn has ended"]
pub enum CommandAck {
    /// The turn will process it.
    Accepted,
    /// The turn is over.
    TurnEnded,
}

/// Outcome of sending a message to a running turn.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the message is not queued"]
#[non_exhaustive]
pub enum SendResult {
    /// The message is queued.
    Queued(UserMessageId),
    /// The queue is full (`messages_queued_max`).
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
#[must_use = "the call may already have ended"]
pub enum CancelCallResult {
    /// The call ends now, or as soon as its tool has reported how it ended.
    Cancelled,
    /// The call already had an outcome.
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
    /// The answer was accepted and is in the log.
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
#[must_use = "the answer may be too late"]
pub enum ClientAnswerResult {
    /// The answer was the first in time: it is the call's outcome, and in the log.
    Accepted,
    /// The call has an outcome already: another answer, a stop.
    AlreadyClosed,
    /// The call's time was over.
    TooLate,
    /// The call is another user's.
    WrongUser,
    /// No such call is open for a client, or it ended long ago.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(commands: &CommandSender) -> impl Future<Output = Option<CancelCallResult>> {
        commands.ask(|reply| TurnCommand::CancelCall { call: CallId::new("a"), reply })
    }

    #[tokio::test]
    async fn command_reply_is_none_once_the_turn_has_ended() {
        let (commands, mut turn) = CommandSender::channel();
        let answers = async {
            let Some(command) = turn.recv().await else { return };
            let TurnCommand::CancelCall { reply, .. } = *command else { return };
            reply.send(CancelCallResult::Cancelled).unwrap();
            drop(turn);
        };
        assert_eq!(tokio::join!(ask(&commands), answers).0, Some(CancelCallResult::Cancelled));
        assert_eq!(ask(&commands).await, None, "it is over");

        // A sender holds a slot of the channel when the turn ends: the command is never read and stays alive.
        let (commands, turn) = CommandSender::channel();
        let place = commands.0.clone().reserve_owned().await.unwrap();
        let (reply, result) = oneshot::channel();
        drop(turn);
        place.send(Box::new(TurnCommand::CancelCall { call: CallId::new("a"), reply }));
        assert_eq!(commands.reply(result).await, None);
    }
}
