//! Reads a file line by line, in bounded memory for any content.

use std::io::{self, BufRead};

/// Most bytes of a line that are retained.
pub(super) const LINE_BYTES_MAX: usize = 4_096;
/// Length of a file's beginning that decides if it is text.
const SNIFF_BYTES: usize = 8_192;

/// A reader of lines.
pub(super) struct LineReader<R> {
    input: R,
    /// Bytes read so far.
    pub(super) read_bytes: u64,
}

/// True for text: no NUL in the first bytes, the test of `grep`.
pub(super) fn is_text(input: &mut impl BufRead) -> io::Result<bool> {
    let start = input.fill_buf()?;
    Ok(!start[..start.len().min(SNIFF_BYTES)].contains(&0))
}

impl<R: BufRead> LineReader<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, read_bytes: 0 }
    }

    /// The next line without its line end, cut and marked if too long; `None` at the end of the file.
    pub(super) fn next(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        let mut truncated = false;
        let mut has_bytes = false;
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                break;
            }
            has_bytes = true;
            let end = buffer.iter().position(|&byte| byte == b'\n');
            let part = &buffer[..end.unwrap_or(buffer.len())];
            let remaining = LINE_BYTES_MAX - line.len();
            line.extend_from_slice(&part[..part.len().min(remaining)]);
            truncated |= part.len() > remaining;
            let used = part.len() + usize::from(end.is_some());
            self.input.consume(used);
            self.read_bytes += used as u64;
            if end.is_some() {
                break;
            }
        }
        if !has_bytes {
            return Ok(None);
        }
        if line.last() == Some(&b'\r') && !truncated {
            line.pop();
        }
        let mut text = String::from_utf8_lossy(&line).into_owned();
        if truncated {
            // The cut may have split a character.
            text.truncate(text.trim_end_matches('\u{fffd}').len());
            text.push_str(" […]");
        }
        Ok(Some(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    #[test]
    fn lines_are_bounded_for_any_buffer_size() {
        let long = "行".repeat(5_000);
        let text = format!("one\r\n\ntwo\n{long}\nlast");
        for buffer_bytes in [1, 3, 8_192] {
            let mut lines = LineReader::new(BufReader::with_capacity(buffer_bytes, text.as_bytes()));
            let mut all = Vec::new();
            while let Some(line) = lines.next().unwrap() {
                all.push(line);
            }
            assert_eq!(all.len(), 5);
            assert_eq!(all[..3], ["one", "", "two"]);
            assert_eq!(all[3], format!("{} […]", "行".repeat(LINE_BYTES_MAX / 3)));
            assert_eq!(all[4], "last");
            assert_eq!(lines.read_bytes, text.len() as u64);
        }
    }
}
