//! Requests of the machine to the driver, and the value that collects them.

use crate::event::Event;
use crate::id::UnixMillis;
use crate::input::{TimerId, ToolAnswer};
use throughline_wire::{CallArguments, CallId, ModelRequest, ProviderState, ToolName};

/// A request of the machine to the driver. Performed only when the events of the same `apply` are acknowledged
/// ([`Outbox`](crate::Outbox)), in order, unless it [is read-only](Self::is_read_only). Results come back as
/// [`TurnInput`](crate::TurnInput); an action that cannot be performed comes back as a failure, never as silence.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnAction {
    /// Send a request and stream the reply back as `TurnInput::Model`, up to and including `End`.
    CallModel {
        /// To be repeated in the inputs.
        step: u32,
        /// To be repeated in the inputs.
        attempt: u32,
        /// Position in [`TurnSetup::upstreams`](crate::TurnSetup::upstreams).
        upstream: usize,
        /// The request to send.
        request: Box<ModelRequest>,
    },
    /// Stop reading this reply and discard it.
    AbortModel {
        /// Step of the reply.
        step: u32,
        /// Attempt of the reply.
        attempt: u32,
    },
    /// Check arguments against the tool's schema and answer with `TurnInput::Validated`, or with
    /// `TurnInput::ToolRedefined` without a start.
    Validate {
        /// The call whose arguments are checked.
        call: CallId,
        /// Number of the check, to be repeated in the answer.
        version: u32,
        /// The tool with the schema.
        tool: ToolName,
        /// The arguments to check.
        arguments: CallArguments,
        /// For a tool that a connected client runs: fingerprint of the definition that is decided about. If the client declares
        /// another one by now, that is the answer.
        fingerprint: Option<String>,
        /// True for arguments that a person entered instead of the call's: that person waits for the result
        /// of the check.
        is_edit: bool,
    },
    /// Run a tool; answer with `TurnInput::ToolEnded`.
    StartTool {
        /// The call to run.
        call: CallId,
        /// To be repeated in the inputs.
        attempt: u32,
        /// The tool to run.
        tool: ToolName,
        /// Arguments to run it with.
        arguments: CallArguments,
        /// Fingerprint of the definition that was decided about. If the tool has another one by now it must not be started; answer
        /// with `TurnInput::ToolRedefined`.
        fingerprint: String,
    },
    /// Ask a connected client to run a call; its answer comes as `TurnInput::ClientAnswered`. After a restart the same offer may
    /// be made again: a client knows it by call and attempt. If the client is not there, answer with `TurnInput::ToolEnded`.
    OfferCall {
        /// The call to run.
        call: CallId,
        /// The start that is offered.
        attempt: u32,
        /// Id of the client.
        client_id: String,
        /// The tool to run.
        tool: ToolName,
        /// Arguments to run it with.
        arguments: CallArguments,
        /// Time from which an answer is too late.
        until: UnixMillis,
        /// Fingerprint of the definition that may run. Only clients that declare this definition are offered
        /// the call.
        fingerprint: String,
        /// Meaning of a definition that is another one by now.
        kind: CallOfferKind,
    },
    /// Give a running tool the answer to its question. A tool that has ended needs none.
    AnswerTool {
        /// Call whose tool asked.
        call: CallId,
        /// Start of that call, counted from 1.
        attempt: u32,
        /// Id of the question, as in the input that asked it.
        question_id: u64,
        /// Answer for the tool.
        answer: ToolAnswer,
    },
    /// Stop a running tool (or tell its client that it is no longer wanted) and answer with `TurnInput::ToolEnded` as it truthfully ended.
    CancelTool {
        /// The call to stop.
        call: CallId,
        /// The start to stop.
        attempt: u32,
    },
    /// Send `TurnInput::Timer` at this time. Timers are never taken back.
    SetTimer {
        /// Id to send back with the timer.
        id: TimerId,
        /// Time at which it is due.
        at: UnixMillis,
    },
}

impl TurnAction {
    /// True if the action has no effect that can be observed outside the process. Such an action need not
    /// wait for the log, and what follows from it can go into the append of the events before it.
    pub fn is_read_only(&self) -> bool {
        matches!(self, Self::Validate { .. })
    }
}

/// First offer of a start to its client, or a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallOfferKind {
    /// If the tool has another definition by now, answer with `TurnInput::ToolRedefined`: nothing has been run.
    First,
    /// By another process than the first, which the client may have run: the call stays offered, to a client
    /// that reconnects with the same definition.
    Repeated,
}

/// Result of one `apply`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnOutput {
    /// To be appended to the log.
    pub events: Vec<Event>,
    /// To be performed when the events are acknowledged.
    pub actions: Vec<TurnAction>,
    /// State to be echoed to the upstream, by step: stored next to the log in the same transaction as the events, never
    /// served.
    pub provider_states: Vec<StepProviderState>,
}

/// State to be echoed to the upstream of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepProviderState {
    /// Number of the step.
    pub step: u32,
    /// The state, readable by one dialect only.
    pub state: ProviderState,
}
