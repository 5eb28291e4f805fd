//! Fakes to test against: a scriptable LLM upstream over real HTTP in eight dialects, the demo model on top of it, fake
//! tools and a fake clock.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use throughline_testkit::{FakeDialect, ModelScript, ParsedRequest, FakeUpstream};
//!
//! let upstream = FakeUpstream::start(|_: &ParsedRequest| ModelScript::new().say("Hello.")).await?;
//! let url = format!("{}/chat/completions", upstream.base_url(FakeDialect::OpenaiChat));
//! // ... send a request there; then see what was asked, and what a real provider would have refused:
//! assert!(upstream.requests().is_empty() && upstream.violations().is_empty());
//! upstream.shutdown().await;
//! # drop(url);
//! # Ok::<(), std::io::Error>(()) }).unwrap();
//! ```
//!
//! It never uses the encoders and decoders of `throughline-wire` for what it sends and reads, so that one bug
//! cannot hide in both. It never leaves loopback, and has no intelligence: the demo model is a script and
//! tells the user so.

pub mod clock;
mod deltas;
pub mod demo;
pub mod dialect;
mod exchange_log;
mod fake_ids;
mod fake_voice;
mod http;
pub mod mock;
pub mod model;
pub mod parsed_request;
mod quirk;
pub mod response;
pub mod rules;
pub mod script;
pub mod server;
pub mod sim;
mod strict_json;
mod text_mode;
pub mod tools;
mod vendor_refusal;
mod voice;

pub use clock::FakeClock;
pub use dialect::FakeDialect;
pub use dialect::ToolSchemaRule;
pub use exchange_log::{EXCHANGES_RETAINED_MAX, ExchangeEnd, HttpExchange, RequestViolation};
pub use fake_voice::{FakeVoice, FakeVoiceHandle, HeardRequest, SpokenRequest};
pub use http::ReceivedRequest;
pub use model::{FakeModel, ScriptQueue};
pub use parsed_request::ParsedRequest;
pub use quirk::PlantedQuirk;
pub use rules::{RuleCondition, ScenarioRule, ScenarioRules};
pub use script::{
    BodyBreak, CallMove, CallProtocol, CallStyle, ErrorMove, HttpAnswer, ModelScript, ReplyPace,
    ScriptFinish, ScriptMove, SpeechMove, UpstreamVendor,
};
pub use server::{
    CallIdRule, ContentRule, FakeUpstream, FakeUpstreamHandle, ForcedCallRule, ReasoningEchoRule, RoleRule,
    UnsupportedWords, UpstreamBehavior,
};

/// The examples of the page run like those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/mock.md")]
mod page {}
