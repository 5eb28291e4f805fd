//! The calls of a step: from final arguments to exactly one outcome.

use crate::action::{Action, Early};
use crate::approvals::Spoken;
use crate::client::Offered;
use crate::event::{Decision, EventKind, Progress, ToolResult};
use crate::guard;
use crate::input::{TimerId, Verdict};
use crate::policy::{self, Case, Ruling};
use crate::record::{Answer, CallState, Phase};
use crate::result::{limit_output, outcome_of_broken};
use crate::schedule::{self, Commit, Place, Stage};
use crate::setup::{Concurrency, Effect, OfferedTool, Polling, Runs};
use crate::turn::{Machine, Subject};
use crate::wording;
use std::collections::BTreeMap;
use throughline_wire::{CallId, NotStarted, Outcome, Output, Seal, Started};

/// What is to be done about a call that is sealed.
enum Move {
    /// Nothing now: something is being waited for.
    Wait,
    /// It may start when the schedule has room, by this rule.
    Ready(Option<String>),
    /// It never runs; by this rule, if a rule says so.
    Refuse(Outcome, Option<String>),
    /// A person is asked.
    Ask { rule: String, question: String },
}

impl Machine<'_> {
    // --- what happens by itself ---

    /// While the model talks: calls that may start do.
    pub(crate) fn start_early(&mut self) -> bool {
        self.start_next(Commit::Open)
    }

    /// After the commit: every call moves towards its outcome. False if all wait for the world.
    pub(crate) fn settle(&mut self) -> bool {
        for at in self.calls_of_step() {
            if self.record.calls[at].state != CallState::Sealed {
                continue;
            }
            match self.next_move(at, Commit::Done) {
                Move::Wait | Move::Ready(_) => {}
                Move::Refuse(outcome, rule) => {
                    self.close_by(at, outcome, rule);
                    return true;
                }
                Move::Ask { rule, question } => {
                    self.ask(at, rule, question);
                    return true;
                }
            }
        }
        self.start_next(Commit::Done)
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
        of_step.sort_unstable_by_key(|at| (calls[*at].order(), *at));
        of_step
    }

    fn start_next(&mut self, commit: Commit) -> bool {
        let order = self.calls_of_step();
        if order.iter().all(|at| self.record.calls[*at].state != CallState::Sealed) {
            return false;
        }
        let mut places = Vec::with_capacity(order.len());
        let mut rules = BTreeMap::new();
        for at in &order {
            let stage = match &self.record.calls[*at].state {
                CallState::Preparing => Stage::NotReady,
                CallState::Asked { .. } => Stage::Asked,
                CallState::Running { .. } if self.is_own(*at) => Stage::Elsewhere,
                CallState::Running { .. } => Stage::Running,
                CallState::Closed { .. } => Stage::Closed,
                CallState::Sealed => match self.next_move(*at, commit) {
                    Move::Ready(rule) => {
                        rules.insert(*at, rule);
                        Stage::Ready
                    }
                    Move::Wait | Move::Refuse(..) | Move::Ask { .. } => Stage::NotReady,
                },
            };
            let tool = self.tool_of(*at);
            let effect = tool.map_or(Effect::External, |tool| tool.effect);
            places.push(Place {
                stage,
                effect,
                concurrency: tool.map_or(&Concurrency::Shared, |tool| &tool.concurrency),
            });
        }
        match schedule::next_start(&places, self.setup.execution) {
            Some(place) => {
                let rule = rules.remove(&order[place]).flatten();
                self.start_tool(order[place], commit, rule);
                true
            }
            None => false,
        }
    }

    /// Whoever asked for the turn runs it.
    fn is_own(&self, at: usize) -> bool {
        self.tool_of(at).is_some_and(|tool| tool.runs == Runs::Requester)
    }

    pub(crate) fn tool_of(&self, at: usize) -> Option<&OfferedTool> {
        self.record.calls[at].tool.and_then(|tool| self.setup.tools.get(tool))
    }

    /// What a sealed call needs next. The order is that of the questions a person would ask: is it a call at all, is
    /// there such a tool, do the arguments fit, may it run, does it go in circles?
    fn next_move(&self, at: usize, commit: Commit) -> Move {
        let call = &self.record.calls[at];
        let refuse = |why| match commit {
            // A contradiction may still come; nothing is said before the commit.
            Commit::Open => Move::Wait,
            Commit::Done => Move::Refuse(Outcome::NotStarted(why), None),
        };
        if self.record.tools_off_after.is_some_and(|after| call.step > after) {
            return refuse(NotStarted::Limit { limit: "iterations_max".into() });
        }
        if at >= self.setup.limits.calls_per_turn_max as usize {
            return refuse(NotStarted::Limit { limit: "calls_per_turn_max".into() });
        }
        match (&call.arguments, commit) {
            (Some(Err((why, _))), Commit::Done) => return Move::Refuse(outcome_of_broken(why), None),
            (Some(Ok(_)), _) => {}
            _ => return Move::Wait,
        }
        let Some(tool) = self.tool_of(at) else { return refuse(self.closest_to(&call.wire_name)) };
        if tool.runs == (Runs::Client { client_id: None }) {
            return refuse(NotStarted::NoViewer);
        }
        if !schedule::may_start(tool.effect, call.seal.unwrap_or(Seal::Balanced), commit, self.setup.start) {
            return Move::Wait;
        }
        let check = self.live.checks.get(&call.id);
        let verdict = check.and_then(|check| match check.subject {
            Subject::Arguments(version) if version == call.version => check.verdict.as_ref(),
            _ => None,
        });
        match verdict {
            Some(Verdict::Valid) => {}
            Some(Verdict::Invalid { message }) => {
                return refuse(NotStarted::InvalidArguments { message: message.clone() });
            }
            None => return Move::Wait,
        }
        self.may_run(at, tool, commit)
    }

    fn may_run(&self, at: usize, tool: &OfferedTool, commit: Commit) -> Move {
        let (call, Some(case)) = (&self.record.calls[at], self.case(at)) else { return Move::Wait };
        match &call.answer {
            Some(Answer { decision: Decision::Deny, reason, .. }) => {
                return Move::Refuse(Outcome::Denied { reason: reason.clone() }, None);
            }
            Some(answer) if answer.is_about(&case) => return Move::Ready(call.rule.clone()),
            // It was given for something else: the call asks again. R: A3
            Some(_) | None => {}
        }
        let ruling = match (self.ruling(&case), self.circles(at, tool)) {
            (Ruling::Deny { rule, reason }, _) => Ruling::Deny { rule, reason },
            (ruling, guard::Ruling::Run) => ruling,
            (_, guard::Ruling::Ask(_)) => Ruling::Ask { rule: policy::name::LOOP_GUARD.into() },
            (_, guard::Ruling::Stop(_)) if commit == Commit::Open => return Move::Wait,
            (_, guard::Ruling::Stop(_)) => {
                let limit = policy::name::LOOP_GUARD.into();
                return Move::Refuse(Outcome::NotStarted(NotStarted::Limit { limit }), None);
            }
        };
        let ruling = match ruling {
            // It runs where it was declared, and not here.
            Ruling::Ask { .. } if tool.runs == Runs::Requester => {
                Ruling::Allow { rule: policy::name::OWN_TOOL.into() }
            }
            ruling => ruling,
        };
        match (ruling.answered_by(&self.setup.approval), commit) {
            (Ruling::Allow { rule }, _) => Move::Ready(Some(rule)),
            (_, Commit::Open) => Move::Wait,
            (Ruling::Ask { rule }, Commit::Done) => {
                let question = match (self.circles(at, tool), rule.as_str()) {
                    (guard::Ruling::Ask(cycle), policy::name::LOOP_GUARD) => {
                        wording::loop_question(&tool.name, cycle)
                    }
                    (_, policy::name::REDEFINED) => wording::redefined_question(tool),
                    _ => wording::question(tool, Some(case.arguments)),
                };
                Move::Ask { rule, question }
            }
            (Ruling::Deny { rule, reason }, Commit::Done) => {
                Move::Refuse(Outcome::Denied { reason: Some(reason) }, Some(rule))
            }
        }
    }

    /// What the loop guard says.
    fn circles(&self, at: usize, tool: &OfferedTool) -> guard::Ruling {
        let history = self.record.guard_history();
        match tool.polling == Polling::Poller || history.is_empty() {
            true => guard::Ruling::Run,
            false => guard::ruling(&history, self.record.calls[at].guard_key(), &self.setup.guard),
        }
    }

    // --- the single steps of a call's life ---

    /// The arguments are final as far as the stream says: they are checked while it goes on.
    pub(crate) fn sealed(&mut self, at: usize) {
        let call = &self.record.calls[at];
        let (id, version) = (call.id.clone(), call.version);
        if self.live.cancel_when_sealed.remove(&id) {
            self.close(at, Outcome::Cancelled(Started::No));
            return;
        }
        if let Some(arguments) = call.effective().cloned() {
            self.check(at, arguments, Subject::Arguments(version));
        }
    }

    pub(crate) fn start_tool(&mut self, at: usize, commit: Commit, rule: Option<String>) {
        self.withdraw_question(at, "reset");
        let (call, Some(Case { tool, fingerprint, arguments })) = (&self.record.calls[at], self.case(at))
        else {
            return;
        };
        let fingerprint = fingerprint.to_owned();
        let early = match commit {
            Commit::Open => Early::Yes,
            Commit::Done => Early::No,
        };
        let (id, attempt, arguments) = (call.id.clone(), call.attempts + 1, arguments.clone());
        let name = tool.name.clone();
        let client_id = tool.runs.client_id().map(str::to_owned);
        self.emit(
            self.about_call(at),
            EventKind::ToolStart { early: early == Early::Yes, attempt, rule, client_id: client_id.clone() },
        );
        match client_id {
            Some(client_id) => self.offer(at, client_id, Offered::Now),
            None => {
                let call = id.clone();
                self.act(Action::StartTool { call, attempt, tool: name, arguments, early, fingerprint });
            }
        }
        if let Some(due) = self.tool_due(at) {
            self.timer_at(TimerId::Tool { call: id, attempt }, due);
        }
    }

    /// The one and only end of a call.
    pub(crate) fn close(&mut self, at: usize, outcome: Outcome) {
        self.close_as(at, outcome, |_| {});
    }

    fn close_by(&mut self, at: usize, outcome: Outcome, rule: Option<String>) {
        self.close_as(at, outcome, |result| result.rule = rule);
    }

    /// The same; `more` adds what the outcome itself does not say.
    pub(crate) fn close_as(&mut self, at: usize, outcome: Outcome, more: impl FnOnce(&mut ToolResult)) {
        if self.record.calls[at].is_closed() {
            return;
        }
        self.withdraw_question(at, "end");
        let call = &self.record.calls[at];
        let ran = match call.state {
            CallState::Running { since } => Some((since, self.now.abs_diff(since))),
            _ => None,
        };
        let outcome =
            truthful(limit_output(outcome, self.setup.limits.output_bytes_max), ran.map(|(_, ms)| ms));
        // Before the step's end nobody knows whether it will be committed.
        let seen = match self.record.phase {
            Phase::Streaming { .. } => None,
            _ => Some(self.record.is_told(call.step)),
        };
        let ran = match outcome {
            Outcome::NotStarted(_) | Outcome::Cancelled(Started::No) | Outcome::Denied { .. } => None,
            _ => ran,
        };
        let is_denied = matches!(outcome, Outcome::Denied { .. });
        let mut result = ToolResult::new(&outcome, ran, seen);
        more(&mut result);
        result.rule = result.rule.or_else(|| self.record.calls[at].rule.clone()).filter(|_| is_denied);
        self.emit(self.about_call(at), EventKind::ToolResult(result));
    }

    // --- what tools and people say ---

    pub(crate) fn tool_progress(&mut self, call: &CallId, attempt: u32, progress: Progress) {
        if let Some(at) = self.running(call, attempt)
            && self.record.calls[at].progress_events < self.setup.limits.progress_events_max
        {
            self.emit(self.about_call(at), EventKind::ToolProgress(progress));
        }
    }

    pub(crate) fn tool_ended(&mut self, call: &CallId, attempt: u32, outcome: Outcome) {
        if let Some(at) = self.running(call, attempt) {
            self.close(at, outcome);
        }
    }

    pub(crate) fn running(&self, call: &CallId, attempt: u32) -> Option<usize> {
        self.record.call(call).filter(|at| {
            let call = &self.record.calls[*at];
            matches!(call.state, CallState::Running { .. }) && call.attempts == attempt
        })
    }

    // --- stopping one call --- R: T8

    pub(crate) fn cancel_call(&mut self, call: &CallId) {
        let Some(at) = self.record.call(call) else { return };
        if self.record.calls[at].hosted {
            return;
        }
        match &self.record.calls[at].state {
            CallState::Closed { .. } => {}
            // The model goes on talking: its arguments are needed for a true history, so the end waits for them.
            CallState::Preparing => {
                self.live.cancel_when_sealed.insert(call.clone());
            }
            CallState::Sealed => self.close(at, Outcome::Cancelled(Started::No)),
            CallState::Asked { .. } => {
                self.resolve(at, &Spoken::no("cancel", None), None);
                self.close(at, Outcome::Cancelled(Started::No));
            }
            CallState::Running { .. } => self.cancel_running(at),
        }
    }

    /// Asks a running tool to stop; it may say how it ended for a moment. Once for each start.
    pub(crate) fn cancel_running(&mut self, at: usize) {
        let call = &self.record.calls[at];
        let start = (call.id.clone(), call.attempts);
        if !self.live.cancelled_starts.insert(start.clone()) {
            return;
        }
        let by = if self.record.phase == Phase::Stopping { "stop" } else { "cancel" };
        self.withdraw_question(at, by);
        let (call, attempt) = start;
        self.act(Action::CancelTool { call: call.clone(), attempt });
        let due = self.now.saturating_add_unsigned(self.setup.limits.cancel_grace_ms);
        self.timer_at(TimerId::CancelGrace { call, attempt }, due);
    }

    pub(crate) fn cancel_overdue(&mut self, call: &CallId, attempt: u32) {
        let was_asked = self.live.cancelled_starts.contains(&(call.clone(), attempt));
        if let Some(at) = self.running(call, attempt).filter(|_| was_asked) {
            self.close_cancelled(at);
        }
    }

    /// Ends a running call without its own word.
    pub(crate) fn close_cancelled(&mut self, at: usize) {
        let partial = self.partial_of(at);
        self.close(at, Outcome::Cancelled(Started::Yes { ran_ms: 0, partial }));
    }

    pub(crate) fn tool_overdue(&mut self, call: &CallId, attempt: u32) {
        let Some(at) = self.running(call, attempt) else { return };
        let asked = self.record.calls[at].asking.is_some() || self.record.calls[at].asked_ms > 0;
        if let Some(due) = self.tool_due(at).filter(|due| asked && *due > self.now) {
            // Time stood still while a person was asked.
            self.timer_at(TimerId::Tool { call: call.clone(), attempt }, due);
            return;
        }
        let limit_ms = self.tool_of(at).map_or(0, |tool| tool.timeout_ms);
        if self.tool_of(at).is_some_and(|tool| tool.runs.is_elsewhere()) {
            self.act(Action::CancelTool { call: call.clone(), attempt });
            return self.client_gone(at, limit_ms);
        }
        let partial = self.partial_of(at);
        self.act(Action::CancelTool { call: call.clone(), attempt });
        self.close(at, Outcome::TimedOut { limit_ms, partial });
    }

    fn partial_of(&self, at: usize) -> Option<Output> {
        let partial = &self.record.calls[at].partial;
        (!partial.is_empty()).then(|| Output::text(partial.clone()))
    }
}

/// What is claimed about a call must agree with whether it ran, for `ran_ms` milliseconds.
fn truthful(outcome: Outcome, ran_ms: Option<u64>) -> Outcome {
    match (outcome, ran_ms) {
        (Outcome::Cancelled(Started::Yes { partial, .. }), Some(ran_ms)) => {
            Outcome::Cancelled(Started::Yes { ran_ms, partial })
        }
        // A tool that was started cannot have been denied: whoever says so means a failure.
        (Outcome::Denied { reason }, Some(_)) => {
            Outcome::Failed { message: reason.unwrap_or_else(|| "refused".into()), partial: None }
        }
        (outcome, _) => outcome,
    }
}
