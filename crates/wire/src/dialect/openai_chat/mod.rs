//! OpenAI Chat Completions and every server compatible with it.
//!
//! Source: <https://platform.openai.com/docs/api-reference/chat-streaming>, and for what servers really send the
//! table in `docs/conformance.md`.

mod decode;
mod encode;

pub(crate) use decode::ChatDecoder;
pub(crate) use encode::{encode, state_of_details, state_of_signatures};
