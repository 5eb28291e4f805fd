//! Questions to whoever sits at a terminal, answered by lines.

use crate::messages::{self, Words};
use crate::plain::{for_terminal, short};
use crate::terminal::text::revealing;
use std::collections::HashMap;
use std::io;
use throughline::engine::ApprovalId;
use throughline::{Decision, Event, EventKind, TurnControl};
use throughline_wire::CallId;
use tokio::sync::mpsc;

/// Lines read ahead.
const LINES_WAITING_MAX: usize = 64;

/// Questions of one turn, asked one after the other.
pub struct Asking {
    control: TurnControl,
    open: Vec<ApprovalId>,
    /// Everything further is allowed.
    all: bool,
    /// Name and arguments of calls, as far as a question needs them.
    calls: HashMap<CallId, (String, String)>,
    words: Words,
}

impl Asking {
    /// Nothing has been asked yet.
    pub fn new(control: TurnControl, words: Words) -> Self {
        Self { control, open: Vec::new(), all: false, calls: HashMap::new(), words }
    }

    /// Somebody is asked: the next line is an answer.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Takes an event; prints a question on standard error.
    pub async fn take(&mut self, event: &Event) {
        let Some(call) = &event.tool_id else { return };
        match &event.kind {
            EventKind::ToolUse { tool_name, .. } => {
                self.calls.insert(call.clone(), (tool_name.to_string(), String::new()));
            }
            EventKind::ToolInput(input) => {
                if let Some((_, arguments)) = self.calls.get_mut(call) {
                    *arguments = crate::chat::wording::full_arguments(input);
                }
            }
            EventKind::ApprovalRequest { approval_id, .. } if self.all => {
                // Whether the turn took it is told by its events.
                let _ = self.control.answer(approval_id.clone(), Decision::Approve, None).await;
            }
            EventKind::ApprovalRequest { approval_id, .. } => {
                self.open.push(approval_id.clone());
                let (tool, arguments) = self.calls.get(call).cloned().unwrap_or_default();
                eprint!(
                    "{}",
                    messages::question(self.words, &short(&tool), &for_terminal(&revealing(&arguments)))
                );
            }
            EventKind::ApprovalResolved { approval_id, .. } => self.open.retain(|open| open != approval_id),
            _ => {}
        }
    }

    /// Takes a line: yes, all, or anything else for no.
    pub async fn give(&mut self, answer: &str) {
        let _ = match (answer.trim().to_lowercase().as_str(), self.open.first().cloned()) {
            (_, None) => return,
            ("y" | "yes", Some(id)) => self.control.answer(id, Decision::Approve, None).await,
            ("a" | "all", Some(_)) => {
                self.all = true;
                self.control.answer_all(Decision::Approve, None).await
            }
            (_, Some(id)) => self.control.answer(id, Decision::Deny, None).await,
        };
    }
}

/// Lines of standard input, read by a thread since nothing else can wait for them; it ends with the process.
pub fn typed_lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(LINES_WAITING_MAX);
    std::thread::spawn(move || {
        for line in io::stdin().lines() {
            let Ok(line) = line else { break };
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    receiver
}
