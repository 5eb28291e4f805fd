//! The encoding that HTML and XML declare of themselves, in bytes whose encoding is not known yet.
//!
//! HTML: the [prescan](https://html.spec.whatwg.org/#prescan-a-byte-stream-to-determine-its-encoding) of
//! browsers. Never reads beyond the bytes in which a declaration must be.

/// Bytes in which `<meta>` must be, by the standard.
const PRESCAN_BYTES: usize = 1024;

/// Labels of encodings in their order, if the body is HTML or XML.
pub(super) fn labels<'a>(media_type: &str, body: &'a [u8]) -> Vec<&'a [u8]> {
    let start = &body[..body.len().min(PRESCAN_BYTES)];
    let is_html = matches!(media_type, "text/html" | "application/xhtml+xml");
    // Bodies without a type are searched, too.
    let is_markup = is_html || media_type.contains("xml") || media_type.is_empty();
    let mut labels = Vec::new();
    if is_markup {
        labels.extend(xml_label(start));
    }
    if is_html || media_type.is_empty() {
        Prescan { rest: start }.collect_labels(&mut labels);
    }
    labels
}

/// `<?xml version="1.0" encoding="…"?>`, which nothing may precede.
fn xml_label(start: &[u8]) -> Option<&[u8]> {
    let declaration = start.strip_prefix(b"<?xml")?;
    let declaration = &declaration[..find(declaration, b"?>")?];
    let value = trim_start(&declaration[find(declaration, b"encoding")? + b"encoding".len()..]);
    quoted(trim_start(value.strip_prefix(b"=")?))
}

struct Prescan<'a> {
    rest: &'a [u8],
}

impl<'a> Prescan<'a> {
    fn collect_labels(&mut self, labels: &mut Vec<&'a [u8]>) {
        while let Some(at) = self.rest.iter().position(|byte| *byte == b'<') {
            self.rest = &self.rest[at..];
            if self.rest.starts_with(b"<!--") {
                // `<!-->` is one, too.
                self.rest = &self.rest[2..];
                self.skip_past(b"-->");
            } else if self.rest.get(1..5).is_some_and(|name| name.eq_ignore_ascii_case(b"meta"))
                && self.rest.get(5).is_some_and(|byte| byte.is_ascii_whitespace() || *byte == b'/')
            {
                self.rest = &self.rest[5..];
                labels.extend(self.meta_label());
            } else {
                let name = self.rest.strip_prefix(b"</").unwrap_or(&self.rest[1..]);
                if name.first().is_some_and(u8::is_ascii_alphabetic) {
                    // Its attributes may hold `>` and `<meta`.
                    let ends = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'>';
                    self.rest = name.iter().position(ends).map_or(&[], |end| &name[end..]);
                    while self.attribute().is_some() {}
                } else if matches!(self.rest.get(1), Some(b'!' | b'/' | b'?')) {
                    self.skip_past(b">");
                } else {
                    self.rest = &self.rest[1..];
                }
            }
        }
    }

    fn skip_past(&mut self, end: &[u8]) {
        self.rest = find(self.rest, end).map_or(&[], |at| &self.rest[at + end.len()..]);
    }

    /// `charset`, or `content` with `http-equiv="content-type"`.
    fn meta_label(&mut self) -> Option<&'a [u8]> {
        let (mut charset, mut content, mut is_pragma) = (None, None, false);
        while let Some((name, value)) = self.attribute() {
            if name.eq_ignore_ascii_case(b"charset") {
                charset = charset.or(Some(value));
            } else if name.eq_ignore_ascii_case(b"http-equiv") {
                is_pragma |= value.eq_ignore_ascii_case(b"content-type");
            } else if name.eq_ignore_ascii_case(b"content") {
                content = content.or(charset_in(value));
            }
        }
        charset.or(content.filter(|_| is_pragma))
    }

    /// The next name and value of a tag; `None`: the tag or the text ends.
    fn attribute(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let skipped = |byte: &u8| !byte.is_ascii_whitespace() && *byte != b'/';
        self.rest = self.rest.iter().position(skipped).map_or(&[], |at| &self.rest[at..]);
        if matches!(self.rest.first(), None | Some(b'>')) {
            return None;
        }
        let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'=' | b'/' | b'>');
        // A name may begin with `=`.
        let end = 1 + self.rest[1..].iter().position(ends)?;
        let name = &self.rest[..end];
        let Some(value) = trim_start(&self.rest[end..]).strip_prefix(b"=") else {
            self.rest = &self.rest[end..];
            return Some((name, &[]));
        };
        let value = trim_start(value);
        if matches!(value.first(), Some(b'"' | b'\'')) {
            let text = quoted(value);
            self.rest = text.map_or(&[], |text| &value[text.len() + 2..]);
            return Some((name, text?));
        }
        let end = value.iter().position(|byte| byte.is_ascii_whitespace() || *byte == b'>')?;
        self.rest = &value[end..];
        Some((name, &value[..end]))
    }
}

/// The label in the `content` of `<meta http-equiv>`: `text/html; charset=gbk`.
fn charset_in(content: &[u8]) -> Option<&[u8]> {
    let mut rest = content;
    loop {
        let at = rest.windows(7).position(|word| word.eq_ignore_ascii_case(b"charset"))?;
        rest = trim_start(&rest[at + 7..]);
        let Some(value) = rest.strip_prefix(b"=") else { continue };
        let value = trim_start(value);
        if matches!(value.first(), Some(b'"' | b'\'')) {
            return quoted(value);
        }
        let end = value.iter().position(|byte| byte.is_ascii_whitespace() || *byte == b';');
        return Some(&value[..end.unwrap_or(value.len())]);
    }
}

/// The text between quotes at the beginning.
fn quoted(text: &[u8]) -> Option<&[u8]> {
    let mark = text.first().filter(|mark| matches!(mark, b'"' | b'\''))?;
    let end = text[1..].iter().position(|byte| byte == mark)?;
    Some(&text[1..=end])
}

fn trim_start(text: &[u8]) -> &[u8] {
    text.trim_ascii_start()
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}
