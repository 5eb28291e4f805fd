//! Fakes to test against: a scriptable LLM upstream over real HTTP in five dialects, the demo model on top of it, fake
//! tools and a fake clock. // R: D2
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use throughline_testkit::{Dialect, Script, Seen, Upstream};
//!
//! let upstream = Upstream::start(|_: &Seen| Script::new().say("Hello.")).await?;
//! let url = format!("{}/chat/completions", upstream.base_url(Dialect::OpenaiChat));
//! // ... send a request there; then see what was asked, and what a real provider would have refused:
//! assert!(upstream.requests().is_empty() && upstream.violations().is_empty());
//! upstream.shutdown().await;
//! # drop(url);
//! # Ok::<(), std::io::Error>(()) }).unwrap();
//! ```
//!
//! It never uses the encoders and decoders of `throughline-wire` for what it sends and reads, so that one bug cannot
//! hide in both. It never leaves loopback by itself, and is never clever: the demo model is a script and says so.

pub mod clock;
pub mod demo;
pub mod dialect;
mod http;
mod mint;
pub mod mock;
pub mod model;
pub mod perform;
mod pieces;
mod record;
pub mod rules;
pub mod script;
pub mod seen;
pub mod server;
pub mod sim;
mod strict;
mod text;
pub mod tools;
mod vendor;

pub use clock::FakeClock;
pub use dialect::Dialect;
pub use http::Request;
pub use model::{Model, Queue};
pub use record::{EXCHANGES_KEPT_MAX, Ending, Exchange, Violation};
pub use rules::{Rule, Rules, When};
pub use script::{
    Break, CallMove, CallStyle, ErrorMove, Finish, HttpAnswer, Move, Pace, Protocol, Script, Speech, Vendor,
};
pub use seen::Seen;
pub use server::{CallIds, Habits, ReasoningEcho, Upstream, UpstreamHandle};

/// The examples of the page run like those of the documentation. // R: D2
#[cfg(doctest)]
#[doc = include_str!("../../../docs/mock.md")]
mod page {}
