//! One turn as a machine. (The transitions land next; this is the boundary that the driver is written against.)

use crate::action::{Beside, Out};
use crate::event::Event;
use crate::id::Millis;
use crate::input::Input;
use crate::setup::{TurnSetup, TurnStart};
use throughline_wire::Message;

/// One turn: pure, total, replayable from its events.
#[derive(Clone, Debug)]
pub struct Turn {
    setup: TurnSetup,
    start: TurnStart,
}

impl Turn {
    /// Begins a turn: `stream_start`, the first step, the first model call.
    pub fn new(setup: TurnSetup, start: TurnStart, now: Millis, out: &mut Out) -> Self {
        let _ = (now, out);
        Self { setup, start }
    }

    /// Takes one input and appends to `out` what follows from it. Every input is handled in every state.
    pub fn apply(&mut self, input: Input, now: Millis, out: &mut Out) {
        let _ = (&self.setup, &self.start, input, now, out);
    }

    /// The machine as it was after the last of `events`. `beside` is what was stored beside the log. Nothing is
    /// emitted: [`Turn::resume`] goes on.
    pub fn restore(setup: TurnSetup, start: TurnStart, events: &[Event], beside: &[Beside]) -> Self {
        let _ = (events, beside);
        Self { setup, start }
    }

    /// Goes on after [`Turn::restore`], as the owner number `epoch`: what was in flight is settled truthfully, then the
    /// turn is ended or continued by [`TurnSetup::on_interrupted`].
    pub fn resume(&mut self, epoch: u64, now: Millis, out: &mut Out) {
        let _ = (epoch, now, out);
    }

    /// `stream_end` was emitted: every further input is ignored.
    pub fn is_over(&self) -> bool {
        false
    }

    /// What this turn adds to the history of the conversation: the user's message and the closed steps.
    pub fn history(&self) -> Vec<Message> {
        Vec::new()
    }
}
