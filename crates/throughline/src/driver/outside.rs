//! What comes from outside while a turn runs: people, and clients that run its tools.

use super::elicitation::ToolAnswered;
use super::{Command, Driver, decisions};
use crate::approval::Answer;
use crate::clients::ClientAnswered;
use crate::decided::{CallCancelled, Decided};
use crate::said::TakenBack;
use throughline_engine::{ApprovalId, ClientCall, Input, Question, QuestionState};
use tokio::sync::oneshot;

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
            Command::Decide { question, answer, by, reply } => self.decide(question, answer, by, reply),
            Command::Cancel { why: None } => self.feed(Input::Cancel),
            Command::Cancel { why: Some(why) } => self.feed(Input::CancelBecause { why }),
            Command::CancelCall { call, reply } => {
                let cancelled = match self.machine.is_closed(&call) {
                    None => CallCancelled::Unknown,
                    Some(true) => CallCancelled::Ended,
                    Some(false) => CallCancelled::Yes,
                };
                self.feed(Input::CancelCall { call });
                self.receipts.when_logged(self.machine.seq(), reply, cancelled);
            }
        }
    }

    /// The first answer is the machine's to take; what became of it is answered when the log has it.
    fn decide(&mut self, question: ApprovalId, answer: Answer, by: String, reply: oneshot::Sender<Decided>) {
        let state = self.machine.question(&question);
        if state == QuestionState::NotYet {
            let decided = self.decisions.keep(question, answer, by);
            return self.receipts.now(reply, decided);
        }
        if let Some(decided) = decisions::too_late(state, &answer) {
            return self.receipts.when_logged(self.machine.seq(), reply, decided);
        }
        let input = if self.tool_questions.is_open(&question) {
            match self.tool_questions.check(&question, answer.clone().into_tool_answer()) {
                Ok(answer) => {
                    Input::ToolQuestionAnswered { question: question.clone(), answer, by: by.clone() }
                }
                Err(ToolAnswered::DoesNotFit { message }) => {
                    return self.receipts.now(reply, Decided::DoesNotFit { message });
                }
                Err(_) => return self.receipts.now(reply, Decided::Expired),
            }
        } else {
            answer.clone().into_input(Question::One(question.clone()), &by)
        };
        self.decisions.expect(question, answer, by, reply);
        self.feed(input);
    }
}
