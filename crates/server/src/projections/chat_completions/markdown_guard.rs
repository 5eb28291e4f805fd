//! A model's text before a question, changed so that no Markdown or HTML renderer hides, folds or restyles
//! the question.
//!
//! Renderers disagree about what is code, mathematics or HTML, so the text leaves no room for it: fences are
//! at the beginning of a line, followed by a language only, and are closed; anything else that could begin a
//! tag, a container, a footnote or a definition is escaped. A text that only some renderers treat as code is
//! treated as prose. The text arrives in pieces, and only an undecided end is held back: a run of marks, a
//! code span, the line of a fence.

use super::markdown_line::{
    LINE_BYTES_MAX, LineEnd, LineLead, TextEnd, blank_length, columns, is_blank, line_within, run_length,
    with_line_end,
};
use super::markdown_marks::{begins_tag, folds, harmless_code, harmless_maths, harmless_prose, tag_length};

/// Longest code span, in bytes: what is longer is prose.
const SPAN_BYTES_MAX: usize = 400;
/// White space in front of a line, in bytes: what is more is left out.
const INDENT_BYTES_MAX: usize = 80;
/// Empty lines in a row.
const BLANK_LINES_MAX: usize = 2;
const BLANK_CODE_LINES_MAX: usize = 20;

/// A text of a model, made harmless as it comes.
#[derive(Clone, Debug, Default)]
pub(super) struct MarkdownGuard {
    /// Text that is not decided yet.
    pending: String,
    after_carriage_return: bool,
    zone: MarkdownZone,
    is_mid_line: bool,
    blank_lines: usize,
    /// A renderer may pair backticks of this paragraph in another way, until an empty line ends it.
    has_doubtful_code: bool,
    /// Between two `$` of a line, or `\(` and `\)`.
    in_dollars: bool,
    in_brackets: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum MarkdownZone {
    #[default]
    Prose,
    Code(OpenFence),
    /// Between two lines of `$$`.
    Maths(Formula),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Formula {
    /// Nothing of it has been sent: some renderers look for the end of an empty formula elsewhere.
    Empty,
    Begun,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpenFence {
    mark: char,
    length: usize,
    /// Columns in front of it, which its lines have as well.
    indent: usize,
}

impl OpenFence {
    fn line(self) -> String {
        self.mark.to_string().repeat(self.length)
    }
}

impl MarkdownGuard {
    /// The next piece, as far as it is decided.
    pub(super) fn push(&mut self, text: &str) -> String {
        let mut pending = std::mem::take(&mut self.pending);
        pending.extend(text.chars().filter_map(|char| self.clean(char)));
        let mut out = String::new();
        let consumed = self.advance(&pending, TextEnd::Open, &mut out);
        pending.drain(..consumed);
        self.pending = pending;
        out
    }

    /// The text is over: the rest of it, and what closes its last fence.
    pub(super) fn finish(&mut self) -> String {
        let pending = std::mem::take(&mut self.pending);
        let mut out = String::new();
        self.advance(&pending, TextEnd::Final, &mut out);
        let closing = match self.zone {
            MarkdownZone::Prose | MarkdownZone::Maths(Formula::Empty) => None,
            MarkdownZone::Code(fence) => Some(fence.line()),
            MarkdownZone::Maths(Formula::Begun) => Some("$$".to_owned()),
        };
        if let Some(closing) = closing {
            if self.is_mid_line {
                out.push('\n');
            }
            out.push_str(&closing);
        }
        *self = Self::default();
        out
    }

    /// Normalizes line ends and drops other control characters: renderers do so at different stages, which
    /// joins the text around a dropped character.
    fn clean(&mut self, char: char) -> Option<char> {
        let follows_return = std::mem::replace(&mut self.after_carriage_return, char == '\r');
        match char {
            '\n' if follows_return => None,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Some('\n'),
            '\t' => Some('\t'),
            char if char.is_control() => None,
            char => Some(char),
        }
    }

    /// Takes what is decided; its length.
    fn advance(&mut self, text: &str, end: TextEnd, out: &mut String) -> usize {
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let taken = match (self.zone, self.is_mid_line) {
                (MarkdownZone::Prose, false) => self.begin_line(rest, end, out),
                (MarkdownZone::Prose, true) => self.go_on_with_line(rest, end, out),
                (MarkdownZone::Code(fence), false) => self.begin_code_line(rest, fence, end, out),
                (MarkdownZone::Code(_), true) => self.go_on_with_code(rest, end, out),
                (MarkdownZone::Maths(formula), _) => self.maths_line(rest, formula, end, out),
            };
            let Some(taken) = taken else { break };
            at += taken;
        }
        at
    }

    // --- prose ---

    /// Decides what a line begins with.
    fn begin_line(&mut self, rest: &str, end: TextEnd, out: &mut String) -> Option<usize> {
        let indent = blank_length(rest);
        match self.blank_line(rest, indent, BLANK_LINES_MAX, end, out) {
            BlankLine::Taken(taken) => return Some(taken),
            BlankLine::Open => return None,
            BlankLine::No => {}
        }
        let lead = LineLead::read(rest, indent, end)?;
        let body = &rest[lead.length..];
        let taken = match body.chars().next() {
            Some(mark @ ('`' | '~')) if run_length(body, mark) >= 3 => {
                return self.fence(rest, &lead, mark, end, out);
            }
            Some('$') if body.starts_with("$$") => return self.begin_maths(rest, &lead, end, out),
            Some('$') if body == "$" && end == TextEnd::Open => return None,
            // Some renderers take it for a `$$`.
            Some('$') if body == "$" || body.starts_with("$\n") => {
                self.begin_text(rest, &lead, out);
                out.push_str("&#36;");
                1
            }
            // Containers and blocks of extensions: what is open at the end reaches to it.
            Some(mark @ (':' | '/')) if run_length(body, mark) >= 3 => {
                self.begin_text(rest, &lead, out);
                out.push_str(if mark == ':' { "&#58;" } else { "&#47;" });
                1
            }
            _ => {
                self.begin_text(rest, &lead, out);
                0
            }
        };
        Some(lead.length + taken)
    }

    /// A line with nothing on it, if it is one.
    fn blank_line(
        &mut self,
        rest: &str,
        indent: usize,
        lines_max: usize,
        end: TextEnd,
        out: &mut String,
    ) -> BlankLine {
        if indent > LINE_BYTES_MAX {
            return BlankLine::Taken(rest.floor_char_boundary(LINE_BYTES_MAX));
        }
        match rest[indent..].chars().next() {
            Some('\n') => {
                if self.blank_lines < lines_max {
                    out.push('\n');
                }
                self.blank_lines += 1;
                self.has_doubtful_code = false;
                self.in_brackets = false;
                BlankLine::Taken(indent + 1)
            }
            Some(_) => BlankLine::No,
            None if end == TextEnd::Final => BlankLine::Taken(indent),
            None => BlankLine::Open,
        }
    }

    /// The line is text: what it begins with is sent.
    fn begin_text(&mut self, rest: &str, lead: &LineLead, out: &mut String) {
        let blank = &rest[..lead.indent];
        out.push_str(&blank[..blank.floor_char_boundary(INDENT_BYTES_MAX)]);
        out.push_str(&rest[lead.indent..lead.length]);
        self.is_mid_line = true;
        self.blank_lines = 0;
        self.in_dollars = false;
    }

    /// Begins a block at the beginning of a line. The mark of a list item stays before it.
    fn begin_block(&mut self, rest: &str, lead: &LineLead, out: &mut String) {
        let mark = rest[lead.indent..lead.length].trim_end();
        if !mark.is_empty() {
            self.begin_text(rest, lead, out);
            out.truncate(out.trim_end_matches([' ', '\t']).len());
            out.push_str("\n\n");
        }
        self.is_mid_line = false;
        self.blank_lines = 0;
    }

    /// A line that begins with marks of a fence.
    fn fence(
        &mut self,
        rest: &str,
        lead: &LineLead,
        mark: char,
        end: TextEnd,
        out: &mut String,
    ) -> Option<usize> {
        let body = &rest[lead.length..];
        let (line, line_end) = line_within(body, LINE_BYTES_MAX, end);
        let length = run_length(line, mark);
        match line_end {
            LineEnd::Open => return None,
            // Its kind is unknown, so it is escaped as neither a fence nor code.
            LineEnd::TooLong => {
                self.begin_text(rest, lead, out);
                out.push_str(&if mark == '`' { "&#96;" } else { "&#126;" }.repeat(length));
                self.has_doubtful_code = true;
                return Some(lead.length + length);
            }
            LineEnd::Whole => {}
        }
        let info = &line[length..];
        if mark == '`' && info.contains('`') {
            self.begin_text(rest, lead, out);
            return Some(lead.length);
        }
        self.begin_block(rest, lead, out);
        let fence = OpenFence { mark, length, indent: lead.columns };
        out.push_str(&fence.line());
        // Python-Markdown accepts no fence with more than a language.
        let is_language = |char: char| char.is_ascii_alphanumeric() || "_#.+-".contains(char);
        let info = info.trim();
        out.push_str(&info[..info.find(|char| !is_language(char)).unwrap_or(info.len())]);
        out.push('\n');
        self.zone = MarkdownZone::Code(fence);
        self.has_doubtful_code = false;
        Some(lead.length + with_line_end(body, line.len()))
    }

    /// A line that begins with `$$`.
    fn begin_maths(&mut self, rest: &str, lead: &LineLead, end: TextEnd, out: &mut String) -> Option<usize> {
        let body = &rest[lead.length..];
        let (line, line_end) = line_within(body, LINE_BYTES_MAX, end);
        let open = run_length(line, '$');
        let inside = &line[open..];
        if let Some(close) = inside.find("$$") {
            let marks = run_length(&inside[close..], '$');
            if line_end == LineEnd::Open && inside[close + marks..].chars().all(is_blank) {
                return None;
            }
            self.begin_block(rest, lead, out);
            let formula = &inside[..close];
            self.has_doubtful_code |= formula.contains('`');
            out.push_str(&format!("$${}$$\n", harmless_maths(formula)));
            // The rest of the line is put on a new line: a renderer may look for the end of the formula
            // there.
            return Some(lead.length + with_line_end(body, open + close + marks));
        }
        match line_end {
            LineEnd::Open => None,
            LineEnd::TooLong => {
                self.begin_text(rest, lead, out);
                out.push_str("&#36;&#36;");
                Some(lead.length + open)
            }
            LineEnd::Whole => {
                self.begin_block(rest, lead, out);
                self.zone = MarkdownZone::Maths(Formula::Empty);
                Some(lead.length + with_line_end(body, open))
            }
        }
    }

    fn go_on_with_line(&mut self, rest: &str, end: TextEnd, out: &mut String) -> Option<usize> {
        let special = ['\n', '\\', '<', '`', '$', '[', ']', '◁'];
        let plain = rest.find(special).unwrap_or(rest.len());
        if plain > 0 {
            out.push_str(&rest[..plain]);
            return Some(plain);
        }
        let mut chars = rest.chars();
        let (char, next) = (chars.next()?, chars.next());
        if next.is_none() && end == TextEnd::Open && matches!(char, '\\' | '<' | '[' | ']') {
            return None;
        }
        match (char, next) {
            ('\n', _) => {
                out.push('\n');
                self.is_mid_line = false;
                return Some(1);
            }
            // CommonMark reads a `<`; Python-Markdown would read a backslash and a tag.
            ('\\', Some('<')) => {
                out.push_str("&lt;");
                return Some(2);
            }
            ('\\', Some(next @ ('\\' | '`' | '(' | ')' | '[' | ']' | '$'))) => {
                match next {
                    '`' => self.has_doubtful_code = true,
                    '(' | '[' => self.in_brackets = true,
                    ')' | ']' => self.in_brackets = false,
                    _ => {}
                }
                out.extend([char, next]);
                return Some(2);
            }
            ('<', next) if begins_tag(next) => {
                let in_maths = self.in_dollars || self.in_brackets;
                out.push_str(if in_maths { "< " } else { "&lt;" });
            }
            ('`', _) => return self.code_span(rest, end, out),
            ('$', _) => {
                self.in_dollars = !self.in_dollars;
                out.push('$');
            }
            // A footnote is drawn at the end of the page, after the question.
            ('[', Some('^')) => {
                out.push_str("[&#94;");
                return Some(2);
            }
            // A definition of a link or an abbreviation. Some renderers look for its address or title in the
            // following text, fences included, and an abbreviation restyles its words everywhere.
            (']', Some(':')) => {
                out.push_str("]&#58;");
                return Some(2);
            }
            (']', Some(' ')) if rest.len() == 2 && end == TextEnd::Open => return None,
            (']', Some(' ')) if rest.starts_with("] :") => {
                out.push_str("] &#58;");
                return Some(3);
            }
            ('◁', _) => out.push_str("◁ "),
            (char, _) => out.push(char),
        }
        Some(char.len_utf8())
    }

    /// A run of backticks, and the code after it if the same line closes it.
    fn code_span(&mut self, rest: &str, end: TextEnd, out: &mut String) -> Option<usize> {
        let (line, line_end) = line_within(rest, SPAN_BYTES_MAX, end);
        let waits = line_end == LineEnd::Open;
        let length = run_length(line, '`');
        let mut from = length;
        let close = loop {
            let Some(at) = line[from..].find('`').map(|at| from + at) else { break None };
            let run = run_length(&line[at..], '`');
            // A run at the end may be longer.
            if at + run == line.len() && line_end != LineEnd::Whole {
                break None;
            }
            if run == length {
                break Some(at);
            }
            from = at + run;
        };
        let Some(close) = close else {
            if waits {
                return None;
            }
            // They are not closed: they are text, and later ones may pair with them.
            self.has_doubtful_code = true;
            out.push_str(&line[..length]);
            return Some(length);
        };
        let (marks, code) = (&line[..length], &line[length..close]);
        // A table ends its cells at every `|`, code or not.
        self.has_doubtful_code |= code.contains('|');
        let code = if self.has_doubtful_code { harmless_prose(code) } else { harmless_code(code) };
        out.extend([marks, &code, marks]);
        Some(close + length)
    }

    // --- code ---

    fn begin_code_line(
        &mut self,
        rest: &str,
        fence: OpenFence,
        end: TextEnd,
        out: &mut String,
    ) -> Option<usize> {
        let indent = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        match self.blank_line(rest, indent, BLANK_CODE_LINES_MAX, end, out) {
            BlankLine::Taken(taken) => return Some(taken),
            BlankLine::Open => return None,
            BlankLine::No => {}
        }
        let (line, line_end) = line_within(&rest[indent..], LINE_BYTES_MAX, end);
        let marks = run_length(line, fence.mark);
        let may_close = marks >= fence.length && columns(&rest[..indent]) <= fence.indent + 3;
        if line_end == LineEnd::Open
            && (marks == line.len() || may_close && line[marks..].chars().all(is_blank))
        {
            return None;
        }
        if may_close && line[marks..].chars().all(is_blank) {
            out.extend([&fence.line(), "\n"]);
            self.zone = MarkdownZone::Prose;
            self.blank_lines = 0;
            return Some(indent + with_line_end(&rest[indent..], marks));
        }
        // Without the columns that the fence had.
        let own = rest[..indent].char_indices().map(|(at, _)| at).chain([indent]);
        let own = own.take_while(|at| columns(&rest[..*at]) <= fence.indent).last().unwrap_or(0);
        out.push_str(&rest[own..indent]);
        self.is_mid_line = true;
        self.blank_lines = 0;
        Some(indent)
    }

    fn go_on_with_code(&mut self, rest: &str, end: TextEnd, out: &mut String) -> Option<usize> {
        let plain = rest.find(['\n', '<', '◁']).unwrap_or(rest.len());
        if plain > 0 {
            out.push_str(&rest[..plain]);
            return Some(plain);
        }
        if rest.starts_with('\n') {
            out.push('\n');
            self.is_mid_line = false;
            return Some(1);
        }
        if rest.starts_with('<') && end == TextEnd::Open && tag_length(rest) == rest.len() {
            return None;
        }
        let taken = rest.chars().next()?.len_utf8();
        out.push_str(&rest[..taken]);
        if folds(rest) {
            out.push(' ');
        }
        Some(taken)
    }

    // --- mathematics ---

    fn maths_line(&mut self, rest: &str, formula: Formula, end: TextEnd, out: &mut String) -> Option<usize> {
        let indent = blank_length(rest);
        match self.blank_line(rest, indent, BLANK_LINES_MAX, end, out) {
            BlankLine::Taken(taken) => return Some(taken),
            BlankLine::Open => return None,
            BlankLine::No => {}
        }
        let body = &rest[indent..];
        let (line, line_end) = line_within(body, LINE_BYTES_MAX, end);
        // A renderer without mathematics reads a fence there, so the formula ends here for all renderers.
        let is_other_block = ["```", "~~~", ":::", "///"].iter().any(|mark| line.starts_with(mark));
        let close = line.find("$$");
        let remainder = close.map(|at| line[at..].trim_start_matches('$'));
        let is_decided = is_other_block || remainder.is_some_and(|text| !text.chars().all(is_blank));
        if line_end == LineEnd::Open && !is_decided {
            return None;
        }
        self.blank_lines = 0;
        let is_over = is_other_block || (close.is_none() && line_end == LineEnd::TooLong);
        let text = if is_over { "" } else { line[..close.unwrap_or(line.len())].trim_end() };
        self.has_doubtful_code |= text.contains('`');
        let is_begun = formula == Formula::Begun || !text.is_empty();
        if !text.is_empty() {
            out.push_str(if formula == Formula::Empty { "$$\n" } else { "" });
            out.push_str(&harmless_maths(text));
            // A backslash may take the line end with it.
            let backslashes = text.len() - text.trim_end_matches('\\').len();
            out.push_str(if backslashes % 2 == 1 { " \n" } else { "\n" });
        }
        if is_over || close.is_some() {
            out.push_str(if is_begun { "$$\n" } else { "" });
            self.zone = MarkdownZone::Prose;
        } else {
            self.zone = MarkdownZone::Maths(if is_begun { Formula::Begun } else { Formula::Empty });
        }
        let taken = if is_over { 0 } else { line.len() - remainder.unwrap_or_default().len() };
        Some(if is_over { 0 } else { indent + with_line_end(body, taken) })
    }
}

/// A line that begins with white space, if it is an empty one.
enum BlankLine {
    /// The line has other characters.
    No,
    /// Not known yet.
    Open,
    /// The line is empty and has this many bytes.
    Taken(usize),
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn guarded(pieces: &[&str]) -> String {
        let mut guard = MarkdownGuard::default();
        let mut out: String = pieces.iter().map(|piece| guard.push(piece)).collect();
        out.push_str(&guard.finish());
        out
    }

    /// Checks the guarded text, however it is cut.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let whole = guarded(&[text]);
        assert_eq!(whole, expected, "of {text:?}");
        for cut in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            assert_eq!(guarded(&[&text[..cut], &text[cut..]]), whole, "of {text:?}, cut at {cut}");
        }
        let letters: Vec<_> = text.chars().map(String::from).collect();
        assert_eq!(guarded(&letters.iter().map(String::as_str).collect::<Vec<_>>()), whole, "of {text:?}");
    }

    #[test]
    fn ordinary_markdown_is_unchanged() {
        for text in [
            "Plain text, **bold**, _it_, [a link](https://x.org/a_b?c=<d>).".replace("<d>", "d").as_str(),
            "# Head\n\n- one\n- two\n  - three\n\n1. first\n2. second\n\n> quoted\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
            "a < b and 3 <5, x <= y, <3, a <- b, a << b",
            "`Vec<String>` and ``a `<b>` c``, `<details>x`".replace("<details>x", "<div>x").as_str(),
            "```rust\nlet a: Vec<u8> = vec![];\n\n    if a < b {}\n```\nThen `code`.",
            "~~~\n<b>\n```\n~~~\n",
            "$$\n\\frac{a}{b}\n$$\nand $a$",
            "costs 5 $, ok: x :: y // z * [not] **[bold link](x)**",
            "---\n\n***\n\n* item\n+ item",
            "",
            "中文，`代码<T>`。",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn html_tags_are_escaped() {
        check("x <!--", "x &lt;!--");
        check("<details>\n<summary>s", "&lt;details>\n&lt;summary>s");
        check("</div><?x <![CDATA[ <a\n<", "&lt;/div>&lt;?x &lt;![CDATA[ &lt;a\n<");
        check("<\u{2}details> <\u{200b}b>", "&lt;details> &lt;\u{200b}b>");
        check(r"\<b> \\<b> \\\<b>", r"&lt;b> \\&lt;b> \\&lt;b>");
        check("    <div>\n\t<div>", "    &lt;div>\n\t&lt;div>");
        check("◁think▷ <|begin_of_thought|>", "◁ think▷ &lt;|begin_of_thought|>");
    }

    #[test]
    fn angle_brackets_stay_only_in_unambiguous_code() {
        // Backticks that end nowhere may end in the next line, or are escaped.
        check("a ` b\nc ` <x> ` d\n\n`<y>`", "a ` b\nc ` &lt;x> ` d\n\n`<y>`");
        check(r"a \` <x> ` b `<y>`", r"a \` &lt;x> ` b `&lt;y>`");
        check("| ` | <x> ` |\n`<y>`", "| ` | &lt;x> ` |\n`&lt;y>`");
        check("`<!--` `<!-- a -->` `<think>`", "`&lt;!--` `<!-- a -->` `< think>`");
        check("``<a` `<b>``", "``<a` `<b>``");
        let long = "x".repeat(SPAN_BYTES_MAX);
        check(&format!("`{long}<a>`"), &format!("`{long}&lt;a>`"));
    }

    #[test]
    fn fence_starts_its_own_line_and_is_closed() {
        check("```html\n<div>", "```html\n<div>\n```");
        check("```", "```\n```");
        check("~~~~x\n<a>\n~~~\n", "~~~~x\n<a>\n~~~\n~~~~");
        check("```rust,ignore title=\"<a>\"\n<b>\n````\n<c>", "```rust\n<b>\n```\n&lt;c>");
        check("  ```js\n  <a>\n    <b>\n ```  \n<c>", "```js\n<a>\n  <b>\n```\n&lt;c>");
        check("- ```js\n  <a>\n  ```\n- b", "-\n\n```js\n<a>\n```\n- b");
        check("1. a\n\n   ```\n   <a>\n   ```\n2. b", "1. a\n\n```\n<a>\n```\n2. b");
        check("```md\n- a\n    ```\n<b>\n```", "```md\n- a\n    ```\n<b>\n```\n");
        check("```a```\n<b>", "```a```\n&lt;b>");
        check("a\r```\r<b>\r\n```\u{2028}<c>", "a\n```\n<b>\n```\n&lt;c>");
        check("```\n<think> <b>\n```\n", "```\n< think> <b>\n```\n");
        let long = "x".repeat(LINE_BYTES_MAX);
        check(&format!("```{long}"), &format!("&#96;&#96;&#96;{long}"));
    }

    #[test]
    fn formula_starts_its_own_line_and_is_closed() {
        check("$$", "");
        check("$$\n\n$$\na", "\na");
        check("$\n```\n$\n```\n", "&#36;\n```\n$\n```\n");
        check("$$\na\\\n[x]:\n$$\n", "$$\na\\ \n[x] :\n$$\n");
        check("$$ a <b\nc $$ d", "$$\na < b\nc\n$$\nd");
        check("$$a$$ b", "$$a$$\nb");
        check("  $$\n  x\n  $$\n", "$$\nx\n$$\n");
        check("$$\nx\n```\n<a>", "$$\nx\n$$\n```\n<a>\n```");
        check("$$~~~\n<a>", "~~~\n<a>\n~~~");
        check("$a<b$ \\(c<d\\) <e>", "$a< b$ \\(c< d\\) &lt;e>");
        check("$$\n` \n$$\n`<a>`", "$$\n`\n$$\n`&lt;a>`");
    }

    #[test]
    fn containers_and_footnotes_are_escaped_and_floods_cut() {
        check("::: spoiler\n", "&#58;:: spoiler\n");
        check("/// details\n", "&#47;// details\n");
        check("a[^1]\n\n[^1]: b", "a[&#94;1]\n\n[&#94;1]&#58; b");
        check("> *[yes\n] : no\n\n*[a](b)*: c", "> *[yes\n] &#58; no\n\n*[a](b)*: c");
        check("[a]: b \"\n[c]:\n~~~", "[a]&#58; b \"\n[c]&#58;\n~~~\n~~~");
        check(&format!("a{}b", "\n".repeat(1_000)), "a\n\n\nb");
        check(&format!("a{}b", "\n \u{200b}\u{2800}".repeat(100)), "a\n\n\n \u{200b}\u{2800}b");
        check(&format!("```\na{}b", "\n".repeat(1_000)), &format!("```\na{}b\n```", "\n".repeat(21)));
        assert!(guarded(&[&" ".repeat(10_000), "b"]).len() <= INDENT_BYTES_MAX + 1);
    }

    proptest! {
        #[test]
        fn cuts_do_not_change_the_output(pieces in proptest::collection::vec(
            proptest::sample::select(vec![
                "`", "``", "```", "~~~", "$", "$$", "<", "<b>", "<!--", "\n", "\n\n", " ", "    ", "\t", "-", "- ", "1.",
                "a", "js", "\\", "[", "^", "*[", "]:", ":::", "///", "]: ", "|", "\r", "\r\n", "think", "◁", "\u{200b}", "中",
            ]), 0..40), cuts in proptest::collection::vec(0_usize..200, 0..6)) {
            let text = pieces.concat();
            let whole = guarded(&[&text]);
            let mut at: Vec<_> = cuts.into_iter().map(|cut| text.floor_char_boundary(cut)).collect();
            at.extend([0, text.len()]);
            at.sort_unstable();
            let cut: Vec<_> = at.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect();
            prop_assert_eq!(guarded(&cut), whole);
        }
    }
}
