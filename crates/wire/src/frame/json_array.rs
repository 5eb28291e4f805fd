//! A top-level JSON array to its elements, for any cut of the bytes: Gemini without `alt=sse` sends one.
//!
//! The elements are cut out, not checked: whether an element is JSON is left to the reader. So a broken
//! element costs itself and not the stream.

use crate::limits::DecodeLimits;

/// Cuts a body that is one JSON array into the texts of its elements, as soon as each is complete.
///
/// An element that was pushed whole is passed on as a slice of the input; only elements that are cut by the
/// end of a push are copied.
///
/// ```
/// use throughline_wire::DecodeLimits;
/// use throughline_wire::frame::{ArrayEnd, JsonArrayFramer};
///
/// let mut framer = JsonArrayFramer::new(&DecodeLimits::default());
/// let mut elements = Vec::new();
/// for piece in ["[{\"a\":", "1},{}", "]"] {
///     framer.push(piece.as_bytes(), &mut |element| elements.push(String::from_utf8_lossy(element).into_owned()));
/// }
/// assert_eq!(elements, ["{\"a\":1}", "{}"]);
/// assert_eq!(framer.finish(), ArrayEnd::Closed);
/// ```
#[derive(Debug)]
pub struct JsonArrayFramer {
    state: ArrayState,
    /// The beginning of an element that was cut by the end of a push.
    pending: Vec<u8>,
    event_bytes_max: usize,
    dropped: u64,
}

/// End of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayEnd {
    /// With its closing bracket, and nothing but white space after it.
    Closed,
    /// The bytes stopped before the closing bracket; half an element was discarded if there was one.
    Truncated,
    /// The body is no array, or there was something after it.
    NotAnArray,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArrayState {
    /// Only white space (and a byte order mark) so far.
    Before,
    /// In the array, between elements.
    Between,
    /// In an object or array; it ends when `depth` comes back to 0.
    Composite { depth: usize, string: StringState },
    /// In a string that is an element itself.
    String { escaped: bool },
    /// In a number or a word: it ends at the first other character.
    Scalar,
    /// After the closing bracket.
    After,
    /// Not an array: the rest is ignored.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StringState {
    No,
    Yes,
    /// After a backslash.
    Escaped,
}

impl JsonArrayFramer {
    /// A framer at the beginning of a body. Of the limits it keeps `event_bytes_max`: a longer element is dropped
    /// whole and counted in [`dropped`](Self::dropped).
    pub fn new(limits: &DecodeLimits) -> Self {
        Self {
            state: ArrayState::Before,
            pending: Vec::new(),
            event_bytes_max: limits.event_bytes_max,
            dropped: 0,
        }
    }

    /// Takes the next bytes and hands on each element that they complete.
    pub fn push(&mut self, bytes: &[u8], element: &mut impl FnMut(&[u8])) {
        let mut start = 0;
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            match self.state {
                ArrayState::Before => match byte {
                    b'[' => self.state = ArrayState::Between,
                    b' ' | b'\t' | b'\r' | b'\n' | 0xEF | 0xBB | 0xBF => {}
                    _ => self.state = ArrayState::Lost,
                },
                ArrayState::Between => match byte {
                    b' ' | b'\t' | b'\r' | b'\n' | b',' => {}
                    b']' => self.state = ArrayState::After,
                    _ => {
                        start = at;
                        self.state = match byte {
                            b'{' | b'[' => ArrayState::Composite { depth: 1, string: StringState::No },
                            b'"' => ArrayState::String { escaped: false },
                            _ => ArrayState::Scalar,
                        };
                    }
                },
                ArrayState::Composite { ref mut depth, ref mut string } => match *string {
                    StringState::Escaped => *string = StringState::Yes,
                    StringState::Yes => match memchr::memchr2(b'"', b'\\', &bytes[at..]) {
                        Some(skip) => {
                            at += skip;
                            *string = if bytes[at] == b'"' { StringState::No } else { StringState::Escaped };
                        }
                        None => at = bytes.len() - 1,
                    },
                    StringState::No => match byte {
                        b'"' => *string = StringState::Yes,
                        b'{' | b'[' => *depth += 1,
                        b'}' | b']' => {
                            *depth -= 1;
                            if *depth == 0 {
                                self.finish_element(&bytes[start..=at], element);
                            }
                        }
                        _ => {}
                    },
                },
                ArrayState::String { escaped: true } => self.state = ArrayState::String { escaped: false },
                ArrayState::String { escaped: false } => match byte {
                    b'\\' => self.state = ArrayState::String { escaped: true },
                    b'"' => self.finish_element(&bytes[start..=at], element),
                    _ => {}
                },
                ArrayState::Scalar => {
                    if matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',' | b']') {
                        self.finish_element(&bytes[start..at], element);
                        // The same byte again, now between elements.
                        continue;
                    }
                }
                ArrayState::After => {
                    if !byte.is_ascii_whitespace() {
                        self.state = ArrayState::Lost;
                    }
                }
                ArrayState::Lost => return,
            }
            at += 1;
        }
        if self.is_inside() {
            self.buffer_tail(&bytes[start..]);
        }
    }

    /// The bytes have ended.
    pub fn finish(&self) -> ArrayEnd {
        match self.state {
            ArrayState::After => ArrayEnd::Closed,
            ArrayState::Lost => ArrayEnd::NotAnArray,
            _ => ArrayEnd::Truncated,
        }
    }

    /// Number of elements longer than `event_bytes_max`.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn is_inside(&self) -> bool {
        matches!(self.state, ArrayState::Composite { .. } | ArrayState::String { .. } | ArrayState::Scalar)
    }

    fn finish_element(&mut self, tail: &[u8], element: &mut impl FnMut(&[u8])) {
        self.state = ArrayState::Between;
        if self.pending.len() + tail.len() > self.event_bytes_max {
            self.dropped += 1;
        } else if self.pending.is_empty() {
            element(tail);
        } else {
            self.pending.extend_from_slice(tail);
            element(&self.pending);
        }
        self.pending.clear();
    }

    /// Keeps half an element, one byte more than allowed at most: enough to know that it is too long.
    fn buffer_tail(&mut self, tail: &[u8]) {
        let room = (self.event_bytes_max + 1).saturating_sub(self.pending.len());
        self.pending.extend_from_slice(&tail[..tail.len().min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(pieces: &[&[u8]], limits: &DecodeLimits) -> (Vec<String>, ArrayEnd, u64) {
        let mut framer = JsonArrayFramer::new(limits);
        let mut elements = Vec::new();
        for piece in pieces {
            framer.push(piece, &mut |element| elements.push(String::from_utf8_lossy(element).into_owned()));
        }
        (elements, framer.finish(), framer.dropped())
    }

    /// Byte by byte, and cut in two at every position (the first of them whole).
    fn check(body: &str, expect: &[&str], end: ArrayEnd) {
        let limits = DecodeLimits::default();
        let expect = (expect.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(), end, 0);
        let bytes = body.as_bytes();
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(cut(&single, &limits), expect, "bytes of {body}");
        for at in 0..=bytes.len() {
            assert_eq!(cut(&[&bytes[..at], &bytes[at..]], &limits), expect, "{body} cut at {at}");
        }
    }

    #[test]
    fn elements_are_read_at_any_cut() {
        check("[]", &[], ArrayEnd::Closed);
        check("[{\"a\":1}\n,\r\n{\"b\":[2,{}]}\n]\n", &["{\"a\":1}", "{\"b\":[2,{}]}"], ArrayEnd::Closed);
        check("\u{FEFF} [ {} , {} ] ", &["{}", "{}"], ArrayEnd::Closed);
        check(r#"[{"t":"a]},\"{"},{"t":"\\"}]"#, &[r#"{"t":"a]},\"{"}"#, r#"{"t":"\\"}"#], ArrayEnd::Closed);
        check(r#"[{"t":"你好 😀 é"}]"#, &[r#"{"t":"你好 😀 é"}"#], ArrayEnd::Closed);
        check(
            r#"[1, "a\"]b" ,null,true,-2.5e3]"#,
            &["1", r#""a\"]b""#, "null", "true", "-2.5e3"],
            ArrayEnd::Closed,
        );
        check("[[1,2],[]]", &["[1,2]", "[]"], ArrayEnd::Closed);
        check("[{}{}]", &["{}", "{}"], ArrayEnd::Closed);
    }

    #[test]
    fn truncated_array_and_other_values_are_reported() {
        check("", &[], ArrayEnd::Truncated);
        check("[", &[], ArrayEnd::Truncated);
        check(r#"[{"a":1},{"b":"#, &[r#"{"a":1}"#], ArrayEnd::Truncated);
        check("[1,2", &["1"], ArrayEnd::Truncated);
        check(r#"{"a":1}"#, &[], ArrayEnd::NotAnArray);
        check("[{}] x", &["{}"], ArrayEnd::NotAnArray);
    }

    #[test]
    fn oversized_element_is_dropped_and_counted() {
        let limits = DecodeLimits { event_bytes_max: 10, ..DecodeLimits::default() };
        let body = br#"[{"a":1},{"a":"0123456789"},{"b":2345}]"#;
        let expect = (vec![r#"{"a":1}"#.to_owned(), r#"{"b":2345}"#.to_owned()], ArrayEnd::Closed, 1);
        assert_eq!(cut(&[body], &limits), expect);
        for size in 1..12 {
            let pieces: Vec<&[u8]> = body.chunks(size).collect();
            assert_eq!(cut(&pieces, &limits), expect, "pieces of {size}");
        }
    }

    #[test]
    fn pending_bytes_stay_within_the_limit() {
        let mut framer =
            JsonArrayFramer::new(&DecodeLimits { event_bytes_max: 100, ..DecodeLimits::default() });
        framer.push(b"[\"", &mut |_| {});
        for _ in 0..1000 {
            framer.push(&[b'x'; 64], &mut |_| {});
        }
        assert!(framer.pending.len() <= 101, "{} bytes held", framer.pending.len());
    }
}
