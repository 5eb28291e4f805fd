//! Diagnosis of recordings that are not streams, with remedies.

use super::texts;
use crate::UserLanguage;
use serde::Serialize;

/// Content, other than a stream, that a recording may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = DecodedMistake))]
pub struct RecordingDiagnostic {
    /// Stable code.
    #[cfg_attr(feature = "openapi", schema(example = "compressed"))]
    pub code: &'static str,
    /// Description of that content.
    pub what: &'static str,
    /// Remedy.
    pub remedy: &'static str,
}

/// Guesses at the kind of content, other than a stream.
pub fn diagnose(body: &[u8], language: UserLanguage) -> Vec<RecordingDiagnostic> {
    let text = String::from_utf8_lossy(body);
    let diagnostic = |code| texts::diagnostic(code, language);
    SIGNS
        .into_iter()
        .filter(|(_, shows)| shows(body, text.trim_start()))
        .filter_map(|(code, _)| diagnostic(code))
        .collect()
}

/// A sign that bytes (and the same as text) may show.
type SignMatcher = fn(&[u8], &str) -> bool;

/// Signs of problems, each with its code in [`texts::diagnostic`].
pub(super) const SIGNS: [(&str, SignMatcher); 10] = [
    ("empty", |_, text| text.is_empty()),
    ("compressed", |body, _| body.starts_with(b"\x1f\x8b") || body.starts_with(b"\x28\xb5\x2f\xfd")),
    ("utf16", |body, _| body.starts_with(b"\xff\xfe") || body.starts_with(b"\xfe\xff")),
    ("html", |_, text| text.starts_with('<')),
    ("headers", |_, text| text.starts_with("HTTP/")),
    ("har", |_, text| text.starts_with('{') && text.contains("\"entries\"") && text.contains("\"creator\"")),
    ("chunked", |_, text| {
        let mut lines = text.lines();
        let size = lines
            .next()
            .is_some_and(|line| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_hexdigit()));
        size && lines.next().is_some_and(|line| line.starts_with("data:") || line.starts_with("event:"))
    }),
    ("escaped", |_, text| text.contains("\\n\\ndata:")),
    ("no_blank_lines", |_, text| {
        let events = text.lines().filter(|line| line.starts_with("data:")).count();
        events > 1 && !text.trim_end().lines().any(|line| line.trim().is_empty())
    }),
    ("not_sse", |body, text| {
        // A binary frame begins with a zero byte.
        let is_text = !text.starts_with(['{', '[', '<', '\0']) && !text.is_empty();
        let is_sse = text
            .lines()
            .any(|line| ["data:", "event:", "id:", ":"].iter().any(|field| line.starts_with(field)));
        is_text && !is_sse && std::str::from_utf8(body).is_ok()
    }),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &[u8], expected: &[&str]) {
        let diagnostic: Vec<&str> =
            diagnose(body, UserLanguage::English).iter().map(|mistake| mistake.code).collect();
        assert_eq!(diagnostic, expected, "{}", String::from_utf8_lossy(body));
    }

    #[test]
    fn bodies_that_are_not_streams_are_diagnosed() {
        check(b"", &["empty"]);
        check(b" \r\n", &["empty"]);
        check(b"\x1f\x8b\x08\x00\x00", &["compressed"]);
        check(b"\xff\xfed\x00a\x00", &["utf16"]);
        check(b"\n<!doctype html><title>502</title>", &["html"]);
        check(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {}\n\n", &["headers"]);
        check(br#"{"log":{"creator":{},"entries":[]}}"#, &["har"]);
        check(b"1f\r\ndata: {}\n\n\r\n0\r\n", &["chunked"]);
        check(br#""data: {}\n\ndata: [DONE]""#, &["escaped", "not_sse"]);
        check(b"data: {}\ndata: {}\n", &["no_blank_lines"]);
        check(b"curl: (6) Could not resolve host", &["not_sse"]);
    }

    #[test]
    fn valid_streams_have_no_diagnostics() {
        for stream in [
            "data: {\"choices\":[]}\n\ndata: [DONE]\n\n",
            "event: ping\ndata: {}\n\n",
            ": a comment\n\ndata: {}\n\n",
            "{\"message\":{},\"done\":false}\n{\"done\":true}\n",
            "[{\"candidates\":[]}]",
            "data: {}\r\n\r\ndata: {}\r\n\r\n",
        ] {
            check(stream.as_bytes(), &[]);
        }
    }

    #[test]
    fn every_diagnostic_has_a_text_in_both_languages() {
        for (code, _) in SIGNS {
            for language in [UserLanguage::English, UserLanguage::Chinese] {
                assert!(texts::diagnostic(code, language).is_some(), "{code} {language:?}");
            }
        }
    }
}
