//! `InvokeModelWithResponseStream`: each `chunk` frame holds one Anthropic event in base64.
//!
//! Format: `docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModelWithResponseStream.html`.

use super::exception;
use crate::dialect::anthropic;
use crate::dialect::{DialectDecoder, FrameKind, PayloadFrame};
use crate::json::JsonRef;
use crate::step::StepWriter;
use crate::vocabulary::ProblemKind;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

#[derive(Default)]
pub(crate) struct BedrockAnthropicDecoder {
    inner: anthropic::AnthropicDecoder,
}

impl DialectDecoder for BedrockAnthropicDecoder {
    fn decode_event(&mut self, frame: &PayloadFrame<'_>, step: &mut StepWriter<'_>) {
        if frame.kind == FrameKind::Exception {
            return step.fail(exception(frame));
        }
        let Some(encoded) = frame.json.nonempty("bytes") else {
            return step.problem(ProblemKind::UnknownEvent, frame.event);
        };
        let Some(text) =
            BASE64.decode(encoded.as_bytes()).ok().and_then(|bytes| String::from_utf8(bytes).ok())
        else {
            return step.problem(ProblemKind::InvalidEvent, &encoded);
        };
        match JsonRef::parse(&text) {
            Ok(json) => {
                self.inner.decode_event(&PayloadFrame { event: "", kind: FrameKind::Data, json: &json }, step)
            }
            Err(_) => step.problem(ProblemKind::InvalidEvent, &text),
        }
    }

    fn decode_body(&mut self, json: &JsonRef<'_>, step: &mut StepWriter<'_>) {
        self.inner.decode_body(json, step);
    }

    fn finish(&mut self, step: &mut StepWriter<'_>) {
        self.inner.finish(step);
    }
}
