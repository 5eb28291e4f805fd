//! One block of a message on the screen.

use super::transcript::Reasoning;
use super::wording::fault_lines;
use crate::messages::Words;
use crate::terminal::card::{Card, duration};
use crate::terminal::markdown::{MarkdownStream, PROSE_COLUMNS_MAX};
use crate::terminal::text::{Ink, Line, Style};
use throughline_engine::Fault;
use throughline_wire::CallId;

/// Lines of folded reasoning: the last ones while it comes, the first ones afterwards.
const THINKING_LINES: usize = 4;

/// What a block shows.
#[derive(Debug)]
pub enum Block {
    /// Visible text; `begun` once some of its lines have been handed out.
    Text { markdown: MarkdownStream, open: bool, refused: bool, begun: bool },
    /// Reasoning.
    Thinking(Thinking),
    /// A tool call. `text` is its arguments in full, or as much as has arrived.
    Call { id: Option<CallId>, card: Box<Card>, text: String, effect: String, source: String },
    /// What the person said in mid-turn, where it was taken in.
    Said(String),
    /// Sound, as far as a terminal goes.
    Sound { said: String, open: bool },
    /// A picture, likewise.
    Picture { media_type: String, bytes: usize },
    /// A remark of the engine.
    Notice(String),
    /// A failure.
    Failure(Fault),
    /// A finding of the decoder that a person can do something about. No block of the message.
    Remark { what: String, remedy: String },
}

/// Reasoning with its time.
#[derive(Debug)]
pub struct Thinking {
    pub text: String,
    pub started_at: i64,
    pub ended_at: Option<i64>,
}

impl Block {
    /// Lines that are final now, and whether the block has no more to come.
    pub fn settle(
        &mut self,
        now: i64,
        columns: usize,
        words: Words,
        reasoning: Reasoning,
    ) -> (Vec<Line>, bool) {
        match self {
            Block::Text { markdown, open: true, refused, begun } => {
                let lines = markdown.settle(prose(columns));
                (labelled(lines, *refused && !*begun, words), false)
            }
            Block::Text { markdown, open: false, refused, begun } => {
                let lines = markdown.finish(prose(columns));
                (labelled(lines, *refused && !*begun, words), true)
            }
            Block::Thinking(thinking) => match thinking.ended_at {
                Some(_) => (thinking.lines(now, columns, words, reasoning), true),
                None => (Vec::new(), false),
            },
            Block::Call { card, .. } if card.state.is_final() => (card.lines(now, columns), true),
            Block::Sound { open: true, .. } | Block::Call { .. } => (Vec::new(), false),
            other => (other.live(now, columns, words, reasoning), true),
        }
    }

    /// Lines that may still change.
    pub fn live(&self, now: i64, columns: usize, words: Words, reasoning: Reasoning) -> Vec<Line> {
        match self {
            Block::Text { markdown, refused, begun, .. } => {
                labelled(markdown.open(prose(columns)), *refused && !*begun, words)
            }
            Block::Thinking(thinking) => thinking.lines(now, columns, words, reasoning),
            Block::Call { card, .. } => card.lines(now, columns),
            Block::Sound { said, .. } => {
                wrapped(&format!("♪ {}: {said}", words.sound()), Style::PLAIN, columns)
            }
            Block::Picture { media_type, bytes } => {
                let text = format!("▣ {} ({media_type}, {} KiB)", words.picture(), bytes.div_ceil(1024));
                wrapped(&text, Style::PLAIN, columns)
            }
            Block::Said(text) => {
                let prompt = Line::new("› ", Style::bold_ink(Ink::Magenta));
                let indent = Line::new("  ", Style::PLAIN);
                let lines =
                    text.lines().flat_map(|line| Line::new(line, Style::BOLD).wrapped(prose(columns) - 2));
                lines
                    .enumerate()
                    .map(|(at, line)| line.after(if at == 0 { &prompt } else { &indent }))
                    .collect()
            }
            Block::Notice(text) => wrapped(&format!("• {text}"), Style::ink(Ink::Yellow), columns),
            Block::Failure(fault) => fault_lines(fault, words, prose(columns)),
            Block::Remark { what, remedy } => {
                let mut lines =
                    wrapped(&format!("• {what}"), Style { dim: true, ..Style::ink(Ink::Yellow) }, columns);
                lines.extend(wrapped(&format!("  {}: {remedy}", words.try_hint()), Style::DIM, columns));
                lines
            }
        }
    }

    /// Remembers that lines have been handed out; says whether that was so before.
    pub fn begun(&mut self, now: bool) -> bool {
        match self {
            Block::Text { begun, .. } => std::mem::replace(begun, *begun || now),
            _ => false,
        }
    }

    /// Some lines have been handed out.
    pub fn has_begun(&self) -> bool {
        matches!(self, Block::Text { begun: true, .. })
    }
}

impl Thinking {
    fn lines(&self, now: i64, columns: usize, words: Words, reasoning: Reasoning) -> Vec<Line> {
        let style = Style { italic: true, ..Style::DIM };
        let gutter = Line::new("┊ ", Style::DIM);
        let took =
            duration(self.ended_at.unwrap_or(now).saturating_sub(self.started_at).max(0).unsigned_abs());
        let verb = if self.ended_at.is_some() { words.thought() } else { words.thinking() };
        let head = Line::new(&format!("┊ {verb} · {took}"), Style::DIM);
        let text: Vec<Line> = self
            .text
            .trim()
            .lines()
            .flat_map(|line| Line::new(line, style).wrapped(prose(columns).saturating_sub(2)))
            .map(|line| line.after(&gutter))
            .collect();
        let hidden = text.len().saturating_sub(THINKING_LINES);
        let mut lines = vec![head];
        match (reasoning, self.ended_at) {
            (Reasoning::Full, _) => lines.extend(text),
            (Reasoning::Folded, None) => lines.extend(text.into_iter().skip(hidden)),
            (Reasoning::Folded, Some(_)) => {
                lines.extend(text.into_iter().take(THINKING_LINES));
                if hidden > 0 {
                    lines.push(Line::new(&format!("┊ … {hidden} {}", words.more_lines()), Style::DIM));
                }
            }
        }
        lines.iter().map(|line| line.truncated(columns)).collect()
    }
}

fn labelled(lines: Vec<Line>, refused: bool, words: Words) -> Vec<Line> {
    let label = (refused && !lines.is_empty()).then(|| Line::new(words.refused(), Style::ink(Ink::Yellow)));
    label.into_iter().chain(lines).collect()
}

fn wrapped(text: &str, style: Style, columns: usize) -> Vec<Line> {
    text.lines().flat_map(|line| Line::new(line, style).wrapped(prose(columns))).collect()
}

/// Tables and code may be wider than prose, which bounds itself.
fn prose(columns: usize) -> usize {
    columns.min(PROSE_COLUMNS_MAX + 20)
}
