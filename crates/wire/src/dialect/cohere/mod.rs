//! Cohere v2 chat (`POST /v2/chat`). Decoding only. Nothing that it sends is signed or numbered for the way back, so
//! there is no provider state: text, plan and calls are enough.

mod decode;

pub(crate) use decode::CohereDecoder;
