//! The terminal: styled text, Markdown, cards, the line editor, and the painter that puts them on the screen.
//!
//! Everything but [`session`] is a pure function from state to lines, tested on a small virtual screen.

pub(crate) mod card;
pub(crate) mod fence;
pub(crate) mod line_editor;
pub(crate) mod markdown;
pub(crate) mod painter;
pub(crate) mod session;
pub(crate) mod text;
#[cfg(test)]
pub(crate) mod virtual_screen;
