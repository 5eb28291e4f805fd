//! A small terminal for tests: it understands what the painter writes and nothing else.

use super::text::width;
use unicode_segmentation::UnicodeSegmentation;

/// Rows of text with a cursor. Rows that scroll off are stored, as in a terminal's scrollback.
pub(crate) struct VirtualScreen {
    columns: usize,
    rows: usize,
    /// All rows ever printed; the last `rows` of them are on the screen.
    text: Vec<Vec<String>>,
    row: usize,
    column: usize,
}

impl VirtualScreen {
    /// An empty screen.
    pub(crate) fn new(columns: usize, rows: usize) -> Self {
        Self { columns, rows, text: vec![Vec::new()], row: 0, column: 0 }
    }

    /// Wraps what is wider than the new width, as current terminals do, and keeps the cursor at its text.
    pub(crate) fn resize(&mut self, columns: usize) {
        let mut text = Vec::new();
        let mut row = 0;
        for (at, line) in self.text.iter().enumerate() {
            let pieces: Vec<Vec<String>> = if line.is_empty() {
                vec![Vec::new()]
            } else {
                line.chunks(columns).map(<[String]>::to_vec).collect()
            };
            if at == self.row {
                row = text.len() + (self.column / columns).min(pieces.len() - 1);
            }
            text.extend(pieces);
        }
        (self.columns, self.text, self.row, self.column) = (columns, text, row, self.column % columns);
    }

    /// Takes output.
    pub(crate) fn write(&mut self, output: &str) {
        let mut rest = output;
        while let Some(grapheme) = rest.graphemes(true).next() {
            rest = &rest[grapheme.len()..];
            match grapheme {
                "\r\n" => {
                    self.column = 0;
                    self.line_feed();
                }
                "\r" => self.column = 0,
                "\n" => self.line_feed(),
                "\x1b" => rest = self.escape(rest),
                text => self.print(text),
            }
        }
    }

    /// Every row down to the last one with text, without trailing spaces.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.text.iter().map(|row| row.concat().trim_end().to_owned()).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }

    /// Row (scrollback counted) and column of the cursor.
    pub(crate) fn cursor(&self) -> (usize, usize) {
        (self.row, self.column)
    }

    fn top(&self) -> usize {
        self.text.len().saturating_sub(self.rows)
    }

    fn line_feed(&mut self) {
        self.row += 1;
        if self.row == self.text.len() {
            self.text.push(Vec::new());
        }
    }

    fn print(&mut self, text: &str) {
        assert!(self.column + width(text) <= self.columns, "the painter wrote over the right edge");
        let row = &mut self.text[self.row];
        row.resize_with(row.len().max(self.column + width(text)), || " ".to_owned());
        row[self.column] = text.to_owned();
        for filler in &mut row[self.column + 1..self.column + width(text)] {
            filler.clear();
        }
        self.column += width(text);
    }

    fn escape<'a>(&mut self, sequence: &'a str) -> &'a str {
        let body = sequence.strip_prefix('[').expect("only CSI sequences are written");
        let length = body.find(|char: char| char.is_ascii_alphabetic()).expect("a CSI sequence ends");
        let (parameters, rest) = body.split_at(length);
        let count = parameters.parse::<usize>().unwrap_or(1);
        match &rest[..1] {
            "A" => {
                assert!(self.row - count >= self.top(), "the painter went above the screen");
                self.row -= count;
            }
            "B" => {
                assert!(self.row + count < self.text.len(), "the painter went below what is painted");
                self.row += count;
            }
            "C" => self.column += count,
            "J" => {
                self.text.truncate(self.row + 1);
                self.text[self.row].truncate(self.column);
            }
            "m" | "h" | "l" => {}
            other => panic!("unknown sequence {parameters}{other}"),
        }
        &rest[1..]
    }
}
