//! What the machine asks the driver to do, and the value that collects it.

use crate::elicitation::ToolAnswer;
use crate::event::Event;
use crate::id::UnixMillis;
use crate::input::TimerId;
use throughline_wire::{CallArguments, CallId, ModelRequest, ProviderState, ToolName};

/// What the machine asks the driver to do. Performed only when the events of the same `apply` are acknowledged
/// ([`Outbox`](crate::Outbox)), in order, unless it [only looks](Self::only_looks). Results come back as
/// [`TurnInput`](crate::Input); an action that cannot be performed comes back as a failure, never as silence.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnAction {
    /// Send a request and stream the reply back as `TurnInput::Model`, up to and including `End`.
    CallModel {
        /// To be repeated in the inputs.
        step: u32,
        /// To be repeated in the inputs.
        attempt: u32,
        /// Place in [`TurnSetup::upstreams`](crate::TurnSetup::upstreams).
        upstream: usize,
        /// What to send.
        request: Box<ModelRequest>,
    },
    /// Stop reading this reply; nothing of it is wanted.
    AbortModel {
        /// Which.
        step: u32,
        /// Which.
        attempt: u32,
    },
    /// Check arguments against the tool's schema and answer with `TurnInput::Validated`.
    Validate {
        /// Which call.
        call: CallId,
        /// Number of the check, to be repeated in the answer.
        version: u32,
        /// Which tool.
        tool: ToolName,
        /// What to check.
        arguments: CallArguments,
    },
    /// Run a tool; answer with `TurnInput::ToolEnded`.
    StartTool {
        /// Which call.
        call: CallId,
        /// To be repeated in the inputs.
        attempt: u32,
        /// Which tool.
        tool: ToolName,
        /// With what.
        arguments: CallArguments,
        /// Whether the model still talks.
        early: EarlyStart,
        /// Of the definition that was decided about. If the tool has another one by now it must not be started; answer
        /// with `TurnInput::Redefined`.
        fingerprint: String,
    },
    /// Ask a connected client to run a call; its answer comes as `TurnInput::ClientAnswerResult`. After a restart the same offer may
    /// be made again: a client knows it by call and attempt. If the client is not there, answer with `TurnInput::ToolEnded`.
    OfferCall {
        /// Which call.
        call: CallId,
        /// Which start of it.
        attempt: u32,
        /// Who is asked.
        client_id: String,
        /// Which tool.
        tool: ToolName,
        /// With what.
        arguments: CallArguments,
        /// When the answer is too late.
        until: UnixMillis,
        /// Of the definition that may be run: if the tool is another one by now, answer with `TurnInput::Redefined`. `None` =
        /// it was offered before, and may have been run: what was offered stays offered. R: A3
        fingerprint: Option<String>,
    },
    /// Give a running tool the answer to its question. A tool that is gone needs none.
    AnswerTool {
        /// Which call.
        call: CallId,
        /// Which start of it.
        attempt: u32,
        /// As in the input that asked.
        question_id: u64,
        /// The answer.
        answer: ToolAnswer,
    },
    /// Stop a running tool (or tell its client that it is no longer wanted) and answer with `TurnInput::ToolEnded` as it truthfully ended.
    CancelTool {
        /// Which call.
        call: CallId,
        /// Which start of it.
        attempt: u32,
    },
    /// Send `TurnInput::Timer` at this time. Timers are never taken back.
    SetTimer {
        /// To be repeated.
        id: TimerId,
        /// When.
        at: UnixMillis,
    },
}

impl TurnAction {
    /// Whether it does nothing that anybody outside could notice: then it need not wait for the log, and what follows from
    /// it can go into the append of the events before it.
    pub fn is_read_only(&self) -> bool {
        matches!(self, Self::Validate { .. })
    }
}

/// Whether a tool starts before its step's commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EarlyStart {
    /// Before: the model still talks.
    Yes,
    /// After.
    No,
}

/// What one `apply` yields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnOutput {
    /// To be appended to the log.
    pub events: Vec<Event>,
    /// To be performed when the events are acknowledged.
    pub actions: Vec<TurnAction>,
    /// What must be echoed to the upstream, by step: stored beside the log in the same transaction as the events,
    /// never served.
    pub provider_states: Vec<StepProviderState>,
}

/// What must be echoed to the upstream of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepProviderState {
    /// Which step.
    pub step: u32,
    /// The state, readable by one dialect only.
    pub state: ProviderState,
}
