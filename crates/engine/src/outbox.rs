//! Who waits for whom: nothing is seen or done before the log holds it.
//!
//! The events of one `apply` are appended, and its actions are performed only when that append is acknowledged, except
//! those that nobody outside can notice ([`Action::only_looks`]). The machine does not wait: it takes the next input at
//! once and may be ahead of the log, by a bounded gap. One append is in flight at a time; what gathers meanwhile goes into
//! the next one, so batches grow under load by themselves.
//!
//! This one synchronous type is the whole rule. The driver and the simulator both use it, so that the simulator tests
//! what runs.

use crate::action::{Action, Beside, Out};
use crate::event::{Event, EventKind};
use crate::input::Input;
use std::collections::VecDeque;
use throughline_wire::{NotStarted, Outcome};

/// Events and actions on their way from the machine to the log and the driver. R: design §3a
#[derive(Debug, Default)]
pub struct Outbox {
    /// Not handed out for appending yet.
    pending: Batch,
    /// Handed out and not acknowledged.
    in_flight: Option<Batch>,
    /// Actions that only look.
    looks: Vec<Action>,
    refused: Refused,
}

#[derive(Debug, Default)]
struct Batch {
    events: Vec<Event>,
    beside: Vec<Beside>,
    actions: VecDeque<Action>,
    bytes: usize,
}

/// Whether the log has refused an append: then nothing more leaves, ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Refused {
    #[default]
    No,
    Yes,
}

/// What is to be appended to the log, in one transaction. The outbox keeps it until it is acknowledged: whoever appends
/// writes it down from here and copies nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Append<'a> {
    /// Events, dense by `seq`. May be empty if `beside` is not.
    pub events: &'a [Event],
    /// Stored beside the log.
    pub beside: &'a [Beside],
}

/// What an acknowledged append sets free.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Released {
    /// Viewers may see these now.
    pub events: Vec<Event>,
    /// To be performed now, in order.
    pub actions: Vec<Action>,
}

impl Outbox {
    /// Most events that the machine may be ahead of the log.
    pub const EVENTS_MAX: usize = 4_096;
    /// Most bytes, as a rough count of their text, that the machine may be ahead of the log: 16 MiB.
    pub const BYTES_MAX: usize = 16 << 20;

    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what one `apply` yielded and leaves `out` empty.
    ///
    /// Returns inputs to give to the machine next: a start that is cancelled before its intent was acknowledged never
    /// happens, and the machine is told so (the call ends as `not_started`).
    #[must_use = "these inputs end calls that will never start"]
    pub fn push(&mut self, out: &mut Out) -> Vec<Input> {
        if self.refused == Refused::Yes {
            *out = Out::default();
            return Vec::new();
        }
        let mut ended = Vec::new();
        self.pending.bytes += out.events.iter().map(weight).sum::<usize>();
        self.pending.events.append(&mut out.events);
        self.pending.beside.append(&mut out.beside);
        for action in out.actions.drain(..) {
            if action.only_looks() {
                self.looks.push(action);
                continue;
            }
            match self.take_start(&action) {
                Some(input) => ended.push(input),
                None => self.pending.actions.push_back(action),
            }
        }
        ended
    }

    /// What to append next; `None` while an append is in flight, or if there is nothing to append.
    pub fn next_append(&mut self) -> Option<Append<'_>> {
        if self.in_flight.is_some() || self.refused == Refused::Yes {
            return None;
        }
        if self.pending.events.is_empty() && self.pending.beside.is_empty() {
            return None;
        }
        let batch = self.in_flight.insert(std::mem::take(&mut self.pending));
        Some(Append { events: &batch.events, beside: &batch.beside })
    }

    /// Actions that wait for no event: those that only look, and those of an `apply` without events when the log is level
    /// with the machine.
    pub fn ready(&mut self) -> Vec<Action> {
        let mut ready = std::mem::take(&mut self.looks);
        let level =
            self.in_flight.is_none() && self.pending.events.is_empty() && self.pending.beside.is_empty();
        if level && self.refused == Refused::No {
            ready.extend(self.pending.actions.drain(..));
        }
        ready
    }

    /// The append in flight is durable.
    pub fn acknowledged(&mut self) -> Released {
        match self.in_flight.take() {
            Some(batch) => Released { events: batch.events, actions: batch.actions.into() },
            None => Released::default(),
        }
    }

    /// The append in flight was refused (fenced, or the store is lost): everything pending is dropped, nothing leaves
    /// any more. The driver cancels running tools and discards the machine: what the log holds is what happened.
    pub fn refused(&mut self) {
        *self = Self { refused: Refused::Yes, ..Self::default() };
    }

    /// The log is too far behind: do not read the upstream until [`Outbox::acknowledged`].
    pub fn is_full(&self) -> bool {
        let (events, bytes) = self.gap();
        events >= Self::EVENTS_MAX || bytes >= Self::BYTES_MAX
    }

    /// Everything was appended and released.
    pub fn is_empty(&self) -> bool {
        self.in_flight.is_none()
            && self.pending.events.is_empty()
            && self.pending.actions.is_empty()
            && self.looks.is_empty()
    }

    /// How far the machine is ahead of the log: events, and a rough count of their bytes.
    pub fn gap(&self) -> (usize, usize) {
        let flying = self.in_flight.as_ref();
        (
            self.pending.events.len() + flying.map_or(0, |batch| batch.events.len()),
            self.pending.bytes + flying.map_or(0, |batch| batch.bytes),
        )
    }

    /// If `action` cancels a tool whose start is still waiting for its intent, that start is taken out.
    fn take_start(&mut self, action: &Action) -> Option<Input> {
        let Action::CancelTool { call, attempt } = action else { return None };
        let flying = self.in_flight.iter_mut();
        for batch in flying.chain([&mut self.pending]) {
            let found = batch.actions.iter().position(|action| {
                matches!(action, Action::StartTool { call: c, attempt: a, .. } | Action::OfferCall { call: c, attempt: a, .. } if c == call && a == attempt)
            });
            if let Some(at) = found {
                batch.actions.remove(at);
                let outcome = Outcome::NotStarted(NotStarted::Stopped);
                return Some(Input::ToolEnded { call: call.clone(), attempt: *attempt, outcome });
            }
        }
        None
    }
}

/// A rough count of an event's bytes: its text, and a flat sum for the rest.
fn weight(event: &Event) -> usize {
    const ENVELOPE: usize = 160;
    ENVELOPE
        + match &event.kind {
            EventKind::ContentDelta { text } | EventKind::Thinking { text } => text.len(),
            EventKind::ToolInputDelta { delta } => delta.len(),
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
                input.iter().map(part_weight).sum()
            }
            _ => 0,
        }
}

fn part_weight(part: &throughline_wire::UserPart) -> usize {
    use throughline_wire::UserPart;
    match part {
        UserPart::Text { text } => text.len(),
        UserPart::Image(media) | UserPart::File { media, .. } => media.data().len(),
    }
}
