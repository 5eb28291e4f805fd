//! The calls of a step: from final arguments to exactly one outcome.

use crate::action::{Action, Early};
use crate::canonical;
use crate::event::{Decision, EventKind, Progress, ToolResult};
use crate::guard;
use crate::id::ApprovalId;
use crate::input::{Question, TimerId, Verdict};
use crate::policy::{self, Ruling};
use crate::record::{Answer, CallState, Phase};
use crate::result::{limit_output, outcome_of_broken};
use crate::schedule::{self, Commit, Place, Stage};
use crate::setup::{Concurrency, Effect, OfferedTool, Runs};
use crate::turn::Machine;
use crate::wording;
use throughline_wire::{Arguments, CallId, NotStarted, Outcome, Output, Seal, Started};

/// What is to be done about a call that is sealed.
enum Move {
    /// Nothing now: something is being waited for.
    Wait,
    /// It may start when the schedule has room.
    Ready,
    /// It never runs.
    Refuse(Outcome),
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
                Move::Wait | Move::Ready => {}
                Move::Refuse(outcome) => {
                    self.close(at, outcome);
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
        for at in &order {
            let stage = match &self.record.calls[*at].state {
                CallState::Preparing => Stage::NotReady,
                CallState::Asked { .. } => Stage::Asked,
                CallState::Running { .. } => Stage::Running,
                CallState::Closed { .. } => Stage::Closed,
                CallState::Sealed => match self.next_move(*at, commit) {
                    Move::Ready => Stage::Ready,
                    Move::Wait | Move::Refuse(_) | Move::Ask { .. } => Stage::NotReady,
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
                self.start_tool(order[place], commit);
                true
            }
            None => false,
        }
    }

    fn tool_of(&self, at: usize) -> Option<&OfferedTool> {
        self.record.calls[at].tool.and_then(|tool| self.setup.tools.get(tool))
    }

    /// What a sealed call needs next. The order is that of the questions a person would ask: is it a call at all, is
    /// there such a tool, do the arguments fit, may it run, does it go in circles?
    fn next_move(&self, at: usize, commit: Commit) -> Move {
        let call = &self.record.calls[at];
        let refuse = |why| match commit {
            // A contradiction may still come; nothing is said before the commit.
            Commit::Open => Move::Wait,
            Commit::Done => Move::Refuse(Outcome::NotStarted(why)),
        };
        if self.record.tools_off_after.is_some_and(|after| call.step > after) {
            return refuse(NotStarted::Limit { limit: "iterations_max".into() });
        }
        if at >= self.setup.limits.calls_per_turn_max as usize {
            return refuse(NotStarted::Limit { limit: "calls_per_turn_max".into() });
        }
        match (&call.arguments, commit) {
            (Some(Err((why, _))), Commit::Done) => return Move::Refuse(outcome_of_broken(why)),
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
        match self.live.checks.get(&call.id).filter(|(version, _)| *version == call.version) {
            Some((_, Some(Verdict::Valid))) => {}
            Some((_, Some(Verdict::Invalid { message }))) => {
                return refuse(NotStarted::InvalidArguments { message: message.clone() });
            }
            Some((_, None)) | None => return Move::Wait,
        }
        self.may_run(at, tool, commit)
    }

    fn may_run(&self, at: usize, tool: &OfferedTool, commit: Commit) -> Move {
        let call = &self.record.calls[at];
        match &call.answer {
            Some(Answer { decision: Decision::Approve, .. }) => return Move::Ready,
            Some(Answer { decision: Decision::Deny, reason }) => {
                return Move::Refuse(Outcome::Denied { reason: reason.clone() });
            }
            None => {}
        }
        let history = self.record.guard_history();
        let polls = tool.polling == crate::setup::Polling::Poller;
        let circles = match polls || history.is_empty() {
            true => guard::Ruling::Run,
            false => guard::ruling(&history, call.guard_key(), &self.setup.guard),
        };
        let ruling = match circles {
            guard::Ruling::Run => policy::ruling(tool, &self.setup.approval),
            guard::Ruling::Ask(cycle) => match policy::ask("loop_guard".into(), &self.setup.approval) {
                Ruling::Ask { rule } => {
                    let question = wording::loop_question(&tool.name, cycle);
                    return if commit == Commit::Done { Move::Ask { rule, question } } else { Move::Wait };
                }
                ruling => ruling,
            },
            guard::Ruling::Stop(_) if commit == Commit::Open => return Move::Wait,
            guard::Ruling::Stop(_) => {
                return Move::Refuse(Outcome::NotStarted(NotStarted::Limit { limit: "loop_guard".into() }));
            }
        };
        match (ruling, commit) {
            (Ruling::Allow, _) => Move::Ready,
            (_, Commit::Open) => Move::Wait,
            (Ruling::Ask { rule }, Commit::Done) => {
                let arguments = call.arguments.as_ref().and_then(|arguments| arguments.as_ref().ok());
                let question = wording::question(tool, arguments);
                Move::Ask { rule, question }
            }
            (Ruling::Deny { reason }, Commit::Done) => Move::Refuse(Outcome::Denied { reason: Some(reason) }),
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
        let (Some(tool), Some(Ok(arguments))) = (self.tool_of(at), &call.arguments) else { return };
        let (tool, arguments) = (tool.name.clone(), arguments.clone());
        self.live.checks.insert(id.clone(), (version, None));
        self.act(Action::Validate { call: id, version, tool, arguments });
    }

    fn ask(&mut self, at: usize, rule: String, question: String) {
        let call = &self.record.calls[at];
        let approval_id = ApprovalId::new(format!("{}.a{}", call.id, call.questions + 1));
        let arguments = match &call.arguments {
            Some(Ok(arguments)) => canonical::text(&arguments.value),
            _ => String::new(),
        };
        let limit = self.setup.limits.approval_ms_max;
        let expires_at = limit.map(|ms| self.now.saturating_add_unsigned(ms));
        let request = EventKind::ApprovalRequest {
            approval_id: approval_id.clone(),
            question,
            rule,
            expires_at,
            arguments_hash: canonical::hash_text(&[call.wire_name.as_str(), &arguments]),
        };
        self.emit(self.about_call(at), request);
        if let Some(at) = expires_at {
            self.timer_at(TimerId::Approval(approval_id), at);
        }
    }

    pub(crate) fn start_tool(&mut self, at: usize, commit: Commit) {
        let call = &self.record.calls[at];
        let (Some(tool), Some(Ok(arguments))) = (self.tool_of(at), &call.arguments) else { return };
        let early = match commit {
            Commit::Open => Early::Yes,
            Commit::Done => Early::No,
        };
        let (id, attempt, arguments) = (call.id.clone(), call.attempts + 1, arguments.clone());
        let (name, timeout_ms) = (tool.name.clone(), tool.timeout_ms);
        let (client_id, grace_ms) = match &tool.runs {
            Runs::Client { client_id } => (client_id.clone(), 0),
            Runs::Here => (None, self.setup.limits.tool_overrun_ms),
        };
        self.emit(
            self.about_call(at),
            EventKind::ToolStart { early: early == Early::Yes, attempt, client_id },
        );
        self.act(Action::StartTool { call: id.clone(), attempt, tool: name, arguments, early });
        let due = self.now.saturating_add_unsigned(timeout_ms.saturating_add(grace_ms));
        self.timer_at(TimerId::Tool { call: id, attempt }, due);
    }

    /// The one and only end of a call.
    pub(crate) fn close(&mut self, at: usize, outcome: Outcome) {
        let call = &self.record.calls[at];
        if call.is_closed() {
            return;
        }
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
        self.emit(self.about_call(at), EventKind::ToolResult(ToolResult::new(&outcome, ran, seen)));
    }

    // --- what tools and people say ---

    pub(crate) fn validated(&mut self, call: &CallId, version: u32, verdict: Verdict) {
        if let Some((asked, answer @ None)) = self.live.checks.get_mut(call)
            && *asked == version
        {
            *answer = Some(verdict);
        }
    }

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

    fn running(&self, call: &CallId, attempt: u32) -> Option<usize> {
        self.record.call(call).filter(|at| {
            let call = &self.record.calls[*at];
            matches!(call.state, CallState::Running { .. }) && call.attempts == attempt
        })
    }

    pub(crate) fn answered(
        &mut self,
        question: &Question,
        decision: Decision,
        by: &str,
        reason: Option<String>,
    ) {
        let asked: Vec<usize> = (0..self.record.calls.len())
            .filter(|at| match (&self.record.calls[*at].state, question) {
                (CallState::Asked { approval, .. }, Question::One(id)) => approval == id,
                (CallState::Asked { .. }, Question::All) => true,
                _ => false,
            })
            .collect();
        for at in asked {
            self.resolve(at, decision, by, reason.clone());
        }
    }

    /// Records an answer; a denial closes the call in the same breath.
    pub(crate) fn resolve(&mut self, at: usize, decision: Decision, by: &str, reason: Option<String>) {
        let CallState::Asked { approval, .. } = &self.record.calls[at].state else { return };
        let resolved = EventKind::ApprovalResolved {
            approval_id: approval.clone(),
            decision,
            by: by.to_owned(),
            reason: reason.clone(),
            arguments_diff: None,
            remember: None,
        };
        self.emit(self.about_call(at), resolved);
        if decision == Decision::Deny && !matches!(by, "stop" | "cancel") {
            self.close(at, Outcome::Denied { reason });
        }
    }

    pub(crate) fn question_expired(&mut self, approval: &ApprovalId) {
        let question = Question::One(approval.clone());
        self.answered(
            &question,
            Decision::Deny,
            "timer",
            Some(wording::expired(self.setup.limits.approval_ms_max)),
        );
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
                self.resolve(at, Decision::Deny, "cancel", None);
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
        let limit_ms = self.tool_of(at).map_or(0, |tool| tool.timeout_ms);
        let partial = self.partial_of(at);
        self.act(Action::CancelTool { call: call.clone(), attempt });
        self.close(at, Outcome::TimedOut { limit_ms, partial });
    }

    fn partial_of(&self, at: usize) -> Option<Output> {
        let partial = &self.record.calls[at].partial;
        (!partial.is_empty()).then(|| Output::text(partial.clone()))
    }

    pub(crate) fn arguments_of(&self, at: usize) -> Option<&Arguments> {
        self.record.calls[at].arguments.as_ref().and_then(|arguments| arguments.as_ref().ok())
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
