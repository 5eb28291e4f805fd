//! Classification of failed answers. Pure: status, headers and body in, a kind out. Errors of single
//! providers are in the table of `failure_rules`, general rules by status are here.

use super::error_body::{self, UpstreamErrorBody};
use super::failure_rules;
use serde_json::Value;
use throughline_engine::{FailureKind, UpstreamFailure, missing_stop};
use throughline_wire::{UpstreamError as ReportedError, has_setting};

/// Presence of tools in the request: only then can an answer be a refusal of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolsInRequest {
    Present,
    Absent,
}

/// An HTTP answer that is no reply.
pub(crate) struct UpstreamErrorResponse<'a> {
    pub status: u16,
    /// `Retry-After`, as sent.
    pub retry_after: Option<&'a str>,
    /// `retry-after-ms` (OpenAI, Azure), as sent.
    pub retry_after_ms: Option<&'a str>,
    pub body: &'a str,
    /// Milliseconds since 1970, for dates in headers.
    pub now: i64,
}

/// The failure that an HTTP answer means.
pub(crate) fn from_response(
    response: &UpstreamErrorResponse<'_>,
    tools_offered: ToolsInRequest,
) -> UpstreamFailure {
    let error = error_body::parse(response.body);
    let kind = classify(Some(response.status), &error, tools_offered).unwrap_or(FailureKind::Status);
    let retry_after_ms = retry_after_header(response).or(error.retry_after_ms);
    let mut message =
        if error.message.is_empty() { status_reason(response.status).to_owned() } else { error.message };
    if let Some(failed_generation) = error.failed_generation {
        let stop = missing_stop(&message);
        message = format!("{}{stop} The model wrote: {failed_generation}", message.trim_end());
    }
    UpstreamFailure { kind, status: Some(response.status), message, retry_after_ms }
}

/// The failure that an error object inside a 200 stream means; `None` = it has no class of its own and the
/// decoder's event suffices.
pub(crate) fn from_stream_error(
    error: &ReportedError,
    tools_offered: ToolsInRequest,
) -> Option<UpstreamFailure> {
    let body = UpstreamErrorBody { text: error.message.to_lowercase(), ..stream_error_body(error) };
    let status =
        error.code.as_deref().and_then(|code| code.parse().ok()).filter(|code| (400..600).contains(code));
    let kind = classify(status, &body, tools_offered);
    // A request that is reported as invalid is invalid when repeated.
    let status = status.or((kind == Some(FailureKind::Status)).then_some(400));
    let kind = kind.or(status.map(|_| FailureKind::Status))?;
    Some(UpstreamFailure { kind, status, message: body.message, retry_after_ms: None })
}

/// The status of a refusal of the request that came as an error object inside a 200; `None` = the error is
/// not about the request. Without a number only phrases of a refusal count: servers that fail for other
/// reasons mention settings and schemas as well.
pub(crate) fn refusal_status(error: &ReportedError, tools_offered: ToolsInRequest) -> Option<u16> {
    const REFUSALS: [&str; 5] = ["invalid", "bad_request", "unsupported", "tool_use_failed", "unprocessable"];
    let failure = from_stream_error(error, tools_offered);
    let kind = failure.as_ref().map(|failure| failure.kind);
    if !matches!(kind, None | Some(FailureKind::Status | FailureKind::ToolsUnsupported)) {
        return None;
    }
    let number = error.code.as_deref().and_then(|code| code.parse().ok());
    let is_refusal = || {
        let mut codes = error.kind.iter().chain(&error.code).map(|code| code.to_lowercase());
        codes.any(|code| REFUSALS.iter().any(|words| code.contains(words)))
    };
    number.filter(|code| (400..600).contains(code)).or_else(|| is_refusal().then_some(400))
}

/// An error object inside a 200 stream, as the body of a refusal.
pub(crate) fn stream_error_body(error: &ReportedError) -> UpstreamErrorBody {
    let codes: Vec<String> = error.kind.iter().chain(&error.code).cloned().collect();
    UpstreamErrorBody {
        message: error.message.clone(),
        kind: error.kind.clone(),
        code: error.code.clone(),
        text: format!("{} {}", error.message, codes.join(" ")).to_lowercase(),
        codes,
        ..UpstreamErrorBody::default()
    }
}

/// The class of an error; `None` = unclassified.
fn classify(
    status: Option<u16>,
    error: &UpstreamErrorBody,
    tools_offered: ToolsInRequest,
) -> Option<FailureKind> {
    let may_refuse_tools = tools_offered == ToolsInRequest::Present
        && matches!(status, None | Some(400 | 404 | 422 | 500 | 501));
    if may_refuse_tools && refuses_tools(&error.text) {
        return Some(FailureKind::ToolsUnsupported);
    }
    if let Some(rule) = failure_rules::find(status, error) {
        return Some(rule.kind);
    }
    if matches!(status, Some(404 | 405)) && says_nothing_but_where(error) {
        return Some(FailureKind::WrongAddress);
    }
    by_status(status?, &error.text)
}

/// True for the answer of a server that does not have this path: an empty one, or a router's.
fn says_nothing_but_where(error: &UpstreamErrorBody) -> bool {
    // FastAPI, Express, Go's and Rust's routers, Kong, Azure, nginx; OpenAI: "Invalid URL (POST /v1/v1/…)".
    const WHOLE: [&str; 5] =
        ["not found", "404 not found", "resource not found", "method not allowed", "no such route"];
    const PARTS: [&str; 8] = [
        "404 page not found",
        "cannot post /",
        "cannot get /",
        "no route matched",
        "invalid url (",
        "unknown endpoint",
        "unexpected endpoint",
        "unknown_url",
    ];
    let message = error.message.trim().trim_end_matches('.').to_lowercase();
    message.is_empty()
        || WHOLE.contains(&message.as_str())
        || PARTS.iter().any(|part| error.text.contains(part))
}

/// The failure with the requested address, if the address is the problem.
pub(crate) fn with_address(failure: UpstreamFailure, asked: &str) -> UpstreamFailure {
    match failure.kind {
        FailureKind::WrongAddress => {
            UpstreamFailure { message: format!("{} ({asked})", failure.message), ..failure }
        }
        _ => failure,
    }
}

/// Meaning of a status, for any upstream.
fn by_status(status: u16, text: &str) -> Option<FailureKind> {
    match status {
        401 | 403 => Some(FailureKind::Unauthorized),
        402 => Some(FailureKind::QuotaExhausted),
        // OpenAI, Ollama and vLLM: "The model `x` does not exist", "model 'x' not found"; Anthropic: "model: x".
        404 if text.contains("model") => Some(FailureKind::ModelNotFound),
        413 => Some(FailureKind::ContextTooLong),
        429 => Some(FailureKind::RateLimited),
        529 => Some(FailureKind::Overloaded),
        _ => None,
    }
}

/// Matches the recorded ways to refuse tools, in lower case. A model that fails to write a call (`tool_use_failed`,
/// Groq) is not among them.
pub(super) fn refuses_tools(text: &str) -> bool {
    const PHRASES: [&str; 9] = [
        // Ollama, both APIs: "registry.ollama.ai/library/X does not support tools".
        "does not support tools",
        // vLLM: "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set".
        "tool choice requires --enable-auto-tool-choice",
        // llama.cpp: "tools param requires --jinja flag", older "Unsupported param: tools".
        "tools param requires --jinja",
        "unsupported param: tools",
        // OpenRouter, 404.
        "no endpoints found that support tool use",
        "no endpoints found that support the provided 'tool_choice'",
        // SiliconFlow: "Function call is not supported for this model."
        "function call is not supported",
        // DashScope: "InternalError.Algo.InvalidParameter: The tool call is not supported."
        "tool call is not supported",
        // Several proxies, and Ollama's compatible endpoint for single models.
        "does not support function calling",
    ];
    if PHRASES.iter().any(|phrase| text.contains(phrase)) {
        return true;
    }
    // Mistral and strict proxies: 422 `extra_forbidden` at `["body","tools"]` or `["body","tool_choice"]`.
    text.contains("extra_forbidden")
        && ["\"tools\"", "\"tool_choice\"", "body.tools", "body.tool_choice"]
            .iter()
            .any(|at| text.contains(at))
}

/// True if a refusal, by its [text](UpstreamErrorBody::text), names `stream_options`: the same request without it may be
/// accepted.
pub(crate) fn mentions_stream_options(status: u16, text: &str) -> bool {
    (400..500).contains(&status) && (text.contains("stream_options") || text.contains("include_usage"))
}

/// True if a refusal names `include: ["reasoning.encrypted_content"]`, which models without reasoning refuse
/// (Responses): the same request without it may be accepted.
pub(crate) fn mentions_encrypted_reasoning(status: u16, text: &str) -> bool {
    (400..500).contains(&status)
        && (text.contains("reasoning.encrypted_content")
            || text.contains("encrypted content is not supported"))
}

/// True if a refusal names `eager_input_streaming`, which only Anthropic's own servers take (DotHarness/dotcraft#282).
pub(crate) fn mentions_eager_arguments(status: u16, text: &str) -> bool {
    (400..500).contains(&status) && text.contains("eager_input_streaming")
}

/// True if a refusal is about a user message right after a result: the same request with a model message
/// between them may be accepted. Mistral: "Unexpected role 'user' after role 'tool'". Templates of its models
/// skip calls and results, so that two user messages follow each other: "conversation roles must alternate
/// user and assistant roles except for tool calls and results" (ggml-org/llama.cpp#19851), "roles must
/// alternate user/assistant/user/assistant/..." (nomic-ai/gpt4all#3273).
pub(crate) fn mentions_user_after_tool(status: u16, text: &str) -> bool {
    const PHRASES: [&str; 2] = ["role 'user' after role 'tool'", "roles must alternate"];
    (400..=500).contains(&status) && PHRASES.iter().any(|phrase| text.contains(phrase))
}

/// True if a refusal asks for the newer name of the answer's limit (OpenAI's reasoning models: "Unsupported parameter:
/// 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.").
pub(crate) fn mentions_max_completion_tokens(status: u16, text: &str) -> bool {
    (400..500).contains(&status) && text.contains("'max_tokens'") && text.contains("max_completion_tokens")
}

/// The optional setting of a request that its refusal names: the same request without it may be accepted. Which of two that
/// exclude one another goes is the order of the list.
pub(crate) fn refused_setting(status: u16, text: &str, body: &Value) -> Option<&'static str> {
    /// Settings without which an answer is one as well.
    const OPTIONAL: [&str; 23] = [
        "top_k",
        "topK",
        "top_p",
        "topP",
        "min_p",
        "repetition_penalty",
        "presence_penalty",
        "presencePenalty",
        "frequency_penalty",
        "frequencyPenalty",
        "seed",
        "temperature",
        "parallel_tool_calls",
        "reasoning_effort",
        "enable_thinking",
        "thinking_budget",
        "verbosity",
        "service_tier",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_retention",
        "metadata",
        "store",
    ];
    /// Phrases of a refusal of the setting as such, not only of its value.
    const REFUSALS: [&str; 20] = [
        // OpenAI: "Unsupported parameter: 'temperature' is not supported with this model.", "Unsupported value: 'temperature' does
        // not support 0.2 with this model. Only the default (1) value is supported."; xAI: "Model grok-4 does not support
        // parameter presencePenalty.", "Argument not supported on this model: reasoning_effort".
        "unsupported",
        "not support",
        // Groq, DashScope and other gateways.
        "unknown",
        "unrecognized",
        "unexpected",
        "not recognized",
        "invalid parameter",
        // Pydantic: Mistral, vLLM; Anthropic.
        "extra_forbidden",
        "extra inputs",
        "not permitted",
        "not allowed",
        // Anthropic: "`temperature` and `top_p` cannot both be specified for this model.", "`temperature` may only be set to 1 when
        // thinking is enabled.", "`top_k` must be unset when thinking is enabled.", "`temperature` is deprecated for this model."
        "cannot both",
        "may only be set",
        "must be unset",
        "deprecated",
        // Moonshot: "invalid temperature: only 1 is allowed for this model", "cannot specify both 'thinking' and
        // 'reasoning_effort'" (HKUDS/nanobot#3939).
        "is allowed for this model",
        "cannot specify both",
        // Gemini: "Penalty is not enabled for this model", "Unknown name \"topK\"".
        "not enabled",
        "incompatible",
        "not available",
    ];
    if !matches!(status, 400 | 422) || !REFUSALS.iter().any(|words| text.contains(words)) {
        return None;
    }
    let is_penalty = text.contains("penalty is not enabled");
    // xAI calls `presence_penalty` `presencePenalty`.
    let spelling = |words: &str| words.replace('_', "").to_lowercase();
    let text = spelling(text);
    OPTIONAL.into_iter().find(|name| {
        let word = spelling(name);
        (names_word(&text, &word) || is_penalty && word.ends_with("penalty")) && has_setting(body, name)
    })
}

/// True if the text contains this word, not as part of another one.
fn names_word(text: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).any(|(at, _)| {
        !is_part(text[..at].chars().next_back()) && !is_part(text[at + word.len()..].chars().next())
    })
}

/// True if a refusal names the marks of what a cache may keep: "tools.3.cache_control: Extra inputs are not permitted", of an
/// older model (earendil-works/pi#7938) or of a gateway (routatic/proxy#53).
pub(crate) fn mentions_cache_control(status: u16, text: &str) -> bool {
    // Not: too many of them, or one of them on what cannot have one.
    const REFUSALS: [&str; 10] = [
        "extra inputs",
        "extraneous",
        "not permitted",
        "unknown",
        "unrecognized",
        "unsupported",
        "not supported",
        "not support",
        "not allowed",
        "unexpected",
    ];
    matches!(status, 400 | 422)
        && text.contains("cache_control")
        && REFUSALS.iter().any(|words| text.contains(words))
}

/// The number of pictures that a refusal allows: "too many images and documents: 21 + 0 > 20" (some models at Bedrock,
/// cline/cline#1844), "messages: too many images: image_count > 20" (boto/boto3#4632).
pub(crate) fn allowed_pictures(status: u16, text: &str) -> Option<u32> {
    let (_, words) = text.split_once("too many images").filter(|_| matches!(status, 400 | 413 | 422))?;
    let words = words.strip_prefix(" and documents").unwrap_or(words).strip_prefix(": ")?;
    let (count, most) = words.split_once(" > ")?;
    let is_count = |count: &str| !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    if count != "image_count" && !count.split(" + ").all(is_count) {
        return None;
    }
    let digits = most.find(|c: char| !c.is_ascii_digit()).map_or(most, |end| &most[..end]);
    let is_of_a_part = most[digits.len()..].starts_with(" per ");
    digits.parse().ok().filter(|most| *most > 0 && !is_of_a_part)
}

/// True if a refusal is about `strict` of a tool. Cerebras: "Tools with mixed values for 'strict' are not
/// allowed." (Kilo-Org/kilocode#5204); others do not support it: "strict: Extra inputs are not permitted"
/// (earendil-works/pi#1172).
pub(crate) fn mentions_strict(status: u16, text: &str) -> bool {
    let is_word = |(at, word): (usize, &str)| {
        let rest = &text[at + word.len()..];
        !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_')
    };
    matches!(status, 400 | 422) && text.match_indices("strict").any(is_word)
}

/// True if a refusal is about the schema of a tool: the same request with plain schemas may be accepted.
pub(crate) fn mentions_tool_schema(status: u16, text: &str) -> bool {
    const PHRASES: [&str; 15] = [
        // Moonshot: "… is not a valid moonshot flavored json schema, details: …" (MoonshotAI/kimi-cli#1595).
        "flavored json schema",
        // llama.cpp and what runs on it (ggml-org/llama.cpp#26930).
        "json schema conversion failed",
        "unable to generate parser for this template",
        "failed to parse grammar",
        "unrecognized schema",
        // OpenAI and compatible: "Invalid schema for function 'x': …", code `invalid_function_parameters`.
        "invalid schema for function",
        "invalid_function_parameters",
        // Groq: "invalid JSON schema for tool x, tools[24].function.parameters: …" (usestrix/strix#1088).
        "json schema for tool ",
        // Mistral: "Invalid tool schema: {…} is not valid under any of the given schemas" (SylphxAI/pdf-reader-mcp#63).
        "invalid tool schema",
        // Anthropic and Bedrock: "tools.3.custom.input_schema: …"; Converse: "The value at
        // toolConfig.tools.26.toolSpec.inputSchema.json.type must be …" (kirodotdev/Kiro#11026).
        "input_schema",
        "toolspec.inputschema",
        // Gemini: "A FunctionDeclaration in the request exceeds the maximum allowed nesting depth.", "Unknown name … at
        // 'tools[0].function_declarations[5]…'" (google-gemini/gemini-cli#5923).
        "a functiondeclaration in the request",
        "function_declarations[",
        // Vertex AI: "… because `x` functionDeclaration `parameters.a` schema didn't specify …" (google-gemini/gemini-cli#2282).
        "` functiondeclaration ",
        // Ollama: "json: cannot unmarshal bool into Go struct field ChatRequest.tools.function.parameters…".
        "field chatrequest.tools.",
    ];
    (400..=500).contains(&status) && PHRASES.iter().any(|phrase| text.contains(phrase))
}

/// True if a refusal is about streaming: the same request for a whole reply may be accepted.
pub(crate) fn mentions_streaming(failure: &UpstreamFailure) -> bool {
    failure.status.is_some_and(|status| (400..500).contains(&status))
        && failure.message.to_ascii_lowercase().contains("stream")
}

/// True if the upstream supports no tool choice, or only `auto`: "Tool choice must be auto"
/// (vectorize-io/hindsight#4246). A model that calls although calls were forbidden is another case ("Tool
/// choice is none, but model called a tool", Groq).
pub(crate) fn mentions_forbidden_call(status: u16, text: &str) -> bool {
    const REFUSALS: [&str; 5] =
        ["must be auto", "not support", "unsupported", "not permitted", "extra_forbidden"];
    matches!(status, 400 | 404 | 422)
        && mentions_tool_choice(status, text)
        && REFUSALS.iter().any(|words| text.contains(words))
}

/// True if a call cannot be forced while the model thinks: "tool_choice 'required' is incompatible with thinking enabled".
pub(crate) fn mentions_choice_while_thinking(status: u16, text: &str) -> bool {
    mentions_tool_choice(status, text) && text.contains("thinking")
}

/// True if a refusal names the forced call: thinking models (Anthropic, Kimi, DeepSeek) and some servers
/// refuse it, and the same request that asks for the call in its text may be accepted.
pub(crate) fn mentions_tool_choice(status: u16, text: &str) -> bool {
    (400..500).contains(&status) && (text.contains("tool_choice") || text.contains("tool choice"))
}

/// True if thoughts of the turn are refused because thinking is not enabled in the request: "When thinking is
/// disabled, an `assistant` message in the final position cannot contain `thinking`"
/// (tailcallhq/forgecode#1853).
pub(crate) fn mentions_thoughts_unasked(status: u16, text: &str) -> bool {
    status == 400 && text.contains("when thinking is disabled") && text.contains("cannot contain")
}

/// True if reasoning that was sent back is refused: the same history without it may be accepted.
pub(crate) fn is_unreadable_reasoning(status: u16, text: &str) -> bool {
    const PHRASES: [&str; 10] = [
        // Responses.
        "invalid_encrypted_content",
        // Gemini; "Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES)" (google-gemini/gemini-cli#8011).
        "corrupted thought signature",
        "invalid thought signature",
        "thought_signature' (type_bytes)",
        // Vertex AI (diegosouzapw/OmniRoute#1410).
        "thought signature is not valid",
        // Anthropic and Bedrock; "Invalid `data` in `redacted_thinking` block" (anthropics/claude-code#56708);
        // "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified"
        // (anthropics/claude-code#63277).
        "invalid signature in thinking block",
        "invalid data in redacted_thinking block",
        "redacted_thinking blocks in the latest assistant message cannot be modified",
        // Members of messages that a compatible server does not support.
        "extra_content",
        "reasoning_details",
    ];
    let text = text.replace('`', "");
    matches!(status, 400 | 422) && PHRASES.iter().any(|phrase| text.contains(phrase))
}

/// True if the model failed to write a call (Groq, 400 `tool_use_failed`): the next attempt may succeed, and nothing
/// of this one has been shown.
pub(crate) fn is_failed_call(status: u16, error: &UpstreamErrorBody) -> bool {
    status == 400 && error.code.as_deref() == Some("tool_use_failed")
}

/// Milliseconds from now, from seconds or a date; `None` if it cannot be parsed.
fn retry_after_header(response: &UpstreamErrorResponse<'_>) -> Option<u64> {
    if let Some(ms) = response.retry_after_ms.and_then(|text| text.trim().parse::<f64>().ok()) {
        return (ms.is_finite() && ms >= 0.0).then_some(ms.min(1e12) as u64);
    }
    let text = response.retry_after?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return (seconds.is_finite() && seconds >= 0.0).then_some((seconds.min(1e9) * 1000.0) as u64);
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(u64::try_from(date.as_millisecond().saturating_sub(response.now)).unwrap_or(0))
}

fn status_reason(status: u16) -> &'static str {
    reqwest::StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .unwrap_or("no reason given")
}

/// A failure without an HTTP answer.
pub(crate) fn without_status(kind: FailureKind, message: impl Into<String>) -> UpstreamFailure {
    UpstreamFailure { kind, status: None, message: message.into(), retry_after_ms: None }
}

/// A request that cannot be sent.
pub(crate) fn unsendable(message: String) -> UpstreamFailure {
    without_status(FailureKind::Unsendable, message)
}

/// Description of a failure below HTTP.
pub(crate) fn from_transport(error: &reqwest::Error, host: &str) -> UpstreamFailure {
    let causes = causes(error);
    let has = |words: &[&str]| words.iter().any(|word| causes.to_lowercase().contains(word));
    if error.is_builder() {
        return without_status(FailureKind::Unsendable, format!("the request cannot be sent: {causes}"));
    }
    if error.is_connect() || (error.is_timeout() && has(&["connect"])) {
        let message = if error.is_timeout() {
            format!("connecting to {host} timed out")
        } else if error.is_dns() || has(&["dns error", "failed to lookup"]) {
            format!("cannot resolve host name {host}")
        } else if has(&["certificate", "tls", "handshake"]) {
            format!("TLS connection to {host} failed: {causes}")
        } else {
            format!("cannot connect to {host}: {causes}")
        };
        return without_status(FailureKind::Connect, message);
    }
    without_status(FailureKind::Broken, format!("the connection to {host} failed: {causes}"))
}

/// Text of the innermost cause, which describes the error; the outer ones only describe its context.
fn causes(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use FailureKind as K;
    use serde_json::json;

    #[test]
    fn unreadable_reasoning_refusals_are_recognized() {
        for text in [
            "messages.1.content.0: Invalid `signature` in `thinking` block",
            "messages.1.content.1: Invalid `data` in `redacted_thinking` block",
            "messages.3.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
            "Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding failed for \"a!\"",
            "Unable to submit request because Thought signature is not valid.",
            "Corrupted thought signature.",
            "Invalid 'messages[1].reasoning_details[0]': expected an object",
            "property 'messages[2].tool_calls[0].extra_content' is unsupported",
        ] {
            assert!(is_unreadable_reasoning(400, &text.to_lowercase()), "{text}");
            assert!(!is_unreadable_reasoning(500, &text.to_lowercase()), "{text}");
        }
        assert!(!is_unreadable_reasoning(
            400,
            "messages.1.content.0: expected `thinking` or `redacted_thinking`"
        ));
    }

    fn check(status: u16, body: &str, tools_offered: ToolsInRequest) -> FailureKind {
        from_response(
            &UpstreamErrorResponse { status, retry_after: None, retry_after_ms: None, body, now: 0 },
            tools_offered,
        )
        .kind
    }

    #[test]
    fn refused_setting_is_found_in_provider_messages() {
        let chat = json!({
            "temperature": 0.2, "top_p": 0.9, "top_k": 5, "presence_penalty": 1, "frequency_penalty": 1,
            "reasoning_effort": "low", "seed": 7, "enable_thinking": true,
        });
        let gemini = json!({"generationConfig": {"topK": 5, "presencePenalty": 1}});
        let responses = json!({"text": {"verbosity": "low"}});
        for (body, words, setting) in [
            (
                &chat,
                "Unsupported parameter: 'temperature' is not supported with this model.",
                Some("temperature"),
            ),
            (
                &chat,
                "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
                Some("temperature"),
            ),
            // yym68686/uni-api#105, open-webui/open-webui#21266.
            (&chat, "Argument not supported on this model: presencePenalty", Some("presence_penalty")),
            (
                &chat,
                "Model grok-4-1-fast-reasoning does not support parameter presencePenalty.",
                Some("presence_penalty"),
            ),
            (&chat, "Model grok-4 does not support parameter reasoningEffort.", Some("reasoning_effort")),
            (&chat, "`temperature` and `top_p` cannot both be specified for this model.", Some("top_p")),
            (&chat, "`top_k` must be unset when thinking is enabled.", Some("top_k")),
            (&chat, "invalid temperature: only 1 is allowed for this model", Some("temperature")),
            (&chat, "cannot specify both 'thinking' and 'reasoning_effort'", Some("reasoning_effort")),
            // SiliconFlow (CherryHQ/cherry-studio#6642).
            (
                &chat,
                "Value error, current model does not support parameter `enable_thinking`.",
                Some("enable_thinking"),
            ),
            (&chat, "Unsupported parameter: 'min_p'", None),
            (&chat, "Unsupported parameter: 'my_seed'", None),
            (&chat, "temperature: 3 is greater than the maximum of 2", None),
            (&gemini, "Penalty is not enabled for this model", Some("presencePenalty")),
            (
                &gemini,
                "Invalid JSON payload received. Unknown name \"topK\" at 'generation_config'",
                Some("topK"),
            ),
            (
                &responses,
                "Unsupported parameter: 'text.verbosity' is not supported with this model.",
                Some("verbosity"),
            ),
        ] {
            assert_eq!(refused_setting(400, &words.to_lowercase(), body), setting, "{words}");
            assert_eq!(refused_setting(500, &words.to_lowercase(), body), None, "{words}");
        }
    }

    #[test]
    fn tools_unsupported_is_recognized_only_in_recorded_bodies() {
        let refusals = [
            (
                400,
                r#"{"error":{"message":"registry.ollama.ai/library/gemma3 does not support tools","type":"api_error","param":null,"code":null}}"#,
            ),
            (400, r#"{"error":"registry.ollama.ai/library/gemma3 does not support tools"}"#),
            (
                400,
                r#"{"error":{"message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}}"#,
            ),
            (
                400,
                r#"{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}"#,
            ),
            (
                500,
                r#"{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}"#,
            ),
            (500, r#"{"error":{"code":500,"message":"Unsupported param: tools","type":"server_error"}}"#),
            (
                404,
                r#"{"error":{"message":"No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing","code":404}}"#,
            ),
            (
                404,
                r#"{"error":{"message":"No endpoints found that support the provided 'tool_choice' value.","code":404}}"#,
            ),
            (400, r#"{"code":20037,"message":"Function call is not supported for this model.","data":null}"#),
            (
                400,
                r#"{"code":"InvalidParameter","message":"<400> InternalError.Algo.InvalidParameter: The tool call is not supported."}"#,
            ),
            (
                422,
                r#"{"detail":[{"type":"extra_forbidden","loc":["body","tools"],"msg":"Extra inputs are not permitted"}]}"#,
            ),
        ];
        for (status, body) in refusals {
            assert_eq!(check(status, body, ToolsInRequest::Present), K::ToolsUnsupported, "{body}");
            assert_ne!(
                check(status, body, ToolsInRequest::Absent),
                K::ToolsUnsupported,
                "no tools were offered: {body}"
            );
        }
        let others = [
            (
                400,
                r#"{"error":{"message":"Failed to call a function.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=x>"}}"#,
                K::Status,
            ),
            (400, r#"{"error":{"message":"Invalid schema for function 'f'","param":"tools[0]"}}"#, K::Status),
            (422, r#"{"detail":[{"type":"extra_forbidden","loc":["body","store"]}]}"#, K::Status),
            (401, r#"{"error":{"message":"this key does not support tools"}}"#, K::Unauthorized),
        ];
        for (status, body, expected) in others {
            assert_eq!(check(status, body, ToolsInRequest::Present), expected, "{body}");
        }
    }

    #[test]
    fn responses_are_classified_by_status_and_body() {
        let cases = [
            (429, r#"{"error":{"message":"slow down","type":"requests"}}"#, K::RateLimited),
            (
                429,
                r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
                K::QuotaExhausted,
            ),
            (
                529,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                K::Overloaded,
            ),
            (503, "", K::Status),
            (402, r#"{"error":{"message":"Insufficient Balance"}}"#, K::QuotaExhausted),
            (401, r#"{"error":{"message":"Incorrect API key provided"}}"#, K::Unauthorized),
            (403, "<html><title>Forbidden</title></html>", K::Unauthorized),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}"#,
                K::ContextTooLong,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
                K::ContextTooLong,
            ),
            (413, "", K::ContextTooLong),
            (404, r#"{"error":{"message":"The model `x` does not exist"}}"#, K::ModelNotFound),
            (
                404,
                r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}"#,
                K::ModelNotFound,
            ),
            (400, r#"{"error":{"message":"Model Not Exist"}}"#, K::ModelNotFound),
            (400, r#"{"error":{"message":"The model does not support this parameter"}}"#, K::Status),
            (404, "<html><title>Not Found</title></html>", K::WrongAddress),
            (404, "", K::WrongAddress),
            (404, r#"{"detail":"Not Found"}"#, K::WrongAddress),
            (405, r#"{"detail":"Method Not Allowed"}"#, K::WrongAddress),
            (404, "404 page not found", K::WrongAddress),
            (404, "Cannot POST /models/m:streamGenerateContent", K::WrongAddress),
            (
                404,
                r#"{"error":{"message":"Invalid URL (POST /v1/v1/chat/completions)","type":"invalid_request_error"}}"#,
                K::WrongAddress,
            ),
            (
                404,
                r#"{"error":{"message":"No allowed providers are available for the selected model."}}"#,
                K::ModelNotFound,
            ),
            (404, r#"{"error":{"message":"The assistant was deleted"}}"#, K::Status),
        ];
        for (status, body, expected) in cases {
            assert_eq!(check(status, body, ToolsInRequest::Absent), expected, "{status} {body}");
        }
    }

    #[test]
    fn empty_error_body_gets_the_status_text() {
        let response =
            UpstreamErrorResponse { status: 503, retry_after: None, retry_after_ms: None, body: " ", now: 0 };
        assert_eq!(from_response(&response, ToolsInRequest::Absent).message, "Service Unavailable");
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_or_milliseconds() {
        let noon = 1_445_412_480_000; // Wed, 21 Oct 2015 07:28:00 GMT
        let cases = [
            (Some("3"), None, Some(3_000)),
            (Some(" 0.5 "), None, Some(500)),
            (Some("Wed, 21 Oct 2015 07:28:10 GMT"), None, Some(10_000)),
            (Some("Wed, 21 Oct 2015 07:00:00 GMT"), None, Some(0)),
            (Some("3"), Some("250"), Some(250)),
            (Some("-3"), None, None),
            (Some("NaN"), None, None),
            (Some("later"), None, None),
            (None, None, None),
        ];
        for (retry_after, retry_after_ms, expected) in cases {
            let response =
                UpstreamErrorResponse { status: 429, retry_after, retry_after_ms, body: "", now: noon };
            assert_eq!(
                from_response(&response, ToolsInRequest::Absent).retry_after_ms,
                expected,
                "{retry_after:?} {retry_after_ms:?}"
            );
        }
    }

    #[test]
    fn stream_error_is_classified_only_if_specific() {
        let error = |message: &str, kind: Option<&str>, code: Option<&str>| ReportedError {
            message: message.into(),
            kind: kind.map(Into::into),
            code: code.map(Into::into),
        };
        let cases = [
            (error("X does not support tools", None, None), Some(K::ToolsUnsupported)),
            (error("Overloaded", Some("overloaded_error"), None), Some(K::Overloaded)),
            (error("余额不足", None, None), Some(K::QuotaExhausted)),
            (error("too hot", Some("invalid_request_error"), None), Some(K::Status)),
            (error("quota", Some("RESOURCE_EXHAUSTED"), Some("429")), Some(K::RateLimited)),
            (error("bad gateway", None, Some("502")), Some(K::Status)),
            (error("something", None, Some("9999")), None),
            (error("something", None, None), None),
        ];
        for (error, expected) in cases {
            assert_eq!(
                from_stream_error(&error, ToolsInRequest::Present).map(|failure| failure.kind),
                expected,
                "{error:?}"
            );
        }
    }

    #[test]
    fn failed_tool_generation_is_recognized_and_quoted() {
        let body = r#"{"error":{"message":"Failed to call a function.","code":"tool_use_failed","failed_generation":"<function=x>"}}"#;
        let response =
            UpstreamErrorResponse { status: 400, retry_after: None, retry_after_ms: None, body, now: 0 };
        let message = from_response(&response, ToolsInRequest::Present).message;
        assert_eq!(message, "Failed to call a function. The model wrote: <function=x>");
        let is_failed = |status, body| is_failed_call(status, &error_body::parse(body));
        assert!(is_failed(400, body) && !is_failed(500, body) && !is_failed(400, "tool_use_failed"));
    }

    #[test]
    fn tool_choice_refusal_is_recognized_by_its_text() {
        let thinking =
            r#"{"error":{"message":"thinking may not be enabled when tool_choice forces tool use."}}"#;
        assert!(mentions_tool_choice(400, thinking));
        assert!(mentions_tool_choice(
            400,
            r#"{"error":{"message":"tool choice 'required' is incompatible with thinking enabled"}}"#
        ));
        assert!(!mentions_tool_choice(400, r#"{"error":{"message":"too long"}}"#));
        assert!(!mentions_tool_choice(500, thinking));
    }

    #[test]
    fn image_limit_is_read_from_the_refusal() {
        for (status, text, most) in [
            (
                400,
                "the model returned the following errors: too many images and documents: 19 + 5 > 20",
                Some(20),
            ),
            (400, "too many images and documents: 101 + 0 > 100 invalid_request_error", Some(100)),
            (
                400,
                "the model returned the following errors: messages: too many images: image_count > 20",
                Some(20),
            ),
            (400, "too many images: 1 > 0", None),
            (400, "in context=('properties', 'too many images > 1')", None),
            (400, "too many images: total 42 mb > 20 mb", None),
            (400, "too many images: 33000000 bytes > 32000000", None),
            (400, "too many images: 3 > 2 per message", None),
            (400, r#"too many images: 3 > 2","type":"invalid_request_error""#, Some(2)),
            (400, "too many images", None),
            (400, "at least one of the image dimensions exceed max allowed size: 8000 pixels", None),
            (500, "too many images and documents: 21 + 0 > 20", None),
        ] {
            assert_eq!(allowed_pictures(status, text), most, "{text}");
        }
    }

    #[test]
    fn stream_options_refusal_is_recognized_by_its_text() {
        assert!(mentions_stream_options(422, r#"{"detail":[{"loc":["body","stream_options"]}]}"#));
        assert!(!mentions_stream_options(422, r#"{"detail":[{"loc":["body","store"]}]}"#));
        assert!(!mentions_stream_options(500, "stream_options"));
    }
}
