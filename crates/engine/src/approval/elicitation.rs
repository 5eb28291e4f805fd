//! Questions that a running tool asks (elicitation): a wait of the machine, like an approval.
//!
//! | cause | answer to the tool |
//! |---|---|
//! | a person's answer | that answer; its values were already checked against the schema |
//! | the end of `approval_ms_max` | declined |
//! | a stop, the end of the call, a contradiction of its arguments | cancelled |
//! | no person can be asked ([`ApprovalRule::DenyAll`]) | declined immediately, no event |
//! | a second question during an open one, or one over `questions_per_call_max` | cancelled immediately |
//!
//! While a person is asked, the time limit of the call is paused, for `asked_ms_max` over all its questions.
//! A question is lost with the process that ran the tool: its call is settled like every other that ran
//! there.

use crate::action::TurnAction;
use crate::approval::answers::ApprovalInput;
use crate::event::{EventKind, QuestionKind};
use crate::id::{ApprovalId, UnixMillis};
use crate::input::{ApprovalTarget, ElicitationMode, TimerId, ToolAnswer, ToolQuestion};
use crate::machine::TurnMachine;
use crate::policy::{ApprovalDecision, ApprovalRule};
use crate::record::{CallHandle, CallRecord};
use crate::tool::CallRunner;
use crate::wording;
use throughline_wire::{CallId, display_escape};

impl TurnMachine<'_> {
    pub(crate) fn tool_question_asked(
        &mut self,
        call: &CallId,
        attempt: u32,
        question_id: u64,
        question: ToolQuestion,
    ) {
        let answer = match self.running_call(call, attempt) {
            None => ToolAnswer::Cancel,
            Some(handle) => match self.automatic_answer(handle) {
                Some(answer) => answer,
                None => return self.ask_person(handle, question_id, question),
            },
        };
        self.push_action(TurnAction::AnswerTool { call: call.clone(), attempt, question_id, answer });
    }

    /// The answer to a question that is not put to anyone.
    fn automatic_answer(&mut self, handle: CallHandle) -> Option<ToolAnswer> {
        let call = self.record.call(handle);
        let stopping = self.record.is_stopping()
            || self.volatile.cancelled_starts.contains(&(call.id.clone(), call.attempts));
        if stopping || call.elicitation().is_some() {
            return Some(ToolAnswer::Cancel);
        }
        if call.tool_questions >= self.setup.limits.questions_per_call_max {
            let target = self.call_target(handle);
            let remedy =
                Some("Raise `questions_per_call_max` if the tool may ask more questions.".to_owned());
            self.report_problem("questions_limit", None, String::new(), remedy, target);
            return Some(ToolAnswer::Cancel);
        }
        matches!(self.setup.approval, ApprovalRule::DenyAll { .. }).then_some(ToolAnswer::Decline)
    }

    fn ask_person(&mut self, handle: CallHandle, question_id: u64, question: ToolQuestion) {
        let call = self.record.call(handle);
        let approval_id = ApprovalId::new(format!("{}.q{}", call.id, call.questions + 1));
        let expires_at = self.setup.limits.approval_ms_max.map(|ms| self.now.saturating_add_unsigned(ms));
        let (schema, url) = match question.mode {
            ElicitationMode::Form { schema } => (Some(schema), None),
            ElicitationMode::Url { url } => (None, Some(url)),
        };
        self.volatile.tool_questions.insert(approval_id.clone(), question_id);
        let request = EventKind::ApprovalRequest {
            approval_id: approval_id.clone(),
            question: display_escape::escape_once(&question.message).into_owned(),
            rule: "elicitation".into(),
            expires_at,
            // An answer is bound to the question alone, not to the call's arguments.
            arguments_text: None,
            arguments_hash: String::new(),
            fingerprint: String::new(),
            kind: QuestionKind::Elicitation,
            schema,
            url,
        };
        self.emit(self.call_target(handle), request);
        if let Some(at) = expires_at {
            self.set_timer(TimerId::Approval(approval_id), at);
        }
    }

    /// The call that asks this, if it is a question of a tool.
    pub(crate) fn call_with_question(&self, question: &ApprovalId) -> Option<CallHandle> {
        let asks_it =
            |call: &CallRecord| call.elicitation().is_some_and(|open| open.approval_id == *question);
        self.record.calls.find(asks_it)
    }

    /// The call whose tool asks this, if it is one question of a tool. Answers to all questions are about calls.
    pub(crate) fn call_of_elicitation(&self, question: &ApprovalTarget) -> Option<CallHandle> {
        match question {
            ApprovalTarget::One(id) => self.call_with_question(id),
            ApprovalTarget::All => None,
        }
    }

    /// A person answers a tool's question. One that is not open changes nothing.
    pub(crate) fn tool_question_answered(&mut self, question: &ApprovalId, answer: ToolAnswer, by: &str) {
        if let Some(handle) = self.call_with_question(question) {
            self.resolve_question(handle, answer, by, None, false);
        }
    }

    /// A person who knows approvals only answers: a denial is one here too; an approval is one where nothing has to be
    /// filled in.
    pub(crate) fn answer_elicitation_by_approval(&mut self, handle: CallHandle, input: ApprovalInput) {
        let needs_values = self.record.call(handle).elicitation().is_some_and(|open| open.needs_values);
        let stops = input.stops_turn();
        let ApprovalInput { decision, by, arguments: content, .. } = input;
        match decision {
            ApprovalDecision::Deny => {
                if stops {
                    self.stop_by_denial();
                }
                self.resolve_question(handle, ToolAnswer::Decline, &by, None, stops);
            }
            ApprovalDecision::Approve if needs_values && content.is_none() => {}
            ApprovalDecision::Approve => {
                self.resolve_question(handle, ToolAnswer::Accept { content }, &by, None, false)
            }
        }
    }

    pub(crate) fn tool_question_expired(&mut self, handle: CallHandle) {
        let reason = wording::expired(self.setup.limits.approval_ms_max);
        self.resolve_question(handle, ToolAnswer::Decline, "timer", Some(reason), false);
    }

    /// Withdraws the open question of a call without an answer; does nothing if there is none.
    pub(crate) fn withdraw_question(&mut self, handle: CallHandle, by: &str) {
        self.resolve_question(handle, ToolAnswer::Cancel, by, None, false);
    }

    fn resolve_question(
        &mut self,
        handle: CallHandle,
        answer: ToolAnswer,
        by: &str,
        reason: Option<String>,
        stop: bool,
    ) {
        let call = self.record.call(handle);
        let Some(approval) = call.elicitation().map(|open| open.approval_id.clone()) else { return };
        let (id, attempt) = (call.id.clone(), call.attempts);
        let (decision, content) = match &answer {
            ToolAnswer::Accept { content } => (ApprovalDecision::Approve, content.clone()),
            ToolAnswer::Decline | ToolAnswer::Cancel => (ApprovalDecision::Deny, None),
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
            answer: Some(answer.action_name().to_owned()),
            content,
            stop,
        };
        self.emit(self.call_target(handle), resolved);
        // Unknown after a takeover: the tool that asked was lost with its process.
        if let Some(question_id) = self.volatile.tool_questions.remove(&approval) {
            self.push_action(TurnAction::AnswerTool { call: id.clone(), attempt, question_id, answer });
        }
        if let Some(deadline) = self.tool_deadline(handle) {
            self.set_timer(TimerId::Tool { call: id, attempt }, deadline);
        }
    }

    // --- paused time limits ---

    /// Time at which the machine gives up on a running tool: its limit, plus the time that its executor may
    /// take to report it, plus the time that people were asked.
    pub(crate) fn tool_deadline(&self, handle: CallHandle) -> Option<UnixMillis> {
        let call = self.record.call(handle);
        let run = call.run()?;
        let tool = self.tool_of(handle)?;
        let grace_ms = match tool.runs {
            CallRunner::Client { .. } | CallRunner::Requester => 0,
            CallRunner::Here => self.setup.limits.tool_overrun_ms,
        };
        let cap = self.setup.limits.asked_ms_max;
        let paused_ms = if run.elicitation.is_some() { cap } else { run.asked_ms.min(cap) };
        Some(
            run.since
                .saturating_add_unsigned(tool.timeout_ms.saturating_add(grace_ms).saturating_add(paused_ms)),
        )
    }
}
