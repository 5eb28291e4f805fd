//! Fenced blocks and inline code, as far as is needed to see that markup is only quoted.
//!
//! CommonMark's rules: a fence is three or more backticks or tildes at the start of a line (at most three spaces in),
//! closed by at least as many of the same, or by the end of the text. Inline code runs from a run of backticks to
//! the next run of the same length in the same paragraph; without one, backticks are just characters.

use std::collections::HashMap;
use std::ops::Range;

/// The opening of a fenced block.
pub(super) struct FenceOpening<'t> {
    mark: u8,
    length: usize,
    /// Info string after the fence, trimmed.
    pub(super) info: &'t str,
    /// Offset of the content.
    pub(super) content: usize,
}

/// The fence that opens at `at`, if one does.
pub(super) fn fence_at(text: &str, at: usize) -> Option<FenceOpening<'_>> {
    let bytes = text.as_bytes();
    let indent = bytes[..at].iter().rev().take(3).take_while(|byte| **byte == b' ').count();
    let starts_line = at == indent || bytes[at - indent - 1] == b'\n';
    let mark = bytes[at];
    let length = run_length(bytes, at);
    if !starts_line || length < 3 {
        return None;
    }
    let end = memchr::memchr(b'\n', &bytes[at..]).map_or(text.len(), |offset| at + offset);
    let info = text[at + length..end].trim();
    if mark == b'`' && info.contains('`') {
        return None;
    }
    Some(FenceOpening { mark, length, info, content: (end + 1).min(text.len()) })
}

/// The content of a fenced block, and where the text continues after it.
pub(super) fn fence_content(text: &str, fence: &FenceOpening<'_>) -> (Range<usize>, usize) {
    let mut at = fence.content;
    for line in text[fence.content..].split_inclusive('\n') {
        let bare = line.trim();
        let closes = bare.len() >= fence.length && bare.bytes().all(|byte| byte == fence.mark);
        if closes && line.len() - line.trim_start_matches(' ').len() <= 3 {
            return (fence.content..at, at + line.len());
        }
        at += line.len();
    }
    (fence.content..text.len(), text.len())
}

/// Offset of the text after a fenced block.
pub(super) fn skip_fence(text: &str, fence: &FenceOpening<'_>) -> usize {
    fence_content(text, fence).1
}

/// All runs of backticks of a text with the end of the inline code that each would open.
#[derive(Debug, Default)]
pub(super) struct CodeSpans {
    ends: HashMap<usize, usize>,
}

impl CodeSpans {
    pub(super) fn of(text: &str) -> Self {
        let mut ends = HashMap::new();
        // By length, the last run of the paragraph so far.
        let mut open: HashMap<usize, usize> = HashMap::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            if line.trim().is_empty() {
                open.clear();
            }
            let mut at = 0;
            while let Some(offset) = memchr::memchr(b'`', &line.as_bytes()[at..]) {
                at += offset;
                let length = run_length(line.as_bytes(), at);
                if let Some(before) = open.insert(length, start + at) {
                    ends.insert(before, start + at + length);
                }
                at += length;
            }
            start += line.len();
        }
        Self { ends }
    }

    /// The end of the inline code that opens with the run at `at`, if it is closed.
    pub(super) fn end_of(&self, at: usize) -> Option<usize> {
        self.ends.get(&at).copied()
    }
}

/// Number of equal bytes from `at` on.
pub(super) fn run_length(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().take_while(|byte| **byte == bytes[at]).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_span(text: &str, at: usize, expect: Option<&str>) {
        assert_eq!(CodeSpans::of(text).end_of(at).map(|end| &text[at..end]), expect, "{text:?} at {at}");
    }

    #[test]
    fn inline_code_closes_with_a_run_of_its_length_in_its_paragraph() {
        check_span("`a` b", 0, Some("`a`"));
        check_span("``a ` b`` c", 0, Some("``a ` b``"));
        check_span("`a\nb`", 0, Some("`a\nb`"));
        check_span("`a\n\nb`", 0, None);
        check_span("`a``", 0, None);
    }

    fn check_fence(text: &str, at: usize, expect: Option<(&str, &str)>) {
        let fence = fence_at(text, at).map(|fence| (fence.info, &text[fence_content(text, &fence).0]));
        assert_eq!(fence, expect, "{text:?} at {at}");
    }

    #[test]
    fn fences_close_with_at_least_as_many_marks_or_at_the_end() {
        check_fence("```xml\na\n```\nb", 0, Some(("xml", "a\n")));
        check_fence("````\n```\n````", 0, Some(("", "```\n")));
        check_fence("~~~\na\n```\n~~~", 0, Some(("", "a\n```\n")));
        check_fence("  ```\na", 2, Some(("", "a")));
        check_fence("x ```\na\n```", 2, None);
        check_fence("    ```\na\n```", 4, None);
        check_fence("``` a`b", 0, None);
    }
}
