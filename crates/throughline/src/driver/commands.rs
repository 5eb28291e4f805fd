//! Commands from outside to a running turn: from people, and from clients that run its tools.

use super::{TurnDriver, decisions};
use crate::approval::{ApprovalOutcome, ApprovalResponse};
use crate::turn::{CancelCallResult, ClientAnswerResult, RetractResult, ToolAnswerResult, TurnCommand};
use throughline_engine::{ApprovalId, ApprovalTarget, ClientCallState, QuestionState, TurnInput};
use tokio::sync::oneshot;

impl TurnDriver {
    pub(super) fn handle_command(&mut self, command: TurnCommand) {
        match command {
            // A client that supports approvals only may answer an elicitation with one; its content is
            // validated as well.
            TurnCommand::Answer { question: ApprovalTarget::One(id), answer, by }
                if self.elicitations.is_open(&id) && !answer.stops_turn() =>
            {
                if let Ok(answer) = self.elicitations.check(&id, answer.into_tool_answer()) {
                    self.feed(TurnInput::ToolQuestionAnswered { question: id, answer, by });
                }
            }
            TurnCommand::Answer { question, answer, by } => self.feed(answer.into_input(question, &by)),
            TurnCommand::AnswerTool { question, answer, by, reply } => {
                match self.elicitations.check(&question, answer) {
                    Ok(answer) => {
                        let before = self.machine.seq();
                        self.feed(TurnInput::ToolQuestionAnswered { question, answer, by });
                        // `elicitations` follows the log, which may lag: the question was answered or expired a moment ago.
                        let unchanged = self.machine.seq() == before;
                        let result =
                            if unchanged { ToolAnswerResult::NotOpen } else { ToolAnswerResult::Accepted };
                        self.receipts.reply_when_logged(self.machine.seq(), reply, result);
                    }
                    Err(rejection) => self.receipts.reply_now(reply, rejection),
                }
            }
            TurnCommand::SendMessage(message) => self.feed(TurnInput::UserMessage(message)),
            TurnCommand::Retract { id, reply } => {
                let is_queued = self.machine.queued_messages().iter().any(|message| message.id == id);
                self.feed(TurnInput::RetractMessage { id: id.clone() });
                let removed = self.steering_queue.remove(&id).filter(|_| is_queued);
                let result =
                    removed.map_or(RetractResult::TooLate, |message| RetractResult::Retracted(message.input));
                self.receipts.reply_now(reply, result);
            }
            TurnCommand::ClientAnswer { call, attempt, answer, reply } => {
                match self.machine.client_call_state(&call) {
                    ClientCallState::Waiting => {
                        self.feed(TurnInput::ClientAnswered { call: call.clone(), attempt, answer });
                        let result = match self.machine.client_call_state(&call) {
                            // An answer to a start that was withdrawn does not apply to the next start.
                            ClientCallState::Waiting => ClientAnswerResult::AlreadyClosed,
                            ClientCallState::Closed
                            | ClientCallState::TimedOut
                            | ClientCallState::Unknown => ClientAnswerResult::Accepted,
                        };
                        self.receipts.reply_when_logged(self.machine.seq(), reply, result);
                    }
                    ClientCallState::Closed => {
                        self.receipts.reply_now(reply, ClientAnswerResult::AlreadyClosed)
                    }
                    ClientCallState::TimedOut => self.receipts.reply_now(reply, ClientAnswerResult::TooLate),
                    ClientCallState::Unknown => self.receipts.reply_now(reply, ClientAnswerResult::Unknown),
                }
            }
            TurnCommand::Decide { question, answer, by, reply } => self.decide(question, answer, by, reply),
            TurnCommand::Cancel { why: None } => self.feed(TurnInput::Cancel),
            TurnCommand::Cancel { why: Some(why) } => self.feed(TurnInput::CancelWithReason { why }),
            TurnCommand::CancelCall { call, reply } => {
                let result = match self.machine.is_call_closed(&call) {
                    None => CancelCallResult::Unknown,
                    Some(true) => CancelCallResult::AlreadyEnded,
                    Some(false) => CancelCallResult::Cancelled,
                };
                self.feed(TurnInput::CancelCall { call });
                self.receipts.reply_when_logged(self.machine.seq(), reply, result);
            }
        }
    }

    /// Passes the answer to the machine, which accepts the first one; the reply follows when the log has the
    /// result.
    fn decide(
        &mut self,
        question: ApprovalId,
        answer: ApprovalResponse,
        by: String,
        reply: oneshot::Sender<ApprovalOutcome>,
    ) {
        let state = self.machine.question_state(&question);
        if state == QuestionState::Upcoming {
            let outcome = self.decisions.store_early(question, answer, by);
            return self.receipts.reply_now(reply, outcome);
        }
        let answer = self.elicitations.completed(&question, answer);
        if let Some(outcome) = decisions::settled_outcome(state, &answer) {
            return self.receipts.reply_when_logged(self.machine.seq(), reply, outcome);
        }
        // A denial that stops the turn goes to the machine: an elicitation has no such answer.
        let input = if self.elicitations.is_open(&question) && !answer.stops_turn() {
            match self.elicitations.check(&question, answer.clone().into_tool_answer()) {
                Ok(answer) => {
                    TurnInput::ToolQuestionAnswered { question: question.clone(), answer, by: by.clone() }
                }
                Err(ToolAnswerResult::Invalid { message }) => {
                    return self.receipts.reply_now(reply, ApprovalOutcome::Invalid { message });
                }
                Err(_) => return self.receipts.reply_now(reply, ApprovalOutcome::Expired),
            }
        } else {
            answer.clone().into_input(ApprovalTarget::One(question.clone()), &by)
        };
        self.decisions.register(question, answer, by, reply);
        self.feed(input);
    }
}
