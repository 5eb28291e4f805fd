//! Running text that is put together from blocks, with an empty line between two of them. Nothing in it looks like a code of
//! ours, but in the one text that it [closes with](TextJoiner::close_with), and nothing of a model hides that one.

use super::markdown_guard::MarkdownGuard;
use super::question::CodeMasker;

/// Gap between the texts of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ParagraphGap {
    /// No text so far.
    #[default]
    Start,
    /// The next text continues the sentence.
    None,
    /// The next text is a new paragraph, and the empty line is still missing.
    Pending,
    Written,
}

/// A text that is sent piece by piece.
#[derive(Clone, Debug, Default)]
pub(super) struct TextJoiner {
    gap: ParagraphGap,
    /// Line ends at the end of what was sent.
    line_ends: usize,
    masker: CodeMasker,
    /// Present where the text may end with a question.
    guard: Option<MarkdownGuard>,
}

impl TextJoiner {
    /// A text that may end with a question.
    pub(super) fn guarded() -> Self {
        Self { guard: Some(MarkdownGuard::default()), ..Self::default() }
    }

    /// Ends the block that is open; what was held back of it.
    pub(super) fn end_block(&mut self) -> Option<String> {
        let rest = self.guard.as_mut()?.finish();
        self.join(&rest)
    }

    /// Begins another block; what was held back of the one before.
    pub(super) fn begin_block(&mut self) -> Option<String> {
        let rest = self.end_block();
        if self.gap == ParagraphGap::None {
            self.gap = ParagraphGap::Pending;
        }
        rest
    }

    /// The text as it is to be sent; `None` = nothing.
    pub(super) fn push(&mut self, text: &str) -> Option<String> {
        match &mut self.guard {
            None => self.join(text),
            Some(guard) => {
                let text = guard.push(text);
                self.join(&text)
            }
        }
    }

    fn join(&mut self, text: &str) -> Option<String> {
        if text.is_empty() {
            return None;
        }
        let mut gap = "";
        if self.gap == ParagraphGap::Pending {
            gap = self.missing_gap();
            self.masker = CodeMasker::default();
        }
        self.gap = ParagraphGap::None;
        let text = format!("{gap}{}", self.masker.mask(text));
        let line_ends = text.len() - text.trim_end_matches('\n').len();
        // A piece of line ends only adds to those before it.
        self.line_ends = if line_ends == text.len() { self.line_ends + line_ends } else { line_ends };
        Some(text)
    }

    /// The line ends of an empty line, as far as the text before it has not ended with them.
    fn missing_gap(&self) -> &'static str {
        match self.gap {
            ParagraphGap::Start | ParagraphGap::Written => "",
            ParagraphGap::None | ParagraphGap::Pending => &"\n\n"[self.line_ends.min(2)..],
        }
    }

    /// A text with empty lines around it.
    pub(super) fn insert(&mut self, text: &str) -> String {
        let gap = self.missing_gap();
        self.gap = ParagraphGap::Written;
        self.line_ends = 2;
        let text = CodeMasker::default().mask(text);
        self.masker = CodeMasker::default();
        format!("{gap}{text}\n\n")
    }

    /// The last text, inserted unchanged: it is the server's.
    pub(super) fn close_with(&mut self, text: &str) -> String {
        format!("{}{text}", self.missing_gap())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_blank_line_precedes_cards_paragraphs_and_questions() {
        let texts: [&[&str]; 6] = [
            &["Look:"],
            &["Look:\n"],
            &["Look:\n\n"],
            &["Look:\n", "\n"],
            &["Look:", "\n", "\n"],
            &["Look", ":\n\n"],
        ];
        for joiner in [TextJoiner::default(), TextJoiner::guarded()] {
            for pieces in texts {
                let mut joiner = joiner.clone();
                let mut out = String::new();
                let mut say = |joiner: &mut TextJoiner| {
                    out.extend(joiner.begin_block());
                    out.extend(pieces.iter().filter_map(|piece| joiner.push(piece)));
                    out.extend(joiner.end_block());
                };
                say(&mut joiner);
                say(&mut joiner);
                out.push_str(&joiner.insert("[card]"));
                out.extend(joiner.push("Done\n"));
                out.extend(joiner.end_block());
                out.push_str(&joiner.close_with("Run it?"));
                assert_eq!(out, "Look:\n\nLook:\n\n[card]\n\nDone\n\nRun it?", "{pieces:?}");
            }
        }
    }
}
