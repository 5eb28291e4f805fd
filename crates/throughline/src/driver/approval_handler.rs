//! Questions to a person, where the program answers for one.

use crate::approval::{ApprovalRequest, ApprovalResponse};
use futures_util::future::BoxFuture;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use throughline_engine::{ApprovalTarget, Event, EventKind, QuestionKind, TurnInput};
use throughline_wire::{CallId, ToolName};
use tokio::task::JoinSet;

/// Answers a question; see [`ThroughlineBuilder::on_approval`](crate::ThroughlineBuilder::on_approval).
pub(crate) type ApprovalHandler =
    Arc<dyn Fn(ApprovalRequest) -> BoxFuture<'static, ApprovalResponse> + Send + Sync>;

/// A call that may need an approval.
#[derive(Clone, Debug)]
struct ApprovalCall {
    tool: ToolName,
    title: String,
    arguments: serde_json::Value,
}

/// Open questions and the tasks that answer them.
pub(super) struct ApprovalTasks {
    handler: Option<ApprovalHandler>,
    calls: HashMap<CallId, ApprovalCall>,
    tasks: JoinSet<TurnInput>,
}

impl ApprovalTasks {
    pub(super) fn new(handler: Option<ApprovalHandler>) -> Self {
        Self { handler, calls: HashMap::new(), tasks: JoinSet::new() }
    }

    /// Takes questions out of events that the log holds.
    pub(super) fn observe(&mut self, events: &[Event]) {
        let Some(handler) = self.handler.clone() else { return };
        for event in events {
            let Some(call) = &event.tool_id else { continue };
            match &event.kind {
                EventKind::ToolUse { tool_name, title, .. } => {
                    let (tool, title) = (tool_name.clone(), title.clone());
                    let pending = ApprovalCall { tool, title, arguments: serde_json::Value::Null };
                    self.calls.insert(call.clone(), pending);
                }
                EventKind::ToolInput(input) => {
                    if let (Some(pending), Some(arguments)) = (self.calls.get_mut(call), &input.arguments) {
                        pending.arguments = arguments.clone();
                    }
                }
                EventKind::ToolResult(_) => {
                    self.calls.remove(call);
                }
                EventKind::ApprovalResolved { arguments: Some(edited), .. } => {
                    if let Some(pending) = self.calls.get_mut(call) {
                        pending.arguments = edited.clone();
                    }
                }
                EventKind::ApprovalRequest {
                    approval_id,
                    kind: QuestionKind::Call,
                    question,
                    rule,
                    arguments_hash,
                    fingerprint,
                    ..
                } => {
                    let Some(pending) = self.calls.get(call).cloned() else { continue };
                    let ask = ApprovalRequest {
                        approval_id: approval_id.clone(),
                        call: call.clone(),
                        tool: pending.tool,
                        title: pending.title,
                        arguments: pending.arguments,
                        question: question.clone(),
                        rule: rule.clone(),
                        arguments_hash: arguments_hash.clone(),
                        fingerprint: fingerprint.clone(),
                    };
                    let (id, hash, answer) = (approval_id.clone(), arguments_hash.clone(), handler(ask));
                    self.tasks.spawn(async move {
                        let mut answer = answer.await;
                        answer.arguments_hash.get_or_insert(hash);
                        answer.into_input(ApprovalTarget::One(id), "handler")
                    });
                }
                _ => {}
            }
        }
    }

    /// Collects open questions from events that another process has logged; the program's handler is called
    /// for them here.
    pub(super) fn replay(&mut self, events: &[Event]) {
        if self.handler.is_none() {
            return;
        }
        let mut resolved = HashSet::new();
        for event in events {
            if let EventKind::ApprovalResolved { approval_id, .. } = &event.kind {
                resolved.insert(approval_id.as_str());
            }
        }
        let open = events.iter().filter(|event| match &event.kind {
            EventKind::ApprovalRequest { approval_id, .. } => !resolved.contains(approval_id.as_str()),
            _ => true,
        });
        let open: Vec<Event> = open.cloned().collect();
        self.observe(&open);
    }

    /// The next answer; pending while no question is open. A handler that panics gives no answer: the
    /// question stays open for others, and expires as denied.
    pub(super) async fn next_answer(&mut self) -> TurnInput {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(input)) => return input,
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }
}
