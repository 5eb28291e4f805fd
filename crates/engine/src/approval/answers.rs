//! Questions to people about calls, and what the answers are bound to.
//!
//! An answer holds for one call of ours, for the arguments that were shown and for the definition of the tool
//! that was asked about. If one of them changes, the answer is void and the call asks again:
//! [`ApprovalAnswer::applies_to`] is checked right before the start. No key can be chosen by a model or an
//! upstream.
//!
//! [`ApprovalAnswer::applies_to`]: crate::record::ApprovalAnswer::applies_to

use crate::action::TurnAction;
use crate::event::{EventKind, QuestionKind};
use crate::id::ApprovalId;
use crate::input::{ApprovalTarget, ArgumentValidation, TimerId};
use crate::machine::{ArgumentCheck, CheckSubject, PendingEdit, TurnMachine};
use crate::policy::address::{NamingTexts, shown_host};
use crate::policy::{
    self, ApprovalDecision, ApprovalScope, ArgumentConstraints, ArgumentTest, ConfirmMode, PolicyDecision,
    PolicyInput, RememberRequest, RememberedDecision,
};
use crate::record::{CallHandle, CallTarget, OpenApproval};
use crate::text::canonical;
use crate::text::diff;
use crate::tool::{AddressRole, OfferedTool};
use crate::wording;
use std::collections::BTreeMap;
use throughline_wire::{
    CallArguments, CallId, CallOutcome, Message, StartState, ToolName, UserPart, display_escape,
};

/// An answer to a question about a call.
pub(crate) struct ApprovalInput {
    pub decision: ApprovalDecision,
    pub by: String,
    pub reason: Option<String>,
    pub arguments_hash: Option<String>,
    pub arguments: Option<serde_json::Value>,
    pub remember: Option<RememberRequest>,
    /// With a denial: the turn stops.
    pub stop: bool,
}

impl ApprovalInput {
    /// No, without a person's doing.
    pub(crate) fn denial(by: &str, reason: Option<String>) -> Self {
        Self::new(ApprovalDecision::Deny, by, reason)
    }

    fn new(decision: ApprovalDecision, by: &str, reason: Option<String>) -> Self {
        let (arguments_hash, arguments, remember) = (None, None, None);
        Self { decision, by: by.into(), reason, arguments_hash, arguments, remember, stop: false }
    }

    /// A denial after which the turn does not continue.
    pub(crate) fn stops_turn(&self) -> bool {
        self.stop && self.decision == ApprovalDecision::Deny
    }
}

impl TurnMachine<'_> {
    // --- input of the decision ---

    /// A call as policy sees it; nothing, if there is no tool or nothing to run it with.
    pub(crate) fn case(&self, handle: CallHandle) -> Option<PolicyInput<'_>> {
        let tool = self.tool_of(handle)?;
        let arguments = self.record.call(handle).effective_arguments()?;
        Some(PolicyInput { tool, fingerprint: self.record.fingerprint_of(tool), arguments })
    }

    /// Applies rules and remembered decisions.
    pub(crate) fn evaluate_policy(&self, case: &PolicyInput<'_>) -> PolicyDecision {
        let remembered = self.setup.remembered.iter().chain(&self.record.remembered_decisions);
        let texts = match case.tool.addresses {
            AddressRole::Visits(_) => self.naming_texts(),
            AddressRole::None | AddressRole::Names => NamingTexts::default(),
        };
        policy::evaluate(case, &self.setup.policy, remembered, &texts)
    }

    /// All texts of this conversation so far that may have named a host.
    fn naming_texts(&self) -> NamingTexts<'_> {
        let setup = self.setup;
        let (prompt, tools) = (setup.instructions.as_deref(), setup.tools.as_slice());
        let mut texts = NamingTexts { prompt, tools, ..NamingTexts::default() };
        let names =
            |tool: Option<&OfferedTool>| tool.is_some_and(|tool| tool.addresses == AddressRole::Names);
        for message in &self.setup.history {
            match message {
                Message::User(parts) => texts.messages.extend(texts_of(parts)),
                Message::Step(step) => {
                    for (call, outcome) in &step.calls {
                        let tool = self.setup.tools.iter().find(|tool| tool.wire_name == call.name);
                        texts.results.extend(output_of(outcome).filter(|_| names(tool)));
                    }
                }
            }
        }
        texts.messages.extend(texts_of(&self.start.input));
        texts.messages.extend(self.record.delivered_messages().flat_map(|message| texts_of(&message.input)));
        for handle in self.record.calls.handles() {
            let outcome = self.record.call(handle).closed().map(|closed| &closed.outcome);
            texts.results.extend(outcome.and_then(output_of).filter(|_| names(self.tool_of(handle))));
        }
        texts
    }

    // --- asking ---

    pub(crate) fn request_approval(&mut self, handle: CallHandle, rule: String, question: String) {
        let Some(case) = self.case(handle) else { return };
        let (fingerprint, arguments_hash) =
            (case.fingerprint.to_owned(), canonical::arguments_hash(case.arguments));
        let arguments_text = display_escape::json(&case.arguments.value);
        let call = self.record.call(handle);
        let approval_id = ApprovalId::new(format!("{}.a{}", call.id, call.questions + 1));
        // Who wants to see every call is not hurried.
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
        self.emit(self.call_target(handle), request);
        if let Some(at) = expires_at {
            self.set_timer(TimerId::Approval(approval_id), at);
        }
    }

    // --- answers ---

    pub(crate) fn apply_approval(&mut self, question: &ApprovalTarget, input: &ApprovalInput) {
        let is_meant = |open: &OpenApproval| match question {
            ApprovalTarget::One(id) => open.approval_id == *id,
            ApprovalTarget::All => true,
        };
        let mut open_calls = self.record.calls.select(|call| call.open_approval().is_some_and(is_meant));
        if input.stops_turn() {
            open_calls.retain(|handle| self.answers_what_was_shown(*handle, input));
            if open_calls.is_empty() {
                return;
            }
            self.stop_by_denial();
        }
        for handle in open_calls {
            // Arguments for all calls would be the wrong ones for most.
            if input.arguments.is_some() && *question == ApprovalTarget::All {
                self.reject_answer(handle, "invalid_edit", wording::edit_of_all());
                continue;
            }
            self.answer_call(handle, input);
        }
    }

    /// A denial with `stop`. The notice of the stop precedes the answer in the log: with any last event
    /// before a crash, a denial that was to end the turn never leads to another request.
    pub(crate) fn stop_by_denial(&mut self) {
        if !self.record.is_stopping() {
            self.cancel(wording::stopped());
        }
    }

    /// True if the answer is about the arguments that would run; otherwise its sender is informed.
    fn answers_what_was_shown(&mut self, handle: CallHandle, input: &ApprovalInput) -> bool {
        let Some(open) = self.record.call(handle).open_approval() else { return false };
        let is_stale = input.arguments_hash.as_ref().is_some_and(|hash| *hash != open.arguments_hash);
        if is_stale {
            self.reject_answer(handle, "stale_answer", wording::stale_answer());
        }
        !is_stale
    }

    fn answer_call(&mut self, handle: CallHandle, input: &ApprovalInput) {
        if !self.answers_what_was_shown(handle, input) {
            return;
        }
        let Some(open) = self.record.call(handle).open_approval() else { return };
        let approval = open.approval_id.clone();
        let edited = input.arguments.as_ref().filter(|_| input.decision == ApprovalDecision::Approve);
        let shown = self.record.call(handle).effective_arguments().map(|shown| &shown.value);
        match edited.filter(|edited| shown != Some(*edited)) {
            Some(edited) => {
                self.validate_edit(handle, approval, CallArguments::from_value(edited.clone()), input)
            }
            None => self.resolve(handle, input, None),
        }
    }

    /// Changed arguments are checked like those of a model before they count.
    fn validate_edit(
        &mut self,
        handle: CallHandle,
        approval: ApprovalId,
        arguments: CallArguments,
        input: &ApprovalInput,
    ) {
        let Some(case) = self.case(handle) else { return };
        if let PolicyDecision::Deny { reason, .. } =
            self.evaluate_policy(&PolicyInput { arguments: &arguments, ..case })
        {
            self.reject_answer(handle, "invalid_edit", reason);
            return;
        }
        let edit = PendingEdit {
            approval,
            arguments: arguments.clone(),
            by: input.by.clone(),
            reason: input.reason.clone(),
            remember: input.remember.clone(),
        };
        self.request_validation(handle, arguments, CheckSubject::Edit(Box::new(edit)));
    }

    /// Asks for a check of arguments.
    pub(crate) fn request_validation(
        &mut self,
        handle: CallHandle,
        arguments: CallArguments,
        subject: CheckSubject,
    ) {
        let (Some(tool), call) = (self.tool_of(handle), self.record.call(handle)) else { return };
        let by_client = tool.runs.is_connected_client();
        let fingerprint = by_client.then(|| self.record.fingerprint_of(tool).to_owned());
        let (tool, call) = (tool.name.clone(), call.id.clone());
        let version = self.volatile.checks_requested;
        self.volatile.checks_requested += 1;
        let is_edit = matches!(subject, CheckSubject::Edit(_));
        let check = ArgumentCheck::new(version, subject);
        match check.subject {
            CheckSubject::Arguments(_) => self.volatile.checks.insert(call.clone(), check),
            CheckSubject::Edit(_) => self.volatile.edits.insert(call.clone(), check),
        };
        self.push_action(TurnAction::Validate { call, version, tool, arguments, fingerprint, is_edit });
    }

    pub(crate) fn validated(&mut self, call: &CallId, version: u32, verdict: ArgumentValidation) {
        if let Some(check) = self.volatile.checks.get_mut(call)
            && check.version == version
        {
            if check.validation.is_none() {
                check.validation = Some(verdict);
                self.volatile.just_checked = Some(call.clone());
            }
            return;
        }
        if self.volatile.edits.get(call).is_none_or(|check| check.version != version) {
            return;
        }
        let Some(ArgumentCheck { subject: CheckSubject::Edit(edit), .. }) = self.volatile.edits.remove(call)
        else {
            return;
        };
        // Another person may have answered in the meantime, or the request has expired.
        let is_open = |handle: &CallHandle| {
            let open = self.record.call(*handle).open_approval();
            open.is_some_and(|open| open.approval_id == edit.approval)
        };
        let Some(handle) = self.record.find_call(call).filter(is_open) else { return };
        match verdict {
            ArgumentValidation::Valid => {
                let mut input = ApprovalInput::new(ApprovalDecision::Approve, &edit.by, edit.reason);
                input.remember = edit.remember;
                self.volatile.just_checked = Some(call.clone());
                self.resolve(handle, &input, Some(edit.arguments));
            }
            ArgumentValidation::Invalid { message } => self.reject_answer(handle, "invalid_edit", message),
            ArgumentValidation::NoViewer => {
                self.reject_answer(handle, "invalid_edit", wording::edit_without_client().to_owned());
            }
        }
    }

    /// Records an answer; a denial closes the call in the same breath.
    pub(crate) fn resolve(
        &mut self,
        handle: CallHandle,
        input: &ApprovalInput,
        edited: Option<CallArguments>,
    ) {
        let Some(open) = self.record.call(handle).open_approval() else { return };
        let approval_id = open.approval_id.clone();
        let ApprovalInput { decision, by, reason, .. } = input;
        let remember = input.remember.clone().or_else(|| self.host_to_remember(handle, input, &edited));
        let remembered = remember
            .as_ref()
            .and_then(|remember| self.decision_to_remember(handle, remember, input, &edited));
        if let Some(Err(why)) = &remembered {
            self.reject_answer(handle, "not_remembered", why.clone());
        }
        let remembered = remembered.and_then(Result::ok).flatten();
        let written = self.record.call(handle).original_arguments().map(|arguments| &arguments.value);
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
            remember: match (&remembered, &remember) {
                (Some(remembered), _) => Some(remembered.scope.name().to_owned()),
                (None, Some(remember)) if remember.scope == policy::ApprovalScope::Call => {
                    Some("call".to_owned())
                }
                (None, _) => None,
            },
            remembered: remembered.clone().map(Box::new),
            answer: None,
            content: None,
            stop: input.stops_turn(),
        };
        self.emit(self.call_target(handle), resolved);
        if is_edited {
            // It has just been checked.
            let call = self.record.call(handle);
            let subject = CheckSubject::Arguments(call.version);
            let mut check = ArgumentCheck::new(self.volatile.checks_requested, subject);
            check.validation = Some(ArgumentValidation::Valid);
            self.volatile.checks_requested += 1;
            self.volatile.checks.insert(call.id.clone(), check);
        }
        if *decision == ApprovalDecision::Deny && !matches!(by.as_str(), "stop" | "cancel") {
            self.close(handle, CallOutcome::Denied { reason: reason.clone() });
        }
        if remembered.is_some() {
            self.apply_remembered();
        }
    }

    /// An approval of a call to an unnamed host names that host: it is asked about once in a conversation.
    fn host_to_remember(
        &self,
        handle: CallHandle,
        input: &ApprovalInput,
        edited: &Option<CallArguments>,
    ) -> Option<RememberRequest> {
        let is_about_host = self.record.call(handle).rule() == Some(policy::rule_name::UNNAMED_HOST);
        let case =
            self.case(handle).filter(|_| is_about_host && input.decision == ApprovalDecision::Approve)?;
        let AddressRole::Visits(rule) = &case.tool.addresses else { return None };
        let arguments = edited.as_ref().unwrap_or(case.arguments);
        let host = shown_host(arguments.value.get(&rule.argument)?.as_str()?);
        // An address that programs read in different ways names no host: the answer holds for it alone.
        let constraints = host.map_or(ArgumentConstraints::Exact, |host| {
            let test = ArgumentTest::Host(host);
            ArgumentConstraints::Arguments(BTreeMap::from([(rule.argument.clone(), test)]))
        });
        Some(RememberRequest { scope: ApprovalScope::Conversation, constraints })
    }

    /// Computes the decision to remember, or the reason why it cannot be remembered.
    fn decision_to_remember(
        &self,
        handle: CallHandle,
        remember: &RememberRequest,
        input: &ApprovalInput,
        edited: &Option<CallArguments>,
    ) -> Option<Result<Option<RememberedDecision>, String>> {
        let case = self.case(handle)?;
        let case = PolicyInput { arguments: edited.as_ref().unwrap_or(case.arguments), ..case };
        // The question was about other arguments if they were edited.
        let asked = self.record.call(handle).open_approval().map(|open| open.asked.as_str());
        let asked = asked.filter(|_| edited.is_none());
        let reason = input.reason.as_deref();
        let decision = RememberedDecision::from_answer(remember, &case, input.decision, reason, asked);
        let rule = self.record.call(handle).rule().unwrap_or_default();
        Some(match decision {
            Some(_) if input.decision == ApprovalDecision::Approve && !policy::may_be_remembered(rule) => {
                Err(wording::asks_each_time(rule))
            }
            Some(decision) if !decision.applies_to(&case) => Err(wording::constraints_do_not_fit()),
            decision => Ok(decision),
        })
    }

    /// Resolves open questions that the decision just remembered applies to.
    fn apply_remembered(&mut self) {
        for handle in self.record.calls.handles() {
            if self.record.call(handle).open_approval().is_none() {
                continue;
            }
            let Some(case) = self.case(handle) else { continue };
            let by_loop_guard = self.record.call(handle).rule() == Some(policy::rule_name::LOOP_GUARD);
            let input = match self.evaluate_policy(&case) {
                PolicyDecision::Allow { .. } if !by_loop_guard => {
                    ApprovalInput::new(ApprovalDecision::Approve, "remembered", None)
                }
                PolicyDecision::Deny { reason, .. } => ApprovalInput::denial("remembered", Some(reason)),
                PolicyDecision::Allow { .. } | PolicyDecision::Ask { .. } => continue,
            };
            self.resolve(handle, &input, None);
        }
    }

    pub(crate) fn approval_expired(&mut self, approval: &ApprovalId) {
        let reason = Some(wording::expired(self.setup.limits.approval_ms_max));
        self.apply_approval(&ApprovalTarget::One(approval.clone()), &ApprovalInput::denial("timer", reason));
    }

    /// Reports an invalid answer to people; the question stays open.
    fn reject_answer(&mut self, handle: CallHandle, code: &str, why: String) {
        let remedy = Some(wording::answer_again().to_owned());
        let problem = EventKind::Problem { code: code.into(), at: None, excerpt: why, remedy };
        self.emit(self.call_target(handle), problem);
    }

    // --- tools that change during the turn ---

    /// The definition of a tool has changed since it was offered: earlier answers about it no longer hold,
    /// and `start` was not made.
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
        let affected: Vec<CallHandle> = (self.record.calls.handles())
            .filter(|handle| {
                let call = self.record.call(*handle);
                let is_waiting = call.is_sealed() || call.open_approval().is_some();
                let is_starting = start.is_some_and(|(starting, _)| starting == *handle);
                call.target == CallTarget::Offered(tool_position) && (is_waiting || is_starting)
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
        for handle in affected {
            let attempt = start.filter(|(starting, _)| *starting == handle).map(|(_, attempt)| attempt);
            if attempt.is_some() {
                // A start that was not made has no question.
                self.withdraw_question(handle, "reset");
            }
            self.emit(self.call_target(handle), event(attempt));
            let id = self.record.call(handle).id.clone();
            self.volatile.edits.remove(&id);
            match attempt {
                // It was to be stopped, and never began.
                Some(attempt) if self.volatile.cancelled_starts.contains(&(id, attempt)) => {
                    self.close(handle, CallOutcome::Cancelled(StartState::No));
                }
                // The schema may be another one.
                _ => self.arguments_sealed(handle),
            }
        }
    }
}

fn texts_of(parts: &[UserPart]) -> impl Iterator<Item = &str> {
    parts.iter().filter_map(|part| match part {
        UserPart::Text { text } => Some(text.as_str()),
        UserPart::Image(_) | UserPart::File { .. } => None,
    })
}

fn output_of(outcome: &CallOutcome) -> Option<&str> {
    if let CallOutcome::Done(output) = outcome { Some(&output.text) } else { None }
}
