//! Cohere v2 chat. Decoding only.

mod decode;

pub(crate) use decode::Decoder;
