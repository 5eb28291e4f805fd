//! Ollama's own API: `/api/chat`, one JSON object a line. (`/api/generate` streams are decoded too.)

mod decode;
mod encode;

pub(crate) use decode::OllamaDecoder;
pub(crate) use encode::encode;
