//! Reading a turn: the state of its questions and of calls that a client runs.

use super::Turn;
use crate::id::ApprovalId;
use crate::machine::HoldReport;
use crate::record::{CallRecord, CallState, CallTarget, QuestionResolution, TurnPhase};
use throughline_wire::{CallId, CallOutcome};

/// State of a question, of a rule or a running tool.
#[derive(Clone, Debug, PartialEq)]
pub enum QuestionState {
    /// The first answer will be taken.
    Open,
    /// Resolved with this decision.
    Answered(QuestionResolution),
    /// Withdrawn without an answer: its call asks again, or is over.
    Withdrawn,
    /// The next question that its call may ask.
    Upcoming,
    /// Unknown: no call of this turn asks it or has asked it.
    Unknown,
}

/// State of a call, as far as a client's answer is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientCallState {
    /// The first answer will be taken.
    Waiting,
    /// The call has an outcome: another answer, or a stop.
    Closed,
    /// The call was given up without an answer, mostly because its time limit passed.
    TimedOut,
    /// No client is asked to run a call with this id.
    Unknown,
}

/// Party that a turn waits for while nothing of it runs here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TurnWait {
    /// A person was asked; calls of clients may be open as well.
    Person,
    /// Clients: they run calls of it, or are not back since a restart and its next call is one of theirs.
    Client,
}

impl Turn {
    /// Party that the turn waits for; `None` while it runs, and once it is over.
    pub fn waits_for(&self) -> Option<TurnWait> {
        let (setup, record) = self.setup_and_record();
        if record.phase != TurnPhase::AwaitingCalls {
            return None;
        }
        let mut wait = None;
        for call in record.calls.iter() {
            match &call.state {
                CallState::AwaitingApproval(_) => wait = Some(TurnWait::Person),
                CallState::Running(run) if run.elicitation.is_some() => wait = Some(TurnWait::Person),
                CallState::Running(_) => {
                    let tool = match call.target {
                        CallTarget::Offered(tool) => setup.tools.get(tool),
                        CallTarget::Unknown | CallTarget::Hosted => None,
                    };
                    if !tool.is_some_and(|tool| tool.runs.is_remote()) {
                        return None;
                    }
                    wait = wait.or(Some(TurnWait::Client));
                }
                // A client is not back since a restart.
                CallState::Sealed(_) if self.is_hold_reported(call) => wait = wait.or(Some(TurnWait::Client)),
                // Ready calls come after the waiting ones.
                CallState::Preparing(_) | CallState::Sealed(_) | CallState::Closed(_) => {}
            }
        }
        wait
    }

    fn is_hold_reported(&self, call: &CallRecord) -> bool {
        self.volatile.hold_of(call).is_some_and(|hold| matches!(hold.report, HoldReport::By(_)))
    }

    /// Looks up the state of a question.
    pub fn question_state(&self, question: &ApprovalId) -> QuestionState {
        let (_, record) = self.setup_and_record();
        if let Some(answered) = record.resolutions.get(question) {
            return QuestionState::Answered(answered.clone());
        }
        let Some((kind, call, number)) = question.parts() else { return QuestionState::Unknown };
        let Some(handle) = record.find_call(&call) else { return QuestionState::Unknown };
        let call = record.call(handle);
        let is_asked = call.open_approval().is_some_and(|open| open.approval_id == *question);
        let is_elicited = call.elicitation().is_some_and(|open| open.approval_id == *question);
        match number {
            _ if is_asked || is_elicited => QuestionState::Open,
            0 => QuestionState::Unknown,
            number if number <= call.questions => QuestionState::Withdrawn,
            // The questions that a running tool may still ask cannot be known.
            number if number == call.questions + 1 && kind.is_call() && !call.is_closed() => {
                QuestionState::Upcoming
            }
            _ => QuestionState::Unknown,
        }
    }

    /// True once a call has its outcome; `None` = there is no such call.
    pub fn is_call_closed(&self, call: &CallId) -> Option<bool> {
        let (_, record) = self.setup_and_record();
        record.find_call(call).map(|handle| record.call(handle).is_closed())
    }

    /// Looks up the state of a client-side call.
    pub fn client_call_state(&self, call: &CallId) -> ClientCallState {
        let (setup, record) = self.setup_and_record();
        let Some(handle) = record.find_call(call) else {
            return ClientCallState::Unknown;
        };
        let call = record.call(handle);
        let tool = match call.target {
            CallTarget::Offered(tool) => setup.tools.get(tool),
            CallTarget::Unknown | CallTarget::Hosted => None,
        };
        let by_client = tool.is_some_and(|tool| tool.runs.is_remote());
        match &call.state {
            _ if !by_client || call.attempts == 0 => ClientCallState::Unknown,
            CallState::Running(_) => ClientCallState::Waiting,
            // Given up without an answer, with effects or without.
            CallState::Closed(closed)
                if matches!(closed.outcome, CallOutcome::TimedOut { .. } | CallOutcome::Unknown { .. }) =>
            {
                ClientCallState::TimedOut
            }
            CallState::Closed(_) => ClientCallState::Closed,
            // Its arguments were contradicted: it will be offered again.
            CallState::Preparing(_) | CallState::Sealed(_) | CallState::AwaitingApproval(_) => {
                ClientCallState::Closed
            }
        }
    }
}
