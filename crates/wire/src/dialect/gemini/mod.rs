//! Gemini: `generateContent` and `streamGenerateContent`, as server-sent events or as one JSON array.

mod decode;
mod encode;
mod partial;
mod schema;

pub(crate) use decode::Decoder;
pub(crate) use encode::encode;
