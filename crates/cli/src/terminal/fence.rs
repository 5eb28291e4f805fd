//! Code fences in text that arrives piece by piece.

/// Most characters of a line that decide whether it opens or closes a fence.
const LINE_CHARS_MAX: usize = 256;

/// Tracks whether the end of a text is inside a code fence.
#[derive(Clone, Debug, Default)]
pub(crate) struct FenceTracker {
    /// The line so far, up to [`LINE_CHARS_MAX`].
    line: String,
    chars: usize,
    /// Mark and length of the fence that is open.
    open: Option<(char, usize)>,
}

impl FenceTracker {
    /// Takes the next piece of text.
    pub(crate) fn push(&mut self, text: &str) {
        for c in text.chars() {
            if c == '\n' {
                self.open = fence_after(self.open, &self.line);
                self.line.clear();
                self.chars = 0;
            } else if self.chars < LINE_CHARS_MAX {
                self.line.push(c);
                self.chars += 1;
            }
        }
    }

    /// True if what comes next is code: the line that closes the fence has not ended.
    pub(crate) fn is_open(&self) -> bool {
        // An opening line counts as soon as it is one, a closing line when it is complete.
        self.open.is_some() || fence_after(None, &self.line).is_some()
    }

    /// The text has ended.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

/// The fence that is open after a line.
fn fence_after(open: Option<(char, usize)>, line: &str) -> Option<(char, usize)> {
    let text = line.trim_start_matches(' ');
    let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'));
    let (Some(mark), true) = (mark, line.len() - text.len() <= 3) else { return open };
    let length = text.chars().take_while(|c| *c == mark).count();
    let rest = &text[length..];
    match open {
        _ if length < 3 => open,
        None if mark == '`' && rest.contains('`') => None,
        None => Some((mark, length)),
        Some((opened, at_least)) if mark == opened && length >= at_least && rest.trim().is_empty() => None,
        Some(_) => open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, open: bool) {
        for size in [1, 2, 3, 1000] {
            let mut tracker = FenceTracker::default();
            let chars: Vec<char> = text.chars().collect();
            for piece in chars.chunks(size) {
                tracker.push(&piece.iter().collect::<String>());
            }
            assert_eq!(tracker.is_open(), open, "{text:?} in pieces of {size}");
        }
    }

    #[test]
    fn code_fence_is_open_until_its_closing_line_ends() {
        check("text", false);
        check("```rust\nlet", true);
        check("```rust", true);
        check("```\ncode\n```", true);
        check("```\ncode\n```\n", false);
        check("````\n```\n", true);
        check("~~~\n```\n~~~\n", false);
        check("   ```\ncode", true);
        check("    ```\nindented", false);
        check("```a`b``` is inline\n", false);
        check("``\n", false);
    }
}
