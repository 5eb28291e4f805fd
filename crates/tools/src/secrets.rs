//! Secrets: removed from everything that a tool outputs, in all encodings in which they appear.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use regex::bytes::{Regex, RegexBuilder};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use throughline_wire::{Media, MediaContent, ToolOutput};

/// Shorter values are placeholders ("none", "x"), and replacing them would destroy the text.
pub const SECRET_BYTES_MIN: usize = 8;
/// Text that replaces a secret.
const REPLACEMENT: &str = "…";

/// Known secrets. `Debug` shows how many, never what.
///
/// Found as they are, as JSON and URLs write them, and inside base64 at any offset: `Basic dXNlcjpzZWNyZXQ=` holds a
/// password that no other form shows.
#[derive(Clone, Default)]
pub struct SecretSet {
    /// One pattern for all forms, longer ones first; `None` = there are no secrets.
    pattern: Option<Regex>,
    /// Length of the longest form.
    longest_form: usize,
    count: usize,
}

impl fmt::Debug for SecretSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretSet({})", self.count)
    }
}

impl SecretSet {
    /// A set of these values, except those shorter than [`SECRET_BYTES_MIN`].
    ///
    /// ```
    /// use throughline_tools::SecretSet;
    /// let secrets = SecretSet::new(["sk-abc+def/123"]);
    /// assert_eq!(secrets.redact("?key=sk-abc%2Bdef%2F123&x=1"), "?key=…&x=1");
    /// ```
    pub fn new<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> Self {
        let mut forms = BTreeSet::new();
        let mut count = 0;
        for value in values {
            let value = value.as_ref().trim();
            if value.len() >= SECRET_BYTES_MIN {
                count += 1;
                forms.extend(encoded_forms(value));
            }
        }
        let mut forms: Vec<String> = forms.into_iter().collect();
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        let longest_form = forms.first().map_or(0, String::len);
        let pattern = forms.iter().map(|form| regex::escape(form)).collect::<Vec<_>>().join("|");
        // A pattern too large to be built is one of megabytes of keys; then nothing at all is let through.
        let pattern = (!forms.is_empty()).then(|| {
            let built = RegexBuilder::new(&pattern).unicode(false).size_limit(64 << 20).build();
            built.or_else(|_| Regex::new("(?s-u).+"))
        });
        Self { pattern: pattern.and_then(Result::ok), longest_form, count }
    }

    /// True if the set has no secrets.
    pub fn is_empty(&self) -> bool {
        self.pattern.is_none()
    }

    /// Bytes of the longest encoding of a secret; 0 = no secrets.
    #[cfg(feature = "process")]
    pub(crate) fn longest_form(&self) -> usize {
        self.longest_form
    }

    /// The text without them.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.pattern {
            Some(pattern) if pattern.is_match(text.as_bytes()) => {
                let bytes = pattern.replace_all(text.as_bytes(), REPLACEMENT.as_bytes());
                // Encodings are whole characters, so the rest is still valid text.
                Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
            }
            _ => Cow::Borrowed(text),
        }
    }

    /// All texts of a value without them, keys too.
    pub fn redact_value(&self, value: Value) -> Value {
        if self.is_empty() {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.redact(&text).into_owned()),
            Value::Array(items) => items.into_iter().map(|item| self.redact_value(item)).collect(),
            Value::Object(fields) => {
                let clean = |(key, value): (String, Value)| {
                    (self.redact(&key).into_owned(), self.redact_value(value))
                };
                Value::Object(fields.into_iter().map(clean).collect())
            }
            other => other,
        }
    }

    /// An output without them.
    pub fn redact_output(&self, output: ToolOutput) -> ToolOutput {
        if self.is_empty() {
            return output;
        }
        let media = output.media.into_iter();
        ToolOutput {
            text: self.redact(&output.text).into_owned(),
            value: output.value.map(|value| self.redact_value(value)),
            media: media
                .map(|media| match media.content {
                    MediaContent::Inline { data } => {
                        Media::new(media.media_type, self.redact(&data).into_owned())
                    }
                    _ => media,
                })
                .collect(),
            ..output
        }
    }

    /// For text that comes in pieces.
    pub fn redactor(&self) -> StreamRedactor {
        StreamRedactor { secrets: self.clone(), pending: Vec::new() }
    }
}

/// Removes secrets from bytes that come in pieces, for any split. Holds back no more than the start of a
/// secret could need.
///
/// ```
/// use throughline_tools::SecretSet;
///
/// let mut redactor = SecretSet::new(["correct horse battery"]).redactor();
/// let mut shown = redactor.push(b"password: correct ho");
/// shown.extend(redactor.push(b"rse battery, ok"));
/// shown.extend(redactor.finish());
/// assert_eq!(String::from_utf8_lossy(&shown), "password: …, ok");
/// ```
#[derive(Debug)]
pub struct StreamRedactor {
    secrets: SecretSet,
    pending: Vec<u8>,
}

impl StreamRedactor {
    /// Part of the output that can be shown after this piece.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<u8> {
        self.pending.extend_from_slice(chunk);
        // A secret that ends later begins after this.
        let safe_end = (self.pending.len() + 1).saturating_sub(self.secrets.longest_form.max(1));
        self.release(safe_end)
    }

    /// Rest of the output at the end.
    pub fn finish(&mut self) -> Vec<u8> {
        self.release(self.pending.len())
    }

    fn release(&mut self, safe_end: usize) -> Vec<u8> {
        let Some(pattern) = &self.secrets.pattern else { return std::mem::take(&mut self.pending) };
        let mut shown = Vec::with_capacity(safe_end);
        let mut position = 0;
        for found in pattern.find_iter(&self.pending) {
            // One that begins later may be the beginning of a longer form.
            if found.start() >= safe_end {
                break;
            }
            shown.extend_from_slice(&self.pending[position..found.start()]);
            shown.extend_from_slice(REPLACEMENT.as_bytes());
            position = found.end();
        }
        if position < safe_end {
            shown.extend_from_slice(&self.pending[position..safe_end]);
            position = safe_end;
        }
        self.pending.drain(..position);
        shown
    }
}

/// The password of an address (`postgres://user:password@host/db`), as written and percent-decoded.
pub fn url_passwords(address: &str) -> Vec<String> {
    let Ok(url) = url::Url::parse(address) else { return Vec::new() };
    let query = url.query_pairs().filter(|(name, _)| name.eq_ignore_ascii_case("password"));
    let mut passwords: Vec<String> = query.map(|(_, value)| value.into_owned()).collect();
    if let Some(written) = url.password() {
        // As a form value: `%2B` is `+`, and a `+` stays one.
        let meant = format!("p={}", written.replace('+', "%2B"));
        passwords.extend(url::form_urlencoded::parse(meant.as_bytes()).map(|(_, value)| value.into_owned()));
        passwords.push(written.to_owned());
    }
    passwords
}

/// Forms that a secret may have in the output of a program or server.
fn encoded_forms(secret: &str) -> Vec<String> {
    let mut forms = vec![secret.to_owned()];
    // As JSON writes it, with and without escaped slashes, and in JSON that is a text in JSON.
    let in_json = json_escaped(secret);
    let slashes = in_json.replace('/', "\\/");
    forms.extend([json_escaped(&in_json), json_escaped(&slashes), in_json, slashes]);
    let in_url = percent_encoded(secret);
    forms.push(lower_escapes(&in_url));
    forms.push(in_url);
    let in_form: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    forms.push(lower_escapes(&in_form));
    forms.push(in_form);
    // Base64 of a longer text that holds it: three offsets, without the characters that neighbors have a part in.
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(secret.as_bytes());
        let encoded = STANDARD_NO_PAD.encode(&bytes);
        let start = (before * 8).div_ceil(6);
        let end = bytes.len() * 8 / 6;
        // In the middle of the text, and at its end.
        let padding = &"=="[..(3 - bytes.len() % 3) % 3];
        for own in [encoded[start..end].to_owned(), encoded[start..].to_owned() + padding] {
            if own.len() >= SECRET_BYTES_MIN {
                forms.push(own.replace('+', "-").replace('/', "_"));
                forms.push(percent_encoded(&own));
                forms.push(own);
            }
        }
    }
    forms
}

/// A text as part of a URL (RFC 3986 §2): everything but unreserved characters escaped.
pub(crate) fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Between the quotation marks.
fn json_escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(&quoted).to_owned()
}

/// `%2F` as `%2f`: both are usual.
fn lower_escapes(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let mut lower = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let cut = part.floor_char_boundary(2);
        lower.push('%');
        lower.push_str(&part[..cut].to_lowercase());
        lower.push_str(&part[cut..]);
    }
    lower
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

    const SECRET: &str = "tl-canary/7+x=\"q\" é";

    fn disguises() -> Vec<String> {
        let mut all = vec![
            SECRET.to_owned(),
            Value::from(SECRET).to_string(),
            Value::from(Value::from(SECRET).to_string()).to_string(),
            Value::from(Value::from(SECRET).to_string().replace('/', "\\/")).to_string(),
            percent_encoded(SECRET),
            lower_escapes(&percent_encoded(SECRET)),
            url::form_urlencoded::Serializer::new(String::new()).append_pair("key", SECRET).finish(),
            format!("{SECRET}{SECRET}"),
        ];
        for around in ["", "u", "us", "user:", "user:a", "user:ab"] {
            for text in [format!("{around}{SECRET}"), format!("{around}{SECRET}{around}")] {
                all.push(STANDARD.encode(&text));
                all.push(URL_SAFE_NO_PAD.encode(&text));
                all.push(percent_encoded(&STANDARD.encode(&text)));
            }
        }
        all
    }

    /// True if a reader could still find much of the secret in a text.
    fn shows_secret(text: &str) -> bool {
        let core = "tl-canary";
        let base64 = (0..3).map(|before| {
            let encoded = STANDARD_NO_PAD.encode(format!("{}{core}", &"ab"[..before.min(2)]));
            encoded[(before * 8).div_ceil(6)..(before + core.len()) * 8 / 6].to_owned()
        });
        text.contains(core) || base64.into_iter().any(|form| text.contains(&form))
    }

    #[test]
    fn secrets_are_redacted_in_every_encoding() {
        let secrets = SecretSet::new([SECRET]);
        for disguise in disguises() {
            assert!(shows_secret(&disguise), "the test itself: {disguise}");
            let redacted = secrets.redact(&disguise);
            assert!(!shows_secret(&redacted), "{disguise} -> {redacted}");
            let value = secrets.redact_value(serde_json::json!({ disguise.clone(): [disguise] }));
            assert!(!shows_secret(&value.to_string()), "{value}");
        }
    }

    #[test]
    fn streamed_redaction_equals_whole_at_any_cut() {
        let secrets = SecretSet::new([SECRET, "another-secret"]);
        for disguise in disguises() {
            let text = format!("before {disguise} between another-secret after");
            let whole = secrets.redact(&text).into_owned();
            for cut in 0..=text.len() {
                let mut redactor = secrets.redactor();
                let mut shown = redactor.push(&text.as_bytes()[..cut]);
                shown.extend(redactor.push(&text.as_bytes()[cut..]));
                shown.extend(redactor.finish());
                assert_eq!(String::from_utf8(shown).unwrap(), whole, "cut at {cut}");
            }
        }
    }

    #[test]
    fn short_and_blank_secrets_are_ignored() {
        let secrets = SecretSet::new(["short", "", "   "]);
        assert!(secrets.is_empty());
        let text = "a short text";
        assert_eq!(secrets.redact(text), text);
        let mut redactor = secrets.redactor();
        assert_eq!(redactor.push(text.as_bytes()), text.as_bytes(), "nothing is held back");
        assert_eq!(format!("{:?}", SecretSet::new([SECRET])), "SecretSet(1)");
    }
}
