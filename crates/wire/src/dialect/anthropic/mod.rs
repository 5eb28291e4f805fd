//! Anthropic Messages (`POST /v1/messages`): numbered content blocks that open, grow and close.
//!
//! The reply's content array must come back unchanged on the next call, signatures and all, so the decoder
//! rebuilds it block by block while it reports the content. Format:
//! `platform.claude.com/docs/en/build-with-claude/streaming`.

mod blocks;
mod decode;
mod echo;
mod encode;
mod thinking;

pub(crate) use decode::AnthropicDecoder;
pub(crate) use encode::{encode, state_of_blocks};
