//! Tables: columns as wide as their content, cells wrapped when the screen is not.

use crate::terminal::text::{StyledLine, TextStyle};

/// Narrowest a column is squeezed to, in columns of the screen.
const CELL_COLUMNS_MIN: usize = 4;

/// Alignment of a cell's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellAlignment {
    Left,
    Center,
    Right,
}

/// A table; the first row is its head.
pub(crate) struct MarkdownTable {
    pub(crate) alignments: Vec<CellAlignment>,
    pub(crate) rows: Vec<Vec<StyledLine>>,
}

impl MarkdownTable {
    /// Lines of at most `columns`; what cannot be squeezed is cut.
    pub(crate) fn render(&self, columns: usize) -> Vec<StyledLine> {
        let widths = self.widths(columns);
        let mut lines = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            lines.extend(self.row(row, &widths));
            if at == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
                lines.push(StyledLine::new(&rule.join("┼"), TextStyle::DIM));
            }
        }
        lines.iter().map(|line| line.truncated(columns)).collect()
    }

    /// Natural widths, the widest made narrower until all fit.
    fn widths(&self, columns: usize) -> Vec<usize> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cell = |row: &Vec<StyledLine>, at: usize| row.get(at).map_or(0, StyledLine::width);
        let natural = |at: usize| self.rows.iter().map(|row| cell(row, at)).max().unwrap_or(0).max(1);
        let mut widths: Vec<usize> = (0..count).map(natural).collect();
        let room = columns.saturating_sub(count * 3 - usize::from(count > 0));
        while widths.iter().sum::<usize>() > room {
            match widths.iter_mut().filter(|width| **width > CELL_COLUMNS_MIN).max_by_key(|width| **width) {
                Some(widest) => *widest -= 1,
                None => break,
            }
        }
        widths
    }

    fn row(&self, cells: &[StyledLine], widths: &[usize]) -> Vec<StyledLine> {
        let empty = StyledLine::default();
        let wrapped: Vec<Vec<StyledLine>> = widths
            .iter()
            .enumerate()
            .map(|(at, width)| cells.get(at).unwrap_or(&empty).wrapped(*width))
            .collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
        (0..height)
            .map(|row| {
                let mut line = StyledLine::default();
                for (at, width) in widths.iter().enumerate() {
                    if at > 0 {
                        line.push("│", TextStyle::DIM);
                    }
                    let cell = wrapped[at].get(row).unwrap_or(&empty);
                    let space = width.saturating_sub(cell.width());
                    let left = match self.alignments.get(at).copied().unwrap_or(CellAlignment::Left) {
                        CellAlignment::Left => 0,
                        CellAlignment::Center => space / 2,
                        CellAlignment::Right => space,
                    };
                    line.push(&" ".repeat(1 + left), TextStyle::PLAIN);
                    line = cell.after(&line);
                    line.push(&" ".repeat(space - left + 1), TextStyle::PLAIN);
                }
                line
            })
            .collect()
    }
}
