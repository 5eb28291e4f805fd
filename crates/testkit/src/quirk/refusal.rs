//! Requests that an upstream with a quirk refuses, in the words of servers that do.

use super::PlantedQuirk as Q;
use crate::dialect::{self, FakeDialect};
use crate::parsed_request::{ParsedRequest, ParsedToolChoice, ReplyDelivery};
use crate::response::ScriptedResponse;
use crate::script::{ErrorMove, UpstreamVendor};
use serde_json::{Value, json};

/// The refusal of the first quirk that minds this request.
pub(crate) fn refusal(quirks: &[Q], seen: &ParsedRequest) -> Option<ScriptedResponse> {
    quirks.iter().filter(|quirk| quirk.dialects().contains(&seen.dialect)).find_map(|quirk| one(*quirk, seen))
}

fn one(quirk: Q, seen: &ParsedRequest) -> Option<ScriptedResponse> {
    if quirk == Q::NoTools && !seen.tools.is_empty() {
        return Some(without_tools(seen));
    }
    if quirk == Q::StreamOptionsRefused && !seen.body["stream_options"].is_null() {
        let body = json!({"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"],
            "msg": "Extra inputs are not permitted"}]});
        return Some(ScriptedResponse::json(422, &body));
    }
    let streamed = seen.delivery != ReplyDelivery::Whole;
    let forced = matches!(seen.tool_choice, ParsedToolChoice::Required | ParsedToolChoice::Named(_));
    let (applies, message) = match quirk {
        Q::NoStreaming => (streamed, "Streaming is not supported by this model."),
        Q::StreamOnly => {
            (!streamed, "This model only supports stream mode, please enable the stream parameter.")
        }
        Q::SystemPromptRefused => (seen.instructions.is_some(), "System role not supported"),
        Q::DeveloperRole => {
            (has_system_role(seen), "Unsupported value: 'messages[0].role' does not support 'system'.")
        }
        Q::ForcedCallRefused => (forced, "tool_choice 'required' is not supported by this model"),
        Q::ForbiddenCallRefused => {
            (seen.tool_choice == ParsedToolChoice::None, "tool_choice 'none' is not supported by this model")
        }
        Q::JsonSchemaRefused => (wants_schema(seen), "This response format is not supported by this model."),
        Q::ImagesRefused => (seen.has_image(), "This model does not support image input."),
        Q::CacheControlRefused => (
            seen.body.to_string().contains("\"cache_control\""),
            "cache_control: Extra inputs are not permitted",
        ),
        Q::EncryptedReasoningRefused => {
            (seen.body["include"].is_array(), "Encrypted content is not supported with this model.")
        }
        _ => (false, ""),
    };
    applies.then(|| {
        let body = dialect::error_body(seen.dialect, seen.delivery, 400, &ErrorMove::new(message));
        ScriptedResponse::json(400, &body)
    })
}

fn without_tools(seen: &ParsedRequest) -> ScriptedResponse {
    let (status, body) = match seen.dialect {
        FakeDialect::Ollama => UpstreamVendor::OllamaNative.refusal(&seen.model),
        FakeDialect::OpenaiChat => UpstreamVendor::Vllm.refusal(&seen.model),
        _ => {
            let error = ErrorMove::new("Tool use is not supported by this model.");
            (400, dialect::error_body(seen.dialect, seen.delivery, 400, &error))
        }
    };
    ScriptedResponse::json(status, &body)
}

fn has_system_role(seen: &ParsedRequest) -> bool {
    let messages = seen.body["messages"].as_array();
    messages.is_some_and(|messages| messages.iter().any(|message| message["role"] == "system"))
}

/// True if the reply shall be JSON of a schema, in each provider's field for that.
pub(super) fn wants_schema(seen: &ParsedRequest) -> bool {
    let fields = [
        "/response_format",
        "/text/format",
        "/output_config/format",
        "/output_format",
        "/generationConfig/responseJsonSchema",
        "/generationConfig/responseSchema",
        "/format",
    ];
    fields.iter().any(|field| seen.body.pointer(field).is_some_and(|value: &Value| !value.is_null()))
}
