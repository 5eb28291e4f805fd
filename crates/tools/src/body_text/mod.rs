//! The text of a body from another server, in the encoding that it declares.
//!
//! Looks for a byte-order mark, then the `charset` of `Content-Type`, then the declarations inside HTML and
//! XML, as browsers do. Never passes on unreadable characters without a note about them.

#[cfg(feature = "charsets")]
mod charsets;
mod markup;
#[cfg(any(test, not(feature = "charsets")))]
mod utf8_only;

use crate::schema::truncate_chars;
#[cfg(feature = "charsets")]
use charsets::Charset;
use throughline_wire::{ToolOutput, display_escape};
#[cfg(not(feature = "charsets"))]
use utf8_only::Charset;

/// Most characters of an unknown label that are repeated.
const LABEL_CHARS_MAX: usize = 40;

/// Extent of a body that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyExtent {
    /// All of it is there.
    Complete,
    /// Truncated: a partial character at its end is left out.
    Cut,
}

/// Bytes as characters of a charset.
struct DecodedText {
    text: String,
    /// True if some bytes are invalid in the encoding.
    has_malformed: bool,
    extent: BodyExtent,
}

/// A decoded body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyText {
    /// The text, without a byte-order mark.
    pub text: String,
    /// Doubts about the encoding, in sentences for the model; `None`: there are none.
    pub note: Option<String>,
    /// As given, or [`BodyExtent::Cut`] because the text would be longer than its limit.
    pub extent: BodyExtent,
}

impl BodyText {
    /// Decodes a body of this `Content-Type`, which may be empty, into at most `bytes_max` bytes of text.
    ///
    /// ```
    /// use throughline_tools::{BodyExtent, BodyText};
    /// let read = BodyText::decode("text/html", b"<meta charset=none>\xc3\xa9", BodyExtent::Complete, 100);
    /// assert_eq!(read.text, "<meta charset=none>é");
    /// assert_eq!(read.note.as_deref(), Some("The charset `none` is unknown here."));
    /// ```
    pub fn decode(content_type: &str, body: &[u8], extent: BodyExtent, bytes_max: usize) -> Self {
        if let Some((charset, mark_bytes)) = Charset::for_bom(body) {
            return Self::read(charset, &body[mark_bytes..], extent, bytes_max, Vec::new());
        }
        let (declared, unknown) = declared_charset(content_type, body);
        let mut notes = Vec::new();
        if !unknown.is_empty() && !body.is_ascii() {
            notes.push(format!("The charset {} is unknown here.", unknown.join(", ")));
        }
        let is_utf8 = is_utf8(body, extent);
        let charset = match declared {
            // RFC 8259 knows no charset of JSON, and servers put their default there; text of any length that is valid UTF-8
            // by accident is rare.
            Some(_) if is_utf8 && !body.is_ascii() && is_json(content_type) => Charset::UTF_8,
            Some(charset) => charset,
            None if is_utf8 => Charset::UTF_8,
            None => {
                let charset = if is_mostly_utf8(body) { Charset::UTF_8 } else { Charset::FALLBACK };
                let name = charset.name();
                notes.push(format!(
                    "The text is not UTF-8 and declares no known charset; decoded as {name}, some characters \
                     may be wrong."
                ));
                charset
            }
        };
        Self::read(charset, body, extent, bytes_max, notes)
    }

    fn read(
        charset: Charset,
        body: &[u8],
        extent: BodyExtent,
        bytes_max: usize,
        mut notes: Vec<String>,
    ) -> Self {
        let DecodedText { text, has_malformed, extent } = charset.decode(body, extent, bytes_max);
        if has_malformed {
            notes.push(format!("Bytes that are not {} are shown as \u{fffd}.", charset.name()));
        }
        let note = (!notes.is_empty()).then(|| notes.join(" "));
        Self { text, note, extent }
    }
}

/// An output with a note about its encoding after its text.
pub(crate) fn with_note(output: ToolOutput, note: Option<&str>) -> ToolOutput {
    match note {
        Some(note) => {
            let text = format!("{}\n\nNote: {note}", output.text);
            ToolOutput { size: text.len() as u64, text, ..output }
        }
        None => output,
    }
}

/// The first known charset that is declared, and the unknown labels before it, for the note.
fn declared_charset(content_type: &str, body: &[u8]) -> (Option<Charset>, Vec<String>) {
    let mut unknown = Vec::new();
    if let Some(label) = charset_parameter(content_type) {
        match Charset::for_label(label.as_bytes()) {
            Some(charset) => return (Some(charset), unknown),
            None => unknown.push(shown_label(label.as_bytes())),
        }
    }
    for label in markup::labels(&media_type(content_type), body) {
        match Charset::for_label(label) {
            Some(charset) => return (Some(charset.of_markup()), unknown),
            None => unknown.push(shown_label(label)),
        }
    }
    (None, unknown)
}

fn shown_label(label: &[u8]) -> String {
    let label = String::from_utf8_lossy(label);
    format!("`{}`", truncate_chars(&display_escape::escape(label.trim()), LABEL_CHARS_MAX))
}

/// The value of `charset` in a `Content-Type`.
fn charset_parameter(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']);
        (name.trim().eq_ignore_ascii_case("charset") && !value.is_empty()).then_some(value)
    })
}

/// A `Content-Type` without its parameters.
pub(crate) fn media_type(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn is_json(content_type: &str) -> bool {
    media_type(content_type).contains("json")
}

fn is_utf8(body: &[u8], extent: BodyExtent) -> bool {
    match std::str::from_utf8(body) {
        Ok(_) => true,
        Err(error) => extent == BodyExtent::Cut && error.error_len().is_none(),
    }
}

/// A few broken bytes in a text of UTF-8 do not make it another one.
fn is_mostly_utf8(body: &[u8]) -> bool {
    let (mut letters, mut malformed) = (0, 0);
    for chunk in body.utf8_chunks() {
        letters += chunk.valid().chars().filter(|letter| !letter.is_ascii()).count();
        malformed += usize::from(!chunk.invalid().is_empty());
    }
    letters > malformed
}

#[cfg(all(test, feature = "charsets"))]
mod tests;
