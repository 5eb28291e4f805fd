//! The demo model: a script that is openly called `demo`, understands about twenty requests in English and Chinese, and
//! shows what Throughline does with a model that calls tools, without a key.
//!
//! It goes by keywords and by the results it gets; it calls only tools that are offered, and says that it is a script
//! whenever that matters. Nothing is remembered between requests: all it knows is the conversation it is sent.

mod ask;
mod language;
mod offer;
mod places;
mod reply;
mod told;
mod when;

use crate::model::Model;
use crate::script::{Pace, Script};
use crate::seen::Seen;
use crate::server::{Upstream, UpstreamHandle};
use std::io;

/// The name of the model.
pub const NAME: &str = "demo";

/// Silence before the first byte, in milliseconds: about that of a near data centre.
const FIRST_BYTE_MS: u64 = 120;

/// The demo model.
#[derive(Clone, Copy, Debug)]
pub struct Demo {
    pace: Pace,
    first_byte_ms: u64,
}

impl Default for Demo {
    fn default() -> Self {
        Self::lively()
    }
}

impl Demo {
    /// As a person would like to read it: about 70 tokens a second.
    pub fn lively() -> Self {
        Self { pace: Pace::LIVELY, first_byte_ms: FIRST_BYTE_MS }
    }

    /// As fast as the socket takes it, for tests.
    pub fn instant() -> Self {
        Self { pace: Pace::INSTANT, first_byte_ms: 0 }
    }
}

impl Model for Demo {
    fn reply(&self, seen: &Seen) -> Script {
        let mut script = reply::to(seen);
        if script.pace == Pace::INSTANT {
            script.pace = self.pace;
        }
        script.first_byte_ms = self.first_byte_ms;
        if self.pace == Pace::INSTANT {
            without_silence(&mut script);
        }
        script
    }

    fn names(&self) -> Vec<String> {
        vec![NAME.into()]
    }
}

/// Takes out pauses and slow speech.
fn without_silence(script: &mut Script) {
    use crate::script::Move;
    script.moves.retain(|next| !matches!(next, Move::Pause(_)));
    for next in &mut script.moves {
        if let Move::Say(speech) | Move::Think(speech) = next {
            speech.tokens_per_second = None;
        }
    }
}

/// Starts the demo model on a free port of 127.0.0.1, at a lively pace.
///
/// # Errors
/// If no port can be had.
pub async fn start() -> io::Result<UpstreamHandle> {
    Upstream::start(Demo::lively()).await
}
