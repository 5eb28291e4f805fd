//! A program's output as text for models and cards: without escape sequences of terminals and control characters.

/// Longest sequence with an explicit terminator (a window title, a picture); a longer one is taken for text.
const SEQUENCE_BYTES_MAX: usize = 4_096;

/// Removes terminal control sequences from bytes that may come in any pieces. Everything from 0x80 on passes:
/// the reader replaces invalid UTF-8. `\r\n` and `\r` become `\n`.
#[derive(Clone, Debug, Default)]
pub(crate) struct EscapeStripper {
    state: EscapeState,
}

#[derive(Clone, Copy, Debug, Default)]
enum EscapeState {
    #[default]
    Text,
    /// After a `\r`, which is a line end before any byte.
    Returned,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate byte: one more.
    Charset,
    /// After `ESC [`, until a byte from 0x40 to 0x7e (ECMA-48 §5.4).
    Control,
    /// After `ESC ]`, `P`, `X`, `^` or `_`, until BEL or `ESC \` (§5.6).
    String { bytes: usize, escaped: bool },
}

impl EscapeStripper {
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut text = Vec::with_capacity(chunk.len());
        let mut rest = chunk;
        loop {
            if matches!(self.state, EscapeState::Text) {
                // Most of the input, in one step.
                let plain = rest.iter().position(|&byte| is_control(byte)).unwrap_or(rest.len());
                text.extend_from_slice(&rest[..plain]);
                rest = &rest[plain..];
            }
            let Some((&byte, after)) = rest.split_first() else { return text };
            rest = after;
            self.state = match (self.state, byte) {
                (EscapeState::Returned, b'\n') => EscapeState::Text,
                (EscapeState::Text | EscapeState::Returned, byte) => text_byte(byte, &mut text),
                (EscapeState::Escape, b'[') => EscapeState::Control,
                (EscapeState::Escape, b']' | b'P' | b'X' | b'^' | b'_') => {
                    EscapeState::String { bytes: 0, escaped: false }
                }
                (EscapeState::Escape, 0x20..=0x2f) => EscapeState::Charset,
                (EscapeState::Escape, 0x30..=0x7e) | (EscapeState::Charset, 0x20..=0x7e) => EscapeState::Text,
                (EscapeState::Control, 0x20..=0x3f) => EscapeState::Control,
                (EscapeState::Control, 0x40..=0x7e) => EscapeState::Text,
                (EscapeState::String { .. }, 0x07) | (EscapeState::String { escaped: true, .. }, b'\\') => {
                    EscapeState::Text
                }
                (EscapeState::String { bytes, .. }, _) if bytes < SEQUENCE_BYTES_MAX => {
                    EscapeState::String { bytes: bytes + 1, escaped: byte == 0x1b }
                }
                // Not a sequence after all.
                (
                    EscapeState::Escape
                    | EscapeState::Charset
                    | EscapeState::Control
                    | EscapeState::String { .. },
                    byte,
                ) => text_byte(byte, &mut text),
            };
        }
    }

    /// Strips a whole text.
    pub(crate) fn strip(bytes: &[u8]) -> Vec<u8> {
        Self::default().push(bytes)
    }
}

/// Neither text nor a line end nor a tab.
fn is_control(byte: u8) -> bool {
    matches!(byte, 0x00..=0x08 | 0x0b..=0x1f | 0x7f)
}

fn text_byte(byte: u8, text: &mut Vec<u8>) -> EscapeState {
    match byte {
        0x1b => EscapeState::Escape,
        b'\r' => {
            text.push(b'\n');
            EscapeState::Returned
        }
        b'\n' | b'\t' => {
            text.push(byte);
            EscapeState::Text
        }
        0x00..0x20 | 0x7f => EscapeState::Text,
        _ => {
            text.push(byte);
            EscapeState::Text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_stripped_at_any_cut() {
        let long = format!("a\x1b]0;{}b", "x".repeat(SEQUENCE_BYTES_MAX + 9));
        for (written, expected) in [
            ("plain 文字\n\ttab", "plain 文字\n\ttab"),
            ("\x1b[1;31mred\x1b[0m and \x1b[38;5;200mpink\x1b[m", "red and pink"),
            ("\x1b]0;title\x07after", "after"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b(Btext\x1b=\x1b7", "text"),
            ("10%\r20%\r\n30%\n", "10%\n20%\n30%\n"),
            ("nul\0bell\x07del\x7f", "nulbelldel"),
            ("\x1b[2Jcleared", "cleared"),
            ("\x1b[31\nbroken", "\nbroken"),
            (long.as_str(), &format!("a{}b", "x".repeat(9 + 2))),
        ] {
            assert_eq!(
                String::from_utf8_lossy(&EscapeStripper::strip(written.as_bytes())),
                expected,
                "{written:?}"
            );
            for cut in 0..written.len().min(200) {
                let mut plain = EscapeStripper::default();
                let mut text = plain.push(&written.as_bytes()[..cut]);
                text.extend(plain.push(&written.as_bytes()[cut..]));
                assert_eq!(String::from_utf8_lossy(&text), expected, "{written:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn invalid_utf8_passes_through_unchanged() {
        assert_eq!(EscapeStripper::strip(b"\xff\xfe\x9b1m"), b"\xff\xfe\x9b1m");
    }
}
