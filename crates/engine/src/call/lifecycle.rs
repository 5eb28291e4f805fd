//! The calls of a step: from final arguments to exactly one outcome.

use crate::action::{CallOfferKind, TurnAction};
use crate::approval::answers::ApprovalInput;
use crate::event::tool_result::{broken_outcome, limit_output};
use crate::event::{CallProgress, EventKind, ToolResult};
use crate::input::{ArgumentValidation, TimerId};
use crate::machine::{ArgumentCheck, CheckSubject, TurnMachine};
use crate::policy::loop_guard;
use crate::policy::{self, ApprovalDecision, PolicyDecision, PolicyInput};
use crate::record::{ApprovalAnswer, CallHandle, CallState, CallTarget, TurnPhase};
use crate::schedule::{self, CommitState, ScheduleStage, ScheduledCall};
use crate::text_rules::{TextFilter, TextRuleRole, TextRuleTarget, select, shown_outcome};
use crate::tool::{AddressRole, CallRunner, Effect, OfferedTool, PollingMode, ToolConcurrency};
use crate::wording;
use std::collections::BTreeMap;
use throughline_wire::{CallId, CallOutcome, NotStarted, SealEvidence, StartState, ToolOutput};

/// Next transition of a sealed call.
enum CallTransition {
    /// Nothing to do now: the call waits.
    Wait,
    /// May start when the schedule allows, by this rule.
    Ready(Option<String>),
    /// Never runs; with the rule, if a rule refused it.
    Refuse(CallOutcome, Option<String>),
    /// A person must be asked.
    Ask { rule: String, question: String },
    /// A look at the declaration of its client comes first.
    Check,
}

impl TurnMachine<'_> {
    // --- without an input ---

    /// While the model talks: calls that may start do.
    pub(crate) fn start_early(&mut self) -> bool {
        self.start_next(CommitState::Open)
    }

    /// After the commit: every call moves towards its outcome. False if all wait for something outside.
    pub(crate) fn settle(&mut self) -> bool {
        for handle in self.calls_of_step() {
            if !self.record.call(handle).is_sealed() {
                continue;
            }
            match self.next_transition(handle, CommitState::Done) {
                CallTransition::Wait | CallTransition::Ready(_) => {}
                CallTransition::Refuse(outcome, rule) => {
                    self.close_with_rule(handle, outcome, rule);
                    return true;
                }
                CallTransition::Ask { rule, question } => {
                    self.request_approval(handle, rule, question);
                    return true;
                }
                CallTransition::Check => {
                    self.arguments_sealed(handle);
                    return true;
                }
            }
        }
        self.start_next(CommitState::Done)
    }

    /// Calls of the current step in recorded order.
    pub(crate) fn calls_of_step(&self) -> Vec<CallHandle> {
        let step = self.record.step();
        let calls = &self.record.calls;
        let mut of_step: Vec<CallHandle> = calls
            .handles()
            .rev()
            .take_while(|handle| calls.get(*handle).step == step)
            .filter(|handle| !calls.get(*handle).is_hosted() && !calls.get(*handle).is_superseded())
            .collect();
        of_step.sort_unstable_by_key(|handle| (calls.get(*handle).recorded_order(), *handle));
        of_step
    }

    fn start_next(&mut self, commit: CommitState) -> bool {
        let order = self.calls_of_step();
        if !order.iter().any(|handle| self.record.call(*handle).is_sealed()) {
            return false;
        }
        let mut scheduled = Vec::with_capacity(order.len());
        let mut rules = BTreeMap::new();
        for handle in &order {
            let stage = match &self.record.call(*handle).state {
                CallState::Preparing(_) => ScheduleStage::NotReady,
                CallState::AwaitingApproval(_) => ScheduleStage::AwaitingApproval,
                CallState::Running(_) if self.runs_on_requester(*handle) => ScheduleStage::Remote,
                CallState::Running(_) => ScheduleStage::Running,
                CallState::Closed(_) => ScheduleStage::Closed,
                CallState::Sealed(_) if self.is_about_to_start(*handle) => ScheduleStage::Running,
                CallState::Sealed(_) => match self.next_transition(*handle, commit) {
                    CallTransition::Ready(rule) => {
                        rules.insert(*handle, rule);
                        ScheduleStage::Ready
                    }
                    CallTransition::Wait
                    | CallTransition::Refuse(..)
                    | CallTransition::Ask { .. }
                    | CallTransition::Check => ScheduleStage::NotReady,
                },
            };
            let tool = self.tool_of(*handle);
            let effect = tool.map_or(Effect::External, |tool| tool.effect);
            scheduled.push(ScheduledCall {
                stage,
                effect,
                concurrency: tool.map_or(&ToolConcurrency::Shared, |tool| &tool.concurrency),
            });
        }
        match schedule::next_start(&scheduled, self.setup.execution) {
            Some(position) => {
                let handle = order[position];
                if self.is_run_by_client(handle) && !self.is_just_checked(handle) {
                    self.check_before_start(handle);
                } else {
                    let rule = rules.remove(&handle).flatten();
                    self.start_tool(handle, commit, rule);
                }
                true
            }
            None => false,
        }
    }

    /// Checks a client's tool once more. The `tool_start` of such a call is its offer, and the first check
    /// may be long ago if the call had to wait for its turn or for a person.
    fn check_before_start(&mut self, handle: CallHandle) {
        self.arguments_sealed(handle);
        if let Some(check) = self.volatile.checks.get_mut(&self.record.call(handle).id) {
            check.is_for_start = true;
        }
    }

    fn is_about_to_start(&self, handle: CallHandle) -> bool {
        self.check_of(handle).is_some_and(|check| check.is_for_start && check.is_open())
    }

    fn is_just_checked(&self, handle: CallHandle) -> bool {
        self.volatile.just_checked.as_ref() == Some(&self.record.call(handle).id)
    }

    fn check_of(&self, handle: CallHandle) -> Option<&ArgumentCheck> {
        self.volatile.check_of(self.record.call(handle))
    }

    fn is_run_by_client(&self, handle: CallHandle) -> bool {
        self.tool_of(handle).is_some_and(|tool| tool.runs.is_connected_client())
    }

    /// True if the requester of the turn runs it.
    fn runs_on_requester(&self, handle: CallHandle) -> bool {
        self.tool_of(handle).is_some_and(|tool| tool.runs == CallRunner::Requester)
    }

    pub(crate) fn tool_of(&self, handle: CallHandle) -> Option<&OfferedTool> {
        match self.record.call(handle).target {
            CallTarget::Offered(tool) => self.setup.tools.get(tool),
            CallTarget::Unknown | CallTarget::Hosted => None,
        }
    }

    /// Decides the next transition of a sealed call, in the order of a person's questions: is it a call at all, is there such
    /// a tool, do the arguments fit, may it run, does it go in circles?
    fn next_transition(&self, handle: CallHandle, commit: CommitState) -> CallTransition {
        let call = self.record.call(handle);
        let refuse = |why| match commit {
            // The upstream may still contradict the arguments; nothing is reported before the commit.
            CommitState::Open => CallTransition::Wait,
            CommitState::Done => CallTransition::Refuse(CallOutcome::NotStarted(why), None),
        };
        if self.record.tools_off_after.is_some_and(|after| call.step > after) {
            return refuse(NotStarted::Limit { limit: "iterations_max".into() });
        }
        if handle.ordinal() >= self.setup.limits.calls_per_turn_max as usize {
            return refuse(NotStarted::Limit { limit: "calls_per_turn_max".into() });
        }
        let Some(input) = call.input() else { return CallTransition::Wait };
        match (&input.arguments, commit) {
            (Ok(_), _) => {}
            (Err((why, _)), CommitState::Done) => return CallTransition::Refuse(broken_outcome(why), None),
            (Err(_), CommitState::Open) => return CallTransition::Wait,
        }
        let Some(tool) = self.tool_of(handle) else { return refuse(self.unknown_tool(&call.wire_name)) };
        if tool.runs == (CallRunner::Client { client_id: None }) {
            return refuse(NotStarted::NoViewer);
        }
        if !tool.effect.may_start_early() && self.record.has_orphans(call.step) {
            return refuse(NotStarted::Refused { message: wording::orphans() });
        }
        if !schedule::may_start(
            tool.effect,
            input.seal.unwrap_or(SealEvidence::Balanced),
            commit,
            self.setup.start,
        ) {
            return CallTransition::Wait;
        }
        match self.check_of(handle).and_then(|check| check.validation.as_ref()) {
            Some(ArgumentValidation::Valid) => {}
            Some(ArgumentValidation::Invalid { message }) => {
                return refuse(NotStarted::InvalidArguments { message: message.clone() });
            }
            // Its client may have come back since.
            Some(ArgumentValidation::NoViewer)
                if commit == CommitState::Done && !self.is_just_checked(handle) =>
            {
                return CallTransition::Check;
            }
            Some(ArgumentValidation::NoViewer) => return refuse(NotStarted::NoViewer),
            None => return CallTransition::Wait,
        }
        self.start_transition(handle, tool, commit)
    }

    fn start_transition(
        &self,
        handle: CallHandle,
        tool: &OfferedTool,
        commit: CommitState,
    ) -> CallTransition {
        let (call, Some(case)) = (self.record.call(handle), self.case(handle)) else {
            return CallTransition::Wait;
        };
        match &call.answer {
            Some(ApprovalAnswer { decision: ApprovalDecision::Deny, reason, .. }) => {
                return CallTransition::Refuse(CallOutcome::Denied { reason: reason.clone() }, None);
            }
            Some(answer) if answer.applies_to(&case) => {
                return CallTransition::Ready(call.rule().map(str::to_owned));
            }
            // It was given for something else: the call asks again.
            Some(_) | None => {}
        }
        let decision = match (self.evaluate_policy(&case), self.check_loop_guard(handle, tool)) {
            (PolicyDecision::Deny { rule, reason }, _) => PolicyDecision::Deny { rule, reason },
            (decision, loop_guard::LoopAction::Run) => decision,
            (_, loop_guard::LoopAction::Ask(_)) => {
                PolicyDecision::Ask { rule: policy::rule_name::LOOP_GUARD.into() }
            }
            (_, loop_guard::LoopAction::Stop(_)) if commit == CommitState::Open => {
                return CallTransition::Wait;
            }
            (_, loop_guard::LoopAction::Stop(_)) => {
                let limit = policy::rule_name::LOOP_GUARD.into();
                return CallTransition::Refuse(CallOutcome::NotStarted(NotStarted::Limit { limit }), None);
            }
        };
        let decision = match decision {
            // It runs where it was declared, and not here.
            PolicyDecision::Ask { .. } if tool.runs == CallRunner::Requester => {
                PolicyDecision::Allow { rule: policy::rule_name::OWN_TOOL.into() }
            }
            decision => decision,
        };
        match (decision.with_approval_rule(&self.setup.approval), commit) {
            (PolicyDecision::Allow { rule }, _) => CallTransition::Ready(Some(rule)),
            (_, CommitState::Open) => CallTransition::Wait,
            (PolicyDecision::Ask { rule }, CommitState::Done) => {
                let question = match (self.check_loop_guard(handle, tool), rule.as_str()) {
                    (loop_guard::LoopAction::Ask(cycle), policy::rule_name::LOOP_GUARD) => {
                        wording::loop_question(tool, cycle)
                    }
                    (_, policy::rule_name::REDEFINED) => wording::redefined_question(tool),
                    (_, policy::rule_name::UNNAMED_HOST) => {
                        wording::unnamed_host_question(tool, case.arguments)
                    }
                    _ => wording::approval_question(tool, Some(case.arguments)),
                };
                CallTransition::Ask { rule, question }
            }
            (PolicyDecision::Deny { rule, reason }, CommitState::Done) => {
                let reason = match &tool.addresses {
                    AddressRole::Visits(visits) if rule == policy::rule_name::UNNAMED_HOST => {
                        wording::unnamed_host_denied(&reason, visits, case.arguments)
                    }
                    _ => reason,
                };
                CallTransition::Refuse(CallOutcome::Denied { reason: Some(reason) }, Some(rule))
            }
        }
    }

    /// Asks the loop guard about a call that is about to start.
    fn check_loop_guard(&self, handle: CallHandle, tool: &OfferedTool) -> loop_guard::LoopAction {
        let history = self.record.guard_history();
        if tool.polling == PollingMode::Poller || history.is_empty() {
            loop_guard::LoopAction::Run
        } else {
            loop_guard::evaluate(&history, self.record.call(handle).guard_hash(), &self.setup.guard)
        }
    }

    // --- the single steps of a call's life ---

    /// The arguments are final as far as the stream shows: they are checked while it continues.
    pub(crate) fn arguments_sealed(&mut self, handle: CallHandle) {
        let call = self.record.call(handle);
        let (id, version) = (call.id.clone(), call.version);
        if self.volatile.cancel_when_sealed.remove(&id) {
            self.close(handle, CallOutcome::Cancelled(StartState::No));
            return;
        }
        if let Some(arguments) = call.effective_arguments().cloned() {
            self.request_validation(handle, arguments, CheckSubject::Arguments(version));
        }
    }

    pub(crate) fn start_tool(&mut self, handle: CallHandle, commit: CommitState, rule: Option<String>) {
        self.withdraw_question(handle, "reset");
        let (call, Some(PolicyInput { tool, fingerprint, arguments })) =
            (self.record.call(handle), self.case(handle))
        else {
            return;
        };
        let fingerprint = fingerprint.to_owned();
        let (id, attempt, arguments) = (call.id.clone(), call.attempts + 1, arguments.clone());
        let name = tool.name.clone();
        let client_id = tool.runs.client_id().map(str::to_owned);
        self.emit(
            self.call_target(handle),
            EventKind::ToolStart {
                early: commit == CommitState::Open,
                attempt,
                rule,
                client_id: client_id.clone(),
            },
        );
        match client_id {
            Some(client_id) => self.offer_call(handle, client_id, CallOfferKind::First),
            None => {
                let call = id.clone();
                self.push_action(TurnAction::StartTool { call, attempt, tool: name, arguments, fingerprint });
            }
        }
        if let Some(deadline) = self.tool_deadline(handle) {
            self.set_timer(TimerId::Tool { call: id, attempt }, deadline);
        }
    }

    /// The one and only end of a call.
    pub(crate) fn close(&mut self, handle: CallHandle, outcome: CallOutcome) {
        self.close_with(handle, outcome, |_| {});
    }

    fn close_with_rule(&mut self, handle: CallHandle, outcome: CallOutcome, rule: Option<String>) {
        self.close_with(handle, outcome, |result| result.rule = rule);
    }

    /// Closes a call with its outcome; `more` adds what the outcome itself does not contain.
    pub(crate) fn close_with(
        &mut self,
        handle: CallHandle,
        outcome: CallOutcome,
        extend: impl FnOnce(&mut ToolResult),
    ) {
        if self.record.call(handle).is_closed() {
            return;
        }
        self.withdraw_question(handle, "end");
        let call = self.record.call(handle);
        let ran = call.run().map(|run| (run.since, self.now.abs_diff(run.since)));
        let outcome = reconcile_with_run(
            limit_output(outcome, self.setup.limits.output_bytes_max),
            ran.map(|(_, ms)| ms),
        );
        // Before the step's end it is unknown if it will be committed.
        let in_history = match self.record.phase {
            TurnPhase::Streaming(_) => None,
            _ => Some(self.record.is_in_history(call.step)),
        };
        let ran = match outcome {
            CallOutcome::NotStarted(_)
            | CallOutcome::Cancelled(StartState::No)
            | CallOutcome::Denied { .. } => None,
            _ => ran,
        };
        let is_denied = matches!(outcome, CallOutcome::Denied { .. });
        let shown = self.emit_model_text(handle, &outcome);
        let mut result = ToolResult::new(shown.as_ref().unwrap_or(&outcome), ran, in_history);
        extend(&mut result);
        let last_rule = || self.record.call(handle).rule().map(str::to_owned);
        result.rule = result.rule.or_else(last_rule).filter(|_| is_denied);
        self.emit(self.call_target(handle), EventKind::ToolResult(result));
    }

    /// The outcome as people are shown it, if text rules make it another one; then the model's goes before it.
    fn emit_model_text(&mut self, handle: CallHandle, outcome: &CallOutcome) -> Option<CallOutcome> {
        let call = self.record.call(handle);
        self.volatile.filtered_outputs.remove(&(call.id.clone(), call.attempts));
        let shown = shown_outcome(&self.setup.text_rules, outcome)?;
        let text = outcome.output().map(|output| output.text.clone()).unwrap_or_default();
        let message = match outcome {
            CallOutcome::Failed { message, .. } => Some(message.clone()),
            CallOutcome::Unknown { message, .. } => message.clone(),
            _ => None,
        };
        self.emit(self.call_target(handle), EventKind::ModelText { text, message });
        Some(shown)
    }

    // --- reports of tools and people ---

    pub(crate) fn tool_progress(&mut self, call: &CallId, attempt: u32, progress: CallProgress) {
        if let Some(handle) = self.running_call(call, attempt)
            && let Some(run) = self.record.call(handle).run()
            && run.progress_events < self.setup.limits.progress_events_max
        {
            let progress = self.shown_progress(call, attempt, progress);
            self.emit(self.call_target(handle), EventKind::ToolProgress(progress));
        }
    }

    /// A report as people are shown it: output that a text rule may still change waits for more, or for the result.
    fn shown_progress(&mut self, call: &CallId, attempt: u32, mut progress: CallProgress) -> CallProgress {
        let rules = || select(&self.setup.text_rules, TextRuleTarget::Shown, TextRuleRole::Tool);
        if rules().next().is_none() {
            return progress;
        }
        if let Some(message) = &mut progress.message {
            let mut filter = TextFilter::new(rules());
            let decided = filter.push(message);
            *message = decided + &filter.finish();
        }
        if let Some(delta) = progress.output_delta.take() {
            let start = (call.clone(), attempt);
            let filter =
                self.volatile.filtered_outputs.entry(start).or_insert_with(|| TextFilter::new(rules()));
            progress.output_delta = Some(filter.push(&delta));
        }
        progress
    }

    pub(crate) fn tool_ended(&mut self, call: &CallId, attempt: u32, outcome: CallOutcome) {
        if let Some(handle) = self.running_call(call, attempt) {
            self.close(handle, outcome);
        }
    }

    pub(crate) fn running_call(&self, call: &CallId, attempt: u32) -> Option<CallHandle> {
        self.record.find_call(call).filter(|handle| {
            let call = self.record.call(*handle);
            call.run().is_some() && call.attempts == attempt
        })
    }

    // --- stopping one call ---

    pub(crate) fn cancel_call(&mut self, call: &CallId) {
        let Some(handle) = self.record.find_call(call) else { return };
        if self.record.call(handle).is_hosted() {
            return;
        }
        match &self.record.call(handle).state {
            CallState::Closed(_) => {}
            // The model continues: its arguments are needed for a true history, so the end waits for them.
            CallState::Preparing(_) => {
                self.volatile.cancel_when_sealed.insert(call.clone());
            }
            CallState::Sealed(_) => self.close(handle, CallOutcome::Cancelled(StartState::No)),
            CallState::AwaitingApproval(_) => {
                self.resolve(handle, &ApprovalInput::denial("cancel", None), None);
                self.close(handle, CallOutcome::Cancelled(StartState::No));
            }
            CallState::Running(_) => self.cancel_running(handle),
        }
    }

    /// Asks a running tool to stop; it may say how it ended for a moment. Once for each start.
    pub(crate) fn cancel_running(&mut self, handle: CallHandle) {
        let call = self.record.call(handle);
        let start = (call.id.clone(), call.attempts);
        if !self.volatile.cancelled_starts.insert(start.clone()) {
            return;
        }
        let by = if self.record.is_stopping() { "stop" } else { "cancel" };
        self.withdraw_question(handle, by);
        let (call, attempt) = start;
        self.push_action(TurnAction::CancelTool { call: call.clone(), attempt });
        let deadline = self.now.saturating_add_unsigned(self.setup.limits.cancel_grace_ms);
        self.set_timer(TimerId::CancelGrace { call, attempt }, deadline);
    }

    pub(crate) fn cancel_grace_expired(&mut self, call: &CallId, attempt: u32) {
        let was_asked = self.volatile.cancelled_starts.contains(&(call.clone(), attempt));
        if let Some(handle) = self.running_call(call, attempt).filter(|_| was_asked) {
            self.close_cancelled(handle);
        }
    }

    /// Ends a running call without its own word.
    pub(crate) fn close_cancelled(&mut self, handle: CallHandle) {
        let partial = self.partial_output(handle);
        self.close(handle, CallOutcome::Cancelled(StartState::Yes { ran_ms: 0, partial }));
    }

    pub(crate) fn tool_timed_out(&mut self, call: &CallId, attempt: u32) {
        let Some(handle) = self.running_call(call, attempt) else { return };
        let run = self.record.call(handle).run();
        let waited_for_person = run.is_some_and(|run| run.elicitation.is_some() || run.asked_ms > 0);
        if let Some(deadline) =
            self.tool_deadline(handle).filter(|deadline| waited_for_person && *deadline > self.now)
        {
            // The time limit was paused while a person was asked.
            self.set_timer(TimerId::Tool { call: call.clone(), attempt }, deadline);
            return;
        }
        let limit_ms = self.tool_of(handle).map_or(0, |tool| tool.timeout_ms);
        if self.tool_of(handle).is_some_and(|tool| tool.runs.is_remote()) {
            self.push_action(TurnAction::CancelTool { call: call.clone(), attempt });
            return self.client_timed_out(handle, limit_ms);
        }
        let partial = self.partial_output(handle);
        self.push_action(TurnAction::CancelTool { call: call.clone(), attempt });
        self.close(handle, CallOutcome::TimedOut { limit_ms, partial });
    }

    fn partial_output(&self, handle: CallHandle) -> Option<ToolOutput> {
        let partial = &self.record.call(handle).run()?.partial;
        (!partial.is_empty()).then(|| ToolOutput::text(partial.clone()))
    }
}

/// Makes the reported outcome agree with the record: it ran for `ran_ms` milliseconds, or never.
fn reconcile_with_run(outcome: CallOutcome, ran_ms: Option<u64>) -> CallOutcome {
    match (outcome, ran_ms) {
        (CallOutcome::Cancelled(StartState::Yes { partial, .. }), Some(ran_ms)) => {
            CallOutcome::Cancelled(StartState::Yes { ran_ms, partial })
        }
        // A tool that was started cannot have been denied: such an outcome means a failure.
        (CallOutcome::Denied { reason }, Some(_)) => {
            CallOutcome::Failed { message: reason.unwrap_or_else(|| "refused".into()), partial: None }
        }
        (outcome, _) => outcome,
    }
}
