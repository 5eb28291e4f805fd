//! Approval answers whose senders wait for the outcome, which is sent when the log has it.
//!
//! The machine accepts the first answer. This module only remembers who sent what; the winner is read from the log
//! like everything else, so that every sender gets the same result.

use crate::approval::{ApprovalOutcome, ApprovalResponse};
use std::collections::HashMap;
use throughline_engine::{
    ApprovalId, ApprovalTarget, Event, EventKind, QuestionResolution, QuestionState, TurnInput,
};
use throughline_wire::CallId;
use tokio::sync::oneshot;

/// Answers that wait for the log, and early answers that wait for their question.
#[derive(Default)]
pub(super) struct PendingDecisions {
    /// Answers in order of arrival.
    pending: Vec<PendingAnswer>,
    early_answers: HashMap<ApprovalId, (ApprovalResponse, String)>,
}

struct PendingAnswer {
    question: ApprovalId,
    answer: ApprovalResponse,
    by: String,
    reply: oneshot::Sender<ApprovalOutcome>,
}

/// Codes of `problem` events that refuse an answer and leave its question open.
const REJECTION_CODES: [&str; 2] = ["invalid_edit", "stale_answer"];

impl PendingDecisions {
    /// Waits until the log has the result of an answer that is passed to the machine now.
    pub(super) fn register(
        &mut self,
        question: ApprovalId,
        answer: ApprovalResponse,
        by: String,
        reply: oneshot::Sender<ApprovalOutcome>,
    ) {
        self.pending.push(PendingAnswer { question, answer, by, reply });
    }

    /// Stores an answer until its question is asked. The first one counts.
    pub(super) fn store_early(
        &mut self,
        question: ApprovalId,
        answer: ApprovalResponse,
        by: String,
    ) -> ApprovalOutcome {
        let stored = self.early_answers.entry(question).or_insert_with(|| (answer.clone(), by));
        if stored.0 == answer { ApprovalOutcome::Queued } else { ApprovalOutcome::Conflict }
    }

    /// Reads results of answers from events that the log holds. Returns stored answers of questions that are
    /// now open.
    pub(super) fn observe(&mut self, events: &[Event]) -> Vec<TurnInput> {
        if self.pending.is_empty() && self.early_answers.is_empty() {
            return Vec::new();
        }
        let mut inputs = Vec::new();
        for event in events {
            match &event.kind {
                EventKind::ApprovalRequest { approval_id, .. } => {
                    if let Some((answer, by)) = self.early_answers.remove(approval_id) {
                        inputs.push(answer.into_input(ApprovalTarget::One(approval_id.clone()), &by));
                    }
                }
                EventKind::ApprovalResolved {
                    approval_id, decision, by, arguments, content, stop, ..
                } => {
                    let content = arguments.clone().or_else(|| content.clone());
                    let resolution =
                        QuestionResolution { decision: *decision, by: by.clone(), content, stop: *stop };
                    self.resolved(approval_id, &resolution);
                }
                EventKind::Problem { code, excerpt, .. } if REJECTION_CODES.contains(&code.as_str()) => {
                    if let Some(call) = &event.tool_id {
                        self.reject(call, excerpt);
                    }
                }
                EventKind::ToolResult(_) | EventKind::ToolInputReset | EventKind::ToolRedefined { .. } => {
                    if let Some(call) = &event.tool_id {
                        self.expire_call(call);
                    }
                }
                _ => {}
            }
        }
        inputs
    }

    fn resolved(&mut self, question: &ApprovalId, resolution: &QuestionResolution) {
        let mut first = true;
        for waiting in self.take_matching(|waiting| waiting.question == *question) {
            let outcome = match ApprovalOutcome::from_resolution(&waiting.answer, resolution) {
                ApprovalOutcome::AlreadyResolved if first && waiting.by == resolution.by => {
                    first = false;
                    ApprovalOutcome::Resolved
                }
                other => other,
            };
            // Who does not wait any more reads it in the events.
            let _ = waiting.reply.send(outcome);
        }
    }

    /// The oldest answer to a question of this call is the one that was refused.
    fn reject(&mut self, call: &CallId, why: &str) {
        if let Some(at) = self.pending.iter().position(|waiting| is_for_call(&waiting.question, call)) {
            let _ = self.pending.remove(at).reply.send(ApprovalOutcome::Invalid { message: why.to_owned() });
        }
    }

    fn expire_call(&mut self, call: &CallId) {
        self.early_answers.retain(|question, _| !is_for_call(question, call));
        for waiting in self.take_matching(|waiting| is_for_call(&waiting.question, call)) {
            let _ = waiting.reply.send(ApprovalOutcome::Expired);
        }
    }

    fn take_matching(&mut self, matches: impl Fn(&PendingAnswer) -> bool) -> Vec<PendingAnswer> {
        let (matching, others) = std::mem::take(&mut self.pending).into_iter().partition(matches);
        self.pending = others;
        matching
    }
}

/// Outcome for an answer to a question in this state; `None` = it may be the first.
pub(super) fn settled_outcome(state: QuestionState, answer: &ApprovalResponse) -> Option<ApprovalOutcome> {
    match state {
        QuestionState::Open | QuestionState::Upcoming => None,
        QuestionState::Answered(resolution) => Some(ApprovalOutcome::from_resolution(answer, &resolution)),
        QuestionState::Withdrawn => Some(ApprovalOutcome::Expired),
        QuestionState::Unknown => Some(ApprovalOutcome::Unknown),
    }
}

fn is_for_call(question: &ApprovalId, call: &CallId) -> bool {
    question.call().is_some_and(|of| of == *call)
}
