//! AWS Bedrock: `ConverseStream`, and `InvokeModelWithResponseStream` with Anthropic bodies. Both come
//! in event-stream frames, whose failures look alike.

mod anthropic;
mod converse;
mod converse_blocks;
mod encode;

pub(crate) use anthropic::BedrockAnthropicDecoder;
pub(crate) use converse::ConverseDecoder;
pub(crate) use encode::{encode_anthropic, encode_converse};

use crate::dialect::PayloadFrame;
use crate::json::JsonRef;
use crate::step::excerpt_of;
use crate::vocabulary::UpstreamError;
use std::borrow::Cow;

/// An exception frame, or an error body: `{"message": ...}`, with a capital in some services.
fn failure(kind: &str, json: &JsonRef<'_>) -> UpstreamError {
    let message = json.nonempty("message").or_else(|| json.nonempty("Message"));
    UpstreamError {
        message: message.map_or_else(|| excerpt_of(json.raw()), Cow::into_owned),
        kind: Some(kind)
            .filter(|kind| !kind.is_empty())
            .map(str::to_owned)
            .or_else(|| json.nonempty("__type").map(Cow::into_owned)),
        code: json.scalar("originalStatusCode").map(Cow::into_owned),
    }
}

/// The error in a frame.
fn exception(frame: &PayloadFrame<'_>) -> UpstreamError {
    failure(frame.event, frame.json)
}
