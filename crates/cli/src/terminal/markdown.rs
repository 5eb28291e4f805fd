//! Markdown as styled lines, while it is still being written.
//!
//! A finished top-level block never changes again, so it is handed out once; the block in progress is rendered anew
//! for each frame.

mod open_markup;
mod render;
mod table;

use super::text::StyledLine;
use open_markup::close_open_markup;
use pulldown_cmark::{Event, Options, Parser};
use render::render_blocks;

/// Widest a line of prose gets, in columns: longer lines are hard to read.
pub(crate) const PROSE_COLUMNS_MAX: usize = 100;

/// Markdown that arrives in pieces.
#[derive(Clone, Debug, Default)]
pub(crate) struct MarkdownStream {
    source: String,
    /// Bytes of `source` whose lines have been handed out.
    settled: usize,
    any_settled: bool,
    /// The opening of a code block that continues in the rest after its first lines were printed.
    inside_code: Option<String>,
}

impl MarkdownStream {
    /// Appends a piece of the source.
    pub(crate) fn push(&mut self, delta: &str) {
        self.source.push_str(delta);
    }

    /// Keeps only the first `chars` characters; printed lines stay printed.
    pub(crate) fn truncate_chars(&mut self, chars: usize) {
        let end = self.source.char_indices().nth(chars).map_or(self.source.len(), |(at, _)| at);
        self.source.truncate(end.max(self.settled));
    }

    /// Lines that have become final since the last call: finished blocks, a blank line apart, and finished lines of
    /// a code block, which may be longer than the screen.
    pub(crate) fn settle(&mut self, columns: usize) -> Vec<StyledLine> {
        let mut lines = Vec::new();
        let rest = self.rest();
        let end = last_block_start(&rest);
        if end > 0 {
            lines.extend(self.spaced(render(&rest[..end], columns)));
            self.settled += end - self.opening();
            self.inside_code = None;
        }
        let rest = self.rest();
        if let Some((fence, end)) = finished_code(&rest) {
            lines.extend(self.spaced(render(&rest[..end], columns)));
            self.settled += end - self.opening();
            self.inside_code = Some(format!("{fence}\n"));
        }
        lines
    }

    /// Lines of the block in progress, half-written markup closed for the eye.
    pub(crate) fn open(&self, columns: usize) -> Vec<StyledLine> {
        let lines = render(&close_open_markup(&self.rest()), columns);
        if self.needs_blank() && !lines.is_empty() {
            std::iter::once(StyledLine::default()).chain(lines).collect()
        } else {
            lines
        }
    }

    /// Ends the text: returns the lines of everything not printed so far.
    pub(crate) fn finish(&mut self, columns: usize) -> Vec<StyledLine> {
        let lines = render(&self.rest(), columns);
        let lines = self.spaced(lines);
        self.settled = self.source.len();
        self.inside_code = None;
        lines
    }

    /// Text that has not been returned yet, with the markup that lets it be read alone.
    fn rest(&self) -> String {
        format!("{}{}", self.inside_code.as_deref().unwrap_or(""), &self.source[self.settled..])
    }

    /// Bytes of [`Self::rest`] that are not in the source.
    fn opening(&self) -> usize {
        self.inside_code.as_ref().map_or(0, String::len)
    }

    fn needs_blank(&self) -> bool {
        self.any_settled && self.inside_code.is_none()
    }

    fn spaced(&mut self, lines: Vec<StyledLine>) -> Vec<StyledLine> {
        if lines.is_empty() {
            return lines;
        }
        let blank = self.needs_blank().then(StyledLine::default);
        self.any_settled = true;
        blank.into_iter().chain(lines).collect()
    }
}

/// If a text is one fenced code block that is still open: its fence, and the end of its last finished line
/// that is not empty (empty lines at the end may not belong to it).
fn finished_code(source: &str) -> Option<(&str, usize)> {
    let fence = open_fence(source).filter(|(at, _)| *at == 0)?.1;
    let complete = &source[..source.rfind('\n').map_or(0, |at| at + 1)];
    let end = complete.trim_end_matches(['\n', ' ', '\t', '\r']).len();
    let end = end + complete[end..].find('\n').map_or(0, |at| at + 1);
    // At least one line after the opening one.
    (complete[..end].matches('\n').count() >= 2).then_some((fence, end))
}

/// Renders a whole text.
pub(crate) fn render(source: &str, columns: usize) -> Vec<StyledLine> {
    let blocks = render_blocks(Parser::new_ext(source, options()), columns);
    let mut lines = Vec::new();
    for block in blocks.into_iter().filter(|block| !block.is_empty()) {
        if !lines.is_empty() {
            lines.push(StyledLine::default());
        }
        lines.extend(block);
    }
    lines
}

/// `ENABLE_SUBSCRIPT` distinguishes one tilde from two: models write ranges (`10~20`), and strike through
/// with two.
fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_SUBSCRIPT
        | Options::ENABLE_TASKLISTS
}

/// Offset of the last top-level block, at the start of its line; 0 if there is at most one. The line in
/// progress does not count: `|` alone ends a table, `| a |` continues it.
fn last_block_start(source: &str) -> usize {
    let source = &source[..source.rfind('\n').map_or(0, |at| at + 1)];
    let mut depth = 0usize;
    let mut last = 0;
    for (event, range) in Parser::new_ext(source, options()).into_offset_iter() {
        match event {
            Event::Start(_) => {
                if depth == 0 {
                    last = range.start;
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Rule if depth == 0 => last = range.start,
            _ => {}
        }
    }
    // An indented block's range begins after its indentation, which it needs to be parsed as the same block
    // again.
    source[..last].rfind('\n').map_or(0, |at| at + 1)
}

/// Offset of the open fenced code block at the end of the source, and its fence.
fn open_fence(source: &str) -> Option<(usize, &str)> {
    let mut open: Option<(usize, &str)> = None;
    let mut at = 0;
    for line in source.split_inclusive('\n') {
        let text = line.trim();
        let run = text.len() - text.trim_start_matches(['`', '~']).len();
        match open {
            None if run >= 3 => open = Some((at, &text[..run])),
            // A closing fence is at least as long, of the same kind, and alone.
            Some((_, fence)) if run == text.len() && text.starts_with(fence) => open = None,
            _ => {}
        }
        at += line.len();
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "\
# Weather report

It is **sunny** in *Paris*, see [the map](https://example.org/map) or `curl wttr.in`.
Second line.

- one
- two with a long text that has to be wrapped somewhere
  1. nested
  2. also
- [x] done

> quoted
> text

```rust
fn main() {
    println!(\"hi\");

    let x = 1;
}
```

~~~~
```


~~~~

| City | Temperature |
|:-----|------------:|
| 北京 | 23 °C |
| Paris | 9 °C |

---

## End
~~old~~ <https://example.org>
";

    #[track_caller]
    fn check(source: &str, columns: usize, expect: &str) {
        let lines: Vec<String> =
            render(source, columns).iter().map(|line| line.plain().trim_end().to_owned()).collect();
        assert_eq!(lines.join("\n"), expect.trim_matches('\n'));
    }

    #[test]
    fn markdown_sample_renders_as_terminal_text() {
        check(
            SAMPLE,
            44,
            r#"
Weather report

It is sunny in Paris, see the map
(https://example.org/map) or curl wttr.in.
Second line.

• one
• two with a long text that has to be
  wrapped somewhere
  1. nested
  2. also
• ☑ done

▌ quoted
▌ text

│ rust
│ fn main() {
│     println!("hi");
│
│     let x = 1;
│ }

│ ```

 City  │ Temperature
───────┼─────────────
 北京  │       23 °C
 Paris │        9 °C

────────────────────────────────────────────

End

old https://example.org
"#,
        );
    }

    #[test]
    fn wide_table_wraps_its_cells() {
        check(
            "| a | b |\n|---|---|\n| short | a cell that is much too long |",
            24,
            r#"
 a     │ b
───────┼────────────────
 short │ a cell that is
       │ much too long
"#,
        );
    }

    #[test]
    fn single_tilde_is_literal_and_two_strike_through() {
        for (source, expect, struck) in [
            ("价格在 10~20 元之间，重量 3~5 公斤。", "价格在 10~20 元之间，重量 3~5 公斤。", ""),
            ("Expect ~5 MB now and ~10 MB later.", "Expect ~5 MB now and ~10 MB later.", ""),
            ("~one~, H~2~O and **~a *b*~**", "~one~, H~2~O and ~a b~", ""),
            ("~~gone~~ 1~2 和~~真的删除~~ 3~4", "gone 1~2 和真的删除 3~4", "gone真的删除"),
        ] {
            check(source, 60, expect);
            let lines = render(source, 60);
            let spans = lines.iter().flat_map(|line| &line.0).filter(|span| span.style.strike);
            assert_eq!(spans.map(|span| span.text.as_str()).collect::<String>(), struck, "{source}");
        }
    }

    #[test]
    fn rendered_lines_fit_the_screen_width() {
        for columns in [12, 17, 30, 60] {
            for line in render(SAMPLE, columns) {
                assert!(line.width() <= columns, "{columns}: {:?}", line.plain());
            }
        }
    }

    // The final incremental rendering equals that of the whole text, for every way to cut it.
    #[test]
    fn incremental_rendering_equals_the_whole() {
        let whole = render(SAMPLE, 44);
        let ends: Vec<usize> = SAMPLE.char_indices().map(|(at, _)| at).collect();
        for size in [1, 2, 3, 7, 50] {
            let mut stream = MarkdownStream::default();
            let mut lines = Vec::new();
            let mut from = 0;
            for &to in ends.iter().step_by(size).chain([&SAMPLE.len()]) {
                stream.push(&SAMPLE[from..to]);
                from = to;
                lines.extend(stream.settle(44));
                stream.open(44);
            }
            lines.extend(stream.finish(44));
            let plain = |lines: &[StyledLine]| lines.iter().map(StyledLine::plain).collect::<Vec<_>>();
            assert_eq!(plain(&lines), plain(&whole), "pieces of {size}");
            assert_eq!(lines, whole, "pieces of {size}");
        }
    }

    #[test]
    fn code_block_settles_line_by_line() {
        let mut stream = MarkdownStream::default();
        stream.push("Look:\n\n```rust\nlet a = 1;\nlet b");
        let plain = |lines: Vec<StyledLine>| lines.iter().map(StyledLine::plain).collect::<Vec<_>>();
        assert_eq!(plain(stream.settle(40)), ["Look:", "", "│ rust", "│ let a = 1;"]);
        assert_eq!(plain(stream.open(40)), ["│ let b"]);
        stream.push(" = 2;\n```\n\nDone\n");
        assert_eq!(plain(stream.settle(40)), ["│ let b = 2;"]);
        assert_eq!(plain(stream.open(40)), ["", "Done"]);
    }

    #[test]
    fn unfinished_markup_is_rendered_without_its_markers() {
        let open = |source: &str| {
            let mut stream = MarkdownStream::default();
            stream.push(source);
            stream.open(40).iter().map(StyledLine::plain).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(open("a **bo"), "a bo");
        assert_eq!(open("a **"), "a");
        assert_eq!(open("a *ita"), "a ita");
        assert_eq!(open("a **bo *ita"), "a bo ita");
        assert_eq!(open("a `x * y"), "a x * y");
        assert_eq!(open("2 * 3 and *"), "2 * 3 and");
        assert_eq!(open("* one\n* tw"), "• one\n• tw");
        assert_eq!(open("done **bold** and `code` *it* ok"), "done bold and code it ok");
        assert_eq!(open("a `co"), "a co");
        assert_eq!(open("a\n-"), "a");
        assert_eq!(open("a\n=="), "a");
        assert_eq!(open("```\n**x"), "│ **x");
    }
}
