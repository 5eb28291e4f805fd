//! Conversations in a portable form, for export, import and forks. Pure except for [`import_conversation`]: it reads
//! and writes text, without store or network.
//!
//! Each turn is represented by its log. Everything else about it (message, history, calls) is folded from the
//! log at the destination as well, so an imported turn is like any other. Provider state and the settings of
//! the turn are not exported: they are never served.

pub(crate) mod csv;

mod ids;
mod import;
mod jsonl;
mod markdown;
mod media;
mod messages;

pub use ids::IdMap;
pub(crate) use import::ImportError;
pub use import::{ImportTarget, import_conversation};
pub(crate) use jsonl::FORMAT;
pub use jsonl::{read as read_jsonl, write as write_jsonl};
pub(crate) use markdown::MediaLinks;
pub use markdown::{NoMediaLinks, markdown};
pub use media::{embed_media, media_files};
pub use messages::parse_messages as read_messages;

use crate::turn_log::{self, EventJson, call_rows};
use serde::{Deserialize, Serialize};
use serde_json::json;
use throughline_engine::fold::AssistantMessage;
use throughline_engine::{
    Event, EventKind, EventSeq, MessageId, OnInterrupted, Turn, TurnId, TurnOutput, TurnSetup, TurnStart,
    TurnStatus,
};
use throughline_store::{
    CallRow, ConversationRow, ImportedConversation, TitleSource, TurnEnd, TurnParent, TurnRating, TurnRow,
};
use throughline_wire::UserPart;

/// Most turns of one conversation that is read in.
pub(crate) const TURNS_MAX: usize = 10_000;
/// Most events of one turn that is read in.
pub(crate) const EVENTS_PER_TURN_MAX: usize = 200_000;
/// Most events that a list of messages becomes: a message of 20 bytes may become events of 300.
pub(crate) const EVENTS_OF_LIST_MAX: usize = 500_000;

/// Checks the memory of a turn's value trees, in [tree units](TreeUnits), up to this line.
fn check_units(line: usize, units: u64, units_max: u64) -> Result<(), LineError> {
    if units <= units_max {
        return Ok(());
    }
    Err(LineError::new(line, "the JSON in arguments, results and input of its turn takes too much memory")
        .help("raise `large_bodies_memory_bytes_max` of [server.limits], or import it while no server runs"))
}

/// A conversation as it travels.
#[derive(Clone, Debug, PartialEq)]
pub struct PortableConversation {
    /// Id in the source.
    pub id: String,
    /// Title; `None` = the first words of the first input.
    pub title: Option<String>,
    /// The turn that a new one continues.
    pub leaf_id: Option<String>,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// Filing of the conversation by its user.
    pub filing: PortableFiling,
    /// Parents before children.
    pub turns: Vec<PortableTurn>,
}

/// Filing of a conversation by its user, in portable form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortableFiling {
    /// Folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Since when it is pinned, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned_at: Option<i64>,
    /// Since when it is archived, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<i64>,
}

/// A turn as it travels.
#[derive(Clone, Debug, PartialEq)]
pub struct PortableTurn {
    /// Id in the source.
    pub id: String,
    /// Turn that it continues.
    pub parent: Option<TurnParent>,
    /// Model that answered, as `upstream/model`.
    pub model: Option<String>,
    /// Rating by its user.
    pub rating: Option<TurnRating>,
    /// Log of the turn.
    pub events: Vec<EventJson>,
}

/// Error in an imported file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct LineError {
    /// Line of the error, from 1.
    pub line: usize,
    /// Description of the error.
    pub message: String,
    /// Suggestion, if any.
    pub help: Option<String>,
}

impl LineError {
    pub(crate) fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into(), help: None }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Declared format of an imported file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportFormat {
    /// JSON Lines, as [`write_jsonl`] has them.
    JsonLines,
    /// A list of OpenAI messages.
    Messages,
    /// Detected from the first line.
    Detect,
}

/// Reads a conversation: an own file, or a list of OpenAI messages, which are from `now`. The JSON in a turn's arguments,
/// results and input may take `units_max` tree units: 1 for a comma, 4 for a list or object.
///
/// # Errors
/// The first line that cannot be imported, with the reason.
pub fn parse_conversation(
    text: &str,
    format: ImportFormat,
    now: i64,
    units_max: u64,
) -> Result<PortableConversation, LineError> {
    match format {
        ImportFormat::Detect if is_jsonl(text.as_bytes()) => read_jsonl(text, units_max),
        ImportFormat::JsonLines => read_jsonl(text, units_max),
        ImportFormat::Detect | ImportFormat::Messages => read_messages(text, now, units_max),
    }
}

/// True if the first line of a text is the header of an own file.
pub(crate) fn is_jsonl(text: &[u8]) -> bool {
    let first = text.trim_ascii_start().split(|byte| *byte == b'\n').next().unwrap_or_default();
    first.windows(FORMAT.len()).any(|part| part == FORMAT.as_bytes())
}

impl PortableTurn {
    /// The events as this release understands them.
    pub(crate) fn parsed_events(&self) -> Vec<Event> {
        // What is no event at all was refused when it was read.
        self.events.iter().filter_map(|event| event.parse().ok()).collect()
    }

    /// The one message of the turn.
    pub fn message(&self) -> AssistantMessage {
        AssistantMessage::from_events(&self.parsed_events())
    }

    /// Ends the log after an event, or where it breaks off: open calls and blocks are closed as if the
    /// process had died there.
    pub fn close(&mut self, after: Option<EventSeq>) {
        let mut events = self.parsed_events();
        if let Some(seq) = after {
            let retained = events.partition_point(|event| event.seq <= seq);
            events.truncate(retained);
            self.events.truncate(retained);
        }
        let (Some(start), Some(last)) = (start_of(&events), events.last().map(|event| event.timestamp))
        else {
            return;
        };
        let mut machine = Turn::restore(setup_of(&events), start, &events, &[]);
        if machine.is_over() {
            return;
        }
        let mut out = TurnOutput::default();
        machine.resume(0, last, &mut out);
        self.events.extend(out.events.iter().filter_map(|event| EventJson::of(event).ok()));
    }
}

/// Start of the turn according to its log.
fn start_of(events: &[Event]) -> Option<TurnStart> {
    let first = events.first()?;
    let EventKind::StreamStart { conversation_id, message_id, input, .. } = &first.kind else { return None };
    Some(TurnStart {
        turn_id: first.turn_id.clone(),
        conversation_id: conversation_id.clone(),
        message_id: message_id.clone(),
        nonce: 0,
        input: input.clone(),
    })
}

/// Settings of an imported turn: enough to fold it, not enough to continue it.
fn setup_of(events: &[Event]) -> TurnSetup {
    let (agent, mode) = match events.first().map(|event| &event.kind) {
        Some(EventKind::StreamStart { agent, mode, .. }) => (agent.clone(), mode.clone()),
        _ => Default::default(),
    };
    TurnSetup { agent, mode, on_interrupted: OnInterrupted::End, ..TurnSetup::default() }
}

impl PortableConversation {
    /// A conversation from the rows of a store. A turn that was accepted and has not begun yet has no
    /// content, and is left out.
    pub fn of(row: ConversationRow, mut turns: Vec<PortableTurn>) -> Self {
        turns.retain(|turn| !turn.events.is_empty());
        let title = (row.title_by == TitleSource::UserGiven).then_some(row.title);
        let ConversationRow { id, leaf_id, created_at, folder, tags, pinned_at, archived_at, .. } = row;
        let filing = PortableFiling { folder, tags, pinned_at, archived_at };
        Self { id, title, leaf_id, created_at, filing, turns }
    }

    /// The rows of an imported conversation: every turn has ended, its calls are in the history.
    ///
    /// # Errors
    /// A turn whose log has no beginning or no end; see [`PortableTurn::close`].
    pub(crate) fn rows(&self, user: &str, now: i64) -> Result<ImportedConversation, LineError> {
        let files = media::media_files(self);
        let mut turns = Vec::with_capacity(self.turns.len());
        let mut calls: Vec<CallRow> = Vec::new();
        for turn in &self.turns {
            let events = turn.parsed_events();
            let mut message = AssistantMessage::from_events(&events);
            let (Some(start), Some(status), Some(ended_at)) =
                (start_of(&events), message.status, message.ended_at)
            else {
                return Err(LineError::new(1, format!("turn `{}` is incomplete", turn.id)));
            };
            // One turn may be most of a long conversation: its derived forms are not all held in memory
            // together.
            let text = message.text();
            message.blocks.clear();
            calls.extend(call_rows(&events));
            let setup = setup_of(&events);
            let machine = Turn::restore(setup.clone(), start.clone(), &events, &[]);
            drop(events);
            let (adds, waterfall) = (machine.history().unwrap_or_default(), machine.waterfall());
            turns.push(TurnRow {
                id: turn.id.clone(),
                user: user.to_owned(),
                conversation_id: Some(self.id.clone()),
                parent: turn.parent.clone(),
                message_id: message.message_id.as_str().to_owned(),
                stored: json!({
                    "v": 1, "start": start, "setup": setup, "history": "conversation", "user": user,
                })
                .to_string(),
                agent: message.agent.clone(),
                model: turn.model.clone(),
                mode: Some(message.mode.clone()),
                input_text: text_of(&message.input),
                created_at: message.started_at,
                end: Some(TurnEnd {
                    status: status_name(status),
                    history_json: serde_json::to_string(&adds).unwrap_or_else(|_| "[]".to_owned()),
                    text,
                    usage: message.stats.as_ref().and_then(|stats| serde_json::to_value(stats.usage).ok()),
                    pace: turn_log::turn_timing(
                        waterfall.first_content_ms(),
                        waterfall.writing_ms(),
                        &machine.usage(),
                    ),
                    ended_at,
                }),
                rating: turn.rating.clone(),
            });
        }
        let first_words = turns.first().map(|turn| turn.input_text.chars().take(80).collect::<String>());
        Ok(ImportedConversation {
            conversation: ConversationRow {
                id: self.id.clone(),
                user: user.to_owned(),
                title_by: if self.title.is_some() { TitleSource::UserGiven } else { TitleSource::FirstInput },
                title: self.title.clone().or(first_words).unwrap_or_default(),
                leaf_id: self.leaf_id.clone(),
                created_at: self.created_at,
                updated_at: now,
                folder: self.filing.folder.clone(),
                tags: self.filing.tags.clone(),
                pinned_at: self.filing.pinned_at,
                archived_at: self.filing.archived_at,
                temporary: false,
            },
            turns,
            calls,
            files,
        })
    }
}

/// The text of what a user sent.
pub(crate) fn text_of(parts: &[UserPart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        UserPart::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Name of the status, as in `stream_end`.
pub(crate) fn status_name(status: TurnStatus) -> String {
    match status {
        TurnStatus::Completed => "completed",
        TurnStatus::Length => "length",
        TurnStatus::Limit => "limit",
        TurnStatus::Error => "error",
        TurnStatus::Cancelled => "cancelled",
        TurnStatus::Interrupted => "interrupted",
    }
    .to_owned()
}

/// An event of a turn that is written down now.
pub(crate) fn event(turn: &TurnId, seq: u64, timestamp: i64, kind: EventKind) -> Event {
    Event {
        turn_id: turn.clone(),
        seq: EventSeq(seq),
        timestamp,
        step: None,
        block: None,
        tool_id: None,
        kind,
    }
}

pub(crate) fn stream_start(message: &MessageId, input: Vec<UserPart>) -> EventKind {
    EventKind::stream_start(message.clone(), "imported", input)
}
