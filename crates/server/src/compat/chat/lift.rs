//! Finds pictures, files and sound in the JSON of a chat while it comes, and takes their content out of it. Pure: bytes in,
//! bytes out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// How far into a text its `;base64,` may be.
const HEAD_BYTES_MAX: usize = 256;
/// How much content is given out at once.
const CONTENT_BYTES: usize = 64 << 10;

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lifted {
    /// The content of a file begins.
    Begin {
        /// As it is declared; `application/octet-stream` of sound, whose format stands elsewhere.
        media_type: String,
    },
    /// Some of it.
    Bytes(Vec<u8>),
    /// It is whole: [`Lifter::put`] says what stands in its place.
    End,
}

/// Why a body cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotLifted {
    NoBase64,
    /// What is left is too large.
    TextTooLarge,
}

/// A reader of one body.
#[derive(Debug)]
pub(super) struct Lifter {
    /// The body without what was taken out.
    text: Vec<u8>,
    text_bytes_max: usize,
    /// Shorter texts stay where they are.
    lifted_from: usize,
    place: Place,
    /// Of the objects and lists around: under which key they stand.
    parents: Vec<Key>,
    key: Key,
    /// Where in `text` the text begins that is being read.
    begins: usize,
    content: Content,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Outside,
    InText { escaped: bool, may_be: bool },
    InContent { escaped: bool },
    BehindContent,
}

/// The keys that matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Key {
    ImageUrl,
    Url,
    File,
    FileData,
    InputAudio,
    Data,
    #[default]
    Other,
}

impl Key {
    fn of(name: &[u8]) -> Self {
        match name {
            b"image_url" => Key::ImageUrl,
            b"url" => Key::Url,
            b"file" => Key::File,
            b"file_data" => Key::FileData,
            b"input_audio" => Key::InputAudio,
            b"data" => Key::Data,
            _ => Key::Other,
        }
    }
}

impl Lifter {
    /// Content of at most so many bytes stays in the text, which may have so many.
    pub(super) fn new(inline_bytes_max: usize, text_bytes_max: usize) -> Self {
        Self {
            text: Vec::new(),
            text_bytes_max,
            lifted_from: inline_bytes_max / 3 * 4 + HEAD_BYTES_MAX,
            place: Place::Outside,
            parents: Vec::new(),
            key: Key::Other,
            begins: 0,
            content: Content::default(),
        }
    }

    /// What comes next of these bytes, which become fewer; `None` = they are used up.
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Lifted>, NotLifted> {
        while let Some((&byte, rest)) = bytes.split_first() {
            match self.place {
                Place::Outside => {
                    *bytes = rest;
                    self.outside(byte);
                }
                Place::InText { escaped, may_be } => {
                    *bytes = rest;
                    if let Some(begin) = self.in_text(byte, escaped, may_be)? {
                        return Ok(Some(begin));
                    }
                }
                Place::InContent { escaped: true } => {
                    // `\/` is how PHP writes `/`.
                    *bytes = rest;
                    if byte != b'/' {
                        return Err(NotLifted::NoBase64);
                    }
                    self.content.take(b"/");
                    self.place = Place::InContent { escaped: false };
                }
                Place::InContent { escaped: false } => {
                    let room = bytes.len().min(CONTENT_BYTES);
                    let end = bytes[..room].iter().position(|byte| matches!(byte, b'"' | b'\\'));
                    self.content.take(&bytes[..end.unwrap_or(room)]);
                    let Some(end) = end else {
                        *bytes = &bytes[room..];
                        if let Some(decoded) = self.content.decoded(Rest::Follows)? {
                            return Ok(Some(Lifted::Bytes(decoded)));
                        }
                        continue;
                    };
                    let is_end = bytes[end] == b'"';
                    *bytes = &bytes[end + 1..];
                    if !is_end {
                        self.place = Place::InContent { escaped: true };
                        continue;
                    }
                    self.place = Place::BehindContent;
                    if let Some(decoded) = self.content.decoded(Rest::Nothing)? {
                        // The end is told by the next call, which must not need another byte.
                        return Ok(Some(Lifted::Bytes(decoded)));
                    }
                    return Ok(self.end());
                }
                Place::BehindContent => return Ok(self.end()),
            }
            // What may be lifted is no text yet.
            let may_be = matches!(self.place, Place::InText { may_be: true, .. });
            if !may_be && self.text.len() > self.text_bytes_max {
                return Err(NotLifted::TextTooLarge);
            }
        }
        if self.place == Place::BehindContent {
            return Ok(self.end());
        }
        Ok(None)
    }

    fn end(&mut self) -> Option<Lifted> {
        self.content = Content::default();
        self.place = Place::Outside;
        Some(Lifted::End)
    }

    /// What stands in the place of the content that has ended.
    pub(super) fn put(&mut self, name: &str) {
        self.text.extend_from_slice(name.as_bytes());
        self.text.push(b'"');
    }

    /// The body with names in place of what was taken out.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    fn outside(&mut self, byte: u8) {
        match byte {
            b'"' => {
                let parent = self.parents.last().copied().unwrap_or_default();
                let may_be = matches!(
                    (parent, self.key),
                    (_, Key::ImageUrl)
                        | (Key::ImageUrl, Key::Url)
                        | (Key::File, Key::FileData)
                        | (Key::InputAudio, Key::Data)
                );
                self.begins = self.text.len() + 1;
                self.place = Place::InText { escaped: false, may_be };
            }
            b'{' | b'[' => self.parents.push(std::mem::take(&mut self.key)),
            b'}' | b']' => {
                self.parents.pop();
                self.key = Key::Other;
            }
            b',' => self.key = Key::Other,
            b':' => {
                // The text before it, without its quotes.
                let name = self.text.get(self.begins..).unwrap_or_default();
                let end = name.iter().position(|byte| *byte == b'"').unwrap_or_default();
                self.key = Key::of(&name[..end]);
            }
            _ => {}
        }
        self.text.push(byte);
    }

    fn in_text(&mut self, byte: u8, escaped: bool, may_be: bool) -> Result<Option<Lifted>, NotLifted> {
        self.text.push(byte);
        match byte {
            _ if escaped => self.place = Place::InText { escaped: false, may_be },
            b'"' => self.place = Place::Outside,
            b'\\' => self.place = Place::InText { escaped: true, may_be },
            _ if may_be && self.text.len() - self.begins > self.lifted_from => return Ok(self.begin()),
            _ => {}
        }
        Ok(None)
    }

    /// A text that is large enough, and where a file can be.
    fn begin(&mut self) -> Option<Lifted> {
        let written = &self.text[self.begins..];
        // Only `/` is ever written with a backslash in base64.
        if written.windows(2).any(|pair| pair[0] == b'\\' && pair[1] != b'/') {
            self.place = Place::InText { escaped: false, may_be: false };
            return None;
        }
        let (media_type, head) = match self.key {
            Key::Data => ("application/octet-stream".to_owned(), 0),
            _ => match head_of(written) {
                Some(found) => found,
                None => {
                    self.place = Place::InText { escaped: false, may_be: false };
                    return None;
                }
            },
        };
        let content: Vec<u8> = written[head..].iter().copied().filter(|byte| *byte != b'\\').collect();
        self.content.take(&content);
        self.text.truncate(self.begins);
        self.place = Place::InContent { escaped: false };
        Some(Lifted::Begin { media_type })
    }
}

/// The media type of a `data:` URL, and where its content begins.
fn head_of(text: &[u8]) -> Option<(String, usize)> {
    let head = &text[..text.len().min(HEAD_BYTES_MAX)];
    let at = head.windows(8).position(|window| window == b";base64,")?;
    let kind = std::str::from_utf8(head[..at].strip_prefix(b"data:")?).ok()?.replace('\\', "");
    let media_type = kind.split(';').next().filter(|kind| !kind.is_empty())?.to_owned();
    Some((media_type, at + 8))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Follows,
    Nothing,
}

/// Base64 that comes in parts.
#[derive(Debug, Default)]
struct Content {
    written: Vec<u8>,
}

impl Content {
    fn take(&mut self, written: &[u8]) {
        self.written.extend_from_slice(written);
    }

    /// What can be decoded by now.
    fn decoded(&mut self, rest: Rest) -> Result<Option<Vec<u8>>, NotLifted> {
        let whole = match rest {
            // The last four may be padded, which is an error anywhere else.
            Rest::Follows => self.written.len().saturating_sub(4) / 4 * 4,
            Rest::Nothing => self.written.len(),
        };
        if whole == 0 || (rest == Rest::Follows && whole < CONTENT_BYTES) {
            return Ok(None);
        }
        let left = self.written.split_off(whole);
        let written = std::mem::replace(&mut self.written, left);
        if rest == Rest::Follows && written.contains(&b'=') {
            return Err(NotLifted::NoBase64);
        }
        BASE64.decode(written).map(Some).map_err(|_| NotLifted::NoBase64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// What is left of a body, and what was taken out of it, however it is cut.
    fn check(body: &str, expected: &Value, taken: &[(&str, &[u8])]) {
        for size in [1, 7, 64, 1_000, body.len()] {
            let mut lifter = Lifter::new(30, 10_000);
            let mut files: Vec<(String, Vec<u8>)> = Vec::new();
            for piece in body.as_bytes().chunks(size) {
                let mut rest = piece;
                while let Some(lifted) = lifter.next(&mut rest).unwrap() {
                    match lifted {
                        Lifted::Begin { media_type } => files.push((media_type, Vec::new())),
                        Lifted::Bytes(bytes) => files.last_mut().unwrap().1.extend(bytes),
                        Lifted::End => lifter.put(&format!("file_{}", files.len())),
                    }
                }
            }
            let left: Value = serde_json::from_slice(lifter.text()).unwrap();
            assert_eq!(&left, expected, "in pieces of {size}");
            let files: Vec<_> = files.iter().map(|(kind, bytes)| (kind.as_str(), &bytes[..])).collect();
            assert_eq!(files, taken, "in pieces of {size}");
        }
    }

    fn bytes(count: usize) -> Vec<u8> {
        (0..count).map(|n| (n * 7 % 251) as u8).collect()
    }

    // R: R2, T12
    #[test]
    fn pictures_files_and_sound_are_taken_out_and_nothing_else_is() {
        for count in [400, 401, 402, 70_000, 200_001] {
            let content = bytes(count);
            let written = BASE64.encode(&content);
            let url = format!("data:image/png;base64,{written}");
            let said = |url: &str, data: &str, file: &str| {
                json!({"messages": [{"role": "user", "content": [
                    {"type": "text", "text": "a \"quoted\" \\ text, {[:"},
                    {"type": "image_url", "image_url": {"detail": "low", "url": url}},
                    {"type": "image_url", "image_url": url},
                    {"type": "file", "file": {"filename": "a", "file_data": file}},
                    {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}]}]})
            };
            let body = said(&url, &written, &url).to_string();
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
    fn what_is_short_or_stands_elsewhere_stays() {
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
    fn what_is_no_base64_or_too_much_text_is_refused() {
        let refused = |body: String, max: usize| {
            let mut lifter = Lifter::new(30, max);
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
            assert_eq!(refused(picture(&content), 10_000), Some(NotLifted::NoBase64), "{content}");
        }
        let text = json!({"text": "x".repeat(2_000)}).to_string();
        assert_eq!(refused(text.clone(), text.len() - 1), Some(NotLifted::TextTooLarge));
        assert_eq!(refused(text.clone(), text.len()), None, "at the limit it is read");
    }
}
