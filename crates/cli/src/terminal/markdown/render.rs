//! Parser events to lines.

use super::PROSE_COLUMNS_MAX;
use super::table::{CellAlignment, MarkdownTable};
use crate::terminal::text::{StyledLine, TextColor, TextStyle};
use pulldown_cmark::{self as cmark, CodeBlockKind, Event, HeadingLevel, Tag, TagEnd};
use std::iter::Peekable;

/// Narrowest a nested block is squeezed to, in columns.
const COLUMNS_MIN: usize = 4;

const CODE: TextStyle = TextStyle::ink(TextColor::Cyan);
const GUTTER: TextStyle = TextStyle::DIM;

/// The lines of each top-level block.
pub(crate) fn render_blocks<'a>(
    events: impl Iterator<Item = Event<'a>>,
    columns: usize,
) -> Vec<Vec<StyledLine>> {
    let mut renderer = MarkdownRenderer { events: events.peekable() };
    let mut blocks = Vec::new();
    while renderer.events.peek().is_some() {
        blocks.push(renderer.block(columns));
    }
    blocks
}

struct MarkdownRenderer<'a, I: Iterator<Item = Event<'a>>> {
    events: Peekable<I>,
}

impl<'a, I: Iterator<Item = Event<'a>>> MarkdownRenderer<'a, I> {
    /// The next block, or a run of text without one (in tight list items).
    fn block(&mut self, columns: usize) -> Vec<StyledLine> {
        let columns = columns.max(COLUMNS_MIN);
        let prose = columns.min(PROSE_COLUMNS_MAX);
        match self.events.peek() {
            None => Vec::new(),
            Some(Event::Rule) => {
                self.events.next();
                vec![StyledLine::new(&"─".repeat(prose), GUTTER)]
            }
            Some(Event::Start(tag)) if is_block(tag) => match self.events.next() {
                Some(Event::Start(tag)) => self.tagged(tag, columns, prose),
                _ => Vec::new(),
            },
            Some(Event::End(_)) => {
                self.events.next();
                Vec::new()
            }
            Some(_) => wrap(self.inlines(TextStyle::PLAIN), prose),
        }
    }

    fn tagged(&mut self, tag: Tag<'a>, columns: usize, prose: usize) -> Vec<StyledLine> {
        match tag {
            Tag::Heading { level, .. } => {
                let style = TextStyle {
                    underline: level == HeadingLevel::H1,
                    ..TextStyle::bold_ink(TextColor::Magenta)
                };
                let lines = self.inlines(style);
                self.end();
                wrap(lines, prose)
            }
            Tag::CodeBlock(kind) => self.code(&kind, columns),
            Tag::BlockQuote(_) => {
                let inner = self.children(columns.saturating_sub(2), BlockGap::Blank);
                let gutter = StyledLine::new("▌ ", GUTTER);
                inner.iter().map(|line| line.after(&gutter)).collect()
            }
            Tag::List(start) => self.list(start, columns),
            Tag::Table(alignments) => self.table(alignments).render(columns),
            Tag::HtmlBlock => self.verbatim(prose),
            _ => {
                let lines = self.inlines(TextStyle::PLAIN);
                self.end();
                wrap(lines, prose)
            }
        }
    }

    /// Everything up to the end of the block that has been entered.
    fn children(&mut self, columns: usize, gap: BlockGap) -> Vec<StyledLine> {
        let mut lines: Vec<StyledLine> = Vec::new();
        while !matches!(self.events.peek(), None | Some(Event::End(_))) {
            let paragraph = matches!(self.events.peek(), Some(Event::Start(Tag::Paragraph)));
            let block = self.block(columns);
            if !lines.is_empty() && !block.is_empty() && (gap == BlockGap::Blank || paragraph) {
                lines.push(StyledLine::default());
            }
            lines.extend(block);
        }
        self.end();
        lines
    }

    fn end(&mut self) {
        if matches!(self.events.peek(), Some(Event::End(_))) {
            self.events.next();
        }
    }

    fn list(&mut self, start: Option<u64>, columns: usize) -> Vec<StyledLine> {
        let mut lines: Vec<StyledLine> = Vec::new();
        let mut number = start;
        while let Some(Event::Start(Tag::Item)) = self.events.peek() {
            self.events.next();
            let loose = matches!(self.events.peek(), Some(Event::Start(Tag::Paragraph)));
            let mark = match number {
                Some(number) => format!("{number}. "),
                None => "• ".to_owned(),
            };
            number = number.map(|number| number.saturating_add(1));
            let indent = mark.chars().count();
            let item = self.children(columns.saturating_sub(indent), BlockGap::None);
            if loose && !lines.is_empty() {
                lines.push(StyledLine::default());
            }
            let first = StyledLine::new(&mark, TextStyle::ink(TextColor::Magenta));
            let rest = StyledLine::new(&" ".repeat(indent), TextStyle::PLAIN);
            if item.is_empty() {
                lines.push(first.clone());
            }
            lines.extend(item.iter().enumerate().map(|(at, line)| match at {
                0 => line.after(&first),
                _ if line.0.is_empty() => StyledLine::default(),
                _ => line.after(&rest),
            }));
        }
        self.end();
        lines
    }

    fn code(&mut self, kind: &CodeBlockKind<'_>, columns: usize) -> Vec<StyledLine> {
        let mut text = String::new();
        while let Some(Event::Text(piece)) = self.events.peek() {
            text.push_str(piece);
            self.events.next();
        }
        self.end();
        let gutter = StyledLine::new("│ ", GUTTER);
        let language = match kind {
            CodeBlockKind::Fenced(language) => language.split_whitespace().next(),
            CodeBlockKind::Indented => None,
        };
        // An empty block is nothing to see; neither is what is left of one that was handed out line by line.
        if text.trim().is_empty() && language.is_none() {
            return Vec::new();
        }
        let label = language.map(|language| {
            StyledLine::new(language, TextStyle { italic: true, ..TextStyle::DIM }).after(&gutter)
        });
        let code = text
            .trim_end_matches('\n')
            .split('\n')
            .flat_map(|line| hard_wrapped(line, columns.saturating_sub(2)));
        label.into_iter().chain(code.map(|line| line.after(&gutter))).collect()
    }

    /// Raw HTML is shown, never meant.
    fn verbatim(&mut self, columns: usize) -> Vec<StyledLine> {
        let mut text = String::new();
        while let Some(Event::Html(piece) | Event::Text(piece)) = self.events.peek() {
            text.push_str(piece);
            self.events.next();
        }
        self.end();
        wrap(text.trim_end().lines().map(|line| StyledLine::new(line, TextStyle::DIM)).collect(), columns)
    }

    fn table(&mut self, alignments: Vec<cmark::Alignment>) -> MarkdownTable {
        let alignments = alignments.into_iter().map(|alignment| match alignment {
            cmark::Alignment::Right => CellAlignment::Right,
            cmark::Alignment::Center => CellAlignment::Center,
            cmark::Alignment::None | cmark::Alignment::Left => CellAlignment::Left,
        });
        let mut table = MarkdownTable { alignments: alignments.collect(), rows: Vec::new() };
        let mut style = TextStyle::PLAIN;
        loop {
            match self.events.next() {
                Some(Event::Start(Tag::TableHead)) => {
                    style = TextStyle::BOLD;
                    table.rows.push(Vec::new());
                }
                Some(Event::Start(Tag::TableRow)) => {
                    style = TextStyle::PLAIN;
                    table.rows.push(Vec::new());
                }
                Some(Event::Start(Tag::TableCell)) => {
                    let cell = self.inlines(style);
                    let joined = cell.iter().fold(StyledLine::default(), |joined, line| line.after(&joined));
                    if let Some(row) = table.rows.last_mut() {
                        row.push(joined);
                    }
                }
                None | Some(Event::End(TagEnd::Table)) => return table,
                Some(_) => {}
            }
        }
    }

    /// A run of inline content, up to the next block or the end of this one. A line break in the source stays one:
    /// models mean it, and joining lines would put spaces between Chinese characters.
    fn inlines(&mut self, base: TextStyle) -> Vec<StyledLine> {
        let mut lines = vec![StyledLine::default()];
        let mut styles = vec![base];
        let mut links: Vec<(String, String)> = Vec::new();
        loop {
            let style = *styles.last().unwrap_or(&base);
            let open = styles.len() > 1;
            match self.events.peek() {
                None | Some(Event::Rule) => break,
                Some(Event::Start(tag)) if is_block(tag) => break,
                Some(Event::End(_)) if !open => break,
                Some(_) => {}
            }
            let mut text = |piece: &str, style: TextStyle| {
                if let Some(link) = links.last_mut() {
                    link.1.push_str(piece);
                }
                if let Some(line) = lines.last_mut() {
                    line.push(piece, style);
                }
            };
            match self.events.next() {
                Some(Event::Text(piece)) => text(&piece, style),
                Some(Event::Code(piece)) => text(&piece, TextStyle { ink: TextColor::Cyan, ..style }),
                Some(Event::Html(piece) | Event::InlineHtml(piece)) => {
                    text(&piece, TextStyle { dim: true, ..style })
                }
                Some(Event::InlineMath(piece) | Event::DisplayMath(piece)) => text(&piece, CODE),
                Some(Event::FootnoteReference(name)) => text(&format!("[^{name}]"), style),
                Some(Event::TaskListMarker(done)) => text(if done { "☑ " } else { "☐ " }, style),
                Some(Event::SoftBreak | Event::HardBreak) => lines.push(StyledLine::default()),
                Some(Event::Start(tag)) => {
                    styles.push(match &tag {
                        Tag::Strong => TextStyle { bold: true, ..style },
                        Tag::Emphasis => TextStyle { italic: true, ..style },
                        Tag::Strikethrough => TextStyle { strike: true, ..style },
                        Tag::Link { .. } => TextStyle { underline: true, ..style },
                        _ => style,
                    });
                    match tag {
                        Tag::Link { dest_url, .. } => links.push((dest_url.to_string(), String::new())),
                        Tag::Image { dest_url, .. } => {
                            text("picture: ", TextStyle::DIM);
                            links.push((dest_url.to_string(), String::new()));
                        }
                        Tag::Subscript => text("~", style),
                        _ => {}
                    }
                }
                Some(Event::End(tag)) => {
                    styles.pop();
                    if tag == TagEnd::Subscript {
                        text("~", *styles.last().unwrap_or(&base));
                    }
                    if let (TagEnd::Link | TagEnd::Image, Some((target, label))) = (tag, links.pop())
                        && target != label
                        && target.strip_prefix("mailto:") != Some(&label)
                        && let Some(line) = lines.last_mut()
                    {
                        line.push(&format!(" ({target})"), TextStyle::DIM);
                    }
                }
                None | Some(Event::Rule) => break,
            }
        }
        lines
    }
}

/// Blank line between blocks inside another block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockGap {
    None,
    Blank,
}

fn is_block(tag: &Tag<'_>) -> bool {
    !matches!(
        tag,
        Tag::Emphasis
            | Tag::Strong
            | Tag::Strikethrough
            | Tag::Superscript
            | Tag::Subscript
            | Tag::Link { .. }
            | Tag::Image { .. }
    )
}

fn wrap(lines: Vec<StyledLine>, columns: usize) -> Vec<StyledLine> {
    lines.iter().flat_map(|line| line.wrapped(columns)).collect()
}

/// Code with its spaces: it is cut at the edge, not at words.
fn hard_wrapped(text: &str, columns: usize) -> Vec<StyledLine> {
    use unicode_segmentation::UnicodeSegmentation;
    let mut lines = vec![StyledLine::default()];
    let mut used = 0;
    for cell in StyledLine::new(text, CODE).plain().graphemes(true) {
        let cell_width = crate::terminal::text::width(cell);
        if used + cell_width > columns {
            lines.push(StyledLine::default());
            used = 0;
        }
        used += cell_width;
        if let Some(line) = lines.last_mut() {
            line.push(cell, CODE);
        }
    }
    lines
}
