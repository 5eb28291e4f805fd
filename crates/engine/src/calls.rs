//! The calls of a step: from final arguments to exactly one outcome.

use crate::action::{EarlyStart, TurnAction};
use crate::approvals::ApprovalInput;
use crate::client::CallOfferKind;
use crate::event::{ApprovalDecision, CallProgress, EventKind, ToolResult};
use crate::input::{ArgumentValidation, TimerId};
use crate::loop_guard;
use crate::policy::{self, PolicyCase, PolicyDecision};
use crate::record::{ApprovalAnswer, CallState, TurnPhase};
use crate::schedule::{self, CommitState, ScheduleStage, ScheduledCall};
use crate::setup::{CallRunner, Effect, OfferedTool, PollingMode, ToolConcurrency};
use crate::tool_result::{broken_outcome, limit_output};
use crate::turn::{CheckSubject, TurnMachine};
use crate::wording;
use std::collections::BTreeMap;
use throughline_wire::{CallId, CallOutcome, NotStarted, SealEvidence, StartState, ToolOutput};

/// Next transition of a sealed call.
enum CallTransition {
    /// Nothing now: something is being waited for.
    Wait,
    /// It may start when the schedule has room, by this rule.
    Ready(Option<String>),
    /// It never runs; by this rule, if a rule says so.
    Refuse(CallOutcome, Option<String>),
    /// A person is asked.
    Ask { rule: String, question: String },
}

impl TurnMachine<'_> {
    // --- what happens by itself ---

    /// While the model talks: calls that may start do.
    pub(crate) fn start_early(&mut self) -> bool {
        self.start_next(CommitState::Open)
    }

    /// After the commit: every call moves towards its outcome. False if all wait for something outside.
    pub(crate) fn settle(&mut self) -> bool {
        for at in self.calls_of_step() {
            if self.record.calls[at].state != CallState::Sealed {
                continue;
            }
            match self.next_transition(at, CommitState::Done) {
                CallTransition::Wait | CallTransition::Ready(_) => {}
                CallTransition::Refuse(outcome, rule) => {
                    self.close_with_rule(at, outcome, rule);
                    return true;
                }
                CallTransition::Ask { rule, question } => {
                    self.request_approval(at, rule, question);
                    return true;
                }
            }
        }
        self.start_next(CommitState::Done)
    }

    /// Calls of the current step in recorded order.
    pub(crate) fn calls_of_step(&self) -> Vec<usize> {
        let step = self.record.step();
        let calls = &self.record.calls;
        let mut of_step: Vec<usize> = (0..calls.len())
            .rev()
            .take_while(|at| calls[*at].step == step)
            .filter(|at| !calls[*at].hosted && !calls[*at].superseded)
            .collect();
        of_step.sort_unstable_by_key(|at| (calls[*at].recorded_order(), *at));
        of_step
    }

    fn start_next(&mut self, commit: CommitState) -> bool {
        let order = self.calls_of_step();
        if order.iter().all(|at| self.record.calls[*at].state != CallState::Sealed) {
            return false;
        }
        let mut scheduled = Vec::with_capacity(order.len());
        let mut rules = BTreeMap::new();
        for at in &order {
            let stage = match &self.record.calls[*at].state {
                CallState::Preparing => ScheduleStage::NotReady,
                CallState::AwaitingApproval { .. } => ScheduleStage::AwaitingApproval,
                CallState::Running { .. } if self.runs_on_requester(*at) => ScheduleStage::Remote,
                CallState::Running { .. } => ScheduleStage::Running,
                CallState::Closed { .. } => ScheduleStage::Closed,
                CallState::Sealed => match self.next_transition(*at, commit) {
                    CallTransition::Ready(rule) => {
                        rules.insert(*at, rule);
                        ScheduleStage::Ready
                    }
                    CallTransition::Wait | CallTransition::Refuse(..) | CallTransition::Ask { .. } => {
                        ScheduleStage::NotReady
                    }
                },
            };
            let tool = self.tool_of(*at);
            let effect = tool.map_or(Effect::External, |tool| tool.effect);
            scheduled.push(ScheduledCall {
                stage,
                effect,
                concurrency: tool.map_or(&ToolConcurrency::Shared, |tool| &tool.concurrency),
            });
        }
        match schedule::next_start(&scheduled, self.setup.execution) {
            Some(position) => {
                let rule = rules.remove(&order[position]).flatten();
                self.start_tool(order[position], commit, rule);
                true
            }
            None => false,
        }
    }

    /// True if the requester of the turn runs it.
    fn runs_on_requester(&self, at: usize) -> bool {
        self.tool_of(at).is_some_and(|tool| tool.runs == CallRunner::Requester)
    }

    pub(crate) fn tool_of(&self, at: usize) -> Option<&OfferedTool> {
        self.record.calls[at].tool.and_then(|tool| self.setup.tools.get(tool))
    }

    /// Decides the next transition of a sealed call, in the order of a person's questions: is it a call at all, is there such
    /// a tool, do the arguments fit, may it run, does it go in circles?
    fn next_transition(&self, at: usize, commit: CommitState) -> CallTransition {
        let call = &self.record.calls[at];
        let refuse = |why| match commit {
            // A contradiction may still come; nothing is said before the commit.
            CommitState::Open => CallTransition::Wait,
            CommitState::Done => CallTransition::Refuse(CallOutcome::NotStarted(why), None),
        };
        if self.record.tools_off_after.is_some_and(|after| call.step > after) {
            return refuse(NotStarted::Limit { limit: "iterations_max".into() });
        }
        if at >= self.setup.limits.calls_per_turn_max as usize {
            return refuse(NotStarted::Limit { limit: "calls_per_turn_max".into() });
        }
        match (&call.arguments, commit) {
            (Some(Err((why, _))), CommitState::Done) => {
                return CallTransition::Refuse(broken_outcome(why), None);
            }
            (Some(Ok(_)), _) => {}
            _ => return CallTransition::Wait,
        }
        let Some(tool) = self.tool_of(at) else { return refuse(self.unknown_tool(&call.wire_name)) };
        if tool.runs == (CallRunner::Client { client_id: None }) {
            return refuse(NotStarted::NoViewer);
        }
        if !schedule::may_start(
            tool.effect,
            call.seal.unwrap_or(SealEvidence::Balanced),
            commit,
            self.setup.start,
        ) {
            return CallTransition::Wait;
        }
        let check = self.volatile.checks.get(&call.id);
        let validation = check.and_then(|check| match check.subject {
            CheckSubject::Arguments(version) if version == call.version => check.validation.as_ref(),
            _ => None,
        });
        match validation {
            Some(ArgumentValidation::Valid) => {}
            Some(ArgumentValidation::Invalid { message }) => {
                return refuse(NotStarted::InvalidArguments { message: message.clone() });
            }
            None => return CallTransition::Wait,
        }
        self.start_transition(at, tool, commit)
    }

    fn start_transition(&self, at: usize, tool: &OfferedTool, commit: CommitState) -> CallTransition {
        let (call, Some(case)) = (&self.record.calls[at], self.case(at)) else { return CallTransition::Wait };
        match &call.answer {
            Some(ApprovalAnswer { decision: ApprovalDecision::Deny, reason, .. }) => {
                return CallTransition::Refuse(CallOutcome::Denied { reason: reason.clone() }, None);
            }
            Some(answer) if answer.applies_to(&case) => return CallTransition::Ready(call.rule.clone()),
            // It was given for something else: the call asks again. R: A3
            Some(_) | None => {}
        }
        let decision = match (self.evaluate_policy(&case), self.check_loop_guard(at, tool)) {
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
                let question = match (self.check_loop_guard(at, tool), rule.as_str()) {
                    (loop_guard::LoopAction::Ask(cycle), policy::rule_name::LOOP_GUARD) => {
                        wording::loop_question(&tool.name, cycle)
                    }
                    (_, policy::rule_name::REDEFINED) => wording::redefined_question(tool),
                    _ => wording::approval_question(tool, Some(case.arguments)),
                };
                CallTransition::Ask { rule, question }
            }
            (PolicyDecision::Deny { rule, reason }, CommitState::Done) => {
                CallTransition::Refuse(CallOutcome::Denied { reason: Some(reason) }, Some(rule))
            }
        }
    }

    /// Asks the loop guard about a call that is about to start.
    fn check_loop_guard(&self, at: usize, tool: &OfferedTool) -> loop_guard::LoopAction {
        let history = self.record.guard_history();
        if tool.polling == PollingMode::Poller || history.is_empty() {
            loop_guard::LoopAction::Run
        } else {
            loop_guard::evaluate(&history, self.record.calls[at].guard_hash(), &self.setup.guard)
        }
    }

    // --- the single steps of a call's life ---

    /// The arguments are final as far as the stream says: they are checked while it goes on.
    pub(crate) fn arguments_sealed(&mut self, at: usize) {
        let call = &self.record.calls[at];
        let (id, version) = (call.id.clone(), call.version);
        if self.volatile.cancel_when_sealed.remove(&id) {
            self.close(at, CallOutcome::Cancelled(StartState::No));
            return;
        }
        if let Some(arguments) = call.effective_arguments().cloned() {
            self.request_validation(at, arguments, CheckSubject::Arguments(version));
        }
    }

    pub(crate) fn start_tool(&mut self, at: usize, commit: CommitState, rule: Option<String>) {
        self.withdraw_question(at, "reset");
        let (call, Some(PolicyCase { tool, fingerprint, arguments })) =
            (&self.record.calls[at], self.case(at))
        else {
            return;
        };
        let fingerprint = fingerprint.to_owned();
        let early = match commit {
            CommitState::Open => EarlyStart::Yes,
            CommitState::Done => EarlyStart::No,
        };
        let (id, attempt, arguments) = (call.id.clone(), call.attempts + 1, arguments.clone());
        let name = tool.name.clone();
        let client_id = tool.runs.client_id().map(str::to_owned);
        self.emit(
            self.call_target(at),
            EventKind::ToolStart {
                early: early == EarlyStart::Yes,
                attempt,
                rule,
                client_id: client_id.clone(),
            },
        );
        match client_id {
            Some(client_id) => self.offer_call(at, client_id, CallOfferKind::First),
            None => {
                let call = id.clone();
                self.push_action(TurnAction::StartTool {
                    call,
                    attempt,
                    tool: name,
                    arguments,
                    early,
                    fingerprint,
                });
            }
        }
        if let Some(deadline) = self.tool_deadline(at) {
            self.set_timer(TimerId::Tool { call: id, attempt }, deadline);
        }
    }

    /// The one and only end of a call.
    pub(crate) fn close(&mut self, at: usize, outcome: CallOutcome) {
        self.close_with(at, outcome, |_| {});
    }

    fn close_with_rule(&mut self, at: usize, outcome: CallOutcome, rule: Option<String>) {
        self.close_with(at, outcome, |result| result.rule = rule);
    }

    /// The same; `more` adds what the outcome itself does not say.
    pub(crate) fn close_with(
        &mut self,
        at: usize,
        outcome: CallOutcome,
        extend: impl FnOnce(&mut ToolResult),
    ) {
        if self.record.calls[at].is_closed() {
            return;
        }
        self.withdraw_question(at, "end");
        let call = &self.record.calls[at];
        let ran = match call.state {
            CallState::Running { since } => Some((since, self.now.abs_diff(since))),
            _ => None,
        };
        let outcome = reconcile_with_run(
            limit_output(outcome, self.setup.limits.output_bytes_max),
            ran.map(|(_, ms)| ms),
        );
        // Before the step's end nobody knows whether it will be committed.
        let in_history = match self.record.phase {
            TurnPhase::Streaming { .. } => None,
            _ => Some(self.record.is_in_history(call.step)),
        };
        let ran = match outcome {
            CallOutcome::NotStarted(_)
            | CallOutcome::Cancelled(StartState::No)
            | CallOutcome::Denied { .. } => None,
            _ => ran,
        };
        let is_denied = matches!(outcome, CallOutcome::Denied { .. });
        let mut result = ToolResult::new(&outcome, ran, in_history);
        extend(&mut result);
        result.rule = result.rule.or_else(|| self.record.calls[at].rule.clone()).filter(|_| is_denied);
        self.emit(self.call_target(at), EventKind::ToolResult(result));
    }

    // --- what tools and people say ---

    pub(crate) fn tool_progress(&mut self, call: &CallId, attempt: u32, progress: CallProgress) {
        if let Some(at) = self.running_call(call, attempt)
            && self.record.calls[at].progress_events < self.setup.limits.progress_events_max
        {
            self.emit(self.call_target(at), EventKind::ToolProgress(progress));
        }
    }

    pub(crate) fn tool_ended(&mut self, call: &CallId, attempt: u32, outcome: CallOutcome) {
        if let Some(at) = self.running_call(call, attempt) {
            self.close(at, outcome);
        }
    }

    pub(crate) fn running_call(&self, call: &CallId, attempt: u32) -> Option<usize> {
        self.record.find_call(call).filter(|at| {
            let call = &self.record.calls[*at];
            matches!(call.state, CallState::Running { .. }) && call.attempts == attempt
        })
    }

    // --- stopping one call --- R: T8

    pub(crate) fn cancel_call(&mut self, call: &CallId) {
        let Some(at) = self.record.find_call(call) else { return };
        if self.record.calls[at].hosted {
            return;
        }
        match &self.record.calls[at].state {
            CallState::Closed { .. } => {}
            // The model goes on talking: its arguments are needed for a true history, so the end waits for them.
            CallState::Preparing => {
                self.volatile.cancel_when_sealed.insert(call.clone());
            }
            CallState::Sealed => self.close(at, CallOutcome::Cancelled(StartState::No)),
            CallState::AwaitingApproval { .. } => {
                self.resolve(at, &ApprovalInput::denial("cancel", None), None);
                self.close(at, CallOutcome::Cancelled(StartState::No));
            }
            CallState::Running { .. } => self.cancel_running(at),
        }
    }

    /// Asks a running tool to stop; it may say how it ended for a moment. Once for each start.
    pub(crate) fn cancel_running(&mut self, at: usize) {
        let call = &self.record.calls[at];
        let start = (call.id.clone(), call.attempts);
        if !self.volatile.cancelled_starts.insert(start.clone()) {
            return;
        }
        let by = if self.record.phase == TurnPhase::Stopping { "stop" } else { "cancel" };
        self.withdraw_question(at, by);
        let (call, attempt) = start;
        self.push_action(TurnAction::CancelTool { call: call.clone(), attempt });
        let deadline = self.now.saturating_add_unsigned(self.setup.limits.cancel_grace_ms);
        self.set_timer(TimerId::CancelGrace { call, attempt }, deadline);
    }

    pub(crate) fn cancel_grace_expired(&mut self, call: &CallId, attempt: u32) {
        let was_asked = self.volatile.cancelled_starts.contains(&(call.clone(), attempt));
        if let Some(at) = self.running_call(call, attempt).filter(|_| was_asked) {
            self.close_cancelled(at);
        }
    }

    /// Ends a running call without its own word.
    pub(crate) fn close_cancelled(&mut self, at: usize) {
        let partial = self.partial_output(at);
        self.close(at, CallOutcome::Cancelled(StartState::Yes { ran_ms: 0, partial }));
    }

    pub(crate) fn tool_timed_out(&mut self, call: &CallId, attempt: u32) {
        let Some(at) = self.running_call(call, attempt) else { return };
        let waited_for_person =
            self.record.calls[at].elicitation.is_some() || self.record.calls[at].asked_ms > 0;
        if let Some(deadline) =
            self.tool_deadline(at).filter(|deadline| waited_for_person && *deadline > self.now)
        {
            // Time stood still while a person was asked.
            self.set_timer(TimerId::Tool { call: call.clone(), attempt }, deadline);
            return;
        }
        let limit_ms = self.tool_of(at).map_or(0, |tool| tool.timeout_ms);
        if self.tool_of(at).is_some_and(|tool| tool.runs.is_remote()) {
            self.push_action(TurnAction::CancelTool { call: call.clone(), attempt });
            return self.client_timed_out(at, limit_ms);
        }
        let partial = self.partial_output(at);
        self.push_action(TurnAction::CancelTool { call: call.clone(), attempt });
        self.close(at, CallOutcome::TimedOut { limit_ms, partial });
    }

    fn partial_output(&self, at: usize) -> Option<ToolOutput> {
        let partial = &self.record.calls[at].partial;
        (!partial.is_empty()).then(|| ToolOutput::text(partial.clone()))
    }
}

/// Makes the reported outcome agree with the record: it ran for `ran_ms` milliseconds, or never.
fn reconcile_with_run(outcome: CallOutcome, ran_ms: Option<u64>) -> CallOutcome {
    match (outcome, ran_ms) {
        (CallOutcome::Cancelled(StartState::Yes { partial, .. }), Some(ran_ms)) => {
            CallOutcome::Cancelled(StartState::Yes { ran_ms, partial })
        }
        // A tool that was started cannot have been denied: whoever says so means a failure.
        (CallOutcome::Denied { reason }, Some(_)) => {
            CallOutcome::Failed { message: reason.unwrap_or_else(|| "refused".into()), partial: None }
        }
        (outcome, _) => outcome,
    }
}
