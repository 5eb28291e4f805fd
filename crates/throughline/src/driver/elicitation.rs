//! Open questions of running tools, with the schema of their answers.

use crate::turn::ToolAnswerResult;
use serde_json::Value;
use std::collections::HashMap;
use throughline_engine::{ApprovalId, Event, EventKind, QuestionKind, ToolAnswer};
use throughline_tools::complete_answer;
use throughline_wire::CallId;

/// The open questions according to the log.
#[derive(Default)]
pub(super) struct PendingElicitations(HashMap<ApprovalId, PendingElicitation>);

struct PendingElicitation {
    call: Option<CallId>,
    schema: Option<Value>,
}

impl PendingElicitations {
    /// Takes questions, and their ends, out of events that the log holds.
    pub(super) fn observe(&mut self, events: &[Event]) {
        for event in events {
            match &event.kind {
                EventKind::ApprovalRequest {
                    approval_id, kind: QuestionKind::Elicitation, schema, ..
                } => {
                    let open = PendingElicitation { call: event.tool_id.clone(), schema: schema.clone() };
                    self.0.insert(approval_id.clone(), open);
                }
                EventKind::ApprovalResolved { approval_id, .. } => {
                    self.0.remove(approval_id);
                }
                EventKind::ToolResult(_) => self.0.retain(|_, open| open.call != event.tool_id),
                _ => {}
            }
        }
    }

    /// The answer as it may be given, with what was left out filled in.
    pub(super) fn check(
        &self,
        question: &ApprovalId,
        answer: ToolAnswer,
    ) -> Result<ToolAnswer, ToolAnswerResult> {
        let open = self.0.get(question).ok_or(ToolAnswerResult::NotOpen)?;
        complete_answer(open.schema.as_ref(), answer).map_err(|message| ToolAnswerResult::Invalid { message })
    }

    /// It is open, as far as the log says.
    pub(super) fn is_open(&self, question: &ApprovalId) -> bool {
        self.0.contains_key(question)
    }
}
