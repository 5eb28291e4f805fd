//! The decoders and encoders at their boundary: bytes in, events out, and back.

#![allow(clippy::unwrap_used)]

mod fixture;
mod history;
mod lines;
mod oracle;
#[path = "../../../../fuzz/src/lib.rs"]
mod target;
mod text_calls;

mod anthropic_shuffled;
mod argument_names;
mod call_announcement;
mod client_reasoning;
mod conformance;
mod display_escape;
mod encode_anthropic;
mod encode_changed;
mod encode_cohere_bedrock;
mod encode_gemini;
mod encode_ollama;
mod encode_openai_chat;
mod encode_responses;
mod equivalence;
mod fast_path;
mod fixtures;
mod forced_calls;
mod fuzz_regressions;
mod hosted_tools;
mod incomplete;
mod limits;
mod provider_state;
mod provider_state_echo;
mod quoted_calls;
mod remote_media;
mod sse;
mod suites;
mod text_agreement;
mod text_history;
mod text_mode;
mod text_render;
mod text_tricky;
