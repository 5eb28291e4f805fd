//! Questions to people about calls, and what the answers are bound to.
//!
//! An answer holds for one call of ours, for the arguments that were shown and for the definition of the tool that was
//! asked about. If one of them changes, it answers nothing any more and the call asks again: [`ApprovalAnswer::applies_to`] is
//! looked at right before the start. Nothing that a model or upstream can choose is a key.
//!
//! [`ApprovalAnswer::applies_to`]: crate::record::ApprovalAnswer::applies_to
// R: A2, A3, A4

use crate::action::TurnAction;
use crate::canonical;
use crate::diff;
use crate::event::{ApprovalDecision, EventKind, QuestionKind};
use crate::id::ApprovalId;
use crate::input::{ApprovalTarget, ArgumentValidation, TimerId};
use crate::policy::{self, ConfirmMode, PolicyCase, PolicyDecision, RememberRequest, RememberedDecision};
use crate::record::CallState;
use crate::setup::OfferedTool;
use crate::turn::{ArgumentCheck, CheckSubject, PendingEdit, TurnMachine};
use crate::wording;
use throughline_wire::{CallArguments, CallId, CallOutcome, StartState, ToolName, visible};

/// An answer to a question about a call.
pub(crate) struct ApprovalInput {
    pub decision: ApprovalDecision,
    pub by: String,
    pub reason: Option<String>,
    pub arguments_hash: Option<String>,
    pub arguments: Option<serde_json::Value>,
    pub remember: Option<RememberRequest>,
}

impl ApprovalInput {
    /// No, without a person's doing.
    pub(crate) fn denial(by: &str, reason: Option<String>) -> Self {
        Self::new(ApprovalDecision::Deny, by, reason)
    }

    fn new(decision: ApprovalDecision, by: &str, reason: Option<String>) -> Self {
        Self { decision, by: by.into(), reason, arguments_hash: None, arguments: None, remember: None }
    }
}

impl TurnMachine<'_> {
    // --- what is decided about ---

    /// A call as policy sees it; nothing, if there is no tool or nothing to run it with.
    pub(crate) fn case(&self, at: usize) -> Option<PolicyCase<'_>> {
        let tool = self.tool_of(at)?;
        let arguments = self.record.calls[at].effective_arguments()?;
        Some(PolicyCase { tool, fingerprint: self.record.fingerprint_of(tool), arguments })
    }

    /// Applies rules and remembered decisions.
    pub(crate) fn evaluate_policy(&self, case: &PolicyCase<'_>) -> PolicyDecision {
        let remembered = self.setup.remembered.iter().chain(&self.record.remembered_decisions);
        policy::evaluate(case, &self.setup.policy, remembered)
    }

    // --- asking ---

    pub(crate) fn request_approval(&mut self, at: usize, rule: String, question: String) {
        let Some(case) = self.case(at) else { return };
        let (fingerprint, arguments_hash) =
            (case.fingerprint.to_owned(), canonical::arguments_hash(case.arguments));
        let arguments_text = visible::json(&case.arguments.value);
        let call = &self.record.calls[at];
        let approval_id = ApprovalId::new(format!("{}.a{}", call.id, call.questions + 1));
        // R: T3: who wants to see every call is not hurried.
        let limit =
            self.setup.limits.approval_ms_max.filter(|_| self.setup.policy.confirm != ConfirmMode::Manual);
        let expires_at = limit.map(|ms| self.now.saturating_add_unsigned(ms));
        let request = EventKind::ApprovalRequest {
            approval_id: approval_id.clone(),
            kind: QuestionKind::Call,
            question,
            rule,
            expires_at,
            arguments_text: Some(arguments_text),
            arguments_hash,
            fingerprint,
            schema: None,
            url: None,
        };
        self.emit(self.call_target(at), request);
        if let Some(at) = expires_at {
            self.set_timer(TimerId::Approval(approval_id), at);
        }
    }

    // --- answers ---

    pub(crate) fn apply_approval(&mut self, question: &ApprovalTarget, input: &ApprovalInput) {
        let open_calls: Vec<usize> = (0..self.record.calls.len())
            .filter(|at| match (&self.record.calls[*at].state, question) {
                (CallState::AwaitingApproval { approval, .. }, ApprovalTarget::One(id)) => approval == id,
                (CallState::AwaitingApproval { .. }, ApprovalTarget::All) => true,
                _ => false,
            })
            .collect();
        for at in open_calls {
            // Arguments for all calls would be the wrong ones for most.
            if input.arguments.is_some() && *question == ApprovalTarget::All {
                self.reject_answer(at, "invalid_edit", wording::edit_of_all());
                continue;
            }
            self.answer_call(at, input);
        }
    }

    fn answer_call(&mut self, at: usize, input: &ApprovalInput) {
        let CallState::AwaitingApproval { approval, arguments_hash, .. } = &self.record.calls[at].state
        else {
            return;
        };
        if input.arguments_hash.as_ref().is_some_and(|hash| hash != arguments_hash) {
            self.reject_answer(at, "stale_answer", wording::stale_answer());
            return;
        }
        let approval = approval.clone();
        let edited = input.arguments.as_ref().filter(|_| input.decision == ApprovalDecision::Approve);
        let shown = self.record.calls[at].effective_arguments().map(|shown| &shown.value);
        match edited.filter(|edited| shown != Some(*edited)) {
            Some(edited) => {
                self.validate_edit(at, approval, CallArguments::from_value(edited.clone()), input)
            }
            None => self.resolve(at, input, None),
        }
    }

    /// Changed arguments are checked like those of a model before they count.
    fn validate_edit(
        &mut self,
        at: usize,
        approval: ApprovalId,
        arguments: CallArguments,
        input: &ApprovalInput,
    ) {
        let Some(case) = self.case(at) else { return };
        if let PolicyDecision::Deny { reason, .. } =
            self.evaluate_policy(&PolicyCase { arguments: &arguments, ..case })
        {
            self.reject_answer(at, "invalid_edit", reason);
            return;
        }
        let edit = PendingEdit {
            approval,
            arguments: arguments.clone(),
            by: input.by.clone(),
            reason: input.reason.clone(),
            remember: input.remember.clone(),
        };
        self.request_validation(at, arguments, CheckSubject::Edit(Box::new(edit)));
    }

    /// Asks for a check of arguments.
    pub(crate) fn request_validation(&mut self, at: usize, arguments: CallArguments, subject: CheckSubject) {
        let (Some(tool), call) = (self.tool_of(at), &self.record.calls[at]) else { return };
        let (tool, call) = (tool.name.clone(), call.id.clone());
        let version = self.volatile.checks_requested;
        self.volatile.checks_requested += 1;
        let check = ArgumentCheck { version, subject, validation: None };
        match check.subject {
            CheckSubject::Arguments(_) => self.volatile.checks.insert(call.clone(), check),
            CheckSubject::Edit(_) => self.volatile.edits.insert(call.clone(), check),
        };
        self.push_action(TurnAction::Validate { call, version, tool, arguments });
    }

    pub(crate) fn validated(&mut self, call: &CallId, version: u32, verdict: ArgumentValidation) {
        if let Some(check) = self.volatile.checks.get_mut(call)
            && check.version == version
        {
            check.validation.get_or_insert(verdict);
            return;
        }
        if self.volatile.edits.get(call).is_none_or(|check| check.version != version) {
            return;
        }
        let Some(ArgumentCheck { subject: CheckSubject::Edit(edit), .. }) = self.volatile.edits.remove(call)
        else {
            return;
        };
        // Somebody else may have answered meanwhile, or time has.
        let is_open = |at: &usize| match &self.record.calls[*at].state {
            CallState::AwaitingApproval { approval, .. } => *approval == edit.approval,
            _ => false,
        };
        let Some(at) = self.record.find_call(call).filter(is_open) else { return };
        match verdict {
            ArgumentValidation::Valid => {
                let mut input = ApprovalInput::new(ApprovalDecision::Approve, &edit.by, edit.reason);
                input.remember = edit.remember;
                self.resolve(at, &input, Some(edit.arguments));
            }
            ArgumentValidation::Invalid { message } => self.reject_answer(at, "invalid_edit", message),
        }
    }

    /// Records an answer; a denial closes the call in the same breath.
    pub(crate) fn resolve(&mut self, at: usize, input: &ApprovalInput, edited: Option<CallArguments>) {
        let CallState::AwaitingApproval { approval, .. } = &self.record.calls[at].state else { return };
        let approval_id = approval.clone();
        let ApprovalInput { decision, by, reason, .. } = input;
        let remembered = input
            .remember
            .as_ref()
            .and_then(|remember| self.decision_to_remember(at, remember, input, &edited));
        if let Some(Err(why)) = &remembered {
            self.reject_answer(at, "not_remembered", why.clone());
        }
        let remembered = remembered.and_then(Result::ok).flatten();
        let written = self.record.calls[at].original_arguments().map(|arguments| &arguments.value);
        let arguments_diff = match (&edited, written) {
            (Some(edited), Some(written)) => Some(diff::changes(written, &edited.value)),
            _ => None,
        };
        let is_edited = edited.is_some();
        let resolved = EventKind::ApprovalResolved {
            approval_id,
            decision: *decision,
            by: by.clone(),
            reason: reason.clone(),
            arguments: edited.map(|edited| edited.value),
            arguments_diff,
            remember: match (&remembered, &input.remember) {
                (Some(remembered), _) => Some(remembered.scope.name().to_owned()),
                (None, Some(remember)) if remember.scope == policy::ApprovalScope::Call => {
                    Some("call".to_owned())
                }
                (None, _) => None,
            },
            remembered: remembered.clone().map(Box::new),
            answer: None,
            content: None,
        };
        self.emit(self.call_target(at), resolved);
        if is_edited {
            // It has just been checked.
            let call = &self.record.calls[at];
            let check = ArgumentCheck {
                version: self.volatile.checks_requested,
                subject: CheckSubject::Arguments(call.version),
                validation: Some(ArgumentValidation::Valid),
            };
            self.volatile.checks_requested += 1;
            self.volatile.checks.insert(call.id.clone(), check);
        }
        if *decision == ApprovalDecision::Deny && !matches!(by.as_str(), "stop" | "cancel") {
            self.close(at, CallOutcome::Denied { reason: reason.clone() });
        }
        if remembered.is_some() {
            self.apply_remembered();
        }
    }

    /// Computes the decision to remember, or the reason why it cannot be remembered.
    fn decision_to_remember(
        &self,
        at: usize,
        remember: &RememberRequest,
        input: &ApprovalInput,
        edited: &Option<CallArguments>,
    ) -> Option<Result<Option<RememberedDecision>, String>> {
        let case = self.case(at)?;
        let case = PolicyCase { arguments: edited.as_ref().unwrap_or(case.arguments), ..case };
        let decision =
            RememberedDecision::from_answer(remember, &case, input.decision, input.reason.as_deref());
        let rule = self.record.calls[at].rule.as_deref().unwrap_or_default();
        Some(match decision {
            Some(_) if input.decision == ApprovalDecision::Approve && !policy::may_be_remembered(rule) => {
                Err(wording::asks_each_time(rule))
            }
            Some(decision) if !decision.applies_to(&case) => Err(wording::constraints_do_not_fit()),
            decision => Ok(decision),
        })
    }

    /// Questions that are open and that what was just remembered answers.
    fn apply_remembered(&mut self) {
        for at in 0..self.record.calls.len() {
            if !matches!(self.record.calls[at].state, CallState::AwaitingApproval { .. }) {
                continue;
            }
            let Some(case) = self.case(at) else { continue };
            let by_loop_guard = self.record.calls[at].rule.as_deref() == Some(policy::rule_name::LOOP_GUARD);
            let input = match self.evaluate_policy(&case) {
                PolicyDecision::Allow { .. } if !by_loop_guard => {
                    ApprovalInput::new(ApprovalDecision::Approve, "remembered", None)
                }
                PolicyDecision::Deny { reason, .. } => ApprovalInput::denial("remembered", Some(reason)),
                PolicyDecision::Allow { .. } | PolicyDecision::Ask { .. } => continue,
            };
            self.resolve(at, &input, None);
        }
    }

    pub(crate) fn approval_expired(&mut self, approval: &ApprovalId) {
        let reason = Some(wording::expired(self.setup.limits.approval_ms_max));
        self.apply_approval(&ApprovalTarget::One(approval.clone()), &ApprovalInput::denial("timer", reason));
    }

    /// Tells people what is wrong with an answer; the question stays open.
    fn reject_answer(&mut self, at: usize, code: &str, why: String) {
        let remedy = Some(wording::answer_again().to_owned());
        let problem = EventKind::Problem { code: code.into(), at: None, excerpt: why, remedy };
        self.emit(self.call_target(at), problem);
    }

    // --- tools that change meanwhile ---

    /// A tool is no longer what it was when it was offered: what was said about it answers nothing any more, and
    /// `start` was not made.
    pub(crate) fn tool_redefined(
        &mut self,
        tool: &ToolName,
        fingerprint: &str,
        start: Option<(CallId, u32)>,
    ) {
        let is_redefined = |offered: &OfferedTool| offered.name == *tool;
        let Some(tool_position) = self.setup.tools.iter().position(is_redefined) else { return };
        let start = start.and_then(|(call, attempt)| Some((self.running_call(&call, attempt)?, attempt)));
        if start.is_none() && self.record.fingerprint_of(&self.setup.tools[tool_position]) == fingerprint {
            return;
        }
        let affected: Vec<usize> = (0..self.record.calls.len())
            .filter(|at| {
                let call = &self.record.calls[*at];
                let is_waiting = matches!(call.state, CallState::Sealed | CallState::AwaitingApproval { .. });
                let is_starting = start.is_some_and(|(starting, _)| starting == *at);
                call.tool == Some(tool_position) && !call.hosted && (is_waiting || is_starting)
            })
            .collect();
        let event = |attempt| EventKind::ToolRedefined {
            tool_name: tool.clone(),
            fingerprint: fingerprint.to_owned(),
            attempt,
        };
        if affected.is_empty() {
            self.emit(self.step_target(), event(None));
        }
        for at in affected {
            let attempt = start.filter(|(starting, _)| *starting == at).map(|(_, attempt)| attempt);
            self.emit(self.call_target(at), event(attempt));
            let id = self.record.calls[at].id.clone();
            self.volatile.edits.remove(&id);
            match attempt {
                // It was to be stopped, and never began.
                Some(attempt) if self.volatile.cancelled_starts.contains(&(id, attempt)) => {
                    self.close(at, CallOutcome::Cancelled(StartState::No));
                }
                // The schema may be another one.
                _ => self.arguments_sealed(at),
            }
        }
    }
}
