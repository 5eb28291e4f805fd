//! A turn as it is kept, so that another process can go on with it: everything that resuming needs, and nothing that can be
//! looked up. R: S3

use crate::Throughline;
use crate::config::{ResultsAs, TextProtocolKind};
use crate::error::Error;
use crate::hooks::TurnHooks;
use crate::observer::KeepRaw;
use crate::turn::TurnHandle;
use crate::upstream::UpstreamClient;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use throughline_engine::{
    ConversationId, Event, EventSeq, MessageId, OnInterrupted, StepProviderState, TurnId, TurnOutput,
    TurnSetup, TurnStart,
};
use throughline_wire::text::{self, CallFormat, ResultRole, TextCalls};
use throughline_wire::{Dialect, Media, Message, UpstreamProfile, UserPart};

/// Version of [`StoredTurn`] that this release writes. It reads all that are lower.
pub const STORED_TURN_VERSION: u32 = 1;

/// A turn as it is kept. Written before the turn begins; with its log it is enough to go on in another process, and to tell
/// what the turn adds to its conversation.
///
/// Every field that a later release adds has a default, so one written by any release is read by every later one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredTurn {
    /// [`STORED_TURN_VERSION`].
    pub v: u32,
    /// Its ids, and what the user sent.
    pub start: TurnStart,
    /// Who answers, with what, under which rules: as it was decided when the turn was prepared. Its history is empty if it
    /// is the conversation's.
    pub setup: TurnSetup,
    /// Whose history it is.
    #[serde(default)]
    pub history: HistorySource,
    /// The protocol of calls that travel as text; absent = they travel natively.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<TextProtocolKind>,
    /// Who says the results of such calls.
    #[serde(default)]
    pub results: ResultsAs,
    /// Whose turn it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Whether the raw bytes of its upstreams are given to the observer.
    #[serde(default)]
    pub keep_raw: KeepRaw,
    /// The span of whoever asked for it, so that a process which goes on with it goes on with its trace, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_parent: Option<String>,
    /// How the replies of `setup.upstreams` are read, one for each; empty if nobody keeps their bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "read_as")]
    pub decode_profiles: Vec<DecodeProfile>,
}

/// How the replies of an upstream are read: with their bytes, enough to decode them again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecodeProfile {
    /// How it is spoken to.
    pub dialect: Dialect,
    /// Its quirks.
    pub profile: UpstreamProfile,
}

/// Where the history of a stored turn is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistorySource {
    /// In the stored turn: its request brought it along.
    #[default]
    Turn,
    /// Its conversation's, up to this turn: whoever resumes the turn has to give it.
    Conversation,
}

impl StoredTurn {
    /// Its id.
    pub fn turn_id(&self) -> &TurnId {
        &self.start.turn_id
    }

    /// The message that it writes.
    pub fn message_id(&self) -> &MessageId {
        &self.start.message_id
    }

    /// Its conversation, if there is one.
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

    /// How its calls travel.
    pub(crate) fn call_format(&self) -> Result<CallFormat, Error> {
        let Some(protocol) = self.protocol else { return Ok(CallFormat::Native) };
        let named = text::protocol(protocol.name()).ok_or(Error::NoProtocol { protocol: protocol.name() })?;
        let results = match self.results {
            ResultsAs::User => ResultRole::User,
            ResultsAs::Tool => ResultRole::Tool,
        };
        let tools = self.setup.tools.iter().map(|tool| tool.definition.clone()).collect();
        Ok(CallFormat::Text(TextCalls { protocol: named, tools, results }))
    }
}

/// A turn that is ready to begin. Everything about it is decided, and nothing of it has happened: nothing is logged, and
/// dropping it leaves no trace.
pub struct PreparedTurn {
    pub(crate) stored: StoredTurn,
    /// The conversation's, if it is not in `stored`.
    pub(crate) history: Vec<Message>,
    /// By place in the setup's upstreams.
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

    /// The files that hold what its request said and the log is too small for: whoever keeps the turn keeps them with it.
    pub fn file_ids(&self) -> Vec<String> {
        let input = self.stored.start.input.iter().filter_map(UserPart::media);
        let history_media = self.stored.setup.history.iter().flat_map(Message::media);
        input.chain(history_media).filter_map(Media::file_id).map(str::to_owned).collect()
    }

    /// What is to be kept of it, for [`Throughline::resume`].
    pub fn stored(&self) -> &StoredTurn {
        &self.stored
    }
}

impl Throughline {
    /// Starts a turn. It runs in a task of its own, on the tokio runtime of the caller.
    ///
    /// # Errors
    /// As in [`ask`](Self::ask).
    pub async fn start(&self, request: crate::TurnRequest) -> Result<TurnHandle, Error> {
        let prepared = self.prepare(request).await?;
        self.start_prepared(prepared, TurnHooks::default()).await
    }

    /// What a turn adds to the history of its conversation: the user's message, closed steps, what the user said in
    /// mid-turn. A fold of its log, the same whoever folds it. R: T9, S3
    ///
    /// `up_to` cuts the turn behind an event, to go on from there in another way (a fork): steps that were closed by then
    /// are whole, the text that was there stands as the model's message, and a call that had no outcome by then is told
    /// as what was known at that moment.
    pub fn added_messages(
        stored: &StoredTurn,
        events: &[Event],
        provider_states: &[StepProviderState],
        up_to: Option<EventSeq>,
    ) -> Vec<Message> {
        let events = match up_to {
            None => events,
            Some(seq) => &events[..events.partition_point(|event| event.seq <= seq)],
        };
        // Folding needs neither what was said before nor permission to go on.
        let setup = TurnSetup { on_interrupted: OnInterrupted::End, ..stored.setup.clone() };
        let mut machine =
            throughline_engine::Turn::restore(setup, stored.start.clone(), events, provider_states);
        if let Some(last) = events.last().filter(|_| !machine.is_over()) {
            // Whatever is open at the cut is closed as it would be if the process had ended there.
            machine.resume(0, last.timestamp, &mut TurnOutput::default());
        }
        machine.history().unwrap_or_default()
    }
}
