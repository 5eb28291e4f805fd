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
    /// Text that the model wrote instead of a call (Groq).
    pub failed_generation: Option<String>,
    /// Gemini's `RetryInfo`, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

/// Longest stored message, in characters.
pub(crate) const MESSAGE_CHARS_MAX: usize = 2_000;

/// Reads `{error:{message,type,code}}`, `{error:"…"}`, `{object:"error",message}`, `{code,message,data}`,
/// `[{error:{…}}]`, `{type:"error",error:{…}}`, `{detail:…}`, `{errors:[…]}`, and else the text itself, without
/// markup.
pub(crate) fn parse(body: &str) -> UpstreamErrorBody {
    let mut read = match serde_json::from_str::<Value>(body.trim()) {
        Ok(value) => from_json(&value).unwrap_or_else(|| UpstreamErrorBody {
            message: body.trim().into(),
            ..UpstreamErrorBody::default()
        }),
        Err(_) => UpstreamErrorBody { message: strip_markup(body), ..UpstreamErrorBody::default() },
    };
    if let Some((end, _)) = read.message.char_indices().nth(MESSAGE_CHARS_MAX) {
        read.message.truncate(end);
        read.message.push('…');
    }
    read
}

fn from_json(value: &Value) -> Option<UpstreamErrorBody> {
    match value {
        Value::Array(items) => items.first().and_then(from_json),
        Value::String(text) => {
            Some(UpstreamErrorBody { message: text.clone(), ..UpstreamErrorBody::default() })
        }
        Value::Object(fields) => match fields.get("error") {
            Some(inner @ (Value::Object(_) | Value::Array(_))) => from_json(inner),
            Some(Value::String(text)) => {
                // `{"error":"invalid_request","message":"…"}`: the longer one is for people.
                let message =
                    text_of(value, &["message", "error_description"]).unwrap_or_else(|| text.clone());
                Some(UpstreamErrorBody { message, ..details(value) })
            }
            _ => {
                let message =
                    text_of(value, &["message", "msg", "detail", "error_message", "error_msg", "errors"])?;
                Some(UpstreamErrorBody { message, ..details(value) })
            }
        },
        _ => None,
    }
}

fn details(object: &Value) -> UpstreamErrorBody {
    UpstreamErrorBody {
        message: String::new(),
        kind: text_of(object, &["type", "status"]),
        code: text_of(object, &["code"]),
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
        // FastAPI and Mistral: a list of findings, whose places matter ("body.tools").
        other => Some(other.to_string()),
    })
}

/// Text without markup, on one line. A page's title, if it has one, says more than its body.
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
    fn every_shape_gives_its_message() {
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
    fn geminis_delay_is_found_and_nonsense_is_not_believed() {
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
    fn a_message_is_bounded() {
        let long = "界".repeat(MESSAGE_CHARS_MAX + 1);
        assert_eq!(parse(&long).message.chars().count(), MESSAGE_CHARS_MAX + 1);
        assert!(parse(&long).message.ends_with('…'));
        assert_eq!(parse(&long[..3 * MESSAGE_CHARS_MAX]).message.chars().count(), MESSAGE_CHARS_MAX);
    }
}
