//! The message of an upstream's error, in any of the shapes that errors have.

use serde_json::Value;

/// An error body, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UpstreamErrorBody {
    /// Message for people, at most [`MESSAGE_CHARS_MAX`].
    pub message: String,
    /// `type` or `status`.
    pub kind: Option<String>,
    /// `code`, as text.
    pub code: Option<String>,
    /// Every code, type, status and reason in the body, at any depth: gateways put the provider's error
    /// inside their own.
    pub codes: Vec<String>,
    /// All text of the error, in lower case, without parts of the request that some servers send back.
    pub text: String,
    /// Text that the model wrote instead of a call (Groq).
    pub failed_generation: Option<String>,
    /// Gemini's `RetryInfo`, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

/// Longest stored message, in characters.
pub(crate) const MESSAGE_CHARS_MAX: usize = 2_000;

/// Documents inside strings that are read, one in the other.
const NESTED_MAX: usize = 3;

/// Members that repeat the request or the model's text: neither describes the error.
const ECHOED: [&str; 7] =
    ["input", "ctx", "messages", "prompt", "request", "request_body", "failed_generation"];

/// Reads `{error:{message,type,code}}`, `{error:"…"}`, `{object:"error",message}`, `{code,message,data}`,
/// `{code,msg}`, `[{error:{…}}]`, `{type:"error",error:{…}}`, `{detail:…}`, `{errors:[…]}`, `{base_resp:{…}}`,
/// `{Response:{Error:{…}}}`, and else the text itself, without markup.
pub(crate) fn parse(body: &str) -> UpstreamErrorBody {
    let mut read = match serde_json::from_str::<Value>(body.trim()) {
        Ok(mut value) => {
            let read = from_json(&value).unwrap_or_else(|| UpstreamErrorBody {
                message: body.trim().into(),
                ..UpstreamErrorBody::default()
            });
            remove_echoes(&mut value);
            let mut codes = Vec::new();
            collect_codes(&value, NESTED_MAX, &mut codes);
            UpstreamErrorBody { codes, text: searchable(&value), ..read }
        }
        Err(_) => {
            let message = strip_markup(body);
            UpstreamErrorBody { text: message.to_lowercase(), message, ..UpstreamErrorBody::default() }
        }
    };
    if let Some((end, _)) = read.message.char_indices().nth(MESSAGE_CHARS_MAX) {
        read.message.truncate(end);
        read.message.push('…');
    }
    read
}

/// JSON in lower case, for a search of words. Line breaks in its texts become real ones, or a word would
/// begin with the `n` of `
/// `.
pub(super) fn searchable(value: &Value) -> String {
    let json = value.to_string().to_lowercase();
    let between_backslashes: Vec<String> = json.split(r"\\").map(|text| text.replace(r"\n", "\n")).collect();
    between_backslashes.join(r"\\")
}

fn from_json(value: &Value) -> Option<UpstreamErrorBody> {
    match value {
        Value::Array(items) => items.first().and_then(from_json),
        Value::String(text) => {
            Some(UpstreamErrorBody { message: text.clone(), ..UpstreamErrorBody::default() })
        }
        Value::Object(_) if let Some(own) = envelope(value) => Some(own),
        Value::Object(fields) => match fields.get("error") {
            Some(inner @ (Value::Object(_) | Value::Array(_))) => from_json(inner),
            Some(Value::String(text)) => {
                // `{"error":"invalid_request","message":"…"}`: the longer one is for people.
                let message =
                    text_of(value, &["message", "error_description"]).unwrap_or_else(|| text.clone());
                Some(UpstreamErrorBody { message, ..details(value) })
            }
            _ => {
                let listed =
                    fields.get("errors").and_then(|errors| errors.get(0)).filter(|first| first.is_object());
                let names = ["message", "msg", "detail", "error_message", "error_msg"];
                match (text_of(value, &names), listed) {
                    (Some(message), _) => Some(UpstreamErrorBody { message, ..details(value) }),
                    // Cloudflare: `{"errors":[{"message":…,"code":…}],"success":false}`.
                    (None, Some(first)) => from_json(first),
                    (None, None) => {
                        let message = text_of(value, &["errors"])?;
                        Some(UpstreamErrorBody { message, ..details(value) })
                    }
                }
            }
        },
        _ => None,
    }
}

/// Errors in a provider's envelope: MiniMax's `base_resp`, whose number identifies the error, and Tencent's
/// `Response`.
fn envelope(value: &Value) -> Option<UpstreamErrorBody> {
    if let Some(base) = value.get("base_resp") {
        let code = text_of(base, &["status_code"]).filter(|code| code != "0")?;
        let message = text_of(base, &["status_msg"]).unwrap_or_else(|| code.clone());
        let kind = Some("base_resp".to_owned());
        return Some(UpstreamErrorBody { message, kind, code: Some(code), ..UpstreamErrorBody::default() });
    }
    let error = value.get("Response")?.get("Error")?;
    let (code, message) = (text_of(error, &["Code"]), text_of(error, &["Message"])?);
    Some(UpstreamErrorBody { message, code, ..UpstreamErrorBody::default() })
}

fn remove_echoes(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !ECHOED.contains(&name.as_str()));
            fields.values_mut().for_each(remove_echoes);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_echoes),
        _ => {}
    }
}

fn collect_codes(value: &Value, nested_left: usize, codes: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), value) {
                    ("code" | "type" | "status" | "reason" | "error_code" | "Code", Value::String(code)) => {
                        codes.push(code.clone());
                    }
                    ("code" | "error_code", Value::Number(code)) => codes.push(code.to_string()),
                    // AWS: `com.amazon.coral.service#ThrottlingException`.
                    ("__type", Value::String(name)) => {
                        codes.push(name.rsplit('#').next().unwrap_or_default().to_owned());
                    }
                    ("error", Value::String(code)) if !code.contains(' ') => codes.push(code.clone()),
                    _ => collect_codes(value, nested_left, codes),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_codes(item, nested_left, codes)),
        Value::String(text) if nested_left > 0 && text.trim_start().starts_with('{') => {
            if let Ok(inner) = serde_json::from_str(text.trim()) {
                collect_codes(&inner, nested_left - 1, codes);
            }
        }
        _ => {}
    }
}

fn details(object: &Value) -> UpstreamErrorBody {
    UpstreamErrorBody {
        message: String::new(),
        kind: text_of(object, &["type", "status"]),
        code: text_of(object, &["code", "error_code"]),
        codes: Vec::new(),
        text: String::new(),
        failed_generation: text_of(object, &["failed_generation"]),
        retry_after_ms: object.get("details").and_then(Value::as_array).and_then(|details| {
            details
                .iter()
                .find_map(|detail| seconds_to_ms(detail.get("retryDelay")?.as_str()?.strip_suffix('s')?))
        }),
    }
}

/// `34.07` as milliseconds.
fn seconds_to_ms(text: &str) -> Option<u64> {
    let seconds: f64 = text.parse().ok()?;
    (seconds.is_finite() && seconds >= 0.0).then(|| (seconds.min(1e9) * 1000.0).ceil() as u64)
}

fn text_of(object: &Value, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| match object.get(name)? {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        // FastAPI and Mistral: a list of errors, whose paths matter ("body.tools").
        other => Some(other.to_string()),
    })
}

/// Text without markup, on one line. The title of a page, if it has one, is more informative than its body.
pub(crate) fn strip_markup(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    if let Some((start, end)) =
        lower.find("<title>").zip(lower.find("</title>")).filter(|(start, end)| start + 7 <= *end)
    {
        return collapse_whitespace(&text[start + 7..end]);
    }
    let mut out = String::new();
    let mut inside_tag = false;
    for c in text.chars() {
        match c {
            '<' => inside_tag = true,
            '>' if inside_tag => {
                inside_tag = false;
                out.push(' ');
            }
            c if !inside_tag => out.push(c),
            _ => {}
        }
    }
    collapse_whitespace(&out)
}

fn collapse_whitespace(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_newlines_in_a_message_become_newlines() {
        let text = parse(r#"{"error":{"message":"Two faults:\ntools.1: no C:\\new"}}"#).text;
        assert!(text.contains("faults:\ntools.1") && text.contains(r"c:\\new"), "{text}");
    }

    #[test]
    fn error_message_is_read_from_every_body_shape() {
        let cases = [
            (r#"{"error":{"message":"m","type":"t","param":null,"code":"c"}}"#, "m", Some("t"), Some("c")),
            (
                r#"{"error":{"message":"m","code":400,"status":"INVALID_ARGUMENT"}}"#,
                "m",
                Some("INVALID_ARGUMENT"),
                Some("400"),
            ),
            (r#"{"error":"m"}"#, "m", None, None),
            (r#"{"error":"bad_request","message":"m"}"#, "m", None, None),
            (
                r#"{"object":"error","message":"m","type":"BadRequestError","code":400}"#,
                "m",
                Some("BadRequestError"),
                Some("400"),
            ),
            (r#"{"code":20015,"message":"m","data":null}"#, "m", None, Some("20015")),
            (
                r#"[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}]"#,
                "m",
                Some("RESOURCE_EXHAUSTED"),
                Some("429"),
            ),
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#,
                "m",
                Some("overloaded_error"),
                None,
            ),
            (r#"{"detail":"m"}"#, "m", None, None),
            (r#"{"error_code":17,"error_msg":"m"}"#, "m", None, Some("17")),
            (r#"{"code":336501,"msg":"m"}"#, "m", None, Some("336501")),
            (r#"{"base_resp":{"status_code":1008,"status_msg":"m"}}"#, "m", Some("base_resp"), Some("1008")),
            (
                r#"{"Response":{"Error":{"Code":"LimitExceeded","Message":"m"}}}"#,
                "m",
                None,
                Some("LimitExceeded"),
            ),
            (r#"{"errors":[{"message":"m","code":3036}],"success":false}"#, "m", None, Some("3036")),
            (r#"{"errors":["m"]}"#, r#"["m"]"#, None, None),
            (
                r#"{"detail":[{"loc":["body","tools"],"type":"extra_forbidden"}]}"#,
                r#"[{"loc":["body","tools"],"type":"extra_forbidden"}]"#,
                None,
                None,
            ),
            (r#"{"unheard":"of"}"#, r#"{"unheard":"of"}"#, None, None),
            ("m", "m", None, None),
            (
                "<html><head><title>502\n Bad Gateway</title></head><body>x</body></html>",
                "502 Bad Gateway",
                None,
                None,
            ),
            ("<p>upstream <b>down</b></p>", "upstream down", None, None),
            ("</title><title>", "", None, None),
            ("", "", None, None),
        ];
        for (body, message, kind, code) in cases {
            let read = parse(body);
            assert_eq!(
                (read.message.as_str(), read.kind.as_deref(), read.code.as_deref()),
                (message, kind, code),
                "{body}"
            );
        }
    }

    #[test]
    fn nested_error_codes_are_found_and_echoed_input_is_ignored() {
        let nested = r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"{\"error\":{\"code\":\"insufficient_quota\",\"message\":\"\\u4f59\\u989d\u4e0d\u8db3\"}}"}}}"#;
        let read = parse(nested);
        assert_eq!(read.codes, ["429", "insufficient_quota"]);
        assert!(read.text.contains("不足"), "{}", read.text);
        let echoed = r#"{"detail":[{"type":"missing","loc":["body","n"],"msg":"Field required","input":{"messages":["My Quota"]}}]}"#;
        let read = parse(echoed);
        assert!(read.codes == ["missing"] && read.text.contains("field required"), "{read:?}");
        assert!(!read.text.contains("quota"), "{}", read.text);
        assert_eq!(
            parse(r#"{"__type":"com.amazon#ThrottlingException","message":"m"}"#).codes,
            ["ThrottlingException"]
        );
        assert_eq!(parse(r#"{"error":"quota_exceeded","message":"Used up"}"#).codes, ["quota_exceeded"]);
    }

    #[test]
    fn retry_delay_of_gemini_is_parsed_and_validated() {
        let body = |delay: &str| {
            format!(r#"{{"error":{{"message":"m","details":[{{"@type":"x"}},{{"retryDelay":"{delay}"}}]}}}}"#)
        };
        for (delay, expected) in
            [("34.074s", Some(34_074)), ("2s", Some(2_000)), ("-1s", None), ("NaNs", None), ("soon", None)]
        {
            assert_eq!(parse(&body(delay)).retry_after_ms, expected, "{delay}");
        }
    }

    #[test]
    fn error_message_length_is_bounded() {
        let long = "界".repeat(MESSAGE_CHARS_MAX + 1);
        assert_eq!(parse(&long).message.chars().count(), MESSAGE_CHARS_MAX + 1);
        assert!(parse(&long).message.ends_with('…'));
        assert_eq!(parse(&long[..3 * MESSAGE_CHARS_MAX]).message.chars().count(), MESSAGE_CHARS_MAX);
    }
}
