//! Observation of all turns of an application, for metrics, call histories and raw bytes of upstreams.
//!
//! An observer never changes anything and is never waited for. The tasks that run the turns call it: it must
//! return quickly and move slow work to its own queue.

mod observed;

pub(crate) use observed::{ObservedBytes, ObservedCall, ObservedTurn};

use std::time::Instant;
use throughline_engine::{ConversationId, Event, FailureKind, MessageId, TurnId};
use throughline_wire::{Dialect, TransferMode};

/// Watches all turns of an application. Every method has a body that does nothing.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use throughline::{Event, TurnFacts, TurnObserver};
///
/// #[derive(Default)]
/// struct EventCounter(AtomicUsize);
///
/// impl TurnObserver for EventCounter {
///     fn logged(&self, _turn: &TurnFacts, events: &[Event]) {
///         self.0.fetch_add(events.len(), Ordering::Relaxed);
///     }
/// }
/// let builder = throughline::Throughline::builder().observer(std::sync::Arc::new(EventCounter::default()));
/// ```
pub trait TurnObserver: Send + Sync {
    /// The log holds these events of a turn. In order, each once, never before the log has it.
    fn logged(&self, turn: &TurnFacts, events: &[Event]) {
        let _ = (turn, events);
    }

    /// Called once, before any other method for the turn, when this process continues a turn of another one:
    /// its log has these events already. The process that wrote them has reported them.
    fn resumed(&self, turn: &TurnFacts, events: &[Event]) {
        let _ = (turn, events);
    }

    /// The end of this turn's notifications here: its last event is in the log, the log refuses it, another process
    /// has taken it over, or this one stops. Called once in every case, so that an observer can release its state.
    fn turn_ended(&self, turn: &TurnFacts) {
        let _ = turn;
    }

    /// A model call has made progress.
    fn model_call(&self, turn: &TurnFacts, call: &ModelCallFacts, event: ModelCallEvent) {
        let _ = (turn, call, event);
    }

    /// Bytes of a reply as received, in order; only for turns with [`keep_raw`](TurnFacts::keep_raw), and not of a reply that
    /// was discarded because the call was repeated. Together they are the body that
    /// [`wire::StepDecoder`](crate::wire::StepDecoder) read, except where it repeats the upstream's key and
    /// headers.
    fn raw(&self, turn: &TurnFacts, call: &ModelCallFacts, bytes: &[u8]) {
        let _ = (turn, call, bytes);
    }
}

/// Identity and owner of a turn. The same value for the whole turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnFacts {
    /// Id of the turn.
    pub turn_id: TurnId,
    /// Conversation of the turn, if any.
    pub conversation_id: Option<ConversationId>,
    /// The message that it writes.
    pub message_id: MessageId,
    /// The user who owns the turn, in an application with several users.
    pub user: Option<String>,
    /// The agent that answers.
    pub agent: String,
    /// `native`, `text` or `auto`.
    pub mode: String,
    /// Transfer mode of replies of its first model; `None` = that model no longer exists.
    pub transfer: Option<TransferMode>,
    /// The requester's span: [`TurnRequest::trace_parent`](crate::TurnRequest::trace_parent).
    pub trace_parent: Option<String>,
    /// Passes the raw bytes of its upstreams to the observer.
    pub keep_raw: bool,
}

/// Identity of a model call. The same value for the whole call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCallFacts {
    /// Step that makes the call, from 1.
    pub step: u32,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// Name of the upstream.
    pub upstream: String,
    /// The upstream's name of the model.
    pub model: String,
    /// Wire format of the upstream.
    pub dialect: Dialect,
}

/// Progress of a model call. Each event occurs at most once per call, in this order, except that a request
/// that is repeated immediately is [`Sent`](Self::Sent) again, followed by new events. A call that is dropped
/// because the turn was stopped has no [`Ended`](Self::Ended).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelCallEvent {
    /// The request goes out.
    Sent {
        /// Time of the event.
        at: Instant,
        /// Length of the request's body, in bytes.
        bytes: u64,
    },
    /// The status line and headers of an answer are there.
    HeadersReceived {
        /// Time of the event.
        at: Instant,
        /// HTTP status.
        status: u16,
    },
    /// The first bytes of the body are there.
    FirstByte {
        /// Time of the event.
        at: Instant,
    },
    /// The first visible output of the model, or the start of its first call.
    FirstToken {
        /// Time of the event.
        at: Instant,
    },
    /// The call is over.
    Ended {
        /// Time of the event.
        at: Instant,
        /// Bytes of the body of the last reply.
        bytes: u64,
        /// A failure outside the decoder; `None` = the body was read to its end.
        failure: Option<FailureKind>,
    },
}
