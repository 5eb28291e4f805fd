//! AWS Bedrock. Decoding only.

mod anthropic;
mod converse;

pub(crate) use anthropic::Decoder as AnthropicDecoder;
pub(crate) use converse::Decoder as ConverseDecoder;
