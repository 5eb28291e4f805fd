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
            return Some(UpstreamError { message, kind: text_of(json, "type"), code: text_of(json, "code") });
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

/// An error in a body that is no stream: also `{detail}` (FastAPI) and a lone `{message}` (AWS, gateways).
pub(crate) fn body_error_of(json: &JsonRef<'_>) -> Option<UpstreamError> {
    error_of(json).or_else(|| {
        let words = [json.get("detail"), json.get("message").filter(|message| message.is_string())];
        let words = words.into_iter().flatten().find(|words| !words.is_null())?;
        let is_error = !is_reply(json) && !is_success(json);
        is_error.then(|| UpstreamError {
            message: words.as_str().map_or_else(|| excerpt_of(words.raw()), Cow::into_owned),
            kind: text_of(json, "type"),
            code: code_of(json),
        })
    })
}

fn object_error(error: &JsonRef<'_>) -> UpstreamError {
    let mut message = text_of(error, "message").unwrap_or_else(|| excerpt_of(error.raw()));
    // OpenRouter: "Provider returned error", and here what the provider said.
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
/// `{errors: [{message}], success: false}` (Cloudflare), `{detail}` (FastAPI).
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

/// True if the envelope says that all is well: `{code: 0, message: "ok"}`.
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
    fn an_error_is_found_in_every_providers_form() {
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
    fn a_reply_is_no_error_whatever_stands_beside_it() {
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
            // A chunk is asked in the same way as a whole body, which knows more shapes.
            let read = read(body).filter(|_| !body.contains("response.code_interpreter"));
            assert_eq!(read, None, "{body}");
            assert_eq!(error_of(&JsonRef::parse(body).unwrap()), None, "{body}");
        }
    }
}
