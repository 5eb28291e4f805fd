//! Answers whose senders want to know what became of them, when the log has it. R: A3
//!
//! The machine takes the first answer. Here is only remembered who sent what; who was first is read from the log like
//! everything else, so that everybody is told the same.

use crate::approval::Answer;
use crate::decided::Decided;
use std::collections::HashMap;
use throughline_engine::{Answered, ApprovalId, Event, EventKind, Input, Question, QuestionState};
use throughline_wire::CallId;
use tokio::sync::oneshot;

/// Answers that wait for the log, and those that wait for their question.
#[derive(Default)]
pub(super) struct Decisions {
    /// In the order in which they came.
    waiting: Vec<Waiting>,
    early: HashMap<ApprovalId, (Answer, String)>,
}

struct Waiting {
    question: ApprovalId,
    answer: Answer,
    by: String,
    reply: oneshot::Sender<Decided>,
}

/// Codes of `problem` events that refuse an answer and leave its question open.
const REFUSALS: [&str; 2] = ["invalid_edit", "stale_answer"];

impl Decisions {
    /// Waits for what the log says about an answer that the machine is given now.
    pub(super) fn expect(
        &mut self,
        question: ApprovalId,
        answer: Answer,
        by: String,
        reply: oneshot::Sender<Decided>,
    ) {
        self.waiting.push(Waiting { question, answer, by, reply });
    }

    /// Keeps an answer until its question is asked. The first one counts.
    pub(super) fn keep(&mut self, question: ApprovalId, answer: Answer, by: String) -> Decided {
        let kept = self.early.entry(question).or_insert_with(|| (answer.clone(), by));
        match kept.0 == answer {
            true => Decided::Queued,
            false => Decided::DifferentAlready,
        }
    }

    /// Takes what became of answers out of events that the log holds. Returns the answers of questions that were waited
    /// for.
    pub(super) fn look_at(&mut self, events: &[Event]) -> Vec<Input> {
        if self.waiting.is_empty() && self.early.is_empty() {
            return Vec::new();
        }
        let mut inputs = Vec::new();
        for event in events {
            match &event.kind {
                EventKind::ApprovalRequest { approval_id, .. } => {
                    if let Some((answer, by)) = self.early.remove(approval_id) {
                        inputs.push(answer.into_input(Question::One(approval_id.clone()), &by));
                    }
                }
                EventKind::ApprovalResolved { approval_id, decision, by, arguments, content, .. } => {
                    let content = arguments.clone().or_else(|| content.clone());
                    let answered = Answered { decision: *decision, by: by.clone(), content };
                    self.resolved(approval_id, &answered);
                }
                EventKind::Problem { code, excerpt, .. } if REFUSALS.contains(&code.as_str()) => {
                    if let Some(call) = &event.tool_id {
                        self.refused(call, excerpt);
                    }
                }
                EventKind::ToolResult(_) | EventKind::ToolInputReset | EventKind::ToolRedefined { .. } => {
                    if let Some(call) = &event.tool_id {
                        self.gone(call);
                    }
                }
                _ => {}
            }
        }
        inputs
    }

    fn resolved(&mut self, question: &ApprovalId, answered: &Answered) {
        let mut first = true;
        for waiting in self.take(|waiting| waiting.question == *question) {
            let decided = match Decided::after(&waiting.answer, answered) {
                Decided::SameAlready if first && waiting.by == answered.by => {
                    first = false;
                    Decided::Resolved
                }
                other => other,
            };
            // Who does not wait any more reads it in the events.
            let _ = waiting.reply.send(decided);
        }
    }

    /// The oldest answer to a question of this call is the one that was refused.
    fn refused(&mut self, call: &CallId, why: &str) {
        if let Some(at) = self.waiting.iter().position(|waiting| is_of(&waiting.question, call)) {
            let _ = self.waiting.remove(at).reply.send(Decided::DoesNotFit { message: why.to_owned() });
        }
    }

    fn gone(&mut self, call: &CallId) {
        self.early.retain(|question, _| !is_of(question, call));
        for waiting in self.take(|waiting| is_of(&waiting.question, call)) {
            let _ = waiting.reply.send(Decided::Expired);
        }
    }

    fn take(&mut self, is_meant: impl Fn(&Waiting) -> bool) -> Vec<Waiting> {
        let (meant, others) = std::mem::take(&mut self.waiting).into_iter().partition(is_meant);
        self.waiting = others;
        meant
    }
}

/// What an answer is told that comes when the question stands so; `None` = it may be the first.
pub(super) fn too_late(state: QuestionState, answer: &Answer) -> Option<Decided> {
    match state {
        QuestionState::Open | QuestionState::NotYet => None,
        QuestionState::Answered(answered) => Some(Decided::after(answer, &answered)),
        QuestionState::Gone => Some(Decided::Expired),
        QuestionState::Unknown => Some(Decided::Unknown),
    }
}

fn is_of(question: &ApprovalId, call: &CallId) -> bool {
    question.call().is_some_and(|of| of == *call)
}
