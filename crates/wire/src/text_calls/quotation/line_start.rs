//! The beginning of a line: indentation, list items, quotations, comments and table rows.

use super::regions::RegionExtent;
use super::state::LineLead;
use super::{QuotationReader, is_blank};
use crate::text_calls::protocol::FindingKind;

/// Deepest indentation of a fence, in columns relative to its container.
pub(super) const INDENT_MAX: usize = 3;

impl QuotationReader {
    pub(super) fn take_shape(&mut self, character: char) {
        let shape = &mut self.line.shape;
        let is_blank = is_blank(character);
        shape.only_rule &= is_blank || matches!(character, '=' | '-' | '*' | '_');
        shape.only_delimiters &= is_blank || matches!(character, '|' | '-' | ':' | '+');
        shape.has_dash |= character == '-';
        shape.has_bar |= character == '|';
    }

    pub(super) fn indent(&mut self, character: char) {
        match character {
            '\t' => self.line.column += 4 - self.line.column % 4,
            ' ' => self.line.column += 1,
            _ => {}
        }
    }

    pub(super) fn push_lead(&mut self, character: char) {
        match (self.line.lead, character) {
            (LineLead::Indent, character) if is_blank(character) => self.indent(character),
            (LineLead::Indent, _) => self.push_first(character),
            (LineLead::Bullet(_) | LineLead::Number, character) if is_blank(character) => {
                self.begin_item();
                self.indent(character);
            }
            (LineLead::Bullet('-'), '-') => self.line.lead = LineLead::Dashes,
            (LineLead::Digits(count @ 1..9), '0'..='9') => {
                self.line.column += 1;
                self.line.lead = LineLead::Digits(count + 1);
            }
            (LineLead::Digits(_), '.' | ')') => {
                self.line.column += 1;
                self.line.lead = LineLead::Number;
            }
            (LineLead::Dashes, character) if is_blank(character) => {
                self.begin_text();
                self.line.comment = true;
            }
            (LineLead::Slash, '/') => {
                self.begin_text();
                self.line.comment = true;
            }
            (LineLead::Slash, '*') => {
                self.begin_text();
                self.begin_region("*/", FindingKind::InComment, RegionExtent::Text);
            }
            _ => {
                self.begin_text();
                self.push_text(character);
            }
        }
    }

    /// The first character of a line, or of a list item, that can be seen.
    pub(super) fn push_first(&mut self, character: char) {
        self.begin_visible();
        match character {
            '-' | '*' | '+' => {
                self.line.column += 1;
                self.line.lead = LineLead::Bullet(character);
            }
            '0'..='9' => {
                self.line.column += 1;
                self.line.lead = LineLead::Digits(1);
            }
            '/' => self.line.lead = LineLead::Slash,
            _ => {
                self.begin_text();
                match character {
                    '>' => self.line.quoted = true,
                    '|' => self.line.row = true,
                    '#' => self.line.heading = true,
                    '%' | ';' => self.line.comment = true,
                    _ => self.push_text(character),
                }
                if let Some(tag) = &mut self.tag {
                    tag.starts_line = self.line.item.is_none();
                }
            }
        }
    }

    /// The first that can be seen on this line, or in its list item, begins here.
    pub(super) fn begin_visible(&mut self) {
        if self.line.lead == LineLead::Indent && self.line.item.is_none() {
            self.line.indentation = self.line.column;
            self.line.indented |= self.is_code_indentation();
        }
    }

    /// Text begins here, and no list item.
    pub(super) fn begin_text(&mut self) {
        self.begin_visible();
        self.line.continues_quotation |= self.continues_quotation && self.line.item.is_none();
        if self.line.item.is_none() && self.line.indentation == 0 {
            self.list = None;
        }
        if let Some(marker_end) = self.line.item
            && self.line.lead == LineLead::Indent
            && !self.line.indented
        {
            let spaces = self.line.column - marker_end;
            self.list = Some(if spaces > INDENT_MAX + 1 { marker_end + 1 } else { self.line.column });
        }
        self.line.lead = LineLead::Text;
    }

    pub(super) fn begin_item(&mut self) {
        self.end_paragraph();
        self.line.item = Some(self.line.column);
        if !self.line.indented {
            self.list = Some(self.line.column + 1);
        }
        self.line.lead = LineLead::Indent;
    }

    /// True for code by indentation: an indented line that continues no paragraph. In a list, every indented
    /// line belongs to it.
    pub(super) fn is_code_indentation(&self) -> bool {
        self.line.item.is_none()
            && self.list.is_none()
            && !self.continues_paragraph
            && self.line.column > INDENT_MAX
    }
}
