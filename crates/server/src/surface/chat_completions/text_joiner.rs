//! Running text that is put together from blocks, with an empty line between two of them. Nothing in it looks like a code of
//! ours, but in the one text that it [closes with](TextJoiner::close_with), and nothing of a model hides that one.

use super::markdown_guard::MarkdownGuard;
use super::question::CodeMasker;

/// Gap between the texts of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ParagraphGap {
    /// Nothing has been said.
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
        let before = self.gap;
        self.gap = ParagraphGap::None;
        if before == ParagraphGap::Pending {
            self.masker = CodeMasker::default();
        }
        let text = self.masker.mask(text);
        Some(match before {
            ParagraphGap::Pending => format!("\n\n{text}"),
            ParagraphGap::Start | ParagraphGap::None | ParagraphGap::Written => text,
        })
    }

    /// Something with empty lines around it.
    pub(super) fn insert(&mut self, text: &str) -> String {
        let before = self.gap;
        self.gap = ParagraphGap::Written;
        let text = CodeMasker::default().mask(text);
        self.masker = CodeMasker::default();
        match before {
            ParagraphGap::Start | ParagraphGap::Written => format!("{text}\n\n"),
            ParagraphGap::None | ParagraphGap::Pending => format!("\n\n{text}\n\n"),
        }
    }

    /// Its last words, as they are: they are ours.
    pub(super) fn close_with(&mut self, text: &str) -> String {
        match self.gap {
            ParagraphGap::Start | ParagraphGap::Written => text.to_owned(),
            ParagraphGap::None | ParagraphGap::Pending => format!("\n\n{text}"),
        }
    }
}
