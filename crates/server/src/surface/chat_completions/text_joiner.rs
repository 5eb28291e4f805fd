//! Running text that is put together from blocks, with an empty line between two of them. Nothing in it looks like a code of
//! ours, but in the one text that it [closes with](Prose::close_with).

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
}

impl TextJoiner {
    /// Begins another block.
    pub(super) fn begin_block(&mut self) {
        if self.gap == ParagraphGap::None {
            self.gap = ParagraphGap::Pending;
        }
    }

    /// The text as it is to be sent; `None` = nothing.
    pub(super) fn push(&mut self, text: &str) -> Option<String> {
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
