//! Paints lines on the screen: settled lines are printed once, live lines below them are repainted.
//!
//! It never uses the alternate screen and never touches lines that have scrolled out of view, so the
//! terminal's scrollback stays the record of the conversation.

use super::text::{StyledLine, TextStyle};

/// Position of the terminal's cursor, counted in the live lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CursorPosition {
    /// Index of the live line, from 0.
    pub(crate) row: usize,
    /// Columns to its left.
    pub(crate) column: usize,
}

/// The lower part of the screen that is repainted.
#[derive(Debug, Default)]
pub(crate) struct ScreenPainter {
    /// Live lines that are on the screen now, top to bottom.
    shown: Vec<StyledLine>,
    /// Row of the terminal's cursor within `shown`.
    cursor_row: usize,
    /// Column of the terminal's cursor when the frame was painted.
    cursor_column: usize,
    columns: usize,
    rows: usize,
}

impl ScreenPainter {
    /// A painter for a terminal of this size whose cursor is at the start of an empty line.
    pub(crate) fn new(columns: u16, rows: u16) -> Self {
        let mut painter = Self::default();
        painter.resize(columns, rows);
        painter
    }

    /// The terminal has another size now. What was painted may have been reflowed: the next frame repaints all of it.
    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        (self.columns, self.rows) = (usize::from(columns).max(8), usize::from(rows).max(4));
    }

    /// Columns a line may take: the last one stays free, since terminals differ in what they do after filling it.
    pub(crate) fn columns(&self) -> usize {
        self.columns - 1
    }

    /// Lines of the screen.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The escape codes for one frame. `settled` are new lines that will never change; `live` replaces the live
    /// lines of the last frame. Both must be wrapped to [`Self::columns`]; what is too long is cut.
    ///
    /// Live lines never scroll away, since they could not be corrected there: of more than the screen holds the last
    /// are shown, and all of them when they settle.
    pub(crate) fn frame(
        &mut self,
        settled: Vec<StyledLine>,
        live: Vec<StyledLine>,
        cursor: Option<CursorPosition>,
    ) -> String {
        let settled_count = settled.len();
        let hidden = live.len().saturating_sub(self.rows - 1);
        let above = (hidden > 0).then(|| StyledLine::new(&format!("⋮ {}", hidden + 1), TextStyle::DIM));
        let visible = above.into_iter().chain(live.into_iter().skip(hidden + usize::from(hidden > 0)));
        let region: Vec<StyledLine> =
            settled.into_iter().chain(visible).map(|line| line.truncated(self.columns - 1)).collect();

        let unchanged = self.shown.iter().zip(&region).take_while(|(old, new)| old == new).count();
        let first = if self.reflowed() {
            0
        } else {
            // The last line that stays is repainted too: its end is where the cursor may be.
            unchanged.min(region.len().saturating_sub(1))
        };
        let nothing_to_do = unchanged == region.len() && unchanged == self.shown.len() && settled_count == 0;
        let mut out = String::new();
        if !nothing_to_do {
            self.go_to(first, &mut out);
            out.push_str("\x1b[J");
            for (at, line) in region[first..].iter().enumerate() {
                if at > 0 {
                    out.push_str("\r\n");
                }
                line.write_ansi(&mut out);
            }
            // A fresh line after settled text, for the next live line or the shell.
            if settled_count == region.len() && settled_count > 0 {
                out.push_str("\r\n");
            }
        }

        self.shown = region[settled_count..].to_vec();
        let mut row = if nothing_to_do { self.cursor_row } else { self.shown.len().saturating_sub(1) };
        if let Some(cursor) = cursor.filter(|_| !self.shown.is_empty()) {
            let target = cursor.row.saturating_sub(hidden).min(self.shown.len() - 1);
            move_rows(row, target, &mut out);
            out.push('\r');
            if cursor.column > 0 {
                out.push_str(&format!("\x1b[{}C", cursor.column));
            }
            row = target;
        }
        self.cursor_row = row;
        self.cursor_column = match cursor {
            Some(cursor) => cursor.column,
            None => self.shown.last().map_or(0, StyledLine::width),
        };
        if nothing_to_do && cursor.is_none() {
            return String::new();
        }
        // Synchronized output: terminals that support it show the whole frame, the others ignore it.
        match cursor {
            Some(_) => format!("\x1b[?2026h\x1b[?25l{out}\x1b[?25h\x1b[?2026l"),
            None => format!("\x1b[?2026h\x1b[?25l{out}\x1b[?2026l"),
        }
    }

    /// Takes the live lines off the screen.
    pub(crate) fn clear(&mut self) -> String {
        let mut out = String::new();
        self.go_to(0, &mut out);
        out.push_str("\x1b[J\x1b[?25h");
        self.shown.clear();
        (self.cursor_row, self.cursor_column) = (0, 0);
        out
    }

    /// True if a painted line no longer fits: the terminal has wrapped it.
    fn reflowed(&self) -> bool {
        self.shown.iter().any(|line| line.width() > self.columns)
    }

    /// Moves to the start of a painted line, counting rows as the terminal has wrapped them.
    fn go_to(&self, line: usize, out: &mut String) {
        let rows = |lines: &[StyledLine]| -> usize {
            lines.iter().map(|line| line.width().div_ceil(self.columns).max(1)).sum()
        };
        let line = line.min(self.shown.len());
        let below = self.cursor_row < line;
        if below {
            let down = rows(&self.shown[self.cursor_row..line.min(self.shown.len())]);
            if line == self.shown.len() && !self.shown.is_empty() {
                move_rows(0, down - 1, out);
                out.push_str("\r\n");
            } else {
                move_rows(0, down, out);
            }
        } else {
            let above = rows(&self.shown[line..self.cursor_row.min(self.shown.len())]);
            move_rows(above + self.cursor_column / self.columns, 0, out);
        }
        out.push('\r');
    }
}

fn move_rows(from: usize, to: usize, out: &mut String) {
    if from > to {
        out.push_str(&format!("\x1b[{}A", from - to));
    } else if to > from {
        out.push_str(&format!("\x1b[{}B", to - from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::virtual_screen::VirtualScreen;

    fn lines(texts: &[&str]) -> Vec<StyledLine> {
        texts.iter().map(|text| StyledLine::new(text, TextStyle::PLAIN)).collect()
    }

    struct Painted {
        painter: ScreenPainter,
        screen: VirtualScreen,
    }

    impl Painted {
        fn new(columns: u16, rows: u16) -> Self {
            Self {
                painter: ScreenPainter::new(columns, rows),
                screen: VirtualScreen::new(usize::from(columns), usize::from(rows)),
            }
        }

        #[track_caller]
        fn frame(&mut self, settled: &[&str], live: &[&str], expect: &[&str]) {
            let out = self.painter.frame(lines(settled), lines(live), None);
            self.screen.write(&out);
            assert_eq!(self.screen.lines(), expect);
        }
    }

    #[test]
    fn live_lines_are_replaced_and_settled_lines_stay() {
        let mut painted = Painted::new(20, 10);
        painted.frame(&[], &["a", "status"], &["a", "status"]);
        painted.frame(&[], &["ab", "status"], &["ab", "status"]);
        painted.frame(&["abc"], &["d", "status"], &["abc", "d", "status"]);
        painted.frame(&[], &["status"], &["abc", "status"]);
        painted.frame(&["d"], &[], &["abc", "d"]);
        painted.frame(&["e"], &["x"], &["abc", "d", "e", "x"]);
    }

    #[test]
    fn unchanged_frame_writes_nothing() {
        let mut painter = ScreenPainter::new(20, 10);
        assert!(!painter.frame(lines(&["a"]), lines(&["b"]), None).is_empty());
        assert_eq!(painter.frame(Vec::new(), lines(&["b"]), None), "");
    }

    #[test]
    fn only_changed_lines_are_repainted() {
        let mut painter = ScreenPainter::new(40, 10);
        painter.frame(Vec::new(), lines(&["first line", "second line", "spin 1"]), None);
        let out = painter.frame(Vec::new(), lines(&["first line", "second line", "spin 2"]), None);
        assert!(out.contains("spin 2") && !out.contains("second line"), "{out:?}");
    }

    #[test]
    fn live_lines_stay_on_screen_until_settled() {
        let mut painted = Painted::new(20, 5);
        painted.frame(&["0"], &["1", "2", "3"], &["0", "1", "2", "3"]);
        painted.frame(&[], &["1", "2", "3", "4", "5", "6"], &["0", "⋮ 3", "4", "5", "6"]);
        painted.frame(&[], &["1!", "2", "3", "4", "5", "6", "7"], &["0", "⋮ 4", "5", "6", "7"]);
        painted.frame(&["1!", "2", "3"], &["4", "5", "6", "7!"], &["0", "1!", "2", "3", "4", "5", "6", "7!"]);
        painted.frame(&["4", "5", "6", "7!"], &[], &["0", "1!", "2", "3", "4", "5", "6", "7!"]);
    }

    #[test]
    fn shorter_live_lines_replace_longer_ones() {
        let mut painted = Painted::new(20, 5);
        painted.frame(&[], &["?", "1", "2", "3", "4", "y/n"], &["⋮ 3", "3", "4", "y/n"]);
        painted.frame(&[], &["ok", "writing"], &["ok", "writing"]);
        painted.frame(&["ok"], &["text"], &["ok", "text"]);
    }

    #[test]
    fn cursor_is_placed_in_the_edited_line() {
        let mut painted = Painted::new(20, 10);
        let cursor = Some(CursorPosition { row: 1, column: 3 });
        let out = painted.painter.frame(lines(&["settled"]), lines(&["status", "> ab", "hint"]), cursor);
        painted.screen.write(&out);
        assert_eq!(painted.screen.cursor(), (2, 3));
        let out = painted.painter.frame(lines(&["more"]), lines(&["status", "> abc", "hint"]), cursor);
        painted.screen.write(&out);
        assert_eq!(painted.screen.lines(), ["settled", "more", "status", "> abc", "hint"]);
        assert_eq!(painted.screen.cursor(), (3, 3));
        painted.screen.write(&painted.painter.clear());
        assert_eq!(painted.screen.lines(), ["settled", "more"]);
    }

    #[test]
    fn narrower_terminal_is_repainted_without_leftovers() {
        let mut painted = Painted::new(20, 10);
        painted.frame(
            &["settled"],
            &["a line of 18 chars", "status"],
            &["settled", "a line of 18 chars", "status"],
        );
        painted.painter.resize(10, 10);
        painted.screen.resize(10);
        painted.frame(
            &[],
            &["a line of", "18 chars", "status"],
            &["settled", "a line of", "18 chars", "status"],
        );
        painted.painter.resize(20, 10);
        painted.screen.resize(20);
        painted.frame(&[], &["a line of 18 chars"], &["settled", "a line of 18 chars"]);
        painted.painter.resize(10, 10);
        painted.screen.resize(10);
        painted.frame(&[], &["status"], &["settled", "status"]);
    }
}
