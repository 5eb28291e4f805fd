//! Questions to a person, where the program answers for one.

use crate::approval::{Answer, ApprovalAsk};
use futures_util::future::BoxFuture;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use throughline_engine::{Event, EventKind, Input, Question, QuestionKind};
use throughline_wire::{CallId, ToolName};
use tokio::task::JoinSet;

/// Answers a question; see [`Builder::on_approval`](crate::Builder::on_approval).
pub(crate) type ApprovalHandler = Arc<dyn Fn(ApprovalAsk) -> BoxFuture<'static, Answer> + Send + Sync>;

/// A call that may be asked about.
#[derive(Clone, Debug)]
struct PendingCall {
    tool: ToolName,
    title: String,
    arguments: serde_json::Value,
}

/// Open questions and the tasks that answer them.
pub(super) struct Questions {
    handler: Option<ApprovalHandler>,
    calls: HashMap<CallId, PendingCall>,
    tasks: JoinSet<Input>,
}

impl Questions {
    pub(super) fn new(handler: Option<ApprovalHandler>) -> Self {
        Self { handler, calls: HashMap::new(), tasks: JoinSet::new() }
    }

    /// Takes questions out of events that the log holds.
    pub(super) fn look_at(&mut self, events: &[Event]) {
        let Some(handler) = self.handler.clone() else { return };
        for event in events {
            let Some(call) = &event.tool_id else { continue };
            match &event.kind {
                EventKind::ToolUse { tool_name, title, .. } => {
                    let (tool, title) = (tool_name.clone(), title.clone());
                    let pending = PendingCall { tool, title, arguments: serde_json::Value::Null };
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
                    let ask = ApprovalAsk {
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
                    let (id, seen, answer) = (approval_id.clone(), arguments_hash.clone(), handler(ask));
                    self.tasks.spawn(async move {
                        let mut answer = answer.await;
                        answer.arguments_hash.get_or_insert(seen);
                        answer.into_input(Question::One(id), "handler")
                    });
                }
                _ => {}
            }
        }
    }

    /// Takes what is open out of events that another process has logged; the program is asked about it here.
    pub(super) fn catch_up(&mut self, events: &[Event]) {
        if self.handler.is_none() {
            return;
        }
        let mut over = HashSet::new();
        for event in events {
            if let EventKind::ApprovalResolved { approval_id, .. } = &event.kind {
                over.insert(approval_id.as_str());
            }
        }
        let open = events.iter().filter(|event| match &event.kind {
            EventKind::ApprovalRequest { approval_id, .. } => !over.contains(approval_id.as_str()),
            _ => true,
        });
        let open: Vec<Event> = open.cloned().collect();
        self.look_at(&open);
    }

    /// The next answer; never, if nothing is asked. A handler that panics answers nothing: the question stays open
    /// for others, and expires as denied.
    pub(super) async fn answered(&mut self) -> Input {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(input)) => return input,
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }
}
