//! Running text that is put together from blocks, with an empty line between two of them. Nothing in it looks like a code of
//! ours, but in the one text that it [closes with](Prose::close_with). // R: A3

use super::question::Defuser;

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
    defuser: Defuser,
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
        if before == Gap::Wanted {
            self.defuser = Defuser::default();
        }
        let text = self.defuser.pass(text);
        Some(match before {
            Gap::Wanted => format!("\n\n{text}"),
            Gap::Start | Gap::None | Gap::Made => text,
        })
    }

    /// Something with empty lines around it.
    pub(super) fn insert(&mut self, text: &str) -> String {
        let before = self.gap;
        self.gap = Gap::Made;
        let text = Defuser::default().pass(text);
        self.defuser = Defuser::default();
        match before {
            Gap::Start | Gap::Made => format!("{text}\n\n"),
            Gap::None | Gap::Wanted => format!("\n\n{text}\n\n"),
        }
    }

    /// Its last words, as they are: they are ours.
    pub(super) fn close_with(&mut self, text: &str) -> String {
        match self.gap {
            Gap::Start | Gap::Made => text.to_owned(),
            Gap::None | Gap::Wanted => format!("\n\n{text}"),
        }
    }
}
