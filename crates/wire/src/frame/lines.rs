//! Newline-delimited JSON: one document a line.

use crate::limits::DecodeLimits;

/// Cuts lines at LF; a CR before it belongs to the line end. Nothing else ends a line, so U+2028 in a string is safe.
#[derive(Debug)]
pub struct LineFramer {
    carry: Vec<u8>,
    line_bytes_max: usize,
    overlong: bool,
    /// Bytes before the line that is being read.
    line_at: u64,
}

/// One line, or that one was too long.
#[derive(Debug, PartialEq, Eq)]
pub enum LineItem<'a> {
    /// A line without its line end.
    Text {
        /// Offset of its first byte.
        offset: u64,
        /// Bytes of the line.
        text: &'a [u8],
    },
    /// Longer than `line_bytes_max`; dropped up to its end.
    TooLong,
}

impl LineFramer {
    /// A framer at the beginning of a body.
    pub fn new(limits: &DecodeLimits) -> Self {
        Self { carry: Vec::new(), line_bytes_max: limits.line_bytes_max, overlong: false, line_at: 0 }
    }

    /// Takes the next bytes and hands out every line that ends in them.
    pub fn push(&mut self, bytes: &[u8], line: &mut dyn FnMut(LineItem<'_>)) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (head, tail) = (&rest[..end], &rest[end + 1..]);
            rest = tail;
            let offset = self.line_at;
            self.line_at += (self.carry.len() + head.len() + 1) as u64;
            if std::mem::take(&mut self.overlong) || self.carry.len() + head.len() > self.line_bytes_max {
                self.carry.clear();
                line(LineItem::TooLong);
            } else if self.carry.is_empty() {
                line(LineItem::Text { offset, text: head.strip_suffix(b"\r").unwrap_or(head) });
            } else {
                self.carry.extend_from_slice(head);
                line(LineItem::Text { offset, text: self.carry.strip_suffix(b"\r").unwrap_or(&self.carry) });
                self.carry.clear();
            }
        }
        if self.overlong || self.carry.len() + rest.len() > self.line_bytes_max {
            self.overlong = true;
            self.carry.clear();
        } else {
            self.carry.extend_from_slice(rest);
        }
    }

    /// Ends the input: remaining bytes are a last line without a line end.
    pub fn finish(&mut self, line: &mut dyn FnMut(LineItem<'_>)) {
        if self.overlong {
            line(LineItem::TooLong);
        } else if !self.carry.is_empty() {
            let text = self.carry.strip_suffix(b"\r").unwrap_or(&self.carry);
            line(LineItem::Text { offset: self.line_at, text });
        }
        self.carry.clear();
        self.overlong = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &[u8], line_bytes_max: usize, expect: &[&str]) {
        for cut in 0..=body.len() {
            let mut framer = LineFramer::new(&DecodeLimits { line_bytes_max, ..DecodeLimits::default() });
            let mut lines = Vec::new();
            let mut take = |line: LineItem<'_>| {
                lines.push(match line {
                    LineItem::Text { text, .. } => String::from_utf8_lossy(text).into_owned(),
                    LineItem::TooLong => "TOO LONG".to_owned(),
                });
            };
            framer.push(&body[..cut], &mut take);
            framer.push(&body[cut..], &mut take);
            framer.finish(&mut take);
            assert_eq!(lines, expect, "cut at {cut}");
        }
    }

    #[test]
    fn lines_are_read_at_any_cut() {
        check(b"a\nb\r\n\nc", 99, &["a", "b", "", "c"]);
        check("x\u{2028}y\u{85}z\n".as_bytes(), 99, &["x\u{2028}y\u{85}z"]);
    }

    #[test]
    fn line_over_line_bytes_max_is_skipped() {
        check(b"abcdef\nok\nabcdef", 5, &["TOO LONG", "ok", "TOO LONG"]);
    }
}
