//! Questions that a running tool asks (elicitation): a wait of the machine, like an approval. R: T8, L6
//!
//! | what comes | the tool is told |
//! |---|---|
//! | a person's answer | that answer; what it holds was checked against the schema before it came here |
//! | the end of `approval_ms_max` | declined |
//! | a stop, the end of the call, a contradiction of its arguments | cancelled |
//! | nobody is there to ask ([`ApprovalRule::DenyAll`]) | declined at once, no event |
//! | a second question beside an open one, or one over `questions_per_call_max` | cancelled at once |
//!
//! While a person is asked, the time limit of the call stands still, for `asked_ms_max` in all its questions together.
//! A question dies with the process that ran the tool: its call is settled like every other that ran there.

use crate::action::Action;
use crate::event::{Decision, EventKind, QuestionKind};
use crate::id::{ApprovalId, Millis};
use crate::input::{Question, TimerId};
use crate::record::{Answered, Asking, CallState, Phase};
use crate::setup::{ApprovalRule, Runs};
use crate::turn::{Machine, Turn};
use crate::wording;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use throughline_wire::{CallId, visible};

/// What a running tool wants to know of a person.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolQuestion {
    /// The question in words.
    pub message: String,
    /// How it is to be answered.
    pub wants: Wants,
}

/// How a person is to answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Wants {
    /// By values that fit a JSON Schema: an object with flat fields. Never for secrets: the answer is in the log.
    Form {
        /// The schema.
        schema: Value,
    },
    /// By doing something at an address outside (signing in, paying); that it was done is all the tool is told.
    Url {
        /// The address.
        url: String,
    },
}

/// What a tool is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum ToolAnswer {
    /// A person answered.
    Accept {
        /// The values; absent if an address was asked to be opened.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<Value>,
    },
    /// A person does not want to, or nobody answered in time.
    Decline,
    /// Nobody will answer: the call is being stopped, or the question was not asked.
    Cancel,
}

impl ToolQuestion {
    /// Wants values that fit a schema.
    pub fn form(message: impl Into<String>, schema: Value) -> Self {
        Self { message: message.into(), wants: Wants::Form { schema } }
    }

    /// Wants an address to be opened.
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self { message: message.into(), wants: Wants::Url { url: url.into() } }
    }
}

impl ToolAnswer {
    fn word(&self) -> &'static str {
        match self {
            ToolAnswer::Accept { .. } => "accept",
            ToolAnswer::Decline => "decline",
            ToolAnswer::Cancel => "cancel",
        }
    }
}

/// Where a question stands, whoever asks it: a rule, or a running tool.
#[derive(Clone, Debug, PartialEq)]
pub enum QuestionState {
    /// The first answer will be taken.
    Open,
    /// It has one.
    Answered(Answered),
    /// It went away without one: its call asks again, or is over.
    Gone,
    /// It is the next that its call may ask.
    NotYet,
    /// No call of this turn asks or has asked it.
    Unknown,
}

impl Turn {
    /// Where a question stands.
    pub fn question(&self, question: &ApprovalId) -> QuestionState {
        let (_, record) = self.known();
        if let Some(answered) = record.answered.get(question) {
            return QuestionState::Answered(answered.clone());
        }
        let Some((kind, call, number)) = question.parts() else { return QuestionState::Unknown };
        let Some(at) = record.call(&call) else { return QuestionState::Unknown };
        let call = &record.calls[at];
        let is_asked = matches!(&call.state, CallState::Asked { approval, .. } if *approval == *question);
        let asks = call.asking.as_ref().is_some_and(|asking| asking.approval == *question);
        match number {
            _ if is_asked || asks => QuestionState::Open,
            0 => QuestionState::Unknown,
            number if number <= call.questions => QuestionState::Gone,
            // What a running tool will ask, nobody can know.
            number if number == call.questions + 1 && kind.is_call() && !call.is_closed() => {
                QuestionState::NotYet
            }
            _ => QuestionState::Unknown,
        }
    }

    /// Whether a call has its outcome; `None` = there is no such call.
    pub fn is_closed(&self, call: &CallId) -> Option<bool> {
        let (_, record) = self.known();
        record.call(call).map(|at| record.calls[at].is_closed())
    }
}

impl Machine<'_> {
    pub(crate) fn tool_asks(
        &mut self,
        call: &CallId,
        attempt: u32,
        question_id: u64,
        question: ToolQuestion,
    ) {
        let answer = match self.running(call, attempt) {
            None => ToolAnswer::Cancel,
            Some(at) => match self.refused_question(at) {
                Some(refused) => refused,
                None => return self.ask_for_tool(at, question_id, question),
            },
        };
        self.act(Action::AnswerTool { call: call.clone(), attempt, question_id, answer });
    }

    /// The answer to a question that is not put to anyone.
    fn refused_question(&mut self, at: usize) -> Option<ToolAnswer> {
        let call = &self.record.calls[at];
        let stopping = self.record.phase == Phase::Stopping
            || self.live.cancelled_starts.contains(&(call.id.clone(), call.attempts));
        if stopping || call.asking.is_some() {
            return Some(ToolAnswer::Cancel);
        }
        if call.tool_questions >= self.setup.limits.questions_per_call_max {
            let about = self.about_call(at);
            let remedy = Some("Raise `questions_per_call_max` if the tool may ask so much.".to_owned());
            self.report("questions_limit", None, String::new(), remedy, about);
            return Some(ToolAnswer::Cancel);
        }
        matches!(self.setup.approval, ApprovalRule::DenyAll { .. }).then_some(ToolAnswer::Decline)
    }

    fn ask_for_tool(&mut self, at: usize, question_id: u64, question: ToolQuestion) {
        let call = &self.record.calls[at];
        let approval_id = ApprovalId::new(format!("{}.q{}", call.id, call.questions + 1));
        let expires_at = self.setup.limits.approval_ms_max.map(|ms| self.now.saturating_add_unsigned(ms));
        let (schema, url) = match question.wants {
            Wants::Form { schema } => (Some(schema), None),
            Wants::Url { url } => (None, Some(url)),
        };
        self.live.tool_questions.insert(approval_id.clone(), question_id);
        let request = EventKind::ApprovalRequest {
            approval_id: approval_id.clone(),
            question: visible::escape_once(&question.message).into_owned(),
            rule: "elicitation".into(),
            expires_at,
            // An answer says nothing about the call: it is bound to the question alone.
            arguments_text: None,
            arguments_hash: String::new(),
            fingerprint: String::new(),
            kind: QuestionKind::Elicitation,
            schema,
            url,
        };
        self.emit(self.about_call(at), request);
        if let Some(at) = expires_at {
            self.timer_at(TimerId::Approval(approval_id), at);
        }
    }

    /// The call that asks this, if it is a question of a tool.
    pub(crate) fn asking(&self, question: &ApprovalId) -> Option<usize> {
        let asks = |asking: &Asking| asking.approval == *question;
        self.record.calls.iter().position(|call| call.asking.as_ref().is_some_and(asks))
    }

    /// The call whose tool asks this, if it is one question of a tool. Answers to all questions are about calls.
    pub(crate) fn asked_by_tool(&self, question: &Question) -> Option<usize> {
        match question {
            Question::One(id) => self.asking(id),
            Question::All => None,
        }
    }

    /// A person answers a tool's question. One that is not open changes nothing.
    pub(crate) fn tool_question_answered(&mut self, question: &ApprovalId, answer: ToolAnswer, by: &str) {
        if let Some(at) = self.asking(question) {
            self.resolve_question(at, answer, by, None);
        }
    }

    /// A person who knows approvals only answers: a denial is one here too; an approval is one where nothing has to be
    /// filled in.
    pub(crate) fn answered_as_approval(
        &mut self,
        at: usize,
        decision: Decision,
        content: Option<Value>,
        by: &str,
    ) {
        let wants_values = self.record.calls[at].asking.as_ref().is_some_and(|asking| asking.form);
        match decision {
            Decision::Deny => self.resolve_question(at, ToolAnswer::Decline, by, None),
            Decision::Approve if wants_values && content.is_none() => {}
            Decision::Approve => self.resolve_question(at, ToolAnswer::Accept { content }, by, None),
        }
    }

    pub(crate) fn tool_question_expired(&mut self, at: usize) {
        let reason = wording::expired(self.setup.limits.approval_ms_max);
        self.resolve_question(at, ToolAnswer::Decline, "timer", Some(reason));
    }

    /// Nobody will answer any more; nothing happens if nothing is asked.
    pub(crate) fn withdraw_question(&mut self, at: usize, by: &str) {
        self.resolve_question(at, ToolAnswer::Cancel, by, None);
    }

    fn resolve_question(&mut self, at: usize, answer: ToolAnswer, by: &str, reason: Option<String>) {
        let call = &self.record.calls[at];
        let Some(Asking { approval, .. }) = call.asking.clone() else { return };
        let (id, attempt) = (call.id.clone(), call.attempts);
        let (decision, content) = match &answer {
            ToolAnswer::Accept { content } => (Decision::Approve, content.clone()),
            ToolAnswer::Decline | ToolAnswer::Cancel => (Decision::Deny, None),
        };
        let resolved = EventKind::ApprovalResolved {
            approval_id: approval.clone(),
            decision,
            by: by.to_owned(),
            reason,
            arguments: None,
            arguments_diff: None,
            remember: None,
            remembered: None,
            answer: Some(answer.word().to_owned()),
            content,
        };
        self.emit(self.about_call(at), resolved);
        // Unknown after a takeover: the tool that asked is gone.
        if let Some(question_id) = self.live.tool_questions.remove(&approval) {
            self.act(Action::AnswerTool { call: id.clone(), attempt, question_id, answer });
        }
        if let Some(due) = self.tool_due(at) {
            self.timer_at(TimerId::Tool { call: id, attempt }, due);
        }
    }

    // --- time that stands still ---

    /// When the machine gives a running tool up: its limit, the time that its executor may take to say so, and the time
    /// that people were asked.
    pub(crate) fn tool_due(&self, at: usize) -> Option<Millis> {
        let call = &self.record.calls[at];
        let CallState::Running { since } = call.state else { return None };
        let tool = self.tool_of(at)?;
        let grace_ms = match tool.runs {
            Runs::Client { .. } | Runs::Requester => 0,
            Runs::Here => self.setup.limits.tool_overrun_ms,
        };
        let cap = self.setup.limits.asked_ms_max;
        let stood = match call.asking {
            Some(_) => cap,
            None => call.asked_ms.min(cap),
        };
        Some(since.saturating_add_unsigned(tool.timeout_ms.saturating_add(grace_ms).saturating_add(stood)))
    }
}
