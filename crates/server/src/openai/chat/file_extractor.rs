//! Finds pictures, files and sound in the JSON of a chat while it comes, and takes their content out of it. Pure: bytes in,
//! bytes out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// Longest prefix of a text that may contain `;base64,`.
const DATA_URL_HEAD_BYTES_MAX: usize = 256;
/// Maximum length of a key that is examined, with its quotes and the spaces after it.
const KEY_BYTES_MAX: usize = 256;
/// Size of one chunk of content.
const CONTENT_BYTES: usize = 64 << 10;

/// Next item of the extraction.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ExtractEvent {
    /// The content of a file begins.
    Begin {
        /// Declared media type; `application/octet-stream` for sound, whose format is in another field.
        media_type: String,
    },
    /// A part of the content.
    Bytes(Vec<u8>),
    /// The content is complete: [`FileExtractor::insert_reference`] sets its replacement.
    End,
}

/// Reason why a body cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExtractError {
    NoBase64,
    /// The rest of the body is too large.
    TextTooLarge,
}

/// A reader of one body.
#[derive(Debug)]
pub(super) struct FileExtractor {
    /// The body without what was taken out, from where it has not been taken itself.
    text: Vec<u8>,
    /// Bytes before it.
    text_bytes_taken: usize,
    text_bytes_max: usize,
    /// Shorter texts stay where they are.
    extract_bytes_min: usize,
    state: ExtractState,
    /// Keys of the enclosing objects and lists.
    parents: Vec<FileKey>,
    key: FileKey,
    /// Offset in `text` of the current string.
    string_start: usize,
    content: Base64Buffer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExtractState {
    Outside,
    InString { escaped: bool, may_be_file: bool },
    InContent { escaped: bool },
    AfterContent,
}

/// The keys that matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FileKey {
    ImageUrl,
    Url,
    File,
    FileData,
    InputAudio,
    Data,
    #[default]
    Other,
}

impl FileKey {
    fn of(name: &[u8]) -> Self {
        match name {
            b"image_url" => FileKey::ImageUrl,
            b"url" => FileKey::Url,
            b"file" => FileKey::File,
            b"file_data" => FileKey::FileData,
            b"input_audio" => FileKey::InputAudio,
            b"data" => FileKey::Data,
            _ => FileKey::Other,
        }
    }
}

impl FileExtractor {
    /// Content of at most `inline_bytes_max` bytes stays in the text, which may have `text_bytes_max` bytes.
    pub(super) fn new(inline_bytes_max: usize, text_bytes_max: usize) -> Self {
        Self {
            text: Vec::new(),
            text_bytes_taken: 0,
            text_bytes_max,
            extract_bytes_min: inline_bytes_max / 3 * 4 + DATA_URL_HEAD_BYTES_MAX,
            state: ExtractState::Outside,
            parents: Vec::new(),
            key: FileKey::Other,
            string_start: 0,
            content: Base64Buffer::default(),
        }
    }

    /// Next item from these bytes, which are consumed; `None` once they are used up.
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<ExtractEvent>, ExtractError> {
        while let Some((&byte, rest)) = bytes.split_first() {
            match self.state {
                ExtractState::Outside => {
                    *bytes = rest;
                    self.outside(byte);
                }
                ExtractState::InString { escaped, may_be_file } => {
                    *bytes = rest;
                    if let Some(begin) = self.in_string(byte, escaped, may_be_file)? {
                        return Ok(Some(begin));
                    }
                }
                ExtractState::InContent { escaped: true } => {
                    // `\/` is how PHP writes `/`.
                    *bytes = rest;
                    if byte != b'/' {
                        return Err(ExtractError::NoBase64);
                    }
                    self.content.push(b"/");
                    self.state = ExtractState::InContent { escaped: false };
                }
                ExtractState::InContent { escaped: false } => {
                    let room = bytes.len().min(CONTENT_BYTES);
                    let end = bytes[..room].iter().position(|byte| matches!(byte, b'"' | b'\\'));
                    self.content.push(&bytes[..end.unwrap_or(room)]);
                    let Some(end) = end else {
                        *bytes = &bytes[room..];
                        if let Some(decoded) = self.content.decoded(Base64Input::Partial)? {
                            return Ok(Some(ExtractEvent::Bytes(decoded)));
                        }
                        continue;
                    };
                    let is_end = bytes[end] == b'"';
                    *bytes = &bytes[end + 1..];
                    if !is_end {
                        self.state = ExtractState::InContent { escaped: true };
                        continue;
                    }
                    self.state = ExtractState::AfterContent;
                    if let Some(decoded) = self.content.decoded(Base64Input::Complete)? {
                        // The next call reports the end without needing another byte.
                        return Ok(Some(ExtractEvent::Bytes(decoded)));
                    }
                    return Ok(self.finish_content());
                }
                ExtractState::AfterContent => return Ok(self.finish_content()),
            }
            // What may be lifted is no text yet.
            let may_be_file = matches!(self.state, ExtractState::InString { may_be_file: true, .. });
            if !may_be_file && self.text_bytes_taken + self.text.len() > self.text_bytes_max {
                return Err(ExtractError::TextTooLarge);
            }
        }
        if self.state == ExtractState::AfterContent {
            return Ok(self.finish_content());
        }
        Ok(None)
    }

    fn finish_content(&mut self) -> Option<ExtractEvent> {
        self.content = Base64Buffer::default();
        self.state = ExtractState::Outside;
        Some(ExtractEvent::End)
    }

    /// Inserts a reference in place of the extracted content.
    pub(super) fn insert_reference(&mut self, name: &str) {
        self.text.extend_from_slice(name.as_bytes());
        self.text.push(b'"');
    }

    /// Takes the next part of the body, with references in place of extracted content.
    pub(super) fn take_text(&mut self) -> Vec<u8> {
        let is_file = matches!(self.state, ExtractState::InString { may_be_file: true, .. });
        let string = self.text.len().checked_sub(self.string_start);
        // A longer one is no key that matters.
        let is_seen_again = string.is_some_and(|length| is_file || length <= KEY_BYTES_MAX);
        let unfinished = if is_seen_again { self.text.split_off(self.string_start) } else { Vec::new() };
        self.string_start = if is_seen_again { 0 } else { usize::MAX };
        self.text_bytes_taken += self.text.len();
        std::mem::replace(&mut self.text, unfinished)
    }

    /// The last part.
    pub(super) fn into_text(self) -> Vec<u8> {
        self.text
    }

    fn outside(&mut self, byte: u8) {
        match byte {
            b'"' => {
                let parent = self.parents.last().copied().unwrap_or_default();
                let may_be_file = matches!(
                    (parent, self.key),
                    (_, FileKey::ImageUrl)
                        | (FileKey::ImageUrl, FileKey::Url)
                        | (FileKey::File, FileKey::FileData)
                        | (FileKey::InputAudio, FileKey::Data)
                );
                self.string_start = self.text.len() + 1;
                self.state = ExtractState::InString { escaped: false, may_be_file };
            }
            b'{' | b'[' => self.parents.push(std::mem::take(&mut self.key)),
            b'}' | b']' => {
                self.parents.pop();
                self.key = FileKey::Other;
            }
            b',' => self.key = FileKey::Other,
            b':' => {
                // The text before it, without its quotes.
                let name = self.text.get(self.string_start..).unwrap_or_default();
                let end = name.iter().position(|byte| *byte == b'"').unwrap_or_default();
                self.key = FileKey::of(&name[..end]);
            }
            _ => {}
        }
        self.text.push(byte);
    }

    fn in_string(
        &mut self,
        byte: u8,
        escaped: bool,
        may_be_file: bool,
    ) -> Result<Option<ExtractEvent>, ExtractError> {
        self.text.push(byte);
        match byte {
            _ if escaped => self.state = ExtractState::InString { escaped: false, may_be_file },
            b'"' => self.state = ExtractState::Outside,
            b'\\' => self.state = ExtractState::InString { escaped: true, may_be_file },
            _ if may_be_file && self.text.len() - self.string_start > self.extract_bytes_min => {
                return Ok(self.begin_content());
            }
            _ => {}
        }
        Ok(None)
    }

    /// A text that is large enough, and where a file can be.
    fn begin_content(&mut self) -> Option<ExtractEvent> {
        let encoded = &self.text[self.string_start..];
        // Only `/` is ever written with a backslash in base64.
        if encoded.windows(2).any(|pair| pair[0] == b'\\' && pair[1] != b'/') {
            self.state = ExtractState::InString { escaped: false, may_be_file: false };
            return None;
        }
        let (media_type, head) = match self.key {
            FileKey::Data => ("application/octet-stream".to_owned(), 0),
            _ => match data_url_header(encoded) {
                Some(found) => found,
                None => {
                    self.state = ExtractState::InString { escaped: false, may_be_file: false };
                    return None;
                }
            },
        };
        let content: Vec<u8> = encoded[head..].iter().copied().filter(|byte| *byte != b'\\').collect();
        self.content.push(&content);
        self.text.truncate(self.string_start);
        self.state = ExtractState::InContent { escaped: false };
        Some(ExtractEvent::Begin { media_type })
    }
}

/// The media type of a `data:` URL, and where its content begins.
fn data_url_header(text: &[u8]) -> Option<(String, usize)> {
    let head = &text[..text.len().min(DATA_URL_HEAD_BYTES_MAX)];
    let position = head.windows(8).position(|window| window == b";base64,")?;
    let kind = std::str::from_utf8(head[..position].strip_prefix(b"data:")?).ok()?.replace('\\', "");
    let media_type = kind.split(';').next().filter(|kind| !kind.is_empty())?.to_owned();
    Some((media_type, position + 8))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Base64Input {
    Partial,
    Complete,
}

/// Base64 that comes in parts.
#[derive(Debug, Default)]
struct Base64Buffer {
    written: Vec<u8>,
}

impl Base64Buffer {
    fn push(&mut self, encoded: &[u8]) {
        self.written.extend_from_slice(encoded);
    }

    /// Bytes that can be decoded by now.
    fn decoded(&mut self, rest: Base64Input) -> Result<Option<Vec<u8>>, ExtractError> {
        let decodable = match rest {
            // The last four may be padded, which is an error anywhere else.
            Base64Input::Partial => self.written.len().saturating_sub(4) / 4 * 4,
            Base64Input::Complete => self.written.len(),
        };
        if decodable == 0 || (rest == Base64Input::Partial && decodable < CONTENT_BYTES) {
            return Ok(None);
        }
        let remainder = self.written.split_off(decodable);
        let encoded = std::mem::replace(&mut self.written, remainder);
        if rest == Base64Input::Partial && encoded.contains(&b'=') {
            return Err(ExtractError::NoBase64);
        }
        BASE64.decode(encoded).map(Some).map_err(|_| ExtractError::NoBase64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Checks the remaining body and the extracted content for every cut of the input.
    fn check(body: &str, expected: &Value, taken: &[(&str, &[u8])]) {
        for size in [1, 7, 64, 1_000, body.len()] {
            let mut lifter = FileExtractor::new(30, 10_000);
            let (mut files, mut text): (Vec<(String, Vec<u8>)>, _) = (Vec::new(), Vec::new());
            for piece in body.as_bytes().chunks(size) {
                let mut rest = piece;
                while let Some(lifted) = lifter.next(&mut rest).unwrap() {
                    match lifted {
                        ExtractEvent::Begin { media_type } => files.push((media_type, Vec::new())),
                        ExtractEvent::Bytes(bytes) => files.last_mut().unwrap().1.extend(bytes),
                        ExtractEvent::End => lifter.insert_reference(&format!("file_{}", files.len())),
                    }
                }
                text.extend(lifter.take_text());
            }
            text.extend(lifter.into_text());
            let remainder: Value = serde_json::from_slice(&text).unwrap();
            assert_eq!(&remainder, expected, "in pieces of {size}");
            let files: Vec<_> = files.iter().map(|(kind, bytes)| (kind.as_str(), &bytes[..])).collect();
            assert_eq!(files, taken, "in pieces of {size}");
        }
    }

    fn bytes(count: usize) -> Vec<u8> {
        (0..count).map(|n| (n * 7 % 251) as u8).collect()
    }

    #[test]
    fn media_data_is_replaced_by_file_ids() {
        for count in [400, 401, 402, 70_000, 200_001] {
            let content = bytes(count);
            let encoded = BASE64.encode(&content);
            let url = format!("data:image/png;base64,{encoded}");
            let said = |url: &str, data: &str, file: &str| {
                json!({"messages": [{"role": "user", "content": [
                    {"type": "text", "text": "a \"quoted\" \\ text, {[:"},
                    {"type": "image_url", "image_url": {"detail": "low", "url": url}},
                    {"type": "image_url", "image_url": url},
                    {"type": "file", "file": {"filename": "a", "file_data": file}},
                    {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}]}]})
            };
            let body = said(&url, &encoded, &url).to_string();
            let expected = json!({"messages": [{"role": "user", "content": [
                {"type": "text", "text": "a \"quoted\" \\ text, {[:"},
                {"type": "image_url", "image_url": {"detail": "low", "url": "file_1"}},
                {"type": "image_url", "image_url": "file_2"},
                {"type": "file", "file": {"filename": "a", "file_data": "file_3"}},
                {"type": "input_audio", "input_audio": {"data": "file_4", "format": "wav"}}]}]});
            let kinds = ["image/png", "image/png", "image/png", "application/octet-stream"];
            let taken: Vec<_> = kinds.into_iter().map(|kind| (kind, &content[..])).collect();
            check(&body, &expected, &taken);
            // As PHP writes it.
            let taken: Vec<_> = taken.into_iter().collect();
            check(&body.replace('/', "\\/"), &expected, &taken);
        }
    }

    #[test]
    fn short_data_and_other_fields_are_not_extracted() {
        let long = format!("data:image/png;base64,{}", BASE64.encode(bytes(900)));
        for body in [
            json!({"image_url": {"url": "data:image/png;base64,aGk="}}),
            json!({"image_url": {"url": format!("https://example.com/{}", "x".repeat(900))}}),
            json!({"content": long, "text": long, "url": long, "data": long, "file_data": long}),
            json!({"image_url": {"other": {"url": long}}}),
        ] {
            check(&body.to_string(), &body, &[]);
        }
    }

    #[test]
    fn invalid_base64_and_oversized_text_are_rejected() {
        let refused = |body: String, max: usize| {
            let mut lifter = FileExtractor::new(30, max);
            let mut rest = body.as_bytes();
            loop {
                match lifter.next(&mut rest) {
                    Ok(Some(_)) => {}
                    Ok(None) => return None,
                    Err(why) => return Some(why),
                }
            }
        };
        let picture =
            |content: &str| json!({"image_url": {"url": format!("data:a/b;base64,{content}")}}).to_string();
        for content in ["?".repeat(900), format!("{}=", "a".repeat(901)), format!("aa=={}", "a".repeat(900))]
        {
            assert_eq!(refused(picture(&content), 10_000), Some(ExtractError::NoBase64), "{content}");
        }
        let text = json!({"text": "x".repeat(2_000)}).to_string();
        assert_eq!(refused(text.clone(), text.len() - 1), Some(ExtractError::TextTooLarge));
        assert_eq!(refused(text.clone(), text.len()), None, "at the limit it is read");
    }
}
