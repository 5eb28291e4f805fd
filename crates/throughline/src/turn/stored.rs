//! The stored form of a turn, with which another process can continue it: everything that resuming needs and that
//! cannot be looked up.

use super::request::FirstCall;
use crate::agent::TextProtocolKind;
use crate::error::Error;
use crate::upstream::{DecodeProfile, UpstreamClient};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use throughline_engine::{
    ConversationId, Event, EventSeq, MessageId, OnInterrupted, StepProviderState, Turn, TurnId, TurnOutput,
    TurnSetup, TurnStart,
};
use throughline_wire::text_calls::{self, CallFormat, ResultRole, TextCalls};
use throughline_wire::{Media, Message, UserPart};

/// Version of [`StoredTurn`] that this release writes. It reads all that are lower.
pub const STORED_TURN_VERSION: u32 = 1;

/// The stored form of a turn. Written before the turn starts; together with its log it is enough to continue in
/// another process, and to compute what the turn adds to its conversation.
///
/// Every field that a later release adds has a default, so every later release reads the form of any earlier one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredTurn {
    /// [`STORED_TURN_VERSION`].
    pub v: u32,
    /// Ids of the turn, and the user's input.
    pub start: TurnStart,
    /// Agent, tools and rules as decided when the turn was prepared. Its history is empty if it is the
    /// conversation's.
    pub setup: TurnSetup,
    /// Location of the history.
    #[serde(default)]
    pub history: HistorySource,
    /// The protocol of calls that travel as text; absent = they travel natively.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<TextProtocolKind>,
    /// Role of the results of such calls.
    #[serde(default)]
    pub results: ResultRole,
    /// The user who owns the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Passes the raw bytes of its upstreams to the observer.
    #[serde(default, with = "yes_or_no")]
    pub keep_raw: bool,
    /// The requester's span, so that a process that continues the turn continues its trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_parent: Option<String>,
    /// Decode profiles of `setup.upstreams`, one for each; empty if raw bytes are not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "read_as")]
    pub decode_profiles: Vec<DecodeProfile>,
    /// Call with which the turn begins; absent = the model is called first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_call: Option<FirstCall>,
}

/// Location of the history of a stored turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistorySource {
    /// The stored turn, since its request contained the history.
    #[default]
    Turn,
    /// The conversation, up to this turn: the caller of [`Throughline::resume`](crate::Throughline::resume)
    /// supplies it.
    Conversation,
}

impl StoredTurn {
    /// Id of the turn.
    pub fn turn_id(&self) -> &TurnId {
        &self.start.turn_id
    }

    /// The message that it writes.
    pub fn message_id(&self) -> &MessageId {
        &self.start.message_id
    }

    /// Conversation of the turn, if any.
    pub fn conversation_id(&self) -> Option<&ConversationId> {
        self.start.conversation_id.as_ref()
    }

    /// The setup with the whole history; `of_conversation` counts if the turn does not have its own.
    pub(crate) fn setup_with_history(&self, conversation_history: Vec<Message>) -> TurnSetup {
        let mut setup = self.setup.clone();
        if self.history == HistorySource::Conversation {
            setup.history = conversation_history;
        }
        setup
    }

    /// The messages that a turn adds to the history of its conversation: the user's message, closed steps, messages
    /// sent during the turn. A fold of its log, so the result is always the same.
    ///
    /// `up_to` cuts the turn after an event, to continue differently from there (a fork): steps closed by then are
    /// whole, partial text becomes the model's message, and a call without an outcome is described as it was known at
    /// that moment.
    pub fn added_messages(
        &self,
        events: &[Event],
        provider_states: &[StepProviderState],
        up_to: Option<EventSeq>,
    ) -> Vec<Message> {
        let events = match up_to {
            None => events,
            Some(seq) => &events[..events.partition_point(|event| event.seq <= seq)],
        };
        // Folding needs neither the earlier history nor permission to continue.
        let setup = TurnSetup { on_interrupted: OnInterrupted::End, ..self.setup.clone() };
        let mut machine = Turn::restore(setup, self.start.clone(), events, provider_states);
        if let Some(last) = events.last().filter(|_| !machine.is_over()) {
            // Everything open at the cut is closed as if the process had ended there.
            machine.resume(0, last.timestamp, &mut TurnOutput::default());
        }
        machine.history().unwrap_or_default()
    }

    /// Transport of its calls.
    pub(crate) fn call_format(&self) -> Result<CallFormat, Error> {
        let Some(protocol) = self.protocol else { return Ok(CallFormat::Native) };
        let named =
            text_calls::protocol(protocol.name()).ok_or(Error::NoProtocol { protocol: protocol.name() })?;
        let tools = self.setup.tools.iter().map(|tool| tool.definition.clone()).collect();
        Ok(CallFormat::Text(TextCalls { protocol: named, tools, results: self.results }))
    }
}

/// A turn that is ready to start. Everything about it is decided and nothing has happened: nothing is logged, and
/// dropping it leaves no trace.
pub struct PreparedTurn {
    pub(crate) stored: StoredTurn,
    /// The conversation's, if it is not in `stored`.
    pub(crate) history: Vec<Message>,
    /// Clients by position in the setup's upstreams.
    pub(crate) upstreams: Vec<Arc<UpstreamClient>>,
}

impl PreparedTurn {
    /// The id that its events will have.
    pub fn turn_id(&self) -> &TurnId {
        self.stored.turn_id()
    }

    /// The message that it will write.
    pub fn message_id(&self) -> &MessageId {
        self.stored.message_id()
    }

    /// Files with request content that is too large for the log: store them together with the turn.
    pub fn file_ids(&self) -> Vec<String> {
        let input = self.stored.start.input.iter().filter_map(UserPart::media);
        let history_media = self.stored.setup.history.iter().flat_map(Message::media);
        input.chain(history_media).filter_map(Media::file_id).map(str::to_owned).collect()
    }

    /// The form to store, for [`Throughline::resume`](crate::Throughline::resume).
    pub fn stored(&self) -> &StoredTurn {
        &self.stored
    }
}

/// A flag that is stored as `"yes"` or `"no"`.
mod yes_or_no {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(flag: &bool, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(if *flag { "yes" } else { "no" })
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
        Ok(String::deserialize(deserializer)? == "yes")
    }
}
