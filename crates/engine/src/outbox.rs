//! Order of log and effects: an event is visible, and its actions are performed, only after the log holds it.
//!
//! The events of one `apply` are appended, and its actions are performed only when that append is
//! acknowledged, except those without an observable effect ([`TurnAction::is_read_only`]). The machine does
//! not wait: it takes the next input immediately and may be ahead of the log by a bounded gap. One append is
//! in flight at a time; later events go into the next one, so batches grow under load.
//!
//! This one synchronous type is the whole rule. The driver and the simulator both use it, so that the simulator tests
//! what runs.

use crate::action::{StepProviderState, TurnAction, TurnOutput};
use crate::event::{Event, EventKind};
use crate::input::TurnInput;
use std::collections::VecDeque;
use throughline_wire::{CallOutcome, NotStarted};

/// Events and actions on their way from the machine to the log and the driver.
///
/// ```
/// use throughline_engine::{Outbox, Turn, TurnOutput, TurnSetup, TurnStart, UpstreamChoice};
///
/// let upstream = UpstreamChoice { name: "demo".into(), model: "small".into() };
/// let setup = TurnSetup { upstreams: vec![upstream], ..TurnSetup::default() };
/// let mut out = TurnOutput::default();
/// Turn::new(setup, TurnStart::default(), 1_000, &mut out);
///
/// let mut outbox = Outbox::new();
/// assert!(outbox.push(&mut out).is_empty());
/// let batch = outbox.next_append().expect("the events of the start");
/// assert_eq!(batch.events.len(), 2); // ... which the driver writes to the log.
/// assert!(outbox.take_ready().is_empty(), "nothing is done before the log has them");
/// assert_eq!(outbox.acknowledge().actions.len(), 2); // the model call and a timer
/// ```
#[derive(Debug, Default)]
pub struct Outbox {
    /// Events and actions not yet handed out for an append.
    pending: OutboxBatch,
    /// Handed out and not acknowledged.
    in_flight: Option<OutboxBatch>,
    /// Actions that only look.
    read_only: Vec<TurnAction>,
    /// Set once the log has refused an append: then nothing more leaves, ever.
    refused: bool,
}

#[derive(Debug, Default)]
struct OutboxBatch {
    events: Vec<Event>,
    provider_states: Vec<StepProviderState>,
    actions: VecDeque<TurnAction>,
    bytes: usize,
}

/// Batch to append to the log in one transaction. The outbox keeps it until it is acknowledged, so that it is written
/// from here without a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AppendBatch<'a> {
    /// Events, dense by `seq`. May be empty if `provider_states` is not.
    pub events: &'a [Event],
    /// Stored next to the log.
    pub provider_states: &'a [StepProviderState],
}

/// Events and actions that an acknowledged append releases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReleasedBatch {
    /// Viewers may see these now.
    pub events: Vec<Event>,
    /// To be performed now, in order: those of the events, and those without events that waited for them.
    pub actions: Vec<TurnAction>,
}

impl Outbox {
    /// Most events that the machine may be ahead of the log.
    pub const EVENTS_MAX: usize = 4_096;
    /// Most bytes, as a rough count of their text, that the machine may be ahead of the log: 16 MiB.
    pub const BYTES_MAX: usize = 16 << 20;

    /// An empty outbox.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what one `apply` yielded and leaves `out` empty.
    ///
    /// Returns inputs to give to the machine next: a start that is cancelled before its intent was acknowledged never
    /// happens, and the returned input reports that (the call ends as `not_started`).
    #[must_use = "these inputs complete calls that will never start"]
    pub fn push(&mut self, out: &mut TurnOutput) -> Vec<TurnInput> {
        if self.refused {
            *out = TurnOutput::default();
            return Vec::new();
        }
        let mut ended = Vec::new();
        self.pending.bytes += out.events.iter().map(estimated_bytes).sum::<usize>();
        self.pending.events.append(&mut out.events);
        self.pending.provider_states.append(&mut out.provider_states);
        for action in out.actions.drain(..) {
            if action.is_read_only() {
                self.read_only.push(action);
                continue;
            }
            match self.withdraw_start(&action) {
                Some(input) => ended.push(input),
                None => self.pending.actions.push_back(action),
            }
        }
        ended
    }

    /// The next batch to append; `None` while an append is in flight, or if there is nothing to append.
    pub fn next_append(&mut self) -> Option<AppendBatch<'_>> {
        if self.in_flight.is_some() || self.refused {
            return None;
        }
        if self.pending.events.is_empty() && self.pending.provider_states.is_empty() {
            return None;
        }
        let batch = self.in_flight.insert(std::mem::take(&mut self.pending));
        Some(AppendBatch { events: &batch.events, provider_states: &batch.provider_states })
    }

    /// Actions that wait for no event: read-only ones, and those of an `apply` without events when the log
    /// has caught up with the machine.
    pub fn take_ready(&mut self) -> Vec<TurnAction> {
        let mut ready = std::mem::take(&mut self.read_only);
        if self.is_caught_up() && !self.refused {
            ready.extend(self.pending.actions.drain(..));
        }
        ready
    }

    /// The append in flight is durable.
    pub fn acknowledge(&mut self) -> ReleasedBatch {
        let Some(OutboxBatch { events, mut actions, .. }) = self.in_flight.take() else {
            return ReleasedBatch::default();
        };
        // No later append would release these.
        if self.is_caught_up() {
            actions.append(&mut self.pending.actions);
        }
        ReleasedBatch { events, actions: actions.into() }
    }

    /// The log has all events.
    fn is_caught_up(&self) -> bool {
        self.in_flight.is_none() && self.pending.events.is_empty() && self.pending.provider_states.is_empty()
    }

    /// The append in flight was refused (fenced, or the store is lost): everything pending is dropped and
    /// nothing more is released. The driver cancels running tools and discards the machine: the log alone
    /// defines what happened.
    pub fn refuse(&mut self) {
        *self = Self { refused: true, ..Self::default() };
    }

    /// The log lags too far: do not read the upstream until [`Outbox::acknowledge`].
    pub fn is_full(&self) -> bool {
        let (events, bytes) = self.backlog();
        events >= Self::EVENTS_MAX || bytes >= Self::BYTES_MAX
    }

    /// True if everything was appended and released.
    pub fn is_empty(&self) -> bool {
        self.in_flight.is_none()
            && self.pending.events.is_empty()
            && self.pending.actions.is_empty()
            && self.read_only.is_empty()
    }

    /// Lead of the machine over the log: events, and a rough count of their bytes.
    pub fn backlog(&self) -> (usize, usize) {
        let in_flight = self.in_flight.as_ref();
        (
            self.pending.events.len() + in_flight.map_or(0, |batch| batch.events.len()),
            self.pending.bytes + in_flight.map_or(0, |batch| batch.bytes),
        )
    }

    /// If `action` cancels a tool whose start is still waiting for its intent, that start is taken out.
    fn withdraw_start(&mut self, action: &TurnAction) -> Option<TurnInput> {
        let TurnAction::CancelTool { call, attempt } = action else { return None };
        let in_flight = self.in_flight.iter_mut();
        for batch in in_flight.chain([&mut self.pending]) {
            let position = batch.actions.iter().position(|action| {
                matches!(action, TurnAction::StartTool { call: c, attempt: a, .. } | TurnAction::OfferCall { call: c, attempt: a, .. } if c == call && a == attempt)
            });
            if let Some(at) = position {
                batch.actions.remove(at);
                let outcome = CallOutcome::NotStarted(NotStarted::Stopped);
                return Some(TurnInput::ToolEnded { call: call.clone(), attempt: *attempt, outcome });
            }
        }
        None
    }
}

/// A rough count of an event's bytes: its text, and a flat sum for the rest.
fn estimated_bytes(event: &Event) -> usize {
    const ENVELOPE: usize = 160;
    ENVELOPE
        + match &event.kind {
            EventKind::ContentDelta { text } | EventKind::Thinking { text } => text.len(),
            EventKind::ToolInputDelta { delta, .. } => delta.len(),
            EventKind::AudioDelta { data, transcript, .. } => data.len() + transcript.len(),
            EventKind::ToolInput(input) => {
                let text = input.text.as_ref().or(input.raw.as_ref());
                text.map_or_else(
                    || input.arguments.as_ref().map_or(0, |value| value.to_string().len()),
                    String::len,
                )
            }
            EventKind::ToolProgress(progress) => progress.output_delta.as_ref().map_or(0, String::len),
            EventKind::ToolResult(result) => {
                result.output.as_ref().map_or(0, String::len)
                    + result.output_media.iter().map(|media| media.data().len()).sum::<usize>()
                    + result.output_value.as_ref().map_or(0, |value| value.to_string().len())
            }
            EventKind::BlockStart(crate::BlockStart::Image(media)) => media.data().len(),
            EventKind::StreamStart { input, .. } | EventKind::UserMessage { input, .. } => {
                input.iter().map(estimated_part_bytes).sum()
            }
            _ => 0,
        }
}

fn estimated_part_bytes(part: &throughline_wire::UserPart) -> usize {
    use throughline_wire::UserPart;
    match part {
        UserPart::Text { text } => text.len(),
        UserPart::Image(media) | UserPart::File { media, .. } => media.data().len(),
    }
}
