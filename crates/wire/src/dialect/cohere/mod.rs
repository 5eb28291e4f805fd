//! Cohere v2 chat (`POST /v2/chat`). Nothing that it sends is signed or numbered for the way back, so
//! there is no provider state: text, plan and calls are enough.

mod decode;
mod encode;

pub(crate) use decode::CohereDecoder;
pub(crate) use encode::encode;
