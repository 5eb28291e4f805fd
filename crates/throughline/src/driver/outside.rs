//! What comes from outside while a turn runs: people, and clients that run its tools.

use super::elicitation::ToolAnswered;
use super::{Command, Driver};
use crate::clients::ClientAnswered;
use crate::said::TakenBack;
use throughline_engine::{ClientCall, Input, Question};

impl Driver {
    pub(super) fn command(&mut self, command: Command) {
        match command {
            // Whoever knows approvals only may answer a tool's question like one; what it fills in is checked as well.
            Command::Answer { question: Question::One(id), answer, by }
                if self.tool_questions.is_open(&id) =>
            {
                if let Ok(answer) = self.tool_questions.check(&id, answer.into_tool_answer()) {
                    self.feed(Input::ToolQuestionAnswered { question: id, answer, by });
                }
            }
            Command::Answer { question, answer, by } => self.feed(answer.into_input(question, &by)),
            Command::AnswerTool { question, answer, by, reply } => {
                match self.tool_questions.check(&question, answer) {
                    Ok(answer) => {
                        let before = self.machine.seq();
                        self.feed(Input::ToolQuestionAnswered { question, answer, by });
                        // The log may be behind: it was answered or expired a moment ago.
                        let answered = match self.machine.seq() == before {
                            true => ToolAnswered::NotOpen,
                            false => ToolAnswered::Taken,
                        };
                        self.receipts.when_logged(self.machine.seq(), reply, answered);
                    }
                    Err(refused) => self.receipts.now(reply, refused),
                }
            }
            Command::Say(message) => self.feed(Input::UserMessage(message)),
            Command::TakeBack { id, reply } => {
                let waits = self.machine.queued().iter().any(|message| message.id == id);
                self.feed(Input::TakeBack { id: id.clone() });
                let kept = self.mailbox.remove(&id).filter(|_| waits);
                let taken = kept.map_or(TakenBack::TooLate, |message| TakenBack::Yes(message.input));
                self.receipts.now(reply, taken);
            }
            Command::ClientAnswers { call, attempt, answer, reply } => {
                match self.machine.client_call(&call) {
                    ClientCall::Waiting => {
                        self.feed(Input::ClientAnswered { call: call.clone(), attempt, answer });
                        let answered = match self.machine.client_call(&call) {
                            // An answer to a start that was taken back is not one to the next.
                            ClientCall::Waiting => ClientAnswered::AlreadyClosed,
                            ClientCall::Closed | ClientCall::TooLate | ClientCall::Unknown => {
                                ClientAnswered::Accepted
                            }
                        };
                        self.receipts.when_logged(self.machine.seq(), reply, answered);
                    }
                    ClientCall::Closed => self.receipts.now(reply, ClientAnswered::AlreadyClosed),
                    ClientCall::TooLate => self.receipts.now(reply, ClientAnswered::TooLate),
                    ClientCall::Unknown => self.receipts.now(reply, ClientAnswered::Unknown),
                }
            }
            Command::Cancel => self.feed(Input::Cancel),
            Command::CancelCall(call) => self.feed(Input::CancelCall { call }),
        }
    }
}
