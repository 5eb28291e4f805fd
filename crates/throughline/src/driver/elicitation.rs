//! Questions of running tools, with the schema of their answers.

use crate::approval::ApprovalResponse;
use crate::turn::ToolAnswerResult;
use serde_json::Value;
use std::collections::HashMap;
use throughline_engine::{ApprovalId, Event, EventKind, QuestionKind, ToolAnswer};
use throughline_tools::complete_answer;
use throughline_wire::CallId;

/// The questions according to the log.
#[derive(Default)]
pub(super) struct Elicitations(HashMap<ApprovalId, Elicitation>);

struct Elicitation {
    call: Option<CallId>,
    schema: Option<Value>,
    is_open: bool,
}

impl Elicitations {
    /// Takes questions, and their ends, out of events that the log holds.
    pub(super) fn observe(&mut self, events: &[Event]) {
        for event in events {
            match &event.kind {
                EventKind::ApprovalRequest {
                    approval_id, kind: QuestionKind::Elicitation, schema, ..
                } => {
                    let (call, schema) = (event.tool_id.clone(), schema.clone());
                    self.0.insert(approval_id.clone(), Elicitation { call, schema, is_open: true });
                }
                EventKind::ApprovalResolved { approval_id, .. } => {
                    self.0.entry(approval_id.clone()).and_modify(|asked| asked.is_open = false);
                }
                EventKind::ToolResult(_) => {
                    let of_call = self.0.values_mut().filter(|asked| asked.call == event.tool_id);
                    of_call.for_each(|asked| asked.is_open = false);
                }
                _ => {}
            }
        }
    }

    /// The answer with defaults filled in for missing fields.
    pub(super) fn check(
        &self,
        question: &ApprovalId,
        answer: ToolAnswer,
    ) -> Result<ToolAnswer, ToolAnswerResult> {
        let open = self.0.get(question).filter(|asked| asked.is_open).ok_or(ToolAnswerResult::NotOpen)?;
        complete_answer(open.schema.as_ref(), answer).map_err(|message| ToolAnswerResult::Invalid { message })
    }

    /// True if the question is open according to the log.
    pub(super) fn is_open(&self, question: &ApprovalId) -> bool {
        self.0.get(question).is_some_and(|asked| asked.is_open)
    }

    /// The answer as its tool gets it, so that the same one is recognized when it is sent again.
    pub(super) fn completed(&self, question: &ApprovalId, answer: ApprovalResponse) -> ApprovalResponse {
        match self.0.get(question) {
            Some(asked) => answer.completed(asked.schema.as_ref()),
            None => answer,
        }
    }
}
