//! A body that is not a stream: a whole reply, an error as JSON, an HTML page, plain text.

use super::{PayloadDecoder, write_payload};
use crate::json::JsonRef;
use crate::step::{body_error_of, excerpt_of, http_status_of};
use crate::vocabulary::{StepEvent, UpstreamError};

impl PayloadDecoder {
    pub(super) fn decode_body(&mut self, body: &[u8], sink: &mut dyn FnMut(StepEvent<'_>)) {
        let text = String::from_utf8_lossy(body);
        let text = text.trim();
        let dialect = &mut self.dialect;
        write_payload(&mut self.state, sink, |step| match JsonRef::parse(text) {
            Ok(json) => match body_error_of(&json) {
                Some(error) => step.fail(error),
                None => dialect.decode_body(&json, step),
            },
            // JSON that was cut is a truncated reply, not an error page.
            Err(error) if error.offset >= text.len() && text.starts_with(['{', '[']) => {}
            Err(_) => step.fail(UpstreamError { message: strip_html(text), ..UpstreamError::default() }),
        });
    }
}

/// An error whose JSON is one only by its position (`event: error`).
pub(super) fn plain_error(json: &JsonRef<'_>) -> Option<UpstreamError> {
    let message = json
        .as_str()
        .or_else(|| json.nonempty("message"))
        .or_else(|| json.nonempty("detail"))
        .map_or_else(|| excerpt_of(json.raw()), |text| text.into_owned());
    Some(UpstreamError {
        message,
        kind: json.scalar("type").map(|text| text.into_owned()),
        code: json.scalar("code").map(|text| text.into_owned()).or_else(|| http_status_of(json)),
    })
}

/// The text of an HTML page without its tags, or plain text, at most 200 bytes.
fn strip_html(text: &str) -> String {
    if !text.starts_with('<') {
        return excerpt_of(text);
    }
    let mut words = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        words.push_str(&rest[..open]);
        words.push(' ');
        // Neither script nor style is for people.
        let tag = rest[open..].to_ascii_lowercase();
        let skip_to = ["script", "style"].iter().find(|name| tag[1..].starts_with(**name));
        let end = match skip_to {
            Some(name) => tag.find(&format!("</{name}")).map(|at| at + 1).unwrap_or(tag.len()),
            None => 0,
        };
        let from = open + end;
        match rest.get(from..).and_then(|tail| tail.find('>')) {
            Some(close) => rest = &rest[from + close + 1..],
            None => rest = "",
        }
        if words.len() > 4096 {
            break;
        }
    }
    words.push_str(rest);
    let words: Vec<_> = words.split_ascii_whitespace().collect();
    excerpt_of(&words.join(" "))
}
