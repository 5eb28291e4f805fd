//! Runs of backticks and tildes: fenced blocks and inline code.

use super::QuotationReader;
use super::line_start::INDENT_MAX;
use super::state::{LineLead, LineShape, MarkRun, OpenFence, TextZone};

impl QuotationReader {
    pub(super) fn push_fence(&mut self, text: &str) -> usize {
        let bytes = text.as_bytes();
        if self.line.lead == LineLead::Text
            && self.run.is_none()
            && !self.line.closes
            && self.line.opens.is_none()
        {
            let Some(newline) = memchr::memchr(b'\n', bytes) else { return bytes.len() };
            if newline > 0 {
                return newline;
            }
        }
        let Some(character) = text.chars().next() else { return 0 };
        match character {
            '`' | '~' => self.push_mark(character),
            '\n' => self.end_line(),
            ' ' | '\t' | '\r' => {
                self.finish_run();
                self.indent(character);
            }
            _ => {
                self.finish_run();
                (self.line.closes, self.line.lead) = (false, LineLead::Text);
            }
        }
        character.len_utf8()
    }

    pub(super) fn push_mark(&mut self, mark: char) {
        if let Some(run) = self.run.as_mut().filter(|run| run.mark == mark) {
            run.length += 1;
            return;
        }
        self.finish_run();
        let (is_first, column) = (self.line.lead == LineLead::Indent, self.line.column);
        let inside = match (self.line.item, self.list) {
            (Some(marker_end), _) => column <= marker_end + INDENT_MAX + 1,
            (None, Some(content)) if column >= content => column <= content + INDENT_MAX,
            (None, Some(_)) => true,
            (None, None) => column <= INDENT_MAX,
        };
        let leads = match self.zone {
            // The indentation of what closes a fence is judged there.
            TextZone::Fence(_) => is_first,
            _ => is_first && inside,
        };
        if matches!(self.zone, TextZone::Page) {
            if self.line.lead != LineLead::Text {
                self.begin_text();
            }
            self.line.shape = LineShape { only_rule: false, only_delimiters: false, ..self.line.shape };
            self.comment_mark = None;
        } else {
            self.line.lead = LineLead::Text;
        }
        self.run = Some(MarkRun { mark, length: 1, leads, column });
    }

    pub(super) fn finish_run(&mut self) {
        let Some(MarkRun { mark, length, leads, column }) = self.run.take() else { return };
        match self.zone {
            TextZone::Fence(fence) => {
                if !leads || length < 3 {
                    return;
                }
                if column < fence.column {
                    // For CommonMark the list item has ended and this opens a fence; others close with it. It stays code.
                    self.line.opens = Some(OpenFence { mark, length, column: 0 });
                } else {
                    self.line.closes =
                        mark == fence.mark && length >= fence.length && column <= fence.column + INDENT_MAX;
                }
            }
            TextZone::Until(_) => {}
            // In a quotation and in indented code, marks are part of the shown text.
            TextZone::Page if self.line.quoted || self.line.indented => {}
            TextZone::Page if leads && length >= 3 => {
                let content = self.list.filter(|content| column >= *content).unwrap_or_default();
                self.line.opens = Some(OpenFence { mark, length, column: content });
                if mark == '`' {
                    self.open_code(length);
                }
            }
            TextZone::Page if mark == '`' => {
                // ```` ```a``` ```` on one line is inline code.
                self.line.opens = self.line.opens.filter(|fence| fence.mark != '`');
                match self.code {
                    0 => {
                        let start = self.offset - length;
                        if self.spans.as_ref().is_none_or(|spans| spans.end_of(start).is_some()) {
                            self.open_code(length);
                        }
                    }
                    open if open == length => self.code = 0,
                    _ => {}
                }
            }
            TextZone::Page => {}
        }
    }

    pub(super) fn open_code(&mut self, length: usize) {
        self.code = length;
        self.quote_without_code = self.quote;
    }
}
