//! Gemini: `generateContent` and `streamGenerateContent`, as server-sent events or as one JSON array.

mod decode;
mod encode;
mod partial_arguments;
mod schema;

pub(crate) use decode::GeminiDecoder;
pub(crate) use encode::encode;
pub(super) use encode::{is_before_three, state_of_signatures};
pub(crate) use schema::adapt as adapt_schema;
