//! OpenAI Responses (`/responses`), also as spoken by Azure, xAI, OpenRouter, GitHub Copilot, LM Studio, Bedrock.

mod decode;
mod encode;
mod items;

pub(crate) use decode::ResponsesDecoder;
pub(crate) use encode::encode;
