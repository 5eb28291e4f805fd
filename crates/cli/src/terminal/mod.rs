//! The terminal: styled text, Markdown, cards, the line editor, and the painter that puts them on the screen.
//!
//! Everything but [`session`] is a pure function from state to lines, tested on a small virtual screen.

pub mod card;
pub mod line_editor;
pub mod markdown;
pub mod painter;
pub mod session;
pub mod text;
#[cfg(test)]
pub mod virtual_screen;
