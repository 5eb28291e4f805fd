//! Thinking that a server sends inside the text: `<think>…</think>`.

/// Opening and closing tag of each kind of block. DeepSeek R1 and Qwen3 write the first, some fine-tunes the second.
const TAGS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// A piece of a text that was split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkPiece<'a> {
    /// Visible text, never empty.
    Text(&'a str),
    /// Thinking, never empty.
    Thinking(&'a str),
}

/// Splits a text that arrives in pieces into thinking and visible text, for any cut of the tags.
///
/// The rule: a block opens only before any visible character, that is at the start of the reply or after white space
/// and other blocks; it ends at the first closing tag of its kind, or with the text. So an answer that merely writes
/// about `<think>` is never split. The tags vanish, everything else is passed on to the byte, white space included.
///
/// At most one tag's length is held back, and only while the end of the text could be the beginning of a tag that
/// would count there; once the visible answer has begun, nothing ever is.
///
/// ```
/// use throughline_wire::text_calls::{ThinkPiece, ThinkSplitter};
///
/// let (mut splitter, mut thinking, mut text) = (ThinkSplitter::new(), String::new(), String::new());
/// let mut sink = |piece: ThinkPiece<'_>| match piece {
///     ThinkPiece::Thinking(piece) => thinking.push_str(piece),
///     ThinkPiece::Text(piece) => text.push_str(piece),
/// };
/// for piece in ["<thi", "nk>Greet.</th", "ink>Hello"] {
///     splitter.push(piece, &mut sink);
/// }
/// splitter.finish(&mut sink);
/// assert_eq!((thinking.as_str(), text.as_str()), ("Greet.", "Hello"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ThinkSplitter {
    state: ThinkState,
    held: String,
}

#[derive(Clone, Copy, Debug, Default)]
enum ThinkState {
    /// Nothing visible so far.
    #[default]
    Before,
    /// In a block; the tag that ends it.
    Inside(&'static str),
    /// In the answer.
    Answer,
}

impl ThinkSplitter {
    /// At the start of a reply.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece of the text.
    pub fn push(&mut self, text: &str, sink: &mut impl FnMut(ThinkPiece<'_>)) {
        if self.held.is_empty() {
            self.split(text, sink);
        } else {
            let mut joined = std::mem::take(&mut self.held);
            joined.push_str(text);
            self.split(&joined, sink);
        }
    }

    /// Ends the text: held text was not a tag.
    pub fn finish(&mut self, sink: &mut impl FnMut(ThinkPiece<'_>)) {
        let held = std::mem::take(&mut self.held);
        let piece = if let ThinkState::Inside(_) = self.state {
            ThinkPiece::Thinking(&held)
        } else {
            ThinkPiece::Text(&held)
        };
        if !held.is_empty() {
            sink(piece);
        }
        self.state = ThinkState::Answer;
    }

    fn split(&mut self, mut text: &str, sink: &mut impl FnMut(ThinkPiece<'_>)) {
        while !text.is_empty() {
            text = match self.state {
                ThinkState::Before => self.before(text, sink),
                ThinkState::Inside(closing) => self.inside(text, closing, sink),
                ThinkState::Answer => {
                    sink(ThinkPiece::Text(text));
                    ""
                }
            };
        }
    }

    fn before<'a>(&mut self, text: &'a str, sink: &mut impl FnMut(ThinkPiece<'_>)) -> &'a str {
        let rest = text.trim_start();
        if rest.len() < text.len() {
            sink(ThinkPiece::Text(&text[..text.len() - rest.len()]));
        }
        for (opening, closing) in TAGS {
            if let Some(rest) = rest.strip_prefix(opening) {
                self.state = ThinkState::Inside(closing);
                return rest;
            }
        }
        if TAGS.iter().any(|(opening, _)| opening.starts_with(rest)) {
            self.held.push_str(rest);
            return "";
        }
        self.state = ThinkState::Answer;
        rest
    }

    fn inside<'a>(&mut self, text: &'a str, closing: &str, sink: &mut impl FnMut(ThinkPiece<'_>)) -> &'a str {
        let mut found = None;
        for at in memchr::memchr_iter(b'<', text.as_bytes()) {
            let rest = &text[at..];
            if rest.starts_with(closing) || closing.starts_with(rest) {
                found = Some((at, rest.len() >= closing.len()));
                break;
            }
        }
        let (thinking, rest) = match found {
            None => (text, ""),
            Some((at, true)) => {
                self.state = ThinkState::Before;
                (&text[..at], &text[at + closing.len()..])
            }
            Some((at, false)) => {
                self.held.push_str(&text[at..]);
                (&text[..at], "")
            }
        };
        if !thinking.is_empty() {
            sink(ThinkPiece::Thinking(thinking));
        }
        rest
    }
}

/// Offset of the visible text in a whole text, by the same rule.
pub(super) fn after_leading_blocks(text: &str) -> usize {
    let mut rest = text;
    'blocks: loop {
        let trimmed = rest.trim_start();
        for (opening, closing) in TAGS {
            if let Some(inside) = trimmed.strip_prefix(opening) {
                rest = inside.split_once(closing).map_or("", |(_, after)| after);
                continue 'blocks;
            }
        }
        return text.len() - rest.len();
    }
}

/// True if there is a closing tag at `at`.
pub(super) fn closes_at(text: &str, at: usize) -> bool {
    TAGS.iter().any(|(_, closing)| text[at..].starts_with(closing))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split<'a>(pieces: impl IntoIterator<Item = &'a str>) -> (String, String) {
        let (mut thinking, mut text) = (String::new(), String::new());
        let mut sink = |piece: ThinkPiece<'_>| match piece {
            ThinkPiece::Thinking(piece) => thinking.push_str(piece),
            ThinkPiece::Text(piece) => text.push_str(piece),
        };
        let mut splitter = ThinkSplitter::new();
        for piece in pieces {
            splitter.push(piece, &mut sink);
        }
        splitter.finish(&mut sink);
        (thinking, text)
    }

    fn check(whole: &str, thinking: &str, text: &str) {
        let expect = (thinking.to_owned(), text.to_owned());
        assert_eq!(split([whole]), expect, "{whole:?}");
        let characters = whole.char_indices().map(|(at, c)| &whole[at..at + c.len_utf8()]);
        assert_eq!(split(characters), expect, "{whole:?} by characters");
        for (at, _) in whole.char_indices() {
            assert_eq!(split([&whole[..at], &whole[at..]]), expect, "{whole:?} cut at {at}");
        }
    }

    #[test]
    fn leading_think_blocks_are_thinking() {
        check("<think>Okay</think>\n\nTo", "Okay", "\n\nTo");
        check("\n<think>a<b</think>c", "a<b", "\nc");
        check("<thinking>a</think>b</thinking>c", "a</think>b", "c");
        check("<think>a</think> <think>b</think>c", "ab", " c");
        check("<think></think>x", "", "x");
        check("<think>a</thin", "a</thin", "");
        check("<think>cut off", "cut off", "");
        check("<think>a</</think>b", "a</", "b");
        check("<think>你好</think>再见", "你好", "再见");
    }

    #[test]
    fn text_outside_leading_think_blocks_is_text() {
        check("", "", "");
        check("plain", "", "plain");
        check("<thin", "", "<thin");
        check("<thinker>x</thinker>", "", "<thinker>x</thinker>");
        check("Write <think>a</think>", "", "Write <think>a</think>");
        check("`<think>`", "", "`<think>`");
        check("a</think>b", "", "a</think>b");
        check("<Think>a</Think>", "", "<Think>a</Think>");
    }

    #[test]
    fn only_a_possible_tag_prefix_is_held_back() {
        let check = |pieces: &[&str], expect: &[&str]| {
            let mut splitter = ThinkSplitter::new();
            for (piece, expect) in pieces.iter().zip(expect) {
                let mut now = String::new();
                splitter.push(piece, &mut |piece| match piece {
                    ThinkPiece::Text(text) | ThinkPiece::Thinking(text) => now.push_str(text),
                });
                assert_eq!(now, *expect, "at {piece:?} of {pieces:?}");
            }
        };
        check(&["Hello", " <", "think>"], &["Hello", " <", "think>"]);
        check(&[" ", "<th", "is>"], &[" ", "", "<this>"]);
        check(&["<think>", "a <", " b </th", "e"], &["", "a ", "< b ", "</the"]);
    }

    #[test]
    fn leaked_call_search_skips_the_same_think_blocks() {
        for text in [
            "",
            " x",
            "<think>a</think>b",
            " <thinking>a</thinking> <think>b</think> c",
            "<think>a",
            "a<think>",
        ] {
            let visible = &text[after_leading_blocks(text)..];
            assert_eq!(visible.trim_start(), split([text]).1.trim_start(), "{text:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn splitting_is_independent_of_cuts(
            parts in proptest::collection::vec(
                prop_oneof!["<think>", "</think>", "<thinking>", "</thinking>", "<thi", "</", "[ \n]", "[a-c<>/你]{0,4}"], 0..12),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8),
        ) {
            let whole: String = parts.concat();
            let borders: Vec<usize> = whole.char_indices().map(|(at, _)| at).chain([whole.len()]).collect();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| borders[cut.index(borders.len())]).collect();
            cuts.extend([0, whole.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|cut| &whole[cut[0]..cut[1]]);
            prop_assert_eq!(split(pieces), split([whole.as_str()]));
        }

        #[test]
        fn text_without_think_tags_passes_unchanged(whole in "[a-z<> \n你]{0,40}") {
            prop_assume!(!TAGS.iter().any(|(opening, _)| whole.contains(opening)));
            let mut text = String::new();
            let mut splitter = ThinkSplitter::new();
            for c in whole.chars() {
                splitter.push(c.encode_utf8(&mut [0; 4]), &mut |piece| match piece {
                    ThinkPiece::Text(piece) => text.push_str(piece),
                    ThinkPiece::Thinking(piece) => panic!("{piece:?} is no thinking"),
                });
            }
            splitter.finish(&mut |piece| if let ThinkPiece::Text(piece) = piece { text.push_str(piece) });
            prop_assert_eq!(text, whole);
        }
    }
}
