//! Errors inside a 200, in the shapes that providers and gateways give them. A reply is never taken for one.

use super::excerpt_of;
use crate::json::JsonRef;
use crate::vocabulary::UpstreamError;
use std::borrow::Cow;

/// An error object in any of its known shapes: `{error: {message, type, code}}`, `{error: "text"}`,
/// `{object: "error", message}`, `{type: "error", ...}`, `[{error: ...}]`, and the envelopes of [`enveloped`].
pub(crate) fn error_of(json: &JsonRef<'_>) -> Option<UpstreamError> {
    if let Some(first) = json.items().first() {
        return error_of(first);
    }
    match json.get("error") {
        Some(error) if error.is_string() => {
            let text = error.as_str().unwrap_or_default();
            // `{"error": "quota_exceeded", "message": "…"}`: the longer one is for people.
            let message = match json.nonempty("message") {
                Some(message) => message.into_owned(),
                None if text.is_empty() => json.raw().to_owned(),
                None => text.into_owned(),
            };
            let code = text_of(json, "code").or_else(|| http_status_of(json));
            return Some(UpstreamError { message, kind: text_of(json, "type"), code });
        }
        Some(error) if error.is_object() && !error.members().is_empty() => return Some(object_error(error)),
        _ => {}
    }
    let says = |key: &str, word: &str| json.get(key).and_then(JsonRef::as_str).as_deref() == Some(word);
    if (says("object", "error") || says("type", "error"))
        && let Some(message) = json.get("message").filter(|message| !message.is_null())
    {
        return Some(UpstreamError {
            message: message.as_str().map_or_else(|| excerpt_of(message.raw()), Cow::into_owned),
            kind: text_of(json, "type"),
            code: text_of(json, "code"),
        });
    }
    enveloped(json)
}

/// An error in a body that is no stream, where words alone are enough: it has nothing else to be.
pub(crate) fn body_error_of(json: &JsonRef<'_>) -> Option<UpstreamError> {
    error_of(json).or_else(|| error_in_words(json))
}

/// An error as plain text in an event of a stream, in the forms of [`error_in_words`]. Progress notes look
/// like it, so an event with a name of its own is excluded, and so is one with a member that no such error
/// has, or with the text of a state. It is the stream's error only if no more of the reply follows: see
/// `StepWriter::last_words`.
pub(crate) fn event_words_of(event: &str, json: &JsonRef<'_>) -> Option<UpstreamError> {
    // `message` is the standard's name of an event without one.
    let is_bare = matches!(event, "" | "message")
        && json.members().iter().all(|(name, value)| value.is_null() || is_of_error(name, value, json));
    let words = if is_bare { error_in_words(json) } else { None };
    words.filter(|error| !is_state(&error.message))
}

/// True if errors in words have this member: ids (Cohere, Kong, AWS), and what RFC 9457, NestJS and Django add.
fn is_of_error(name: &str, value: &JsonRef<'_>, json: &JsonRef<'_>) -> bool {
    match name {
        "detail" | "message" | "code" | "error_code" | "title" | "instance" => true,
        "id" | "request_id" | "requestId" | "param" | "path" | "timestamp" => true,
        "status" if value.is_string() => {
            matches!(value.as_str().as_deref(), Some("error" | "failed" | "failure"))
        }
        "status" | "statusCode" | "status_code" => http_status_of(json).is_some(),
        "success" => value.as_bool() == Some(false),
        "error" => value.as_bool() == Some(true),
        // RFC 9457: an address. OpenAI's errors without their envelope: `server_error`. All others are those of events.
        "type" => value.as_str().is_some_and(|kind| {
            ["http", "about:", "urn:"].iter().any(|scheme| kind.starts_with(scheme))
                || kind.ends_with("_error")
        }),
        _ => false,
    }
}

/// True for texts by which gateways report a request that is under way, or that has succeeded.
fn is_state(words: &str) -> bool {
    const STATES: [&str; 35] = [
        "",
        "ok",
        "success",
        "succeeded",
        "accepted",
        "queued",
        "pending",
        "waiting",
        "connecting",
        "connected",
        "loading",
        "ready",
        "start",
        "started",
        "running",
        "in progress",
        "processing",
        "thinking",
        "generating",
        "streaming",
        "ping",
        "heartbeat",
        "done",
        "complete",
        "completed",
        "end",
        "finished",
        "stream finished",
        "stop",
        "stopped",
        "closed",
        "alive",
        "keepalive",
        "keep alive",
        "pong",
    ];
    let words = words.trim().trim_end_matches(['.', '…', '!']).to_lowercase().replace(['_', '-'], " ");
    STATES.contains(&words.as_str())
}

/// `{detail}` (FastAPI, Django, RFC 9457), `{message}` (AWS, Kong, Cohere) and `{statusCode, message}` (NestJS, Azure).
fn error_in_words(json: &JsonRef<'_>) -> Option<UpstreamError> {
    let words = json.get("detail").or_else(|| json.get("message").filter(|message| message.is_string()))?;
    let is_error = !is_reply(json) && !is_success(json);
    is_error.then(|| UpstreamError {
        message: words.as_str().map_or_else(|| excerpt_of(words.raw()), Cow::into_owned),
        kind: text_of(json, "type"),
        code: code_of(json).or_else(|| http_status_of(json)),
    })
}

/// The status that an error has in its JSON as well.
pub(crate) fn http_status_of(json: &JsonRef<'_>) -> Option<String> {
    let status =
        ["status", "statusCode", "status_code"].into_iter().find_map(|name| json.get(name)?.as_u64())?;
    (400..600).contains(&status).then(|| status.to_string())
}

fn object_error(error: &JsonRef<'_>) -> UpstreamError {
    let mut message = text_of(error, "message").unwrap_or_else(|| excerpt_of(error.raw()));
    // OpenRouter: "Provider returned error", with the provider's own error here.
    if let Some(raw) =
        error.path(&["metadata", "raw"]).and_then(JsonRef::as_str).filter(|raw| !raw.is_empty())
    {
        message = format!("{message}: {}", excerpt_of(&raw));
    }
    UpstreamError {
        message,
        kind: text_of(error, "type").or_else(|| text_of(error, "status")),
        code: text_of(error, "code"),
    }
}

/// Errors without the word: MiniMax's `{base_resp: {status_code, status_msg}}`, `{code, message}` (DashScope, SiliconFlow),
/// `{code, msg}` and `{error_code, error_msg}` (Baidu), `{Response: {Error: {Code, Message}}}` (Tencent),
/// `{errors: [{message}], success: false}` (Cloudflare).
fn enveloped(json: &JsonRef<'_>) -> Option<UpstreamError> {
    if let Some(base) = json.get("base_resp") {
        // Its `status_code` is 0 in every good reply, which may have `choices: null`.
        let code = base.scalar("status_code").filter(|code| code != "0")?;
        let message = base.nonempty("status_msg").unwrap_or(Cow::Borrowed("")).into_owned();
        let message = if message.is_empty() { format!("status_code {code}") } else { message };
        return Some(UpstreamError {
            message,
            kind: Some("base_resp".to_owned()),
            code: Some(code.into_owned()),
        });
    }
    if is_reply(json) || json.get("type").is_some() {
        return None;
    }
    if let Some(error) = json.path(&["Response", "Error"]) {
        let message = error.nonempty("Message")?.into_owned();
        return Some(UpstreamError { message, kind: None, code: text_of(error, "Code") });
    }
    if let Some(first) = json.get("errors").and_then(|errors| errors.items().first())
        && let Some(message) = first.nonempty("message")
    {
        return Some(UpstreamError {
            message: message.into_owned(),
            kind: None,
            code: text_of(first, "code"),
        });
    }
    let code = code_of(json)?;
    let message = ["message", "msg", "error_msg"].into_iter().find_map(|name| json.nonempty(name))?;
    let kind = text_of(json, "type");
    (!is_success(json)).then(|| UpstreamError { message: message.into_owned(), kind, code: Some(code) })
}

fn code_of(json: &JsonRef<'_>) -> Option<String> {
    text_of(json, "code").or_else(|| text_of(json, "error_code"))
}

/// True if a member holds what only a reply has. Empty ones hold nothing: an error may come with `choices: []`.
fn is_reply(json: &JsonRef<'_>) -> bool {
    let holds_something = |json: &JsonRef<'_>| !json.items().is_empty() || !json.members().is_empty();
    ["choices", "content", "candidates", "output", "message", "response", "delta"]
        .iter()
        .any(|name| json.get(name).is_some_and(holds_something))
        || json.get("content").or(json.get("response")).is_some_and(JsonRef::is_string)
}

/// True if the envelope reports success: `{code: 0, message: "ok"}`.
fn is_success(json: &JsonRef<'_>) -> bool {
    let says_success = |code: String| {
        matches!(code.to_ascii_lowercase().as_str(), "0" | "200" | "20000" | "success" | "ok" | "true")
    };
    json.get("success").and_then(JsonRef::as_bool) == Some(true) || code_of(json).is_some_and(says_success)
}

fn text_of(json: &JsonRef<'_>, key: &str) -> Option<String> {
    json.scalar(key).map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Option<(String, Option<String>, Option<String>)> {
        let json = JsonRef::parse(body).expect("the example is JSON");
        body_error_of(&json).map(|error| (error.message, error.kind, error.code))
    }

    #[test]
    fn errors_of_every_provider_are_recognized() {
        let cases = [
            (r#"{"error":{"code":"1113","message":"余额不足"}}"#, "余额不足", None, Some("1113")),
            (r#"{"error":{"message":"m","type":"t","code":null}}"#, "m", Some("t"), None),
            (r#"{"error":{"code":429,"message":"m","status":"S"}}"#, "m", Some("S"), Some("429")),
            (r#"{"error":"m"}"#, "m", None, None),
            (r#"{"error":"quota_exceeded","message":"m"}"#, "m", None, None),
            (r#"{"code":"invalid-argument","error":"m"}"#, "m", None, Some("invalid-argument")),
            (r#"[{"error":{"message":"m"}}]"#, "m", None, None),
            (r#"{"id":"x","choices":[],"error":{"code":502,"message":"m"}}"#, "m", None, Some("502")),
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#,
                "m",
                Some("overloaded_error"),
                None,
            ),
            (
                r#"{"object":"error","message":"m","type":"BadRequestError","code":400}"#,
                "m",
                Some("BadRequestError"),
                Some("400"),
            ),
            (
                r#"{"object":"error","message":{"detail":"m"},"type":"t"}"#,
                r#"{"detail":"m"}"#,
                Some("t"),
                None,
            ),
            (r#"{"base_resp":{"status_code":1008,"status_msg":"m"}}"#, "m", Some("base_resp"), Some("1008")),
            (
                r#"{"id":"x","choices":null,"base_resp":{"status_code":1004,"status_msg":"m"}}"#,
                "m",
                Some("base_resp"),
                Some("1004"),
            ),
            (
                r#"{"base_resp":{"status_code":1000,"status_msg":""}}"#,
                "status_code 1000",
                Some("base_resp"),
                Some("1000"),
            ),
            (r#"{"code":"Throttling","message":"m","request_id":"r"}"#, "m", None, Some("Throttling")),
            (r#"{"code":20015,"message":"m","data":null}"#, "m", None, Some("20015")),
            (r#"{"code":336501,"msg":"m"}"#, "m", None, Some("336501")),
            (r#"{"error_code":17,"error_msg":"m"}"#, "m", None, Some("17")),
            (
                r#"{"Response":{"Error":{"Code":"LimitExceeded","Message":"m"},"RequestId":"r"}}"#,
                "m",
                None,
                Some("LimitExceeded"),
            ),
            (
                r#"{"errors":[{"message":"m","code":3036}],"success":false,"result":{}}"#,
                "m",
                None,
                Some("3036"),
            ),
            (r#"{"detail":"m"}"#, "m", None, None),
            (r#"{"detail":[{"msg":"m"}]}"#, r#"[{"msg":"m"}]"#, None, None),
            (r#"{"message":"m"}"#, "m", None, None),
            (
                r#"{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"余额不足"}}}"#,
                "Provider returned error: 余额不足",
                None,
                Some("502"),
            ),
        ];
        for (body, message, kind, code) in cases {
            let expected = Some((message.to_owned(), kind.map(str::to_owned), code.map(str::to_owned)));
            assert_eq!(read(body), expected, "{body}");
        }
    }

    #[test]
    fn message_only_event_is_an_error() {
        let cases = [
            (r#"{"detail":"m"}"#, "m", None),
            (r#"{"message":"m"}"#, "m", None),
            (r#"{"message":"m","data":null,"choices":null}"#, "m", None),
            (r#"{"detail":[{"msg":"m","type":"missing"}]}"#, r#"[{"msg":"m","type":"missing"}]"#, None),
            (r#"{"detail":"m","code":"token_not_valid"}"#, "m", Some("token_not_valid")),
            (r#"{"message":"m","request_id":"r"}"#, "m", None),
            (r#"{"message":"m","requestId":"r"}"#, "m", None),
            (r#"{"id":"x","message":"m"}"#, "m", None),
            (r#"{"statusCode":401,"message":"m"}"#, "m", Some("401")),
            (r#"{"success":false,"message":"m"}"#, "m", None),
            (r#"{"error":true,"status":429,"message":"m"}"#, "m", Some("429")),
            (r#"{"status":"error","message":"m"}"#, "m", None),
            (r#"{"status":"error","statusCode":401,"message":"m"}"#, "m", Some("401")),
            (r#"{"message":"m","type":"server_error","param":null,"code":null}"#, "m", None),
            (r#"{"timestamp":"t","path":"/v1","status":404,"message":"m"}"#, "m", Some("404")),
            (r#"{"type":"about:blank","title":"Unauthorized","status":401,"detail":"m"}"#, "m", Some("401")),
        ];
        for (event, message, code) in cases {
            let json = JsonRef::parse(event).unwrap();
            for name in ["", "message"] {
                let read = event_words_of(name, &json).map(|error| (error.message, error.code));
                assert_eq!(read, Some((message.to_owned(), code.map(str::to_owned))), "{event}");
            }
            assert_eq!(event_words_of("progress", &json), None, "a name says what it is: {event}");
            assert_eq!(body_error_of(&json).map(|error| error.message).as_deref(), Some(message), "{event}");
        }
    }

    #[test]
    fn reply_and_progress_events_are_not_errors() {
        let events = [
            // Chat Completions, and what gateways and llama.cpp add to it.
            r#"{"id":"x","object":"chat.completion.chunk","choices":[],"detail":"m"}"#,
            r#"{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{}}],"message":"m"}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":1},"message":"m"}"#,
            r#"{"usage":{"prompt_tokens":1},"detail":"m"}"#,
            r#"{"choices":[],"prompt_progress":{"total":9,"processed":3},"message":"m"}"#,
            r#"{"prompt_progress":{"total":9,"processed":3},"message":"m"}"#,
            r#"{"model":"m","message":"loading weights"}"#,
            r#"{"object":"status","message":"m"}"#,
            // Responses, Anthropic, Cohere.
            r#"{"type":"response.in_progress","message":"m"}"#,
            r#"{"type":"response.some_new_event","detail":"m","sequence_number":3}"#,
            r#"{"type":"ping"}"#,
            r#"{"type":"ping","message":"m"}"#,
            r#"{"type":"message_start","message":{"id":"x","content":[]}}"#,
            r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"Hi"}}}}"#,
            r#"{"id":"x","model":"m","message":"m"}"#,
            // Gemini, Ollama, Bedrock.
            r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}],"message":"m"}"#,
            r#"{"usageMetadata":{"promptTokenCount":1},"modelVersion":"m","message":"m"}"#,
            r#"{"model":"m","created_at":"t","message":{"role":"assistant","content":""},"done":false}"#,
            r#"{"model":"m","response":"","done":true,"detail":"m"}"#,
            r#"{"status":"pulling manifest","message":"m"}"#,
            r#"{"contentBlockIndex":0,"message":"m"}"#,
            // Progress.
            r#"{"message":"processing"}"#,
            r#"{"message":"Processing..."}"#,
            r#"{"message":"in_progress"}"#,
            r#"{"message":"OK"}"#,
            r#"{"message":"keep-alive"}"#,
            r#"{"message":"Stream finished."}"#,
            r#"{"message":""}"#,
            r#"{"detail":"completed"}"#,
            r#"{"detail":null}"#,
            r#"{"message":"m","status":"processing"}"#,
            r#"{"message":"m","status":200}"#,
            r#"{"message":"m","progress":0.4}"#,
            r#"{"message":"m","queue_position":3}"#,
            r#"{"message":"m","event":"queued"}"#,
            r#"{"message":"m","step":2,"total":5}"#,
            r#"{"message":"m","success":true}"#,
            r#"{"message":"m","code":0}"#,
            r#"{"message":"m","error":false}"#,
            r#"{"detail":"m","eta":4}"#,
            r#"{"message":["m"]}"#,
            r#"["detail"]"#,
            r#""detail""#,
            "{}",
        ];
        for event in events {
            assert_eq!(event_words_of("", &JsonRef::parse(event).unwrap()), None, "{event}");
        }
    }

    #[test]
    fn reply_with_extra_fields_is_not_an_error() {
        let replies = [
            r#"{"id":"x","choices":[{"message":{"content":"Hi"}}],"base_resp":{"status_code":0,"status_msg":""}}"#,
            r#"{"choices":null,"base_resp":{"status_code":0,"status_msg":"success"}}"#,
            r#"{"code":0,"message":"success","choices":[{"message":{"content":"Hi"}}]}"#,
            r#"{"code":0,"msg":"ok","data":null}"#,
            r#"{"code":200,"message":"OK"}"#,
            r#"{"code":"success","message":"done"}"#,
            r#"{"code":7,"message":"a note","choices":[{"delta":{"content":"Hi"}}]}"#,
            r#"{"error":null,"choices":[{"delta":{"content":"Hi"}}]}"#,
            r#"{"error":{},"choices":[{"delta":{"content":"Hi"}}]}"#,
            r#"{"errors":[],"success":true,"message":"fine"}"#,
            r#"{"type":"message","content":[{"type":"text","text":"Hi"}]}"#,
            r#"{"type":"response.code_interpreter_call_code.done","code":"print(1)","message":"x"}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}],"detail":"x"}"#,
            r#"{"model":"m","message":{"role":"assistant","content":"Hi"},"done":true,"detail":"x"}"#,
            r#"{"response":"Hi","done":true,"code":5,"msg":"x"}"#,
            r#"{"id":"x","choices":[]}"#,
            "{}",
        ];
        for body in replies {
            // A chunk is tested in the same way as a whole body, for which more shapes are known.
            let read = read(body).filter(|_| !body.contains("response.code_interpreter"));
            assert_eq!(read, None, "{body}");
            assert_eq!(error_of(&JsonRef::parse(body).unwrap()), None, "{body}");
        }
    }
}
