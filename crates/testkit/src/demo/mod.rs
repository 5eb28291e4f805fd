//! The demo model: a script that is openly called `demo`, understands about twenty requests in English and Chinese, and
//! shows what Throughline does with a model that calls tools, without a key.
//!
//! It goes by keywords and by the results it gets; it calls only tools that are offered, calls one where the
//! request demands it, and states that it is a script whenever that matters. Nothing is remembered between
//! requests: all it knows is the conversation it is sent.

mod cities;
mod dates;
mod language;
mod reply;
mod schema_value;
mod tool_call;
mod tool_outcome;

use crate::model::FakeModel;
use crate::parsed_request::ParsedRequest;
use crate::script::{ModelScript, ReplyPace};
use crate::server::{FakeUpstream, FakeUpstreamHandle};
use std::io;

/// The name of the model.
pub const NAME: &str = "demo";

/// Silence before the first byte, in milliseconds: about that of a near data center.
const FIRST_BYTE_MS: u64 = 120;

/// The demo model.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use throughline_testkit::demo::DemoModel;
/// use throughline_testkit::{FakeDialect, FakeUpstream};
///
/// let upstream = FakeUpstream::start(DemoModel::instant()).await?;
/// println!("demo model at {}", upstream.base_url(FakeDialect::OpenaiChat));
/// upstream.shutdown().await;
/// # Ok::<(), std::io::Error>(()) })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DemoModel {
    pace: ReplyPace,
    first_byte_ms: u64,
}

impl Default for DemoModel {
    fn default() -> Self {
        Self::paced()
    }
}

impl DemoModel {
    /// As a person would like to read it: about 70 tokens a second.
    pub fn paced() -> Self {
        Self { pace: ReplyPace::LIVELY, first_byte_ms: FIRST_BYTE_MS }
    }

    /// As fast as the socket takes it, for tests.
    pub fn instant() -> Self {
        Self { pace: ReplyPace::INSTANT, first_byte_ms: 0 }
    }
}

impl FakeModel for DemoModel {
    fn reply(&self, seen: &ParsedRequest) -> ModelScript {
        let mut script = reply::to(seen);
        if script.pace == ReplyPace::INSTANT {
            script.pace = self.pace;
        }
        script.first_byte_ms = self.first_byte_ms;
        if self.pace == ReplyPace::INSTANT {
            without_silence(&mut script);
        }
        script
    }

    fn names(&self) -> Vec<String> {
        vec![NAME.into()]
    }
}

/// Takes out pauses and slow speech.
fn without_silence(script: &mut ModelScript) {
    use crate::script::ScriptMove;
    script.moves.retain(|next| !matches!(next, ScriptMove::Pause(_)));
    for next in &mut script.moves {
        if let ScriptMove::Say(speech) | ScriptMove::Think(speech) | ScriptMove::Speak(speech) = next {
            speech.tokens_per_second = None;
        }
    }
}

/// Starts the demo model on a free port of 127.0.0.1, at a lively pace.
///
/// # Errors
/// If no port can be had.
pub async fn start() -> io::Result<FakeUpstreamHandle> {
    FakeUpstream::start(DemoModel::paced()).await
}
