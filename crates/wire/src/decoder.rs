//! One step's bytes to [`StepEvent`]s.

use crate::dialect::{Decode, Dialect};
use crate::limits::Limits;
use crate::profile::Profile;
use crate::step::StepState;
use crate::vocabulary::StepEvent;

/// Whether `<think>…</think>` in the text is split off as thinking (a stage of its own, R4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Think {
    /// Text stays verbatim.
    #[default]
    Verbatim,
    /// Split into thinking and text, whatever way the tags are cut.
    Split,
}

/// How to decode.
#[derive(Clone, Debug, Default)]
pub struct DecodeOptions {
    /// Bounds.
    pub limits: Limits,
    /// Quirks of the upstream.
    pub profile: Profile,
    /// `<think>` tags.
    pub think: Think,
    /// Names of the offered tools: a call is announced as soon as its name equals one.
    pub offered: Vec<String>,
}

/// Decodes one model step, pushed in pieces of any size.
pub struct StepDecoder {
    dialect: Box<dyn Decode>,
    state: StepState,
}

impl StepDecoder {
    /// A decoder for one step.
    pub fn new(dialect: Dialect, options: DecodeOptions) -> Self {
        let DecodeOptions { limits, profile, think: _, offered } = options;
        Self { dialect: dialect.decoder(), state: StepState::new(dialect, limits, profile, offered) }
    }

    /// Takes the next bytes and says what they mean.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(StepEvent<'_>)) {
        let _ = (&mut self.dialect, &mut self.state, bytes, sink);
    }

    /// The bytes have ended. Emits the rest and exactly one [`StepEvent::End`], unless `push` has done so already.
    pub fn finish(&mut self, sink: &mut dyn FnMut(StepEvent<'_>)) {
        let _ = sink;
    }

    /// The step is over: `End` has been emitted and further bytes are ignored.
    pub fn is_over(&self) -> bool {
        false
    }
}
