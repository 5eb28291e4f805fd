//! Running text that is put together from blocks, with an empty line between two of them.

/// What one text of a message ends with so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Gap {
    /// Nothing has been said.
    #[default]
    Start,
    /// What comes next continues the sentence.
    None,
    /// What comes next is a new paragraph, and there is no empty line yet.
    Wanted,
    /// There is one.
    Made,
}

/// A text that is sent piece by piece.
#[derive(Clone, Debug, Default)]
pub(super) struct Prose {
    gap: Gap,
}

impl Prose {
    /// What is said next belongs to another block.
    pub(super) fn begin_block(&mut self) {
        if self.gap == Gap::None {
            self.gap = Gap::Wanted;
        }
    }

    /// The text as it is to be sent; `None` = nothing.
    pub(super) fn say(&mut self, text: &str) -> Option<String> {
        if text.is_empty() {
            return None;
        }
        let before = self.gap;
        self.gap = Gap::None;
        Some(match before {
            Gap::Wanted => format!("\n\n{text}"),
            Gap::Start | Gap::None | Gap::Made => text.to_owned(),
        })
    }

    /// Something with empty lines around it.
    pub(super) fn insert(&mut self, text: &str) -> String {
        let before = self.gap;
        self.gap = Gap::Made;
        match before {
            Gap::Start | Gap::Made => format!("{text}\n\n"),
            Gap::None | Gap::Wanted => format!("\n\n{text}\n\n"),
        }
    }
}
