//! Styled lines: their width in columns, wrapping, and escape codes.

use throughline_wire::display_escape;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Colors of the terminal's own palette, so that a person's theme applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TextColor {
    /// The terminal's text color.
    #[default]
    Plain,
    /// Failures.
    Red,
    /// Successes.
    Green,
    /// Waiting for the user.
    Yellow,
    /// Headings and the prompt.
    Magenta,
    /// Code, names and activity.
    Cyan,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextStyle {
    pub(crate) ink: TextColor,
    /// Heavier.
    pub(crate) bold: bool,
    /// Fainter.
    pub(crate) dim: bool,
    /// Slanted.
    pub(crate) italic: bool,
    pub(crate) underline: bool,
    /// Struck through.
    pub(crate) strike: bool,
}

impl TextStyle {
    /// The terminal's default.
    pub(crate) const PLAIN: TextStyle = TextStyle {
        ink: TextColor::Plain,
        bold: false,
        dim: false,
        italic: false,
        underline: false,
        strike: false,
    };
    /// Fainter: secondary text.
    pub(crate) const DIM: TextStyle = TextStyle { dim: true, ..TextStyle::PLAIN };
    /// Heavier: names.
    pub(crate) const BOLD: TextStyle = TextStyle { bold: true, ..TextStyle::PLAIN };

    pub(crate) const fn ink(ink: TextColor) -> TextStyle {
        TextStyle { ink, ..TextStyle::PLAIN }
    }

    /// A bold style in a color.
    pub(crate) const fn bold_ink(ink: TextColor) -> TextStyle {
        TextStyle { ink, bold: true, ..TextStyle::PLAIN }
    }
}

/// A piece of text in one style, without line breaks or control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StyledSpan {
    pub(crate) text: String,
    /// Style of the text.
    pub(crate) style: TextStyle,
}

/// One line, either unwrapped or fitted to a width.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StyledLine(pub(crate) Vec<StyledSpan>);

impl StyledLine {
    /// A line in one style. Invisible characters are spelled out, and control characters of models and tools
    /// cannot affect the terminal.
    pub(crate) fn new(text: &str, style: TextStyle) -> Self {
        let mut line = StyledLine::default();
        line.push(text, style);
        line
    }

    /// Appends text, joining it to the last span if that looks the same.
    pub(crate) fn push(&mut self, text: &str, style: TextStyle) {
        if text.is_empty() {
            return;
        }
        let text = escape_controls(text);
        match self.0.last_mut() {
            Some(last) if last.style == style => last.text.push_str(&text),
            _ => self.0.push(StyledSpan { text, style }),
        }
    }

    /// The line after other spans.
    pub(crate) fn after(&self, head: &StyledLine) -> StyledLine {
        let mut line = head.clone();
        for span in &self.0 {
            line.push(&span.text, span.style);
        }
        line
    }

    /// Columns it takes.
    pub(crate) fn width(&self) -> usize {
        self.0.iter().map(|span| width(&span.text)).sum()
    }

    /// The text alone.
    pub(crate) fn plain(&self) -> String {
        self.0.iter().map(|span| span.text.as_str()).collect()
    }

    /// Appends the line with its escape codes; every line begins and ends in the plain style.
    pub(crate) fn write_ansi(&self, out: &mut String) {
        for span in &self.0 {
            let TextStyle { ink, bold, dim, italic, underline, strike } = span.style;
            let color = match ink {
                TextColor::Plain => "",
                TextColor::Red => "31",
                TextColor::Green => "32",
                TextColor::Yellow => "33",
                TextColor::Magenta => "35",
                TextColor::Cyan => "36",
            };
            let flags = [(bold, "1"), (dim, "2"), (italic, "3"), (underline, "4"), (strike, "9")];
            let codes: Vec<&str> = flags.iter().filter(|(on, _)| *on).map(|(_, code)| *code).collect();
            let codes =
                codes.into_iter().chain(Some(color).filter(|code| !code.is_empty())).collect::<Vec<_>>();
            if codes.is_empty() {
                out.push_str(&span.text);
            } else {
                out.push_str("\x1b[");
                out.push_str(&codes.join(";"));
                out.push('m');
                out.push_str(&span.text);
                out.push_str("\x1b[0m");
            }
        }
    }

    /// Cut to `columns`, with an ellipsis where something is missing.
    pub(crate) fn truncated(&self, columns: usize) -> StyledLine {
        if self.width() <= columns {
            return self.clone();
        }
        let mut line = StyledLine::default();
        let mut used = 0;
        for span in &self.0 {
            for grapheme in span.text.graphemes(true) {
                if used + width(grapheme) > columns.saturating_sub(1) {
                    line.push("…", span.style);
                    return line;
                }
                used += width(grapheme);
                line.push(grapheme, span.style);
            }
        }
        line
    }

    /// Wraps into lines of at most `columns`: at spaces, between wide characters, and inside a word only if
    /// the word alone is too long.
    pub(crate) fn wrapped(&self, columns: usize) -> Vec<StyledLine> {
        let columns = columns.max(2);
        if self.width() <= columns {
            return vec![self.clone()];
        }
        let cells: Vec<(&str, TextStyle)> =
            self.0.iter().flat_map(|span| span.text.graphemes(true).map(|cell| (cell, span.style))).collect();
        let mut lines = Vec::new();
        let mut start = 0;
        while start < cells.len() {
            let end = line_end(&cells, start, columns);
            let mut line = StyledLine::default();
            let shown = (start..end).rev().find(|at| cells[*at].0 != " ").map_or(start, |at| at + 1);
            for (cell, style) in &cells[start..shown] {
                line.push(cell, *style);
            }
            lines.push(line);
            start = end;
            while start < cells.len() && cells[start].0 == " " {
                start += 1;
            }
        }
        lines
    }
}

/// End of the line that begins at `start`.
fn line_end(cells: &[(&str, TextStyle)], start: usize, columns: usize) -> usize {
    let mut used = 0;
    let mut may_break = start;
    for at in start..cells.len() {
        let cell = cells[at].0;
        if at > start && can_break(cells[at - 1].0, cell) {
            may_break = at;
        }
        used += width(cell);
        if used > columns && cell != " " {
            return if may_break > start { may_break } else { at.max(start + 1) };
        }
    }
    cells.len()
}

/// False before closing punctuation and after opening brackets (the simple half of JIS X 4051).
fn can_break(before: &str, after: &str) -> bool {
    const CLOSING: &str = "，。！？、；：）」』】》〉”’…,.!?;:)]}%";
    const OPENING: &str = "（「『【《〈“‘([{";
    if before == " " {
        return after != " ";
    }
    let joined = CLOSING.contains(after) || OPENING.contains(before);
    !joined && (width(before) > 1 || width(after) > 1)
}

/// Columns a text takes on a terminal.
pub(crate) fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// The text padded with spaces to this many columns.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// A line of a text for the terminal: text from outside must not move the cursor, set a title or reverse the
/// surrounding text.
pub(crate) fn escape_controls(text: &str) -> String {
    display_escape::escape_piece(text).replace('\t', "    ").replace('\n', "\\n").replace('\r', "\\r")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, columns: usize) -> Vec<String> {
        StyledLine::new(text, TextStyle::PLAIN).wrapped(columns).iter().map(StyledLine::plain).collect()
    }

    #[test]
    fn words_wrap_at_spaces_and_wide_characters_anywhere() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("one  two", 4), ["one", "two"]);
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("北京今天晴", 6), ["北京今", "天晴"]);
        assert_eq!(wrapped("今天的天气，晴", 10), ["今天的天", "气，晴"]);
        assert_eq!(wrapped("go 到北京", 5), ["go 到", "北京"]);
        assert_eq!(wrapped("", 5), [""]);
    }

    #[test]
    fn wrapped_lines_fit_the_given_width() {
        for columns in 2..30 {
            for line in wrapped("The 北京 weather，(today) is 👩‍👩‍👧 fine; a-very-long-word-indeed 。", columns)
            {
                assert!(width(&line) <= columns, "{columns}: {line:?}");
            }
        }
    }

    #[test]
    fn truncated_line_ends_with_an_ellipsis() {
        assert_eq!(StyledLine::new("abcdef", TextStyle::PLAIN).truncated(4).plain(), "abc…");
        assert_eq!(StyledLine::new("北京天气", TextStyle::PLAIN).truncated(5).plain(), "北京…");
        assert_eq!(StyledLine::new("abcd", TextStyle::PLAIN).truncated(4).plain(), "abcd");
    }

    #[test]
    fn terminal_control_characters_are_escaped() {
        assert_eq!(
            StyledLine::new("a\x1b]0;title\x07\u{9b}2J\tb", TextStyle::PLAIN).plain(),
            "a\\u001b]0;title\\u0007\\u009b2J    b"
        );
        assert_eq!(StyledLine::new("a\nb\r\u{202e}c", TextStyle::PLAIN).plain(), "a\\nb\\u000d\\u202ec");
    }

    #[test]
    fn escape_codes_wrap_each_styled_span() {
        let mut line = StyledLine::new("a", TextStyle::PLAIN);
        line.push("b", TextStyle::bold_ink(TextColor::Red));
        line.push("c", TextStyle::bold_ink(TextColor::Red));
        let mut out = String::new();
        line.write_ansi(&mut out);
        assert_eq!(out, "a\x1b[1;31mbc\x1b[0m");
    }
}
