//! Who watches all turns of an application: metrics, histories of calls, raw bytes of upstreams are made of what is told
//! here. R: O1
//!
//! An observer never changes anything and is never waited for. It is called by the tasks that run the turns: what it does
//! must be short, and what takes long belongs to a queue of its own.

use serde::{Deserialize, Serialize};
use std::time::Instant;
use throughline_engine::{ConversationId, Event, FailureKind, MessageId, TurnId};
use throughline_wire::{Dialect, TransferMode};

/// Watches all turns of an application. Every method has a body that does nothing.
pub trait TurnObserver: Send + Sync {
    /// The log holds these events of a turn. In order, each once, never before the log has it.
    fn logged(&self, turn: &TurnFacts, events: &[Event]) {
        let _ = (turn, events);
    }

    /// This process goes on with a turn that another one had begun: these events were in its log by then. Told once, before
    /// anything else about the turn. Whoever counted them has done so already.
    fn resumed(&self, turn: &TurnFacts, events: &[Event]) {
        let _ = (turn, events);
    }

    /// Nothing more comes of this turn here: its last event is in the log, the log refuses it, another process has it, or this
    /// one stops. Told once, whatever happened, so that nothing needs to be held for it any longer.
    fn turn_ended(&self, turn: &TurnFacts) {
        let _ = turn;
    }

    /// A model call has come this far.
    fn model_call(&self, turn: &TurnFacts, call: &ModelCallFacts, event: ModelCallEvent) {
        let _ = (turn, call, event);
    }

    /// Bytes of a reply as they came, in order; only of turns that asked for it ([`KeepRaw`]). Together they are the body that
    /// [`wire::StepDecoder`](crate::wire::StepDecoder) read, but for the upstream's key and headers where it repeats them.
    fn raw(&self, turn: &TurnFacts, call: &ModelCallFacts, bytes: &[u8]) {
        let _ = (turn, call, bytes);
    }
}

/// Which turn, and whose. The same value for the whole turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnFacts {
    /// Its id.
    pub turn_id: TurnId,
    /// Its conversation, if there is one.
    pub conversation_id: Option<ConversationId>,
    /// The message that it writes.
    pub message_id: MessageId,
    /// Whose turn it is.
    pub user: Option<String>,
    /// Who answers.
    pub agent: String,
    /// `native`, `text` or `auto`.
    pub mode: String,
    /// How replies of its first model are asked for; `None` = that model is not there any more.
    pub transfer: Option<TransferMode>,
    /// The span of whoever asked for it: [`TurnRequest::trace_parent`](crate::TurnRequest::trace_parent).
    pub trace_parent: Option<String>,
    /// Whether the bytes of its upstreams are told.
    pub keep_raw: KeepRaw,
}

/// Whether the raw bytes of upstreams are told to the observer. R: S5
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeepRaw {
    /// No: nobody copies them.
    #[default]
    No,
    /// Yes.
    Yes,
}

/// Which model call. The same value for the whole call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCallFacts {
    /// The step that asks, from 1.
    pub step: u32,
    /// Which try of it, from 1.
    pub attempt: u32,
    /// Name of the upstream.
    pub upstream: String,
    /// The upstream's name of the model.
    pub model: String,
    /// How it is spoken to.
    pub dialect: Dialect,
}

/// How far a model call is. Each moment at most once a call, in this order, except that a request which is repeated at once
/// is [`Sent`](Self::Sent) again. A call that is given up (the turn was stopped) has no [`Ended`](Self::Ended).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelCallEvent {
    /// The request goes out.
    Sent {
        /// When.
        at: Instant,
        /// Its body, in bytes.
        bytes: u64,
    },
    /// The status line and headers of an answer are there.
    HeadersReceived {
        /// When.
        at: Instant,
        /// HTTP status.
        status: u16,
    },
    /// The first bytes of the body are there.
    FirstByte {
        /// When.
        at: Instant,
    },
    /// The model has said the first thing that a person can see, or begun a call.
    FirstToken {
        /// When.
        at: Instant,
    },
    /// The call is over.
    Ended {
        /// When.
        at: Instant,
        /// Bytes of the body.
        bytes: u64,
        /// What went wrong outside the decoder; `None` = the body was read to its end.
        failure: Option<FailureKind>,
    },
}
